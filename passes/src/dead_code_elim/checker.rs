//! An independent judge of dead code elimination, from public types alone.
//!
//! Formally, of a program before and after:
//!
//! * *survivors* – instructions that are still there stand in their blocks in their order, and are
//!   what they were, `wait` and `signal` aside; an operand may name another location of the same
//!   type. New are `depset` and `event_semaphore` at most;
//! * *effects* – what has effects somebody sees, synchronises, steers, writes hidden state, moves
//!   data by an index, or writes what others may look at at any time is still there; a counted loop
//!   may go with all it holds, and a `dma_copy` is no effect by itself;
//! * *values* – every operand of a survivor that reads memory, and every location somebody outside
//!   sees where the function ends, finds the definitions it found: exactly those where none of them
//!   is gone and the operand names the same location; else, copies that move bits looked through in
//!   both programs, none it did not find before, and nothing undefined. What is gone from among
//!   them is a `dma_copy`, or the reload of what a save that is gone put away;
//! * *order* – a survivor depends on another, directly or not, if and only if it did. Where there
//!   are more than [`SOURCES`] instructions with dependences, of so many of them, evenly spread;
//! * *semaphores* – in every block, of every semaphore: the sum it is raised by and every other
//!   signal; in every block and stream: the highest value waited for.
//!
//! It runs with `--expensive-checks`, and in every test of the passes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bir_dialect::analysis::deps::{Graph, Source, attached};
use bir_dialect::analysis::index::{Frames, FunctionIndex};
use bir_dialect::analysis::sync::Stream;
use bir_dialect::bir::attrs::{Sem, SemOp};
use bir_dialect::bir::ops::{OpCode, Trait, writes_hidden_state};
use bir_dialect::bir::program::{COL_DEPS, names, target_of};
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Block, Cursor, Ir, NewOp, NewOperand, Op, Operand, Str, Value};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

/// Instructions whose followers are compared in a function.
pub const SOURCES: usize = 1 << 16;

/// What is wrong with a program after `pass`, compared with what it was before; `after` must have
/// come from a clone of `before`, whose handles it keeps.
pub fn check(pass: &str, before: &Ir, after: &Ir) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let functions = before
        .walk()
        .ops()
        .filter(|&op| OpCode::of(before, op) == Some(OpCode::Func));
    for func in functions {
        let mut judge = Judge {
            pass,
            before,
            after,
            func,
            found,
        };
        if judge.survivors() {
            judge.effects();
            judge.values();
            judge.order();
            judge.semaphores();
        }
        found = judge.found;
    }
    found
}

struct Judge<'a> {
    pass: &'a str,
    before: &'a Ir,
    after: &'a Ir,
    func: Op,
    found: Vec<Diagnostic>,
}

