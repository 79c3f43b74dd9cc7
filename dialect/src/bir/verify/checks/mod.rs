//! Constraints of single ops, named by the op table.

mod accumulate;
mod collectives;
mod compute;
mod dma;
mod gather;
mod matrix;
mod movement;
mod storage;

pub(crate) use accumulate::*;
pub(crate) use collectives::*;
pub(crate) use compute::*;
pub(crate) use dma::*;
pub(crate) use gather::*;
pub(crate) use matrix::*;
pub(crate) use movement::*;
pub(crate) use storage::*;

use super::super::num::DType;
use super::super::ops::{ALU, AluOp, Arity, is_bitvec};
use super::super::space::{Engine, Space, Target};
use super::OpContext;
use super::operands::shape_text;
use super::words::counted;

/// At most one of these tiles is in PSUM: an engine reads it through one port.
fn one_psum(cx: &mut OpContext<'_>, first: &str, second: &str) {
    let in_psum =
        |cx: &OpContext<'_>, role: &str| cx.shape(role).is_some_and(|f| f.space == Space::Psum);
    if in_psum(cx, first) && in_psum(cx, second) {
        cx.operand_error_help(
            second,
            format!("is in `psum`, as is `{first}`, but at most one input may be"),
            Some("copy one of them to `sbuf` with `tensor_copy`".to_owned()),
        );
    }
}

/// The integers of a list attribute.
fn integers(cx: &OpContext<'_>, attr: &str) -> Option<Vec<i64>> {
    let ctx = &cx.ir.ctx;
    match ctx.attr(cx.ir.attr(cx.op, attr)?) {
        crate::ir::AttrView::Array(list) => list.iter().map(|attr| ctx.attr_int(attr)).collect(),
        _ => None,
    }
}

/// The tile in a role covers so many partitions.
fn partitions(cx: &mut OpContext<'_>, role: &str, expected: u64) {
    if let Some(facts) = cx.shape(role)
        && facts.partitions != expected
    {
        cx.operand_error(
            role,
            format!(
                "must have {}, found {}",
                counted(expected, "partition"),
                facts.partitions
            ),
        );
    }
}

/// The tile in a role covers a multiple of so many partitions.
fn partitions_multiple(cx: &mut OpContext<'_>, role: &str, unit: u64) {
    if let Some(facts) = cx.shape(role)
        && !facts.partitions.is_multiple_of(unit)
    {
        cx.operand_error(
            role,
            format!(
                "must have a multiple of {unit} partitions, found {}",
                facts.partitions
            ),
        );
    }
}

/// The words of an op attribute are among `legal`.
fn legal_words(cx: &mut OpContext<'_>, attr: &str, legal: &[&str]) {
    if let Some(word) = cx.view().word(attr)
        && !legal.contains(&word)
    {
        let words = super::words::one_of(legal.iter().copied());
        cx.attr_error(attr, format!("must be {words}, found `{word}`"));
    }
}

/// The ALU operation of an attribute is one that `is_legal` takes.
fn legal_alu(cx: &mut OpContext<'_>, attr: &str, is_legal: fn(&AluOp) -> bool) {
    if let Some(word) = cx.view().word(attr)
        && let Some(op) = AluOp::of(word)
        && !is_legal(op)
    {
        let legal = ALU.iter().filter(|op| is_legal(op)).map(|op| op.name);
        let words = super::words::one_of(legal);
        cx.attr_error(attr, format!("must be {words}, found `{word}`"));
    }
}

/// Whether a word is an ALU operation of one operand.
fn is_unary(word: &str) -> bool {
    AluOp::of(word).is_some_and(|op| op.arity == Arity::Unary)
}

/// An ALU word of two operands that the generation and the engine have.
fn binary_word(cx: &mut OpContext<'_>, attr: &str) {
    let Some(word) = cx.view().word(attr) else {
        return;
    };
    if AluOp::of(word).is_some_and(|op| op.arity != Arity::Binary) {
        cx.attr_error(
            attr,
            format!("must be an operation of two operands, found `{word}`"),
        );
    } else {
        word_of_generation(cx, attr);
    }
}

