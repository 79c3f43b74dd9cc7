//! What the program orders beside memory.
//!
//! In one block, with the loops in it (blocks of one region are ordered by their branches):
//!
//! * barriers, `drain`, `halt` and what waits or signals without saying for which engine – all
//!   instructions before, and all behind;
//! * an instruction with `wait` or `signal`, and every [`Sync`](Trait::Sync) one – all of its
//!   engine before and behind: the engine's stream is what the semaphore protects;
//! * hidden state (accumulators, random state, cached scalars) – per engine, who writes or spoils it
//!   behind all users since the last such, who reads it behind the last such;
//! * what somebody outside sees, and collectives – one behind the other;
//! * a loop with `no_reorder` – its instructions one behind the other.

use super::build::Builder;
use super::graph::{Edge, Source};
use crate::bir::ops::{
    OpCode, Syntax, Trait, clobbers_hidden_state, reads_hidden_state, writes_hidden_state,
};
use crate::bir::program::{DepKind, target_of};
use crate::bir::space::Engine;
use crate::bir::view::OpView;
use crate::ir::{Block, Ir, Op};

/// Who meets whom at an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meets {
    Nobody,
    Engine,
    All,
}

/// Everything since something that orders.
#[derive(Default, Clone)]
struct Since {
    last: Option<u32>,
    users: Vec<Source>,
}

impl Since {
    /// `at` stands behind all.
    fn close(&mut self, at: u32, builder: &mut Builder) {
        if self.users.is_empty() {
            self.follow(at, builder);
        } else {
            builder.sets.freeze(&mut self.users);
            builder.all(DepKind::Ordered, &self.users, at);
            self.users.clear();
        }
        self.last = Some(at);
    }

    /// `at` stands behind what closed last.
    fn follow(&self, at: u32, builder: &mut Builder) {
        if let Some(last) = self.last
            && last != at
        {
            builder.one(DepKind::Ordered, last, at);
        }
    }

    /// `at` stands behind what closed last, and the next to close behind it.
    fn use_(&mut self, at: u32, builder: &mut Builder) {
        self.follow(at, builder);
        self.users.push(Source::instruction(at));
    }
}

/// What has to be remembered in a block.
#[derive(Default)]
struct State {
    all: Since,
    engines: Vec<(Engine, Since)>,
    hidden: Vec<(Engine, Since)>,
    seen_outside: Since,
}

impl State {
    fn of(list: &mut Vec<(Engine, Since)>, engine: Engine) -> &mut Since {
        let known = list.iter().position(|(known, _)| *known == engine);
        let at = known.unwrap_or_else(|| {
            list.push((engine, Since::default()));
            list.len() - 1
        });
        &mut list[at].1
    }
}

pub(super) fn edges(ir: &Ir, ops: &[Op], builder: &mut Builder) {
    let target = ops.first().map(|&op| target_of(ir, op));
    let Some(target) = target else { return };
    let mut state = State::default();
    let mut block: Option<Block> = None;
    let mut around = Around::default();
    // Whether anything of the kind stands in the function: most have none.
    let has_barrier = ops.iter().any(|&op| meets(ir, op) == Meets::All);
    let has_sync = ops.iter().any(|&op| meets(ir, op) == Meets::Engine);
    for (at, &op) in (0u32..).zip(ops) {
        let outer = around.of(ir, op).split;
        if outer != block {
            state = State::default();
            block = outer;
        }
        let Some(code) = OpCode::of(ir, op) else {
            continue;
        };
        let def = code.def();
        if def.syntax != Syntax::Instruction {
            continue;
        }
        let engine = def.engines.map(|engines| {
            OpView::new(ir, op)
                .engine_attr()
                .unwrap_or_else(|| engines.default_on(target))
        });
        let engine = engine.unwrap_or(Engine::Pool);
        match meets(ir, op) {
            Meets::All => {
                state.all.close(at, builder);
                // Whoever comes behind it comes behind these, too.
                state.engines.clear();
                state.hidden.clear();
                state.seen_outside = Since::default();
                continue;
            }
            Meets::Engine => State::of(&mut state.engines, engine).close(at, builder),
            Meets::Nobody if has_sync => State::of(&mut state.engines, engine).use_(at, builder),
            Meets::Nobody => {}
        }
        if has_barrier {
            state.all.use_(at, builder);
        }
        if writes_hidden_state(ir, op) || clobbers_hidden_state(ir, op) {
            State::of(&mut state.hidden, engine).close(at, builder);
        } else if reads_hidden_state(ir, op) {
            State::of(&mut state.hidden, engine).use_(at, builder);
        }
        if def.has(Trait::Observable) || def.has(Trait::Collective) {
            state.seen_outside.close(at, builder);
        }
    }
    no_reorder(ir, ops, &mut around, builder);
}

