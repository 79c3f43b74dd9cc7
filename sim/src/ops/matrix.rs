//! The tensor engine.

use bir_dialect::bir::attrs::Accumulate;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::space::Target;
use bir_dialect::ir::Def;

use crate::alu::{Alu, Arg, Binary};
use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::lower::{Bound, Site, Task};
use crate::machine::Machine;
use crate::product::{Matrix, MatrixMut, multiply};
use crate::rows;
use crate::tile::Tile;

use super::movement::volume;
use super::promise::ZerosAndOnes;

/// Whether to add to what the destination holds.
pub(super) enum Mode {
    Overwrite,
    Add,
    /// Adds unless the index has its first value.
    AddUnless {
        index: u32,
        first: Bound,
    },
}

impl Mode {
    /// What `accumulate` says.
    pub(super) fn of(site: &Site<'_>) -> Run<Mode> {
        let accumulate = Accumulate::get(&site.ir.ctx, site.ir.attr(site.op, "accumulate"))
            .ok_or_else(|| malformed("`accumulate` is none it knows"))?;
        Ok(match accumulate {
            Accumulate::No => Mode::Overwrite,
            Accumulate::Yes => Mode::Add,
            Accumulate::UnlessFirst(number) => Mode::AddUnless {
                index: site.index_slot(number)?,
                first: first_of(site, number)?,
            },
        })
    }

    /// Whether it adds now.
    pub(super) fn adds(&self, m: &Machine) -> bool {
        match self {
            Mode::Overwrite => false,
            Mode::Add => true,
            Mode::AddUnless { index, first } => {
                let first = match first {
                    Bound::Number(number) => *number,
                    Bound::Register(slot) => i64::from(m.regs[*slot as usize] as i32),
                };
                m.regs[*index as usize] != first
            }
        }
    }
}

struct Matmult {
    dst: Tile,
    stationary: Tile,
    moving: Tile,
    mode: Mode,
    /// K, M, N
    shape: (usize, usize, usize),
}

/// Writes the product that lies in `scratch.out`, its NaNs canonical, or adds it to what is there.
pub(super) fn write(
    m: &mut Machine,
    dst: &Tile,
    to: usize,
    shape: (usize, usize, usize),
    adds: bool,
) -> Run<()> {
    let (_, rows_m, n) = shape;
    if adds {
        let strict = m.target < Target::Trn3;
        let mem = &m.mem;
        let wrong = |range: std::ops::Range<usize>| {
            if strict {
                mem.first_not_matmult(dst.home.region, range)
            } else {
                mem.first_undefined(dst.home.region, range)
            }
        };
        if mem.checked && dst.ranges(to).any(|range| wrong(range).is_some()) {
            let location = m.describe(dst, to, |mem, range| {
                if strict {
                    mem.first_not_matmult(dst.home.region, range)
                } else {
                    mem.first_undefined(dst.home.region, range)
                }
            });
            return Err(Fault::of_operand(
                FaultKind::Accumulate { location },
                dst.operand,
            ));
        }
        m.check_defined(dst, to)?;
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [_, _, before, _] = &mut scratch.rows;
        rows::load(
            *lanes,
            mem,
            dst,
            to,
            (0, rows_m),
            before,
            &mut scratch.spare,
        );
        lanes.run(Binary {
            op: Alu::Add,
            out: &mut scratch.out[..rows_m * n],
            a: Arg::Own,
            b: Arg::Row(&before[..rows_m * n]),
        });
    }
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = &mut *m;
    rows::store(
        *lanes,
        mem,
        dst,
        to,
        (0, rows_m),
        &scratch.out,
        &mut scratch.spare,
    );
    mark(m, dst, to);
    Ok(())
}

/// The tensor engine wrote the destination.
fn mark(m: &mut Machine, dst: &Tile, to: usize) {
    for range in dst.ranges(to) {
        m.mem.mark_matmult(dst.home.region, range);
    }
}

