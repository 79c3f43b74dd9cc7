//! Order inside a block: a rising tag per operation, so that "comes before" is one comparison.
//!
//! A new operation takes a tag between its neighbours'. Where there is none, the smallest
//! enclosing tag range that is sparse enough is spread evenly (the list-labelling scheme of
//! Bender and others), which costs O(log n) per insertion, amortised, wherever insertions fall.

use super::entity::Op;
use super::storage::Ir;

/// Distance between operations appended to a block's end; leaves room for 8 million of them.
const STRIDE: u32 = 512;
/// The first operation of a block: most blocks grow at their end.
pub(super) const FIRST_ORDER: u32 = 1 << 24;
const MAX_TAG: u32 = u32::MAX - 1;

/// The tag of an operation behind the last of its block, if there is one left.
#[inline]
pub(super) fn order_behind(last: u32) -> Option<u32> {
    // Never take more than half of what is left.
    let step = STRIDE.min((MAX_TAG - last) / 2);
    (step > 0).then(|| last + step)
}

impl Ir {
    /// Whether `a` stands before `b` in the block both are in.
    #[inline]
    pub fn comes_before(&self, a: Op, b: Op) -> bool {
        debug_assert_eq!(self.block(a), self.block(b));
        self.ops[a.index()].order < self.ops[b.index()].order
    }

    /// A number that rises along the block; valid until the next insertion into it.
    #[inline]
    pub fn order_in_block(&self, op: Op) -> u32 {
        self.ops[op.index()].order
    }

    /// Gives an operation just linked into its block a tag.
    pub(super) fn assign_order(&mut self, op: Op) {
        let before = self.prev(op).map(|prev| self.ops[prev.index()].order);
        let after = self.next(op).map(|next| self.ops[next.index()].order);
        let tag = match (before, after) {
            (None, None) => Some(FIRST_ORDER),
            (Some(low), None) => order_behind(low),
            (None, Some(high)) => {
                let step = STRIDE.min(high / 2);
                (step > 0).then(|| high - step)
            }
            (Some(low), Some(high)) => {
                let middle = low + (high - low) / 2;
                (middle > low).then_some(middle)
            }
        };
        match tag {
            Some(tag) => self.ops[op.index()].order = tag,
            None => self.relabel_around(op, op, 1),
        }
    }

    /// Gives operations just linked into their block one behind the other their tags.
    pub(super) fn assign_orders(&mut self, run: &[Op]) {
        if let (false, Some(&first), Some(&last)) = (self.fit(run), run.first(), run.last()) {
            self.relabel_around(first, last, run.len() as u64);
        }
    }

    /// [`assign_orders`](Self::assign_orders) of several runs; where those of one block follow one another in
    /// its order, room is made once.
    pub(super) fn assign_orders_of<'a>(&mut self, runs: impl Iterator<Item = &'a [Op]>) {
        let mut cramped: Option<(Op, Op)> = None;
        for run in runs {
            let (false, Some(&first), Some(&last)) = (self.fit(run), run.first(), run.last())
            else {
                continue;
            };
            let from = match cramped {
                Some((from, _)) if self.block(from) == self.block(first) => from,
                before => {
                    self.make_room(before);
                    first
                }
            };
            cramped = Some((from, last));
        }
        self.make_room(cramped);
    }

    /// Gives all operations from one to another of its block new tags.
    fn make_room(&mut self, cramped: Option<(Op, Op)>) {
        if let Some((first, last)) = cramped {
            let behind = std::iter::successors(Some(first), |&op| self.next(op));
            let count = behind.take_while(|&op| op != last).count() as u64 + 1;
            self.relabel_around(first, last, count);
        }
    }

    /// Gives a run tags between its neighbours'; whether there are that many. If not, all have the one of
    /// what is before.
    fn fit(&mut self, run: &[Op]) -> bool {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else {
            return true;
        };
        let count = run.len() as u32 + 1;
        let before = self.prev(first).map(|prev| self.ops[prev.index()].order);
        let after = self.next(last).map(|next| self.ops[next.index()].order);
        let high = after.unwrap_or(MAX_TAG);
        let low = before.unwrap_or_else(|| match after {
            Some(high) => high.saturating_sub(STRIDE.saturating_mul(count)),
            None => FIRST_ORDER,
        });
        let step = ((high - low) / count).min(STRIDE);
        let mut tag = low;
        for &op in run {
            tag += step;
            self.ops[op.index()].order = tag;
        }
        step > 0
    }

    /// Makes room for the operations from one to another, `count` of them, which have none.
    fn relabel_around(&mut self, mut first: Op, mut last: Op, mut count: u64) {
        // New operations count at their neighbour's tag while the range grows.
        let anchor = match (self.prev(first), self.next(last)) {
            (Some(prev), _) => self.ops[prev.index()].order,
            (None, Some(next)) => self.ops[next.index()].order,
            (None, None) => FIRST_ORDER,
        };
        for level in 1..=32u32 {
            let size = 1u64 << level;
            let low = if level == 32 {
                0
            } else {
                anchor & !((size - 1) as u32)
            };
            let high = (u64::from(low) + size - 1).min(u64::from(MAX_TAG)) as u32;
            while let Some(prev) = self.prev(first) {
                if self.ops[prev.index()].order < low {
                    break;
                }
                first = prev;
                count += 1;
            }
            while let Some(next) = self.next(last) {
                if self.ops[next.index()].order > high {
                    break;
                }
                last = next;
                count += 1;
            }
            // Density must fall with the size of the range, or the next insertion relabels again;
            // 1.2 keeps the whole 32-bit range useful for 10 million operations.
            let limit = (1.2f64).powi(-(level as i32)) * size as f64;
            if (count as f64) < limit || level == 32 {
                // A whole block keeps free ends, for it will grow there again.
                let (low, high) = match level {
                    32 => (MAX_TAG / 8, MAX_TAG / 2),
                    _ => (low, high),
                };
                let span = u64::from(high - low);
                let gap = (span / (count + 1)).max(1);
                let mut tag = u64::from(low);
                let mut at = first;
                loop {
                    tag += gap;
                    self.ops[at.index()].order = tag.min(u64::from(MAX_TAG)) as u32;
                    if at == last {
                        break;
                    }
                    match self.next(at) {
                        Some(next) => at = next,
                        None => break,
                    }
                }
                return;
            }
        }
    }
}
