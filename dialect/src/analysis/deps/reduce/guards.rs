//! Who is executed for certain wherever another is.
//!
//! A dependence follows from others only along instructions that are executed: a path through one that
//! stands in a branch, or in a loop that may make no trip, orders nobody where that one is left out. So
//! the function is cut into *parts*, which are executed as a whole or not at all, and form a tree: a
//! part is executed only where those around it are. A path counts that leads through parts around its
//! start or its end.
//!
//! Most edges lead from a part to itself or further in, and paths of such edges count wherever they end.
//! They are reduced first, as if there were no others. Each of those that leave a part is then searched
//! for a path that goes out and in again, as long as there are steps for it: what is not searched for
//! stays.

use hashbrown::HashMap;

use super::super::graph::{Edge, Graph, Source};
use super::super::sets::{DIRECT, Sets};
use super::reach::{Limits, Reach};
use super::{Reduced, reduce};
use crate::bir::loops::makes_a_trip;
use crate::ir::{Block, Ir, Op};

/// Reduces the graph of a function as [`reduce`] does, by paths alone that are executed wherever the
/// instruction they lead to is.
///
/// # Errors
///
/// An instruction that depends on itself, if one does.
pub fn reduce_in(ir: &Ir, func: Op, graph: &Graph) -> Result<Reduced, Op> {
    let Some(parts) = Parts::of(ir, func, &graph.ops) else {
        return reduce(graph);
    };
    // Circles may go over edges that lead nowhere here.
    Reach::new(graph, Limits { steps: 0, trees: 0 })?;
    let (within, leaving) = parts.split(graph);
    let mut reduced = reduce(&within)?;
    let listed = |graph: &Graph| -> Vec<(u32, Edge)> {
        let of = |at: u32| graph.edges(at).iter().map(move |&edge| (at, edge));
        (0..graph.ops.len() as u32).flat_map(of).collect()
    };
    let within = listed(&reduced.graph);
    let mut all = within.clone();
    all.extend_from_slice(&leaving);
    reduced.graph.set_edges(all);
    let mut search = Search::new(&parts, &reduced.graph);
    let needed = search.needed(&leaving);
    let (made, dropped) = (search.made, search.dropped);
    if dropped > 0 {
        let graph = &mut reduced.graph;
        for members in &made {
            graph.members.extend_from_slice(members);
            graph.set_starts.push(graph.members.len() as u32);
        }
        let mut all = within;
        all.extend(needed);
        graph.set_edges(all);
        reduced.dropped += dropped;
    }
    Ok(reduced)
}

/// Finds the edges that leave a part and follow from others.
struct Search<'a> {
    parts: &'a Parts,
    graph: &'a Graph,
    /// Whether all edges lead from smaller numbers to larger ones: then none before the first wanted is
    /// looked at.
    leads_up: bool,
    /// Edges that may still be looked at; what is not searched for stays.
    steps: usize,
    /// The search that looked last at each instruction, reached it from another, and looked at each set.
    open: Vec<u32>,
    hit: Vec<u32>,
    sets: Vec<u32>,
    search: u32,
    stack: Vec<u32>,
    /// Sets made of what is needed of others, and their numbers.
    made: Vec<Vec<Source>>,
    number_of: HashMap<Vec<Source>, u32>,
    /// Edges that follow from others, one into a set counted for each member.
    dropped: u64,
}

/// Edges looked at per edge and instruction of the graph.
const STEPS: usize = 16;

/// Members of sets an instruction may depend on and be searched.
const MEMBERS: usize = 1 << 9;

