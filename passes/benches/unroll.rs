//! Full unrolling per produced instruction; budgets 1 µs and 1 KB.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so
#![allow(missing_docs)] // criterion makes undocumented functions

use std::path::Path;

use bir_dialect::bir::verify::Level;
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_passes::Unroll;
use bir_passes::instrument::instruction_count;
use bir_passes::manager::run_alone;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

fn read(text: &str) -> Ir {
    bir_dialect::read(text, Level::Off).unwrap()
}

fn unrolled(ir: &Ir) -> Ir {
    let mut ir = ir.clone();
    run_alone(Unroll::default(), &mut ir, &mut Diagnostics::new());
    ir
}

/// A million instructions from three nested loops.
fn million() -> String {
    let mut text = String::from(
        "bir.module @m {\nbir.func @main {\n%x = alloc dram<1024x512xf32> {kind = input}\n%t = alloc sbuf<128x512xf32>\n%w = alloc sbuf<128x1024xf32>\nloop %k = 0 to 250 {\nloop %i = 0 to 8 {\nloop %j = 0 to 125 {\n",
    );
    for _ in 0..2 {
        text += "load %t <- %x[128*%i +: 128, :]\n";
        text += "tensor_scalar add %w[:, 4*%j +: 512] <- %t, 1.0\n";
    }
    text + "}\n}\n}\n}\n}\n"
}

fn unroll(c: &mut Criterion) {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test/kernels");
    let mut group = c.benchmark_group("unroll");
    for name in ["attention", "matmul", "mamba"] {
        let text = std::fs::read_to_string(kernels.join(name).with_extension("bir"));
        let Ok(text) = text else { continue };
        let ir = read(&text);
        group.throughput(Throughput::Elements(instruction_count(&unrolled(&ir))));
        group.bench_function(name, |b| {
            b.iter_batched(
                || ir.clone(),
                |mut ir| {
                    run_alone(Unroll::default(), &mut ir, &mut Diagnostics::new());
                    ir
                },
                BatchSize::LargeInput,
            );
        });
    }
    let ir = read(&million());
    let after = unrolled(&ir);
    let count = instruction_count(&after);
    let bytes = (after.heap_bytes() - ir.heap_bytes()) as u64 / count;
    #[allow(clippy::print_stdout)]
    {
        println!("unroll/million: {count} instructions, {bytes} bytes each");
    }
    group.sample_size(10);
    group.throughput(Throughput::Elements(count));
    group.bench_function("million", |b| {
        b.iter_batched(
            || ir.clone(),
            |mut ir| {
                run_alone(Unroll::default(), &mut ir, &mut Diagnostics::new());
                ir
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, unroll);
criterion_main!(benches);
