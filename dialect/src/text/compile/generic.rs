//! Statements of the generic form: segments and types.

use super::leaf::unescape;
use super::{Compiler, Res, Tail, span_of};
use crate::bir::ops::{OpCode, OperandDef, Syntax};
use crate::bir::types::MemType;
use crate::ir::Type;
use crate::text::diag::{Diagnostic, counted};
use crate::text::grammar::Rule;
use crate::text::recipe::{
    AccessRecipe, NameSrc, OpRecipe, Opens, OperandRecipe, Recipe, ResultRecipe, Span,
};
use pest::iterators::Pair;
use smallvec::SmallVec;

impl Compiler<'_> {
    pub(super) fn generic(
        &mut self,
        pair: Pair<'_, Rule>,
        rule: Rule,
        tail: Option<Tail>,
    ) -> Res<Recipe> {
        let parts: Vec<Pair<'_, Rule>> = pair.into_inner().collect();
        let name_pair = parts.iter().find(|part| part.as_rule() == Rule::string);
        let name = name_pair.map_or(String::new(), |part| unescape(part.as_str()));
        if name == "builtin.module" && rule == Rule::generic_open_stmt {
            return Ok(Recipe::Wrapper { generic: true });
        }
        let code = match tail {
            Some(Tail(code)) => code,
            None => name.strip_prefix("bir.").and_then(OpCode::from_name),
        };
        if let Some(name_pair) = name_pair
            && code.is_none()
            && let Some(mnemonic) = name.strip_prefix("bir.")
        {
            let known = OpCode::ALL.iter().map(|op| op.def().name);
            return Err(Box::new(
                Diagnostic::error(
                    self.place(&span_of(name_pair)),
                    format!("unknown instruction `{name}`"),
                )
                .maybe_help(
                    crate::text::diag::nearest(mnemonic, known)
                        .map(|near| format!("did you mean `bir.{near}`?")),
                ),
            ));
        }
        if code.is_some_and(|code| code.def().syntax == Syntax::Implicit) {
            if rule == Rule::generic_stmt {
                return Ok(Recipe::Nothing);
            }
            let whole = 0..self.text.len() as u32;
            let message = format!("`{name}` has no regions");
            return Err(Box::new(Diagnostic::error(self.place(&whole), message)));
        }
        let mut op = self.blank(&name, code);
        op.generic = true;
        if rule == Rule::generic_open_stmt {
            op.opens = Opens::Generic;
        }
        let mut access = Vec::new();
        let mut segments = None;
        let mut uses: Vec<(NameSrc, Span)> = Vec::new();
        let mut use_types: Vec<Type> = Vec::new();
        let mut result_types: SmallVec<[Type; 1]> = SmallVec::new();
        let mut dicts = Vec::new();
        for part in parts {
            match part.as_rule() {
                Rule::generic_results => {
                    for result in part.into_inner() {
                        let mut inner = result.into_inner();
                        let Some(value) = inner.next() else { continue };
                        let count = match inner.next() {
                            Some(count) => Some(self.int(&count)?),
                            None => None,
                        };
                        op.results.push(ResultRecipe {
                            name: self.name(&value)?,
                            count,
                        });
                    }
                }
                Rule::uses => {
                    for used in part.into_inner() {
                        let span = span_of(&used);
                        let mut inner = used.into_inner();
                        let Some(value) = inner.next() else { continue };
                        let mut name = self.name(&value)?;
                        if let Some(number) = inner.next() {
                            name.part = Some(self.int(&number)?);
                        }
                        uses.push((name, span));
                    }
                }
                Rule::succs => {
                    for caret in part.into_inner() {
                        op.successors.push(self.name(&caret)?);
                    }
                }
                Rule::props => dicts.extend(part.into_inner()),
                Rule::dict => dicts.push(part),
                Rule::generic_types => {
                    let mut inner = part.into_inner();
                    if let Some(list) = inner.next() {
                        op.operand_types_span = span_of(&list);
                        for ty in list.into_inner() {
                            use_types.push(self.ty(ty)?);
                        }
                    }
                    if let Some(results) = inner.next() {
                        op.result_types_span = span_of(&results);
                        if results.as_rule() == Rule::types {
                            for ty in results.into_inner() {
                                result_types.push(self.ty(ty)?);
                            }
                        } else {
                            result_types.push(self.ty(results)?);
                        }
                    }
                }
                Rule::loc => op.loc = self.loc(part)?,
                _ => {}
            }
        }
        let stated_loc = op.loc.take();
        for dict in dicts {
            self.dict(dict, &mut op, &mut access, &mut segments)?;
        }
        op.loc = op.loc.take().or(stated_loc);
        op.stated_types = use_types.len();
        if rule != Rule::generic_tail_stmt {
            self.assign_uses(&mut op, uses, &use_types, access, segments.as_deref())?;
            let count = op.operands.len() + op.index_names.len();
            if rule == Rule::generic_stmt && use_types.len() != count {
                return Err(Box::new(Diagnostic::error(
                    self.place(&op.operand_types_span),
                    format!(
                        "the operation has {}, but {}",
                        counted(count, "operand"),
                        counted(use_types.len(), "operand type"),
                    ),
                )));
            }
        }
        op.result_types = Some(result_types);
        op.segments = segments;
        self.finish(&mut op);
        if rule == Rule::generic_tail_stmt {
            return Ok(Recipe::Tail(Box::new(op)));
        }
        Ok(Recipe::Op(Box::new(op)))
    }

    /// Gives the operands of a generic operation their roles.
    pub(super) fn assign_uses(
        &mut self,
        op: &mut OpRecipe,
        uses: Vec<(NameSrc, Span)>,
        types: &[Type],
        access: Vec<AccessRecipe>,
        segments: Option<&[i64]>,
    ) -> Res<()> {
        let whole = 0..self.text.len() as u32;
        let fail = |this: &Self, message: String| {
            Err(Box::new(Diagnostic::error(this.place(&whole), message)))
        };
        let mut roles: SmallVec<[usize; 8]> = SmallVec::new();
        let def = op.code.map(OpCode::def);
        match (&def, segments) {
            (None, _) => roles.extend(uses.iter().map(|_| 0)),
            (Some(def), Some(sizes)) => {
                let expected = def.operands.len() + 1;
                if sizes.len() != expected {
                    return fail(
                        self,
                        format!(
                            "`{}` has {expected} operand segments, found {}",
                            def.name,
                            sizes.len()
                        ),
                    );
                }
                for (role, &size) in sizes.iter().enumerate() {
                    if size < 0 || size > uses.len() as i64 {
                        return fail(self, format!("operand segment size {size} is out of range"));
                    }
                    roles.extend((0..size).map(|_| role));
                }
            }
            // The sizes of an operation with regions stand behind them.
            (Some(_), None) if op.opens == Opens::Generic => {
                roles.extend((0..uses.len()).map(|at| at.min(usize::from(u8::MAX))));
            }
            (Some(def), None) => {
                roles.extend(def.required_roles().take(uses.len()));
            }
        }
        if roles.len() != uses.len() {
            return fail(
                self,
                format!(
                    "operand segments add up to {}, found {}",
                    roles.len(),
                    counted(uses.len(), "operand")
                ),
            );
        }
        let mut accesses = access.into_iter();
        let mut given = accesses.len() > 0;
        for (at, ((name, span), &role)) in uses.into_iter().zip(&roles).enumerate() {
            let ty = types.get(at).copied();
            if let Some(def) = def
                && op.opens != Opens::Generic
                && role == def.indices_role()
            {
                op.index_names.push(name);
                continue;
            }
            let states_mem = ty.is_some_and(|ty| MemType::get(&self.ir.ctx, ty).is_some());
            let is_mem = ty.is_none() || states_mem;
            let register = def
                .and_then(|def| def.operands.get(role))
                .is_none_or(OperandDef::is_register);
            let access = match (given && is_mem && !register, accesses.next()) {
                (true, Some(access)) => access,
                (true, None) => {
                    return fail(self, "fewer accesses than memory operands".to_owned());
                }
                (false, _) => AccessRecipe::Whole,
            };
            op.operands.push(OperandRecipe {
                role: role as u8,
                may_be_later: (register || !is_mem) && !states_mem,
                name,
                memo: self.forms.access(&access),
                access,
                ty,
                span,
            });
        }
        given = accesses.next().is_some();
        if given {
            return fail(self, "more accesses than memory operands".to_owned());
        }
        Ok(())
    }
}
