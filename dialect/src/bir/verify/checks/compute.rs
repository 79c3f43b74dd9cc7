//! Arithmetic, activation, reductions, statistics.

use super::*;

pub(crate) fn activation(cx: &mut OpContext<'_>) {
    if let Some(word) = cx.view().word("reduce")
        && word != "add"
    {
        cx.attr_error("reduce", format!("must be `add`, found `{word}`"));
    }
    legal_words(cx, "reduce_cmd", &["idle", "reset", "accumulate", "clear"]);
    if let Some(bias) = cx.shape("bias")
        && bias.dtype == DType::Tf32
    {
        cx.operand_error("bias", "must be of another dtype than `tf32`");
    }
    let func = cx.view().word("func");
    if cx.target == Target::Trn1 {
        if cx.role("bias").literal().is_some() {
            cx.operand_error_help(
                "bias",
                "must be a tile on `trn1`, found a number",
                Some("fill a tile with `memset`".to_owned()),
            );
        }
        if func == Some("reciprocal") && cx.role("bias").is_present() {
            cx.operand_error("bias", "must be absent for `reciprocal` on `trn1`");
        }
    }
    if cx.ir.attr(cx.op, "alpha").is_some() && func != Some("prelu") {
        cx.attr_error(
            "alpha",
            "is the slope of `prelu`, and no other function has one",
        );
    }
}

pub(crate) fn tensor_tensor(cx: &mut OpContext<'_>) {
    binary_word(cx, "op");
    one_psum(cx, "lhs", "rhs");
    if cx.view().flag("accumulate") && cx.engine == Some(Engine::Pool) {
        cx.attr_error(
            "accumulate",
            "must be absent on `pool`, which has no accumulator",
        );
    }
    let Some(word) = cx.view().word("op") else {
        return;
    };
    if is_bitvec(word) {
        bit_operands(cx, word, &["dst", "lhs", "rhs"]);
        return;
    }
    match cx.engine {
        Some(Engine::Dve) if word == "power" => cx.attr_error_help(
            "op",
            "is `power`, which runs on `pool`, found engine `dve`",
            Some("write `{engine = pool}`".to_owned()),
        ),
        Some(Engine::Pool) if word != "power" => {
            let is_exact = ["dst", "lhs", "rhs"].iter().all(|role| {
                cx.shape(role)
                    .is_none_or(|facts| matches!(facts.dtype, DType::I32 | DType::U32))
            });
            if !is_exact {
                cx.attr_error(
                    "engine",
                    format!("may be `pool` for `power` or where all tiles are `i32` or `u32`, found `{word}` of others"),
                );
            }
        }
        _ => {}
    }
}

pub(crate) fn tensor_scalar(cx: &mut OpContext<'_>) {
    let words = [cx.view().word("op0"), cx.view().word("op1")];
    let attrs = ["op0", "op1"];
    let scalars = ["operand0", "operand1"];
    for i in 0..2 {
        let Some(word) = words[i] else {
            if cx.role(scalars[i]).is_present() {
                cx.operand_error(
                    scalars[i],
                    format!("has no operation: `{}` is absent", attrs[i]),
                );
            }
            continue;
        };
        word_of_generation(cx, attrs[i]);
        if AluOp::of(word).is_some_and(|op| op.arity == Arity::Reduction) {
            cx.attr_error(
                attrs[i],
                "must be an operation on elements, found `average`",
            );
        }
        let is_present = cx.role(scalars[i]).is_present();
        if is_unary(word) {
            if cx.role(scalars[i]).operand().is_some() {
                cx.operand_error(
                    scalars[i],
                    format!("must be absent or 0 for `{word}`, found a tile"),
                );
            }
        } else if !is_present && !cx.view().flag("cache_read") {
            cx.error(format!(
                "`tensor_scalar` needs operand `{}` for `{word}`",
                scalars[i]
            ));
        }
    }
    let Some(op0) = words[0] else { return };
    if let Some(op1) = words[1]
        && is_bitvec(op0) != is_bitvec(op1)
        && op1 != "bypass"
    {
        cx.attr_error(
            "op1",
            format!(
                "must be of one class with `{op0}`, found `{op1}`: one of them works on raw bits"
            ),
        );
        return;
    }
    if is_bitvec(op0) {
        bit_operands(cx, op0, &["src", "dst", "operand0", "operand1"]);
        return;
    }
    scalar_is_f32(cx, "operand0");
    scalar_is_f32(cx, "operand1");
    let op1 = words[1];
    match cx.engine {
        Some(Engine::Act) => {
            let is_good = matches!((op0, op1), ("multiply", None | Some("add")) | ("add", None));
            if !is_good {
                let found = op1.map_or_else(String::new, |op1| format!(", `{op1}`"));
                cx.attr_error("engine", format!("may be `act` for `multiply`, `add`, or `multiply` then `add`, found `{op0}`{found}"));
            }
        }
        Some(Engine::Pool) => {
            if op0 != "rsqrt" && op0 != "power" {
                cx.attr_error(
                    "engine",
                    format!("may be `pool` for `rsqrt` and `power`, found `{op0}`"),
                );
            }
        }
        _ => {
            for (attr, word) in attrs.iter().zip(words) {
                if let Some(word @ ("rsqrt" | "power")) = word {
                    cx.attr_error_help(
                        attr,
                        format!("is `{word}`, which runs on `pool`, found engine `dve`"),
                        Some("write `{engine = pool}`".to_owned()),
                    );
                }
            }
        }
    }
}

