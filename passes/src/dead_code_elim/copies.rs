//! Copies that change nothing, and values saved and reloaded.
//!
//! * *must-alias* – `dma_copy %b <- %a`, both the same bytes by the same access;
//! * *redundant alias* – `dma_copy %t <- %a; dma_copy %b <- %t` where `%b` is the same bytes as
//!   `%a`, and neither they nor `%t` are written in between: the second changes nothing;
//! * *internal to internal* – `dma_copy %b <- %a`, all of one internal location to all of another
//!   of the same type: who reads `%b` reads `%a` instead;
//! * *spills* – `save %s <- %t; load %u <- %s` and nobody else touches `%s`: who reads `%u` reads
//!   `%t`; where `%u` is `%t` itself, both are as if they were not there.
//!
//! Readers are only given another location where that one is not written behind the copy, in
//! whatever iteration: then no reader can find something else there, and no writer has to wait for
//! a reader it did not know.

use std::collections::{HashMap, HashSet};
use std::iter::successors;

use bir_dialect::analysis::deps::{Memory, erase};
use bir_dialect::analysis::sync::waits_or_signals;
use bir_dialect::bir::access::{Access, Target};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::names;
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Block, Ir, Op, Operand, Value};

use super::locations::Touched;
use super::roots::{Roots, is_indirect_dma, uses};
use super::{ALIASES, BACK, INTERNAL, SEMAPHORES, SPILLS};
use crate::pass::{PassContext, Statistic, symbol_text};

/// A copy from one location to another, data deciding nothing.
#[derive(Clone, Copy)]
struct Copy {
    op: Op,
    dst: Operand,
    src: Operand,
}

impl Copy {
    fn of(ir: &Ir, op: Op, code: OpCode) -> Option<Copy> {
        if OpCode::of(ir, op) != Some(code) || is_indirect_dma(ir, op, code.def()) {
            return None;
        }
        let view = OpView::new(ir, op);
        Some(Copy {
            op,
            dst: view.role("dst").operand()?,
            src: view.role("src").operand()?,
        })
    }

    fn written(&self, ir: &Ir) -> Value {
        ir.operand(self.dst).value
    }

    fn read(&self, ir: &Ir) -> Value {
        ir.operand(self.src).value
    }

    /// Whether both sides are all of their locations, which have one type.
    fn is_whole(&self, ir: &Ir) -> bool {
        let whole = |operand: Operand| is_whole(ir, operand);
        ir.value_type(self.written(ir)) == ir.value_type(self.read(ir))
            && whole(self.dst)
            && whole(self.src)
    }
}

/// What a step of each loop index moves, and how far.
type Moves = Vec<(Target, i64, Value)>;

/// The access of an operand, and how loops move it, by their indices instead of their numbers.
fn access(ir: &Ir, operand: Operand) -> Option<(Access, Moves)> {
    let view = OpView::new(ir, ir.operand(operand).owner);
    let (_, mut access) = view.access(operand)?;
    let mut moves = Vec::with_capacity(access.terms.len());
    for term in std::mem::take(&mut access.terms) {
        let index = view.indices().nth(usize::from(term.index))?;
        moves.push((term.target, term.coef, index));
    }
    Some((access, moves))
}

fn is_whole(ir: &Ir, operand: Operand) -> bool {
    let data = ir.operand(operand);
    if data.annot == Annot::UNIT {
        return true;
    }
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(data.value)) else {
        return false;
    };
    Access::resolve(&ir.ctx, &mem, data.annot) == Access::whole(&mem)
}

/// Whether two operands are the same bytes seen as the same elements in the same order.
fn same(ir: &Ir, roots: &Roots, a: Operand, b: Operand) -> bool {
    let (x, y) = (ir.operand(a).value, ir.operand(b).value);
    roots.same_bytes(x, y)
        && (x == y || place(ir, x) == place(ir, y))
        && access(ir, a).is_some_and(|one| access(ir, b) == Some(one))
}

fn place(ir: &Ir, value: Value) -> Option<bir_dialect::ir::Attr> {
    ir.ctx.dict_get(ir.dict(ir.def_op(value)?), names::AT)
}

