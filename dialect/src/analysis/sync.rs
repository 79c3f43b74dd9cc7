//! The token game: semaphores as counters, played over straight-line code and loops of constant
//! trips.
//!
//! Engines and DMA queues are streams, each in order, which meet only at waits and barriers. Program
//! order is tried first: it is one legal schedule, so if it meets every wait nothing more is asked.
//! Otherwise every stream goes as far as it can. A semaphore that only rises has one value for each
//! set of signals given, so the streams end where every schedule ends. One that is also lowered or
//! set depends on the order; unless a single stream uses it, it counts as the sum of everything
//! that may raise it, which no schedule exceeds. So a wait found unmet is unmet in every schedule.
//!
//! Not played, and left to the simulator ([`Outcome::Unknown`]): branches and loops on registers
//! around waits or signals, plays of more than [`STEP_LIMIT`] steps and eight more per item, waits
//! that another core of the program may meet.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::bir::attrs::{Sem, SemOp};
use crate::bir::loops::trips;
use crate::bir::ops::OpCode;
use crate::bir::program::names;
use crate::bir::space::{Engine, Target};
use crate::bir::view::OpView;
use crate::ir::{Dict, Ir, Op, Str, Visit};

type Fixed = foldhash::fast::FixedState;

/// Steps every play may take.
pub const STEP_LIMIT: u64 = 1 << 20;

/// A wait that no schedule meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unmet {
    /// Who waits.
    pub op: Op,
    /// For what.
    pub wait: Sem,
    /// The most the counter can hold by then.
    pub value: i64,
    /// The first instruction that would raise the counter and is not reached; `None` where all
    /// that raise it are done.
    pub blocked: Option<Op>,
    /// Whether any instruction raises it at all.
    pub is_signalled: bool,
}

/// A signal that takes a counter out of its 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overflow {
    /// Who signals.
    pub op: Op,
    /// What.
    pub signal: Sem,
    /// The value the counter would have.
    pub value: i64,
}

/// How a play ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every wait is met.
    Met,
    /// These are not, in program order; there is at least one.
    Unmet(Vec<Unmet>),
    /// Program order meets the waits, and takes a counter out of its range.
    Overflow(Overflow),
    /// What cannot be played.
    Unknown,
}

/// In-order streams: an engine, or a DMA queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stream {
    /// An engine.
    Engine(Engine),
    /// A queue, by name; those without a name are one.
    Queue(Option<Str>),
}

impl Stream {
    /// Where an instruction executes, in a module for `target`; `None` for structure.
    pub fn of(ir: &Ir, op: Op, target: Target) -> Option<Stream> {
        let view = OpView::new(ir, op);
        let engines = view.def()?.engines?;
        let engine = view
            .engine_attr()
            .unwrap_or_else(|| engines.default_on(target));
        Some(match engine {
            Engine::Dma => {
                Stream::Queue(view.word("queue").and_then(|queue| ir.ctx.find_str(queue)))
            }
            engine => Stream::Engine(engine),
        })
    }
}

/// Whether an instruction waits for a semaphore or signals one.
pub fn waits_or_signals(ir: &Ir, op: Op) -> bool {
    let dict = ir.dict(op);
    let has = |name| ir.ctx.dict_get(dict, name).is_some();
    dict != Dict::EMPTY && (has(names::WAIT) || has(names::SIGNAL))
}

/// Engines that meet at a barrier.
const MEETING: [Engine; 5] = [
    Engine::Pe,
    Engine::Act,
    Engine::Dve,
    Engine::Pool,
    Engine::Sp,
];

#[derive(Debug)]
struct Sync {
    op: Op,
    stream: Stream,
    waits: SmallVec<[Sem; 2]>,
    signals: SmallVec<[Sem; 2]>,
    /// First and number of semaphores set to 0.
    clears: Option<(u32, u32)>,
}

