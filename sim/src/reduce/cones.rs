//! What an output does not need: most of a program, in one candidate.
//!
//! Need is told location by location, which keeps too much rather than too little; what it misses
//! (locations at one address, state of engines) makes a candidate that is not interesting.

use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::program::symbol_name;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Ir, Op, OperandData, Value};
use hashbrown::{HashMap, HashSet};

use super::Reducer;
use super::ops::is_droppable;

/// Keeps what one output needs, or what all of them do.
pub(super) fn keep_cones(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = sweep(reducer);
    let outputs = outputs(&reducer.best);
    if outputs.len() < 2 {
        return progress;
    }
    for output in outputs {
        // What is kept has one output, and so an end.
        if reducer.attempt(|ir| erase_unneeded(ir, &[output])) {
            progress = true;
            break;
        }
    }
    progress
}

/// Drops what no output needs.
pub(super) fn sweep(reducer: &mut Reducer<'_>) -> bool {
    let outputs = outputs(&reducer.best);
    reducer.attempt(|ir| erase_unneeded(ir, &outputs))
}

/// Locations the outside sees at the end.
fn outputs(ir: &Ir) -> Vec<Value> {
    ir.walk()
        .ops()
        .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Alloc))
        .filter(|&op| matches!(OpView::new(ir, op).word("kind"), Some("output" | "inout")))
        .filter_map(|op| ir.result(op))
        .collect()
}

/// Erases every instruction that nothing in `roots` depends on; whether there was one.
fn erase_unneeded(ir: &mut Ir, roots: &[Value]) -> bool {
    let ops: Vec<Op> = ir.walk().ops().collect();
    let kept = needed(ir, &ops, roots);
    let mut erased = false;
    for &op in ops.iter().rev() {
        if !kept.contains(&op) && !ir.is_erased(op) && is_droppable(ir, op) {
            erased |= ir.erase(op);
        }
    }
    erased
}

/// Locations that share bytes by name have one of them in common.
fn storages(ir: &Ir, ops: &[Op]) -> HashMap<Value, Value> {
    let allocs = || { ops.iter() }.filter(|&&op| OpCode::of(ir, op) == Some(OpCode::Alloc));
    let by_name: HashMap<&str, Value> = allocs()
        .filter_map(|&op| Some((ir.ctx.text(symbol_name(ir, op)?), ir.result(op)?)))
        .collect();
    allocs()
        .filter_map(|&op| {
            let AttrView::Symbol(other) = ir.ctx.attr(ir.attr(op, "must_alias")?) else {
                return None;
            };
            Some((ir.result(op)?, *by_name.get(ir.ctx.text(other))?))
        })
        .collect()
}

fn needed(ir: &Ir, ops: &[Op], roots: &[Value]) -> HashSet<Op> {
    let storages = storages(ir, ops);
    let root = |mut value: Value| {
        // Chains of aliases are short, but may run in a circle.
        for _ in 0..8 {
            match storages.get(&value) {
                Some(&other) => value = other,
                None => break,
            }
        }
        value
    };
    let mut values: HashSet<Value> = roots.iter().map(|&value| root(value)).collect();
    let mut kept: HashSet<Op> = HashSet::new();
    loop {
        let before = kept.len();
        // Backwards, so that a round suffices where there are no loops.
        for &op in ops.iter().rev().filter(|&&op| !is_declaration(ir, op)) {
            if kept.contains(&op)
                || !is_needed(ir, op, &kept, |value| values.contains(&root(value)))
            {
                continue;
            }
            kept.insert(op);
            let def = OpView::new(ir, op).def();
            let reads = ir.operands(op).iter().filter(|operand| {
                let role = def.and_then(|def| def.operands.get(usize::from(operand.role)));
                role.is_none_or(|role| role.reads())
            });
            values.extend(reads.map(|operand| root(operand.value)));
        }
        if kept.len() == before {
            return kept;
        }
    }
}

fn is_declaration(ir: &Ir, op: Op) -> bool {
    matches!(
        OpCode::of(ir, op),
        Some(OpCode::Module | OpCode::Func | OpCode::Alloc)
    )
}

/// Whether it writes what is needed, decides where control goes, or has something needed inside.
fn is_needed(ir: &Ir, op: Op, kept: &HashSet<Op>, is: impl Fn(Value) -> bool) -> bool {
    let Some(def) = OpView::new(ir, op).def() else {
        return true;
    };
    let writes = |operand: &OperandData| {
        let role = def.operands.get(usize::from(operand.role));
        role.is_some_and(|role| role.writes()) && is(operand.value)
    };
    def.has(Trait::Terminator)
        || ir.results(op).any(&is)
        || ir.operands(op).iter().any(writes)
        || (ir.walk_op(op)).any(|inner| inner != op && kept.contains(&inner))
}
