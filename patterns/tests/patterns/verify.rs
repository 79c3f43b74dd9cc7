//! Rules that are true are found true, and rules that are not are refuted with numbers.

use crate::common::library;
use bir_dialect::bir::num::DType;
use bir_patterns::Library;
use bir_patterns::verify::{Effort, Verdict, verify};

fn verdict(text: &str) -> Verdict {
    let library = library(&format!("set s greedy;\n{text}"));
    let set = library.set("s").unwrap();
    verify(&library, set, &set.rules[0], Effort::default())
}

fn refuted(text: &str) -> String {
    let verdict = verdict(text);
    let refutation = verdict.refuted.expect("the rule is false");
    for part in [
        "// RUN: %bir-opt --patterns %S/test.pat --apply-patterns",
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
            let verdict = verify(&library, set, rule, Effort::default());
            assert!(verdict.holds(), "{}: {verdict:?}", rule.name);
            assert!(
                verdict.idle.is_empty(),
                "{}: forms {:?} fired nowhere",
                rule.name,
                verdict.idle
            );
            for kind in [
                "plain",
                "in place",
                "backwards",
                "shifted",
                "second half",
                "some partitions",
                "declared as another dtype",
                "two free dimensions",
                "in psum",
                "in a loop",
            ] {
                let fired = verdict.kinds.get(kind);
                assert!(fired.is_some(), "{}: never {kind}", rule.name);
            }
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
fn a_bool_is_a_byte() {
    let one = refuted("rewrite r : (multiply ?x (splat 1.0)) => ?x where bool(?x);");
    assert!(
        one.starts_with("x = 0x02 (bool): the left side gives 1 (bool)"),
        "{one}"
    );
    // Moving it keeps the byte.
    let copies = verdict(
        "pattern r {
          match { keep tensor_copy %t <- %x; tensor_copy %y <- %t; }
          where { bool(%x), bool(%t), bool(%y), same_access(%t) }
          rewrite { tensor_copy %y <- %x; }
        }",
    );
    assert!(
        copies.holds() && copies.exhaustive.contains(&DType::Bool),
        "{copies:?}"
    );
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
        "not bool(%t)",
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
    assert!(split(&[all[0], all[1], all[4]].join(", ")).holds());
    // What is chosen is computed, what is copied keeps its byte.
    let bytes = split(&all[..4].join(", ")).refuted.unwrap();
    assert!(bytes.summary.contains("(bool)"), "{}", bytes.summary);
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

#[test]
fn what_must_be_there_is_there_where_a_rule_does_not_mention_it() {
    // There is no reduction without axes.
    let summary = refuted(
        "pattern r {
          match { tensor_reduce add %y <- %x {..}; }
          where { f32(%x), f32(%y) }
          rewrite { tensor_reduce max %y <- %x {axes = [1]}; }
        }",
    );
    assert!(summary.contains("the left side gives"), "{summary}");
}

/// A rule is false as it stands, and true with one more condition.
fn needs(rule: &str, condition: &str) -> String {
    let with = |more: &str| rule.replace("CONDITION", more);
    let whole = verdict(&with(condition));
    assert!(whole.holds(), "{condition}: {rule}\n{whole:?}");
    refuted(&with(""))
}

#[test]
fn somebody_around_goes_on_with_every_hidden_state() {
    let random = needs(
        "pattern r {
          match { keep memset %c <- 0; rng %a; tensor_tensor bitwise_and %y <- %a, %c; }
          where { sole_reader(%a), same_dtype(%a, %y), same_dtype(%c, %a), same_access(%a),
                  same_access(%c) CONDITION }
          rewrite { memset %y <- 0; }
        }",
        ", accumulator_free(%a)",
    );
    assert!(random.contains("(u32)"), "{random}");
    // Whatever the right side is made of: what is removed is looked at too.
    let free = ", accumulator_free(%y)";
    needs(
        "pattern r {
          match { activation copy %y <- %x {reduce = add, reduce_cmd = reset}; }
          where { f32(%x), f32(%y) CONDITION }
          rewrite { tensor_copy %y <- %x; }
        }",
        free,
    );
    needs(
        "pattern r {
          match { tensor_scalar_cache multiply %y <- %x, $a {cache_write}; }
          where { f32(%x), f32(%y) CONDITION }
          rewrite { tensor_scalar multiply %y <- %x, $a; }
        }",
        free,
    );
    needs(
        "pattern r {
          match { tensor_scalar_reduce add %y <- %x, $a; }
          where { f32(%x), f32(%y) CONDITION }
          rewrite { tensor_scalar add %y <- %x, $a; }
        }",
        free,
    );
    needs(
        "pattern r {
          match { tensor_tensor add %y <- %a, %b {accumulate}; }
          where { f32(%a), f32(%y), f32(%b) CONDITION }
          rewrite { tensor_tensor add %y <- %a, %b; }
        }",
        free,
    );
    needs(
        "pattern r {
          match { range_select greater less %y <- %x, %a, %b; }
          where { f32(%x), f32(%y) CONDITION }
          rewrite { range_select greater less %y <- %x, %a, %b {reduce_cmd = idle}; }
        }",
        free,
    );
}

