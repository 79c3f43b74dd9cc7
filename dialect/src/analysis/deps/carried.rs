//! What loops carry from one iteration to a later one.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::access::{Footprint, LoopRange, footprint_over};
use super::super::index::Frames;
use super::super::index::collect::Collected;
use super::super::index::flow::LoopId;
use super::super::index::walk::LoopIndex;
use crate::bir::access::{Access, Target};
use crate::bir::ops::OpCode;
use crate::bir::program::DepKind;
use crate::bir::types::MemType;
use crate::ir::{Annot, Ir, Op, Value};

/// How many iterations lie between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Distance {
    /// The nearest iteration that depends is so many later.
    Exactly(u64),
    /// Nobody knows: `*`.
    Any,
}

/// A dependence from one iteration of a loop to a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Carried {
    /// The instruction of the earlier iteration.
    pub from: Op,
    /// That of the later one; it may be the same.
    pub to: Op,
    /// Why.
    pub kind: DepKind,
    /// How much later.
    pub distance: Distance,
}

/// Iterations looked through for the nearest that shares a byte.
const STEPS: u64 = 1 << 12;

/// One access of the loop's body.
struct Touched {
    op: Op,
    reads: bool,
    writes: bool,
    /// Its storage, or its register.
    location: u32,
    /// Its bytes with the loop, and those around it, at their first values and the others at all.
    here: Footprint,
    /// Its bytes over all iterations of all loops.
    ever: Footprint,
    /// How far it moves per iteration: partitions and bytes.
    by: (i64, i64),
    /// Its other indices around the loop: bytes and partitions per index.
    outer: SmallVec<[(LoopId, i64, i64); 2]>,
}

/// The dependences a loop with an index carries, at most `limit`; and whether these are all.
///
/// Every pair of accesses that can share a byte in different iterations is one, whatever lies in
/// between: this is what an overlap of iterations must respect, not what the last writer is.
pub fn carried(ir: &Ir, func: Op, around: Op, limit: usize) -> (Vec<Carried>, bool) {
    let all = Collected::new(ir, func, Frames::Addresses, 0);
    let entry = ir
        .regions(around)
        .first()
        .and_then(|&region| ir.entry(region));
    let index = entry.and_then(|entry| ir.args(entry).next());
    let Some(&LoopIndex { id, range }) = index.and_then(|index| all.index_of.get(&index)) else {
        return (Vec::new(), true);
    };
    let span = all.flow.span(id);
    let inside = |segment: u32| span.first <= segment && segment <= span.last;
    let mut touched: Vec<(u32, Touched)> = Vec::new();
    for touch in all.touches.iter().filter(|touch| inside(touch.segment)) {
        let location = &all.locations[touch.location as usize];
        let annot = ir.operand(touch.operand).annot;
        let whole = Footprint::block(location.partitions, location.bytes);
        let place = |print: Footprint| print.placed(location.origin.0, location.origin.1);
        let mut one = Touched {
            op: touch.op,
            reads: touch.effect.is_read(),
            writes: touch.effect.is_write(),
            location: location.storage,
            here: place(whole.clone()),
            ever: place(whole.clone()),
            by: (0, 0),
            outer: SmallVec::new(),
        };
        if !touch.dynamic && annot != Annot::UNIT {
            one.fill(ir, &all.index_of, location.value, annot, id, place);
        }
        touched.push((touch.order, one));
    }
    for touch in all.registers.iter().filter(|touch| inside(touch.segment)) {
        let one = Touched {
            op: all.ops[touch.order as usize],
            reads: touch.effect.is_read(),
            writes: touch.effect.is_write(),
            // Registers stand behind the locations.
            location: u32::MAX - touch.register,
            here: Footprint::block(1, 1),
            ever: Footprint::block(1, 1),
            by: (0, 0),
            outer: SmallVec::new(),
        };
        touched.push((touch.order, one));
    }
    touched.sort_by_key(|(order, one)| (one.location, *order));
    let trips = range.and_then(|range| range.trips).unwrap_or(u64::MAX);
    let mut found: Vec<Carried> = Vec::new();
    let mut complete = true;
    for group in touched.chunk_by(|a, b| a.1.location == b.1.location) {
        for (_, from) in group {
            for (_, to) in group {
                if !(from.writes || to.writes) || found.len() >= limit {
                    complete &= found.len() < limit;
                    continue;
                }
                let Some(distance) = distance(from, to, trips) else {
                    continue;
                };
                let kinds = [
                    (from.writes && to.reads, DepKind::Flow),
                    (from.reads && to.writes, DepKind::Anti),
                    (from.writes && to.writes, DepKind::Output),
                ];
                for (holds, kind) in kinds {
                    if holds {
                        found.push(Carried {
                            from: from.op,
                            to: to.op,
                            kind,
                            distance,
                        });
                    }
                }
            }
        }
    }
    let place: HashMap<Op, usize> = all
        .ops
        .iter()
        .enumerate()
        .map(|(at, &op)| (op, at))
        .collect();
    let at = |op: Op| place.get(&op).copied().unwrap_or(usize::MAX);
    found.sort_by_key(|one| (at(one.from), at(one.to), one.kind, one.distance));
    // Of several distances the nearest stands for all; an unknown one may be nearer still.
    found.dedup_by(|next, kept| {
        let same = (next.from, next.to, next.kind) == (kept.from, kept.to, kept.kind);
        if same && next.distance == Distance::Any {
            kept.distance = Distance::Any;
        }
        same
    });
    (found, complete)
}

