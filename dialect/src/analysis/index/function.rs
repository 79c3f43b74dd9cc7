//! The index of a function: locations grouped into storages, accesses turned into events.
//!
//! [`Frames::Locations`] keeps locations apart (must-alias partners aside): what is asked about
//! definedness and values. [`Frames::Addresses`] puts placed locations that share addresses into
//! one storage, so that what conflicts only by its placement conflicts.

use super::atoms::{Gap, RANGE_LIMIT};
use super::collect::Collected;
use super::event::{Effect, Reads};
use super::flow::{Flow, LoopId};
use super::locate::{Frames, Location};
use super::storage::{Arena, StorageIndex};
use super::tree::Origin;
use super::walk::Touch;
use crate::ir::{Ir, Op, Operand, Value};

/// A read of bytes nothing may have written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undefined {
    /// The instruction.
    pub op: Op,
    /// The operand.
    pub operand: Operand,
    /// The location.
    pub value: Value,
    /// Partitions and bytes of the location, ascending.
    pub gaps: Vec<Gap>,
    /// Whether these are all of them.
    pub complete: bool,
}

/// An output with bytes nothing may have written where the function ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwritten {
    /// The location.
    pub value: Value,
    /// Partitions and bytes of the location, ascending.
    pub gaps: Vec<Gap>,
    /// Whether these are all of them.
    pub complete: bool,
}

/// The index of a function. Touches are numbered in program order.
pub struct FunctionIndex {
    locations: Vec<Location>,
    touches: Vec<Touch>,
    arena: Arena,
    /// Per touch, its position among the events of its storage.
    positions: Vec<u32>,
    /// Per location, the first touch.
    first_touch: Vec<Option<u32>>,
    /// Per location, the first location that is the same by `must_alias`.
    partners: Vec<u32>,
    pub(super) walked_orders: u32,
    pub(super) loop_orders: Vec<(u32, u32)>,
    pub(super) flow: Flow,
}

/// Rows of bytes looked at for one finding.
const GAP_ROWS: usize = 1 << 12;

impl FunctionIndex {
    /// Indexes a function.
    pub fn build(ir: &Ir, func: Op, frames: Frames) -> FunctionIndex {
        FunctionIndex::of(Collected::new(ir, func, frames, RANGE_LIMIT))
    }

    pub(super) fn of(collected: Collected) -> FunctionIndex {
        let Collected {
            flow,
            locations,
            partners,
            touches,
            events,
            positions,
            loop_orders,
            orders,
            ..
        } = collected;
        let mut first_touch = vec![None; locations.len()];
        for (at, touch) in (0u32..).zip(&touches) {
            first_touch[touch.location as usize].get_or_insert(at);
        }
        FunctionIndex {
            arena: Arena::index(events, &flow),
            locations,
            touches,
            positions,
            first_touch,
            partners,
            walked_orders: orders,
            loop_orders,
            flow,
        }
    }

    /// The locations, in the order of their allocations.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Every operand that touches memory, in program order; an instruction's reads come first.
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// The touches of an instruction, by the number [`Touch::order`] gives it.
    pub fn touches_of(&self, order: u32) -> std::ops::Range<usize> {
        let from = self.touches.partition_point(|touch| touch.order < order);
        let to = self.touches.partition_point(|touch| touch.order <= order);
        from..to
    }

