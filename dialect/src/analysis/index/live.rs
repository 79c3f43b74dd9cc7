//! When locations are in use, and how much of each space is at once.
//!
//! A location lives from its first touch to its last, in the order of instructions. A loop that it
//! is touched in and lives into, out of, or around carries it through all iterations, so it lives
//! through all of the loop; it does not where the loop alone touches it and every iteration starts
//! by overwriting all of it. Inputs live from the start; inputs, outputs and what other cores see
//! live to the end. Locations that share bytes live together.

use super::event::{Effect, Initial};
use super::function::FunctionIndex;
use crate::bir::space::Space;
use crate::ir::Value;

/// A stretch of instructions, by the numbers [`Touch::order`](super::Touch::order) gives them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Interval {
    /// The first instruction.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

/// The most bytes live at once in a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peak {
    /// The space.
    pub space: Space,
    /// Bytes in one partition, or in all of device memory.
    pub bytes: i64,
    /// The first instruction at which so many are live.
    pub at: u32,
}

/// Two locations live at once on shared addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The one allocated first.
    pub a: Value,
    /// The other.
    pub b: Value,
}

/// Live intervals of a function's locations.
#[derive(Clone, Debug)]
pub struct Live {
    intervals: Vec<Option<Interval>>,
}

impl Live {
    /// The intervals of an index's locations.
    pub fn new(index: &FunctionIndex) -> Live {
        let end = index.walked_orders.saturating_sub(1);
        let mut spans: Vec<Option<Span>> = vec![None; index.locations().len()];
        for touch in index.touches() {
            let loops = index.flow.segments[touch.segment as usize].innermost;
            match &mut spans[touch.location as usize] {
                Some(span) => span.last = touch.order,
                none => {
                    *none = Some(Span {
                        first: touch.order,
                        last: touch.order,
                        inner: loops,
                        fresh: touch.effect == Effect::WRITE && !touch.dynamic,
                    });
                }
            }
        }
        let mut fresh_at: Vec<bool> = spans.iter().map(|s| s.is_some_and(|s| s.fresh)).collect();
        for (at, location) in index.locations().iter().enumerate() {
            fresh_at[at] &= index.overwrites_all_first(at as u32);
            if let Some(span) = &mut spans[at]
                && location.initial() == Initial::Outside
            {
                span.first = 0;
                span.inner = None;
            }
            if let Some(span) = &mut spans[at]
                && (location.is_output() || location.initial() == Initial::Outside)
            {
                span.last = end;
            }
        }
        let intervals = spans
            .iter()
            .zip(&fresh_at)
            .map(|(span, &fresh)| span.map(|span| grow(index, span, fresh)))
            .collect();
        Live { intervals }
    }

    /// When a location is live; `None` where nothing touches it.
    pub fn of(&self, location: u32) -> Option<Interval> {
        self.intervals.get(location as usize).copied().flatten()
    }

    /// The peak of each space.
    pub fn peaks(&self, index: &FunctionIndex) -> Vec<Peak> {
        Space::ALL
            .iter()
            .map(|&space| self.peak(index, space))
            .collect()
    }

    fn peak(&self, index: &FunctionIndex, space: Space) -> Peak {
        // Releases behind an instruction come before what the next one takes.
        let mut changes: Vec<(u32, i64)> = Vec::new();
        for (location, interval) in index.locations().iter().zip(&self.intervals) {
            if let Some(interval) = interval
                && location.space == space
            {
                changes.push((interval.first, location.bytes));
                changes.push((interval.last.saturating_add(1), -location.bytes));
            }
        }
        changes.sort_unstable();
        let mut peak = Peak {
            space,
            bytes: 0,
            at: 0,
        };
        let mut live = 0i64;
        for (at, by) in changes {
            live = live.saturating_add(by);
            if live > peak.bytes {
                (peak.bytes, peak.at) = (live, at);
            }
        }
        peak
    }

    /// Placed locations that share addresses while both are live, partners in `must_alias` aside:
    /// at most `limit` pairs, in the order of the second's first address.
    pub fn overlaps(&self, index: &FunctionIndex, limit: usize) -> Vec<Overlap> {
        let locations = index.locations();
        let mut order: Vec<(Space, i64, usize)> = locations
            .iter()
            .enumerate()
            .filter_map(|(at, location)| Some((location.space, location.place?.1, at)))
            .collect();
        order.sort_unstable();
        let mut open: Vec<usize> = Vec::new();
        let mut space = None;
        let mut found = Vec::new();
        for (here, byte, at) in order {
            if space != Some(here) {
                open.clear();
                space = Some(here);
            }
            let end =
                |other: usize| locations[other].place.map_or(0, |p| p.1) + locations[other].bytes;
            open.retain(|&other| end(other) > byte);
            for &other in &open {
                if found.len() >= limit {
                    return found;
                }
                if self.conflict(index, other, at) {
                    let (a, b) = (other.min(at), other.max(at));
                    found.push(Overlap {
                        a: locations[a].value,
                        b: locations[b].value,
                    });
                }
            }
            open.push(at);
        }
        found
    }

    fn conflict(&self, index: &FunctionIndex, a: usize, b: usize) -> bool {
        let partitions = |at: usize| {
            let location = &index.locations()[at];
            let first = location.place.map_or(0, |place| place.0);
            (first, first + location.partitions)
        };
        let (p, q) = (partitions(a), partitions(b));
        let apart = p.1 <= q.0 || q.1 <= p.0;
        match (self.intervals[a], self.intervals[b]) {
            (Some(x), Some(y)) if !apart && !index.are_partners(a, b) => {
                x.first <= y.last && y.first <= x.last
            }
            _ => false,
        }
    }
}

#[derive(Clone, Copy)]
struct Span {
    first: u32,
    last: u32,
    inner: Option<super::flow::LoopId>,
    fresh: bool,
}

/// Widens a span to the loops that carry the location.
fn grow(index: &FunctionIndex, span: Span, fresh: bool) -> Interval {
    let (mut first, mut last) = (span.first, span.last);
    let inside = |order: u32, (from, to): (u32, u32)| from <= order && order < to;
    // Loops around the first touch, innermost first; those around the last one alone come below.
    let mut at = span.inner;
    while let Some(id) = at {
        let orders = index.loop_orders[id.0 as usize];
        if !inside(last, orders) || !fresh {
            first = first.min(orders.0);
            last = last.max(orders.1.saturating_sub(1));
        }
        at = index.flow.span(id).parent;
    }
    let mut at = index.last_loop(span.last);
    while let Some(id) = at {
        let orders = index.loop_orders[id.0 as usize];
        if !inside(first, orders) {
            last = last.max(orders.1.saturating_sub(1));
        }
        at = index.flow.span(id).parent;
    }
    Interval { first, last }
}
