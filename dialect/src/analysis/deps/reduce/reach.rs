//! Which node of a graph with join nodes depends on which.
//!
//! Two numberings answer most questions: nodes are numbered in the postorder of a walk back, so
//! all that a node depends on lies in one interval of numbers at its end; a node outside of the
//! interval is never met. What the walk met first behind a node is numbered in one run right before
//! it, and the node depends on all of that. The walks take edges in opposite orders, so what one
//! cannot tell apart the other mostly can. What both leave open is searched for, back through the
//! edges; where searching has cost more than an allowance, [`Chains`] answer from then on.

use super::super::graph::{Graph, Source};
use super::chains::Chains;
use crate::ir::Op;

/// Steps a question may cost at most.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// All searches together, before chains are kept.
    pub(super) steps: u64,
    /// Trees over chains; past it searching goes on without an allowance.
    pub(super) trees: usize,
}

/// The nodes of a graph: instructions first, then sets.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a> {
    graph: &'a Graph,
    instructions: u32,
}

impl<'a> Nodes<'a> {
    pub(super) fn of(self, source: Source) -> u32 {
        match source.is_set() {
            true => self.instructions + source.number(),
            false => source.number(),
        }
    }

    pub(super) fn is_set(self, node: u32) -> bool {
        node >= self.instructions
    }

    fn count(self) -> usize {
        self.instructions as usize + self.graph.set_count() as usize
    }

    /// What a node depends on, directly.
    pub(super) fn before(self, node: u32) -> impl Iterator<Item = u32> + 'a {
        let is_set = self.is_set(node);
        let edges = match is_set {
            true => &[],
            false => self.graph.edges(node),
        };
        let members = match is_set {
            true => self.graph.members(node - self.instructions),
            false => &[],
        };
        let sources = edges.iter().map(|edge| edge.source());
        sources
            .chain(members.iter().copied())
            .map(move |source| self.of(source))
    }

    /// The `nth` of them in the order of a walk.
    fn nth_before(self, node: u32, nth: u32, walk: usize) -> Option<u32> {
        let nth = nth as usize;
        let at = |count: usize| match walk {
            0 => Some(nth),
            _ => count.checked_sub(nth + 1),
        };
        let source = if self.is_set(node) {
            let members = self.graph.members(node - self.instructions);
            *members.get(at(members.len())?)?
        } else {
            let edges = self.graph.edges(node);
            edges.get(at(edges.len())?)?.source()
        };
        Some(self.of(source))
    }
}

/// Where a node stands in a walk back.
#[derive(Clone, Copy)]
struct Interval {
    /// The smallest number of what it depends on.
    low: u32,
    /// The smallest number of what was met first behind it.
    first: u32,
    /// Its own number, the largest of both; [`NEW`] or [`OPEN`] while there is none.
    own: u32,
}

const NEW: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;

/// Where a node stands in both walks.
type Stand = [Interval; 2];

pub(super) struct Reach<'a> {
    pub(super) nodes: Nodes<'a>,
    /// Nodes in a topological order: the postorder of the first walk.
    pub(super) order: Vec<u32>,
    stands: Vec<Stand>,
    /// Per set, the smallest and largest number of a member in each walk.
    spans: [Vec<(u32, u32)>; 2],
    seen: Vec<u32>,
    stamp: u32,
    stack: Vec<u32>,
    limits: Limits,
    chains: Option<Chains>,
    /// The place of the instruction looked at.
    now: u32,
    steps: u64,
}

