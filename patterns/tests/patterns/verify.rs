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
    assert!(steps(", f32(%t)").holds(), "{:?}", steps(", f32(%t)"));
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

const SPLIT_SELECT: &str = "pattern r {
  match { select %d <- %m, %t, $c; }
  where { CONDITIONS }
  rewrite {
    memset %d <- $c;
    copy_predicated %d <- %m, %t;
  }
}";

#[test]
fn a_select_in_two_steps_needs_all_its_conditions() {
    let split = |conditions: &str| verdict(&SPLIT_SELECT.replace("CONDITIONS", conditions));
    let all = [
        "disjoint(%d, %m)",
        "disjoint(%d, %t)",
        "same_dtype(%d, %t)",
        "representable($c, %d)",
    ];
    let whole = split(&all.join(", "));
    assert!(whole.holds(), "{whole:?}");
    // Without one of the first two, what is read is overwritten first.
    for left_out in 0..2 {
        let mut some = all.to_vec();
        some.remove(left_out);
        let summary = split(&some.join(", ")).refuted.map(|one| one.summary);
        assert!(
            summary
                .as_ref()
                .is_some_and(|text| text.contains("the left side gives")),
            "without {}: {summary:?}",
            all[left_out]
        );
    }
    // A copy of another dtype is no instruction, and a literal is never rounded: neither is ever made,
    // whatever the conditions say.
    assert!(split(&all[..2].join(", ")).holds());
}

const ACT_ACC: &str = "pattern r {
  match {
    activation $f %act <- %x;
    tensor_reduce add %r <- %act {axes = $axes};
  }
  where { CONDITIONS }
  rewrite at %act {
    activation $f %act <- %x {reduce = add, reduce_cmd = reset};
    read_activation_accumulator %r;
  }
}";

#[test]
fn a_sum_in_the_accumulator_needs_all_its_conditions() {
    let fuse = |conditions: &str| verdict(&ACT_ACC.replace("CONDITIONS", conditions));
    let all = [
        "same_access(%act)",
        "f32(%act)",
        "accumulator_free(%act)",
        "all_free_axes($axes, %act)",
    ];
    let whole = fuse(&all.join(", "));
    assert!(whole.holds(), "{whole:?}");
    // Half a row is summed; the sum is of rounded results; somebody else's sum is lost.
    for left_out in 0..3 {
        let mut some = all.to_vec();
        some.remove(left_out);
        let refutation = fuse(&some.join(", ")).refuted;
        let refutation =
            refutation.unwrap_or_else(|| panic!("without {} it is false", all[left_out]));
        assert!(
            refutation.summary.contains("the left side gives"),
            "{}",
            refutation.summary
        );
        assert!(
            refutation.test.contains("activation "),
            "{}",
            refutation.test
        );
    }
}
