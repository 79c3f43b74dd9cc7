//! Findings as text for people, as JSON for tools, and the places they point at.

use std::ops::Range;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};
use serde_json::{Map, Value};

use super::build::Forms;
use super::compile::Compiler;
use super::diag::{Diagnostic, Part, Place, Severity};
use super::recipe::Recipe;
use super::scan::{End, Scanned};
use crate::ir::{Ir, Op};

/// The file findings are about.
#[derive(Clone, Copy)]
pub struct SourceFile<'a> {
    /// Its name as shown.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// How reports look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportStyle {
    /// For a terminal with colours.
    Color,
    /// For a terminal or log without.
    Plain,
    /// One JSON object per line.
    Json,
}

/// The bytes of the file a place means.
pub fn resolve(ir: &Ir, file: SourceFile<'_>, place: &Place) -> Option<Range<usize>> {
    let range = match place {
        Place::None => return None,
        Place::Span(range) => range.clone(),
        Place::Op(op, part) => op_range(ir, file.text, *op, *part)?,
    };
    let end = range.end.min(file.text.len());
    let start = range.start.min(end);
    file.text.is_char_boundary(start).then_some(start..end)
}

/// Bytes of an operation's statement, or of a part of it.
///
/// Spans of parts are not kept in the IR: the statement is parsed again.
fn op_range(ir: &Ir, text: &str, op: Op, part: Part) -> Option<Range<usize>> {
    let start = ir.span(op)?;
    let mut scanned = Scanned::default();
    let end = scanned.scan(text.as_bytes(), start, |_| true).ok()?;
    let statement = text.get(start..scanned.end)?;
    let trimmed = match end {
        End::Plain => statement,
        End::Region => statement.trim_end_matches('{').trim_end(),
        End::GenericRegion => statement
            .trim_end_matches('{')
            .trim_end_matches('(')
            .trim_end(),
    };
    let whole = start..start + trimmed.len();
    if part == Part::Whole {
        return Some(whole);
    }
    // Names in the throw-away IR differ from those of `ir`, so parts are compared by text.
    let mut scratch = crate::bir::program::new_ir();
    let aliases = Vec::new();
    let mut forms = Forms::default();
    let mut scanned = Scanned::default();
    scanned.scan(text.as_bytes(), start, |_| false).ok()?;
    let mut compiler = Compiler::new(
        &mut scratch,
        statement,
        start,
        &scanned.holes,
        &aliases,
        &mut forms,
    );
    let recipe = compiler.compile(end, None).ok();
    let span = match (recipe, part) {
        (Some(Recipe::Op(recipe)), Part::Operand(at)) => {
            recipe.operands.get(at).map(|operand| operand.span.clone())
        }
        (Some(Recipe::Op(recipe)), Part::Attr(name)) => {
            let name = scratch.ctx.find_str(ir.ctx.text(name));
            recipe
                .entries
                .iter()
                .find(|entry| Some(entry.name) == name)
                .map(|entry| entry.span.clone())
        }
        _ => None,
    };
    match span {
        Some(span) => Some(start + span.start as usize..start + span.end as usize),
        None => Some(whole),
    }
}

/// 1-based line and column of a byte.
pub fn line_col(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|&c| c == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// Counts lines from where it counted last: findings come in order, and files are long.
#[derive(Default)]
struct LineCount {
    at: usize,
    lines: usize,
}

impl LineCount {
    /// Line ends before a byte.
    fn before(&mut self, text: &str, at: usize) -> usize {
        if at < self.at {
            *self = LineCount::default();
        }
        let between = text.as_bytes().get(self.at..at).unwrap_or(&[]);
        self.lines += between.iter().filter(|&&c| c == b'\n').count();
        self.at = at;
        self.lines
    }

    /// 1-based line and column of a byte.
    fn line_col(&mut self, text: &str, at: usize) -> (usize, usize) {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (
            self.before(text, at) + 1,
            before[start..].chars().count() + 1,
        )
    }
}

/// The lines of a file around some ranges, which are moved into it.
struct Excerpt<'a> {
    name: &'a str,
    text: String,
    /// Lines of the file above it.
    above: usize,
}