impl Judge<'_> {
    fn is_old(&self, op: Op) -> bool {
        op.index() < self.before.op_rows()
    }

    fn is_gone(&self, op: Op) -> bool {
        self.after.is_erased(op)
    }

    fn name(&self, op: Op) -> String {
        let name = self.before.name_text(op);
        name.strip_prefix("bir.").unwrap_or(name).to_owned()
    }

    /// A finding at a survivor, or at the function where the instruction is gone.
    fn report(&mut self, op: Op, what: &str) {
        let place = if self.is_gone(op) { self.func } else { op };
        let message = format!("`{}` went wrong: {what}", self.pass);
        let finding = Diagnostic::error(Place::Op(place, Part::Whole), message)
            .help("this is a fault of the pass; `--crash-reproducer DIR` keeps what shows it");
        self.found.push(finding);
    }

    /// Instructions of the function, sets and locations aside.
    fn instructions(ir: &Ir, func: Op) -> impl Iterator<Item = Op> + '_ {
        ir.walk_op(func)
            .skip(1)
            .filter(|&op| !matches!(OpCode::of(ir, op), Some(OpCode::Depset | OpCode::Alloc)))
    }

    fn survivors(&mut self) -> bool {
        let (before, after) = (self.before, self.after);
        if self.is_gone(self.func) {
            self.report(self.func, "a function is gone");
            return false;
        }
        let count = self.found.len();
        let stay: Vec<Op> = Judge::instructions(before, self.func)
            .filter(|&op| !self.is_gone(op))
            .collect();
        let mut old: Vec<Op> = Vec::with_capacity(stay.len());
        for op in Judge::instructions(after, self.func) {
            if self.is_old(op) {
                old.push(op);
            } else if OpCode::of(after, op) != Some(OpCode::EventSemaphore) {
                let what = format!("`{}` is new", after.name_text(op));
                self.report(op, &what);
            }
        }
        if stay != old {
            let moved = stay.iter().zip(&old).find(|(a, b)| a != b);
            let op = moved.map_or(self.func, |pair| *pair.1);
            self.report(op, "instructions that stay have another order");
            return false;
        }
        for op in stay {
            if before.block(op) != after.block(op) || !self.is_same(op) {
                let what = format!("`{}` is not what it was", self.name(op));
                self.report(op, &what);
            }
        }
        self.found.len() == count
    }

    fn is_same(&self, op: Op) -> bool {
        let entries = |ir: &Ir| -> BTreeSet<_> {
            let all = ir.ctx.dict_entries(ir.dict(op));
            all.filter(|entry| entry.0 != names::WAIT && entry.0 != names::SIGNAL)
                .collect()
        };
        let (one, two) = (self.before.operands(op), self.after.operands(op));
        self.before.name(op) == self.after.name(op)
            && entries(self.before) == entries(self.after)
            && one.len() == two.len()
            && one.iter().zip(two).all(|(a, b)| {
                a.role == b.role
                    && a.annot == b.annot
                    && (a.value == b.value
                        || self.before.value_type(a.value) == self.after.value_type(b.value))
            })
    }

    fn effects(&mut self) {
        let before = self.before;
        let watched = watched(before, self.func);
        for op in Judge::instructions(before, self.func) {
            if !self.is_gone(op) {
                continue;
            }
            let parent_gone = before.parent(op).is_some_and(|parent| self.is_gone(parent));
            if before.traits(op).terminator && parent_gone {
                continue;
            }
            let code = OpCode::of(before, op);
            let Some(def) = code.map(OpCode::def) else {
                let what = format!("`{}` of an unknown dialect is gone", before.name_text(op));
                self.report(op, &what);
                continue;
            };
            let traits = [
                Trait::Observable,
                Trait::Sync,
                Trait::MustKeep,
                Trait::Control,
                Trait::Terminator,
                Trait::Collective,
            ];
            let kept = traits.iter().any(|&one| def.has(one)) && code != Some(OpCode::Loop);
            let indirect = def.has(Trait::Dma)
                && def.has(Trait::Dynamic)
                && before.operands(op).iter().any(|operand| {
                    let role = def.operands.get(usize::from(operand.role));
                    let ends = |end| role.is_some_and(|role| role.name.ends_with(end));
                    ends("index") || ends("offset")
                });
            let seen = code != Some(OpCode::DmaCopy)
                && before.operands(op).iter().any(|operand| {
                    let role = def.operands.get(usize::from(operand.role));
                    role.is_some_and(|role| role.writes()) && watched.contains(&operand.value)
                });
            let why = match () {
                () if kept => "has effects of its own",
                () if writes_hidden_state(before, op) => "writes hidden state",
                () if indirect => "moves data by an index",
                () if seen => "writes what others may look at",
                () => continue,
            };
            let what = format!("`{}`, which {why}, is gone", self.name(op));
            self.report(op, &what);
        }
    }

    fn values(&mut self) {
        let (one, probes) = View::new(self.before, self.func);
        let (two, other) = View::new(self.after, self.func);
        let mut pairs: Vec<(Op, u32, u32)> = Vec::new();
        for (at, touch) in (0u32..).zip(two.index.touches()) {
            if touch.effect.is_read()
                && self.is_old(touch.op)
                && let Some(&before) = one.reads.get(&touch.operand)
            {
                pairs.push((touch.op, before, at));
            }
        }
        let ends = |view: &View, probes: &[Op]| -> Vec<u32> {
            let touches = (0u32..).zip(view.index.touches());
            touches
                .filter(|(_, touch)| probes.binary_search(&touch.op).is_ok())
                .map(|(at, _)| at)
                .collect()
        };
        let (old_ends, new_ends) = (ends(&one, &probes), ends(&two, &other));
        if old_ends.len() != new_ends.len() {
            self.report(self.func, "a location somebody outside sees is gone");
            return;
        }
        pairs.extend(
            old_ends
                .into_iter()
                .zip(new_ends)
                .map(|(a, b)| (self.func, a, b)),
        );
        for (op, a, b) in pairs {
            self.value(op, (&one, a), (&two, b));
        }
    }

    fn value(&mut self, op: Op, (one, a): (&View, u32), (two, b): (&View, u32)) {
        let (was, is) = (one.writers(a), two.writers(b));
        let same_place = one.value(a) == two.value(b);
        let gone: Vec<Op> = was.0.iter().copied().filter(|&w| self.is_gone(w)).collect();
        let name = |judge: &Judge<'_>| match op == judge.func {
            true => "what is seen where the function ends".to_owned(),
            false => format!("what `{}` reads", judge.name(op)),
        };
        if let Some(&lost) = gone.iter().find(|&&w| !self.is_looked_through(one, w)) {
            let what = format!(
                "{} was written by `{}`, which is gone",
                name(self),
                self.name(lost)
            );
            return self.report(op, &what);
        }
        if gone.is_empty() && same_place {
            if was != is {
                let what = format!("{} has other definitions", name(self));
                self.report(op, &what);
            }
            return;
        }
        let (was, is) = (one.origins(a), two.origins(b));
        if !is.0.is_subset(&was.0) || !is.1.is_subset(&was.1) || is.2 && !was.2 {
            let what = format!("{} comes from elsewhere", name(self));
            self.report(op, &what);
        }
    }

    /// Whether what an instruction that is gone wrote may be found elsewhere: a `dma_copy` that moves
    /// bits, or the reload of what a save that is gone, too, put away.
    fn is_looked_through(&self, one: &View, op: Op) -> bool {
        if !moves_bits(self.before, op) {
            return false;
        }
        let saved = || {
            let reads = one.of_op.get(&op).map_or(&[][..], Vec::as_slice);
            reads.iter().all(|&read| {
                let writers = one.writers(read).0;
                !writers.is_empty() && writers.iter().all(|&writer| self.is_gone(writer))
            })
        };
        match OpCode::of(self.before, op) {
            Some(OpCode::DmaCopy) => true,
            Some(OpCode::Load) => saved(),
            _ => false,
        }
    }

    fn order(&mut self) {
        let has_deps = |ir: &Ir| {
            ir.walk_op(self.func)
                .any(|op| ir.words_cell(COL_DEPS, op).is_some())
        };
        if !has_deps(self.before) && !has_deps(self.after) {
            return;
        }
        let (one, two) = (
            attached(self.before, self.func),
            attached(self.after, self.func),
        );
        let place = |graph: &Graph| -> HashMap<Op, usize> {
            graph
                .ops()
                .iter()
                .enumerate()
                .map(|(at, &op)| (op, at))
                .collect()
        };
        let (in_one, in_two) = (place(&one), place(&two));
        let common: Vec<Op> = one
            .ops()
            .iter()
            .copied()
            .filter(|op| in_two.contains_key(op))
            .collect();
        let step = common.len().div_ceil(SOURCES).max(1);
        let sources: Vec<Op> = common.iter().copied().step_by(step).collect();
        let (a, b) = (Reach::new(&one), Reach::new(&two));
        for chunk in sources.chunks(64) {
            let masks = |reach: &Reach<'_>, at: &HashMap<Op, usize>| {
                let starts: Vec<usize> = chunk.iter().map(|op| at[op]).collect();
                reach.masks(&starts)
            };
            let (was, is) = (masks(&a, &in_one), masks(&b, &in_two));
            for &op in &common {
                let (was, is) = (was[in_one[&op]], is[in_two[&op]]);
                if was != is {
                    let source = chunk[(was ^ is).trailing_zeros() as usize];
                    let verb = if was > is {
                        "no longer follows"
                    } else {
                        "now follows"
                    };
                    let verb = if was & (was ^ is) != 0 {
                        "no longer follows"
                    } else {
                        verb
                    };
                    let what = format!("`{}` {verb} `{}`", self.name(op), self.name(source));
                    self.report(op, &what);
                    return;
                }
            }
        }
    }

    fn semaphores(&mut self) {
        let (was, is) = (tally(self.before, self.func), tally(self.after, self.func));
        if was.0 != is.0 {
            self.report(self.func, "signals are lost or new");
        }
        if was.1 != is.1 {
            self.report(self.func, "waits are lost or new");
        }
    }
}

