//! `unroll` against a direct reading of its definition: the instructions executed, and the bytes
//! each one accesses, are the same before and after, in the same order.

use bir_dialect::bir::access::{Access, Target};
use bir_dialect::bir::attrs::Accumulate;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_ORDER, names, order_terms};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Annot, Ir, Op, Value};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{PrintOptions, print};
use bir_passes::Factor;
use bir_passes::Unroll;
use bir_passes::manager::run_alone;
use bir_passes::options::OptionValue as _;
use bir_passes::pass::Changed;
use proptest::prelude::*;
use std::collections::HashMap;

fn read(text: &str) -> Ir {
    bir_dialect::read(text, Level::Default).unwrap()
}

fn check(ir: &Ir, diags: &mut Diagnostics, text: &str) {
    let options = VerifyOptions {
        level: Level::Default,
        ..VerifyOptions::default()
    };
    verify(ir, options, diags);
    let found: Vec<_> = diags.iter().map(|one| one.message.clone()).collect();
    assert!(!diags.has_errors(), "{found:?}\n{text}");
}

/// What is executed, one line per instruction: op, operands with their accesses, attributes.
fn trace(ir: &Ir) -> Vec<String> {
    let mut out = Vec::new();
    let mut indices: HashMap<Value, (i64, bool)> = HashMap::new();
    for module in ir.block_ops(ir.root_block()) {
        for op in children(ir, module) {
            for op in children(ir, op) {
                execute(ir, op, &mut indices, &mut out);
            }
        }
    }
    out
}

fn children(ir: &Ir, op: Op) -> Vec<Op> {
    let regions = ir.regions(op).iter();
    regions
        .flat_map(|&region| ir.blocks(region))
        .flat_map(|block| ir.block_ops(block))
        .collect()
}

fn execute(ir: &Ir, op: Op, indices: &mut HashMap<Value, (i64, bool)>, out: &mut Vec<String>) {
    match OpCode::of(ir, op) {
        Some(OpCode::Alloc) => {}
        Some(OpCode::Loop) => {
            let int = |name| ir.ctx.attr_int(ir.ctx.dict_get(ir.dict(op), name)?);
            let step = int(names::STEP).unwrap_or(1);
            let body = ir.entry(ir.regions(op)[0]).unwrap();
            let index = ir.args(body).next().unwrap();
            let (lower, upper) = (int(names::LOWER).unwrap(), int(names::UPPER).unwrap());
            let mut at = lower;
            while at < upper {
                indices.insert(index, (at, at == lower));
                for op in children(ir, op) {
                    execute(ir, op, indices, out);
                }
                at += step;
            }
        }
        Some(code) => {
            let mut line = code.def().name.to_owned();
            let role = code.def().indices_role() as u8;
            let used: Vec<(i64, bool)> = ir
                .operands(op)
                .iter()
                .filter(|operand| operand.role == role)
                .map(|operand| indices[&operand.value])
                .collect();
            for operand in ir
                .operands(op)
                .iter()
                .filter(|operand| operand.role != role)
            {
                let mem = MemType::get(&ir.ctx, ir.value_type(operand.value)).unwrap();
                let mut access = Access::resolve(&ir.ctx, &mem, operand.annot);
                for term in std::mem::take(&mut access.terms) {
                    let shift = term.coef * used[usize::from(term.index)].0;
                    match term.target {
                        Target::Offset => access.offset += shift,
                        Target::Partition => access.window.as_mut().unwrap().start += shift,
                    }
                }
                let name = ir.ctx.text(ir.value_name(operand.value).unwrap());
                line += &format!(" %{name}{access:?}");
                assert!(operand.annot != Annot::UNIT || access == Access::whole(&mem));
            }
            let accumulate = ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE);
            let accumulate = match Accumulate::get(&ir.ctx, accumulate).unwrap() {
                Accumulate::UnlessFirst(index) => !used[usize::from(index)].1,
                other => other == Accumulate::Yes,
            };
            line += &format!(" accumulate {accumulate}");
            for term in order_terms(ir.words_cell(COL_ORDER, op).unwrap_or_default()) {
                let terms = term.terms.iter();
                let sum: i64 = terms
                    .map(|&(index, coef)| coef * used[usize::from(index)].0)
                    .sum();
                line += &format!(" order {}", term.constant + sum);
            }
            out.push(line);
        }
        None => panic!("an unknown op"),
    }
}

