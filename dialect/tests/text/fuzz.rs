//! The bounded share of the fuzz targets (`dialect/fuzz`): damaged kernels, test files and their generic forms.
//!
//! `BIR_FUZZ=100 cargo test --release -p bir-dialect --test text` tries a hundred times as much.

use crate::support::check::{Parser, generic, in_generic_function, read};
use crate::support::generate::{Random, mutated};
use crate::support::{Faults, all_files, effort, good_files};

/// Damaged versions of each file per unit of effort.
const PER_FILE: usize = 12;

#[test]
fn damaged_files_end_in_findings() {
    let mut faults = Faults::default();
    let mut random = Random::new(2);
    for (_, text) in all_files() {
        for _ in 0..PER_FILE * effort() {
            faults.check(&mutated(&mut random, &text));
        }
    }
    faults.none();
}

#[test]
fn damaged_generic_forms_end_in_findings() {
    let mut faults = Faults::default();
    let mut random = Random::new(3);
    for (_, text) in good_files() {
        let text = generic(&read(&text, Parser::Cached).ir);
        for _ in 0..PER_FILE * effort() {
            faults.check(&mutated(&mut random, &text));
        }
    }
    faults.none();
}

#[test]
fn pieces_of_text_end_in_findings() {
    const TOKENS: &[&str] = &[
        "%x",
        "%y",
        " = ",
        "alloc ",
        "sbuf<128x4xf32>",
        "dram<",
        "load ",
        "loop %i = 0 to 4 {",
        "}",
        "{",
        "\n",
        "(",
        ")",
        "[",
        "]",
        ",",
        ":",
        "<-",
        "\"bir.load\"",
        "\"t.a\"",
        "({",
        "})",
        " : () -> ()",
        "^bb0:",
        "br ^bb0",
        "// c",
        "1",
        "1.0",
        "0x1F",
        "as i32",
        "[0:4, ::2]",
        "[p 0:4, off 1]",
        "{a = 1}",
        "x.y = ",
        "dense<",
        "\"0x00\"",
        "@s",
        "#bir.at<0, 1>",
        "loc(\"f\":1:2)",
        "bir.module @m {",
        "bir.func @f {",
        "while %r {",
        "-",
        "+:",
        "unless_first(%i)",
        "module {",
        "!a = i32\n",
        "#b = 1\n",
        "{-#",
        "#-}",
        "%0:2",
        "%0#1",
        "cond_br %r, ^a, ^b",
        "array<i32: 1>",
        "<{",
        "}>",
    ];
    let mut faults = Faults::default();
    let mut random = Random::new(4);
    for _ in 0..4_000 * effort() {
        let text: String = (0..random.below(24) + 1)
            .map(|_| random.pick(TOKENS))
            .collect();
        faults.check(&text);
        faults.check(&in_generic_function(&text));
    }
    faults.none();
}
