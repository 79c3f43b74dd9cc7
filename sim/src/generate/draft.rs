//! An instruction being put together: operands by role, words, attributes; and its insertion.

use bir_dialect::bir::attrs::{Accumulate, number};
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{OpCode, OpDef};
use bir_dialect::bir::program::{names, op_name};
use bir_dialect::bir::space::{Engine, Space};
use bir_dialect::ir::{Annot, Attr, NewOp, NewOperand, Op, Str, Type, Value};
use smallvec::SmallVec;

use super::Generator;
use super::features::Feature;
use super::part::Part;

/// A part of a location, as an operand.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) location: usize,
    pub(super) value: Value,
    pub(super) access: Part,
    /// The loop index `access` follows.
    pub(super) index: Option<Value>,
    /// The whole of its location.
    pub(super) whole: bool,
    pub(super) space: Space,
    pub(super) dtype: DType,
    pub(super) parts: u64,
    pub(super) elems: u64,
    /// Bytes it lies in: locations that share bytes share the number.
    pub(super) storage: u32,
    /// It is the first write of its location, whole.
    pub(super) defines: bool,
}

/// An instruction to be.
pub(super) struct Draft {
    pub(super) code: OpCode,
    pub(super) def: &'static OpDef,
    pub(super) engine: Option<Engine>,
    tiles: SmallVec<[(u8, Tile); 4]>,
    values: SmallVec<[(u8, Value); 2]>,
    attrs: SmallVec<[(Str, Attr); 8]>,
    result: Option<Type>,
    /// The loop in whose first iteration it overwrites.
    first: Option<Value>,
}

impl Draft {
    pub(super) fn new(code: OpCode) -> Draft {
        Draft {
            code,
            def: code.def(),
            engine: None,
            tiles: SmallVec::new(),
            values: SmallVec::new(),
            attrs: SmallVec::new(),
            result: None,
            first: None,
        }
    }

    /// The number of a role.
    pub(super) fn role(&self, name: &str) -> u8 {
        let role = self.def.find_role(name);
        debug_assert!(role.is_some(), "{} has no role {name}", self.def.name);
        role.map_or(0, |role| role as u8)
    }

    /// Tiles in roles that are read so far.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Tile> {
        self.tiles
            .iter()
            .filter(|(role, _)| !self.def.operands[usize::from(*role)].writes())
            .map(|(_, tile)| tile)
    }

    /// Tiles so far.
    pub(super) fn tiles(&self) -> impl Iterator<Item = &Tile> {
        self.tiles.iter().map(|(_, tile)| tile)
    }

    pub(super) fn tile(&mut self, role: &str, tile: Tile) {
        self.put(self.role(role), tile);
    }

    /// As [`tile`](Self::tile), by the number of the role.
    #[inline]
    pub(super) fn put(&mut self, role: u8, tile: Tile) {
        self.tiles.push((role, tile));
    }

    pub(super) fn value(&mut self, role: &str, value: Value) {
        let role = self.role(role);
        self.values.push((role, value));
    }

    pub(super) fn attr(&mut self, name: Str, attr: Attr) {
        self.attrs.push((name, attr));
    }

    /// It overwrites in the first iteration of a loop and adds in the others.
    pub(super) fn unless_first(&mut self, index: Value) {
        self.first = Some(index);
    }

    /// It defines a register.
    pub(super) fn result(&mut self, ty: Type) {
        self.result = Some(ty);
    }
}

