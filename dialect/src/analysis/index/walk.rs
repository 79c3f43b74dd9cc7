//! One walk over a function: its control flow, and every operand that touches memory.
//!
//! Blocks are visited in reverse postorder of their region, so that all predecessors but loops come
//! first; unreachable blocks come last, without predecessors. Nothing here recurses.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::event::{Effect, Reads, Writes};
use super::flow::{Flow, LoopId, LoopKind, NO_LOOP};
use crate::analysis::access::LoopRange;
use crate::bir::attrs::Accumulate;
use crate::bir::loops;
use crate::bir::ops::{Kind, OpCode, OpDef, Syntax, Trait};
use crate::bir::program::names;
use crate::bir::types::MemType;
use crate::ir::{Block, Dict, Ir, Op, Operand, Region, Value};

/// An operand that touches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The instruction.
    pub op: Op,
    /// What it is; `None` where the table does not have it.
    pub code: Option<OpCode>,
    /// The operand.
    pub operand: Operand,
    /// The location, as a number in [`FunctionIndex::locations`](super::FunctionIndex::locations).
    pub location: u32,
    /// What happens to the bytes.
    pub effect: Effect,
    /// Whether where in the location is decided by data: it may be anywhere.
    pub dynamic: bool,
    /// Number of the instruction in the order walked.
    pub order: u32,
    pub(in crate::analysis) segment: u32,
}

/// An instruction and a register that is written more than once.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct RegisterTouch {
    /// The register, counted in the order of definitions.
    pub(in crate::analysis) register: u32,
    /// See [`Touch::order`].
    pub(in crate::analysis) order: u32,
    pub(in crate::analysis) segment: u32,
    pub(in crate::analysis) effect: Effect,
}

/// A loop with an index.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct LoopIndex {
    pub(in crate::analysis) id: LoopId,
    /// `None` where a register holds the first value.
    pub(in crate::analysis) range: Option<LoopRange>,
}

/// What the walk found.
pub(in crate::analysis) struct Walked {
    pub(in crate::analysis) flow: Flow,
    /// The locations, in order.
    pub(in crate::analysis) allocs: Vec<(Op, Value)>,
    pub(in crate::analysis) touches: Vec<Touch>,
    /// What instructions do to registers that have more writers than the one that defines them, reads
    /// of an instruction first.
    pub(in crate::analysis) registers: Vec<RegisterTouch>,
    /// Per value, the loop whose index it is: a number in `loops` and one more.
    pub(in crate::analysis) index_of: HashMap<Value, LoopIndex>,
    /// Per loop, the numbers of the first instruction in it and of the first behind it.
    pub(in crate::analysis) loop_orders: Vec<(u32, u32)>,
    /// Instructions walked.
    pub(in crate::analysis) orders: u32,
    /// They themselves.
    pub(in crate::analysis) ops: Vec<Op>,
}

/// A region being walked.
struct Frame {
    blocks: Vec<Block>,
    at: usize,
    next: Option<Op>,
    /// Per block, the segments that lead to it.
    incoming: Vec<SmallVec<[u32; 2]>>,
    numbers: HashMap<Block, u32>,
    /// First and last block and kind of cycles, outer ones first, and those open.
    cycles: Vec<(u32, u32, LoopKind)>,
    open: Vec<(LoopId, u32)>,
    exits: SmallVec<[u32; 2]>,
    unconditional: bool,
    /// See [`Segment::since`](super::flow::Segment::since).
    since: LoopId,
    innermost: Option<LoopId>,
    /// The loop this is the body of.
    body_of: Option<LoopId>,
}

struct Walker<'a> {
    ir: &'a Ir,
    walked: Walked,
    /// Per value row, the location, or `u32::MAX`.
    location_of: Vec<u32>,
    /// Numbers of the registers in [`Walked::registers`].
    register_of: HashMap<Value, u32>,
    segment: u32,
    stack: Vec<Frame>,
}

/// Walks a function.
pub(in crate::analysis) fn walk(ir: &Ir, func: Op) -> Walked {
    let mut walker = Walker {
        ir,
        walked: Walked {
            flow: Flow::default(),
            allocs: Vec::new(),
            touches: Vec::new(),
            registers: Vec::new(),
            index_of: HashMap::new(),
            loop_orders: Vec::new(),
            orders: 0,
            ops: Vec::new(),
        },
        location_of: vec![u32::MAX; ir.value_rows()],
        register_of: HashMap::new(),
        segment: 0,
        stack: Vec::new(),
    };
    walker.segment = walker.walked.flow.segment(&[], None, true, false);
    if let Some(&region) = ir.regions(func).first() {
        walker.enter_region(region, None, true);
    }
    walker.run();
    let mut walked = walker.walked;
    if walked.flow.exits.is_empty() {
        walked.flow.exit(walker.segment);
    }
    // They stay for as long as the analysis does.
    walked.touches.shrink_to_fit();
    walked.ops.shrink_to_fit();
    walked
}

