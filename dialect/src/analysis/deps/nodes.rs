//! What nodes of a version stand for, as instructions and sets.

use super::super::index::tree::{Node, Tree, UNDEFINED, View};
use super::graph::Source;
use super::sets::{DIRECT, Sets};

/// What a node stands for: a short list, or a set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    from: u32,
    len: u16,
    /// Whether some of it is what was there before the body.
    pub(super) before: bool,
}

const UNKNOWN: Place = Place {
    from: u32::MAX,
    len: 0,
    before: false,
};

/// What nodes stand for, found once each.
#[derive(Default)]
pub(super) struct Nodes {
    places: Vec<Place>,
    lists: Vec<Source>,
}

impl Nodes {
    pub(super) fn heap_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>() + 4 * self.lists.capacity()
    }

    /// Makes a node of another tree stand for what one stood for here.
    pub(super) fn copy(&self, place: Place, node: Node, to: &mut Nodes) {
        let from = to.lists.len() as u32;
        to.lists.extend_from_slice(self.list(place));
        to.set(node, Place { from, ..place });
    }

    pub(super) fn known(&self, node: Node) -> Option<Place> {
        let place = self.places.get(node as usize).copied();
        place.filter(|&place| place != UNKNOWN)
    }

    pub(super) fn set(&mut self, node: Node, place: Place) {
        if self.places.len() <= node as usize {
            self.places.resize(node as usize + 1, UNKNOWN);
        }
        self.places[node as usize] = place;
    }

    pub(super) fn list(&self, place: Place) -> &[Source] {
        &self.lists[place.from as usize..place.from as usize + usize::from(place.len)]
    }

    /// What a node stands for; `order` numbers the instruction of an event.
    pub(super) fn of(
        &mut self,
        node: Node,
        tree: &Tree,
        sets: &mut Sets,
        order: impl Fn(u32) -> u32,
    ) -> Place {
        if let Some(place) = self.known(node) {
            return place;
        }
        let mut stack = vec![node];
        while let Some(&at) = stack.last() {
            if self.known(at).is_some() {
                stack.pop();
                continue;
            }
            let place = match tree.view(at) {
                View::Leaf(event) => {
                    let from = self.lists.len() as u32;
                    self.lists
                        .extend(event.map(|event| Source::instruction(order(event))));
                    Place {
                        from,
                        len: u16::from(event.is_some()),
                        before: at == UNDEFINED,
                    }
                }
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    match (self.known(a), self.known(b)) {
                        (Some(a), Some(b)) => self.union(a, b, sets),
                        (a_known, b_known) => {
                            stack.extend(a_known.is_none().then_some(a));
                            stack.extend(b_known.is_none().then_some(b));
                            continue;
                        }
                    }
                }
            };
            self.set(at, place);
            stack.pop();
        }
        self.known(node).unwrap_or(UNKNOWN)
    }

    /// A list with sets in it becomes one set, as whoever asks for it is not the last.
    pub(super) fn as_one(&mut self, node: Node, place: Place, sets: &mut Sets) -> Place {
        let list = self.list(place);
        if list.len() < 2 || !list.iter().any(|source| source.is_set()) {
            return place;
        }
        let set = sets.make(list);
        let one = Place {
            from: self.lists.len() as u32,
            len: 1,
            ..place
        };
        self.lists.push(set);
        self.set(node, one);
        one
    }

    fn union(&mut self, a: Place, b: Place, sets: &mut Sets) -> Place {
        let before = a.before || b.before;
        if b.len == 0 || a.from == b.from && a.len == b.len {
            return Place { before, ..a };
        }
        if a.len == 0 {
            return Place { before, ..b };
        }
        let mut both: smallvec::SmallVec<[Source; 2 * DIRECT]> = smallvec::SmallVec::new();
        both.extend_from_slice(self.list(a));
        both.extend_from_slice(self.list(b));
        both.sort_unstable();
        both.dedup();
        let from = self.lists.len() as u32;
        if both.len() > DIRECT {
            let set = sets.make(&both);
            self.lists.push(set);
        } else {
            self.lists.extend_from_slice(&both);
        }
        Place {
            from,
            len: (self.lists.len() as u32 - from) as u16,
            before,
        }
    }
}
