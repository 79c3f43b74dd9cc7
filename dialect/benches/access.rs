//! The access algebra: what one question costs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)] // a test may fail so

use bir_dialect::analysis::access::{Footprint, StrideSet, Traversal, footprint};
use bir_dialect::bir::access::{Access, Pair, Window};
use bir_dialect::bir::num::DType;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn access(window: Option<(i64, u64)>, offset: i64, pairs: &[(i64, u64)]) -> Access {
    Access {
        dtype: DType::F32,
        recast: false,
        window: window.map(|(start, count)| Window { start, count }),
        offset,
        pairs: pairs
            .iter()
            .map(|&(step, count)| Pair { step, count })
            .collect(),
        terms: Default::default(),
    }
}

fn bench(c: &mut Criterion) {
    let tile = access(Some((0, 128)), 0, &[(1, 512)]);
    let part = access(Some((32, 32)), 64, &[(1, 64)]);
    let columns = access(Some((0, 128)), 1, &[(64, 8), (2, 16)]);
    let odd = access(Some((0, 128)), 0, &[(64, 8), (2, 16)]);
    let of = |a: &Access| footprint(a).unwrap_or_else(Footprint::empty);
    let (ft, fp, fc, fo) = (of(&tile), of(&part), of(&columns), of(&odd));
    c.bench_function("footprint/contiguous", |b| {
        b.iter(|| footprint(black_box(&tile)))
    });
    c.bench_function("footprint/strided", |b| {
        b.iter(|| footprint(black_box(&columns)))
    });
    c.bench_function("overlaps/contiguous", |b| {
        b.iter(|| black_box(&ft).overlaps(&fp))
    });
    c.bench_function("overlaps/strided", |b| {
        b.iter(|| black_box(&fc).overlaps(&fo))
    });
    c.bench_function("covers/contiguous", |b| {
        b.iter(|| black_box(&ft).covers(&fp))
    });
    c.bench_function("covers/strided", |b| b.iter(|| black_box(&ft).covers(&fc)));
    let far = |start, dims: &[(i64, u64)]| {
        StrideSet::strided(start, 4, dims.iter().copied()).unwrap_or_else(StrideSet::empty)
    };
    let (a, b) = (
        far(0, &[(1 << 20, 1 << 14), (64, 900)]),
        far(7, &[(999_984, 1 << 14)]),
    );
    c.bench_function("common/unrelated-strides", |x| {
        x.iter(|| black_box(&a).common(&b))
    });
    let dram = access(None, 128 * 512, &[(512, 128), (1, 512)]);
    let walks = [&tile, &part, &dram].map(Traversal::of);
    if let [Some(dst), Some(read), Some(src)] = &walks {
        c.bench_function("translate/load", |b| {
            b.iter(|| black_box(read).translate(dst, src, &[]))
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
