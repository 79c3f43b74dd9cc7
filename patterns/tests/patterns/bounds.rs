//! What keeps a rewrite from being made although all of its instructions fit: who looks on in between,
//! other cores, bytes operands share, streams others count on, and growth without end.

use crate::common::{library, read, run};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::text::{PrintOptions, print};
use bir_patterns::{Driver, Remarks, Report, Settings, apply};

const TILES: &str = "
    %x = alloc sbuf<128x16xf32>
    %t = alloc sbuf<128x8xf32>
    %y = alloc sbuf<128x8xf32>
    %z = alloc sbuf<128x8xf32>
";

/// What becomes of a body under one rule, and why the rule did not fire.
fn under(rule: &str, body: &str) -> (Vec<String>, Vec<String>) {
    let library = library(&format!("set s single_shot;\n{rule}"));
    let settings = Settings {
        remarks: Remarks::Missed,
        expensive_checks: true,
        ..Settings::default()
    };
    let (lines, report) = run(&library, "s", &format!("{TILES}{body}"), &settings);
    assert!(report.error.is_none(), "{:?}", report.error);
    let remarks = report.remarks.into_iter().map(|one| one.message);
    (lines, remarks.collect())
}

#[track_caller]
fn stays(rule: &str, body: &str, why: &str) {
    let (lines, remarks) = under(rule, body);
    let wanted: Vec<&str> = body
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(lines, wanted);
    assert!(remarks.iter().any(|one| one.contains(why)), "{remarks:?}");
}

const EARLY: &str = "pattern early {
  match {
    tensor_scalar $f %t <- %x, $a;
    keep tensor_tensor add _ <- %t, _;
    tensor_copy %y <- %t;
  }
  where { same_access(%t), f32(%t) }
  rewrite at %t { tensor_scalar $f %t <- %x, $a; tensor_copy %y <- %t; }
}";

#[test]
fn what_is_kept_looks_on_like_anybody_else() {
    stays(
        EARLY,
        "memset %y <- 5.0
        tensor_scalar add %t <- %x[:, 0:8], 1.0
        tensor_tensor add %x[:, 8:16] <- %t, %y
        tensor_copy %y <- %t",
        "`%y` is accessed in between",
    );
    let (lines, _) = under(
        EARLY,
        "memset %z <- 5.0
        tensor_scalar add %t <- %x[:, 0:8], 1.0
        tensor_tensor add %x[:, 8:16] <- %t, %z
        tensor_copy %y <- %t",
    );
    assert_eq!(lines[2], "tensor_copy %y <- %t");
}

const STEPS: &str = "pattern steps {
  match { tensor_scalar $f %t <- %x, $a; tensor_scalar $g %y <- %t, $b; }
  where { sole_reader(%t), same_access(%t), f32(%t) }
  rewrite { tensor_scalar $f $g %y <- %x, $a, $b; }
}";

#[test]
fn operands_share_bytes_only_as_one_access() {
    stays(
        STEPS,
        "tensor_scalar add %t <- %x[:, 0:8], 1.0
        tensor_scalar multiply %x[:, 1:9] <- %t, 2.0",
        "`tensor_scalar` cannot have such an operand `src`",
    );
    for apart in ["0:8", "8:16"] {
        let body = format!(
            "tensor_scalar add %t <- %x[:, 0:8], 1.0
            tensor_scalar multiply %x[:, {apart}] <- %t, 2.0"
        );
        let (lines, remarks) = under(STEPS, &body);
        assert_eq!(lines.len(), 1, "{remarks:?}");
    }
    // What moves along with a loop stays apart; what moves otherwise may meet.
    let looped = |by: &str| {
        format!(
            "loop %i = 0 to 2 {{
            tensor_scalar add %t[:, 0:4] <- %x[:, 8*%i +: 4], 1.0
            tensor_scalar multiply %x[:, {by} +: 4] <- %t[:, 0:4], 2.0
            }}"
        )
    };
    assert_eq!(under(STEPS, &looped("8*%i+4")).0.len(), 2);
    assert_eq!(under(STEPS, &looped("4*%i+4")).0.len(), 3);
}

