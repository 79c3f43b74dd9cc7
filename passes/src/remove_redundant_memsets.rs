//! `remove_redundant_memsets`: no filling of what is filled already, nor of what nobody sees.
//!
//! Formally, a memset of a location private to its function is
//!
//! * *overwritten* – no read may see a byte of it. One with holes that others leave is read through
//!   them, and stays;
//! * *repeated* – every write that may be the last to one of its bytes is a memset of the location
//!   to the same number in the same dtype, and none of the bytes may be undefined or come from outside. All repeated
//!   ones may go at once: what reaches them then are memsets of that number still.

use std::collections::HashMap;

use bir_dialect::analysis::deps::erase;
use bir_dialect::analysis::index::{Frames, FunctionIndex, Uses};
use bir_dialect::bir::access::Access;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Attr, Ir, Op, Operand, Value};

use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;
use bir_dialect::analysis::outside::Outside;

pass_options! {
    /// Removes memsets nobody sees, and memsets of what holds the number already.
    ///
    /// A memset all of whose bytes are written again before they are read goes, and so does one of
    /// bytes that memsets of the same number, seen as the same dtype, wrote last. Two memsets of two
    /// locations are not duplicates of one another.
    pub struct RemoveRedundantMemsets {}
}

const OVERWRITTEN: Statistic = Statistic {
    name: "memsets-overwritten",
    doc: "memsets no byte of which is read",
};
const REPEATED: Statistic = Statistic {
    name: "memsets-repeated",
    doc: "memsets of what held the number already",
};

impl Pass for RemoveRedundantMemsets {
    fn name(&self) -> &'static str {
        "remove_redundant_memsets"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[OVERWRITTEN, REPEATED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let outside = Outside::new(ir);
        let mut changed = false;
        // Of two memsets of one number in a row, either could go; the first does, and what is left
        // is looked at again.
        let overwritten = |ir: &Ir, func: Op| overwritten(ir, func, &outside);
        changed |= remove(ir, on, &OVERWRITTEN, &overwritten, cx);
        let repeated = |ir: &Ir, func: Op| repeated(ir, func, &outside);
        changed |= remove(ir, on, &REPEATED, &repeated, cx);
        Changed::from_bool(changed)
    }
}

/// Removes from each function what `find` finds in it; whether that was anything.
fn remove(
    ir: &mut Ir,
    on: &[Op],
    counter: &Statistic,
    find: &(dyn Fn(&Ir, Op) -> Vec<Op> + Sync),
    cx: &mut PassContext<'_>,
) -> bool {
    let found = cx.each(ir, on, find);
    let mut changed = false;
    for (memsets, &func) in found.into_iter().zip(on) {
        cx.matched(memsets.len() as u64);
        let mut gone = Vec::new();
        for memset in memsets {
            let what = || format!("a memset ({})", counter.name);
            if !cx.may_rewrite(&what) {
                break;
            }
            gone.push(memset);
        }
        cx.count(counter, gone.len() as u64);
        changed |= !gone.is_empty();
        erase(ir, func, &gone);
    }
    changed
}

fn has_memsets(ir: &Ir, func: Op) -> bool {
    ir.walk_op(func).any(|op| is_memset(ir, op))
}

fn is_memset(ir: &Ir, op: Op) -> bool {
    OpCode::of(ir, op) == Some(OpCode::Memset)
}

/// The memsets of a function no read sees a byte of.
fn overwritten(ir: &Ir, func: Op, outside: &Outside) -> Vec<Op> {
    if !has_memsets(ir, func) {
        return Vec::new();
    }
    let index = FunctionIndex::build(ir, func, Frames::Addresses);
    let private = private(ir, &index, outside);
    let mut found = Vec::new();
    for storage in index.storages() {
        let touch = |id: u32| &index.touches()[id as usize];
        let mut uses: Option<Uses<'_>> = None;
        for (at, event) in (0u32..).zip(storage.events()) {
            let touch = touch(event.id);
            if !is_memset(ir, touch.op) || !private[touch.location as usize] {
                continue;
            }
            let uses = uses.get_or_insert_with(|| storage.uses());
            if uses.of(at).is_empty() {
                found.push((event.id, touch.op));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|found| found.1).collect()
}

/// A location, a number, and the dtype it is stored in. Of two locations on one slot, what was
/// written to one does not define the other.
type Fill = (Value, DType, Attr);

fn fill(ir: &Ir, op: Op, operand: Operand) -> Option<Fill> {
    let value = OpView::new(ir, op).role("value").literal()?;
    let data = ir.operand(operand);
    let mem = MemType::get(&ir.ctx, ir.value_type(data.value))?;
    let dtype = Access::resolve(&ir.ctx, &mem, data.annot).dtype;
    Some((data.value, dtype, value))
}

/// Per location, whether it is private.
fn private(ir: &Ir, index: &FunctionIndex, outside: &Outside) -> Vec<bool> {
    let mut outside = outside.clone();
    let locations = index.locations().iter();
    locations
        .map(|location| outside.is_private(ir, location.op, location.value))
        .collect()
}

/// The memsets of a function whose bytes hold the number already.
fn repeated(ir: &Ir, func: Op, outside: &Outside) -> Vec<Op> {
    if !has_memsets(ir, func) {
        return Vec::new();
    }
    let index = FunctionIndex::build(ir, func, Frames::Addresses);
    let private = private(ir, &index, outside);
    let mut found = Vec::new();
    for storage in index.storages() {
        let events = storage.events();
        let mut fills: HashMap<u32, Fill> = HashMap::new();
        for (at, event) in (0u32..).zip(events) {
            let touch = &index.touches()[event.id as usize];
            if is_memset(ir, touch.op)
                && let Some(fill) = fill(ir, touch.op, touch.operand)
            {
                fills.insert(at, fill);
            }
        }
        if fills.len() < 2 {
            continue;
        }
        for (at, event) in (0u32..).zip(events) {
            let touch = &index.touches()[event.id as usize];
            let Some(own) = fills.get(&at) else { continue };
            if !private[touch.location as usize] {
                continue;
            }
            let extent = storage.extent(event);
            let last = storage.last_writers_before(at, extent.all);
            let same = |writer: &u32| fills.get(writer) == Some(own);
            if !last.origin.undefined
                && !last.origin.outside
                && !last.events.is_empty()
                && last.events.iter().all(same)
            {
                found.push((event.id, touch.op));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|found| found.1).collect()
}
