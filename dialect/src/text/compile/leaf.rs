//! Words, numbers, names, strings and types.

use super::{Compiler, Res, span_of};
use crate::bir::num::DType;
use crate::bir::space::Space;
use crate::bir::types::{MemType, reg_type};
use crate::ir::{Sign, Type};
use crate::text::diag::{Diagnostic, did_you_mean};
use crate::text::grammar::{Grammar, Rule};
use crate::text::recipe::{IntSrc, NameSrc, NumSrc, NumStyle, StrSrc};
use crate::text::scan::{HoleKind, unescaped};
use pest::Parser as _;
use pest::iterators::Pair;
use smallvec::SmallVec;

/// Aliases read for one statement, those inside aliases included: they can double at each step.
const MOST_ALIASES: usize = 4096;

impl Compiler<'_> {
    pub(super) fn int(&self, pair: &Pair<'_, Rule>) -> Res<IntSrc> {
        let inner = match pair.as_rule() {
            Rule::integer => pair.clone().into_inner().next(),
            _ => None,
        };
        let pair = inner.as_ref().unwrap_or(pair);
        let text = pair.as_str();
        let negative = text.starts_with('-');
        let digits = text.trim_start_matches('-');
        if let Some(hole) = self.hole_at(pair.as_span().start() + usize::from(negative))
            && self.holes[hole].kind == HoleKind::Int
        {
            return Ok(IntSrc::Hole {
                hole: hole as u32,
                negative,
            });
        }
        let magnitude = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse::<u64>(),
        };
        let value = magnitude.ok().and_then(|magnitude| match negative {
            true if magnitude <= 1 << 63 => Some((magnitude as i64).wrapping_neg()),
            true => None,
            // Hex may spell all 64 bits; decimals above i64 only fit where a u64 is meant.
            false => Some(magnitude as i64),
        });
        match value {
            Some(value) if digits.starts_with("0x") || value >= 0 || negative => {
                Ok(IntSrc::Const(value))
            }
            _ => Err(self.error(pair, format!("integer `{text}` does not fit 64 bits"))),
        }
    }

    /// The recipe holds this text as it is: it serves other statements only if all of it is shape.
    pub(super) fn keeps_text_of(&mut self, pair: &Pair<'_, Rule>) {
        let span = pair.as_span();
        let (start, end) = (self.base + span.start(), self.base + span.end());
        let first = self
            .holes
            .partition_point(|hole| (hole.start as usize) < start);
        let inside = self
            .holes
            .get(first)
            .is_some_and(|hole| (hole.start as usize) < end);
        if inside && self.alias_depth == 0 {
            self.cacheable = false;
        }
    }

    pub(super) fn hole_at(&self, start: usize) -> Option<usize> {
        if self.alias_depth > 0 {
            return None;
        }
        let at = self
            .holes
            .binary_search_by_key(&((self.base + start) as u32), |hole| hole.start)
            .ok()?;
        Some(at)
    }

    pub(super) fn number(&self, pair: &Pair<'_, Rule>) -> Res<(NumSrc, NumStyle)> {
        let inner = match pair.as_rule() {
            Rule::number | Rule::literal => {
                let mut inner = pair.clone().into_inner();
                let first = inner.next();
                match first {
                    Some(first) if matches!(first.as_rule(), Rule::number | Rule::truth) => {
                        first.into_inner().next()
                    }
                    other => other,
                }
            }
            _ => None,
        };
        let pair = inner.as_ref().unwrap_or(pair);
        let style = match pair.as_rule() {
            Rule::hex => NumStyle::Hex,
            Rule::float => NumStyle::Float,
            Rule::int | Rule::boolean => NumStyle::Int,
            _ => NumStyle::NonFinite,
        };
        let text = pair.as_str();
        let negative = text.starts_with('-');
        if let Some(hole) = self.hole_at(pair.as_span().start() + usize::from(negative)) {
            let hole = hole as u32;
            return Ok((NumSrc::Hole { hole, negative }, style));
        }
        Ok((NumSrc::Const(text.into()), style))
    }

    pub(super) fn name(&self, pair: &Pair<'_, Rule>) -> Res<NameSrc> {
        // Behind the sign.
        match self.hole_at(pair.as_span().start() + 1) {
            Some(hole) => Ok(NameSrc {
                hole: hole as u32,
                part: None,
                span: span_of(pair),
            }),
            None => Err(self.error(pair, "expected a name")),
        }
    }

    pub(super) fn string(&mut self, pair: &Pair<'_, Rule>) -> StrSrc {
        match self.hole_at(pair.as_span().start()) {
            Some(hole) => StrSrc::Hole(hole as u32),
            None => {
                let text = unescape(pair.as_str());
                StrSrc::Const(self.ir.ctx.str(&text))
            }
        }
    }

    pub(super) fn dtype(&self, pair: &Pair<'_, Rule>) -> Res<DType> {
        let name = pair.as_str();
        DType::from_name(name).ok_or_else(|| {
            let known = DType::ALL.iter().map(|dtype| dtype.name());
            Box::new(
                Diagnostic::error(
                    self.place(&span_of(pair)),
                    format!("unknown dtype `{name}`"),
                )
                .maybe_help(did_you_mean(name, known)),
            )
        })
    }

    pub(super) fn shape(&self, pair: &Pair<'_, Rule>) -> Res<(SmallVec<[u64; 6]>, String)> {
        let text = pair.as_str();
        let mut dims: SmallVec<[u64; 6]> = SmallVec::new();
        let mut rest = text;
        while rest.starts_with(|c: char| c.is_ascii_digit()) {
            let Some((digits, behind)) = rest.split_once('x') else {
                break;
            };
            match digits.parse::<u64>() {
                Ok(dim) if dim < 1 << 62 => dims.push(dim),
                _ => {
                    return Err(
                        self.error(pair, format!("dimension `{digits}` does not fit 62 bits"))
                    );
                }
            }
            rest = behind;
        }
        if dims.len() > 32 {
            return Err(self.error(pair, "a shape has at most 32 dimensions"));
        }
        Ok((dims, rest.to_owned()))
    }

    pub(super) fn mem_type(&mut self, pair: Pair<'_, Rule>) -> Res<Type> {
        let mut space = Space::Dram;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::space => space = Space::from_name(part.as_str()).unwrap_or(Space::Dram),
                _ => {
                    let (dims, dtype) = self.shape(&part)?;
                    let Some(dtype) = DType::from_name(&dtype) else {
                        let known = DType::ALL.iter().map(|dtype| dtype.name());
                        return Err(Box::new(
                            Diagnostic::error(
                                self.place(&span_of(&part)),
                                format!("unknown dtype `{dtype}`"),
                            )
                            .maybe_help(did_you_mean(&dtype, known)),
                        ));
                    };
                    return Ok(MemType::intern(&mut self.ir.ctx, space, dtype, &dims));
                }
            }
        }
        Ok(self.ir.ctx.none_type())
    }

    pub(super) fn ty(&mut self, pair: Pair<'_, Rule>) -> Res<Type> {
        match pair.as_rule() {
            Rule::type_ | Rule::type_attr => match pair.into_inner().next() {
                Some(inner) => self.ty(inner),
                None => Ok(self.ir.ctx.none_type()),
            },
            Rule::mem_type | Rule::mem => self.mem_type(pair),
            Rule::reg_type => match pair.into_inner().next() {
                Some(inner) => {
                    let dtype = self.dtype(&inner)?;
                    Ok(reg_type(&mut self.ir.ctx, dtype))
                }
                None => Ok(self.ir.ctx.none_type()),
            },
            Rule::tensor_type => match pair.into_inner().next() {
                Some(inner) => {
                    let (dims, elem) = self.shape(&inner)?;
                    let elem = self.builtin_type(&elem);
                    Ok(self.ir.ctx.tensor_type(&dims, elem))
                }
                None => Ok(self.ir.ctx.none_type()),
            },
            Rule::function_type => {
                self.keeps_text_of(&pair);
                Ok(self.ir.ctx.function_type(pair.as_str()))
            }
            Rule::alias_type => match self.alias(pair.as_str()) {
                Some(text) => self.in_alias(&pair, &text, Rule::type_, Self::ty),
                None => Err(self.error(&pair, format!("unknown type alias `{}`", pair.as_str()))),
            },
            Rule::opaque_type => {
                self.keeps_text_of(&pair);
                Ok(self.ir.ctx.opaque_type(pair.as_str()))
            }
            _ => Ok(self.builtin_type(pair.as_str())),
        }
    }

    pub(super) fn builtin_type(&mut self, name: &str) -> Type {
        let ctx = &mut self.ir.ctx;
        match name {
            "index" => return ctx.index_type(),
            "none" => return ctx.none_type(),
            _ => {}
        }
        for (prefix, sign) in [
            ("si", Sign::Signed),
            ("ui", Sign::Unsigned),
            ("i", Sign::Signless),
        ] {
            if let Some(width) = name
                .strip_prefix(prefix)
                .and_then(|w| w.parse::<u32>().ok())
            {
                return ctx.int_type(width, sign);
            }
        }
        // The names the builtin dialect gives our 8-bit formats.
        ctx.float_type(match name {
            "f8E5M2" => "f8e5m2",
            "f8E4M3" => "f8e4m3",
            "f8E4M3FN" => "f8e4m3fn",
            other => other,
        })
    }

    pub(super) fn alias(&self, name: &str) -> Option<String> {
        self.aliases
            .iter()
            .rev()
            .find(|(alias, _)| &**alias == name)
            .map(|(_, text)| text.to_string())
    }

    /// Reads `text` in place of an alias.
    pub(super) fn in_alias<T>(
        &mut self,
        pair: &Pair<'_, Rule>,
        text: &str,
        rule: Rule,
        read: impl FnOnce(&mut Self, Pair<'_, Rule>) -> Res<T>,
    ) -> Res<T> {
        self.alias_uses += 1;
        if self.alias_uses > MOST_ALIASES {
            let message =
                format!("the aliases of a statement stand for more than {MOST_ALIASES} others");
            return Err(self.error(pair, message));
        }
        if self.alias_depth > 16 {
            return Err(self.error(pair, format!("alias `{}` refers to itself", pair.as_str())));
        }
        let parsed = Grammar::parse(rule, text)
            .ok()
            .and_then(|mut pairs| pairs.next());
        let Some(parsed) = parsed.filter(|parsed| parsed.as_str().len() == text.len()) else {
            return Err(self.error(
                pair,
                format!(
                    "alias `{}` stands for `{text}`, which is not understood",
                    pair.as_str()
                ),
            ));
        };
        self.alias_depth += 1;
        let result = read(self, parsed);
        self.alias_depth -= 1;
        result
    }
}

/// The text of a quoted string.
pub(crate) fn unescape(quoted: &str) -> String {
    // The scanner has refused strings that are no text.
    unescaped(quoted.as_bytes()).unwrap_or_default()
}
