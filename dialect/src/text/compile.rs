//! From pest's parse of a statement to its recipe.

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use smallvec::{SmallVec, smallvec};

use super::diag::{Diagnostic, Place, did_you_mean};
use super::grammar::{Grammar, Rule, rule_name};
use super::recipe::*;
use super::scan::{Hole, HoleKind};
use crate::bir::attrs::{SemEvent, SemOp};
use crate::bir::num::DType;
use crate::bir::ops::{
    AttrType, COMMON_ATTRS, ImmType, Kind, OpCode, OpDef, OperandDef, is_bitvec,
};
use crate::bir::program::{DepKind, names};
use crate::bir::space::Space;
use crate::bir::types::{MemType, reg_type};
use crate::ir::{Ir, Sign, Type};

/// Type and attribute aliases of the file: name with its sign, text.
pub(crate) type Aliases = Vec<(Box<str>, Box<str>)>;

/// Compiles one statement.
pub(crate) struct Compiler<'a> {
    pub(crate) ir: &'a mut Ir,
    pub(crate) text: &'a str,
    /// Where the statement begins in its file.
    pub(crate) base: usize,
    pub(crate) holes: &'a [Hole],
    pub(crate) aliases: &'a Aliases,
    /// Numbers given to accesses so far.
    memos: &'a mut u32,
    /// How many aliases the text being read is inside of.
    alias_depth: usize,
    /// Whether the recipe holds for every statement of the shape.
    pub(crate) cacheable: bool,
}

/// What stands behind the regions of a generic operation, which is one of ours if a code is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail(pub(crate) Option<OpCode>);

type Res<T> = Result<T, Box<Diagnostic>>;

