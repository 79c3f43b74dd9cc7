//! Operands resolved to byte addresses, and loops over several of them at once.
//!
//! A [`Tile`] is an access of a location with everything known before the run worked out: byte
//! steps per level, extents, and what loop indices add. A [`Nest`] joins the levels of several tiles
//! that are walked element by element together, with the longest inner run all of them allow.

#![allow(
    clippy::needless_range_loop,
    reason = "`k` counts tiles in several arrays at once"
)]

use std::ops::Range;

use bir_dialect::bir::num::DType;
use smallvec::SmallVec;

/// One level of a traversal: bytes between neighbours, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) bytes: i64,
    pub(crate) count: usize,
}

/// What a register adds to where a tile starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// Register slot.
    pub(crate) slot: u32,
    /// Whether it counts partitions rather than bytes.
    pub(crate) partitions: bool,
    /// Partitions or bytes per unit.
    pub(crate) factor: i64,
}

/// Where a location lies in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    /// Its region.
    pub(crate) region: usize,
    /// Its first byte in the arena.
    pub(crate) start: usize,
    /// Bytes from one partition to the next.
    pub(crate) pitch: usize,
    /// Partitions it has; 1 in DRAM.
    pub(crate) partitions: usize,
    /// Bytes it has in each partition.
    pub(crate) row: usize,
}

/// A resolved operand.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) home: Home,
    /// Number of the location, for messages.
    pub(crate) location: usize,
    /// Position among the instruction's operands, for messages.
    pub(crate) operand: usize,
    pub(crate) dtype: DType,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// First partition, registers at zero.
    pub(crate) partition: i64,
    /// First byte in a partition, registers at zero.
    pub(crate) byte: i64,
    /// Partitions walked.
    pub(crate) partitions: usize,
    /// Elements in each.
    pub(crate) elements: usize,
    /// Levels within a partition, outermost first, none of count 1, none that continues another.
    pub(crate) levels: SmallVec<[Step; 4]>,
    /// Levels as the access spells them.
    pub(crate) spelt: SmallVec<[Step; 4]>,
    /// Lowest and highest byte touched, relative to the first (the highest excluded).
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) terms: SmallVec<[Term; 2]>,
}

/// Joins levels that continue one another and drops those of count 1.
pub(crate) fn canonical(levels: &[Step]) -> SmallVec<[Step; 4]> {
    let mut kept: SmallVec<[Step; 4]> = SmallVec::new();
    for step in levels.iter().rev().filter(|step| step.count != 1) {
        match kept.last_mut() {
            Some(inner) if inner.bytes * inner.count as i64 == step.bytes => {
                inner.count *= step.count
            }
            _ => kept.push(*step),
        }
    }
    kept.reverse();
    kept
}

impl Tile {
    /// Where the tile starts in the arena; `None` if it leaves its location.
    #[inline]
    pub(crate) fn at(&self, regs: &[i64]) -> Option<usize> {
        self.shifted(regs, 0)
    }

    /// [`Tile::at`] with bytes added.
    #[inline]
    pub(crate) fn shifted(&self, regs: &[i64], bytes: i64) -> Option<usize> {
        let (mut partition, mut byte) = (self.partition, self.byte.wrapping_add(bytes));
        for term in &self.terms {
            let by = term.factor.wrapping_mul(regs[term.slot as usize]);
            if term.partitions {
                partition = partition.wrapping_add(by);
            } else {
                byte = byte.wrapping_add(by);
            }
        }
        let home = &self.home;
        // Whatever the registers hold, the sums below stay far from overflow or the tests fail.
        let inside = partition >= 0
            && partition <= home.partitions as i64 - self.partitions as i64
            && byte >= -self.low
            && byte <= home.row as i64 - self.high;
        inside.then(|| home.start + partition as usize * home.pitch + byte as usize)
    }

    /// Levels with the partition as the outermost.
    pub(crate) fn all_levels(&self) -> SmallVec<[Step; 6]> {
        let mut levels = SmallVec::new();
        levels.push(Step {
            bytes: self.home.pitch as i64,
            count: self.partitions,
        });
        levels.extend(self.levels.iter().copied());
        levels
    }

    /// Contiguous byte ranges of the arena, for a tile that starts at `at`.
    pub(crate) fn ranges(&self, at: usize) -> impl Iterator<Item = Range<usize>> {
        let mut levels: SmallVec<[Step; 6]> =
            SmallVec::from_slice(canonical(&self.all_levels()).as_slice());
        let run = match levels.last() {
            Some(step) if step.bytes == self.size as i64 => {
                let run = self.size * step.count;
                levels.pop();
                run
            }
            _ => self.size,
        };
        Odometer::new(levels).map(move |offset| {
            let start = (at as i64 + offset) as usize;
            start..start + run
        })
    }

