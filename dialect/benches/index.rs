//! The memory index on one location: `fan`, `fan-wide` and `stride` of the workload list, and
//! growth.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)] // a test may fail so

use bir_dialect::analysis::access::{Footprint, StrideSet};
use bir_dialect::analysis::index::{
    Arena, Effect, Event, Flow, Frames, FunctionIndex, Live, Storage,
};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, parse};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Slices of 8 bytes of one location, written once each, then read.
fn fan(writers: u32, readers: u32, wide: bool) -> Storage {
    let whole = Footprint::block(128, i64::from(writers) * 8);
    let slice = |i: u32| Footprint {
        partitions: StrideSet::run(0, 128),
        bytes: StrideSet::run(i64::from(i) * 8, 8),
    };
    let footprints = (0..writers).map(slice).chain([whole.clone()]).collect();
    let writes = (0..writers).map(|i| Event::plain(i, Effect::WRITE, i));
    let reads = (0..readers).map(|i| {
        let print = if wide { writers } else { i % writers };
        Event::plain(writers + i, Effect::READ, print)
    });
    Storage::fixed(whole, footprints, writes.chain(reads).collect())
}

/// Every second column of 512 columns in rows of one partition each, in turn.
fn stride(events: u32) -> Storage {
    let mut footprints = Vec::new();
    for partition in 0..128 {
        for column in 0..2 {
            let bytes = StrideSet::strided(column * 4, 4, [(8, 256)]);
            footprints.push(Footprint {
                partitions: StrideSet::run(partition, 1),
                bytes: bytes.unwrap_or_else(StrideSet::empty),
            });
        }
    }
    let effect = |i| {
        if i / 256 % 2 == 0 {
            Effect::WRITE
        } else {
            Effect::READ
        }
    };
    let events = (0..events)
        .map(|i| Event::plain(i, effect(i), i % 256))
        .collect();
    Storage::fixed(Footprint::block(128, 2048), footprints, events)
}

/// A function of many locations: a tile is loaded, halved, read twice, and its result saved.
fn linear(tiles: usize) -> (Ir, Option<Op>) {
    let mut text = String::from("bir.module @m {\nbir.func @f {\n");
    text += "%x = alloc dram<128x512xf32> {kind = input}\n";
    text += "%y = alloc dram<128x512xf32> {kind = output}\n";
    for tile in 0..tiles {
        text += &format!("%a{tile} = alloc sbuf<128x512xf32>\n");
    }
    for tile in 0..tiles {
        text += &format!("load %a{tile}[0:128, 0:256] <- %x[0:128, 0:256]\n");
        text += &format!("load %a{tile}[0:128, 256:512] <- %x[0:128, 256:512]\n");
        text += &format!("activation exp %a{tile} <- %a{tile}\n");
        text += &format!("save %y <- %a{tile}\n");
    }
    text += "}\n}\n";
    let mut ir = new_ir();
    let mut diags = Diagnostics::default();
    let options = ParseOptions::default();
    parse(&text, 0..text.len(), &mut ir, options, &mut diags);
    let is_func = |&op: &Op| OpCode::of(&ir, op) == Some(OpCode::Func);
    let func = ir.walk().ops().find(is_func);
    (ir, func)
}

fn bench(c: &mut Criterion) {
    let flow = Flow::straight();
    let mut group = c.benchmark_group("index");
    group.sample_size(20);
    let mut run = |name: &str, storage: &Storage| {
        let events = storage.events.len() as u64;
        group.throughput(Throughput::Elements(events));
        group.bench_with_input(BenchmarkId::new(name, events), storage, |b, storage| {
            let make = || storage.clone();
            let build = |storage| Arena::build([storage], &flow);
            b.iter_batched(make, build, BatchSize::LargeInput);
        });
    };
    run("fan", &fan(21_504, 72_074, false));
    run("fan-wide", &fan(21_504, 72_074, true));
    run("stride", &stride(100_000));
    for scale in [1, 10, 100] {
        run("growth", &fan(1_000 * scale, 3_000 * scale, false));
    }
    group.finish();
    let mut group = c.benchmark_group("function");
    group.sample_size(20);
    for tiles in [250, 2_500, 25_000] {
        let (ir, Some(func)) = linear(tiles) else {
            continue;
        };
        group.throughput(Throughput::Elements(4 * tiles as u64));
        group.bench_function(BenchmarkId::new("linear", 4 * tiles), |b| {
            b.iter(|| FunctionIndex::build(&ir, func, Frames::Locations));
        });
        let index = FunctionIndex::build(&ir, func, Frames::Locations);
        group.bench_function(BenchmarkId::new("live", 4 * tiles), |b| {
            b.iter(|| Live::new(&index).peaks(&index));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
