//! The language as text: formatting, and files that mean harm.

use bir_dialect::text::diag::Diagnostics;
use bir_patterns::text::{format, parse};

fn formatted(text: &str) -> String {
    let mut diags = Diagnostics::new();
    let file = parse(text, &mut diags);
    assert!(diags.is_empty(), "{:?}", diags.iter().next());
    format(&file, text)
}

const LAID_OUT: &str = r#"// A file.
set mine single_shot;

import identities;

/// Switches.
option fast = true;

/// What it does.
///
/// And why.
pattern act_acc (benefit 2, option fast) {
  match {
    // First this.
    activation $f %act <- %x, bias? %b, scale? $s;  // beside
    keep tensor_reduce add|max %r <- %act {axes = $a, negate?};
    tensor_scalar $g %y <- %r, _ {reverse0, ..};
  }
  where {
    sole_reader(%act),  // because
    not f32(%act) and (nsz or $s * 2 + 1 <= 3),
  }
  rewrite at %act {
    tensor_scalar $g %y <- %x, ($s * (2 - 1));
    call set_engine(%r, pool);
    // Last.
  }
}

rewrite add_zero "x + 0 = x" (nsz) : (add ?x (splat 0.0)) => ?x where exact_int(?x) or float(?x);

// The end.
"#;

#[test]
fn a_formatted_file_stays_as_it_is() {
    let once = formatted(LAID_OUT);
    assert_eq!(once, LAID_OUT);
    for (_, text) in bir_patterns::SHIPPED {
        assert_eq!(formatted(text), *text);
    }
}

#[test]
fn layout_does_not_depend_on_what_was_written() {
    let wild = LAID_OUT
        .replace("  ", " ")
        .replace(";\n", " ;\n\n")
        .replace(" (benefit", "(benefit");
    let once = formatted(&wild);
    assert_eq!(formatted(&once), once);
    for comment in [
        "// A file.",
        "// First this.",
        "// beside",
        "// because",
        "// Last.",
        "// The end.",
    ] {
        assert!(once.contains(comment), "{comment}\n{once}");
    }
}

#[test]
fn damaged_files_end_in_findings() {
    let seeds = [LAID_OUT, bir_patterns::SHIPPED[0].1];
    let mut state = 7u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    const PIECES: &[&str] = &[
        "(", ")", "{", "}", "[", "]", "\"", "///", "//", ";", ",", "%x", "$f", "?x", "<-", "=>",
        "..", "|", "?", "keep ", "rewrite ", "pattern ", "\nset s;", "0x", "1e999", "-", "splat ",
        "not ", "é", "\u{0}", "nan",
    ];
    for _ in 0..1500 {
        let mut text = seeds[random(2)].to_owned();
        for _ in 0..=random(4) {
            let mut at = random(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            match random(3) {
                0 => text.truncate(at),
                1 => text.insert_str(at, PIECES[random(PIECES.len())]),
                _ => {
                    let mut end = (at + random(40)).min(text.len());
                    while !text.is_char_boundary(end) {
                        end -= 1;
                    }
                    if at < end {
                        text.replace_range(at..end, "");
                    }
                }
            }
        }
        crate::fuzz_check::check(&text);
    }
}

#[test]
fn hostile_files_end_in_findings() {
    for text in [
        "(".repeat(100_000),
        format!(
            "set s;\nrewrite r : {}?x{} => ?x;",
            "(invert ".repeat(60),
            ")".repeat(60)
        ),
        format!(
            "set s;\nrewrite r : (add ?x ?y) => ?x where {}full(?x);",
            "not ".repeat(50_000)
        ),
        format!(
            "set s;\npattern p {{ match {{ {} }} rewrite {{ }} }}",
            "tensor_copy %y <- %x; ".repeat(3_000)
        ),
        "x".repeat(1 << 20),
        "set s;\n".repeat(5_000),
        format!("set s;\nrewrite r : {} => ?x;", balanced(12)),
    ] {
        crate::fuzz_check::check(&text);
    }
}

/// A term with as many forms as can be.
fn balanced(depth: usize) -> String {
    match depth {
        0 => "?x".to_owned(),
        depth => format!("(add {} (splat 1.0))", balanced(depth - 1)),
    }
}
