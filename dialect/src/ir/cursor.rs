//! Making, placing and removing operations.

use smallvec::SmallVec;

use super::entity::{Annot, Block, Dict, Loc, Op, OpName, Operand, Region, Str, Type, Value};
use super::order::{FIRST_ORDER, order_behind};
use super::storage::{Ir, OpData, OpExtra, OperandData, RegionData, ValueData};

/// A place between two operations of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cursor {
    /// Before everything in the block.
    Start(Block),
    /// Behind everything in the block.
    End(Block),
    /// Directly before an operation.
    Before(Op),
    /// Directly behind an operation.
    After(Op),
}

/// An operand of an operation to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewOperand {
    /// The value to use.
    pub value: Value,
    /// The dialect's role number.
    pub role: u8,
    /// The dialect's annotation.
    pub annot: Annot,
}

/// An operation to be made by [`Ir::create`].
#[derive(Clone, Copy, Debug)]
pub struct NewOp<'a> {
    /// Its name.
    pub name: OpName,
    /// Its operands in order.
    pub operands: &'a [NewOperand],
    /// One type per result.
    pub results: &'a [Type],
    /// Its attributes.
    pub dict: Dict,
    /// Blocks it branches to.
    pub successors: &'a [Block],
    /// Number of empty regions to give it.
    pub regions: usize,
    /// Stated source location.
    pub loc: Option<Loc>,
}

impl<'a> NewOp<'a> {
    /// An operation without anything but its name.
    pub fn new(name: OpName) -> NewOp<'a> {
        NewOp {
            name,
            operands: &[],
            results: &[],
            dict: Dict::EMPTY,
            successors: &[],
            regions: 0,
            loc: None,
        }
    }
}

impl Ir {
    /// Makes an operation that is in no block yet.
    ///
    /// More than 65,535 operands or results cannot be stored; callers check counts first.
    pub fn create(&mut self, new: NewOp<'_>) -> Op {
        debug_assert!(new.operands.len() <= usize::from(u16::MAX));
        let op = Op::new(self.ops.len());
        let extra = if new.regions == 0 && new.successors.is_empty() {
            u32::MAX
        } else {
            self.push_extra(op, new.regions, new.successors.to_vec())
        };
        self.ops.push(OpData {
            name: new.name,
            block: Block::NONE,
            prev: Op::NONE,
            next: Op::NONE,
            order: 0,
            operand_start: self.operands.len() as u32,
            operand_count: new.operands.len() as u16,
            result_count: new.results.len() as u16,
            first_result: Value::new(self.values.len()),
            dict: new.dict,
            extra,
            span: u32::MAX,
        });
        for (index, &ty) in new.results.iter().enumerate() {
            self.push_result(op, index, ty);
        }
        self.push_operands(op, new.operands);
        if new.loc.is_some() {
            self.set_loc(op, new.loc);
        }
        op
    }

    /// The row of an operation's empty regions and its successors.
    fn push_extra(&mut self, op: Op, regions: usize, successors: Vec<Block>) -> u32 {
        let first = self.regions.len();
        self.regions.extend((0..regions).map(|_| RegionData {
            parent: op,
            first: Block::NONE,
            last: Block::NONE,
        }));
        self.extras.push(OpExtra {
            regions: (first..first + regions).map(Region::new).collect(),
            successors,
        });
        self.extras.len() as u32 - 1
    }

    fn push_operands(&mut self, op: Op, operands: &[NewOperand]) {
        for new in operands {
            self.push_operand(op, new);
        }
    }

    fn push_operand(&mut self, op: Op, new: &NewOperand) {
        let operand = Operand::new(self.operands.len());
        self.operands.push(OperandData {
            value: new.value,
            owner: op,
            next_use: Operand::NONE,
            prev_use: Operand::NONE,
            annot: new.annot,
            role: new.role,
        });
        self.link_use(operand);
    }

