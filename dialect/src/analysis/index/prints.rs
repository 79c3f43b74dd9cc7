//! Footprints of accesses, each made once for all locations of a type.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::event::{Extent, Move};
use super::flow::LoopId;
use super::walk::{LoopIndex, Touch, mem_of};
use crate::analysis::access::{Footprint, LoopRange, footprint, footprint_first, footprint_over};
use crate::bir::access::{Access, Target};
use crate::bir::ops::OpCode;
use crate::bir::types::MemType;
use crate::ir::{Annot, Ir, Type, Value};

type Fixed = foldhash::fast::FixedState;

/// A way to access locations of a type, in the frame of the location; footprints and partial ones
/// are numbers in the lists of [`Prints`].
#[derive(Clone, Copy)]
pub(super) struct Print {
    pub(super) extent: Extent,
    /// Whether it is all of the location in every iteration; how exactly, its footprint says.
    pub(super) whole: bool,
}

#[derive(PartialEq, Eq, Hash)]
struct Indexed {
    ty: Type,
    annot: Annot,
    indices: SmallVec<[Value; 4]>,
}

pub(super) struct Prints<'a> {
    ir: &'a Ir,
    index_of: &'a HashMap<Value, LoopIndex>,
    plain: HashMap<(Type, Option<Annot>), u32, Fixed>,
    indexed: HashMap<Indexed, u32, Fixed>,
    last: Option<((Type, Option<Annot>), u32)>,
    pub(super) footprints: Vec<Footprint>,
    pub(super) partial: Vec<(LoopId, u32)>,
    pub(super) moves: Vec<Move>,
    pub(super) all: Vec<Print>,
}

impl<'a> Prints<'a> {
    pub(super) fn new(ir: &'a Ir, index_of: &'a HashMap<Value, LoopIndex>) -> Prints<'a> {
        Prints {
            ir,
            index_of,
            plain: HashMap::default(),
            indexed: HashMap::default(),
            last: None,
            footprints: Vec::new(),
            partial: Vec::new(),
            moves: Vec::new(),
            all: Vec::new(),
        }
    }

    /// The number of a touch's print in `all`.
    pub(super) fn of(&mut self, touch: &Touch, value: Value) -> u32 {
        let annot = self.ir.operand(touch.operand).annot;
        let ty = self.ir.value_type(value);
        let key = (ty, (!touch.dynamic).then_some(annot));
        if let Some((last, print)) = self.last
            && last == key
        {
            return print;
        }
        if let Some(&print) = self.plain.get(&key) {
            self.last = Some((key, print));
            return print;
        }
        let access = key.1.and_then(|annot| {
            let mem = MemType::get(&self.ir.ctx, ty)?;
            Some(Access::resolve(&self.ir.ctx, &mem, annot))
        });
        let access = match access {
            Some(access) if !access.terms.is_empty() => access,
            plain => {
                let whole = self.whole(value);
                let print = plain.and_then(|access| footprint(&access));
                let print = print.unwrap_or_else(|| whole.clone().hull_only());
                let made = self.add(&whole, print);
                self.plain.insert(key, made);
                return made;
            }
        };
        let role =
            OpCode::of(self.ir, touch.op).map_or(usize::MAX, |code| code.def().indices_role());
        let operands = self.ir.operands(touch.op).iter();
        let key = Indexed {
            ty,
            annot,
            indices: operands
                .filter(|operand| usize::from(operand.role) == role)
                .map(|operand| operand.value)
                .collect(),
        };
        if let Some(&print) = self.indexed.get(&key) {
            return print;
        }
        let made = self.make(&key, &access, self.whole(value));
        self.indexed.insert(key, made);
        made
    }

    /// All bytes of a location.
    fn whole(&self, value: Value) -> Footprint {
        let (partitions, bytes) = size_of_location(self.ir, value);
        Footprint::block(partitions, bytes)
    }

    fn footprint(&mut self, print: Footprint) -> u32 {
        self.footprints.push(print);
        (self.footprints.len() - 1) as u32
    }

    /// A print that no index moves.
    fn add(&mut self, whole: &Footprint, print: Footprint) -> u32 {
        let covers = match print.is_exact() {
            true => print.covers(whole) && whole.covers(&print),
            false => print.hull_covers(whole),
        };
        let footprint = self.footprint(print);
        self.all.push(Print {
            extent: Extent::fixed(footprint),
            whole: covers && !whole.is_empty(),
        });
        (self.all.len() - 1) as u32
    }

    fn make(&mut self, key: &Indexed, access: &Access, whole: Footprint) -> u32 {
        let anywhere = |prints: &mut Prints<'_>| prints.add(&whole, whole.clone().hull_only());
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
                _ => return anywhere(self),
            }
            ranges.push(range.unwrap_or(LoopRange {
                first: 0,
                step: 1,
                trips: Some(1),
            }));
        }
        // Loops are numbered outside in.
        moving.sort_unstable();
        let first = footprint_first(access, &ranges);
        let all = footprint_over(access, &whole, &ranges);
        let (Some(first), Some(all)) = (first, all) else {
            return anywhere(self);
        };
        let (first, all) = (self.footprint(first), self.footprint(all));
        let from = self.partial.len() as u32;
        let mut inner = ranges.clone();
        for pair in moving.windows(2) {
            if let [(_, outer), (id, _)] = *pair {
                inner[usize::from(outer)].trips = Some(1);
                let print = footprint_over(access, &whole, &inner);
                let number = self.footprint(print.unwrap_or_else(|| whole.clone().hull_only()));
                self.partial.push((id, number));
            }
        }
        let from_move = self.moves.len() as u32;
        for &(id, at) in &moving {
            let mut moved = Move {
                id,
                partition: 0,
                byte: 0,
            };
            for term in access.terms.iter().filter(|term| term.index == at) {
                let size = i64::from(access.dtype.size_bytes());
                match term.target {
                    Target::Partition => moved.partition = term.coef,
                    Target::Offset => moved.byte = term.coef.saturating_mul(size),
                }
            }
            self.moves.push(moved);
        }
        self.all.push(Print {
            extent: Extent {
                first,
                all,
                varies: moving.first().map(|moved| moved.0),
                partial: (from, self.partial.len() as u32),
                moves: (from_move, self.moves.len() as u32),
            },
            whole: false,
        });
        (self.all.len() - 1) as u32
    }
}

/// Partitions of a location and bytes in each.
pub(super) fn size_of_location(ir: &Ir, value: Value) -> (i64, i64) {
    let limit = |value: Option<u64>| value.and_then(|v| i64::try_from(v).ok()).unwrap_or(1 << 61);
    let mem = mem_of(ir, value);
    (
        limit(mem.map(|mem| mem.partitions())),
        limit(mem.and_then(|mem| mem.free_bytes())),
    )
}
