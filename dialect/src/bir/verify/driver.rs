//! The walk: every operation once, structure always, the instruction itself only where no equal
//! one was found good before.

use std::cell::Cell;

use super::super::ops::{OpCode, OpDef, Syntax};
use super::super::program::names;
use super::super::space::Target;
use super::super::view::OpView;
use super::dominance::Dominators;
use super::facts::{FactCache, Facts};
use super::known::{FormId, Forms, GoodDicts, Key, Keys, SLOTS};
use super::locations::Slots;
use super::operands::ResolvedOps;
use super::overlaps::Homes;
use super::structure::Program;
use super::{Level, OpContext, VerifyOptions};
use crate::analysis::sync;
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
    forms: Forms,
    /// Statements that are good.
    good: Keys,
    /// Those whose shapes are good.
    good_shapes: Keys,
    /// Room for the facts of one instruction.
    fact_list: Vec<Option<Facts>>,
    /// Room for the words of one form.
    form_words: Vec<u32>,
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
            forms: Forms::new(slots),
            good: Keys::new(slots),
            good_shapes: Keys::new(slots),
            fact_list: Vec::new(),
            form_words: Vec::new(),
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
            Some(code) => {
                self.program.sync |= sync::takes_part(self.ir, op, code);
                self.check_op(op, code);
            }
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
        let form = self.form(op, code);
        let key = form.and_then(|form| Key::whole(form, self.ir.operands(op)));
        if key.as_ref().is_some_and(|key| self.good.contains(key)) {
            self.check_overlaps(op, code, def);
            return;
        }
        let before = self.diags.errors();
        self.check_instruction(op, code, def, form);
        if self.diags.errors() == before {
            if let Some(key) = &key {
                self.good.insert(key);
            }
            self.check_overlaps(op, code, def);
        }
    }

    /// Everything [`check_instruction`](Self::check_instruction) looks at but the accesses.
    #[inline]
    fn form(&mut self, op: Op, code: OpCode) -> Option<FormId> {
        let ir = self.ir;
        let words = &mut self.form_words;
        words.clear();
        words.push(code as u32 | (self.target as u32) << 16);
        words.push(ir.dict(op).index() as u32);
        // Shape of the statement: results, regions, successors.
        let regions = ir.regions(op);
        words.push(ir.results(op).len() as u32);
        words.push(regions.len() as u32);
        words.push(ir.successors(op).len() as u32);
        for &region in regions {
            words.push(u32::from(ir.entry(region).is_some()));
        }
        for result in ir.results(op) {
            words.push(ir.value_type(result).index() as u32);
        }
        let indices = code.def().indices_role();
        let operands = ir.operands(op);
        for (position, operand) in operands.iter().enumerate() {
            let role = usize::from(operand.role);
            words.push(role as u32);
            words.push(ir.value_type(operand.value).index() as u32);
            if role == indices {
                let first = operands
                    .iter()
                    .position(|other| other.value == operand.value);
                words.push(first.unwrap_or(position) as u32);
                match super::super::loops::loop_of(ir, operand.value) {
                    Some(around) => {
                        words.push(ir.dict(around).index() as u32);
                        words.push(ir.operands(around).iter().map(|o| 1 << (o.role & 3)).sum());
                    }
                    None => words.push(NONE),
                }
            } else {
                words.push(self.values[operand.value.index()].dict);
            }
        }
        self.forms.find(words)
    }

    /// Checks one instruction: only its accesses where what is said of all of its form and shapes is
    /// known to be good.
    fn check_instruction(
        &mut self,
        op: Op,
        code: OpCode,
        def: &'static OpDef,
        form: Option<FormId>,
    ) {
        let ir = self.ir;
        let mut facts = std::mem::take(&mut self.fact_list);
        facts.clear();
        for operand in ir.operands(op) {
            let ty = ir.value_type(operand.value);
            facts.push(self.facts.get(&ir.ctx, ty, operand.annot));
        }
        // An access that sees another dtype is part of the form.
        let form = form.filter(|_| !facts.iter().flatten().any(|facts| facts.recast));
        let engine = def.engines.and_then(|engines| {
            OpView::new(ir, op)
                .engine_attr()
                .or_else(|| Some(engines.default_on(self.target)))
        });
        let shapes = form.and_then(|form| Key::shapes(form, &facts));
        if shapes
            .as_ref()
            .is_some_and(|shapes| self.good_shapes.contains(shapes))
        {
            self.check_accesses(op, def, engine, &facts);
            self.fact_list = facts;
            return;
        }
        let start = self.diags.errors();
        let has_good_form = form.is_some_and(|form| self.forms.is_good(form));
        if !has_good_form {
            self.check_statement(op, code, def);
            self.check_dict(op, code, def);
        }
        let before = self.diags.errors();
        if has_good_form || self.check_operands(op, code, engine, &facts) {
            self.check_shapes(op, code, &facts);
        }
        self.check_accesses(op, def, engine, &facts);
        let mut by_shape = true;
        if let Some(check) = def.check
            && (self.diags.errors() == before || def.syntax != Syntax::Instruction)
        {
            let mut context = OpContext {
                ir,
                op,
                def,
                target: self.target,
                engine,
                facts: &facts,
                looked_closer: Cell::new(false),
                diags: self.diags,
            };
            check(&mut context);
            by_shape = !context.looked_closer.get();
        }
        if self.diags.errors() == start {
            if let Some(form) = form {
                self.forms.set_good(form);
            }
            if let Some(shapes) = shapes.filter(|_| by_shape) {
                self.good_shapes.insert(&shapes);
            }
        }
        self.fact_list = facts;
    }
}
