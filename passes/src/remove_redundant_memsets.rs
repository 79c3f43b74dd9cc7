//! `remove_redundant_memsets`: no filling of what is filled already, nor of what nobody sees.
//!
//! Formally, a memset of a location private to its function is
//!
//! * *overwritten* – no read may see a byte of it. One with holes that others leave is read through
//!   them, and stays;
//! * *repeated* – every write that may be the last to one of its bytes is a memset of the location
//!   to the same number in the same dtype, and none of the bytes may be undefined or come from outside. All repeated
//!   ones may go at once: what reaches them then are memsets of that number still. Who came behind one
//!   that goes must come behind those, too.

use std::collections::{HashMap, HashSet};

use bir_dialect::analysis::deps::erase;
use bir_dialect::analysis::index::{Event, Frames, FunctionIndex, Seen, StorageIndex, Touch};
use bir_dialect::bir::access::Access;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Attr, Ir, Op, Operand, Value};

use crate::lives;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;
use crate::stand_in::{self, Order};
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
        let overwritten = |ir: &Ir, func: Op| {
            let dead = overwritten(ir, func, &outside).into_iter();
            dead.map(|op| (op, Vec::new())).collect()
        };
        changed |= remove(ir, on, &OVERWRITTEN, &overwritten, cx);
        let repeated = |ir: &Ir, func: Op| repeated(ir, func, &outside);
        changed |= remove(ir, on, &REPEATED, &repeated, cx);
        Changed::from_bool(changed)
    }
}

/// A memset that may go, and the instructions that stand in for it.
type Redundant = (Op, Vec<Op>);

/// Removes from each function what `find` finds in it; whether that was anything.
fn remove(
    ir: &mut Ir,
    on: &[Op],
    counter: &Statistic,
    find: &(dyn Fn(&Ir, Op) -> Vec<Redundant> + Sync),
    cx: &mut PassContext<'_>,
) -> bool {
    let found = cx.each(ir, on, find);
    let mut changed = false;
    for (memsets, &func) in found.into_iter().zip(on) {
        cx.matched(memsets.len() as u64);
        let mut gone = Vec::new();
        for (memset, others) in memsets {
            let what = || format!("a memset ({})", counter.name);
            if !cx.may_rewrite(&what) {
                break;
            }
            for other in others {
                stand_in::depend(ir, other, memset);
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
    let is_candidate = |touch: &Touch| {
        touch.code == Some(OpCode::Memset)
            && touch.effect.is_write()
            && private[touch.location as usize]
    };
    let touches = index.touches();
    let mut seen = Seen::new(&index);
    let mut is_seen = vec![false; touches.len()];
    let mut found = Vec::new();
    for storage in index.storages() {
        let of = |id: u32| &touches[id as usize];
        if !storage
            .events()
            .iter()
            .any(|event| is_candidate(of(event.id)))
        {
            continue;
        }
        for event in storage
            .events()
            .iter()
            .filter(|event| event.effect.is_read())
        {
            seen.read(event.id, &mut found);
            for write in found.drain(..) {
                is_seen[write as usize] = true;
            }
        }
        for event in storage.events() {
            is_seen[event.id as usize] |= !is_candidate(of(event.id));
        }
    }
    let all = touches.iter().zip(is_seen);
    let mut dead: Vec<Op> = all
        .filter(|(touch, is_seen)| !is_seen && is_candidate(touch))
        .map(|(touch, _)| touch.op)
        .collect();
    if !dead.is_empty() {
        let known: HashSet<Op> = dead.iter().copied().collect();
        let needed: HashSet<Op> = lives::needed(ir, &index, |op| known.contains(&op))
            .into_iter()
            .collect();
        dead.retain(|op| !needed.contains(op));
    }
    dead
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
fn repeated(ir: &Ir, func: Op, outside: &Outside) -> Vec<Redundant> {
    if !has_memsets(ir, func) {
        return Vec::new();
    }
    let index = FunctionIndex::build(ir, func, Frames::Addresses);
    let private = private(ir, &index, outside);
    let mut order = Order::new(func);
    let mut found = Vec::new();
    for storage in index.storages() {
        let events = storage.events();
        let touch = |event: &Event| &index.touches()[event.id as usize];
        let mut fills: HashMap<Fill, u32> = HashMap::new();
        let class = |event: &Event| {
            let touch = touch(event);
            let is_memset = touch.code == Some(OpCode::Memset) && touch.effect.is_write();
            let fill = is_memset.then(|| fill(ir, touch.op, touch.operand))??;
            let next = fills.len() as u32;
            Some(*fills.entry(fill).or_insert(next))
        };
        let class: Vec<Option<u32>> = events.iter().map(class).collect();
        if class.iter().flatten().count() < 2 {
            continue;
        }
        let mut classes = storage.classes(class.clone());
        for (at, (event, own)) in (0u32..).zip(events.iter().zip(class)) {
            let touch = touch(event);
            if own.is_some()
                && private[touch.location as usize]
                && classes.before(at, storage.extent(event).all) == own
            {
                let others = match stand_in::is_dependent(ir, touch.op) || order.has_semaphores(ir)
                {
                    true => before(&index, &storage, at, touch.op),
                    // Nobody has to be told.
                    false => Vec::new(),
                };
                let mut all = others.iter();
                if all.all(|&other| order.may_stand_in(ir, other, touch.op)) {
                    found.push((event.id, (touch.op, others)));
                }
            }
        }
    }
    found.sort_unstable_by_key(|found| found.0);
    found.into_iter().map(|found| found.1).collect()
}

/// The others that may have written a byte of an event last.
fn before(index: &FunctionIndex, storage: &StorageIndex<'_>, at: u32, op: Op) -> Vec<Op> {
    let events = storage.events();
    let all = storage.extent(&events[at as usize]).all;
    let writers = storage.last_writers_before(at, all).events.into_iter();
    writers
        .map(|writer| index.touches()[events[writer as usize].id as usize].op)
        .filter(|&writer| writer != op)
        .collect()
}
