//! Ops that go through the vector or scalar engine's accumulator.

use super::*;

/// The command, its `init`, and whether what is read out is defined.
fn accumulator(cx: &mut OpContext<'_>, default: &str) {
    let cmd = cx.view().word("reduce_cmd").unwrap_or(default);
    let has_init = cx.role("init").is_present();
    if cmd == "load" && !has_init {
        cx.attr_error_help(
            "reduce_cmd",
            "is `load`, which needs operand `init`",
            Some("write `init` and a number or a tile".to_owned()),
        );
    } else if cmd != "load" && has_init {
        cx.operand_error("init", format!("is loaded by `load` only, found `{cmd}`"));
    }
    if cmd == "idle" && cx.role("reduce_res").is_present() {
        cx.operand_error_help(
            "reduce_res",
            "reads an accumulator that `idle` leaves undefined",
            Some("write `reduce reset`, `reduce accumulate` or `reduce load`".to_owned()),
        );
    }
}

const COMMANDS: &[&str] = &["idle", "reset", "accumulate", "load"];
const COMMANDS_WITHOUT_LOAD: &[&str] = &["idle", "reset", "accumulate"];

pub(crate) fn activate2(cx: &mut OpContext<'_>) {
    legal_words(cx, "reduce", &["add", "max", "min", "abs_max", "abs_min"]);
    legal_words(cx, "reduce_cmd", &["idle", "reset", "accumulate", "clear"]);
    let (op0, op1) = (cx.view().word("op0"), cx.view().word("op1"));
    let is_good = matches!(
        (op0, op1),
        (Some("multiply"), Some("add" | "subtract" | "bypass"))
            | (Some("add" | "subtract" | "bypass"), Some("bypass"))
    );
    if let (Some(op0), Some(op1)) = (op0, op1)
        && !is_good
    {
        cx.attr_error(
            "op1",
            format!("must be `bypass` after `{op0}`, or follow `multiply`, found `{op1}`"),
        );
    }
    for (attr, role) in [("op0", "operand0"), ("op1", "operand1")] {
        let is_present = cx.role(role).is_present();
        match cx.view().word(attr) {
            Some("bypass") if is_present => {
                cx.operand_error(role, format!("has no operation: `{attr}` is `bypass`"));
            }
            Some(word) if word != "bypass" && !is_present => {
                cx.error(format!("`activate2` needs operand `{role}` for `{word}`"));
            }
            _ => {}
        }
    }
    if let (Some(first), Some(second)) = (cx.shape("operand0"), cx.shape("operand1"))
        && first.dtype != second.dtype
    {
        cx.operand_error(
            "operand1",
            format!(
                "must be of `{}`, as `operand0`, found `{}`",
                first.dtype, second.dtype
            ),
        );
    }
    if cx.ir.attr(cx.op, "alpha").is_some() && cx.view().word("func") != Some("prelu") {
        cx.attr_error(
            "alpha",
            "is the slope of `prelu`, and no other function has one",
        );
    }
}

pub(crate) fn exponential(cx: &mut OpContext<'_>) {
    if cx.shape("src").is_some_and(|src| src.dtype == DType::Tf32) {
        cx.operand_error("src", "must be of another dtype than `tf32`");
    }
    legal_words(cx, "reduce_cmd", COMMANDS);
    accumulator(cx, "idle");
}

pub(crate) fn tensor_scalar_reduce(cx: &mut OpContext<'_>) {
    binary_word(cx, "op0");
    arithmetic_only(cx, "op0");
    legal_words(cx, "reduce", &["add", "multiply", "max", "min"]);
    legal_words(cx, "reduce_cmd", COMMANDS);
    accumulator(cx, "reset");
}

pub(crate) fn tensor_scalar_cumulative(cx: &mut OpContext<'_>) {
    binary_word(cx, "op0");
    arithmetic_only(cx, "op0");
    legal_words(cx, "op1", &["add", "subtract", "multiply", "max", "min"]);
    legal_words(cx, "reduce_cmd", &["reset", "accumulate", "load"]);
    accumulator(cx, "reset");
}

pub(crate) fn select_reduce(cx: &mut OpContext<'_>) {
    legal_words(cx, "reduce_cmd", COMMANDS_WITHOUT_LOAD);
    accumulator(cx, "idle");
    select(cx);
    if let (Some(dst), Some(facts)) = (cx.shape("dst"), cx.shape("on_false"))
        && (facts.elements != 1 || facts.partitions != dst.partitions)
    {
        cx.operand_error(
            "on_false",
            format!(
                "must have one element per partition, found {}",
                facts.elements
            ),
        );
    }
}

