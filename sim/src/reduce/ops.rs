//! Fewer instructions, fewer operands.

use bir_dialect::bir::attrs::number;
use bir_dialect::bir::num::DTypeClass;
use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::program::op_name;
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Cursor, Ir, NewOp, NewOperand, Op, Value};
use smallvec::SmallVec;

use super::{Reducer, cones};

/// Whether an op stands for itself: no module, function, location or branch.
pub(super) fn is_droppable(ir: &Ir, op: Op) -> bool {
    match OpCode::of(ir, op) {
        Some(OpCode::Module | OpCode::Func | OpCode::Alloc) => false,
        Some(code) => !code.def().has(Trait::Terminator),
        None => true,
    }
}

/// Erases runs of instructions, from the end: long runs first.
pub(super) fn drop_runs(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    let mut ops: Vec<Op> = reducer.ops();
    ops.retain(|&op| is_droppable(&reducer.best, op));
    let mut length = ops.len();
    while length > 0 {
        let mut end = ops.len();
        while end > 0 {
            let start = end.saturating_sub(length);
            let run: Vec<Op> = ops[start..end]
                .iter()
                .copied()
                .filter(|&op| reducer.is_there(op))
                .collect();
            if !run.is_empty() {
                progress |= reducer.attempt(|ir| {
                    let mut erased = false;
                    for &op in run.iter().rev() {
                        // A loop may have gone with what is in it.
                        erased |= !ir.is_erased(op) && ir.erase(op);
                    }
                    erased
                });
            }
            end = start;
        }
        ops.retain(|&op| reducer.is_there(op));
        length = if length == 1 {
            0
        } else {
            length.div_ceil(2).min(ops.len())
        };
    }
    progress
}

/// A fill of memory an operand writes, before `at`; whether there can be one.
pub(super) fn fill_before(
    ir: &mut Ir,
    cursor: Cursor,
    value: Value,
    annot: Annot,
    indices: &[Value],
) -> bool {
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
        return false;
    };
    if mem.space == Space::Dram {
        return false;
    }
    let dtype = bir_dialect::bir::access::Access::resolve(&ir.ctx, &mem, annot).dtype;
    let bits = match dtype.class() {
        DTypeClass::Packed => 0,
        DTypeClass::Scale => 127,
        DTypeClass::Float => bir_dialect::bir::num::from_f32(dtype, 1.0).unwrap_or(0),
        _ => 1,
    };
    let attr = number(&mut ir.ctx, dtype, bits);
    let name = ir.ctx.str("value");
    let dict = ir.ctx.dict(&[(name, attr)]);
    let def = OpCode::Memset.def();
    let mut operands: SmallVec<[NewOperand; 4]> = SmallVec::new();
    operands.push(NewOperand {
        value,
        role: 0,
        annot,
    });
    for &value in indices {
        operands.push(NewOperand {
            value,
            role: def.indices_role() as u8,
            annot: Annot::UNIT,
        });
    }
    ir.insert(
        cursor,
        NewOp {
            operands: &operands,
            dict,
            ..NewOp::new(op_name(OpCode::Memset))
        },
    );
    true
}

/// Puts fills in the place of instructions: what they read is not needed any more.
pub(super) fn replace_by_fills(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops().into_iter().rev() {
        if reducer.is_there(op)
            && is_droppable(&reducer.best, op)
            && reducer.best.regions(op).is_empty()
            && OpCode::of(&reducer.best, op) != Some(OpCode::Memset)
        {
            let filled = reducer.attempt(|ir| {
                replace_by_fill(ir, op);
                ir.erase(op)
            });
            // What made its sources is dead, and every candidate without it is quicker to test.
            if filled {
                progress = true;
                cones::sweep(reducer);
            }
        }
    }
    progress
}

/// Fills what an instruction writes, before it.
pub(super) fn replace_by_fill(ir: &mut Ir, op: Op) {
    let Some(def) = OpView::new(ir, op).def() else {
        return;
    };
    let indices: SmallVec<[Value; 4]> = OpView::new(ir, op).indices().collect();
    let written: SmallVec<[(Value, Annot); 2]> = ir
        .operands(op)
        .iter()
        .filter(|operand| {
            def.operands
                .get(usize::from(operand.role))
                .is_some_and(|role| role.writes())
        })
        .map(|operand| (operand.value, operand.annot))
        .collect();
    for (value, annot) in written {
        let used = used_indices(ir, value, annot, &indices);
        if used {
            fill_before(ir, Cursor::Before(op), value, annot, &indices);
        } else {
            fill_before(ir, Cursor::Before(op), value, annot, &[]);
        }
    }
}

/// Whether an access follows loop indices.
fn used_indices(ir: &Ir, value: Value, annot: Annot, indices: &[Value]) -> bool {
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
        return false;
    };
    !indices.is_empty()
        && !bir_dialect::bir::access::Access::resolve(&ir.ctx, &mem, annot)
            .terms
            .is_empty()
}

/// Leaves out operands that are optional, or of which there are several.
pub(super) fn drop_operands(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops() {
        let Some(def) = OpView::new(&reducer.best, op).def() else {
            continue;
        };
        for at in (0..reducer.best.operands(op).len()).rev() {
            let Some(operand) = reducer.best.operands(op).get(at) else {
                continue;
            };
            let role = def.operands.get(usize::from(operand.role));
            if role.is_some_and(|role| role.optional || role.variadic) {
                progress |= reducer.attempt(|ir| {
                    let mut operands = ir.new_operands(op);
                    operands.remove(at);
                    ir.set_operands(op, &operands);
                    true
                });
            }
        }
    }
    progress
}