#[derive(Debug)]
enum Item {
    Sync(Sync),
    Barrier,
    Begin {
        trips: u64,
        /// Where the matching end is.
        end: usize,
    },
    End {
        begin: usize,
    },
}

/// Plays a function of a module for `target`.
pub fn play(ir: &Ir, function: Op, target: Target) -> Outcome {
    let items = match collect(ir, function, target) {
        Ok(Some(items)) => items,
        Ok(None) => return Outcome::Met,
        Err(Unplayable) => return Outcome::Unknown,
    };
    match in_program_order(&items) {
        InOrder::Met => Outcome::Met,
        InOrder::Overflow(overflow) => Outcome::Overflow(overflow),
        InOrder::TooLong => Outcome::Unknown,
        InOrder::Unmet => match stuck(&items) {
            None => Outcome::Unknown,
            // With upper bounds, only what is unmet is certain.
            Some((unmet, mode)) if unmet.is_empty() => match mode {
                Mode::Exact => Outcome::Met,
                Mode::Bound => Outcome::Unknown,
            },
            Some((unmet, _)) => {
                let others = used_by_other_cores(ir, function);
                match unmet.iter().any(|unmet| others.contains(&unmet.wait.id)) {
                    true => Outcome::Unknown,
                    false => Outcome::Unmet(unmet),
                }
            }
        },
    }
}

/// Semaphores that other modules of the program signal, and those a barrier of cores works with.
fn used_by_other_cores(ir: &Ir, function: Op) -> HashSet<u32, Fixed> {
    let mut found = HashSet::default();
    let own = ir.parent(function);
    let mut modules = ir.block_ops(ir.root_block());
    if modules.nth(1).is_none() {
        return found;
    }
    for module in ir.block_ops(ir.root_block()) {
        for op in ir.walk_op(module) {
            if Some(module) != own {
                let signals = sems(ir, op, names::SIGNAL).unwrap_or_default();
                found.extend(signals.iter().map(|signal| signal.id));
            }
            if OpCode::of(ir, op) == Some(OpCode::CoreBarrier) {
                let id = OpView::new(ir, op).int("semaphore");
                found.extend(id.and_then(|id| u32::try_from(id).ok()));
            }
        }
    }
    found
}

/// The waits or signals of an instruction, by the attribute's name; `None` where it has none.
pub(in crate::analysis) fn sems(ir: &Ir, op: Op, name: Str) -> Option<SmallVec<[Sem; 2]>> {
    let attr = ir.ctx.dict_get(ir.dict(op), name)?;
    let sems = Sem::list(&ir.ctx, attr)?;
    Some(sems.into_iter().collect())
}

/// Whether an instruction takes part in the game.
pub(crate) fn takes_part(ir: &Ir, op: Op, code: OpCode) -> bool {
    let dict = ir.dict(op);
    let names = [names::WAIT, names::SIGNAL];
    matches!(code, OpCode::AllEngineBarrier | OpCode::SemaphoreRangeClear)
        || (dict != Dict::EMPTY
            && ir
                .ctx
                .dict_entries(dict)
                .any(|(name, _)| names.contains(&name)))
}

/// A register decides how often, or whether, something waits or signals.
struct Unplayable;

