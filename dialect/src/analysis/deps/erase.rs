//! Erasing instructions so that nobody behind them misses them.
//!
//! Formally, of a function before and after [`erase`]:
//!
//! * *edges* – a survivor depends on another, directly or not, if and only if it did before. What
//!   an erased instruction depended on is handed to those who depended on it: an edge `a -> c`
//!   stands for `a -> b -> c`, and is
//!   - OUTPUT for OUTPUT after OUTPUT, and for FLOW then ANTI: `c` overwrites what `a` wrote;
//!   - ANTI for ANTI then OUTPUT: `c` overwrites what `a` read;
//!   - ORDERED otherwise: the program says so, and nothing more is known.
//! * *semaphores* – each wait and each signal is still there once, and between the same survivors
//!   of its engine or queue: the program behaves as if erased instructions took no time. Waits
//!   go on to the next instruction of the engine, signals back to the one before; where neither
//!   can take them, an `event_semaphore` stays.
//! * *names* – no `deps`, `depset` or result names an erased instruction.
//!
//! Cost: one walk over the function and, where an erased instruction takes part in dependences,
//! one rewriting of them; linear in instructions, edges and set members.

use super::graph::{Edge, Graph, Kinds, Source};
use super::semaphores;
use super::sets::{DIRECT, Sets};
use super::text::{attach, attached};
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, DepKind, names};
use crate::ir::{Dict, Ir, Op};

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Erased {
    /// Instructions removed, those in erased loops included.
    pub removed: u64,
    /// Of these, those that left an `event_semaphore` in their place.
    pub left_semaphores: u64,
    /// Instructions that had to stay: somebody who stays uses what they define, they are loops that
    /// wait or signal, themselves or within, or they are barriers, which order all engines.
    pub refused: Vec<Op>,
}

/// Erases instructions of a function, with all they hold, and hands over what others owe to them
/// and they to others. No terminators, allocations or sets; in any order.
pub fn erase(ir: &mut Ir, func: Op, dead: &[Op]) -> Erased {
    let mut done = Erased::default();
    if dead.is_empty() {
        return done;
    }
    let mut marked = vec![false; ir.op_rows()];
    let mut roots: Vec<Op> = Vec::with_capacity(dead.len());
    let mut has_loops = false;
    for &op in dead {
        if ir.is_erased(op) || std::mem::replace(&mut marked[op.index()], true) {
            continue;
        }
        has_loops |= !ir.regions(op).is_empty();
        roots.push(op);
    }
    // In text order, unless they came so.
    if !in_one_block(ir, &roots) {
        let all = ir.walk_op(func).filter(|op| marked[op.index()]);
        roots = all.collect();
    }
    if has_loops {
        let walk = |op: Op| ir.walk_op(op).skip(1).collect::<Vec<_>>();
        for inner in roots.iter().flat_map(|&op| walk(op)) {
            marked[inner.index()] = true;
        }
        // What goes with its loop does not go by itself.
        roots.retain(|&op| ir.parent(op).is_none_or(|parent| !marked[parent.index()]));
    }
    refuse(ir, &mut roots, &mut marked, &mut done);
    if Sem::any(ir, &roots) {
        done.left_semaphores = semaphores::hand_over(ir, func, &roots, &mut marked);
    }
    let takes_part =
        |op: Op| ir.int_cell(COL_ID, op).is_some() || ir.words_cell(COL_DEPS, op).is_some();
    let dependent = roots.iter().any(|&op| match ir.regions(op).is_empty() {
        true => takes_part(op),
        false => ir.walk_op(op).any(takes_part),
    });
    let graph = dependent.then(|| without(&attached(ir, func), &marked));
    for &op in roots.iter().rev() {
        let inside = match ir.regions(op).is_empty() {
            true => 1,
            // Ends of blocks are not counted.
            false => ir
                .walk_op(op)
                .filter(|&op| !ir.traits(op).terminator)
                .count() as u64,
        };
        if ir.erase(op) {
            done.removed += inside;
        }
    }
    if let Some(graph) = graph {
        attach(ir, func, &graph, Kinds::ALL);
    }
    done
}

/// Whether operations stand in one block, in order.
fn in_one_block(ir: &Ir, ops: &[Op]) -> bool {
    let block = ops.first().map(|&op| ir.block(op));
    ops.iter().all(|&op| Some(ir.block(op)) == block)
        && ops.is_sorted_by_key(|&op| ir.order_in_block(op))
}

