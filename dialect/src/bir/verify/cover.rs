//! Which bytes of a location are defined so far: rows × bytes, growing only.
//!
//! Rows are partitions on chip, and all dimensions but the last in DRAM, so that tiles of a matrix
//! are rectangles in both.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

/// Runs, `start..end`, ascending and apart.
pub(crate) type Runs = SmallVec<[(i64, i64); 2]>;

/// A set of bytes: some rows × some columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rect {
    pub(crate) rows: Runs,
    pub(crate) cols: Runs,
}

/// Runs beyond which an access counts as too fine to follow.
const RUN_LIMIT: u64 = 1 << 16;

/// The runs of `unit` positions at `start + Σ i·step`; `None` where there are too many.
pub(crate) fn runs(
    start: i64,
    unit: i64,
    dims: impl IntoIterator<Item = (i64, u64)>,
) -> Option<Runs> {
    let mut start = start;
    let mut moving: SmallVec<[(i64, i64); 6]> = SmallVec::new();
    for (step, count) in dims {
        let count = i64::try_from(count).ok()?;
        if count == 0 {
            return Some(Runs::new());
        }
        if step < 0 {
            start = start.checked_add(step.checked_mul(count - 1)?)?;
        }
        if step != 0 && count > 1 {
            moving.push((step.checked_abs()?, count));
        }
    }
    moving.sort_unstable();
    let mut len = unit;
    let mut rest: SmallVec<[(i64, i64); 6]> = SmallVec::new();
    let mut total = 1u64;
    for (step, count) in moving {
        if step <= len && rest.is_empty() {
            len = step.checked_mul(count - 1)?.checked_add(len)?;
        } else {
            total = total.saturating_mul(count.unsigned_abs());
            rest.push((step, count));
        }
    }
    if rest.is_empty() {
        return Some(smallvec![(start, start.checked_add(len)?)]);
    }
    if total > RUN_LIMIT {
        return None;
    }
    let mut found = Runs::new();
    let mut counter: SmallVec<[i64; 6]> = SmallVec::from_elem(0, rest.len());
    loop {
        let at = start
            + counter
                .iter()
                .zip(&rest)
                .map(|(i, dim)| i * dim.0)
                .sum::<i64>();
        found.push((at, at + len));
        let next = counter
            .iter()
            .zip(&rest)
            .position(|(&i, dim)| i + 1 < dim.1);
        let Some(next) = next else { break };
        counter[..next].fill(0);
        counter[next] += 1;
    }
    found.sort_unstable();
    let mut merged = Runs::new();
    for run in found {
        insert(&mut merged, run);
    }
    Some(merged)
}

/// Adds a run; returns how many positions are new.
fn insert(runs: &mut Runs, (start, end): (i64, i64)) -> i64 {
    if let Some(last) = runs.last_mut()
        && start >= last.0
    {
        if start <= last.1 {
            let added = (end - last.1).max(0);
            last.1 += added;
            return added;
        }
        runs.push((start, end));
        return end - start;
    }
    let first = runs.partition_point(|run| run.1 < start);
    let behind = runs.partition_point(|run| run.0 <= end);
    let mut joined = (start, end);
    let mut known = 0;
    if first < behind {
        joined.0 = joined.0.min(runs[first].0);
        joined.1 = joined.1.max(runs[behind - 1].1);
        known = runs[first..behind].iter().map(|run| run.1 - run.0).sum();
    }
    runs.drain(first..behind);
    runs.insert(first, joined);
    joined.1 - joined.0 - known
}

/// The first part of `(start, end)` that is in none of the runs.
fn gap(runs: &Runs, (start, end): (i64, i64)) -> Option<(i64, i64)> {
    let mut at = start;
    let first = runs.partition_point(|run| run.1 <= at);
    for run in &runs[first..] {
        if run.0 > at {
            break;
        }
        at = run.1;
        if at >= end {
            return None;
        }
    }
    if at >= end {
        return None;
    }
    let next = runs[first..]
        .iter()
        .find(|run| run.0 > at)
        .map_or(end, |run| run.0.min(end));
    Some((at, next))
}

/// Bytes of rows × width that are defined.
#[derive(Clone, Debug)]
pub(crate) struct Cover {
    rows: i64,
    /// Bytes that are not defined yet.
    missing: i64,
    /// Rows from the key on, up to the next key, with their columns; all rows are in one. Empty
    /// before the first bytes are defined: most locations are never looked at in part.
    bands: BTreeMap<i64, Runs>,
}

/// Bytes that are not defined, as one rectangle: `start..end` each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    pub(crate) rows: (i64, i64),
    pub(crate) cols: (i64, i64),
}

impl Cover {
    pub(crate) fn new(rows: i64, width: i64) -> Cover {
        Cover {
            rows,
            missing: rows.saturating_mul(width),
            bands: BTreeMap::new(),
        }
    }

    /// Whether every byte is defined.
    pub(crate) fn is_full(&self) -> bool {
        self.missing == 0
    }

    fn split(&mut self, row: i64) {
        if row <= 0 || row >= self.rows || self.bands.contains_key(&row) {
            return;
        }
        if let Some((_, runs)) = self.bands.range(..row).next_back() {
            let runs = runs.clone();
            self.bands.insert(row, runs);
        }
    }

