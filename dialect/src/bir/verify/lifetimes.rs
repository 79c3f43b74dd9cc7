//! Placed locations that overlap are never live together.
//!
//! Positions count what instructions read and what they write, in program order: an instruction reads
//! before it writes, so its result may stand where its source did. A location lives from its first to its last
//! access, with gaps where the whole of it is overwritten: nobody needs what was there since it was
//! accessed last. A loop that may run no iteration overwrites for certain only what is overwritten
//! again before it is read. Where a loop's body does not begin with overwriting it, its bytes may
//! come from before or from the iteration before, so it lives through the whole loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::attrs::Placement;
use super::super::program::names;
use super::super::space::Space;
use super::super::types::MemType;
use super::placement::{base_byte, base_partition};
use super::words::value_text;
use crate::ir::{Ir, Op, Value};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

type Fixed = foldhash::fast::FixedState;

struct Placed {
    value: Value,
    alloc: Op,
    space: Space,
    partitions: (u64, u64),
    bytes: (u64, u64),
    /// The last stretch in which it lives, and those before it, ascending.
    live: Option<(u32, u32)>,
    before: Vec<(u32, u32)>,
    /// What only loops that may run no iteration overwrote, inner ones last.
    doubts: Vec<Doubt>,
    alias: bool,
}

/// A loop that may not run, and begins with overwriting a location.
#[derive(Clone, Copy)]
struct Doubt {
    /// The stretch it ended, as a number in [`Placed::before`].
    stretch: Option<usize>,
    /// How many loops are around it, and where it starts.
    depth: usize,
    start: u32,
    /// The outermost loop around it that accessed the location nowhere before.
    fresh: usize,
}

/// What an instruction does to a location.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    /// Writes some of it.
    Write,
    /// Writes all of it, for certain.
    Overwrite,
}

struct Frame {
    start: u32,
    /// Whether the body runs for certain.
    certain: bool,
    /// Locations touched in the loop, and whether the loop carries them.
    touched: HashMap<usize, bool, Fixed>,
}

/// Live intervals of the placed locations of a function.
#[derive(Default)]
pub(super) struct Lifetimes {
    placed: Vec<Placed>,
    slots: HashMap<Value, usize, Fixed>,
    frames: Vec<Frame>,
    now: u32,
    /// Whether blocks branch: then nobody knows which accesses come before which.
    branches: bool,
}

impl Lifetimes {
    pub(super) fn new(branches: bool) -> Lifetimes {
        Lifetimes {
            branches,
            ..Lifetimes::default()
        }
    }

    pub(super) fn declare(&mut self, ir: &Ir, alloc: Op, value: Value, mem: &MemType<'_>) {
        let at = ir.ctx.dict_get(ir.dict(alloc), names::AT);
        let Some(at) = at.and_then(|attr| Placement::get(&ir.ctx, attr)) else {
            return;
        };
        let (partition, byte) = (u64::from(base_partition(at)), base_byte(at));
        self.slots.insert(value, self.placed.len());
        self.placed.push(Placed {
            value,
            alloc,
            space: mem.space,
            partitions: (partition, partition.saturating_add(mem.partitions())),
            bytes: (byte, byte.saturating_add(mem.free_bytes().unwrap_or(0))),
            live: None,
            before: Vec::new(),
            doubts: Vec::new(),
            alias: ir.attr(alloc, "must_alias").is_some(),
        });
    }

    /// On to the next instruction.
    pub(super) fn step(&mut self) {
        self.now = (self.now | 1) + 1;
    }

    /// Into a loop, whose body runs for certain or not.
    pub(super) fn enter(&mut self, certain: bool) {
        self.frames.push(Frame {
            start: (self.now | 1) + 1,
            certain,
            touched: HashMap::default(),
        });
    }

