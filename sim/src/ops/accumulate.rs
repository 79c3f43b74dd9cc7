//! The activation engine: a function of every element, and the accumulator behind it.

use crate::alu::{Alu, Arg, Binary, ReduceRows, quiet, reduce_rows};
use crate::fault::{Run, malformed};
use crate::func::{Apply, Func};
use crate::lower::{Scalar, Site, Task};
use crate::machine::Machine;
use crate::rows::{self, Rows};
use crate::simd::Lanes;
use crate::tile::Tile;
use crate::walk::AnyWalk;

use super::movement::volume;

/// What an instruction does to an accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Idle,
    Reset,
    Accumulate,
    Load,
    Clear,
}

impl Command {
    pub(super) fn of(site: &Site<'_>, missing: Command) -> Command {
        match site.word("reduce_cmd") {
            Some("idle") => Command::Idle,
            Some("reset") => Command::Reset,
            Some("accumulate") => Command::Accumulate,
            Some("load") => Command::Load,
            Some("clear") => Command::Clear,
            _ => missing,
        }
    }
}

/// A number or a source of a walk.
#[derive(Clone, Copy)]
enum Side {
    Number(f32),
    Source(usize),
}

impl Side {
    fn arg<'a>(self, args: &[Arg<'a>]) -> Arg<'a> {
        match self {
            Side::Number(number) => Arg::Splat(number),
            Side::Source(at) => args[at],
        }
    }
}

/// `out = func(x * scale + bias)` whatever the sides are.
fn apply(
    lanes: Lanes,
    func: Func,
    alpha: f32,
    out: &mut [f32],
    x: Arg<'_>,
    scale: Arg<'_>,
    bias: Arg<'_>,
) {
    let job = |out, x, scale, bias| Apply {
        func,
        alpha,
        out,
        x,
        scale,
        bias,
    };
    if let (Arg::Splat(scale), Arg::Splat(bias)) = (scale, bias) {
        lanes.run(job(out, x, scale, bias));
        return;
    }
    lanes.run(Binary {
        op: Alu::Multiply,
        out: &mut *out,
        a: x,
        b: scale,
    });
    lanes.run(Binary {
        op: Alu::Add,
        out: &mut *out,
        a: Arg::Own,
        b: bias,
    });
    lanes.run(job(out, Arg::Own, 1.0, -0.0));
}

/// Without sums.
struct Elementwise {
    func: Func,
    alpha: f32,
    walk: AnyWalk,
    scale: Side,
    bias: Side,
    bytes: u64,
}

