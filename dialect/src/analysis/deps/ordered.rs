//! What the program orders beside memory.
//!
//! In one block, with the loops in it (blocks of one region are ordered by their branches):
//!
//! * barriers, `drain`, `halt` and what waits or signals without saying for which engine – all
//!   instructions before, and all behind;
//! * an instruction with `wait` or `signal`, and every [`Sync`](Trait::Sync) one – all of its
//!   stream before and behind: what the semaphore protects is the engine's, or the DMA queue's;
//! * hidden state (accumulators, random state, cached scalars) – per stream, who writes or spoils it
//!   behind all users since the last such, who reads it behind the last such;
//! * what somebody outside sees, and collectives – one behind the other;
//! * a loop with `no_reorder` – its instructions one behind the other.
//!
//! What orders in code that may not run – a block of several, a loop that may make no trip – orders
//! there, and what stands before and behind keeps the order it has without it.

use hashbrown::HashMap;

use super::super::sync::Stream;
use super::build::Builder;
use super::graph::Source;
use super::sets::{DIRECT, Sets};
use crate::bir::loops::makes_a_trip;
use crate::bir::ops::{
    OpCode, Syntax, Trait, clobbers_hidden_state, reads_hidden_state, writes_hidden_state,
};
use crate::bir::program::{DepKind, target_of};
use crate::bir::space::Engine;
use crate::ir::{Block, Ir, Op};

/// Who meets whom at an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meets {
    Nobody,
    Stream,
    All,
}

/// What instructions keep an order of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    All,
    Stream(Stream),
    Hidden(Stream),
    SeenOutside,
    /// A loop with `no_reorder`.
    Kept(Op),
}

/// Everything since something that orders.
#[derive(Default, Clone)]
struct Since {
    /// Whom whoever comes next stands behind.
    lasts: Vec<Source>,
    /// Who came since, or may have.
    users: Vec<Source>,
    /// Whether one of the users is there for certain: who stands behind it stands behind `lasts`.
    sure: bool,
}

impl Since {
    fn freeze(&mut self, sets: &mut Sets) {
        sets.freeze(&mut self.users);
        sets.freeze(&mut self.lasts);
    }

    /// Adds edges from all that who closes stands behind.
    fn close(&self, at: u32, sure: bool, builder: &mut Builder) {
        builder.all(DepKind::Ordered, &self.users, at);
        if !sure {
            builder.all(DepKind::Ordered, &self.lasts, at);
        }
    }
}

/// What a frame knows of a key.
#[derive(Default)]
struct Seen {
    own: Since,
    /// What was there where the frame began; nothing once something in it closed.
    before: Since,
}

impl Seen {
    fn is_sure(&self) -> bool {
        self.own.sure || self.before.sure
    }

    /// `at` stands behind all.
    fn close(&mut self, at: u32, builder: &mut Builder) {
        builder.sets.freeze(&mut self.own.users);
        let sure = self.is_sure();
        self.own.close(at, sure, builder);
        self.before.close(at, sure, builder);
        self.before = Since::default();
        self.own.users.clear();
        self.own.sure = false;
        self.own.lasts.clear();
        self.own.lasts.push(Source::instruction(at));
    }

    /// `at` stands behind what closed last, and the next to close behind it.
    fn use_(&mut self, at: u32, builder: &mut Builder) {
        builder.all(DepKind::Ordered, &self.own.lasts, at);
        builder.all(DepKind::Ordered, &self.before.lasts, at);
        self.own.users.push(Source::instruction(at));
        self.own.sure = true;
    }

    /// What a frame that begins here finds.
    fn inherited(&mut self, sets: &mut Sets) -> Since {
        self.own.freeze(sets);
        let mut all = self.before.clone();
        all.lasts.extend_from_slice(&self.own.lasts);
        all.users.extend_from_slice(&self.own.users);
        all.sure = self.is_sure();
        all.freeze(sets);
        all
    }

