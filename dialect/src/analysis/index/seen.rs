//! Which writes somebody sees, found from those who look.
//!
//! A write is seen if a read asked about may find one of its bytes, or the end of the function
//! does. Versions share nodes, and each is gone through once however many look at it, so asking
//! about all reads costs O(nodes).

use super::function::FunctionIndex;
use super::storage::StorageIndex;
use super::tree::{Node, View};

/// The writes seen so far.
pub struct Seen<'a> {
    index: &'a FunctionIndex,
    /// One bit per node of all storages.
    marks: Vec<u64>,
    todo: Vec<Node>,
}

impl<'a> Seen<'a> {
    /// Nobody has looked yet.
    pub fn new(index: &'a FunctionIndex) -> Seen<'a> {
        let nodes = index.storages().map(|storage| storage.nodes().1).max();
        Seen {
            index,
            marks: vec![0; nodes.unwrap_or(0) as usize / 64 + 1],
            todo: Vec::new(),
        }
    }

    /// A touch looks at its bytes: the writes it sees that nobody saw before, as touches.
    pub fn read(&mut self, touch: u32, found: &mut Vec<u32>) {
        let (storage, position) = self.index.at(touch);
        self.todo.extend_from_slice(storage.posted(position));
        self.look(&storage, found);
    }

    /// Somebody outside looks at a location when the function has ended: an output, or an input
    /// that is written.
    pub fn end(&mut self, location: u32, found: &mut Vec<u32>) {
        let storage = self.index.storage_of(location);
        self.todo.push(storage.end());
        self.look(&storage, found);
    }

    fn look(&mut self, storage: &StorageIndex<'_>, found: &mut Vec<u32>) {
        while let Some(node) = self.todo.pop() {
            // The constants say nothing of events.
            if node < 3 {
                continue;
            }
            let (word, bit) = (node as usize / 64, 1u64 << (node % 64));
            if self.marks[word] & bit != 0 {
                continue;
            }
            self.marks[word] |= bit;
            match storage.tree().view(node) {
                View::Leaf(event) => {
                    let id = |at: u32| storage.events()[at as usize].id;
                    found.extend(event.map(id));
                }
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    self.todo.extend([a, b]);
                }
            }
        }
    }
}