#[test]
fn a_reduction_is_not_done_in_place() {
    let rule = "pattern sum {
      match { tensor_copy %t <- %x; tensor_reduce add %r <- %t {axes = [1]}; }
      where { sole_reader(%t), same_access(%t), f32(%t) }
      rewrite { tensor_reduce add %r <- %x {axes = [1]}; }
    }";
    stays(
        rule,
        "tensor_copy %t <- %x[:, 0:8]
        tensor_reduce add %x[:, 3] <- %t {axes = [1]}",
        "`tensor_reduce` cannot have such an operand `src`",
    );
    let (lines, _) = under(
        rule,
        "tensor_copy %t <- %x[:, 0:8]
        tensor_reduce add %x[:, 8] <- %t {axes = [1]}",
    );
    assert_eq!(
        lines,
        ["tensor_reduce add %x[:, 8] <- %x[:, 0:8] {axes = [1]}"]
    );
}

#[test]
fn bytes_are_shared_by_placement_and_by_name() {
    let placed = |at: &str| {
        format!(
            "%a = alloc sbuf<128x8xf32> at [0, 0]
            %b = alloc sbuf<128x8xf32> {at}
            tensor_scalar add %t <- %a, 1.0
            tensor_scalar multiply %b <- %t, 2.0"
        )
    };
    for (at, left) in [
        ("at [0, 4]", 2),
        ("at [0, 0]", 1),
        ("at [0, 32]", 1),
        ("{must_alias = @a}", 1),
    ] {
        let (lines, remarks) = under(STEPS, &placed(at));
        assert_eq!(lines.len(), left, "{at} {remarks:?}");
    }
}

#[test]
fn streams_stay_where_others_wait() {
    let rule = "pattern over {
      match { keep tensor_copy %y <- %x; }
      where { engine(%y, act), f32(%x), f32(%y) }
      rewrite { call set_engine(%y, pool); }
    }";
    stays(
        rule,
        "memset %t <- 1.0 {signal = [0 += 16]}
        tensor_copy %y <- %t {engine = act, wait = [0 >= 16]}
        activation copy %z <- %y",
        "the registered rewrite declined",
    );
    // Nobody waits here, but behind it on its engine somebody does.
    stays(
        rule,
        "memset %t <- 1.0 {signal = [0 += 16]}
        tensor_copy %y <- %t {engine = act}
        activation copy %z <- %y {wait = [0 >= 16]}",
        "the registered rewrite declined",
    );
    let (lines, _) = under(rule, "tensor_copy %y <- %t {engine = act}");
    assert_eq!(lines, ["tensor_copy %y <- %t {engine = pool}"]);
    // The tensor engine copies nothing.
    stays(
        &rule.replace("pool", "pe"),
        "tensor_copy %y <- %t {engine = act}",
        "the registered rewrite declined",
    );
}

const DMA: &str = "set s single_shot;
pattern straight {
  match { load %t <- %x; save %z <- %t; }
  where { sole_reader(%t), same_access(%t) }
  rewrite { dma_copy %z <- %x; }
}";

/// The first function after the rule, and why it did not fire.
fn two_cores(place: &str, between: &str) -> (String, Report) {
    let text = format!(
        "bir.module @c0 {{
          bir.func @main {{
            %out = alloc dram<128x8xf32> {{kind = output}}
            %sh = alloc dram<128x8xf32> {place}
            %t = alloc sbuf<128x8xf32>
            %u = alloc sbuf<128x8xf32>
            load %t <- %sh
            {between}
            save %out <- %t
          }}
        }}
        bir.module @c1 {{
          bir.func @main {{
            %sh = alloc dram<128x8xf32> {{space = shared}}
            %t = alloc sbuf<128x8xf32>
            %u = alloc sbuf<128x8xf32>
            memset %t <- 9.0
            save %sh <- %t
            {between}
          }}
        }}"
    );
    let mut ir = read(&text);
    let func = ir
        .walk()
        .ops()
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Func))
        .unwrap();
    let library = library(DMA);
    let settings = Settings {
        remarks: Remarks::Missed,
        ..Settings::default()
    };
    let set = library.set("s").unwrap();
    let report = apply(&mut ir, func, set, &settings, &mut |_| true);
    (print(&ir, PrintOptions::default()), report)
}