fn span_of(pair: &Pair<'_, Rule>) -> Span {
    let span = pair.as_span();
    span.start() as u32..span.end() as u32
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(
        ir: &'a mut Ir,
        text: &'a str,
        base: usize,
        holes: &'a [Hole],
        aliases: &'a Aliases,
        memos: &'a mut u32,
    ) -> Compiler<'a> {
        Compiler {
            ir,
            text,
            base,
            holes,
            aliases,
            memos,
            alias_depth: 0,
            cacheable: true,
        }
    }

    fn place(&self, span: &Span) -> Place {
        Place::Span(self.base + span.start as usize..self.base + span.end as usize)
    }

    fn error(&self, pair: &Pair<'_, Rule>, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(self.place(&span_of(pair)), message))
    }

    /// Parses the statement by the rule its first characters call for.
    pub(crate) fn compile(&mut self, region: super::scan::End, tail: Option<Tail>) -> Res<Recipe> {
        let rule = self.statement_rule(region, tail.is_some());
        let mut pairs =
            Grammar::parse(rule, self.text).map_err(|error| self.syntax_error(&error))?;
        let Some(pair) = pairs.next() else {
            return Ok(Recipe::Nothing);
        };
        match rule {
            Rule::wrapper_stmt => Ok(Recipe::Wrapper { generic: false }),
            Rule::label_stmt => self.label(pair),
            Rule::generic_stmt | Rule::generic_open_stmt | Rule::generic_tail_stmt => {
                self.generic(pair, rule, tail)
            }
            _ => self.custom(pair, rule),
        }
    }

    fn statement_rule(&self, region: super::scan::End, tail: bool) -> Rule {
        use super::scan::End;
        let text = self.text;
        if tail {
            return Rule::generic_tail_stmt;
        }
        if region == End::GenericRegion {
            return Rule::generic_open_stmt;
        }
        if text.starts_with('"') {
            return Rule::generic_stmt;
        }
        if text.starts_with('^') {
            return Rule::label_stmt;
        }
        if text.starts_with('%') {
            let behind = text
                .split_once('=')
                .map_or("", |(_, rest)| rest)
                .trim_start();
            let word_end = behind
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(behind.len());
            return match &behind[..word_end] {
                "" if behind.starts_with('"') => Rule::generic_stmt,
                "alloc" => Rule::alloc_stmt,
                _ => Rule::op_stmt,
            };
        }
        let word_end = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
            .unwrap_or(text.len());
        match &text[..word_end] {
            "bir.module" => Rule::module_stmt,
            "bir.func" => Rule::func_stmt,
            "module" | "builtin.module" => Rule::wrapper_stmt,
            "loop" => Rule::loop_stmt,
            "while" => Rule::while_stmt,
            "br" => Rule::br_stmt,
            "cond_br" => Rule::cond_br_stmt,
            _ => Rule::op_stmt,
        }
    }

    fn syntax_error(&self, error: &pest::error::Error<Rule>) -> Box<Diagnostic> {
        let at = match error.location {
            InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
        };
        let rest = self.text.get(at..).unwrap_or("");
        let len = match rest.chars().next() {
            None => 0,
            Some(c) if c.is_alphanumeric() || c == '_' || c == '%' => rest
                .char_indices()
                .skip(1)
                .find(|&(_, c)| !c.is_alphanumeric() && c != '_')
                .map_or(rest.len(), |(i, _)| i),
            Some(c) => c.len_utf8(),
        };
        let found = if len == 0 {
            "the end of the statement".to_owned()
        } else {
            format!("`{}`", &rest[..len])
        };
        let mut wanted: Vec<&str> = match &error.variant {
            ErrorVariant::ParsingError { positives, .. } => positives
                .iter()
                .filter_map(|&rule| rule_name(rule))
                .collect(),
            ErrorVariant::CustomError { .. } => Vec::new(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        // A long list says nothing; the most general entries do.
        wanted.truncate(6);
        let expected = match wanted.split_last() {
            None => "a complete statement".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        };
        let start = self.base + at;
        Box::new(
            Diagnostic::error(
                Place::Span(start..start + len),
                format!("expected {expected}, found {found}"),
            )
            .label("here"),
        )
    }

    // ---- leaves ----

    fn hole_at(&self, start: usize) -> Option<usize> {
        if self.alias_depth > 0 {
            return None;
        }
        let at = self
            .holes
            .binary_search_by_key(&((self.base + start) as u32), |hole| hole.start)
            .ok()?;
        Some(at)
    }

    fn int(&self, pair: &Pair<'_, Rule>) -> Res<IntSrc> {
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

    fn number(&self, pair: &Pair<'_, Rule>) -> Res<(NumSrc, NumStyle)> {
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

    fn name(&self, pair: &Pair<'_, Rule>) -> Res<NameSrc> {
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

    fn string(&mut self, pair: &Pair<'_, Rule>) -> StrSrc {
        match self.hole_at(pair.as_span().start()) {
            Some(hole) => StrSrc::Hole(hole as u32),
            None => {
                let text = unescape(pair.as_str());
                StrSrc::Const(self.ir.ctx.str(&text))
            }
        }
    }

    fn dtype(&self, pair: &Pair<'_, Rule>) -> Res<DType> {
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

    fn shape(&self, pair: &Pair<'_, Rule>) -> Res<(SmallVec<[u64; 6]>, String)> {
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

    fn mem_type(&mut self, pair: Pair<'_, Rule>) -> Res<Type> {
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

    fn ty(&mut self, pair: Pair<'_, Rule>) -> Res<Type> {
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
            Rule::function_type => Ok(self.ir.ctx.function_type(pair.as_str())),
            Rule::alias_type => match self.alias(pair.as_str()) {
                Some(text) => self.in_alias(&pair, &text, Rule::type_, Self::ty),
                None => Err(self.error(&pair, format!("unknown type alias `{}`", pair.as_str()))),
            },
            Rule::opaque_type => Ok(self.ir.ctx.opaque_type(pair.as_str())),
            _ => Ok(self.builtin_type(pair.as_str())),
        }
    }

    fn builtin_type(&mut self, name: &str) -> Type {
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

    fn alias(&self, name: &str) -> Option<String> {
        self.aliases
            .iter()
            .rev()
            .find(|(alias, _)| &**alias == name)
            .map(|(_, text)| text.to_string())
    }

    /// Reads `text` in place of an alias.
    fn in_alias<T>(
        &mut self,
        pair: &Pair<'_, Rule>,
        text: &str,
        rule: Rule,
        read: impl FnOnce(&mut Self, Pair<'_, Rule>) -> Res<T>,
    ) -> Res<T> {
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

    // ---- accesses ----

    fn affine(&self, pair: Pair<'_, Rule>) -> Res<AffineRecipe> {
        let mut affine = AffineRecipe {
            span: span_of(&pair),
            ..AffineRecipe::default()
        };
        let mut subtract = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::plus => subtract = false,
                Rule::minus => subtract = true,
                _ => {
                    let mut index = None;
                    let mut factor = None;
                    let mut negative = subtract;
                    for piece in part.into_inner() {
                        match piece.as_rule() {
                            Rule::minus => negative = !negative,
                            Rule::index => index = Some(self.index(piece)?),
                            _ => factor = Some(self.int(&piece)?),
                        }
                    }
                    match (index, factor) {
                        (Some(index), factor) => affine.terms.push((index, factor, negative)),
                        (None, Some(IntSrc::Const(value))) => {
                            affine.constants.push(IntSrc::Const(if negative {
                                value.wrapping_neg()
                            } else {
                                value
                            }))
                        }
                        (None, Some(IntSrc::Hole { hole, negative: n })) => {
                            affine.constants.push(IntSrc::Hole {
                                hole,
                                negative: n != negative,
                            });
                        }
                        (None, None) => {}
                    }
                }
            }
        }
        Ok(affine)
    }

    fn index(&self, pair: Pair<'_, Rule>) -> Res<IndexSrc> {
        let Some(inner) = pair.clone().into_inner().next() else {
            return Err(self.error(&pair, "expected an index"));
        };
        match inner.as_rule() {
            Rule::dim => self.dim(&inner).map(IndexSrc::Dim),
            _ => self.name(&inner).map(IndexSrc::Name),
        }
    }

    fn dim(&self, pair: &Pair<'_, Rule>) -> Res<u8> {
        pair.as_str()
            .trim_start_matches('d')
            .parse::<u8>()
            .ok()
            .filter(|&dim| dim < 128)
            .ok_or_else(|| self.error(pair, "index number is above 127"))
    }

    fn access(&self, pair: Pair<'_, Rule>) -> Res<AccessRecipe> {
        let mut recast = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::recast => {
                    if let Some(dtype) = part.into_inner().next() {
                        recast = Some(self.dtype(&dtype)?);
                    }
                }
                Rule::raw => return self.raw(part, recast),
                _ => return self.slices(part, recast),
            }
        }
        // `%t as i32`: the whole of it, in another dtype.
        Ok(AccessRecipe::Slices {
            recast,
            slices: Vec::new(),
        })
    }

    fn slices(&self, pair: Pair<'_, Rule>, recast: Option<DType>) -> Res<AccessRecipe> {
        let mut slices = Vec::new();
        for part in pair.into_inner() {
            let span = span_of(&part);
            let rule = part.as_rule();
            let mut affines: SmallVec<[AffineRecipe; 2]> = SmallVec::new();
            let mut ints: SmallVec<[IntSrc; 2]> = SmallVec::new();
            let colon = part.as_str().find(':').unwrap_or(0) as u32;
            for piece in part.into_inner() {
                match piece.as_rule() {
                    Rule::affine => affines.push(self.affine(piece)?),
                    _ => ints.push(self.int(&piece)?),
                }
            }
            let mut affines = affines.into_iter();
            let slice = match rule {
                Rule::slice_length => match (affines.next(), ints.first()) {
                    (Some(start), Some(&len)) => {
                        SliceRecipe::Length(start, len, ints.get(1).copied())
                    }
                    _ => SliceRecipe::Range(None, None, None),
                },
                Rule::slice_at => match affines.next() {
                    Some(at) => SliceRecipe::At(at),
                    None => SliceRecipe::Range(None, None, None),
                },
                _ => {
                    let (mut start, mut end) = (None, None);
                    for affine in affines {
                        if affine.span.start < span.start + colon {
                            start = Some(affine);
                        } else {
                            end = Some(affine);
                        }
                    }
                    SliceRecipe::Range(start, end, ints.first().copied())
                }
            };
            slices.push((slice, span));
        }
        Ok(AccessRecipe::Slices { recast, slices })
    }

    fn raw(&self, pair: Pair<'_, Rule>, mut recast: Option<DType>) -> Res<AccessRecipe> {
        let mut window = None;
        let mut offset = AffineRecipe::default();
        let mut pairs = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::recast => {
                    if let Some(dtype) = part.into_inner().next() {
                        recast = Some(self.dtype(&dtype)?);
                    }
                }
                Rule::window => {
                    let by_length = part.as_str().contains("+:");
                    let mut inner = part.into_inner();
                    if let (Some(start), Some(end)) = (inner.next(), inner.next()) {
                        let start = self.affine(start)?;
                        let end = self.int(&end)?;
                        let end = match by_length {
                            true => WindowEnd::Length(end),
                            false => WindowEnd::End(end),
                        };
                        window = Some(Box::new((start, end)));
                    }
                }
                Rule::offset => {
                    if let Some(affine) = part.into_inner().next() {
                        offset = self.affine(affine)?;
                    }
                }
                _ => {
                    let mut inner = part.into_inner();
                    if let (Some(step), Some(count)) = (inner.next(), inner.next()) {
                        pairs.push((self.int(&step)?, self.int(&count)?));
                    }
                }
            }
        }
        Ok(AccessRecipe::Raw {
            recast,
            window,
            offset: Box::new(offset),
            pairs,
        })
    }

    /// A number for the access and the integers it depends on, unless it names loop indices.
    fn memo(&mut self, access: &AccessRecipe) -> Option<(u32, SmallVec<[u32; 4]>)> {
        let mut holes: SmallVec<[u32; 4]> = SmallVec::new();
        let mut int = |src: &IntSrc| {
            if let IntSrc::Hole { hole, .. } = src {
                holes.push(*hole);
            }
        };
        let mut affine = |affine: &AffineRecipe| {
            affine.constants.iter().for_each(&mut int);
            affine.terms.is_empty()
        };
        let fixed = match access {
            AccessRecipe::Whole => false,
            AccessRecipe::Slices { slices, .. } => slices.iter().all(|(slice, _)| match slice {
                SliceRecipe::At(at) => affine(at),
                SliceRecipe::Length(start, len, step) => {
                    let fixed = affine(start);
                    affine(&AffineRecipe::of([*len].into_iter().chain(*step))) && fixed
                }
                SliceRecipe::Range(start, end, step) => {
                    let fixed = start.as_ref().is_none_or(&mut affine);
                    let fixed = end.as_ref().is_none_or(&mut affine) && fixed;
                    affine(&AffineRecipe::of(step.iter().copied())) && fixed
                }
            }),
            AccessRecipe::Raw { .. } => false,
        };
        if !fixed || holes.len() > crate::text::build::MEMO_INTS {
            return None;
        }
        *self.memos += 1;
        Some((*self.memos, holes))
    }

    // ---- attributes ----

    fn blank(&mut self, name: &str, code: Option<OpCode>) -> OpRecipe {
        OpRecipe {
            name: self.ir.ctx.op_name(name),
            code,
            generic: false,
            opens: Opens::Nothing,
            results: SmallVec::new(),
            result_types: None,
            operands: Vec::new(),
            index_names: SmallVec::new(),
            successors: SmallVec::new(),
            entries: Vec::new(),
            dict: None,
            symbol: None,
            iv: None,
            id: None,
            deps: None,
            order: None,
            loc: None,
            hint: None,
            stated_types: 0,
            segments: None,
        }
    }

    /// Reads `{…}` into a recipe; columns, names and locations go to their own fields.
    fn dict(
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
    fn special(
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
                    match part.clone().into_inner().next() {
                        Some(unit) if unit.as_rule() == Rule::unit => {
                            access.push(AccessRecipe::Whole);
                        }
                        Some(ap) if ap.as_rule() == Rule::bir_ap => {
                            access.push(self.raw(ap, None)?)
                        }
                        _ => return Err(self.error(&part, "expected `unit` or `#bir.ap<…>`")),
                    }
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

    fn dep(&self, pair: Pair<'_, Rule>) -> Res<DepRecipe> {
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

    fn attr(&mut self, pair: Pair<'_, Rule>, expected: Option<AttrType>) -> Res<AttrRecipe> {
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
                        Rule::event => {}
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
                None => AttrRecipe::Const(self.ir.ctx.opaque_attr(pair.as_str())),
            },
            Rule::i32_array | Rule::bir_ap | Rule::bir_deps | Rule::bir_order => {
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

    fn elements(&mut self, pair: Pair<'_, Rule>) -> Res<DenseRecipe> {
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

    fn placement_parts(&self, partition: &Pair<'_, Rule>, at: &Pair<'_, Rule>) -> Res<AttrRecipe> {
        let partition = self.int(partition)?;
        Ok(match at.as_rule() {
            Rule::bank => match at.clone().into_inner().next() {
                Some(bank) => AttrRecipe::PlaceBank(partition, self.int(&bank)?),
                None => AttrRecipe::PlaceBank(partition, IntSrc::Const(0)),
            },
            _ => AttrRecipe::PlaceBytes(partition, self.int(at)?),
        })
    }

    fn typed_number(
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
        if let Some(ty) = ty {
            let ty = self.ty(ty)?;
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

    fn int_of(&self, number: &Pair<'_, Rule>) -> Res<IntSrc> {
        match number.clone().into_inner().next() {
            Some(inner) if matches!(inner.as_rule(), Rule::int | Rule::hex) => self.int(&inner),
            _ => Err(self.error(
                number,
                format!("expected an integer, found `{}`", number.as_str()),
            )),
        }
    }

    fn loc(&mut self, pair: Pair<'_, Rule>) -> Res<Option<LocRecipe>> {
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

    // ---- statements ----

    fn label(&mut self, pair: Pair<'_, Rule>) -> Res<Recipe> {
        let mut name = None;
        let mut args = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::caret => name = Some(self.name(&part)?),
                Rule::block_arg => {
                    let mut inner = part.into_inner();
                    if let (Some(value), Some(ty)) = (inner.next(), inner.next()) {
                        let value = self.name(&value)?;
                        args.push((value, self.ty(ty)?));
                    }
                }
                _ => {}
            }
        }
        match name {
            Some(name) => Ok(Recipe::Label(LabelRecipe { name, args })),
            None => Ok(Recipe::Nothing),
        }
    }

    fn symbol(&mut self, pair: &Pair<'_, Rule>) -> SymbolSrc {
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

    fn custom(&mut self, pair: Pair<'_, Rule>, rule: Rule) -> Res<Recipe> {
        let code = match rule {
            Rule::alloc_stmt => OpCode::Alloc,
            Rule::module_stmt => OpCode::Module,
            Rule::func_stmt => OpCode::Func,
            Rule::loop_stmt => OpCode::Loop,
            Rule::while_stmt => OpCode::While,
            Rule::br_stmt => OpCode::Br,
            Rule::cond_br_stmt => OpCode::CondBr,
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
                Rule::dict => self.dict(part, &mut op, &mut Vec::new(), &mut None)?,
                Rule::loc => op.loc = self.loc(part)?,
                _ => {}
            }
        }
        self.finish(&mut op);
        Ok(Recipe::Op(Box::new(op)))
    }

    fn register_operand(&mut self, value: &Pair<'_, Rule>, role: u8) -> Res<OperandRecipe> {
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

    fn instruction(&mut self, pair: Pair<'_, Rule>) -> Res<Recipe> {
        let parts: Vec<Pair<'_, Rule>> = pair.into_inner().collect();
        let Some(name) = parts.iter().find(|part| part.as_rule() == Rule::op_name) else {
            return Ok(Recipe::Nothing);
        };
        let code = OpCode::from_name(name.as_str())
            .filter(|code| code.def().syntax == crate::bir::ops::Syntax::Instruction);
        let Some(code) = code else {
            let known = OpCode::ALL.iter().map(|op| op.def().name);
            return Err(Box::new(
                Diagnostic::error(
                    self.place(&span_of(name)),
                    format!("unknown instruction `{}`", name.as_str()),
                )
                .maybe_help(did_you_mean(name.as_str(), known)),
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
    fn literals(
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

    fn bit_op(&self, op: &OpRecipe) -> bool {
        op.entries.iter().any(|entry| match &entry.value {
            AttrRecipe::Const(attr) => self.ir.ctx.attr_str(*attr).is_some_and(is_bitvec),
            _ => false,
        })
    }

    fn operand(
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
            let limit = def
                .operands
                .iter()
                .filter(|role| role.is_left() == left)
                .count();
            let side = if left { "before" } else { "behind" };
            return Err(self.error(
                &whole,
                format!(
                    "`{}` takes {limit} operands {side} `<-`, found one more",
                    def.name
                ),
            ));
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
                    memo: self.memo(&access),
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

    fn unknown_word(
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
    fn enum_word<'p>(
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

    fn generic(&mut self, pair: Pair<'_, Rule>, rule: Rule, tail: Option<Tail>) -> Res<Recipe> {
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
        if code.is_some_and(|code| code.def().syntax == crate::bir::ops::Syntax::Implicit) {
            return Ok(Recipe::Nothing);
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
                        for ty in list.into_inner() {
                            use_types.push(self.ty(ty)?);
                        }
                    }
                    if let Some(results) = inner.next() {
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
        let whole = 0..self.text.len() as u32;
        if rule != Rule::generic_tail_stmt {
            self.assign_uses(&mut op, uses, &use_types, access, segments.take())?;
            if rule == Rule::generic_stmt
                && use_types.len() != op.operands.len() + op.index_names.len()
            {
                return Err(Box::new(Diagnostic::error(
                    self.place(&whole),
                    format!(
                        "{} operands but {} operand types",
                        op.operands.len() + op.index_names.len(),
                        use_types.len()
                    ),
                )));
            }
        }
        op.result_types = Some(result_types);
        if rule == Rule::generic_tail_stmt {
            op.segments = segments;
        }
        self.finish(&mut op);
        if rule == Rule::generic_tail_stmt {
            return Ok(Recipe::Tail(Box::new(op)));
        }
        Ok(Recipe::Op(Box::new(op)))
    }

    /// Gives the operands of a generic operation their roles.
    fn assign_uses(
        &mut self,
        op: &mut OpRecipe,
        uses: Vec<(NameSrc, Span)>,
        types: &[Type],
        access: Vec<AccessRecipe>,
        segments: Option<Vec<i64>>,
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
                    "operand segments add up to {}, found {} operands",
                    roles.len(),
                    uses.len()
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
            let is_mem = ty.is_none_or(|ty| MemType::get(&self.ir.ctx, ty).is_some());
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
                may_be_later: register || !is_mem,
                name,
                memo: self.memo(&access),
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

    /// Interns the dictionary of a recipe whose entries are all constant.
    fn finish(&mut self, op: &mut OpRecipe) {
        // In the order dictionaries are kept in.
        op.entries.sort_by_key(|entry| entry.name);
        let constant: Option<SmallVec<[_; 8]>> = op
            .entries
            .iter()
            .map(|entry| match entry.value {
                AttrRecipe::Const(attr) => Some((entry.name, attr)),
                _ => None,
            })
            .collect();
        if op.symbol.is_none() {
            op.dict = constant.map(|entries| self.ir.ctx.dict(&entries));
        }
    }
}

struct Sides {
    filled: SmallVec<[bool; 8]>,
    head_words: &'static [&'static str],
}

fn enum_words(def: &'static OpDef, attr: &str) -> &'static [&'static str] {
    match def.attr(attr).map(|attr| attr.ty) {
        Some(AttrType::Enum(words)) => words.words,
        _ => &[],
    }
}

/// What the table says an attribute of an op is.
fn entry_type(def: &'static OpDef, name: &str) -> Option<AttrType> {
    def.attr(name)
        .or_else(|| COMMON_ATTRS.iter().find(|attr| attr.name == name))
        .map(|attr| attr.ty)
}

/// The text of a quoted string.
pub(crate) fn unescape(quoted: &str) -> String {
    let inner = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(quoted);
    if !inner.contains('\\') {
        return inner.to_owned();
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(high) if high.is_ascii_hexdigit() => {
                let mut ahead = rest.clone();
                match ahead.next() {
                    Some(low) if low.is_ascii_hexdigit() => {
                        rest = ahead;
                        bytes.push(hex_value(high) << 4 | hex_value(low));
                    }
                    _ => bytes.push(high),
                }
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}
