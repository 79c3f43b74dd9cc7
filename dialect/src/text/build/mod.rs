//! From a recipe and the holes of one statement to an operation.
//!
//! Names are resolved through a table by interned string, so a lookup is one array access; scopes
//! undo their bindings when they end. Nothing is allocated per statement.
//!
//! * this file – operations, results, columns, locations; `access` – accesses; `indices` – loop
//!   indices and sums of them; `attr` – attributes and literals; `memo` – what was built lately.

mod access;
mod attr;
mod indices;
mod memo;

use crate::bir::access::Access;
use crate::bir::num::DType;
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, COL_ORDER, Dep, OrderTerm, order_words};
use crate::bir::types::{MemType, reg_dtype, reg_type, type_text};
use crate::ir::{Annot, Block, Ir, Loc, NewOp, NewOperand, Op, SourceLoc, Str, Type, Value};
use crate::text::diag::{Diagnostic, Place, counted};
use crate::text::recipe::{
    AccessRecipe, IntSrc, LocRecipe, NameSrc, NumSrc, OpRecipe, Opens, Span, StrSrc,
};
use crate::text::scan::{Hole, is_name};
use crate::text::scopes::{POISON, Scopes};
use smallvec::SmallVec;

pub(crate) use memo::{AccessMemo, DictMemo, Forms, Memos};

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

    /// Where an integer stands in this statement; the statement where it is part of its shape.
    fn int_place(&self, src: IntSrc) -> Place {
        match src {
            IntSrc::Const(_) => Place::Span(self.base..self.base),
            IntSrc::Hole { hole, negative } => {
                let hole = self.hole(hole);
                let start = hole.start as usize - usize::from(negative);
                Place::Span(start..(hole.start + hole.len) as usize)
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
                    ir.ctx.str(&crate::text::compile::unescape(quoted))
                } else {
                    ir.ctx.str(&quoted[1..quoted.len() - 1])
                }
            }
        }
    }

    fn span(&self, span: &Span) -> Place {
        Place::Span(self.base + span.start as usize..self.base + span.end as usize)
    }

    /// Where a name stands in this statement; recipes hold the places of the first of their shape.
    pub(crate) fn name_place(&self, name: &NameSrc) -> Place {
        let hole = self.hole(name.hole);
        let start = hole.start as usize;
        Place::Span(start - 1..start + hole.len as usize)
    }

    fn fail<T>(&self, span: &Span, message: impl Into<String>) -> Res<T> {
        Err(Some(Box::new(Diagnostic::error(self.span(span), message))))
    }
}

/// An operation built, and what the driver must still bind.
pub(crate) struct Built {
    pub(crate) op: Op,
    pub(crate) iv: Option<Str>,
    /// The name its attributes state.
    hint: Option<Str>,
    /// Of a generic operation with regions.
    pub(crate) head: Head,
}

/// What stands in front of the regions of a generic operation and is needed behind them.
#[derive(Default)]
pub(crate) struct Head {
    /// Names of the results, whose types stand in the tail: nothing inside the regions sees them.
    pub(crate) results: Vec<ResultName>,
    /// The name its properties state.
    hint: Option<Str>,
    /// Whether its properties state the roles of its operands.
    has_segments: bool,
}

/// A name left of `=`.
pub(crate) struct ResultName {
    pub(crate) name: Str,
    /// `%x:2`
    count: Option<i64>,
    place: Place,
}

/// Builds operations in an [`Ir`].
pub(crate) struct Builder<'a, 's> {
    pub(crate) ir: &'a mut Ir,
    pub(crate) scopes: &'a mut Scopes,
    pub(crate) memos: &'a mut Memos,
    pub(crate) src: Source<'s>,
}

/// Operands or results an operation can have.
const MOST: usize = u16::MAX as usize;

