//! Fewer loops and branches.

use bir_dialect::bir::access::{Access, Target};
use bir_dialect::bir::attrs::Accumulate;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_ORDER, names, op_name, order_terms, order_words, symbol_name};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Block, Cursor, Ir, NewOp, NewOperand, Op, Value};
use smallvec::SmallVec;

use super::Reducer;

/// Lets conditional branches go one way, joins blocks, drops what nothing leads to.
pub(super) fn straighten(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops() {
        if !reducer.is_there(op) || OpCode::of(&reducer.best, op) != Some(OpCode::CondBr) {
            continue;
        }
        for way in 0..2 {
            progress |= reducer.attempt_alike(op, |ir, op| {
                let Some(&to) = ir.successors(op).get(way) else {
                    return false;
                };
                branch_to(ir, op, to);
                tidy(ir, to);
                true
            });
            if !reducer.is_there(op) {
                break;
            }
        }
    }
    for op in reducer.ops() {
        if reducer.is_there(op) && OpCode::of(&reducer.best, op) == Some(OpCode::Br) {
            progress |= reducer.attempt_alike(op, |ir, op| {
                let Some(&to) = ir.successors(op).first() else {
                    return false;
                };
                tidy(ir, to)
            });
        }
    }
    progress
}

impl Reducer<'_> {
    /// Tries an edit of what decides where a core goes; where it does not do by itself, on all cores at once:
    /// they must go the same ways to meet.
    fn attempt_alike(&mut self, op: Op, edit: impl Fn(&mut Ir, Op) -> bool) -> bool {
        if self.attempt(|ir| edit(ir, op)) {
            return true;
        }
        let all = counterparts(&self.best, op);
        all.len() > 1 && self.attempt(|ir| all.iter().all(|&op| edit(ir, op)))
    }
}

/// The operation of the same number among those that decide where a core goes, in each function of the same
/// name: the operation itself, and those of other modules.
fn counterparts(ir: &Ir, op: Op) -> Vec<Op> {
    let of = |func: Op| {
        let all = ir.walk_op(func).skip(1);
        all.filter(|&op| !ir.regions(op).is_empty() || !ir.successors(op).is_empty())
    };
    let mut around = std::iter::successors(Some(op), |&op| ir.parent(op));
    let is_func = |&op: &Op| OpCode::of(ir, op) == Some(OpCode::Func);
    let Some(func) = around.find(is_func) else {
        return Vec::new();
    };
    let Some(number) = of(func).position(|other| other == op) else {
        return Vec::new();
    };
    let name = symbol_name(ir, func);
    let funcs = ir.walk().ops().filter(is_func);
    funcs
        .filter(|&func| symbol_name(ir, func) == name)
        .filter_map(|func| of(func).nth(number))
        .filter(|&other| OpCode::of(ir, other) == OpCode::of(ir, op))
        .collect()
}

/// Puts an unconditional branch in the place of a conditional one.
fn branch_to(ir: &mut Ir, op: Op, to: Block) {
    ir.insert(
        Cursor::Before(op),
        NewOp {
            successors: &[to],
            ..NewOp::new(op_name(OpCode::Br))
        },
    );
    ir.erase(op);
}

/// Removes blocks nothing leads to and joins blocks only one leads to; whether anything changed.
fn tidy(ir: &mut Ir, of: Block) -> bool {
    let region = ir.block_region(of);
    let mut changed = false;
    loop {
        let blocks: Vec<Block> = ir.blocks(region).collect();
        let mut leads: Vec<(Block, Op)> = Vec::new();
        for &block in &blocks {
            if let Some(last) = ir.last_op(block) {
                leads.extend(ir.successors(last).iter().map(|&to| (to, last)));
            }
        }
        let count = |block: Block| leads.iter().filter(|(to, _)| *to == block).count();
        if let Some(&dead) = blocks.iter().skip(1).find(|&&block| count(block) == 0) {
            let inside: Vec<Op> = ir.block_ops(dead).collect();
            let all = inside.iter().rev().all(|&op| ir.erase(op));
            if !all || !ir.remove_empty_block(dead) {
                return changed;
            }
            changed = true;
            continue;
        }
        let joined = leads.iter().find(|&&(to, from)| {
            count(to) == 1 && ir.successors(from).len() == 1 && ir.block(from) != Some(to)
        });
        let Some(&(to, from)) = joined else {
            return changed;
        };
        let Some(into) = ir.block(from) else {
            return changed;
        };
        ir.erase(from);
        for op in ir.block_ops(to).collect::<Vec<_>>() {
            ir.move_op(op, Cursor::End(into));
        }
        if !ir.remove_empty_block(to) {
            return changed;
        }
        changed = true;
    }
}

/// Lets loops run once, then does without them.
pub(super) fn inline_loops(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops() {
        if !reducer.is_there(op) {
            continue;
        }
        let code = OpCode::of(&reducer.best, op);
        if !matches!(code, Some(OpCode::Loop | OpCode::While)) {
            continue;
        }
        if reducer.attempt_alike(op, inline) {
            progress = true;
            continue;
        }
        if code == Some(OpCode::Loop) {
            progress |= reducer.attempt_alike(op, run_once);
        }
    }
    progress
}

