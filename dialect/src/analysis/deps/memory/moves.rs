//! What a rewrite asks before it lets an access happen earlier or later.

use super::{Memory, READS, WRITES, shares};
use crate::ir::{Ir, Op, Operand};

impl Memory {
    /// Whether one instruction stands before another in the text.
    pub fn comes_before(&self, a: Op, b: Op) -> bool {
        let at = |op| self.at.get(&op).map(|at| at.0);
        at(a) < at(b)
    }

    /// Whether an instruction may write a byte of what an operand of `of` accesses.
    pub fn writes(&self, op: Op, of: Op, operand: Operand) -> bool {
        let Some(query) = self.entry(of, operand) else {
            return true;
        };
        let numbers = self.of_op.get(&op).into_iter().flatten();
        numbers
            .filter_map(|&number| self.entries[number as usize].as_ref())
            .any(|entry| {
                entry.effect.is_write()
                    && entry.storage == query.storage
                    && shares(entry, query, true)
            })
    }

    /// Whether an instruction between two, none of `except`, may read or write a byte of what an
    /// operand accesses. The two may stand in either order; they do not count.
    pub fn touched_between(&self, ir: &Ir, a: Op, b: Op, of: (Op, Operand), except: &[Op]) -> bool {
        let Some(query) = self.entry(of.0, of.1) else {
            return true;
        };
        let (from, to) = match self.comes_before(a, b) {
            true => (a, b),
            false => (b, a),
        };
        let stretch = self.stretch(ir, from, to);
        [READS, WRITES].into_iter().any(|what| {
            let hit = self.backwards(query, what, stretch, |entry| {
                shares(entry, query, stretch.one_iteration) && !except.contains(&entry.op)
            });
            hit.is_some()
        })
    }
}