/// What is around the instructions of a block.
#[derive(Clone, Copy)]
struct Surroundings {
    /// The innermost block of a region of several blocks, this one included.
    split: Option<Block>,
    /// The outermost loop that keeps its order.
    keeper: Option<Op>,
}

/// The surroundings of blocks, found once each: loops may be nested very deeply.
#[derive(Default)]
struct Around {
    known: Vec<Option<Surroundings>>,
}

impl Around {
    fn of(&mut self, ir: &Ir, op: Op) -> Surroundings {
        let nothing = Surroundings {
            split: None,
            keeper: None,
        };
        let known = |around: &Around, block: Block| {
            let known = around.known.get(block.index());
            known.copied().flatten()
        };
        // Up to what is known, and down again.
        let mut open: Vec<Block> = Vec::new();
        let mut at = ir.block(op);
        while let Some(block) = at
            && known(self, block).is_none()
        {
            open.push(block);
            let parent = ir.region_parent(ir.block_region(block));
            let parent = parent.filter(|&op| OpCode::of(ir, op) != Some(OpCode::Func));
            at = parent.and_then(|op| ir.block(op));
        }
        let mut outer = at.and_then(|block| known(self, block)).unwrap_or(nothing);
        while let Some(block) = open.pop() {
            let region = ir.block_region(block);
            let parent = ir.region_parent(region);
            let keeper = parent.filter(|&op| {
                OpCode::of(ir, op) != Some(OpCode::Func) && ir.attr(op, "no_reorder").is_some()
            });
            let has_several = ir
                .entry(region)
                .and_then(|entry| ir.next_block(entry))
                .is_some();
            outer = Surroundings {
                split: if has_several {
                    Some(block)
                } else {
                    outer.split
                },
                keeper: outer.keeper.or(keeper),
            };
            if self.known.len() <= block.index() {
                self.known.resize(block.index() + 1, None);
            }
            self.known[block.index()] = Some(outer);
        }
        outer
    }
}

/// Whether an instruction waits for others or lets others go on: engines, or cores.
pub fn meets_others(ir: &Ir, op: Op) -> bool {
    let is_collective = OpCode::of(ir, op).is_some_and(|code| code.def().has(Trait::Collective));
    is_collective || meets(ir, op) != Meets::Nobody
}

fn meets(ir: &Ir, op: Op) -> Meets {
    let Some(code) = OpCode::of(ir, op) else {
        return Meets::All;
    };
    match code {
        OpCode::AllEngineBarrier | OpCode::CoreBarrier | OpCode::Drain | OpCode::Halt => Meets::All,
        // What nobody can look into may do anything.
        OpCode::CustomOp | OpCode::InlineAsm => Meets::All,
        _ if code.def().has(Trait::Sync) => Meets::Engine,
        _ if ir.attr(op, "wait").is_some() || ir.attr(op, "signal").is_some() => Meets::Engine,
        _ => Meets::Nobody,
    }
}

/// Chains the instructions of loops that keep their order.
fn no_reorder(ir: &Ir, ops: &[Op], around: &mut Around, builder: &mut Builder) {
    let keeps = |op: Op| ir.attr(op, "no_reorder").is_some();
    if !ops
        .iter()
        .any(|&op| !ir.regions(op).is_empty() && keeps(op))
    {
        return;
    }
    // Loops come right before what they hold.
    let mut last: Option<(Op, Block, u32)> = None;
    for (at, &op) in (0u32..).zip(ops) {
        let Surroundings { split, keeper } = around.of(ir, op);
        let (Some(keeper), Some(block)) = (keeper, ir.block(op)) else {
            continue;
        };
        let is_instruction =
            OpCode::of(ir, op).is_none_or(|code| code.def().syntax == Syntax::Instruction);
        if !is_instruction {
            continue;
        }
        let block = split.unwrap_or(block);
        if let Some((same, there, before)) = last
            && same == keeper
            && (there == block || split.is_none())
        {
            builder
                .edges
                .push((at, Edge::new(DepKind::Ordered, Source::instruction(before))));
        }
        last = Some((keeper, block, at));
    }
}
