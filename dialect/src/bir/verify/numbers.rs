//! Who has which number.

use std::num::NonZeroU32;

use crate::ir::Op;

/// Where an instruction or set with a number stands.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    pub(super) op: Op,
    /// In the order of the text, from 1, so that a free place of a table needs no room of its own.
    pub(super) at: NonZeroU32,
}

impl Numbered {
    /// The operation behind `before` others.
    pub(super) fn new(op: Op, before: u32) -> Self {
        Self {
            op,
            at: NonZeroU32::MIN.saturating_add(before),
        }
    }
}

/// Operations by number: a table as long as the numbers are near each other, as they nearly always are, and a map for the rest.
#[derive(Default)]
pub(super) struct Table {
    near: Vec<Option<Numbered>>,
    far: hashbrown::HashMap<u32, Numbered, foldhash::fast::FixedState>,
}

/// Places of a table per operation seen, and places that are always granted.
const ROOM: (usize, usize) = (4, 1024);

impl Table {
    pub(super) fn clear(&mut self) {
        self.near.clear();
        self.far.clear();
    }

    /// Gives an operation its number, unless one has it: that one is returned.
    pub(super) fn insert(&mut self, id: u32, numbered: Numbered) -> Option<Numbered> {
        if let Some(first) = self.get(id) {
            return Some(first);
        }
        let place = id as usize;
        if place < ROOM.0 * numbered.at.get() as usize + ROOM.1 {
            if self.near.len() <= place {
                self.near.resize(place + 1, None);
            }
            self.near[place] = Some(numbered);
        } else {
            self.far.insert(id, numbered);
        }
        None
    }

    pub(super) fn get(&self, id: u32) -> Option<Numbered> {
        match self.near.get(id as usize) {
            Some(Some(found)) => Some(*found),
            _ if self.far.is_empty() => None,
            _ => self.far.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in a row, far apart, at the ends, and again: as a map of all of them says.
    #[test]
    fn near_and_far_numbers_are_found_and_taken_once() {
        let mut table = Table::default();
        let mut model = std::collections::BTreeMap::new();
        let dense = (0..3000).map(|n| n * 3);
        let ids = dense.chain([
            u32::MAX,
            1 << 20,
            20_000,
            5,
            0,
            1 << 20,
            20_000,
            14_000,
            u32::MAX,
        ]);
        for (before, id) in (0..).zip(ids) {
            let numbered = Numbered::new(Op::new(before as usize), before);
            let first = *model.entry(id).or_insert(before);
            let found = table
                .insert(id, numbered)
                .map_or(before, |first| first.at.get() - 1);
            assert_eq!(found, first, "{id}");
        }
        for id in (0..30_000).chain([1 << 20, u32::MAX - 1, u32::MAX]) {
            let found = table.get(id).map(|found| found.at.get() - 1);
            assert_eq!(found, model.get(&id).copied(), "{id}");
        }
        table.clear();
        assert!(table.get(3).is_none() && table.get(u32::MAX).is_none());
    }
}
