//! DMA.

use bir_dialect::bir::access::Pair;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{NUMERIC, OpCode};
use bir_dialect::bir::space::{DTypeSet, Space, Target};

use super::super::Generator;
use super::super::draft::{Draft, Tile};
use super::super::part::Pairs;
use super::super::tiles::Want;

/// Attributes DMA instructions have in common.
fn queue(g: &mut Generator<'_>, draft: &mut Draft) {
    if g.chance(8) {
        let name = g.pick(&["q0", "q1"]);
        g.word(draft, "queue", name);
    }
    if g.target == Target::Trn3 && g.chance(8) {
        let priority = g.random.below(4) as i64;
        g.int(draft, "priority", priority);
    }
}

/// The other side of a transfer: of any numeric dtype, or of the very dtype.
fn other_side(want: Want, dtype: DType) -> Want {
    if NUMERIC.has(dtype) {
        Want {
            dtypes: NUMERIC,
            ..want
        }
    } else {
        want.of(&[dtype])
    }
}

fn transfer(g: &mut Generator<'_>, code: OpCode) {
    let mut draft = Draft::new(code);
    let src = g.unary(&mut draft);
    // A tensor in DRAM is one row.
    let (parts, elems) = shape_of(&src);
    let want = other_side(g.want(&draft, "dst", parts, elems), src.dtype);
    g.write_as(&mut draft, "dst", want);
    queue(g, &mut draft);
    g.emit(&mut draft);
}

/// Partitions and elements of a tile as a destination on chip may have them.
fn shape_of(tile: &Tile) -> (u64, u64) {
    if tile.space != Space::Dram {
        return (tile.parts, tile.elems);
    }
    let parts = [128, 100, 96, 64, 48, 32, 16, 7]
        .into_iter()
        .find(|parts| tile.elems.is_multiple_of(*parts))
        .unwrap_or(1);
    (parts, tile.elems / parts)
}

pub(super) fn load(g: &mut Generator<'_>) {
    transfer(g, OpCode::Load);
}

pub(super) fn save(g: &mut Generator<'_>) {
    transfer(g, OpCode::Save);
}

/// A table in DRAM and the rows of it an access names.
fn table(g: &mut Generator<'_>, elems: u64, dtype: DType) -> (Tile, u64) {
    let rows = g.pick(&[4, 16, 128, 200]);
    let at = g.port("input", dtype, rows, elems);
    g.publish(at);
    let mut tile = g.whole(at);
    tile.whole = false;
    tile.access.pairs = Pairs::of(&[
        Pair {
            step: elems as i64,
            count: rows,
        },
        Pair {
            step: 1,
            count: elems,
        },
    ]);
    // A table of two dimensions is accessed whole anyway.
    let whole = g.whole(at);
    if tile.access == whole.access {
        tile.whole = true;
    }
    (tile, rows)
}

fn rows_index(g: &mut Generator<'_>, parts: u64, rows: u64) -> Tile {
    let dtypes = DTypeSet::of(&[DType::U32, DType::I32, DType::U16]);
    g.index_tile(dtypes, parts, 1, rows)
}

pub(super) fn dma_copy(g: &mut Generator<'_>) {
    let indexed = g.target > Target::Trn1 && g.chance(3);
    if !indexed {
        return match g.random.below(3) {
            0 => offset_copy(g),
            _ => transfer(g, OpCode::DmaCopy),
        };
    }
    let (parts, elems) = g.shape();
    let dtype = g.pick(&[DType::F32, DType::Bf16, DType::I32]);
    let mut draft = Draft::new(OpCode::DmaCopy);
    g.word(&mut draft, "dge", "swdge");
    let (table, rows) = table(g, elems, dtype);
    if g.chance(2) {
        let skips = g.chance(2);
        let end = if skips { rows + 3 } else { rows };
        let index = rows_index(g, parts, end);
        draft.tile("src_index", index);
        draft.tile("src", table);
        let want = g
            .want(&draft, "dst", parts, elems)
            .within(&[Space::Sbuf])
            .of(&[dtype]);
        if skips {
            g.word(&mut draft, "oob", "skip");
            // Rows that are skipped keep what they held.
            g.update(&mut draft, "dst", want);
        } else {
            g.write_as(&mut draft, "dst", want);
        }
    } else {
        // Each row at most once: the last write of several would be the queue's choice.
        if rows < parts {
            return g.nop();
        }
        let index = rows_index(g, parts, rows);
        draft.tile("dst_index", index);
        let want = g
            .want(&draft, "src", parts, elems)
            .within(&[Space::Sbuf])
            .of(&[dtype]);
        g.read_as(&mut draft, "src", want);
        draft.tile("dst", table);
    }
    queue(g, &mut draft);
    g.emit(&mut draft);
}