impl Walker<'_> {
    fn enter_region(&mut self, region: Region, body_of: Option<LoopId>, unconditional: bool) {
        let ir = self.ir;
        let (blocks, reachable) = reverse_postorder(ir, region);
        let single = blocks.len() <= 1;
        let mut numbers = HashMap::new();
        let mut cycles = Vec::new();
        if !single {
            numbers.extend((0u32..).zip(&blocks).map(|(at, &block)| (block, at)));
            cycles = find_cycles(ir, &blocks[..reachable], &numbers);
        }
        let innermost = body_of.or_else(|| self.stack.last().and_then(|frame| frame.innermost));
        let around = self.stack.last().map_or(LoopId(0), |frame| frame.since);
        let since = match body_of {
            _ if !single => NO_LOOP,
            Some(id) if around == NO_LOOP => id,
            _ => around,
        };
        let mut incoming = vec![SmallVec::new(); blocks.len()];
        if let Some(entry) = incoming.first_mut() {
            entry.push(self.segment);
        }
        self.stack.push(Frame {
            blocks,
            at: 0,
            next: None,
            incoming,
            numbers,
            cycles,
            open: Vec::new(),
            exits: SmallVec::new(),
            unconditional: unconditional && single,
            since,
            innermost,
            body_of,
        });
        self.start_block();
    }

    /// Starts the block the top frame is at.
    fn start_block(&mut self) {
        let flow = &mut self.walked.flow;
        let Some(frame) = self.stack.last_mut() else {
            return;
        };
        let Some(&block) = frame.blocks.get(frame.at) else {
            return;
        };
        frame.next = self.ir.first_op(block);
        let at = frame.at as u32;
        // The entry of a function goes on with the first segment.
        if at == 0 && frame.body_of.is_none() && frame.cycles.is_empty() {
            return;
        }
        for &(first, last, kind) in &frame.cycles {
            if first == at {
                let id = flow.open(frame.innermost, kind);
                self.walked.loop_orders.push((self.walked.orders, 0));
                frame.open.push((id, last));
                frame.innermost = Some(id);
            }
        }
        let preds = &frame.incoming[frame.at];
        let previous = (flow.segments.len() as u32).checked_sub(1);
        let joined = at == 0
            || preds.len() == 1
                && preds.first().copied() == previous
                && self.ir.successors_of(frame.blocks[frame.at - 1]) == 1;
        self.segment = flow.segment(preds, frame.innermost, frame.unconditional, joined);
        flow.sure_from(self.segment, frame.since);
    }

    fn run(&mut self) {
        while let Some(frame) = self.stack.last_mut() {
            if let Some(op) = frame.next {
                frame.next = self.ir.next(op);
                self.op(op);
            } else {
                self.end_block();
            }
        }
    }

    fn end_block(&mut self) {
        let Some(frame) = self.stack.last_mut() else {
            return;
        };
        let mut leaves = true;
        if let Some(&block) = frame.blocks.get(frame.at)
            && frame.blocks.len() > 1
        {
            let last = self.ir.last_op(block);
            for &to in last.map_or(&[][..], |op| self.ir.successors(op)) {
                leaves = false;
                if let Some(&number) = frame.numbers.get(&to)
                    && number as usize > frame.at
                    && !frame.incoming[number as usize].contains(&self.segment)
                {
                    frame.incoming[number as usize].push(self.segment);
                }
            }
        }
        if leaves {
            frame.exits.push(self.segment);
        }
        while let Some(&(id, last)) = frame.open.last() {
            if last as usize > frame.at {
                break;
            }
            frame.open.pop();
            self.walked.flow.close(id);
            self.walked.loop_orders[id.0 as usize].1 = self.walked.orders;
            frame.innermost = self.walked.flow.span(id).parent;
        }
        frame.at += 1;
        if frame.at < frame.blocks.len() {
            self.start_block();
            return;
        }
        let (exits, body_of) = (std::mem::take(&mut frame.exits), frame.body_of);
        self.stack.pop();
        let Some(id) = body_of else {
            exits.iter().for_each(|&exit| self.walked.flow.exit(exit));
            return;
        };
        self.walked.flow.close(id);
        self.walked.loop_orders[id.0 as usize].1 = self.walked.orders;
        let (innermost, unconditional, since) =
            self.stack.last().map_or((None, true, LoopId(0)), |frame| {
                (frame.innermost, frame.unconditional, frame.since)
            });
        let joined = exits.as_slice() == [self.segment];
        self.segment = self
            .walked
            .flow
            .segment(&exits, innermost, unconditional, joined);
        self.walked.flow.sure_from(self.segment, since);
    }

    fn op(&mut self, op: Op) {
        let ir = self.ir;
        let code = OpCode::of(ir, op);
        if code == Some(OpCode::Alloc)
            && let Some(value) = ir.result(op)
        {
            self.location_of[value.index()] = self.walked.allocs.len() as u32;
            self.walked.allocs.push((op, value));
            return;
        }
        if code == Some(OpCode::Depset) {
            return;
        }
        self.touch(op, code.map(|code| (code, code.def())));
        self.walked.orders += 1;
        self.walked.ops.push(op);
        if code == Some(OpCode::Halt) {
            self.halt();
        }
        let Some(&region) = ir.regions(op).first() else {
            return;
        };
        let range = (code == Some(OpCode::Loop))
            .then(|| loop_range(ir, op))
            .flatten();
        let certain = loops::makes_a_trip(ir, op);
        let (innermost, unconditional) = self
            .stack
            .last()
            .map_or((None, true), |frame| (frame.innermost, frame.unconditional));
        let id = self
            .walked
            .flow
            .open(innermost, LoopKind::Counted { certain });
        self.walked.loop_orders.push((self.walked.orders, 0));
        if code == Some(OpCode::Loop)
            && let Some(index) = ir.entry(region).and_then(|entry| ir.args(entry).next())
        {
            self.walked.index_of.insert(index, LoopIndex { id, range });
        }
        self.enter_region(region, Some(id), unconditional);
    }

    /// The function may end here, and who looks at its end then finds what was written so far. What
    /// stands behind is only executed where it does not, so on this path.
    fn halt(&mut self) {
        let (innermost, unconditional, since) = match self.stack.last() {
            Some(frame) => (frame.innermost, frame.unconditional, frame.since),
            None => return,
        };
        let flow = &mut self.walked.flow;
        flow.exit(self.segment);
        self.segment = flow.segment(&[self.segment], innermost, unconditional, true);
        flow.sure_from(self.segment, since);
    }

    fn touch(&mut self, op: Op, known: Known) {
        let (ir, walked) = (self.ir, &mut self.walked);
        let from = walked.touches.len();
        for (operand, data) in ir.operand_ids(op).zip(ir.operands(op)) {
            let location = self.location_of[data.value.index()];
            if location == u32::MAX {
                continue;
            }
            let (effect, dynamic) = effect_in(ir, op, known, usize::from(data.role));
            walked.touches.push(Touch {
                op,
                code: known.map(|(code, _)| code),
                operand,
                location,
                effect,
                dynamic,
                order: walked.orders,
                segment: self.segment,
            });
        }
        reads_first(&mut walked.touches[from..], |touch| touch.effect);
        self.touch_registers(op, known.map(|(_, def)| def));
    }

    fn touch_registers(&mut self, op: Op, def: Option<&OpDef>) {
        let ir = self.ir;
        let defined = ir.result(op).filter(|&value| is_rewritten(ir, value));
        if let Some(value) = defined {
            let number = self.register_of.len() as u32;
            self.register_of.insert(value, number);
        }
        if self.register_of.is_empty() || def.is_some_and(|def| def.syntax != Syntax::Instruction) {
            return;
        }
        let used = ir.operands(op).iter().map(|operand| {
            let role = def.and_then(|def| def.operands.get(usize::from(operand.role)));
            let effect = match role.map(|role| role.kind) {
                Some(Kind::RegOut) => Effect::WRITE,
                Some(_) => Effect::READ,
                // Ops of other dialects may do anything.
                None => Effect::UPDATE,
            };
            (operand.value, effect)
        });
        let from = self.walked.registers.len();
        for (value, effect) in used.chain(defined.map(|value| (value, Effect::WRITE))) {
            if let Some(&register) = self.register_of.get(&value) {
                self.walked.registers.push(RegisterTouch {
                    register,
                    order: self.walked.orders,
                    segment: self.segment,
                    effect,
                });
            }
        }
        self.walked.registers[from..].sort_by_key(|touch| touch.effect.is_write());
    }
}

