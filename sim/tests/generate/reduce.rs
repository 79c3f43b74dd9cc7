//! Reduction: small, interesting, valid, and the same each time.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use bir_sim::Options;
use bir_sim::generate::{Config, Feature, generate};
use bir_sim::reduce::{ReduceOptions, instructions, is_valid, reduce};
use bir_sim::validate::Baseline;

/// A clean-up with a mistake: it takes `subtract` for commutative and swaps its sources.
fn miscompile(ir: &Ir) -> Ir {
    let mut ir = ir.clone();
    let ops: Vec<_> = ir.walk().ops().collect();
    for op in ops {
        if OpCode::of(&ir, op) != Some(OpCode::TensorTensor)
            || OpView::new(&ir, op).word("op") != Some("subtract")
        {
            continue;
        }
        let mut operands = ir.new_operands(op);
        let (lhs, rhs) = (operands[1].role, operands[2].role);
        (operands[1].role, operands[2].role) = (rhs, lhs);
        operands[1..3].reverse();
        ir.set_operands(op, &operands);
    }
    ir
}

/// Without the instruction that counts down, a candidate's loop never ends: steps are limited.
fn is_miscompiled(ir: &Ir) -> bool {
    let options = Options {
        max_steps: 1 << 14,
        ..Options::default()
    };
    Baseline::new(ir, &[1], options).is_ok_and(|baseline| baseline.check(&miscompile(ir)).is_err())
}

fn large(seed: u64) -> Ir {
    let mut config = Config {
        seed,
        instructions: 500,
        ..Config::default()
    };
    config.without.insert(Feature::Branch);
    generate(&config).ir
}

#[test]
fn a_miscompile_in_500_instructions_reduces_to_ten() {
    let program = (0..50)
        .map(large)
        .find(is_miscompiled)
        .expect("the mistake shows in one of 50 programs");
    assert!(instructions(&program) >= 500);
    let mut seen = 0;
    let options = ReduceOptions::default();
    let (best, stats) = reduce(&program, options, &mut is_miscompiled, &mut |_, _| {
        seen += 1
    });
    let text = print(&best, PrintOptions::default());
    assert!(is_miscompiled(&best), "{text}");
    assert!(is_valid(&best), "{text}");
    assert!(instructions(&best) <= 10, "{text}");
    assert_eq!(seen, stats.kept);
}

#[test]
fn each_op_can_be_the_one_that_is_left() {
    for (seed, code) in [
        (1, OpCode::Matmult),
        (3, OpCode::Select),
        (5, OpCode::AffineSelect),
        (6, OpCode::DmaCopy),
    ] {
        let mut has = |ir: &Ir| ir.walk().ops().any(|op| OpCode::of(ir, op) == Some(code));
        let program = (seed..seed + 40).map(large).find(&mut has);
        let program = program.expect("a program with the op");
        let (best, _) = reduce(&program, ReduceOptions::default(), &mut has, &mut |_, _| {});
        let text = print(&best, PrintOptions::default());
        assert!(instructions(&best) <= 4, "{text}");
        assert!(has(&best) && is_valid(&best), "{text}");
    }
}

/// What decides where a core goes must be the same on all: it goes on all at once.
#[test]
fn a_branch_of_two_cores_goes_on_both() {
    let core = |n: u32, last: &str| {
        format!(
            "bir.module @core{n} {{core = {n}}} {{
              bir.func @main {{
                %x = alloc dram<1x1xi32> {{kind = input}}
                %r = register_load <- %x
                loop %i = 0 to 3 {{
                  core_barrier
                }}
                cond_br %r, ^bb1, ^bb2
              ^bb1:
                br ^bb3
              ^bb2:
                br ^bb3
              ^bb3:
                {last}
              }}
            }}\n"
        )
    };
    let text = core(0, "nop") + &core(1, "drain");
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    let options = ParseOptions::default();
    parse(&text, 0..text.len(), &mut ir, options, &mut diags);
    assert!(!diags.has_errors() && is_valid(&ir));
    let mut has_both = |ir: &Ir| {
        let has = |code| ir.walk().ops().any(|op| OpCode::of(ir, op) == Some(code));
        has(OpCode::Nop) && has(OpCode::Drain)
    };
    let options = ReduceOptions::default();
    let (best, _) = reduce(&ir, options, &mut has_both, &mut |_, _| {});
    let text = print(&best, PrintOptions::default());
    assert!(has_both(&best) && is_valid(&best), "{text}");
    assert_eq!(instructions(&best), 2, "{text}");
}

/// A share of what the fuzz target does without end.
#[test]
fn reductions_keep_what_they_promise() {
    for case in 0..6 {
        let mut random = bir_sim::random::Random::new(case, "reductions");
        let data: Vec<u8> = (0..19).map(|_| random.below(256) as u8).collect();
        crate::checks::check_reduction(&crate::checks::config(&data, 40));
    }
}

#[test]
fn a_limit_of_tests_is_kept() {
    let program = large(9);
    let options = ReduceOptions {
        max_tests: 7,
        ..ReduceOptions::default()
    };
    let mut tests = 0;
    let mut test = |_: &Ir| {
        tests += 1;
        false
    };
    let (best, stats) = reduce(&program, options, &mut test, &mut |_, _| {});
    assert_eq!((tests, stats.tests), (7, 7));
    assert_eq!(
        print(&best, PrintOptions::default()),
        print(&program, PrintOptions::default())
    );
}

#[test]
fn equal_programs_reduce_to_equal_programs() {
    let mut config = Config {
        seed: 12,
        instructions: 60,
        ..Config::default()
    };
    config.without.insert(Feature::Branch);
    let program = generate(&config).ir;
    let mut has = |ir: &Ir| {
        ir.walk()
            .ops()
            .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Load))
            .count()
            > 1
    };
    let mut text = || {
        let best = reduce(&program, ReduceOptions::default(), &mut has, &mut |_, _| {}).0;
        print(&best, PrintOptions::default())
    };
    assert_eq!(text(), text());
}
