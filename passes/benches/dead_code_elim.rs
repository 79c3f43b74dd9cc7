//! Dead code elimination on the workloads; budgets 0.20 µs (o0) and 0.50 µs (o1) per instruction,
//! and growth of at most 1.10 from a quarter of `million` to all of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so
#![allow(missing_docs)] // criterion makes undocumented functions

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_passes::instrument::instruction_count;
use bir_passes::manager::run_alone;
use bir_passes::{DeadCodeElimO0, DeadCodeElimO1};
use bir_sim::generate::{Profile, profile};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

fn workloads() -> Vec<(String, Ir)> {
    let mut found = Vec::new();
    for name in ["linear", "spill", "million"] {
        let one = Profile::from_name(name).unwrap();
        found.push((name.to_owned(), profile(one, 0, None).ir));
    }
    let million = Profile::from_name("million").unwrap();
    found.push((
        "million/4".to_owned(),
        profile(million, 0, Some(250_000)).ir,
    ));
    found
}

fn dead_code_elim(c: &mut Criterion) {
    let mut group = c.benchmark_group("dead_code_elim");
    group.sample_size(10);
    for (name, ir) in workloads() {
        group.throughput(Throughput::Elements(instruction_count(&ir)));
        group.bench_function(format!("o0/{name}"), |b| {
            b.iter_batched(
                || ir.clone(),
                |mut ir| {
                    run_alone(DeadCodeElimO0::default(), &mut ir, &mut Diagnostics::new());
                    ir
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(format!("o1/{name}"), |b| {
            b.iter_batched(
                || ir.clone(),
                |mut ir| {
                    run_alone(DeadCodeElimO1::default(), &mut ir, &mut Diagnostics::new());
                    ir
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, dead_code_elim);
criterion_main!(benches);
