//! The tensor engine.

use smallvec::SmallVec;

use super::super::super::access::Target as TermTarget;
use super::super::super::attrs::Accumulate;
use super::super::super::loops::{loop_of, loop_range};
use super::super::super::space::PSUM_BANK_BYTES;
use super::*;

/// Rows and columns of the array.
const ARRAY: u64 = 128;
/// Iterations over which a destination's banks are enumerated.
const BANK_ITERATIONS: u64 = 1 << 12;

pub(crate) fn matmult(cx: &mut OpContext<'_>) {
    let (Some(dst), Some(stationary), Some(moving)) =
        (cx.shape("dst"), cx.shape("stationary"), cx.shape("moving"))
    else {
        return;
    };
    // Two rows of K lie in each partition, side by side.
    let rows = if cx.view().flag("double_row") { 2 } else { 1 };
    if rows == 2 {
        double_row(cx);
    }
    for (role, facts) in [("stationary", &stationary), ("moving", &moving)] {
        if !facts.elements.is_multiple_of(rows) {
            cx.operand_error(
                role,
                format!(
                    "must have an even number of elements per partition, found {}",
                    facts.elements
                ),
            );
            return;
        }
    }
    let (k, m, n) = (
        stationary.partitions,
        stationary.elements / rows,
        moving.elements / rows,
    );
    if moving.partitions != k {
        cx.operand_error(
            "moving",
            format!(
                "must have {} (K), as `stationary`, found {}",
                counted(k, "partition"),
                moving.partitions
            ),
        );
    }
    if m > ARRAY {
        cx.operand_error(
            "stationary",
            format!("must have at most {ARRAY} elements per partition (M), found {m}"),
        );
    }
    let limit = match (cx.target, dst.dtype.size_bytes()) {
        (Target::Trn1 | Target::Trn2, _) => 512,
        (Target::Trn3, 2) => 8192,
        (Target::Trn3, _) => 4096,
    };
    if n > limit {
        let target = cx.target;
        cx.operand_error(
            "moving",
            format!(
                "must have at most {limit} elements per partition (N) on `{target}`, found {n}"
            ),
        );
    } else if m <= ARRAY {
        matmult_shape(cx, &dst, m, n);
    }
    matmult_dtypes(cx, dst.dtype, stationary.dtype, moving.dtype);
    if cx.view().flag("is_transpose") {
        transposition(cx, k, n, dst.dtype, stationary.dtype);
    }
    accumulation(cx);
    array_tile(cx, k, m);
    if cx.target < Target::Trn3 {
        one_bank(cx);
    }
}

/// `moving` is an identity matrix, and 16-bit data comes out as it went in.
fn transposition(cx: &mut OpContext<'_>, k: u64, n: u64, dst: DType, stationary: DType) {
    if n != k {
        cx.operand_error(
            "moving",
            format!(
                "must be {k} x {k} where `is_transpose` is given, an identity matrix, found {k} x {n}"
            ),
        );
    }
    if dst.size_bytes() == 2 && stationary.size_bytes() == 2 && dst != stationary {
        cx.operand_error(
            "dst",
            format!("must be of `{stationary}`, as `stationary`, where `is_transpose` is given, found `{dst}`"),
        );
    }
}

fn double_row(cx: &mut OpContext<'_>) {
    if cx.target == Target::Trn1 {
        cx.attr_error("double_row", "exists from `trn2` on, found target `trn1`");
    }
    if cx.view().flag("is_transpose") {
        cx.attr_error("double_row", "must be absent where `is_transpose` is given");
    }
    for role in ["stationary", "moving"] {
        if let Some(facts) = cx.shape(role)
            && facts.dtype.size_bytes() != 1
        {
            cx.operand_error(
                role,
                format!(
                    "must be of an 8-bit float with `double_row`, found `{}`",
                    facts.dtype
                ),
            );
        }
    }
}

