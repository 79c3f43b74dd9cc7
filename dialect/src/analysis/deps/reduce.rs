//! The transitive reduction of a graph with join nodes.
//!
//! Formally: of the pairs `u -> v` of the expanded graph exactly those stay for which no other
//! `u' -> v` of it has a path `u -> .. -> u'`. In an acyclic graph that is the one smallest set of
//! pairs with the same paths. A pair of several kinds keeps the first of FLOW, ANTI, OUTPUT,
//! ORDERED.
//!
//! Whether one instruction reaches another is asked of a search that goes back through the edges
//! and is cut short by two numberings: nodes are numbered in the postorder of a walk back, so all
//! that a node depends on lies in one interval of numbers at its end; a node outside of the
//! interval is never met. The walks take edges in opposite orders, so what one cannot tell apart
//! the other mostly can.

use super::graph::{Edge, Graph, Source};
use super::sets::Sets;
use crate::ir::Op;

/// Sources an instruction may have before all of them are looked for in one search.
const PAIRWISE: usize = 12;

/// What [`reduce`] found.
#[derive(Debug)]
pub struct Reduced {
    /// The graph, reduced.
    pub graph: Graph,
    /// Expanded edges dropped; edges into a set that stays are not counted one by one.
    pub dropped: u64,
}

/// Reduces a graph; an instruction on a cycle where there is one.
///
/// # Errors
///
/// An instruction that depends on itself, if one does.
pub fn reduce(graph: &Graph) -> Result<Reduced, Op> {
    let mut work = Work::new(graph)?;
    let mut sets: Vec<Option<Normal>> = vec![None; graph.set_count() as usize];
    let mut made = Sets {
        starts: graph.set_starts.clone(),
        members: graph.members.clone(),
    };
    let mut raw: Vec<(u32, Edge)> = Vec::with_capacity(graph.edges.len());
    let mut dropped = 0u64;
    for at in 0..graph.ops.len() as u32 {
        let edges = graph.edges(at);
        if let [edge] = edges
            && !edge.source().is_set()
        {
            raw.push((at, *edge));
            continue;
        }
        dropped += work.instruction(at, edges, &mut sets, &mut made, &mut raw);
    }
    let mut reduced = Graph {
        ops: graph.ops.clone(),
        capped: graph.capped,
        ..Graph::default()
    };
    made.move_into(&mut reduced);
    reduced.set_edges(raw);
    Ok(Reduced {
        graph: reduced,
        dropped,
    })
}

/// What is left of a set by itself.
#[derive(Clone)]
enum Normal {
    /// All of it.
    Whole,
    /// These instructions.
    Part(Vec<u32>),
}

/// Where a node stands in a walk back: all it depends on, itself included.
#[derive(Clone, Copy, Default)]
struct Interval {
    low: u32,
    own: u32,
}

struct Work<'a> {
    graph: &'a Graph,
    /// Per node, instructions first, then sets: its place in a topological order.
    place: Vec<u32>,
    walks: [Vec<Interval>; 2],
    /// Per set, the smallest and largest number of a member in each walk.
    spans: [Vec<(u32, u32)>; 2],
    seen: Vec<u32>,
    stamp: u32,
    stack: Vec<u32>,
}

