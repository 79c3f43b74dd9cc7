//! The token game: semaphores as counters, played over straight-line code and loops of constant
//! trips. A wait that no order of the engines' streams can meet is a finding.
//!
//! Program order is tried first: it is one legal schedule, so if it meets every wait nothing more
//! is asked. Branches, loops on registers, programs of several cores and very long plays are left to
//! the simulator.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::attrs::{Sem, SemOp};
use super::super::ops::OpCode;
use super::super::program::names;
use super::super::space::{Engine, Target};
use super::super::view::OpView;
use super::bounds::loop_range;
use crate::ir::{Ir, Op, Str, Visit};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

type Fixed = foldhash::fast::FixedState;

/// Events beyond which a play is not finished.
const STEP_LIMIT: u64 = 1 << 20;

/// In-order streams: an engine, or a DMA queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stream {
    Engine(Engine),
    Queue(Option<Str>),
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
enum Item {
    Sync {
        op: Op,
        stream: Stream,
        waits: SmallVec<[Sem; 2]>,
        signals: SmallVec<[Sem; 2]>,
    },
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

/// Checks a function.
pub(super) fn check(ir: &Ir, function: Op, target: Target, diags: &mut Diagnostics) {
    let is_program = ir.block_ops(ir.root_block()).nth(1).is_some();
    if is_program {
        return;
    }
    let Some(items) = collect(ir, function, target) else {
        return;
    };
    let waits = items
        .iter()
        .any(|item| matches!(item, Item::Sync { waits, .. } if !waits.is_empty()));
    if !waits || in_program_order(&items) {
        return;
    }
    for (op, wait, value) in stuck(&items) {
        let signalled = items.iter().any(|item| {
            matches!(item, Item::Sync { signals, .. } if signals.iter().any(|s| s.id == wait.id))
        });
        let name = ir.name_text(op);
        let name = name.strip_prefix("bir.").unwrap_or(name);
        let message = format!(
            "`{name}` waits for semaphore {} {} {}, which is never met",
            wait.id,
            wait.op.sign(),
            wait.value
        );
        let note = if signalled {
            format!("semaphore {} stays at {value}", wait.id)
        } else {
            format!("nothing signals semaphore {}", wait.id)
        };
        diags.push(Diagnostic::error(Place::Op(op, Part::Attr(names::WAIT)), message).note(note));
    }
}

/// What matters of a function; `None` where it cannot be played.
fn collect(ir: &Ir, function: Op, target: Target) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    let mut begins: Vec<usize> = Vec::new();
    // Loops whose body may not hold anything that matters.
    let mut unplayable: Option<usize> = None;
    let mut has_branches = false;
    for visit in ir.walk_visits(function) {
        match visit {
            Visit::Enter(op) if op == function => {}
            Visit::Leave(op) if op == function => {}
            Visit::Enter(op) => {
                let code = OpCode::of(ir, op);
                has_branches |= matches!(code, Some(OpCode::Br | OpCode::CondBr));
                if !ir.regions(op).is_empty() {
                    let trips = match code {
                        Some(OpCode::Loop) => loop_range(ir, op).and_then(|range| range.trips),
                        _ => None,
                    };
                    if trips.is_none() {
                        unplayable.get_or_insert(begins.len());
                    }
                    begins.push(items.len());
                    items.push(Item::Begin {
                        trips: trips.unwrap_or(0),
                        end: 0,
                    });
                    continue;
                }
                if let Some(item) = sync(ir, op, code, target) {
                    if unplayable.is_some() || has_branches {
                        return None;
                    }
                    items.push(item);
                }
            }
            Visit::Leave(_) => {
                let begin = begins.pop()?;
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
    let has_sync = items.iter().any(|item| matches!(item, Item::Sync { .. }));
    (has_sync && !has_branches).then_some(items)
}

fn sync(ir: &Ir, op: Op, code: Option<OpCode>, target: Target) -> Option<Item> {
    if code == Some(OpCode::AllEngineBarrier) {
        return Some(Item::Barrier);
    }
    let dict = ir.dict(op);
    let list = |name| {
        let attr = ir.ctx.dict_get(dict, name)?;
        let sems = Sem::list(&ir.ctx, attr)?;
        Some(sems.into_iter().collect::<SmallVec<[Sem; 2]>>())
    };
    let (waits, signals) = (list(names::WAIT), list(names::SIGNAL));
    if waits.is_none() && signals.is_none() {
        return None;
    }
    let engines = code?.def().engines?;
    let view = OpView::new(ir, op);
    let engine = view
        .engine_attr()
        .unwrap_or_else(|| engines.default_on(target));
    let stream = match engine {
        Engine::Dma => Stream::Queue(view.word("queue").and_then(|queue| ir.ctx.find_str(queue))),
        engine => Stream::Engine(engine),
    };
    Some(Item::Sync {
        op,
        stream,
        waits: waits.unwrap_or_default(),
        signals: signals.unwrap_or_default(),
    })
}

#[derive(Default)]
struct Counters(HashMap<u32, i64, Fixed>);

impl Counters {
    fn value(&self, id: u32) -> i64 {
        self.0.get(&id).copied().unwrap_or(0)
    }

    fn meets(&self, wait: &Sem) -> bool {
        let value = self.value(wait.id);
        match wait.op {
            SemOp::Eq => value == wait.value,
            _ => value >= wait.value,
        }
    }

    fn apply(&mut self, signal: &Sem) {
        let value = self.0.entry(signal.id).or_insert(0);
        *value = match signal.op {
            SemOp::Dec => value.saturating_sub(signal.value),
            SemOp::Set => signal.value,
            _ => value.saturating_add(signal.value),
        };
    }
}

/// Where a stream is: the item, and the trips left of the loops around it.
#[derive(Default)]
struct Cursor {
    at: usize,
    loops: SmallVec<[u64; 4]>,
}

impl Cursor {
    /// Moves over what decides nothing, and stands at the next item `wanted` asks for; `None` at the
    /// end.
    fn seek(
        &mut self,
        items: &[Item],
        steps: &mut u64,
        wanted: impl Fn(&Item) -> bool,
    ) -> Option<usize> {
        while let Some(item) = items.get(self.at) {
            *steps += 1;
            if *steps > STEP_LIMIT {
                return None;
            }
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

/// Whether program order meets every wait; also true where the play is too long to finish.
fn in_program_order(items: &[Item]) -> bool {
    let (mut cursor, mut counters, mut steps) = (Cursor::default(), Counters::default(), 0);
    while let Some(at) = cursor.seek(items, &mut steps, |item| matches!(item, Item::Sync { .. })) {
        if let Some(Item::Sync { waits, signals, .. }) = items.get(at) {
            if !waits.iter().all(|wait| counters.meets(wait)) {
                return false;
            }
            signals.iter().for_each(|signal| counters.apply(signal));
        }
        cursor.at += 1;
    }
    true
}

/// Waits that stay unmet when every stream has gone as far as it can, with the counter's value.
fn stuck(items: &[Item]) -> Vec<(Op, Sem, i64)> {
    let mut streams: Vec<Stream> = MEETING.iter().copied().map(Stream::Engine).collect();
    for item in items {
        if let Item::Sync { stream, .. } = item
            && !streams.contains(stream)
        {
            streams.push(*stream);
        }
    }
    let mut cursors: Vec<Cursor> = streams.iter().map(|_| Cursor::default()).collect();
    let mut counters = Counters::default();
    let mut steps = 0;
    let meets_at_barriers =
        |stream: &Stream| matches!(stream, Stream::Engine(engine) if MEETING.contains(engine));
    loop {
        let mut moved = false;
        let mut at_barrier = 0;
        for (stream, cursor) in streams.iter().zip(&mut cursors) {
            loop {
                let wanted = |item: &Item| match item {
                    Item::Sync { stream: own, .. } => own == stream,
                    Item::Barrier => meets_at_barriers(stream),
                    _ => false,
                };
                match cursor
                    .seek(items, &mut steps, wanted)
                    .and_then(|at| items.get(at))
                {
                    Some(Item::Sync { waits, signals, .. }) => {
                        if !waits.iter().all(|wait| counters.meets(wait)) {
                            break;
                        }
                        signals.iter().for_each(|signal| counters.apply(signal));
                        cursor.at += 1;
                        moved = true;
                    }
                    Some(Item::Barrier) => {
                        at_barrier += 1;
                        break;
                    }
                    _ => break,
                }
            }
        }
        if steps > STEP_LIMIT {
            return Vec::new();
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
        if let Some(Item::Sync { op, waits, .. }) = items.get(cursor.at) {
            let unmet = waits.iter().find(|wait| !counters.meets(wait));
            found.extend(unmet.map(|wait| (*op, *wait, counters.value(wait.id))));
        }
    }
    found.sort_by_key(|entry| entry.0);
    found
}