    /// Defines a set of bytes.
    pub(crate) fn add(&mut self, rect: &Rect) {
        if self.bands.is_empty() {
            self.bands.insert(0, Runs::new());
        }
        for &(first, end) in &rect.rows {
            let (first, end) = (first.max(0), end.min(self.rows));
            if first >= end {
                continue;
            }
            self.split(first);
            self.split(end);
            let starts: SmallVec<[i64; 8]> =
                self.bands.range(first..end).map(|(&row, _)| row).collect();
            for (i, row) in starts.iter().enumerate() {
                let height = starts.get(i + 1).unwrap_or(&end) - row;
                if let Some(runs) = self.bands.get_mut(row) {
                    let added: i64 = rect.cols.iter().map(|&run| insert(runs, run)).sum();
                    self.missing -= added * height;
                }
            }
            self.join(first, end);
        }
    }

    /// Defines what another one of the same rows and width defines.
    pub(crate) fn add_all(&mut self, other: &Cover) {
        let ends = other.bands.keys().skip(1).copied().chain([other.rows]);
        for ((&row, runs), end) in other.bands.iter().zip(ends) {
            self.add(&Rect {
                rows: smallvec![(row, end)],
                cols: runs.clone(),
            });
        }
    }

    /// Joins neighbours that became equal, so that writing row after row stays short.
    fn join(&mut self, first: i64, end: i64) {
        let before = self.bands.range(..first).next_back().map(|(&row, _)| row);
        let from = before.unwrap_or(first);
        let mut last: Option<Runs> = None;
        let mut equal: SmallVec<[i64; 8]> = SmallVec::new();
        for (&row, runs) in self.bands.range(from..=end) {
            if last.as_ref() == Some(runs) {
                equal.push(row);
            } else {
                last = Some(runs.clone());
            }
        }
        for row in equal {
            self.bands.remove(&row);
        }
    }

    /// The first undefined bytes of a set, neighbouring rows with the same gap together.
    pub(crate) fn gap(&self, rect: &Rect) -> Option<Gap> {
        if self.bands.is_empty() {
            let (&rows, &cols) = (rect.rows.first()?, rect.cols.first()?);
            return Some(Gap { rows, cols });
        }
        let mut found: Option<Gap> = None;
        for &(first, end) in &rect.rows {
            let start = self
                .bands
                .range(..=first)
                .next_back()
                .map_or(0, |(&row, _)| row);
            let mut bands = self.bands.range(start..end).peekable();
            while let Some((&row, runs)) = bands.next() {
                let from = row.max(first);
                let to = bands.peek().map_or(end, |(next, _)| (**next).min(end));
                let cols = rect.cols.iter().find_map(|&run| gap(runs, run));
                match (&mut found, cols) {
                    (None, Some(cols)) => {
                        found = Some(Gap {
                            rows: (from, to),
                            cols,
                        })
                    }
                    (Some(gap), Some(cols)) if gap.cols == cols && gap.rows.1 == from => {
                        gap.rows.1 = to;
                    }
                    (Some(_), _) => return found,
                    (None, None) => {}
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cover_equals_a_bitmap_on_random_rectangles() {
        let mut state = 3u64;
        let mut next = |bound: i64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as i64 % bound
        };
        for _ in 0..300 {
            let (rows, width) = (1 + next(12), 1 + next(24));
            let mut cover = Cover::new(rows, width);
            let mut bits = vec![false; (rows * width) as usize];
            for _ in 0..12 {
                let (r, c) = (next(rows), next(width));
                let (n, m) = (1 + next(rows - r), 1 + next(width - c));
                let rect = Rect {
                    rows: smallvec![(r, r + n)],
                    cols: smallvec![(c, c + m)],
                };
                let cells: Vec<usize> = (r..r + n)
                    .flat_map(|row| (c..c + m).map(move |col| (row * width + col) as usize))
                    .collect();
                let covered = cells.iter().all(|&cell| bits[cell]);
                let gap = cover.gap(&rect);
                assert_eq!(gap.is_none(), covered);
                if let Some(gap) = gap {
                    for row in gap.rows.0..gap.rows.1 {
                        for col in gap.cols.0..gap.cols.1 {
                            assert!(!bits[(row * width + col) as usize]);
                        }
                    }
                }
                if next(3) > 0 {
                    cover.add(&rect);
                    for cell in cells {
                        bits[cell] = true;
                    }
                }
                assert_eq!(cover.is_full(), bits.iter().all(|&bit| bit));
                let mut copy = Cover::new(rows, width);
                copy.add_all(&cover);
                assert_eq!(copy.missing, cover.missing);
                assert_eq!(copy.gap(&rect).is_none(), cover.gap(&rect).is_none());
            }
        }
    }

    #[test]
    fn runs_join_what_touches() {
        let found = |start, unit, dims: &[(i64, u64)]| runs(start, unit, dims.iter().copied());
        assert_eq!(found(0, 4, &[(4, 8)]), Some(smallvec![(0, 32)]));
        assert_eq!(found(28, 4, &[(-4, 8)]), Some(smallvec![(0, 32)]));
        assert_eq!(found(0, 4, &[(8, 2)]), Some(smallvec![(0, 4), (8, 12)]));
        assert_eq!(
            found(0, 1, &[(2, 2), (3, 2)]),
            Some(smallvec![(0, 1), (2, 4), (5, 6)])
        );
        assert_eq!(found(0, 4, &[(4, 0)]), Some(smallvec![]));
    }
}
