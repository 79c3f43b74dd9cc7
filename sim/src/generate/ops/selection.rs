//! Choosing by masks, ranges and comparisons.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::Space;

use super::super::Generator;
use super::super::draft::Draft;
use super::COMPARE;

fn on_true_dtypes(g: &Generator<'_>, draft: &Draft) -> Vec<DType> {
    g.want(draft, "on_true", 1, 1)
        .dtypes
        .iter()
        .filter(|dtype| !matches!(dtype, DType::Tf32 | DType::I32 | DType::U32))
        .collect()
}

/// The two sides: numbers, tiles, or one element per partition.
fn sides(g: &mut Generator<'_>, draft: &mut Draft, parts: u64, elems: u64, false_is_column: bool) {
    let dtypes = on_true_dtypes(g, draft);
    match g.random.below(4) {
        0 => {
            let bits = g.number(DType::F32);
            g.literal(draft, "on_true", DType::F32, bits);
        }
        n => {
            let elems = if n == 1 { 1 } else { elems };
            let want = g.want(draft, "on_true", parts, elems).of(&dtypes);
            g.read_as(draft, "on_true", want);
        }
    }
    match g.random.below(3) {
        0 if !false_is_column => {
            g.read(draft, "on_false", parts, elems);
        }
        1 => {
            g.read(draft, "on_false", parts, 1);
        }
        _ => {
            let bits = g.number(DType::F32);
            g.literal(draft, "on_false", DType::F32, bits);
        }
    }
    if g.chance(4) {
        g.flag(draft, "reverse");
    }
}

pub(super) fn select(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Select);
    let (parts, elems) = g.shape();
    g.read(&mut draft, "pred", parts, elems);
    sides(g, &mut draft, parts, elems, false);
    g.write(&mut draft, "dst", parts, elems);
    g.emit(&mut draft);
}

pub(super) fn select_reduce(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::SelectReduce);
    let (parts, elems) = g.shape();
    g.read(&mut draft, "pred", parts, elems);
    sides(g, &mut draft, parts, elems, true);
    g.write(&mut draft, "dst", parts, elems);
    if g.chance(2) {
        g.word(&mut draft, "reduce_cmd", "reset");
        g.write(&mut draft, "reduce_res", parts, 1);
    }
    g.emit(&mut draft);
}

pub(super) fn range_select(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::RangeSelect);
    let src = g.unary(&mut draft);
    g.read(&mut draft, "bound0", src.parts, 1);
    g.read(&mut draft, "bound1", src.parts, 1);
    for attr in ["cmp0", "cmp1"] {
        let word = g.pick(COMPARE);
        g.word(&mut draft, attr, word);
    }
    if g.chance(2) {
        let start = g.random.below(100) as i64;
        g.int(&mut draft, "range_start", start);
    }
    g.write_or_in_place(&mut draft, "dst", &src);
    if g.chance(2) {
        g.word(&mut draft, "reduce_cmd", "reset");
        g.write(&mut draft, "reduce_res", src.parts, 1);
    }
    g.emit(&mut draft);
}

pub(super) fn affine_select(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::AffineSelect);
    let src = g.unary(&mut draft);
    let word = g.pick(COMPARE);
    g.word(&mut draft, "op", word);
    g.pattern(&mut draft, src.elems);
    let bits = g.number(DType::F32);
    g.literal(&mut draft, "on_false", DType::F32, bits);
    g.write_or_in_place(&mut draft, "dst", &src);
    g.emit(&mut draft);
}

pub(super) fn copy_predicated(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::CopyPredicated);
    let (parts, elems) = g.shape();
    let pred = g.read(&mut draft, "pred", parts, elems);
    let mut source = None;
    if g.chance(2) {
        let elems = if g.chance(3) { 1 } else { elems };
        source = Some(g.read(&mut draft, "on_true", parts, elems).dtype);
    }
    let mut want = g.want(&draft, "dst", parts, elems);
    if let Some(dtype) = source {
        want = want.of(&[dtype]);
    }
    let dst = g.update(&mut draft, "dst", want);
    if source.is_none() {
        let bits = g.number(dst.dtype);
        g.literal(&mut draft, "on_true", dst.dtype, bits);
    }
    if pred.space == Space::Sbuf && g.chance(4) {
        g.write(&mut draft, "pred_out", parts, elems);
    }
    if g.chance(4) {
        g.flag(&mut draft, "reverse");
    }
    g.emit(&mut draft);
}
