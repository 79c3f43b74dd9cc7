//! Footprints of accesses, each made once for all locations of a type.

use std::borrow::Cow;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::atoms::Rect;
use super::event::{Extent, Move};
use super::flow::LoopId;
use super::walk::{LoopIndex, Touch, mem_of};
use crate::analysis::access::{Footprint, LoopRange, footprint, footprint_first, footprint_over};
use crate::bir::access::{Access, Target};
use crate::bir::ops::OpCode;
use crate::bir::types::MemType;
use crate::ir::{Annot, Ir, Type, Value};

type Fixed = foldhash::fast::FixedState;

/// A way to access locations of a type, in the frame of the location; shapes and partial ones
/// are numbers in the lists of [`Prints`].
#[derive(Clone, Copy)]
pub(super) struct Print {
    pub(super) extent: Extent,
    /// Whether it is all of the location in every iteration; how exactly, its footprint says.
    pub(super) whole: bool,
}

/// The bytes of an access. Nearly all are one rectangle, which takes a seventh of the room.
pub(super) enum Shape {
    Rect(Rect),
    Other(Box<Footprint>),
}

impl Shape {
    pub(super) fn is_exact(&self) -> bool {
        match self {
            Shape::Rect(_) => true,
            Shape::Other(print) => print.is_exact(),
        }
    }

    /// The bytes where the location stands at some place.
    pub(super) fn placed(&self, at: (i64, i64)) -> Cow<'_, Footprint> {
        match self {
            Shape::Rect(rect) => Cow::Owned(rect.placed(at).footprint()),
            Shape::Other(print) if at == (0, 0) => Cow::Borrowed(print),
            Shape::Other(print) => Cow::Owned(print.placed(at.0, at.1)),
        }
    }

    /// The same in each partition, if it is all partitions of a storage.
    pub(super) fn band(&self, at: (i64, i64), whole: Rect) -> Option<(i64, i64)> {
        match self {
            Shape::Rect(rect) => rect.placed(at).band_of(whole),
            Shape::Other(_) => None,
        }
    }
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
    /// Per annotation, the type it was met with first, by its row, and from 1 the print of both:
    /// annotations are numbered where they stand, so who comes by in order finds in order.
    first: Vec<(u32, u32)>,
    /// The prints of what has no room there.
    plain: HashMap<(Type, Option<Annot>), u32, Fixed>,
    indexed: HashMap<Indexed, u32, Fixed>,
    last: Option<((Type, Option<Annot>), u32)>,
    pub(super) shapes: Vec<Shape>,
    pub(super) partial: Vec<(LoopId, u32)>,
    pub(super) moves: Vec<Move>,
    pub(super) all: Vec<Print>,
}

impl<'a> Prints<'a> {
    /// For about so many touches.
    pub(super) fn new(
        ir: &'a Ir,
        index_of: &'a HashMap<Value, LoopIndex>,
        touches: usize,
    ) -> Prints<'a> {
        // A function that has few of all annotations does not pay for the others'.
        let annots = ir.ctx.annot_count();
        Prints {
            ir,
            index_of,
            first: vec![(0, 0); if annots <= 4 * touches { annots } else { 0 }],
            plain: HashMap::default(),
            indexed: HashMap::default(),
            last: None,
            shapes: Vec::new(),
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
        if let Some(print) = self.known(key) {
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
                self.keep(key, made);
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

    fn known(&self, key: (Type, Option<Annot>)) -> Option<u32> {
        match key.1.and_then(|annot| self.first.get(annot.index())) {
            Some((_, 0)) => None,
            Some(&(ty, after)) if ty == key.0.index() as u32 => Some(after - 1),
            _ => self.plain.get(&key).copied(),
        }
    }

    fn keep(&mut self, key: (Type, Option<Annot>), print: u32) {
        match key.1.and_then(|annot| self.first.get_mut(annot.index())) {
            Some(free) if free.1 == 0 => *free = (key.0.index() as u32, print + 1),
            _ => {
                self.plain.insert(key, print);
            }
        }
    }

    /// All bytes of a location.
    fn whole(&self, value: Value) -> Footprint {
        let (partitions, bytes) = size_of_location(self.ir, value);
        Footprint::block(partitions, bytes)
    }

    fn shape(&mut self, print: Footprint) -> u32 {
        self.shapes.push(match Rect::exactly(&print) {
            Some(rect) => Shape::Rect(rect),
            None => Shape::Other(Box::new(print)),
        });
        (self.shapes.len() - 1) as u32
    }

    /// A print that no index moves.
    fn add(&mut self, whole: &Footprint, print: Footprint) -> u32 {
        let covers = match print.is_exact() {
            true => print.covers(whole) && whole.covers(&print),
            false => print.hull_covers(whole),
        };
        let shape = self.shape(print);
        self.all.push(Print {
            extent: Extent::fixed(shape),
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
        let (first, all) = (self.shape(first), self.shape(all));
        let from = self.partial.len() as u32;
        let mut inner = ranges.clone();
        for pair in moving.windows(2) {
            if let [(_, outer), (id, _)] = *pair {
                inner[usize::from(outer)].trips = Some(1);
                let print = footprint_over(access, &whole, &inner);
                let number = self.shape(print.unwrap_or_else(|| whole.clone().hull_only()));
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
