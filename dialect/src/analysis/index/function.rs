//! The index of a function: locations grouped into storages, accesses turned into events.
//!
//! [`Frames::Locations`] keeps locations apart (must-alias partners aside): what is asked about
//! definedness and values. [`Frames::Addresses`] puts placed locations that share addresses into
//! one storage, so that what conflicts only by its placement conflicts.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::atoms::Gap;
use super::flow::{Flow, LoopId};
use super::storage::{Effect, Event, Initial, Reads, Storage, StorageIndex};
use super::tree::Origin;
use super::walk::{LoopIndex, Touch, Walked, mem_of, walk};
use crate::analysis::access::{Footprint, LoopRange, footprint, footprint_first, footprint_over};
use crate::bir::access::Access;
use crate::bir::attrs::Placement;
use crate::bir::ops::OpCode;
use crate::bir::program::{names, symbol_name};
use crate::bir::space::{PSUM_BANK_BYTES, Space};
use crate::ir::{Annot, AttrView, Ir, Op, Operand, Value};

/// What decides whether two locations share bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frames {
    /// The program's names: only must-alias partners do.
    Locations,
    /// Placement, too.
    Addresses,
}

/// A location and its bytes.
#[derive(Clone, Debug)]
pub struct Location {
    /// Its `alloc`.
    pub op: Op,
    /// The value.
    pub value: Value,
    /// Where it lives.
    pub space: Space,
    /// Partitions; 1 in device memory.
    pub partitions: i64,
    /// Bytes in each of them.
    pub bytes: i64,
    /// First partition and byte, where placed.
    pub place: Option<(i64, i64)>,
    /// The storage its bytes are in.
    pub storage: u32,
    /// Where its first byte is in the frame of the storage.
    pub(super) origin: (i64, i64),
    initial: Initial,
    output: bool,
}

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
    storages: Vec<StorageIndex>,
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
        let Walked {
            flow,
            allocs,
            touches,
            index_of,
            loop_orders,
            orders,
        } = walk(ir, func);
        let mut locations = locate(ir, &allocs);
        let (wholes, partners) = group(ir, &mut locations, frames);
        let mut storages: Vec<Storage> = wholes
            .into_iter()
            .map(|whole| Storage {
                whole,
                initial: Initial::Undefined,
                footprints: Vec::new(),
                events: Vec::new(),
                partial: Vec::new(),
                to_end: false,
            })
            .collect();
        for location in &locations {
            let storage = &mut storages[location.storage as usize];
            if location.initial == Initial::Outside {
                storage.initial = Initial::Outside;
            }
            storage.to_end |= location.output;
        }
        let mut prints = Prints {
            ir,
            index_of: &index_of,
            known: HashMap::new(),
        };
        let mut positions = Vec::with_capacity(touches.len());
        let mut first_touch = vec![None; locations.len()];
        for (at, touch) in (0u32..).zip(&touches) {
            let location = &locations[touch.location as usize];
            let storage = &mut storages[location.storage as usize];
            let print = prints.of(touch, location, storage);
            positions.push(storage.events.len() as u32);
            first_touch[touch.location as usize].get_or_insert(at);
            storage.events.push(Event {
                id: at,
                effect: touch.effect,
                segment: touch.segment,
                first: print.first,
                all: print.all,
                varies: print.varies,
                partial: print.partial,
            });
        }
        let storages = storages
            .into_iter()
            .map(|storage| StorageIndex::build(storage, &flow))
            .collect();
        FunctionIndex {
            locations,
            touches,
            storages,
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
    pub fn storage_of(&self, location: u32) -> &StorageIndex {
        &self.storages[self.locations[location as usize].storage as usize]
    }

    /// The storages: groups of locations that share bytes.
    pub fn storages(&self) -> &[StorageIndex] {
        &self.storages
    }

    fn at(&self, touch: u32) -> (&StorageIndex, u32) {
        let location = self.touches[touch as usize].location;
        (self.storage_of(location), self.positions[touch as usize])
    }

    /// The writes that may be the last to some byte of a read, as touches, and what else reaches it.
    pub fn reaching(&self, read: u32) -> (Vec<u32>, Origin) {
        let (storage, position) = self.at(read);
        let found = storage.reaching(position);
        (touches_in(storage, found.events), found.origin)
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
        if !std::ptr::eq(a, b) || !std::ptr::eq(a, c) {
            return false;
        }
        a.clobbered_between(from, to, a.events()[of as usize].all)
    }

    /// The reads each write of a storage reaches, as touches. Building it costs one pass over the
    /// storage; ask for it once for many writes of one storage.
    pub fn uses(&self, write: u32) -> Vec<u32> {
        let (storage, position) = self.at(write);
        touches_in(storage, storage.uses().of(position))
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
        for storage in &self.storages {
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
            let storage = &self.storages[location.storage as usize];
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
        let storages: usize = self.storages.iter().map(StorageIndex::heap_bytes).sum();
        storages
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

fn locate(ir: &Ir, allocs: &[(Op, Value)]) -> Vec<Location> {
    let limit = |value: Option<u64>| value.and_then(|v| i64::try_from(v).ok()).unwrap_or(1 << 61);
    allocs
        .iter()
        .map(|&(op, value)| {
            let mem = mem_of(ir, value);
            let word = |name| match ir.ctx.attr(ir.ctx.dict_get(ir.dict(op), name)?) {
                AttrView::Str(text) => Some(ir.ctx.text(text)),
                _ => None,
            };
            let kind = word(names::KIND).unwrap_or("internal");
            let has = |name| ir.attr(op, name).is_some();
            let shared = ir
                .attr(op, "space")
                .is_some_and(|attr| ir.ctx.attr_str(attr) == Some("shared"));
            let outside = matches!(kind, "input" | "inout" | "const")
                || has("written_by_core")
                || has("const_sub_tensor")
                || shared;
            let place = ir
                .ctx
                .dict_get(ir.dict(op), names::AT)
                .and_then(|attr| Placement::get(&ir.ctx, attr));
            Location {
                op,
                value,
                space: mem.map_or(Space::Dram, |mem| mem.space),
                partitions: limit(mem.map(|mem| mem.partitions())),
                bytes: limit(mem.and_then(|mem| mem.free_bytes())),
                place: place.map(|place| match place {
                    Placement::Bytes { partition, byte } => {
                        (i64::from(partition), byte.min(1 << 60) as i64)
                    }
                    Placement::Bank { partition, bank } => (
                        i64::from(partition),
                        i64::from(bank) * PSUM_BANK_BYTES as i64,
                    ),
                    Placement::Address(address) => (0, address.min(1 << 60) as i64),
                }),
                storage: 0,
                origin: (0, 0),
                initial: match outside {
                    true => Initial::Outside,
                    false => Initial::Undefined,
                },
                output: kind == "output",
            }
        })
        .collect()
}

/// Numbers the storages of locations: the bytes of each storage, and per location the first that
/// is the same by `must_alias`.
fn group(ir: &Ir, locations: &mut [Location], frames: Frames) -> (Vec<Footprint>, Vec<u32>) {
    let mut leader: Vec<u32> = (0..locations.len() as u32).collect();
    fn find(leader: &mut [u32], mut at: u32) -> u32 {
        while leader[at as usize] != at {
            leader[at as usize] = leader[leader[at as usize] as usize];
            at = leader[at as usize];
        }
        at
    }
    fn unite(leader: &mut [u32], a: u32, b: u32) {
        let (a, b) = (find(leader, a), find(leader, b));
        leader[a.max(b) as usize] = a.min(b);
    }
    let mut by_name = HashMap::new();
    for (at, location) in (0u32..).zip(locations.iter()) {
        if let Some(name) = symbol_name(ir, location.op) {
            by_name.insert(name, at);
        }
    }
    for at in 0..locations.len() as u32 {
        let op = locations[at as usize].op;
        if let Some(AttrView::Symbol(name)) = ir.attr(op, "must_alias").map(|a| ir.ctx.attr(a))
            && let Some(&partner) = by_name.get(&name)
            && OpCode::of(ir, op) == Some(OpCode::Alloc)
        {
            unite(&mut leader, at, partner);
        }
    }
    let partners: Vec<u32> = (0..locations.len() as u32)
        .map(|at| find(&mut leader, at))
        .collect();
    let mut placed: Vec<u32> = Vec::new();
    if frames == Frames::Addresses {
        placed = (0..locations.len() as u32)
            .filter(|&at| locations[at as usize].place.is_some())
            .collect();
        let key = |at: u32| {
            let location = &locations[at as usize];
            let byte = location.place.map_or(0, |place| place.1);
            (location.space, byte, byte + location.bytes, at)
        };
        placed.sort_unstable_by_key(|&at| key(at));
        let mut reach: Option<(Space, i64, u32)> = None;
        for &at in &placed {
            let (space, from, to, _) = key(at);
            match &mut reach {
                Some((there, end, first)) if *there == space && from < *end => {
                    unite(&mut leader, *first, at);
                    *end = (*end).max(to);
                }
                _ => reach = Some((space, to, at)),
            }
        }
    }
    let mut number: Vec<u32> = vec![u32::MAX; locations.len()];
    let mut ends: Vec<(i64, i64, i64, i64)> = Vec::new();
    for at in 0..locations.len() as u32 {
        let head = find(&mut leader, at) as usize;
        if number[head] == u32::MAX {
            number[head] = ends.len() as u32;
            ends.push((i64::MAX, 0, i64::MAX, 0));
        }
        let location = &mut locations[at as usize];
        location.storage = number[head];
        // Unplaced partners of a placed location start where it does; alone they start at zero.
        location.origin = match (frames, location.place) {
            (Frames::Addresses, Some(place)) => place,
            _ => (0, 0),
        };
    }
    if !placed.is_empty() {
        let mut base: Vec<Option<(i64, i64)>> = vec![None; ends.len()];
        for location in locations.iter().filter(|location| location.place.is_some()) {
            base[location.storage as usize].get_or_insert(location.origin);
        }
        for location in locations
            .iter_mut()
            .filter(|location| location.place.is_none())
        {
            if let Some(origin) = base[location.storage as usize] {
                location.origin = origin;
            }
        }
    }
    for location in locations.iter() {
        let end = &mut ends[location.storage as usize];
        let (partition, byte) = location.origin;
        end.0 = end.0.min(partition);
        end.1 = end.1.max(partition + location.partitions);
        end.2 = end.2.min(byte);
        end.3 = end.3.max(byte + location.bytes);
    }
    let wholes = ends
        .iter()
        .map(|&(p0, p1, b0, b1)| Footprint::block(p1 - p0, b1 - b0).placed(p0, b0))
        .collect();
    (wholes, partners)
}

#[derive(Clone, Copy)]
struct Print {
    first: u32,
    all: u32,
    varies: Option<LoopId>,
    partial: (u32, u32),
}

#[derive(PartialEq, Eq, Hash)]
struct PrintKey {
    location: u32,
    /// `None` for "anywhere in the location".
    annot: Option<Annot>,
    indices: SmallVec<[Value; 4]>,
}

/// Footprints by access, each made once.
struct Prints<'a> {
    ir: &'a Ir,
    index_of: &'a HashMap<Value, LoopIndex>,
    known: HashMap<PrintKey, Print>,
}

impl Prints<'_> {
    fn of(&mut self, touch: &Touch, location: &Location, storage: &mut Storage) -> Print {
        let annot = self.ir.operand(touch.operand).annot;
        let mut key = PrintKey {
            location: touch.location,
            annot: (!touch.dynamic).then_some(annot),
            indices: SmallVec::new(),
        };
        if !touch.dynamic && annot != Annot::UNIT {
            let role =
                OpCode::of(self.ir, touch.op).map_or(usize::MAX, |code| code.def().indices_role());
            let operands = self.ir.operands(touch.op).iter();
            key.indices = operands
                .filter(|operand| usize::from(operand.role) == role)
                .map(|operand| operand.value)
                .collect();
        }
        if let Some(&print) = self.known.get(&key) {
            return print;
        }
        let print = self.make(&key, location, storage);
        self.known.insert(key, print);
        print
    }

    fn make(&self, key: &PrintKey, location: &Location, storage: &mut Storage) -> Print {
        let (partition, byte) = location.origin;
        let whole = Footprint::block(location.partitions, location.bytes);
        let mut add = |print: Footprint| {
            storage.footprints.push(match (partition, byte) {
                (0, 0) => print,
                _ => print.placed(partition, byte),
            });
            (storage.footprints.len() - 1) as u32
        };
        let anywhere = |add: &mut dyn FnMut(Footprint) -> u32| {
            let all = add(whole.clone().hull_only());
            Print {
                first: all,
                all,
                varies: None,
                partial: (0, 0),
            }
        };
        let access = key.annot.and_then(|annot| {
            let mem = mem_of(self.ir, location.value)?;
            Some(Access::resolve(&self.ir.ctx, &mem, annot))
        });
        let Some(access) = access else {
            return anywhere(&mut add);
        };
        if access.terms.is_empty() {
            return match footprint(&access) {
                Some(print) => {
                    let all = add(print);
                    Print {
                        first: all,
                        all,
                        varies: None,
                        partial: (0, 0),
                    }
                }
                None => anywhere(&mut add),
            };
        }
        let mut ranges: SmallVec<[LoopRange; 4]> = SmallVec::new();
        let mut moving: SmallVec<[(LoopId, u8); 4]> = SmallVec::new();
        for (at, value) in (0u8..).zip(&key.indices) {
            let found = self.index_of.get(value);
            let range = found.and_then(|index| index.range);
            let used = access.terms.iter().any(|term| term.index == at);
            match (used, found, range) {
                (false, ..) => {}
                (true, Some(index), Some(_)) => moving.push((index.id, at)),
                // An index whose first value nobody knows.
                _ => return anywhere(&mut add),
            }
            ranges.push(range.unwrap_or(LoopRange {
                first: 0,
                step: 1,
                trips: Some(1),
            }));
        }
        // Loops are numbered outside in.
        moving.sort_unstable();
        let first = footprint_first(&access, &ranges);
        let all = footprint_over(&access, &whole, &ranges);
        let (Some(first), Some(all)) = (first, all) else {
            return anywhere(&mut add);
        };
        let (first, all) = (add(first), add(all));
        let from = storage.partial.len() as u32;
        let mut inner = ranges.clone();
        for pair in moving.windows(2) {
            if let [(_, outer), (id, _)] = *pair {
                inner[usize::from(outer)].trips = Some(1);
                let print = footprint_over(&access, &whole, &inner);
                let print = print.unwrap_or_else(|| whole.clone().hull_only());
                storage.footprints.push(print.placed(partition, byte));
                let number = (storage.footprints.len() - 1) as u32;
                storage.partial.push((id, number));
            }
        }
        Print {
            first,
            all,
            varies: moving.first().map(|moved| moved.0),
            partial: (from, storage.partial.len() as u32),
        }
    }
}

impl Location {
    /// What its bytes are where the function starts.
    pub fn initial(&self) -> Initial {
        self.initial
    }

    /// Whether it must be fully written where the function ends.
    pub fn is_output(&self) -> bool {
        self.output
    }
}

impl FunctionIndex {
    /// Whether the first touch of a location overwrites all of it, in every iteration anew.
    pub(super) fn overwrites_all_first(&self, location: u32) -> bool {
        self.first_touch[location as usize].is_some_and(|touch| {
            let (storage, position) = self.at(touch);
            let event = storage.events()[position as usize];
            event.varies.is_none()
                && event.effect == Effect::WRITE
                && self.flow.segments[event.segment as usize].unconditional
                && storage.is_everything(event.all)
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
