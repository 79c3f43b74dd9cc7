//! From text to a pipeline. All findings carry their place in the whole string.

use std::ops::Range;

use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place, did_you_mean};
use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;

use super::grammar::{Grammar, Rule, rule_name};
use super::{Pipeline, Step};
use crate::options::same_name;
use crate::pass::{Anchor, Pass};
use crate::registry::Registry;

/// Brackets may nest so deep; the longest sensible string has four.
const MAX_DEPTH: usize = 64;

/// Reads a pipeline string; `None` where errors were reported.
pub fn parse(registry: &Registry, text: &str, diags: &mut Diagnostics) -> Option<Pipeline> {
    let before = diags.errors();
    if let Some(at) = too_deep(text) {
        diags.push(Diagnostic::error(
            Place::Span(at..at + 1),
            format!("brackets are nested more than {MAX_DEPTH} deep"),
        ));
        return None;
    }
    let tree = match Grammar::parse(Rule::pipeline, text) {
        Ok(mut pairs) => pairs.next()?,
        Err(error) => {
            diags.push(syntax_error(text, &error));
            return None;
        }
    };
    let mut reader = Reader {
        registry,
        diags,
        pipeline: Pipeline::default(),
    };
    for pair in tree.into_inner() {
        if pair.as_rule() == Rule::list {
            reader.list(pair, None);
        }
    }
    let pipeline = reader.pipeline;
    (diags.errors() == before).then_some(pipeline)
}

/// Where brackets get too deep for a parser that recurses.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(at);
        }
    }
    None
}

fn syntax_error(text: &str, error: &pest::error::Error<Rule>) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let length = text[at..].chars().next().map_or(0, char::len_utf8);
    let found = match text[at..].chars().next() {
        Some(c) => format!("`{c}`"),
        None => "the end".to_owned(),
    };
    let mut expected: Vec<&str> = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives
            .iter()
            .filter_map(|&rule| rule_name(rule))
            .collect(),
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    expected.sort_unstable();
    expected.dedup();
    let message = match expected.split_last() {
        None => format!("unexpected {found}"),
        Some((only, [])) => format!("expected {only}, found {found}"),
        Some((last, others)) => format!("expected {} or {last}, found {found}", others.join(", ")),
    };
    let before = text[..at].trim_end();
    let help = before
        .ends_with(',')
        .then(|| "a list has no comma at its end".to_owned());
    let place = match help {
        // A trailing comma is the fault itself.
        Some(_) => before.len() - 1..before.len(),
        // Behind the end there is nothing to point at.
        None if length == 0 => before.char_indices().last().map_or(0, |(at, _)| at)..before.len(),
        None => at..at + length,
    };
    Diagnostic::error(Place::Span(place), message).maybe_help(help)
}

fn span(pair: &Pair<'_, Rule>) -> Range<usize> {
    pair.as_span().start()..pair.as_span().end()
}

struct Reader<'a> {
    registry: &'a Registry,
    diags: &'a mut Diagnostics,
    pipeline: Pipeline,
}