#[test]
fn what_other_cores_write_is_read_on_the_same_side_of_a_barrier() {
    let shared = "{space = shared}";
    for between in [
        "core_barrier",
        "drain",
        "memset %u <- 1.0 {signal = [1 += 1]}",
    ] {
        let (text, report) = two_cores(shared, between);
        assert!(text.contains("load %t <- %sh"), "{between}: {text}");
        let message = &report.remarks[0].message;
        assert!(
            message.contains("`%x` is overwritten in between"),
            "{message}"
        );
    }
    let (text, _) = two_cores(shared, "memset %u <- 1.0");
    assert!(text.contains("dma_copy %out <- %sh"), "{text}");
    let (text, _) = two_cores("{kind = input}", "core_barrier");
    assert!(text.contains("dma_copy %out <- %sh"), "{text}");
}

#[test]
fn growth_without_end_is_an_error() {
    let library = library(
        "set s greedy;
        pattern grow {
          match { tensor_scalar add %y <- %x, 1.0; }
          where { f32(%x), f32(%y) }
          rewrite { tensor_scalar add %y <- %x, 1.0; tensor_scalar add %y <- %y, 1.0; }
        }",
    );
    let body = format!("{TILES}tensor_scalar add %y <- %t, 1.0");
    let error = |settings: Settings| {
        let (_, report) = run(&library, "s", &body, &settings);
        report.error.unwrap().message
    };
    let long = error(Settings::default());
    assert!(
        long.starts_with("rules made ") && long.ends_with("the last was `grow`"),
        "{long}"
    );
    let few = error(Settings {
        max_instructions: 100,
        ..Settings::default()
    });
    assert_eq!(
        few,
        "rules made 101 instructions of 6, more than the limit of 100; the last was `grow`"
    );
}

/// Each rule of a single-shot set sees what those before it made, in program order, and not what it made.
#[test]
fn each_rule_visits_what_earlier_ones_made() {
    let library = library(
        "set s single_shot;
        pattern a { match { tensor_scalar add %y <- %x, 1.0; } where { f32(%x) } rewrite { tensor_scalar add %y <- %x, 2.0; } }
        pattern b { match { tensor_scalar add %y <- %x, 2.0; } rewrite { tensor_scalar add %y <- %x, 1.0; tensor_scalar add %y <- %y, 3.0; } }
        pattern c { match { tensor_scalar add %y <- %x, 3.0; } rewrite { tensor_scalar multiply %y <- %x, 3.0; } }
        pattern d { match { tensor_scalar add %y <- %x, 1.0; } rewrite { tensor_scalar add %y <- %x, 4.0; } }",
    );
    let body = format!(
        "{TILES}tensor_scalar add %y <- %t, 2.0
        tensor_scalar add %z <- %t, 3.0
        tensor_scalar add %y <- %z, 1.0"
    );
    let settings = Settings {
        driver: Some(Driver::SingleShot),
        remarks: Remarks::Passed,
        ..Settings::default()
    };
    let (lines, report) = run(&library, "s", &body, &settings);
    assert_eq!(
        lines,
        [
            "tensor_scalar add %y <- %t, 4.0",
            "tensor_scalar multiply %y <- %y, 3.0",
            "tensor_scalar multiply %z <- %t, 3.0",
            "tensor_scalar add %y <- %z, 4.0",
            "tensor_scalar multiply %y <- %y, 3.0",
        ]
    );
    let fired: Vec<&str> = report
        .remarks
        .iter()
        .map(|one| one.message.as_str())
        .collect();
    let times = |name: &str| fired.iter().filter(|one| one.contains(name)).count();
    assert_eq!(
        (times("`a`"), times("`b`"), times("`c`"), times("`d`")),
        (1, 2, 3, 2)
    );
}

