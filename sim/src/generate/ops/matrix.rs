//! The tensor engine.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::{Space, Target};

use super::super::Generator;
use super::super::draft::{Draft, Tile};
use super::super::features::Feature;

/// Elements of f32 in one bank of a partition.
const BANK: u64 = 512;

fn dtypes(g: &mut Generator<'_>) -> &'static [DType] {
    match g.random.below(4) {
        0 => &[DType::F32, DType::Tf32],
        1 => &[DType::F8E5M2, DType::F8E4M3],
        _ => &[DType::Bf16, DType::F16],
    }
}

/// A PSUM tile of its own: what a group of instructions accumulates in.
fn group_tile(g: &mut Generator<'_>, dtype: DType, m: u64, n: u64) -> Tile {
    let at = g.allocate(Space::Psum, dtype, m, n, &[]);
    g.whole(at)
}

/// One `matmult` that overwrites, and some that add.
pub(super) fn matmult(g: &mut Generator<'_>) {
    let m = g.pick(&[128, 64, 32, 7]).min(g.config.max_elements.max(1));
    let n = g.width(1).min(BANK);
    let of = dtypes(g);
    let narrow = g.target == Target::Trn3 && g.chance(4);
    let dtype = if narrow { DType::Bf16 } else { DType::F32 };
    let tile = group_tile(g, dtype, m, n);
    let more = if g.uses(Feature::AccumulationGroup, 2) {
        g.between(1, 3)
    } else {
        0
    };
    for step in 0..=more {
        let k = g.pick(&[128, 64, 32, 1]);
        let mut draft = Draft::new(OpCode::Matmult);
        for (role, elems) in [("stationary", m), ("moving", n)] {
            let want = g.want(&draft, role, k, elems).of(of);
            g.read_as(&mut draft, role, want);
        }
        draft.tile(
            "dst",
            Tile {
                defines: tile.defines && step == 0,
                ..tile
            },
        );
        if step > 0 {
            g.flag(&mut draft, "accumulate");
        }
        g.emit(&mut draft);
    }
}

pub(super) fn matmult_sparse(g: &mut Generator<'_>) {
    let m = g.pick(&[64, 32, 8]).min(g.config.max_elements.max(1));
    let n = g.width(1).min(BANK);
    let ratio = g.between(1, 4);
    let k = g.pick(&[128, 64, 32]);
    let mut draft = Draft::new(OpCode::MatmultSparse);
    for (role, elems) in [("stationary", m), ("moving", n * ratio)] {
        let want = g.want(&draft, role, k, elems).of(&[DType::Bf16]);
        g.read_as(&mut draft, role, want);
    }
    let tags = g.want(&draft, "tags", k, m.div_ceil(4));
    let tags = g.tags(tags.parts, tags.elems, ratio);
    draft.tile("tags", tags);
    let tile = group_tile(g, DType::F32, m, n);
    draft.tile("dst", tile);
    g.int(&mut draft, "ratio", ratio as i64);
    g.emit(&mut draft);
}

pub(super) fn quantize_mx(g: &mut Generator<'_>) {
    quantised(g);
}

/// A tile of packed data, and its scales.
fn quantised(g: &mut Generator<'_>) -> (Tile, Tile) {
    let mut draft = Draft::new(OpCode::QuantizeMx);
    let parts = g.pick(&[32, 64, 128]);
    let elems = g.width(2).min(64) * 4;
    g.read(&mut draft, "src", parts, elems);
    quantise_into(g, draft, parts, elems / 4)
}

fn quantise_into(g: &mut Generator<'_>, mut draft: Draft, parts: u64, elems: u64) -> (Tile, Tile) {
    let dtype = g.pick(&[DType::F8E4M3FNx4, DType::F8E5M2x4]);
    let data = g.allocate(Space::Sbuf, dtype, parts, elems, &[]);
    draft.tile("dst", g.whole(data));
    // Scales lie in a few partitions of each group of 32, so the tile is filled first.
    let scale = g.allocate(Space::Sbuf, DType::U8, parts, elems, &[]);
    g.fill_with(g.whole(scale), 127);
    draft.tile("scale", g.whole(scale));
    g.emit(&mut draft);
    (g.whole(data), g.whole(scale))
}

/// Two quantised tiles, multiplied.
pub(super) fn matmult_mx(g: &mut Generator<'_>) {
    let parts = g.pick(&[32, 64, 128]);
    let n = g.width(1).min(BANK);
    let m = g.pick(&[2, 16, 64]);
    let mut sides = Vec::new();
    for elems in [m, n] {
        let mut draft = Draft::new(OpCode::QuantizeMx);
        g.read(&mut draft, "src", parts, elems * 4);
        sides.push(quantise_into(g, draft, parts, elems));
    }
    let mut draft = Draft::new(OpCode::MatmultMx);
    for ((data, scale), (role, scale_role)) in sides.into_iter().zip([
        ("stationary", "stationary_scale"),
        ("moving", "moving_scale"),
    ]) {
        draft.tile(role, data);
        draft.tile(scale_role, scale);
    }
    let tile = group_tile(g, DType::F32, m, n);
    draft.tile("dst", tile);
    g.emit(&mut draft);
}

impl Generator<'_> {
    /// Positions below `4 * ratio`, four in an element.
    fn tags(&mut self, parts: u64, elems: u64, ratio: u64) -> Tile {
        let at = self.allocate(Space::Sbuf, DType::U16, parts, elems, &[]);
        let digit = self.random.below(4 * ratio);
        self.fill_with(self.whole(at), digit * 0x1111);
        self.whole(at)
    }
}
