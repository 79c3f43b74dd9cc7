//! The transitive reduction of a graph with join nodes.
//!
//! Formally: of the pairs `u -> v` of the expanded graph exactly those stay for which no other
//! `u' -> v` of it has a path `u -> .. -> u'`. In an acyclic graph that is the one smallest set of
//! pairs with the same paths. A pair of several kinds keeps the first of FLOW, ANTI, OUTPUT,
//! ORDERED.
//!
//! A set stays one as long as nobody in it follows from others: a list of sources is gone through
//! as *pieces*, instructions and sets of which no member depends on another, and a set is only
//! looked into where some of its members, not all, are dropped.

mod chains;
mod guards;
mod reach;

pub use guards::reduce_in;

use smallvec::SmallVec;

use super::graph::{Edge, Graph, Source};
use super::sets::{DIRECT, Sets};
use crate::bir::program::DepKind;
use crate::ir::Op;
use reach::{Limits, Reach};

/// Steps searches may take per node and edge before chains are kept.
const PATIENCE: u64 = 8;
/// Trees over chains there may be per node, and in any case.
const TREES: (usize, usize) = (8, 1 << 18);

/// What [`reduce`] found.
#[derive(Debug)]
pub struct Reduced {
    /// The graph, reduced.
    pub graph: Graph,
    /// Expanded edges dropped; edges into a set that stays are not counted one by one.
    pub dropped: u64,
    /// Nodes looked at to find out who depends on whom: what it cost beside going over the edges.
    pub steps: u64,
}

/// Reduces a graph; an instruction on a cycle where there is one.
///
/// # Errors
///
/// An instruction that depends on itself, if one does.
pub fn reduce(graph: &Graph) -> Result<Reduced, Op> {
    let size = graph.ops.len() + graph.edges.len() + graph.members.len();
    let nodes = graph.ops.len() + graph.set_count() as usize;
    let limits = Limits {
        steps: PATIENCE * size as u64,
        trees: TREES.0 * nodes + TREES.1,
    };
    reduce_with(graph, limits)
}

/// The same with so many steps of searching before more is remembered, and room for so many pieces
/// of what is; past it all is searching again.
///
/// # Errors
///
/// An instruction that depends on itself, if one does.
pub fn reduce_within(graph: &Graph, steps: u64, trees: usize) -> Result<Reduced, Op> {
    reduce_with(graph, Limits { steps, trees })
}

fn reduce_with(graph: &Graph, limits: Limits) -> Result<Reduced, Op> {
    let mut work = Work {
        graph,
        reach: Reach::new(graph, limits)?,
        sets: vec![None; graph.set_count() as usize],
        made: Sets {
            starts: graph.set_starts.clone(),
            members: graph.members.clone(),
        },
        raw: Vec::with_capacity(graph.edges.len()),
        dropped: 0,
        singles: Vec::new(),
        pieces: Vec::new(),
    };
    for place in 0..work.reach.order.len() {
        let node = work.reach.order[place];
        if !work.reach.nodes.is_set(node) {
            work.instruction(node);
        }
    }
    let mut reduced = Graph {
        ops: graph.ops.clone(),
        capped: graph.capped,
        ..Graph::default()
    };
    let steps = work.reach.steps();
    let Work {
        made, raw, dropped, ..
    } = work;
    made.move_into(&mut reduced);
    reduced.set_edges(raw);
    Ok(Reduced {
        graph: reduced,
        dropped,
        steps,
    })
}

/// What is left of a set by itself.
#[derive(Clone)]
enum Normal {
    /// All of it.
    Whole,
    /// These few.
    Few(SmallVec<[Source; 4]>),
    /// These, and the set made of them.
    Made(Vec<Source>, Source),
}

struct Work<'a> {
    graph: &'a Graph,
    reach: Reach<'a>,
    /// What is known of sets.
    sets: Vec<Option<Normal>>,
    made: Sets,
    /// Edges that stay.
    raw: Vec<(u32, Edge)>,
    dropped: u64,
    /// Room to work in.
    singles: Vec<u32>,
    pieces: Vec<Edge>,
}

