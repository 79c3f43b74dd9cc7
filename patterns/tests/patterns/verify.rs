//! Rules that are true are found true, and rules that are not are refuted with numbers.

use crate::common::library;
use bir_dialect::bir::num::DType;
use bir_patterns::Library;
use bir_patterns::verify::{Effort, Verdict, verify};

fn verdict(text: &str) -> Verdict {
    let library = library(&format!("set s greedy;\n{text}"));
    let set = library.set("s").unwrap();
    verify(set, &set.rules[0], Effort::default())
}

fn refuted(text: &str) -> String {
    let verdict = verdict(text);
    let refutation = verdict.refuted.expect("the rule is false");
    for part in [
        "// RUN: ",
        "bir.module @rule",
        "// Rule `r` must not fire here: ",
    ] {
        assert!(
            refutation.test.contains(part),
            "{part}\n{}",
            refutation.test
        );
    }
    refutation.summary
}

#[test]
fn shipped_rules_are_true() {
    let library = Library::shipped();
    for set in &library.sets {
        for rule in &set.rules {
            let verdict = verify(set, rule, Effort::default());
            assert!(verdict.holds(), "{}: {verdict:?}", rule.name);
            assert!(
                verdict.idle.is_empty(),
                "{}: forms {:?} fired nowhere",
                rule.name,
                verdict.idle
            );
            for dtype in [
                DType::Bf16,
                DType::F16,
                DType::F8E4M3,
                DType::F8E5M2,
                DType::I8,
            ] {
                assert!(
                    verdict.exhaustive.contains(&dtype),
                    "{}: {dtype}",
                    rule.name
                );
            }
        }
    }
}

#[test]
fn floats_are_no_field() {
    let zero = refuted("rewrite r : (multiply ?x (splat 0.0)) => (splat 0.0);");
    assert!(
        zero.starts_with("x = -0.0 (f32): the left side gives -0.0 (f32), the right side 0.0"),
        "{zero}"
    );
    let minus = refuted("rewrite r : (subtract ?x ?x) => (splat 0.0);");
    assert!(
        minus.starts_with("x = inf (f32): the left side gives nan (f32), the right side 0.0"),
        "{minus}"
    );
    let plus = refuted("rewrite r : (add ?x (splat 0.0)) => ?x;");
    assert!(
        plus.starts_with("x = -0.0 (f32): the left side gives 0.0 (f32), the right side -0.0"),
        "{plus}"
    );
    let divide = refuted("rewrite r : (divide ?x ?x) => (splat 1.0);");
    assert!(divide.contains("the left side gives nan"), "{divide}");
}

#[test]
fn wide_integers_go_through_f32() {
    let one = refuted("rewrite r : (multiply ?x (splat 1.0)) => ?x;");
    assert!(one.contains("(i32)") || one.contains("(u32)"), "{one}");
}

#[test]
fn flags_and_tolerances_are_believed() {
    assert!(verdict("rewrite r (nsz) : (add ?x (splat 0.0)) => ?x where float(?x);").holds());
    assert!(verdict("rewrite r : (add ?x (splat 0.0)) => ?x where nsz(?x) and float(?x) or exact_int(?x) and exact_in_f32(?x);").holds());
    assert!(
        verdict("rewrite r (nnan, ninf) : (subtract ?x ?x) => (splat 0.0) where float(?x);")
            .holds()
    );
    assert!(
        !verdict("rewrite r (nnan) : (subtract ?x ?x) => (splat 0.0) where float(?x);").holds()
    );
    let third = |settings: &str| {
        verdict(&format!(
            "pattern r {settings} {{
              match {{ tensor_scalar divide %y <- %x, 3.0; }}
              where {{ f32(%x), f32(%y) }}
              rewrite {{ tensor_scalar multiply %y <- %x, 0.33333334; }}
            }}"
        ))
    };
    assert!(!third("").holds());
    assert!(third("(ulp 2)").holds(), "{:?}", third("(ulp 2)"));
}

#[test]
fn patterns_are_checked_with_their_conditions() {
    let fuse = |conditions: &str| {
        verdict(&format!(
            "pattern r {{
              match {{ tensor_scalar add|multiply %t <- %x, $a; tensor_scalar $g %y <- %t, $b; }}
              where {{ sole_reader(%t), same_access(%t){conditions} }}
              rewrite {{ tensor_scalar add $g %y <- %x, $a, $b; }}
            }}"
        ))
    };
    // `add|multiply` is not `add`.
    assert!(fuse(", f32(%t)").refuted.is_some());
    let steps = |conditions: &str| {
        verdict(&format!(
            "pattern r {{
              match {{ tensor_scalar add %t <- %x, $a; tensor_scalar multiply %y <- %t, $b; }}
              where {{ sole_reader(%t), same_access(%t){conditions} }}
              rewrite {{ tensor_scalar add multiply %y <- %x, $a, $b; }}
            }}"
        ))
    };
    assert!(steps(", f32(%t)").holds());
    // Without the condition the first result is rounded on one side only.
    let refutation = steps("").refuted.unwrap();
    assert!(
        refutation.summary.contains("the left side gives"),
        "{}",
        refutation.summary
    );
}

#[test]
fn a_rule_that_never_fires_is_not_true() {
    let verdict = verdict(
        "rewrite r : (add ?x ?x) => (multiply ?x (splat 2.0)) where f32(?x) and space(?x, dram);",
    );
    assert!(!verdict.holds());
    assert_eq!((verdict.fired, &verdict.idle[..]), (0, &[0][..]));
}
