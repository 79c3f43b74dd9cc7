//! The dataflow view of a function, made when it is first asked and kept right from then on.

use bir_dialect::analysis::deps::{Memory, meets_others};
use bir_dialect::analysis::outside::{Outside, function_allocs};
use bir_dialect::analysis::sync::waits_or_signals;
use bir_dialect::bir::program::names;
use bir_dialect::ir::{Ir, Op, Value};

use crate::states::States;

/// Who writes and reads what in a function.
///
/// Rules about single instructions never ask, so a sweep with them alone never pays for it.
#[derive(Debug)]
pub struct Flow {
    func: Op,
    memory: Option<Memory>,
    outside: Option<Outside>,
    has_semaphores: Option<bool>,
    has_ties: Option<bool>,
    states: Option<States>,
}

impl Flow {
    /// Of a function; nothing is computed yet.
    pub fn new(func: Op) -> Flow {
        Flow {
            func,
            memory: None,
            outside: None,
            has_semaphores: None,
            has_ties: None,
            states: None,
        }
    }

    /// The function.
    pub fn func(&self) -> Op {
        self.func
    }

    /// The answers, computed now if nobody asked before.
    pub fn memory(&mut self, ir: &Ir) -> &Memory {
        let func = self.func;
        self.memory.get_or_insert_with(|| Memory::new(ir, func))
    }

    /// Takes note of a new instruction.
    pub(crate) fn inserted(&mut self, ir: &Ir, op: Op) {
        if let Some(memory) = &mut self.memory {
            memory.insert(ir, op);
        }
        if let Some(states) = &mut self.states {
            states.changed(ir, op, self.func);
        }
    }

    /// Takes note of an instruction whose op, operands or attributes are others now.
    pub(crate) fn changed(&mut self, ir: &Ir, op: Op) {
        if let Some(memory) = &mut self.memory {
            memory.changed(ir, op);
        }
        if let Some(states) = &mut self.states {
            states.changed(ir, op, self.func);
        }
    }

    /// Forgets an instruction that is about to go.
    pub(crate) fn removed(&mut self, ir: &Ir, op: Op) {
        if let Some(memory) = &mut self.memory {
            memory.remove(ir, op);
        }
        if let Some(states) = &mut self.states {
            states.remove(ir, op);
        }
    }

    /// Who uses what engines remember.
    pub(crate) fn states(&mut self, ir: &Ir) -> &States {
        let func = self.func;
        self.states.get_or_insert_with(|| States::new(ir, func))
    }

    /// Whether anything in the function waits or signals. Rewrites hand on what does, so this stays.
    pub fn has_semaphores(&mut self, ir: &Ir) -> bool {
        let func = self.func;
        *self
            .has_semaphores
            .get_or_insert_with(|| ir.walk_op(func).any(|op| waits_or_signals(ir, op)))
    }

    /// Whether any location is placed, or shares the bytes of another by name.
    pub fn has_ties(&mut self, ir: &Ir) -> bool {
        let func = self.func;
        let is_tied = |alloc: Op| {
            let at = ir.ctx.dict_get(ir.dict(alloc), names::AT);
            at.is_some() || ir.attr(alloc, "must_alias").is_some()
        };
        *self
            .has_ties
            .get_or_insert_with(|| function_allocs(ir, func).any(is_tied))
    }

    /// Whether other cores may write or read a location between two instructions of a block, or behind
    /// the one and before the other, because something there waits for them.
    pub fn others_between(&mut self, ir: &Ir, location: Value, a: Op, b: Op) -> bool {
        let outside = self.outside.get_or_insert_with(|| Outside::new(ir));
        let is_foreign = ir
            .def_op(location)
            .is_some_and(|alloc| outside.is_foreign(ir, alloc, location));
        if !is_foreign || a == b {
            return false;
        }
        let (from, to) = match ir.order_in_block(a) < ir.order_in_block(b) {
            true => (a, b),
            false => (b, a),
        };
        // Waits come before what they stand on, signals behind it.
        let between = std::iter::successors(Some(from), |&op| ir.next(op).filter(|_| op != to));
        between
            .into_iter()
            .any(|op| ir.walk_op(op).any(|op| meets_others(ir, op)))
    }

    /// Lets the next question compute everything anew.
    pub fn forget(&mut self) {
        self.memory = None;
    }

    /// The answers, if anybody asked before: what has to be told of changes.
    pub fn known(&mut self) -> Option<&mut Memory> {
        self.memory.as_mut()
    }
}
