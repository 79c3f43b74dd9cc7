//! From a recipe and the holes of one statement to an operation.
//!
//! Names are resolved through a table by interned string, so a lookup is one array access; scopes
//! undo their bindings when they end. Nothing is allocated per statement.

use smallvec::SmallVec;

use super::diag::{Diagnostic, Place};
use super::parser::Scopes;
use super::recipe::*;
use super::scan::Hole;
use crate::bir::access::{Access, AccessError, Pair, Target, Window, view_dims};
use crate::bir::attrs::{Accumulate, Placement, Sem, number};
use crate::bir::indices::Numbering;
use crate::bir::num::{self, DType};
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, COL_ORDER, Dep, OrderTerm, names, order_words};
use crate::bir::types::{MemType, is_index, reg_dtype, reg_type, type_text};
use crate::ir::{
    Annot, Attr, Block, Dict, Ir, Loc, NewOp, NewOperand, Op, SourceLoc, Str, Type, Value,
};

/// Why a statement was not built; `None` where that has been said already.
pub(crate) type Failure = Option<Box<Diagnostic>>;
type Res<T> = Result<T, Failure>;

/// Holes of one statement and the file they point into.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) base: usize,
    pub(crate) holes: &'a [Hole],
}

impl<'a> Source<'a> {
    fn hole(&self, hole: u32) -> Hole {
        self.holes[hole as usize]
    }

    /// The text of a hole; for names without their sign.
    pub(crate) fn hole_text(&self, hole: u32) -> &'a str {
        let hole = self.hole(hole);
        let start = hole.start as usize;
        &self.text[start..start + hole.len as usize]
    }

    fn int(&self, src: IntSrc) -> i64 {
        match src {
            IntSrc::Const(value) => value,
            IntSrc::Hole { hole, negative } => {
                let value = self.hole(hole).value;
                if negative { -value } else { value }
            }
        }
    }

    pub(super) fn number_text(&self, src: &'a NumSrc) -> &'a str {
        match src {
            NumSrc::Const(text) => text,
            NumSrc::Hole { hole, negative } => {
                let hole = self.hole(*hole);
                let start = hole.start as usize - usize::from(*negative);
                &self.text[start..(hole.start + hole.len) as usize]
            }
        }
    }

    fn str(&self, ir: &mut Ir, src: &StrSrc) -> Str {
        match src {
            StrSrc::Const(text) => *text,
            StrSrc::Hole(hole) => {
                let quoted = self.hole_text(*hole);
                if quoted.contains('\\') {
                    ir.ctx.str(&super::compile::unescape(quoted))
                } else {
                    ir.ctx.str(&quoted[1..quoted.len() - 1])
                }
            }
        }
    }

    fn span(&self, span: &Span) -> Place {
        Place::Span(self.base + span.start as usize..self.base + span.end as usize)
    }

    fn fail<T>(&self, span: &Span, message: impl Into<String>) -> Res<T> {
        Err(Some(Box::new(Diagnostic::error(self.span(span), message))))
    }
}

/// An operation built, and what the driver must still bind.
pub(crate) struct Built {
    pub(crate) op: Op,
    pub(crate) iv: Option<Str>,
}

/// Builds operations in an [`Ir`].
pub(crate) struct Builder<'a, 's> {
    pub(crate) ir: &'a mut Ir,
    pub(crate) scopes: &'a mut Scopes,
    pub(crate) memos: &'a mut AccessMemos,
    pub(crate) src: Source<'s>,
}

/// Integers an access may depend on to be remembered.
pub(crate) const MEMO_INTS: usize = 6;

/// Accesses built lately, by what they depend on: repeated code repeats its accesses.
pub(crate) struct AccessMemos {
    slots: Vec<(MemoKey, Annot)>,
}

/// Number of the access recipe, location type, integers.
type MemoKey = (u32, Type, [i64; MEMO_INTS]);

impl Default for AccessMemos {
    fn default() -> Self {
        AccessMemos {
            slots: vec![((0, Type(0), [0; MEMO_INTS]), Annot::UNIT); 1 << 10],
        }
    }
}

impl AccessMemos {
    fn key(number: u32, ty: Type, holes: &[u32], values: &[Hole]) -> MemoKey {
        let mut ints = [0; MEMO_INTS];
        for (int, &hole) in ints.iter_mut().zip(holes) {
            *int = values[hole as usize].value;
        }
        (number, ty, ints)
    }

