//! `instruction_reorder`: the order upstream asked for becomes the order of the program.
//!
//! Instructions with an `order` between two without one are a run. A run is sorted by its vectors,
//! element by element, a shorter one before what it begins; equal ones keep their places. Of an
//! element only the constant counts: terms in loop indices are the same in one iteration.
//!
//! Invariants: an instruction without `order` does not move, and nothing moves past it; a loop moves
//! as one, and its body is a block of its own; an order that breaks the program changes nothing.

use std::cmp::Ordering;
use std::collections::HashMap;

use bir_dialect::analysis::deps::{Source, attached};
use bir_dialect::analysis::index::{Frames, FunctionIndex, Undefined};
use bir_dialect::analysis::sync::{Outcome, play, waits_or_signals};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_DEPS, COL_ORDER, names, target_of};
use bir_dialect::bir::verify::value_text;
use bir_dialect::ir::{Block, Cursor, Def, Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic, symbol_text};
use crate::pass_options;

pass_options! {
    /// Sorts instructions by their `order`, between those that have none.
    ///
    /// The vectors are compared element by element by their constant terms, a shorter one first;
    /// instructions with equal vectors keep their places. Whoever gave the order has looked at
    /// dependences; nothing is checked but that registers and bytes are still defined where they are
    /// read, that stated dependences still lead upwards, and that waits are still met. If not, the report says by whose `order`, and the pass fails.
    pub struct InstructionReorder {}
}

const RUNS: Statistic = Statistic {
    name: "runs",
    doc: "stretches of two and more instructions that have an order",
};
const SORTED: Statistic = Statistic {
    name: "runs-sorted",
    doc: "of these, those that stood in another order",
};
const MOVED: Statistic = Statistic {
    name: "instructions-moved",
    doc: "instructions that stand elsewhere in their run",
};

impl Pass for InstructionReorder {
    fn name(&self) -> &'static str {
        "instruction_reorder"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[RUNS, SORTED, MOVED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let found = cx.each(ir, on, runs);
        let mut changed = false;
        for (found, &func) in found.into_iter().zip(on) {
            cx.matched(found.ordered);
            cx.count(&RUNS, found.runs);
            if found.unsorted.is_empty() {
                continue;
            }
            let what = || format!("order of {}", symbol_text(ir, func));
            if !cx.may_rewrite(&what) {
                break;
            }
            let before = undefined(ir, func);
            let had_stuck = stuck(ir, func, &found.unsorted);
            found
                .unsorted
                .iter()
                .for_each(|run| run.place(ir, &run.after));
            let mut broken = broken(ir, func, &found.unsorted, &before);
            if had_stuck.is_empty() {
                broken.extend(stuck(ir, func, &found.unsorted));
            }
            if !broken.is_empty() {
                found
                    .unsorted
                    .iter()
                    .for_each(|run| run.place(ir, &run.before));
                broken.into_iter().for_each(|finding| cx.report(finding));
                continue;
            }
            changed = true;
            cx.count(&SORTED, found.unsorted.len() as u64);
            cx.count(&MOVED, found.unsorted.iter().map(Run::moved).sum());
        }
        Changed::from_bool(changed)
    }
}

/// Instructions that follow one another, in the order they have and the one they are to have.
struct Run {
    /// What stands before the first of them.
    start: Cursor,
    before: Vec<Op>,
    after: Vec<Op>,
}

impl Run {
    fn place(&self, ir: &mut Ir, order: &[Op]) {
        order.iter().for_each(|&op| ir.detach(op));
        let mut at = self.start;
        for &op in order {
            ir.place(op, at);
            at = Cursor::After(op);
        }
    }

    fn moved(&self) -> u64 {
        let pairs = self.before.iter().zip(&self.after);
        pairs.filter(|(before, after)| before != after).count() as u64
    }
}

#[derive(Default)]
struct Runs {
    /// Instructions with an order, and runs of two and more of them.
    ordered: u64,
    runs: u64,
    unsorted: Vec<Run>,
}