/// The bytes of a tile of f32 that can be used as a [`Matrix`] where it lies.
fn plain(tile: &Tile, at: usize) -> Option<std::ops::Range<usize>> {
    let row = tile.elements * 4;
    let contiguous = match tile.levels.as_slice() {
        [] => true,
        [step] => step.bytes == 4,
        _ => false,
    };
    let aligned = (at | tile.home.pitch).is_multiple_of(4) && tile.home.pitch >= row;
    let fits = tile.dtype == DType::F32 && contiguous && aligned && tile.low == 0;
    fits.then(|| at..at + (tile.partitions - 1) * tile.home.pitch + row)
}

/// Multiplies where the operands lie, if all are plain and the destination shares no byte with the others.
fn multiply_in_place(m: &mut Machine, task: &Matmult, to: usize, from: (usize, usize)) -> bool {
    let Matmult {
        dst,
        stationary,
        moving,
        shape,
        ..
    } = task;
    let ranges = (
        plain(dst, to),
        plain(stationary, from.0),
        plain(moving, from.1),
    );
    let (Some(out), Some(a), Some(b)) = ranges else {
        return false;
    };
    let apart = |side: &std::ops::Range<usize>| side.end <= out.start || side.start >= out.end;
    if !apart(&a) || !apart(&b) {
        return false;
    }
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = &mut *m;
    let (before, rest) = mem.bytes_mut().split_at_mut(out.start);
    let (data, after) = rest.split_at_mut(out.len());
    let side = |tile: &Tile, range: std::ops::Range<usize>| {
        let bytes = if range.end <= out.start {
            &before[range]
        } else {
            &after[range.start - out.end..range.end - out.end]
        };
        Matrix {
            data: bytemuck::cast_slice(bytes),
            pitch: tile.home.pitch / 4,
        }
    };
    let product = MatrixMut {
        data: bytemuck::cast_slice_mut(data),
        pitch: dst.home.pitch / 4,
    };
    let panel = &mut scratch.rows[3];
    multiply(
        *lanes,
        side(stationary, a),
        side(moving, b),
        *shape,
        product,
        panel,
    );
    true
}

impl Task for Matmult {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Matmult {
            dst,
            stationary,
            moving,
            mode,
            shape,
        } = self;
        let to = m.at(dst)?;
        let (a_at, b_at) = (m.source(stationary)?, m.source(moving)?);
        let adds = mode.adds(m);
        if !adds && multiply_in_place(m, self, to, (a_at, b_at)) {
            mark(m, dst, to);
            return Ok(());
        }
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [a, b, _, panel] = &mut scratch.rows;
        rows::load(
            *lanes,
            mem,
            stationary,
            a_at,
            (0, stationary.partitions),
            a,
            &mut scratch.spare,
        );
        rows::load(
            *lanes,
            mem,
            moving,
            b_at,
            (0, moving.partitions),
            b,
            &mut scratch.spare,
        );
        crate::runs::resize(&mut scratch.out, shape.1 * shape.2);
        multiply(
            *lanes,
            Matrix::dense(&a[..shape.0 * shape.1], shape.1),
            Matrix::dense(&b[..shape.0 * shape.2], shape.2),
            *shape,
            MatrixMut {
                data: &mut scratch.out[..shape.1 * shape.2],
                pitch: shape.2,
            },
            panel,
        );
        write(m, dst, to, *shape, adds)
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.stationary) + volume(&self.moving)
    }
}

/// Moves columns bit by bit: column `n` of `moving` has its single 1 at the `k` it chooses.
struct Choose {
    dst: Tile,
    stationary: Tile,
    moving: Tile,
}

