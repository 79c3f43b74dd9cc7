//! Who touches what: one walk, before anything is indexed.

use super::atoms::RANGE_LIMIT;
use super::collect::Collected;
use super::function::FunctionIndex;
use super::locate::Frames;
use super::walk::{Touch, Walked, walk};
use crate::bir::ops::OpCode;
use crate::ir::{Ir, Op, Value};

/// Every operand of a function that touches memory.
///
/// A pass that acts on few locations finds out here which ones, and indexes only these.
pub struct Touches {
    func: Op,
    walked: Walked,
}

impl Touches {
    /// Walks a function.
    pub fn new(ir: &Ir, func: Op) -> Touches {
        Touches {
            func,
            walked: walk(ir, func),
        }
    }

    /// Takes note of instructions and locations that were erased, of locations that were added, and
    /// of operands that name other locations now; nothing else may have changed.
    /// [`Touch::order`] then leaves numbers out.
    pub fn update(&mut self, ir: &Ir) {
        let first = ir.regions(self.func).first();
        let entry = first.and_then(|&region| ir.entry(region));
        let ops = entry.into_iter().flat_map(|block| ir.block_ops(block));
        let is_alloc = |op: &Op| OpCode::of(ir, *op) == Some(OpCode::Alloc);
        let walked = &mut self.walked;
        walked.allocs.clear();
        walked.allocs.extend(
            ops.take_while(is_alloc)
                .filter_map(|op| Some((op, ir.result(op)?))),
        );
        let mut number = vec![u32::MAX; ir.value_rows()];
        for (at, (_, value)) in (0u32..).zip(&walked.allocs) {
            number[value.index()] = at;
        }
        let mut is_known = true;
        walked.touches.retain_mut(|touch| {
            if ir.is_erased(touch.op) {
                return false;
            }
            touch.location = number[ir.operand(touch.operand).value.index()];
            is_known &= touch.location != u32::MAX;
            true
        });
        if !is_known {
            // Some location does not stand where they all should.
            self.walked = walk(ir, self.func);
        }
    }

    /// The function walked.
    pub fn func(&self) -> Op {
        self.func
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

    /// The index of some locations, as if there were no others, and their numbers among
    /// [`locations`](Self::locations): it counts its locations and touches anew.
    pub fn index(
        &self,
        ir: &Ir,
        frames: Frames,
        mut keep: impl FnMut(u32) -> bool,
    ) -> (FunctionIndex, Vec<u32>) {
        let walked = &self.walked;
        let mut number = vec![u32::MAX; walked.allocs.len()];
        let mut kept: Vec<u32> = Vec::new();
        for at in 0..walked.allocs.len() as u32 {
            if keep(at) {
                number[at as usize] = kept.len() as u32;
                kept.push(at);
            }
        }
        let touches = walked.touches.iter().filter_map(|touch| {
            let location = number[touch.location as usize];
            (location != u32::MAX).then_some(Touch { location, ..*touch })
        });
        let part = Walked {
            touches: touches.collect(),
            // They are no locations.
            registers: Vec::new(),
            flow: walked.flow.clone(),
            allocs: kept.iter().map(|&at| walked.allocs[at as usize]).collect(),
            index_of: walked.index_of.clone(),
            loop_orders: walked.loop_orders.clone(),
            orders: walked.orders,
            // Nobody asks an index of memory for them.
            ops: Vec::new(),
        };
        let index = FunctionIndex::of(Collected::of(ir, part, frames, RANGE_LIMIT));
        (index, kept)
    }
}
