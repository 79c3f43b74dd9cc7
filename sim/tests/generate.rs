//! Generated programs: valid, deterministic, runnable, of everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use bir_sim::generate::{Config, Counts, Feature, Profile, generate, profile};
use bir_sim::validate::Baseline;
use bir_sim::{Options, Simulation};

/// Programs a campaign makes: as many as `BIR_FUZZ` says, or `default`.
fn programs(default: u64) -> std::ops::Range<u64> {
    let count = std::env::var("BIR_FUZZ").ok().and_then(|n| n.parse().ok());
    0..count.unwrap_or(default)
}

fn config(seed: u64) -> Config {
    Config {
        seed,
        ..Config::default()
    }
}

fn verified(ir: &Ir, what: &str) {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Full,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    let messages: Vec<&str> = diags.iter().map(|d| d.message.as_str()).collect();
    assert!(
        !diags.has_errors(),
        "{what}\n{}\n{messages:#?}",
        print(ir, PrintOptions::default())
    );
}

fn reread(text: &str, what: &str) -> Ir {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    parse(
        text,
        0..text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    let messages: Vec<&str> = diags.iter().map(|d| d.message.as_str()).collect();
    assert!(!diags.has_errors(), "{what}\n{text}\n{messages:#?}");
    ir
}

fn generic() -> PrintOptions {
    PrintOptions {
        generic: true,
        ..PrintOptions::default()
    }
}

#[test]
fn programs_verify_run_and_survive_both_forms() {
    let mut counts = Counts::default();
    for seed in programs(120) {
        let what = format!("seed {seed}");
        let program = generate(&config(seed));
        verified(&program.ir, &what);
        let baseline =
            Baseline::new(&program.ir, &[seed], Options::default()).unwrap_or_else(|f| {
                panic!(
                    "{what}\n{}\n{f}",
                    print(&program.ir, PrintOptions::default())
                )
            });
        let text = print(&program.ir, PrintOptions::default());
        let custom = reread(&text, &what);
        assert_eq!(print(&custom, PrintOptions::default()), text, "{what}");
        let general = reread(&print(&custom, generic()), &what);
        assert_eq!(
            print(&general, generic()),
            print(&program.ir, generic()),
            "{what}"
        );
        if let Err(difference) = baseline.check(&general) {
            panic!("{what}\n{text}\n{difference}");
        }
        counts.add(&program.counts);
    }
    let features: Vec<&str> = counts
        .by_feature()
        .filter(|&(_, count)| count == 0)
        .map(|(feature, _)| feature.name())
        .collect();
    assert!(features.is_empty(), "never made: {features:?}");
    let dtypes: Vec<&str> = counts
        .by_dtype()
        .filter(|&(_, count)| count == 0)
        .map(|(dtype, _)| dtype.name())
        .collect();
    // Tiles of MX data in four bits come only from outside; nothing here reads them as numbers.
    assert!(dtypes.is_empty(), "never used: {dtypes:?}");
    let ops: Vec<&str> = counts
        .by_op()
        .filter(|&(code, count)| count == 0 && !NOT_GENERATED.contains(&code))
        .map(|(code, _)| code.def().name)
        .collect();
    assert!(ops.is_empty(), "never made: {ops:?}");
}

/// What a program of one core has not, what ends one early, and what the text does not write.
const NOT_GENERATED: &[OpCode] = &[
    OpCode::Module,
    OpCode::Func,
    OpCode::Return,
    OpCode::Yield,
    OpCode::Sendrecv,
    OpCode::CoreBarrier,
    OpCode::Halt,
    OpCode::CustomOp,
    OpCode::InlineAsm,
];

#[test]
fn what_is_left_out_does_not_occur() {
    for &feature in Feature::ALL {
        let mut config = config(3);
        config.without.insert(feature);
        config.without_ops = vec![OpCode::Matmult];
        config.without.insert(Feature::UnlessFirst);
        let counts = generate(&config).counts;
        let found = counts.by_feature().find(|entry| entry.0 == feature);
        assert_eq!(found.map(|entry| entry.1), Some(0), "{}", feature.name());
        let made = counts.by_op().find(|entry| entry.0 == OpCode::Matmult);
        assert_eq!(made.map(|entry| entry.1), Some(0));
    }
    let mut config = config(4);
    config.ops = vec![OpCode::Reciprocal];
    let only = generate(&config).counts;
    let reciprocals = only.by_op().find(|entry| entry.0 == OpCode::Reciprocal);
    assert!(reciprocals.is_some_and(|entry| entry.1 > 60));
    let sums = only.by_op().find(|entry| entry.0 == OpCode::TensorTensor);
    assert_eq!(sums.map(|entry| entry.1), Some(0));
}

#[test]
fn equal_seeds_give_equal_programs() {
    for seed in 0..20 {
        let text = |seed| print(&generate(&config(seed)).ir, PrintOptions::default());
        assert_eq!(text(seed), text(seed));
        assert_ne!(text(seed), text(seed + 1));
    }
}

#[test]
fn workloads_verify_and_run_when_small() {
    for &workload in Profile::ALL {
        let size = match workload {
            Profile::Stride => 512,
            Profile::Spill => 200,
            _ => 120,
        };
        let program = profile(workload, 1, Some(size));
        verified(&program.ir, workload.name());
        let baseline = Simulation::new(&program.ir, Options::default()).unwrap();
        assert!(baseline.ports().count() > 0, "{}", workload.name());
        if let Err(fault) = Baseline::new(&program.ir, &[1], Options::default()) {
            panic!("{}: {fault}", workload.name());
        }
    }
}
