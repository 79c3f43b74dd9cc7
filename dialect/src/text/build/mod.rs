//! From a recipe and the holes of one statement to an operation.
//!
//! Names are resolved through a table by interned string, so a lookup is one array access; scopes
//! undo their bindings when they end. Nothing is allocated per statement.
//!
//! * this file – operations, results, columns, locations; `access` – accesses; `indices` – loop
//!   indices and sums of them; `attr` – attributes and literals; `memo` – accesses built lately.

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
use crate::text::diag::{Diagnostic, Place};
use crate::text::recipe::{
    AccessRecipe, IntSrc, LocRecipe, NameSrc, NumSrc, OpRecipe, Opens, Span, StrSrc,
};
use crate::text::scan::{Hole, is_name};
use crate::text::scopes::Scopes;
use smallvec::SmallVec;

pub(crate) use memo::{AccessMemos, MEMO_INTS};

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
    fn name_place(&self, name: &NameSrc) -> Place {
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
}

/// Builds operations in an [`Ir`].
pub(crate) struct Builder<'a, 's> {
    pub(crate) ir: &'a mut Ir,
    pub(crate) scopes: &'a mut Scopes,
    pub(crate) memos: &'a mut AccessMemos,
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
        self.columns(recipe, op, order.as_deref());
        let hint = self.hint(recipe)?;
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
        self.hint(recipe)
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
                (src.name_place(name), text.to_owned())
            })
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
            let count = result.count.map_or(1, |count| self.src.int(count));
            if count < 1 || count > MOST as i64 {
                let message = format!("a name stands for 1 to {MOST} results, found {count}");
                return self.src.fail(&result.name.span, message);
            }
            named += count;
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
}

/// Index numbers and their coefficients.
type Terms = SmallVec<[(u8, i64); 2]>;

/// The location an `alloc` defines, as its constant data must match it.
pub(crate) fn alloc_type(ir: &Ir, recipe: &OpRecipe) -> Option<Type> {
    let ty = recipe.result_types.as_ref()?.first().copied()?;
    MemType::get(&ir.ctx, ty).map(|_| ty)
}