/// Whether a value is a register that others than its definition write.
pub(in crate::analysis) fn is_rewritten(ir: &Ir, value: Value) -> bool {
    MemType::get(&ir.ctx, ir.value_type(value)).is_none()
        && ir.uses(value).any(|operand| {
            let data = ir.operand(operand);
            let def = OpCode::of(ir, data.owner).map(OpCode::def);
            let role = def.and_then(|def| def.operands.get(usize::from(data.role)));
            role.is_some_and(|role| matches!(role.kind, Kind::RegOut))
        })
}

/// The operands of an instruction that touch locations, reads first: what each one does, and
/// whether data decides where.
pub(in crate::analysis) fn effects(
    ir: &Ir,
    op: Op,
    is_location: impl Fn(Value) -> bool,
) -> SmallVec<[(Operand, Effect, bool); 4]> {
    let known = OpCode::of(ir, op).map(|code| (code, code.def()));
    let mut found: SmallVec<[(Operand, Effect, bool); 4]> = SmallVec::new();
    for (operand, data) in ir.operand_ids(op).zip(ir.operands(op)) {
        if is_location(data.value) {
            let (effect, dynamic) = effect_in(ir, op, known, usize::from(data.role));
            found.push((operand, effect, dynamic));
        }
    }
    reads_first(&mut found, |touch| touch.1);
    found
}