    /// Whether two tiles might share a byte.
    pub(crate) fn may_overlap(&self, at: usize, other: &Tile, other_at: usize) -> bool {
        if self.home.region != other.home.region {
            return false;
        }
        let extent = |tile: &Tile, at: usize| {
            let last = tile.partitions.saturating_sub(1) * tile.home.pitch;
            (at as i64 + tile.low, at as i64 + tile.high + last as i64)
        };
        let (a, b) = (extent(self, at), extent(other, other_at));
        if a.1 <= b.0 || b.1 <= a.0 {
            return false;
        }
        if self.home.pitch != other.home.pitch || self.home.pitch == 0 {
            return true;
        }
        // Equal pitch: bytes within a pitch must meet too. Locations do not straddle pitches.
        let pitch = self.home.pitch as i64;
        let within = |tile: &Tile, at: usize| {
            let first = at as i64 + tile.low;
            let offset = first.rem_euclid(pitch);
            (offset, offset + tile.high - tile.low)
        };
        let (a, b) = (within(self, at), within(other, other_at));
        let straddles = a.1 > pitch || b.1 > pitch;
        straddles || (a.0 < b.1 && b.0 < a.1)
    }

    /// Whether two tiles visit the same bytes in the same order.
    pub(crate) fn same_walk(&self, at: usize, other: &Tile, other_at: usize) -> bool {
        at == other_at
            && self.size == other.size
            && self.partitions == other.partitions
            && self.home.pitch == other.home.pitch
            && self.levels == other.levels
    }
}

/// The offsets of nested levels, outermost first.
pub(crate) struct Odometer {
    levels: SmallVec<[Step; 6]>,
    digits: SmallVec<[usize; 6]>,
    next: Option<i64>,
}

impl Odometer {
    pub(crate) fn new(levels: SmallVec<[Step; 6]>) -> Odometer {
        let empty = levels.iter().any(|step| step.count == 0);
        Odometer {
            digits: SmallVec::from_elem(0, levels.len()),
            levels,
            next: (!empty).then_some(0),
        }
    }
}

impl Iterator for Odometer {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let current = self.next?;
        let mut offset = current;
        self.next = None;
        for (digit, step) in self.digits.iter_mut().zip(&self.levels).rev() {
            *digit += 1;
            offset += step.bytes;
            if *digit < step.count {
                self.next = Some(offset);
                break;
            }
            offset -= step.bytes * step.count as i64;
            *digit = 0;
        }
        Some(current)
    }
}

/// A level several tiles walk together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Level<const K: usize> {
    pub(crate) count: usize,
    pub(crate) bytes: [i64; K],
}

/// The joint loop over `K` tiles of equally many elements.
#[derive(Clone, Debug)]
pub(crate) struct Nest<const K: usize> {
    /// Outer levels, outermost first.
    pub(crate) outer: SmallVec<[Level<K>; 4]>,
    /// The innermost one.
    pub(crate) inner: Level<K>,
    /// Which tiles must be copied into one contiguous stretch first, because their levels do not
    /// cut as those of the others do.
    pub(crate) linear: [bool; K],
}

impl<const K: usize> Nest<K> {
    /// Joins tiles; each given as its levels with the partition, and the bytes of its elements.
    /// All must have equally many elements.
    pub(crate) fn new(tiles: [(&[Step], usize); K]) -> Nest<K> {
        let total: usize = tiles[0].0.iter().map(|step| step.count).product();
        let mut levels: Vec<Level<K>> = vec![Level {
            count: total,
            bytes: [0; K],
        }];
        let mut linear = [false; K];
        for (k, &(steps, size)) in tiles.iter().enumerate() {
            match refine(&levels, steps, k) {
                Some(refined) => levels = refined,
                None => {
                    linear[k] = true;
                    let whole = [Step {
                        bytes: size as i64,
                        count: total,
                    }];
                    if let Some(refined) = refine(&levels, &whole, k) {
                        levels = refined;
                    }
                }
            }
        }
        let mut kept: SmallVec<[Level<K>; 4]> = SmallVec::new();
        for level in levels.iter().rev().filter(|level| level.count != 1) {
            match kept.last_mut() {
                Some(inner)
                    if (0..K).all(|k| inner.bytes[k] * inner.count as i64 == level.bytes[k]) =>
                {
                    inner.count *= level.count;
                }
                _ => kept.push(*level),
            }
        }
        kept.reverse();
        let inner = kept.pop().unwrap_or(Level {
            count: 1,
            bytes: std::array::from_fn(|k| tiles[k].1 as i64),
        });
        Nest {
            outer: kept,
            inner,
            linear,
        }
    }

