//! Atoms: the byte map of one storage, cut so finely that an access is a few ranges of atoms.
//!
//! A byte is (partition, digits of its offset); the digits are those of the mixed radix given by
//! the strides of the accesses, as far as these divide one another. The order of the digits is
//! chosen so that the accesses need few contiguous ranges; range ends cut the line into atoms.
//!
//! Invariants: the line is a bijection of the bytes (padded at the end of the coarsest digit); the
//! ranges of an exact footprint are exactly its bytes; a footprint whose ranges pass the limit
//! falls back to its hull on the line and is marked so.

use smallvec::SmallVec;

use super::super::access::{Footprint, Progression, StrideSet};

/// Ranges all footprints of a function may take before the costly ones fall back to hulls.
pub const RANGE_LIMIT: usize = 4 << 20;
/// Byte digits besides the partition.
const MAX_DIGITS: usize = 4;
/// Footprints looked at to choose the order.
const SAMPLE: usize = 256;

type Axes<T> = SmallVec<[T; MAX_DIGITS + 1]>;

/// Half-open digit intervals, one per axis; axis 0 is the partition, then bytes, coarse to fine.
type Box = Axes<(i64, i64)>;

/// How bytes lie on the line.
#[derive(Debug)]
struct Line {
    /// Bytes of the smallest unit accesses tell apart.
    unit: i64,
    /// Strides of the byte digits in units, coarse to fine; the last is 1.
    strides: SmallVec<[i64; MAX_DIGITS]>,
    /// Number of values per axis.
    radix: Axes<i64>,
    /// Distance on the line per axis.
    weight: Axes<i64>,
    /// Axes, outermost first.
    order: Axes<usize>,
    first_partition: i64,
    first_byte: i64,
}

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
struct Rect {
    partitions: (i64, i64),
    bytes: (i64, i64),
}

impl Rect {
    fn of(whole: &Footprint) -> Rect {
        let ends = |set: &StrideSet| (set.start().unwrap_or(0), set.end().unwrap_or(0));
        Rect {
            partitions: ends(&whole.partitions),
            bytes: ends(&whole.bytes),
        }
    }

