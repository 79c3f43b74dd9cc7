//! Placed locations that overlap are never live together.
//!
//! Positions count instructions in program order. A location lives from its first to its last
//! access; where a loop's body does not begin with overwriting the whole of it, its bytes may come
//! from before or from the iteration before, so it lives through the whole loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use hashbrown::HashMap;

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
    live: Option<(u32, u32)>,
    alias: bool,
}

struct Frame {
    start: u32,
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
}

impl Lifetimes {
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
            alias: ir.attr(alloc, "must_alias").is_some(),
        });
    }

    /// The position of the next instruction.
    pub(super) fn step(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    pub(super) fn enter(&mut self, _around: Op) {
        self.frames.push(Frame {
            start: self.now + 1,
            touched: HashMap::default(),
        });
    }

    pub(super) fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        for (slot, carried) in frame.touched {
            if carried {
                self.extend(slot, frame.start);
                self.extend(slot, self.now);
            }
        }
    }

    fn extend(&mut self, slot: usize, at: u32) {
        let live = &mut self.placed[slot].live;
        *live = Some(live.map_or((at, at), |(from, to)| (from.min(at), to.max(at))));
    }

    /// An access at a position.
    pub(super) fn touch(&mut self, value: Value, at: u32, overwrites: bool) {
        if self.placed.is_empty() {
            return;
        }
        let Some(&slot) = self.slots.get(&value) else {
            return;
        };
        self.extend(slot, at);
        for frame in self.frames.iter_mut().rev() {
            if frame.touched.contains_key(&slot) {
                break;
            }
            frame.touched.insert(slot, !overwrites);
        }
    }

    /// Reports overlaps, in the order in which the later location comes to life; each location
    /// with one that it meets, for a slot of thousands would have millions of pairs.
    pub(super) fn check(&mut self, ir: &Ir, diags: &mut Diagnostics) {
        let mut order: Vec<(u32, u32, usize)> = self
            .placed
            .iter()
            .enumerate()
            .filter(|(_, placed)| !placed.alias)
            .filter_map(|(slot, placed)| placed.live.map(|(from, to)| (from, to, slot)))
            .collect();
        order.sort_unstable();
        let mut active = Active::default();
        let mut ends: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for (from, to, slot) in order {
            // Read and written by one instruction: the source ends where the result begins.
            while let Some(&Reverse((end, other))) = ends.peek()
                && end <= from
            {
                ends.pop();
                active.remove(&self.placed[other], other);
            }
            let here = &self.placed[slot];
            if let Some(other) = active.meeting(here, &self.placed) {
                diags.push(overlap(ir, here, &self.placed[other]));
            }
            active.insert(here, slot);
            ends.push(Reverse((to, slot)));
        }
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
