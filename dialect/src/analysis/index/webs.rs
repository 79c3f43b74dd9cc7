//! Webs: the accesses of a location that must stay in one storage.
//!
//! Formally, over the accesses of one storage, the smallest equivalence in which
//!
//! * a read and every write that may be the last to one of its bytes are equivalent;
//! * a read and a write of one instruction are, where they share a byte (it works in place).
//!
//! What may overwrite only some of its bytes ends nothing, so a read behind it ties it to what was
//! there before. Bytes nobody wrote, and those from outside, tie nobody to anybody.

use super::function::FunctionIndex;
use super::storage::StorageIndex;
use super::tree::View;

/// An access and the web it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Web {
    /// The access, as a number in [`FunctionIndex::touches`].
    pub touch: u32,
    /// Its web, counted from 0 in the order of their first accesses.
    pub web: u32,
}

impl FunctionIndex {
    /// The webs of the bytes a location is in, access by access in program order. Costs little more
    /// than as many steps as the accesses took to index.
    pub fn webs(&self, location: u32) -> Vec<Web> {
        let storage = self.storage_of(location);
        let events = storage.events();
        let mut sets = Sets::of(&storage);
        let order = |at: usize| self.touches()[events[at].id as usize].order;
        for (at, event) in events.iter().enumerate() {
            // An instruction's reads stand directly before its writes.
            if !event.effect.is_write() {
                continue;
            }
            let here = order(at);
            for before in (0..at).rev().take_while(|&before| order(before) == here) {
                if storage.events_overlap(before as u32, at as u32) {
                    sets.unite(before as u32, at as u32);
                }
            }
        }
        let mut number = vec![u32::MAX; events.len()];
        let mut webs = 0;
        (0u32..)
            .zip(events)
            .map(|(at, event)| {
                let slot = &mut number[sets.find(at) as usize];
                if *slot == u32::MAX {
                    *slot = webs;
                    webs += 1;
                }
                Web {
                    touch: event.id,
                    web: *slot,
                }
            })
            .collect()
    }
}

/// Disjoint sets of events and version nodes; the smallest member, an event, stands for its set.
struct Sets {
    leader: Vec<u32>,
}

impl Sets {
    fn of(storage: &StorageIndex<'_>) -> Sets {
        let count = storage.events().len() as u32;
        let (base, end) = storage.nodes();
        let base = base.max(3);
        let nodes = end.saturating_sub(base);
        let mut sets = Sets {
            leader: (0..count + nodes).collect(),
        };
        // The constants below `base` are nobody's.
        let member = |node: u32| node.checked_sub(base).map(|at| count + at);
        let mut seen = vec![false; nodes as usize];
        for event in 0..count {
            for node in storage
                .posted(event)
                .iter()
                .filter_map(|&node| member(node))
            {
                seen[(node - count) as usize] = true;
                sets.unite(event, node);
            }
        }
        // Parts are made before the whole.
        for node in (base..end).rev() {
            if !seen[(node - base) as usize] {
                continue;
            }
            let here = count + node - base;
            match storage.tree().view(node) {
                View::Leaf(event) => {
                    if let Some(event) = event {
                        sets.unite(event, here);
                    }
                }
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    for part in [a, b].into_iter().filter_map(member) {
                        seen[(part - count) as usize] = true;
                        sets.unite(part, here);
                    }
                }
            }
        }
        sets
    }

    fn find(&mut self, mut at: u32) -> u32 {
        while self.leader[at as usize] != at {
            let above = self.leader[at as usize];
            self.leader[at as usize] = self.leader[above as usize];
            at = above;
        }
        at
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.leader[a.max(b) as usize] = a.min(b);
    }
}