fn runs(ir: &Ir, func: Op) -> Runs {
    let mut found = Runs::default();
    let mut run: Vec<Op> = Vec::new();
    let of = |op: Op| ir.regions(op).iter().flat_map(|&region| ir.blocks(region));
    let mut blocks: Vec<Block> = of(func).collect();
    let mut next = 0;
    while let Some(&block) = blocks.get(next) {
        next += 1;
        let mut start = Cursor::Start(block);
        for op in ir.block_ops(block) {
            blocks.extend(of(op));
            // A set is no instruction: the run goes on behind it.
            if OpCode::of(ir, op) == Some(OpCode::Depset) {
                continue;
            }
            // What ends a block stays there, and so does what has an order of no coordinate.
            let is_ordered = |words: &[u64]| !words.is_empty() && !ir.traits(op).terminator;
            if ir.words_cell(COL_ORDER, op).is_some_and(is_ordered) {
                run.push(op);
                continue;
            }
            found.flush(ir, &mut run, start);
            start = Cursor::After(op);
        }
        found.flush(ir, &mut run, start);
    }
    found
}

impl Runs {
    fn flush(&mut self, ir: &Ir, run: &mut Vec<Op>, start: Cursor) {
        self.ordered += run.len() as u64;
        self.runs += u64::from(run.len() > 1);
        if !run.is_sorted_by(|&a, &b| compare(ir, a, b) != Ordering::Greater) {
            let mut after = run.clone();
            after.sort_by(|&a, &b| compare(ir, a, b));
            self.unsorted.push(Run {
                start,
                before: std::mem::take(run),
                after,
            });
        }
        run.clear();
    }
}

