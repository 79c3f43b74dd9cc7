//! What instructions that go hand on: numbers, dependences, waits and signals, coordinates.

use crate::common::{library, run};
use bir_patterns::{Remarks, Settings};

const TILES: &str = "
    %x = alloc sbuf<128x8xf32>
    %y = alloc sbuf<128x8xf32>
    %z = alloc sbuf<128x8xf32>
    %u = alloc sbuf<128x8xf32>
";

const SET: &str = r#"
set steps single_shot;

/// Two scalar steps in one, where the last stands.
pattern late {
  match {
    tensor_scalar $f %t <- %x, $a;
    tensor_scalar $g %y <- %t, $b;
  }
  where { sole_reader(%t), same_access(%t), f32(%t) }
  rewrite { tensor_scalar $f $g %y <- %x, $a, $b; }
}

/// A step and a copy in one, where the first stands.
pattern early {
  match {
    tensor_scalar $f %t <- %x, $a;
    tensor_copy %y <- %t;
  }
  where { sole_reader(%t), same_access(%t), f32(%t) }
  rewrite at %t { tensor_scalar $f %y <- %x, $a; }
}

/// One in two.
pattern split {
  match { tensor_scalar $f multiply %y <- %x, 7.0, 2.0; }
  where { disjoint(%x, %y) }
  rewrite {
    memset %y <- 7.0;
    tensor_tensor $f %y <- %x, %y;
  }
}
"#;

fn steps(body: &str) -> (Vec<String>, Vec<String>) {
    let settings = Settings {
        remarks: Remarks::Missed,
        expensive_checks: true,
        ..Settings::default()
    };
    let (lines, report) = run(&library(SET), "steps", &format!("{TILES}{body}"), &settings);
    assert!(report.error.is_none(), "{:?}", report.error);
    let remarks = report.remarks.iter().map(|one| one.message.clone());
    (lines, remarks.collect())
}

/// What becomes of a body; nothing else is left.
#[track_caller]
fn becomes(body: &str, want: &[&str]) {
    let (lines, remarks) = steps(body);
    assert_eq!(lines, want, "{remarks:#?}");
}

#[track_caller]
fn stays(body: &str) {
    let (lines, remarks) = steps(body);
    let body: Vec<&str> = body.lines().map(str::trim).collect();
    assert_eq!(lines, body);
    let why = "semaphores, an order or a schedule keep what would go in its place";
    assert!(remarks.iter().any(|one| one.ends_with(why)), "{remarks:#?}");
}

#[test]
fn who_depended_on_what_went_depends_on_its_heir() {
    // `memset %u` was to follow the first step, and stands behind the heir.
    becomes(
        "memset %x <- 1.0 {id = 1}
        tensor_scalar add %z <- %x, 1.0 {id = 2, deps = [flow 1]}
        tensor_scalar multiply %y <- %z, 2.0 {id = 3, deps = [flow 2]}
        memset %x <- 0.0 {id = 4, deps = [anti 2]}",
        &[
            "memset %x <- 1.0 {id = 1}",
            "tensor_scalar add multiply %y <- %x, 1.0, 2.0 {id = 3, deps = [flow 1]}",
            "memset %x <- 0.0 {id = 4, deps = [anti 3]}",
        ],
    );
}

#[test]
fn who_stands_before_the_heir_keeps_what_was_before() {
    // The copy of %x depended on the first step for a reason of memory that is gone with it.
    becomes(
        "memset %x <- 1.0 {id = 1}
        tensor_scalar add %z <- %x, 1.0 {id = 2, deps = [flow 1]}
        tensor_copy %u <- %x {id = 5, deps = [flow 1, output 2]}
        tensor_scalar multiply %y <- %z, 2.0 {id = 3, deps = [flow 2]}",
        &[
            "memset %x <- 1.0 {id = 1}",
            "tensor_copy %u <- %x {id = 5, deps = [flow 1]}",
            "tensor_scalar add multiply %y <- %x, 1.0, 2.0 {id = 3, deps = [flow 1]}",
        ],
    );
}

#[test]
fn an_heir_that_stands_early_depends_on_what_is_before_it() {
    becomes(
        "memset %x <- 1.0 {id = 1}
        tensor_copy %u <- %y {id = 7}
        tensor_scalar add %z <- %x, 1.0 {id = 2, deps = [flow 1]}
        tensor_copy %y <- %z {id = 3, deps = [flow 2, anti 7]}
        memset %y <- 0.0 {id = 4, deps = [output 3]}",
        &[
            "memset %x <- 1.0 {id = 1}",
            "tensor_copy %u <- %y {id = 7}",
            "tensor_scalar add %y <- %x, 1.0 {id = 2, deps = [flow 1, anti 7]}",
            "memset %y <- 0.0 {id = 4, deps = [anti 7, output 2]}",
        ],
    );
}

