//! Who touches what: one walk, before anything is indexed.

use super::atoms::RANGE_LIMIT;
use super::collect::Collected;
use super::function::FunctionIndex;
use super::locate::Frames;
use super::walk::{Touch, Walked, walk};
use crate::ir::{Ir, Op, Value};

/// Every operand of a function that touches memory.
///
/// A pass that acts on few locations finds out here which ones, and indexes only these.
pub struct Touches {
    walked: Walked,
}

impl Touches {
    /// Walks a function.
    pub fn new(ir: &Ir, func: Op) -> Touches {
        Touches {
            walked: walk(ir, func),
        }
    }

    /// The locations and their `alloc`s, in order; [`Touch::location`] counts them.
    pub fn locations(&self) -> &[(Op, Value)] {
        &self.walked.allocs
    }

    /// Every operand that touches memory, in program order; an instruction's reads come first.
    pub fn all(&self) -> &[Touch] {
        &self.walked.touches
    }

    /// Whether a touch is in a loop, branches back included.
    pub fn is_in_loop(&self, touch: &Touch) -> bool {
        let segment = &self.walked.flow.segments[touch.segment as usize];
        segment.innermost.is_some()
    }

    /// The index of some locations, as if nobody touched the others; its touches are those of the
    /// locations kept, counted anew.
    pub fn index(
        &self,
        ir: &Ir,
        frames: Frames,
        mut keep: impl FnMut(u32) -> bool,
    ) -> FunctionIndex {
        let walked = &self.walked;
        let touches = walked.touches.iter();
        let kept = touches.filter(|touch| keep(touch.location)).copied();
        let walked = Walked {
            touches: kept.collect(),
            // They are no locations.
            registers: Vec::new(),
            flow: walked.flow.clone(),
            allocs: walked.allocs.clone(),
            index_of: walked.index_of.clone(),
            loop_orders: walked.loop_orders.clone(),
            orders: walked.orders,
            ops: walked.ops.clone(),
        };
        FunctionIndex::of(Collected::of(ir, walked, frames, RANGE_LIMIT))
    }
}
