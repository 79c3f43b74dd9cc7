//! Plainer accesses, smaller shapes.

use bir_dialect::bir::access::{Access, Pair, Window};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::types::MemType;
use bir_dialect::ir::{Annot, Attr, AttrView, Ir, Op, Operand};
use smallvec::SmallVec;

use super::Reducer;

/// Plainer ways to access what an operand accesses, plainest first.
const WAYS: &[fn(&mut Ir, Operand) -> bool] = &[whole, from_the_start, in_one_piece];

/// Takes plainer accesses, for all operands of an instruction together or one by one.
pub(super) fn simplify(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops() {
        let operands: Vec<Operand> = reducer
            .best
            .operand_ids(op)
            .filter(|&operand| reducer.best.operand(operand).annot != Annot::UNIT)
            .collect();
        if operands.is_empty() {
            continue;
        }
        for way in WAYS {
            let all = reducer.attempt(|ir| {
                operands
                    .iter()
                    .fold(false, |any, &operand| way(ir, operand) | any)
            });
            progress |= all;
            if all || operands.len() == 1 {
                continue;
            }
            for &operand in &operands {
                progress |= reducer.attempt(|ir| way(ir, operand));
            }
        }
    }
    progress
}

fn resolve(ir: &Ir, operand: Operand) -> Option<(Access, Access)> {
    let data = ir.operand(operand);
    let mem = MemType::get(&ir.ctx, ir.value_type(data.value))?;
    let access = Access::resolve(&ir.ctx, &mem, data.annot);
    Some((access, Access::whole(&mem)))
}

fn set(ir: &mut Ir, operand: Operand, access: &Access, whole: &Access) -> bool {
    let Ok(annot) = access.intern(&mut ir.ctx, whole) else {
        return false;
    };
    let changed = ir.operand(operand).annot != annot;
    ir.set_annot(operand, annot);
    changed
}

fn whole(ir: &mut Ir, operand: Operand) -> bool {
    let changed = ir.operand(operand).annot != Annot::UNIT;
    ir.set_annot(operand, Annot::UNIT);
    changed
}

/// As many partitions and elements, side by side from the first on, of the location's own dtype.
fn from_the_start(ir: &mut Ir, operand: Operand) -> bool {
    let Some((mut access, whole)) = resolve(ir, operand) else {
        return false;
    };
    let count = access.elements();
    access.pairs = SmallVec::from_slice(&[Pair { step: 1, count }]);
    access.offset = 0;
    access.dtype = whole.dtype;
    access.recast = false;
    access.terms.clear();
    if let Some(window) = &mut access.window {
        window.start = 0;
    }
    set(ir, operand, &access, &whole)
}

/// The same first element, without gaps.
fn in_one_piece(ir: &mut Ir, operand: Operand) -> bool {
    let Some((mut access, whole)) = resolve(ir, operand) else {
        return false;
    };
    let count = access.elements();
    access.pairs = SmallVec::from_slice(&[Pair { step: 1, count }]);
    access.offset = access.offset_range().0;
    set(ir, operand, &access, &whole)
}

/// Makes one size smaller wherever it occurs.
pub(super) fn shrink_shapes(reducer: &mut Reducer<'_>) -> bool {
    let mut sizes: Vec<u64> = Vec::new();
    for op in reducer.ops() {
        let ir = &reducer.best;
        if let Some(value) = ir.result(op)
            && let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value))
        {
            sizes.extend_from_slice(mem.dims);
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    let mut progress = false;
    for size in sizes.into_iter().rev().filter(|&size| size > 1) {
        for smaller in [1, 2, 8, 16, 32, size / 2] {
            if smaller < size && reducer.attempt(|ir| resize(ir, size, smaller)) {
                progress = true;
                break;
            }
        }
    }
    progress
}

/// Replaces a size in shapes, accesses and patterns.
fn resize(ir: &mut Ir, from: u64, to: u64) -> bool {
    let ops: Vec<Op> = ir.walk().ops().collect();
    let put = |n: &mut u64| {
        if *n == from {
            *n = to;
        }
    };
    for &op in &ops {
        if OpCode::of(ir, op) == Some(OpCode::Alloc) {
            resize_location(ir, op, put);
        }
    }
    for &op in &ops {
        for operand in ir.operand_ids(op).collect::<Vec<_>>() {
            if ir.operand(operand).annot == Annot::UNIT {
                continue;
            }
            let Some((mut access, whole)) = resolve(ir, operand) else {
                continue;
            };
            for pair in &mut access.pairs {
                put(&mut pair.count);
                if pair.step == from as i64 {
                    pair.step = to as i64;
                }
            }
            if let Some(Window { count, .. }) = &mut access.window {
                put(count);
            }
            set(ir, operand, &access, &whole);
        }
        resize_patterns(ir, op, from as i64, to as i64);
    }
    true
}

fn resize_location(ir: &mut Ir, op: Op, put: impl Fn(&mut u64)) {
    let Some(value) = ir.result(op) else { return };
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
        return;
    };
    let (space, dtype) = (mem.space, mem.dtype);
    let mut dims: SmallVec<[u64; 6]> = SmallVec::from_slice(mem.dims);
    dims.iter_mut().for_each(put);
    let ty = MemType::intern(&mut ir.ctx, space, dtype, &dims);
    ir.set_value_type(value, ty);
}

/// Counts in lists of pairs.
fn resize_patterns(ir: &mut Ir, op: Op, from: i64, to: i64) {
    let Some(attr) = ir.attr(op, "pattern") else {
        return;
    };
    let AttrView::Array(pairs) = ir.ctx.attr(attr) else {
        return;
    };
    let lists: Vec<Vec<Attr>> = pairs
        .iter()
        .filter_map(|pair| match ir.ctx.attr(pair) {
            AttrView::Array(list) => Some(list.iter().collect()),
            _ => None,
        })
        .collect();
    let mut made: Vec<Attr> = Vec::new();
    for mut list in lists {
        if let Some(count) = list.get_mut(1)
            && ir.ctx.attr_int(*count) == Some(from)
        {
            *count = ir.ctx.int(to);
        }
        made.push(ir.ctx.array(&list));
    }
    let pattern = ir.ctx.array(&made);
    ir.set_attr(op, "pattern", Some(pattern));
}
