//! Whether an access is all of its location.

use super::{Footprint, footprint};
use crate::bir::access::Access;
use crate::bir::types::MemType;
use crate::ir::{Annot, Ir, OperandData, Type};

/// Tells operands that are the whole of their location; what was asked last is remembered.
#[derive(Default, Debug)]
pub struct Wholes {
    last: Option<(Type, Annot, bool)>,
}

impl Wholes {
    /// Whether an operand is all bytes of its location in every iteration of the loops around, in
    /// whatever order.
    pub fn is_whole(&mut self, ir: &Ir, operand: &OperandData) -> bool {
        if operand.annot == Annot::UNIT {
            return true;
        }
        let ty = ir.value_type(operand.value);
        if let Some((known, annot, answer)) = self.last
            && known == ty
            && annot == operand.annot
        {
            return answer;
        }
        let is_whole = MemType::get(&ir.ctx, ty).is_some_and(|mem| {
            let access = Access::resolve(&ir.ctx, &mem, operand.annot);
            let all = Footprint::whole(&mem);
            access.terms.is_empty()
                && footprint(&access)
                    .zip(all)
                    .is_some_and(|(print, all)| print.is_exact() && print.covers(&all))
        });
        self.last = Some((ty, operand.annot, is_whole));
        is_whole
    }
}
