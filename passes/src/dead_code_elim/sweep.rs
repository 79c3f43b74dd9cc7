//! The sweep: what reaches nothing observable, by whole locations and registers.
//!
//! It starts from what is observable and goes back along reads: a location or register that is
//! read needs all who write it, wherever they stand, and they what they read. What is not met is
//! dead, circles included. Instructions are met in the order of the text, from its end, which is
//! the order they are in memory too; each operand is looked at three times at most.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Def, Ir, Op, Value};

use super::roots::{Roots, keeps, uses};

/// Dead instructions of a function, in text order.
pub(super) fn dead(ir: &Ir, roots: &Roots) -> Vec<Op> {
    let mut sweep = Sweep {
        ir,
        live: vec![false; ir.op_rows()],
        needs: vec![UNKNOWN; ir.value_rows()],
        waiting: Vec::new(),
        todo: Vec::new(),
    };
    // From the bottom up most are met behind those who need them, so that hardly any wait.
    let mut dead: Vec<Op> = Vec::new();
    for &(op, code) in roots.instructions.iter().rev() {
        if sweep.live[op.index()] {
            continue;
        }
        if keeps(ir, op) || sweep.is_needed(op, code, roots) {
            sweep.keep(op);
            sweep.run();
        } else {
            sweep.wait(op, code);
            dead.push(op);
        }
    }
    let live = sweep.live;
    dead.reverse();
    dead.retain(|op| !live[op.index()]);
    dead
}

/// Nobody who stays has read the value so far, and nobody who writes it waits for that.
const UNKNOWN: u32 = u32::MAX;
/// Somebody who stays reads the value.
const NEEDED: u32 = u32::MAX - 1;

struct Sweep<'a> {
    ir: &'a Ir,
    live: Vec<bool>,
    /// Per value, whether it is needed, or the last in `waiting` that writes it.
    needs: Vec<u32>,
    /// Instructions that stay if a value of theirs is needed, and the one before that waits for it.
    waiting: Vec<(Op, u32)>,
    todo: Vec<Op>,
}

impl Sweep<'_> {
    /// Whether an instruction writes what others see, or what is read by one that stays.
    fn is_needed(&self, op: Op, code: Option<OpCode>, roots: &Roots) -> bool {
        let ir = self.ir;
        ir.operands(op).iter().any(|operand| {
            (roots.escapes(operand.value) || self.needs[operand.value.index()] == NEEDED)
                && uses(ir, op, code, operand).writes
        })
    }

    /// Lets an instruction wait for somebody to need what it writes.
    fn wait(&mut self, op: Op, code: Option<OpCode>) {
        let ir = self.ir;
        for operand in ir.operands(op) {
            if uses(ir, op, code, operand).writes {
                let last = &mut self.needs[operand.value.index()];
                let before = std::mem::replace(last, self.waiting.len() as u32);
                self.waiting.push((op, before));
            }
        }
    }

    fn keep(&mut self, op: Op) {
        if !std::mem::replace(&mut self.live[op.index()], true) {
            self.todo.push(op);
        }
    }

    fn run(&mut self) {
        let ir = self.ir;
        while let Some(op) = self.todo.pop() {
            let code = OpCode::of(ir, op);
            for operand in ir.operands(op) {
                if self.needs[operand.value.index()] != NEEDED && uses(ir, op, code, operand).reads
                {
                    self.need(operand.value);
                }
                // A register written by several: the definition stays with them.
                if let Def::Result { op: def, .. } = ir.def(operand.value)
                    && OpCode::of(ir, def) != Some(OpCode::Alloc)
                {
                    self.keep(def);
                }
            }
        }
    }

    /// Notes that a value is needed, and keeps those who waited for that.
    fn need(&mut self, value: Value) {
        let mut next = std::mem::replace(&mut self.needs[value.index()], NEEDED);
        while let Some(&(op, before)) = self.waiting.get(next as usize) {
            self.keep(op);
            next = before;
        }
    }
}