    pub(super) fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        for (slot, carried) in frame.touched {
            if carried {
                let placed = &mut self.placed[slot];
                while placed
                    .before
                    .pop_if(|stretch| stretch.0 >= frame.start)
                    .is_some()
                {}
                let left = placed.before.len();
                let is_in = |doubt: &mut Doubt| {
                    doubt.start >= frame.start || doubt.stretch.is_some_and(|at| at >= left)
                };
                while placed.doubts.pop_if(is_in).is_some() {}
                self.extend(slot, frame.start);
                self.extend(slot, self.now | 1);
            }
        }
    }

    fn extend(&mut self, slot: usize, at: u32) {
        let live = &mut self.placed[slot].live;
        *live = Some(live.map_or((at, at), |(from, to)| (from.min(at), to.max(at))));
    }

    /// An access by the instruction.
    pub(super) fn touch(&mut self, value: Value, effect: Effect) {
        if self.placed.is_empty() {
            return;
        }
        let Some(&slot) = self.slots.get(&value) else {
            return;
        };
        let overwrites = effect == Effect::Overwrite;
        if overwrites {
            self.overwrite(slot);
        } else {
            self.settle(slot, true);
        }
        self.extend(slot, self.now | u32::from(effect != Effect::Read));
        for frame in self.frames.iter_mut().rev() {
            if frame.touched.contains_key(&slot) {
                break;
            }
            frame.touched.insert(slot, !overwrites);
        }
    }

    /// Ends the stretch of a location that is overwritten, unless a loop since it came to life
    /// accessed it before: then the loop carries it.
    fn overwrite(&mut self, slot: usize) {
        if self.branches {
            return;
        }
        let placed = &self.placed[slot];
        let untouched = |frame: &&Frame| !frame.touched.contains_key(&slot);
        let fresh = self.frames.len() - self.frames.iter().rev().take_while(untouched).count();
        let came = placed.live.map_or(0, |(from, _)| from);
        let since = self.frames.partition_point(|frame| frame.start <= came);
        let ends = placed.live.is_some() && fresh <= since;
        let uncertain = (fresh..self.frames.len()).filter(|&at| !self.frames[at].certain);
        let doubts: SmallVec<[Doubt; 2]> = uncertain
            .map(|depth| Doubt {
                stretch: ends.then_some(placed.before.len()),
                depth,
                start: self.frames[depth].start,
                fresh,
            })
            .collect();
        if doubts.is_empty() {
            self.settle(slot, false);
        }
        let placed = &mut self.placed[slot];
        placed.doubts.extend(doubts);
        if ends {
            placed.before.extend(placed.live.take());
        }
    }

    /// Settles the doubts of a location about loops that have ended: what was there before them is
    /// still needed, or is not.
    fn settle(&mut self, slot: usize, needed: bool) {
        let placed = &mut self.placed[slot];
        let frames = &self.frames;
        let ended = |doubt: &mut Doubt| {
            let frame = frames.get(doubt.depth);
            frame.is_none_or(|frame| frame.start != doubt.start)
        };
        let mut carry = usize::MAX;
        let mut before = u32::MAX;
        while let Some(doubt) = placed.doubts.pop_if(ended) {
            if !needed {
                continue;
            }
            if let Some(at) = doubt.stretch
                && let Some(&(from, _)) = placed.before.get(at)
            {
                placed.before.truncate(at);
                placed.live = placed.live.map(|(_, to)| (from, to));
            }
            (carry, before) = (carry.min(doubt.fresh), before.min(doubt.start));
        }
        // What is needed may come from the iteration before.
        for frame in self.frames.iter_mut().skip(carry) {
            if frame.start <= before {
                frame.touched.insert(slot, true);
            }
        }
    }

    /// Reports overlaps, in the order in which the later location comes to life; each location
    /// with one that it meets, for a slot of thousands would have millions of pairs.
    pub(super) fn check(&self, ir: &Ir, diags: &mut Diagnostics) {
        for (slot, other) in self.overlaps() {
            diags.push(overlap(ir, &self.placed[slot], &self.placed[other]));
        }
    }

    /// Locations with one each that they meet.
    fn overlaps(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut order: Vec<(u32, u32, usize)> = self
            .placed
            .iter()
            .enumerate()
            .filter(|(_, placed)| !placed.alias)
            .flat_map(|(slot, placed)| {
                let stretches = placed.before.iter().chain(&placed.live);
                stretches.map(move |&(from, to)| (from, to, slot))
            })
            .collect();
        let mut reported = vec![false; self.placed.len()];
        order.sort_unstable();
        let mut active = Active::default();
        let mut ends: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for (from, to, slot) in order {
            while let Some(&Reverse((end, other))) = ends.peek()
                && end < from
            {
                ends.pop();
                active.remove(&self.placed[other], other);
            }
            let here = &self.placed[slot];
            if !reported[slot]
                && let Some(other) = active.meeting(here, &self.placed)
            {
                reported[slot] = true;
                found.push((slot, other));
            }
            active.insert(here, slot);
            ends.push(Reverse((to, slot)));
        }
        found
    }
}

