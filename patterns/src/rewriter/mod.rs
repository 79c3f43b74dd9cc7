//! The one thing that changes the program.
//!
//! Invariants:
//! * everything is made, and found legal, before anything is changed: a match that cannot be
//!   carried out leaves not a byte different;
//! * what is known of memory is told of every insertion, change and removal;
//! * the instruction whose place is taken hands on what it carried: number, dependences, coordinate,
//!   waits (to the first new instruction), signals (to the last), location, comments, attributes
//!   with a prefix; the new instructions run on its engine if it waits or signals;
//! * what goes without an heir in its place hands on its edges and waits as
//!   `estate` says.

use bir_dialect::analysis::sync::Stream;
use bir_dialect::bir::access::{Access, Target as TermTarget};
use bir_dialect::bir::attrs::{number, number_bits};
use bir_dialect::bir::indices::Numbering;
use bir_dialect::bir::num::{DType, convert, from_f64, print, same_value, to_f64};
use bir_dialect::bir::ops::{AttrType, Kind, OpCode};
use bir_dialect::bir::program::{
    COL_DEPS, COL_ID, COL_ORDER, names, op_name, order_terms, target_of,
};
use bir_dialect::bir::space::Engine;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::verify::obeys_own_check;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Attr, AttrView, Cursor, Dict, Ir, NewOp, NewOperand, Op, Str, Value};
use smallvec::SmallVec;

use crate::estate::{Estate, is_ordered_between, is_synchronised};
use crate::flow::Flow;
use crate::matcher::{Bound, Found, LiteralTypes, Miss, engine_attr, literal, value};
use crate::rule::{Action, AttrWhat, Form, Stmt, What};

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
    /// Instructions removed.
    pub(crate) erased: Vec<Op>,
}

/// What is to be made, where, and instead of what.
pub(crate) struct Plan {
    drafts: SmallVec<[Draft; 2]>,
    place: Op,
    replaced: SmallVec<[Op; 4]>,
}

/// An instruction to be made.
struct Draft {
    code: OpCode,
    operands: SmallVec<[NewOperand; 8]>,
    indices: SmallVec<[Value; 4]>,
    dict: SmallVec<[(Str, Attr); 6]>,
}

impl Draft {
    /// Operands in the order they are stored: loop indices last.
    fn all_operands(&self) -> SmallVec<[NewOperand; 8]> {
        let mut operands = self.operands.clone();
        let role = self.code.def().indices_role() as u8;
        operands.extend(self.indices.iter().map(|&value| NewOperand {
            value,
            role,
            annot: Annot::UNIT,
        }));
        operands
    }
}