/// Locations others may look at at any time.
fn watched(ir: &Ir, func: Op) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    let mut aliased: BTreeSet<Str> = BTreeSet::new();
    for op in ir.walk_op(func) {
        if OpCode::of(ir, op) != Some(OpCode::Alloc) {
            continue;
        }
        let view = OpView::new(ir, op);
        let has = |name| ir.attr(op, name).is_some();
        let alias = ir.attr(op, "must_alias").map(|attr| ir.ctx.attr(attr));
        if let Some(bir_dialect::ir::AttrView::Symbol(name)) = alias {
            aliased.insert(name);
        }
        if view.word("space") == Some("shared")
            || view.flag("boundary")
            || has("remote_target")
            || has("written_by_core")
            || has("must_alias")
        {
            found.extend(ir.result(op));
        }
    }
    for op in ir.walk_op(func) {
        let value = ir.result(op);
        let name = value.and_then(|value| ir.value_name(value));
        if OpCode::of(ir, op) == Some(OpCode::Alloc) && name.is_some_and(|n| aliased.contains(&n)) {
            found.extend(value);
        }
    }
    found
}

/// Whether an instruction copies bits as they are: DMA between equal dtypes.
fn moves_bits(ir: &Ir, op: Op) -> bool {
    let code = OpCode::of(ir, op);
    if !matches!(code, Some(OpCode::DmaCopy | OpCode::Load | OpCode::Save)) {
        return false;
    }
    let view = OpView::new(ir, op);
    let dtype = |role| Some(view.access(view.role(role).operand()?)?.1.dtype);
    dtype("dst").is_some() && dtype("dst") == dtype("src")
}

