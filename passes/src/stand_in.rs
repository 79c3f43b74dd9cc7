//! An instruction that goes because one before it did the same: what others owe to it, they owe to that one.
//!
//! Whoever came behind the one that goes must come behind the one that stays, too: by what engines and
//! queues do in order, by semaphores, or by dependences that are stated.

use bir_dialect::analysis::sync::{Stream, waits_or_signals};
use bir_dialect::bir::program::{COL_DEPS, COL_ID, Dep, DepKind, target_of};
use bir_dialect::ir::{Ir, Op};

/// What is known of a function's order.
pub(crate) struct Order {
    func: Op,
    /// Whether anything waits or signals, once somebody asked.
    has_semaphores: Option<bool>,
}

impl Order {
    pub(crate) fn new(func: Op) -> Order {
        Order {
            func,
            has_semaphores: None,
        }
    }

    /// Whether anything in the function waits or signals.
    pub(crate) fn has_semaphores(&mut self, ir: &Ir) -> bool {
        let func = self.func;
        let any = || ir.walk_op(func).any(|op| waits_or_signals(ir, op));
        *self.has_semaphores.get_or_insert_with(any)
    }

    /// Whether those who come after an instruction come after one before it, or can be told to: both are
    /// of one queue, or dependences say all.
    pub(crate) fn may_stand_in(&mut self, ir: &Ir, first: Op, gone: Op) -> bool {
        if is_dependent(ir, gone) && ir.int_cell(COL_ID, first).is_none() {
            return false;
        }
        let func = self.func;
        let stream = |op: Op| Stream::of(ir, op, target_of(ir, func));
        stream(first) == stream(gone) || !self.has_semaphores(ir)
    }
}

/// Lets an instruction that will go depend on the one that stands in for it: so will those who depend on
/// it, by [`erase`](bir_dialect::analysis::deps::erase).
pub(crate) fn depend(ir: &mut Ir, first: Op, gone: Op) {
    let Some(id) = ir.int_cell(COL_ID, first) else {
        return;
    };
    if is_dependent(ir, gone) {
        let (kind, set) = (DepKind::Output, false);
        let mut all = ir.words_cell(COL_DEPS, gone).unwrap_or_default().to_vec();
        all.push(Dep { kind, id, set }.word());
        ir.set_words_cell(COL_DEPS, gone, Some(&all));
    }
}

/// Whether an instruction is one that others may depend on, or depends on others.
pub(crate) fn is_dependent(ir: &Ir, op: Op) -> bool {
    ir.int_cell(COL_ID, op).is_some() || ir.words_cell(COL_DEPS, op).is_some()
}

/// Whether an instruction says of others that they must come before it though it reads nothing of theirs.
pub(crate) fn follows(ir: &Ir, op: Op) -> bool {
    let deps = ir.words_cell(COL_DEPS, op).unwrap_or_default();
    let mut all = deps.iter().map(|&word| Dep::from_word(word));
    all.any(|dep| dep.kind != DepKind::Flow)
}