    /// Takes over what happened in a frame that ended, and may not have run.
    fn merge(&mut self, mut inner: Since, sets: &mut Sets) {
        inner.freeze(sets);
        self.own.users.extend_from_slice(&inner.users);
        // Who closes next may pass over `lasts` for the sake of users that stand before these.
        if !inner.sure {
            self.own.users.extend_from_slice(&inner.lasts);
        }
        self.own.lasts.extend_from_slice(&inner.lasts);
        // Whoever comes next has an edge from each.
        if self.own.lasts.len() > DIRECT {
            sets.freeze(&mut self.own.lasts);
        }
    }
}

/// Code that runs as a whole or not at all: the function, a block of several of a region, the body
/// of a loop that may make no trip.
#[derive(Default)]
struct Frame {
    block: Option<Block>,
    /// In the order they came up.
    seen: Vec<(Key, Seen)>,
    place: HashMap<Key, usize, foldhash::fast::FixedState>,
    /// Whether something in it stands behind all that was before it.
    is_cut: bool,
    /// The frames of the loop gone through last, which all began with what is known here.
    ended: Vec<Frame>,
}

impl Frame {
    fn add(&mut self, key: Key, seen: Seen) {
        self.place.insert(key, self.seen.len());
        self.seen.push((key, seen));
    }
}

/// The frames around an instruction, from the function inward.
struct Frames {
    open: Vec<Frame>,
}

impl Frames {
    /// Goes on in the frame of `block`, which stands directly in that of `around`.
    fn enter(&mut self, ir: &Ir, block: Option<Block>, around: Option<Block>, sets: &mut Sets) {
        let is_over = |top: &Frame| {
            let is_around = block.is_some() && top.block == around;
            top.block.is_some() && top.block != block && !is_around
        };
        while self.open.last().is_some_and(is_over) {
            self.settle(sets);
            let Some(top) = self.open.pop() else { break };
            // Blocks of a function stand behind nobody and before nobody.
            let parent = top.block.map(|block| ir.block_region(block));
            let parent = parent.and_then(|region| ir.region_parent(region));
            let is_inner = parent.is_some_and(|op| OpCode::of(ir, op) != Some(OpCode::Func));
            if is_inner && let Some(outer) = self.open.last_mut() {
                outer.ended.push(top);
            }
        }
        if self.open.last().is_some_and(|top| top.block == block) {
            self.settle(sets);
        } else {
            self.open.push(Frame {
                block,
                ..Frame::default()
            });
        }
    }

    /// The innermost frame takes over what happened in the loop before.
    fn settle(&mut self, sets: &mut Sets) {
        let ended = match self.open.last_mut() {
            Some(top) if !top.ended.is_empty() => std::mem::take(&mut top.ended),
            _ => return,
        };
        for (key, seen) in ended.into_iter().flat_map(|frame| frame.seen) {
            self.of(key, sets).merge(seen.own, sets);
        }
    }

    /// What the innermost frame knows of a key.
    fn of(&mut self, key: Key, sets: &mut Sets) -> &mut Seen {
        let top = self.open.len() - 1;
        if !self.open[top].place.contains_key(&key) {
            let knows = |frame: &Frame| frame.is_cut || frame.place.contains_key(&key);
            // All in between take it over, and take back what happens further inside.
            let from = self.open.iter().rposition(knows).unwrap_or(0);
            for at in from..=top {
                if self.open[at].place.contains_key(&key) {
                    continue;
                }
                let before = match at.checked_sub(1) {
                    Some(outer) if !self.open[at].is_cut => {
                        let place = self.open[outer].place.get(&key).copied();
                        place.map(|place| self.open[outer].seen[place].1.inherited(sets))
                    }
                    _ => None,
                };
                let seen = Seen {
                    before: before.unwrap_or_default(),
                    ..Seen::default()
                };
                self.open[at].add(key, seen);
            }
        }
        let frame = &mut self.open[top];
        let place = frame.place[&key];
        &mut frame.seen[place].1
    }

