//! Who is executed for certain wherever another is.
//!
//! A dependence follows from others only along instructions that are executed: a path through one that
//! stands in a branch, or in a loop that may make no trip, orders nobody where that one is left out. So
//! the function is cut into *parts*, which are executed as a whole or not at all, and an edge leads
//! on only to where its source is executed, too; those that leave a part stay as they are.

use hashbrown::HashMap;

use super::super::graph::{Edge, Graph, Source};
use super::super::sets::Sets;
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
    let mut raw = leaving;
    for at in 0..graph.ops.len() as u32 {
        raw.extend(reduced.graph.edges(at).iter().map(|&edge| (at, edge)));
    }
    reduced.graph.set_edges(raw);
    Ok(reduced)
}

/// The parts of a function: a tree, whose root is executed always.
struct Parts {
    /// Per instruction of the graph, its part.
    of: Vec<u32>,
    /// Per part, its number in the order of the tree, and of how many it is the first.
    spans: Vec<(u32, u32)>,
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
        })
    }

    /// Whether an instruction is executed wherever those of a part are.
    fn is_certain(&self, number: u32, part: u32) -> bool {
        let (first, count) = self.spans[self.of[number as usize] as usize];
        (first..first + count).contains(&self.spans[part as usize].0)
    }

    /// The graph of the edges that lead on, and the others, with sets divided alike.
    fn split(&self, graph: &Graph) -> (Graph, Vec<(u32, Edge)>) {
        let mut divide = Divide {
            parts: self,
            graph,
            made: Sets {
                starts: graph.set_starts.clone(),
                members: graph.members.clone(),
            },
            known: HashMap::new(),
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
    made: Sets,
    /// By set and part.
    known: HashMap<(u32, u32), Halves>,
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
        let mut todo = vec![number];
        while let Some(&set) = todo.last() {
            let is_open = |member: &&Source| {
                member.is_set() && !self.known.contains_key(&(member.number(), part))
            };
            let open = graph.members(set).iter().filter(is_open);
            let before = todo.len();
            todo.extend(open.map(|member| member.number()));
            if todo.len() > before {
                continue;
            }
            todo.pop();
            let (mut certain, mut others) = (Vec::new(), Vec::new());
            for &member in graph.members(set) {
                let halves = match member.is_set() {
                    true => self.known.get(&(member.number(), part)).copied(),
                    false => Some(self.source(member, part)),
                };
                let (within, without) = halves.unwrap_or_default();
                certain.extend(within);
                others.extend(without);
            }
            let halves = match (certain.is_empty(), others.is_empty()) {
                (false, true) => (Some(Source::set(set)), None),
                (true, _) => (None, Some(Source::set(set))),
                (false, false) => (
                    Some(self.made.make(&certain)),
                    Some(self.made.make(&others)),
                ),
            };
            self.known.insert((set, part), halves);
        }
        self.known.get(&(number, part)).copied().unwrap_or_default()
    }
}
