//! Elementwise arithmetic.

use bir_dialect::bir::attrs::number;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{ACTIVATION_FUNCS, INTS, OpCode};
use bir_dialect::bir::space::{DTypeSet, Engine, Target};

use super::super::Generator;
use super::super::draft::{Draft, Tile};
use super::super::features::Feature;
use super::{ARITHMETIC, BITWISE};

fn function(g: &mut Generator<'_>, draft: &mut Draft) -> &'static str {
    let func = g.pick(ACTIVATION_FUNCS.words);
    g.word(draft, "func", func);
    if func == "prelu" && g.chance(2) {
        let name = g.ir.ctx.str("alpha");
        let bits = g.plain_number();
        let attr = number(&mut g.ir.ctx, DType::F32, bits);
        draft.attr(name, attr);
    }
    func
}

fn scale_and_bias(g: &mut Generator<'_>, draft: &mut Draft, func: &str, parts: u64) {
    if g.chance(2) {
        g.scalar(draft, "scale", parts);
    }
    if g.chance(2) || g.target == Target::Trn1 && func == "reciprocal" {
        return;
    }
    if g.target > Target::Trn1 && g.chance(2) {
        let bits = g.number(DType::F32);
        g.literal(draft, "bias", DType::F32, bits);
        return;
    }
    let want = g.want(draft, "bias", parts, 1);
    g.read_as(draft, "bias", want.but(DTypeSet::of(&[DType::Tf32])));
}

pub(super) fn activation(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Activation);
    let src = g.unary(&mut draft);
    let func = function(g, &mut draft);
    scale_and_bias(g, &mut draft, func, src.parts);
    let dst = g.write_or_in_place(&mut draft, "dst", &src);
    if g.chance(4) {
        let sums = g.write(&mut draft, "reduce_res", src.parts, 1);
        g.word(&mut draft, "reduce", "add");
        g.word(&mut draft, "reduce_cmd", "reset");
        g.emit(&mut draft);
        let settled = |tile: &Tile| Tile {
            defines: false,
            ..*tile
        };
        let (dst, sums) = (settled(&dst), settled(&sums));
        g.again_accumulating(
            |g, again| {
                again.tile("src", src);
                again.tile("dst", dst);
                again.tile("reduce_res", sums);
                g.word(again, "func", "copy");
                g.word(again, "reduce", "add");
            },
            OpCode::Activation,
        );
        return;
    }
    g.emit(&mut draft);
}

pub(super) fn activation_reduce(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::ActivationReduce);
    let src = g.unary(&mut draft);
    let func = function(g, &mut draft);
    scale_and_bias(g, &mut draft, func, src.parts);
    g.write_or_in_place(&mut draft, "dst", &src);
    g.write(&mut draft, "reduce_res", src.parts, 1);
    g.emit(&mut draft);
}

pub(super) fn activate2(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Activate2);
    let src = g.unary(&mut draft);
    let (op0, op1) = g.pick(&[
        ("multiply", "add"),
        ("multiply", "subtract"),
        ("multiply", "bypass"),
        ("add", "bypass"),
        ("subtract", "bypass"),
        ("bypass", "bypass"),
    ]);
    function(g, &mut draft);
    g.word(&mut draft, "op0", op0);
    g.word(&mut draft, "op1", op1);
    let mut first = None;
    for (role, op, reverse) in [("operand0", op0, "reverse0"), ("operand1", op1, "reverse1")] {
        if op == "bypass" {
            continue;
        }
        if g.chance(2) {
            let bits = g.number(DType::F32);
            g.literal(&mut draft, role, DType::F32, bits);
        } else {
            let mut want = g.want(&draft, role, src.parts, 1);
            if let Some(dtype) = first {
                want = want.of(&[dtype]);
            }
            first = Some(g.read_as(&mut draft, role, want).dtype);
        }
        if g.chance(4) {
            g.flag(&mut draft, reverse);
        }
    }
    g.write_or_in_place(&mut draft, "dst", &src);
    if g.chance(3) {
        g.write(&mut draft, "reduce_res", src.parts, 1);
        let how = g.pick(&["add", "max", "min", "abs_max", "abs_min"]);
        g.word(&mut draft, "reduce", how);
        g.word(&mut draft, "reduce_cmd", "reset");
    }
    g.emit(&mut draft);
}

/// An activation that resets the accumulator, and the read-out.
pub(super) fn read_activation_accumulator(g: &mut Generator<'_>) {
    if !g.may(Feature::Accumulator) {
        return activation(g);
    }
    let elems = g.width(1);
    // Accumulators belong to partitions: both instructions name all of them.
    let mut draft = Draft::new(OpCode::Activation);
    g.read(&mut draft, "src", 128, elems);
    g.write(&mut draft, "dst", 128, elems);
    g.word(&mut draft, "func", "square");
    g.write(&mut draft, "reduce_res", 128, 1);
    g.word(&mut draft, "reduce", "add");
    g.word(&mut draft, "reduce_cmd", "reset");
    g.emit(&mut draft);
    let mut draft = Draft::new(OpCode::ReadActivationAccumulator);
    g.write(&mut draft, "dst", 128, 1);
    g.counts.feature(Feature::Accumulator);
    g.emit(&mut draft);
}

