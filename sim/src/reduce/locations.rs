//! Fewer locations.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::names;
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Cursor, Ir, Op, Value};

use super::Reducer;
use super::ops::{fill_before, replace_by_fill};

fn allocs(reducer: &Reducer<'_>) -> Vec<Op> {
    let ir = &reducer.best;
    let mut ops = reducer.ops();
    ops.retain(|&op| OpCode::of(ir, op) == Some(OpCode::Alloc));
    ops
}

/// Whether an operand writes a value.
fn writes(ir: &Ir, op: Op, value: Value) -> bool {
    let Some(def) = OpView::new(ir, op).def() else {
        return true;
    };
    ir.operands(op).iter().any(|operand| {
        operand.value == value
            && def
                .operands
                .get(usize::from(operand.role))
                .is_some_and(|role| role.writes())
    })
}

/// Lets a location hold one value from the start, and drops what wrote it.
pub(super) fn freeze(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for alloc in allocs(reducer) {
        let Some(value) = reducer.best.result(alloc) else {
            continue;
        };
        progress |= reducer.attempt(|ir| freeze_one(ir, alloc, value));
    }
    progress
}

fn freeze_one(ir: &mut Ir, alloc: Op, value: Value) -> bool {
    let mut writers: Vec<Op> = ir.uses(value).map(|use_| ir.operand(use_).owner).collect();
    writers.sort();
    writers.dedup();
    writers.retain(|&op| writes(ir, op, value));
    // One fill at the start is what is left in the end.
    if writers.is_empty()
        || writers.len() == 1 && OpCode::of(ir, writers[0]) == Some(OpCode::Memset)
    {
        return false;
    }
    let Some(space) = MemType::get(&ir.ctx, ir.value_type(value)).map(|mem| mem.space) else {
        return false;
    };
    for &op in &writers {
        // Whatever else it writes is filled.
        replace_by_fill(ir, op);
        ir.erase(op);
    }
    let fills: Vec<Op> = ir.uses(value).map(|use_| ir.operand(use_).owner).collect();
    for op in fills {
        if writes(ir, op, value) && OpCode::of(ir, op) == Some(OpCode::Memset) {
            ir.erase(op);
        }
    }
    if space == Space::Dram {
        let input = ir.ctx.string("input");
        let dict = ir.ctx.dict_with(ir.dict(alloc), names::KIND, Some(input));
        ir.set_dict(alloc, dict);
        return true;
    }
    let mut last = alloc;
    while let Some(next) = ir.next(last)
        && OpCode::of(ir, next) == Some(OpCode::Alloc)
    {
        last = next;
    }
    fill_before(ir, Cursor::After(last), value, Annot::UNIT, &[])
}

/// Drops locations nobody uses.
pub(super) fn drop_unused(reducer: &mut Reducer<'_>) -> bool {
    let unused: Vec<Op> = allocs(reducer)
        .into_iter()
        .filter(|&op| {
            let ir = &reducer.best;
            ir.result(op)
                .is_some_and(|value| ir.first_use(value).is_none())
        })
        .collect();
    if unused.is_empty() {
        return false;
    }
    let all = reducer.attempt(|ir| unused.iter().fold(false, |any, &op| ir.erase(op) | any));
    // One of them may be named by another, or be an output.
    all || unused
        .iter()
        .fold(false, |any, &op| reducer.attempt(|ir| ir.erase(op)) | any)
}

/// Lets one location stand for another of its type.
pub(super) fn merge(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    let allocs = allocs(reducer);
    for (at, &second) in allocs.iter().enumerate() {
        let ir = &reducer.best;
        let Some(value) = ir.result(second) else {
            continue;
        };
        let (ty, dict) = (ir.value_type(value), ir.dict(second));
        let first = allocs[..at].iter().copied().find(|&first| {
            reducer.is_there(first)
                && ir.dict(first) == dict
                && ir.result(first).is_some_and(|v| ir.value_type(v) == ty)
        });
        let Some(other) = first.and_then(|first| ir.result(first)) else {
            continue;
        };
        progress |= reducer.attempt(|ir| {
            ir.replace_uses(value, other);
            ir.erase(second)
        });
    }
    progress
}
