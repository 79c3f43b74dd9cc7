//! Everything that touches memory in a function, sorted by the bytes it is in.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::super::access::Footprint;
use super::atoms::{ANYWHERE, Atoms, Rect, WHOLE};
use super::event::{Event, Extent, Initial};
use super::flow::{Flow, LoopId, LoopSpan, Segment};
use super::locate::{Frames, Location, group, locate};
use super::prints::{Print, Prints};
use super::storage::Events;
use super::walk::{LoopIndex, RegisterTouch, Touch, Walked, walk};
use crate::ir::{Ir, Op, Value};

/// Locations, touches, and the touches as events of storages.
pub(in crate::analysis) struct Collected {
    pub(in crate::analysis) flow: Flow,
    pub(in crate::analysis) locations: Vec<Location>,
    /// Per location, the first location that is the same by `must_alias`.
    pub(in crate::analysis) partners: Vec<u32>,
    pub(in crate::analysis) touches: Vec<Touch>,
    /// Sorted by register.
    pub(in crate::analysis) registers: Vec<RegisterTouch>,
    pub(in crate::analysis) events: Events,
    /// Per touch, its position among the events of its storage.
    pub(in crate::analysis) positions: Vec<u32>,
    pub(in crate::analysis) loop_orders: Vec<(u32, u32)>,
    pub(in crate::analysis) orders: u32,
    /// Loops by their index.
    pub(in crate::analysis) index_of: HashMap<Value, LoopIndex>,
    /// The instructions, by the number [`Touch::order`] gives them.
    pub(in crate::analysis) ops: Vec<Op>,
}

/// Numbers of one storage for numbers all storages share.
#[derive(Default)]
struct Local {
    /// Per shared number: the storage, and the number there.
    known: Vec<(u32, u32)>,
    /// The same by location, for storages whose locations stand at different places.
    placed: HashMap<(u32, u32), u32, foldhash::fast::FixedState>,
}

impl Local {
    fn get(&mut self, key: Key, shared: u32, make: impl FnOnce() -> u32) -> u32 {
        match key {
            Key::Storage(storage) => {
                if self.known.len() <= shared as usize {
                    self.known.resize(shared as usize + 1, (u32::MAX, 0));
                }
                let slot = &mut self.known[shared as usize];
                if slot.0 != storage {
                    *slot = (storage, make());
                }
                slot.1
            }
            Key::Location(location) => *self.placed.entry((shared, location)).or_insert_with(make),
        }
    }
}

/// What a print is a footprint for.
#[derive(Clone, Copy)]
enum Key {
    Storage(u32),
    Location(u32),
}

impl Collected {
    pub(in crate::analysis) fn new(ir: &Ir, func: Op, frames: Frames, limit: usize) -> Collected {
        Collected::of(ir, walk(ir, func), frames, limit)
    }

    pub(super) fn of(ir: &Ir, walked: Walked, frames: Frames, limit: usize) -> Collected {
        let Walked {
            flow,
            allocs,
            touches,
            mut registers,
            index_of,
            loop_orders,
            orders,
            ops,
        } = walked;
        let mut locations = locate(ir, &allocs);
        let (wholes, partners) = group(ir, &mut locations, frames);
        // Touches by storage, in program order.
        let storage_of = |touch: &Touch| locations[touch.location as usize].storage as usize;
        let mut starts = vec![0u32; wholes.len() + 1];
        let mut positions = Vec::with_capacity(touches.len());
        for touch in &touches {
            let count = &mut starts[storage_of(touch) + 1];
            positions.push(*count);
            *count += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut prints = Prints::new(ir, &index_of, touches.len());
        let nowhere = Event {
            id: 0,
            segment: 0,
            extent: 0,
            effect: super::event::Effect::READ,
        };
        let mut list = vec![nowhere; touches.len()];
        for (at, touch) in (0u32..).zip(&touches) {
            let value = locations[touch.location as usize].value;
            let place = starts[storage_of(touch)] + positions[at as usize];
            list[place as usize] = Event {
                id: at,
                segment: touch.segment,
                extent: prints.of(touch, value),
                effect: touch.effect,
            };
        }
        // What is asked of each storage, and whether its locations are all of it.
        let mut initial = vec![Initial::Undefined; wholes.len()];
        let mut to_end = vec![false; wholes.len()];
        let mut written = vec![false; wholes.len()];
        for touch in touches.iter().filter(|touch| touch.effect.is_write()) {
            written[storage_of(touch)] = true;
        }
        let mut filled = vec![true; wholes.len()];
        for location in &locations {
            let at = location.storage as usize;
            if location.initial() == Initial::Outside {
                initial[at] = Initial::Outside;
            }
            to_end[at] |= location.is_output() || location.visible && written[at];
            let size = Rect::new((0, location.partitions), (0, location.bytes)).size();
            filled[at] &= size > 0 && size == wholes[at].size();
        }
        let mut events = Events::new(limit);
        events.parts.reserve(wholes.len());
        let mut sorter = Sorter {
            prints: &prints,
            locations: &locations,
            touches: &touches,
            footprints: Local::default(),
            extents: Local::default(),
            chosen: Vec::new(),
        };
        // Events are in order by storage already; what remains is what they touch of theirs.
        events.events = list;
        for (at, &whole) in wholes.iter().enumerate() {
            let range = starts[at] as usize..starts[at + 1] as usize;
            let is_whole = |event: &Event| prints.all[event.extent as usize].whole;
            let one = filled[at] && events.events[range.clone()].iter().all(is_whole);
            let map = match one {
                true => {
                    for event in &mut events.events[range.clone()] {
                        let print = prints.all[event.extent as usize].extent.all;
                        event.extent = match prints.shapes[print as usize].is_exact() {
                            true => WHOLE,
                            false => ANYWHERE,
                        };
                    }
                    Atoms::one(whole)
                }
                false => sorter.cut(&mut events, range.clone(), whole, at as u32),
            };
            events.close(range.end, map, initial[at], to_end[at]);
        }
        events.atoms.finish();
        events.moves = prints.moves;
        registers.sort_by_key(|touch| touch.register);
        Collected {
            ops,
            index_of,
            flow,
            locations,
            partners,
            touches,
            registers,
            events,
            positions,
            loop_orders,
            orders,
        }
    }
}

impl Collected {
    /// Adds the registers with several writers as storages of one atom behind those of locations.
    pub(in crate::analysis) fn add_registers(&mut self) {
        let first = self.touches.len();
        let byte = Rect::new((0, 1), (0, 1));
        let mut from = 0;
        for register in self.registers.chunk_by(|a, b| a.register == b.register) {
            let events = (from..).zip(register).map(|(at, touch)| Event {
                id: (first + at) as u32,
                segment: touch.segment,
                extent: WHOLE,
                effect: touch.effect,
            });
            self.events.events.extend(events);
            let end = self.events.events.len();
            self.events
                .close(end, Atoms::one(byte), Initial::Undefined, false);
            from += register.len();
        }
    }