pub(super) fn tensor_tensor(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorTensor);
    let (parts, elems) = g.shape();
    match g.random.below(8) {
        0 => {
            bit_tiles(g, &mut draft, &["lhs", "rhs"], parts, elems);
            let word = g.pick(BITWISE);
            g.word(&mut draft, "op", word);
        }
        1 if g.may(Feature::Engine) => {
            // Exact on the pool engine.
            g.on(&mut draft, Engine::Pool);
            let word = g.pick(&[
                "add", "subtract", "multiply", "max", "min", "less", "mod_int",
            ]);
            g.word(&mut draft, "op", word);
            for role in ["lhs", "rhs", "dst"] {
                let want = g
                    .want(&draft, role, parts, elems)
                    .of(&[DType::I32, DType::U32]);
                if role == "dst" {
                    g.write_as(&mut draft, role, want);
                } else {
                    g.read_as(&mut draft, role, want);
                }
            }
        }
        2 if g.may(Feature::Engine) => {
            g.on(&mut draft, Engine::Pool);
            g.word(&mut draft, "op", "power");
            g.read(&mut draft, "lhs", parts, elems);
            g.read(&mut draft, "rhs", parts, elems);
            g.write(&mut draft, "dst", parts, elems);
        }
        _ => {
            let word = g.generation_word(ARITHMETIC);
            g.word(&mut draft, "op", word);
            let lhs = g.read(&mut draft, "lhs", parts, elems);
            g.read(&mut draft, "rhs", parts, elems);
            g.write_or_in_place(&mut draft, "dst", &lhs);
        }
    }
    g.emit(&mut draft);
}

/// Integer sources of one width, and a destination.
fn bit_tiles(g: &mut Generator<'_>, draft: &mut Draft, roles: &[&str], parts: u64, elems: u64) {
    let size = g.pick(&[1, 2, 4]);
    let dtypes: Vec<DType> = INTS
        .iter()
        .filter(|dtype| dtype.size_bytes() == size && *dtype != DType::Bool)
        .collect();
    for role in roles {
        let want = g.want(draft, role, parts, elems).of(&dtypes);
        g.read_as(draft, role, want);
    }
    let want = g.want(draft, "dst", parts, elems).of(&dtypes);
    g.write_as(draft, "dst", want);
}

/// Operations of one operand the vector engine has.
const UNARY: &[&str] = &["abs", "square", "relu", "reciprocal", "bypass"];

/// A number, or one f32 per partition.
fn step_scalar(g: &mut Generator<'_>, draft: &mut Draft, role: &'static str, parts: u64) {
    if g.chance(2) {
        let bits = g.number(DType::F32);
        g.literal(draft, role, DType::F32, bits);
    } else {
        let want = g.want(draft, role, parts, 1).of(&[DType::F32]);
        g.read_as(draft, role, want);
    }
}

fn steps(g: &mut Generator<'_>, draft: &mut Draft, src: &Tile, tiles_only: bool) {
    let two = g.chance(2);
    for (attr, role, reverse) in [
        ("op0", "operand0", "reverse0"),
        ("op1", "operand1", "reverse1"),
    ] {
        if attr == "op1" && !two {
            break;
        }
        if !tiles_only && g.chance(6) {
            let word = g.pick(UNARY);
            g.word(draft, attr, word);
            continue;
        }
        let word = g.generation_word(ARITHMETIC);
        g.word(draft, attr, word);
        if tiles_only {
            let want = g.want(draft, role, src.parts, 1).of(&[DType::F32]);
            g.read_as(draft, role, want);
        } else {
            step_scalar(g, draft, role, src.parts);
        }
        if g.chance(6) {
            g.flag(draft, reverse);
        }
    }
}

pub(super) fn tensor_scalar(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorScalar);
    let (parts, elems) = g.shape();
    match g.random.below(8) {
        0 => {
            bit_tiles(g, &mut draft, &["src"], parts, elems);
            let word = g.pick(BITWISE);
            g.word(&mut draft, "op0", word);
            let dtype = draft.inputs().next().map_or(DType::I32, |tile| tile.dtype);
            let bits = g.random.below(8);
            g.literal(&mut draft, "operand0", dtype, bits);
        }
        1 if g.target > Target::Trn1 && g.may(Feature::Engine) => {
            g.on(&mut draft, Engine::Act);
            let src = g.unary(&mut draft);
            g.word(&mut draft, "op0", "multiply");
            step_scalar(g, &mut draft, "operand0", src.parts);
            if g.chance(2) {
                g.word(&mut draft, "op1", "add");
                step_scalar(g, &mut draft, "operand1", src.parts);
            }
            g.write_or_in_place(&mut draft, "dst", &src);
        }
        2 if g.may(Feature::Engine) => {
            g.on(&mut draft, Engine::Pool);
            let src = g.unary(&mut draft);
            if g.chance(2) {
                g.word(&mut draft, "op0", "rsqrt");
            } else {
                g.word(&mut draft, "op0", "power");
                let bits = g.plain_number();
                g.literal(&mut draft, "operand0", DType::F32, bits);
            }
            g.write_or_in_place(&mut draft, "dst", &src);
        }
        _ => {
            let src = g.unary(&mut draft);
            steps(g, &mut draft, &src, false);
            g.write_or_in_place(&mut draft, "dst", &src);
        }
    }
    g.emit(&mut draft);
}

