//! Copies and fills.

use super::super::super::attrs::number_bits;
use super::super::super::num::DTypeClass;
use super::super::attributes::pattern;
use super::*;

pub(crate) fn memset(cx: &mut OpContext<'_>) {
    let Some(dst) = cx.shape("dst") else { return };
    let value = cx
        .role("value")
        .literal()
        .and_then(|attr| number_bits(&cx.ir.ctx, attr));
    if dst.dtype.class() == DTypeClass::Packed && value.is_some_and(|(_, bits)| bits != 0) {
        cx.operand_error("value", format!("must be 0 for packed `{}`", dst.dtype));
    }
}

/// Copies convert by way of f32, which packed elements have nothing to do with.
pub(crate) fn copy(cx: &mut OpContext<'_>) {
    let (Some(dst), Some(src)) = (cx.shape("dst"), cx.shape("src")) else {
        return;
    };
    if dst.dtype == src.dtype {
        return;
    }
    for (role, dtype) in [("dst", dst.dtype), ("src", src.dtype)] {
        if dtype.class() == DTypeClass::Packed {
            cx.operand_error(
                role,
                format!(
                    "is of `{dtype}`, which is never converted: `dst` is `{}`, `src` is `{}`",
                    dst.dtype, src.dtype
                ),
            );
            return;
        }
    }
}

/// `iota` and `affine_select`: the pattern counts the elements of a row.
pub(crate) fn ramp(cx: &mut OpContext<'_>) {
    let Some(pairs) = cx
        .ir
        .attr(cx.op, "pattern")
        .and_then(|attr| pattern(&cx.ir.ctx, attr))
    else {
        return;
    };
    if pairs.len() > 4 {
        cx.attr_error(
            "pattern",
            format!("must have at most 4 dimensions, found {}", pairs.len()),
        );
        return;
    }
    let steps_fit = pairs.iter().all(|pair| i32::try_from(pair.0).is_ok());
    if !steps_fit {
        cx.attr_error("pattern", "must have steps of at most 32 bits");
        return;
    }
    let Some(dst) = cx.shape("dst") else { return };
    let counted_elements = pairs.iter().fold(1u64, |product, pair| {
        product.saturating_mul(u64::try_from(pair.1).unwrap_or(0))
    });
    if counted_elements != dst.elements {
        cx.attr_error(
            "pattern",
            format!(
                "must count the {} per partition of `dst`, found {counted_elements}",
                counted(dst.elements, "element")
            ),
        );
    }
}