fn dtype(ir: &Ir, operand: Operand) -> Option<bir_dialect::bir::num::DType> {
    Some(access(ir, operand)?.0.dtype)
}

/// The copies of a function.
fn copies(ir: &Ir, roots: &Roots, code: OpCode) -> Vec<Copy> {
    roots
        .of(ir, code)
        .filter_map(|op| Copy::of(ir, op, code))
        .collect()
}

/// Removes what a list of instructions is, if one more rewrite may be made.
fn take(
    ir: &mut Ir,
    func: Op,
    dead: &[Op],
    statistic: &Statistic,
    cx: &mut PassContext<'_>,
    touched: &mut Touched,
) {
    touched.note(ir, dead);
    let done = erase(ir, func, dead);
    cx.count(statistic, done.removed);
    cx.count(&SEMAPHORES, done.left_semaphores);
}

fn may(ir: &Ir, func: Op, what: &str, cx: &mut PassContext<'_>) -> bool {
    cx.may_rewrite(&|| format!("remove {what} from {}", symbol_text(ir, func)))
}

/// Removes the three kinds of redundant `dma_copy`; whether there were any.
pub(super) fn redundant(
    ir: &mut Ir,
    func: Op,
    roots: &Roots,
    cx: &mut PassContext<'_>,
    touched: &mut Touched,
) -> bool {
    let mut all = copies(ir, roots, OpCode::DmaCopy);
    if all.is_empty() {
        return false;
    }
    let mut changed = false;
    // Onto itself.
    let mut dead: Vec<Op> = Vec::new();
    for copy in &all {
        if same(ir, roots, copy.dst, copy.src)
            && may(ir, func, "a `dma_copy` onto the same bytes", cx)
        {
            dead.push(copy.op);
        }
    }
    changed |= !dead.is_empty();
    take(ir, func, &dead, &ALIASES, cx, touched);
    all.retain(|copy| !ir.is_erased(copy.op));
    // Back to where it came from.
    let dead: Vec<Op> = back(ir, func, roots, &all)
        .into_iter()
        .filter(|_| may(ir, func, "a `dma_copy` back to its source", cx))
        .collect();
    changed |= !dead.is_empty();
    take(ir, func, &dead, &BACK, cx, touched);
    all.retain(|copy| !ir.is_erased(copy.op));
    // Between internal locations.
    let mut dead: Vec<Op> = Vec::new();
    let mut writers = Writers::default();
    for copy in &all {
        if is_forwardable(ir, func, roots, copy, copy.op, &mut writers)
            && ir.value_type(copy.written(ir)) == ir.value_type(copy.read(ir))
            && may(ir, func, "a `dma_copy` between internal locations", cx)
        {
            forward(ir, copy.written(ir), copy.read(ir), copy.op);
            dead.push(copy.op);
        }
    }
    changed |= !dead.is_empty();
    take(ir, func, &dead, &INTERNAL, cx, touched);
    changed
}

/// Copies back to where their source was copied from, unchanged since.
fn back(ir: &Ir, func: Op, roots: &Roots, all: &[Copy]) -> Vec<Op> {
    let group = |value: Value| roots.group(value).unwrap_or(value);
    let pairs: HashSet<(Value, Value)> = all
        .iter()
        .map(|copy| (group(copy.read(ir)), group(copy.written(ir))))
        .collect();
    let candidates: Vec<&Copy> = all
        .iter()
        .filter(|copy| pairs.contains(&(group(copy.written(ir)), group(copy.read(ir)))))
        .collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let memory = Memory::new(ir, func);
    // Nobody else may change the one or the other in between.
    let is_own = |copy: &Copy| {
        let both = [copy.written(ir), copy.read(ir)];
        !both.iter().any(|&value| roots.is_written_by_others(value))
    };
    let fits = |second: &&&Copy| {
        let last = memory.last_writer(ir, second.op, second.src);
        let Some(first) = last.filter(|last| last.covers) else {
            return false;
        };
        let Some(copy) = Copy::of(ir, first.op, OpCode::DmaCopy) else {
            return false;
        };
        let kind = dtype(ir, copy.dst);
        // A conversion there and back is none that changes nothing.
        first.operand == copy.dst
            && is_own(second)
            && same(ir, roots, copy.dst, second.src)
            && same(ir, roots, copy.src, second.dst)
            && [copy.src, second.dst, second.src]
                .iter()
                .all(|&side| dtype(ir, side) == kind)
            && !memory.clobbered_between(ir, copy.op, second.op, copy.op, copy.src)
    };
    let found = candidates.iter().filter(fits);
    found.map(|copy| copy.op).collect()
}