#[derive(Clone, Debug)]
enum Stmt {
    Op(u8, [i64; 3]),
    Loop(i64, i64, i64, Vec<Stmt>),
}

fn statements() -> impl Strategy<Value = Vec<Stmt>> {
    let op = (0u8..4, [0i64..3, 0i64..3, 0i64..3]).prop_map(|(kind, coefs)| Stmt::Op(kind, coefs));
    let tree = op.prop_recursive(3, 12, 4, |inner| {
        let body = prop::collection::vec(inner, 1..4);
        (-2i64..3, 0i64..7, 1i64..4, body).prop_map(|(lower, size, step, body)| {
            Stmt::Loop(lower.max(0), lower.max(0) + size, step, body)
        })
    });
    prop::collection::vec(tree, 1..4)
}

fn write(stmts: &[Stmt], depth: usize, out: &mut String) {
    for stmt in stmts {
        match stmt {
            Stmt::Loop(lower, upper, step, body) => {
                *out += &format!("loop %i{depth} = {lower} to {upper} step {step} {{\n");
                write(body, depth + 1, out);
                *out += "}\n";
            }
            Stmt::Op(kind, coefs) => {
                let affine: String = (0..depth.min(3))
                    .filter(|&at| coefs[at] > 0)
                    .map(|at| format!("{}*%i{at} + ", coefs[at]))
                    .collect();
                *out += &match kind {
                    0 => format!("load %t <- %x[{affine}0 +: 128, :]\n"),
                    1 => format!(
                        "tensor_scalar add %t[:, {affine}1 +: 64] <- %u[:, {affine}2 +: 64], 1.0 {{order = [{affine}0, 7]}}\n"
                    ),
                    2 if depth > 0 => format!(
                        "matmult %p <- stationary %s[:, {affine}0 +: 128], moving %s {{accumulate = unless_first(%i{}), order = [{affine}5]}}\n",
                        depth - 1
                    ),
                    _ => format!("save %y[{affine}0 +: 128, :] <- %t\n"),
                };
            }
        }
    }
}

fn program(stmts: &[Stmt]) -> String {
    let mut text = "bir.module @m {\nbir.func @main {\n%x = alloc dram<512x128xf32> {kind = input}\n%y = alloc dram<512x128xf32> {kind = output}\n%t = alloc sbuf<128x128xf32>\n%u = alloc sbuf<128x128xf32>\n%s = alloc sbuf<128x256xbf16>\n%p = alloc psum<128x256xf32>\n".to_owned();
    write(stmts, 0, &mut text);
    text + "}\n}\n"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_instructions_executed_and_their_accesses_stay(
        stmts in statements(),
        factor in prop_oneof![Just("full".to_owned()), (1u64..6).prop_map(|f| f.to_string())],
        innermost in any::<bool>(),
    ) {
        let text = program(&stmts);
        let mut ir = read(&text);
        let before = trace(&ir);
        let printed = print(&ir, PrintOptions::default());
        let factor = Factor::parse(&factor).unwrap();
        let pass = Unroll { factor, innermost, ..Unroll::default() };
        let mut diags = Diagnostics::new();
        let changed = run_alone(pass, &mut ir, &mut diags);
        let after = print(&ir, PrintOptions::default());
        check(&ir, &mut diags, &after);
        prop_assert_eq!(changed == Changed::No, printed == after);
        prop_assert_eq!(&before, &trace(&ir), "{}\n{}", text, after);
        // Index operands are in their canonical order, so the text reads back to the same operations.
        let generic = PrintOptions { generic: true, ..PrintOptions::default() };
        prop_assert_eq!(print(&read(&after), generic), print(&ir, generic));
    }
}
