//! From pest's parse of a statement to its recipe.
//!
//! * this file – which rule a statement is parsed by, and what a syntax error says;
//! * `leaf` – words, numbers, names, strings, types;
//! * `access` – accesses and index expressions;
//! * `attr` – attributes;
//! * `custom`, `generic` – the statements of the two forms.

mod access;
mod attr;
mod custom;
mod generic;
mod leaf;

use super::build::Forms;
use super::diag::{Diagnostic, Place};
use super::grammar::{Grammar, Rule, rule_name};
use super::recipe::{
    AttrRecipe, IntSrc, LabelRecipe, LitType, NumSrc, OpRecipe, Opens, Recipe, Span, StrSrc,
};
use super::scan::Hole;
use crate::bir::ops::OpCode;
use crate::ir::Ir;
use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use smallvec::SmallVec;

pub(crate) use leaf::unescape;

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
    /// Numbers of what is remembered.
    forms: &'a mut Forms,
    /// How many aliases the text being read is inside of.
    alias_depth: usize,
    alias_uses: usize,
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
        forms: &'a mut Forms,
    ) -> Compiler<'a> {
        Compiler {
            ir,
            text,
            base,
            holes,
            aliases,
            forms,
            alias_depth: 0,
            alias_uses: 0,
            cacheable: true,
        }
    }

    pub(super) fn place(&self, span: &Span) -> Place {
        Place::Span(self.base + span.start as usize..self.base + span.end as usize)
    }

    pub(super) fn error(
        &self,
        pair: &Pair<'_, Rule>,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
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

    pub(super) fn statement_rule(&self, region: super::scan::End, tail: bool) -> Rule {
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
            "depset" => Rule::depset_stmt,
            _ => Rule::op_stmt,
        }
    }

    pub(super) fn syntax_error(&self, error: &pest::error::Error<Rule>) -> Box<Diagnostic> {
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

    pub(super) fn blank(&mut self, name: &str, code: Option<OpCode>) -> OpRecipe {
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
            dict_memo: None,
            symbol: None,
            iv: None,
            id: None,
            deps: None,
            order: None,
            loc: None,
            hint: None,
            stated_types: 0,
            operand_types_span: 0..1,
            result_types_span: 0..1,
            segments: None,
        }
    }

    pub(super) fn label(&mut self, pair: Pair<'_, Rule>) -> Res<Recipe> {
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

    /// Interns the dictionary of a recipe whose entries are all constant.
    pub(super) fn finish(&mut self, op: &mut OpRecipe) {
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
            if op.dict.is_none() {
                let mut holes = DictHoles::default();
                if op.entries.iter().all(|entry| holes.add(&entry.value)) {
                    op.dict_memo = Some(self.forms.dict(holes.holes, holes.operand));
                }
            }
        }
    }
}

/// What the attributes of a dictionary depend on.
#[derive(Default)]
struct DictHoles {
    holes: SmallVec<[u32; 4]>,
    operand: Option<u8>,
}

impl DictHoles {
    fn int(&mut self, src: &IntSrc) {
        if let IntSrc::Hole { hole, .. } = src {
            self.holes.push(*hole);
        }
    }

    /// Adds what an attribute depends on; false where that is more than holes and one operand.
    fn add(&mut self, attr: &AttrRecipe) -> bool {
        match attr {
            AttrRecipe::Const(_) => {}
            AttrRecipe::Int(int, _) => self.int(int),
            AttrRecipe::Number(number, _, ty) => {
                if let NumSrc::Hole { hole, .. } = number {
                    self.holes.push(*hole);
                }
                if let LitType::OfOperand(at) = *ty {
                    if self.operand.is_some_and(|known| known != at) {
                        return false;
                    }
                    self.operand = Some(at);
                }
            }
            AttrRecipe::Str(StrSrc::Const(_)) => {}
            AttrRecipe::Str(StrSrc::Hole(hole)) | AttrRecipe::Symbol(hole) => {
                self.holes.push(*hole);
            }
            AttrRecipe::Array(elements) => return elements.iter().all(|attr| self.add(attr)),
            AttrRecipe::Dict(entries) => return entries.iter().all(|(_, attr)| self.add(attr)),
            AttrRecipe::Sem(a, _, b, _)
            | AttrRecipe::PlaceBytes(a, b)
            | AttrRecipe::PlaceBank(a, b) => {
                self.int(a);
                self.int(b);
            }
            AttrRecipe::PlaceAddress(address) => self.int(address),
            AttrRecipe::UnlessFirst(_) | AttrRecipe::Dense(..) => return false,
        }
        true
    }
}
