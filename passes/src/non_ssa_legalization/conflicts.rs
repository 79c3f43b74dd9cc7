//! Which locations are written again behind a read.
//!
//! Of the accesses of a location, those of an instruction that writes only a part of it, or adds to
//! what it holds, do not count: they make no new value. What is left conflicts if some read stands
//! before some write, in program order.

use bir_dialect::analysis::access::{Footprint, footprint};
use bir_dialect::analysis::index::{Touch, Touches};
use bir_dialect::bir::access::Access;
use bir_dialect::bir::types::MemType;
use bir_dialect::ir::{Annot, Block, Ir, Operand, Type};

use crate::outside::Outside;

/// What was seen of a location so far.
#[derive(Clone, Copy)]
struct Seen {
    /// The block of its accesses.
    block: Option<Block>,
    /// Whether it may be renamed at all.
    may: bool,
    first_read: u32,
    last_write: u32,
}

/// Per location, whether it is written again behind a read and may be split; `None` where none is.
pub(super) fn conflicts(ir: &Ir, touches: &Touches, outside: &Outside) -> Option<Vec<bool>> {
    let mut outside = outside.clone();
    let mut seen: Vec<Seen> = touches
        .locations()
        .iter()
        .map(|&(alloc, value)| Seen {
            block: None,
            may: outside.is_private(ir, alloc, value),
            first_read: u32::MAX,
            last_write: 0,
        })
        .collect();
    let mut wholes = Wholes::default();
    for of_one in touches.all().chunk_by(|a, b| a.order == b.order) {
        for touch in of_one {
            let location = &mut seen[touch.location as usize];
            if !location.may {
                continue;
            }
            let here = ir.block(touch.op);
            location.may = location.block.is_none() || location.block == here;
            location.block = here;
            if is_exempt(ir, of_one, touch, &mut wholes) {
                continue;
            }
            // Numbers from 1, so that 0 is before all.
            if touch.effect.is_read() {
                location.first_read = location.first_read.min(touch.order + 1);
            }
            if touch.effect.is_write() {
                location.last_write = location.last_write.max(touch.order + 1);
            }
        }
    }
    let found: Vec<bool> = seen
        .iter()
        .map(|location| location.may && location.first_read < location.last_write)
        .collect();
    found.contains(&true).then_some(found)
}

/// Whether the instruction of a touch writes a part of the touch's location only, or adds to it.
fn is_exempt(ir: &Ir, of_one: &[Touch], touch: &Touch, wholes: &mut Wholes) -> bool {
    of_one.iter().any(|other| {
        other.location == touch.location
            && other.effect.is_write()
            && !(other.defines() && wholes.is_whole(ir, other.operand))
    })
}

/// Whether operands are the whole of their location; what was asked last is remembered.
#[derive(Default)]
pub(super) struct Wholes {
    last: Option<(Type, Annot, bool)>,
}

impl Wholes {
    /// Whether an access is all bytes of its location, in every iteration of the loops around.
    pub(super) fn is_whole(&mut self, ir: &Ir, operand: Operand) -> bool {
        let data = ir.operand(operand);
        if data.annot == Annot::UNIT {
            return true;
        }
        let ty = ir.value_type(data.value);
        if let Some((known, annot, answer)) = self.last
            && known == ty
            && annot == data.annot
        {
            return answer;
        }
        let is_whole = MemType::get(&ir.ctx, ty).is_some_and(|mem| {
            let access = Access::resolve(&ir.ctx, &mem, data.annot);
            let all = Footprint::whole(&mem);
            access.terms.is_empty()
                && footprint(&access)
                    .zip(all)
                    .is_some_and(|(print, all)| print.is_exact() && print.covers(&all))
        });
        self.last = Some((ty, data.annot, is_whole));
        is_whole
    }
}