    fn slot(&self, key: &MemoKey) -> usize {
        let mut hash = u64::from(key.0) << 32 | u64::from(key.1.0);
        for &int in &key.2 {
            hash = (hash.rotate_left(5) ^ int as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        (hash >> 54) as usize
    }

    fn find(&self, key: &MemoKey) -> Option<Annot> {
        let (known, annot) = &self.slots[self.slot(key)];
        (known == key).then_some(*annot)
    }

    fn insert(&mut self, key: MemoKey, annot: Annot) {
        let slot = self.slot(&key);
        self.slots[slot] = (key, annot);
    }
}

/// The loop indices an operation uses, in the order its accesses name them.
#[derive(Default)]
struct Indices {
    values: SmallVec<[Value; 4]>,
}

impl<'s> Builder<'_, 's> {
    /// Builds `recipe` with its regions empty; the operation is in no block yet.
    pub(crate) fn op(&mut self, recipe: &'s OpRecipe) -> Res<Built> {
        let src = self.src;
        let mut operands: SmallVec<[NewOperand; 8]> = SmallVec::new();
        let mut indices = Indices::default();
        for name in &recipe.index_names {
            let value = self.value(name, true, None)?;
            indices.values.push(value);
        }
        for operand in &recipe.operands {
            let value = self.value(&operand.name, operand.may_be_later, operand.ty)?;
            let ty = self.ir.value_type(value);
            if let Some(stated) = operand.ty
                && stated != ty
            {
                let (found, stated) =
                    (type_text(&self.ir.ctx, ty), type_text(&self.ir.ctx, stated));
                let name = src.hole_text(operand.name.hole);
                return src.fail(
                    &operand.span,
                    format!("`%{name}` is a {found}, but the operation says {stated}"),
                );
            }
            let annot = match (&operand.access, &operand.memo) {
                (AccessRecipe::Whole, _) => Annot::UNIT,
                (access, None) => self.access(access, operand, ty, &mut indices)?,
                (access, Some((number, holes))) => {
                    let key = AccessMemos::key(*number, ty, holes, src.holes);
                    match self.memos.find(&key) {
                        Some(annot) => annot,
                        None => {
                            let annot = self.access(access, operand, ty, &mut indices)?;
                            self.memos.insert(key, annot);
                            annot
                        }
                    }
                }
            };
            operands.push(NewOperand {
                value,
                role: operand.role,
                annot,
            });
        }
        let dict = match recipe.dict {
            Some(dict) => dict,
            None => self.dict(recipe, &operands, &mut indices)?,
        };
        let order = match &recipe.order {
            Some(order) => Some(self.order(order, &mut indices)?),
            None => None,
        };
        let (dict, order) = self.place_indices(recipe, &mut operands, indices, dict, order);
        let result_types = self.result_types(recipe, &operands)?;
        let successors: SmallVec<[Block; 2]> = recipe
            .successors
            .iter()
            .map(|name| {
                self.scopes
                    .block(self.ir, src.hole_text(name.hole), || src.span(&name.span))
            })
            .collect();
        let loc = match &recipe.loc {
            Some(loc) => Some(self.loc(loc)?),
            None => None,
        };
        let regions = usize::from(recipe.opens != Opens::Nothing);
        let op = self.ir.create(NewOp {
            name: recipe.name,
            operands: &operands,
            results: &result_types,
            dict,
            successors: &successors,
            regions,
            loc,
        });
        self.columns(recipe, op, order.as_deref());
        let hint = recipe.hint.as_ref().map(|hint| src.str(self.ir, hint));
        self.bind_results(recipe, op, hint)?;
        let iv = match &recipe.iv {
            Some(name) => Some(self.ir.ctx.str(src.hole_text(name.hole))),
            None => hint.filter(|_| recipe.code == Some(OpCode::Loop)),
        };
        Ok(Built { op, iv })
    }

    /// Gives an operation with regions what stands behind them in the generic form.
    pub(crate) fn tail(&mut self, recipe: &'s OpRecipe, op: Op) -> Res<Option<Str>> {
        let mut operands = self.ir.new_operands(op);
        let stated = recipe.stated_types;
        if stated != operands.len() {
            return self.src.fail(
                &(0..1),
                format!("{} operands but {stated} operand types", operands.len()),
            );
        }
        let mut indices = Indices::default();
        let dict = match recipe.dict {
            Some(dict) => dict,
            None => self.dict(recipe, &operands, &mut indices)?,
        };
        self.ir.set_dict(op, dict);
        if let Some(loc) = &recipe.loc {
            let loc = self.loc(loc)?;
            self.ir.set_loc(op, Some(loc));
        }
        let order = match &recipe.order {
            Some(order) => Some(self.order(order, &mut indices)?),
            None => None,
        };
        self.columns(recipe, op, order.as_deref());
        let roles: Vec<usize> = match (&recipe.segments, recipe.code) {
            (Some(sizes), _) => sizes
                .iter()
                .enumerate()
                .flat_map(|(role, &size)| (0..size.clamp(0, 1 << 16)).map(move |_| role))
                .collect(),
            (None, Some(code)) => code.def().required_roles().collect(),
            (None, None) => vec![0; operands.len()],
        };
        if roles.len() != operands.len() {
            return self.src.fail(
                &(0..1),
                format!(
                    "operand segments add up to {}, found {} operands",
                    roles.len(),
                    operands.len()
                ),
            );
        }
        for (operand, role) in operands.iter_mut().zip(roles) {
            operand.role = role as u8;
        }
        self.ir.set_operands(op, &operands);
        let hint = recipe.hint.as_ref().map(|hint| self.src.str(self.ir, hint));
        Ok(hint)
    }

    fn columns(&mut self, recipe: &OpRecipe, op: Op, order: Option<&[OrderTerm]>) {
        let src = self.src;
        if let Some(id) = recipe.id {
            match u32::try_from(src.int(id)) {
                Ok(id) if id != u32::MAX => self.ir.set_int_cell(COL_ID, op, Some(id)),
                _ => {
                    // Kept where the verifier sees and refuses it.
                    let attr = self.ir.ctx.int(src.int(id));
                    self.ir.set_attr(op, "id", Some(attr));
                }
            }
        }
        if let Some(deps) = &recipe.deps {
            let words: SmallVec<[u64; 8]> = deps
                .iter()
                .map(|dep| {
                    Dep {
                        kind: dep.kind,
                        id: u32::try_from(src.int(dep.id)).unwrap_or(u32::MAX),
                        set: dep.set,
                    }
                    .word()
                })
                .collect();
            self.ir.set_words_cell(COL_DEPS, op, Some(&words));
        }
        if let Some(order) = order {
            self.ir
                .set_words_cell(COL_ORDER, op, Some(&order_words(order)));
        }
    }

    fn loc(&mut self, loc: &LocRecipe) -> Res<Loc> {
        let src = self.src;
        let small = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
        let (file, line, col) = match loc {
            LocRecipe::Parts { file, line, col } => (
                src.str(self.ir, file),
                small(src.int(*line)),
                small(src.int(*col)),
            ),
            LocRecipe::Text(text, span) => {
                let text = src.str(self.ir, text);
                let text = self.ir.ctx.text(text).to_owned();
                let mut parts = text.rsplitn(3, ':');
                let (col, line, file) = (parts.next(), parts.next(), parts.next());
                let number = |text: Option<&str>| text.and_then(|t| t.parse::<u32>().ok());
                match (file, number(line), number(col)) {
                    (Some(file), Some(line), Some(col)) => (self.ir.ctx.str(file), line, col),
                    _ => {
                        return src.fail(
                            span,
                            format!("expected a location \"file:line:column\", found \"{text}\""),
                        );
                    }
                }
            }
        };
        Ok(self.ir.ctx.loc(SourceLoc { file, line, col }))
    }

    // ---- names ----

    fn value(&mut self, name: &'s NameSrc, may_be_later: bool, ty: Option<Type>) -> Res<Value> {
        let src = self.src;
        let text = src.hole_text(name.hole);
        let key = match name.part {
            None => self.ir.ctx.str(text),
            Some(part) => self.ir.ctx.str(&format!("{text}#{}", src.int(part))),
        };
        let is_mem = ty.is_some_and(|ty| MemType::get(&self.ir.ctx, ty).is_some());
        self.scopes
            .lookup(self.ir, key, ty, may_be_later && !is_mem, || {
                (src.span(&name.span), text.to_owned())
            })
    }

    /// The number an index has among the operation's, added if new.
    fn index(&mut self, index: &'s IndexSrc, indices: &mut Indices, span: &Span) -> Res<u8> {
        match index {
            IndexSrc::Dim(dim) => {
                if (*dim as usize) < indices.values.len() {
                    Ok(*dim)
                } else {
                    self.src.fail(
                        span,
                        format!(
                            "`d{dim}` has no operand: the operation uses {} loop indices",
                            indices.values.len()
                        ),
                    )
                }
            }
            IndexSrc::Name(name) => {
                let value = self.value(name, false, None)?;
                if let Some(at) = indices.values.iter().position(|&known| known == value) {
                    return Ok(at as u8);
                }
                if indices.values.len() == 127 {
                    return self
                        .src
                        .fail(span, "an operation uses at most 127 loop indices");
                }
                if !is_index(&self.ir.ctx, self.ir.value_type(value)) {
                    let found = type_text(&self.ir.ctx, self.ir.value_type(value));
                    let text = self.src.hole_text(name.hole);
                    return Err(Some(Box::new(Diagnostic::error(
                        self.src.span(&name.span),
                        format!("`%{text}` is a {found}, an index expression takes loop indices"),
                    ))));
                }
                indices.values.push(value);
                Ok(indices.values.len() as u8 - 1)
            }
        }
    }

    fn bind_results(&mut self, recipe: &'s OpRecipe, op: Op, hint: Option<Str>) -> Res<()> {
        let src = self.src;
        let mut values = self.ir.results(op);
        for result in &recipe.results {
            let text = src.hole_text(result.name.hole);
            let count = result.count.map_or(1, |count| src.int(count));
            for part in 0..count {
                let Some(value) = values.next() else {
                    return Ok(());
                };
                let key = match result.count {
                    None => self.ir.ctx.str(text),
                    Some(_) => self.ir.ctx.str(&format!("{text}#{part}")),
                };
                let named = !text.starts_with(|c: char| c.is_ascii_digit());
                let name = hint.or_else(|| named.then(|| self.ir.ctx.str(text)));
                self.ir.set_value_name(value, name);
                self.scopes.bind(self.ir, key, value, || {
                    (src.span(&result.name.span), text.to_owned())
                })?;
            }
        }
        Ok(())
    }

    fn result_types(
        &mut self,
        recipe: &OpRecipe,
        operands: &[NewOperand],
    ) -> Res<SmallVec<[Type; 1]>> {
        let whole = 0..1;
        let mut named = 0i64;
        for result in &recipe.results {
            named += result
                .count
                .map_or(1, |count| self.src.int(count).clamp(0, 1 << 20));
        }
        if let Some(types) = &recipe.result_types {
            if recipe.opens == Opens::Generic {
                // The types stand in the tail; operations with regions have no results here.
                if named > 0 {
                    return self
                        .src
                        .fail(&whole, "an operation with regions cannot have results here");
                }
                return Ok(SmallVec::new());
            }
            if named != types.len() as i64 && named != 0 {
                return self.src.fail(
                    &whole,
                    format!("{named} result names but {} result types", types.len()),
                );
            }
            return Ok(types.clone());
        }
        if named == 0 {
            return Ok(SmallVec::new());
        }
        // A register takes the dtype of what it is made from.
        let ctx = &self.ir.ctx;
        let dtype = operands.iter().find_map(|operand| {
            let ty = self.ir.value_type(operand.value);
            reg_dtype(ctx, ty).or_else(|| {
                let mem = MemType::get(ctx, ty)?;
                Some(Access::resolve(ctx, &mem, operand.annot).dtype)
            })
        });
        Ok(SmallVec::from_elem(
            reg_type(&mut self.ir.ctx, dtype.unwrap_or(DType::I32)),
            1,
        ))
    }

    // ---- indices ----

    /// Appends the index operands in their canonical order and renumbers what names them.
    ///
    /// Canonical: by first operand that uses the index; inside one access, window before offset
    /// and large coefficients before small ones, which is how slices print.
    fn place_indices(
        &mut self,
        recipe: &OpRecipe,
        operands: &mut SmallVec<[NewOperand; 8]>,
        indices: Indices,
        dict: Dict,
        order: Option<Vec<OrderTerm>>,
    ) -> (Dict, Option<Vec<OrderTerm>>) {
        if indices.values.is_empty() {
            return (dict, order);
        }
        let role = recipe.code.map_or(0, |code| code.def().indices_role()) as u8;
        let mut dict = dict;
        let mut order = order;
        let mut values = indices.values;
        if values.len() > 1 || !recipe.index_names.is_empty() {
            let numbers = self.canonical_numbers(&values, operands, dict, order.as_deref());
            let identity = numbers.iter().enumerate().all(|(i, &n)| n == Some(i as u8));
            if !identity {
                self.renumber(operands, &numbers);
                dict = self.renumber_accumulate(dict, &numbers);
                for term in order.iter_mut().flatten() {
                    for (index, _) in &mut term.terms {
                        *index = numbers[*index as usize].unwrap_or(*index);
                    }
                    term.terms.sort_unstable();
                }
                let mut sorted: SmallVec<[Value; 4]> = SmallVec::new();
                let used = numbers.iter().flatten().count();
                sorted.resize(used, values[0]);
                for (old, &new) in numbers.iter().enumerate() {
                    if let Some(new) = new {
                        sorted[new as usize] = values[old];
                    }
                }
                values = sorted;
            }
        }
        operands.extend(values.iter().map(|&value| NewOperand {
            value,
            role,
            annot: Annot::UNIT,
        }));
        (dict, order)
    }

    fn canonical_numbers(
        &self,
        values: &[Value],
        operands: &[NewOperand],
        dict: Dict,
        order: Option<&[OrderTerm]>,
    ) -> SmallVec<[Option<u8>; 4]> {
        let mut numbering = Numbering::new(values);
        for operand in operands {
            if operand.annot == Annot::UNIT {
                continue;
            }
            let Some(mem) = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value)) else {
                continue;
            };
            numbering.meet_terms(&Access::resolve(&self.ir.ctx, &mem, operand.annot).terms);
        }
        if let Some(Accumulate::UnlessFirst(index)) = self.accumulate(dict) {
            numbering.meet(index);
        }
        numbering.meet_order(order.unwrap_or_default());
        numbering.finish()
    }

    fn accumulate(&self, dict: Dict) -> Option<Accumulate> {
        let attr = self.ir.ctx.dict_get(dict, names::ACCUMULATE)?;
        Accumulate::get(&self.ir.ctx, Some(attr))
    }

    fn renumber(&mut self, operands: &mut [NewOperand], numbers: &[Option<u8>]) {
        for operand in operands {
            if operand.annot == Annot::UNIT {
                continue;
            }
            let Some(mem) = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value)) else {
                continue;
            };
            let whole = Access::whole(&mem);
            let mut access = Access::resolve(&self.ir.ctx, &mem, operand.annot);
            let terms = std::mem::take(&mut access.terms);
            for term in terms {
                let index = numbers
                    .get(term.index as usize)
                    .copied()
                    .flatten()
                    .unwrap_or(term.index);
                access.add_term(term.target, index, term.coef);
            }
            if let Ok(annot) = access.intern(&mut self.ir.ctx, &whole) {
                operand.annot = annot;
            }
        }
    }

    fn renumber_accumulate(&mut self, dict: Dict, numbers: &[Option<u8>]) -> Dict {
        match self.accumulate(dict) {
            Some(Accumulate::UnlessFirst(index)) => {
                let index = numbers
                    .get(index as usize)
                    .copied()
                    .flatten()
                    .unwrap_or(index);
                let attr = Accumulate::UnlessFirst(index).intern(&mut self.ir.ctx);
                self.ir.ctx.dict_with(dict, names::ACCUMULATE, attr)
            }
            _ => dict,
        }
    }

    fn order(&mut self, order: &'s [AffineRecipe], indices: &mut Indices) -> Res<Vec<OrderTerm>> {
        let mut out = Vec::with_capacity(order.len());
        for affine in order {
            let (constant, terms) = self.affine(affine, indices)?;
            let mut term = OrderTerm {
                constant,
                terms: terms.into_iter().filter(|&(_, coef)| coef != 0).collect(),
            };
            term.terms.sort_unstable();
            out.push(term);
        }
        Ok(out)
    }

    /// Constant and terms of a sum; equal indices are joined.
    fn affine(&mut self, affine: &'s AffineRecipe, indices: &mut Indices) -> Res<(i64, Terms)> {
        let src = self.src;
        let overflow = || src.fail(&affine.span, "index expression does not fit 64 bits");
        let mut constant = 0i64;
        for &part in &affine.constants {
            match constant.checked_add(src.int(part)) {
                Some(sum) => constant = sum,
                None => return overflow(),
            }
        }
        let mut terms: SmallVec<[(u8, i64); 2]> = SmallVec::new();
        for (index, factor, negative) in &affine.terms {
            let coef = factor.map_or(1, |factor| src.int(factor));
            let coef = if *negative {
                coef.checked_neg()
            } else {
                Some(coef)
            };
            let index = self.index(index, indices, &affine.span)?;
            let Some(coef) = coef else { return overflow() };
            match terms.iter_mut().find(|(known, _)| *known == index) {
                Some((_, sum)) => match sum.checked_add(coef) {
                    Some(added) => *sum = added,
                    None => return overflow(),
                },
                None => terms.push((index, coef)),
            }
        }
        Ok((constant, terms))
    }

    // ---- accesses ----

    fn access(
        &mut self,
        recipe: &'s AccessRecipe,
        operand: &'s OperandRecipe,
        ty: Type,
        indices: &mut Indices,
    ) -> Res<Annot> {
        let src = self.src;
        let text = src.hole_text(operand.name.hole);
        let Some(mem) = MemType::get(&self.ir.ctx, ty) else {
            let found = type_text(&self.ir.ctx, ty);
            return src.fail(
                &operand.span,
                format!("`%{text}` is a {found}, only locations have accesses"),
            );
        };
        let recast = match recipe {
            AccessRecipe::Slices { recast, .. } | AccessRecipe::Raw { recast, .. } => *recast,
            AccessRecipe::Whole => None,
        };
        let dtype = recast.unwrap_or(mem.dtype);
        let Some(dims) = view_dims(&mem, dtype) else {
            return src.fail(
                &operand.span,
                format!(
                    "`%{text}` is a {}: its last dimension is no whole number of {dtype} elements",
                    mem.text()
                ),
            );
        };
        let windowed = mem.is_partitioned();
        let partitions = mem.partitions();
        let space = mem.space;
        let mut access = Access {
            dtype,
            recast: recast.is_some_and(|recast| recast != mem.dtype),
            window: None,
            offset: 0,
            pairs: SmallVec::new(),
            terms: SmallVec::new(),
        };
        match recipe {
            AccessRecipe::Whole => return Ok(Annot::UNIT),
            AccessRecipe::Slices { slices, .. } => {
                let view = View {
                    partitions: windowed.then_some(partitions),
                    dims: &dims,
                };
                self.slices(slices, operand, &view, &mut access, indices)?;
            }
            AccessRecipe::Raw {
                window,
                offset,
                pairs,
                ..
            } => {
                if windowed != window.is_some() {
                    let message = if windowed {
                        format!(
                            "`%{text}` is in {space}, its access needs a partition window `p start:end`"
                        )
                    } else {
                        format!("`%{text}` is in dram, which has no partition window")
                    };
                    return src.fail(&operand.span, message);
                }
                if let Some((start, end)) = window.as_deref() {
                    let (start, terms) = self.affine(start, indices)?;
                    let count = match end {
                        WindowEnd::Length(len) => src.int(*len),
                        WindowEnd::End(end) => src.int(*end).saturating_sub(start),
                    };
                    let Ok(count) = u64::try_from(count) else {
                        return src.fail(
                            &operand.span,
                            format!("partition window of `%{text}` ends before it starts"),
                        );
                    };
                    access.window = Some(Window { start, count });
                    for (index, coef) in terms {
                        access.add_term(Target::Partition, index, coef);
                    }
                }
                let (start, terms) = self.affine(offset, indices)?;
                access.offset = start;
                for (index, coef) in terms {
                    access.add_term(Target::Offset, index, coef);
                }
                for &(step, count) in pairs {
                    let count = src.int(count);
                    let Ok(count) = u64::try_from(count) else {
                        return src
                            .fail(&operand.span, format!("count {count} must not be negative"));
                    };
                    access.pairs.push(Pair {
                        step: src.int(step),
                        count,
                    });
                }
                if access.pairs.is_empty() {
                    access.pairs.push(Pair { step: 1, count: 1 });
                }
            }
        }
        if MemType::get(&self.ir.ctx, ty).is_some_and(|mem| access.is_whole(&mem)) {
            return Ok(Annot::UNIT);
        }
        access
            .intern_part(&mut self.ir.ctx)
            .or_else(|error: AccessError| {
                src.fail(&operand.span, format!("access of `%{text}`: {error}"))
            })
    }

    fn slices(
        &mut self,
        slices: &'s [(SliceRecipe, Span)],
        operand: &'s OperandRecipe,
        view: &View<'_>,
        access: &mut Access,
        indices: &mut Indices,
    ) -> Res<()> {
        let src = self.src;
        let rank = view.dims.len() + usize::from(view.partitions.is_some());
        let text = src.hole_text(operand.name.hole);
        if !slices.is_empty() && slices.len() != rank {
            let plural = if rank == 1 { "dimension" } else { "dimensions" };
            return src.fail(
                &operand.span,
                format!(
                    "`%{text}` has {rank} {plural}, its access has {} entries",
                    slices.len()
                ),
            );
        }
        // Strides from the outermost dimension inwards: what is left of the product.
        let mut inner = view.dims.iter().fold(1i64, |product, &dim| {
            product.saturating_mul(dim.max(1) as i64)
        });
        for dim in 0..rank {
            let (slice, span) = match slices.get(dim) {
                Some((slice, span)) => (slice, span),
                None => (&FULL, &operand.span),
            };
            let on_partition = view.partitions.is_some() && dim == 0;
            let free = dim.saturating_sub(usize::from(view.partitions.is_some()));
            let size = match view.partitions {
                Some(partitions) if dim == 0 => partitions,
                _ => view.dims[free],
            };
            let slice = self.slice(slice, span, size, indices)?;
            let fixed = slice.terms.is_empty();
            let reach = (slice.count.max(1) - 1) as i128 * slice.step as i128;
            let last = slice.start as i128 + reach;
            if fixed && slice.count > 0 && (slice.start < 0 || last >= size as i128) {
                return Err(Some(Box::new(
                    Diagnostic::error(
                        src.span(span),
                        format!(
                            "slice covers {}..{} of `%{text}`, whose dimension {dim} has size {size}",
                            slice.start,
                            last + 1
                        ),
                    )
                    .label("outside"),
                )));
            }
            if on_partition {
                if slice.step != 1 && slice.count != 1 {
                    return src.fail(span, "partitions cannot be taken in steps, only in one run");
                }
                access.window = Some(Window {
                    start: slice.start,
                    count: slice.count,
                });
                for (index, coef) in slice.terms {
                    access.add_term(Target::Partition, index, coef);
                }
                continue;
            }
            inner /= size.max(1) as i64;
            let stride = inner;
            let scaled = |value: i64| value.checked_mul(stride);
            let (Some(step), Some(start)) = (scaled(slice.step), scaled(slice.start)) else {
                return src.fail(span, "offset does not fit 64 bits");
            };
            access.pairs.push(Pair {
                step,
                count: slice.count,
            });
            access.offset = access.offset.saturating_add(start);
            for (index, coef) in slice.terms {
                match scaled(coef) {
                    Some(coef) => access.add_term(Target::Offset, index, coef),
                    None => return src.fail(span, "offset does not fit 64 bits"),
                }
            }
        }
        if access.pairs.is_empty() {
            access.pairs.push(Pair { step: 1, count: 1 });
        }
        Ok(())
    }

    fn slice(
        &mut self,
        slice: &'s SliceRecipe,
        span: &Span,
        size: u64,
        indices: &mut Indices,
    ) -> Res<Slice> {
        let src = self.src;
        let step_of = |step: &Option<IntSrc>| -> Res<i64> {
            match step.map_or(1, |step| src.int(step)) {
                step if step >= 1 => Ok(step),
                step => Err(Some(Box::new(
                    Diagnostic::error(
                        src.span(span),
                        format!("a slice steps forward, found step {step}"),
                    )
                    .help("write reversed accesses in the raw form `[p 0:128, off 511, -1 x 512]`"),
                ))),
            }
        };
        let mut out = Slice {
            start: 0,
            count: size,
            step: 1,
            terms: SmallVec::new(),
        };
        match slice {
            SliceRecipe::At(at) => {
                (out.start, out.terms) = self.affine(at, indices)?;
                out.count = 1;
            }
            SliceRecipe::Length(start, len, step) => {
                (out.start, out.terms) = self.affine(start, indices)?;
                out.step = step_of(step)?;
                let len = src.int(*len);
                match u64::try_from(len) {
                    Ok(len) => out.count = len.div_ceil(out.step as u64),
                    Err(_) => {
                        return src.fail(span, format!("length {len} must not be negative"));
                    }
                }
            }
            SliceRecipe::Range(start, end, step) => {
                out.step = step_of(step)?;
                if let Some(start) = start {
                    (out.start, out.terms) = self.affine(start, indices)?;
                }
                let (end, end_terms) = match end {
                    Some(end) => self.affine(end, indices)?,
                    None => (i64::try_from(size).unwrap_or(i64::MAX), SmallVec::new()),
                };
                let mut sorted = (out.terms.clone(), end_terms);
                sorted.0.sort_unstable();
                sorted.1.sort_unstable();
                if sorted.0 != sorted.1 {
                    return Err(Some(Box::new(
                        Diagnostic::error(src.span(span), "the length of a slice must be constant")
                            .help("write `start +: length` where the start moves with a loop"),
                    )));
                }
                let length = end.saturating_sub(out.start);
                let Ok(length) = u64::try_from(length) else {
                    return src.fail(
                        span,
                        format!("slice ends at {end}, before its start {}", out.start),
                    );
                };
                out.count = length.div_ceil(out.step as u64);
            }
        }
        Ok(out)
    }

    // ---- attributes ----

    fn dict(
        &mut self,
        recipe: &'s OpRecipe,
        operands: &[NewOperand],
        indices: &mut Indices,
    ) -> Res<Dict> {
        let mut entries: SmallVec<[(Str, Attr); 8]> = SmallVec::new();
        for entry in &recipe.entries {
            if recipe.code == Some(OpCode::Loop)
                && entry.name == names::STEP
                && matches!(entry.value, AttrRecipe::Int(step, _) if self.src.int(step) == 1)
            {
                continue; // the default
            }
            let attr = self.attr(&entry.value, &entry.span, recipe, operands, indices)?;
            entries.push((entry.name, attr));
        }
        match &recipe.symbol {
            Some(SymbolSrc::Name(hole)) => {
                let name = self.ir.ctx.str(self.src.hole_text(*hole));
                entries.push((names::SYM_NAME, self.ir.ctx.string_of(name)));
            }
            Some(SymbolSrc::Text(text)) => {
                entries.push((names::SYM_NAME, self.ir.ctx.string(text)));
            }
            None => {}
        }
        Ok(self.ir.ctx.dict(&entries))
    }

    fn attr(
        &mut self,
        value: &'s AttrRecipe,
        span: &Span,
        recipe: &'s OpRecipe,
        operands: &[NewOperand],
        indices: &mut Indices,
    ) -> Res<Attr> {
        let src = self.src;
        Ok(match value {
            AttrRecipe::Const(attr) => *attr,
            AttrRecipe::Int(int, ty) => self.ir.ctx.typed_int(src.int(*int), *ty),
            AttrRecipe::Number(number, style, ty) => {
                self.number(number, *style, *ty, span, operands)?
            }
            AttrRecipe::Str(text) => {
                let text = src.str(self.ir, text);
                self.ir.ctx.string_of(text)
            }
            AttrRecipe::Symbol(hole) => {
                let name = self.ir.ctx.str(src.hole_text(*hole).trim_matches('"'));
                self.ir.ctx.symbol(name)
            }
            AttrRecipe::Array(elements) => {
                let mut attrs: SmallVec<[Attr; 8]> = SmallVec::new();
                for element in elements {
                    attrs.push(self.attr(element, span, recipe, operands, indices)?);
                }
                self.ir.ctx.array(&attrs)
            }
            AttrRecipe::Dict(entries) => {
                let mut built: SmallVec<[(Str, Attr); 8]> = SmallVec::new();
                for (name, value) in entries {
                    built.push((*name, self.attr(value, span, recipe, operands, indices)?));
                }
                let dict = self.ir.ctx.dict(&built);
                self.ir.ctx.dict_attr(dict)
            }
            AttrRecipe::Sem(id, op, value, event) => {
                let id = src.int(*id);
                let Ok(id) = u32::try_from(id) else {
                    return src.fail(span, format!("semaphore number {id} is out of range"));
                };
                let sem = Sem {
                    id,
                    op: *op,
                    value: src.int(*value),
                    event: *event,
                };
                sem.intern(&mut self.ir.ctx)
            }
            AttrRecipe::PlaceBytes(partition, byte) => {
                let (partition, byte) = (src.int(*partition), src.int(*byte));
                match (u32::try_from(partition), u64::try_from(byte)) {
                    (Ok(partition), Ok(byte)) => {
                        Placement::Bytes { partition, byte }.intern(&mut self.ir.ctx)
                    }
                    _ => {
                        return src.fail(
                            span,
                            format!("placement [{partition}, {byte}] is negative or too large"),
                        );
                    }
                }
            }
            AttrRecipe::PlaceBank(partition, bank) => {
                let (partition, bank) = (src.int(*partition), src.int(*bank));
                match (u32::try_from(partition), u32::try_from(bank)) {
                    (Ok(partition), Ok(bank)) => {
                        Placement::Bank { partition, bank }.intern(&mut self.ir.ctx)
                    }
                    _ => {
                        return src.fail(
                            span,
                            format!(
                                "placement [{partition}, bank {bank}] is negative or too large"
                            ),
                        );
                    }
                }
            }
            AttrRecipe::PlaceAddress(address) => match u64::try_from(src.int(*address)) {
                Ok(address) => Placement::Address(address).intern(&mut self.ir.ctx),
                Err(_) => return src.fail(span, "a placement must not be negative"),
            },
            AttrRecipe::UnlessFirst(index) => {
                let index = self.index(index, indices, span)?;
                match Accumulate::UnlessFirst(index).intern(&mut self.ir.ctx) {
                    Some(attr) => attr,
                    None => self.ir.ctx.unit(),
                }
            }
            AttrRecipe::Dense(elements, ty) => {
                let stated = *ty;
                super::dense::build(self.ir, src, elements, stated, recipe)
                    .or_else(|message: String| src.fail(span, message))?
            }
        })
    }

    fn number(
        &mut self,
        text: &'s NumSrc,
        style: NumStyle,
        ty: LitType,
        span: &Span,
        operands: &[NewOperand],
    ) -> Res<Attr> {
        let src = self.src;
        let text = src.number_text(text);
        let dtype = match ty {
            LitType::Of(dtype) => dtype,
            LitType::OfOperand(at) => {
                let Some(operand) = operands.get(at as usize) else {
                    return src.fail(span, "a number needs a tile to take its dtype from");
                };
                let ty = self.ir.value_type(operand.value);
                match MemType::get(&self.ir.ctx, ty) {
                    Some(mem) => Access::resolve(&self.ir.ctx, &mem, operand.annot).dtype,
                    None => DType::F32,
                }
            }
            LitType::I64 => {
                return match num::parse(DType::I64, text) {
                    Ok(bits) => Ok(self.ir.ctx.int(bits as i64)),
                    Err(error) => src.fail(span, error.to_string()),
                };
            }
            LitType::F64 => {
                let ty = self.ir.ctx.float_type("f64");
                let value = match style {
                    NumStyle::Hex => text
                        .strip_prefix("0x")
                        .and_then(|hex| u64::from_str_radix(hex, 16).ok()),
                    _ => text.parse::<f64>().ok().map(f64::to_bits),
                };
                return match value {
                    Some(bits) => Ok(self.ir.ctx.float(bits, ty)),
                    None => src.fail(span, format!("`{text}` is no number")),
                };
            }
        };
        let whole = dtype.is_integer();
        // Integers of a float type would read back as floats of another spelling; the other way
        // round the number itself says what is wrong.
        if style == NumStyle::Int && dtype.is_float() {
            return Err(Some(Box::new(
                Diagnostic::error(
                    src.span(span),
                    format!(
                        "a literal of {dtype} must be a number with a decimal point, found `{text}`"
                    ),
                )
                .help(format!("write `{text}.0`")),
            )));
        }
        match num::parse(dtype, text) {
            Ok(bits) => Ok(number(&mut self.ir.ctx, dtype, bits)),
            // The generic form wraps: `200 : i8` is the bits of -56.
            Err(error) => match (whole, text.parse::<i128>()) {
                (true, Ok(value))
                    if value >= 0
                        && value < 1i128 << (8 * dtype.size_bytes())
                        && matches!(ty, LitType::Of(_)) =>
                {
                    Ok(number(&mut self.ir.ctx, dtype, value as u64))
                }
                _ => src.fail(span, error.to_string()),
            },
        }
    }
}

/// `:`
static FULL: SliceRecipe = SliceRecipe::Range(None, None, None);

/// The dimensions slices index.
struct View<'a> {
    /// Size of the partition dimension on chip.
    partitions: Option<u64>,
    dims: &'a [u64],
}

/// Index numbers and their coefficients.
type Terms = SmallVec<[(u8, i64); 2]>;

/// One slice, evaluated.
struct Slice {
    start: i64,
    count: u64,
    step: i64,
    terms: Terms,
}

/// The location an `alloc` defines, as its constant data must match it.
pub(crate) fn alloc_type(ir: &Ir, recipe: &OpRecipe) -> Option<Type> {
    let ty = recipe.result_types.as_ref()?.first().copied()?;
    MemType::get(&ir.ctx, ty).map(|_| ty)
}
