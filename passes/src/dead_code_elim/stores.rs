//! Dead stores: writes none of whose bytes anybody sees.
//!
//! The same search as the [sweep](super::sweep), by bytes and in the order of the program: a read
//! of an instruction that stays needs the writes that may have been last to some byte of it, and
//! where the function ends, outputs and written inputs are looked at. So a write dies where later
//! writes cover it, one or several together, before anybody reads; masked, indirect and moving
//! writes cover nothing.

use std::collections::HashSet;

use bir_dialect::analysis::index::{Frames, FunctionIndex, Seen};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Def, Ir, Op, Operand, Value};

use super::roots::{Roots, keeps, uses};
use crate::lives;
use bir_dialect::analysis::outside::function_allocs;

/// Instructions that only make dead stores, in text order.
pub(super) fn dead(ir: &Ir, func: Op, roots: &Roots) -> Vec<Op> {
    if !may_have_some(ir, func, roots) {
        return Vec::new();
    }
    let index = FunctionIndex::build(ir, func, Frames::Locations);
    let touches = index.touches();
    // Touches stand in the order walked: those of an instruction together.
    let mut first = vec![u32::MAX; ir.op_rows()];
    for (at, touch) in (0u32..).zip(touches) {
        let known = &mut first[touch.op.index()];
        *known = at.min(*known);
    }
    let mut search = Search {
        ir,
        live: vec![false; ir.op_rows()],
        needed: HashSet::new(),
        todo: Vec::new(),
    };
    for touch in touches {
        let location = &index.locations()[touch.location as usize];
        if touch.effect.is_write() && roots.always_escapes(location.value) {
            search.keep(touch.op);
        }
    }
    let left = |&&(op, _): &&(Op, Option<OpCode>)| !ir.is_erased(op);
    let all = || roots.instructions.iter().filter(left);
    for &(op, _) in all() {
        if keeps(ir, op) {
            search.keep(op);
        }
    }
    let mut seen = Seen::new(&index);
    let mut found: Vec<u32> = Vec::new();
    for (at, location) in (0u32..).zip(index.locations()) {
        if location.is_visible() {
            seen.end(at, &mut found);
        }
    }
    loop {
        for &touch in &found {
            search.keep(touches[touch as usize].op);
        }
        found.clear();
        if search.todo.is_empty() {
            let dead = |op: Op| !search.live[op.index()];
            for op in lives::needed(ir, &index, dead) {
                search.keep(op);
            }
        }
        let Some(op) = search.todo.pop() else { break };
        search.registers(op);
        let from = first[op.index()];
        if from == u32::MAX {
            continue;
        }
        let own = touches[from as usize..]
            .iter()
            .take_while(|touch| touch.op == op);
        for (at, touch) in (from..).zip(own) {
            if touch.effect.is_read() {
                seen.read(at, &mut found);
            }
        }
    }
    all()
        .map(|&(op, _)| op)
        .filter(|op| !search.live[op.index()])
        .collect()
}

/// Whether there can be one: what is written once, and read at all, is seen.
fn may_have_some(ir: &Ir, func: Op, roots: &Roots) -> bool {
    let is_write = |operand: Operand| {
        let data = ir.operand(operand);
        uses(ir, data.owner, OpCode::of(ir, data.owner), data).writes
    };
    function_allocs(ir, func)
        .filter_map(|op| ir.result(op))
        .filter(|&value| !roots.always_escapes(value))
        .any(|value| {
            ir.uses(value)
                .filter(|&operand| is_write(operand))
                .nth(1)
                .is_some()
        })
}

struct Search<'a> {
    ir: &'a Ir,
    live: Vec<bool>,
    /// Registers whose writers are kept.
    needed: HashSet<Value>,
    todo: Vec<Op>,
}

impl Search<'_> {
    fn keep(&mut self, op: Op) {
        if !std::mem::replace(&mut self.live[op.index()], true) {
            self.todo.push(op);
        }
    }

    /// Registers are needed whole: all who write one that is read.
    fn registers(&mut self, op: Op) {
        let ir = self.ir;
        let code = OpCode::of(ir, op);
        for operand in ir.operands(op) {
            let Def::Result { op: def, .. } = ir.def(operand.value) else {
                continue;
            };
            if OpCode::of(ir, def) == Some(OpCode::Alloc) {
                continue;
            }
            self.keep(def);
            if !uses(ir, op, code, operand).reads || !self.needed.insert(operand.value) {
                continue;
            }
            for other in ir.uses(operand.value) {
                let data = ir.operand(other);
                if uses(ir, data.owner, OpCode::of(ir, data.owner), data).writes {
                    self.keep(data.owner);
                }
            }
        }
    }
}