    /// The index of the bytes a location is in.
    pub fn storage_of(&self, location: u32) -> StorageIndex<'_> {
        let storage = self.locations[location as usize].storage;
        self.arena.storage(storage as usize)
    }

    /// The storages: groups of locations that share bytes.
    pub fn storages(&self) -> impl Iterator<Item = StorageIndex<'_>> {
        (0..self.arena.len()).map(|at| self.arena.storage(at))
    }

    /// Accesses that answer for more bytes than they touch, because all ranges of the function
    /// together passed [`RANGE_LIMIT`]: results are sound, but not exact.
    pub fn capped(&self) -> usize {
        self.arena.capped()
    }

    pub(super) fn at(&self, touch: u32) -> (StorageIndex<'_>, u32) {
        let location = self.touches[touch as usize].location;
        (self.storage_of(location), self.positions[touch as usize])
    }

    /// The writes that may be the last to some byte of a read, as touches, and what else reaches it.
    pub fn reaching(&self, read: u32) -> (Vec<u32>, Origin) {
        let (storage, position) = self.at(read);
        let found = storage.reaching(position);
        (touches_in(&storage, found.events), found.origin)
    }

    /// The one write of every byte of a read, as a touch, if there is one for certain.
    pub fn sole_definition(&self, read: u32) -> Option<u32> {
        let (storage, position) = self.at(read);
        let found = storage.sole_definition(position)?;
        Some(storage.events()[found as usize].id)
    }

    /// Whether a write between two touches of one storage may change a byte of what the touch
    /// `of` covers, which is one of the same storage; `false` for different storages. `from` must
    /// stand before `to` on every path to it.
    pub fn clobbered_between(&self, from: u32, to: u32, of: u32) -> bool {
        let ((a, from), (b, to), (c, of)) = (self.at(from), self.at(to), self.at(of));
        if !a.is(&b) || !a.is(&c) {
            return false;
        }
        a.clobbered_between(from, to, a.extent(&a.events()[of as usize]).all)
    }

    /// The reads each write of a storage reaches, as touches. Building it costs one pass over the
    /// storage; ask for it once for many writes of one storage.
    pub fn uses(&self, write: u32) -> Vec<u32> {
        let (storage, position) = self.at(write);
        touches_in(&storage, storage.uses().of(position))
    }

    /// The only write to a location's bytes, as a touch, if there is exactly one.
    pub fn sole_writer(&self, location: u32) -> Option<u32> {
        let storage = self.storage_of(location);
        storage
            .sole_writer()
            .map(|at| storage.events()[at as usize].id)
    }

    /// The only read of a location's bytes, as a touch, if there is exactly one.
    pub fn sole_reader(&self, location: u32) -> Option<u32> {
        let storage = self.storage_of(location);
        storage
            .sole_reader()
            .map(|at| storage.events()[at as usize].id)
    }

    /// Reads of bytes nothing may have written, in program order.
    pub fn undefined_reads(&self) -> Vec<Undefined> {
        let mut found: Vec<(u32, Undefined)> = Vec::new();
        for storage in self.storages() {
            for uncovered in storage.uncovered() {
                let id = storage.events()[uncovered.event as usize].id;
                let touch = &self.touches[id as usize];
                let location = &self.locations[touch.location as usize];
                let (gaps, complete) = storage.uncovered_gaps(uncovered, GAP_ROWS);
                found.push((
                    id,
                    Undefined {
                        op: touch.op,
                        operand: touch.operand,
                        value: location.value,
                        gaps: relative(gaps, location),
                        complete,
                    },
                ));
            }
        }
        found.sort_by_key(|entry| entry.0);
        found.into_iter().map(|entry| entry.1).collect()
    }

    /// Outputs not fully written where the function ends, in the order of the locations.
    pub fn unwritten_outputs(&self) -> Vec<Unwritten> {
        let mut found = Vec::new();
        for location in self.locations.iter().filter(|location| location.output) {
            let storage = self.arena.storage(location.storage as usize);
            let (gaps, complete) = storage.unwritten_gaps(GAP_ROWS);
            let gaps = relative(gaps, location);
            if !gaps.is_empty() {
                found.push(Unwritten {
                    value: location.value,
                    gaps,
                    complete,
                });
            }
        }
        found
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        self.arena.heap_bytes()
            + self.touches.capacity() * size_of::<Touch>()
            + self.locations.capacity() * size_of::<Location>()
            + self.positions.capacity() * 4
    }
}

fn touches_in(storage: &StorageIndex, events: Vec<u32>) -> Vec<u32> {
    let id = |at: u32| storage.events()[at as usize].id;
    events.into_iter().map(id).collect()
}

/// Gaps in the frame of a location, clipped to it.
fn relative(gaps: Vec<Gap>, location: &Location) -> Vec<Gap> {
    let (partition, byte) = location.origin;
    gaps.into_iter()
        .map(|gap| Gap {
            partitions: (
                (gap.partitions.0 - partition).max(0),
                (gap.partitions.1 - partition).min(location.partitions),
            ),
            bytes: (
                (gap.bytes.0 - byte).max(0),
                (gap.bytes.1 - byte).min(location.bytes),
            ),
        })
        .filter(|gap| gap.partitions.0 < gap.partitions.1 && gap.bytes.0 < gap.bytes.1)
        .collect()
}

impl FunctionIndex {
    /// Whether the first touch of a location overwrites all of it, in every iteration anew.
    pub(super) fn overwrites_all_first(&self, location: u32) -> bool {
        self.first_touch[location as usize].is_some_and(|touch| {
            let (storage, position) = self.at(touch);
            let event = &storage.events()[position as usize];
            let extent = storage.extent(event);
            extent.varies.is_none()
                && event.effect == Effect::WRITE
                && self.flow.segments[event.segment as usize].unconditional
                && storage.is_everything(extent.all)
        })
    }

    /// The innermost loop around an instruction that touches memory.
    pub(super) fn last_loop(&self, order: u32) -> Option<LoopId> {
        let touch = self.touches.get(self.touches_of(order).start)?;
        self.flow.segments[touch.segment as usize].innermost
    }

    /// Whether two locations are one by `must_alias`.
    pub(super) fn are_partners(&self, a: usize, b: usize) -> bool {
        self.partners[a] == self.partners[b]
    }
}

impl Touch {
    /// Whether it reads, and must find its bytes defined.
    pub fn needs_defined(&self) -> bool {
        self.effect.reads == Reads::Checked
    }

    /// Whether it overwrites all of its bytes for certain.
    pub fn defines(&self) -> bool {
        self.effect == Effect::WRITE
    }
}
