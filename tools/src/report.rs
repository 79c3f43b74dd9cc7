//! Reports on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place, Severity};
use bir_dialect::text::render::{ReportStyle, SourceFile, render};
use clap::ValueEnum;

/// When reports are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How findings are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per finding and line.
    Json,
}

/// The style that flags and the terminal ask for.
pub fn style(format: Format, color: Color) -> ReportStyle {
    let colored = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        }
    };
    match (format, colored) {
        (Format::Json, _) => ReportStyle::Json,
        (Format::Text, true) => ReportStyle::Color,
        (Format::Text, false) => ReportStyle::Plain,
    }
}

/// Errors shown where no flag says how many.
pub const ERROR_LIMIT: usize = 20;

/// Prints findings about a file in the order of their places, and at most `limit` errors (0: all).
pub fn print(ir: &Ir, file: SourceFile<'_>, diags: &Diagnostics, style: ReportStyle, limit: usize) {
    let mut list: Vec<&Diagnostic> = diags.iter().collect();
    list.sort_by_key(|diagnostic| match &diagnostic.place {
        Place::None => usize::MAX,
        Place::Span(range) => range.start,
        Place::Op(op, _) => ir.span(*op).unwrap_or(usize::MAX),
    });
    let mut errors = 0;
    let limit = if limit == 0 { usize::MAX } else { limit };
    list.retain(|diagnostic| {
        errors += usize::from(diagnostic.severity == Severity::Error);
        errors <= limit || diagnostic.severity != Severity::Error
    });
    let mut text = render(ir, file, list, style);
    if errors >= limit {
        let found = match errors - limit {
            0 => format!("stopped after {errors} errors"),
            more => format!("{more} more errors are not shown"),
        };
        let last = Diagnostic::remark(Place::None, found)
            .help("`--error-limit=0` reports all, `--error-limit=N` the first N");
        text.push_str(&render(ir, file, [&last], style));
    }
    // Nobody is left to tell where standard error fails.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a report that is rendered already.
pub fn text(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a line that says what is done, and is no error.
pub fn note(tool: &str, text: &str) {
    line(&format!("{tool}: {text}"));
}

/// Prints a line as it is.
pub fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a message that belongs to no place in a file.
pub fn message(tool: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{tool}: error: {text}");
}