#[test]
fn sets_are_handed_on_as_they_are() {
    becomes(
        "memset %x <- 1.0 {id = 1}
        memset %u <- 1.0 {id = 6}
        depset #1 = [1, 6]
        tensor_scalar add %z <- %x, 1.0 {id = 2, deps = [ordered #1]}
        tensor_scalar multiply %y <- %z, 2.0 {id = 3, deps = [flow 2]}",
        &[
            "memset %x <- 1.0 {id = 1}",
            "memset %u <- 1.0 {id = 6}",
            "depset #1 = [1, 6]",
            "tensor_scalar add multiply %y <- %x, 1.0, 2.0 {id = 3, deps = [ordered #1]}",
        ],
    );
}

#[test]
fn two_heirs_both_follow_and_are_followed() {
    becomes(
        "memset %x <- 1.0 {id = 1}
        tensor_scalar add multiply %y <- %x, 7.0, 2.0 {id = 2, deps = [flow 1]}
        memset %x <- 0.0 {id = 3, deps = [anti 2]}",
        &[
            "memset %x <- 1.0 {id = 1}",
            "memset %y <- 7.0 {id = 4, deps = [flow 1]}",
            "tensor_tensor add %y <- %x, %y {id = 5, deps = [flow 1, ordered 4]}",
            "memset %x <- 0.0 {id = 3, deps = [anti 4, anti 5, output 1]}",
        ],
    );
}

#[test]
fn waits_go_to_the_next_instruction_of_the_engine() {
    becomes(
        "memset %u <- 1.0 {engine = pool, signal = [1 += 1]}
        tensor_scalar add %z <- %x, 1.0 {wait = [1 >= 1]}
        tensor_scalar multiply %y <- %z, 2.0 {signal = [2 += 1]}",
        &[
            "memset %u <- 1.0 {engine = pool, signal = [1 += 1]}",
            "tensor_scalar add multiply %y <- %x, 1.0, 2.0 {wait = [1 >= 1], signal = [2 += 1]}",
        ],
    );
}

#[test]
fn what_no_heir_can_take_over_keeps_instructions_in_place() {
    // A signal would be given before the heir has read what it says is read.
    stays(
        "tensor_scalar add %z <- %x, 1.0 {signal = [1 += 1]}
        tensor_scalar multiply %y <- %z, 2.0",
    );
    // A wait would be met too late.
    stays(
        "memset %u <- 1.0 {engine = pool, signal = [1 += 1]}
        tensor_scalar add %z <- %x, 1.0
        tensor_copy %y <- %z {wait = [1 >= 1]}",
    );
    // The program says what stands between follows the first.
    stays(
        "tensor_scalar add %z <- %x, 1.0 {id = 2}
        memset %u <- 1.0 {id = 5, deps = [ordered 2]}
        tensor_scalar multiply %y <- %z, 2.0 {id = 3, deps = [flow 2]}",
    );
    // One coordinate is not one of two instructions.
    stays("tensor_scalar add multiply %y <- %x, 7.0, 2.0 {order = [3]}");
}

#[test]
fn a_coordinate_goes_with_the_place() {
    becomes(
        "tensor_scalar add %z <- %x, 1.0 {order = [3]}
        tensor_scalar multiply %y <- %z, 2.0 {order = [4]}",
        &["tensor_scalar add multiply %y <- %x, 1.0, 2.0 {order = [4]}"],
    );
}

#[test]
fn what_waits_or_signals_keeps_its_engine() {
    becomes(
        "tensor_scalar add %z <- %x, 1.0 {engine = act}
        tensor_copy %y <- %z {engine = act, signal = [1 += 1]}",
        &["tensor_scalar add %y <- %x, 1.0 {engine = act, signal = [1 += 1]}"],
    );
}

#[test]
fn an_engine_is_given_up_where_it_cannot_run_what_is_made() {
    // The activation engine multiplies, then adds; not the other way round.
    becomes(
        "tensor_scalar add %z <- %x, 1.0 {engine = act}
        tensor_scalar multiply %y <- %z, 2.0 {engine = act}",
        &["tensor_scalar add multiply %y <- %x, 1.0, 2.0"],
    );
    // The pool engine has no way to PSUM.
    becomes(
        "%p = alloc psum<128x8xf32>
        tensor_scalar add %z <- %p, 1.0
        tensor_scalar multiply %y <- %z, 2.0 {engine = pool}",
        &["tensor_scalar add multiply %y <- %p, 1.0, 2.0"],
    );
    becomes(
        "tensor_scalar multiply %z <- %x, 1.0 {engine = act}
        tensor_scalar add %y <- %z, 2.0 {engine = act}",
        &["tensor_scalar multiply add %y <- %x, 1.0, 2.0 {engine = act}"],
    );
    let (lines, remarks) = steps(
        "tensor_scalar add %z <- %x, 1.0 {engine = act}
        tensor_scalar multiply %y <- %z, 2.0 {engine = act, signal = [1 += 1]}",
    );
    assert_eq!(lines.len(), 2, "{lines:?}");
    let why =
        "`late` did not fire: `tensor_scalar` cannot be made of these operands and attributes";
    assert!(remarks.iter().any(|one| one == why), "{remarks:#?}");
}
