//! Walks over nested operations, driven by the links between them: no recursion, no stack.

use super::entity::{Block, Op, Region};
use super::storage::Ir;

/// One step of a [`Walk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit {
    /// An operation, before what its regions hold.
    Enter(Op),
    /// An operation with regions, behind what they hold.
    Leave(Op),
}

/// Every operation below a place, in text order.
#[derive(Clone)]
pub struct Walk<'a> {
    ir: &'a Ir,
    next: Option<Visit>,
    /// The walk ends behind this operation,
    stop: Option<Op>,
    /// or behind the last operation of this region.
    stop_region: Option<Region>,
}

impl<'a> Walk<'a> {
    fn first_below(ir: &'a Ir, regions: &[Region]) -> Option<Op> {
        regions
            .iter()
            .find_map(|&region| first_in(ir, ir.entry(region)))
    }

    fn after(&self, op: Op) -> Option<Visit> {
        if self.stop == Some(op) {
            return None;
        }
        if let Some(next) = self.ir.next(op) {
            return Some(Visit::Enter(next));
        }
        let block = self.ir.block(op)?;
        if let Some(next) = first_in(self.ir, self.ir.next_block(block)) {
            return Some(Visit::Enter(next));
        }
        let region = self.ir.block_region(block);
        if self.stop_region == Some(region) {
            return None;
        }
        let parent = self.ir.region_parent(region)?;
        let regions = self.ir.regions(parent);
        let here = regions.iter().position(|&r| r == region)?;
        match Self::first_below(self.ir, &regions[here + 1..]) {
            Some(next) => Some(Visit::Enter(next)),
            None => Some(Visit::Leave(parent)),
        }
    }

    /// Does not enter the regions of `op`, which was entered last.
    pub fn skip_regions(&mut self, op: Op) {
        if !self.ir.regions(op).is_empty() {
            self.next = Some(Visit::Leave(op));
        }
    }

    /// The operations entered, in order.
    pub fn ops(self) -> impl Iterator<Item = Op> + 'a {
        self.filter_map(|visit| match visit {
            Visit::Enter(op) => Some(op),
            Visit::Leave(_) => None,
        })
    }
}

fn first_in(ir: &Ir, mut block: Option<Block>) -> Option<Op> {
    while let Some(at) = block {
        if let Some(op) = ir.first_op(at) {
            return Some(op);
        }
        block = ir.next_block(at);
    }
    None
}

impl Iterator for Walk<'_> {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        let visit = self.next?;
        self.next = match visit {
            Visit::Enter(op) => {
                let regions = self.ir.regions(op);
                if regions.is_empty() {
                    self.after(op)
                } else {
                    match Self::first_below(self.ir, regions) {
                        Some(inner) => Some(Visit::Enter(inner)),
                        None => Some(Visit::Leave(op)),
                    }
                }
            }
            Visit::Leave(op) => self.after(op),
        };
        Some(visit)
    }
}

impl Ir {
    /// Enters and leaves every operation of the file.
    pub fn walk(&self) -> Walk<'_> {
        self.walk_region(self.root())
    }

    /// Enters and leaves every operation of a region.
    pub fn walk_region(&self, region: Region) -> Walk<'_> {
        let next = first_in(self, self.entry(region)).map(Visit::Enter);
        Walk {
            ir: self,
            next,
            stop: None,
            stop_region: Some(region),
        }
    }

    /// `op` and every operation in its regions, in text order.
    pub fn walk_op(&self, op: Op) -> impl Iterator<Item = Op> + '_ {
        Walk {
            ir: self,
            next: Some(Visit::Enter(op)),
            stop: Some(op),
            stop_region: None,
        }
        .ops()
    }

    /// The operations below `op` that are entered and left, `op` included.
    pub fn walk_visits(&self, op: Op) -> Walk<'_> {
        Walk {
            ir: self,
            next: Some(Visit::Enter(op)),
            stop: Some(op),
            stop_region: None,
        }
    }
}