impl Reader<'_> {
    fn error(&mut self, at: Range<usize>, message: String, help: Option<String>) {
        self.diags
            .push(Diagnostic::error(Place::Span(at), message).maybe_help(help));
    }

    /// The elements of a list inside the anchor `around`; `None` at the top.
    fn list(&mut self, list: Pair<'_, Rule>, around: Option<Anchor>) {
        for element in list.into_inner() {
            if element.as_rule() == Rule::element {
                self.element(element, around);
            }
        }
    }

    fn element(&mut self, element: Pair<'_, Rule>, around: Option<Anchor>) {
        let mut parts = element.into_inner();
        let Some(name) = parts.next() else { return };
        match (Anchor::from_name(name.as_str()), parts.next()) {
            (Some(anchor), Some(nest)) if nest.as_rule() == Rule::nest => {
                if around.is_some_and(|around| around >= anchor) {
                    let around = around.map_or("", Anchor::name);
                    let message =
                        format!("`{}(…)` cannot stand inside `{around}(…)`", anchor.name());
                    let help = "anchors nest as `program(module(func(…)))`".to_owned();
                    self.error(span(&name), message, Some(help));
                    return;
                }
                for part in nest.into_inner() {
                    if part.as_rule() == Rule::list {
                        self.list(part, Some(anchor));
                    }
                }
            }
            (Some(anchor), _) => {
                let anchor = anchor.name();
                let message = format!("`{anchor}` is an anchor and takes a list of passes");
                self.error(span(&name), message, Some(format!("write `{anchor}(…)`")));
            }
            (None, Some(nest)) if nest.as_rule() == Rule::nest => {
                let text = name.as_str();
                let (message, help) = match self.registry.make(text) {
                    Some(pass) => (
                        format!("`{}` is a pass and holds no passes", pass.name()),
                        Some("options stand in braces, as in `unroll{factor=4}`".to_owned()),
                    ),
                    None => (
                        format!("unknown anchor `{text}`"),
                        did_you_mean(text, Anchor::ALL.map(Anchor::name)).or_else(|| {
                            Some("anchors are `program`, `module` and `func`".to_owned())
                        }),
                    ),
                };
                self.error(span(&name), message, help);
            }
            (None, options) => self.pass(name, options, around),
        }
    }

    fn pass(
        &mut self,
        name: Pair<'_, Rule>,
        options: Option<Pair<'_, Rule>>,
        around: Option<Anchor>,
    ) {
        let text = name.as_str();
        let Some(mut pass) = self.registry.make(text) else {
            let (message, help) = match crate::planes::order_of(text) {
                Some(order) => (
                    format!("pass `{text}` (order {order}) is not in this version"),
                    None,
                ),
                None => {
                    let known = self.registry.names();
                    let help = did_you_mean(text, known)
                        .or_else(|| Some("`--list-passes` lists the passes".to_owned()));
                    (format!("unknown pass `{text}`"), help)
                }
            };
            self.error(span(&name), message, help);
            return;
        };
        if let Some(around) = around
            && around > pass.anchor()
        {
            let message = format!(
                "`{}` runs on {} and cannot stand inside `{}(…)`",
                pass.name(),
                pass.anchor().noun(),
                around.name()
            );
            let help = format!("move it into `{}(…)`", pass.anchor().name());
            self.error(span(&name), message, Some(help));
            return;
        }
        if let Some(options) = options {
            self.options(pass.as_mut(), options);
        }
        self.pipeline.steps.push(Step { pass, order: None });
    }

    fn options(&mut self, pass: &mut dyn Pass, options: Pair<'_, Rule>) {
        let defs = pass.option_defs();
        let mut given: Vec<usize> = Vec::new();
        for option in options.into_inner() {
            if option.as_rule() != Rule::option {
                continue;
            }
            let whole = span(&option);
            let mut parts = option.into_inner();
            let Some(name) = parts.next() else { continue };
            let value = parts.find(|part| part.as_rule() == Rule::value);
            let text = name.as_str();
            let Some(number) = defs.iter().position(|def| same_name(def.name, text)) else {
                let names: Vec<String> = defs.iter().map(|def| def.printed()).collect();
                let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let help = did_you_mean(text, names.iter().map(String::as_str)).unwrap_or(
                    match listed.is_empty() {
                        true => format!("`{}` has no options", pass.name()),
                        false => format!("the options are {}", listed.join(", ")),
                    },
                );
                // What was meant may be `loops="i,j"`.
                let help = match (&value, given.last()) {
                    (None, Some(_)) => format!("{help}; a value with commas stands in quotes"),
                    _ => help,
                };
                let message = format!("pass `{}` has no option `{text}`", pass.name());
                self.error(span(&name), message, Some(help));
                continue;
            };
            let printed = defs[number].printed();
            if given.contains(&number) {
                let message = format!("option `{printed}` of `{}` is given twice", pass.name());
                self.error(span(&name), message, None);
                continue;
            }
            given.push(number);
            let (text, at) = match value {
                Some(value) => {
                    let at = span(&value);
                    (value_of(value), at)
                }
                None if defs[number].kind == <bool as crate::options::OptionValue>::KIND => {
                    ("true".to_owned(), whole)
                }
                None => {
                    let message = format!("option `{printed}` of `{}` needs a value", pass.name());
                    let help = format!("write `{printed}={}`", defs[number].kind);
                    self.error(whole, message, Some(help));
                    continue;
                }
            };
            if let Err(message) = pass.set_option(number, &text) {
                let message = format!("option `{printed}` of `{}`: {message}", pass.name());
                self.error(at, message, None);
            }
        }
    }
}

/// The text a value stands for, without quotes or the outer braces.
fn value_of(value: Pair<'_, Rule>) -> String {
    let Some(inner) = value.into_inner().next() else {
        return String::new();
    };
    let text = inner.as_str();
    match inner.as_rule() {
        Rule::quoted => unescape(&text[1..text.len() - 1]),
        Rule::braced => text[1..text.len() - 1].trim().to_owned(),
        _ => text.to_owned(),
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(c) => out.push(c),
            None => {}
        }
    }
    out
}
