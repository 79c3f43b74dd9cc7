//! Lists of instructions that turn into join nodes where they are long.

use super::graph::{Graph, Source};

/// Members a list may have before it becomes a set.
pub(super) const DIRECT: usize = 8;

/// The join nodes made so far.
#[derive(Default)]
pub(super) struct Sets {
    pub(super) starts: Vec<u32>,
    pub(super) members: Vec<Source>,
}

impl Sets {
    /// A new set.
    pub(super) fn make(&mut self, members: &[Source]) -> Source {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.members.extend_from_slice(members);
        self.starts.push(self.members.len() as u32);
        Source::set(self.starts.len() as u32 - 2)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.members.capacity())
    }

    /// Replaces a long list by a set of it, so that whoever uses it next shares it.
    pub(super) fn freeze(&mut self, list: &mut Vec<Source>) {
        if list.len() > DIRECT {
            let set = self.make(list);
            list.clear();
            list.push(set);
        }
    }

    pub(super) fn move_into(self, graph: &mut Graph) {
        graph.set_starts = match self.starts.is_empty() {
            true => vec![0],
            false => self.starts,
        };
        graph.members = self.members;
        graph.set_starts.shrink_to_fit();
        graph.members.shrink_to_fit();
    }
}
