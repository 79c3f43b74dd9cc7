//! Instructions generated per second: many small programs, as campaigns make them, a large one, and
//! a workload.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a bench may fail so
#![allow(missing_docs)] // criterion makes undocumented functions

use bir_sim::generate::{Config, Profile, generate, profile};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn programs(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate");
    group.sample_size(10);
    let config = |seed, instructions| Config {
        seed,
        instructions,
        ..Config::default()
    };
    let several = |seeds: u64, size: usize| {
        (0..seeds)
            .map(|seed| generate(&config(seed, size)).counts.instructions())
            .sum::<u64>()
    };
    for (name, seeds, size) in [
        ("100 programs of 200 instructions", 100, 200),
        ("one of 100,000", 1, 100_000),
    ] {
        group.throughput(Throughput::Elements(several(seeds, size)));
        group.bench_function(name, |b| b.iter(|| several(seeds, size)));
    }
    let linear = || profile(Profile::Linear, 1, None).counts.instructions();
    group.throughput(Throughput::Elements(linear()));
    group.bench_function("workload `linear`", |b| b.iter(linear));
    group.finish();
}

criterion_group!(benches, programs);
criterion_main!(benches);