impl Work<'_> {
    fn node(&self, edge: Edge) -> u32 {
        self.reach.nodes.of(edge.source())
    }

    /// Finds which edges into an instruction stay.
    fn instruction(&mut self, at: u32) {
        let edges = self.graph.edges(at);
        if let [edge] = edges
            && !edge.source().is_set()
        {
            self.raw.push((at, *edge));
            return;
        }
        self.reach.look_at(at);
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        for &edge in edges {
            if edge.source().is_set() {
                self.normalize(edge.source().number());
            }
            self.add(edge, &mut pieces);
        }
        self.independent(&mut pieces);
        self.emit(at, &mut pieces);
        self.pieces = pieces;
    }

    /// Adds what is left of an edge's source.
    fn add(&mut self, edge: Edge, pieces: &mut Vec<Edge>) {
        let set = edge.source().number() as usize;
        match self.sets.get(set).filter(|_| edge.source().is_set()) {
            Some(Some(Normal::Few(left))) => {
                self.dropped += 1;
                pieces.extend(left.iter().map(|&one| Edge::new(edge.kind(), one)));
            }
            Some(Some(Normal::Made(..))) => {
                self.dropped += 1;
                pieces.push(edge);
            }
            _ => pieces.push(edge),
        }
    }

    /// Finds what is left of a set, and of the sets in it: what others of a part depend on, others of
    /// the whole do, so what is left of the parts is enough to look at.
    fn normalize(&mut self, set: u32) {
        let graph = self.graph;
        let mut open = vec![set];
        while let Some(&set) = open.last() {
            if self.sets[set as usize].is_some() {
                open.pop();
                continue;
            }
            let inner = graph.members(set).iter().filter(|member| member.is_set());
            let before = open.len();
            let unknown = inner.filter(|member| self.sets[member.number() as usize].is_none());
            open.extend(unknown.map(|member| member.number()));
            if open.len() > before {
                continue;
            }
            // Dropped here is not dropped from an instruction.
            let dropped = std::mem::take(&mut self.dropped);
            let mut pieces: Vec<Edge> = Vec::with_capacity(graph.members(set).len());
            for &member in graph.members(set) {
                self.add(Edge::new(DepKind::Flow, member), &mut pieces);
            }
            self.independent(&mut pieces);
            let left = pieces.iter().map(|piece| piece.source());
            let normal = if self.dropped == 0 {
                Normal::Whole
            } else if pieces.len() <= DIRECT {
                Normal::Few(left.collect())
            } else {
                let members: Vec<Source> = left.clone().map(|piece| self.stated(piece)).collect();
                Normal::Made(left.collect(), self.made.make(&members))
            };
            self.dropped = dropped;
            self.sets[set as usize] = Some(normal);
            open.pop();
        }
    }

    /// A piece as the reduced graph names it.
    fn stated(&self, piece: Source) -> Source {
        let set = self.sets.get(piece.number() as usize);
        match set.filter(|_| piece.is_set()) {
            Some(&Some(Normal::Made(_, made))) => made,
            _ => piece,
        }
    }

    /// Drops of pieces, each of which is independent in itself, what others of them depend on, and
    /// has each instruction in one only, by its first kind.
    fn independent(&mut self, pieces: &mut Vec<Edge>) {
        if pieces.len() < 2 {
            return;
        }
        let before = pieces.len();
        pieces.sort_unstable_by_key(|piece| (piece.source(), piece.kind()));
        pieces.dedup_by_key(|piece| piece.source());
        let singles = pieces.partition_point(|piece| !piece.source().is_set());
        let mut sets: SmallVec<[Edge; 4]> = SmallVec::from_slice(&pieces[singles..]);
        sets.sort_unstable();
        pieces.truncate(singles);
        for &set in &sets {
            // Instructions an earlier kind's set holds, or that it depends on.
            let node = self.node(set);
            pieces.retain(|&one| {
                set.kind() > one.kind() || !self.reach.reaches(one.source().number(), node)
            });
        }
        self.independent_singles(pieces);
        self.dropped += (before - sets.len() - pieces.len()) as u64;
        for set in sets {
            self.join(pieces, set);
        }
    }

    fn independent_singles(&mut self, pieces: &mut Vec<Edge>) {
        let mut left = std::mem::take(&mut self.singles);
        left.clear();
        left.extend(pieces.iter().map(|piece| piece.source().number()));
        self.reach.retain_last(&mut left);
        if left.len() < pieces.len() {
            left.sort_unstable();
            let mut left = left.iter().peekable();
            pieces.retain(|piece| left.next_if(|&&at| at == piece.source().number()).is_some());
        }
        self.singles = left;
    }

    /// Adds a set to pieces that are independent of each other. No instruction of a later kind is
    /// among them that the set depends on.
    fn join(&mut self, pieces: &mut Vec<Edge>, set: Edge) {
        let mut parts = vec![set.source()];
        for &piece in pieces.iter() {
            self.without(&mut parts, self.reach.nodes.of(piece.source()));
            if parts.is_empty() {
                return;
            }
        }
        // Whom the set depends on; what it shared with a piece it has lost, so this is for certain.
        let node = self.node(set);
        let mut left: Vec<Edge> = Vec::with_capacity(pieces.len() + parts.len());
        for &piece in pieces.iter() {
            let source = piece.source();
            let may_go = match source.is_set() {
                true => self.reach.some_may_reach(source.number(), node),
                false => self.reach.reaches(source.number(), node),
            };
            if !may_go {
                left.push(piece);
                continue;
            }
            let mut rest = vec![source];
            for &part in &parts {
                self.without(&mut rest, self.reach.nodes.of(part));
            }
            left.extend(rest.iter().map(|&one| Edge::new(piece.kind(), one)));
        }
        left.extend(parts.iter().map(|&part| Edge::new(set.kind(), part)));
        *pieces = left;
    }

    /// Takes from parts of a set the members a node depends on.
    fn without(&mut self, parts: &mut Vec<Source>, node: u32) {
        let touched = parts.iter().any(|&part| match part.is_set() {
            true => self.reach.some_may_reach(part.number(), node),
            false => self.reach.reaches(part.number(), node),
        });
        if !touched {
            return;
        }
        let mut todo = std::mem::take(parts);
        todo.reverse();
        while let Some(part) = todo.pop() {
            if part.is_set() && !self.reach.some_may_reach(part.number(), node) {
                parts.push(part);
            } else if self.reach.reaches(self.reach.nodes.of(part), node) {
                self.dropped += 1;
            } else if part.is_set() {
                let members = match &self.sets[part.number() as usize] {
                    Some(Normal::Few(left)) => left.as_slice(),
                    Some(Normal::Made(left, _)) => left,
                    _ => self.graph.members(part.number()),
                };
                todo.extend(members.iter().rev());
            } else {
                parts.push(part);
            }
        }
        parts.sort_unstable();
        parts.dedup();
    }

    /// States the edges that stay; those from many instructions go by a set.
    fn emit(&mut self, at: u32, pieces: &mut [Edge]) {
        if pieces.len() <= 4 * DIRECT {
            for piece in pieces.iter() {
                let source = self.stated(piece.source());
                self.raw.push((at, Edge::new(piece.kind(), source)));
            }
            return;
        }
        pieces.sort_unstable();
        for same in pieces.chunk_by(|a, b| a.kind() == b.kind()) {
            let sources = same.iter().map(|piece| self.stated(piece.source()));
            let sources: Vec<Source> = sources.collect();
            let kind = same[0].kind();
            if sources.len() > DIRECT {
                let set = self.made.make(&sources);
                self.raw.push((at, Edge::new(kind, set)));
            } else {
                let edges = sources.iter().map(|&source| (at, Edge::new(kind, source)));
                self.raw.extend(edges);
            }
        }
    }
}