/// Who writes locations.
#[derive(Default)]
struct Writers {
    /// Per location, the last to write it, if all who do stand in one block.
    known: HashMap<Value, Option<Op>>,
    /// Per location and block, where in the block it is written, ascending.
    places: HashMap<(Value, Block), Vec<u32>>,
}

impl Writers {
    /// The last writer in the function's only block; `None` where there is none, or one elsewhere.
    fn last(&mut self, ir: &Ir, block: Block, value: Value) -> Option<Op> {
        *self.known.entry(value).or_insert_with(|| {
            let mut last: Option<Op> = None;
            for operand in ir.uses(value) {
                let data = ir.operand(operand);
                let owner = data.owner;
                if !uses(ir, owner, OpCode::of(ir, owner), data).writes {
                    continue;
                }
                if ir.block(owner) != Some(block) {
                    return None;
                }
                if last.is_none_or(|last| ir.comes_before(last, owner)) {
                    last = Some(owner);
                }
            }
            last
        })
    }

    /// Whether somebody may write a location between two instructions of one block.
    fn writes_between(&mut self, ir: &Ir, value: Value, from: Op, to: Op) -> bool {
        let Some(block) = ir.block(from) else {
            return true;
        };
        let places = self.places.entry((value, block)).or_insert_with(|| {
            let writes = |&operand: &Operand| {
                let data = ir.operand(operand);
                uses(ir, data.owner, OpCode::of(ir, data.owner), data).writes
            };
            // What stands in a loop is where the loop is.
            let place = |operand: Operand| {
                let mut around = successors(Some(ir.operand(operand).owner), |&op| ir.parent(op));
                let at = around.find(|&op| ir.block(op) == Some(block))?;
                Some(ir.order_in_block(at))
            };
            let mut places: Vec<u32> = ir.uses(value).filter(writes).filter_map(place).collect();
            places.sort_unstable();
            places
        });
        let (from, to) = (ir.order_in_block(from), ir.order_in_block(to));
        let next = places.partition_point(|&place| place <= from);
        places.get(next).is_some_and(|&place| place < to)
    }
}

/// The only block of a function, if it has one.
fn only_block(ir: &Ir, func: Op) -> Option<Block> {
    let entry = ir.entry(*ir.regions(func).first()?)?;
    ir.next_block(entry).is_none().then_some(entry)
}

/// Whether who reads where a copy goes can read where it comes from: both are internal and known to
/// nobody else, nothing but the copy writes the one, and nothing writes the other from `since` on.
fn is_forwardable(
    ir: &Ir,
    func: Op,
    roots: &Roots,
    copy: &Copy,
    since: Op,
    writers: &mut Writers,
) -> bool {
    let (into, from) = (copy.written(ir), copy.read(ir));
    let is_free = |value: Value| {
        let alloc = ir.def_op(value);
        !roots.escapes(value)
            && alloc.is_some_and(|alloc| {
                OpView::new(ir, alloc).word("kind").unwrap_or("internal") == "internal"
                    && ir.attr(alloc, "const_sub_tensor").is_none()
            })
    };
    // Where a location is placed decides which accesses engines can make. What reads a placed one
    // later may find there what others placed in the same bytes.
    let is_movable = |value: Value| {
        let space = MemType::get(&ir.ctx, ir.value_type(value)).map(|mem| mem.space);
        place(ir, value).is_none() || value == into && space == Some(Space::Dram)
    };
    let Some(block) = only_block(ir, func) else {
        return false;
    };
    into != from
        && ir.block(copy.op) == Some(block)
        && copy.is_whole(ir)
        && is_free(into)
        && is_free(from)
        && is_movable(into)
        && is_movable(from)
        // Who reads elsewhere must not lose what it waited for.
        && !waits_or_signals(ir, copy.op)
        && writers.last(ir, block, into) == Some(copy.op)
        && sole_writer(ir, into) == Some(copy.op)
        && writers
            .last(ir, block, from)
            .is_some_and(|last| ir.comes_before(last, since))
}

