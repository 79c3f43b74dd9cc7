//! Whether operands of an instruction to be made share bytes they may not.
//!
//! What the verifier says of an instruction, asked before it is made: two results never share bytes, and
//! a result shares those of a source only as one access, element by element, of an op that can do that in
//! place. Where the verifier looks at every iteration, this says no.

use bir_dialect::analysis::access::{Footprint, footprint};
use bir_dialect::bir::access::Access;
use bir_dialect::bir::attrs::Placement;
use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::program::names;
use bir_dialect::bir::types::MemType;
use bir_dialect::ir::{NewOperand, Value};

use super::Rewriter;
use super::draft::Draft;
use crate::matcher::Miss;

impl Rewriter<'_> {
    pub(super) fn check_overlap(&mut self, at: usize, draft: &Draft) -> Result<(), Miss> {
        let def = draft.code.def();
        if matches!(draft.code, OpCode::CustomOp | OpCode::InlineAsm) {
            return Ok(());
        }
        let role = |operand: &NewOperand| &def.operands[usize::from(operand.role)];
        let is_scalar = |operand: &NewOperand| def.per_partition.contains(&role(operand).name);
        for (number, result) in draft.operands.iter().enumerate() {
            if !role(result).writes() {
                continue;
            }
            for (other_number, other) in draft.operands.iter().enumerate() {
                let twice = role(other).writes();
                if number == other_number || twice && other_number < number {
                    continue;
                }
                let in_place = !twice && (def.has(Trait::Elementwise) || def.has(Trait::InPlace));
                if in_place && self.is_same_access(result, other)
                    || !twice && (is_scalar(result) || is_scalar(other))
                {
                    continue;
                }
                if self.may_share(result, other) {
                    return Err(Miss::Illegal(at, usize::from(other.role)));
                }
            }
        }
        Ok(())
    }

    /// Whether two operands are one access of the same bytes.
    fn is_same_access(&mut self, a: &NewOperand, b: &NewOperand) -> bool {
        let is_alike =
            a.value == b.value || self.ir.value_type(a.value) == self.ir.value_type(b.value);
        is_alike && a.annot == b.annot && self.distance(a.value, b.value) == Some((0, 0))
    }

    /// Whether two operands may access a common byte.
    fn may_share(&mut self, a: &NewOperand, b: &NewOperand) -> bool {
        let Some(by) = self.distance(a.value, b.value) else {
            return false;
        };
        let (Some((x, p)), Some((y, q))) = (self.print(a), self.print(b)) else {
            return true;
        };
        // Accesses that loops move alike stay as far apart as they are.
        p.terms != q.terms || x.overlaps(&y.placed(by.0, by.1))
    }

    /// How far the bytes of one location stand behind those of another, where they may share any.
    fn distance(&mut self, a: Value, b: Value) -> Option<(i64, i64)> {
        if a == b {
            return Some((0, 0));
        }
        let ir = &*self.ir;
        let tied = |value: Value| {
            let alloc = ir.def_op(value)?;
            let is_placed = ir.ctx.dict_get(ir.dict(alloc), names::AT).is_some();
            Some((is_placed, ir.attr(alloc, "must_alias").is_some()))
        };
        match (tied(a)?, tied(b)?) {
            ((true, false), (true, false)) => {
                let start = |value: Value| {
                    let attr = ir.ctx.dict_get(ir.dict(ir.def_op(value)?), names::AT)?;
                    let at = Placement::get(&ir.ctx, attr)?;
                    let byte = i64::try_from(at.byte()).ok()?;
                    let space = MemType::get(&ir.ctx, ir.value_type(value))?.space;
                    Some((space, i64::from(at.partition()), byte))
                };
                let (from, to) = (start(a)?, start(b)?);
                (from.0 == to.0).then_some((to.1 - from.1, to.2 - from.2))
            }
            ((_, true), _) | (_, (_, true)) => self.flow.memory(ir).distance(a, b),
            _ => None,
        }
    }

    /// The bytes an operand accesses where every index of a loop is 0.
    fn print(&self, operand: &NewOperand) -> Option<(Footprint, Access)> {
        let mem = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value))?;
        let mut access = Access::resolve(&self.ir.ctx, &mem, operand.annot);
        let terms = std::mem::take(&mut access.terms);
        let print = footprint(&access)?;
        access.terms = terms;
        Some((print, access))
    }
}