/// Compares the constants of two orders, without taking them apart.
fn compare(ir: &Ir, a: Op, b: Op) -> Ordering {
    let mut a = ir.words_cell(COL_ORDER, a).unwrap_or_default();
    let mut b = ir.words_cell(COL_ORDER, b).unwrap_or_default();
    loop {
        let (one, two) = match (a, b) {
            ([terms, constant, rest @ ..], [others, other, last @ ..]) => {
                a = rest.get(2 * *terms as usize..).unwrap_or_default();
                b = last.get(2 * *others as usize..).unwrap_or_default();
                (*constant as i64, *other as i64)
            }
            _ => return a.len().cmp(&b.len()),
        };
        match one.cmp(&two) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
}

fn undefined(ir: &Ir, func: Op) -> Vec<Undefined> {
    FunctionIndex::build(ir, func, Frames::Locations).undefined_reads()
}

/// What the new order breaks: registers and bytes read before they are defined.
fn broken(ir: &Ir, func: Op, runs: &[Run], before: &[Undefined]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    // Where each instruction of a run stood, and in which one.
    let stood: HashMap<Op, (usize, usize)> = runs
        .iter()
        .enumerate()
        .flat_map(|(number, run)| {
            let ops = run.before.iter().enumerate();
            ops.map(move |(at, &op)| (op, (number, at)))
        })
        .collect();
    // What a loop reads counts as read by the loop.
    for op in ir.walk_op(func) {
        registers(ir, op, &stood, &mut found);
    }
    stated(ir, func, &stood, &mut found);
    let known = |new: &Undefined| {
        let same = |old: &&Undefined| old.operand == new.operand;
        before
            .iter()
            .find(same)
            .is_some_and(|old| old.gaps == new.gaps)
    };
    for new in undefined(ir, func).iter().filter(|&new| !known(new)) {
        let by = cause(ir, new.op, &stood).map_or_else(
            || "of instructions around it".to_owned(),
            |op| format!("of {}", instruction(ir, op)),
        );
        let operand = ir.operand_ids(new.op).position(|id| id == new.operand);
        let part = operand.map_or(Part::Whole, Part::Operand);
        let gaps: Vec<String> = new.gaps.iter().take(4).map(gap_text).collect();
        let message = format!(
            "{} is read before it is written, by the `order` {by}",
            value_text(ir, new.value)
        );
        found.push(
            Diagnostic::error(Place::Op(new.op, part), message)
                .note(format!("unwritten are {}", gaps.join(", ")))
                .help(FOLLOW),
        );
    }
    found
}

fn gap_text(gap: &bir_dialect::analysis::index::Gap) -> String {
    format!(
        "partitions {}:{}, bytes {}:{}",
        gap.partitions.0, gap.partitions.1, gap.bytes.0, gap.bytes.1
    )
}

/// Reports the registers an instruction reads before they are defined.
fn registers(ir: &Ir, op: Op, stood: &HashMap<Op, (usize, usize)>, found: &mut Vec<Diagnostic>) {
    for (at, operand) in ir.operands(op).iter().enumerate() {
        let Def::Result { op: def, .. } = ir.def(operand.value) else {
            continue;
        };
        if OpCode::of(ir, def) == Some(OpCode::Alloc) || !stood.contains_key(&def) {
            continue;
        }
        let mut around = std::iter::successors(Some(op), |&op| ir.parent(op));
        let top = around.find(|&top| ir.block(top) == ir.block(def));
        if let Some(top) = top.filter(|top| stood.contains_key(top))
            && ir.comes_before(top, def)
        {
            let message = format!(
                "{} is read before it is defined, by the `order` of {}",
                value_text(ir, operand.value),
                instruction(ir, def)
            );
            found.push(
                Diagnostic::error(Place::Op(op, Part::Operand(at)), message)
                    .related(Place::Op(def, Part::Attr(names::ORDER)), "defined here")
                    .help(FOLLOW),
            );
        }
    }
}

/// Reports stated dependences on what stands further down now.
fn stated(ir: &Ir, func: Op, stood: &HashMap<Op, (usize, usize)>, found: &mut Vec<Diagnostic>) {
    if !ir
        .walk_op(func)
        .any(|op| ir.words_cell(COL_DEPS, op).is_some())
    {
        return;
    }
    let graph = attached(ir, func);
    let ops = graph.ops();
    let tops: Vec<Option<Op>> = ops.iter().map(|&op| cause(ir, op, stood)).collect();
    // Of a set's members, in each block the one that stands last now.
    let last = |set: Source| {
        let mut last = HashMap::new();
        for number in graph.expand(set) {
            let (top, op) = (tops[number as usize], ops[number as usize]);
            let Some(top) = top else { continue };
            let known = last.entry(ir.block(top)).or_insert((top, op));
            if ir.comes_before(known.0, top) {
                *known = (top, op);
            }
        }
        last
    };
    let mut sets = HashMap::new();
    for (&op, (&here, at)) in ops.iter().zip(tops.iter().zip(0u32..)) {
        let Some(here) = here else { continue };
        for edge in graph.edges(at) {
            let source = edge.source();
            let furthest = if source.is_set() {
                let known = sets.entry(source).or_insert_with(|| last(source));
                known.get(&ir.block(here)).copied()
            } else {
                let number = source.number() as usize;
                tops[number].map(|top| (top, ops[number]))
            };
            if let Some((there, other)) = furthest
                && here != there
                && ir.block(here) == ir.block(there)
                && ir.comes_before(here, there)
            {
                let message = format!(
                    "an instruction this one depends on ({}) stands behind it, by the `order` of {}",
                    edge.kind().name(),
                    instruction(ir, there)
                );
                found.push(
                    Diagnostic::error(Place::Op(op, Part::Attr(names::DEPS)), message)
                        .related(Place::Op(other, Part::Whole), "it depends on this")
                        .help(FOLLOW),
                );
            }
        }
    }
}

/// Reports waits nothing meets, in a function in which instructions that wait or signal move.
fn stuck(ir: &Ir, func: Op, runs: &[Run]) -> Vec<Diagnostic> {
    let mut moved = runs.iter().flat_map(|run| &run.before);
    if !moved.any(|&op| ir.walk_op(op).any(|op| waits_or_signals(ir, op))) {
        return Vec::new();
    }
    let Outcome::Unmet(list) = play(ir, func, target_of(ir, func)) else {
        return Vec::new();
    };
    let unmet = list.iter().map(|unmet| {
        let wait = unmet.wait;
        let (id, sign, value) = (wait.id, wait.op.sign(), wait.value);
        let message = format!(
            "the wait for semaphore {id} {sign} {value} is never met, by the `order` of instructions around it"
        );
        let mut found =
            Diagnostic::error(Place::Op(unmet.op, Part::Attr(names::WAIT)), message).help(FOLLOW);
        if let Some(blocked) = unmet.blocked {
            let place = Place::Op(blocked, Part::Attr(names::SIGNAL));
            found = found.related(place, "never comes to signal it");
        }
        found
    });
    unmet.collect()
}

/// What to do about an order that breaks something.
const FOLLOW: &str = "orders must follow the dependences and the semaphores; without `order`, an instruction stays where it is";

/// The instruction of a run an undefined read is in, or is behind.
fn cause(ir: &Ir, op: Op, stood: &HashMap<Op, (usize, usize)>) -> Option<Op> {
    std::iter::successors(Some(op), |&op| ir.parent(op)).find(|op| stood.contains_key(op))
}

fn instruction(ir: &Ir, op: Op) -> String {
    OpCode::of(ir, op).map_or_else(
        || "an instruction".to_owned(),
        |code| format!("`{}`", code.def().name),
    )
}