/// The instruction that writes a location, if one alone does.
fn sole_writer(ir: &Ir, value: Value) -> Option<Op> {
    let mut writers = ir.uses(value).filter_map(|operand| {
        let data = ir.operand(operand);
        let writes = uses(ir, data.owner, OpCode::of(ir, data.owner), data).writes;
        writes.then_some(data.owner)
    });
    let first = writers.next()?;
    writers.next().is_none().then_some(first)
}

/// Lets all who read one location, but a copy, read another of its type.
fn forward(ir: &mut Ir, readers_of: Value, to: Value, copy: Op) {
    let readers: Vec<Operand> = ir
        .uses(readers_of)
        .filter(|&operand| ir.operand(operand).owner != copy)
        .collect();
    for operand in readers {
        ir.set_operand(operand, to);
    }
}

/// Removes saves and reloads of one value nobody else touches; whether there were any.
pub(super) fn spills(
    ir: &mut Ir,
    func: Op,
    roots: &Roots,
    cx: &mut PassContext<'_>,
    touched: &mut Touched,
) -> bool {
    let saves = copies(ir, roots, OpCode::Save);
    let mut dead: Vec<Op> = Vec::new();
    let mut writers = Writers::default();
    for save in saves {
        let Some(load) = only_reload(ir, roots, &save) else {
            continue;
        };
        let (value, reloaded) = (save.read(ir), load.written(ir));
        let in_place = value == reloaded;
        let fits = match in_place {
            true => {
                same(ir, roots, save.src, load.dst)
                    && !roots.escapes(value)
                    // Others may have been in the bytes of a placed one meanwhile.
                    && place(ir, value).is_none()
                    && !writers.writes_between(ir, value, save.op, load.op)
            }
            false => {
                let through = Copy {
                    op: load.op,
                    dst: load.dst,
                    src: save.src,
                };
                is_forwardable(ir, func, roots, &through, save.op, &mut writers)
            }
        };
        if !fits || !may(ir, func, "a save and its reload", cx) {
            continue;
        }
        if !in_place {
            forward(ir, reloaded, value, load.op);
        }
        dead.extend([save.op, load.op]);
    }
    if dead.is_empty() {
        return false;
    }
    let before = dead.len() as u64;
    touched.note(ir, &dead);
    let done = erase(ir, func, &dead);
    cx.count(&SPILLS, before / 2);
    cx.count(&SEMAPHORES, done.left_semaphores);
    true
}

/// The load that alone reads what a save alone writes, bit by bit the same, behind it in its block.
fn only_reload(ir: &Ir, roots: &Roots, save: &Copy) -> Option<Copy> {
    let slot = save.written(ir);
    let alloc = ir.def_op(slot)?;
    let is_internal = OpView::new(ir, alloc).word("kind").unwrap_or("internal") == "internal";
    if roots.escapes(slot) || !is_internal {
        return None;
    }
    let mut others = ir
        .uses(slot)
        .map(|operand| ir.operand(operand).owner)
        .filter(|&owner| owner != save.op);
    let load = Copy::of(ir, others.next()?, OpCode::Load)?;
    let kind = dtype(ir, save.src);
    let same_kind = [save.dst, load.src, load.dst]
        .iter()
        .all(|&side| dtype(ir, side) == kind);
    (others.next().is_none()
        && load.read(ir) == slot
        && same_kind
        && same(ir, roots, save.dst, load.src)
        && !waits_or_signals(ir, save.op)
        && !waits_or_signals(ir, load.op)
        && ir.block(save.op) == ir.block(load.op)
        && ir.comes_before(save.op, load.op))
    .then_some(load)
}
