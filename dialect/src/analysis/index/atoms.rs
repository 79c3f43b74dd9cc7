//! Atoms: the byte map of one storage, cut so finely that an access is a few ranges of atoms.
//!
//! A byte is (partition, digits of its offset); the digits are those of the mixed radix given by
//! the strides of the accesses, as far as these divide one another. The order of the digits is
//! chosen so that the accesses need few contiguous ranges; range ends cut the line into atoms.
//!
//! Invariants: the line is a bijection of the bytes (padded at the end of the coarsest digit); the
//! ranges of an exact footprint are exactly its bytes; a footprint whose ranges pass the limit
//! falls back to its hull on the line and is marked so.

use super::super::access::{Footprint, StrideSet};
use super::line::{Box, Line};

/// Ranges all footprints of a function may take before the costly ones fall back to hulls.
pub const RANGE_LIMIT: usize = 4 << 20;
/// A rectangle of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Gap {
    /// First partition and one past the last.
    pub partitions: (i64, i64),
    /// First byte and one past the last, in each of these partitions.
    pub bytes: (i64, i64),
}

/// The bytes of one storage: partitions and bytes, half-open.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct Rect {
    partitions: (i64, i64),
    bytes: (i64, i64),
}

impl Rect {
    /// All from the first of a pair to before the second.
    pub(in crate::analysis) fn new(partitions: (i64, i64), bytes: (i64, i64)) -> Rect {
        let ends = |(from, to): (i64, i64)| if from < to { (from, to) } else { (0, 0) };
        Rect {
            partitions: ends(partitions),
            bytes: ends(bytes),
        }
    }

    /// Number of bytes.
    pub(in crate::analysis) fn size(self) -> i64 {
        let len = |(from, to): (i64, i64)| to - from;
        len(self.partitions).saturating_mul(len(self.bytes))
    }

    /// The bytes of a footprint, if they are exactly one rectangle.
    pub(in crate::analysis) fn exactly(print: &Footprint) -> Option<Rect> {
        let (partitions, bytes) = (print.partitions.as_run()?, print.bytes.as_run()?);
        print.is_exact().then_some(Rect { partitions, bytes })
    }

    /// The same bytes in another frame.
    pub(in crate::analysis) fn placed(self, (partition, byte): (i64, i64)) -> Rect {
        let by = |(from, to): (i64, i64), by: i64| (from + by, to + by);
        Rect {
            partitions: by(self.partitions, partition),
            bytes: by(self.bytes, byte),
        }
    }

    /// Its bytes in each partition, if it is all partitions of a storage.
    pub(in crate::analysis) fn band_of(self, whole: Rect) -> Option<(i64, i64)> {
        let (from, to) = self.bytes;
        let inside = whole.bytes.0 <= from && from < to && to <= whole.bytes.1;
        (inside && self.partitions == whole.partitions).then_some(self.bytes)
    }

    fn of(whole: &Footprint) -> Rect {
        let ends = |set: &StrideSet| (set.start().unwrap_or(0), set.end().unwrap_or(0));
        Rect {
            partitions: ends(&whole.partitions),
            bytes: ends(&whole.bytes),
        }
    }

    pub(in crate::analysis) fn footprint(self) -> Footprint {
        Footprint {
            partitions: StrideSet::run(self.partitions.0, self.partitions.1 - self.partitions.0),
            bytes: StrideSet::run(self.bytes.0, self.bytes.1 - self.bytes.0),
        }
    }
}

/// One storage's part of [`Atoms`].
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct Map {
    /// Where its cuts start in the list of all, and their number; none where the storage is one
    /// atom.
    cuts: (u32, u32),
    whole: Rect,
    /// Its line, unless the line is [`Line::bands`].
    line: Option<u32>,
}

impl Map {
    /// Number of atoms, at least one.
    pub(in crate::analysis) fn count(&self) -> u32 {
        self.cuts.1.max(2) - 1
    }
}

