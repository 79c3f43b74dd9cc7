//! Which locations are written again behind a read.
//!
//! Of the accesses of a location, those of an instruction that writes only a part of it, or adds to
//! what it holds, do not count: they make no new value. What is left conflicts if some read stands
//! before some write, in program order. Where all that write a location write the whole of it, those
//! that work in place go on with the value they read: without another one behind a read there is
//! nothing to split, and no need to look closer.

use bir_dialect::analysis::access::Wholes;
use bir_dialect::analysis::index::{Touch, Touches};
use bir_dialect::ir::{Block, Ir};

use bir_dialect::analysis::outside::Outside;

/// How a location comes apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conflict {
    /// Not at all: it is not written again behind a read, or may not be split.
    None,
    /// Into so many stretches of its accesses, in program order, each from an instruction that writes it
    /// without reading it to before the next one: no loop is around them, all that write it write the
    /// whole of it, and the first access does.
    Stretches(u32),
    /// Into webs that an index must tell.
    Webs,
}

/// What was seen of a location so far.
#[derive(Clone, Copy)]
struct Seen {
    /// The block of its accesses.
    block: Option<Block>,
    /// Whether it may be renamed at all.
    may: bool,
    /// Whether somebody writes a part of it, or adds to it.
    in_part: bool,
    /// Whether it is accessed in a loop.
    in_loop: bool,
    first_read: u32,
    last_write: u32,
    /// Writes by instructions that do not read it: the first, the last, how many.
    first_fresh: u32,
    last_fresh: u32,
    fresh: u32,
}

impl Seen {
    fn conflict(&self) -> Conflict {
        let last = match self.in_part {
            true => self.last_write,
            false => self.last_fresh,
        };
        if !self.may || self.first_read >= last {
            return Conflict::None;
        }
        match self.in_part || self.in_loop || self.first_read <= self.first_fresh {
            true => Conflict::Webs,
            false => Conflict::Stretches(self.fresh),
        }
    }
}

/// Per location, whether it is written again behind a read and may be split, and how; `None` where
/// none is.
pub(super) fn conflicts(ir: &Ir, touches: &Touches, outside: &Outside) -> Option<Vec<Conflict>> {
    let mut outside = outside.clone();
    let mut seen: Vec<Seen> = touches
        .locations()
        .iter()
        .map(|&(alloc, value)| Seen {
            block: None,
            may: outside.is_private(ir, alloc, value),
            in_part: false,
            in_loop: false,
            first_read: u32::MAX,
            last_write: 0,
            first_fresh: u32::MAX,
            last_fresh: 0,
            fresh: 0,
        })
        .collect();
    let mut wholes = Wholes::default();
    for of_one in touches.all().chunk_by(|a, b| a.order == b.order) {
        let here = ir.block(of_one[0].op);
        let in_loop = touches.is_in_loop(&of_one[0]);
        let has_part = of_one.iter().any(|touch| is_part(ir, touch, &mut wholes));
        for (at, touch) in of_one.iter().enumerate() {
            let location = &mut seen[touch.location as usize];
            if !location.may {
                continue;
            }
            location.may = location.block.is_none() || location.block == here;
            location.block = here;
            location.in_loop |= in_loop;
            if has_part && is_exempt(ir, of_one, touch, &mut wholes) {
                location.in_part = true;
                continue;
            }
            // Numbers from 1, so that 0 is before all.
            let order = touch.order + 1;
            if touch.effect.is_read() {
                location.first_read = location.first_read.min(order);
            }
            if touch.effect.is_write() {
                location.last_write = location.last_write.max(order);
                // Reads stand before writes.
                let mut before = of_one[..at].iter();
                if !before.any(|other| other.location == touch.location) {
                    location.first_fresh = location.first_fresh.min(order);
                    location.last_fresh = location.last_fresh.max(order);
                    location.fresh += 1;
                }
            }
        }
    }
    let found: Vec<Conflict> = seen.iter().map(Seen::conflict).collect();
    let any = found.iter().any(|&conflict| conflict != Conflict::None);
    any.then_some(found)
}

/// Whether the instruction of a touch writes a part of the touch's location only, or adds to it.
fn is_exempt(ir: &Ir, of_one: &[Touch], touch: &Touch, wholes: &mut Wholes) -> bool {
    of_one
        .iter()
        .any(|other| other.location == touch.location && is_part(ir, other, wholes))
}

/// Whether a touch writes a part of its location only, or adds to it.
fn is_part(ir: &Ir, touch: &Touch, wholes: &mut Wholes) -> bool {
    touch.effect.is_write() && !(touch.defines() && wholes.is_whole(ir, ir.operand(touch.operand)))
}
