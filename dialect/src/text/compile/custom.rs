//! Statements of the custom form: words and roles.

use super::leaf::unescape;
use super::{Compiler, Res, span_of};
use crate::bir::num::DType;
use crate::bir::ops::{AttrType, ImmType, Kind, OpCode, OpDef, OperandDef, Syntax, is_bitvec};
use crate::bir::program::names;
use crate::ir::Sign;
use crate::text::diag::{Diagnostic, did_you_mean};
use crate::text::grammar::Rule;
use crate::text::recipe::{
    AccessRecipe, AttrRecipe, EntryRecipe, IntSrc, LitType, NumSrc, NumStyle, OpRecipe, Opens,
    OperandRecipe, Recipe, ResultRecipe, Span, SymbolSrc,
};
use crate::text::scan::HoleKind;
use pest::iterators::Pair;
use smallvec::{SmallVec, smallvec};

impl Compiler<'_> {
    pub(super) fn symbol(&mut self, pair: &Pair<'_, Rule>) -> SymbolSrc {
        match self.hole_at(pair.as_span().start() + 1) {
            Some(hole) if self.holes[hole].kind == HoleKind::Name => SymbolSrc::Name(hole as u32),
            Some(hole) => {
                let hole = self.holes[hole];
                let start = hole.start as usize - self.base;
                let text = &self.text[start..start + hole.len as usize];
                self.cacheable = false;
                SymbolSrc::Text(unescape(text).into())
            }
            None => SymbolSrc::Text(unescape(pair.as_str().trim_start_matches('@')).into()),
        }
    }

    pub(super) fn custom(&mut self, pair: Pair<'_, Rule>, rule: Rule) -> Res<Recipe> {
        let code = match rule {
            Rule::alloc_stmt => OpCode::Alloc,
            Rule::module_stmt => OpCode::Module,
            Rule::func_stmt => OpCode::Func,
            Rule::loop_stmt => OpCode::Loop,
            Rule::while_stmt => OpCode::While,
            Rule::br_stmt => OpCode::Br,
            Rule::cond_br_stmt => OpCode::CondBr,
            Rule::depset_stmt => OpCode::Depset,
            _ => return self.instruction(pair),
        };
        let mut op = self.blank(&format!("bir.{}", code.def().name), Some(code));
        if matches!(
            rule,
            Rule::module_stmt | Rule::func_stmt | Rule::loop_stmt | Rule::while_stmt
        ) {
            op.opens = Opens::Custom;
        }
        let mut bounds = 0u8;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::symbol => op.symbol = Some(self.symbol(&part)),
                Rule::value if rule == Rule::alloc_stmt => op.results.push(ResultRecipe {
                    name: self.name(&part)?,
                    count: None,
                }),
                Rule::value if rule == Rule::loop_stmt => op.iv = Some(self.name(&part)?),
                Rule::value => {
                    let operand = self.register_operand(&part, 0)?;
                    op.operands.push(operand);
                }
                Rule::mem => op.result_types = Some(smallvec![self.mem_type(part)?]),
                Rule::placement => {
                    let span = span_of(&part);
                    let parts: Vec<Pair<'_, Rule>> = part.into_inner().collect();
                    let value = match &parts[..] {
                        [address] => AttrRecipe::PlaceAddress(self.int(address)?),
                        [partition, at] => self.placement_parts(partition, at)?,
                        _ => continue,
                    };
                    op.entries.push(EntryRecipe {
                        name: names::AT,
                        value,
                        span,
                    });
                }
                Rule::bound => {
                    let role = bounds;
                    bounds += 1;
                    let Some(inner) = part.into_inner().next() else {
                        continue;
                    };
                    if inner.as_rule() == Rule::value {
                        let operand = self.register_operand(&inner, role)?;
                        op.operands.push(operand);
                    } else {
                        let span = span_of(&inner);
                        let int = self.int(&inner)?;
                        let ty = self.ir.ctx.int_type(64, Sign::Signless);
                        op.entries.push(EntryRecipe {
                            name: if role == 0 {
                                names::LOWER
                            } else {
                                names::UPPER
                            },
                            value: AttrRecipe::Int(int, ty),
                            span,
                        });
                    }
                }
                Rule::step => {
                    let span = span_of(&part);
                    if let Some(inner) = part.into_inner().next() {
                        let int = self.int(&inner)?;
                        let ty = self.ir.ctx.int_type(64, Sign::Signless);
                        op.entries.push(EntryRecipe {
                            name: names::STEP,
                            value: AttrRecipe::Int(int, ty),
                            span,
                        });
                    }
                }
                Rule::caret => op.successors.push(self.name(&part)?),
                Rule::set_name => op.id = Some(self.dep(part)?.id),
                Rule::set_members => {
                    let members = part.into_inner().map(|member| self.dep(member));
                    op.deps = Some(members.collect::<Res<_>>()?);
                }
                Rule::dict => self.dict(part, &mut op, &mut Vec::new(), &mut None)?,
                Rule::loc => op.loc = self.loc(part)?,
                _ => {}
            }
        }
        self.finish(&mut op);
        Ok(Recipe::Op(Box::new(op)))
    }

    pub(super) fn register_operand(
        &mut self,
        value: &Pair<'_, Rule>,
        role: u8,
    ) -> Res<OperandRecipe> {
        Ok(OperandRecipe {
            role,
            may_be_later: true,
            name: self.name(value)?,
            access: AccessRecipe::Whole,
            memo: None,
            ty: None,
            span: span_of(value),
        })
    }

    pub(super) fn instruction(&mut self, pair: Pair<'_, Rule>) -> Res<Recipe> {
        let parts: Vec<Pair<'_, Rule>> = pair.into_inner().collect();
        let Some(name) = parts.iter().find(|part| part.as_rule() == Rule::op_name) else {
            return Ok(Recipe::Nothing);
        };
        let code = OpCode::from_name(name.as_str())
            .filter(|code| code.def().syntax == Syntax::Instruction);
        let Some(code) = code else {
            let other = OpCode::from_name(name.as_str()).map(|code| code.def().syntax);
            let message = match other {
                Some(_) => format!("`{}` is not written as an instruction", name.as_str()),
                None => format!("unknown instruction `{}`", name.as_str()),
            };
            let known = OpCode::ALL.iter().map(|op| op.def().name);
            let help = match other {
                Some(Syntax::Implicit) => {
                    Some("the end of a block says it; only the generic form writes it".to_owned())
                }
                Some(_) => Some(format!("see bir-opt --show-dialect={}", name.as_str())),
                None => did_you_mean(name.as_str(), known),
            };
            return Err(Box::new(
                Diagnostic::error(self.place(&span_of(name)), message).maybe_help(help),
            ));
        };
        let def = code.def();
        let mut op = self.blank(&format!("bir.{}", def.name), Some(code));
        let mut sides = Sides {
            filled: SmallVec::from_elem(false, def.operands.len()),
            head_words: def.words,
        };
        let mut literals: Vec<(usize, NumSrc, NumStyle, Span)> = Vec::new();
        for part in &parts {
            match part.as_rule() {
                Rule::results => {
                    for value in part.clone().into_inner() {
                        op.results.push(ResultRecipe {
                            name: self.name(&value)?,
                            count: None,
                        });
                    }
                    if !def.result || op.results.len() > 1 {
                        let limit = usize::from(def.result);
                        return Err(self.error(
                            part,
                            format!(
                                "`{}` defines {limit} results, found {}",
                                def.name,
                                op.results.len()
                            ),
                        ));
                    }
                }
                Rule::words => {
                    let mut words = part.clone().into_inner().peekable();
                    for &attr in std::mem::take(&mut sides.head_words) {
                        self.enum_word(&mut op, def, attr, &mut words)?;
                    }
                    if let Some(extra) = words.next() {
                        return Err(self.unknown_word(&extra, def, true));
                    }
                }
                Rule::left | Rule::right => {
                    let left = part.as_rule() == Rule::left;
                    for operands in part.clone().into_inner() {
                        for operand in operands.into_inner() {
                            self.operand(operand, def, left, &mut op, &mut sides, &mut literals)?;
                        }
                    }
                }
                Rule::dict => self.dict(part.clone(), &mut op, &mut Vec::new(), &mut None)?,
                Rule::loc => op.loc = self.loc(part.clone())?,
                _ => {}
            }
        }
        // Segment order; a role's own operands keep their order.
        op.operands.sort_by_key(|operand| operand.role);
        self.literals(&mut op, def, literals);
        self.finish(&mut op);
        Ok(Recipe::Op(Box::new(op)))
    }

    /// Literals become attributes named like their role.
    pub(super) fn literals(
        &mut self,
        op: &mut OpRecipe,
        def: &'static OpDef,
        literals: Vec<(usize, NumSrc, NumStyle, Span)>,
    ) {
        for (role, src, style, span) in literals {
            let name = self.ir.ctx.str(def.operands[role].name);
            let of_first = |kind: fn(&OperandDef) -> bool| {
                op.operands
                    .iter()
                    .position(|operand| def.operands.get(operand.role as usize).is_some_and(kind))
                    .map_or(LitType::Of(DType::F32), |at| LitType::OfOperand(at as u8))
            };
            let ty = match def.operands[role].kind {
                Kind::Imm(ImmType::F32) => LitType::Of(DType::F32),
                Kind::Imm(ImmType::Dst) => of_first(OperandDef::writes),
                Kind::Imm(ImmType::Alu) if self.bit_op(op) => {
                    of_first(|role| role.kind == Kind::In)
                }
                Kind::Imm(ImmType::Alu) => LitType::Of(DType::F32),
                _ => LitType::I64,
            };
            let value = match (ty, &src, style) {
                (LitType::I64, NumSrc::Hole { hole, negative }, NumStyle::Int) => AttrRecipe::Int(
                    IntSrc::Hole {
                        hole: *hole,
                        negative: *negative,
                    },
                    self.ir.ctx.int_type(64, Sign::Signless),
                ),
                _ => AttrRecipe::Number(src, style, ty),
            };
            op.entries.push(EntryRecipe { name, value, span });
        }
    }

    pub(super) fn bit_op(&self, op: &OpRecipe) -> bool {
        op.entries.iter().any(|entry| match &entry.value {
            AttrRecipe::Const(attr) => self.ir.ctx.attr_str(*attr).is_some_and(is_bitvec),
            _ => false,
        })
    }

    pub(super) fn operand(
        &mut self,
        pair: Pair<'_, Rule>,
        def: &'static OpDef,
        left: bool,
        op: &mut OpRecipe,
        sides: &mut Sides,
        literals: &mut Vec<(usize, NumSrc, NumStyle, Span)>,
    ) -> Res<()> {
        let span = span_of(&pair);
        let whole = pair.clone();
        let mut words: SmallVec<[Pair<'_, Rule>; 4]> = SmallVec::new();
        let mut rest = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::word => words.push(part),
                _ => rest = Some(part),
            }
        }
        let Some(rest) = rest else { return Ok(()) };
        let mut words = words.into_iter().peekable();
        // Words of the instruction stand before its first operand.
        for &attr in std::mem::take(&mut sides.head_words) {
            self.enum_word(op, def, attr, &mut words)?;
        }
        let role = match words.next() {
            None => (0..def.operands.len()).find(|&i| {
                let role = &def.operands[i];
                role.is_left() == left
                    && role.keyword.is_none()
                    && (!sides.filled[i] || role.variadic)
            }),
            Some(word) => {
                let found = (0..def.operands.len()).find(|&i| {
                    let role = &def.operands[i];
                    role.is_left() == left
                        && (role.keyword == Some(word.as_str()) || role.name == word.as_str())
                });
                let Some(role) = found else {
                    return Err(self.unknown_word(&word, def, left));
                };
                if sides.filled[role] && !def.operands[role].variadic {
                    return Err(self.error(
                        &word,
                        format!(
                            "operand `{}` of `{}` is given twice",
                            def.operands[role].name, def.name
                        ),
                    ));
                }
                for &attr in def.operands[role].words {
                    self.enum_word(op, def, attr, &mut words)?;
                }
                if let Some(extra) = words.next() {
                    return Err(self.unknown_word(&extra, def, left));
                }
                Some(role)
            }
        };
        let Some(role) = role else {
            return Err(self.error(&whole, def.one_too_many(left)));
        };
        sides.filled[role] = true;
        let entry = &def.operands[role];
        match rest.as_rule() {
            Rule::place => {
                let mut inner = rest.into_inner();
                let Some(value) = inner.next() else {
                    return Ok(());
                };
                let access = match inner.next() {
                    Some(access) => self.access(access)?,
                    None => AccessRecipe::Whole,
                };
                op.operands.push(OperandRecipe {
                    role: role as u8,
                    may_be_later: entry.is_register(),
                    name: self.name(&value)?,
                    memo: self.forms.access(&access),
                    access,
                    ty: None,
                    span,
                });
            }
            _ => {
                if !entry.takes_literal() {
                    return Err(self.error(
                        &rest,
                        format!(
                            "operand `{}` of `{}` must be a {}, found the number `{}`",
                            entry.name,
                            def.name,
                            if entry.is_register() {
                                "register"
                            } else {
                                "location"
                            },
                            rest.as_str()
                        ),
                    ));
                }
                let (src, style) = self.number(&rest)?;
                literals.push((role, src, style, span_of(&rest)));
            }
        }
        Ok(())
    }

    pub(super) fn unknown_word(
        &self,
        word: &Pair<'_, Rule>,
        def: &'static OpDef,
        left: bool,
    ) -> Box<Diagnostic> {
        let text = word.as_str();
        let mut known: Vec<&str> = Vec::new();
        for role in def.operands.iter().filter(|role| role.is_left() == left) {
            known.extend(role.keyword.or(Some(role.name)));
            for attr in role.words {
                known.extend(enum_words(def, attr));
            }
        }
        for attr in def.words {
            known.extend(enum_words(def, attr));
        }
        Box::new(
            Diagnostic::error(
                self.place(&span_of(word)),
                format!("`{}` knows no word `{text}` here", def.name),
            )
            .maybe_help(did_you_mean(text, known)),
        )
    }

    /// Takes the next word for an enum attribute if it is one of its words.
    pub(super) fn enum_word<'p>(
        &mut self,
        op: &mut OpRecipe,
        def: &'static OpDef,
        attr: &'static str,
        words: &mut std::iter::Peekable<impl Iterator<Item = Pair<'p, Rule>>>,
    ) -> Res<()> {
        let Some(word) = words.peek() else {
            return Ok(());
        };
        let text = word.as_str();
        if enum_words(def, attr).contains(&text) {
            let name = self.ir.ctx.str(attr);
            let value = AttrRecipe::Const(self.ir.ctx.string(text));
            let span = span_of(word);
            op.entries.push(EntryRecipe { name, value, span });
            words.next();
            return Ok(());
        }
        let required = def.attr(attr).is_some_and(|attr| attr.required);
        let is_role = def
            .operands
            .iter()
            .any(|role| role.keyword == Some(text) || role.name == text);
        if required && !is_role {
            return Err(Box::new(
                Diagnostic::error(
                    self.place(&span_of(word)),
                    format!("`{text}` is no `{attr}` of `{}`", def.name),
                )
                .maybe_help(
                    did_you_mean(text, enum_words(def, attr).iter().copied()).or_else(|| {
                        let words = enum_words(def, attr);
                        (words.len() <= 12).then(|| format!("it is one of {}", words.join(", ")))
                    }),
                ),
            ));
        }
        Ok(())
    }
}

pub(super) struct Sides {
    filled: SmallVec<[bool; 8]>,
    head_words: &'static [&'static str],
}

fn enum_words(def: &'static OpDef, attr: &str) -> &'static [&'static str] {
    match def.attr(attr).map(|attr| attr.ty) {
        Some(AttrType::Enum(words)) => words.words,
        _ => &[],
    }
}
