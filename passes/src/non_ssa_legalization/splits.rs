//! What becomes of the locations that conflict.

use bir_dialect::analysis::access::Wholes;
use bir_dialect::analysis::index::{Frames, FunctionIndex, Location, Touches, Web};
use bir_dialect::analysis::lifetimes::{Lifetimes, Place, bytes, effect};
use bir_dialect::bir::program::names;
use bir_dialect::ir::{Ir, Op, Operand, Value};

use super::conflicts::{Conflict, conflicts};
use bir_dialect::analysis::outside::Outside;

/// A location that becomes several.
pub(super) struct Split {
    pub(super) alloc: Op,
    pub(super) value: Value,
    /// Its number in the walk.
    pub(super) location: u32,
    /// Clones to make.
    pub(super) clones: u32,
}

/// What becomes of the locations of a function.
#[derive(Default)]
pub(super) struct Splits {
    /// The locations to be split, in order.
    pub(super) splits: Vec<Split>,
    /// Operands to move, and to which clone: the clones of all splits are counted, in order.
    pub(super) moves: Vec<(Operand, u32)>,
}

impl Splits {
    /// Those of a function.
    pub(super) fn new(ir: &Ir, func: Op, touches: &Touches, outside: &Outside) -> Splits {
        let Some(mut conflicts) = conflicts(ir, touches, outside) else {
            return Splits::default();
        };
        for (conflict, &(alloc, _)) in conflicts.iter_mut().zip(touches.locations()) {
            // Whose webs may have to stay together.
            let is_placed = || ir.ctx.dict_get(ir.dict(alloc), names::AT).is_some();
            if matches!(conflict, Conflict::Stretches(_)) && is_placed() {
                *conflict = Conflict::Webs;
            }
        }
        Splits::of(ir, func, touches, &conflicts)
    }

    fn of(ir: &Ir, func: Op, touches: &Touches, conflicts: &[Conflict]) -> Splits {
        let mut indexed = match conflicts.contains(&Conflict::Webs) {
            true => webs(ir, func, touches, conflicts),
            false => Vec::new(),
        }
        .into_iter();
        let mut found = Splits::default();
        let mut clones = 0;
        let mut stretches: Vec<Option<Stretch>> = vec![None; conflicts.len()];
        for (number, &conflict) in (0u32..).zip(conflicts) {
            let parts = match conflict {
                Conflict::None => 1,
                Conflict::Stretches(count) => {
                    stretches[number as usize] = Some(Stretch {
                        clones,
                        begun: 0,
                        last: 0,
                    });
                    count
                }
                Conflict::Webs => {
                    let webs = indexed.next().unwrap_or_default();
                    let moved = webs.iter().filter(|(_, web)| *web > 0);
                    let moved = moved.map(|&(operand, web)| (operand, clones + web - 1));
                    found.moves.extend(moved);
                    webs.iter().map(|(_, web)| web + 1).max().unwrap_or(1)
                }
            };
            if parts > 1 {
                let (alloc, value) = touches.locations()[number as usize];
                found.splits.push(Split {
                    alloc,
                    value,
                    location: number,
                    clones: parts - 1,
                });
                clones += parts - 1;
            }
        }
        found.follow(touches, stretches);
        found
    }

    /// Moves the accesses of locations that come apart into stretches.
    fn follow(&mut self, touches: &Touches, mut stretches: Vec<Option<Stretch>>) {
        for touch in touches.all() {
            let Some(stretch) = &mut stretches[touch.location as usize] else {
                continue;
            };
            let order = touch.order + 1;
            // An instruction's reads come first: one that begins with a write reads nothing of it.
            if stretch.last != order && touch.effect.is_write() {
                stretch.begun += 1;
            }
            stretch.last = order;
            if stretch.begun > 1 {
                let clone = stretch.clones + stretch.begun - 2;
                self.moves.push((touch.operand, clone));
            }
        }
    }
}

/// Where a location that comes apart into stretches has got to.
#[derive(Clone, Copy)]
struct Stretch {
    /// Clones of the splits before; the first stretch keeps the location.
    clones: u32,
    /// Stretches begun.
    begun: u32,
    /// The instruction looked at last, counted from 1.
    last: u32,
}

/// Per location that has webs only an index can tell, its accesses and the number of the web each is in.
fn webs(ir: &Ir, func: Op, touches: &Touches, conflicts: &[Conflict]) -> Vec<Vec<(Operand, u32)>> {
    let mut in_loops = None;
    let (index, numbers) = touches.index(ir, Frames::Locations, |location| {
        conflicts[location as usize] == Conflict::Webs
    });
    let locations = (0u32..).zip(index.locations()).zip(numbers);
    locations
        .map(|((at, location), number)| {
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
            let operand = |web: &Web| index.touches()[web.touch as usize].operand;
            webs.iter().map(|web| (operand(web), web.web)).collect()
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::Anchor;
    use bir_sim::generate::{Config, Profile, generate, profile};

    /// Splits as they are, and those an index alone finds.
    fn both_ways(ir: &Ir, func: Op, stretches: &mut usize) -> [Splits; 2] {
        let touches = Touches::new(ir, func);
        let outside = Outside::new(ir);
        let direct = Splits::new(ir, func, &touches, &outside);
        let Some(mut conflicts) = conflicts(ir, &touches, &outside) else {
            return [direct, Splits::default()];
        };
        for conflict in &mut conflicts {
            if matches!(conflict, Conflict::Stretches(_)) {
                *stretches += 1;
                *conflict = Conflict::Webs;
            }
        }
        [direct, Splits::of(ir, func, &touches, &conflicts)]
    }

    #[test]
    fn stretches_are_the_webs_an_index_finds() {
        let random = (0..400).map(|seed| {
            generate(&Config {
                seed,
                instructions: 300,
                ..Config::default()
            })
            .ir
        });
        let kernels =
            [Profile::Million, Profile::Linear].map(|kernels| profile(kernels, 0, Some(400)).ir);
        let mut stretches = 0;
        for ir in random.chain(kernels) {
            for func in Anchor::Func.ops(&ir) {
                let [direct, mut indexed] = both_ways(&ir, func, &mut stretches).map(|splits| {
                    let told = splits
                        .splits
                        .iter()
                        .map(|split| (split.alloc, split.clones));
                    (told.collect::<Vec<_>>(), splits.moves)
                });
                // Those of an index come location by location.
                let place = |operand: Operand| direct.1.iter().position(|moved| moved.0 == operand);
                indexed.1.sort_by_key(|&(operand, _)| place(operand));
                assert_eq!(direct, indexed);
            }
        }
        assert!(stretches > 500, "{stretches}");
    }
}
