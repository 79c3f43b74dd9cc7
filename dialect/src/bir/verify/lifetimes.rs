//! Placed locations that overlap are never live together; [`Lifetimes`] says when they live.

use hashbrown::HashMap;

use super::super::attrs::Placement;
use super::super::program::names;
use super::super::space::Space;
use super::super::types::MemType;
use super::super::view::OpView;
use super::words::value_text;
use crate::analysis::access::Wholes;
use crate::analysis::index::{self, FunctionIndex};
use crate::analysis::lifetimes::{Lifetimes, Place, bytes, effect};
use crate::ir::{Block, Ir, Op, OperandData, Region, Value};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place as At};

type Fixed = foldhash::fast::FixedState;

/// The placed locations of a function.
#[derive(Default)]
pub(super) struct Placed {
    pub(super) live: Lifetimes,
    /// Allocations and locations, as they are counted.
    declared: Vec<(Op, Value)>,
    slots: HashMap<Value, usize, Fixed>,
    /// Those somebody looks at where the function ends.
    outputs: Vec<usize>,
    wholes: Wholes,
}

impl Placed {
    pub(super) fn declare(&mut self, ir: &Ir, alloc: Op, value: Value, mem: &MemType<'_>) {
        let at = ir.ctx.dict_get(ir.dict(alloc), names::AT);
        let Some(at) = at.and_then(|attr| Placement::get(&ir.ctx, attr)) else {
            return;
        };
        let (partition, byte) = (u64::from(at.partition()), at.byte());
        let place = Place {
            space: mem.space,
            partitions: (partition, partition.saturating_add(mem.partitions())),
            bytes: (byte, byte.saturating_add(mem.free_bytes().unwrap_or(0))),
        };
        let slot = self
            .live
            .declare(place, ir.attr(alloc, "must_alias").is_some());
        let (is_given, is_shown) = match OpView::new(ir, alloc).word("kind") {
            Some("input" | "const") => (true, false),
            Some("output") => (false, true),
            Some("inout") => (true, true),
            _ => (false, false),
        };
        if is_given {
            self.live.given(slot);
        }
        if is_shown {
            self.outputs.push(slot);
        }
        self.slots.insert(value, slot);
        self.declared.push((alloc, value));
    }

    /// Finds the locations whose accesses are in several blocks that branch.
    pub(super) fn scatter(&mut self, ir: &Ir, index: &FunctionIndex) {
        let mut blocks: HashMap<usize, Option<Block>, Fixed> = HashMap::default();
        for touch in index.touches() {
            let value = index.locations()[touch.location as usize].value;
            let Some(&slot) = self.slots.get(&value) else {
                continue;
            };
            let block = straight(ir, touch.op);
            if *blocks.entry(slot).or_insert(block) != block {
                self.live.scatter(slot);
            }
        }
    }

    /// An access by the instruction: what it does, and whether data decides where.
    pub(super) fn touch(
        &mut self,
        ir: &Ir,
        op: Op,
        operand: &OperandData,
        touched: impl FnOnce() -> (index::Effect, bool),
    ) {
        if self.declared.is_empty() {
            return;
        }
        let Some(&slot) = self.slots.get(&operand.value) else {
            return;
        };
        let (kind, dynamic) = touched();
        let effect = effect(ir, op, operand, kind, dynamic, &mut self.wholes);
        self.live
            .touch(slot, effect, || bytes(ir, operand, dynamic));
    }

    /// The function may end here.
    pub(super) fn end(&mut self) {
        self.live.step();
        self.outputs.iter().for_each(|&slot| self.live.shown(slot));
    }

    /// Reports overlaps, where the function has ended.
    pub(super) fn check(&mut self, ir: &Ir, diags: &mut Diagnostics) {
        self.end();
        for (slot, other) in self.live.overlaps() {
            diags.push(self.overlap(ir, slot, other));
        }
    }

    fn overlap(&self, ir: &Ir, slot: usize, met: usize) -> Diagnostic {
        let ((alloc, value), (other_alloc, other)) = (self.declared[slot], self.declared[met]);
        let (here, there) = (self.live.place(slot), self.live.place(met));
        let (name, other) = (value_text(ir, value), value_text(ir, other));
        let from = here.bytes.0.max(there.bytes.0);
        let to = here.bytes.1.min(there.bytes.1) - 1;
        let mut message = format!(
            "locations {other} and {name} overlap and are live together: bytes {from} to {to}"
        );
        if here.space != Space::Dram {
            let first = here.partitions.0.max(there.partitions.0);
            let last = here.partitions.1.min(there.partitions.1) - 1;
            message.push_str(&format!(" of partitions {first} to {last}"));
        }
        message.push_str(&format!(" of `{}`", here.space));
        Diagnostic::error(At::Op(alloc, Part::Whole), message).related(
            At::Op(other_alloc, Part::Whole),
            format!("{other} is placed here"),
        )
    }
}

/// The outermost block around an instruction in which it stands behind or before every other one for
/// certain: its own, or that of a loop of one block around it.
fn straight(ir: &Ir, op: Op) -> Option<Block> {
    let mut block = ir.block(op)?;
    loop {
        let around = ir.region_parent(ir.block_region(block));
        let is_only = around.is_some_and(|around| {
            let regions = ir.regions(around);
            let branch = |&region: &Region| ir.entry(region) != ir.last_block(region);
            !regions.iter().any(branch)
        });
        match around
            .filter(|_| is_only)
            .and_then(|around| ir.block(around))
        {
            Some(outer) => block = outer,
            None => return Some(block),
        }
    }
}