impl<'a> Search<'a> {
    fn new(parts: &'a Parts, graph: &'a Graph) -> Search<'a> {
        let count = graph.ops.len();
        let mut last = vec![0u32; graph.set_count() as usize];
        for set in 0..last.len() {
            let number = |source: &Source| match source.is_set() {
                true => last[source.number() as usize],
                false => source.number(),
            };
            let members = graph.members(set as u32).iter().map(number);
            last[set] = members.max().unwrap_or(0);
        }
        let leads_up = (0..count as u32).all(|at| {
            graph.edges(at).iter().all(|edge| match edge.source() {
                source if source.is_set() => last[source.number() as usize] < at,
                source => source.number() < at,
            })
        });
        Search {
            parts,
            graph,
            leads_up,
            steps: STEPS * (count + graph.edge_count() + graph.members.len()),
            open: vec![0; count],
            hit: vec![0; count],
            sets: vec![0; last.len()],
            search: 0,
            stack: Vec::new(),
            made: Vec::new(),
            number_of: HashMap::new(),
            dropped: 0,
        }
    }

    /// Of edges, sorted by where they lead, those that do not follow from others.
    fn needed(&mut self, leaving: &[(u32, Edge)]) -> Vec<(u32, Edge)> {
        let mut needed = Vec::with_capacity(leaving.len());
        for edges in leaving.chunk_by(|a, b| a.0 == b.0) {
            self.edges_into(edges, &mut needed);
        }
        needed
    }

    fn edges_into(&mut self, edges: &[(u32, Edge)], needed: &mut Vec<(u32, Edge)>) {
        let at = edges[0].0;
        // Who is meant, edge by edge.
        let mut sources: Vec<(usize, u32)> = Vec::new();
        for (number, &(_, edge)) in edges.iter().enumerate() {
            let room = MEMBERS.saturating_sub(sources.len());
            let Some(members) = self.members(edge.source(), room) else {
                return needed.extend_from_slice(edges);
            };
            sources.extend(members.into_iter().map(|member| (number, member)));
        }
        sources.sort_unstable_by_key(|&(number, source)| {
            (self.parts.of[source as usize], number, source)
        });
        let mut left: Vec<(usize, u32)> = Vec::with_capacity(sources.len());
        for of_part in
            sources.chunk_by(|a, b| self.parts.of[a.1 as usize] == self.parts.of[b.1 as usize])
        {
            let first = of_part.iter().map(|source| source.1).min().unwrap_or(0);
            let done = self.search(at, first, self.parts.of[of_part[0].1 as usize]);
            let is_left =
                |source: &&(usize, u32)| !done || self.hit[source.1 as usize] != self.search;
            left.extend(of_part.iter().filter(is_left));
        }
        left.sort_unstable();
        for (number, &(_, edge)) in edges.iter().enumerate() {
            let from = left.partition_point(|one| one.0 < number);
            let to = left.partition_point(|one| one.0 <= number);
            let all = sources.iter().filter(|one| one.0 == number).count();
            let gone = all - (to - from);
            self.dropped += gone as u64;
            if gone == 0 {
                needed.push((at, edge));
                continue;
            }
            let mut rest: Vec<Source> = left[from..to]
                .iter()
                .map(|one| Source::instruction(one.1))
                .collect();
            if rest.len() > DIRECT {
                rest = vec![self.set_of(rest)];
            }
            needed.extend(
                rest.into_iter()
                    .map(|source| (at, Edge::new(edge.kind(), source))),
            );
        }
    }

    /// The set of some instructions.
    fn set_of(&mut self, members: Vec<Source>) -> Source {
        let next = self.graph.set_count() + self.made.len() as u32;
        let number = *self.number_of.entry(members.clone()).or_insert(next);
        if number == next {
            self.made.push(members);
        }
        Source::set(number)
    }

    /// Instructions a source stands for; `None` where they are too many.
    fn members(&mut self, source: Source, room: usize) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        let mut open = vec![source];
        while let Some(source) = open.pop() {
            self.steps = self.steps.saturating_sub(1);
            if !source.is_set() {
                found.push(source.number());
            } else if open.len() < MEMBERS {
                open.extend_from_slice(self.graph.members(source.number()));
            }
            if found.len() > room || open.len() >= MEMBERS || self.steps == 0 {
                return None;
            }
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Marks as hit who leads to `at` through others in parts around `part` or around that of `at`, back to
    /// `first`; whether there were steps enough.
    fn search(&mut self, at: u32, first: u32, part: u32) -> bool {
        self.search += 1;
        let own = self.parts.of[at as usize];
        let first = if self.leads_up { first } else { 0 };
        self.stack.clear();
        self.spread(at, false, (first, part, own));
        // Sets `at` names are looked at again from others.
        self.search += 1;
        let starts = std::mem::take(&mut self.stack);
        for &start in &starts {
            self.open[start as usize] = self.search;
        }
        self.stack = starts;
        while let Some(here) = self.stack.pop() {
            if self.steps == 0 {
                return false;
            }
            self.spread(here, true, (first, part, own));
        }
        true
    }

    /// Looks at whom an instruction depends on.
    fn spread(&mut self, at: u32, marks: bool, (first, part, own): (u32, u32, u32)) {
        let graph = self.graph;
        let mut open: Vec<Source> = graph.edges(at).iter().map(|edge| edge.source()).collect();
        while let Some(source) = open.pop() {
            self.steps = self.steps.saturating_sub(1);
            let number = source.number();
            if source.is_set() {
                let seen = &mut self.sets[number as usize];
                if *seen != self.search {
                    *seen = self.search;
                    open.extend_from_slice(graph.members(number));
                }
                continue;
            }
            if marks {
                self.hit[number as usize] = self.search;
            }
            let here = self.parts.of[number as usize];
            let counts = self.parts.is_around(here, part) || self.parts.is_around(here, own);
            if number >= first && counts && self.open[number as usize] != self.search {
                self.open[number as usize] = self.search;
                self.stack.push(number);
            }
        }
    }
}