/// Live locations by space, power of two of their size, and first byte: of each size only those
/// that start near a location can share bytes with it.
#[derive(Default)]
struct Active {
    by_size: BTreeMap<(Space, u32), BTreeSet<(u64, usize)>>,
}

impl Active {
    fn class(placed: &Placed) -> (Space, u32) {
        let len = placed.bytes.1 - placed.bytes.0;
        (placed.space, len.max(1).ilog2())
    }

    fn insert(&mut self, placed: &Placed, slot: usize) {
        let starts = self.by_size.entry(Self::class(placed)).or_default();
        starts.insert((placed.bytes.0, slot));
    }

    fn remove(&mut self, placed: &Placed, slot: usize) {
        if let Some(starts) = self.by_size.get_mut(&Self::class(placed)) {
            starts.remove(&(placed.bytes.0, slot));
        }
    }

    /// A live location that shares bytes with `here`.
    fn meeting(&self, here: &Placed, all: &[Placed]) -> Option<usize> {
        let sizes = (here.space, 0)..=(here.space, u32::MAX);
        self.by_size.range(sizes).find_map(|(&(_, size), starts)| {
            let longest = 1u64.checked_shl(size + 1).unwrap_or(u64::MAX);
            let from = here.bytes.0.saturating_sub(longest);
            let near = starts.range((from, 0)..(here.bytes.1, 0));
            near.map(|&(_, slot)| slot).find(|&slot| {
                meets(here.partitions, all[slot].partitions) && meets(here.bytes, all[slot].bytes)
            })
        })
    }
}