impl Touched {
    fn fill(
        &mut self,
        ir: &Ir,
        index_of: &HashMap<Value, LoopIndex>,
        value: Value,
        annot: Annot,
        id: LoopId,
        place: impl Fn(Footprint) -> Footprint,
    ) {
        let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
            return;
        };
        let access = Access::resolve(&ir.ctx, &mem, annot);
        let role = OpCode::of(ir, self.op).map_or(usize::MAX, |code| code.def().indices_role());
        let indices = ir.operands(self.op).iter();
        let indices = indices.filter(|operand| usize::from(operand.role) == role);
        let mut ranges: SmallVec<[LoopRange; 4]> = SmallVec::new();
        let mut ids: SmallVec<[Option<LoopId>; 4]> = SmallVec::new();
        for operand in indices {
            let found = index_of.get(&operand.value);
            // An index whose first value nobody knows: anywhere.
            let Some((of, range)) = found.and_then(|index| Some((index.id, index.range?))) else {
                return;
            };
            ids.push(Some(of));
            ranges.push(range);
        }
        let whole = Footprint::whole(&mem).unwrap_or_else(Footprint::empty);
        let Some(ever) = footprint_over(&access, &whole, &ranges) else {
            return;
        };
        let size = i64::from(access.dtype.size_bytes());
        for term in &access.terms {
            let at = usize::from(term.index);
            let (Some(&Some(of)), Some(range)) = (ids.get(at), ranges.get(at)) else {
                return;
            };
            let step = term.coef.saturating_mul(range.step);
            let by = match term.target {
                Target::Partition => (step, 0),
                Target::Offset => (0, step.saturating_mul(size)),
            };
            if of == id {
                self.by = (self.by.0 + by.0, self.by.1 + by.1);
            } else if of < id {
                self.outer.push((of, by.0, by.1));
            }
        }
        self.outer.sort_unstable();
        for (range, of) in ranges.iter_mut().zip(&ids) {
            if of.is_some_and(|of| of <= id) {
                range.trips = Some(1);
            }
        }
        let Some(here) = footprint_over(&access, &whole, &ranges) else {
            return;
        };
        (self.here, self.ever) = (place(here), place(ever));
    }
}

/// The nearest later iteration in which `to` shares a byte with `from`; `None` where none does.
fn distance(from: &Touched, to: &Touched, trips: u64) -> Option<Distance> {
    if trips < 2 || !from.ever.overlaps(&to.ever) {
        return None;
    }
    if from.by != to.by || from.outer != to.outer {
        return Some(Distance::Any);
    }
    if from.by == (0, 0) {
        return from.here.overlaps(&to.here).then_some(Distance::Exactly(1));
    }
    for later in 1..trips.min(STEPS + 1) {
        let shift = |by: i64| by.saturating_mul(later as i64);
        let moved = to.here.placed(shift(to.by.0), shift(to.by.1));
        if from.here.overlaps(&moved) {
            return Some(Distance::Exactly(later));
        }
    }
    (trips > STEPS + 1).then_some(Distance::Any)
}