/// The parts of a function: a tree, whose root is executed always.
struct Parts {
    /// Per instruction of the graph, its part.
    of: Vec<u32>,
    /// Per part, its number in the order of the tree, and of how many it is the first.
    spans: Vec<(u32, u32)>,
    /// Per part, the one around it; the root is around itself.
    parents: Vec<u32>,
}

impl Parts {
    /// `None` where there is but one.
    fn of(ir: &Ir, func: Op, ops: &[Op]) -> Option<Parts> {
        let mut of_block: HashMap<Block, u32> = HashMap::new();
        let mut parents = vec![0u32];
        for op in ir.walk_op(func) {
            let around = ir.block(op).and_then(|block| of_block.get(&block).copied());
            let around = around.unwrap_or(0);
            let may_be_left_out = op != func && !makes_a_trip(ir, op);
            for &region in ir.regions(op) {
                let mut part = around;
                if may_be_left_out {
                    parents.push(around);
                    part = parents.len() as u32 - 1;
                }
                for (number, block) in ir.blocks(region).enumerate() {
                    let mut own = part;
                    if number > 0 {
                        parents.push(part);
                        own = parents.len() as u32 - 1;
                    }
                    of_block.insert(block, own);
                }
            }
        }
        if parents.len() == 1 {
            return None;
        }
        // Parents come before their children.
        let mut spans = vec![(0u32, 1u32); parents.len()];
        for at in (1..parents.len()).rev() {
            spans[parents[at] as usize].1 += spans[at].1;
        }
        let mut next = vec![1u32; parents.len()];
        for at in 1..parents.len() {
            let place = &mut next[parents[at] as usize];
            spans[at].0 = *place;
            *place += spans[at].1;
            next[at] = spans[at].0 + 1;
        }
        let part = |&op: &Op| ir.block(op).and_then(|block| of_block.get(&block).copied());
        Some(Parts {
            of: ops.iter().map(|op| part(op).unwrap_or(0)).collect(),
            spans,
            parents,
        })
    }

    /// Whether an instruction is executed wherever those of a part are.
    fn is_certain(&self, number: u32, part: u32) -> bool {
        self.is_around(self.of[number as usize], part)
    }

    /// Whether a part is another, or around it.
    fn is_around(&self, part: u32, other: u32) -> bool {
        let (first, count) = self.spans[part as usize];
        (first..first + count).contains(&self.spans[other as usize].0)
    }

