//! Rules at work: what matches, what does not and why, and how the drivers end.

use crate::common::{library, run};
use bir_patterns::{Driver, Flags, Library, Remarks, Settings};

const TILES: &str = "
    %x = alloc sbuf<128x8xf32>
    %y = alloc sbuf<128x8xf32>
    %z = alloc sbuf<128x8xf32>
    %h = alloc sbuf<128x8xbf16>
    %i = alloc sbuf<128x8xi32>
";

fn greedy(body: &str) -> Vec<String> {
    let body = format!("{TILES}{body}");
    let (lines, report) = run(
        &Library::shipped(),
        "identities",
        &body,
        &Settings::default(),
    );
    assert!(report.error.is_none(), "{:?}", report.error);
    lines
}

#[test]
fn identities_become_copies_in_every_form() {
    assert_eq!(
        greedy("tensor_scalar multiply %y <- %x, 1.0"),
        ["tensor_copy %y <- %x"]
    );
    assert_eq!(
        greedy("tensor_scalar multiply %y <- %x, 1.0 {reverse0}"),
        ["tensor_copy %y <- %x"]
    );
    assert_eq!(
        greedy("tensor_scalar subtract %h <- %x, 0.0"),
        ["tensor_copy %h <- %x"]
    );
    assert_eq!(
        greedy("memset %z <- 1.0\n tensor_tensor multiply %y <- %z, %x"),
        ["memset %z <- 1.0", "tensor_copy %y <- %x"]
    );
    assert_eq!(
        greedy("tensor_scalar add %y[0:64, 0:4] <- %x[0:64, 4:8], -0.0"),
        ["tensor_copy %y[0:64, 0:4] <- %x[0:64, 4:8]"]
    );
}

/// What holds everywhere in a tile may only show once what wrote it was rewritten twice.
#[test]
fn who_reads_what_was_rewritten_is_asked_again() {
    let set = library(
        "set twice greedy;
        rewrite by_division : (divide ?x (splat 1.0)) => (multiply ?x (splat 1.0));
        rewrite by_one : (multiply ?x (splat 1.0)) => ?x;",
    );
    let body = format!(
        "{TILES}%w = alloc sbuf<128x8xf32>
        %v = alloc sbuf<128x8xf32>
        memset %z <- 1.0
        tensor_scalar divide %w <- %z, 1.0
        tensor_copy %v <- %w
        tensor_tensor multiply %y <- %v, %x"
    );
    let (lines, report) = run(&set, "twice", &body, &Settings::default());
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(lines.last().unwrap(), "tensor_copy %y <- %x");
    assert_eq!(report.applied, 3);
}

#[test]
fn what_is_no_identity_stays() {
    for stays in [
        "tensor_scalar add %y <- %x, 0.0",
        "tensor_scalar subtract %y <- %x, 0.0 {reverse0}",
        "tensor_scalar multiply %y <- %i, 1.0",
        "tensor_scalar multiply add %y <- %x, 1.0, 2.0",
        "tensor_scalar divide %y <- %x, 1.0 {reverse0}",
    ] {
        assert_eq!(greedy(stays), [stays]);
    }
    // A constant that was overwritten in part is none.
    let partly =
        "memset %z <- 1.0\n memset %z[0:128, 0:1] <- 2.0\n tensor_tensor multiply %y <- %z, %x";
    assert_eq!(
        greedy(partly).last().unwrap(),
        "tensor_tensor multiply %y <- %z, %x"
    );
}

