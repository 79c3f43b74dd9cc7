//! The one thing that changes the program.
//!
//! Invariants:
//! * everything is made, and found legal, before anything is changed: a match that cannot be
//!   carried out leaves not a byte different;
//! * what is known of memory is told of every insertion, change and removal;
//! * where one instruction takes the place of another, that one becomes it;
//! * elsewhere the instruction whose place is taken hands on what it carried: number, dependences, coordinate,
//!   waits (to the first new instruction), signals (to the last), location, comments, attributes
//!   with a prefix; where anything in the function waits or signals, the new instructions run on its engine;
//! * what goes without an heir in its place hands on its edges and waits as
//!   `estate` says.

mod draft;
mod overlap;

use bir_dialect::analysis::sync::Stream;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{
    COL_DEPS, COL_ID, COL_ORDER, names, op_name, order_terms, target_of,
};
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Attr, Cursor, Dict, Ir, NewOp, NewOperand, Op, OpName, Str};
use smallvec::SmallVec;

use crate::estate::{Estate, is_ordered_between};
use crate::flow::Flow;
use crate::matcher::{Found, Miss};
use crate::rule::{Action, Form};
use draft::Draft;

/// Changes a function, and keeps what is known of it right.
pub struct Rewriter<'a> {
    /// The file.
    pub(crate) ir: &'a mut Ir,
    /// What is known of its memory.
    flow: &'a mut Flow,
    /// What is handed on when the walk ends.
    estate: &'a mut Estate,
    /// Instructions made or changed.
    pub(crate) made: Vec<Op>,
    /// Instructions that are no more what they were: removed, or made into another.
    pub(crate) gone: Vec<Op>,
}

/// What one instruction makes of another: operands are those it had, by position, in a role and with an
/// access.
#[derive(Debug)]
pub(crate) struct Recast {
    pub(crate) name: OpName,
    pub(crate) operands: SmallVec<[(u8, u8, Annot); 4]>,
    pub(crate) dict: Dict,
}

/// What is to be made, where, and instead of what.
pub(crate) struct Plan {
    drafts: SmallVec<[Draft; 2]>,
    place: Op,
    replaced: SmallVec<[Op; 4]>,
}

/// Makes an instruction another one where it stands: it keeps number, dependences, coordinate, location and
/// comments without their being touched.
pub(crate) fn recast(
    ir: &mut Ir,
    flow: &mut Flow,
    op: Op,
    name: OpName,
    operands: &[NewOperand],
    dict: Dict,
) {
    ir.recast(op, name, operands, dict);
    flow.changed(ir, op);
}