/// Writers, whether something comes from outside, and whether something is undefined.
type Writers = (BTreeSet<Op>, bool, bool);

/// Writers, locations whose bytes come from outside, and whether something is undefined.
type Origins = (BTreeSet<Op>, BTreeSet<Value>, bool);

/// A function's index, with somebody who looks at what is seen where it ends.
struct View {
    ir: Ir,
    index: FunctionIndex,
    /// Reads by operand.
    reads: HashMap<Operand, u32>,
    /// Reads by instruction.
    of_op: HashMap<Op, Vec<u32>>,
    /// Locations by storage: those that are the same bytes by `must_alias`.
    same: HashMap<u32, Vec<Value>>,
}

impl View {
    fn new(ir: &Ir, func: Op) -> (View, Vec<Op>) {
        let mut ir = ir.clone();
        let visible: Vec<Value> = ir
            .walk_op(func)
            .filter(|&op| OpCode::of(&ir, op) == Some(OpCode::Alloc))
            .filter(|&op| {
                let kind = OpView::new(&ir, op).word("kind");
                matches!(kind, Some("output" | "inout" | "input"))
            })
            .filter_map(|op| ir.result(op))
            .collect();
        let name = ir.ctx.op_name("check.end");
        let blocks: Vec<Block> = ir
            .regions(func)
            .iter()
            .flat_map(|&r| ir.blocks(r))
            .collect();
        let mut probes = Vec::new();
        for block in blocks {
            let last = ir.last_op(block).filter(|&op| ir.traits(op).terminator);
            if last.is_some_and(|last| !ir.successors(last).is_empty()) {
                continue;
            }
            for &value in &visible {
                let operand = NewOperand {
                    value,
                    role: 0,
                    annot: Annot::UNIT,
                };
                let new = NewOp {
                    operands: &[operand],
                    ..NewOp::new(name)
                };
                let cursor = last.map_or(Cursor::End(block), Cursor::Before);
                probes.push(ir.insert(cursor, new));
            }
        }
        probes.sort_unstable();
        let index = FunctionIndex::build(&ir, func, Frames::Locations);
        let mut reads = HashMap::new();
        let mut of_op: HashMap<Op, Vec<u32>> = HashMap::new();
        for (at, touch) in (0u32..).zip(index.touches()) {
            if touch.effect.is_read() {
                reads.insert(touch.operand, at);
                of_op.entry(touch.op).or_default().push(at);
            }
        }
        let mut same: HashMap<u32, Vec<Value>> = HashMap::new();
        for location in index.locations() {
            same.entry(location.storage)
                .or_default()
                .push(location.value);
        }
        let view = View {
            ir,
            index,
            reads,
            of_op,
            same,
        };
        (view, probes)
    }

    fn value(&self, touch: u32) -> Value {
        let location = self.index.touches()[touch as usize].location;
        self.index.locations()[location as usize].value
    }

    /// The locations that are the bytes a touch is in.
    fn same_bytes(&self, touch: u32) -> &[Value] {
        let location = self.index.touches()[touch as usize].location;
        let storage = self.index.locations()[location as usize].storage;
        self.same.get(&storage).map_or(&[][..], Vec::as_slice)
    }

    fn writers(&self, touch: u32) -> Writers {
        let (writers, origin) = self.index.reaching(touch);
        let op = |at: &u32| self.index.touches()[*at as usize].op;
        // Who looks at the end writes nothing.
        let is_probe =
            |op: &Op| OpCode::of(&self.ir, *op).is_none() && self.ir.name_text(*op) == "check.end";
        let ops = writers.iter().map(op).filter(|op| !is_probe(op)).collect();
        (ops, origin.outside, origin.undefined)
    }

