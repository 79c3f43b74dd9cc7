//! Every op has lit tests: one file in which it is read, printed and read again, and one finding
//! about it, which its table entry or its own check makes.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bir_dialect::bir::ops::{ManualFormat, OpCode, Syntax, manual};

struct Lit {
    /// First words of the statements of files without expected errors.
    forms: BTreeSet<String>,
    /// Ops named in expected errors.
    refused: BTreeSet<String>,
}

fn lit() -> Lit {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test");
    let mut lit = Lit {
        forms: BTreeSet::new(),
        refused: BTreeSet::new(),
    };
    for folder in ["dialect", "kernels", "verify"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ext| ext != "bir") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            if !text.contains("expected-error") {
                lit.forms.extend(text.lines().filter_map(first_word));
                continue;
            }
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                if pair[0].contains("expected-error")
                    && let Some(word) = first_word(pair[1])
                {
                    lit.refused.insert(word);
                }
            }
        }
    }
    lit
}

/// The op of a statement, past `%result =`.
fn first_word(line: &str) -> Option<String> {
    let line = line.trim();
    let line = match line.split_once(" = ") {
        Some((left, right)) if left.starts_with('%') => right,
        _ => line,
    };
    let word = line.split_whitespace().next()?;
    Some(word.trim_start_matches("bir.").to_owned())
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
        .filter(|code| is_written(**code) && !lit.forms.contains(code.def().name))
        .map(|code| code.def().name)
        .collect();
    assert!(missing.is_empty(), "no file under test/ uses {missing:?}");
}

#[test]
fn every_op_is_refused_by_a_lit_test() {
    let lit = lit();
    let missing: Vec<&str> = OpCode::ALL
        .iter()
        .filter(|code| is_written(**code) && !lit.refused.contains(code.def().name))
        .map(|code| code.def().name)
        .collect();
    assert!(
        missing.is_empty(),
        "no expected-error under test/ is about {missing:?}"
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