    /// Replaces the whole operand list.
    pub fn set_operands(&mut self, op: Op, operands: &[NewOperand]) {
        for operand in self.operand_ids(op) {
            self.unlink_use(operand);
        }
        let data = &self.ops[op.index()];
        if data.operand_count as usize >= operands.len() {
            // Reuse the slots; the tail of a shortened list stays unused.
            let start = data.operand_start as usize;
            for (i, new) in operands.iter().enumerate() {
                let slot = &mut self.operands[start + i];
                (slot.value, slot.role, slot.annot) = (new.value, new.role, new.annot);
                self.link_use(Operand::new(start + i));
            }
        } else {
            self.ops[op.index()].operand_start = self.operands.len() as u32;
            self.push_operands(op, operands);
        }
        self.ops[op.index()].operand_count = operands.len() as u16;
    }

    /// The operands as they would be given to [`Ir::create`].
    pub fn new_operands(&self, op: Op) -> SmallVec<[NewOperand; 8]> {
        self.operands(op)
            .iter()
            .map(|operand| NewOperand {
                value: operand.value,
                role: operand.role,
                annot: operand.annot,
            })
            .collect()
    }

    /// Gives an operation one more region, empty.
    pub fn add_region(&mut self, op: Op) -> Region {
        let region = Region::new(self.regions.len());
        self.regions.push(RegionData {
            parent: op,
            first: Block::NONE,
            last: Block::NONE,
        });
        let extra = self.ops[op.index()].extra as usize;
        match self.extras.get_mut(extra) {
            Some(extra) => extra.regions.push(region),
            None => {
                self.ops[op.index()].extra = self.extras.len() as u32;
                self.extras.push(OpExtra {
                    regions: vec![region],
                    successors: Vec::new(),
                });
            }
        }
        region
    }

    /// Gives an operation that has no results yet one of each type.
    ///
    /// More than 65,535 cannot be stored; callers check counts first.
    pub fn set_results(&mut self, op: Op, types: &[Type]) {
        debug_assert!(types.len() <= usize::from(u16::MAX));
        debug_assert_eq!(self.ops[op.index()].result_count, 0);
        let first_result = Value::new(self.values.len());
        for (index, &ty) in types.iter().enumerate() {
            self.push_result(op, index, ty);
        }
        let data = &mut self.ops[op.index()];
        data.first_result = first_result;
        data.result_count = types.len() as u16;
    }

    /// Lets an operation branch to other blocks.
    pub fn set_successors(&mut self, op: Op, successors: &[Block]) {
        let extra = self.ops[op.index()].extra as usize;
        if let Some(extra) = self.extras.get_mut(extra) {
            extra.successors.clear();
            extra.successors.extend_from_slice(successors);
        } else if !successors.is_empty() {
            self.ops[op.index()].extra = self.extras.len() as u32;
            self.extras.push(OpExtra {
                regions: Vec::new(),
                successors: successors.to_vec(),
            });
        }
    }

    /// Puts a detached operation at `cursor`.
    pub fn place(&mut self, op: Op, cursor: Cursor) {
        if let Cursor::End(block) = cursor {
            return self.append(op, block);
        }
        self.link(&[op], cursor);
        self.assign_order(op);
    }

    /// As [`place`](Self::place) behind everything in a block: where most operations go.
    fn append(&mut self, op: Op, block: Block) {
        let last = std::mem::replace(&mut self.blocks[block.index()].last, op);
        let order = match last.some() {
            Some(last) => {
                let data = &mut self.ops[last.index()];
                data.next = op;
                order_behind(data.order)
            }
            None => {
                self.blocks[block.index()].first = op;
                Some(FIRST_ORDER)
            }
        };
        let data = &mut self.ops[op.index()];
        debug_assert_eq!(data.block, Block::NONE);
        (data.block, data.prev, data.next) = (block, last, Op::NONE);
        match order {
            Some(order) => data.order = order,
            None => self.assign_order(op),
        }
    }