/// The part of the array an instruction asks for holds its operands.
fn array_tile(cx: &mut OpContext<'_>, k: u64, m: u64) {
    let (size, position) = (integers(cx, "tile_size"), integers(cx, "tile_position"));
    let (Some(size), Some(position)) = (&size, &position) else {
        if size.is_some() || position.is_some() {
            let (given, absent) = match size {
                Some(_) => ("tile_size", "tile_position"),
                None => ("tile_position", "tile_size"),
            };
            cx.attr_error(given, format!("is given, but `{absent}` is not"));
        }
        return;
    };
    let (&[rows, columns], &[row, column]) = (&size[..], &position[..]) else {
        cx.attr_error(
            "tile_size",
            "and `tile_position` must be lists of two numbers, of rows and columns",
        );
        return;
    };
    if cx.target == Target::Trn1 && rows == 32 && columns == 32 {
        cx.attr_error(
            "tile_size",
            "must have more than 32 rows or columns on `trn1`, found 32 and 32",
        );
    }
    if columns != 128 && cx.view().flag("double_row") {
        cx.attr_error(
            "tile_size",
            format!("must have 128 columns where `double_row` is given, found {columns}"),
        );
    }
    for (role, what, expected) in [
        ("stationary", "row", row),
        ("moving", "row", row),
        ("dst", "column", column),
    ] {
        if let Some(found) = cx.start_partition(role)
            && found != expected
        {
            cx.operand_error(
                role,
                format!(
                    "must start at partition {expected}, the {what} of `tile_position`, found {found}"
                ),
            );
        }
    }
    for (what, size, position, used) in [("rows", rows, row, k), ("columns", columns, column, m)] {
        if !matches!(size, 32 | 64 | 128) {
            cx.attr_error(
                "tile_size",
                format!("must be 32, 64 or 128 {what}, found {size}"),
            );
        } else if position % size != 0 {
            cx.attr_error(
                "tile_position",
                format!("must be a multiple of the {size} {what}, found {position}"),
            );
        } else if used > size.unsigned_abs() {
            cx.attr_error(
                "tile_size",
                format!("must hold the {used} {what} used, found {size}"),
            );
        }
    }
}

fn matmult_dtypes(cx: &mut OpContext<'_>, dst: DType, stationary: DType, moving: DType) {
    let is_wide = |dtype| matches!(dtype, DType::F32 | DType::Tf32);
    if is_wide(stationary) != is_wide(moving) {
        cx.operand_error(
            "moving",
            format!("is of `{moving}`, which does not pair with `stationary` of `{stationary}`: `f32` and `tf32` only pair with each other"),
        );
    }
    let pair = [stationary, moving];
    if pair.contains(&DType::F8E4M3) && pair.contains(&DType::F8E4M3FN) {
        cx.operand_error(
            "moving",
            format!("is of `{moving}`, which does not pair with `stationary` of `{stationary}`"),
        );
    }
    for (role, dtype) in [("stationary", stationary), ("moving", moving)] {
        if dtype == DType::F8E4M3FN && cx.target < Target::Trn3 {
            let target = cx.target;
            cx.operand_error_help(
                role,
                format!("must be of a dtype of `{target}`, found `{dtype}`"),
                Some("the tensor engine reads it from `trn3` on".to_owned()),
            );
        }
    }
    let is_transpose = cx.view().flag("is_transpose");
    let is_good = match dst {
        DType::F32 => true,
        DType::Bf16 if cx.target == Target::Trn3 => true,
        _ => is_transpose && cx.target > Target::Trn1,
    };
    if !is_good {
        let target = cx.target;
        let legal = if target == Target::Trn3 {
            "`f32` or `bf16`"
        } else {
            "`f32`"
        };
        cx.operand_error(
            "dst",
            format!("must be of {legal} on `{target}`, found `{dst}`"),
        );
    }
}

fn accumulation(cx: &mut OpContext<'_>) {
    let attr = cx.ir.attr(cx.op, "accumulate");
    match Accumulate::get(&cx.ir.ctx, attr) {
        Some(Accumulate::UnlessFirst(index)) => {
            let known = cx.view().indices().nth(usize::from(index));
            if known.is_none() {
                cx.attr_error(
                    "accumulate",
                    format!("names loop index d{index}, which the operation has not"),
                );
            }
        }
        Some(Accumulate::No) | None => return,
        Some(Accumulate::Yes) => {}
    }
    if cx.view().flag("is_transpose") {
        cx.attr_error("accumulate", "must be absent where `is_transpose` is given");
    }
}

