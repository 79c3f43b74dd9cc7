//! The passes around the exit from SSA, per instruction. Budgets on one core: `instruction_reorder`
//! 0.05 µs, `localize_shared_memory` 0.03 µs, `non_ssa_legalization` 0.20 µs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so
#![allow(missing_docs)] // criterion makes undocumented functions

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_passes::Registry;
use bir_passes::instrument::instruction_count;
use bir_passes::manager::run_boxed;
use bir_sim::generate::{Profile, profile};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const PASSES: &[&str] = &[
    "instruction_reorder",
    "localize_shared_memory",
    "non_ssa_legalization",
    "remove_redundant_loads",
    "remove_redundant_memsets",
];

/// Twice the size, to see that time grows with it.
const PROFILES: &[(Profile, Option<u64>, &str)] = &[
    (Profile::Linear, None, "linear"),
    (Profile::Linear, Some(2 * 7_680), "linear x 2"),
    (Profile::Spill, None, "spill"),
    (Profile::Million, None, "million"),
    (Profile::Fan, None, "fan"),
];

fn ssa_exit(c: &mut Criterion) {
    for &(which, size, name) in PROFILES {
        let ir = profile(which, 1, size).ir;
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(instruction_count(&ir)));
        for &pass in PASSES {
            group.bench_function(pass, |b| {
                b.iter_batched(
                    || ir.clone(),
                    |mut ir: Ir| {
                        let pass = Registry::new().make(pass).unwrap();
                        run_boxed(pass, &mut ir, &mut Diagnostics::new());
                        ir
                    },
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, ssa_exit);
criterion_main!(benches);
