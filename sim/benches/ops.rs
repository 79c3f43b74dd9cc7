//! Time of single instructions, and of lowering, per element or instruction. Beside numpy: `peers.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a bench may fail so
#![allow(missing_docs)] // criterion makes undocumented functions

#[path = "../tests/semantics/common/text.rs"]
mod text;

use bir_dialect::bir::verify::Level;
use bir_dialect::ir::Ir;
use bir_sim::{Inputs, Options, Simulation};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use text::{clean, module};

/// Executions in one run: what comes before the loop hardly counts.
const TRIPS: u64 = 200;

fn program(body: &str) -> Ir {
    clean(&module("target = \"trn2\"", body), Level::Off)
}

fn looped(dtype: &str, instruction: &str) -> Ir {
    let tile = |name: &str| format!("%{name} = alloc sbuf<128x2048x{dtype}>\n");
    let tiles: String = ["a", "b", "t"].iter().map(|name| tile(name)).collect();
    program(&format!(
        "{tiles}%c = alloc sbuf<1x1xf32>\n%s = alloc sbuf<128x1xf32>\n%w = alloc sbuf<128x128xf32>\n\
         %m = alloc sbuf<128x512xf32>\n%p = alloc psum<128x512xf32>\n\
         iota %a {{offset = -1000, pattern = [[1, 2048]]}}\n\
         tensor_scalar multiply %a <- %a, 0.001\nmemset %b <- 0.5\nmemset %w <- 0.5\nmemset %m <- 0.5\n\
         memset %c <- 1.0\nloop %i = 0 to {TRIPS} {{\n{instruction}\n}}"
    ))
}

fn instructions(c: &mut Criterion) {
    const ELEMENTS: u64 = 128 * 2048;
    let rows: &[(&str, &str, &str, u64)] = &[
        ("dispatch", "f32", "tensor_scalar add %c <- %c, 1.0", 1),
        ("f32 copy", "f32", "tensor_copy %t <- %a", ELEMENTS),
        ("f32 add", "f32", "tensor_tensor add %t <- %a, %b", ELEMENTS),
        (
            "bf16 add",
            "bf16",
            "tensor_tensor add %t <- %a, %b",
            ELEMENTS,
        ),
        ("exp", "f32", "activation exp %t <- %a", ELEMENTS),
        ("tanh", "f32", "activation tanh %t <- %a", ELEMENTS),
        ("sigmoid", "f32", "activation sigmoid %t <- %a", ELEMENTS),
        ("gelu", "f32", "activation gelu %t <- %a", ELEMENTS),
        (
            "gelu, tanh form",
            "f32",
            "activation gelu_apprx_tanh %t <- %a",
            ELEMENTS,
        ),
        (
            "exp and sum",
            "f32",
            "activation exp %t, reduce add reset %s <- %a",
            ELEMENTS,
        ),
        (
            "reduce",
            "f32",
            "tensor_reduce add %s <- %a {axes = [1]}",
            ELEMENTS,
        ),
        (
            "scan",
            "f32",
            "tensor_tensor_scan multiply add %t <- %b, %a, initial 0.0",
            ELEMENTS,
        ),
        (
            "matmult, multiply-adds",
            "f32",
            "matmult %p <- stationary %w, moving %m",
            128 * 128 * 512,
        ),
    ];
    let mut group = c.benchmark_group("sim");
    group.sample_size(10);
    for &(name, dtype, instruction, elements) in rows {
        let ir = looped(dtype, instruction);
        let simulation = Simulation::new(&ir, Options::default()).expect("a program");
        group.throughput(Throughput::Elements(TRIPS * elements));
        group.bench_function(name, |b| {
            b.iter(|| {
                simulation
                    .run(&Inputs::new(), &mut |_| {})
                    .expect("a result")
            });
        });
    }
    group.finish();
}

fn lowering(c: &mut Criterion) {
    const COUNT: u64 = 10_000;
    let lines = "tensor_tensor add %a[:, 0:512] <- %a[:, 0:512], %b[:, 512:1024]\n";
    let ir = program(&format!(
        "%a = alloc sbuf<128x2048xf32>\n%b = alloc sbuf<128x2048xf32>\n{}",
        lines.repeat(COUNT as usize)
    ));
    let mut group = c.benchmark_group("sim");
    group.throughput(Throughput::Elements(COUNT));
    group.bench_function("lowering, instructions", |b| {
        b.iter(|| Simulation::new(&ir, Options::default()).expect("a program"));
    });
    group.finish();
}

criterion_group!(benches, instructions, lowering);
criterion_main!(benches);