impl<'a> Rewriter<'a> {
    /// Of a function.
    pub(crate) fn new(ir: &'a mut Ir, flow: &'a mut Flow, estate: &'a mut Estate) -> Rewriter<'a> {
        Rewriter {
            ir,
            flow,
            estate,
            made: Vec::new(),
            erased: Vec::new(),
        }
    }

    /// Sets or removes an attribute.
    pub fn set_attr(&mut self, op: Op, name: &str, attr: Option<Attr>) {
        self.ir.set_attr(op, name, attr);
        if let Some(memory) = self.flow.known() {
            memory.changed(self.ir, op);
        }
        self.made.push(op);
    }

    /// Puts a new instruction somewhere.
    pub fn insert(&mut self, cursor: Cursor, new: NewOp<'_>) -> Op {
        let op = self.ir.insert(cursor, new);
        if let Some(memory) = self.flow.known() {
            memory.insert(self.ir, op);
        }
        self.made.push(op);
        op
    }

    /// Removes an instruction without results in use; what it owes goes to its neighbours.
    pub fn erase(&mut self, op: Op) {
        self.retire(op, &[]);
        self.ir.erase(op);
        self.erased.push(op);
    }

    /// Takes an instruction out of everything but the program itself.
    fn retire(&mut self, op: Op, heirs: &[Op]) {
        let left = self.estate.leave(self.ir, op, heirs);
        if let Some(memory) = self.flow.known() {
            memory.remove(self.ir, op);
            if let Some(left) = left {
                memory.insert(self.ir, left);
            }
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
            self.erased.push(op);
        }
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

    fn draft(&mut self, at: usize, stmt: &Stmt, form: &Form, found: &Found) -> Result<Draft, Miss> {
        let def = stmt.code.def();
        let mut draft = Draft {
            code: stmt.code,
            operands: SmallVec::new(),
            indices: SmallVec::new(),
            dict: SmallVec::new(),
        };
        let mut types = LiteralTypes::default();
        for attr in &stmt.attrs {
            let value = match &attr.what {
                AttrWhat::Bind(var) => match found.vars[*var] {
                    Bound::Attr(attr) => attr,
                    _ => continue,
                },
                AttrWhat::Words(words) => match words.first() {
                    Some(word) => self.ir.ctx.string(word),
                    None => continue,
                },
                AttrWhat::Flag => self.ir.ctx.unit(),
                AttrWhat::Absent => continue,
                AttrWhat::Int(int) => self.ir.ctx.int(*int),
                AttrWhat::Number(text) => {
                    self.attr_number(attr.def.ty, text).ok_or(Miss::Number)?
                }
                AttrWhat::List(list) => {
                    let list: Vec<Attr> = list.iter().map(|&one| self.ir.ctx.int(one)).collect();
                    self.ir.ctx.array(&list)
                }
                AttrWhat::Text(text) => self.ir.ctx.string(text),
                AttrWhat::Sum(sum) => {
                    let sum = value(&self.ir.ctx, found, sum).ok_or(Miss::Number)?;
                    self.attr_number(attr.def.ty, &text_of(sum))
                        .ok_or(Miss::Number)?
                }
            };
            if let Some(word) = self.ir.ctx.attr_str(value) {
                types.word(word);
            }
            let name = self.ir.ctx.str(attr.def.name);
            draft.dict.push((name, value));
        }
        // Tiles first: the dtype of literals depends on them.
        let mut sorted: SmallVec<[&crate::rule::StmtOperand; 8]> = stmt.operands.iter().collect();
        sorted.sort_by_key(|operand| operand.role);
        for operand in &sorted {
            let What::Tile(var) = operand.what else {
                continue;
            };
            let role = &def.operands[operand.role];
            let Bound::Tile(op, bound) = found.vars[var] else {
                continue;
            };
            // A result is written as it was written, a source read as it was read last.
            let place = match role.writes() {
                true => form.writer(var),
                false => form.places(var).last(),
            };
            let (op, bound) = place
                .and_then(|(stmt, role)| {
                    let op = found.ops[stmt]?;
                    Some((op, OpView::new(self.ir, op).role_at(role).operand()?))
                })
                .unwrap_or((op, bound));
            let illegal = Miss::Illegal(at, operand.role);
            let data = *self.ir.operand(bound);
            let mem = MemType::get(&self.ir.ctx, self.ir.value_type(data.value)).ok_or(illegal)?;
            let mut access = Access::resolve(&self.ir.ctx, &mem, data.annot);
            if !role.spaces.has(mem.space) || !role.dtypes.has(access.dtype) {
                return Err(illegal);
            }
            if role.writes() {
                types.dst.get_or_insert(access.dtype);
            }
            if role.kind == Kind::In {
                types.src.get_or_insert(access.dtype);
            }
            let mut annot = data.annot;
            if !access.terms.is_empty() {
                let own: SmallVec<[Value; 4]> = OpView::new(self.ir, op).indices().collect();
                for term in &mut access.terms {
                    let value = *own.get(usize::from(term.index)).ok_or(illegal)?;
                    let known = draft.indices.iter().position(|&other| other == value);
                    let position = known.unwrap_or_else(|| {
                        draft.indices.push(value);
                        draft.indices.len() - 1
                    });
                    term.index = u8::try_from(position).map_err(|_| illegal)?;
                }
                access.terms.sort_by_key(|term| (term.target, term.index));
                annot = access.intern_part(&mut self.ir.ctx).map_err(|_| illegal)?;
            }
            draft.operands.push(NewOperand {
                value: data.value,
                role: operand.role as u8,
                annot,
            });
        }
        for operand in &sorted {
            let text = match &operand.what {
                What::Number(text) => text.clone(),
                What::Tile(var) | What::Literal(var) => match found.vars[*var] {
                    Bound::Attr(attr) => number_text(self.ir, attr).ok_or(Miss::Number)?,
                    _ => continue,
                },
                What::Sum(sum) => text_of(value(&self.ir.ctx, found, sum).ok_or(Miss::Number)?),
                What::Any => continue,
            };
            let from = match &operand.what {
                What::Tile(var) | What::Literal(var) => match found.vars[*var] {
                    Bound::Attr(attr) => Some(attr),
                    _ => None,
                },
                _ => None,
            };
            let attr = self
                .literal_like(stmt.code, operand.role, from, &text, &types)
                .ok_or(Miss::Number)?;
            let name = self.ir.ctx.str(def.operands[operand.role].name);
            draft.dict.push((name, attr));
        }
        self.check_roles(at, &draft)?;
        self.engine(at, &mut draft, form, found)?;
        Ok(draft)
    }

    /// A literal for a role: of the same value as one there is, or as a text says.
    fn literal_like(
        &mut self,
        code: OpCode,
        role: usize,
        from: Option<Attr>,
        text: &str,
        types: &LiteralTypes,
    ) -> Option<Attr> {
        let made = literal(&mut self.ir.ctx, code, role, text, types);
        let Some(from) = from else {
            return made;
        };
        let (dtype, bits) = number_bits(&self.ir.ctx, from)?;
        let zero = literal(&mut self.ir.ctx, code, role, "0", types)?;
        let (to, _) = number_bits(&self.ir.ctx, zero)?;
        if to == dtype {
            return Some(from);
        }
        let there = convert(dtype, to, bits)?;
        let back = convert(to, dtype, there)?;
        same_value(dtype, back, bits).then(|| number(&mut self.ir.ctx, to, there))
    }

    fn attr_number(&mut self, ty: AttrType, text: &str) -> Option<Attr> {
        match ty {
            AttrType::Int { min, max } => {
                let int: i64 = text.parse().ok().or_else(|| {
                    let float: f64 = text.parse().ok()?;
                    (float.fract() == 0.0 && float.abs() < 1e15).then_some(float as i64)
                })?;
                (min..=max).contains(&int).then(|| self.ir.ctx.int(int))
            }
            AttrType::Number(dtype) => {
                let bits = bir_dialect::bir::num::parse(dtype, text).ok()?;
                Some(number(&mut self.ir.ctx, dtype, bits))
            }
            _ => None,
        }
    }

    /// What the op asks of its instructions beyond the table: the engine that is only where it is because
    /// that of the place was is given up first.
    fn check_own(
        &mut self,
        at: usize,
        draft: &mut Draft,
        stmt: &Stmt,
        form: &Form,
        place: Op,
    ) -> Result<(), Miss> {
        if draft.code.def().check.is_none() || self.obeys(draft, place) {
            return Ok(());
        }
        let is_chosen = stmt.attrs.iter().any(|attr| attr.def.name == "engine");
        let is_bound = !form.stmts[form.at].keep && is_synchronised(self.ir, place);
        let engine = draft
            .dict
            .iter()
            .position(|entry| entry.0 == names::ENGINE)
            .filter(|_| !is_chosen && !is_bound);
        match engine {
            Some(entry) => {
                draft.dict.remove(entry);
                self.obeys(draft, place).then_some(()).ok_or(Miss::Own(at))
            }
            None => Err(Miss::Own(at)),
        }
    }

    fn obeys(&mut self, draft: &Draft, place: Op) -> bool {
        let operands = draft.all_operands();
        let dict = self.ir.ctx.dict(&draft.dict);
        let op = self.ir.create(NewOp {
            operands: &operands,
            dict,
            ..NewOp::new(op_name(draft.code))
        });
        let obeys = obeys_own_check(self.ir, op, target_of(self.ir, place));
        self.ir.erase(op);
        obeys
    }

    /// What the op table says of roles taken together.
    fn check_roles(&self, at: usize, draft: &Draft) -> Result<(), Miss> {
        let def = draft.code.def();
        let access = |role: usize| {
            let operand = draft
                .operands
                .iter()
                .find(|one| usize::from(one.role) == role)?;
            let mem = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value))?;
            Some(Access::resolve(&self.ir.ctx, &mem, operand.annot))
        };
        let roles = |list: &'static [&'static str]| list.iter().filter_map(|one| def.role(one));
        let mut shape = None;
        for role in roles(def.same_shape) {
            let Some(access) = access(role) else { continue };
            let own = (access.partitions(), access.elements());
            if *shape.get_or_insert(own) != own {
                return Err(Miss::Illegal(at, role));
            }
        }
        let mut dtype: Option<DType> = None;
        for role in roles(def.same_dtype) {
            let Some(access) = access(role) else { continue };
            if *dtype.get_or_insert(access.dtype) != access.dtype {
                return Err(Miss::Illegal(at, role));
            }
        }
        for role in roles(def.per_partition) {
            if access(role).is_some_and(|access| access.elements() != 1) {
                return Err(Miss::Illegal(at, role));
            }
        }
        Ok(())
    }

    /// The engine: that of the instruction whose place is taken, where it may run the new one; where
    /// semaphores hang on that, no other.
    fn engine(
        &mut self,
        at: usize,
        draft: &mut Draft,
        form: &Form,
        found: &Found,
    ) -> Result<(), Miss> {
        let Some(engines) = draft.code.def().engines else {
            return Ok(());
        };
        let place = found.ops[form.at].ok_or(Miss::Engine(at))?;
        let target = target_of(self.ir, place);
        let legal = engines.on(target);
        let written = draft.dict.iter().find(|entry| entry.0 == names::ENGINE);
        let mut engine = match written {
            Some(&(_, attr)) => self.ir.ctx.attr_str(attr).and_then(Engine::from_name),
            None => {
                if legal.is_empty() {
                    return Err(Miss::Engine(at));
                }
                let view = OpView::new(self.ir, place);
                let named = view.engine_attr().filter(|&engine| legal.has(engine));
                if named.is_some()
                    && let Some(attr) = engine_attr(self.ir, place)
                {
                    draft.dict.push((names::ENGINE, attr));
                }
                named
            }
        };
        if form.stmts[form.at].keep || !is_synchronised(self.ir, place) {
            return Ok(());
        }
        let (wanted, queue) = match Stream::of(self.ir, place, target) {
            Some(Stream::Engine(engine)) => (engine, None),
            Some(Stream::Queue(queue)) => (Engine::Dma, queue),
            None => return Err(Miss::Ordered),
        };
        if engine.is_none() && engines.default_on(target) != wanted && legal.has(wanted) {
            draft
                .dict
                .push((names::ENGINE, self.ir.ctx.string(wanted.name())));
            engine = Some(wanted);
        }
        if engine.unwrap_or(engines.default_on(target)) != wanted {
            return Err(Miss::Ordered);
        }
        if let Some(queue) = queue {
            if draft.code.def().attr("queue").is_none() {
                return Err(Miss::Ordered);
            }
            let (name, queue) = (self.ir.ctx.str("queue"), self.ir.ctx.string_of(queue));
            match draft.dict.iter().find(|entry| entry.0 == name) {
                Some(entry) if entry.1 != queue => return Err(Miss::Ordered),
                Some(_) => {}
                None => draft.dict.push((name, queue)),
            }
        }
        Ok(())
    }

    /// Gives indices the numbers an instruction read from text would have.
    fn number_indices(&mut self, draft: &mut Draft) {
        if draft.indices.len() < 2 {
            return;
        }
        let values = draft.indices.clone();
        let mut numbering = Numbering::new(&values);
        let mut accesses = Vec::new();
        for operand in &draft.operands {
            let mem = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value));
            let access = mem.map(|mem| Access::resolve(&self.ir.ctx, &mem, operand.annot));
            if let Some(access) = &access {
                numbering.meet_terms(&access.terms);
            }
            accesses.push(access);
        }
        let numbers = numbering.finish();
        for (operand, access) in draft.operands.iter_mut().zip(accesses) {
            let Some(mut access) = access.filter(|access| !access.terms.is_empty()) else {
                continue;
            };
            let terms = std::mem::take(&mut access.terms);
            for term in terms {
                let number = numbers.get(usize::from(term.index)).copied().flatten();
                let target: TermTarget = term.target;
                access.add_term(target, number.unwrap_or(term.index), term.coef);
            }
            if let Ok(annot) = access.intern_part(&mut self.ir.ctx) {
                operand.annot = annot;
            }
        }
        let mut ordered = values.clone();
        for (value, number) in values.iter().zip(&numbers) {
            if let Some(slot) = number.and_then(|at| ordered.get_mut(usize::from(at))) {
                *slot = *value;
            }
        }
        draft.indices = ordered;
    }
}

fn number_text(ir: &Ir, attr: Attr) -> Option<String> {
    match (number_bits(&ir.ctx, attr), ir.ctx.attr(attr)) {
        (Some((dtype, bits)), _) => {
            let mut text = String::new();
            print(dtype, bits, &mut text);
            Some(text)
        }
        (None, AttrView::Int { value, .. }) => Some(value.to_string()),
        _ => None,
    }
}

/// A number as a text that any dtype reads.
fn text_of(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // An f32 is written in full, so that nothing is rounded twice.
    let bits = from_f64(DType::F32, value);
    let exact = bits.and_then(|bits| to_f64(DType::F32, bits)) == Some(value);
    match exact
        && value.fract() == 0.0
        && value.abs() < 1e15
        && (value != 0.0 || value.is_sign_positive())
    {
        true => format!("{value:.0}"),
        false => format!("{value:e}"),
    }
}
