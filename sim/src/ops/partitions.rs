//! What moves data across partitions: `stream_shuffle`, `permute_implicit_reduce_add`,
//! `tensor_partition_reduce`.

use crate::alu::{Alu, quiet};
use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::runs;
use crate::tile::Tile;

use super::movement::volume;
use super::rowwise::in_lanes;

/// Partitions a mask speaks of.
const QUADRANT: usize = 32;

/// The 32 numbers of `mask`.
fn mask(site: &Site<'_>) -> Run<[usize; QUADRANT]> {
    let numbers: Vec<usize> = site
        .ints("mask")
        .into_iter()
        .filter_map(|number| usize::try_from(number).ok())
        .collect();
    numbers
        .try_into()
        .map_err(|_| malformed("`mask` is not 32 numbers"))
}

/// Rows of `dst` taken from rows of `src`.
struct Shuffle {
    dst: Tile,
    src: Tile,
    /// Row of `dst`, row of `src`.
    moves: Vec<(usize, usize)>,
}

impl Task for Shuffle {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Shuffle { dst, src, moves } = self;
        let to = m.at(dst)?;
        let from = m.at(src)?;
        // Rows the mask leaves out are not read.
        for &(_, row) in moves {
            let (part, at) = (one_row(src), from + row * src.home.pitch);
            m.check_defined(&part, at)?;
        }
        let Machine { mem, scratch, .. } = &mut *m;
        let [bytes, ..] = &mut scratch.copies;
        rows::pack(mem, src, from, (0, src.partitions), bytes);
        let row_bytes = src.elements * src.size;
        for &(target, row) in moves {
            let from = &bytes[row * row_bytes..][..row_bytes];
            rows::unpack(mem, dst, to, (target, 1), from);
        }
        for &(target, _) in moves {
            m.mark(&one_row(dst), to + target * dst.home.pitch);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

/// The first row of a tile as a tile of its own.
pub(super) fn one_row(tile: &Tile) -> Tile {
    let mut row = tile.clone();
    row.partitions = 1;
    row
}

pub(super) fn stream_shuffle(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if dst.elements != src.elements || dst.dtype != src.dtype {
        return Err(malformed("`dst` and `src` differ in their rows"));
    }
    let mask = mask(site)?;
    let mut moves = Vec::new();
    for row in 0..dst.partitions {
        let number = mask[row % QUADRANT];
        if number == 255 {
            continue;
        }
        let from = row / QUADRANT * QUADRANT + number;
        if number >= QUADRANT || from >= src.partitions {
            return Err(malformed(format!(
                "row {row} of `dst` is row {from} of `src`, which has {}",
                src.partitions
            )));
        }
        moves.push((row, from));
    }
    Ok(Box::new(Shuffle { dst, src, moves }))
}

/// Rows of `src` added to rows of `dst`.
struct PermuteAdd {
    dst: Tile,
    src: Tile,
    init: Option<Tile>,
    mask: [usize; QUADRANT],
}

impl Task for PermuteAdd {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let PermuteAdd {
            dst,
            src,
            init,
            mask,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let init_at = match init {
            Some(init) => Some(m.source(init)?),
            None => None,
        };
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [values, sums, ..] = &mut scratch.rows;
        let spare = &mut scratch.spare;
        let all = (0, src.partitions);
        let len = src.elements;
        rows::load(*lanes, mem, src, from, all, values, spare);
        match init.as_ref().zip(init_at) {
            Some((init, at)) => rows::load(*lanes, mem, init, at, all, sums, spare),
            None => {
                runs::resize(sums, src.partitions * len);
                sums[..src.partitions * len].fill(0.0);
            }
        }
        for row in 0..src.partitions {
            let target = row / QUADRANT * QUADRANT + mask[row % QUADRANT];
            let added = &values[row * len..][..len];
            for (sum, value) in sums[target * len..][..len].iter_mut().zip(added) {
                *sum = quiet(*sum + value);
            }
        }
        rows::store(*lanes, mem, dst, to, all, sums, spare);
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src) + self.init.as_ref().map_or(0, volume)
    }
}

pub(super) fn permute_implicit_reduce_add(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    let init = site.maybe_tile("init")?;
    let others = [Some(&dst), init.as_ref()];
    if others
        .into_iter()
        .flatten()
        .any(|tile| tile.partitions != src.partitions || tile.elements != src.elements)
    {
        return Err(malformed("its operands differ in shape"));
    }
    let mask = mask(site)?;
    for row in 0..src.partitions {
        let number = mask[row % QUADRANT];
        let target = row / QUADRANT * QUADRANT + number;
        if number >= QUADRANT || target >= dst.partitions {
            return Err(malformed(format!(
                "row {row} of `src` goes to row {target} of `dst`, which has {}",
                dst.partitions
            )));
        }
    }
    Ok(Box::new(PermuteAdd {
        dst,
        src,
        init,
        mask,
    }))
}

struct PartitionReduce {
    dst: Tile,
    src: Tile,
    op: Alu,
}

impl Task for PartitionReduce {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let PartitionReduce { dst, src, op } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let all = (0, src.partitions);
        let len = src.elements;
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        if op.is_bitvec() {
            let bits = src.dtype.bits();
            let signed = src.dtype.integer_range().is_some_and(|(low, _)| low < 0);
            let [values, ..] = &mut scratch.ints;
            rows::load_ints(mem, src, from, all, values);
            let (results, others) = values[..src.partitions * len].split_at_mut(len);
            for row in others.chunks_exact(len.max(1)) {
                for (acc, &x) in results.iter_mut().zip(row) {
                    *acc = op.apply_int(*acc, x, bits, signed);
                }
            }
            rows::store_ints(mem, dst, to, (0, 1), results);
        } else {
            let [values, ..] = &mut scratch.rows;
            rows::load(*lanes, mem, src, from, all, values, &mut scratch.spare);
            let (results, others) = values[..src.partitions * len].split_at_mut(len);
            let sums = matches!(op, Alu::Add | Alu::Average);
            for row in others.chunks_exact(len.max(1)) {
                for (acc, &x) in results.iter_mut().zip(row) {
                    *acc = if sums {
                        *acc + x
                    } else {
                        crate::alu::max(*acc, x)
                    };
                }
            }
            for value in &mut *results {
                if *op == Alu::Average {
                    *value /= src.partitions as f32;
                }
                *value = quiet(*value);
            }
            rows::store(*lanes, mem, dst, to, (0, 1), results, &mut scratch.spare);
        }
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn tensor_partition_reduce(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    in_lanes(&[&src])?;
    let op = site.alu("op")?;
    let legal = [
        Alu::Add,
        Alu::Average,
        Alu::Max,
        Alu::BitwiseOr,
        Alu::BitwiseAnd,
    ];
    if !legal.contains(&op) {
        return Err(malformed("no operation that reduces over partitions"));
    }
    if dst.partitions != 1 || dst.elements != src.elements || src.partitions == 0 {
        return Err(malformed("`dst` is not one row of `src`"));
    }
    if op.is_bitvec() && !(dst.size == src.size && dst.dtype.is_integer() && src.dtype.is_integer())
    {
        return Err(malformed("bit operations take integers of one width"));
    }
    Ok(Box::new(PartitionReduce { dst, src, op }))
}
