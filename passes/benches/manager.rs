//! Overhead of the manager per pass on an empty module; budget 20 µs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so
#![allow(missing_docs)] // criterion makes undocumented functions

use bir_dialect::bir::program::new_ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, parse};
use bir_passes::pass::Limits;
use bir_passes::{CanonicalizeNames, Manager, Pipeline};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PASSES: usize = 1000;

fn manager(c: &mut Criterion) {
    let text = "bir.module @m {\n}\n";
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    parse(
        text,
        0..text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    let mut pipeline = Pipeline::default();
    for _ in 0..PASSES {
        pipeline.push(Box::new(CanonicalizeNames::default()));
    }
    let mut group = c.benchmark_group("manager");
    group.throughput(Throughput::Elements(PASSES as u64));
    group.bench_function("passes on an empty module", |b| {
        b.iter(|| {
            let mut manager = Manager::new(Limits::default());
            manager.run(
                &pipeline,
                &mut ir,
                &mut String::new(),
                &mut Diagnostics::new(),
            )
        });
    });
    group.finish();
}

criterion_group!(benches, manager);
criterion_main!(benches);