impl<'a> Rewriter<'a> {
    /// Of a function.
    pub(crate) fn new(ir: &'a mut Ir, flow: &'a mut Flow, estate: &'a mut Estate) -> Rewriter<'a> {
        Rewriter {
            ir,
            flow,
            estate,
            made: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Whether anything in the function waits or signals.
    pub(crate) fn has_semaphores(&mut self) -> bool {
        self.flow.has_semaphores(self.ir)
    }

    /// Sets or removes an attribute.
    pub fn set_attr(&mut self, op: Op, name: &str, attr: Option<Attr>) {
        self.ir.set_attr(op, name, attr);
        self.flow.changed(self.ir, op);
        self.made.push(op);
    }

    /// Puts a new instruction somewhere.
    pub fn insert(&mut self, cursor: Cursor, new: NewOp<'_>) -> Op {
        let op = self.ir.insert(cursor, new);
        self.flow.inserted(self.ir, op);
        self.made.push(op);
        op
    }

    /// Removes an instruction without results in use; what it owes goes to its neighbours.
    pub fn erase(&mut self, op: Op) {
        self.retire(op, &[]);
        self.ir.erase(op);
        self.gone.push(op);
    }

    /// Takes an instruction out of everything but the program itself.
    fn retire(&mut self, op: Op, heirs: &[Op]) {
        let left = self.estate.leave(self.ir, op, heirs);
        self.flow.removed(self.ir, op);
        if let Some(left) = left {
            self.flow.inserted(self.ir, left);
        }
    }

    /// What a match would do. Nothing is changed yet.
    ///
    /// # Errors
    ///
    /// Why it cannot be carried out.
    pub(crate) fn plan(&mut self, form: &Form, found: &Found) -> Result<Plan, Miss> {
        let replaced: SmallVec<[Op; 4]> = form
            .stmts
            .iter()
            .zip(&found.ops)
            .filter(|(stmt, _)| !stmt.keep)
            .filter_map(|(_, op)| *op)
            .collect();
        let Some(place) = found.ops[form.at] else {
            return Err(Miss::Op(form.at));
        };
        for &op in replaced.iter().filter(|&&op| op != place) {
            if self.is_bound(op, place) {
                return Err(Miss::Ordered);
            }
        }
        let mut drafts: SmallVec<[Draft; 2]> = SmallVec::new();
        for (at, action) in form.actions.iter().enumerate() {
            if let Action::Make(stmt) = action {
                let mut draft = self.draft(at, stmt, form, found)?;
                self.number_indices(&mut draft);
                self.check_own(at, &mut draft, stmt, form, place)?;
                drafts.push(draft);
            }
        }
        if let [draft] = &drafts[..]
            && replaced.len() == 1
            && form.actions.len() == 1
            && self.is_same(draft, replaced[0])
        {
            return Err(Miss::Unchanged);
        }
        if replaced.contains(&place) && !self.takes_coordinate(place, &drafts) {
            return Err(Miss::Ordered);
        }
        Ok(Plan {
            drafts,
            place,
            replaced,
        })
    }

    /// Does what was planned.
    ///
    /// # Errors
    ///
    /// If a registered rewrite declines; then nothing has changed.
    pub(crate) fn carry_out(
        &mut self,
        plan: &Plan,
        form: &Form,
        found: &Found,
    ) -> Result<(), Miss> {
        // The checker allows one of them at most, so that none has gone ahead when one declines.
        for action in &form.actions {
            if let Action::Call(native, args) = action
                && !(native.apply)(self, form, found, args)
            {
                return Err(Miss::Declined);
            }
        }
        self.put(&plan.drafts, plan.place, &plan.replaced);
        Ok(())
    }

    /// Whether an instruction that goes is kept where it stands by what no heir elsewhere can take over:
    /// a signal given later says more than was promised, a wait met earlier may never be.
    fn is_bound(&self, op: Op, place: Op) -> bool {
        let is_earlier = self.ir.order_in_block(op) < self.ir.order_in_block(place);
        let has = |name| self.ir.ctx.dict_get(self.ir.dict(op), name).is_some();
        let target = target_of(self.ir, op);
        let bound = match is_earlier {
            true => has(names::SIGNAL),
            false => {
                let apart = Stream::of(self.ir, op, target) != Stream::of(self.ir, place, target);
                has(names::WAIT) || has(names::SIGNAL) && apart
            }
        };
        bound || is_ordered_between(self.ir, op, place)
    }

    /// Whether the coordinate of a schedule, if there is one, means the same on what is made.
    fn takes_coordinate(&self, place: Op, drafts: &[Draft]) -> bool {
        let Some(words) = self.ir.words_cell(COL_ORDER, place) else {
            return true;
        };
        let indices = OpView::new(self.ir, place).indices();
        match drafts {
            [] => true,
            [draft] => {
                let constant = order_terms(words).iter().all(|term| term.terms.is_empty());
                constant || indices.eq(draft.indices.iter().copied())
            }
            _ => false,
        }
    }

    fn put(&mut self, drafts: &[Draft], place: Op, replaced: &[Op]) {
        if let [draft] = drafts
            && replaced.contains(&place)
            && self.is_plain(place)
        {
            let dict = self.recast_dict(draft, place);
            self.recast(place, op_name(draft.code), &draft.all_operands(), dict);
            for &op in replaced.iter().filter(|&&op| op != place) {
                self.retire(op, &[place]);
                self.ir.erase(op);
                self.gone.push(op);
            }
            return;
        }
        let mut made: SmallVec<[Op; 2]> = SmallVec::new();
        for draft in drafts {
            let operands = draft.all_operands();
            let dict = self.ir.ctx.dict(&draft.dict);
            let loc = self.ir.loc(place);
            let op = self.insert(
                Cursor::Before(place),
                NewOp {
                    operands: &operands,
                    dict,
                    loc,
                    ..NewOp::new(op_name(draft.code))
                },
            );
            let span = self.ir.span(place);
            self.ir.set_span(op, span);
            made.push(op);
        }
        if replaced.contains(&place) {
            self.hand_on(place, &made);
        }
        for &op in replaced {
            self.retire(op, &made);
            // The first has the comments of what stood there.
            match made.first().filter(|_| op == place) {
                Some(&first) => self.ir.replace_op(op, first),
                None => self.ir.erase(op),
            };
            self.gone.push(op);
        }
    }

    fn is_plain(&self, op: Op) -> bool {
        self.ir.results(op).len() == 0 && self.ir.regions(op).is_empty()
    }

    /// Makes an instruction another one where it stands.
    fn recast(&mut self, op: Op, name: OpName, operands: &[NewOperand], dict: Dict) {
        recast(self.ir, self.flow, op, name, operands, dict);
        self.made.push(op);
        self.gone.push(op);
    }

    /// The attributes of what takes a place: its own, waits, signals and what is not the dialect's.
    fn recast_dict(&mut self, draft: &Draft, place: Op) -> Dict {
        let mut entries: SmallVec<[(Str, Attr); 8]> = SmallVec::from_slice(&draft.dict);
        let ctx = &self.ir.ctx;
        entries.extend(ctx.dict_entries(self.ir.dict(place)).filter(|&(name, _)| {
            name == names::WAIT || name == names::SIGNAL || ctx.text(name).contains('.')
        }));
        self.ir.ctx.dict(&entries)
    }

    /// What a plan about one instruction alone makes of it, if it makes one of it.
    pub(crate) fn pattern_of(&mut self, plan: &Plan) -> Option<Recast> {
        let [draft] = &plan.drafts[..] else {
            return None;
        };
        if plan.replaced[..] != [plan.place] || !draft.indices.is_empty() {
            return None;
        }
        if !self.is_plain(plan.place) {
            return None;
        }
        let old = self.ir.operands(plan.place);
        let from = |new: &NewOperand| old.iter().position(|old| old.value == new.value);
        let operands: Option<SmallVec<[(u8, u8, Annot); 4]>> = draft
            .operands
            .iter()
            .map(|new| Some((u8::try_from(from(new)?).ok()?, new.role, new.annot)))
            .collect();
        Some(Recast {
            name: op_name(draft.code),
            operands: operands?,
            dict: self.recast_dict(draft, plan.place),
        })
    }

    /// Gives the new instructions what the one had whose place they take.
    fn hand_on(&mut self, from: Op, made: &[Op]) {
        let (Some(&first), Some(&last)) = (made.first(), made.last()) else {
            return;
        };
        let entries: SmallVec<[(Str, Attr); 8]> =
            self.ir.ctx.dict_entries(self.ir.dict(from)).collect();
        for (name, attr) in entries {
            let to = match name {
                names::WAIT => first,
                names::SIGNAL => last,
                _ if self.ir.ctx.text(name).contains('.') => first,
                _ => continue,
            };
            let dict = self.ir.ctx.dict_with(self.ir.dict(to), name, Some(attr));
            self.ir.set_dict(to, dict);
        }
        for name in [names::WAIT, names::SIGNAL] {
            let dict = self.ir.ctx.dict_with(self.ir.dict(from), name, None);
            self.ir.set_dict(from, dict);
        }
        if made.len() > 1 {
            // All of them are its heirs.
            return;
        }
        let id = self.ir.int_cell(COL_ID, from);
        self.ir.set_int_cell(COL_ID, from, None);
        self.ir.set_int_cell(COL_ID, first, id);
        for column in [COL_DEPS, COL_ORDER] {
            let words = self.ir.words_cell(column, from).map(<[u64]>::to_vec);
            self.ir.set_words_cell(column, from, None);
            self.ir.set_words_cell(column, first, words.as_deref());
        }
    }

    /// Whether an instruction to be made is the one that is there.
    fn is_same(&mut self, draft: &Draft, op: Op) -> bool {
        if OpCode::of(self.ir, op) != Some(draft.code) {
            return false;
        }
        let kept = |name: Str| {
            name != names::WAIT && name != names::SIGNAL && !self.ir.ctx.text(name).contains('.')
        };
        let entries: Vec<(Str, Attr)> = self
            .ir
            .ctx
            .dict_entries(self.ir.dict(op))
            .filter(|entry| kept(entry.0))
            .collect();
        let here = self.ir.ctx.dict(&entries);
        let made: Dict = self.ir.ctx.dict(&draft.dict);
        let role = draft.code.def().indices_role();
        let operands = self.ir.operands(op).iter();
        let operands = operands.filter(|operand| usize::from(operand.role) != role);
        here == made
            && operands
                .map(|operand| (operand.value, operand.role, operand.annot))
                .eq(draft
                    .operands
                    .iter()
                    .map(|operand| (operand.value, operand.role, operand.annot)))
    }
}
