//! Sets of integers made of disjoint progressions.

use smallvec::{SmallVec, smallvec};

use super::meet::{Collect, Count, Outcome, STEPS, meet};
use super::progression::{Normal, Progression, bounded};

/// Runs an interleaving set may be spelt out into before only its hull is kept.
pub const RUN_LIMIT: usize = 1 << 16;
/// Progressions an intersection may consist of.
pub const PIECE_LIMIT: usize = 1 << 12;

/// A set of integers: disjoint progressions, ascending by start.
///
/// A set that is not [`exact`](Self::is_exact) is a superset of what was asked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StrideSet {
    pieces: SmallVec<[Progression; 1]>,
    exact: bool,
}

impl StrideSet {
    /// Nothing.
    pub fn empty() -> StrideSet {
        StrideSet {
            pieces: SmallVec::new(),
            exact: true,
        }
    }

    /// `start .. start + len`.
    pub fn run(start: i64, len: i64) -> StrideSet {
        if len <= 0 {
            return StrideSet::empty();
        }
        StrideSet {
            pieces: smallvec![Progression::run(start, len)],
            exact: true,
        }
    }

    /// A run repeated along dimensions of any sign, zero strides and overlaps included.
    ///
    /// `None` where a magnitude passes 2^62.
    pub fn strided(
        start: i64,
        len: i64,
        dims: impl IntoIterator<Item = (i64, u64)>,
    ) -> Option<StrideSet> {
        Some(match Progression::normalise(start, len, dims)? {
            Normal::Empty => StrideSet::empty(),
            Normal::One(one) => StrideSet {
                pieces: smallvec![one],
                exact: true,
            },
            mixed => StrideSet::mixed(len, mixed)?,
        })
    }

    /// Enumerates interleaving dimensions until every part nests, then makes the parts disjoint.
    fn mixed(len: i64, first: Normal) -> Option<StrideSet> {
        let mut todo: Vec<Normal> = vec![first];
        let mut parts: Vec<Progression> = Vec::new();
        let mut runs = 0i128;
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut exact = true;
        while let Some(part) = todo.pop() {
            match part {
                Normal::Empty => {}
                Normal::One(one) => {
                    low = low.min(one.start());
                    high = high.max(one.end());
                    runs += i128::from(one.runs());
                    parts.push(one);
                }
                Normal::Mixed {
                    start,
                    mut dims,
                    split,
                } => {
                    let cut = dims.remove(split);
                    let count = if exact && cut.count < RUN_LIMIT as i64 {
                        cut.count
                    } else {
                        exact = false;
                        0
                    };
                    let rest: SmallVec<[(i64, u64); 8]> = dims
                        .iter()
                        .map(|dim| (dim.stride, dim.count as u64))
                        .collect();
                    let reach = dims.iter().chain([&cut]).fold(i128::from(len), |sum, dim| {
                        sum + i128::from(dim.stride) * i128::from(dim.count - 1)
                    });
                    low = low.min(start);
                    high = high.max(bounded(i128::from(start) + reach)?);
                    for i in 0..count {
                        let at = start + cut.stride * i;
                        todo.push(Progression::normalise(at, len, rest.iter().copied())?);
                    }
                }
            }
            if todo.len() + parts.len() > RUN_LIMIT || runs > (RUN_LIMIT as i128) << 16 {
                exact = false;
            }
        }
        if !exact {
            return Some(StrideSet::hull_of(low, high));
        }
        parts.sort_unstable();
        parts.dedup();
        if parts.len() > 32 || !disjoint(&parts) {
            if runs > RUN_LIMIT as i128 {
                return Some(StrideSet::hull_of(low, high));
            }
            parts = merge_runs(&parts);
        }
        Some(StrideSet {
            pieces: SmallVec::from_vec(parts),
            exact: true,
        })
    }

    fn hull_of(low: i64, high: i64) -> StrideSet {
        StrideSet {
            exact: false,
            ..StrideSet::run(low, high - low)
        }
    }

    /// The smallest range around the set, marked inexact unless the set is that range.
    pub fn hull(&self) -> StrideSet {
        match (self.start(), self.end()) {
            (Some(start), Some(end)) => {
                let hull = StrideSet::run(start, end - start);
                StrideSet {
                    exact: self.exact && self.size() == end - start,
                    ..hull
                }
            }
            _ => self.clone(),
        }
    }

    /// The same members, no longer claimed to be exact.
    pub(super) fn inexact(mut self) -> StrideSet {
        self.exact = false;
        self
    }

    /// Whether it is exactly the set asked for, not a superset.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Its disjoint progressions, ascending by start.
    pub fn pieces(&self) -> &[Progression] {
        &self.pieces
    }

    /// Number of members.
    pub fn size(&self) -> i64 {
        self.pieces.iter().map(Progression::size).sum()
    }

    /// Smallest member.
    pub fn start(&self) -> Option<i64> {
        self.pieces.first().map(Progression::start)
    }