/// A copy whose source begins at a register.
fn offset_copy(g: &mut Generator<'_>) {
    let elems = g.width(1);
    let offset = g.bounded_register(4);
    let at = g.port("input", DType::F32, 1, elems + 3);
    g.publish(at);
    let mut tile = g.whole(at);
    tile.whole = false;
    tile.access.pairs = Pairs::run(elems);
    tile.elems = elems;
    let mut draft = Draft::new(OpCode::DmaCopy);
    draft.tile("src", tile);
    draft.value("src_offset", offset);
    let want = other_side(g.want(&draft, "dst", 1, elems), DType::F32);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn dma_transpose(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::DmaTranspose);
    let (rows, columns) = (g.pick(&[16, 32, 64]), g.pick(&[16, 32, 64]));
    let dtype = g.pick(&[DType::Bf16, DType::F16, DType::F32]);
    let at = g.port("input", dtype, rows, columns);
    g.publish(at);
    let mut src = g.whole(at);
    src.access.pairs = Pairs::of(&[
        Pair {
            step: columns as i64,
            count: rows,
        },
        Pair {
            step: 1,
            count: columns,
        },
    ]);
    src.whole = src.access == g.whole(at).access;
    draft.tile("src", src);
    let dst = g.flat(dtype, columns, rows);
    draft.tile("dst", dst);
    queue(g, &mut draft);
    g.emit(&mut draft);
}

pub(super) fn dma_compute(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::DmaCompute);
    let (parts, elems) = g.shape();
    g.word(&mut draft, "op", "add");
    for _ in 0..g.between(1, 4) {
        g.read(&mut draft, "srcs", parts, elems);
    }
    g.write(&mut draft, "dst", parts, elems);
    queue(g, &mut draft);
    g.emit(&mut draft);
}

pub(super) fn dma_scatter_add(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::DmaScatterAdd);
    if g.target == Target::Trn1 {
        return g.nop();
    }
    let elems = g.width(1);
    let (table, rows) = table(g, elems, DType::F32);
    let parts = g.pick(&[1, 4, 16]).min(rows);
    let index = rows_index(g, parts, rows);
    draft.tile("index", index);
    g.read(&mut draft, "src", parts, elems);
    draft.tile("dst", table);
    g.word(&mut draft, "dge", "swdge");
    g.emit(&mut draft);
}

pub(super) fn dma_gather_add(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::DmaGatherAdd);
    if g.target == Target::Trn1 {
        return g.nop();
    }
    let (parts, elems) = g.shape();
    let (table, rows) = table(g, elems, DType::F32);
    let index = rows_index(g, parts, rows);
    draft.tile("index", index);
    draft.tile("src", table);
    let want = g.want(&draft, "dst", parts, elems);
    g.update(&mut draft, "dst", want);
    g.word(&mut draft, "dge", "swdge");
    g.emit(&mut draft);
}

pub(super) fn gpsimd_sb2sb(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::GpsimdSb2sb);
    let parts = g.pick(&[128, 64, 1]);
    // The limit is in bytes, and smallest for bytes.
    let elems = g.width(1).min(128);
    let src = g.read(&mut draft, "src", parts, elems);
    let want = g.want(&draft, "dst", parts, elems).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

impl Generator<'_> {
    /// A new tile in SBUF of one free dimension.
    fn flat(&mut self, dtype: DType, parts: u64, elems: u64) -> Tile {
        let at = self.allocate(Space::Sbuf, dtype, parts, elems, &[]);
        let mut tile = self.whole(at);
        if tile.access.pairs.len() > 1 {
            tile.whole = false;
            tile.access.pairs = Pairs::run(elems);
        }
        tile
    }
}
