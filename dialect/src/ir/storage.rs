//! The tables behind the handles, and every way to read them.

use std::path::PathBuf;

use super::context::{Context, OpInfo, OpTraits};
use super::entity::{Annot, Attr, Block, Dict, Loc, Op, OpName, Operand, Region, Str, Type, Value};
use super::side::SideTables;

/// One operand slot of an operation.
#[derive(Clone, Copy, Debug)]
pub struct OperandData {
    /// The value used.
    pub value: Value,
    /// The operation that uses it.
    pub owner: Op,
    pub(super) next_use: Operand,
    pub(super) prev_use: Operand,
    /// The dialect's annotation (BIR: the access pattern).
    pub annot: Annot,
    /// The dialect's role number, meaningful together with the operation's name.
    pub role: u8,
}

#[derive(Clone, Copy)]
pub(super) struct OpData {
    pub(super) name: OpName,
    pub(super) block: Block,
    pub(super) prev: Op,
    pub(super) next: Op,
    pub(super) order: u32,
    pub(super) operand_start: u32,
    pub(super) operand_count: u16,
    pub(super) result_count: u16,
    pub(super) first_result: Value,
    pub(super) dict: Dict,
    /// Row of `Ir::extras`, or `u32::MAX`: most operations have neither regions nor successors.
    pub(super) extra: u32,
    pub(super) span: u32,
}

#[derive(Clone, Default)]
pub(super) struct OpExtra {
    pub(super) regions: Vec<Region>,
    pub(super) successors: Vec<Block>,
}

#[derive(Clone, Copy)]
pub(super) struct BlockData {
    pub(super) region: Region,
    pub(super) prev: Block,
    pub(super) next: Block,
    pub(super) first: Op,
    pub(super) last: Op,
    pub(super) first_arg: Value,
    pub(super) arg_count: u32,
    pub(super) label: Str,
}

#[derive(Clone, Copy)]
pub(super) struct RegionData {
    pub(super) parent: Op,
    pub(super) first: Block,
    pub(super) last: Block,
}

#[derive(Clone, Copy)]
pub(super) struct ValueData {
    pub(super) ty: Type,
    pub(super) name: Str,
    /// Operation or block handle.
    pub(super) def: u32,
    /// High bit: `def` is a block; rest: position among the results or arguments.
    pub(super) position: u32,
    pub(super) first_use: Operand,
}

const IS_ARG: u32 = 1 << 31;

/// What defines a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// Result number `index` of `op`.
    Result {
        /// The defining operation.
        op: Op,
        /// Position among its results.
        index: usize,
    },
    /// Argument number `index` of `block`.
    Arg {
        /// The block.
        block: Block,
        /// Position among its arguments.
        index: usize,
    },
}

/// The operations of one file.
#[derive(Clone)]
pub struct Ir {
    /// Interners and op names.
    pub ctx: Context,
    pub(super) ops: Vec<OpData>,
    pub(super) extras: Vec<OpExtra>,
    pub(super) blocks: Vec<BlockData>,
    pub(super) regions: Vec<RegionData>,
    pub(super) values: Vec<ValueData>,
    pub(super) operands: Vec<OperandData>,
    pub(super) side: SideTables,
    /// Folder of the file it was read from, which files that attributes name are relative to; empty
    /// for the working directory.
    pub folder: PathBuf,
}

impl Ir {
    /// An empty file: [`Ir::root`] has one block without operations.
    pub fn new(ctx: Context) -> Ir {
        let mut ir = Ir {
            ctx,
            ops: Vec::new(),
            extras: Vec::new(),
            blocks: Vec::new(),
            regions: Vec::new(),
            values: Vec::new(),
            operands: Vec::new(),
            side: SideTables::default(),
            folder: PathBuf::new(),
        };
        ir.regions.push(RegionData {
            parent: Op::NONE,
            first: Block::NONE,
            last: Block::NONE,
        });
        ir.append_block(Region::new(0));
        ir
    }