pub(crate) fn scalar_tensor_tensor(cx: &mut OpContext<'_>) {
    for attr in ["op0", "op1"] {
        binary_word(cx, attr);
        arithmetic_only(cx, attr);
    }
    one_psum(cx, "src", "other");
}

pub(crate) fn scan(cx: &mut OpContext<'_>) {
    for attr in ["op0", "op1"] {
        binary_word(cx, attr);
        arithmetic_only(cx, attr);
    }
    one_psum(cx, "lhs", "rhs");
}

pub(crate) fn tensor_reduce(cx: &mut OpContext<'_>) {
    legal_alu(cx, "op", |op| op.reduces);
    let word = cx.view().word("op").unwrap_or("");
    if is_bitvec(word) {
        bit_operands(cx, word, &["src", "dst"]);
        if cx.view().flag("negate") {
            cx.attr_error(
                "negate",
                format!("must be absent for `{word}`, which works on raw bits"),
            );
        }
    }
    let (Some(src), Some(dst)) = (cx.shape("src"), cx.shape("dst")) else {
        return;
    };
    same_partitions(cx, "src", "dst");
    let Some(axes) = integers(cx, "axes") else {
        return;
    };
    let last = src.pairs as i64;
    if axes.is_empty() {
        cx.attr_error("axes", "must name a dimension, found none");
        return;
    }
    if axes.contains(&0) {
        cx.attr_error_help(
            "axes",
            "must not name dimension 0, the partition",
            Some(
                "`tensor_partition_reduce` reduces over partitions, `matmult` with ones is faster"
                    .to_owned(),
            ),
        );
        return;
    }
    let is_trailing =
        axes.windows(2).all(|pair| pair[1] == pair[0] + 1) && axes.last() == Some(&last);
    if !is_trailing {
        cx.attr_error_help(
            "axes",
            format!("must be the trailing dimensions in order, up to {last}, found {axes:?}"),
            Some("walk the dimensions that are reduced last, with a raw access".to_owned()),
        );
        return;
    }
    let kept = src.pairs - axes.len();
    let expected = match kept {
        0 => 1,
        _ => {
            let Some((_, access)) = cx.access("src") else {
                return;
            };
            let kept = access.pairs.iter().take(kept);
            kept.fold(1u64, |product, pair| product.saturating_mul(pair.count))
        }
    };
    if dst.elements != expected && src.partitions == dst.partitions {
        cx.operand_error(
            "dst",
            format!(
                "must have {} per partition, what the reduction leaves, found {}",
                counted(expected, "element"),
                dst.elements
            ),
        );
    }
}

pub(crate) fn select(cx: &mut OpContext<'_>) {
    if let Some(facts) = cx.shape("on_true")
        && matches!(facts.dtype, DType::Tf32 | DType::I32 | DType::U32)
    {
        cx.operand_error(
            "on_true",
            format!(
                "must not be of `tf32`, `i32` or `u32`, found `{}`",
                facts.dtype
            ),
        );
    }
    full_or_per_partition(cx, "dst", "on_true");
    full_or_per_partition(cx, "dst", "on_false");
    one_psum(cx, "pred", "on_true");
}

pub(crate) fn copy_predicated(cx: &mut OpContext<'_>) {
    full_or_per_partition(cx, "dst", "on_true");
    one_psum(cx, "pred", "on_true");
}

pub(crate) fn bn_stats(cx: &mut OpContext<'_>) {
    same_partitions(cx, "src", "dst");
    elements_between(cx, "src", 1, 512);
    elements(cx, "dst", 6);
}

pub(crate) fn bn_aggr(cx: &mut OpContext<'_>) {
    same_partitions(cx, "src", "dst");
    elements(cx, "dst", 2);
    if let Some(facts) = cx.shape("src")
        && !facts.elements.is_multiple_of(3)
    {
        cx.operand_error(
            "src",
            format!(
                "must have a multiple of 3 elements per partition, found {}",
                facts.elements
            ),
        );
    }
}

pub(crate) fn max8(cx: &mut OpContext<'_>) {
    same_partitions(cx, "src", "dst");
    elements_between(cx, "src", 8, 16384);
    elements(cx, "dst", 8);
}
