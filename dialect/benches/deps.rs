//! Dependences on the workloads of the budget list: FLOW (`build_fdeps`), ANTI and OUTPUT
//! (`anti_dependency_analyzer`), each with stating them in the program, and `dep_reduction`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)] // a test may fail so

use bir_dialect::analysis::deps::{Graph, Kinds, attach, attached, reduce};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::DepKind;
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::{Ir, Op};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn read(body: &str) -> (Ir, Op) {
    let text = format!("bir.module @m {{\nbir.func @f {{\n{body}}}\n}}\n");
    let ir = bir_dialect::read(&text, Level::Off).unwrap();
    let func = ir
        .walk()
        .ops()
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Func));
    (ir, func.unwrap())
}

/// Tiles loaded in halves, worked on and saved; a location every eighth instruction reads. In
/// `slots` slots of SBUF, if any.
fn linear(instructions: usize, slots: Option<usize>) -> String {
    let tiles = instructions / 4;
    let mut body = String::from("%x = alloc dram<128x512xf32> {kind = input}\n");
    body += "%y = alloc dram<128x512xf32> {kind = output}\n%w = alloc sbuf<128x512xf32>\n";
    for tile in 0..tiles {
        body += &format!("%a{tile} = alloc sbuf<128x512xf32>");
        if let Some(slots) = slots {
            body += &format!(" at [0, {}]", (1 + tile % slots) * 2048);
        }
        body.push('\n');
    }
    body += "load %w <- %x\n";
    for tile in 0..tiles {
        body += &format!("load %a{tile}[0:128, 0:256] <- %x[0:128, 0:256]\n");
        body += &format!("load %a{tile}[0:128, 256:512] <- %x[0:128, 256:512]\n");
        body += &match tile % 2 {
            0 => format!("tensor_tensor add %a{tile} <- %a{tile}, %w\n"),
            _ => format!("activation exp %a{tile} <- %a{tile}\n"),
        };
        body += &format!("save %y <- %a{tile}\n");
    }
    body
}

fn fan(writers: usize, readers: usize, wide: bool) -> String {
    let mut body = format!("%a = alloc dram<{writers}x2xf32>\n%o = alloc dram<{readers}x2xf32>\n");
    body += "%x = alloc dram<1x2xf32> {kind = input}\n";
    for at in 0..writers {
        body += &format!("dma_copy %a[{at}:{}, :] <- %x\n", at + 1);
    }
    for at in 0..readers {
        let (to, from) = (at + 1, at % writers);
        body += &match wide {
            true => format!("dma_copy %o[{at}:{to}, :] <- %a\n"),
            false => format!("dma_copy %o[{at}:{to}, :] <- %a[{from}:{}, :]\n", from + 1),
        };
    }
    body
}

/// The same with one temporary for all readers, so that each waits for the one before.
fn fan_in_turn(writers: usize, readers: usize, wide: bool) -> String {
    let mut body = format!("%a = alloc dram<{writers}x2xf32>\n%o = alloc dram<{writers}x2xf32>\n");
    body +=
        &format!("%x = alloc dram<1x2xf32> {{kind = input}}\n%t = alloc dram<{writers}x2xf32>\n");
    for at in 0..writers {
        body += &format!("dma_copy %a[{at}:{}, :] <- %x\n", at + 1);
    }
    for at in 0..readers {
        let from = at % writers;
        let (slice, held) = match wide {
            true => (String::new(), ""),
            false => (format!("[{from}:{}, :]", from + 1), "[0:1, :]"),
        };
        body += &format!("dma_copy %t{held} <- %a{slice}\ndma_copy %o{slice} <- %t{held}\n");
    }
    body
}

/// Stride-2 columns of single partitions, written and read in turn.
fn stride(instructions: usize) -> String {
    let mut body = String::from("%t = alloc sbuf<128x512xf32>\n%u = alloc sbuf<128x512xf32>\n");
    for at in 0..instructions {
        let (partition, column) = (at / 2 % 128, at % 2);
        let here = format!("[{partition}:{}, {column}:512:2]", partition + 1);
        body += &match at / 256 % 2 {
            0 => format!("memset %t{here} <- 0.0\n"),
            _ => format!("tensor_copy %u{here} <- %t{here}\n"),
        };
    }
    body
}

fn bench(c: &mut Criterion) {
    let flow = Kinds::of(&[DepKind::Flow]);
    let anti = Kinds::of(&[DepKind::Anti, DepKind::Output]);
    let workloads = [
        ("linear", linear(10_000, None)),
        ("linear", linear(137_000, None)),
        ("spill", linear(410_000, Some(100))),
        ("fan", fan(2_049, 2_049, false)),
        ("fan", fan(21_504, 72_074, false)),
        ("fan-wide", fan(21_504, 72_074, true)),
        ("fan-in-turn", fan_in_turn(2_049, 2_049, false)),
        ("fan-in-turn", fan_in_turn(21_504, 36_037, false)),
        ("fan-wide-in-turn", fan_in_turn(21_504, 36_037, true)),
        ("stride", stride(100_000)),
        ("million", linear(1_000_000, None)),
    ];
    for (name, body) in workloads {
        let (ir, func) = read(&body);
        let count = body.lines().filter(|line| !line.contains("alloc")).count() as u64;
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(count));
        for (pass, kinds) in [("build_fdeps", flow), ("anti", anti)] {
            group.bench_function(BenchmarkId::new(pass, count), |b| {
                let run = |mut ir: Ir| {
                    let graph = Graph::build(&ir, func, kinds);
                    attach(&mut ir, func, &graph, kinds);
                    ir
                };
                b.iter_batched(|| ir.clone(), run, BatchSize::PerIteration);
            });
            let graph = Graph::build(&ir, func, kinds);
            println!(
                "{name} {pass}: {} B per instruction",
                graph.heap_bytes() as u64 / count
            );
        }
        let mut stated = ir;
        for kinds in [flow, anti] {
            let graph = Graph::build(&stated, func, kinds);
            attach(&mut stated, func, &graph, kinds);
        }
        group.bench_function(BenchmarkId::new("dep_reduction", count), |b| {
            let run = |mut ir: Ir| {
                let reduced = reduce(&attached(&ir, func)).unwrap();
                attach(&mut ir, func, &reduced.graph, Kinds::ALL);
                ir
            };
            b.iter_batched(|| stated.clone(), run, BatchSize::PerIteration);
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