    /// Makes room for `ops` further operations at once.
    pub fn reserve(&mut self, ops: usize) {
        self.ops.reserve(ops);
        self.operands.reserve(ops * 2);
    }

    /// Makes room for `values` further results and arguments at once.
    pub fn reserve_values(&mut self, values: usize) {
        self.values.reserve(values);
    }

    /// The region of the top-level operations.
    pub fn root(&self) -> Region {
        Region::new(0)
    }

    /// The block of the top-level operations.
    pub fn root_block(&self) -> Block {
        self.regions[0].first
    }

    // ---- operations ----

    /// Number of operation rows ever made: the bound for tables indexed by [`Op::index`].
    pub fn op_rows(&self) -> usize {
        self.ops.len()
    }

    /// Number of value rows ever made.
    pub fn value_rows(&self) -> usize {
        self.values.len()
    }

    /// Number of block rows ever made.
    pub fn block_rows(&self) -> usize {
        self.blocks.len()
    }

    /// Number of region rows ever made.
    pub fn region_rows(&self) -> usize {
        self.regions.len()
    }

    /// Whether the operation was erased.
    pub fn is_erased(&self, op: Op) -> bool {
        self.ops[op.index()].name == OpName::NONE
    }

    /// The operation's name handle.
    #[inline]
    pub fn name(&self, op: Op) -> OpName {
        self.ops[op.index()].name
    }

    /// What is known of the operation's name.
    #[inline]
    pub fn info(&self, op: Op) -> &OpInfo {
        self.ctx.op_info(self.ops[op.index()].name)
    }

    /// The operation's name as text, `dialect.mnemonic`.
    pub fn name_text(&self, op: Op) -> &str {
        self.ctx.text(self.info(op).name)
    }

    /// The registered dialect's number of the operation kind.
    #[inline]
    pub fn code(&self, op: Op) -> Option<u16> {
        self.info(op).code
    }

    /// The operation kind's traits.
    #[inline]
    pub fn traits(&self, op: Op) -> OpTraits {
        self.info(op).traits
    }

    /// The block the operation is in; `None` while detached.
    #[inline]
    pub fn block(&self, op: Op) -> Option<Block> {
        self.ops[op.index()].block.some()
    }

    /// The operation behind `op` in its block.
    #[inline]
    pub fn next(&self, op: Op) -> Option<Op> {
        self.ops[op.index()].next.some()
    }

    /// The operation before `op` in its block.
    #[inline]
    pub fn prev(&self, op: Op) -> Option<Op> {
        self.ops[op.index()].prev.some()
    }

    /// The operation whose region holds `op`.
    pub fn parent(&self, op: Op) -> Option<Op> {
        self.region_parent(self.block_region(self.block(op)?))
    }

    /// Operands in order.
    #[inline]
    pub fn operands(&self, op: Op) -> &[OperandData] {
        let data = &self.ops[op.index()];
        let start = data.operand_start as usize;
        &self.operands[start..start + data.operand_count as usize]
    }

    /// Operand handles in order.
    pub fn operand_ids(&self, op: Op) -> impl ExactSizeIterator<Item = Operand> + use<> {
        let data = &self.ops[op.index()];
        let start = data.operand_start;
        (start..start + u32::from(data.operand_count)).map(Operand)
    }

    /// One operand slot.
    #[inline]
    pub fn operand(&self, operand: Operand) -> &OperandData {
        &self.operands[operand.index()]
    }

    /// Result values in order.
    #[inline]
    pub fn results(&self, op: Op) -> impl ExactSizeIterator<Item = Value> + use<> {
        let data = &self.ops[op.index()];
        let start = data.first_result.0;
        let count = u32::from(data.result_count);
        (0..count).map(move |i| Value(start + i))
    }

    /// The first result.
    #[inline]
    pub fn result(&self, op: Op) -> Option<Value> {
        let data = &self.ops[op.index()];
        (data.result_count > 0).then_some(data.first_result)
    }