/// The atoms of storages, and footprints as ranges of them; footprints are numbered in the order
/// they were added, whatever their storage.
#[derive(Debug)]
pub(in crate::analysis) struct Atoms {
    /// Lines of storages that are more than bands.
    lines: Vec<Line>,
    /// Positions on the line where atoms start, and the end of the line.
    cuts: Vec<i64>,
    /// Ranges of atoms of all footprints.
    ranges: Vec<(u32, u32)>,
    /// Where each footprint's ranges start; one longer than the footprints.
    starts: Vec<u32>,
    /// Footprints kept as hulls only.
    hulls: Vec<bool>,
    /// Ranges there is still room for.
    left: usize,
    /// Footprints that had to become hulls for want of room.
    capped: usize,
    raw: Vec<(i64, i64)>,
    boxes: Vec<Box>,
}

/// The footprint of a storage that is one atom, exactly.
pub(in crate::analysis) const WHOLE: u32 = 0;
/// The same as an upper bound.
pub(in crate::analysis) const ANYWHERE: u32 = 1;

impl Atoms {
    /// No storage yet; `limit` ranges may be used, [`RANGE_LIMIT`] where nobody tests it.
    pub(in crate::analysis) fn new(limit: usize) -> Atoms {
        Atoms {
            lines: Vec::new(),
            cuts: Vec::new(),
            ranges: vec![(0, 1), (0, 1)],
            starts: vec![0, 1, 2],
            hulls: vec![false, true],
            left: limit,
            capped: 0,
            raw: Vec::new(),
            boxes: Vec::new(),
        }
    }

    /// The map of a storage whose accesses are [`WHOLE`] and [`ANYWHERE`].
    pub(in crate::analysis) fn one(whole: Rect) -> Map {
        Map {
            cuts: (0, 0),
            whole,
            line: None,
        }
    }

    /// The number the next footprint gets.
    pub(in crate::analysis) fn next_footprint(&self) -> u32 {
        self.hulls.len() as u32
    }

    /// Cuts the bytes of `whole` by `footprints`, all in the same frame; what lies outside of
    /// `whole` is ignored.
    pub(in crate::analysis) fn add<F: std::borrow::Borrow<Footprint>>(
        &mut self,
        whole: &Footprint,
        footprints: &[F],
    ) -> Map {
        let prints = || footprints.iter().map(|print| print.borrow());
        if prints().all(|print| is_band(print, whole)) {
            let runs = prints().filter_map(|print| Some((print.bytes.as_run()?, print.is_exact())));
            return self.add_bands(Rect::of(whole), runs);
        }
        let from_range = self.ranges.len();
        self.raw.clear();
        let line = Line::choose(whole, footprints);
        let end: i64 = line.radix.iter().product();
        // What overwrites all bytes in two parts leaves nothing of what was there before: no
        // footprint has a byte that is not one of the storage's.
        let padded = end.saturating_mul(line.unit) != whole.size();
        let limit = (RANGE_LIMIT / footprints.len()).max(4096).max(1 << 16);
        let own = match padded {
            true => line.own_ranges(whole),
            false => Vec::new(),
        };
        for print in prints() {
            let from = self.raw.len();
            let mut exact = print.is_exact();
            if !padded && (print.covers(whole) || !exact && print.hull_covers(whole)) {
                self.raw.push((0, end));
            } else {
                self.boxes.clear();
                let room = self.left.min(limit);
                let fits = line.boxes_of(print, whole, &mut self.boxes, room)
                    && line.ranges_of(&self.boxes, &mut self.raw, room);
                if exact && !fits {
                    self.capped += 1;
                }
                exact &= fits;
                if !exact {
                    self.raw.truncate(from);
                    let hull = line.hull(print, whole);
                    match own.is_empty() {
                        true => self.raw.push(hull),
                        // Nobody writes what is not there: an upper bound leaves it out, too.
                        false => clip(&own, hull, &mut self.raw),
                    }
                }
                tidy(&mut self.raw, from);
                // One range each is always there.
                let more = (self.raw.len() - from).saturating_sub(1);
                self.left = self.left.saturating_sub(more);
            }
            self.starts.push((from_range + self.raw.len()) as u32);
            self.hulls.push(!exact);
        }
        self.lines.push(line);
        let line = self.lines.len() as u32 - 1;
        self.cut(Rect::of(whole), Some(line), end)
    }