fn bound(ir: &Ir, op: Op, name: bir_dialect::ir::Str) -> Option<i64> {
    ir.ctx.attr_int(ir.ctx.dict_get(ir.dict(op), name)?)
}

/// A loop of one trip.
fn run_once(ir: &mut Ir, op: Op) -> bool {
    let lower = bound(ir, op, names::LOWER).unwrap_or(0);
    if bound(ir, op, names::LOWER).is_some() && bound(ir, op, names::UPPER) == Some(lower + 1) {
        return false;
    }
    let (from, to) = (ir.ctx.int(lower), ir.ctx.int(lower + 1));
    let mut dict = ir.dict(op);
    for (name, attr) in [
        (names::LOWER, Some(from)),
        (names::UPPER, Some(to)),
        (names::STEP, None),
    ] {
        dict = ir.ctx.dict_with(dict, name, attr);
    }
    ir.set_operands(op, &[]);
    ir.set_dict(op, dict);
    true
}

/// The body of a loop, once, in its place; the index is the first value it has.
fn inline(ir: &mut Ir, op: Op) -> bool {
    let Some(&region) = ir.regions(op).first() else {
        return false;
    };
    let Some(body) = ir.entry(region) else {
        return false;
    };
    if ir.next_block(body).is_some() {
        return false;
    }
    let index: Option<Value> = ir.args(body).next();
    let first = bound(ir, op, names::LOWER).unwrap_or(0);
    if let Some(index) = index {
        let users: Vec<Op> = ir.uses(index).map(|use_| ir.operand(use_).owner).collect();
        for user in users {
            if !fix_index(ir, user, index, first) {
                return false;
            }
        }
    }
    for inner in ir.block_ops(body).collect::<Vec<_>>() {
        ir.move_op(inner, Cursor::Before(op));
    }
    ir.erase(op)
}

/// Puts the value of a loop index in an instruction's accesses; whether that could be done.
fn fix_index(ir: &mut Ir, op: Op, index: Value, value: i64) -> bool {
    let Some(def) = OpView::new(ir, op).def() else {
        return false;
    };
    let indices: SmallVec<[Value; 4]> = OpView::new(ir, op).indices().collect();
    let Some(number) = indices.iter().position(|&other| other == index) else {
        // Used already replaced, for an instruction may use an index twice.
        return !ir.operands(op).iter().any(|operand| operand.value == index);
    };
    let number = number as u8;
    let mut operands: SmallVec<[NewOperand; 8]> = SmallVec::new();
    for operand in ir.new_operands(op) {
        if usize::from(operand.role) == def.indices_role() {
            if operand.value != index {
                operands.push(operand);
            }
            continue;
        }
        let Some(annot) = fixed_access(ir, &operand, number, value) else {
            return false;
        };
        operands.push(NewOperand { annot, ..operand });
    }
    ir.set_operands(op, &operands);
    let accumulate = ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE);
    if let Some(Accumulate::UnlessFirst(at)) = Accumulate::get(&ir.ctx, accumulate) {
        let becomes = match at.cmp(&number) {
            std::cmp::Ordering::Less => return fix_order(ir, op, number, value),
            std::cmp::Ordering::Equal => Accumulate::No,
            std::cmp::Ordering::Greater => Accumulate::UnlessFirst(at - 1),
        };
        let attr = becomes.intern(&mut ir.ctx);
        let dict = ir.ctx.dict_with(ir.dict(op), names::ACCUMULATE, attr);
        ir.set_dict(op, dict);
    }
    fix_order(ir, op, number, value)
}

fn fixed_access(ir: &mut Ir, operand: &NewOperand, number: u8, value: i64) -> Option<Annot> {
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(operand.value)) else {
        return Some(operand.annot);
    };
    let whole = Access::whole(&mem);
    let mut access = Access::resolve(&ir.ctx, &mem, operand.annot);
    if access.terms.is_empty() {
        return Some(operand.annot);
    }
    let terms = std::mem::take(&mut access.terms);
    for term in terms {
        if term.index != number {
            let index = term.index - u8::from(term.index > number);
            access.add_term(term.target, index, term.coef);
            continue;
        }
        let shift = term.coef.checked_mul(value)?;
        match (term.target, &mut access.window) {
            (Target::Partition, Some(window)) => window.start += shift,
            _ => access.offset = access.offset.checked_add(shift)?,
        }
    }
    access.intern(&mut ir.ctx, &whole).ok()
}

fn fix_order(ir: &mut Ir, op: Op, number: u8, value: i64) -> bool {
    let Some(words) = ir.words_cell(COL_ORDER, op) else {
        return true;
    };
    let mut order = order_terms(words);
    for coordinate in &mut order {
        let mut constant = coordinate.constant;
        coordinate.terms.retain(|(index, coef)| {
            if *index == number {
                constant = constant.saturating_add(coef.saturating_mul(value));
                return false;
            }
            *index -= u8::from(*index > number);
            true
        });
        coordinate.constant = constant;
    }
    ir.set_words_cell(COL_ORDER, op, Some(&order_words(&order)));
    true
}