/// What a law has inside is read as it was written, and has a name to ask of.
#[test]
fn laws_of_several_steps_ask_of_what_is_in_between() {
    let twice = "rewrite twice : (multiply ?t:(multiply ?x (splat -1.0)) (splat -1.0)) => ?x where float(?x) and f32(?t);";
    let body = |read: &str| {
        format!(
            "tensor_scalar multiply %t <- %x[:, 0:8], -1.0
            tensor_scalar multiply %y <- {read}, -1.0"
        )
    };
    assert_eq!(
        under(twice, &body("%t")).0[1],
        "tensor_copy %y <- %x[:, 0:8]"
    );
    stays(
        twice,
        &body("%t[p 0:128, off 7, -1 x 8]"),
        "`same_access(%t)` does not hold",
    );
    let narrow = "%h = alloc sbuf<128x8xi32>
        tensor_scalar multiply %h <- %x[:, 0:8], -1.0
        tensor_scalar multiply %y <- %h, -1.0";
    let (lines, remarks) = under(twice, narrow);
    assert_eq!(lines.len(), 2);
    assert!(
        remarks
            .iter()
            .any(|one| one.contains("`float(?x) and f32(?t)` does not hold")),
        "{remarks:?}"
    );
}

/// `_` is an attribute that is there, whatever it is.
#[test]
fn attributes_may_be_anything() {
    let rule = "pattern any {
      match { tensor_reduce add %y <- _ {axes = _}; }
      rewrite { memset %y <- 1.0; }
    }";
    let (lines, _) = under(rule, "tensor_reduce add %t[:, 0] <- %y {axes = [1]}");
    assert_eq!(lines, ["memset %t[:, 0] <- 1.0"]);
    stays(
        rule,
        "tensor_reduce add %t[:, 0] <- %y {axes = [1], negate}",
        "has an attribute or operand the pattern does not mention",
    );
}

const TWICE: &str = "pattern cse {
  match {
    keep tensor_tensor $f %t <- %a, %b;
    tensor_tensor $f %y <- %a, %b;
  }
  where { same_dtype(%t, %y) }
  rewrite { tensor_copy %y <- %t; }
}";

/// Instructions that share only what they read are found through that.
#[test]
fn what_is_computed_twice_is_copied() {
    let body = |between: &str| {
        format!(
            "tensor_tensor add %t <- %x[:, 0:8], %x[:, 8:16]
            {between}
            tensor_tensor add %y <- %x[:, 0:8], %x[:, 8:16]"
        )
    };
    let (lines, _) = under(TWICE, &body("memset %y <- 1.0"));
    assert_eq!(lines[2], "tensor_copy %y <- %t");
    for (between, why) in [
        ("memset %x[:, 9] <- 1.0", "`%b` is overwritten in between"),
        (
            "memset %x[:, 3] <- 1.0",
            "no `tensor_tensor` near in this block reads the same",
        ),
        ("memset %t[:, 3] <- 1.0", "`%t` is overwritten in between"),
    ] {
        stays(TWICE, &body(between), why);
    }
    stays(
        TWICE,
        "tensor_tensor add %t <- %x[:, 0:8], %x[:, 8:16]
        tensor_tensor max %y <- %x[:, 0:8], %x[:, 8:16]",
        "attribute `op` of `tensor_tensor` differs",
    );
    stays(
        TWICE,
        "tensor_tensor add %x[:, 0:8] <- %x[:, 0:8], %x[:, 8:16]
        tensor_tensor add %y <- %x[:, 0:8], %x[:, 8:16]",
        "no `tensor_tensor` near in this block reads the same",
    );
    // The nearest that fits is taken, of what stands before.
    let (lines, _) = under(
        TWICE,
        "tensor_tensor add %t <- %x[:, 0:8], %x[:, 8:16]
        tensor_tensor max %z <- %x[:, 0:8], %x[:, 8:16]
        tensor_tensor add %y <- %x[:, 0:8], %x[:, 8:16]",
    );
    assert_eq!(lines[2], "tensor_copy %y <- %t");
}
