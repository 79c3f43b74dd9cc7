//! Waits and signals of instructions that are erased.
//!
//! An engine executes in order, so an erased instruction of it can be seen as one that takes no
//! time, and what the program does then is something it could do before:
//!
//! * its waits are met before the next instruction of the engine starts: that one takes them. Where
//!   it waits for something itself, the two are met at once only if counters never fall, so
//!   elsewhere an `event_semaphore` takes them;
//! * with nothing left to wait for, its signals are given when the one before has completed: that
//!   one takes them;
//! * with something to wait for first, an `event_semaphore` of the engine does both, as it does where
//!   a wait and who depends on the instruction, or its dependences and a signal, are two ends of one
//!   order;
//! * nothing passes what engines meet at or what runs several times: loops, barriers, the ends of
//!   a block, and `semaphore_range_clear`, which forgets what was signalled with it.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::analysis::sync::{Stream, sems};
use crate::bir::attrs::{Sem, SemEvent, SemOp};
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, Dep, names, op_name, target_of};
use crate::bir::space::{Engine, Target};
use crate::ir::{Attr, Block, Cursor, Ir, NewOp, Op, Str};

type Sems = SmallVec<[Sem; 2]>;
type Fixed = foldhash::fast::FixedState;

/// Puts an `event_semaphore` before an instruction, on its stream and with further `entries`, which takes over
/// the instruction's number and dependences.
pub fn stand_in(
    ir: &mut Ir,
    op: Op,
    target: Target,
    stream: Option<Stream>,
    entries: &[(Str, Attr)],
) -> Op {
    let (engine, queue) = match stream {
        Some(Stream::Queue(queue)) => (Some(Engine::Dma), queue),
        Some(Stream::Engine(engine)) => (Some(engine), None),
        None => (None, None),
    };
    let mut entries: SmallVec<[(Str, Attr); 4]> = SmallVec::from_slice(entries);
    let engines = OpCode::EventSemaphore.def().engines;
    let default = engines.map(|engines| engines.default_on(target));
    if let Some(engine) = engine.filter(|_| engine != default) {
        entries.push((names::ENGINE, ir.ctx.string(engine.name())));
    }
    if let Some(queue) = queue {
        entries.push((ir.ctx.str("queue"), ir.ctx.string_of(queue)));
    }
    let new = NewOp {
        dict: ir.ctx.dict(&entries),
        loc: ir.loc(op),
        ..NewOp::new(op_name(OpCode::EventSemaphore))
    };
    let event = ir.insert(Cursor::Before(op), new);
    let id = ir.int_cell(COL_ID, op);
    let deps: Option<Vec<u64>> = ir.words_cell(COL_DEPS, op).map(<[u64]>::to_vec);
    // Taken first: a number stands for one instruction.
    ir.set_int_cell(COL_ID, op, None);
    ir.set_words_cell(COL_DEPS, op, None);
    ir.set_int_cell(COL_ID, event, id);
    ir.set_words_cell(COL_DEPS, event, deps.as_deref());
    event
}

/// What is known of a stream at a place in a block.
struct State {
    stream: Stream,
    /// The last instruction that stays, if nothing since keeps signals from it.
    last: Option<Op>,
    /// What that one signals, once it takes over what erased ones did: it is told when no more come.
    signals: Option<Sems>,
    /// Waits of erased instructions, and the last of those.
    pending: Sems,
    from: Option<Op>,
}

struct Work {
    func: Op,
    target: Target,
    /// Looked up when they matter.
    relations: Option<Relations>,
    /// Whether no counter ever falls; looked up when it matters.
    only_rises: Option<bool>,
    states: Vec<State>,
    /// Where the state of a stream is.
    state_of: HashMap<Stream, usize, Fixed>,
    left: u64,
}

/// Hands on waits and signals of the `roots`, which stand in text order and are marked, as is all
/// that goes with them. Number of `event_semaphore`s left in the places of erased instructions,
/// with their `id` and `deps`.
pub(super) fn hand_over(ir: &mut Ir, func: Op, roots: &[Op], marked: &mut Vec<bool>) -> u64 {
    let mut blocks: Vec<Block> = Vec::new();
    for &op in roots {
        let has = |name| ir.ctx.dict_get(ir.dict(op), name).is_some();
        if (has(names::WAIT) || has(names::SIGNAL))
            && let Some(block) = ir.block(op)
            && blocks.last() != Some(&block)
        {
            blocks.push(block);
        }
    }
    // A block is met again behind a loop in it.
    blocks.sort_unstable();
    blocks.dedup();
    let mut work = Work {
        func,
        target: target_of(ir, func),
        relations: None,
        only_rises: None,
        states: Vec::new(),
        state_of: HashMap::default(),
        left: 0,
    };
    for block in blocks {
        work.states.clear();
        work.state_of.clear();
        let mut next = ir.first_op(block);
        while let Some(op) = next {
            next = ir.next(op);
            match marked.get(op.index()) {
                Some(true) => work.erased(ir, op),
                _ => work.stays(ir, op),
            }
        }
        work.wall(ir);
    }
    // What was made has no mark.
    marked.resize(ir.op_rows(), false);
    work.left
}

