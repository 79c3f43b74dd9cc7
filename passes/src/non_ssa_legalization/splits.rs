//! The webs of locations that conflict.

use bir_dialect::analysis::access::Wholes;
use bir_dialect::analysis::index::{Frames, FunctionIndex, Location, Touches, Web};
use bir_dialect::analysis::lifetimes::{Lifetimes, Place, bytes, effect};
use bir_dialect::ir::{Ir, Op, Operand, Value};

use super::conflicts::conflicts;
use bir_dialect::analysis::outside::Outside;

/// A location that becomes several.
pub(super) struct Split {
    pub(super) alloc: Op,
    pub(super) value: Value,
    /// Its number in the walk.
    pub(super) location: u32,
    /// Clones to make.
    pub(super) clones: u32,
    /// Operands to move, and to which clone.
    pub(super) moved: Vec<(Operand, u32)>,
}

/// The locations of a function to be split, in order.
pub(super) fn splits(ir: &Ir, func: Op, touches: &Touches, outside: &Outside) -> Vec<Split> {
    let Some(conflicts) = conflicts(ir, touches, outside) else {
        return Vec::new();
    };
    let mut in_loops = None;
    let (index, numbers) = touches.index(ir, Frames::Locations, |location| {
        conflicts[location as usize]
    });
    let mut splits = Vec::new();
    for ((at, location), number) in (0u32..).zip(index.locations()).zip(numbers) {
        let mut webs = index.webs(at);
        if let Some(place) = place(location) {
            let mut lives = Lives {
                ir,
                index: &index,
                place,
                // All accesses are in one block: the loops around it are as one.
                around: in_loops.get_or_insert_with(|| loops(touches))[number as usize]
                    .then_some(func),
                wholes: Wholes::default(),
            };
            lives.join(&mut webs);
        }
        let moved: Vec<(Operand, u32)> = webs
            .iter()
            .filter(|web| web.web > 0)
            .map(|web| (index.touches()[web.touch as usize].operand, web.web - 1))
            .collect();
        if let Some(last) = moved.iter().map(|moved| moved.1).max() {
            splits.push(Split {
                alloc: location.op,
                value: location.value,
                location: number,
                clones: last + 1,
                moved,
            });
        }
    }
    splits
}

/// Per location, whether it is accessed in a loop.
fn loops(touches: &Touches) -> Vec<bool> {
    let mut found = vec![false; touches.locations().len()];
    for touch in touches.all() {
        found[touch.location as usize] |= touches.is_in_loop(touch);
    }
    found
}

/// When the webs of a placed location live, by the rules the verifier has.
struct Lives<'a> {
    ir: &'a Ir,
    index: &'a FunctionIndex,
    place: Place,
    /// What stands for the loops around.
    around: Option<Op>,
    wholes: Wholes,
}

impl Lives<'_> {
    /// Joins webs that live at the same time, until no two do: their bytes are the same slot's.
    fn join(&mut self, webs: &mut [Web]) {
        let count = webs.iter().map(|web| web.web + 1).max().unwrap_or(0);
        let mut group_of: Vec<u32> = (0..count).collect();
        loop {
            let overlaps = self.overlaps(webs, &group_of);
            if overlaps.is_empty() {
                break;
            }
            let mut joined: Vec<u32> = (0..count).collect();
            for (a, b) in overlaps {
                let (a, b) = (root(&joined, a as u32), root(&joined, b as u32));
                joined[a.max(b) as usize] = a.min(b);
            }
            for group in &mut group_of {
                *group = root(&joined, *group);
            }
        }
        // Groups are counted in the order of their first accesses, as webs are.
        let mut number = vec![None; group_of.len()];
        let mut numbers = 0;
        for web in webs {
            let number = &mut number[group_of[web.web as usize] as usize];
            web.web = *number.get_or_insert_with(|| {
                numbers += 1;
                numbers - 1
            });
        }
    }

    fn overlaps(&mut self, webs: &[Web], group_of: &[u32]) -> Vec<(usize, usize)> {
        let ir = self.ir;
        let mut lives = Lifetimes::new();
        for _ in group_of {
            lives.declare(self.place, false);
        }
        if let Some(around) = self.around {
            lives.enter(around, true);
        }
        let mut order = None;
        for web in webs {
            let touch = &self.index.touches()[web.touch as usize];
            if order.replace(touch.order) != Some(touch.order) {
                lives.step();
            }
            let operand = ir.operand(touch.operand);
            let (kind, dynamic) = (touch.effect, touch.dynamic);
            let effect = effect(ir, touch.op, operand, kind, dynamic, &mut self.wholes);
            let group = group_of[web.web as usize] as usize;
            lives.touch(group, effect, || bytes(ir, operand, dynamic));
        }
        if self.around.is_some() {
            lives.leave();
        }
        lives.overlaps()
    }
}

fn root(joined: &[u32], mut at: u32) -> u32 {
    while joined[at as usize] != at {
        at = joined[at as usize];
    }
    at
}

/// Where a location stands.
fn place(location: &Location) -> Option<Place> {
    let (partition, byte) = location.place?;
    let span = |from: i64, len: i64| {
        let from = u64::try_from(from).ok()?;
        Some((from, from.saturating_add(u64::try_from(len).ok()?)))
    };
    Some(Place {
        space: location.space,
        partitions: span(partition, location.partitions)?,
        bytes: span(byte, location.bytes)?,
    })
}
