//! What the tests of rules share.

#![allow(dead_code)] // each test uses some

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::render::ReportStyle;
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use bir_patterns::library::{Library, report};
use bir_patterns::{Report, Settings, apply};

/// A library of one file without errors, besides the shipped ones.
pub(crate) fn library(text: &str) -> Library {
    let mut library = Library::shipped();
    let diags = library.add("test.pat", text);
    assert!(
        diags.is_empty(),
        "{}",
        report("test.pat", text, &diags, ReportStyle::Plain)
    );
    library
}

/// Messages of the findings about a file.
pub(crate) fn findings(text: &str) -> Vec<String> {
    let mut library = Library::shipped();
    let diags = library.add("test.pat", text);
    diags.iter().map(|one| one.message.clone()).collect()
}

/// A whole module around some statements.
pub(crate) fn module(body: &str) -> String {
    format!("bir.module @m {{target = \"trn2\"}} {{\n  bir.func @main {{\n{body}\n  }}\n}}\n")
}

pub(crate) fn read(text: &str) -> Ir {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    parse(
        text,
        0..text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    let list: Vec<_> = diags.iter().map(|one| one.message.clone()).collect();
    assert!(!diags.has_errors(), "{list:?}\n{text}");
    ir
}

pub(crate) fn function(ir: &Ir) -> Op {
    ir.walk()
        .ops()
        .find(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .unwrap()
}

/// Applies a set to the body of a function; the instructions that result, one per line, and the report.
pub(crate) fn run(
    library: &Library,
    set: &str,
    body: &str,
    settings: &Settings,
) -> (Vec<String>, Report) {
    let mut ir = read(&module(body));
    let func = function(&ir);
    let set = library.set(set).unwrap();
    let report = apply(&mut ir, func, set, settings, &mut |_| true);
    let text = print(&ir, PrintOptions::default());
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| {
            !line.is_empty() && !line.contains("alloc") && !line.starts_with("bir.") && *line != "}"
        })
        .map(str::to_owned)
        .collect();
    (lines, report)
}