    /// The first result of an operation made with one; see [`result`](Self::result) for others.
    pub fn made_result(&self, op: Op) -> Value {
        debug_assert!(self.ops[op.index()].result_count > 0);
        self.ops[op.index()].first_result
    }

    /// Regions in order.
    pub fn regions(&self, op: Op) -> &[Region] {
        match self.extras.get(self.ops[op.index()].extra as usize) {
            Some(extra) => &extra.regions,
            None => &[],
        }
    }

    /// Successor blocks in order.
    pub fn successors(&self, op: Op) -> &[Block] {
        match self.extras.get(self.ops[op.index()].extra as usize) {
            Some(extra) => &extra.successors,
            None => &[],
        }
    }

    /// The attribute dictionary.
    #[inline]
    pub fn dict(&self, op: Op) -> Dict {
        self.ops[op.index()].dict
    }

    /// The attribute `name`.
    pub fn attr(&self, op: Op, name: &str) -> Option<Attr> {
        self.ctx.dict_find(self.dict(op), name)
    }

    /// Replaces the whole dictionary.
    pub fn set_dict(&mut self, op: Op, dict: Dict) {
        self.ops[op.index()].dict = dict;
    }

    /// Sets or removes one attribute.
    pub fn set_attr(&mut self, op: Op, name: &str, attr: Option<Attr>) {
        let name = self.ctx.str(name);
        let dict = self.ctx.dict_with(self.dict(op), name, attr);
        self.set_dict(op, dict);
    }

    /// Byte offset of the operation's text in its file; `None` if it has none.
    pub fn span(&self, op: Op) -> Option<usize> {
        let span = self.ops[op.index()].span;
        (span != u32::MAX).then_some(span as usize)
    }

    /// Sets or clears the byte offset of the operation's text.
    pub fn set_span(&mut self, op: Op, span: Option<usize>) {
        self.ops[op.index()].span = span.map_or(u32::MAX, |offset| offset as u32);
    }

    /// The source location the program states for the operation.
    pub fn loc(&self, op: Op) -> Option<Loc> {
        self.side.loc(op)
    }

    /// Sets or clears the stated source location.
    pub fn set_loc(&mut self, op: Op, loc: Option<Loc>) {
        self.side.set_loc(op, loc);
    }

    // ---- blocks and regions ----

    /// The region a block is in.
    #[inline]
    pub fn block_region(&self, block: Block) -> Region {
        self.blocks[block.index()].region
    }

    /// The operation that owns a region; `None` for the root.
    #[inline]
    pub fn region_parent(&self, region: Region) -> Option<Op> {
        self.regions[region.index()].parent.some()
    }

    /// The operation whose region holds the block.
    pub fn block_parent(&self, block: Block) -> Option<Op> {
        self.region_parent(self.block_region(block))
    }

    /// First block of a region.
    pub fn entry(&self, region: Region) -> Option<Block> {
        self.regions[region.index()].first.some()
    }

    /// Last block of a region.
    pub fn last_block(&self, region: Region) -> Option<Block> {
        self.regions[region.index()].last.some()
    }

    /// The block behind `block` in its region.
    pub fn next_block(&self, block: Block) -> Option<Block> {
        self.blocks[block.index()].next.some()
    }

    /// The block before `block` in its region.
    pub fn prev_block(&self, block: Block) -> Option<Block> {
        self.blocks[block.index()].prev.some()
    }

