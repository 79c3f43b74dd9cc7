//! The walk: every operation once, structure always, the instruction itself only where no equal
//! one was found good before.

use super::super::ops::{OpCode, OpDef, Syntax};
use super::super::program::names;
use super::super::space::Target;
use super::super::view::OpView;
use super::defined::Slots;
use super::dominance::Dominators;
use super::facts::{FactCache, Facts};
use super::operands::ResolvedOps;
use super::overlaps::Homes;
use super::structure::Program;
use super::{Level, OpContext, VerifyOptions};
use crate::ir::{Attr, Block, Dict, Ir, Op, Region, Str, Value, Visit};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

pub(super) const NONE: u32 = u32::MAX;

/// A region being walked.
pub(super) struct Frame {
    /// The operation that owns the region; `None` for the file.
    pub(super) owner: Option<Op>,
    /// Its op.
    pub(super) code: Option<OpCode>,
    /// The region.
    pub(super) region: Option<Region>,
    /// The block being walked.
    pub(super) block: Option<Block>,
    /// The first operation of the function that is no location.
    pub(super) first_instruction: Option<Op>,
    /// Dominators, once somebody asked.
    pub(super) dominators: Option<Dominators>,
}

/// What is known of a value.
#[derive(Clone, Copy)]
pub(super) struct ValueState {
    /// The block it is defined in, once the walk has passed the definition.
    block: u32,
    /// Dictionary of a location: its placement and kind.
    dict: u32,
    /// Which entry of `homes` a location that shares bytes with others by name or address has.
    pub(super) home: u32,
}

pub(super) struct Verifier<'a> {
    pub(super) ir: &'a Ir,
    pub(super) options: VerifyOptions,
    pub(super) diags: &'a mut Diagnostics,
    pub(super) target: Target,
    pub(super) frames: Vec<Frame>,
    /// The block being walked in each region, `NONE` where the region is not open.
    pub(super) open: Vec<u32>,
    pub(super) program: Program,
    pub(super) values: Vec<ValueState>,
    pub(super) homes: Homes,
    /// Locations of the function whose memory is being followed.
    pub(super) slots: Slots,
    facts: FactCache,
    good: GoodKeys,
    good_forms: GoodKeys,
    /// Room for the facts of one instruction.
    fact_list: Vec<Option<Facts>>,
    pub(super) good_dicts: GoodDicts,
    pub(super) resolved: ResolvedOps,
}

