//! The dataflow view of a function, made when it is first asked and kept right from then on.

use bir_dialect::analysis::deps::Memory;
use bir_dialect::ir::{Ir, Op};

/// Who writes and reads what in a function.
///
/// Rules about single instructions never ask, so a sweep with them alone never pays for it.
#[derive(Debug)]
pub struct Flow {
    func: Op,
    memory: Option<Memory>,
}

impl Flow {
    /// Of a function; nothing is computed yet.
    pub fn new(func: Op) -> Flow {
        Flow { func, memory: None }
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

    /// Lets the next question compute everything anew.
    pub fn forget(&mut self) {
        self.memory = None;
    }

    /// The answers, if anybody asked before: what has to be told of changes.
    pub fn known(&mut self) -> Option<&mut Memory> {
        self.memory.as_mut()
    }
}