fn meets(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

fn overlap(ir: &Ir, here: &Placed, there: &Placed) -> Diagnostic {
    let (name, other) = (value_text(ir, here.value), value_text(ir, there.value));
    let from = here.bytes.0.max(there.bytes.0);
    let to = here.bytes.1.min(there.bytes.1) - 1;
    let mut message =
        format!("locations {other} and {name} overlap and are live together: bytes {from} to {to}");
    if here.space != Space::Dram {
        let first = here.partitions.0.max(there.partitions.0);
        let last = here.partitions.1.min(there.partitions.1) - 1;
        message.push_str(&format!(" of partitions {first} to {last}"));
    }
    message.push_str(&format!(" of `{}`", here.space));
    Diagnostic::error(Place::Op(here.alloc, Part::Whole), message).related(
        Place::Op(there.alloc, Part::Whole),
        format!("{other} is placed here"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program over locations in one slot.
    #[derive(Debug)]
    enum Item {
        Overwrite(usize),
        Read(usize),
        Loop(bool, Vec<Item>),
    }

    fn random(next: &mut impl FnMut(u64) -> u64, depth: u64) -> Vec<Item> {
        let count = 1 + next(5);
        let item = |next: &mut dyn FnMut(u64) -> u64| match next(9) {
            0..4 => Item::Overwrite(next(2) as usize),
            _ => Item::Read(next(2) as usize),
        };
        (0..count)
            .map(|_| match depth < 2 && next(4) == 0 {
                true => Item::Loop(next(2) == 0, random(next, depth + 1)),
                false => item(next),
            })
            .collect()
    }

    fn live(items: &[Item], of: &mut Lifetimes) {
        for item in items {
            match item {
                Item::Overwrite(slot) | Item::Read(slot) => {
                    of.step();
                    let effect = match item {
                        Item::Overwrite(_) => Effect::Overwrite,
                        _ => Effect::Read,
                    };
                    of.touch(Value(*slot as u32), effect);
                }
                Item::Loop(certain, body) => {
                    of.enter(*certain);
                    live(body, of);
                    of.leave();
                }
            }
        }
    }

    /// Whether somebody reads what another location's bytes replaced: who wrote last, and who has
    /// been written at all.
    fn run(
        items: &[Item],
        next: &mut impl FnMut(u64) -> u64,
        last: &mut usize,
        written: &mut [bool],
    ) -> bool {
        items.iter().any(|item| match item {
            Item::Overwrite(slot) => {
                (*last, written[*slot]) = (*slot, true);
                false
            }
            Item::Read(slot) => written[*slot] && *last != *slot,
            Item::Loop(certain, body) => {
                let trips = u64::from(*certain) + next(3);
                (0..trips).any(|_| run(body, next, last, written))
            }
        })
    }

    #[test]
    fn locations_that_do_not_overlap_never_replace_each_other() {
        let mut state = 5u64;
        let mut next = |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let (mut apart, mut with_gaps) = (0, 0);
        for _ in 0..6000 {
            let items = random(&mut next, 0);
            let mut lifetimes = Lifetimes::new(false);
            for slot in 0..2 {
                lifetimes.slots.insert(Value(slot), slot as usize);
                lifetimes.placed.push(Placed {
                    value: Value(slot),
                    alloc: Op(slot),
                    space: Space::Sbuf,
                    partitions: (0, 1),
                    bytes: (0, 4),
                    live: None,
                    before: Vec::new(),
                    doubts: Vec::new(),
                    alias: false,
                });
            }
            live(&items, &mut lifetimes);
            if !lifetimes.overlaps().is_empty() {
                continue;
            }
            let touched = lifetimes
                .placed
                .iter()
                .filter(|placed| placed.live.is_some());
            apart += usize::from(touched.count() == 2);
            with_gaps += usize::from(
                lifetimes
                    .placed
                    .iter()
                    .any(|placed| !placed.before.is_empty()),
            );
            for _ in 0..30 {
                let replaced = run(&items, &mut next, &mut usize::MAX.clone(), &mut [false; 2]);
                assert!(
                    !replaced,
                    "{items:?} {:?}",
                    lifetimes
                        .placed
                        .iter()
                        .map(|p| (&p.before, p.live))
                        .collect::<Vec<_>>()
                );
            }
        }
        assert!(apart > 300 && with_gaps > 100, "{apart} {with_gaps}");
    }

    #[test]
    fn a_location_meets_another_exactly_where_brute_force_says_so() {
        let mut state = 11u64;
        let mut next = |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..200 {
            let mut all: Vec<Placed> = Vec::new();
            let mut active = Active::default();
            let mut live: Vec<usize> = Vec::new();
            for slot in 0..40usize {
                let (partition, byte) = (next(4) * 32, next(64));
                let longest = [1, 4, 40][next(3) as usize];
                let len = next(longest + 1);
                all.push(Placed {
                    value: Value(slot as u32),
                    alloc: Op(slot as u32),
                    space: [Space::Sbuf, Space::Psum][next(2) as usize],
                    partitions: (partition, partition + 32 * (1 + next(2))),
                    bytes: (byte, byte + len),
                    live: None,
                    before: Vec::new(),
                    doubts: Vec::new(),
                    alias: false,
                });
                let here = &all[slot];
                let meets_one = |other: &usize| {
                    let there = &all[*other];
                    here.space == there.space
                        && meets(here.partitions, there.partitions)
                        && meets(here.bytes, there.bytes)
                };
                let found = active.meeting(here, &all);
                assert_eq!(found.is_some(), live.iter().any(meets_one));
                assert!(found.is_none_or(|other| live.contains(&other) && meets_one(&other)));
                active.insert(here, slot);
                live.push(slot);
                if next(3) == 0 {
                    let gone = live.swap_remove(next(live.len() as u64) as usize);
                    active.remove(&all[gone], gone);
                }
            }
        }
    }
}
