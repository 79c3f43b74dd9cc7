//! `--verify-diagnostics`: the findings a test file says it expects, against those there are.
//!
//! A comment `// expected-error@+1 {{text}}` expects an error whose message contains the text, on
//! the line behind the comment; `@-1`, `@above`, `@below` and no offset (the same line) work too,
//! as do `expected-warning` and `expected-remark`. `@unknown` expects a finding without a place.

use super::diag::{Diagnostic, Diagnostics, Place, Severity};
use super::render::{SourceFile, line_col, resolve};
use crate::ir::Ir;

struct Expected {
    severity: Severity,
    /// `None` for `@unknown`.
    line: Option<usize>,
    text: String,
    /// Bytes of the comment.
    at: std::ops::Range<usize>,
    met: bool,
}

const KINDS: [(&str, Severity); 3] = [
    ("expected-error", Severity::Error),
    ("expected-warning", Severity::Warning),
    ("expected-remark", Severity::Remark),
];

/// Expectations written in `range` of the file; wrong ones become findings.
fn expectations(
    file: SourceFile<'_>,
    range: std::ops::Range<usize>,
    out: &mut Diagnostics,
) -> Vec<Expected> {
    let mut list = Vec::new();
    let first_line = line_col(file.text, range.start).0;
    let mut start = range.start;
    let chunk = file.text.get(range).unwrap_or("");
    for (number, line) in chunk.split('\n').enumerate() {
        let here = first_line + number;
        let mut from = 0;
        while let Some((at, word, severity)) = KINDS
            .iter()
            .filter_map(|&(word, severity)| Some((from + line[from..].find(word)?, word, severity)))
            .min_by_key(|&(at, ..)| at)
        {
            let place = start + at..start + line.len();
            from = at + word.len();
            if !line[..at].contains("//") {
                continue;
            }
            let rest = &line[from..];
            let Some((offset, behind)) = rest.split_once("{{") else {
                out.push(Diagnostic::error(
                    Place::Span(place),
                    format!("`{word}` needs a text in `{{{{…}}}}`"),
                ));
                continue;
            };
            let offset = offset.trim();
            let line_number = match offset.strip_prefix('@') {
                None if offset.is_empty() => Some(Some(here)),
                None => None,
                Some("above") => Some(Some(here - 1)),
                Some("below") => Some(Some(here + 1)),
                Some("unknown") => Some(None),
                Some(number) => number
                    .parse::<i64>()
                    .ok()
                    .filter(|_| number.starts_with(['+', '-']))
                    .and_then(|offset| here.checked_add_signed(offset as isize))
                    .map(Some),
            };
            match (line_number, behind.split_once("}}")) {
                (Some(line), Some((text, _))) => list.push(Expected {
                    severity,
                    line,
                    text: text.to_owned(),
                    at: place,
                    met: false,
                }),
                (None, _) => out.push(Diagnostic::error(
                    Place::Span(place),
                    format!("`{offset}` is no offset; expected `@+n`, `@-n`, `@above`, `@below` or `@unknown`"),
                )),
                (_, None) => out.push(Diagnostic::error(
                    Place::Span(place),
                    format!("the text of `{word}` is not closed by `}}}}`"),
                )),
            }
        }
        start += line.len() + 1;
    }
    list
}

/// Compares the findings in one chunk of a file with those it expects; returns what differs.
pub fn check_expected(
    ir: &Ir,
    file: SourceFile<'_>,
    range: std::ops::Range<usize>,
    found: &Diagnostics,
) -> Diagnostics {
    let mut out = Diagnostics::new();
    let mut expected = expectations(file, range, &mut out);
    for diagnostic in found.iter() {
        let line = resolve(ir, file, &diagnostic.place).map(|at| line_col(file.text, at.start).0);
        let matching = expected.iter_mut().find(|one| {
            !one.met
                && one.severity == diagnostic.severity
                && one.line == line
                && diagnostic.message.contains(&one.text)
        });
        match matching {
            Some(one) => one.met = true,
            None => {
                let mut unexpected = diagnostic.clone();
                unexpected.severity = Severity::Error;
                unexpected.message = format!(
                    "unexpected {}: {}",
                    diagnostic.severity.name(),
                    diagnostic.message
                );
                out.push(unexpected);
            }
        }
    }
    for one in expected.into_iter().filter(|one| !one.met) {
        let on = match one.line {
            Some(line) => format!("on line {line}"),
            None => "without a place".to_owned(),
        };
        out.push(Diagnostic::error(
            Place::Span(one.at),
            format!(
                "expected {} {on} was not found: {}",
                one.severity.name(),
                one.text
            ),
        ));
    }
    out
}