impl<'a> Excerpt<'a> {
    fn around(
        file: SourceFile<'a>,
        ranges: &mut [(Range<usize>, Option<String>)],
        lines: &mut LineCount,
    ) -> Excerpt<'a> {
        let first = ranges.iter().map(|(range, _)| range.start).min();
        let last = ranges.iter().map(|(range, _)| range.end).max();
        let bytes = file.text.as_bytes();
        // One line more on either side is shown.
        let line_start = |at: usize| {
            let ends = bytes[..at].iter().rposition(|&c| c == b'\n');
            ends.map_or(0, |end| end + 1)
        };
        let line_end = |at: usize| {
            let ends = bytes[at..].iter().position(|&c| c == b'\n');
            ends.map_or(bytes.len(), |len| at + len + 1)
        };
        let start = line_start(line_start(first.unwrap_or(0)).saturating_sub(1));
        let end = line_end(line_end(line_end(last.unwrap_or(0))));
        for (range, _) in ranges.iter_mut() {
            *range = range.start - start..range.end - start;
        }
        Excerpt {
            name: file.name,
            above: lines.before(file.text, start),
            text: clip_long_lines(&file.text[start..end], ranges),
        }
    }
}

impl SourceCode for Excerpt<'_> {
    fn read_span<'s>(
        &'s self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'s> + 's>, MietteError> {
        let found = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.to_owned(),
            found.data(),
            *found.span(),
            self.above + found.line(),
            found.column(),
            found.line_count(),
        )))
    }
}

struct Report<'a> {
    diagnostic: &'a Diagnostic,
    source: Option<&'a Excerpt<'a>>,
    labels: Vec<LabeledSpan>,
    help: Option<String>,
}

impl std::fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shortened(&self.diagnostic.message))
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Remark => miette::Severity::Advice,
        })
    }

    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.severity.name()))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.labels.is_empty() {
            return None;
        }
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// Renders findings about one file, in order.
pub fn render<'d>(
    ir: &Ir,
    file: SourceFile<'_>,
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    style: ReportStyle,
) -> String {
    let mut out = String::new();
    let mut lines = LineCount::default();
    if style == ReportStyle::Json {
        for diagnostic in diagnostics {
            out.push_str(&json(ir, file, diagnostic, &mut lines).to_string());
            out.push('\n');
        }
        return out;
    }
    let theme = match style {
        ReportStyle::Color => GraphicalTheme::unicode(),
        _ => GraphicalTheme::unicode_nocolor(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        // A log is searched for phrases: where a line breaks must not depend on the length of a path in it.
        .with_wrap_lines(style == ReportStyle::Color)
        .with_context_lines(1)
        .with_links(false);
    for diagnostic in diagnostics {
        let mut ranges: Vec<(Range<usize>, Option<String>)> = Vec::new();
        if let Some(range) = resolve(ir, file, &diagnostic.place) {
            let label = diagnostic
                .label
                .clone()
                .unwrap_or_else(|| "here".to_owned());
            ranges.push((range, Some(shortened(&label))));
        }
        for (place, text) in &diagnostic.related {
            if let Some(range) = resolve(ir, file, place) {
                ranges.push((range, Some(shortened(text))));
            }
        }
        let source = Excerpt::around(file, &mut ranges, &mut lines);
        let labels = ranges
            .iter()
            .map(|(range, label)| {
                LabeledSpan::new(label.clone(), range.start, range.end - range.start)
            })
            .collect();
        let mut help: Vec<String> = diagnostic
            .notes
            .iter()
            .map(|note| format!("note: {note}"))
            .collect();
        help.extend(diagnostic.help.clone());
        let report = Report {
            diagnostic,
            source: (!ranges.is_empty()).then_some(&source),
            labels,
            help: (!help.is_empty()).then(|| shortened(&help.join("\n"))),
        };
        // Rendering into a string does not fail.
        let _ = handler.render_report(&mut out, &report);
    }
    out
}

/// A text for people: of names longer than a line only their ends.
fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    const KEPT: (usize, usize) = (48, 16);
    if text.len() <= MOST {
        return text.to_owned();
    }
    let mut out = String::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let chars = word.chars().count();
        if chars <= MOST {
            out.push_str(piece);
            continue;
        }
        out.extend(word.chars().take(KEPT.0));
        out.push('…');
        out.extend(word.chars().skip(chars - KEPT.1));
        out.push_str(&piece[word.len()..]);
    }
    out
}

