//! Budgets: the shipped sets load and check in 5 ms; 1,000 rules about one op cost a sweep at most 1.5
//! times what 10 rules about ops that are not there cost; identities fold in 0.3 µs an instruction.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs)]

use std::fmt::Write as _;
use std::hint::black_box;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op};
use bir_patterns::{Library, RuleSet, Settings, apply};
use bir_sim::generate::{Profile, profile};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const INSTRUCTIONS: u64 = 100_000;

fn library(text: &str) -> Library {
    let mut library = Library::empty();
    assert!(!library.add("bench.pat", text).has_errors());
    library
}

fn function(ir: &Ir) -> Op {
    ir.walk()
        .ops()
        .find(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .unwrap()
}

/// Rules about `tensor_scalar`, each with a constant of its own that the workload does not have.
fn many(count: usize) -> String {
    let mut text = String::from("set many greedy;\n");
    for number in 0..count {
        let _ = writeln!(
            text,
            "pattern p{number} {{ match {{ tensor_scalar add %y <- %x, {number}.25; }} rewrite {{ tensor_copy %y <- %x; }} }}"
        );
    }
    text
}

/// Rules about an op the workload does not have.
fn elsewhere(count: usize) -> String {
    let mut text = String::from("set many greedy;\n");
    for number in 0..count {
        let _ = writeln!(
            text,
            "pattern p{number} {{ match {{ tensor_scalar_reduce add %y, reduce add reset %s <- %x, {number}.25; }} rewrite {{ tensor_scalar_reduce add %y, reduce add reset %s <- %x, 0.0; }} }}"
        );
    }
    text
}

fn sweep(ir: &mut Ir, set: &RuleSet) -> u64 {
    let func = function(ir);
    apply(ir, func, set, &Settings::default(), &mut |_| true).applied
}

fn rules(c: &mut Criterion) {
    c.bench_function("load and check shipped sets", |b| {
        b.iter(|| black_box(Library::shipped().sets.len()));
    });
    let base = profile(Profile::Identity, 1, Some(INSTRUCTIONS)).ir;
    let mut group = c.benchmark_group("sweep");
    group.throughput(Throughput::Elements(INSTRUCTIONS));
    group.sample_size(20);
    for (name, text) in [
        ("10 rules elsewhere", elsewhere(10)),
        ("10 rules here", many(10)),
        ("1000 rules here", many(1000)),
    ] {
        let library = library(&text);
        let mut ir = base.clone();
        group.bench_function(name, |b| {
            b.iter(|| assert_eq!(sweep(&mut ir, &library.sets[0]), 0));
        });
    }
    let shipped = Library::shipped();
    let identities = shipped.set("identities").unwrap();
    group.bench_function("identities", |b| {
        b.iter_batched(
            || base.clone(),
            |mut ir| {
                assert!(sweep(&mut ir, identities) > INSTRUCTIONS / 2);
                ir
            },
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(benches, rules);
criterion_main!(benches);