/// What matters of a function; `None` where nothing waits or signals.
fn collect(ir: &Ir, function: Op, target: Target) -> Result<Option<Vec<Item>>, Unplayable> {
    let mut items = Vec::new();
    let mut begins: Vec<usize> = Vec::new();
    // Loops whose body may not hold anything that matters.
    let mut unplayable: Option<usize> = None;
    let mut has_branches = false;
    let mut has_sync = false;
    for visit in ir.walk_visits(function) {
        match visit {
            Visit::Enter(op) | Visit::Leave(op) if op == function => {}
            Visit::Enter(op) => {
                let code = OpCode::of(ir, op);
                has_branches |= matches!(code, Some(OpCode::Br | OpCode::CondBr));
                if !ir.regions(op).is_empty() {
                    let trips = trips(ir, op);
                    if trips.is_none() {
                        unplayable.get_or_insert(begins.len());
                    }
                    begins.push(items.len());
                    items.push(Item::Begin {
                        trips: trips.unwrap_or(0),
                        end: 0,
                    });
                } else {
                    let before = items.len();
                    push_items(ir, op, code, target, &mut items);
                    if items.len() > before {
                        if unplayable.is_some() {
                            return Err(Unplayable);
                        }
                        has_sync = true;
                    }
                }
            }
            Visit::Leave(_) => {
                let Some(begin) = begins.pop() else { continue };
                if unplayable == Some(begins.len()) {
                    unplayable = None;
                }
                let at = items.len();
                if begin + 1 == at {
                    items.pop();
                    continue;
                }
                if let Some(Item::Begin { end, .. }) = items.get_mut(begin) {
                    *end = at;
                }
                items.push(Item::End { begin });
            }
        }
    }
    match has_sync && has_branches {
        true => Err(Unplayable),
        false => Ok(has_sync.then_some(items)),
    }
}

/// What an instruction does in the game. A barrier waits, meets, then signals.
fn push_items(ir: &Ir, op: Op, code: Option<OpCode>, target: Target, items: &mut Vec<Item>) {
    let own = sync_of(ir, op, code, target);
    if code != Some(OpCode::AllEngineBarrier) {
        items.extend(own.map(Item::Sync));
        return;
    }
    let Some(sync) = own else {
        items.push(Item::Barrier);
        return;
    };
    let behind = Sync {
        op,
        stream: sync.stream,
        waits: SmallVec::new(),
        signals: sync.signals,
        clears: None,
    };
    let before = Sync {
        signals: SmallVec::new(),
        ..sync
    };
    items.extend([Item::Sync(before), Item::Barrier, Item::Sync(behind)]);
}

fn sync_of(ir: &Ir, op: Op, code: Option<OpCode>, target: Target) -> Option<Sync> {
    let (waits, signals) = (sems(ir, op, names::WAIT), sems(ir, op, names::SIGNAL));
    let view = OpView::new(ir, op);
    let number = |name| view.int(name).and_then(|number| u32::try_from(number).ok());
    let clears = match code {
        Some(OpCode::SemaphoreRangeClear) => Some((number("first")?, number("count")?)),
        _ => None,
    };
    if waits.is_none() && signals.is_none() && clears.is_none() {
        return None;
    }
    let stream = Stream::of(ir, op, target)?;
    Some(Sync {
        op,
        stream,
        waits: waits.unwrap_or_default(),
        signals: signals.unwrap_or_default(),
        clears,
    })
}

/// How a signal counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// As written.
    Exact,
    /// By the most it may raise the counter, so that the order does not matter.
    Bound,
}

#[derive(Default)]
struct Counters(HashMap<u32, i64, Fixed>);

impl Counters {
    fn value(&self, id: u32) -> i64 {
        self.0.get(&id).copied().unwrap_or(0)
    }

    fn meets(&self, wait: &Sem) -> bool {
        self.value(wait.id) >= wait.value
    }

    /// The value after a signal.
    fn apply(&mut self, signal: &Sem, mode: Mode) -> i64 {
        let value = self.0.entry(signal.id).or_insert(0);
        let by = match signal.op {
            SemOp::Dec => signal.value.saturating_neg(),
            _ => signal.value,
        };
        *value = match (mode, signal.op) {
            (Mode::Exact, SemOp::Set) => by,
            (Mode::Exact, _) => value.saturating_add(by),
            (Mode::Bound, _) => value.saturating_add(by.max(0)),
        };
        *value
    }

    fn clear(&mut self, (first, count): (u32, u32), mode: impl Fn(u32) -> Mode) {
        for id in first
            ..first
                .saturating_add(count)
                .min(first.saturating_add(1 << 16))
        {
            if mode(id) == Mode::Exact {
                self.0.insert(id, 0);
            }
        }
    }
}

