//! Programs from text: for tests, benches and fuzz targets.
#![allow(dead_code, unreachable_pub, clippy::panic)]

use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};

/// A module with one function.
pub fn module(attrs: &str, body: &str) -> String {
    format!("bir.module @t {{{attrs}}} {{\n bir.func @main {{\n{body}\n }}\n}}\n")
}

/// Reads a program, and verifies it at a level if it could be read: the program and all findings.
pub fn read(text: &str, level: Level) -> (Ir, Diagnostics) {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    let options = ParseOptions::default();
    parse(text, 0..text.len(), &mut ir, options, &mut diags);
    if !diags.has_errors() {
        let options = VerifyOptions {
            level,
            ..VerifyOptions::default()
        };
        verify(&ir, options, &mut diags);
    }
    (ir, diags)
}

/// Messages of findings.
pub fn messages(diags: &Diagnostics) -> Vec<String> {
    diags.iter().map(|d| d.message.clone()).collect()
}

/// A program in which nothing is found at a level.
pub fn clean(text: &str, level: Level) -> Ir {
    let (ir, diags) = read(text, level);
    assert!(!diags.has_errors(), "{text}\n{:#?}", messages(&diags));
    ir
}

/// Fails where the verifier finds anything at any level.
pub fn assert_valid(ir: &Ir, what: &str) {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Full,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    assert!(
        !diags.has_errors(),
        "{what}\n{}\n{:#?}",
        print(ir, PrintOptions::default()),
        messages(&diags)
    );
}
