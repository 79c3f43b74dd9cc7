//! DMA: element counts, conversions, indices, who makes the descriptors.

use super::super::super::num::{self, DTypeClass};
use super::super::super::program::names;
use super::super::super::space::PARTITIONS;
use super::*;
use crate::ir::AttrView;

/// Sources of one `dma_compute`.
const MAX_SOURCES: usize = 16;
/// Most bytes of a partition the pool engine moves at once, by element size.
const SB2SB_BYTES: [(u32, u64); 3] = [(4, 1024), (2, 512), (1, 256)];

/// Attributes every DMA has.
fn queue(cx: &mut OpContext<'_>) {
    let target = cx.target;
    if target < Target::Trn3 && cx.view().int("priority").is_some() {
        cx.attr_error(
            "priority",
            format!("exists from `trn3` on, found target `{target}`"),
        );
    }
    if target == Target::Trn1 && cx.view().word("dge") == Some("hwdge") {
        cx.attr_error(
            "dge",
            "is `hwdge`, which exists from `trn2` on, found target `trn1`",
        );
    }
}

fn conversion(cx: &mut OpContext<'_>, dst: DType, src: DType) {
    if dst == src {
        return;
    }
    if cx.view().word("dge") == Some("hwdge") {
        cx.operand_error_help(
            "src",
            format!("must be of `{dst}`, as `dst`, with `dge = hwdge`, found `{src}`"),
            Some("hardware descriptors move bits; `dge = none` converts".to_owned()),
        );
        return;
    }
    for (role, dtype) in [("dst", dst), ("src", src)] {
        if matches!(dtype.class(), DTypeClass::Packed | DTypeClass::Scale) {
            cx.operand_error(
                role,
                format!(
                    "is of `{dtype}`, which DMA never converts: `dst` is `{dst}`, `src` is `{src}`"
                ),
            );
            return;
        }
    }
}

pub(crate) fn dma(cx: &mut OpContext<'_>) {
    queue(cx);
    let (Some(dst), Some(src)) = (cx.shape("dst"), cx.shape("src")) else {
        return;
    };
    same_total(cx, "dst", "src");
    conversion(cx, dst.dtype, src.dtype);
}

fn same_total(cx: &mut OpContext<'_>, first: &str, second: &str) {
    let (Some(expected), Some(found)) = (cx.shape(first), cx.shape(second)) else {
        return;
    };
    if expected.total() != found.total() {
        cx.operand_error(
            second,
            format!(
                "must have {}, as many as `{first}`, found {}",
                counted(expected.total(), "element"),
                found.total()
            ),
        );
    }
}

pub(crate) fn dma_copy(cx: &mut OpContext<'_>) {
    let gathers = cx.shape("src_index").is_some();
    let scatters = cx.shape("dst_index").is_some();
    if !gathers && !scatters {
        if cx.view().flag("unique_indices") {
            cx.attr_error("unique_indices", "is given, but there are no indices");
        }
        dma(cx);
        return;
    }
    queue(cx);
    if gathers && scatters {
        cx.operand_error("dst_index", "must be absent where `src_index` is given");
        return;
    }
    let (index, tile, table) = if gathers {
        ("src_index", "dst", "src")
    } else {
        ("dst_index", "src", "dst")
    };
    indexed(cx, index, tile, table);
    if let (Some(dst), Some(src)) = (cx.shape("dst"), cx.shape("src")) {
        conversion(cx, dst.dtype, src.dtype);
    }
}

pub(crate) fn dma_indexed(cx: &mut OpContext<'_>) {
    queue(cx);
    let (tile, table) = match cx.shape("dst") {
        Some(facts) if facts.space == Space::Dram => ("src", "dst"),
        _ => ("dst", "src"),
    };
    indexed(cx, "index", tile, table);
}