/// Steps a play may take.
fn limit(items: &[Item]) -> u64 {
    STEP_LIMIT.saturating_add(8 * items.len() as u64)
}

/// Where a stream is: the item, and the trips left of the loops around it.
#[derive(Default)]
struct Cursor {
    at: usize,
    loops: SmallVec<[u64; 4]>,
}

impl Cursor {
    /// Moves over what decides nothing, and stands at the next item `wanted` asks for; `None` at the
    /// end, or when `steps` are used up.
    fn seek(
        &mut self,
        items: &[Item],
        steps: &mut u64,
        wanted: impl Fn(&Item) -> bool,
    ) -> Option<usize> {
        while let Some(item) = items.get(self.at) {
            *steps = steps.checked_sub(1)?;
            match item {
                Item::Begin { trips: 0, end } => self.at = end + 1,
                Item::Begin { trips, .. } => {
                    self.loops.push(*trips);
                    self.at += 1;
                }
                Item::End { begin } => {
                    if let Some(left) = self.loops.last_mut()
                        && *left > 1
                    {
                        *left -= 1;
                        self.at = begin + 1;
                    } else {
                        self.loops.pop();
                        self.at += 1;
                    }
                }
                item if wanted(item) => return Some(self.at),
                _ => self.at += 1,
            }
        }
        None
    }
}

enum InOrder {
    Met,
    Unmet,
    Overflow(Overflow),
    TooLong,
}

/// What happens when instructions run one by one as written.
fn in_program_order(items: &[Item]) -> InOrder {
    let (mut cursor, mut counters) = (Cursor::default(), Counters::default());
    let mut steps = limit(items);
    let mut overflow = None;
    while let Some(at) = cursor.seek(items, &mut steps, |item| matches!(item, Item::Sync(_))) {
        if let Some(Item::Sync(sync)) = items.get(at) {
            if !sync.waits.iter().all(|wait| counters.meets(wait)) {
                return InOrder::Unmet;
            }
            for signal in &sync.signals {
                let value = counters.apply(signal, Mode::Exact);
                if overflow.is_none() && i32::try_from(value).is_err() {
                    overflow = Some(Overflow {
                        op: sync.op,
                        signal: *signal,
                        value,
                    });
                }
            }
            if let Some(range) = sync.clears {
                counters.clear(range, |_| Mode::Exact);
            }
        }
        cursor.at += 1;
    }
    match (overflow, cursor.at < items.len()) {
        (Some(overflow), _) => InOrder::Overflow(overflow),
        (None, true) => InOrder::TooLong,
        (None, false) => InOrder::Met,
    }
}

/// How each semaphore counts when streams run ahead of one another.
fn modes(items: &[Item]) -> HashMap<u32, Mode, Fixed> {
    struct Use {
        stream: Stream,
        is_shared: bool,
        only_rises: bool,
    }
    let mut uses: HashMap<u32, Use, Fixed> = HashMap::default();
    let mut note = |id: u32, stream: Stream, rises: bool| {
        let known = uses.entry(id).or_insert(Use {
            stream,
            is_shared: false,
            only_rises: true,
        });
        known.is_shared |= known.stream != stream;
        known.only_rises &= rises;
    };
    for item in items {
        let Item::Sync(sync) = item else { continue };
        for wait in &sync.waits {
            note(wait.id, sync.stream, true);
        }
        for signal in &sync.signals {
            let rises = signal.op == SemOp::Inc && signal.value >= 0;
            note(signal.id, sync.stream, rises);
        }
        if let Some((first, count)) = sync.clears {
            // Semaphores nobody else names need no mode.
            for id in first
                ..first
                    .saturating_add(count)
                    .min(first.saturating_add(1 << 16))
            {
                note(id, sync.stream, false);
            }
        }
    }
    uses.into_iter()
        .map(|(id, found)| {
            let mode = match found.is_shared && !found.only_rises {
                true => Mode::Bound,
                false => Mode::Exact,
            };
            (id, mode)
        })
        .collect()
}