fn word_of_generation(cx: &mut OpContext<'_>, attr: &str) {
    let Some(word) = cx.view().word(attr) else {
        return;
    };
    let target = cx.target;
    if let Some(op) = AluOp::of(word)
        && target < op.since
    {
        let since = op.since;
        cx.attr_error_help(
            attr,
            format!("must be an operation of `{target}`, found `{word}`"),
            Some(format!("it exists from `{since}` on")),
        );
    }
}

/// No operation on raw bits: the op computes in f32.
fn arithmetic_only(cx: &mut OpContext<'_>, attr: &str) {
    if let Some(word) = cx.view().word(attr)
        && is_bitvec(word)
    {
        cx.attr_error(
            attr,
            format!("must be arithmetic, found `{word}`, which works on raw bits"),
        );
    }
}

/// Operations on raw bits take integers of one width and run on the vector engine.
fn bit_operands(cx: &mut OpContext<'_>, word: &str, roles: &[&str]) {
    if let Some(engine) = cx.engine
        && engine != Engine::Dve
    {
        cx.attr_error(
            "engine",
            format!("must be `dve` for `{word}`, found `{engine}`"),
        );
    }
    let mut width: Option<(DType, &str)> = None;
    for role in roles {
        let Some(facts) = cx.shape(role) else {
            continue;
        };
        if !facts.dtype.is_integer() {
            cx.operand_error(
                role,
                format!(
                    "must be of an integer dtype for `{word}`, found `{}`",
                    facts.dtype
                ),
            );
        } else if let Some((first, other)) = width
            && first.size_bytes() != facts.dtype.size_bytes()
        {
            cx.operand_error(
                role,
                format!(
                    "must be as wide as `{other}` for `{word}`, {} bits, found `{}`",
                    first.bits(),
                    facts.dtype
                ),
            );
        } else {
            width.get_or_insert((facts.dtype, role));
        }
    }
}

/// The tile in a role has so many elements per partition.
fn elements(cx: &mut OpContext<'_>, role: &str, expected: u64) {
    if let Some(facts) = cx.shape(role)
        && facts.elements != expected
    {
        cx.operand_error(
            role,
            format!(
                "must have {} per partition, found {}",
                counted(expected, "element"),
                facts.elements
            ),
        );
    }
}

/// The tile in a role has a number of elements per partition in a range.
fn elements_between(cx: &mut OpContext<'_>, role: &str, min: u64, max: u64) {
    if let Some(facts) = cx.shape(role)
        && !(min..=max).contains(&facts.elements)
    {
        cx.operand_error(
            role,
            format!(
                "must have {min} to {max} elements per partition, found {}",
                facts.elements
            ),
        );
    }
}

/// Two tiles cover equally many partitions.
fn same_partitions(cx: &mut OpContext<'_>, first: &str, second: &str) {
    if let (Some(expected), Some(found)) = (cx.shape(first), cx.shape(second))
        && expected.partitions != found.partitions
    {
        cx.operand_error(
            second,
            format!(
                "must have {}, as `{first}`, found {}",
                counted(expected.partitions, "partition"),
                found.partitions
            ),
        );
    }
}

/// A tile in a role that also takes numbers is of the shape of `first`, or one f32 per partition.
fn full_or_per_partition(cx: &mut OpContext<'_>, first: &str, role: &str) {
    let (Some(expected), Some(found)) = (cx.shape(first), cx.shape(role)) else {
        return;
    };
    let is_lane = found.partitions == expected.partitions && found.elements == 1;
    if !found.same_shape(&expected) && !is_lane {
        cx.operand_error(
            role,
            format!(
                "must have {}, as `{first}`, or one element per partition, found {}",
                shape_text(&expected),
                shape_text(&found)
            ),
        );
    }
}

/// A tile of f32, or a number.
fn scalar_is_f32(cx: &mut OpContext<'_>, role: &str) {
    if let Some(facts) = cx.shape(role)
        && facts.dtype != DType::F32
    {
        cx.operand_error(role, format!("must be of `f32`, found `{}`", facts.dtype));
    }
}
