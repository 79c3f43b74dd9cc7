//! Whether all who may have written bytes last are of one kind.
//!
//! Versions share nodes, and the answer of each is found once however many ask: all questions
//! about a storage together cost O(nodes).

use super::storage::StorageIndex;
use super::tree::{Node, TRANSPARENT, View};

/// Events of a storage by a class that is asked for; those without one are alike to nobody.
pub struct Classes<'a> {
    index: StorageIndex<'a>,
    /// Per event.
    class: Vec<Option<u32>>,
    base: Node,
    /// Per node, once it is found.
    known: Vec<Option<Wrote>>,
}

/// Who wrote the bytes of a version last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrote {
    /// Nobody says.
    Nobody,
    /// Events of one class.
    One(u32),
    /// Others, too, or nobody where somebody should.
    Several,
}

impl Wrote {
    fn and(self, other: Wrote) -> Wrote {
        match (self, other) {
            (Wrote::Nobody, one) | (one, Wrote::Nobody) => one,
            (a, b) if a == b => a,
            _ => Wrote::Several,
        }
    }
}

impl<'a> Classes<'a> {
    pub(super) fn new(index: StorageIndex<'a>, class: Vec<Option<u32>>) -> Classes<'a> {
        let (base, end) = index.nodes();
        Classes {
            index,
            class,
            base,
            known: vec![None; (end - base) as usize],
        }
    }

    /// The class of all events that may have written a byte of a footprint last, directly before
    /// `event`; `None` where they are of several, or bytes may be undefined or from outside.
    pub fn before(&mut self, event: u32, footprint: u32) -> Option<u32> {
        let mut nodes = Vec::new();
        self.index
            .nodes_of(self.index.before(event), footprint, &mut nodes);
        let all = nodes
            .into_iter()
            .fold(Wrote::Nobody, |all, node| all.and(self.of(node)));
        match all {
            Wrote::One(class) => Some(class),
            Wrote::Nobody | Wrote::Several => None,
        }
    }

    fn at(&self, node: Node) -> Option<usize> {
        node.checked_sub(self.base.max(3)).map(|above| {
            let skipped = self.base.max(3) - self.base;
            (above + skipped) as usize
        })
    }

    fn find(&self, node: Node) -> Option<Wrote> {
        match self.at(node) {
            Some(at) => self.known[at],
            // Constants: nobody wrote, or others did.
            None => Some(match self.index.tree().view(node) {
                View::Leaf(None) if node == TRANSPARENT => Wrote::Nobody,
                _ => Wrote::Several,
            }),
        }
    }

    fn of(&mut self, node: Node) -> Wrote {
        let mut todo = vec![node];
        while let Some(&node) = todo.last() {
            if self.find(node).is_some() {
                todo.pop();
                continue;
            }
            let found = match self.index.tree().view(node) {
                View::Leaf(event) => {
                    let class = event.and_then(|event| self.class[event as usize]);
                    Some(class.map_or(Wrote::Several, Wrote::One))
                }
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    let (left, right) = (self.find(a), self.find(b));
                    todo.extend(left.is_none().then_some(a));
                    todo.extend(right.is_none().then_some(b));
                    left.zip(right).map(|(left, right)| left.and(right))
                }
            };
            if let (Some(found), Some(at)) = (found, self.at(node)) {
                self.known[at] = Some(found);
                todo.pop();
            }
        }
        self.find(node).unwrap_or(Wrote::Several)
    }
}