/// An instruction reads before it writes; most name what they write first.
fn reads_first<T>(touches: &mut [T], effect: impl Fn(&T) -> Effect) {
    if let [first, rest @ ..] = &*touches
        && effect(first).is_write()
        && !rest.iter().any(|touch| effect(touch).is_write())
    {
        touches.rotate_left(1);
    } else if !touches.is_sorted_by_key(|touch| effect(touch).is_write()) {
        touches.sort_by_key(|touch| effect(touch).is_write());
    }
}

/// An op of the table.
type Known = Option<(OpCode, &'static OpDef)>;

/// What an instruction does to the location one of its operands names, and whether data decides where.
pub(crate) fn effect_of(ir: &Ir, op: Op, code: OpCode, role: usize) -> (Effect, bool) {
    effect_in(ir, op, Some((code, code.def())), role)
}

#[inline]
fn effect_in(ir: &Ir, op: Op, known: Known, role: usize) -> (Effect, bool) {
    let operand = known.and_then(|(code, def)| Some((code, def, def.operands.get(role)?)));
    let Some((code, def, operand)) = operand else {
        // Ops of other dialects may do anything.
        return (Effect::UPDATE, true);
    };
    let effect = match operand.kind {
        Kind::Out if ir.dict(op) == Dict::EMPTY => Effect::WRITE,
        Kind::Out => effect_of_out(ir, op, def),
        Kind::InOut => Effect::UPDATE,
        _ => Effect::READ,
    };
    match def.has(Trait::Dynamic) {
        false => (effect, false),
        true => dynamic_effect(ir, op, (code, def), role, effect),
    }
}

/// What an instruction that has attributes does to what it writes.
#[inline(never)]
fn effect_of_out(ir: &Ir, op: Op, def: &OpDef) -> Effect {
    let attr = ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE);
    match Accumulate::get(&ir.ctx, attr) {
        Some(Accumulate::Yes) if def.attr("accumulate").is_some() => Effect::READ_WRITE,
        Some(Accumulate::UnlessFirst(_)) => Effect::ACCUMULATE,
        _ => Effect::WRITE,
    }
}

/// What an instruction does whose indices may decide where.
#[inline(never)]
fn dynamic_effect(
    ir: &Ir,
    op: Op,
    (code, def): (OpCode, &OpDef),
    role: usize,
    effect: Effect,
) -> (Effect, bool) {
    let dynamic = is_dynamic(ir, op, code, def, role);
    let effect = match effect {
        Effect::READ if dynamic => Effect {
            reads: Reads::Unchecked,
            ..effect
        },
        Effect {
            reads,
            writes: Writes::Must,
        } if dynamic || skips(ir, op, def) => Effect {
            reads,
            writes: Writes::May,
        },
        known => known,
    };
    (effect, dynamic)
}

/// Whether data decides which elements are moved at all: those whose index lies outside are left out,
/// and leave what was there before.
fn skips(ir: &Ir, op: Op, def: &OpDef) -> bool {
    let is_skip = |attr| ir.ctx.attr_str(attr) == Some("skip");
    def.has(Trait::Dynamic) && ir.attr(op, "oob").is_some_and(is_skip)
}