    fn footprint(self) -> Footprint {
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
    pub(in crate::analysis) fn one(whole: &Footprint) -> Map {
        Map {
            cuts: (0, 0),
            whole: Rect::of(whole),
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
        let simple = prints().all(|print| is_band(print, whole));
        let from_cut = self.cuts.len();
        let from_range = self.ranges.len();
        self.raw.clear();
        let line = if simple {
            let rect = Rect::of(whole);
            let radix = whole.partitions.size().max(1);
            let at = |byte: i64| (byte - rect.bytes.0) * radix;
            for print in prints() {
                if let Some((lo, hi)) = print.bytes.as_run() {
                    self.raw.push((at(lo), at(hi)));
                }
                self.hulls.push(!print.is_exact());
                self.starts.push((from_range + self.raw.len()) as u32);
            }
            self.cuts.extend([0, at(rect.bytes.1)]);
            None
        } else {
            let line = Line::choose(whole, footprints);
            let end: i64 = line.radix.iter().product();
            self.cuts.extend([0, end]);
            // What overwrites all bytes in two parts leaves nothing of what was there before: no
            // footprint has a byte that is not one of the storage's.
            let padded = end.saturating_mul(line.unit) != whole.size();
            let limit = (RANGE_LIMIT / footprints.len()).max(4096).max(1 << 16);
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
                        self.raw.push(line.hull(print, whole));
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
            Some(self.lines.len() as u32 - 1)
        };
        self.cuts
            .extend(self.raw.iter().flat_map(|&(lo, hi)| [lo, hi]));
        dedup_tail(&mut self.cuts, from_cut);
        let cuts = &self.cuts[from_cut..];
        let atom = |at: i64| cuts.partition_point(|&cut| cut < at) as u32;
        self.ranges
            .extend(self.raw.iter().map(|&(lo, hi)| (atom(lo), atom(hi))));
        Map {
            cuts: (from_cut as u32, cuts.len() as u32),
            whole: Rect::of(whole),
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

/// Sorts and merges the ranges from `from` on.
fn tidy(raw: &mut Vec<(i64, i64)>, from: usize) {
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

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

impl Line {
    fn choose<F: std::borrow::Borrow<Footprint>>(whole: &Footprint, footprints: &[F]) -> Line {
        let first_partition = whole.partitions.start().unwrap_or(0);
        let first_byte = whole.bytes.start().unwrap_or(0);
        let partitions = whole.partitions.end().unwrap_or(1) - first_partition;
        let bytes = whole.bytes.end().unwrap_or(1) - first_byte;
        let mut unit = bytes;
        let mut strides: Vec<i64> = Vec::new();
        for piece in footprints
            .iter()
            .flat_map(|print| print.borrow().bytes.pieces())
        {
            unit = gcd(unit, piece.start() - first_byte);
            unit = gcd(unit, piece.run_len());
            for dim in piece.dims() {
                unit = gcd(unit, dim.stride);
                strides.push(dim.stride);
            }
        }
        let unit = unit.max(1);
        let units = bytes / unit;
        let strides = chain(strides, unit, units);
        let mut radix: Axes<i64> = SmallVec::new();
        radix.push(partitions.max(1));
        let mut above = units;
        for (at, &stride) in strides.iter().enumerate() {
            radix.push(if at == 0 {
                (above + stride - 1) / stride
            } else {
                above / stride
            });
            above = stride;
        }
        let mut line = Line {
            unit,
            strides,
            weight: SmallVec::from_elem(1, radix.len()),
            order: (0..radix.len()).collect(),
            radix,
            first_partition,
            first_byte,
        };
        line.order_axes(whole, footprints);
        let mut weight = 1;
        for &axis in line.order.iter().rev() {
            line.weight[axis] = weight;
            weight *= line.radix[axis];
        }
        line
    }

    /// Bytes one after the other, each with all its partitions.
    fn bands(whole: &Footprint) -> Line {
        let partitions = whole.partitions.size().max(1);
        Line {
            unit: 1,
            strides: SmallVec::from_slice(&[1]),
            radix: SmallVec::from_slice(&[partitions, whole.bytes.size()]),
            weight: SmallVec::from_slice(&[1, partitions]),
            order: SmallVec::from_slice(&[1, 0]),
            first_partition: whole.partitions.start().unwrap_or(0),
            first_byte: whole.bytes.start().unwrap_or(0),
        }
    }

    /// Takes the order of axes in which a sample of the footprints needs the fewest ranges.
    fn order_axes<F: std::borrow::Borrow<Footprint>>(
        &mut self,
        whole: &Footprint,
        footprints: &[F],
    ) {
        let mut boxes = Vec::new();
        let every = footprints.len().div_ceil(SAMPLE).max(1);
        for print in footprints.iter().step_by(every) {
            self.boxes_of(print.borrow(), whole, &mut boxes, 1 << 10);
        }
        let cost = |order: &[usize]| -> u128 {
            boxes
                .iter()
                .map(|each: &Box| self.range_count(each, order))
                .sum()
        };
        let mut best: Axes<usize> = self.order.clone();
        let mut least = cost(&best);
        if least > boxes.len() as u128 {
            let mut order = best.clone();
            // Heap's algorithm, without recursion.
            let mut counters: Axes<usize> = SmallVec::from_elem(0, order.len());
            let mut at = 1;
            while at < order.len() {
                if counters[at] < at {
                    let with = if at % 2 == 0 { 0 } else { counters[at] };
                    order.swap(with, at);
                    let found = cost(&order);
                    if found < least {
                        least = found;
                        best = order.clone();
                    }
                    counters[at] += 1;
                    at = 1;
                } else {
                    counters[at] = 0;
                    at += 1;
                }
            }
        }
        self.order = best;
    }

    /// Ranges a box needs when the axes lie in that order.
    fn range_count(&self, each: &Box, order: &[usize]) -> u128 {
        let inner = order
            .iter()
            .rev()
            .take_while(|&&axis| each[axis] == (0, self.radix[axis]))
            .count();
        let outer = order.len().saturating_sub(inner + 1);
        order[..outer]
            .iter()
            .map(|&axis| (each[axis].1 - each[axis].0) as u128)
            .product()
    }

    /// Adds the boxes of a footprint; `false` where there are more than `room`.
    fn boxes_of(
        &self,
        print: &Footprint,
        whole: &Footprint,
        boxes: &mut Vec<Box>,
        room: usize,
    ) -> bool {
        let limit = boxes.len() + room;
        let inside = |set: &StrideSet, whole: &StrideSet| match (
            set.start() < whole.start(),
            set.end() > whole.end(),
        ) {
            (false, false) => set.clone(),
            _ => set.intersection(whole),
        };
        let partitions = inside(&print.partitions, &whole.partitions);
        let bytes = inside(&print.bytes, &whole.bytes);
        let Some(windows) = partitions.run_list(room) else {
            return false;
        };
        for (from, to) in windows {
            let mut prefix: Box = SmallVec::new();
            prefix.push((from - self.first_partition, to - self.first_partition));
            for piece in bytes.pieces() {
                let units = piece.divided(self.first_byte, self.unit);
                if !self.split(units, &prefix, boxes, limit) {
                    return false;
                }
            }
        }
        true
    }

    /// Enumerates dimensions whose stride is no digit, then goes digit by digit.
    fn split(&self, piece: Progression, prefix: &Box, boxes: &mut Vec<Box>, limit: usize) -> bool {
        let mut todo = vec![piece];
        while let Some(piece) = todo.pop() {
            let foreign = piece
                .dims()
                .iter()
                .position(|dim| !self.strides.contains(&dim.stride));
            match foreign {
                None => self.digits(0, &piece, prefix, boxes),
                Some(at) => {
                    let count = piece.dims()[at].count;
                    if count as u64 > limit as u64 || todo.len() + boxes.len() > limit {
                        return false;
                    }
                    todo.extend((0..count).map(|i| piece.without_dim(at, i)));
                }
            }
            if boxes.len() > limit {
                return false;
            }
        }
        true
    }

    /// The boxes of a piece that lies within one value of all coarser digits. The depth is the
    /// number of digits.
    fn digits(&self, level: usize, piece: &Progression, prefix: &Box, boxes: &mut Vec<Box>) {
        let (start, end) = (piece.start(), piece.end());
        let stride = self.strides[level];
        let with = |lo: i64, hi: i64| {
            let mut longer = prefix.clone();
            longer.push((lo, hi));
            longer
        };
        if stride == 1 {
            boxes.push(with(start, end));
            return;
        }
        let mut part = |piece: &Progression, from: i64, lo: i64, hi: i64| {
            let below = with(lo, hi);
            piece.clip(from, from + stride, &mut |cut| {
                self.digits(level + 1, &cut.shifted(-from), &below, boxes);
            });
        };
        match piece.dims().first() {
            Some(outer) if outer.stride == stride => {
                let slice = piece.without_dim(0, 0);
                let digit = start.div_euclid(stride);
                part(&slice, digit * stride, digit, digit + outer.count);
                part(
                    &slice,
                    (digit + 1) * stride,
                    digit + 1,
                    digit + 1 + outer.count,
                );
            }
            _ => {
                let (first, last) = (start.div_euclid(stride), (end - 1).div_euclid(stride));
                part(piece, first * stride, first, first + 1);
                if last > first + 1 {
                    part(piece, (first + 1) * stride, first + 1, last);
                }
                if last > first {
                    part(piece, last * stride, last, last + 1);
                }
            }
        }
    }

    /// Adds the ranges of boxes; `false` where there are more than `room`.
    fn ranges_of(&self, boxes: &[Box], out: &mut Vec<(i64, i64)>, room: usize) -> bool {
        let mut left = room as u128;
        for each in boxes {
            let count = self.range_count(each, &self.order);
            if count > left {
                return false;
            }
            left -= count;
            let inner = self
                .order
                .iter()
                .rev()
                .take_while(|&&axis| each[axis] == (0, self.radix[axis]))
                .count();
            let outer = self.order.len().saturating_sub(inner + 1);
            let (mut base, mut length) = (0, 1);
            for (at, &axis) in self.order.iter().enumerate() {
                base += each[axis].0 * self.weight[axis];
                if at == outer {
                    length = (each[axis].1 - each[axis].0) * self.weight[axis];
                }
            }
            let mut index: Axes<i64> = SmallVec::from_elem(0, outer);
            'all: loop {
                out.push((base, base + length));
                for at in (0..outer).rev() {
                    let axis = self.order[at];
                    let count = each[axis].1 - each[axis].0;
                    index[at] += 1;
                    base += self.weight[axis];
                    if index[at] < count {
                        continue 'all;
                    }
                    base -= self.weight[axis] * count;
                    index[at] = 0;
                }
                break;
            }
        }
        true
    }

    /// A range around a footprint.
    fn hull(&self, print: &Footprint, whole: &Footprint) -> (i64, i64) {
        let end: i64 = self.radix.iter().product();
        let hull = Footprint {
            partitions: print.partitions.hull(),
            bytes: print.bytes.hull(),
        };
        let (mut boxes, mut ranges) = (Vec::new(), Vec::new());
        if !self.boxes_of(&hull, whole, &mut boxes, 1 << 12) {
            return (0, end);
        }
        for each in &boxes {
            let (mut low, mut high) = (0, 1);
            for (axis, &(from, to)) in each.iter().enumerate() {
                low += from * self.weight[axis];
                high += (to - 1) * self.weight[axis];
            }
            ranges.push((low, high));
        }
        let low = ranges.iter().map(|range: &(i64, i64)| range.0).min();
        let high = ranges.iter().map(|range| range.1).max();
        (low.unwrap_or(0), high.unwrap_or(end))
    }

    /// The rows of the innermost axis in a range, as rectangles; `false` past `limit` rows.
    fn rows(&self, lo: i64, hi: i64, limit: usize, out: &mut Vec<Gap>) -> bool {
        let Some((&inner, outer)) = self.order.split_last() else {
            return true;
        };
        let row = self.radix[inner];
        let mut at = lo;
        while at < hi {
            if out.len() >= limit {
                return false;
            }
            let mut index: Axes<i64> = SmallVec::from_elem(0, self.radix.len());
            let mut left = at / row;
            for &axis in outer.iter().rev() {
                index[axis] = left % self.radix[axis];
                left /= self.radix[axis];
            }
            index[inner] = at % row;
            let length = (row - index[inner]).min(hi - at);
            // Whole rows of partitions at consecutive bytes are one rectangle.
            let finest = self.radix.len() - 1;
            let rows = match outer.last() {
                Some(&next) if inner == 0 && next == finest && length == row => {
                    ((hi - at) / row).min(self.radix[next] - index[next])
                }
                _ => 1,
            };
            at += length + (rows - 1) * row;
            let partition = self.first_partition + index[0];
            let unit: i64 = index[1..]
                .iter()
                .zip(&self.strides)
                .map(|(digit, stride)| digit * stride)
                .sum();
            let byte = self.first_byte + unit * self.unit;
            if inner == 0 {
                out.push(Gap {
                    partitions: (partition, partition + length),
                    bytes: (byte, byte + self.unit * rows),
                });
                continue;
            }
            let stride = self.strides[inner - 1] * self.unit;
            if stride == self.unit {
                out.push(Gap {
                    partitions: (partition, partition + 1),
                    bytes: (byte, byte + length * self.unit),
                });
                continue;
            }
            for i in 0..length {
                if out.len() >= limit {
                    return false;
                }
                let from = byte + i * stride;
                out.push(Gap {
                    partitions: (partition, partition + 1),
                    bytes: (from, from + self.unit),
                });
            }
        }
        true
    }
}

/// The digits' strides in units, coarse to fine: the most used strides that divide one another.
fn chain(mut strides: Vec<i64>, unit: i64, units: i64) -> SmallVec<[i64; MAX_DIGITS]> {
    strides.sort_unstable();
    let mut used: Vec<(usize, i64)> = Vec::new();
    for stride in strides {
        let stride = stride / unit;
        match used.last_mut() {
            Some(last) if last.1 == stride => last.0 += 1,
            _ => used.push((1, stride)),
        }
    }
    used.sort_unstable_by_key(|&(count, stride)| (std::cmp::Reverse(count), stride));
    let mut kept: SmallVec<[i64; MAX_DIGITS]> = SmallVec::from_slice(&[1]);
    for (_, stride) in used {
        let fits = |&other: &i64| stride % other == 0 || other % stride == 0;
        if kept.len() < MAX_DIGITS
            && stride < units
            && !kept.contains(&stride)
            && kept.iter().all(fits)
        {
            kept.push(stride);
        }
    }
    kept.sort_unstable();
    kept.reverse();
    kept
}