    /// One past the largest member.
    pub fn end(&self) -> Option<i64> {
        self.pieces.iter().map(Progression::end).max()
    }

    /// The one range it is, if it is one.
    pub fn as_run(&self) -> Option<(i64, i64)> {
        match self.pieces.as_slice() {
            [one] if one.dims().is_empty() => Some((one.start(), one.end())),
            _ => None,
        }
    }

    /// The set, `by` further up.
    pub fn shifted(&self, by: i64) -> StrideSet {
        StrideSet {
            pieces: self.pieces.iter().map(|p| p.clone().shifted(by)).collect(),
            exact: self.exact,
        }
    }

    /// Number of shared members, no further than `enough`; `None` where counting took too long.
    fn shared(&self, other: &StrideSet, enough: i64) -> Option<i64> {
        let mut steps = STEPS;
        let mut count = Count { total: 0, enough };
        for a in &self.pieces {
            for b in &other.pieces {
                if b.start() >= a.end() {
                    break;
                }
                match meet(a, b, &mut steps, &mut count) {
                    Outcome::Done => {}
                    Outcome::Stopped => return Some(count.total),
                    Outcome::Spent => return None,
                }
            }
        }
        Some(count.total)
    }

    /// Number of shared members; `None` past a fixed number of steps.
    pub fn common(&self, other: &StrideSet) -> Option<i64> {
        self.shared(other, i64::MAX)
    }

    /// Whether the sets may share a member: exact unless a set is inexact or the strides are past
    /// counting, then `true`.
    pub fn overlaps(&self, other: &StrideSet) -> bool {
        if let (Some((a0, a1)), Some((b0, b1))) = (self.as_run(), other.as_run()) {
            return a0 < b1 && b0 < a1;
        }
        self.shared(other, 1) != Some(0)
    }

    /// Whether every member of `other` certainly is a member: exact unless this set is inexact or
    /// the strides are past counting, then `false`.
    pub fn covers(&self, other: &StrideSet) -> bool {
        if other.is_empty() {
            return true;
        }
        if !self.exact {
            return false;
        }
        if let (Some((a0, a1)), Some((b0, b1))) = (self.as_run(), other.as_run()) {
            return a0 <= b0 && b1 <= a1;
        }
        let size = other.size();
        size <= self.size() && self.shared(other, size) == Some(size)
    }

    /// Whether both are certainly the same set.
    pub fn same_as(&self, other: &StrideSet) -> bool {
        self.exact
            && other.exact
            && (self.pieces == other.pieces || self.size() == other.size() && self.covers(other))
    }

    /// What the sets share; inexact where one of them is, or where it takes more than
    /// [`PIECE_LIMIT`] pieces (then the hull of it).
    pub fn intersection(&self, other: &StrideSet) -> StrideSet {
        let exact = self.exact && other.exact;
        let mut steps = STEPS;
        let mut found: Vec<Progression> = Vec::new();
        for a in &self.pieces {
            for b in &other.pieces {
                if b.start() >= a.end() {
                    break;
                }
                let mut collect = Collect {
                    out: &mut found,
                    limit: PIECE_LIMIT,
                };
                if meet(a, b, &mut steps, &mut collect) != Outcome::Done {
                    let low = self.start().max(other.start());
                    let high = self.end().into_iter().chain(other.end()).min();
                    return match (low, high) {
                        (Some(low), Some(high)) => StrideSet::hull_of(low, high),
                        _ => StrideSet::empty(),
                    };
                }
            }
        }
        found.sort_unstable();
        StrideSet {
            pieces: SmallVec::from_vec(found),
            exact,
        }
    }

    /// All runs ascending, touching ones merged; `None` past `limit` runs.
    pub fn run_list(&self, limit: usize) -> Option<Vec<(i64, i64)>> {
        let runs: i128 = self.pieces.iter().map(|p| i128::from(p.runs())).sum();
        if runs > limit as i128 {
            return None;
        }
        Some(sorted_runs(&self.pieces))
    }
}

fn disjoint(parts: &[Progression]) -> bool {
    let mut steps = STEPS;
    parts.iter().enumerate().all(|(at, a)| {
        parts[at + 1..].iter().all(|b| {
            let mut count = Count {
                total: 0,
                enough: 1,
            };
            meet(a, b, &mut steps, &mut count) == Outcome::Done && count.total == 0
        })
    })
}

/// The runs of all parts as `(start, end)`, ascending, overlapping and touching ones merged.
fn sorted_runs(parts: &[Progression]) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = parts
        .iter()
        .flat_map(|part| part.each_run().map(|(start, len)| (start, start + len)))
        .collect();
    runs.sort_unstable();
    let mut kept: Vec<(i64, i64)> = Vec::with_capacity(runs.len());
    for (start, end) in runs {
        match kept.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => kept.push((start, end)),
        }
    }
    kept
}

fn merge_runs(parts: &[Progression]) -> Vec<Progression> {
    sorted_runs(parts)
        .into_iter()
        .map(|(start, end)| Progression::run(start, end - start))
        .collect()
}