    /// The graph of the edges that lead on, and the others, with sets divided alike.
    fn split(&self, graph: &Graph) -> (Graph, Vec<(u32, Edge)>) {
        // Per set, the smallest and the largest number of its members' parts.
        let mut hulls = vec![(u32::MAX, 0u32); graph.set_count() as usize];
        for set in 0..hulls.len() {
            for member in graph.members(set as u32) {
                let (low, high) = match member.is_set() {
                    true => hulls[member.number() as usize],
                    false => {
                        let number = self.spans[self.of[member.number() as usize] as usize].0;
                        (number, number)
                    }
                };
                let hull = &mut hulls[set];
                *hull = (hull.0.min(low), hull.1.max(high));
            }
        }
        let mut divide = Divide {
            parts: self,
            graph,
            hulls,
            made: Sets {
                starts: graph.set_starts.clone(),
                members: graph.members.clone(),
            },
            known: HashMap::default(),
        };
        let (mut leading, mut leaving) = (Vec::new(), Vec::new());
        for (at, &part) in (0u32..).zip(&self.of) {
            for edge in graph.edges(at) {
                let (within, without) = divide.source(edge.source(), part);
                let of = |source| (at, Edge::new(edge.kind(), source));
                leading.extend(within.map(of));
                leaving.extend(without.map(of));
            }
        }
        let mut within = Graph {
            ops: graph.ops.clone(),
            capped: graph.capped,
            ..Graph::default()
        };
        divide.made.move_into(&mut within);
        within.set_edges(leading);
        (within, leaving)
    }
}

/// A set in two: who is executed wherever a part is, and who may not be.
type Halves = (Option<Source>, Option<Source>);

struct Divide<'a> {
    parts: &'a Parts,
    graph: &'a Graph,
    hulls: Vec<(u32, u32)>,
    made: Sets,
    /// By set, and the part as [`Divide::seen_by`] it.
    known: HashMap<(u32, u32), Halves, foldhash::fast::FixedState>,
}

impl Divide<'_> {
    fn source(&mut self, source: Source, part: u32) -> Halves {
        let number = source.number();
        if !source.is_set() {
            return match self.parts.is_certain(number, part) {
                true => (Some(source), None),
                false => (None, Some(source)),
            };
        }
        let graph = self.graph;
        let mut todo = vec![(number, part)];
        while let Some(&(set, part)) = todo.last() {
            let Some(part) = self.seen_by(set, part) else {
                todo.pop();
                continue;
            };
            if self.known.contains_key(&(set, part)) {
                todo.pop();
                continue;
            }
            let is_open =
                |member: &&Source| member.is_set() && self.halves(member.number(), part).is_none();
            let open = graph.members(set).iter().filter(is_open);
            let before = todo.len();
            todo.extend(open.map(|member| (member.number(), part)));
            if todo.len() > before {
                continue;
            }
            todo.pop();
            let (mut certain, mut others) = (Vec::new(), Vec::new());
            for &member in graph.members(set) {
                let halves = match member.is_set() {
                    true => self.halves(member.number(), part),
                    false => Some(self.source(member, part)),
                };
                let (within, without) = halves.unwrap_or_default();
                certain.extend(within);
                others.extend(without);
            }
            let halves = match (certain.is_empty(), others.is_empty()) {
                (false, true) => (Some(Source::set(set)), None),
                (true, _) => (None, Some(Source::set(set))),
                (false, false) => (Some(self.half(&certain)), Some(self.half(&others))),
            };
            self.known.insert((set, part), halves);
        }
        self.halves(number, part).unwrap_or_default()
    }

    /// What stands for some sources: where there is one, itself, for sets within sets are many.
    fn half(&mut self, sources: &[Source]) -> Source {
        match sources {
            &[one] => one,
            sources => self.made.make(sources),
        }
    }

    /// The halves of a set, once it is known.
    fn halves(&self, set: u32, part: u32) -> Option<Halves> {
        match self.seen_by(set, part) {
            Some(part) => self.known.get(&(set, part)).copied(),
            None => Some((None, Some(Source::set(set)))),
        }
    }

    /// The innermost part around one, or that itself, that a member of a set may be in: further in there
    /// are none, so that many parts see a set alike. `None` where nothing around has any.
    fn seen_by(&self, set: u32, mut part: u32) -> Option<u32> {
        let (low, high) = self.hulls[set as usize];
        let number = |part: u32| self.parts.spans[part as usize].0;
        while number(part) > high {
            part = self.parts.parents[part as usize];
        }
        (number(part) >= low).then_some(part)
    }
}