impl Task for Elementwise {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Elementwise {
            func,
            alpha,
            walk,
            scale,
            bias,
            ..
        } = self;
        walk.map(m, |lanes, out, args| {
            apply(
                lanes,
                *func,
                *alpha,
                out,
                args[0],
                scale.arg(args),
                bias.arg(args),
            );
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// With sums of rows.
struct Summed {
    func: Func,
    alpha: f32,
    dst: Tile,
    src: Tile,
    scale: Scalar,
    bias: Scalar,
    command: Command,
    result: Option<Tile>,
}

/// The values of a scalar for some rows.
pub(super) fn per_row(
    m: &mut Machine,
    scalar: &Scalar,
    at: usize,
    rows: (usize, usize),
    out: &mut Vec<f32>,
) {
    out.clear();
    match scalar {
        Scalar::Number(number) => out.resize(rows.1, *number),
        Scalar::Tile(tile) => {
            let Machine {
                mem,
                scratch,
                lanes,
                ..
            } = m;
            out.resize(rows.1 * tile.elements, 0.0);
            rows::load(*lanes, mem, tile, at, rows, out, &mut scratch.spare);
        }
    }
}

/// Where a scalar of so many partitions starts, defined.
pub(super) fn place(m: &Machine, scalar: &Scalar, partitions: usize) -> Run<usize> {
    match scalar {
        Scalar::Number(_) => Ok(0),
        Scalar::Tile(tile) if tile.elements != 1 || tile.partitions != partitions => {
            Err(malformed("a scalar is not one element per partition"))
        }
        Scalar::Tile(tile) => m.source(tile),
    }
}

/// A result has one element per partition.
fn is_column(tile: &Tile) -> Run<()> {
    match tile.elements {
        1 => Ok(()),
        _ => Err(malformed("a result is not one element per partition")),
    }
}

/// Writes values, one per partition.
pub(super) fn write_column(m: &mut Machine, tile: &Tile, values: &[f32]) -> Run<()> {
    is_column(tile)?;
    let at = m.at(tile)?;
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = &mut *m;
    rows::store(
        *lanes,
        mem,
        tile,
        at,
        (0, tile.partitions),
        values,
        &mut scratch.spare,
    );
    m.mark(tile, at);
    Ok(())
}

impl Task for Summed {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Summed {
            func,
            alpha,
            dst,
            src,
            scale,
            bias,
            command,
            result,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let rows = src.partitions;
        let (scale_at, bias_at) = (place(m, scale, rows)?, place(m, bias, rows)?);
        let len = src.elements.max(1);
        let (mut scales, mut biases) = (Vec::new(), Vec::new());
        // Scalars may lie in the destination: all are read first.
        let all = (0, src.partitions);
        per_row(m, scale, scale_at, all, &mut scales);
        per_row(m, bias, bias_at, all, &mut biases);
        let mut sums = [0.0f32; 128];
        rows::map(m, (dst, to), [(src, from)], |rows| {
            let Rows {
                lanes,
                first,
                sources: [values],
                out,
            } = rows;
            let mut last = first;
            for (row, out) in values.chunks_exact(len).zip(out.chunks_exact_mut(len)) {
                lanes.run(Apply {
                    func: *func,
                    alpha: *alpha,
                    out,
                    x: Arg::Row(row),
                    scale: scales[last],
                    bias: biases[last],
                });
                last += 1;
            }
            let job = ReduceRows {
                op: Alu::Add,
                rows: out,
                len,
                stride: len,
                out: &mut sums[first..last],
            };
            reduce_rows(lanes, job);
        })?;
        for (p, &sum) in sums[..src.partitions.min(128)].iter().enumerate() {
            let value = match command {
                Command::Idle => continue,
                Command::Accumulate => quiet(m.act.get(p)? + sum),
                Command::Clear => 0.0,
                Command::Reset | Command::Load => sum,
            };
            m.act.set(p, value);
        }
        if let Some(result) = result {
            for (p, sum) in sums[..result.partitions.min(128)].iter_mut().enumerate() {
                *sum = m.act.get(p)?;
            }
            write_column(m, result, &sums)?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn activation(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    let func = site.func()?;
    let alpha = site.number("alpha", 0.01);
    let scale = site.scalar("scale")?.unwrap_or(Scalar::Number(1.0));
    // Adding -0 changes no value, not even 0.
    let bias = site.scalar("bias")?.unwrap_or(Scalar::Number(-0.0));
    let result = site.maybe_tile("reduce_res")?;
    let missing = if result.is_some() {
        Command::Reset
    } else {
        Command::Idle
    };
    let command = Command::of(site, missing);
    if result.is_some() || command != Command::Idle {
        return Ok(Box::new(Summed {
            func,
            alpha,
            dst,
            src,
            scale,
            bias,
            command,
            result,
        }));
    }
    let mut tiles = vec![dst, src];
    let mut side = |scalar| match scalar {
        Scalar::Number(number) => Side::Number(number),
        Scalar::Tile(tile) => {
            tiles.push(tile);
            Side::Source(tiles.len() - 2)
        }
    };
    let (scale, bias) = (side(scale), side(bias));
    let bytes = tiles.iter().map(volume).sum();
    Ok(Box::new(Elementwise {
        func,
        alpha,
        walk: AnyWalk::new(tiles)?,
        scale,
        bias,
        bytes,
    }))
}

struct Read(Tile);

impl Task for Read {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let mut values = [0.0f32; 128];
        for (p, value) in values[..self.0.partitions.min(128)].iter_mut().enumerate() {
            *value = m.act.get(p)?;
        }
        write_column(m, &self.0, &values)
    }
}

pub(super) fn read(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let dst = site.tile("dst")?;
    is_column(&dst)?;
    Ok(Box::new(Read(dst)))
}