    /// The same with copies looked through, and by location what comes from outside.
    fn origins(&self, touch: u32) -> Origins {
        let mut found: Origins = (BTreeSet::new(), BTreeSet::new(), false);
        let mut seen: BTreeSet<u32> = BTreeSet::from([touch]);
        let mut todo = vec![touch];
        while let Some(touch) = todo.pop() {
            let (writers, outside, undefined) = self.writers(touch);
            if outside {
                found.1.extend(self.same_bytes(touch));
            }
            found.2 |= undefined;
            for op in writers {
                if !moves_bits(&self.ir, op) {
                    found.0.insert(op);
                    continue;
                }
                for &read in self.of_op.get(&op).map_or(&[][..], Vec::as_slice) {
                    if seen.insert(read) {
                        todo.push(read);
                    }
                }
            }
        }
        found
    }
}

/// Who follows whom.
struct Reach<'a> {
    graph: &'a Graph,
    /// Instructions and sets, a set behind the last of its members.
    order: Vec<Source>,
}

impl<'a> Reach<'a> {
    fn new(graph: &'a Graph) -> Reach<'a> {
        let mut last: Vec<u32> = Vec::with_capacity(graph.set_count() as usize);
        for set in 0..graph.set_count() {
            let member = |&source: &Source| match source.is_set() {
                true => last[source.number() as usize],
                false => source.number(),
            };
            last.push(graph.members(set).iter().map(member).max().unwrap_or(0));
        }
        let count = graph.ops().len() as u32;
        let mut order: Vec<(u32, bool, u32)> = (0..count).map(|at| (at, false, at)).collect();
        order.extend((0u32..).zip(&last).map(|(set, &at)| (at, true, set)));
        order.sort_unstable();
        let source = |&(_, is_set, number): &(u32, bool, u32)| match is_set {
            true => Source::set(number),
            false => Source::instruction(number),
        };
        Reach {
            graph,
            order: order.iter().map(source).collect(),
        }
    }

    /// Per instruction, which of up to 64 others it follows.
    fn masks(&self, starts: &[usize]) -> Vec<u64> {
        let count = self.graph.ops().len();
        let mut own = vec![0u64; count];
        for (bit, &at) in starts.iter().enumerate() {
            own[at] |= 1 << bit;
        }
        let mut masks = vec![0u64; count + self.graph.set_count() as usize];
        let mut changed = true;
        while changed {
            changed = false;
            for &node in &self.order {
                let from = |source: Source| match source.is_set() {
                    true => masks[count + source.number() as usize],
                    false => {
                        let at = source.number() as usize;
                        masks[at] | own[at]
                    }
                };
                let at = node.number();
                let (place, mask) = match node.is_set() {
                    true => {
                        let members = self.graph.members(at).iter();
                        (count + at as usize, members.fold(0, |m, &s| m | from(s)))
                    }
                    false => {
                        let edges = self.graph.edges(at).iter();
                        (
                            at as usize,
                            edges.fold(0, |m, edge| m | from(edge.source())),
                        )
                    }
                };
                // Edges lead up, but for branches: those need another round.
                changed |= masks[place] != mask;
                masks[place] = mask;
            }
        }
        masks.truncate(count);
        masks
    }
}

/// Per block and semaphore, the sum of what raises it, and all other signals; per block, stream and
/// semaphore, the highest value waited for.
type Signals = BTreeMap<(Option<Block>, u32), (i64, Vec<(u8, i64)>)>;
type Waits = BTreeMap<(Option<Block>, String, u32), i64>;

fn tally(ir: &Ir, func: Op) -> (Signals, Waits) {
    let (mut signals, mut waits) = (Signals::new(), Waits::new());
    let target = target_of(ir, func);
    for op in ir.walk_op(func) {
        let list = |name| {
            let attr = ir.ctx.dict_get(ir.dict(op), name);
            attr.and_then(|attr| Sem::list(&ir.ctx, attr))
                .unwrap_or_default()
        };
        for signal in list(names::SIGNAL) {
            let known = signals.entry((ir.block(op), signal.id)).or_default();
            match signal.op {
                SemOp::Inc => known.0 += signal.value,
                other => known.1.push((other as u8, signal.value)),
            }
        }
        for wait in list(names::WAIT) {
            let stream = format!("{:?}", Stream::of(ir, op, target));
            let known = waits
                .entry((ir.block(op), stream, wait.id))
                .or_insert(i64::MIN);
            *known = wait.value.max(*known);
        }
    }
    (signals, waits)
}
