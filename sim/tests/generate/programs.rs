//! Generated programs: valid, deterministic, runnable, of everything.

use crate::checks::{assert_valid, check_program, digest};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::text::{PrintOptions, print};
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
        max_cores: 4,
        ..Config::default()
    }
}

/// Two threads check one half of the seeds each, and make and run the programs of the other half
/// once more: those are the same there.
#[test]
fn programs_verify_run_and_survive_both_forms() {
    let seeds = programs(120);
    let middle = seeds.end / 2;
    let halves = [0..middle, middle..seeds.end];
    let half = |own: std::ops::Range<u64>| {
        let mut counts = Counts::default();
        own.clone()
            .for_each(|seed| counts.add(&check_program(&config(seed))));
        let digests = seeds.clone().map(|seed| digest(&config(seed)));
        (counts, digests.collect::<Vec<u64>>())
    };
    let [(mut counts, one), (more, other)] = std::thread::scope(|scope| {
        halves
            .map(|own| scope.spawn(|| half(own)))
            .map(|thread| thread.join().unwrap())
    });
    counts.add(&more);
    for seed in seeds.clone() {
        assert_eq!(one[seed as usize], other[seed as usize], "seed {seed}");
    }
    println!(
        "{} programs, {} instructions",
        seeds.end,
        counts.instructions()
    );
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

/// What ends a program early, what nobody can run, and what the text does not write.
const NOT_GENERATED: &[OpCode] = &[
    OpCode::Module,
    OpCode::Func,
    OpCode::Return,
    OpCode::Yield,
    OpCode::Halt,
    OpCode::CustomOp,
    OpCode::InlineAsm,
];

/// A share of what the fuzz targets do without end.
#[test]
fn programs_of_other_sizes_and_features_pass_too() {
    for case in programs(40) {
        let mut random = bir_sim::random::Random::new(case, "cases");
        let data: Vec<u8> = (0..19).map(|_| random.below(256) as u8).collect();
        check_program(&crate::checks::config(&data, 100));
    }
}

#[test]
fn programs_of_large_tiles_verify() {
    for (seed, max_elements) in (0..10).flat_map(|seed| {
        let sizes = [513, 801, 2049, 4097, 16_384];
        sizes.map(|size| (seed, size))
    }) {
        let config = Config {
            max_elements,
            instructions: 100,
            ..config(seed)
        };
        let what = format!("seed {seed}, tiles of {max_elements}");
        assert_valid(&generate(&config).ir, &what);
    }
}

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
        let smallest = *workload.sizes().start();
        for size in [smallest, smallest + 1, smallest + 2, size] {
            let program = profile(workload, 1, Some(size));
            let what = format!("{} of {size}", workload.name());
            assert_valid(&program.ir, &what);
            let baseline = Simulation::new(&program.ir, Options::default()).unwrap();
            assert!(baseline.ports().count() > 0, "{what}");
            if let Err(fault) = Baseline::new(&program.ir, &[1], Options::default()) {
                panic!("{what}: {fault}");
            }
        }
        // What is largest because locations have bounds is within them.
        let largest = *workload.sizes().end();
        if largest < 100_000 {
            let program = profile(workload, 1, Some(largest));
            assert_valid(&program.ir, &format!("{} of {largest}", workload.name()));
        }
    }
}