    /// Puts detached operations at `cursor`, one behind the other: where they are many this is faster
    /// than one at a time.
    pub fn place_all(&mut self, run: &[Op], cursor: Cursor) {
        self.link(run, cursor);
        self.assign_orders(run);
    }

    /// Puts operations that are in no block behind others: behind each `(at, count)`, those of one block in its
    /// order, the next `count` of `ops`.
    pub fn place_runs(&mut self, ops: &[Op], behind: impl Iterator<Item = (Op, usize)> + Clone) {
        for (at, run) in runs(ops, behind.clone()) {
            self.link(run, Cursor::After(at));
        }
        self.assign_orders_of(runs(ops, behind).map(|(_, run)| run));
    }

    fn link(&mut self, run: &[Op], cursor: Cursor) {
        let (block, mut prev, next) = match cursor {
            Cursor::Start(block) => (block, Op::NONE, self.blocks[block.index()].first),
            Cursor::End(block) => (block, self.blocks[block.index()].last, Op::NONE),
            Cursor::Before(at) => {
                let data = &self.ops[at.index()];
                (data.block, data.prev, at)
            }
            Cursor::After(at) => {
                let data = &self.ops[at.index()];
                (data.block, at, data.next)
            }
        };
        for &op in run {
            let data = &mut self.ops[op.index()];
            debug_assert_eq!(data.block, Block::NONE);
            (data.block, data.prev, data.next) = (block, prev, next);
            match prev.some() {
                Some(prev) => self.ops[prev.index()].next = op,
                None => self.blocks[block.index()].first = op,
            }
            prev = op;
        }
        match next.some() {
            Some(next) => self.ops[next.index()].prev = prev,
            None => self.blocks[block.index()].last = prev,
        }
    }

    /// Makes an operation and puts it at `cursor`.
    pub fn insert(&mut self, cursor: Cursor, new: NewOp<'_>) -> Op {
        let op = self.create(new);
        self.place(op, cursor);
        op
    }

    /// Takes an operation out of its block; its operands and results stay linked.
    pub fn detach(&mut self, op: Op) {
        let OpData {
            block, prev, next, ..
        } = self.ops[op.index()];
        let Some(block) = block.some() else { return };
        match prev.some() {
            Some(prev) => self.ops[prev.index()].next = next,
            None => self.blocks[block.index()].first = next,
        }
        match next.some() {
            Some(next) => self.ops[next.index()].prev = prev,
            None => self.blocks[block.index()].last = prev,
        }
        let data = &mut self.ops[op.index()];
        (data.block, data.prev, data.next) = (Block::NONE, Op::NONE, Op::NONE);
    }

    /// Moves an operation, with its regions, to `cursor`; moving it beside itself changes nothing.
    pub fn move_op(&mut self, op: Op, cursor: Cursor) {
        if matches!(cursor, Cursor::Before(at) | Cursor::After(at) if at == op) {
            return;
        }
        self.detach(op);
        self.place(op, cursor);
    }

    /// Removes an operation and everything in its regions.
    ///
    /// Returns whether it was removed: results used outside of it keep it in place.
    pub fn erase(&mut self, op: Op) -> bool {
        let inside: SmallVec<[Op; 1]> = match self.regions(op).is_empty() {
            true => SmallVec::from_elem(op, 1),
            false => self.walk_op(op).collect(),
        };
        let used_outside = self
            .results(op)
            .any(|value| self.first_use(value).is_some());
        if used_outside {
            return false;
        }
        self.detach(op);
        for &inner in &inside {
            for operand in self.operand_ids(inner) {
                self.unlink_use(operand);
            }
        }
        for &inner in &inside {
            self.side.forget(inner);
            let data = &mut self.ops[inner.index()];
            data.operand_count = 0;
            data.name = OpName::NONE;
            data.block = Block::NONE;
        }
        true
    }