impl Task for Choose {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Choose {
            dst,
            stationary,
            moving,
        } = self;
        let to = m.at(dst)?;
        let (a_at, b_at) = (m.source(stationary)?, m.source(moving)?);
        let (k, columns, n) = (stationary.partitions, stationary.elements, moving.elements);
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [values, selector, ..] = &mut scratch.rows;
        let [from, turned, ..] = &mut scratch.copies;
        rows::load(
            *lanes,
            mem,
            moving,
            b_at,
            (0, k),
            selector,
            &mut scratch.spare,
        );
        rows::pack(mem, stationary, a_at, (0, k), from);
        let size = stationary.size;
        crate::runs::resize(turned, columns * n * size);
        crate::runs::resize(values, n);
        for j in 0..n {
            let ones = (0..k).filter(|&i| selector[i * n + j] != 0.0);
            let mut chosen = None;
            for i in ones {
                if selector[i * n + j] != 1.0 || chosen.replace(i).is_some() {
                    return Err(malformed(format!(
                        "column {j} of `moving` is no column of an identity matrix"
                    )));
                }
            }
            let Some(i) = chosen else {
                return Err(malformed(format!(
                    "column {j} of `moving` is no column of an identity matrix"
                )));
            };
            for c in 0..columns {
                let bits = &from[(i * columns + c) * size..][..size];
                turned[(c * n + j) * size..][..size].copy_from_slice(bits);
            }
        }
        rows::unpack(mem, dst, to, (0, dst.partitions), turned);
        mark(m, dst, to);
        Ok(())
    }
}

pub(super) fn matmult(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, stationary, moving) = (
        site.tile("dst")?,
        site.tile("stationary")?,
        site.tile("moving")?,
    );
    let rows = if site.flag("double_row") { 2 } else { 1 };
    let shape = (
        stationary.partitions * rows,
        stationary.elements / rows,
        moving.elements / rows,
    );
    let fits = stationary.partitions == moving.partitions
        && dst.partitions == shape.1
        && dst.elements == shape.2
        && shape.0 > 0;
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    if site.flag("is_transpose") && site.target() > Target::Trn1 && dst.dtype == stationary.dtype {
        return Ok(Box::new(Choose {
            dst,
            stationary,
            moving,
        }));
    }
    // Only of f32 do the hints say anything.
    let hints = [
        ("stationary_onezero", &stationary),
        ("moving_onezero", &moving),
    ];
    let promised: Vec<(Tile, &'static str)> = hints
        .into_iter()
        .filter(|(hint, tile)| site.flag(hint) && tile.dtype == DType::F32)
        .map(|(hint, tile)| (tile.clone(), hint))
        .collect();
    let task = Box::new(Matmult {
        dst,
        stationary,
        moving,
        mode: Mode::of(site)?,
        shape,
    });
    Ok(if promised.is_empty() {
        task
    } else {
        Box::new(ZerosAndOnes { task, promised })
    })
}

/// The first value of the loop behind an index operand.
fn first_of(site: &Site<'_>, number: u8) -> Run<Bound> {
    let block = match site.index_value(number).map(|value| site.ir.def(value)) {
        Some(Def::Arg { block, .. }) => block,
        _ => return Err(malformed("`unless_first` names no loop index")),
    };
    let owner = site
        .ir
        .block_parent(block)
        .ok_or_else(|| malformed("`unless_first` names no loop index"))?;
    site.bound_of(owner, "lower")
}

/// What a transposition is on the first generation: a product with an identity matrix.
struct ByProduct {
    dst: Tile,
    src: Tile,
}

impl Task for ByProduct {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let ByProduct { dst, src } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let (k, columns) = (src.partitions, src.elements);
        let mut identity = vec![0.0f32; k * k];
        for i in 0..k {
            identity[i * k + i] = 1.0;
        }
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [a, _, _, panel] = &mut scratch.rows;
        rows::load(*lanes, mem, src, from, (0, k), a, &mut scratch.spare);
        crate::runs::resize(&mut scratch.out, columns * k);
        multiply(
            *lanes,
            Matrix::dense(&a[..k * columns], columns),
            Matrix::dense(&identity, k),
            (k, columns, k),
            MatrixMut {
                data: &mut scratch.out[..columns * k],
                pitch: k,
            },
            panel,
        );
        write(m, dst, to, (k, columns, k), false)
    }
}

pub(super) fn transpose_by_product(dst: Tile, src: Tile) -> Run<Box<dyn Task>> {
    if !matches!(
        dst.dtype,
        DType::F32 | DType::Tf32 | DType::Bf16 | DType::F16
    ) {
        return Err(malformed(format!(
            "the tensor engine does not write `{}`",
            dst.dtype
        )));
    }
    Ok(Box::new(ByProduct { dst, src }))
}