    /// Calls `body` with the offsets of each inner run.
    #[inline]
    pub(crate) fn each<E>(&self, mut body: impl FnMut([i64; K]) -> Result<(), E>) -> Result<(), E> {
        match self.outer.as_slice() {
            [] => body([0; K]),
            [level] => {
                let mut at = [0; K];
                for _ in 0..level.count {
                    body(at)?;
                    for k in 0..K {
                        at[k] += level.bytes[k];
                    }
                }
                Ok(())
            }
            levels => {
                let mut digits: SmallVec<[usize; 6]> = SmallVec::from_elem(0, levels.len());
                let mut at = [0; K];
                loop {
                    body(at)?;
                    let mut level = levels.len();
                    loop {
                        if level == 0 {
                            return Ok(());
                        }
                        level -= 1;
                        digits[level] += 1;
                        for k in 0..K {
                            at[k] += levels[level].bytes[k];
                        }
                        if digits[level] < levels[level].count {
                            break;
                        }
                        for k in 0..K {
                            at[k] -= levels[level].bytes[k] * levels[level].count as i64;
                        }
                        digits[level] = 0;
                    }
                }
            }
        }
    }
}

/// Cuts `levels` so that `steps` of tile `k` fits; `None` where neither count divides the other.
fn refine<const K: usize>(levels: &[Level<K>], steps: &[Step], k: usize) -> Option<Vec<Level<K>>> {
    let mut out: Vec<Level<K>> = Vec::new();
    let mut levels: Vec<Level<K>> = levels.iter().copied().filter(|l| l.count != 1).collect();
    let mut steps: Vec<Step> = steps.iter().copied().filter(|s| s.count != 1).collect();
    while let (Some(level), Some(step)) = (levels.pop(), steps.pop()) {
        let count = level.count.min(step.count);
        if count == 0 || level.count % count != 0 || step.count % count != 0 {
            return None;
        }
        let mut piece = level;
        piece.count = count;
        piece.bytes[k] = step.bytes;
        out.push(piece);
        if level.count > count {
            let mut rest = level;
            rest.count = level.count / count;
            for bytes in &mut rest.bytes {
                *bytes *= count as i64;
            }
            levels.push(rest);
        }
        if step.count > count {
            steps.push(Step {
                bytes: step.bytes * count as i64,
                count: step.count / count,
            });
        }
    }
    out.reverse();
    (levels.is_empty() && steps.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(bytes: i64, count: usize) -> Step {
        Step { bytes, count }
    }

    #[test]
    fn whole_tiles_become_one_run() {
        let a = [step(2048, 128), step(4, 512)];
        let nest = Nest::new([(&a[..], 4), (&a[..], 4)]);
        assert!(nest.outer.is_empty());
        assert_eq!(
            nest.inner,
            Level {
                count: 65536,
                bytes: [4, 4]
            }
        );
    }

    #[test]
    fn permuted_sides_are_cut_where_both_turn() {
        let a = [step(64, 2), step(4, 16)];
        let b = [step(64, 2), step(4, 4), step(16, 4)];
        let nest = Nest::new([(&a[..], 4), (&b[..], 4)]);
        let mut seen = Vec::new();
        let _ = nest.each::<()>(|at| {
            for i in 0..nest.inner.count as i64 {
                seen.push((
                    at[0] + nest.inner.bytes[0] * i,
                    at[1] + nest.inner.bytes[1] * i,
                ));
            }
            Ok(())
        });
        let mut want = Vec::new();
        for p in 0..2 {
            for i in 0..4 {
                for j in 0..4 {
                    want.push((64 * p + 16 * i + 4 * j, 64 * p + 4 * i + 16 * j));
                }
            }
        }
        assert_eq!(seen, want);
    }

    #[test]
    fn levels_that_do_not_divide_are_made_linear() {
        let a = [step(400, 2), step(100, 2), step(4, 3)];
        let b = [step(400, 2), step(100, 3), step(4, 2)];
        let nest = Nest::new([(&a[..], 4), (&b[..], 4)]);
        assert_eq!(nest.linear, [false, true]);
    }
}
