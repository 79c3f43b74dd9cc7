//! Partition by partition execution: whole rows of a tile to f32 scratch and back.

use bir_dialect::bir::num::DType;

use crate::alu::{Alu, ReduceRows, reduce_rows};
use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::runs::{self, Room, Spaced};
use crate::simd::Lanes;
use crate::tile::{Odometer, Step, Tile};

/// Rows handled together where a sum runs along each.
pub(crate) const GROUP: usize = 8;

/// The inner run of a row, and the levels around it.
fn split(tile: &Tile) -> (&[Step], Step) {
    match tile.levels.split_last() {
        Some((inner, outer)) => (outer, *inner),
        None => (
            &[],
            Step {
                bytes: tile.size as i64,
                count: 1,
            },
        ),
    }
}

fn each_run(
    tile: &Tile,
    at: usize,
    first: usize,
    count: usize,
    mut body: impl FnMut(usize, Spaced),
) {
    let (outer, inner) = split(tile);
    let pitch = tile.home.pitch;
    let spaced = |at: i64, count: usize, step: i64| Spaced {
        at: at as usize,
        step,
        count,
        dtype: tile.dtype,
        size: tile.size,
    };
    // Rows that continue one another are one run.
    if outer.is_empty() && inner.bytes * inner.count as i64 == pitch as i64 {
        let start = (at + first * pitch) as i64;
        body(0, spaced(start, inner.count * count, inner.bytes));
        return;
    }
    for row in 0..count {
        let start = (at + (first + row) * pitch) as i64;
        let mut element = row * tile.elements;
        if outer.is_empty() {
            body(element, spaced(start, inner.count, inner.bytes));
            continue;
        }
        for offset in Odometer::new(outer.iter().copied().collect()) {
            body(element, spaced(start + offset, inner.count, inner.bytes));
            element += inner.count;
        }
    }
}

/// Reads rows `first..first + count` of a tile at `at`, one behind another.
pub(crate) fn load(
    lanes: Lanes,
    mem: &Memory,
    tile: &Tile,
    at: usize,
    rows: (usize, usize),
    out: &mut (impl Room + std::ops::DerefMut<Target = [f32]>),
    spare: &mut Vec<u8>,
) {
    runs::resize(out, rows.1 * tile.elements);
    let bytes = mem.bytes();
    each_run(tile, at, rows.0, rows.1, |element, run| {
        runs::load(
            lanes,
            bytes,
            &run,
            &mut out[element..element + run.count],
            spare,
        );
    });
}

/// Writes rows `first..first + count` of a tile at `at`.
pub(crate) fn store(
    lanes: Lanes,
    mem: &mut Memory,
    tile: &Tile,
    at: usize,
    rows: (usize, usize),
    from: &[f32],
    spare: &mut Vec<u8>,
) {
    let bytes = mem.bytes_mut();
    each_run(tile, at, rows.0, rows.1, |element, run| {
        runs::store(
            lanes,
            bytes,
            &run,
            &from[element..element + run.count],
            spare,
        );
    });
}

/// Reads rows as integers.
pub(crate) fn load_ints(
    mem: &Memory,
    tile: &Tile,
    at: usize,
    rows: (usize, usize),
    out: &mut Vec<i64>,
) {
    runs::resize(out, rows.1 * tile.elements);
    let bytes = mem.bytes();
    each_run(tile, at, rows.0, rows.1, |element, run| {
        runs::load_ints(bytes, &run, &mut out[element..element + run.count]);
    });
}

/// Writes rows of integers.
pub(crate) fn store_ints(
    mem: &mut Memory,
    tile: &Tile,
    at: usize,
    rows: (usize, usize),
    from: &[i64],
) {
    let bytes = mem.bytes_mut();
    each_run(tile, at, rows.0, rows.1, |element, run| {
        runs::store_ints(bytes, &run, &from[element..element + run.count]);
    });
}

/// Packs the bits of rows, one behind another.
pub(crate) fn pack(mem: &Memory, tile: &Tile, at: usize, rows: (usize, usize), out: &mut Vec<u8>) {
    runs::resize(out, rows.1 * tile.elements * tile.size);
    let bytes = mem.bytes();
    each_run(tile, at, rows.0, rows.1, |element, run| {
        let from = element * run.size;
        runs::pack(bytes, &run, &mut out[from..from + run.count * run.size]);
    });
}

/// Writes the bits of rows that lie one behind another.
pub(crate) fn unpack(mem: &mut Memory, tile: &Tile, at: usize, rows: (usize, usize), from: &[u8]) {
    let bytes = mem.bytes_mut();
    each_run(tile, at, rows.0, rows.1, |element, run| {
        let start = element * run.size;
        runs::unpack(bytes, &run, &from[start..start + run.count * run.size]);
    });
}

/// Rows of a destination, and the same rows of its sources.
pub(crate) struct Rows<'a, const N: usize> {
    pub(crate) lanes: Lanes,
    /// Number of the first one.
    pub(crate) first: usize,
    /// What the sources hold, one row behind another.
    pub(crate) sources: [&'a [f32]; N],
    /// Room for the results, one row behind another.
    pub(crate) out: &'a mut [f32],
}