#[test]
fn a_rule_is_not_excused_by_what_it_makes_itself() {
    refuted(
        "pattern r (nnan) {
          match { tensor_scalar add %y <- %x, 1.0; }
          where { f32(%x), f32(%y) }
          rewrite { tensor_scalar multiply %y <- %x, nan; }
        }",
    );
    refuted(
        "pattern r (ninf) {
          match { tensor_scalar max max %y <- %x, 1.0, 2.0; }
          where { f32(%x), f32(%y) }
          rewrite { tensor_scalar max max %y <- %x, 1.0, inf; }
        }",
    );
    refuted(
        "pattern r (ninf, nnan) {
          match { tensor_scalar multiply %y <- %x, 0.0; }
          where { f32(%x), f32(%y) }
          rewrite { tensor_scalar divide %y <- %x, 0.0; }
        }",
    );
}

#[test]
fn what_the_left_side_has_in_between_excuses() {
    let twice = |settings: &str| {
        format!(
            "pattern r {settings} {{
              match {{
                tensor_scalar multiply %t <- %x, 2.0;
                tensor_scalar multiply %y <- %t, 0.5;
              }}
              where {{ sole_reader(%t), same_access(%t), f32(%x), f32(%t), f32(%y) }}
              rewrite {{ tensor_copy %y <- %x; }}
            }}"
        )
    };
    // The largest number is infinite in between.
    let summary = refuted(&twice(""));
    assert!(summary.contains("the left side gives inf"), "{summary}");
    let verdict = verdict(&twice("(ninf)"));
    assert!(verdict.holds(), "{verdict:?}");
}

#[test]
fn literals_are_not_all_powers_of_two() {
    let reciprocal = needs(
        "pattern r {
          match { tensor_scalar divide %y <- %x, $a; }
          where { f32(%x), f32(%y), $a > 0, $a < 2.5 CONDITION }
          rewrite { tensor_scalar multiply %y <- %x, (1 / $a); }
        }",
        ", $a == 2 or $a == 0.5",
    );
    assert!(reciprocal.contains("the left side gives"), "{reciprocal}");
    needs(
        "pattern r {
          match { tensor_scalar multiply multiply %y <- %x, $a, $b; }
          where { f32(%x), f32(%y), $a > 0, $b > 0, $a < 3, $b < 3, $a >= 0.5, $b >= 0.5 CONDITION }
          rewrite { tensor_scalar multiply %y <- %x, ($a * $b); }
        }",
        ", $a == 2, $b == 2 or $b == 1",
    );
}

#[test]
fn what_is_read_may_be_in_another_order() {
    let summary = needs(
        "pattern r {
          match { keep tensor_copy %t <- %x; tensor_scalar $f %y <- %t, $a; }
          where { same_dtype(%t, %x) CONDITION }
          rewrite { tensor_scalar $f %y <- %x, $a; }
        }",
        ", same_access(%t)",
    );
    // Two elements show it.
    assert!(summary.starts_with("x = ["), "{summary}");
}

#[test]
fn what_is_read_may_be_taken_for_another_dtype() {
    let one = |condition: &str| {
        verdict(&format!(
            "pattern r {{
              match {{ keep memset %c <- 1; tensor_copy %y <- %c; }}
              where {{ f32(%y) {condition} }}
              rewrite {{ memset %y <- 1.0; }}
            }}"
        ))
    };
    let refutation = one("")
        .refuted
        .expect("bits of an integer are another number");
    assert!(refutation.test.contains(" as "), "{}", refutation.test);
    assert!(one(", same_access(%c)").holds());
}

