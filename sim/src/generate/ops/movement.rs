//! Fills, copies, shuffles.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{NUMERIC, OpCode};
use bir_dialect::bir::space::{DTypeSet, Engine, Space, Target};

use super::super::Generator;
use super::super::draft::{Draft, Tile};
use super::super::features::Feature;
use super::super::part::Pairs;
use super::super::tiles::Want;

impl Generator<'_> {
    /// `memset` of a tile.
    pub(in super::super) fn fill(&mut self, tile: Tile) {
        let dtype = tile.dtype;
        let bits = self.number(dtype);
        self.fill_with(tile, bits);
    }

    /// `memset` of a tile with a number.
    pub(in super::super) fn fill_with(&mut self, tile: Tile, bits: u64) {
        let mut draft = Draft::new(OpCode::Memset);
        if tile.space == Space::Sbuf && self.may(Feature::Engine) && self.chance(4) {
            self.on(&mut draft, Engine::Pool);
        }
        let dtype = tile.dtype;
        draft.tile("dst", tile);
        self.literal(&mut draft, "value", dtype, bits);
        self.emit(&mut draft);
    }

    /// `iota` of a tile in SBUF.
    pub(in super::super) fn ramp(&mut self, tile: Tile) {
        let mut draft = Draft::new(OpCode::Iota);
        let elems = tile.elems;
        draft.tile("dst", tile);
        self.pattern(&mut draft, elems);
        self.emit(&mut draft);
    }

    /// `pattern`, `offset` and `channel_multiplier` over so many elements.
    pub(super) fn pattern(&mut self, draft: &mut Draft, elems: u64) {
        let step = |g: &mut Self| g.random.below(7) as i64 - 3;
        let divisor = self.divisor(elems);
        if divisor > 1 && self.chance(2) {
            let (outer, inner) = (step(self), step(self));
            let (count, rest) = (divisor as i64, (elems / divisor) as i64);
            self.lists(draft, "pattern", &[&[outer, count], &[inner, rest]]);
        } else {
            let inner = step(self);
            self.lists(draft, "pattern", &[&[inner, elems as i64]]);
        }
        if self.chance(2) {
            let offset = self.random.below(200) as i64 - 100;
            self.int(draft, "offset", offset);
        }
        if self.chance(2) {
            let by = step(self);
            self.int(draft, "channel_multiplier", by);
        }
    }
}

fn engine_for_copy(g: &mut Generator<'_>, draft: &mut Draft) {
    match g.random.below(6) {
        _ if !g.may(Feature::Engine) => {}
        0 => g.on(draft, Engine::Pool),
        1 if g.target > Target::Trn1 => g.on(draft, Engine::Act),
        _ => {}
    }
}

/// Dtypes a copy converts between; the others are only moved.
fn is_plain(dtype: DType) -> bool {
    NUMERIC.has(dtype)
}

fn copy(g: &mut Generator<'_>, code: OpCode) {
    let mut draft = Draft::new(code);
    engine_for_copy(g, &mut draft);
    let src = g.unary(&mut draft);
    if is_plain(src.dtype) {
        let want = Want {
            dtypes: NUMERIC,
            ..g.want(&draft, "dst", src.parts, src.elems)
        };
        g.write_as(&mut draft, "dst", want);
    } else {
        let want = g.want(&draft, "dst", src.parts, src.elems).of(&[src.dtype]);
        g.write_as(&mut draft, "dst", want);
    }
    g.emit(&mut draft);
}

pub(super) fn memset(g: &mut Generator<'_>) {
    let draft = Draft::new(OpCode::Memset);
    let (parts, elems) = g.shape();
    let want = g.want(&draft, "dst", parts, elems);
    let tile = g.destination(want);
    g.fill(tile);
}

pub(super) fn iota(g: &mut Generator<'_>) {
    let draft = Draft::new(OpCode::Iota);
    let (parts, elems) = g.shape();
    let want = g.want(&draft, "dst", parts, elems);
    let tile = g.destination(want);
    g.ramp(tile);
}

pub(super) fn tensor_copy(g: &mut Generator<'_>) {
    copy(g, OpCode::TensorCopy);
}

pub(super) fn generic_copy(g: &mut Generator<'_>) {
    copy(g, OpCode::GenericCopy);
}

/// A whole location of `room` columns, and a window of `elems` in it.
fn row_window(g: &mut Generator<'_>, parts: u64, room: u64, elems: u64, dtype: DType) -> Tile {
    let at = g.allocate(Space::Sbuf, dtype, parts, room, &[]);
    let whole = g.whole(at);
    g.fill(whole);
    let mut tile = g.whole(at);
    if elems < room {
        tile.whole = false;
        tile.access.pairs = Pairs::run(elems);
        tile.elems = elems;
    }
    tile
}