    /// The same where each footprint is some bytes in all partitions: these, and whether exactly.
    pub(in crate::analysis) fn add_bands(
        &mut self,
        whole: Rect,
        runs: impl Iterator<Item = ((i64, i64), bool)>,
    ) -> Map {
        let from_range = self.ranges.len();
        self.raw.clear();
        let radix = (whole.partitions.1 - whole.partitions.0).max(1);
        let at = |byte: i64| (byte - whole.bytes.0) * radix;
        for ((lo, hi), exact) in runs {
            self.raw.push((at(lo), at(hi)));
            self.hulls.push(!exact);
            self.starts.push((from_range + self.raw.len()) as u32);
        }
        self.cut(whole, None, at(whole.bytes.1))
    }

    /// Cuts a line of some length by the ranges in `raw`, which become ranges of atoms.
    fn cut(&mut self, whole: Rect, line: Option<u32>, end: i64) -> Map {
        let from_cut = self.cuts.len();
        // Accesses mostly go up the line, and what is in order already is not sorted.
        self.cuts.push(0);
        let ends = self.raw.iter().flat_map(|&(lo, hi)| [lo, hi]);
        self.cuts.extend(ends.chain([end]));
        dedup_tail(&mut self.cuts, from_cut);
        let cuts = &self.cuts[from_cut..];
        let mut near = 0;
        let mut atom = |at: i64| {
            if cuts.get(near) != Some(&at) {
                near = match cuts.get(near + 1) {
                    Some(&next) if next == at => near + 1,
                    _ => cuts.partition_point(|&cut| cut < at),
                };
            }
            near as u32
        };
        self.ranges
            .extend(self.raw.iter().map(|&(lo, hi)| (atom(lo), atom(hi))));
        Map {
            cuts: (from_cut as u32, cuts.len() as u32),
            whole,
            line,
        }
    }

    /// The ranges of a footprint, ascending.
    pub(in crate::analysis) fn ranges(&self, print: u32) -> &[(u32, u32)] {
        let print = print as usize;
        &self.ranges[self.starts[print] as usize..self.starts[print + 1] as usize]
    }

    /// Whether the ranges are a superset of the bytes only.
    pub(in crate::analysis) fn is_hull(&self, print: u32) -> bool {
        self.hulls[print as usize]
    }

    /// Footprints that became hulls because there was no room for their ranges.
    pub(in crate::analysis) fn capped(&self) -> usize {
        self.capped
    }

    /// Drops what only adding needed.
    pub(in crate::analysis) fn finish(&mut self) {
        self.raw = Vec::new();
        self.boxes = Vec::new();
    }

    pub(in crate::analysis) fn heap_bytes(&self) -> usize {
        self.cuts.capacity() * 8
            + self.ranges.capacity() * 8
            + self.starts.capacity() * 4
            + self.hulls.capacity()
            + self.lines.capacity() * size_of::<Line>()
    }

