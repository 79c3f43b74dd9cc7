//! The instructions that use what an engine remembers, in order.
//!
//! Invariant: per block, the instructions that read or write hidden state, or hold one that does, in program
//! order; some may do neither any more.

use bir_dialect::bir::ops::{reads_hidden_state, writes_hidden_state};
use bir_dialect::ir::{Block, Ir, Op};
use hashbrown::HashMap;

/// Who uses hidden state in a function.
#[derive(Debug, Default)]
pub(crate) struct States {
    lists: HashMap<Block, Vec<Op>, foldhash::fast::FixedState>,
}

fn uses_state(ir: &Ir, op: Op) -> bool {
    reads_hidden_state(ir, op) || writes_hidden_state(ir, op)
}

impl States {
    pub(crate) fn new(ir: &Ir, func: Op) -> States {
        let mut states = States::default();
        for op in ir.walk_op(func).filter(|&op| uses_state(ir, op)) {
            states.add(ir, op, func);
        }
        states
    }

    /// Takes note of an instruction that is new, or another than it was.
    pub(crate) fn changed(&mut self, ir: &Ir, op: Op, func: Op) {
        if uses_state(ir, op) {
            self.add(ir, op, func);
        }
    }

    /// Forgets an instruction that is about to go.
    pub(crate) fn remove(&mut self, ir: &Ir, op: Op) {
        let list = ir.block(op).and_then(|block| self.lists.get_mut(&block));
        if let Some(list) = list
            && let Ok(at) = place(ir, list, op)
        {
            list.remove(at);
        }
    }

    fn add(&mut self, ir: &Ir, op: Op, func: Op) {
        let mut at = Some(op);
        while let Some(op) = at.filter(|&op| op != func)
            && let Some(block) = ir.block(op)
        {
            let list = self.lists.entry(block).or_default();
            match place(ir, list, op) {
                // Whoever holds it is known too.
                Ok(_) => return,
                Err(place) => list.insert(place, op),
            }
            at = ir.parent(op);
        }
    }

    /// Those behind an instruction in its block, in order.
    pub(crate) fn behind(&self, ir: &Ir, op: Op) -> &[Op] {
        let list = ir.block(op).and_then(|block| self.lists.get(&block));
        let list = list.map_or(&[][..], Vec::as_slice);
        match place(ir, list, op) {
            Ok(at) => &list[at + 1..],
            Err(at) => &list[at..],
        }
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Op> + '_ {
        self.lists.values().flatten().copied()
    }
}

fn place(ir: &Ir, list: &[Op], op: Op) -> Result<usize, usize> {
    list.binary_search_by_key(&ir.order_in_block(op), |&one| ir.order_in_block(one))
}