impl Work {
    fn state(&mut self, stream: Stream) -> &mut State {
        let at = *self.state_of.entry(stream).or_insert(self.states.len());
        if at == self.states.len() {
            self.states.push(State {
                stream,
                last: None,
                signals: None,
                pending: Sems::new(),
                from: None,
            });
        }
        &mut self.states[at]
    }

    fn erased(&mut self, ir: &mut Ir, op: Op) {
        let waits = sems(ir, op, names::WAIT).unwrap_or_default();
        let signals = sems(ir, op, names::SIGNAL).unwrap_or_default();
        let Some(stream) = Stream::of(ir, op, self.target) else {
            return;
        };
        // Where the order others rely on comes by a dependence on one side and a semaphore on the other,
        // it needs somebody to lead through.
        let waits_here = !waits.is_empty() || !self.state(stream).pending.is_empty();
        let is_awaited = waits_here
            && ir
                .int_cell(COL_ID, op)
                .is_some_and(|id| self.relations(ir).is_followed(id, stream));
        let is_late = !signals.is_empty()
            && ir
                .words_cell(COL_DEPS, op)
                .is_some_and(|words| self.relations(ir).follows(words, stream));
        if !waits.is_empty() {
            if !self.state(stream).pending.is_empty() && !self.only_rises(ir) {
                self.flush(ir, stream);
            }
            let state = self.state(stream);
            merge_waits(&mut state.pending, &waits);
            state.from = Some(op);
        }
        if signals.is_empty() && !is_awaited {
            return;
        }
        let state = self.state(stream);
        if let (true, Some(last)) = (state.pending.is_empty() && !is_late, state.last) {
            let known = || sems(ir, last, names::SIGNAL).unwrap_or_default();
            merge_signals(state.signals.get_or_insert_with(known), &signals);
            return;
        }
        let pending = std::mem::take(&mut state.pending);
        state.from = None;
        self.leave(ir, op, stream, &pending, &signals);
    }

    fn stays(&mut self, ir: &mut Ir, op: Op) {
        let code = OpCode::of(ir, op);
        let is_wall = !ir.regions(op).is_empty()
            || ir.traits(op).terminator
            || matches!(
                code,
                None | Some(OpCode::AllEngineBarrier | OpCode::SemaphoreRangeClear)
            );
        if is_wall {
            return self.wall(ir);
        }
        let Some(stream) = Stream::of(ir, op, self.target) else {
            return;
        };
        if !self.state(stream).pending.is_empty() {
            let mut own = sems(ir, op, names::WAIT).unwrap_or_default();
            if own.is_empty() || self.only_rises(ir) {
                let state = self.state(stream);
                let pending = std::mem::take(&mut state.pending);
                state.from = None;
                merge_waits(&mut own, &pending);
                set_sems(ir, op, names::WAIT, &own);
            } else {
                self.flush(ir, stream);
            }
        }
        self.follow(ir, stream, op);
    }

    /// An instruction of a stream stays behind the last one.
    fn follow(&mut self, ir: &mut Ir, stream: Stream, op: Op) {
        let state = self.state(stream);
        if let (Some(last), Some(signals)) = (state.last.replace(op), state.signals.take()) {
            set_sems(ir, last, names::SIGNAL, &signals);
        }
    }

    /// Nothing passes here.
    fn wall(&mut self, ir: &mut Ir) {
        for at in 0..self.states.len() {
            self.flush(ir, self.states[at].stream);
            let state = &mut self.states[at];
            if let (Some(last), Some(signals)) = (state.last, state.signals.take()) {
                set_sems(ir, last, names::SIGNAL, &signals);
            }
        }
        self.states.clear();
        self.state_of.clear();
    }

    /// Leaves what is pending where it was waited for.
    fn flush(&mut self, ir: &mut Ir, stream: Stream) {
        let state = self.state(stream);
        let pending = std::mem::take(&mut state.pending);
        if let Some(op) = state.from.take()
            && !pending.is_empty()
        {
            self.leave(ir, op, stream, &pending, &[]);
        }
    }

