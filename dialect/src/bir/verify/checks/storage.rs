//! Locations, loops and registers.

use super::super::super::attrs::Placement;
use super::super::super::space::{PARTITIONS, Space};
use super::super::super::types::{MemType, reg_dtype, type_text};
use super::super::placement::placement_fault;
use super::super::words::{counted, value_text};
use super::*;
use crate::ir::AttrView;
use crate::text::diag::Part;

pub(crate) fn alloc(cx: &mut OpContext<'_>) {
    let ir = cx.ir;
    let Some(value) = ir.result(cx.op) else {
        return;
    };
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
        return;
    };
    let name = value_text(ir, value);
    if mem.is_partitioned() && mem.dims.is_empty() {
        cx.error(format!(
            "location {name} in `{}` has no partition dimension",
            mem.space
        ));
        return;
    }
    if mem.dims.contains(&0) {
        cx.error(format!(
            "location {name} has no elements, found shape `{}`",
            mem.text()
        ));
        return;
    }
    if mem.is_partitioned() && mem.partitions() > u64::from(PARTITIONS) {
        let help = format!(
            "dimension 0 of a location in `{}` is the partition",
            mem.space
        );
        let message = format!(
            "location {name} covers {}, but `{}` has {PARTITIONS}",
            counted(mem.partitions(), "partition"),
            mem.space
        );
        cx.report(Part::Whole, message, Some(help));
        return;
    }
    let limit = match mem.space {
        Space::Dram => cx.target.dram_bytes(),
        Space::Sbuf => cx.target.sbuf_bytes(),
        Space::Psum => cx.target.psum_bytes(),
    };
    let per = if mem.is_partitioned() {
        " per partition"
    } else {
        ""
    };
    match mem.free_bytes() {
        Some(bytes) if bytes <= limit => {}
        Some(bytes) => {
            let (space, target) = (mem.space, cx.target);
            cx.error(format!(
                "location {name} takes {bytes} bytes{per}, but `{space}` of `{target}` has {limit}"
            ));
            return;
        }
        None => {
            cx.error(format!("location {name} takes more than 2^62 bytes{per}"));
            return;
        }
    }
    if let Some(at) = ir.attr(cx.op, "at")
        && let Some(at) = Placement::get(&ir.ctx, at)
        && let Some(fault) = placement_fault(&mem, at, cx.target)
    {
        let part = super::super::operands::ir_attr_part(ir, cx.op, "at");
        cx.report(part, format!("the placement of {name} {fault}"), None);
    }
    constant(cx, &mem, &name);
}

/// A constant has its elements, all of them, and nothing else has any.
fn constant(cx: &mut OpContext<'_>, mem: &MemType<'_>, name: &str) {
    let ir = cx.ir;
    let is_const = cx.view().word("kind") == Some("const");
    match ir.attr(cx.op, "value") {
        None if is_const => {
            let help = "`value = dense<\"0x…\">` or `value = \"weights.npy\"`".to_owned();
            cx.report(
                Part::Whole,
                format!("constant {name} has no `value`"),
                Some(help),
            );
        }
        Some(value) if is_const => {
            if let AttrView::Dense { hex, .. } = ir.ctx.attr(value) {
                let found = ir.ctx.text(hex).len() as u64 / 2;
                let size = u64::from(mem.dtype.size_bytes());
                let expected = mem.bytes().unwrap_or(u64::MAX);
                // One element stands for all of them.
                if found != expected && found != size {
                    cx.attr_error(
                        "value",
                        format!("must have {expected} bytes for {name}, found {found}"),
                    );
                }
            }
        }
        Some(_) => cx.attr_error_help(
            "value",
            format!("is given, but {name} is no constant"),
            Some("a location with a value is `kind = const`".to_owned()),
        ),
        None => {}
    }
}

pub(crate) fn loop_(cx: &mut OpContext<'_>) {
    let ir = cx.ir;
    let is_empty = ir
        .regions(cx.op)
        .first()
        .is_some_and(|&region| ir.entry(region).is_none());
    if is_empty {
        cx.error("the body of a loop takes one argument of type `index`");
    }
    for role in ["lower", "upper"] {
        let register = cx
            .value(role)
            .and_then(|value| reg_dtype(&ir.ctx, ir.value_type(value)));
        if let Some(found) = register
            && found != DType::I32
        {
            cx.operand_error(
                role,
                format!("must be a register of `i32`, found `{found}`"),
            );
        }
    }
}

fn one_element(cx: &mut OpContext<'_>, role: &str) {
    if let Some(facts) = cx.shape(role)
        && facts.total() != 1
    {
        cx.operand_error(
            role,
            format!("must be one element, found {}", shape_text(&facts)),
        );
    }
}

/// The register the instruction writes is of the dtype of `role`.
fn register_dtype(cx: &mut OpContext<'_>, expected: DType, from: &str) {
    let ir = cx.ir;
    let Some(value) = ir.result(cx.op).or_else(|| cx.value("dst")) else {
        return;
    };
    let ty = ir.value_type(value);
    if reg_dtype(&ir.ctx, ty).is_some_and(|found| found != expected) {
        let found = type_text(&ir.ctx, ty);
        cx.error(format!(
            "`{}` writes a register of `{expected}`, as {from}, found `{found}`",
            cx.def.name
        ));
    }
}

pub(crate) fn register_load(cx: &mut OpContext<'_>) {
    one_element(cx, "src");
    if let Some(facts) = cx.shape("src") {
        register_dtype(cx, facts.dtype, "`src`");
    }
}

pub(crate) fn register_store(cx: &mut OpContext<'_>) {
    one_element(cx, "dst");
    let register = cx
        .value("src")
        .and_then(|value| reg_dtype(&cx.ir.ctx, cx.ir.value_type(value)));
    if let (Some(facts), Some(found)) = (cx.shape("dst"), register)
        && found != facts.dtype
    {
        cx.operand_error(
            "src",
            format!(
                "must be a register of `{}`, as `dst`, found `{found}`",
                facts.dtype
            ),
        );
    }
}

pub(crate) fn register_move(cx: &mut OpContext<'_>) {
    legal_alu(cx, "op", |op| op.on_registers);
    let mut first = None;
    for role in ["value", "lhs", "rhs"] {
        let register = cx
            .value(role)
            .and_then(|value| reg_dtype(&cx.ir.ctx, cx.ir.value_type(value)));
        if let Some(dtype) = register {
            match first {
                None => {
                    first = Some(dtype);
                    register_dtype(cx, dtype, &format!("`{role}`"));
                }
                Some(expected) if expected != dtype => cx.operand_error(
                    role,
                    format!("must be a register of `{expected}`, as `lhs`, found `{dtype}`"),
                ),
                Some(_) => {}
            }
        }
    }
}