#[test]
fn what_a_rule_lets_through_is_there_too() {
    let one = |open: &str| {
        format!(
            "pattern r {{
              match {{ tensor_scalar multiply %y <- %x, 1.0 {open}; }}
              where {{ f32(%x), f32(%y) }}
              rewrite {{ tensor_copy %y <- %x; }}
            }}"
        )
    };
    assert!(verdict(&one("")).holds());
    let summary = refuted(&one("{..}"));
    assert!(summary.contains("the left side gives"), "{summary}");
}

#[test]
fn what_a_rule_does_not_name_is_there_too() {
    needs(
        "pattern r {
          match {
            keep tensor_copy %t <- %x;
            keep tensor_tensor add _ <- %t, _;
            tensor_copy %y <- %t;
          }
          where { same_dtype(%t, %x) CONDITION }
          rewrite { tensor_copy %y <- %x; }
        }",
        ", same_access(%t)",
    );
}

#[test]
fn dma_is_between_memories() {
    needs(
        "pattern r {
          match { load %t <- %x; save %z <- %t; }
          where { sole_reader(%t), same_dtype(%t, %x) CONDITION }
          rewrite { dma_copy %z <- %x; }
        }",
        ", same_access(%t)",
    );
    // The tile in between rounds.
    refuted(
        "pattern r {
          match { load %t <- %x; save %z <- %t; }
          where { sole_reader(%t), same_access(%t) }
          rewrite { dma_copy %z <- %x; }
        }",
    );
}

#[test]
fn tiles_are_square_where_partitions_and_elements_change_places() {
    let twice = verdict(
        "pattern r {
          match { transpose %t <- %x; transpose %y <- %t; }
          where { sole_reader(%t), same_access(%t) }
          rewrite { tensor_copy %y <- %x; }
        }",
    );
    assert!(twice.holds(), "{twice:?}");
    refuted("pattern r { match { transpose %y <- %x; } rewrite { tensor_copy %y <- %x; } }");
    let identity = |settings: &str| {
        format!(
            "pattern r {settings} {{
              match {{ matmult %p <- stationary %w, moving %x; tensor_copy %y <- %p; }}
              where {{ identity_matrix(%w), sole_reader(%p), same_access(%p), f32(%x), f32(%y), f32(%w), f32(%p) }}
              rewrite {{ tensor_copy %y <- %x; }}
            }}"
        )
    };
    let flags = verdict(&identity("(nsz, nnan, ninf)"));
    assert!(flags.holds(), "{flags:?}");
    // Infinity times the zeros of the matrix.
    let summary = refuted(&identity("(nsz)"));
    assert!(summary.contains("the left side gives nan"), "{summary}");
}

#[test]
fn ramps_count_the_elements_of_a_row() {
    let rule = |multiplier: i64| {
        format!(
            "pattern r {{
              match {{ iota %y {{pattern = $p, offset = $o}}; }}
              rewrite {{ iota %y {{pattern = $p, offset = $o, channel_multiplier = {multiplier}}}; }}
            }}"
        )
    };
    let none = verdict(&rule(0));
    assert!(none.holds(), "{none:?}");
    refuted(&rule(1));
}

#[test]
fn a_counterexample_names_the_file_and_the_set_the_rule_stands_in() {
    let mut library = Library::shipped();
    for (name, text) in [
        (
            "rules/base.pat",
            "set base;\nrewrite wrong (nsz, ninf) : (multiply ?x (splat 2.0)) => ?x;",
        ),
        ("all.pat", "set all;\nimport base;"),
    ] {
        let diags = library.add(name, text);
        assert!(diags.is_empty(), "{:?}", diags.iter().collect::<Vec<_>>());
    }
    for set in ["base", "all"] {
        let set = library.set(set).unwrap();
        let verdict = verify(&library, set, &set.rules[0], Effort::default());
        let test = verdict.refuted.unwrap().test;
        let run = "// RUN: %bir-opt --patterns %S/base.pat --apply-patterns='set=base allow=nsz,ninf' --validate=end %s\n";
        assert!(test.starts_with(run), "{test}");
    }
}