pub(crate) fn range_select(cx: &mut OpContext<'_>) {
    for attr in ["cmp0", "cmp1"] {
        legal_words(
            cx,
            attr,
            &["equal", "greater", "greater_equal", "less", "less_equal"],
        );
    }
    legal_words(cx, "reduce_cmd", COMMANDS_WITHOUT_LOAD);
    accumulator(cx, "reset");
    let start = cx.view().int("range_start").unwrap_or(0);
    if let Some(src) = cx.shape("src")
        && u64::try_from(start)
            .unwrap_or(0)
            .saturating_add(src.elements)
            > 1 << 24
    {
        cx.attr_error(
            "range_start",
            format!("must leave positions below 2^24, found {start}"),
        );
    }
}

pub(crate) fn tensor_scalar_cache(cx: &mut OpContext<'_>) {
    let (read, write) = (cx.view().flag("cache_read"), cx.view().flag("cache_write"));
    if read && write {
        cx.attr_error("cache_read", "must be absent where `cache_write` is given");
    }
    for role in ["operand0", "operand1"] {
        if read && cx.role(role).is_present() {
            cx.operand_error(role, "must be absent where `cache_read` is given");
            return;
        }
    }
    // The scalars are f32, cached or not.
    for attr in ["op0", "op1"] {
        arithmetic_only(cx, attr);
        if cx.view().word(attr).is_some_and(is_bitvec) {
            return;
        }
    }
    tensor_scalar(cx);
}

pub(crate) fn tensor_scalar_addr(cx: &mut OpContext<'_>) {
    for (attr, role) in [("op0", "operand0"), ("op1", "operand1")] {
        legal_words(cx, attr, &["add", "subtract", "multiply"]);
        let has_word = cx.view().word(attr).is_some();
        let has_scalar = cx.role(role).is_present();
        if has_word && !has_scalar {
            cx.error(format!("`tensor_scalar_addr` needs operand `{role}`"));
        } else if has_scalar && !has_word {
            cx.operand_error(role, format!("has no operation: `{attr}` is absent"));
        }
    }
}

pub(crate) fn dropout(cx: &mut OpContext<'_>) {
    let prob = cx.role("prob").literal();
    let bits = prob.and_then(|attr| super::super::super::attrs::number_bits(&cx.ir.ctx, attr));
    if let Some((DType::F32, bits)) = bits
        && !(0.0..=1.0).contains(&f32::from_bits(bits as u32))
    {
        let found = f32::from_bits(bits as u32);
        cx.operand_error("prob", format!("must be from 0 to 1, found {found}"));
    }
    if let (Some(src), Some(prob)) = (cx.shape("src"), cx.shape("prob"))
        && src.dtype.is_integer()
        && prob.dtype != DType::F32
    {
        cx.operand_error(
            "prob",
            format!("must be of `f32` for integers, found `{}`", prob.dtype),
        );
    }
}

pub(crate) fn tensor_partition_reduce(cx: &mut OpContext<'_>) {
    legal_words(
        cx,
        "op",
        &["add", "average", "max", "bitwise_or", "bitwise_and"],
    );
    partitions(cx, "dst", 1);
    if let Some(src) = cx.shape("src") {
        elements(cx, "dst", src.elements);
    }
    if let Some(word) = cx.view().word("op")
        && is_bitvec(word)
    {
        for role in ["src", "dst"] {
            if let Some(facts) = cx.shape(role)
                && !facts.dtype.is_integer()
            {
                cx.operand_error(
                    role,
                    format!(
                        "must be of an integer dtype for `{word}`, found `{}`",
                        facts.dtype
                    ),
                );
            }
        }
        if let (Some(src), Some(dst)) = (cx.shape("src"), cx.shape("dst"))
            && src.dtype.size_bytes() != dst.dtype.size_bytes()
        {
            cx.operand_error(
                "dst",
                format!(
                    "must be as wide as `src` for `{word}`, {} bits, found `{}`",
                    src.dtype.bits(),
                    dst.dtype
                ),
            );
        }
    }
}

pub(crate) fn find_index8(cx: &mut OpContext<'_>) {
    elements_between(cx, "src", 8, 16384);
    for role in ["values", "dst"] {
        same_partitions(cx, "src", role);
        elements(cx, role, 8);
    }
}

pub(crate) fn match_replace8(cx: &mut OpContext<'_>) {
    elements_between(cx, "src", 8, 16384);
    for role in ["values", "dst_index"] {
        same_partitions(cx, "src", role);
        elements(cx, role, 8);
    }
}

pub(crate) fn topk(cx: &mut OpContext<'_>) {
    partitions_multiple(cx, "src", 16);
    same_partitions(cx, "src", "dst");
    let (Some(src), Some(k)) = (cx.shape("src"), cx.view().int("k")) else {
        return;
    };
    let (n, k) = (
        src.elements.saturating_mul(16),
        u64::try_from(k).unwrap_or(0),
    );
    if !(8..65536).contains(&n) {
        cx.operand_error(
            "src",
            format!("must have 8 to 65535 elements per 16 partitions, found {n}"),
        );
    } else if k > n {
        cx.attr_error(
            "k",
            format!("must be at most {n}, the elements per 16 partitions, found {k}"),
        );
    }
    elements(cx, "dst", k.div_ceil(16));
}