    /// Whoever comes behind a barrier comes behind all that was before: only the barrier counts.
    fn cut(&mut self) {
        let Some(top) = self.open.last_mut() else {
            return;
        };
        let all = top.seen.drain(..).find(|(key, _)| *key == Key::All);
        top.place.clear();
        if let Some((key, seen)) = all {
            top.add(key, seen);
        }
        top.is_cut = true;
    }
}

pub(super) fn edges(ir: &Ir, ops: &[Op], builder: &mut Builder) {
    let target = ops.first().map(|&op| target_of(ir, op));
    let Some(target) = target else { return };
    let mut frames = Frames {
        open: vec![Frame::default()],
    };
    let mut around = Around::default();
    // Whether anything of the kind stands in the function: most have none.
    let has_barrier = ops.iter().any(|&op| meets(ir, op) == Meets::All);
    let has_sync = ops.iter().any(|&op| meets(ir, op) == Meets::Stream);
    for (at, &op) in (0u32..).zip(ops) {
        let here = around.of(ir, op);
        frames.enter(ir, here.frame, here.outer, &mut builder.sets);
        let def = OpCode::of(ir, op).map(OpCode::def);
        if def.is_some_and(|def| def.syntax != Syntax::Instruction) {
            continue;
        }
        if let Some(keeper) = here.keeper {
            let seen = frames.of(Key::Kept(keeper), &mut builder.sets);
            seen.close(at, builder);
        }
        let met = meets(ir, op);
        if met == Meets::All {
            let seen = frames.of(Key::All, &mut builder.sets);
            seen.close(at, builder);
            frames.cut();
            continue;
        }
        let stream = || Stream::of(ir, op, target).unwrap_or(Stream::Engine(Engine::Pool));
        if has_sync {
            let seen = frames.of(Key::Stream(stream()), &mut builder.sets);
            match met {
                Meets::Nobody => seen.use_(at, builder),
                _ => seen.close(at, builder),
            }
        }
        if has_barrier {
            let seen = frames.of(Key::All, &mut builder.sets);
            seen.use_(at, builder);
        }
        if writes_hidden_state(ir, op) || clobbers_hidden_state(ir, op) {
            let seen = frames.of(Key::Hidden(stream()), &mut builder.sets);
            seen.close(at, builder);
        } else if reads_hidden_state(ir, op) {
            let seen = frames.of(Key::Hidden(stream()), &mut builder.sets);
            seen.use_(at, builder);
        }
        let is_seen = |kind| def.is_some_and(|def| def.has(kind));
        if is_seen(Trait::Observable) || is_seen(Trait::Collective) {
            let seen = frames.of(Key::SeenOutside, &mut builder.sets);
            seen.close(at, builder);
        }
    }
}

/// What is around the instructions of a block.
#[derive(Clone, Copy)]
struct Surroundings {
    /// The innermost block that may not run though what is around it does, this one included.
    frame: Option<Block>,
    /// The next such block around it.
    outer: Option<Block>,
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
            frame: None,
            outer: None,
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
        let mut here = at.and_then(|block| known(self, block)).unwrap_or(nothing);
        while let Some(block) = open.pop() {
            let region = ir.block_region(block);
            let parent = ir.region_parent(region);
            let parent = parent.filter(|&op| OpCode::of(ir, op) != Some(OpCode::Func));
            let has_several = ir
                .entry(region)
                .and_then(|entry| ir.next_block(entry))
                .is_some();
            if has_several || parent.is_some_and(|op| !makes_a_trip(ir, op)) {
                (here.frame, here.outer) = (Some(block), here.frame);
            }
            let keeper = parent.filter(|&op| ir.attr(op, "no_reorder").is_some());
            here.keeper = here.keeper.or(keeper);
            if self.known.len() <= block.index() {
                self.known.resize(block.index() + 1, None);
            }
            self.known[block.index()] = Some(here);
        }
        here
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
        _ if code.def().has(Trait::Sync) => Meets::Stream,
        _ if ir.attr(op, "wait").is_some() || ir.attr(op, "signal").is_some() => Meets::Stream,
        _ => Meets::Nobody,
    }
}