/// Whether data decides where in its location an operand is.
fn is_dynamic(ir: &Ir, op: Op, code: OpCode, def: &OpDef, role: usize) -> bool {
    let present = |name: &str| {
        def.role(name).is_some_and(|role| {
            ir.operands(op)
                .iter()
                .any(|operand| usize::from(operand.role) == role)
        })
    };
    match (code, def.operands[role].name) {
        (OpCode::DmaCopy | OpCode::DmaTranspose, "src") => {
            present("src_index") || present("src_offset")
        }
        (OpCode::DmaCopy, "dst") => present("dst_index") || present("dst_offset"),
        (OpCode::TensorCopyDynamicDst | OpCode::TensorScatter | OpCode::DmaScatterAdd, "src") => {
            false
        }
        (OpCode::DmaGatherAdd, "dst") | (OpCode::TensorScalarPtr, "src" | "dst") => false,
        (OpCode::TensorScalarPtr, _) => present("offset"),
        (_, "src") => true,
        _ => def.operands[role].kind == Kind::InOut,
    }
}

/// The values of a loop's index; `None` where a register holds the first.
pub(in crate::analysis) fn loop_range(ir: &Ir, op: Op) -> Option<LoopRange> {
    let range = loops::loop_range(ir, op)?;
    Some(LoopRange {
        first: i64::try_from(range.first).ok()?,
        step: i64::try_from(range.step).ok()?,
        trips: range.trips,
    })
}

/// The blocks of a region, reachable ones in reverse postorder, then the others; how many are reachable.
fn reverse_postorder(ir: &Ir, region: Region) -> (Vec<Block>, usize) {
    let Some(entry) = ir.entry(region) else {
        return (Vec::new(), 0);
    };
    if ir.next_block(entry).is_none() {
        return (vec![entry], 1);
    }
    let successors = |block: Block| ir.last_op(block).map_or(&[][..], |op| ir.successors(op));
    let mut seen: HashMap<Block, ()> = HashMap::new();
    let mut order = Vec::new();
    let mut stack = vec![(entry, 0usize)];
    seen.insert(entry, ());
    while let Some((block, next)) = stack.last_mut() {
        // Last successor first, so that text order survives where paths do not say otherwise.
        let list = successors(*block);
        match list.len().checked_sub(*next + 1) {
            Some(at) => {
                *next += 1;
                let to = list[at];
                if seen.insert(to, ()).is_none() {
                    stack.push((to, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    let reachable = order.len();
    order.extend(ir.blocks(region).filter(|block| !seen.contains_key(block)));
    (order, reachable)
}

/// Spans of blocks that branches back close, nested or disjoint, outer ones first. Blocks nobody gets
/// to close nothing.
fn find_cycles(
    ir: &Ir,
    blocks: &[Block],
    numbers: &HashMap<Block, u32>,
) -> Vec<(u32, u32, LoopKind)> {
    let mut spans: Vec<(u32, u32, LoopKind)> = Vec::new();
    let mut forward: Vec<(u32, u32)> = Vec::new();
    for (from, &block) in (0u32..).zip(blocks) {
        for to in ir.last_op(block).map_or(&[][..], |op| ir.successors(op)) {
            match numbers.get(to) {
                Some(&to) if to <= from => spans.push((to, from, LoopKind::Cycle)),
                Some(&to) => forward.push((from, to)),
                None => {}
            }
        }
    }
    if spans.is_empty() {
        return spans;
    }
    // One span per header, then grown until they nest.
    spans.sort_unstable_by_key(|&(first, last, _)| (first, std::cmp::Reverse(last)));
    spans.dedup_by_key(|span| span.0);
    for at in (0..spans.len()).rev() {
        let mut last = spans[at].1;
        for inner in &spans[at + 1..] {
            if inner.0 > last {
                break;
            }
            last = last.max(inner.1);
        }
        spans[at].1 = last;
    }
    // A way in that is not the first block tangles everything back to the entry.
    let tangled = forward.iter().any(|&(from, to)| {
        let at = spans.partition_point(|span| span.0 < to);
        spans[..at]
            .iter()
            .rev()
            .take(64)
            .any(|&(first, last, _)| from < first && to > first && to <= last)
    });
    if tangled || spans.len() > 1 << 14 {
        let last = (blocks.len() - 1) as u32;
        return vec![(0, last, LoopKind::Tangle)];
    }
    spans
}

impl Ir {
    fn successors_of(&self, block: Block) -> usize {
        self.last_op(block)
            .map_or(0, |op| self.successors(op).len())
    }
}

/// The type of a location.
pub(in crate::analysis) fn mem_of(ir: &Ir, value: Value) -> Option<MemType<'_>> {
    MemType::get(&ir.ctx, ir.value_type(value))
}
