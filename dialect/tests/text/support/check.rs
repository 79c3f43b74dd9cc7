//! What must hold for any text at all; the fuzz targets, the smoke test and the generated statements all come here.
//!
//! * Neither parser, verifier, printer nor reports panic.
//! * The cache of statement shapes changes nothing: findings and results are those of the grammar alone.
//! * A text without errors prints to a fixed point in both forms, and each form reads back into the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::render::{ReportStyle, SourceFile, render};
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};

/// Which parts of the parser see a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parser {
    /// The grammar for every statement.
    Plain,
    /// The grammar once per shape of statement.
    Cached,
}

/// A text read.
pub struct Read {
    pub ir: Ir,
    pub diags: Diagnostics,
}

impl Read {
    pub fn is_good(&self) -> bool {
        !self.diags.has_errors()
    }

    pub fn report(&self, text: &str, style: ReportStyle) -> String {
        let file = SourceFile { name: "-", text };
        render(&self.ir, file, self.diags.iter(), style)
    }
}

/// Reads a text, all its errors included.
pub fn read(text: &str, parser: Parser) -> Read {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    let options = ParseOptions {
        allow_unregistered: true,
        error_limit: 0,
        plain: parser == Parser::Plain,
    };
    parse(text, 0..text.len(), &mut ir, options, &mut diags);
    Read { ir, diags }
}

/// Whether the verifier has nothing to say, definedness aside.
pub fn verifies(read: &Read) -> bool {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Default,
        allow_unregistered: true,
    };
    verify(&read.ir, options, &mut diags);
    let file = SourceFile {
        name: "-",
        text: "",
    };
    render(&read.ir, file, diags.iter(), ReportStyle::Json);
    !diags.has_errors()
}

pub fn custom(ir: &Ir) -> String {
    print(ir, PrintOptions::default())
}

pub fn generic(ir: &Ir) -> String {
    print(
        ir,
        PrintOptions {
            generic: true,
            ..PrintOptions::default()
        },
    )
}

/// Reads text that was printed, which must not fail.
fn reread(printed: &str) -> Result<Ir, String> {
    let read = read(printed, Parser::Cached);
    if read.is_good() {
        return Ok(read.ir);
    }
    let report = read.report(printed, ReportStyle::Plain);
    Err(format!("what was printed does not read back:\n{report}"))
}

fn same(wanted: &str, found: &str, what: &str) -> Result<(), String> {
    if wanted == found {
        return Ok(());
    }
    let line = wanted.lines().zip(found.lines()).find(|(w, f)| w != f);
    let line = line.map_or("lengths differ".to_owned(), |(w, f)| {
        format!("- {w}\n+ {f}")
    });
    Err(format!("{what}:\n{line}"))
}

/// Everything above for one text; the error says what does not hold.
pub fn holds(text: &str) -> Result<(), String> {
    let plain = read(text, Parser::Plain);
    let cached = read(text, Parser::Cached);
    same(
        &plain.report(text, ReportStyle::Json),
        &cached.report(text, ReportStyle::Json),
        "findings of the grammar alone, and with the shape cache",
    )?;
    plain.report(text, ReportStyle::Plain);
    let (custom_once, generic_once) = (custom(&cached.ir), generic(&cached.ir));
    same(
        &generic(&plain.ir),
        &generic_once,
        "results of the grammar alone, and with the shape cache",
    )?;
    if !cached.is_good() || !verifies(&cached) {
        return Ok(());
    }
    let again = reread(&custom_once)?;
    same(&custom_once, &custom(&again), "custom form printed twice")?;
    same(
        &generic_once,
        &generic(&again),
        "generic by way of custom form",
    )?;
    let again = reread(&generic_once)?;
    same(
        &generic_once,
        &generic(&again),
        "generic form printed twice",
    )?;
    same(
        &custom_once,
        &custom(&again),
        "custom by way of generic form",
    )
}

/// Panics where something does not hold.
pub fn check(text: &str) {
    if let Err(fault) = holds(text) {
        panic!("{fault}\n--- from\n{text}");
    }
}

/// Statements inside a function, all of the generic form.
pub fn in_generic_function(statements: &str) -> String {
    format!(
        "\"bir.module\"() ({{\n\"bir.func\"() ({{\n{statements}\n\"bir.return\"() : () -> ()\n\
         }}) {{sym_name = \"f\"}} : () -> ()\n\
         }}) {{sym_name = \"m\", target = \"trn2\"}} : () -> ()\n"
    )
}
