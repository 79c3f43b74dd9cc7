//! Counted loops that hold nothing.

use bir_dialect::analysis::deps::erase;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::names;
use bir_dialect::ir::{Ir, Op, Visit};

use super::{LOOPS, SEMAPHORES};
use crate::pass::{PassContext, symbol_text};

/// Removes empty loops, and those that are empty without them; whether there were any. A `while` may
/// never end, and a loop that waits or signals does something, so these stay.
pub(super) fn empty(ir: &mut Ir, func: Op, cx: &mut PassContext<'_>) -> bool {
    let mut gone = vec![false; ir.op_rows()];
    let mut found: Vec<Op> = Vec::new();
    for visit in ir.walk_visits(func) {
        if let Visit::Leave(op) = visit
            && OpCode::of(ir, op) == Some(OpCode::Loop)
            && is_empty(ir, op, &gone)
        {
            gone[op.index()] = true;
            found.push(op);
        }
    }
    let mut dead: Vec<Op> = Vec::new();
    for op in found {
        // Inner ones come first, so every number of them leaves loops whole.
        let what = || format!("remove an empty loop from {}", symbol_text(ir, func));
        if !cx.may_rewrite(&what) {
            break;
        }
        dead.push(op);
    }
    if dead.is_empty() {
        return false;
    }
    let done = erase(ir, func, &dead);
    cx.count(&LOOPS, done.removed);
    cx.count(&SEMAPHORES, done.left_semaphores);
    done.removed > 0
}

fn is_empty(ir: &Ir, op: Op, gone: &[bool]) -> bool {
    let has = |name| ir.ctx.dict_get(ir.dict(op), name).is_some();
    if has(names::WAIT) || has(names::SIGNAL) {
        return false;
    }
    ir.regions(op).iter().all(|&region| {
        let mut blocks = ir.blocks(region);
        let first = blocks.next();
        blocks.next().is_none()
            && first.is_none_or(|block| {
                ir.block_ops(block)
                    .all(|op| gone[op.index()] || ir.traits(op).terminator)
            })
    })
}