/// A table in DRAM addressed by rows, one index for each partition of a tile.
fn indexed(cx: &mut OpContext<'_>, index: &str, tile: &str, table: &str) {
    if let Some(facts) = cx.shape(table)
        && facts.space != Space::Dram
    {
        cx.operand_error(
            table,
            format!(
                "must be in `dram` where `{index}` names its rows, found `{}`",
                facts.space
            ),
        );
        return;
    }
    match cx.view().word("dge") {
        Some("swdge") => {}
        found => cx.attr_error_help(
            "dge",
            format!(
                "must be `swdge` where rows are indexed, found `{}`",
                found.unwrap_or("none")
            ),
            Some("write `{dge = swdge}`".to_owned()),
        ),
    }
    if cx.target == Target::Trn1 {
        cx.operand_error(index, "exists from `trn2` on, found target `trn1`");
    }
    let (Some(indices), Some(tile_facts)) = (cx.shape(index), cx.shape(tile)) else {
        return;
    };
    if indices.total() != tile_facts.partitions {
        cx.operand_error(
            index,
            format!(
                "must have {}, one for each partition of `{tile}`, found {}",
                counted(tile_facts.partitions, "element"),
                indices.total()
            ),
        );
    }
    let Some((_, access)) = cx.access(table) else {
        return;
    };
    let row: u64 = access
        .pairs
        .iter()
        .skip(1)
        .fold(1, |product, pair| product.saturating_mul(pair.count));
    if row != tile_facts.elements {
        cx.operand_error(
            table,
            format!(
                "must have rows of {}, what a partition of `{tile}` holds, found {row}",
                counted(tile_facts.elements, "element")
            ),
        );
    }
    let rows = access.pairs.first().map_or(1, |pair| pair.count);
    constant_indices(cx, index, table, rows);
}

/// Indices that are constants must name rows that exist, unless the rest is skipped.
fn constant_indices(cx: &mut OpContext<'_>, index: &str, table: &str, rows: u64) {
    if cx.view().word("oob") == Some("skip") {
        return;
    }
    let ctx = &cx.ir.ctx;
    let Some(alloc) = cx.value(index).and_then(|value| cx.ir.def_op(value)) else {
        return;
    };
    let Some(AttrView::Dense { hex, .. }) = ctx
        .dict_get(cx.ir.dict(alloc), names::VALUE)
        .map(|attr| ctx.attr(attr))
    else {
        return;
    };
    let Some((mem, access)) = cx.access(index) else {
        return;
    };
    // One element a partition; a reinterpreted tile is left to the simulator.
    let (Some(window), Some(per_partition)) = (access.window, mem.free_elements()) else {
        return;
    };
    if access.recast || !access.terms.is_empty() || access.elements() != 1 {
        return;
    }
    let digits = mem.dtype.size_bytes() as usize * 2;
    let text = ctx.text(hex);
    for partition in 0..window.count {
        let element = (window.start as u64 + partition) * per_partition + access.offset as u64;
        // A constant of equal elements is kept as one of them.
        let at = if text.len() == digits {
            0
        } else {
            element as usize * digits
        };
        let Some(element) = text.get(at..at + digits) else {
            return;
        };
        let bytes = (0..digits).step_by(2).rev();
        let value = bytes
            .filter_map(|byte| u8::from_str_radix(&element[byte..byte + 2], 16).ok())
            .fold(0u64, |value, byte| value << 8 | u64::from(byte));
        if value >= rows {
            let row = num::Number {
                dtype: mem.dtype,
                bits: value,
            };
            let help = "write `{oob = skip}` to leave such rows out".to_owned();
            cx.operand_error_help(
                index,
                format!(
                    "holds {row} in partition {partition}, but `{table}` has {}",
                    counted(rows, "row")
                ),
                Some(help),
            );
            return;
        }
    }
}

pub(crate) fn dma_transpose(cx: &mut OpContext<'_>) {
    queue(cx);
    let (Some((_, dst)), Some((_, src))) = (cx.access("dst"), cx.access("src")) else {
        return;
    };
    let dims = |access: &super::super::Access| -> Vec<u64> {
        let window = access.window.map(|window| window.count);
        window
            .into_iter()
            .chain(access.pairs.iter().map(|pair| pair.count))
            .collect()
    };
    let (dst, src) = (dims(&dst), dims(&src));
    let order: &[usize] = match src.len() {
        2 => &[1, 0],
        3 => &[2, 1, 0],
        4 => &[3, 1, 2, 0],
        rank => {
            cx.operand_error("src", format!("must have 2 to 4 dimensions, found {rank}"));
            return;
        }
    };
    let gathers = cx.shape("src_index").is_some();
    let expected: Vec<u64> = order.iter().map(|&dim| src[dim]).collect();
    if dst != expected {
        cx.operand_error(
            "dst",
            format!("must be {expected:?}, `src` transposed, found {dst:?}"),
        );
    }
    let Some(facts) = cx.shape("src") else { return };
    if cx.view().word("dge") == Some("hwdge") || gathers {
        let how = if gathers {
            "with `src_index`"
        } else {
            "with `dge = hwdge`"
        };
        if facts.dtype.size_bytes() != 2 {
            cx.operand_error(
                "src",
                format!("must be of a 2-byte dtype {how}, found `{}`", facts.dtype),
            );
        }
        if src.last().is_some_and(|&last| last > u64::from(PARTITIONS)) {
            cx.operand_error("src", format!("must have at most {PARTITIONS} elements in its last dimension {how}, found {src:?}"));
        }
        if src.first().is_some_and(|first| !first.is_multiple_of(16)) && gathers {
            cx.operand_error(
                "src",
                format!("must have a multiple of 16 rows {how}, found {src:?}"),
            );
        }
    }
    if cx.view().word("dge") == Some("hwdge") && !gathers {
        // The shapes on which all pages about the hardware agree.
        let ends = (src.first().copied(), src.last().copied());
        if ends != (Some(16), Some(u64::from(PARTITIONS))) {
            cx.operand_error_help(
                "src",
                format!("must have 16 rows, and {PARTITIONS} elements in its last dimension, with `dge = hwdge`, found {src:?}"),
                Some("`dge = none` transposes other shapes".to_owned()),
            );
        }
    }
    if gathers {
        transposed_rows(cx, &src);
    }
}