impl<'a> Verifier<'a> {
    pub(super) fn new(
        ir: &'a Ir,
        options: VerifyOptions,
        diags: &'a mut Diagnostics,
    ) -> Verifier<'a> {
        let slots = ir.op_rows().next_power_of_two().min(SLOTS);
        Verifier {
            ir,
            options,
            diags,
            target: Target::Trn2,
            frames: Vec::new(),
            open: vec![NONE; ir.region_rows()],
            program: Program::default(),
            values: vec![
                ValueState {
                    block: NONE,
                    dict: NONE,
                    home: NONE,
                };
                ir.value_rows()
            ],
            homes: Homes::default(),
            slots: Slots::default(),
            facts: FactCache::new(slots),
            good: GoodKeys::new(slots),
            good_forms: GoodKeys::new(slots),
            fact_list: Vec::new(),
            good_dicts: GoodDicts::new(slots),
            resolved: ResolvedOps::new(),
        }
    }

    pub(super) fn run(&mut self) {
        self.push_frame(None);
        for visit in self.ir.walk() {
            match visit {
                Visit::Enter(op) => self.enter(op),
                Visit::Leave(op) => self.leave(op),
            }
        }
        if self.whole() {
            self.check_program();
        }
    }

    /// Whether instructions are checked in their places, not only by themselves.
    fn whole(&self) -> bool {
        self.options.level > Level::Instructions
    }

    fn push_frame(&mut self, owner: Option<Op>) {
        self.frames.push(Frame {
            owner,
            code: owner.and_then(|op| OpCode::of(self.ir, op)),
            region: None,
            block: None,
            first_instruction: None,
            dominators: None,
        });
    }

    fn enter(&mut self, op: Op) {
        let block = self.ir.block(op);
        if self.frames.last().is_some_and(|frame| frame.block != block) {
            self.enter_block(block);
        }
        let code = OpCode::of(self.ir, op);
        if code == Some(OpCode::Module) {
            self.enter_module(op);
        }
        if self.whole() {
            self.check_place(op, code);
            self.check_operand_definitions(op);
        }
        match code {
            Some(code) => self.check_op(op, code),
            None if !self.options.allow_unregistered => self.unregistered(op),
            None => {}
        }
        self.define_results(op, code);
        if self.ir.regions(op).is_empty() {
            return;
        }
        self.push_frame(Some(op));
        if !self.whole() {
            return;
        }
        // Other blocks are entered with their first operation.
        for &region in self.ir.regions(op) {
            for block in self.ir.blocks(region) {
                if self.ir.first_op(block).is_none() {
                    self.check_block(block);
                }
            }
        }
    }

    fn leave(&mut self, op: Op) {
        if let Some(region) = self.frames.pop().and_then(|frame| frame.region) {
            self.open[region.index()] = NONE;
        }
        if self.whole() && OpCode::of(self.ir, op) == Some(OpCode::Func) {
            self.leave_function(op);
        }
    }

    fn enter_block(&mut self, block: Option<Block>) {
        let Some(block) = block else { return };
        let region = self.ir.block_region(block);
        if let Some(frame) = self.frames.last_mut() {
            if frame.region != Some(region) {
                if let Some(old) = frame.region {
                    self.open[old.index()] = NONE;
                }
                frame.region = Some(region);
                frame.dominators = None;
            }
            frame.block = Some(block);
        }
        self.open[region.index()] = block.index() as u32;
        for arg in self.ir.args(block) {
            self.values[arg.index()].block = block.index() as u32;
        }
        if self.whole() {
            self.check_block(block);
        }
    }

    fn define_results(&mut self, op: Op, code: Option<OpCode>) {
        let Some(block) = self.ir.block(op) else {
            return;
        };
        for value in self.ir.results(op) {
            self.values[value.index()].block = block.index() as u32;
        }
        if code == Some(OpCode::Alloc)
            && let Some(value) = self.ir.result(op)
        {
            self.values[value.index()].dict = self.ir.dict(op).index() as u32;
            self.settle(op, value);
        }
    }

    /// Placement of the location `value`, if it was walked and is placed.
    pub(super) fn placement(&self, value: Value) -> Option<Attr> {
        self.location_attr(value, names::AT)
    }

    /// An attribute of the location `value`, if it was walked.
    pub(super) fn location_attr(&self, value: Value, name: Str) -> Option<Attr> {
        match self.values[value.index()].dict {
            NONE => None,
            dict => self.ir.ctx.dict_get(Dict(dict), name),
        }
    }

    fn check_operand_definitions(&mut self, op: Op) {
        let ir = self.ir;
        for (position, operand) in ir.operands(op).iter().enumerate() {
            let defined = self.values[operand.value.index()].block;
            if defined == NONE || !self.is_open(defined) {
                self.check_definition(op, position, operand.value, defined != NONE);
            }
        }
    }

    fn is_open(&self, block: u32) -> bool {
        // The innermost block is by far the most frequent, then any around it.
        let region = self.ir.block_region(Block(block));
        self.open[region.index()] == block
    }

    pub(super) fn error(
        &mut self,
        op: Op,
        part: Part,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let diagnostic = Diagnostic::error(Place::Op(op, part), message).maybe_help(help);
        self.diags.push(diagnostic);
    }

    fn check_op(&mut self, op: Op, code: OpCode) {
        let def = code.def();
        let key = self.key(op, code);
        if self.good.contains(&key.whole()) {
            self.check_overlaps(op, code, def);
            return;
        }
        let form = key.form();
        let is_known = self.good_forms.contains(&form);
        let before = self.diags.errors();
        let is_plain = self.check_instruction(op, code, def, is_known);
        if self.diags.errors() == before {
            self.good.insert(&key.whole());
            if is_plain && !is_known {
                self.good_forms.insert(&form);
            }
            self.check_overlaps(op, code, def);
        }
    }

    /// Everything [`check_instruction`](Self::check_instruction) looks at, as words: all but the
    /// accesses first.
    #[inline]
    fn key(&self, op: Op, code: OpCode) -> Key {
        let ir = self.ir;
        let mut key = Key::new();
        key.push(code as u32 | (self.target as u32) << 16);
        key.push(ir.dict(op).index() as u32);
        // Shape of the statement: results, regions, successors.
        key.push(ir.results(op).len() as u32);
        key.push(ir.regions(op).len() as u32);
        key.push(ir.successors(op).len() as u32);
        for result in ir.results(op) {
            key.push(ir.value_type(result).index() as u32);
        }
        let indices = code.def().indices_role();
        let operands = ir.operands(op);
        for (position, operand) in operands.iter().enumerate() {
            let role = usize::from(operand.role);
            key.push(role as u32);
            key.push(ir.value_type(operand.value).index() as u32);
            if role == indices {
                let first = operands
                    .iter()
                    .position(|other| other.value == operand.value);
                key.push(first.unwrap_or(position) as u32);
                match super::super::loops::loop_of(ir, operand.value) {
                    Some(around) => {
                        key.push(ir.dict(around).index() as u32);
                        key.push(ir.operands(around).iter().map(|o| 1 << (o.role & 3)).sum());
                    }
                    None => key.push(NONE),
                }
            } else {
                key.push(self.values[operand.value.index()].dict);
            }
        }
        key.end_form();
        for operand in operands {
            key.push(operand.annot.index() as u32);
        }
        key.end();
        key
    }

    /// Checks one instruction, and only its accesses where its form is known to be good; whether the
    /// form can be judged without the accesses.
    fn check_instruction(
        &mut self,
        op: Op,
        code: OpCode,
        def: &'static OpDef,
        has_good_form: bool,
    ) -> bool {
        let ir = self.ir;
        let mut facts = std::mem::take(&mut self.fact_list);
        facts.clear();
        for operand in ir.operands(op) {
            let ty = ir.value_type(operand.value);
            facts.push(self.facts.get(&ir.ctx, ty, operand.annot));
        }
        // An access that sees another dtype is part of the form.
        let is_plain = !facts.iter().flatten().any(|facts| facts.recast);
        let engine = def.engines.and_then(|engines| {
            OpView::new(ir, op)
                .engine_attr()
                .or_else(|| Some(engines.default_on(self.target)))
        });
        let skips = has_good_form && is_plain;
        if !skips {
            self.check_statement(op, code, def);
            self.check_dict(op, code, def);
        }
        let before = self.diags.errors();
        if skips || self.check_operands(op, code, engine, &facts) {
            self.check_shapes(op, code, &facts);
        }
        self.check_accesses(op, def, engine, &facts);
        if let Some(check) = def.check
            && (self.diags.errors() == before || def.syntax != Syntax::Instruction)
        {
            check(&mut OpContext {
                ir,
                op,
                def,
                target: self.target,
                engine,
                facts: &facts,
                diags: self.diags,
            });
        }
        self.fact_list = facts;
        is_plain
    }
}