/// The lines around the ranges; those of more than a thousand bytes are cut down to what is near
/// the finding, and the ranges moved along.
fn clip_long_lines(text: &str, ranges: &mut [(Range<usize>, Option<String>)]) -> String {
    const LIMIT: usize = 1000;
    if text.split('\n').all(|line| line.len() <= LIMIT) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut moved: Vec<Option<Range<usize>>> = vec![None; ranges.len()];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let body = line.trim_end_matches('\n');
        let (mut cut, mut stop) = (0, body.len());
        if body.len() > LIMIT {
            let nearest = ranges
                .iter()
                .filter(|(range, _)| (start..end).contains(&range.start))
                .map(|(range, _)| range.start - start)
                .min();
            cut = nearest
                .unwrap_or(0)
                .saturating_sub(LIMIT / 20)
                .min(body.len());
            stop = (cut + LIMIT / 5).min(body.len());
            while !body.is_char_boundary(cut) {
                cut -= 1;
            }
            while !body.is_char_boundary(stop) {
                stop -= 1;
            }
        }
        let base = out.len();
        out.push_str(&body[cut..stop]);
        for (slot, (range, _)) in moved.iter_mut().zip(ranges.iter()) {
            let last = end == text.len() && range.start == end;
            if (start..end).contains(&range.start) || last {
                let from = base + (range.start - start).clamp(cut, stop) - cut;
                let to = (from + (range.end - range.start)).min(out.len());
                *slot = Some(from..to.max(from));
            }
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
        start = end;
    }
    for ((range, _), moved) in ranges.iter_mut().zip(moved) {
        *range = moved.unwrap_or(0..0);
    }
    out
}

/// One finding as a JSON object.
fn json(ir: &Ir, file: SourceFile<'_>, diagnostic: &Diagnostic, lines: &mut LineCount) -> Value {
    let mut out = Map::new();
    out.insert("severity".into(), diagnostic.severity.name().into());
    out.insert("message".into(), diagnostic.message.as_str().into());
    if let Some(range) = resolve(ir, file, &diagnostic.place) {
        insert_place(&mut out, file, range, lines);
    }
    if let Some(label) = &diagnostic.label {
        out.insert("label".into(), label.as_str().into());
    }
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .filter_map(|(place, text)| {
            let mut entry = Map::new();
            entry.insert("message".into(), text.as_str().into());
            insert_place(&mut entry, file, resolve(ir, file, place)?, lines);
            Some(entry.into())
        })
        .collect();
    if !related.is_empty() {
        out.insert("related".into(), related.into());
    }
    if !diagnostic.notes.is_empty() {
        out.insert("notes".into(), diagnostic.notes.clone().into());
    }
    if let Some(help) = &diagnostic.help {
        out.insert("help".into(), help.as_str().into());
    }
    out.into()
}

fn insert_place(
    out: &mut Map<String, Value>,
    file: SourceFile<'_>,
    range: Range<usize>,
    lines: &mut LineCount,
) {
    let (line, column) = lines.line_col(file.text, range.start);
    let (end_line, end_column) = lines.line_col(file.text, range.end);
    out.insert("file".into(), file.name.into());
    for (key, value) in [
        ("line", line),
        ("column", column),
        ("end_line", end_line),
        ("end_column", end_column),
        ("offset", range.start),
        ("length", range.end - range.start),
    ] {
        out.insert(key.into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_report_keeps_a_message_on_one_line() {
        let path = "a/rather/long/folder/".repeat(3) + "of.npy";
        let message =
            format!("`{path}` has dtype `<f4`, expected `<i4` for i32, whatever the path");
        assert!(message.len() > 100);
        let report = |style| {
            let file = SourceFile {
                name: "k.bir",
                text: "",
            };
            let diagnostic = Diagnostic::error(Place::None, message.as_str());
            render(&crate::bir::program::new_ir(), file, [&diagnostic], style)
        };
        assert!(report(ReportStyle::Plain).contains(&message));
        assert!(
            !report(ReportStyle::Color).contains(&message),
            "for a terminal it is wrapped"
        );
    }
}