/// A transposition of the rows an index tile names.
fn transposed_rows(cx: &mut OpContext<'_>, src: &[u64]) {
    if cx.view().word("dge") != Some("swdge") {
        cx.attr_error_help(
            "dge",
            "must be `swdge` where rows are indexed",
            Some("write `{dge = swdge}`".to_owned()),
        );
    }
    if cx.target == Target::Trn1 {
        cx.operand_error("src_index", "exists from `trn2` on, found target `trn1`");
    }
    if let Some(facts) = cx.shape("src")
        && facts.space != Space::Dram
    {
        cx.operand_error(
            "src",
            format!(
                "must be in `dram` where `src_index` names its rows, found `{}`",
                facts.space
            ),
        );
    }
    if let &[_, a, b, _] = src
        && a != 1
        && b != 1
    {
        cx.operand_error(
            "src",
            format!("must have one element in dimension 1 or 2 with `src_index`, found {src:?}"),
        );
    }
    let Some(index) = cx.shape("src_index") else {
        return;
    };
    if index.dtype != DType::U32 {
        cx.operand_error(
            "src_index",
            format!(
                "must be of `u32` for a transposition, found `{}`",
                index.dtype
            ),
        );
    }
    if index.partitions < 16 || !index.partitions.is_multiple_of(16) {
        cx.operand_error(
            "src_index",
            format!(
                "must have 16 to 128 partitions, a multiple of 16, found {}",
                index.partitions
            ),
        );
    } else if index.elements > 1 && index.partitions != u64::from(PARTITIONS) {
        cx.operand_error(
            "src_index",
            format!(
                "must have {PARTITIONS} partitions for more than one column, found {}",
                index.partitions
            ),
        );
    }
    if let Some(&rows) = src.first()
        && index.total() < rows
    {
        cx.operand_error(
            "src_index",
            format!(
                "must have a number for each of the {} of `src`, found {}",
                counted(rows, "row"),
                index.total()
            ),
        );
    }
}

pub(crate) fn dma_compute(cx: &mut OpContext<'_>) {
    queue(cx);
    legal_words(cx, "op", &["add"]);
    if let Some(found @ ("swdge" | "hwdge")) = cx.view().word("dge") {
        cx.attr_error(
            "dge",
            format!("must be `none`: sums are made from descriptors of the host, found `{found}`"),
        );
    }
    let Some(dst) = cx.shape("dst") else { return };
    let sources = cx.shapes("srcs");
    if sources.len() > MAX_SOURCES {
        cx.error(format!(
            "`dma_compute` takes at most {MAX_SOURCES} sources, found {}",
            sources.len()
        ));
    }
    for (i, source) in sources.iter().enumerate() {
        if source.total() != dst.total() {
            cx.operand_error(
                "srcs",
                format!(
                    "number {i} must have {}, as many as `dst`, found {}",
                    counted(dst.total(), "element"),
                    source.total()
                ),
            );
        }
    }
}

pub(crate) fn gpsimd_sb2sb(cx: &mut OpContext<'_>) {
    let Some(dst) = cx.shape("dst") else { return };
    let size = dst.dtype.size_bytes();
    let limit = SB2SB_BYTES
        .iter()
        .find(|entry| entry.0 <= size)
        .map_or(256, |entry| entry.1);
    let bytes = dst.elements.saturating_mul(u64::from(size));
    if bytes > limit {
        cx.operand_error(
            "dst",
            format!("must have at most {limit} bytes per partition of {size}-byte elements, found {bytes}"),
        );
    }
}
