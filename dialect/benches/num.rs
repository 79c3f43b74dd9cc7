//! Throughput of slice conversions (elements per second) and of number text (numbers per second).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

// The macros of criterion make public items without documentation.
#![allow(missing_docs)]

use std::hint::black_box;

use bir_dialect::bir::num::{
    DType, DTypeClass, convert, narrow_from_f32, parse, print, widen_to_f32,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const ELEMENTS: usize = 4096;

/// Values of every magnitude that matters, some subnormal in the narrow formats.
fn values() -> Vec<f32> {
    (0..ELEMENTS)
        .map(|i| ((i as f32) - 2000.0) * 0.5f32.powi((i % 23) as i32))
        .collect()
}

fn slices(c: &mut Criterion) {
    let values = values();
    let mut group = c.benchmark_group("slices");
    group.throughput(Throughput::Elements(ELEMENTS as u64));
    for dtype in DType::ALL.iter().copied() {
        if dtype.class() == DTypeClass::Packed {
            continue;
        }
        let mut bytes = vec![0; ELEMENTS * dtype.size_bytes() as usize];
        let mut wide = vec![0.0; ELEMENTS];
        group.bench_function(format!("narrow/{dtype}"), |b| {
            b.iter(|| narrow_from_f32(dtype, black_box(&values), &mut bytes));
        });
        group.bench_function(format!("widen/{dtype}"), |b| {
            b.iter(|| widen_to_f32(dtype, black_box(&bytes), &mut wide));
        });
    }
    group.finish();
}

fn text(c: &mut Criterion) {
    let mut group = c.benchmark_group("text");
    group.throughput(Throughput::Elements(1));
    for (dtype, number) in [
        (DType::F32, "1.0"),
        (DType::F32, "0.1"),
        (DType::F32, "3.1415927"),
        (DType::Bf16, "0.1"),
        (DType::Bf16, "3.14"),
        (DType::F16, "0.3333"),
        // A tie, which is the slow way.
        (DType::Bf16, "1.00390625"),
        (DType::I32, "12345"),
    ] {
        group.bench_function(format!("parse/{dtype}/{number}"), |b| {
            b.iter(|| parse(dtype, black_box(number)));
        });
        let bits = parse(dtype, number).unwrap_or_default();
        let mut out = String::new();
        group.bench_function(format!("print/{dtype}/{number}"), |b| {
            b.iter(|| {
                out.clear();
                print(dtype, black_box(bits), &mut out);
            });
        });
    }
    group.bench_function("convert/f32/bf16", |b| {
        b.iter(|| convert(DType::F32, DType::Bf16, black_box(0x3F80_8001)));
    });
    group.finish();
}

criterion_group!(benches, slices, text);
criterion_main!(benches);