impl<'a> Work<'a> {
    fn new(graph: &'a Graph) -> Result<Work<'a>, Op> {
        let nodes = graph.ops.len() + graph.set_count() as usize;
        let mut work = Work {
            graph,
            place: vec![0; nodes],
            walks: [
                vec![Interval::default(); nodes],
                vec![Interval::default(); nodes],
            ],
            spans: [Vec::new(), Vec::new()],
            seen: vec![0; nodes],
            stamp: 0,
            stack: Vec::new(),
        };
        work.walk_back(0)?;
        work.walk_back(1)?;
        for (place, interval) in work.place.iter_mut().zip(&work.walks[0]) {
            // A postorder of the walk back is a topological order.
            *place = interval.own;
        }
        for walk in 0..2 {
            let mut spans: Vec<(u32, u32)> = Vec::with_capacity(graph.set_count() as usize);
            for set in 0..graph.set_count() {
                let mut span = (u32::MAX, 0);
                for &member in graph.members(set) {
                    let (low, high) = match member.is_set() {
                        true => spans[member.number() as usize],
                        false => {
                            let own = work.walks[walk][member.number() as usize].own;
                            (own, own)
                        }
                    };
                    span = (span.0.min(low), span.1.max(high));
                }
                spans.push(span);
            }
            work.spans[walk] = spans;
        }
        Ok(work)
    }

    fn node(&self, source: Source) -> u32 {
        match source.is_set() {
            true => self.graph.ops.len() as u32 + source.number(),
            false => source.number(),
        }
    }

    /// The `nth` node a node depends on, in the order of a walk.
    fn before(&self, node: u32, nth: u32, walk: usize) -> Option<u32> {
        let instructions = self.graph.ops.len() as u32;
        let nth = nth as usize;
        let source = if node < instructions {
            let edges = self.graph.edges(node);
            let at = match walk {
                0 => nth,
                _ => edges.len().checked_sub(nth + 1)?,
            };
            edges.get(at)?.source()
        } else {
            let members = self.graph.members(node - instructions);
            let at = match walk {
                0 => nth,
                _ => members.len().checked_sub(nth + 1)?,
            };
            *members.get(at)?
        };
        Some(self.node(source))
    }

    /// Numbers all nodes behind what they depend on.
    fn walk_back(&mut self, walk: usize) -> Result<(), Op> {
        const OPEN: u32 = u32::MAX;
        let nodes = self.place.len() as u32;
        let mut next = 0u32;
        let mut state: Vec<u32> = vec![0; nodes as usize];
        let mut stack: Vec<(u32, u32, u32)> = Vec::new();
        for at in 0..nodes {
            let root = if walk == 0 { at } else { nodes - 1 - at };
            if state[root as usize] != 0 {
                continue;
            }
            state[root as usize] = OPEN;
            stack.push((root, 0, u32::MAX));
            while let Some(&mut (node, ref mut nth, ref mut low)) = stack.last_mut() {
                let at = *nth;
                *nth += 1;
                match self.before(node, at, walk) {
                    Some(to) if state[to as usize] == 0 => {
                        state[to as usize] = OPEN;
                        stack.push((to, 0, u32::MAX));
                    }
                    Some(to) if state[to as usize] == OPEN => {
                        return Err(self.on_cycle(node, to, &stack));
                    }
                    Some(to) => *low = (*low).min(self.walks[walk][to as usize].low),
                    None => {
                        let low = (*low).min(next);
                        self.walks[walk][node as usize] = Interval { low, own: next };
                        state[node as usize] = 1;
                        next += 1;
                        stack.pop();
                        if let Some(above) = stack.last_mut() {
                            above.2 = above.2.min(low);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn on_cycle(&self, node: u32, to: u32, stack: &[(u32, u32, u32)]) -> Op {
        let instructions = self.graph.ops.len() as u32;
        let on = stack.iter().rev().map(|step| step.0);
        let found = [node, to].into_iter().chain(on).find(|&n| n < instructions);
        self.graph.ops[found.unwrap_or(0) as usize]
    }

    /// Whether a node can be among what another depends on.
    fn may_reach(&self, from: u32, to: u32) -> bool {
        self.walks.iter().all(|walk| {
            let (inner, outer) = (walk[from as usize], walk[to as usize]);
            outer.low <= inner.low && inner.own <= outer.own
        })
    }

    /// Whether some member of a set can be among what a node depends on.
    fn some_may_reach(&self, set: u32, to: u32) -> bool {
        (0..2).all(|walk| {
            let (low, high) = self.spans[walk][set as usize];
            let outer = self.walks[walk][to as usize];
            low <= outer.own && outer.low <= high
        })
    }

    /// Whether `to` depends on `from`, directly or not, or is it.
    fn reaches(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return true;
        }
        if !self.may_reach(from, to) {
            return false;
        }
        self.stamp += 1;
        self.stack.clear();
        self.stack.push(to);
        while let Some(node) = self.stack.pop() {
            let mut nth = 0;
            while let Some(before) = self.before(node, nth, 0) {
                nth += 1;
                if before == from {
                    return true;
                }
                if self.seen[before as usize] != self.stamp && self.may_reach(from, before) {
                    self.seen[before as usize] = self.stamp;
                    self.stack.push(before);
                }
            }
        }
        false
    }

    /// Drops what others of a list depend on.
    fn list(&mut self, list: &mut Vec<u32>) {
        if list.len() < 2 {
            return;
        }
        list.sort_unstable_by_key(|&at| std::cmp::Reverse(self.place[at as usize]));
        if list.len() > PAIRWISE {
            return self.long_list(list);
        }
        let mut kept: Vec<u32> = Vec::with_capacity(list.len());
        for &at in list.iter() {
            if !kept.iter().any(|&other| self.reaches(at, other)) {
                kept.push(at);
            }
        }
        *list = kept;
    }

    /// The same by one search back from all of them.
    fn long_list(&mut self, list: &mut Vec<u32>) {
        let first = list.iter().map(|&at| self.place[at as usize]).min();
        let first = first.unwrap_or(0);
        self.stamp += 1;
        self.stack.clear();
        self.stack.extend_from_slice(list);
        while let Some(node) = self.stack.pop() {
            let mut nth = 0;
            while let Some(before) = self.before(node, nth, 0) {
                nth += 1;
                let (at, stamp) = (before as usize, self.stamp);
                // Everything the list is looked for in stands behind its first member.
                if self.place[at] >= first && self.seen[at] != stamp {
                    self.seen[at] = stamp;
                    self.stack.push(before);
                }
            }
        }
        list.retain(|&at| self.seen[at as usize] != self.stamp);
    }

    /// Finds what is left of a set, and of the sets in it: what others of a part depend on, others of
    /// the whole do, so what is left of the parts is enough to look at.
    fn normalize(&mut self, set: u32, sets: &mut [Option<Normal>]) {
        let graph = self.graph;
        let mut open = vec![set];
        while let Some(&set) = open.last() {
            if sets[set as usize].is_some() {
                open.pop();
                continue;
            }
            let inner = graph.members(set).iter().filter(|member| member.is_set());
            let before = open.len();
            let unknown = inner.filter(|member| sets[member.number() as usize].is_none());
            open.extend(unknown.map(|member| member.number()));
            if open.len() > before {
                continue;
            }
            let mut left: Vec<u32> = Vec::new();
            let mut is_whole = true;
            for &member in graph.members(set) {
                match sets
                    .get(member.number() as usize)
                    .filter(|_| member.is_set())
                {
                    None => left.push(member.number()),
                    Some(Some(Normal::Part(part))) => {
                        is_whole = false;
                        left.extend_from_slice(part);
                    }
                    Some(_) => left.extend(graph.expand(member)),
                }
            }
            left.sort_unstable();
            left.dedup();
            let count = left.len();
            self.list(&mut left);
            sets[set as usize] = Some(match is_whole && left.len() == count {
                true => Normal::Whole,
                false => Normal::Part(left),
            });
            open.pop();
        }
    }

    /// Adds what stays of the edges into an instruction; how many do not.
    fn instruction(
        &mut self,
        at: u32,
        edges: &[Edge],
        sets: &mut [Option<Normal>],
        made: &mut Sets,
        raw: &mut Vec<(u32, Edge)>,
    ) -> u64 {
        // Edges are sorted by kind, so the first kind of a source comes first.
        let mut kinds: Vec<(u32, Edge)> = Vec::with_capacity(edges.len());
        let mut whole: Vec<Edge> = Vec::new();
        let mut dropped = 0u64;
        for &edge in edges {
            let source = edge.source();
            if !source.is_set() {
                kinds.push((source.number(), edge));
                continue;
            }
            if whole.iter().any(|other| other.source() == source) {
                dropped += 1;
                continue;
            }
            let number = source.number() as usize;
            self.normalize(source.number(), sets);
            match &sets[number] {
                Some(Normal::Part(left)) => {
                    dropped += 1;
                    let own = |&at: &u32| (at, Edge::new(edge.kind(), Source::instruction(at)));
                    kinds.extend(left.iter().map(own));
                }
                _ => whole.push(edge),
            }
        }
        if whole.len() > 1 {
            // Sets may share members: only instructions can be told apart.
            let before = kinds.len();
            let mut all = kinds.clone();
            for edge in &whole {
                let own = |at: u32| (at, Edge::new(edge.kind(), Source::instruction(at)));
                all.extend(self.graph.expand(edge.source()).into_iter().map(own));
            }
            unique(&mut all);
            let mut left: Vec<u32> = all.iter().map(|pair| pair.0).collect();
            let listed: usize = left.len();
            self.list(&mut left);
            let members: usize = whole
                .iter()
                .map(|edge| self.graph.expand(edge.source()).len())
                .sum();
            if left.len() == listed && before + members == listed {
                raw.extend(kinds.iter().map(|&(_, edge)| (at, edge)));
                raw.extend(whole.iter().map(|&edge| (at, edge)));
                return dropped;
            }
            left.sort_unstable();
            all.retain(|pair| left.binary_search(&pair.0).is_ok());
            emit(at, &all, made, raw);
            return dropped + (listed - left.len()) as u64;
        }
        let before = kinds.len();
        unique(&mut kinds);
        let mut left: Vec<u32> = kinds.iter().map(|pair| pair.0).collect();
        if let [edge] = whole[..] {
            let set = self.node(edge.source());
            left.retain(|&one| !self.reaches(one, set));
        }
        self.list(&mut left);
        let mut pieces: Vec<Source> = whole.iter().map(|edge| edge.source()).collect();
        for &one in &left {
            pieces = self.without(pieces, one, &mut dropped);
        }
        left.sort_unstable();
        kinds.retain(|pair| left.binary_search(&pair.0).is_ok());
        dropped += (before - kinds.len()) as u64;
        if let [edge] = whole[..] {
            let own = |&source: &Source| (source.number(), Edge::new(edge.kind(), source));
            let singles = pieces.iter().filter(|piece| !piece.is_set());
            kinds.extend(singles.map(own));
            let sets = pieces.iter().filter(|piece| piece.is_set());
            raw.extend(sets.map(|&set| (at, Edge::new(edge.kind(), set))));
        }
        emit(at, &kinds, made, raw);
        dropped
    }

    /// Pieces of a set without the members an instruction depends on.
    fn without(&mut self, pieces: Vec<Source>, one: u32, dropped: &mut u64) -> Vec<Source> {
        let mut todo = pieces;
        todo.reverse();
        let mut left = Vec::new();
        while let Some(piece) = todo.pop() {
            let node = self.node(piece);
            if piece.is_set() && !self.some_may_reach(piece.number(), one) {
                left.push(piece);
            } else if self.reaches(node, one) {
                *dropped += 1;
            } else if piece.is_set() {
                todo.extend(self.graph.members(piece.number()).iter().rev());
            } else {
                left.push(piece);
            }
        }
        left.sort_unstable();
        left.dedup();
        left
    }
}

/// One edge for each source, of its first kind.
fn unique(kinds: &mut Vec<(u32, Edge)>) {
    kinds.sort_unstable_by_key(|&(at, edge)| (at, edge.kind()));
    kinds.dedup_by_key(|pair| pair.0);
}

/// Edges from many instructions go by a set.
fn emit(to: u32, kinds: &[(u32, Edge)], made: &mut Sets, raw: &mut Vec<(u32, Edge)>) {
    if kinds.len() <= 4 * super::sets::DIRECT {
        raw.extend(kinds.iter().map(|&(_, edge)| (to, edge)));
        return;
    }
    let mut at = 0;
    let mut sorted: Vec<Edge> = kinds.iter().map(|pair| pair.1).collect();
    sorted.sort_unstable();
    while at < sorted.len() {
        let kind = sorted[at].kind();
        let end = at + sorted[at..].partition_point(|edge| edge.kind() <= kind);
        let sources: Vec<Source> = sorted[at..end].iter().map(|edge| edge.source()).collect();
        match sources.len() > super::sets::DIRECT {
            true => {
                let set = made.make(&sources);
                raw.push((to, Edge::new(kind, set)));
            }
            false => raw.extend(sorted[at..end].iter().map(|&edge| (to, edge))),
        }
        at = end;
    }
}