#[test]
fn accesses_in_loops_keep_their_indices() {
    let lines = greedy(
        "%w = alloc sbuf<128x64xf32>
        loop %a = 0 to 8 {
          tensor_scalar multiply %w[0:128, 8*%a +: 8] <- %x, 1.0
        }",
    );
    assert!(
        lines.contains(&"tensor_copy %w[:, 8*%a +: 8] <- %x".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn what_an_instruction_carried_is_handed_on() {
    let lines = greedy(
        "// why
        tensor_scalar multiply %y <- %x, 1.0 {engine = pool, id = 3, wait = [4 >= 1], signal = [5 += 1], x.note = \"n\"} loc(\"k.py\":1:2)
        tensor_copy %z <- %y {id = 4, deps = [flow 3]}",
    );
    assert_eq!(lines[0], "// why");
    let line = &lines[1];
    for part in [
        "tensor_copy %y <- %x",
        "engine = pool",
        "id = 3",
        "wait = [4 >= 1]",
        "signal = [5 += 1]",
        "x.note",
        "loc(\"k.py\":1:2)",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

const FUSE: &str = r#"
set fuse single_shot;

/// Two scalar steps in one.
pattern two_steps {
  match {
    tensor_scalar $f %t <- %x, $a;
    tensor_scalar $g %y <- %t, $b;
  }
  where { sole_reader(%t), same_access(%t), f32(%t) }
  rewrite { tensor_scalar $f $g %y <- %x, $a, $b; }
}
"#;

fn fuse(body: &str) -> (Vec<String>, Vec<String>) {
    let settings = Settings {
        remarks: Remarks::All,
        ..Settings::default()
    };
    let (lines, report) = run(&library(FUSE), "fuse", &format!("{TILES}{body}"), &settings);
    let remarks = report
        .remarks
        .iter()
        .map(|one| one.message.clone())
        .collect();
    (lines, remarks)
}

#[test]
fn instructions_are_found_through_memory() {
    let (lines, remarks) = fuse(
        "tensor_scalar add %z <- %x, 1.0\n tensor_copy %h <- %x\n tensor_scalar multiply %y <- %z, 2.0",
    );
    assert_eq!(
        lines,
        [
            "tensor_copy %h <- %x",
            "tensor_scalar add multiply %y <- %x, 1.0, 2.0"
        ]
    );
    assert!(
        remarks.contains(&"`two_steps` fired".to_owned()),
        "{remarks:?}"
    );
}

#[test]
fn a_miss_says_the_first_thing_that_is_in_the_way() {
    let add = "tensor_scalar add %z <- %x, 1.0";
    let multiply = "tensor_scalar multiply %y <- %z, 2.0";
    for (between, behind, why) in [
        ("memset %x <- 3.0", "", "`%x` is overwritten in between"),
        (
            "",
            "tensor_copy %h <- %z",
            "`sole_reader(%t)` does not hold",
        ),
        (
            "memset %z[0:128, 0:1] <- 3.0",
            "",
            "no `tensor_scalar` of this block wrote all of what is read, last",
        ),
    ] {
        let (lines, remarks) = fuse(&format!("{add}\n{between}\n{multiply}\n{behind}"));
        assert!(lines.contains(&multiply.to_owned()), "{lines:?}");
        let wanted = format!("`two_steps` did not fire: {why}");
        assert!(remarks.contains(&wanted), "{wanted}: {remarks:?}");
    }
    let (_, remarks) = fuse(
        "tensor_scalar add %z <- %x, 1.0\n tensor_scalar multiply %y[0:128, 0:4] <- %z[0:128, 0:4], 2.0",
    );
    assert!(
        remarks.contains(&"`two_steps` did not fire: `same_access(%t)` does not hold".to_owned()),
        "{remarks:?}"
    );
}

#[test]
fn rules_that_undo_one_another_are_named() {
    let library = library(
        "set circles greedy;
        rewrite to_add : (subtract ?x (splat 2.0)) => (add ?x (splat -2.0));
        rewrite to_subtract : (add ?x (splat -2.0)) => (subtract ?x (splat 2.0));",
    );
    let body = format!("{TILES} tensor_scalar add %y <- %x, -2.0");
    let (_, report) = run(&library, "circles", &body, &Settings::default());
    let error = report.error.unwrap();
    assert_eq!(
        error.message,
        "rules go round in circles at `tensor_scalar` writing `%y`: `to_add` -> `to_subtract` -> `to_add`"
    );
    // Once is no circle.
    let once = Settings {
        driver: Some(Driver::SingleShot),
        ..Settings::default()
    };
    let (lines, report) = run(&library, "circles", &body, &once);
    assert_eq!(
        (report.applied, &lines[..]),
        (1, &["tensor_scalar subtract %y <- %x, 2.0".to_owned()][..])
    );
}

#[test]
fn a_match_that_changes_nothing_is_an_error() {
    let library = library(
        "set still greedy;
        pattern still { match { tensor_copy %y <- %x; } rewrite { tensor_copy %y <- %x; } }",
    );
    let (_, report) = run(
        &library,
        "still",
        &format!("{TILES} tensor_copy %y <- %x"),
        &Settings::default(),
    );
    let message = report.error.unwrap().message;
    assert_eq!(
        message,
        "rule `still` matches `tensor_copy` writing `%y` and would leave it as it is"
    );
}

#[test]
fn benefits_options_and_flags_decide() {
    let library = library(
        "set choices greedy;
        option halve = false;
        rewrite double (benefit 2, option halve) : (add ?x ?x) => (multiply ?x (splat 2.0));
        rewrite zero (nsz) : (add ?x (splat 0.0)) => ?x where float(?x);
        rewrite zero_int : (add ?x (splat 0.0)) => ?x where exact_int(?x) and integer(?x) and exact_in_f32(?x);",
    );
    let body = format!("{TILES} tensor_tensor add %y <- %x, %x\n tensor_scalar add %z <- %x, 0.0");
    let (lines, report) = run(&library, "choices", &body, &Settings::default());
    assert_eq!(report.applied, 0, "{lines:?}");
    assert_eq!(report.counters[1].vetoes["not allowed"], 1);
    let all = Settings {
        allowed: Flags::ALL,
        options: vec![true],
        ..Settings::default()
    };
    let (lines, _) = run(&library, "choices", &body, &all);
    assert_eq!(
        lines,
        [
            "tensor_scalar multiply %y <- %x, 2.0",
            "tensor_copy %z <- %x"
        ]
    );
}

#[test]
fn numbers_are_computed_once_and_rounded_once() {
    let library = library(
        "set sums greedy;
        pattern sum {
          match { tensor_scalar add add %y <- %x, $a, $b; }
          where { $a != 0 , $a + $b <= 10 }
          rewrite { tensor_scalar add %y <- %x, ($a + $b); }
        }",
    );
    let (lines, report) = run(
        &library,
        "sums",
        &format!(
            "{TILES} tensor_scalar add add %y <- %x, 0.1, 0.2\n tensor_scalar add add %z <- %x, 6.0, 6.0"
        ),
        &Settings::default(),
    );
    assert_eq!(
        lines,
        [
            "tensor_scalar add %y <- %x, 0.3",
            "tensor_scalar add add %z <- %x, 6.0, 6.0"
        ]
    );
    assert_eq!(report.counters[0].vetoes["comparison `<=`"], 1);
}

#[test]
fn asked_first_a_rewrite_may_be_refused() {
    let library = Library::shipped();
    let mut ir = crate::common::read(&crate::common::module(&format!(
        "{TILES} tensor_scalar multiply %y <- %x, 1.0\n tensor_scalar multiply %z <- %x, 1.0"
    )));
    let func = crate::common::function(&ir);
    let mut asked = Vec::new();
    let set = library.set("identities").unwrap();
    let report = bir_patterns::apply(&mut ir, func, set, &Settings::default(), &mut |what| {
        asked.push(what());
        asked.len() < 2
    });
    assert_eq!(report.applied, 1);
    assert_eq!(
        asked,
        [
            "multiply_one at `tensor_scalar` writing `%y`",
            "multiply_one at `tensor_scalar` writing `%z`"
        ]
    );
}