/// The loop indices an operation uses, in the order its accesses name them.
#[derive(Default)]
pub(super) struct Indices {
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
                (access, Some(memo)) => {
                    let key = Memos::access_key(memo, ty, src.holes);
                    match self.memos.access(&key) {
                        Some(annot) => annot,
                        None => {
                            let annot = self.access(access, operand, ty, &mut indices)?;
                            self.memos.keep_access(key, annot);
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
        for (count, what) in [
            (operands.len(), "operands"),
            (result_types.len(), "results"),
        ] {
            if count > MOST {
                let message = format!("an operation has at most {MOST} {what}, found {count}");
                return src.fail(&(0..1), message);
            }
        }
        let successors: SmallVec<[Block; 2]> = recipe
            .successors
            .iter()
            .map(|name| {
                self.scopes
                    .block(self.ir, src.hole_text(name.hole), || src.name_place(name))
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
        self.columns(recipe, op, order.as_deref())?;
        let hint = self.hint(recipe)?;
        let iv = match &recipe.iv {
            Some(name) => Some(self.ir.ctx.str(src.hole_text(name.hole))),
            None => hint.filter(|_| recipe.code == Some(OpCode::Loop)),
        };
        let head = match recipe.opens {
            Opens::Generic => self.head(recipe, hint),
            _ => Head::default(),
        };
        Ok(Built { op, iv, hint, head })
    }

    fn head(&mut self, recipe: &OpRecipe, hint: Option<Str>) -> Head {
        let src = self.src;
        let results = recipe.results.iter().map(|result| ResultName {
            name: self.ir.ctx.str(src.hole_text(result.name.hole)),
            count: result.count.map(|count| src.int(count)),
            place: src.name_place(&result.name),
        });
        Head {
            results: results.collect(),
            hint,
            has_segments: recipe.segments.is_some(),
        }
    }

    /// Gives an operation with regions what stands behind them in the generic form. Results are
    /// made, not yet named.
    pub(crate) fn tail(&mut self, recipe: &'s OpRecipe, op: Op, head: &Head) -> Res<()> {
        let mut operands = self.ir.new_operands(op);
        let stated = recipe.stated_types;
        if stated != operands.len() {
            return self.src.fail(
                &recipe.operand_types_span,
                format!(
                    "the operation has {}, but {}",
                    counted(operands.len(), "operand"),
                    counted(stated, "operand type"),
                ),
            );
        }
        let types = recipe.result_types.as_deref().unwrap_or(&[]);
        let named = head
            .results
            .iter()
            .map(|name| name.count.unwrap_or(1))
            .sum();
        if let Err(Some(diagnostic)) = self.check_result_count(recipe, named, types.len()) {
            let names = head.results.first().map(|name| name.place.clone());
            return Err(Some(Box::new(match names {
                Some(place) => diagnostic.related(place, "named here"),
                None => *diagnostic,
            })));
        }
        if self.ir.results(op).len() == 0 {
            self.ir.set_results(op, types);
        }
        let mut indices = Indices::default();
        let dict = match recipe.dict {
            Some(dict) => dict,
            None => self.dict(recipe, &operands, &mut indices)?,
        };
        // Properties stand in the head.
        let dict = self.ir.ctx.dict_joined(self.ir.dict(op), dict);
        self.ir.set_dict(op, dict);
        if let Some(loc) = &recipe.loc {
            let loc = self.loc(loc)?;
            self.ir.set_loc(op, Some(loc));
        }
        let order = match &recipe.order {
            Some(order) => Some(self.order(order, &mut indices)?),
            None => None,
        };
        self.columns(recipe, op, order.as_deref())?;
        let roles: Vec<usize> = match (&recipe.segments, recipe.code) {
            (Some(sizes), _) => sizes
                .iter()
                .enumerate()
                .flat_map(|(role, &size)| (0..size.clamp(0, 1 << 16)).map(move |_| role))
                .collect(),
            (None, Some(code)) if !head.has_segments => code.def().required_roles().collect(),
            (None, _) => operands.iter().map(|operand| operand.role.into()).collect(),
        };
        if roles.len() != operands.len() {
            return self.src.fail(
                &recipe.operand_types_span,
                format!(
                    "operand segments add up to {}, found {}",
                    roles.len(),
                    counted(operands.len(), "operand")
                ),
            );
        }
        for (operand, role) in operands.iter_mut().zip(roles) {
            operand.role = role as u8;
        }
        self.ir.set_operands(op, &operands);
        if let Some(name) = self.hint(recipe)?.or(head.hint) {
            let entry = self.ir.regions(op).first().and_then(|&r| self.ir.entry(r));
            if let Some(index) = entry.and_then(|block| self.ir.args(block).next()) {
                self.ir.set_value_name(index, Some(name));
            }
        }
        Ok(())
    }

    fn columns(&mut self, recipe: &OpRecipe, op: Op, order: Option<&[OrderTerm]>) -> Res<()> {
        if let Some(id) = recipe.id {
            let id = self.instruction_number(id)?;
            self.ir.set_int_cell(COL_ID, op, Some(id));
        }
        if let Some(deps) = &recipe.deps {
            let mut words: SmallVec<[u64; 8]> = SmallVec::with_capacity(deps.len());
            for dep in deps {
                let id = self.instruction_number(dep.id)?;
                let (kind, set) = (dep.kind, dep.set);
                words.push(Dep { kind, id, set }.word());
            }
            self.ir.set_words_cell(COL_DEPS, op, Some(&words));
        }
        if let Some(order) = order {
            self.ir
                .set_words_cell(COL_ORDER, op, Some(&order_words(order)));
        }
        Ok(())
    }

    /// The number of an instruction or of a set.
    fn instruction_number(&self, src: IntSrc) -> Res<u32> {
        let value = self.src.int(src);
        match u32::try_from(value) {
            Ok(id) if id != u32::MAX => Ok(id),
            _ => {
                let message = format!("instruction number {value} is out of range");
                let error = Diagnostic::error(self.src.int_place(src), message);
                let help = format!("numbers of instructions and sets are 0 to {}", u32::MAX - 1);
                Err(Some(Box::new(error.help(help))))
            }
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

    fn value(&mut self, name: &'s NameSrc, may_be_later: bool, ty: Option<Type>) -> Res<Value> {
        let src = self.src;
        let text = src.hole_text(name.hole);
        let base = self.ir.ctx.str(text);
        let part = name.part.map_or(0, |part| src.int(part));
        let key = part_key(self.ir, base, part);
        if key != base && self.scopes.get(base) == POISON {
            return Err(None);
        }
        self.scopes
            .lookup(self.ir, key, ty, may_be_later, || src.name_place(name))
    }

    /// The name the attributes state.
    fn hint(&mut self, recipe: &'s OpRecipe) -> Res<Option<Str>> {
        let Some(hint) = &recipe.hint else {
            return Ok(None);
        };
        let hint = self.src.str(self.ir, hint);
        let text = self.ir.ctx.text(hint);
        if !is_name(text) {
            let message = format!("a value cannot have the name {text:?}");
            return self.src.fail(&(0..1), message);
        }
        Ok(Some(hint))
    }

    /// Binds the names left of `=`; those of an operation with regions are bound behind them.
    pub(crate) fn bind_results(&mut self, recipe: &OpRecipe, built: &Built) -> Res<()> {
        if recipe.opens == Opens::Generic {
            return Ok(());
        }
        let src = self.src;
        let mut values = self.ir.results(built.op);
        for result in &recipe.results {
            let name = self.ir.ctx.str(src.hole_text(result.name.hole));
            let count = result.count.map(|count| src.int(count));
            self.bind_result(name, count, built.hint, &mut values, || {
                src.name_place(&result.name)
            })?;
        }
        Ok(())
    }

    /// Binds the names in the head of an operation whose results its tail has made.
    pub(crate) fn bind_head(&mut self, op: Op, head: &Head) -> Res<()> {
        let mut values = self.ir.results(op);
        for result in &head.results {
            self.bind_result(result.name, result.count, None, &mut values, || {
                result.place.clone()
            })?;
        }
        Ok(())
    }

    fn bind_result(
        &mut self,
        name: Str,
        count: Option<i64>,
        hint: Option<Str>,
        values: &mut impl Iterator<Item = Value>,
        place: impl Fn() -> Place,
    ) -> Res<()> {
        let named = !self
            .ir
            .ctx
            .text(name)
            .starts_with(|c: char| c.is_ascii_digit());
        let own = hint.or(named.then_some(name));
        for (part, value) in values.take(count.unwrap_or(1).max(0) as usize).enumerate() {
            let key = part_key(self.ir, name, part as i64);
            self.ir.set_value_name(value, own);
            self.scopes.bind(self.ir, key, value, &place)?;
        }
        Ok(())
    }

    fn check_result_count(&self, recipe: &OpRecipe, named: i64, stated: usize) -> Res<()> {
        if named == 0 || named == stated as i64 {
            return Ok(());
        }
        let what = if named == 1 { "a name" } else { "names" };
        self.src.fail(
            &recipe.result_types_span,
            format!(
                "the operation has {what} for {}, but {}",
                counted(named as usize, "result"),
                counted(stated, "result type"),
            ),
        )
    }

    fn result_types(
        &mut self,
        recipe: &OpRecipe,
        operands: &[NewOperand],
    ) -> Res<SmallVec<[Type; 1]>> {
        let mut named = 0i64;
        for result in &recipe.results {
            let count = result.count.map_or(1, |count| self.src.int(count));
            if count < 1 || count > MOST as i64 {
                let message = format!("a name stands for 1 to {MOST} results, found {count}");
                return self.src.fail(&result.name.span, message);
            }
            named += count;
        }
        if recipe.opens == Opens::Generic {
            // Their types stand in the tail.
            return Ok(SmallVec::new());
        }
        if let Some(types) = &recipe.result_types {
            self.check_result_count(recipe, named, types.len())?;
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
}

/// What a name of several results is bound under: `%x` and `%x#0` are the same.
fn part_key(ir: &mut Ir, name: Str, part: i64) -> Str {
    if part == 0 {
        return name;
    }
    let text = format!("{}#{part}", ir.ctx.text(name));
    ir.ctx.str(&text)
}

/// Index numbers and their coefficients.
type Terms = SmallVec<[(u8, i64); 2]>;

/// The location an `alloc` defines, as its constant data must match it.
pub(crate) fn alloc_type(ir: &Ir, recipe: &OpRecipe) -> Option<Type> {
    let ty = recipe.result_types.as_ref()?.first().copied()?;
    MemType::get(&ir.ctx, ty).map(|_| ty)
}
