//! Every op has lit tests: one file in which it is read, printed and read again, and one finding
//! about it, which its table entry or its own check makes.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bir_dialect::bir::ops::{ManualFormat, OpCode, Syntax, manual};
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostics, Place};
use bir_dialect::text::{PrintOptions, print};

struct Lit {
    /// Ops of files without expected errors that are printed and read again.
    forms: BTreeSet<OpCode>,
    /// What the verifier says about ops in files of expected errors, where lit holds every finding
    /// against an expectation.
    refused: BTreeMap<OpCode, Vec<String>>,
}

/// Reads one part of a file; `None` where it does not read.
fn read(text: &str) -> Option<Ir> {
    bir_dialect::read(text, Level::Off).ok()
}

fn ops(ir: &Ir) -> Vec<OpCode> {
    ir.walk()
        .ops()
        .filter_map(|op| OpCode::of(ir, op))
        .collect()
}

fn lit() -> Lit {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test");
    let mut lit = Lit {
        forms: BTreeSet::new(),
        refused: BTreeMap::new(),
    };
    for folder in ["dialect", "kernels", "verify"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ext| ext != "bir") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let level = match text.contains("--verify-each=full") {
                true => Level::Full,
                false => Level::Default,
            };
            let options = VerifyOptions {
                level,
                ..VerifyOptions::default()
            };
            for chunk in text.split("// -----") {
                let Some(ir) = read(chunk) else { continue };
                let mut diags = Diagnostics::new();
                verify(&ir, options, &mut diags);
                if text.contains("expected-error") {
                    lit.note_findings(&ir, &diags);
                } else if !diags.has_errors() {
                    let found = ops(&ir);
                    for generic in [false, true] {
                        let options = PrintOptions {
                            generic,
                            ..PrintOptions::default()
                        };
                        let printed = print(&ir, options);
                        let again = read(&printed).map(|ir| ops(&ir));
                        assert_eq!(again.as_ref(), Some(&found), "{}", path.display());
                    }
                    lit.forms.extend(found);
                }
            }
        }
    }
    lit
}

impl Lit {
    fn note_findings(&mut self, ir: &Ir, diags: &Diagnostics) {
        for finding in diags.iter() {
            if let Place::Op(op, _) = finding.place
                && let Some(code) = OpCode::of(ir, op)
            {
                let messages = self.refused.entry(code).or_default();
                messages.push(finding.message.clone());
            }
        }
    }
}

/// Ops that the custom form does not write: their findings come from generic text or from passes.
fn is_written(code: OpCode) -> bool {
    code.def().syntax != Syntax::Implicit
}

#[test]
fn every_op_is_read_and_printed_by_a_lit_test() {
    let lit = lit();
    let missing: Vec<&str> = OpCode::ALL
        .iter()
        .filter(|code| is_written(**code) && !lit.forms.contains(code))
        .map(|code| code.def().name)
        .collect();
    assert!(missing.is_empty(), "no file under test/ uses {missing:?}");
}

/// Findings that any op may have: kinds, spaces, dtypes, shapes, engines, attributes.
fn is_of_every_op(message: &str) -> bool {
    const SIGNS: &[&str] = &[
        " needs operand ",
        " needs attribute ",
        " has no attribute ",
        " must be in ",
        " runs on ",
        " does not exist on ",
        "must be a memory location",
        " elements of ",
        "partitions from partition",
    ];
    SIGNS.iter().any(|sign| message.contains(sign))
}

#[test]
fn every_op_is_refused_by_a_lit_test() {
    let lit = lit();
    let missing: Vec<&str> = OpCode::ALL
        .iter()
        .filter(|code| {
            let messages = lit.refused.get(code).map_or(&[][..], Vec::as_slice);
            let has_own = code.def().check.is_some();
            let is_good = messages
                .iter()
                .any(|message| !has_own || !is_of_every_op(message));
            is_written(**code) && !is_good
        })
        .map(|code| code.def().name)
        .collect();
    assert!(
        missing.is_empty(),
        "no expected-error under test/ is about a constraint of {missing:?}"
    );
}

#[test]
fn every_op_has_a_manual_page_with_an_example() {
    for &code in OpCode::ALL {
        let page = manual(Some(code), ManualFormat::Text);
        assert!(page.contains("\nEXAMPLE\n") || !is_written(code), "{page}");
        assert!(page.contains("SYNOPSIS"), "{page}");
    }
    let whole = manual(None, ManualFormat::Markdown);
    assert!(whole.contains("| [`activation`](#activation) |"));
}

#[test]
fn role_names_and_attribute_names_of_an_op_differ() {
    for &code in OpCode::ALL {
        let def = code.def();
        let mut names = BTreeSet::new();
        let roles = def.operands.iter().map(|operand| operand.name);
        for name in roles.chain(def.attrs.iter().map(|attr| attr.name)) {
            assert!(names.insert(name), "`{}` has `{name}` twice", def.name);
        }
        for role in def
            .same_shape
            .iter()
            .chain(def.same_dtype)
            .chain(def.per_partition)
        {
            assert!(
                def.role(role).is_some(),
                "`{}` has no role `{role}`",
                def.name
            );
        }
        for word in def
            .words
            .iter()
            .chain(def.operands.iter().flat_map(|o| o.words))
        {
            assert!(
                def.attr(word).is_some(),
                "`{}` has no attribute `{word}`",
                def.name
            );
        }
    }
}

/// The generic form keeps literals, attributes and what every instruction may carry in one
/// dictionary: one name must not mean two things there.
#[test]
fn literals_do_not_share_names_with_what_every_instruction_carries() {
    let carried = [
        "src", "name", "sym_name", "iv_name", "access", "id", "deps", "order", "engine", "wait",
        "signal",
    ];
    for &code in OpCode::ALL {
        let def = code.def();
        let literals = def.operands.iter().filter(|role| role.takes_literal());
        let names = literals
            .map(|role| role.name)
            .chain(def.attrs.iter().map(|attr| attr.name));
        for name in names {
            assert!(!carried.contains(&name), "`{name}` of `{}`", def.name);
        }
    }
}
