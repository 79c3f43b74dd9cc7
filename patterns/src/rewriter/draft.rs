//! Instructions to be made: from what was found, as the op table wants them.

use bir_dialect::analysis::sync::Stream;
use bir_dialect::bir::access::{Access, Target as TermTarget};
use bir_dialect::bir::attrs::{number, number_bits};
use bir_dialect::bir::indices::Numbering;
use bir_dialect::bir::num::{DType, convert, from_f64, print, same_value, to_f64};
use bir_dialect::bir::ops::{AttrType, Kind, OpCode};
use bir_dialect::bir::program::{names, op_name, target_of};
use bir_dialect::bir::space::{Engine, Space};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::verify::obeys_own_check;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Attr, AttrView, Ir, NewOp, NewOperand, Op, Str, Value};
use smallvec::SmallVec;

use super::Rewriter;
use crate::matcher::{Bound, Found, LiteralTypes, Miss, engine_attr, literal, value};
use crate::rule::{AttrWhat, Form, Stmt, What};

/// An instruction to be made.
pub(super) struct Draft {
    pub(super) code: OpCode,
    pub(super) operands: SmallVec<[NewOperand; 8]>,
    pub(super) indices: SmallVec<[Value; 4]>,
    pub(super) dict: SmallVec<[(Str, Attr); 6]>,
}

impl Draft {
    /// Operands in the order they are stored: loop indices last.
    pub(super) fn all_operands(&self) -> SmallVec<[NewOperand; 8]> {
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

impl Rewriter<'_> {
    pub(super) fn draft(
        &mut self,
        at: usize,
        stmt: &Stmt,
        form: &Form,
        found: &Found,
    ) -> Result<Draft, Miss> {
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
                AttrWhat::Number(literal) => {
                    let number = self.attr_number(attr.def.ty, &literal.text);
                    number.ok_or(Miss::Number)?
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
                What::Number(literal) => literal.text.clone(),
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
        self.check_overlap(at, &draft)?;
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
    pub(super) fn check_own(
        &mut self,
        at: usize,
        draft: &mut Draft,
        stmt: &Stmt,
        form: &Form,
        place: Op,
    ) -> Result<(), Miss> {
        if self.obeys(draft, place) {
            return Ok(());
        }
        let is_chosen = stmt.attrs.iter().any(|attr| attr.def.name == "engine");
        let is_bound = !form.stmts[form.at].keep && self.flow.has_semaphores(self.ir);
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
        if !self.reaches(draft, place) {
            return false;
        }
        if draft.code.def().check.is_none() {
            return true;
        }
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

    /// Whether the engine of what is made can access its operands: the pool engine has no way to PSUM.
    fn reaches(&self, draft: &Draft, place: Op) -> bool {
        let named = draft.dict.iter().find(|entry| entry.0 == names::ENGINE);
        let engine = match named {
            Some(&(_, attr)) => self.ir.ctx.attr_str(attr).and_then(Engine::from_name),
            None => {
                let engines = draft.code.def().engines;
                engines.map(|engines| engines.default_on(target_of(self.ir, place)))
            }
        };
        let in_psum = |operand: &NewOperand| {
            let mem = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value));
            mem.is_some_and(|mem| mem.space == Space::Psum)
        };
        engine != Some(Engine::Pool) || !draft.operands.iter().any(in_psum)
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
        // What an engine is told to do in which order is what waits and signals of others count on.
        if form.stmts[form.at].keep || !self.flow.has_semaphores(self.ir) {
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
    pub(super) fn number_indices(&mut self, draft: &mut Draft) {
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