/// Takes out what cannot go. Users stand behind what they use, so the last decides first.
fn refuse(ir: &Ir, roots: &mut Vec<Op>, marked: &mut [bool], done: &mut Erased) {
    let mut kept = false;
    for &op in roots.iter().rev() {
        let used = ir
            .results(op)
            .flat_map(|value| ir.uses(value))
            .any(|operand| !marked[ir.operand(operand).owner.index()]);
        // A loop repeats what it waits for; what no engine executes hands nothing on.
        let is_plain = ir.regions(op).is_empty()
            && OpCode::of(ir, op).is_some_and(|code| code.def().engines.is_some());
        let is_barrier = OpCode::of(ir, op) == Some(OpCode::AllEngineBarrier);
        if used || is_barrier || !is_plain && ir.walk_op(op).any(|inner| Sem::has(ir, inner)) {
            kept = true;
            done.refused.push(op);
            for inner in ir.walk_op(op).collect::<Vec<_>>() {
                marked[inner.index()] = false;
            }
        }
    }
    if kept {
        roots.retain(|op| marked[op.index()]);
        done.refused.reverse();
    }
}

/// Whether instructions wait or signal, looked up once per dictionary.
struct Sem;

impl Sem {
    fn in_dict(ir: &Ir, dict: Dict) -> bool {
        let has = |name| ir.ctx.dict_get(dict, name).is_some();
        dict != Dict::EMPTY && (has(names::WAIT) || has(names::SIGNAL))
    }

    fn has(ir: &Ir, op: Op) -> bool {
        Sem::in_dict(ir, ir.dict(op))
    }

    fn any(ir: &Ir, ops: &[Op]) -> bool {
        let mut last = None;
        ops.iter().any(|&op| {
            let dict = ir.dict(op);
            last.replace(dict) != Some(dict) && Sem::in_dict(ir, dict)
        })
    }
}

/// The kind of an edge that stands for two.
fn compose(first: DepKind, second: DepKind) -> DepKind {
    match (first, second) {
        (DepKind::Output, DepKind::Output) | (DepKind::Flow, DepKind::Anti) => DepKind::Output,
        (DepKind::Anti, DepKind::Output) => DepKind::Anti,
        _ => DepKind::Ordered,
    }
}

/// What a node that is no more stood for, by the kind of the edge that leads there.
#[derive(Clone, Default)]
struct Handed {
    by_kind: [Vec<Source>; 4],
    /// Of a set, what is left of it.
    rest: Option<Source>,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Open,
    Done,
}

struct Contraction<'a> {
    old: &'a Graph,
    /// Per old instruction, its new number; `u32::MAX` where it is erased.
    number: Vec<u32>,
    sets: Sets,
    /// Per old instruction that is erased, then per old set.
    handed: Vec<Handed>,
    /// Per old instruction, its place in `handed`.
    place: Vec<u32>,
    first_set: u32,
}

/// A graph without the instructions marked, reachability between the others unchanged.
fn without(old: &Graph, marked: &[bool]) -> Graph {
    let mut graph = Graph::default();
    let mut number = vec![u32::MAX; old.ops.len()];
    let mut place = vec![u32::MAX; old.ops.len()];
    let mut erased = 0u32;
    for (at, &op) in old.ops.iter().enumerate() {
        match marked[op.index()] {
            true => {
                place[at] = erased;
                erased += 1;
            }
            false => {
                number[at] = graph.ops.len() as u32;
                graph.ops.push(op);
            }
        }
    }
    let mut work = Contraction {
        old,
        number,
        sets: Sets::default(),
        handed: vec![Handed::default(); (erased + old.set_count()) as usize],
        place,
        first_set: erased,
    };
    let mut raw: Vec<(u32, Edge)> = Vec::with_capacity(old.edges.len());
    let mut own: Vec<(Edge, bool)> = Vec::new();
    for at in 0..old.ops.len() as u32 {
        let to = work.number[at as usize];
        if to == u32::MAX {
            continue;
        }
        own.clear();
        for &edge in old.edges(at) {
            let mut found = |kind, source, handed| own.push((Edge::new(kind, source), handed));
            work.edge(edge, &mut found);
        }
        // Edges sort by kind: of what was handed on, ORDERED adds nothing to a reason.
        own.sort_unstable();
        own.dedup_by_key(|pair| pair.0);
        for nth in 0..own.len() {
            let (edge, handed) = own[nth];
            let same = |other: &(Edge, bool)| other.0.source() == edge.source();
            if !(handed && edge.kind() == DepKind::Ordered && own[..nth].iter().any(same)) {
                raw.push((to, edge));
            }
        }
    }
    work.sets.move_into(&mut graph);
    graph.set_edges(raw);
    graph
}