impl<'a> Reach<'a> {
    /// # Errors
    ///
    /// An instruction on a cycle, where there is one.
    pub(super) fn new(graph: &'a Graph, limits: Limits) -> Result<Reach<'a>, Op> {
        let nodes = Nodes {
            graph,
            instructions: graph.ops.len() as u32,
        };
        let count = nodes.count();
        let new = Interval {
            low: NEW,
            first: NEW,
            own: NEW,
        };
        let mut stands: Vec<Stand> = vec![[new; 2]; count];
        let mut stack = Vec::new();
        walk_back(nodes, 0, &mut stands, &mut stack)?;
        walk_back(nodes, 1, &mut stands, &mut stack)?;
        drop(stack);
        // A postorder of a walk back is a topological order.
        let mut order = vec![0u32; count];
        for (node, stand) in (0u32..).zip(&stands) {
            order[stand[0].own as usize] = node;
        }
        let spans = [0, 1].map(|walk: usize| spans(graph, &stands, walk));
        Ok(Reach {
            nodes,
            order,
            stands,
            spans,
            seen: vec![0; count],
            stamp: 0,
            stack: Vec::new(),
            limits,
            chains: None,
            now: 0,
            steps: 0,
        })
    }

    /// From now on nobody asks who reaches what only instructions before this one depend on.
    pub(super) fn look_at(&mut self, instruction: u32) {
        self.now = self.place(instruction);
    }

    /// The place of a node in the order.
    fn place(&self, node: u32) -> u32 {
        self.stands[node as usize][0].own
    }

    /// Nodes and trees looked at so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps + self.chains.as_ref().map_or(0, Chains::steps)
    }

    /// Whether a node is among what another depends on, where the walks tell.
    #[inline]
    fn told(&self, from: u32, to: u32) -> Option<bool> {
        let (inner, outer) = (self.stands[from as usize], self.stands[to as usize]);
        let mut sure = false;
        for (inner, outer) in inner.iter().zip(&outer) {
            if inner.low < outer.low || inner.own > outer.own {
                return Some(false);
            }
            sure |= outer.first <= inner.own;
        }
        sure.then_some(true)
    }

    /// Whether some member of a set can be among what a node depends on.
    pub(super) fn some_may_reach(&self, set: u32, to: u32) -> bool {
        (0..2).all(|walk| {
            let (low, high) = self.spans[walk][set as usize];
            let outer = self.stands[to as usize][walk];
            low <= outer.own && outer.low <= high
        })
    }

    /// Whether `to` depends on `from`, directly or not, or is it.
    pub(super) fn reaches(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return true;
        }
        if let Some(told) = self.told(from, to) {
            return told;
        }
        if self.chains.is_none() {
            if let Some(found) = self.search(from, to) {
                return found;
            }
            self.keep_chains();
        }
        if self.advance(to)
            && let Some(chains) = &mut self.chains
        {
            return chains.reaches(from, to);
        }
        // Without an allowance a search always ends.
        self.search(from, to).unwrap_or(true)
    }

    fn search(&mut self, from: u32, to: u32) -> Option<bool> {
        self.stamp += 1;
        self.stack.clear();
        self.stack.push(to);
        while let Some(node) = self.stack.pop() {
            for before in self.nodes.before(node) {
                self.steps += 1;
                if self.seen[before as usize] == self.stamp {
                    continue;
                }
                match self.told(from, before) {
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => {
                        self.seen[before as usize] = self.stamp;
                        self.stack.push(before);
                    }
                }
            }
            if self.steps > self.limits.steps {
                return None;
            }
        }
        Some(false)
    }

    fn keep_chains(&mut self) {
        let trees = self.limits.trees;
        let place = self.stands.iter().map(|stand| stand[0].own).collect();
        self.chains = Some(Chains::new(self.nodes, &self.order, place, trees));
        self.limits.steps = u64::MAX;
    }

    /// Has chains know all up to a node; not if there are none, or no room for them.
    fn advance(&mut self, to: u32) -> bool {
        let place = self.place(to);
        let Some(chains) = &mut self.chains else {
            return false;
        };
        if chains.advance(self.nodes, &self.order, place, self.now) {
            return true;
        }
        self.steps += chains.steps();
        self.chains = None;
        false
    }

    /// Drops what others of a list depend on; what is left comes last first.
    pub(super) fn retain_last(&mut self, list: &mut Vec<u32>) {
        if list.len() < 2 {
            return;
        }
        list.sort_unstable_by_key(|&at| std::cmp::Reverse(self.place(at)));
        if list.len() > PAIRWISE {
            // What the walks tell of the last ones need not be searched for.
            let mut kept = 0;
            for at in 0..list.len() {
                let one = list[at];
                let mut last = list[..kept.min(PAIRWISE / 3)].iter();
                if !last.any(|&other| self.told(one, other) == Some(true)) {
                    list[kept] = one;
                    kept += 1;
                }
            }
            list.truncate(kept);
        }
        if list.len() <= PAIRWISE {
            let mut kept = 0;
            for at in 0..list.len() {
                let one = list[at];
                if !(0..kept).any(|other| self.reaches(one, list[other])) {
                    list[kept] = one;
                    kept += 1;
                }
            }
            return list.truncate(kept);
        }
        if self.chains.is_none() {
            if self.retain_by_search(list) {
                return;
            }
            self.keep_chains();
        }
        if self.advance(list[0])
            && let Some(chains) = &mut self.chains
        {
            return chains.retain_last(list);
        }
        self.retain_by_search(list);
    }

    /// The same by one search back from all of them, if the allowance lasts.
    fn retain_by_search(&mut self, list: &mut Vec<u32>) -> bool {
        let first = list.last().map_or(0, |&at| self.place(at));
        self.stamp += 1;
        self.stack.clear();
        self.stack.extend_from_slice(list);
        while let Some(node) = self.stack.pop() {
            for before in self.nodes.before(node) {
                self.steps += 1;
                let (at, stamp) = (before as usize, self.stamp);
                // Everything the list is looked for in stands behind its first member.
                if self.place(before) >= first && self.seen[at] != stamp {
                    self.seen[at] = stamp;
                    self.stack.push(before);
                }
            }
            if self.steps > self.limits.steps {
                return false;
            }
        }
        list.retain(|&at| self.seen[at as usize] != self.stamp);
        true
    }
}

