//! Gathers, shuffles, sequences and random numbers.

use super::super::super::space::PARTITIONS;
use super::*;

pub(crate) fn mask_of_32(cx: &mut OpContext<'_>) {
    let Some(mask) = integers(cx, "mask") else {
        return;
    };
    if mask.len() != 32 {
        cx.attr_error(
            "mask",
            format!("must have 32 numbers, found {}", mask.len()),
        );
    }
}

pub(crate) fn stream_shuffle(cx: &mut OpContext<'_>) {
    mask_of_32(cx);
    let (Some(dst), Some(src)) = (cx.shape("dst"), cx.shape("src")) else {
        return;
    };
    if dst.elements != src.elements {
        elements(cx, "src", dst.elements);
    }
    let Some(mask) = integers(cx, "mask") else {
        return;
    };
    if let Some(&wrong) = mask.iter().find(|&&row| row > 31 && row != 255) {
        cx.attr_error(
            "mask",
            format!("must have numbers from 0 to 31, or 255, found {wrong}"),
        );
        return;
    }
    // The last group of `dst` may be a part of 32, and `src` may have fewer rows than `dst`.
    let beyond = first_beyond(dst.partitions, src.partitions, &mask);
    if let Some((_, row)) = beyond {
        let last = src.partitions.saturating_sub(1);
        cx.attr_error(
            "mask",
            format!("must name rows of `src`, 0 to {last}, found {row}"),
        );
    }
}

/// The first of `used` rows whose mask names a row, in its group of 32, that is none of `rows`.
fn first_beyond(used: u64, rows: u64, mask: &[i64]) -> Option<(u64, u64)> {
    (0..used.min(u64::from(PARTITIONS))).find_map(|at| {
        let number = u64::try_from(*mask.get(at as usize % 32)?).ok()?;
        let row = at / 32 * 32 + number;
        (number != 255 && row >= rows).then_some((at, row))
    })
}

pub(crate) fn permute_add(cx: &mut OpContext<'_>) {
    mask_of_32(cx);
    let (Some(src), Some(mask)) = (cx.shape("src"), integers(cx, "mask")) else {
        return;
    };
    if let Some((at, row)) = first_beyond(src.partitions, src.partitions, &mask) {
        let last = src.partitions.saturating_sub(1);
        cx.attr_error(
            "mask",
            format!("must name rows of `dst`, 0 to {last}, found {row} for row {at}"),
        );
    }
}

/// One index per column of the tile, in a snake of 16 partitions.
fn snake(cx: &mut OpContext<'_>, tile: &str, other: &str) {
    same_partitions(cx, tile, other);
    let (Some(tile_facts), Some(index)) = (cx.shape(tile), cx.shape("index")) else {
        return;
    };
    if index.total() < tile_facts.elements {
        cx.operand_error(
            "index",
            format!(
                "must have a number for each of the {} of `{tile}`, found {}",
                counted(tile_facts.elements, "column"),
                index.total()
            ),
        );
    }
    if index.partitions != 16 {
        partitions(cx, "index", 16);
    }
}

/// Column numbers begin on the partition on which the tile they are used with begins.
fn starts_with(cx: &mut OpContext<'_>, tile: &str) {
    if let (Some(expected), Some(found)) = (cx.start_partition(tile), cx.start_partition("index"))
        && expected != found
    {
        cx.operand_error_help(
            "index",
            format!("must start at partition {expected}, as `{tile}`, found {found}"),
            Some(format!(
                "copy the numbers to the partitions from {expected} on"
            )),
        );
    }
}

pub(crate) fn tensor_gather(cx: &mut OpContext<'_>) {
    snake(cx, "dst", "src");
    starts_with(cx, "src");
}

pub(crate) fn tensor_scatter(cx: &mut OpContext<'_>) {
    snake(cx, "src", "dst");
    if cx.shape("src").is_some_and(|src| src.space == Space::Sbuf) {
        starts_with(cx, "src");
    }
    if cx.engine == Some(Engine::Act) && cx.shape("dst").is_some_and(|f| f.space == Space::Psum) {
        cx.operand_error("dst", "must be in `sbuf` on engine `act`, found `psum`");
    }
}

pub(crate) fn local_gather(cx: &mut OpContext<'_>) {
    partitions_multiple(cx, "src", 16);
    same_partitions(cx, "src", "index");
    same_partitions(cx, "src", "dst");
    let width = cx.view().int("width").unwrap_or(1);
    let Some(count) = cx.view().int("count") else {
        return;
    };
    if !matches!(width, 1 | 2 | 4 | 8 | 16 | 32) {
        cx.attr_error(
            "width",
            format!("must be 1, 2, 4, 8, 16 or 32, found {width}"),
        );
        return;
    }
    let (count, width) = (
        u64::try_from(count).unwrap_or(0),
        u64::try_from(width).unwrap_or(1),
    );
    elements(cx, "dst", count.saturating_mul(width));
    if let Some(index) = cx.shape("index")
        && index.elements.saturating_mul(16) < count
    {
        cx.operand_error(
            "index",
            format!(
                "must have at least {count} elements per 16 partitions, found {}",
                index.elements * 16
            ),
        );
    }
}

pub(crate) fn n_gather(cx: &mut OpContext<'_>) {
    same_partitions(cx, "dst", "src");
}

pub(crate) fn sequence_bounds(cx: &mut OpContext<'_>) {
    partitions(cx, "src", 1);
    partitions(cx, "dst", 1);
    if let Some(src) = cx.shape("src") {
        elements(cx, "dst", src.elements.saturating_mul(2));
    }
}

pub(crate) fn nonzero_with_count(cx: &mut OpContext<'_>) {
    same_partitions(cx, "src", "dst");
    if let Some(src) = cx.shape("src") {
        elements(cx, "dst", src.elements.saturating_add(1));
    }
}

pub(crate) fn rand2(cx: &mut OpContext<'_>) {
    let number = |cx: &OpContext<'_>, role: &str| {
        let attr = cx.role(role).literal()?;
        let (_, bits) = super::super::super::attrs::number_bits(&cx.ir.ctx, attr)?;
        Some(f32::from_bits(bits as u32))
    };
    if let (Some(low), Some(high)) = (number(cx, "low"), number(cx, "high"))
        && (low >= high || low.is_nan() || high.is_nan())
    {
        cx.operand_error("high", format!("must be above `low`, {low}, found {high}"));
    }
}

pub(crate) fn set_rng_seed(cx: &mut OpContext<'_>) {
    if let Some(src) = cx.shape("src")
        && src.total() != 1
    {
        cx.operand_error(
            "src",
            format!("must be one element, found {}", shape_text(&src)),
        );
    }
}

pub(crate) fn rand_state(cx: &mut OpContext<'_>) {
    let words = if cx.engine == Some(Engine::Dve) {
        24
    } else {
        6
    };
    for role in ["src", "dst"] {
        elements(cx, role, words);
    }
}