const KEY_WORDS: usize = 40;

/// What decides whether an instruction by itself is good.
struct Key {
    words: [u32; KEY_WORDS],
    len: usize,
    hash: u64,
    /// Length and hash of the form: everything but the accesses.
    form: (usize, u64),
}

/// A key or the first part of one.
struct KeyPart<'a> {
    /// `None` where the key was too short to hold it.
    words: Option<&'a [u32]>,
    hash: u64,
}

impl Key {
    fn new() -> Key {
        Key {
            words: [0; KEY_WORDS],
            len: 0,
            hash: 0,
            form: (0, 0),
        }
    }

    #[inline]
    fn push(&mut self, word: u32) {
        if let Some(slot) = self.words.get_mut(self.len) {
            *slot = word;
        }
        self.len += 1;
    }

    fn end_form(&mut self) {
        self.form = (self.len, self.hash_of(0, self.len, 0x9e37_79b9_7f4a_7c15));
    }

    /// Ends the key.
    fn end(&mut self) {
        self.hash = self.hash_of(self.form.0, self.len, self.form.1);
    }

    fn hash_of(&self, from: usize, to: usize, seed: u64) -> u64 {
        let words = self.words.get(from..to).unwrap_or_default();
        let mut hash = seed;
        for pair in words.chunks(2) {
            let low = pair.first().copied().unwrap_or(0);
            let high = pair.get(1).copied().unwrap_or(0);
            let both = u64::from(low) | u64::from(high) << 32;
            hash = (hash ^ both).wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash ^= hash >> 32;
        }
        hash
    }

    fn whole(&self) -> KeyPart<'_> {
        KeyPart {
            words: self.words.get(..self.len),
            hash: self.hash,
        }
    }

    fn form(&self) -> KeyPart<'_> {
        KeyPart {
            words: self.words.get(..self.form.0),
            hash: self.form.1,
        }
    }
}

/// Keys found good, the most recent of each hash.
struct GoodKeys {
    slots: Vec<([u32; KEY_WORDS], u32)>,
}

/// The most slots a table of good keys has; a small file is not worth clearing them all.
const SLOTS: usize = 1 << 10;

impl GoodKeys {
    fn new(slots: usize) -> GoodKeys {
        GoodKeys {
            slots: vec![([0; KEY_WORDS], 0); slots],
        }
    }

    #[inline]
    fn contains(&self, key: &KeyPart<'_>) -> bool {
        let (words, len) = &self.slots[key.hash as usize & (self.slots.len() - 1)];
        key.words
            .is_some_and(|key| words.get(..*len as usize) == Some(key))
    }

    fn insert(&mut self, key: &KeyPart<'_>) {
        let at = key.hash as usize & (self.slots.len() - 1);
        let (slot, len) = &mut self.slots[at];
        if let Some(words) = key.words
            && let Some(slot) = slot.get_mut(..words.len())
        {
            slot.copy_from_slice(words);
            *len = words.len() as u32;
        }
    }
}

/// Dictionaries found good for an op, the most recent of each hash.
pub(super) struct GoodDicts {
    slots: Vec<(u32, u32)>,
}

impl GoodDicts {
    fn new(slots: usize) -> GoodDicts {
        GoodDicts {
            slots: vec![(NONE, NONE); slots],
        }
    }

    fn slot(&self, code: OpCode, dict: Dict) -> usize {
        ((code as usize).wrapping_mul(0x9e37) ^ dict.index()) & (self.slots.len() - 1)
    }

    pub(super) fn contains(&self, code: OpCode, dict: Dict) -> bool {
        self.slots[self.slot(code, dict)] == (code as u32, dict.index() as u32)
    }

    pub(super) fn insert(&mut self, code: OpCode, dict: Dict) {
        let slot = self.slot(code, dict);
        self.slots[slot] = (code as u32, dict.index() as u32);
    }
}