    /// The bytes of ranges of atoms as rectangles, ascending; at most `limit` rows of the finest
    /// digit are looked at, and whether that was all.
    pub(in crate::analysis) fn gaps(
        &self,
        map: &Map,
        ranges: &[(u32, u32)],
        limit: usize,
    ) -> (Vec<Gap>, bool) {
        let mut rows = Vec::new();
        let mut all = true;
        let bands;
        let line = match map.line {
            Some(line) => &self.lines[line as usize],
            None => {
                bands = Line::bands(&map.whole.footprint());
                &bands
            }
        };
        let end: i64 = line.radix.iter().product();
        let cut = |atom: u32| match map.cuts.1 {
            0 => i64::from(atom) * end,
            _ => self.cuts[map.cuts.0 as usize + atom as usize],
        };
        for &(lo, hi) in ranges {
            all &= line.rows(cut(lo), cut(hi), limit, &mut rows);
        }
        // The line is padded: drop what the storage does not have.
        let cut = |a: (i64, i64), b: (i64, i64)| (a.0.max(b.0), a.1.min(b.1));
        let mut gaps: Vec<Gap> = rows
            .into_iter()
            .map(|gap: Gap| Gap {
                partitions: cut(gap.partitions, map.whole.partitions),
                bytes: cut(gap.bytes, map.whole.bytes),
            })
            .filter(|gap| gap.partitions.0 < gap.partitions.1 && gap.bytes.0 < gap.bytes.1)
            .collect();
        gaps.sort_unstable();
        merge(&mut gaps, |last, gap| {
            let joins = last.partitions == gap.partitions && last.bytes.1 == gap.bytes.0;
            if joins {
                last.bytes.1 = gap.bytes.1;
            }
            joins
        });
        gaps.sort_unstable_by_key(|gap| (gap.bytes, gap.partitions));
        merge(&mut gaps, |last, gap| {
            let joins = last.bytes == gap.bytes && last.partitions.1 == gap.partitions.0;
            if joins {
                last.partitions.1 = gap.partitions.1;
            }
            joins
        });
        gaps.sort_unstable();
        (gaps, all)
    }
}

fn merge(gaps: &mut Vec<Gap>, mut join: impl FnMut(&mut Gap, &Gap) -> bool) {
    let mut kept: Vec<Gap> = Vec::with_capacity(gaps.len());
    for gap in gaps.drain(..) {
        if !kept.last_mut().is_some_and(|last| join(last, &gap)) {
            kept.push(gap);
        }
    }
    *gaps = kept;
}

/// Whether a footprint is one run of bytes in all partitions of the storage.
fn is_band(print: &Footprint, whole: &Footprint) -> bool {
    let inside = |run: (i64, i64)| {
        whole.bytes.start().is_some_and(|start| start <= run.0)
            && whole.bytes.end().is_some_and(|end| run.1 <= end)
    };
    print.bytes.as_run().is_some_and(inside)
        && print.partitions.as_run() == whole.partitions.as_run()
}

/// Sorts the end of a list from `from` on, and drops repeats in it.
fn dedup_tail(list: &mut Vec<i64>, from: usize) {
    list[from..].sort_unstable();
    let mut kept = from;
    for at in from + 1..list.len() {
        if list[at] != list[kept] {
            kept += 1;
            list[kept] = list[at];
        }
    }
    list.truncate(kept + 1);
}

/// Adds what ascending ranges have in common with another.
fn clip(ranges: &[(i64, i64)], other: (i64, i64), out: &mut Vec<(i64, i64)>) {
    let from = ranges.partition_point(|range| range.1 <= other.0);
    let within = ranges[from..].iter().take_while(|range| range.0 < other.1);
    out.extend(within.map(|range| (range.0.max(other.0), range.1.min(other.1))));
}

/// Sorts and merges the ranges from `from` on.
pub(super) fn tidy(raw: &mut Vec<(i64, i64)>, from: usize) {
    if raw.len() - from < 2 {
        return;
    }
    raw[from..].sort_unstable();
    let mut kept = from;
    for at in from + 1..raw.len() {
        let next = raw[at];
        if next.0 <= raw[kept].1 {
            raw[kept].1 = raw[kept].1.max(next.1);
        } else {
            kept += 1;
            raw[kept] = next;
        }
    }
    raw.truncate(kept + 1);
}