    /// Bytes on the heap, about.
    pub(in crate::analysis) fn heap_bytes(&self) -> usize {
        self.events.heap_bytes()
            + self.touches.capacity() * size_of::<Touch>()
            + self.registers.capacity() * size_of::<RegisterTouch>()
            + self.locations.capacity() * size_of::<Location>()
            + self.flow.segments.capacity() * size_of::<Segment>()
            + self.flow.loops.capacity() * size_of::<LoopSpan>()
            + 4 * (self.partners.capacity() + self.positions.capacity() + self.ops.capacity())
            + 8 * self.loop_orders.capacity()
            + self.index_of.capacity() * size_of::<(Value, LoopIndex)>()
    }

    /// The number of an event's instruction.
    pub(in crate::analysis) fn order(&self, event: &Event) -> u32 {
        let at = event.id as usize;
        match self.touches.get(at) {
            Some(touch) => touch.order,
            None => self.registers[at - self.touches.len()].order,
        }
    }
}

/// Turns the prints of one storage's events into its footprints and extents.
struct Sorter<'a> {
    prints: &'a Prints<'a>,
    locations: &'a [Location],
    touches: &'a [Touch],
    footprints: Local,
    extents: Local,
    /// Footprints of the storage: shared number, and where its location stands.
    chosen: Vec<(u32, (i64, i64))>,
}

impl Sorter<'_> {
    fn cut(
        &mut self,
        events: &mut Events,
        range: std::ops::Range<usize>,
        whole: Rect,
        storage: u32,
    ) -> super::atoms::Map {
        self.chosen.clear();
        self.footprints.placed.clear();
        self.extents.placed.clear();
        let base = events.atoms.next_footprint();
        let (tail, extents, partial) = (
            &mut events.events[range],
            &mut events.extents,
            &mut events.partial,
        );
        let origin = |event: &Event| {
            let location = self.touches[event.id as usize].location;
            (location, self.locations[location as usize].origin)
        };
        let first = tail.first().map_or((0, 0), |event| origin(event).1);
        let together = tail.iter().all(|event| origin(event).1 == first);
        for event in tail.iter_mut() {
            let (location, here) = origin(event);
            let key = match together {
                true => Key::Storage(storage),
                false => Key::Location(location),
            };
            let Print { extent, .. } = self.prints.all[event.extent as usize];
            let chosen = &mut self.chosen;
            let footprints = &mut self.footprints;
            let mut local = |print: u32| {
                footprints.get(key, print, || {
                    chosen.push((print, here));
                    base + chosen.len() as u32 - 1
                })
            };
            let shared = event.extent;
            let prints = self.prints;
            event.extent = self.extents.get(key, shared, || {
                let start = partial.len() as u32;
                let (lo, hi) = extent.partial;
                for &(id, print) in &prints.partial[lo as usize..hi as usize] {
                    let over: (LoopId, u32) = (id, local(print));
                    partial.push(over);
                }
                extents.push(Extent {
                    first: local(extent.first),
                    all: local(extent.all),
                    varies: extent.varies,
                    partial: (start, partial.len() as u32),
                    moves: extent.moves,
                });
                extents.len() as u32 - 1
            });
        }
        let of = |print: u32| &self.prints.shapes[print as usize];
        let chosen = &self.chosen;
        let bands = || chosen.iter().map(|&(at, place)| of(at).band(place, whole));
        match bands().all(|band| band.is_some()) {
            true => {
                let runs = bands().flatten().map(|run| (run, true));
                events.atoms.add_bands(whole, runs)
            }
            false => {
                let placed = chosen.iter().map(|&(at, place)| of(at).placed(place));
                let list: Vec<Cow<'_, Footprint>> = placed.collect();
                events.atoms.add(&whole.footprint(), &list)
            }
        }
    }
}
