//! Random editing of an [`Ir`] against a naive model made of vectors: the invariants that stand at the top of `ir/mod.rs`
//! hold after every step, and every reading method agrees with the model.
//!
//! Not generated: operations moved into their own regions, and cursors beside detached operations (callers' mistakes).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use bir_dialect::ir::{
    Annot, Block, Context, Cursor, Def, Ir, NewOp, NewOperand, Op, OpName, OpTraits, Type, Value,
    Visit,
};
use proptest::prelude::*;
use std::collections::HashMap;

/// An operation of the model; `usize` are positions in the model's lists.
struct ModelOp {
    op: Op,
    operands: Vec<(usize, u8)>,
    results: Vec<usize>,
    /// Regions, each a list of blocks.
    regions: Vec<Vec<usize>>,
    block: Option<usize>,
    erased: bool,
}

struct ModelBlock {
    block: Block,
    owner: Option<usize>,
    ops: Vec<usize>,
}

struct Model {
    ir: Ir,
    name: OpName,
    ty: Type,
    ops: Vec<ModelOp>,
    blocks: Vec<ModelBlock>,
    values: Vec<Value>,
}

/// One edit; the numbers pick among what there is.
#[derive(Clone, Debug)]
enum Edit {
    Insert(u32, u32, Vec<(u32, u8)>, u8, u8),
    Create(Vec<(u32, u8)>, u8),
    Place(u32, u32, u32),
    PlaceAll(u8, u32, u32),
    PlaceRuns(u32, u32, Vec<u8>),
    Move(u32, u32, u32),
    Detach(u32),
    SetOperand(u32, u32, u32),
    SetOperands(u32, Vec<(u32, u8)>),
    ReplaceUses(u32, u32),
    ReplaceOp(u32, u32),
    Erase(u32),
    AddRegion(u32, u8),
    Clone(u32),
}

fn operands() -> impl Strategy<Value = Vec<(u32, u8)>> {
    prop::collection::vec((any::<u32>(), 0..4u8), 0..4)
}