impl Contraction<'_> {
    fn place(&self, source: Source) -> u32 {
        match source.is_set() {
            true => self.first_set + source.number(),
            false => self.place[source.number() as usize],
        }
    }

    /// What an edge leads to now, and whether it was handed on by somebody erased.
    fn edge(&mut self, edge: Edge, found: &mut impl FnMut(DepKind, Source, bool)) {
        let source = edge.source();
        let place = self.place(source);
        if place == u32::MAX {
            let new = self.number[source.number() as usize];
            found(edge.kind(), Source::instruction(new), false);
            return;
        }
        self.resolve(source);
        let handed = &self.handed[place as usize];
        if let Some(rest) = handed.rest {
            found(edge.kind(), rest, false);
        }
        for (&first, list) in DepKind::ALL.iter().zip(&handed.by_kind) {
            for &source in list {
                found(compose(first, edge.kind()), source, true);
            }
        }
    }

    /// What a node depends on, as edges; members of a set have no kind of their own.
    fn before(&self, source: Source, nth: usize) -> Option<(Option<DepKind>, Source)> {
        match source.is_set() {
            true => Some((None, *self.old.members(source.number()).get(nth)?)),
            false => {
                let edge = self.old.edges(source.number()).get(nth)?;
                Some((Some(edge.kind()), edge.source()))
            }
        }
    }

    /// Finds out what an erased instruction, or a set, stands for, and before it all it needs.
    fn resolve(&mut self, source: Source) {
        let mut stack: Vec<(Source, usize)> = vec![(source, 0)];
        while let Some(&mut (node, ref mut nth)) = stack.last_mut() {
            let at = *nth;
            *nth += 1;
            let place = self.place(node) as usize;
            if self.handed[place].state == State::Done {
                stack.pop();
                continue;
            }
            self.handed[place].state = State::Open;
            match self.before(node, at) {
                Some((_, inner)) => {
                    let place = self.place(inner);
                    // What leads back to itself is no edge the verifier lets through.
                    if place != u32::MAX && self.handed[place as usize].state == State::New {
                        stack.push((inner, 0));
                    }
                }
                None => {
                    self.finish(node);
                    stack.pop();
                }
            }
        }
    }

    fn finish(&mut self, node: Source) {
        let mut made = Handed {
            state: State::Done,
            ..Handed::default()
        };
        let mut rest: Vec<Source> = Vec::new();
        let mut nth = 0;
        while let Some((kind, inner)) = self.before(node, nth) {
            nth += 1;
            let place = self.place(inner);
            let whole = match place {
                u32::MAX => Some(Source::instruction(self.number[inner.number() as usize])),
                place => self.handed[place as usize].rest,
            };
            match (whole, kind) {
                (Some(whole), Some(kind)) => made.by_kind[kind as usize].push(whole),
                (Some(whole), None) => rest.push(whole),
                (None, _) => {}
            }
            if place == u32::MAX {
                continue;
            }
            for (&first, list) in DepKind::ALL
                .iter()
                .zip(&self.handed[place as usize].by_kind)
            {
                let to = kind.map_or(first, |second| compose(first, second));
                made.by_kind[to as usize].extend_from_slice(list);
            }
        }
        for list in &mut made.by_kind {
            list.sort_unstable();
            list.dedup();
            self.sets.freeze(list);
        }
        if node.is_set() && !rest.is_empty() {
            // A set of one is its member, unless it was written so.
            made.rest = Some(match rest[..] {
                [one] if self.old.members(node.number()).len() > 1 => one,
                _ => self.sets.make(&rest),
            });
        }
        debug_assert!(made.by_kind.iter().all(|list| list.len() <= DIRECT));
        let place = self.place(node) as usize;
        self.handed[place] = made;
    }
}