    /// Blocks of a region in order.
    pub fn blocks(&self, region: Region) -> impl Iterator<Item = Block> + '_ {
        std::iter::successors(self.entry(region), |&block| self.next_block(block))
    }

    /// Operations of a block in order.
    pub fn block_ops(&self, block: Block) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.first_op(block), |&op| self.next(op))
    }

    /// First operation of a block.
    #[inline]
    pub fn first_op(&self, block: Block) -> Option<Op> {
        self.blocks[block.index()].first.some()
    }

    /// Last operation of a block.
    #[inline]
    pub fn last_op(&self, block: Block) -> Option<Op> {
        self.blocks[block.index()].last.some()
    }

    /// The last operation if it is a terminator.
    pub fn terminator(&self, block: Block) -> Option<Op> {
        self.last_op(block).filter(|&op| self.traits(op).terminator)
    }

    /// Block arguments in order.
    pub fn args(&self, block: Block) -> impl ExactSizeIterator<Item = Value> + use<> {
        let data = &self.blocks[block.index()];
        let start = data.first_arg.0;
        (0..data.arg_count).map(move |i| Value(start + i))
    }

    /// The label the text gave the block, without `^`.
    pub fn label(&self, block: Block) -> Option<Str> {
        self.blocks[block.index()].label.some()
    }

    /// Sets or clears the label hint.
    pub fn set_label(&mut self, block: Block, label: Option<Str>) {
        self.blocks[block.index()].label = label.unwrap_or(Str::NONE);
    }

    /// Adds an empty block at the end of a region.
    pub fn append_block(&mut self, region: Region) -> Block {
        let block = Block::new(self.blocks.len());
        let last = self.regions[region.index()].last;
        self.blocks.push(BlockData {
            region,
            prev: last,
            next: Block::NONE,
            first: Op::NONE,
            last: Op::NONE,
            first_arg: Value::NONE,
            arg_count: 0,
            label: Str::NONE,
        });
        match last.some() {
            Some(last) => self.blocks[last.index()].next = block,
            None => self.regions[region.index()].first = block,
        }
        self.regions[region.index()].last = block;
        block
    }

    /// Moves a block to the end of `region`, which may be its own.
    pub fn move_block_to_end(&mut self, block: Block, region: Region) {
        self.unlink_block(block);
        let last = self.regions[region.index()].last;
        let data = &mut self.blocks[block.index()];
        data.region = region;
        data.prev = last;
        data.next = Block::NONE;
        match last.some() {
            Some(last) => self.blocks[last.index()].next = block,
            None => self.regions[region.index()].first = block,
        }
        self.regions[region.index()].last = block;
    }

    /// Takes an empty block without arguments in use out of its region.
    ///
    /// Returns whether it was removed: a block that still holds operations stays.
    pub fn remove_empty_block(&mut self, block: Block) -> bool {
        let used = self.args(block).any(|arg| self.first_use(arg).is_some());
        if used || self.first_op(block).is_some() {
            return false;
        }
        self.unlink_block(block);
        true
    }

    fn unlink_block(&mut self, block: Block) {
        let BlockData {
            region, prev, next, ..
        } = self.blocks[block.index()];
        match prev.some() {
            Some(prev) => self.blocks[prev.index()].next = next,
            None => self.regions[region.index()].first = next,
        }
        match next.some() {
            Some(next) => self.blocks[next.index()].prev = prev,
            None => self.regions[region.index()].last = prev,
        }
    }

    /// Adds arguments to a block that has none yet.
    pub fn set_args(&mut self, block: Block, types: &[Type]) {
        debug_assert_eq!(self.blocks[block.index()].arg_count, 0);
        let first = Value::new(self.values.len());
        for (i, &ty) in types.iter().enumerate() {
            self.values.push(ValueData {
                ty,
                name: Str::NONE,
                def: block.0,
                position: i as u32 | IS_ARG,
                first_use: Operand::NONE,
            });
        }
        let data = &mut self.blocks[block.index()];
        data.first_arg = first;
        data.arg_count = types.len() as u32;
    }

    // ---- values ----

    pub(super) fn push_result(&mut self, op: Op, index: usize, ty: Type) -> Value {
        let value = Value::new(self.values.len());
        self.values.push(ValueData {
            ty,
            name: Str::NONE,
            def: op.0,
            position: index as u32,
            first_use: Operand::NONE,
        });
        value
    }

    /// The value's type.
    #[inline]
    pub fn value_type(&self, value: Value) -> Type {
        self.values[value.index()].ty
    }

    /// Changes a value's type; operands keep their annotations.
    pub fn set_value_type(&mut self, value: Value, ty: Type) {
        self.values[value.index()].ty = ty;
    }

    /// What defines the value.
    pub fn def(&self, value: Value) -> Def {
        let data = &self.values[value.index()];
        let index = (data.position & !IS_ARG) as usize;
        if data.position & IS_ARG != 0 {
            Def::Arg {
                block: Block(data.def),
                index,
            }
        } else {
            Def::Result {
                op: Op(data.def),
                index,
            }
        }
    }

    /// The operation that defines the value, if one does.
    pub fn def_op(&self, value: Value) -> Option<Op> {
        match self.def(value) {
            Def::Result { op, .. } => Some(op),
            Def::Arg { .. } => None,
        }
    }

    /// The name hint, without `%`.
    pub fn value_name(&self, value: Value) -> Option<Str> {
        self.values[value.index()].name.some()
    }

    /// Sets or clears the name hint; names are made unique only in print.
    pub fn set_value_name(&mut self, value: Value, name: Option<Str>) {
        self.values[value.index()].name = name.unwrap_or(Str::NONE);
    }

    /// Some use of the value.
    pub fn first_use(&self, value: Value) -> Option<Operand> {
        self.values[value.index()].first_use.some()
    }

    /// All uses, in no meaningful but a reproducible order.
    pub fn uses(&self, value: Value) -> impl Iterator<Item = Operand> + '_ {
        std::iter::successors(self.first_use(value), |&operand| {
            self.operands[operand.index()].next_use.some()
        })
    }

    // ---- use lists ----

    pub(super) fn link_use(&mut self, operand: Operand) {
        let value = self.operands[operand.index()].value;
        let head = self.values[value.index()].first_use;
        let data = &mut self.operands[operand.index()];
        data.prev_use = Operand::NONE;
        data.next_use = head;
        if let Some(head) = head.some() {
            self.operands[head.index()].prev_use = operand;
        }
        self.values[value.index()].first_use = operand;
    }

    pub(super) fn unlink_use(&mut self, operand: Operand) {
        let OperandData {
            value,
            next_use,
            prev_use,
            ..
        } = self.operands[operand.index()];
        match prev_use.some() {
            Some(prev) => self.operands[prev.index()].next_use = next_use,
            None => self.values[value.index()].first_use = next_use,
        }
        if let Some(next) = next_use.some() {
            self.operands[next.index()].prev_use = prev_use;
        }
    }

    /// Lets an operand use another value.
    pub fn set_operand(&mut self, operand: Operand, value: Value) {
        self.unlink_use(operand);
        self.operands[operand.index()].value = value;
        self.link_use(operand);
    }

    /// Changes an operand's annotation.
    pub fn set_annot(&mut self, operand: Operand, annot: Annot) {
        self.operands[operand.index()].annot = annot;
    }

    /// Lets every use of `from` use `to`.
    pub fn replace_uses(&mut self, from: Value, to: Value) {
        if from == to {
            return;
        }
        let Some(first) = self.first_use(from) else {
            return;
        };
        // Splice the whole list in front of `to`'s.
        let mut last = first;
        loop {
            self.operands[last.index()].value = to;
            match self.operands[last.index()].next_use.some() {
                Some(next) => last = next,
                None => break,
            }
        }
        let head = self.values[to.index()].first_use;
        self.operands[last.index()].next_use = head;
        if let Some(head) = head.some() {
            self.operands[head.index()].prev_use = last;
        }
        self.values[to.index()].first_use = first;
        self.values[from.index()].first_use = Operand::NONE;
    }

    /// Bytes held by the tables, for statistics.
    pub fn heap_bytes(&self) -> usize {
        use std::mem::size_of;
        self.ops.capacity() * size_of::<OpData>()
            + self.operands.capacity() * size_of::<OperandData>()
            + self.values.capacity() * size_of::<ValueData>()
            + self.blocks.capacity() * size_of::<BlockData>()
            + self.extras.capacity() * size_of::<OpExtra>()
            + self.side.heap_bytes()
            + self.ctx.heap_bytes()
    }
}
