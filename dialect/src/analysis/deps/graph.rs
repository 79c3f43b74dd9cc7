//! Edges and join nodes in flat lists.

use crate::bir::program::DepKind;
use crate::ir::Op;

/// What an edge comes from, or what a set holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source(u32);

const IS_SET: u32 = 1 << 29;
const NUMBER: u32 = IS_SET - 1;

impl Source {
    /// An instruction, by its number in the graph.
    pub fn instruction(number: u32) -> Source {
        debug_assert!(number <= NUMBER);
        Source(number)
    }

    /// A set, by its number in the graph.
    pub fn set(number: u32) -> Source {
        debug_assert!(number <= NUMBER);
        Source(number | IS_SET)
    }

    /// Whether it is a set.
    pub fn is_set(self) -> bool {
        self.0 & IS_SET != 0
    }

    /// Its number among instructions or sets.
    pub fn number(self) -> u32 {
        self.0 & NUMBER
    }
}

/// An edge into some instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edge(u32);

impl Edge {
    /// From `source`, of `kind`.
    pub fn new(kind: DepKind, source: Source) -> Edge {
        Edge((kind as u32) << 30 | source.0)
    }

    /// Why.
    pub fn kind(self) -> DepKind {
        DepKind::ALL[(self.0 >> 30) as usize]
    }

    /// Where from.
    pub fn source(self) -> Source {
        Source(self.0 & (NUMBER | IS_SET))
    }
}

/// A set of kinds of edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kinds(u8);

impl Kinds {
    /// All four.
    pub const ALL: Kinds = Kinds(15);

    /// These.
    pub fn of(kinds: &[DepKind]) -> Kinds {
        Kinds(kinds.iter().fold(0, |bits, &kind| bits | 1 << kind as u8))
    }

    /// Whether a kind is among them.
    pub fn has(self, kind: DepKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}

/// Edges of a function. Instructions are numbered from 0 in the order of the graph, sets from 0 on
/// their own; a set only holds sets of smaller numbers.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    pub(super) ops: Vec<Op>,
    /// Where the edges into each instruction start; one longer than the instructions.
    pub(super) starts: Vec<u32>,
    pub(super) edges: Vec<Edge>,
    /// Where the members of each set start; one longer than the sets.
    pub(super) set_starts: Vec<u32>,
    pub(super) members: Vec<Source>,
    pub(super) capped: usize,
    pub(super) peak: usize,
}

impl Graph {
    /// The instructions, by number.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The edges into an instruction, sorted.
    pub fn edges(&self, number: u32) -> &[Edge] {
        let at = number as usize;
        &self.edges[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Number of sets.
    pub fn set_count(&self) -> u32 {
        self.set_starts.len().saturating_sub(1) as u32
    }

    /// Number of edges as listed: one into a set counts once.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// What a set holds.
    pub fn members(&self, set: u32) -> &[Source] {
        let at = set as usize;
        &self.members[self.set_starts[at] as usize..self.set_starts[at + 1] as usize]
    }

    /// The instructions a source stands for, ascending.
    pub fn expand(&self, source: Source) -> Vec<u32> {
        let mut found = Vec::new();
        let mut seen = hashbrown::HashSet::new();
        let mut todo = vec![source];
        while let Some(source) = todo.pop() {
            if !source.is_set() {
                found.push(source.number());
            } else if seen.insert(source) {
                todo.extend_from_slice(self.members(source.number()));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The instructions of a shortest cycle through one, each depending on the one before it and the
    /// first on the last; empty where it does not depend on itself.
    pub fn cycle(&self, number: u32) -> Vec<u32> {
        // Back through edges and sets; each remembers who led there.
        let mut led: hashbrown::HashMap<Source, Source> = hashbrown::HashMap::new();
        let own = Source::instruction(number);
        let mut todo = std::collections::VecDeque::from([own]);
        while let Some(at) = todo.pop_front() {
            let before: Vec<Source> = match at.is_set() {
                true => self.members(at.number()).to_vec(),
                false => {
                    let edges = self.edges(at.number()).iter();
                    edges.map(|edge| edge.source()).collect()
                }
            };
            for source in before {
                if led.contains_key(&source) {
                    continue;
                }
                led.insert(source, at);
                if source != own {
                    todo.push_back(source);
                    continue;
                }
                let mut cycle = vec![number];
                let mut next = led.get(&own).copied();
                while let Some(at) = next.filter(|&at| at != own) {
                    cycle.extend((!at.is_set()).then_some(at.number()));
                    next = led.get(&at).copied();
                }
                return cycle;
            }
        }
        Vec::new()
    }

    /// Accesses whose bytes are known roughly only, because all of the function passed the limit
    /// of ranges: edges may be too many.
    pub fn capped(&self) -> usize {
        self.capped
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        4 * (self.ops.capacity()
            + self.starts.capacity()
            + self.edges.capacity()
            + self.set_starts.capacity()
            + self.members.capacity())
    }

    /// Bytes on the heap while it was built from accesses, at most: with all that was known of them
    /// then. None where it was made otherwise.
    pub fn peak_bytes(&self) -> usize {
        self.peak
    }

    /// States the edges into the next instruction: sorted, each once.
    pub(super) fn push_edges(&mut self, edges: impl Iterator<Item = Edge>) {
        if self.starts.is_empty() {
            self.starts.reserve_exact(self.ops.len() + 1);
            self.starts.push(0);
        }
        let from = self.edges.len();
        self.edges.extend(edges);
        let own = &mut self.edges[from..];
        if !own.is_sorted_by(|a, b| a < b) {
            own.sort_unstable();
            let mut kept = from + 1;
            for read in from + 1..self.edges.len() {
                if self.edges[read] != self.edges[kept - 1] {
                    self.edges[kept] = self.edges[read];
                    kept += 1;
                }
            }
            self.edges.truncate(kept);
        }
        self.starts.push(self.edges.len() as u32);
    }

    /// What [`push_edges`](Graph::push_edges) is done with, once for each instruction.
    pub(super) fn close_edges(&mut self) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.edges.shrink_to_fit();
    }

    /// Groups edges by the instruction they lead to; sorted, each once.
    pub(super) fn set_edges(&mut self, raw: Vec<(u32, Edge)>) {
        let mut starts = vec![0u32; self.ops.len() + 1];
        for &(to, _) in &raw {
            starts[to as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut edges = vec![Edge(0); raw.len()];
        for (to, edge) in raw {
            let place = &mut starts[to as usize];
            edges[*place as usize] = edge;
            *place += 1;
        }
        // Each start has moved to the end, which is the next one's start.
        starts.rotate_right(1);
        starts[0] = 0;
        // Sorted and without repeats, in place.
        let mut kept = 0usize;
        for at in 0..self.ops.len() {
            let (from, to) = (starts[at] as usize, starts[at + 1] as usize);
            starts[at] = kept as u32;
            if to - from > 1 {
                edges[from..to].sort_unstable();
            }
            for read in from..to {
                let edge = edges[read];
                if read == from || edges[kept - 1] != edge {
                    edges[kept] = edge;
                    kept += 1;
                }
            }
        }
        if let Some(last) = starts.last_mut() {
            *last = kept as u32;
        }
        edges.truncate(kept);
        edges.shrink_to_fit();
        (self.starts, self.edges) = (starts, edges);
    }
}