fn edit() -> impl Strategy<Value = Edit> {
    use Edit::*;
    let n = any::<u32>;
    prop_oneof![
        6 => (n(), n(), operands(), 0..3u8, 0..2u8).prop_map(|(a, b, c, d, e)| Insert(a, b, c, d, e)),
        1 => (operands(), 0..3u8).prop_map(|(a, b)| Create(a, b)),
        2 => (n(), n(), n()).prop_map(|(a, b, c)| Place(a, b, c)),
        1 => (0..40u8, n(), n()).prop_map(|(a, b, c)| PlaceAll(a, b, c)),
        1 => (n(), n(), prop::collection::vec(0..40u8, 1..6)).prop_map(|(a, b, c)| PlaceRuns(a, b, c)),
        3 => (n(), n(), n()).prop_map(|(a, b, c)| Move(a, b, c)),
        1 => n().prop_map(Detach),
        2 => (n(), n(), n()).prop_map(|(a, b, c)| SetOperand(a, b, c)),
        2 => (n(), operands()).prop_map(|(a, b)| SetOperands(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| ReplaceUses(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| ReplaceOp(a, b)),
        2 => n().prop_map(Erase),
        1 => (n(), 0..3u8).prop_map(|(a, b)| AddRegion(a, b)),
        1 => n().prop_map(Clone),
    ]
}

fn pick(number: u32, len: usize) -> Option<usize> {
    (len > 0).then(|| number as usize % len)
}

impl Model {
    fn new() -> Model {
        let mut ctx = Context::new();
        let name = ctx.register_op("model.op", 0, OpTraits::default());
        let ty = ctx.index_type();
        let ir = Ir::new(ctx);
        let root = ModelBlock {
            block: ir.root_block(),
            owner: None,
            ops: Vec::new(),
        };
        Model {
            ir,
            name,
            ty,
            ops: Vec::new(),
            blocks: vec![root],
            values: Vec::new(),
        }
    }

    /// Operations that may be edited.
    fn alive(&self) -> Vec<usize> {
        (0..self.ops.len())
            .filter(|&i| !self.ops[i].erased)
            .collect()
    }

    fn pick_op(&self, number: u32) -> Option<usize> {
        let alive = self.alive();
        pick(number, alive.len()).map(|at| alive[at])
    }

    /// Blocks whose owner, if any, is not erased.
    fn pick_block(&self, number: u32) -> usize {
        let alive: Vec<usize> = (0..self.blocks.len())
            .filter(|&i| self.blocks[i].owner.is_none_or(|op| !self.ops[op].erased))
            .collect();
        alive[number as usize % alive.len()]
    }

    fn pick_operands(&self, picks: &[(u32, u8)]) -> Vec<(usize, u8)> {
        picks
            .iter()
            .filter_map(|&(number, role)| Some((pick(number, self.values.len())?, role)))
            .collect()
    }

    fn new_operands(&mut self, operands: &[(usize, u8)]) -> Vec<NewOperand> {
        operands
            .iter()
            .map(|&(value, role)| NewOperand {
                value: self.values[value],
                role,
                annot: self.ir.ctx.annot(&[u64::from(role)]),
            })
            .collect()
    }

    fn create(&mut self, operands: Vec<(usize, u8)>, results: u8, regions: u8) -> usize {
        let types = vec![self.ty; usize::from(results)];
        let new = self.new_operands(&operands);
        let op = self.ir.create(NewOp {
            operands: &new,
            results: &types,
            regions: usize::from(regions),
            ..NewOp::new(self.name)
        });
        self.adopt(op, operands, usize::from(regions))
    }

    fn adopt(&mut self, op: Op, operands: Vec<(usize, u8)>, regions: usize) -> usize {
        let first = self.values.len();
        self.values.extend(self.ir.results(op));
        let results = (first..self.values.len()).collect();
        self.ops.push(ModelOp {
            op,
            operands,
            results,
            regions: vec![Vec::new(); regions],
            block: None,
            erased: false,
        });
        let at = self.ops.len() - 1;
        for region in 0..regions {
            self.append_block(at, region);
        }
        at
    }

    fn append_block(&mut self, op: usize, region: usize) {
        let handle = self.ir.regions(self.ops[op].op)[region];
        let block = self.ir.append_block(handle);
        self.blocks.push(ModelBlock {
            block,
            owner: Some(op),
            ops: Vec::new(),
        });
        self.ops[op].regions[region].push(self.blocks.len() - 1);
    }

    /// A cursor, and the block and position it stands for; none inside `moved`.
    fn cursor(&self, block: u32, at: u32, moved: Option<usize>) -> Option<(Cursor, usize, usize)> {
        let block = self.pick_block(block);
        let mut around = self.blocks[block].owner;
        while let Some(op) = around {
            if Some(op) == moved {
                return None;
            }
            around = self.ops[op]
                .block
                .and_then(|block| self.blocks[block].owner);
        }
        let data = &self.blocks[block];
        let len = data.ops.len();
        let handle = |i: usize| self.ops[data.ops[i]].op;
        let position = at as usize / 2 % (len + 1);
        Some(match at % 2 {
            _ if len == 0 && at.is_multiple_of(2) => (Cursor::Start(data.block), block, 0),
            _ if len == 0 => (Cursor::End(data.block), block, 0),
            0 if position == 0 => (Cursor::Start(data.block), block, 0),
            0 => (Cursor::After(handle(position - 1)), block, position),
            _ if position == len => (Cursor::End(data.block), block, len),
            _ => (Cursor::Before(handle(position)), block, position),
        })
    }

    fn link(&mut self, op: usize, block: usize, position: usize) {
        self.blocks[block].ops.insert(position, op);
        self.ops[op].block = Some(block);
    }

    /// Position of the operation in its block, taken out of it.
    fn unlink(&mut self, op: usize) -> Option<(usize, usize)> {
        let block = self.ops[op].block.take()?;
        let position = self.blocks[block].ops.iter().position(|&o| o == op)?;
        self.blocks[block].ops.remove(position);
        Some((block, position))
    }

    fn is_used(&self, value: usize) -> bool {
        self.ops
            .iter()
            .any(|op| !op.erased && op.operands.iter().any(|&(v, _)| v == value))
    }

    fn mark_erased(&mut self, op: usize) {
        let mut stack = vec![op];
        while let Some(op) = stack.pop() {
            let data = &mut self.ops[op];
            data.erased = true;
            data.operands.clear();
            for block in data.regions.iter().flatten() {
                stack.extend(&self.blocks[*block].ops);
            }
        }
    }

    fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Insert(block, at, operands, results, regions) => {
                let operands = self.pick_operands(operands);
                let op = self.create(operands, *results, *regions);
                if let Some((cursor, block, position)) = self.cursor(*block, *at, Some(op)) {
                    self.ir.place(self.ops[op].op, cursor);
                    self.link(op, block, position);
                }
            }
            Edit::Create(operands, results) => {
                let operands = self.pick_operands(operands);
                self.create(operands, *results, 0);
            }
            Edit::Place(op, block, at) => {
                let detached: Vec<usize> = self
                    .alive()
                    .into_iter()
                    .filter(|&op| self.ops[op].block.is_none())
                    .collect();
                let Some(op) = pick(*op, detached.len()).map(|at| detached[at]) else {
                    return;
                };
                if let Some((cursor, block, position)) = self.cursor(*block, *at, Some(op)) {
                    self.ir.place(self.ops[op].op, cursor);
                    self.link(op, block, position);
                }
            }
            Edit::PlaceAll(count, block, at) => {
                let run: Vec<usize> = (0..*count).map(|_| self.create(vec![], 0, 0)).collect();
                let Some((cursor, block, position)) = self.cursor(*block, *at, None) else {
                    return;
                };
                let ops: Vec<Op> = run.iter().map(|&op| self.ops[op].op).collect();
                self.ir.place_all(&ops, cursor);
                for (at, op) in run.into_iter().enumerate() {
                    self.link(op, block, position + at);
                }
            }
            Edit::PlaceRuns(one, other, counts) => {
                let mut blocks = vec![self.pick_block(*one), self.pick_block(*other)];
                blocks.dedup();
                let anchors = blocks
                    .iter()
                    .flat_map(|&block| self.blocks[block].ops.clone());
                let runs: Vec<(usize, usize)> = anchors
                    .zip(counts.iter().cycle())
                    .filter(|&(_, &count)| count % 3 > 0)
                    .map(|(anchor, &count)| (anchor, usize::from(count)))
                    .take(6)
                    .collect();
                let count = runs.iter().map(|run| run.1).sum();
                let made: Vec<usize> = (0..count).map(|_| self.create(vec![], 0, 0)).collect();
                let ops: Vec<Op> = made.iter().map(|&op| self.ops[op].op).collect();
                let behind: Vec<(Op, usize)> = runs
                    .iter()
                    .map(|&(anchor, count)| (self.ops[anchor].op, count))
                    .collect();
                self.ir.place_runs(&ops, behind.into_iter());
                let mut made = made.into_iter();
                for (anchor, count) in runs {
                    let block = self.ops[anchor].block.unwrap();
                    let at = self.blocks[block].ops.iter().position(|&op| op == anchor);
                    for (behind, op) in made.by_ref().take(count).enumerate() {
                        self.link(op, block, at.unwrap() + 1 + behind);
                    }
                }
            }
            Edit::Move(op, block, at) => {
                let Some(op) = self.pick_op(*op) else { return };
                let Some((cursor, block, mut position)) = self.cursor(*block, *at, Some(op)) else {
                    return;
                };
                self.ir.move_op(self.ops[op].op, cursor);
                if matches!(cursor, Cursor::Before(at) | Cursor::After(at) if at == self.ops[op].op)
                {
                    return;
                }
                if let Some((old, was)) = self.unlink(op)
                    && old == block
                    && was < position
                {
                    position -= 1;
                }
                self.link(op, block, position);
            }
            Edit::Detach(op) => {
                let Some(op) = self.pick_op(*op) else { return };
                self.ir.detach(self.ops[op].op);
                self.unlink(op);
            }
            Edit::SetOperand(op, at, value) => {
                let Some(op) = self.pick_op(*op) else { return };
                let Some(at) = pick(*at, self.ops[op].operands.len()) else {
                    return;
                };
                let Some(value) = pick(*value, self.values.len()) else {
                    return;
                };
                let operand = self.ir.operand_ids(self.ops[op].op).nth(at).unwrap();
                self.ir.set_operand(operand, self.values[value]);
                self.ops[op].operands[at].0 = value;
            }
            Edit::SetOperands(op, operands) => {
                let Some(op) = self.pick_op(*op) else { return };
                let operands = self.pick_operands(operands);
                let new = self.new_operands(&operands);
                let row = self.ops[op].op;
                // Two ways to one end: the list is replaced, or the operation is made another one.
                match operands.len() % 2 {
                    0 => self.ir.set_operands(row, &new),
                    _ => {
                        let (name, dict) = (self.ir.name(row), self.ir.dict(row));
                        self.ir.recast(row, name, &new, dict);
                    }
                }
                self.ops[op].operands = operands;
            }
            Edit::ReplaceUses(from, to) => {
                let (Some(from), Some(to)) =
                    (pick(*from, self.values.len()), pick(*to, self.values.len()))
                else {
                    return;
                };
                self.ir.replace_uses(self.values[from], self.values[to]);
                self.replace_uses(from, to);
            }
            Edit::ReplaceOp(op, with) => {
                let (Some(op), Some(with)) = (self.pick_op(*op), self.pick_op(*with)) else {
                    return;
                };
                if op == with {
                    return;
                }
                let (old, new) = (self.ops[op].results.clone(), self.ops[with].results.clone());
                let done = self.ir.replace_op(self.ops[op].op, self.ops[with].op);
                if new.len() < old.len() {
                    assert!(!done);
                    return;
                }
                assert!(done);
                for (from, to) in old.into_iter().zip(new) {
                    self.replace_uses(from, to);
                }
                self.unlink(op);
                self.mark_erased(op);
            }
            Edit::Erase(op) => {
                let Some(op) = self.pick_op(*op) else { return };
                let used = self.ops[op]
                    .results
                    .iter()
                    .any(|&value| self.is_used(value));
                assert_eq!(self.ir.erase(self.ops[op].op), !used);
                if !used {
                    self.unlink(op);
                    self.mark_erased(op);
                }
            }
            Edit::AddRegion(op, blocks) => {
                let Some(op) = self.pick_op(*op) else { return };
                self.ir.add_region(self.ops[op].op);
                self.ops[op].regions.push(Vec::new());
                let region = self.ops[op].regions.len() - 1;
                for _ in 0..*blocks {
                    self.append_block(op, region);
                }
            }
            Edit::Clone(op) => {
                let Some(op) = self.pick_op(*op) else { return };
                let first = self.values.first().copied();
                let copy = self
                    .ir
                    .clone_op(self.ops[op].op, |value| first.unwrap_or(value));
                let operands = self.ops[op]
                    .operands
                    .iter()
                    .map(|&(_, role)| (0, role))
                    .collect();
                let regions = self.ops[op].regions.len();
                self.adopt(copy, operands, regions);
            }
        }
    }

    fn replace_uses(&mut self, from: usize, to: usize) {
        for op in &mut self.ops {
            for operand in &mut op.operands {
                if operand.0 == from {
                    operand.0 = to;
                }
            }
        }
    }

    fn check(&self) {
        let ir = &self.ir;
        let mut uses: HashMap<Value, Vec<Op>> = HashMap::new();
        for data in &self.ops {
            let op = data.op;
            assert_eq!(ir.is_erased(op), data.erased);
            if data.erased {
                assert_eq!(ir.operands(op).len(), 0);
                assert_eq!(ir.block(op), None);
                continue;
            }
            assert_eq!(
                ir.block(op),
                data.block.map(|block| self.blocks[block].block)
            );
            let operands: Vec<(Value, u8, Op)> = ir
                .operands(op)
                .iter()
                .map(|operand| (operand.value, operand.role, operand.owner))
                .collect();
            let wanted: Vec<(Value, u8, Op)> = data
                .operands
                .iter()
                .map(|&(value, role)| (self.values[value], role, op))
                .collect();
            assert_eq!(operands, wanted);
            for operand in ir.operands(op) {
                assert_eq!(ir.ctx.annot_words(operand.annot), [u64::from(operand.role)]);
                assert_ne!(operand.annot, Annot::UNIT);
                uses.entry(operand.value).or_default().push(op);
            }
            for (index, &value) in data.results.iter().enumerate() {
                assert_eq!(ir.def(self.values[value]), Def::Result { op, index });
            }
            assert_eq!(ir.regions(op).len(), data.regions.len());
            for (&region, blocks) in ir.regions(op).iter().zip(&data.regions) {
                assert_eq!(ir.region_parent(region), Some(op));
                let found: Vec<Block> = ir.blocks(region).collect();
                let wanted: Vec<Block> = blocks.iter().map(|&b| self.blocks[b].block).collect();
                assert_eq!(found, wanted);
            }
        }
        // An operand is in the list of its value exactly once, and nothing else is.
        for &value in &self.values {
            let mut found: Vec<Op> = ir
                .uses(value)
                .map(|operand| ir.operand(operand).owner)
                .collect();
            let mut slots: Vec<_> = ir.uses(value).collect();
            found.sort();
            slots.sort();
            slots.dedup();
            assert_eq!(slots.len(), found.len());
            let mut wanted = uses.remove(&value).unwrap_or_default();
            wanted.sort();
            assert_eq!(found, wanted);
        }
        for data in &self.blocks {
            if data.owner.is_some_and(|op| self.ops[op].erased) {
                continue;
            }
            let wanted: Vec<Op> = data.ops.iter().map(|&op| self.ops[op].op).collect();
            assert_eq!(ir.block_ops(data.block).collect::<Vec<_>>(), wanted);
            let mut backwards = Vec::new();
            let mut at = ir.last_op(data.block);
            while let Some(op) = at {
                backwards.push(op);
                at = ir.prev(op);
            }
            backwards.reverse();
            assert_eq!(backwards, wanted);
            for pair in wanted.windows(2) {
                assert!(ir.order_in_block(pair[0]) < ir.order_in_block(pair[1]));
            }
            assert_eq!(
                ir.block_parent(data.block),
                data.owner.map(|op| self.ops[op].op)
            );
        }
        let mut wanted = Vec::new();
        self.walk(0, &mut wanted);
        assert_eq!(ir.walk().collect::<Vec<_>>(), wanted);
    }

    fn walk(&self, block: usize, out: &mut Vec<Visit>) {
        for &op in &self.blocks[block].ops {
            let data = &self.ops[op];
            out.push(Visit::Enter(data.op));
            for &inner in data.regions.iter().flatten() {
                self.walk(inner, out);
            }
            if !data.regions.is_empty() {
                out.push(Visit::Leave(data.op));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_agree_with_the_model(edits in prop::collection::vec(edit(), 1..120)) {
        let mut model = Model::new();
        for edit in &edits {
            model.apply(edit);
            model.check();
        }
    }
}