/// Waits that stay unmet when every stream has gone as far as it can, and whether counters were
/// bounds; `None` where that takes too long.
fn stuck(items: &[Item]) -> Option<(Vec<Unmet>, Mode)> {
    let modes = modes(items);
    let mode = |id: u32| modes.get(&id).copied().unwrap_or(Mode::Exact);
    let mut streams: Vec<Stream> = MEETING.iter().copied().map(Stream::Engine).collect();
    for item in items {
        if let Item::Sync(sync) = item
            && !streams.contains(&sync.stream)
        {
            streams.push(sync.stream);
        }
    }
    let mut cursors: Vec<Cursor> = streams.iter().map(|_| Cursor::default()).collect();
    let mut counters = Counters::default();
    // Every stream passes every item.
    let mut steps = limit(items).saturating_mul(streams.len() as u64);
    let meets_at_barriers =
        |stream: &Stream| matches!(stream, Stream::Engine(engine) if MEETING.contains(engine));
    loop {
        let mut moved = false;
        let mut at_barrier = 0;
        for (stream, cursor) in streams.iter().zip(&mut cursors) {
            let wanted = |item: &Item| match item {
                Item::Sync(sync) => sync.stream == *stream,
                Item::Barrier => meets_at_barriers(stream),
                _ => false,
            };
            while let Some(at) = cursor.seek(items, &mut steps, wanted) {
                let Some(Item::Sync(sync)) = items.get(at) else {
                    at_barrier += 1;
                    break;
                };
                if !sync.waits.iter().all(|wait| counters.meets(wait)) {
                    break;
                }
                for signal in &sync.signals {
                    counters.apply(signal, mode(signal.id));
                }
                if let Some(range) = sync.clears {
                    counters.clear(range, mode);
                }
                cursor.at += 1;
                moved = true;
            }
        }
        if steps == 0 {
            return None;
        }
        if at_barrier == MEETING.len() {
            for (stream, cursor) in streams.iter().zip(&mut cursors) {
                if meets_at_barriers(stream) {
                    cursor.at += 1;
                }
            }
            moved = true;
        }
        if !moved {
            break;
        }
    }
    let mut found = Vec::new();
    for cursor in &cursors {
        if let Some(Item::Sync(sync)) = items.get(cursor.at)
            && let Some(wait) = sync.waits.iter().find(|wait| !counters.meets(wait))
        {
            found.push(unmet(items, &streams, &cursors, sync.op, *wait, &counters));
        }
    }
    found.sort_by_key(|unmet| unmet.op);
    let is_bound = modes.values().any(|&mode| mode == Mode::Bound);
    Some((found, if is_bound { Mode::Bound } else { Mode::Exact }))
}

fn unmet(
    items: &[Item],
    streams: &[Stream],
    cursors: &[Cursor],
    op: Op,
    wait: Sem,
    counters: &Counters,
) -> Unmet {
    let raises = |sync: &Sync| {
        let of_wait = |signal: &&Sem| signal.id == wait.id && signal.op != SemOp::Dec;
        sync.signals.iter().any(|signal| of_wait(&signal))
    };
    let mut is_signalled = false;
    let mut blocked = None;
    for (at, item) in items.iter().enumerate() {
        let Item::Sync(sync) = item else { continue };
        if !raises(sync) {
            continue;
        }
        is_signalled = true;
        let reached = streams
            .iter()
            .zip(cursors)
            .find(|(stream, _)| **stream == sync.stream)
            .is_none_or(|(_, cursor)| at < cursor.at);
        if !reached && sync.op != op {
            blocked.get_or_insert(sync.op);
        }
    }
    Unmet {
        op,
        wait,
        value: counters.value(wait.id),
        blocked,
        is_signalled,
    }
}
