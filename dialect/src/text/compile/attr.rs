//! Attributes, dependences and source locations.

use super::leaf::unescape;
use super::{Compiler, Res, span_of};
use crate::bir::attrs::{SemEvent, SemOp};
use crate::bir::num::DType;
use crate::bir::ops::{AttrType, COMMON_ATTRS, Kind, OpCode, OpDef};
use crate::bir::program::DepKind;
use crate::ir::{Sign, TypeView};
use crate::text::grammar::Rule;
use crate::text::recipe::{
    AccessRecipe, AffineRecipe, AttrRecipe, DenseRecipe, DepRecipe, EntryRecipe, IndexSrc, IntSrc,
    LitType, LocRecipe, NumSrc, NumStyle, OpRecipe,
};
use pest::iterators::Pair;
use smallvec::{SmallVec, smallvec};

impl Compiler<'_> {
    /// Reads `{…}` into a recipe; columns, names and locations go to their own fields.
    pub(super) fn dict(
        &mut self,
        pair: Pair<'_, Rule>,
        op: &mut OpRecipe,
        access: &mut Vec<AccessRecipe>,
        segments: &mut Option<Vec<i64>>,
    ) -> Res<()> {
        for entry in pair.into_inner() {
            let span = span_of(&entry);
            let mut inner = entry.clone().into_inner();
            let Some(key) = inner.next() else { continue };
            self.keeps_text_of(&key);
            let key_text = match key.as_str().strip_prefix('"') {
                Some(_) => unescape(key.as_str()),
                None => key.as_str().to_owned(),
            };
            let name = self.ir.ctx.str(&key_text);
            if key_text.is_empty() {
                return Err(self.error(&key, "an attribute name must not be empty"));
            }
            if op.entries.iter().any(|entry| entry.name == name) {
                return Err(self.error(&key, format!("attribute `{key_text}` is given twice")));
            }
            let value = inner.next().and_then(|attr| attr.into_inner().next());
            if op.code.is_some() && self.special(op, &key_text, value.as_ref(), access, segments)? {
                continue;
            }
            let value = match value {
                None => AttrRecipe::Const(self.ir.ctx.unit()),
                Some(value) => {
                    let expected = op.code.and_then(|code| entry_type(code.def(), &key_text));
                    self.attr(value, expected)?
                }
            };
            op.entries.push(EntryRecipe { name, value, span });
        }
        Ok(())
    }

    /// Entries of the dialect's own ops that are no part of the dictionary.
    pub(super) fn special(
        &mut self,
        op: &mut OpRecipe,
        key: &str,
        value: Option<&Pair<'_, Rule>>,
        access: &mut Vec<AccessRecipe>,
        segments: &mut Option<Vec<i64>>,
    ) -> Res<bool> {
        let Some(value) = value else {
            return Ok(false);
        };
        match (key, value.as_rule()) {
            ("id", Rule::typed_number) => {
                let number = value
                    .clone()
                    .into_inner()
                    .next()
                    .and_then(|n| n.into_inner().next());
                match number {
                    Some(number) if number.as_rule() == Rule::int => {
                        op.id = Some(self.int(&number)?);
                    }
                    _ => return Ok(false),
                }
            }
            ("deps", Rule::array | Rule::bir_deps) => {
                let mut deps = Vec::new();
                for part in value.clone().into_inner() {
                    let dep = match part.as_rule() {
                        Rule::attr => part.clone().into_inner().next(),
                        _ => Some(part.clone()),
                    };
                    match dep {
                        Some(dep) if dep.as_rule() == Rule::dep => deps.push(self.dep(dep)?),
                        _ => {
                            return Err(self.error(
                                &part,
                                "expected `flow n`, `anti n`, `output n` or `ordered n`",
                            ));
                        }
                    }
                }
                op.deps = Some(deps);
            }
            ("order", Rule::array | Rule::bir_order) => {
                let mut order = Vec::new();
                for part in value.clone().into_inner() {
                    let inner = match part.as_rule() {
                        Rule::attr => part.clone().into_inner().next(),
                        _ => Some(part.clone()),
                    };
                    order.push(match inner {
                        Some(inner) if matches!(inner.as_rule(), Rule::affine_attr) => {
                            match inner.into_inner().next() {
                                Some(affine) => self.affine(affine)?,
                                None => AffineRecipe::default(),
                            }
                        }
                        Some(inner) if inner.as_rule() == Rule::affine => self.affine(inner)?,
                        Some(inner) if inner.as_rule() == Rule::typed_number => {
                            let number = inner
                                .clone()
                                .into_inner()
                                .next()
                                .and_then(|n| n.into_inner().next());
                            match number {
                                Some(number) if number.as_rule() == Rule::int => AffineRecipe {
                                    constants: smallvec![self.int(&number)?],
                                    span: span_of(&inner),
                                    ..AffineRecipe::default()
                                },
                                _ => return Err(self.error(&part, "expected an index expression")),
                            }
                        }
                        _ => return Err(self.error(&part, "expected an index expression")),
                    });
                }
                op.order = Some(order);
            }
            ("access", Rule::array) => {
                for part in value.clone().into_inner() {
                    access.push(self.access_entry(part)?);
                }
            }
            ("operandSegmentSizes", Rule::i32_array) => {
                let mut sizes = Vec::new();
                for part in value.clone().into_inner() {
                    if part.as_rule() == Rule::int {
                        match self.int(&part)? {
                            IntSrc::Const(size) => sizes.push(size),
                            // The scanner keeps `array<…>` in the shape, for segment sizes
                            // decide what operands mean.
                            IntSrc::Hole { hole, .. } => {
                                self.cacheable = false;
                                sizes.push(self.holes[hole as usize].value);
                            }
                        }
                    }
                }
                *segments = Some(sizes);
            }
            ("src", Rule::string) => {
                op.loc = Some(LocRecipe::Text(self.string(value), span_of(value)));
            }
            ("sym_name" | "name" | "iv_name", Rule::string)
                if op.generic || op.code == Some(OpCode::Alloc) =>
            {
                if matches!(op.code, Some(OpCode::Module | OpCode::Func)) {
                    return Ok(false);
                }
                op.hint = Some(self.string(value));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// One element of the generic form's `access`.
    fn access_entry(&mut self, part: Pair<'_, Rule>) -> Res<AccessRecipe> {
        match part.clone().into_inner().next() {
            Some(unit) if unit.as_rule() == Rule::unit => Ok(AccessRecipe::Whole),
            Some(ap) if ap.as_rule() == Rule::bir_ap => self.raw(ap, None),
            Some(name) if name.as_rule() == Rule::opaque_attr => match self.alias(name.as_str()) {
                Some(text) => self.in_alias(&name, &text, Rule::attr, Self::access_entry),
                None => Err(self.error(&name, format!("unknown alias `{}`", name.as_str()))),
            },
            _ => Err(self.error(&part, "expected `unit` or `#bir.ap<…>`")),
        }
    }

    pub(super) fn dep(&self, pair: Pair<'_, Rule>) -> Res<DepRecipe> {
        let mut dep = DepRecipe {
            kind: DepKind::Ordered,
            set: false,
            id: IntSrc::Const(0),
        };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::dep_kind => {
                    dep.kind = DepKind::from_name(part.as_str()).unwrap_or(DepKind::Ordered);
                }
                Rule::hash => dep.set = true,
                _ => dep.id = self.int(&part)?,
            }
        }
        Ok(dep)
    }

    pub(super) fn attr(
        &mut self,
        pair: Pair<'_, Rule>,
        expected: Option<AttrType>,
    ) -> Res<AttrRecipe> {
        Ok(match pair.as_rule() {
            Rule::typed_number => return self.typed_number(pair, expected),
            Rule::string => AttrRecipe::Str(self.string(&pair)),
            Rule::word_attr => {
                let word = pair.as_str();
                AttrRecipe::Const(self.ir.ctx.string(word))
            }
            Rule::boolean => AttrRecipe::Const(self.ir.ctx.bool_attr(pair.as_str() == "true")),
            Rule::unit => AttrRecipe::Const(self.ir.ctx.unit()),
            Rule::symbol => match self.hole_at(pair.as_span().start() + 1) {
                Some(hole) => AttrRecipe::Symbol(hole as u32),
                None => return Err(self.error(&pair, "expected a symbol `@name`")),
            },
            Rule::array => {
                let mut elements = Vec::new();
                for element in pair.into_inner() {
                    if let Some(inner) = element.into_inner().next() {
                        elements.push(self.attr(inner, None)?);
                    }
                }
                AttrRecipe::Array(elements)
            }
            Rule::dict => {
                let mut entries = Vec::new();
                for entry in pair.into_inner() {
                    let mut inner = entry.into_inner();
                    let Some(key) = inner.next() else { continue };
                    self.keeps_text_of(&key);
                    let name = match key.as_str().strip_prefix('"') {
                        Some(_) => self.ir.ctx.str(&unescape(key.as_str())),
                        None => self.ir.ctx.str(key.as_str()),
                    };
                    let value = match inner.next().and_then(|attr| attr.into_inner().next()) {
                        Some(value) => self.attr(value, None)?,
                        None => AttrRecipe::Const(self.ir.ctx.unit()),
                    };
                    entries.push((name, value));
                }
                AttrRecipe::Dict(entries)
            }
            Rule::wait | Rule::signal | Rule::bir_sem => {
                let mut ints: SmallVec<[IntSrc; 2]> = SmallVec::new();
                let mut op = SemOp::Ge;
                let mut event = SemEvent::Default;
                let text = pair.as_str().trim_end_matches('>').trim_end();
                if text.ends_with("complete") {
                    event = SemEvent::Complete;
                } else if text.ends_with("read") {
                    event = SemEvent::Read;
                }
                for part in pair.clone().into_inner() {
                    match part.as_rule() {
                        Rule::int => ints.push(self.int(&part)?),
                        // It is in the text above.
                        Rule::event => self.keeps_text_of(&part),
                        _ => op = SemOp::parse(part.as_str()).unwrap_or(SemOp::Ge),
                    }
                }
                match ints[..] {
                    [id, value] => AttrRecipe::Sem(id, op, value, event),
                    _ => return Err(self.error(&pair, "expected a semaphore, a sign and a value")),
                }
            }
            Rule::bir_at => {
                let parts: Vec<Pair<'_, Rule>> = pair.into_inner().collect();
                match &parts[..] {
                    [address] => AttrRecipe::PlaceAddress(self.int(address)?),
                    [partition, byte] => self.placement_parts(partition, byte)?,
                    _ => AttrRecipe::PlaceAddress(IntSrc::Const(0)),
                }
            }
            Rule::unless_first | Rule::bir_unless_first
                if !matches!(expected, Some(AttrType::Accumulate)) =>
            {
                return Err(self.error(&pair, "`unless_first` can only say when to accumulate"));
            }
            Rule::unless_first => match pair.clone().into_inner().next() {
                Some(value) => AttrRecipe::UnlessFirst(IndexSrc::Name(self.name(&value)?)),
                None => return Err(self.error(&pair, "expected a loop index")),
            },
            Rule::bir_unless_first => match pair.clone().into_inner().next() {
                Some(dim) => AttrRecipe::UnlessFirst(IndexSrc::Dim(self.dim(&dim)?)),
                None => return Err(self.error(&pair, "expected a loop index")),
            },
            Rule::bir_bits => {
                let mut dtype = DType::F32;
                let mut bits = NumSrc::Const("0x0".into());
                for part in pair.into_inner() {
                    match part.as_rule() {
                        Rule::dtype_word => dtype = self.dtype(&part)?,
                        _ => bits = self.number(&part)?.0,
                    }
                }
                AttrRecipe::Number(bits, NumStyle::Hex, LitType::Of(dtype))
            }
            Rule::dense => {
                let mut list = DenseRecipe::List(Vec::new(), false);
                let mut ty = None;
                for part in pair.into_inner() {
                    match part.as_rule() {
                        Rule::elements => list = self.elements(part)?,
                        _ => ty = Some(self.ty(part)?),
                    }
                }
                AttrRecipe::Dense(list, ty)
            }
            Rule::file => match pair.clone().into_inner().next() {
                Some(path) => AttrRecipe::Str(self.string(&path)),
                None => return Err(self.error(&pair, "expected a path")),
            },
            Rule::type_attr => {
                let ty = self.ty(pair)?;
                AttrRecipe::Const(self.ir.ctx.type_attr(ty))
            }
            Rule::opaque_attr => match self.alias(pair.as_str()) {
                Some(text) => {
                    return self.in_alias(&pair, &text, Rule::attr, |this, attr| {
                        match attr.into_inner().next() {
                            Some(inner) => this.attr(inner, expected),
                            None => Ok(AttrRecipe::Const(this.ir.ctx.unit())),
                        }
                    });
                }
                None => {
                    self.keeps_text_of(&pair);
                    AttrRecipe::Const(self.ir.ctx.opaque_attr(pair.as_str()))
                }
            },
            Rule::i32_array | Rule::bir_ap | Rule::bir_deps | Rule::bir_order => {
                self.keeps_text_of(&pair);
                AttrRecipe::Const(self.ir.ctx.opaque_attr(pair.as_str()))
            }
            Rule::affine_attr => {
                return Err(self.error(&pair, "an index expression can only be part of `order`"));
            }
            Rule::dep => {
                return Err(self.error(&pair, "a dependence can only be part of `deps`"));
            }
            _ => return Err(self.error(&pair, "expected an attribute value")),
        })
    }

    pub(super) fn elements(&mut self, pair: Pair<'_, Rule>) -> Res<DenseRecipe> {
        let mut list = Vec::new();
        let splat = !pair.as_str().starts_with('[');
        let mut pending = vec![pair];
        while let Some(part) = pending.pop() {
            match part.as_rule() {
                Rule::elements => {
                    let inner: Vec<_> = part.into_inner().collect();
                    pending.extend(inner.into_iter().rev());
                }
                Rule::string => return Ok(DenseRecipe::Hex(self.string(&part))),
                Rule::boolean => list.push(NumSrc::Const(match part.as_str() {
                    "true" => "1".into(),
                    _ => "0".into(),
                })),
                _ => list.push(self.number(&part)?.0),
            }
        }
        Ok(DenseRecipe::List(list, splat))
    }

    pub(super) fn placement_parts(
        &self,
        partition: &Pair<'_, Rule>,
        at: &Pair<'_, Rule>,
    ) -> Res<AttrRecipe> {
        let partition = self.int(partition)?;
        Ok(match at.as_rule() {
            Rule::bank => match at.clone().into_inner().next() {
                Some(bank) => AttrRecipe::PlaceBank(partition, self.int(&bank)?),
                None => AttrRecipe::PlaceBank(partition, IntSrc::Const(0)),
            },
            _ => AttrRecipe::PlaceBytes(partition, self.int(at)?),
        })
    }

    pub(super) fn typed_number(
        &mut self,
        pair: Pair<'_, Rule>,
        expected: Option<AttrType>,
    ) -> Res<AttrRecipe> {
        let mut parts = pair.into_inner();
        let Some(number) = parts.next() else {
            return Ok(AttrRecipe::Const(self.ir.ctx.unit()));
        };
        let ty = parts.next();
        let (src, style) = self.number(&number)?;
        let is_plain = matches!(expected, Some(AttrType::Int { .. }))
            && matches!(style, NumStyle::Int | NumStyle::Hex);
        if let Some(ty) = ty {
            let ty = self.ty(ty)?;
            // Of what the table says is an integer the width means nothing, and the custom form has none.
            if is_plain && matches!(self.ir.ctx.ty(ty), TypeView::Int { .. }) {
                let int = self.int_of(&number)?;
                let i64_type = self.ir.ctx.int_type(64, Sign::Signless);
                return Ok(AttrRecipe::Int(int, i64_type));
            }
            if let Some(dtype) = crate::bir::attrs::literal_dtype(&self.ir.ctx, ty) {
                // `i64` is the type of plain integers.
                if dtype == DType::I64 && style == NumStyle::Int {
                    let int = self.int_of(&number)?;
                    return Ok(AttrRecipe::Int(int, ty));
                }
                return Ok(AttrRecipe::Number(src, style, LitType::Of(dtype)));
            }
            let is_f64 = matches!(self.ir.ctx.ty(ty), crate::ir::TypeView::Float(name)
                if self.ir.ctx.text(name) == "f64");
            if is_f64 {
                return Ok(AttrRecipe::Number(src, style, LitType::F64));
            }
            let int = self.int_of(&number)?;
            return Ok(AttrRecipe::Int(int, ty));
        }
        if let Some(AttrType::Number(dtype)) = expected {
            return Ok(AttrRecipe::Number(src, style, LitType::Of(dtype)));
        }
        if style == NumStyle::Int || style == NumStyle::Hex {
            let int = self.int_of(&number)?;
            let i64_type = self.ir.ctx.int_type(64, Sign::Signless);
            return Ok(AttrRecipe::Int(int, i64_type));
        }
        Ok(AttrRecipe::Number(src, style, LitType::F64))
    }

    pub(super) fn int_of(&self, number: &Pair<'_, Rule>) -> Res<IntSrc> {
        match number.clone().into_inner().next() {
            Some(inner) if matches!(inner.as_rule(), Rule::int | Rule::hex) => self.int(&inner),
            _ => Err(self.error(
                number,
                format!("expected an integer, found `{}`", number.as_str()),
            )),
        }
    }

    pub(super) fn loc(&mut self, pair: Pair<'_, Rule>) -> Res<Option<LocRecipe>> {
        let Some(inner) = pair.into_inner().next() else {
            return Ok(None);
        };
        if inner.as_rule() != Rule::file_loc {
            return Ok(None);
        }
        let mut parts = inner.into_inner();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(file), Some(line), Some(col)) => Ok(Some(LocRecipe::Parts {
                file: self.string(&file),
                line: self.int(&line)?,
                col: self.int(&col)?,
            })),
            _ => Ok(None),
        }
    }
}

/// What the table says an attribute of an op is.
fn entry_type(def: &'static OpDef, name: &str) -> Option<AttrType> {
    def.attr(name)
        .or_else(|| COMMON_ATTRS.iter().find(|attr| attr.name == name))
        .map(|attr| attr.ty)
        // A number that may stand in the place of a register.
        .or_else(|| {
            let mut roles = def.operands.iter();
            roles
                .any(|role| role.name == name && matches!(role.kind, Kind::RegImm))
                .then_some(AttrType::Int {
                    min: i64::MIN,
                    max: i64::MAX,
                })
        })
}
