//! The way back: which reads a definition reaches.
//!
//! Version nodes form a graph in which a read reaches an event if the event's leaf lies below a
//! node posted for the read; here its edges are turned round, where reads are above at all.

use super::storage::StorageIndex;
use super::tree::{Marks, Node, View};

/// Which reads each definition reaches.
pub struct Uses<'a> {
    index: StorageIndex<'a>,
    /// The first node besides the three constants.
    base: Node,
    /// Per node, who refers to it, where reads are above: parents, compressed.
    parent_starts: Vec<u32>,
    parents: Vec<Node>,
    /// Per node, reads posted on it, compressed.
    read_starts: Vec<u32>,
    reads: Vec<u32>,
    /// Leaves sorted by event.
    leaves: Vec<(u32, Node)>,
}

impl<'a> Uses<'a> {
    pub(super) fn new(index: StorageIndex<'a>) -> Uses<'a> {
        let (base, end) = index.nodes();
        let nodes = (end - base) as usize + 3;
        let row = |node: Node| row(node, base);
        let mut useful = vec![false; nodes];
        for &node in index.posts() {
            useful[row(node)] = true;
        }
        // Children are made before their parents.
        let mut links: Vec<(Node, Node)> = Vec::new();
        let mut leaves = Vec::new();
        for node in (base..end).rev() {
            if !useful[row(node)] {
                continue;
            }
            match index.tree().view(node) {
                View::Leaf(Some(event)) => leaves.push((event, node)),
                View::Leaf(None) => {}
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    for child in [a, b] {
                        useful[row(child)] = true;
                        links.push((row(child) as u32, node));
                    }
                }
            }
        }
        leaves.sort_unstable();
        let (parent_starts, parents) = compress(nodes, links.iter().copied());
        let posted = (0..index.events().len() as u32).flat_map(|event| {
            index
                .posted(event)
                .iter()
                .map(move |&node| (row(node) as u32, event))
        });
        let posted: Vec<(Node, u32)> = posted.collect();
        let (read_starts, reads) = compress(nodes, posted.iter().copied());
        Uses {
            index,
            base,
            parent_starts,
            parents,
            read_starts,
            reads,
            leaves,
        }
    }

    /// Positions of the reads the event at `event` reaches, ascending.
    pub fn of(&self, event: u32) -> Vec<u32> {
        let mut marks = Marks::new(self.base);
        let mut todo = Vec::new();
        let from = self.leaves.partition_point(|leaf| leaf.0 < event);
        for &(_, node) in self.leaves[from..]
            .iter()
            .take_while(|leaf| leaf.0 == event)
        {
            if marks.set(node) {
                todo.push(node);
            }
        }
        let mut found = Vec::new();
        while let Some(node) = todo.pop() {
            let at = row(node, self.base);
            let slice = |starts: &[u32]| starts[at] as usize..starts[at + 1] as usize;
            found.extend_from_slice(&self.reads[slice(&self.read_starts)]);
            for &parent in &self.parents[slice(&self.parent_starts)] {
                if marks.set(parent) {
                    todo.push(parent);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        debug_assert!(
            found
                .iter()
                .all(|&at| self.index.events()[at as usize].effect.is_read())
        );
        found
    }
}

/// The row of a node: the constants first.
fn row(node: Node, base: Node) -> usize {
    match node.checked_sub(base.max(3)) {
        Some(above) => above as usize + 3,
        None => node as usize,
    }
}

/// Groups values by key: where each key's values start, and the values.
fn compress(keys: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; keys + 1];
    for (key, _) in pairs.clone() {
        starts[key as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut values = vec![0; starts.last().copied().unwrap_or(0) as usize];
    for (key, value) in pairs {
        values[next[key as usize] as usize] = value;
        next[key as usize] += 1;
    }
    (starts, values)
}
