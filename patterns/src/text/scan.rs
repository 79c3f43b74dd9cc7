//! Where items start and end, before anything is parsed.
//!
//! Invariants:
//! * an item handed on has balanced brackets, [`MAX_DEPTH`] deep at most, so the recursive parser
//!   cannot run out of stack;
//! * every byte that is neither blank nor comment is in exactly one item.

use bir_dialect::text::diag::{Diagnostic, Place};

use super::ast::Span;

/// Bytes of an item, so that what is done with one stays short.
const MAX_ITEM: usize = 1 << 16;

/// Brackets may nest so deep.
pub(super) const MAX_DEPTH: usize = 64;

/// What a file is made of.
pub(super) struct Scanned {
    /// Items, documentation included.
    pub items: Vec<Span>,
    /// Comments that are no documentation.
    pub comments: Vec<Span>,
    /// What is wrong with brackets and quotes.
    pub errors: Vec<Diagnostic>,
}

/// Words an item starts with.
const STARTS: [&str; 5] = ["set", "import", "option", "pattern", "rewrite"];

/// Finds items and comments.
pub(super) fn scan(text: &str) -> Scanned {
    let bytes = text.as_bytes();
    let mut out = Scanned {
        items: Vec::new(),
        comments: Vec::new(),
        errors: Vec::new(),
    };
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut start: Option<usize> = None;
    let mut good = true;
    let mut at = 0;
    while at < bytes.len() {
        let c = bytes[at];
        // A line that starts like an item is one, so that an unclosed bracket spoils one item only.
        let line_start = at == 0 || bytes[at - 1] == b'\n';
        if line_start && !open.is_empty() && starts_item(&text[at..]) {
            let (bracket, place) = open[0];
            unclosed(&mut out, bracket, place);
            open.clear();
            start = None;
            good = true;
        }
        match c {
            b'/' if bytes[at..].starts_with(b"//") => {
                let end = line_end(bytes, at);
                if bytes[at..].starts_with(b"///") && open.is_empty() {
                    start.get_or_insert(at);
                } else if bytes[at..].starts_with(b"///") {
                    out.errors.push(Diagnostic::error(
                        Place::Span(at..end),
                        "documentation `///` stands before an item, not in it",
                    ));
                    good = false;
                } else {
                    out.comments.push(at..end);
                }
                at = end;
                continue;
            }
            b'"' => {
                let end = line_end(bytes, at);
                let close = bytes[at + 1..end].iter().position(|&c| c == b'"');
                start.get_or_insert(at);
                match close {
                    Some(close) => at += close + 2,
                    None => {
                        let place = Place::Span(at..end);
                        let message = "a text in quotes ends on its line; expected `\"`";
                        out.errors.push(Diagnostic::error(place, message));
                        good = false;
                        at = end;
                    }
                }
                continue;
            }
            b'(' | b'[' | b'{' => {
                start.get_or_insert(at);
                open.push((c, at));
                if open.len() == MAX_DEPTH + 1 {
                    let message = format!("brackets nest deeper than {MAX_DEPTH}");
                    let place = Place::Span(at..at + 1);
                    out.errors.push(Diagnostic::error(place, message));
                    good = false;
                }
            }
            b')' | b']' | b'}' => {
                let first = *start.get_or_insert(at);
                match open.pop() {
                    Some((bracket, _)) if closes(bracket, c) => {}
                    found => {
                        let place = Place::Span(at..at + 1);
                        let message = format!("`{}` closes nothing", char::from(c));
                        let mut error = Diagnostic::error(place, message);
                        if let Some((bracket, from)) = found {
                            let text = format!("`{}` is still open", char::from(bracket));
                            error = error.related(Place::Span(from..from + 1), text);
                        }
                        out.errors.push(error);
                        good = false;
                        open.clear();
                    }
                }
                if open.is_empty() && c == b'}' {
                    if good {
                        out.items.push(first..at + 1);
                    }
                    start = None;
                    good = true;
                }
            }
            b';' if open.is_empty() => {
                let first = start.take().unwrap_or(at);
                if good {
                    out.items.push(first..at + 1);
                }
                good = true;
            }
            c if c.is_ascii_whitespace() => {}
            _ => {
                start.get_or_insert(at);
            }
        }
        at += 1;
    }
    if let Some(&(bracket, place)) = open.first() {
        unclosed(&mut out, bracket, place);
    } else if let Some(first) = start
        && good
    {
        let end = first + text[first..].trim_end().len();
        out.items.push(first..end);
    }
    let Scanned { items, errors, .. } = &mut out;
    items.retain(|item| {
        let is_long = item.len() > MAX_ITEM;
        if is_long {
            let first = text[item.clone()].lines().next().map_or(0, str::len);
            let place = Place::Span(item.start..item.start + first.min(80));
            let message = format!(
                "an item has {MAX_ITEM} bytes at most, this has {}",
                item.len()
            );
            errors.push(Diagnostic::error(place, message));
        }
        !is_long
    });
    out
}

fn unclosed(out: &mut Scanned, bracket: u8, at: usize) {
    let message = format!("`{}` is never closed", char::from(bracket));
    let place = Place::Span(at..at + 1);
    out.errors.push(Diagnostic::error(place, message));
}

fn closes(open: u8, close: u8) -> bool {
    matches!((open, close), (b'(', b')') | (b'[', b']') | (b'{', b'}'))
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].iter().position(|&c| c == b'\n');
    rest.map_or(bytes.len(), |rest| at + rest)
}

fn starts_item(line: &str) -> bool {
    line.starts_with("///")
        || STARTS.iter().any(|word| {
            let rest = line.strip_prefix(word);
            rest.is_some_and(|rest| {
                let name = rest.trim_start_matches([' ', '\t']);
                // `rewrite {` and `rewrite at %x {` are parts of a pattern.
                name.len() < rest.len()
                    && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && !name.starts_with("at %")
            })
        })
}
