//! The locations of a function, and which of them share bytes.

use hashbrown::HashMap;

use super::atoms::Rect;
use super::event::Initial;
use super::walk::mem_of;
use crate::analysis::outside::{is_open, remote_pairs};
use crate::bir::attrs::Placement;
use crate::bir::ops::OpCode;
use crate::bir::program::{names, symbol_name};
use crate::bir::space::Space;
use crate::ir::{AttrView, Dict, Ir, Op, Type, Value};

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
    pub(in crate::analysis) origin: (i64, i64),
    pub(in crate::analysis) initial: Initial,
    pub(in crate::analysis) output: bool,
    /// Whether somebody outside looks at it when the function has ended.
    pub(in crate::analysis) visible: bool,
    /// Whether it names a partner in `must_alias`.
    aliased: bool,
    /// Whether its bytes are those of another core.
    remote: bool,
}

impl Location {
    /// What its bytes are where the function starts.
    pub fn initial(&self) -> Initial {
        self.initial
    }

    /// Whether somebody outside sees what it holds where the function ends.
    pub fn is_visible(&self) -> bool {
        self.visible
    }

    /// Whether it must be fully written where the function ends.
    pub fn is_output(&self) -> bool {
        self.output
    }
}

pub(in crate::analysis) fn locate(ir: &Ir, allocs: &[(Op, Value)]) -> Vec<Location> {
    let mut known: Option<((Dict, Type), Location)> = None;
    let mut locations = Vec::with_capacity(allocs.len());
    for &(op, value) in allocs {
        // Neighbours mostly are of one type and kind.
        let key = (ir.dict(op), ir.value_type(value));
        let location = match &known {
            Some((of, like)) if *of == key => Location {
                op,
                value,
                ..like.clone()
            },
            _ => location(ir, op, value),
        };
        known = Some((key, location.clone()));
        locations.push(location);
    }
    locations
}

fn location(ir: &Ir, op: Op, value: Value) -> Location {
    let limit = |value: Option<u64>| value.and_then(|v| i64::try_from(v).ok()).unwrap_or(1 << 61);
    let mem = mem_of(ir, value);
    let word = |name| match ir.ctx.attr(ir.ctx.dict_get(ir.dict(op), name)?) {
        AttrView::Str(text) => Some(ir.ctx.text(text)),
        _ => None,
    };
    let kind = word(names::KIND).unwrap_or("internal");
    let has = |name| ir.attr(op, name).is_some();
    let outside =
        matches!(kind, "input" | "inout" | "const") || has("const_sub_tensor") || is_open(ir, op);
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
        place: place.map(|at| (i64::from(at.partition()), at.byte().min(1 << 60) as i64)),
        storage: 0,
        origin: (0, 0),
        initial: match outside {
            true => Initial::Outside,
            false => Initial::Undefined,
        },
        output: kind == "output",
        visible: matches!(kind, "output" | "inout" | "input"),
        aliased: has("must_alias"),
        remote: has("remote_target"),
    }
}

/// Numbers the storages of locations: the bytes of each storage, and per location the first that
/// is the same by `must_alias`, or is the same of another core.
pub(in crate::analysis) fn group(
    ir: &Ir,
    locations: &mut [Location],
    frames: Frames,
) -> (Vec<Rect>, Vec<u32>) {
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
    for at in 0..locations.len() as u32 {
        let op = locations[at as usize].op;
        if !locations[at as usize].aliased || OpCode::of(ir, op) != Some(OpCode::Alloc) {
            continue;
        }
        if by_name.is_empty() {
            let named = (0u32..).zip(locations.iter());
            by_name = named
                .filter_map(|(at, location)| Some((symbol_name(ir, location.op)?, at)))
                .collect();
        }
        if let Some(AttrView::Symbol(name)) = ir.attr(op, "must_alias").map(|a| ir.ctx.attr(a))
            && let Some(&partner) = by_name.get(&name)
        {
            unite(&mut leader, at, partner);
        }
    }
    let remote: Vec<u32> = (0..locations.len() as u32)
        .filter(|&at| locations[at as usize].remote)
        .collect();
    let allocs: Vec<Op> = remote.iter().map(|&at| locations[at as usize].op).collect();
    for (a, b) in remote_pairs(ir, &allocs) {
        unite(&mut leader, remote[a], remote[b]);
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
        .map(|&(p0, p1, b0, b1)| Rect::new((p0, p1), (b0, b1)))
        .collect();
    (wholes, partners)
}