/// Sources an instruction may have before all of them are looked for in one search.
const PAIRWISE: usize = 12;

fn spans(graph: &Graph, stands: &[Stand], walk: usize) -> Vec<(u32, u32)> {
    let mut spans: Vec<(u32, u32)> = Vec::with_capacity(graph.set_count() as usize);
    for set in 0..graph.set_count() {
        let mut span = (u32::MAX, 0);
        for &member in graph.members(set) {
            let (low, high) = match member.is_set() {
                true => spans[member.number() as usize],
                false => {
                    let own = stands[member.number() as usize][walk].own;
                    (own, own)
                }
            };
            span = (span.0.min(low), span.1.max(high));
        }
        spans.push(span);
    }
    spans
}

/// A node whose dependences are gone through.
struct Step {
    node: u32,
    /// The next of them.
    nth: u32,
    /// The smallest number of those behind it.
    low: u32,
}

/// Numbers all nodes behind what they depend on.
fn walk_back(
    nodes: Nodes<'_>,
    walk: usize,
    stands: &mut [Stand],
    stack: &mut Vec<Step>,
) -> Result<(), Op> {
    let count = nodes.count() as u32;
    let mut next = 0u32;
    let open = |stack: &mut Vec<Step>, stands: &mut [Stand], node: u32, next: u32| {
        let stand = &mut stands[node as usize][walk];
        (stand.first, stand.own) = (next, OPEN);
        stack.push(Step {
            node,
            nth: 0,
            low: NEW,
        });
    };
    for at in 0..count {
        // Sets behind the instructions that lead to them: else they would be behind none of them.
        let root = match walk {
            1 if at < nodes.instructions => nodes.instructions - 1 - at,
            _ => at,
        };
        if stands[root as usize][walk].own != NEW {
            continue;
        }
        open(stack, stands, root, next);
        while let Some(step) = stack.last_mut() {
            let (node, at) = (step.node, step.nth);
            step.nth += 1;
            if let Some(to) = nodes.nth_before(node, at, walk) {
                let known = stands[to as usize][walk];
                match known.own {
                    NEW => open(stack, stands, to, next),
                    OPEN => return Err(on_cycle(nodes, node, to, stack)),
                    _ => step.low = step.low.min(known.low),
                }
                continue;
            }
            let low = step.low.min(next);
            let stand = &mut stands[node as usize][walk];
            (stand.low, stand.own) = (low, next);
            next += 1;
            stack.pop();
            if let Some(above) = stack.last_mut() {
                above.low = above.low.min(low);
            }
        }
    }
    Ok(())
}

fn on_cycle(nodes: Nodes<'_>, node: u32, to: u32, stack: &[Step]) -> Op {
    let on = stack.iter().rev().map(|step| step.node);
    let mut on = [node, to].into_iter().chain(on);
    let found = on.find(|&node| !nodes.is_set(node));
    nodes.graph.ops[found.unwrap_or(0) as usize]
}
