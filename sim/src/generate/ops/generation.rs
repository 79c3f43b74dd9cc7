//! Gathers, sequences, random numbers.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::{DTypeSet, Engine, Space, Target};

use super::super::Generator;
use super::super::draft::Draft;
use super::super::features::Feature;

pub(super) fn local_gather(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::LocalGather);
    let parts = g.pick(&[16, 32, 64, 128]);
    let width = g.pick(&[1, 2, 4]);
    let elems = g.width(1).max(width);
    let src = g.read(&mut draft, "src", parts, elems);
    let columns = g.between(1, 4);
    let count = g.between(1, columns * 16);
    let index = g.index_tile(
        DTypeSet::of(&[DType::U16]),
        parts,
        columns,
        elems - width + 1,
    );
    draft.tile("index", index);
    g.int(&mut draft, "count", count as i64);
    if width != 1 {
        g.int(&mut draft, "width", width as i64);
    }
    let want = g.want(&draft, "dst", parts, count * width).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn n_gather(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::NGather);
    let (parts, elems) = g.shape();
    let src = g.read(&mut draft, "src", parts, elems);
    let columns = g.width(1);
    let index = g.index_tile(DTypeSet::of(&[DType::U32]), parts, columns, elems);
    draft.tile("index", index);
    let want = g.want(&draft, "dst", parts, columns).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn sequence_bounds(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::SequenceBounds);
    let elems = g.width(1);
    let src = g.read(&mut draft, "src", 1, elems);
    let want = g.want(&draft, "dst", 1, 2 * elems).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn nonzero_with_count(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::NonzeroWithCount);
    let parts = g.pick(&[128, 32, 16]);
    let elems = g.width(1);
    g.read(&mut draft, "src", parts, elems);
    let want = g.want(&draft, "dst", parts, elems + 1);
    g.update(&mut draft, "dst", want);
    if g.chance(2) {
        g.int(&mut draft, "offset", 16);
        g.int(&mut draft, "padding", -1);
    }
    g.emit(&mut draft);
}

/// The default engine, or the pool engine where it has the op.
fn rng_engine(g: &mut Generator<'_>, draft: &mut Draft) {
    if g.target > Target::Trn1 && g.may(Feature::Engine) && g.chance(3) {
        g.on(draft, Engine::Pool);
    }
}

pub(super) fn rng(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Rng);
    rng_engine(g, &mut draft);
    let (parts, elems) = g.shape();
    g.write(&mut draft, "dst", parts, elems);
    g.emit(&mut draft);
}

pub(super) fn rand2(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Rand2);
    let (parts, elems) = g.shape();
    g.literal(
        &mut draft,
        "low",
        DType::F32,
        u64::from((-1.0f32).to_bits()),
    );
    let high = g.pick(&[1.0f32, 0.5, 3.0]);
    g.literal(&mut draft, "high", DType::F32, u64::from(high.to_bits()));
    g.write(&mut draft, "dst", parts, elems);
    g.emit(&mut draft);
}

pub(super) fn set_rng_seed(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::SetRngSeed);
    g.read(&mut draft, "src", 1, 1);
    g.emit(&mut draft);
}

/// Words of random state an engine has.
fn state_words(g: &mut Generator<'_>, draft: &mut Draft) -> u64 {
    if g.target == Target::Trn3 && g.may(Feature::Engine) && g.chance(2) {
        g.on(draft, Engine::Dve);
        24
    } else {
        6
    }
}

pub(super) fn rand_set_state(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::RandSetState);
    let words = state_words(g, &mut draft);
    g.read(&mut draft, "src", 128, words);
    g.emit(&mut draft);
}

pub(super) fn rand_get_state(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::RandGetState);
    let words = state_words(g, &mut draft);
    let want = g.want(&draft, "dst", 128, words).within(&[Space::Sbuf]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}
