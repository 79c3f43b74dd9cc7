//! The line the bytes of a storage lie on, and footprints as ranges of it.
//!
//! Invariants: the line is a bijection of the bytes (padded at the end of the coarsest digit); the
//! ranges of a footprint are exactly its bytes.

use smallvec::SmallVec;

use super::super::access::{Footprint, Progression, StrideSet};
use super::atoms::{Gap, tidy};

/// Byte digits besides the partition.
const MAX_DIGITS: usize = 4;
/// Footprints looked at to choose the order.
const SAMPLE: usize = 256;

pub(super) type Axes<T> = SmallVec<[T; MAX_DIGITS + 1]>;

/// Half-open digit intervals, one per axis; axis 0 is the partition, then bytes, coarse to fine.
pub(super) type Box = Axes<(i64, i64)>;

/// How bytes lie on the line.
#[derive(Debug)]
pub(super) struct Line {
    /// Bytes of the smallest unit accesses tell apart.
    pub(super) unit: i64,
    /// Strides of the byte digits in units, coarse to fine; the last is 1.
    pub(super) strides: SmallVec<[i64; MAX_DIGITS]>,
    /// Number of values per axis.
    pub(super) radix: Axes<i64>,
    /// Distance on the line per axis.
    pub(super) weight: Axes<i64>,
    /// Axes, outermost first.
    pub(super) order: Axes<usize>,
    pub(super) first_partition: i64,
    pub(super) first_byte: i64,
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

impl Line {
    pub(super) fn choose<F: std::borrow::Borrow<Footprint>>(
        whole: &Footprint,
        footprints: &[F],
    ) -> Line {
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
    pub(super) fn bands(whole: &Footprint) -> Line {
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
    pub(super) fn boxes_of(
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
    pub(super) fn ranges_of(&self, boxes: &[Box], out: &mut Vec<(i64, i64)>, room: usize) -> bool {
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

    /// The bytes the storage has, without the padding, as ascending ranges; none where that would
    /// be too many.
    pub(super) fn own_ranges(&self, whole: &Footprint) -> Vec<(i64, i64)> {
        const MOST: usize = 1 << 12;
        let (mut boxes, mut ranges) = (Vec::new(), Vec::new());
        if !self.boxes_of(whole, whole, &mut boxes, MOST)
            || !self.ranges_of(&boxes, &mut ranges, MOST)
        {
            return Vec::new();
        }
        tidy(&mut ranges, 0);
        ranges
    }

    /// A range around a footprint.
    pub(super) fn hull(&self, print: &Footprint, whole: &Footprint) -> (i64, i64) {
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
    pub(super) fn rows(&self, lo: i64, hi: i64, limit: usize, out: &mut Vec<Gap>) -> bool {
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