fn dynamic_copy(g: &mut Generator<'_>, code: OpCode, moved: &str, other: &str) {
    let (parts, elems) = g.shape();
    let shift = 4;
    let offset = g.bounded_register(shift + 1);
    let dtype = g.pick(&[DType::F32, DType::Bf16, DType::I32]);
    let mut draft = Draft::new(code);
    let want = Want {
        dtypes: NUMERIC,
        ..g.want(&draft, other, parts, elems)
    };
    if other == "src" {
        g.read_as(&mut draft, other, want);
    } else {
        g.write_as(&mut draft, other, want);
    }
    // Made last, it shares no byte with the other side.
    let window = row_window(g, parts, elems + shift as u64, elems, dtype);
    draft.tile(moved, window);
    draft.value("offset", offset);
    g.emit(&mut draft);
}

pub(super) fn tensor_copy_dynamic_src(g: &mut Generator<'_>) {
    dynamic_copy(g, OpCode::TensorCopyDynamicSrc, "src", "dst");
}

pub(super) fn tensor_copy_dynamic_dst(g: &mut Generator<'_>) {
    dynamic_copy(g, OpCode::TensorCopyDynamicDst, "dst", "src");
}

pub(super) fn stream_shuffle(g: &mut Generator<'_>) {
    let parts = g.pick(&[32, 64, 128]);
    let elems = g.width(1);
    let mut draft = Draft::new(OpCode::StreamShuffle);
    let src = g.read(&mut draft, "src", parts, elems);
    let want = g.want(&draft, "dst", parts, elems).of(&[src.dtype]);
    g.update(&mut draft, "dst", want);
    let mask: Vec<i64> = (0..32)
        .map(|_| match g.random.below(34) {
            row @ 0..32 => row as i64,
            _ => 255,
        })
        .collect();
    g.ints(&mut draft, "mask", &mask);
    g.emit(&mut draft);
}

pub(super) fn permute_implicit_reduce_add(g: &mut Generator<'_>) {
    let parts = g.pick(&[32, 64, 128]);
    let elems = g.width(1);
    let mut draft = Draft::new(OpCode::PermuteImplicitReduceAdd);
    g.read(&mut draft, "src", parts, elems);
    if g.chance(2) {
        g.read(&mut draft, "init", parts, elems);
    }
    g.write(&mut draft, "dst", parts, elems);
    let mask: Vec<i64> = (0..32).map(|_| g.random.below(32) as i64).collect();
    g.ints(&mut draft, "mask", &mask);
    g.emit(&mut draft);
}

pub(super) fn tensor_gather(g: &mut Generator<'_>) {
    // Windows of more than 64 partitions start at the first, as the indices do.
    let parts = g.pick(&[128, 100, 96]);
    let elems = g.width(1);
    let mut draft = Draft::new(OpCode::TensorGather);
    let src = g.read(&mut draft, "src", parts, elems);
    let columns = g.width(1);
    let dtypes = DTypeSet::of(&[DType::U16, DType::U32, DType::I32]);
    let index = g.index_tile(dtypes, 16, columns.div_ceil(16), elems);
    draft.tile("index", index);
    let want = g.want(&draft, "dst", parts, columns).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn tensor_scatter(g: &mut Generator<'_>) {
    // Windows of more than 64 partitions start at the first, as the indices do.
    let parts = g.pick(&[128, 100, 96]);
    let room = g.width(1);
    let mut draft = Draft::new(OpCode::TensorScatter);
    // Columns are named once each: the index ascends.
    let columns = g.between(1, room.min(16));
    let src = g.read(&mut draft, "src", parts, columns);
    let dtypes = DTypeSet::of(&[DType::U16, DType::U32, DType::I32]);
    let index = g.index_tile(dtypes, 16, 1, room.max(17));
    if room < 17 {
        // Sixteen numbers cannot differ among fewer columns.
        return g.nop();
    }
    draft.tile("index", index);
    let want = g.want(&draft, "dst", parts, room).of(&[src.dtype]);
    g.update(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn transpose(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Transpose);
    let on_dve = g.may(Feature::Engine) && g.chance(2);
    if on_dve {
        g.on(&mut draft, Engine::Dve);
    }
    let most = if on_dve { 32 } else { 128 };
    let parts = g.pick(&[1, 8, 32, most]);
    let elems = g.pick(&[1, 8, 32, most.min(g.config.max_elements.max(1))]);
    let mut want = g.want(&draft, "src", parts, elems);
    if !on_dve {
        want = want
            .within(&[Space::Sbuf])
            .of(&[DType::F32, DType::Bf16, DType::F16]);
    }
    let src = g.read_as(&mut draft, "src", want);
    let mut want = g.want(&draft, "dst", elems, parts).of(&[src.dtype]);
    if !on_dve {
        want = want.within(&[Space::Psum]);
    }
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

impl Generator<'_> {
    /// A destination of an instruction without sources.
    fn destination(&mut self, want: Want) -> Tile {
        let mut draft = Draft::new(OpCode::Memset);
        self.write_as(&mut draft, "dst", want.but(DTypeSet::PACKED))
    }
}
