//! The sweep: what reaches nothing observable, by whole locations and registers.
//!
//! It starts from what is observable and goes back along reads: a location or register that is
//! read needs all who write it, wherever they stand, and they what they read. What is not met is
//! dead, circles included. Each use is looked at once, so it costs O(operands); nothing is gone
//! over again.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Def, Ir, Op, Value};

use super::roots::{Roots, keeps, uses};

/// Dead instructions of a function, in text order.
pub(super) fn dead(ir: &Ir, func: Op, roots: &Roots) -> Vec<Op> {
    let mut sweep = Sweep {
        ir,
        roots,
        live: vec![false; ir.op_rows()],
        needed: vec![false; ir.value_rows()],
        todo: Vec::new(),
    };
    let mut all: Vec<Op> = Vec::with_capacity(roots.instructions as usize);
    for op in ir.walk_op(func).skip(1) {
        let code = OpCode::of(ir, op);
        if matches!(code, Some(OpCode::Alloc | OpCode::Depset)) {
            continue;
        }
        all.push(op);
        if keeps(ir, op) || sweep.writes_root(op, code) {
            sweep.keep(op);
        }
    }
    sweep.run();
    let live = sweep.live;
    all.retain(|op| !live[op.index()]);
    all
}

struct Sweep<'a> {
    ir: &'a Ir,
    roots: &'a Roots,
    live: Vec<bool>,
    needed: Vec<bool>,
    todo: Vec<Op>,
}

impl Sweep<'_> {
    /// Whether an instruction writes what others see.
    fn writes_root(&self, op: Op, code: Option<OpCode>) -> bool {
        let ir = self.ir;
        ir.operands(op)
            .iter()
            .any(|operand| self.roots.escapes(operand.value) && uses(ir, op, code, operand).writes)
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
                if uses(ir, op, code, operand).reads {
                    self.need(operand.value);
                }
            }
            // A register written by several: the definition stays with them.
            let written = ir.operands(op).iter().map(|operand| operand.value);
            for value in written {
                if let Def::Result { op: def, .. } = ir.def(value)
                    && OpCode::of(ir, def) != Some(OpCode::Alloc)
                {
                    self.keep(def);
                }
            }
        }
    }

    fn need(&mut self, value: Value) {
        let ir = self.ir;
        if std::mem::replace(&mut self.needed[value.index()], true) {
            return;
        }
        for operand in ir.uses(value) {
            let data = ir.operand(operand);
            let owner = data.owner;
            if !self.live[owner.index()] && uses(ir, owner, OpCode::of(ir, owner), data).writes {
                self.keep(owner);
            }
        }
    }
}