    /// An `event_semaphore` in the place of an erased instruction.
    fn leave(&mut self, ir: &mut Ir, op: Op, stream: Stream, waits: &[Sem], signals: &[Sem]) {
        let event = stand_in(ir, op, self.target, Some(stream), &[]);
        set_sems(ir, event, names::WAIT, waits);
        set_sems(ir, event, names::SIGNAL, signals);
        self.follow(ir, stream, event);
        self.left += 1;
    }

    fn relations(&mut self, ir: &Ir) -> &Relations {
        let (func, target) = (self.func, self.target);
        self.relations
            .get_or_insert_with(|| Relations::new(ir, func, target))
    }

    /// Whether no counter of the program is ever lowered, set or cleared.
    fn only_rises(&mut self, ir: &Ir) -> bool {
        *self.only_rises.get_or_insert_with(|| {
            let mut last = None;
            ir.walk().ops().all(|op| {
                if OpCode::of(ir, op) == Some(OpCode::SemaphoreRangeClear) {
                    return false;
                }
                let dict = ir.dict(op);
                if last.replace(dict) == Some(dict) {
                    return true;
                }
                let signals = sems(ir, op, names::SIGNAL).unwrap_or_default();
                signals
                    .iter()
                    .all(|sem| sem.op == SemOp::Inc && sem.value >= 0)
            })
        })
    }
}

/// Which streams depend on which.
#[derive(Default)]
struct Relations {
    /// The streams of numbered instructions, and of those that depend on them; a set is of none.
    of: HashMap<u32, Option<Stream>, Fixed>,
    followers: HashSet<(u32, Option<Stream>), Fixed>,
    /// Per number, of how many streams its followers are.
    spread: HashMap<u32, u32, Fixed>,
}

impl Relations {
    fn new(ir: &Ir, func: Op, target: Target) -> Relations {
        let mut found = Relations::default();
        for op in ir.walk_op(func) {
            let is_set = OpCode::of(ir, op) == Some(OpCode::Depset);
            let stream = || Stream::of(ir, op, target).filter(|_| !is_set);
            if let Some(id) = ir.int_cell(COL_ID, op)
                && !is_set
            {
                found.of.insert(id, stream());
            }
            let Some(words) = ir.words_cell(COL_DEPS, op) else {
                continue;
            };
            let stream = stream();
            for dep in words.iter().map(|&word| Dep::from_word(word)) {
                if !dep.set && found.followers.insert((dep.id, stream)) {
                    *found.spread.entry(dep.id).or_default() += 1;
                }
            }
        }
        found
    }

    /// Whether somebody of another stream depends on a number.
    fn is_followed(&self, id: u32, stream: Stream) -> bool {
        let own = u32::from(self.followers.contains(&(id, Some(stream))));
        self.spread.get(&id).is_some_and(|&count| count > own)
    }

    /// Whether dependences lead to another stream.
    fn follows(&self, words: &[u64], stream: Stream) -> bool {
        words
            .iter()
            .map(|&word| Dep::from_word(word))
            .any(|dep| dep.set || self.of.get(&dep.id).copied().flatten() != Some(stream))
    }
}

fn set_sems(ir: &mut Ir, op: Op, name: Str, list: &[Sem]) {
    let attr = (!list.is_empty()).then(|| {
        let items: SmallVec<[Attr; 4]> = list.iter().map(|sem| sem.intern(&mut ir.ctx)).collect();
        ir.ctx.array(&items)
    });
    let dict = ir.ctx.dict_with(ir.dict(op), name, attr);
    ir.set_dict(op, dict);
}

/// Waits for all of both: of one counter, for the larger value.
fn merge_waits(own: &mut Sems, more: &[Sem]) {
    for wait in more {
        match own.iter_mut().find(|known| known.id == wait.id) {
            Some(known) if known.op == SemOp::Ge && wait.op == SemOp::Ge => {
                known.value = known.value.max(wait.value);
            }
            Some(known) if known == wait => {}
            _ => own.push(*wait),
        }
    }
}

/// Signals of both, in order; what raises one counter at one time is one signal.
fn merge_signals(own: &mut Sems, more: &[Sem]) {
    let is_late = |sem: &Sem| sem.event != SemEvent::Read;
    for signal in more {
        let mut signal = *signal;
        if !is_late(&signal) {
            // Its inputs were read no earlier than the one before was done.
            signal.event = SemEvent::Default;
        }
        let known = own.iter_mut().rev().find(|known| known.id == signal.id);
        match known {
            Some(known)
                if known.op == SemOp::Inc
                    && signal.op == SemOp::Inc
                    && is_late(known)
                    && i32::try_from(known.value.saturating_add(signal.value)).is_ok() =>
            {
                known.value += signal.value;
            }
            _ => own.push(signal),
        }
    }
}