/// The destination stays in one bank of every partition, in every iteration.
fn one_bank(cx: &mut OpContext<'_>) {
    if cx.shape("dst").is_none_or(|shape| shape.in_bank) {
        return;
    }
    let Some(facts) = cx.facts("dst") else { return };
    let size = i128::from(facts.dtype.size_bytes());
    let bank = i128::from(PSUM_BANK_BYTES);
    let (low, high) = (
        i128::from(facts.low) * size,
        (i128::from(facts.high) + 1) * size - 1,
    );
    let mut shifts: SmallVec<[(i128, u64); 4]> = SmallVec::new();
    let mut first = 0;
    if facts.has_terms {
        let Some((_, access)) = cx.access("dst") else {
            return;
        };
        for term in access
            .terms
            .iter()
            .filter(|term| term.target == TermTarget::Offset)
        {
            let value = cx.view().indices().nth(usize::from(term.index));
            let around = value.and_then(|value| loop_of(cx.ir, value));
            let Some(range) = around.and_then(|around| loop_range(cx.ir, around)) else {
                return;
            };
            let coef = i128::from(term.coef) * size;
            first += coef * range.first;
            // Whole banks change nothing.
            let stride = coef * range.step;
            if stride % bank != 0 {
                shifts.push((stride, range.trips.unwrap_or(1)));
            }
        }
    }
    let total = shifts
        .iter()
        .fold(1u64, |product, shift| product.saturating_mul(shift.1));
    for mut i in 0..total.min(BANK_ITERATIONS) {
        let mut shift = first;
        for &(stride, trips) in &shifts {
            shift += stride * i128::from(i % trips);
            i /= trips;
        }
        let (from, to) = (
            (low + shift).div_euclid(bank),
            (high + shift).div_euclid(bank),
        );
        if from != to {
            let target = cx.target;
            cx.operand_error_help(
                "dst",
                format!(
                    "must stay in one bank of {bank} bytes on `{target}`, found bytes {} to {}",
                    low + shift,
                    high + shift
                ),
                Some("write each bank by a `matmult` of its own".to_owned()),
            );
            return;
        }
    }
}

pub(crate) fn transpose(cx: &mut OpContext<'_>) {
    let (Some(dst), Some(src)) = (cx.shape("dst"), cx.shape("src")) else {
        return;
    };
    let limit = match cx.engine {
        Some(Engine::Dve) => 32,
        _ => {
            if src.space != Space::Sbuf {
                cx.operand_error(
                    "src",
                    format!("must be in `sbuf` on engine `pe`, found `{}`", src.space),
                );
            }
            if dst.space != Space::Psum {
                cx.operand_error_help(
                    "dst",
                    format!("must be in `psum` on engine `pe`, found `{}`", dst.space),
                    Some("`{engine = dve}` transposes up to 32 x 32 anywhere".to_owned()),
                );
            }
            if src.dtype.size_bytes() == 1 {
                cx.operand_error_help(
                    "src",
                    format!(
                        "must be of 16 or 32 bits on engine `pe`, which widens others, found `{}`",
                        src.dtype
                    ),
                    Some("copy it to `bf16` with `tensor_copy` first".to_owned()),
                );
            }
            ARRAY
        }
    };
    let engine = cx.engine.unwrap_or(Engine::Pe);
    let is_product = engine == Engine::Pe && cx.target == Target::Trn1;
    if is_product && src.dtype.size_bytes() > 1 && !src.dtype.is_float() {
        cx.operand_error_help(
            "src",
            format!(
                "must be of a float on engine `pe` of `trn1`, which multiplies, found `{}`",
                src.dtype
            ),
            Some("`{engine = dve}` moves bits".to_owned()),
        );
    }
    if src.partitions > limit || src.elements > limit {
        cx.operand_error(
            "src",
            format!(
                "must be at most {limit} x {limit} on engine `{engine}`, found {} x {}",
                src.partitions, src.elements
            ),
        );
    }
    if (dst.partitions, dst.elements) != (src.elements, src.partitions) {
        cx.operand_error(
            "dst",
            format!(
                "must have {} of {}, the shape of `src` transposed, found {}",
                counted(src.elements, "partition"),
                counted(src.partitions, "element"),
                shape_text(&dst)
            ),
        );
    }
}

