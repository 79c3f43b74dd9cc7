//! Time of the verifier per instruction, where instructions repeat and where no two accesses are equal.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use bir_dialect::bir::access::{Access, Pair, Window};
use bir_dialect::bir::attrs::number;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{names, new_ir, op_name};
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Annot, Block, Cursor, Dict, Ir, NewOp, NewOperand, Type, Value};
use bir_dialect::text::diag::Diagnostics;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn place(ir: &mut Ir, block: Block, code: OpCode, new: NewOp<'_>) -> bir_dialect::ir::Op {
    let op = ir.create(NewOp {
        name: op_name(code),
        ..new
    });
    ir.place(op, Cursor::End(block));
    op
}

fn alloc(ir: &mut Ir, block: Block, name: &str, space: Space, dims: &[u64]) -> (Value, Type) {
    let ty = MemType::intern(&mut ir.ctx, space, DType::F32, dims);
    let op = place(
        ir,
        block,
        OpCode::Alloc,
        NewOp {
            results: &[ty],
            ..NewOp::new(op_name(OpCode::Alloc))
        },
    );
    let value = ir.result(op).unwrap();
    ir.name_value(value, name);
    (value, ty)
}

/// `instructions` of load, activation, tensor_tensor, save; `distinct` gives each its own accesses.
fn module(instructions: usize, distinct: bool) -> Ir {
    let mut ir = new_ir();
    let root = ir.root_block();
    let named = |ir: &mut Ir, name: &str| -> Dict {
        let name = ir.ctx.string(name);
        ir.ctx.dict(&[(names::SYM_NAME, name)])
    };
    let dict = named(&mut ir, "m");
    let new = NewOp {
        regions: 1,
        dict,
        ..NewOp::new(op_name(OpCode::Module))
    };
    let module = place(&mut ir, root, OpCode::Module, new);
    let region = ir.regions(module)[0];
    let body = ir.append_block(region);
    let dict = named(&mut ir, "main");
    let new = NewOp {
        regions: 1,
        dict,
        ..NewOp::new(op_name(OpCode::Func))
    };
    let func = place(&mut ir, body, OpCode::Func, new);
    let region = ir.regions(func)[0];
    let block = ir.append_block(region);
    let (x, _) = alloc(&mut ir, block, "x", Space::Dram, &[4096, 4096]);
    let kind = ir.ctx.string("input");
    if let Some(op) = ir.def_op(x) {
        ir.set_attr(op, "kind", Some(kind));
    }
    let (y, _) = alloc(&mut ir, block, "y", Space::Dram, &[4096, 4096]);
    let (t, _) = alloc(&mut ir, block, "t", Space::Sbuf, &[128, 8192]);
    let (u, _) = alloc(&mut ir, block, "u", Space::Sbuf, &[128, 8192]);
    let zero = number(&mut ir.ctx, DType::F32, 0);
    let value_key = ir.ctx.str("value");
    let fill = ir.ctx.dict(&[(value_key, zero)]);
    for tile in [t, u] {
        let operands = [NewOperand {
            value: tile,
            role: 0,
            annot: Annot::UNIT,
        }];
        let new = NewOp {
            operands: &operands,
            dict: fill,
            ..NewOp::new(op_name(OpCode::Memset))
        };
        place(&mut ir, block, OpCode::Memset, new);
    }
    let func_word = ir.ctx.string("exp");
    let op_word = ir.ctx.string("add");
    let (func_key, op_key) = (ir.ctx.str("func"), ir.ctx.str("op"));
    let exp = ir.ctx.dict(&[(func_key, func_word)]);
    let add = ir.ctx.dict(&[(op_key, op_word)]);
    for i in 0..instructions {
        let shift = if distinct { i as i64 } else { (i % 64) as i64 };
        let chip = |ir: &mut Ir, value: Value, k: i64| -> Annot {
            let mem_ty = ir.value_type(value);
            let access = Access {
                dtype: DType::F32,
                recast: false,
                window: Some(Window {
                    start: 0,
                    count: 128,
                }),
                offset: (shift + k) % 7680,
                pairs: [Pair {
                    step: 1,
                    count: 256 + (shift / 7680) as u64 % 256,
                }]
                .into_iter()
                .collect(),
                terms: Default::default(),
            };
            let whole = Access::whole(&MemType::get(&ir.ctx, mem_ty).unwrap());
            access.intern(&mut ir.ctx, &whole).unwrap()
        };
        let dram = |ir: &mut Ir, value: Value| -> Annot {
            let mem_ty = ir.value_type(value);
            let count = 256 + (shift / 7680) as u64 % 256;
            let access = Access {
                dtype: DType::F32,
                recast: false,
                window: None,
                offset: shift % (4096 * 2048),
                pairs: [
                    Pair {
                        step: 4096,
                        count: 128,
                    },
                    Pair { step: 1, count },
                ]
                .into_iter()
                .collect(),
                terms: Default::default(),
            };
            let whole = Access::whole(&MemType::get(&ir.ctx, mem_ty).unwrap());
            access.intern(&mut ir.ctx, &whole).unwrap()
        };
        let (a, b) = (chip(&mut ir, t, 0), chip(&mut ir, u, 1));
        let operand = |value, role, annot| NewOperand { value, role, annot };
        let (code, operands, dict): (OpCode, Vec<NewOperand>, Dict) = match i % 4 {
            0 => {
                let from = dram(&mut ir, x);
                (
                    OpCode::Load,
                    vec![operand(t, 0, a), operand(x, 1, from)],
                    Dict::EMPTY,
                )
            }
            1 => (
                OpCode::Activation,
                vec![operand(u, 0, b), operand(t, 2, a)],
                exp,
            ),
            2 => (
                OpCode::TensorTensor,
                vec![operand(u, 0, b), operand(u, 1, b), operand(t, 2, a)],
                add,
            ),
            _ => {
                let to = dram(&mut ir, y);
                (
                    OpCode::Save,
                    vec![operand(y, 0, to), operand(u, 1, b)],
                    Dict::EMPTY,
                )
            }
        };
        let new = NewOp {
            operands: &operands,
            dict,
            ..NewOp::new(op_name(code))
        };
        place(&mut ir, block, code, new);
    }
    ir
}

fn verifier(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify");
    group.sample_size(10);
    for (name, distinct, level) in [
        ("repetitive", false, Level::Default),
        ("repetitive-full", false, Level::Full),
        ("distinct", true, Level::Default),
        ("distinct-full", true, Level::Full),
    ] {
        let options = VerifyOptions {
            level,
            ..VerifyOptions::default()
        };
        for size in [10_000, 100_000, 1_000_000] {
            let ir = module(size, distinct);
            let mut diags = Diagnostics::new();
            verify(&ir, options, &mut diags);
            assert!(diags.is_empty(), "{:?}", diags.iter().next());
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(format!("{name}/{size}"), |b| {
                b.iter(|| {
                    let mut diags = Diagnostics::new();
                    verify(black_box(&ir), options, &mut diags);
                    diags.errors()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, verifier);
criterion_main!(benches);