/// Whether the rows of a tile at `at` lie in memory as f32, one behind another.
fn lies_ready(tile: &Tile, at: usize) -> bool {
    let (outer, inner) = split(tile);
    tile.dtype == DType::F32
        && outer.is_empty()
        && inner.count == tile.elements
        && (inner.bytes == 4 || inner.count == 1)
        && tile.home.pitch == tile.elements * 4
        && at.is_multiple_of(4)
}

/// Computes the rows of a destination from those of its sources, some at a time; sources that overlap
/// it are read in full before it is written.
pub(crate) fn map<const N: usize>(
    m: &mut Machine,
    (dst, to): (&Tile, usize),
    sources: [(&Tile, usize); N],
    mut body: impl FnMut(Rows<'_, N>),
) -> Run<()> {
    let unlike = |(src, _): &&(&Tile, usize)| src.partitions != dst.partitions;
    if let Some((src, _)) = sources.iter().find(unlike) {
        return Err(malformed(format!(
            "operands of {} and {} partitions",
            dst.partitions, src.partitions
        )));
    }
    let ready = sources.map(|(src, from)| lies_ready(src, from));
    // Results go where they belong at once, unless something read in place lies there.
    let direct = lies_ready(dst, to) && { sources.iter().zip(ready) }
        .all(|((src, from), ready)| !ready || !src.may_overlap(*from, dst, to));
    let group = m.group((dst, to), &sources);
    for (first, count) in groups(dst.partitions, group) {
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        for (k, &(src, from)) in sources.iter().enumerate().filter(|&(k, _)| !ready[k]) {
            load(
                *lanes,
                mem,
                src,
                from,
                (first, count),
                &mut scratch.rows[k],
                &mut scratch.spare,
            );
        }
        let rooms = &scratch.rows;
        if direct {
            let start = to + first * dst.home.pitch;
            let (before, rest) = mem.bytes_mut().split_at_mut(start);
            let (out, after) = rest.split_at_mut(count * dst.elements * 4);
            let end = start + out.len();
            body(Rows {
                lanes: *lanes,
                first,
                sources: std::array::from_fn(|k| {
                    let (src, from) = sources[k];
                    let len = count * src.elements;
                    let at = from + first * src.home.pitch;
                    if !ready[k] {
                        &rooms[k][..len]
                    } else if at < start {
                        bytemuck::cast_slice(&before[at..at + len * 4])
                    } else {
                        bytemuck::cast_slice(&after[at - end..at - end + len * 4])
                    }
                }),
                out: bytemuck::cast_slice_mut(out),
            });
            continue;
        }
        runs::resize(&mut scratch.out, count * dst.elements);
        let bytes = mem.bytes();
        body(Rows {
            lanes: *lanes,
            first,
            sources: std::array::from_fn(|k| {
                let (src, from) = sources[k];
                let len = count * src.elements;
                if ready[k] {
                    let start = from + first * src.home.pitch;
                    bytemuck::cast_slice(&bytes[start..start + len * 4])
                } else {
                    &rooms[k][..len]
                }
            }),
            out: &mut scratch.out[..count * dst.elements],
        });
        store(
            *lanes,
            mem,
            dst,
            to,
            (first, count),
            &scratch.out,
            &mut scratch.spare,
        );
    }
    m.mark(dst, to);
    Ok(())
}

/// One value for each row of a tile at `at`, from its elements in order.
pub(crate) fn reduce(m: &mut Machine, op: Alu, tile: &Tile, at: usize, out: &mut [f32]) {
    for (first, count) in groups(tile.partitions, GROUP) {
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        load(
            *lanes,
            mem,
            tile,
            at,
            (first, count),
            &mut scratch.out,
            &mut scratch.spare,
        );
        let job = ReduceRows {
            op,
            rows: &scratch.out,
            len: tile.elements,
            stride: tile.elements,
            out: &mut out[first..first + count],
        };
        reduce_rows(*lanes, job);
    }
}

impl Machine {
    /// Where a source starts, all of it defined.
    #[inline]
    pub(crate) fn source(&self, tile: &Tile) -> Run<usize> {
        let at = self.at(tile)?;
        self.check_defined(tile, at)?;
        Ok(at)
    }

    /// How many rows to handle at once, so that sources are read before the destination is written.
    pub(crate) fn group(&self, dst: (&Tile, usize), sources: &[(&Tile, usize)]) -> usize {
        let clash = sources.iter().any(|&(src, at)| {
            src.may_overlap(at, dst.0, dst.1)
                && !(src.partitions == dst.0.partitions
                    && src.home == dst.0.home
                    && at / src.home.pitch.max(1) == dst.1 / dst.0.home.pitch.max(1))
        });
        if clash {
            dst.0.partitions.max(1)
        } else {
            GROUP
        }
    }

    /// A fault that names where an index was read.
    pub(crate) fn bad_index(
        &self,
        tile: &Tile,
        table: &Tile,
        index: i64,
        reader: String,
        rows: u64,
    ) -> Box<Fault> {
        Fault::of_operand(
            FaultKind::Index {
                index,
                reader,
                rows,
                name: self.names[table.location].clone(),
            },
            tile.operand,
        )
    }
}

/// Pieces of `total` rows, `group` at a time.
pub(crate) fn groups(total: usize, group: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..total)
        .step_by(group.max(1))
        .map(move |first| (first, group.min(total - first)))
}