impl Generator<'_> {
    /// An enum attribute.
    pub(super) fn word(&mut self, draft: &mut Draft, name: &'static str, word: &'static str) {
        let name = self.words.text(&mut self.ir.ctx, name);
        let word = self.words.value(&mut self.ir.ctx, word);
        draft.attr(name, word);
    }

    /// A flag.
    pub(super) fn flag(&mut self, draft: &mut Draft, name: &'static str) {
        let name = self.words.text(&mut self.ir.ctx, name);
        draft.attr(name, self.ir.ctx.unit());
    }

    /// An integer attribute, or a literal register operand.
    pub(super) fn int(&mut self, draft: &mut Draft, name: &'static str, value: i64) {
        let name = self.words.text(&mut self.ir.ctx, name);
        draft.attr(name, self.words.int(&mut self.ir.ctx, value));
    }

    /// A list of integers.
    pub(super) fn ints(&mut self, draft: &mut Draft, name: &'static str, values: &[i64]) {
        let name = self.words.text(&mut self.ir.ctx, name);
        draft.attr(name, self.int_list(values));
    }

    pub(super) fn int_list(&mut self, values: &[i64]) -> Attr {
        let attrs: SmallVec<[Attr; 8]> = values
            .iter()
            .map(|&value| self.words.int(&mut self.ir.ctx, value))
            .collect();
        self.ir.ctx.array(&attrs)
    }

    /// A list of lists: `pattern`, `groups`, `pairs`.
    pub(super) fn lists(&mut self, draft: &mut Draft, name: &'static str, lists: &[&[i64]]) {
        let attrs: SmallVec<[Attr; 4]> = lists.iter().map(|list| self.int_list(list)).collect();
        let name = self.words.text(&mut self.ir.ctx, name);
        draft.attr(name, self.ir.ctx.array(&attrs));
    }

    /// A literal operand.
    pub(super) fn literal(
        &mut self,
        draft: &mut Draft,
        role: &'static str,
        dtype: DType,
        bits: u64,
    ) {
        let name = self.words.text(&mut self.ir.ctx, role);
        draft.attr(name, number(&mut self.ir.ctx, dtype, bits));
    }

    /// Lets an engine other than the default execute it.
    pub(super) fn on(&mut self, draft: &mut Draft, engine: Engine) {
        draft.engine = Some(engine);
        let word = self.words.value(&mut self.ir.ctx, engine.name());
        draft.attr(names::ENGINE, word);
        self.counts.feature(Feature::Engine);
    }

    /// Inserts the instruction; what it defines can be read from now on.
    pub(super) fn emit(&mut self, draft: &mut Draft) -> Op {
        let mut indices: SmallVec<[Value; 4]> = SmallVec::new();
        let mut operands = std::mem::take(&mut self.operands);
        operands.clear();
        let order = in_order_of_roles(&draft.tiles);
        for (role, tile) in order.iter().map(|&at| &draft.tiles[usize::from(at)]) {
            self.counts.dtype(tile.dtype);
            let annot = if tile.whole {
                Annot::UNIT
            } else {
                let index = tile.index.map_or(0, |index| number_of(&mut indices, index));
                tile.access.intern(&mut self.ir.ctx, index)
            };
            operands.push(NewOperand {
                value: tile.value,
                role: *role,
                annot,
            });
        }
        if let Some(first) = draft.first {
            let number = number_of(&mut indices, first);
            let accumulate = Accumulate::UnlessFirst(number).intern(&mut self.ir.ctx);
            if let Some(accumulate) = accumulate {
                draft.attr(names::ACCUMULATE, accumulate);
            }
        }
        for &(role, value) in &draft.values {
            operands.push(NewOperand {
                value,
                role,
                annot: Annot::UNIT,
            });
        }
        if !draft.values.is_empty() {
            operands.sort_by_key(|operand| operand.role);
        }
        for &value in &indices {
            operands.push(NewOperand {
                value,
                role: draft.def.indices_role() as u8,
                annot: Annot::UNIT,
            });
        }
        self.synchronise(draft);
        let dict = self.ir.ctx.dict(&draft.attrs);
        let op = self.ir.insert(
            self.at,
            NewOp {
                operands: &operands,
                results: draft.result.as_slice(),
                dict,
                ..NewOp::new(op_name(draft.code))
            },
        );
        self.operands = operands;
        self.counts.op(draft.code);
        self.made += 1;
        self.annotate(op, indices.len());
        for (_, tile) in order.iter().map(|&at| &draft.tiles[usize::from(at)]) {
            if tile.defines {
                self.publish(tile.location);
            }
        }
        op
    }
}

/// Where tiles stand, in order of their roles, without moving any: they are large. Those of one role stay as
/// they are.
fn in_order_of_roles(tiles: &[(u8, Tile)]) -> SmallVec<[u8; 8]> {
    let mut order = SmallVec::from_buf([0, 1, 2, 3, 4, 5, 6, 7]);
    match tiles.len() {
        few @ ..=8 => order.truncate(few),
        many => order.extend(8..many as u8),
    }
    let role = |at: u8| tiles[usize::from(at)].0;
    for end in 1..order.len() {
        let mut at = end;
        while at > 0 && role(order[at - 1]) > role(order[at]) {
            order.swap(at - 1, at);
            at -= 1;
        }
    }
    order
}

/// The number of a loop index among those of an instruction: they are numbered by the first operand that
/// follows them.
fn number_of(indices: &mut SmallVec<[Value; 4]>, index: Value) -> u8 {
    let known = indices.iter().position(|&value| value == index);
    known.unwrap_or_else(|| {
        indices.push(index);
        indices.len() - 1
    }) as u8
}