pub(crate) fn matmult_sparse(cx: &mut OpContext<'_>) {
    let (Some(dst), Some(stationary), Some(moving), Some(ratio)) = (
        cx.shape("dst"),
        cx.shape("stationary"),
        cx.shape("moving"),
        cx.view().int("ratio"),
    ) else {
        return;
    };
    let ratio = u64::try_from(ratio).unwrap_or(1).max(1);
    same_partitions(cx, "stationary", "moving");
    if stationary.elements > ARRAY {
        let m = stationary.elements;
        cx.operand_error(
            "stationary",
            format!("must have at most {ARRAY} elements per partition (M), found {m}"),
        );
        return;
    }
    if !moving.elements.is_multiple_of(ratio) {
        cx.operand_error(
            "moving",
            format!(
                "must have a multiple of {ratio} elements per partition, found {}",
                moving.elements
            ),
        );
        return;
    }
    let (m, n) = (stationary.elements, moving.elements / ratio);
    matmult_shape(cx, &dst, m, n);
    same_partitions(cx, "stationary", "tags");
    elements(cx, "tags", m.div_ceil(4));
    accumulation(cx);
    if cx.target < Target::Trn3 {
        one_bank(cx);
    }
}

fn matmult_shape(cx: &mut OpContext<'_>, dst: &super::super::Shape, m: u64, n: u64) {
    if (dst.partitions, dst.elements) != (m, n) {
        cx.operand_error(
            "dst",
            format!(
                "must have {} of {} (M x N), found {}",
                counted(m, "partition"),
                counted(n, "element"),
                shape_text(dst)
            ),
        );
    }
}

pub(crate) fn matmult_mx(cx: &mut OpContext<'_>) {
    let (Some(dst), Some(stationary), Some(moving)) =
        (cx.shape("dst"), cx.shape("stationary"), cx.shape("moving"))
    else {
        return;
    };
    same_partitions(cx, "stationary", "moving");
    partitions_multiple(cx, "stationary", 32);
    let (m, n) = (stationary.elements, moving.elements);
    if m > ARRAY || !m.is_multiple_of(2) {
        cx.operand_error(
            "stationary",
            format!(
                "must have an even number of at most {ARRAY} elements per partition (M), found {m}"
            ),
        );
        return;
    }
    let limit = if dst.dtype.size_bytes() == 2 {
        8192
    } else {
        4096
    };
    if n > limit {
        cx.operand_error(
            "moving",
            format!("must have at most {limit} elements per partition (N), found {n}"),
        );
        return;
    }
    matmult_shape(cx, &dst, m, n);
    for (role, count) in [("stationary_scale", m), ("moving_scale", n)] {
        elements(cx, role, count);
        scale_partitions(cx, role, stationary.partitions);
    }
    accumulation(cx);
}

/// Scales of 8 partitions lie together, four to each 32: the tile reaches to the last of them.
fn scale_partitions(cx: &mut OpContext<'_>, role: &str, data: u64) {
    let Some(last) = data.checked_sub(1) else {
        return;
    };
    let needed = last / 32 * 32 + last % 32 / 8 + 1;
    if let Some(facts) = cx.shape(role)
        && facts.partitions < needed
    {
        cx.operand_error(
            role,
            format!(
                "must have at least {needed} partitions for data of {data}, found {}",
                facts.partitions
            ),
        );
    }
}

pub(crate) fn quantize_mx(cx: &mut OpContext<'_>) {
    partitions_multiple(cx, "src", 32);
    same_partitions(cx, "src", "dst");
    let Some(src) = cx.shape("src") else { return };
    if !src.elements.is_multiple_of(4) {
        cx.operand_error(
            "src",
            format!(
                "must have a multiple of 4 elements per partition, found {}",
                src.elements
            ),
        );
        return;
    }
    elements(cx, "dst", src.elements / 4);
    elements(cx, "scale", src.elements / 4);
    scale_partitions(cx, "scale", src.partitions);
}