pub(super) fn tensor_scalar_ptr(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorScalarPtr);
    let src = g.unary(&mut draft);
    steps(g, &mut draft, &src, true);
    g.write_or_in_place(&mut draft, "dst", &src);
    g.emit(&mut draft);
}

/// Two instructions: one keeps its scalars, the next takes them.
pub(super) fn tensor_scalar_cache(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorScalarCache);
    let src = g.unary(&mut draft);
    let (op0, op1) = (
        g.pick(&["add", "multiply", "max"]),
        g.pick(&["add", "multiply", "min"]),
    );
    g.word(&mut draft, "op0", op0);
    g.word(&mut draft, "op1", op1);
    let whole = |g: &mut Generator<'_>, draft: &mut Draft, role: &'static str| {
        let bits = g.number(DType::F32);
        g.literal(draft, role, DType::F32, bits);
    };
    whole(g, &mut draft, "operand0");
    whole(g, &mut draft, "operand1");
    g.flag(&mut draft, "cache_write");
    g.write(&mut draft, "dst", src.parts, src.elems);
    g.emit(&mut draft);
    let mut draft = Draft::new(OpCode::TensorScalarCache);
    draft.tile("src", src);
    g.word(&mut draft, "op0", op0);
    g.word(&mut draft, "op1", op1);
    g.flag(&mut draft, "cache_read");
    g.write(&mut draft, "dst", src.parts, src.elems);
    g.emit(&mut draft);
}

pub(super) fn tensor_scalar_addr(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorScalarAddr);
    let (parts, elems) = g.shape();
    let dtype = g.pick(&[DType::I32, DType::U32]);
    let want = g.want(&draft, "src", parts, elems).of(&[dtype]);
    g.read_as(&mut draft, "src", want);
    let two = g.chance(2);
    for (attr, role) in [("op0", "operand0"), ("op1", "operand1")] {
        if attr == "op1" && !two {
            break;
        }
        let word = g.pick(&["add", "subtract", "multiply"]);
        g.word(&mut draft, attr, word);
        if attr == "op1" || g.chance(2) {
            let bits = g.number(dtype);
            g.literal(&mut draft, role, dtype, bits);
        } else {
            let want = g.want(&draft, role, parts, 1).of(&[dtype]);
            g.read_as(&mut draft, role, want);
        }
    }
    let want = g.want(&draft, "dst", parts, elems).of(&[dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn scalar_tensor_tensor(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::ScalarTensorTensor);
    let src = g.unary(&mut draft);
    g.read(&mut draft, "other", src.parts, src.elems);
    g.scalar(&mut draft, "scalar", src.parts);
    for attr in ["op0", "op1"] {
        let word = g.generation_word(ARITHMETIC);
        g.word(&mut draft, attr, word);
    }
    if g.chance(4) {
        let which = g.pick(&["reverse0", "reverse1"]);
        g.flag(&mut draft, which);
    }
    g.write_or_in_place(&mut draft, "dst", &src);
    g.emit(&mut draft);
}

pub(super) fn reciprocal(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Reciprocal);
    let src = g.unary(&mut draft);
    g.write_or_in_place(&mut draft, "dst", &src);
    g.emit(&mut draft);
}

pub(super) fn exponential(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Exponential);
    let (parts, elems) = g.shape();
    let want = g.want(&draft, "src", parts, elems);
    let src = g.read_as(&mut draft, "src", want.but(DTypeSet::of(&[DType::Tf32])));
    if g.chance(2) {
        g.scalar(&mut draft, "max", src.parts);
    }
    g.write_or_in_place(&mut draft, "dst", &src);
    if g.chance(3) {
        g.write(&mut draft, "reduce_res", src.parts, 1);
        if g.chance(2) {
            g.word(&mut draft, "reduce_cmd", "reset");
        } else {
            g.word(&mut draft, "reduce_cmd", "load");
            g.scalar(&mut draft, "init", src.parts);
        }
    }
    g.emit(&mut draft);
}

pub(super) fn dropout(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Dropout);
    let src = g.unary(&mut draft);
    let prob = g.pick(&[0.0f32, 0.25, 0.5, 1.0]);
    g.literal(&mut draft, "prob", DType::F32, u64::from(prob.to_bits()));
    let want = g.want(&draft, "dst", src.parts, src.elems).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}