    /// Lets `with` stand for `op`: every use of a result of `op` uses the same result of `with`,
    /// which also takes name hints, location and comments it lacks; then `op` is erased.
    ///
    /// Returns false, and changes nothing, if `with` has fewer results.
    pub fn replace_op(&mut self, op: Op, with: Op) -> bool {
        let old: SmallVec<[Value; 4]> = self.results(op).collect();
        let new: SmallVec<[Value; 4]> = self.results(with).collect();
        if new.len() < old.len() {
            return false;
        }
        for (&old, &new) in old.iter().zip(&new) {
            if self.value_name(new).is_none() {
                let name = self.value_name(old);
                self.set_value_name(new, name);
            }
            self.replace_uses(old, new);
        }
        if self.loc(with).is_none() {
            let loc = self.loc(op);
            self.set_loc(with, loc);
        }
        self.side.move_trivia(op, with);
        self.erase(op)
    }

    /// Makes another operation of one, where it stands: name, operands and dictionary change, all else is
    /// kept – place, results, regions, location, comments, columns.
    ///
    /// Nothing is allocated, and an operand whose value stays keeps its place among the uses, where there
    /// are not more operands than before.
    pub fn recast(&mut self, op: Op, name: OpName, operands: &[NewOperand], dict: Dict) {
        let slots = self.operand_ids(op);
        if slots.len() < operands.len() {
            self.set_operands(op, operands);
        } else {
            let mut slots = slots;
            for (slot, new) in slots.by_ref().take(operands.len()).zip(operands) {
                if self.operands[slot.index()].value != new.value {
                    self.set_operand(slot, new.value);
                }
                let data = &mut self.operands[slot.index()];
                (data.role, data.annot) = (new.role, new.annot);
            }
            for slot in slots {
                self.unlink_use(slot);
            }
            self.ops[op.index()].operand_count = operands.len() as u16;
        }
        let data = &mut self.ops[op.index()];
        (data.name, data.dict) = (name, dict);
    }

    /// A detached copy of an operation without regions: same name, attributes, columns and
    /// location; operands mapped through `map`.
    pub fn clone_op(&mut self, op: Op, mut map: impl FnMut(Value) -> Value) -> Op {
        let old = self.ops[op.index()];
        let copy = Op::new(self.ops.len());
        let extra = match old.extra {
            u32::MAX => u32::MAX,
            row => {
                let OpExtra {
                    regions,
                    successors,
                } = &self.extras[row as usize];
                let (regions, successors) = (regions.len(), successors.clone());
                self.push_extra(copy, regions, successors)
            }
        };
        let (operands, results) = (self.operands.len(), self.values.len());
        self.ops.push(OpData {
            block: Block::NONE,
            prev: Op::NONE,
            next: Op::NONE,
            order: 0,
            operand_start: operands as u32,
            first_result: Value::new(results),
            extra,
            ..old
        });
        let first = old.first_result.index();
        for index in 0..usize::from(old.result_count) {
            let ValueData { ty, name, .. } = self.values[first + index];
            let value = self.push_result(copy, index, ty);
            self.values[value.index()].name = name;
        }
        let first = old.operand_start as usize;
        for index in first..first + usize::from(old.operand_count) {
            let OperandData {
                value, annot, role, ..
            } = self.operands[index];
            self.push_operand(
                copy,
                &NewOperand {
                    value: map(value),
                    role,
                    annot,
                },
            );
        }
        self.side.copy_columns(op, copy);
        copy
    }

    /// Gives a value a name hint from text.
    pub fn name_value(&mut self, value: Value, name: &str) -> Str {
        let name = self.ctx.str(name);
        self.set_value_name(value, Some(name));
        name
    }
}

/// The runs [`Ir::place_runs`] is told of.
fn runs(
    mut left: &[Op],
    behind: impl Iterator<Item = (Op, usize)>,
) -> impl Iterator<Item = (Op, &[Op])> {
    behind.map(move |(at, count)| {
        let (run, rest) = left.split_at(count.min(left.len()));
        left = rest;
        (at, run)
    })
}
