//! Which of the locations that are live share bytes with one that comes to life.

use std::collections::{BTreeMap, BTreeSet};

use super::Place;
use crate::bir::space::Space;

/// Live locations by space, power of two of their size, and first byte: of each size only those
/// that start near a location can share bytes with it.
#[derive(Default)]
pub(super) struct Active {
    by_size: BTreeMap<(Space, u32), BTreeSet<(u64, usize)>>,
}

impl Active {
    fn class(place: &Place) -> (Space, u32) {
        let len = place.bytes.1 - place.bytes.0;
        (place.space, len.max(1).ilog2())
    }

    pub(super) fn insert(&mut self, place: &Place, slot: usize) {
        let starts = self.by_size.entry(Self::class(place)).or_default();
        starts.insert((place.bytes.0, slot));
    }

    pub(super) fn remove(&mut self, place: &Place, slot: usize) {
        if let Some(starts) = self.by_size.get_mut(&Self::class(place)) {
            starts.remove(&(place.bytes.0, slot));
        }
    }

    /// A live location that shares bytes with `here`; `place` is where locations stand.
    pub(super) fn meeting<'a>(
        &self,
        here: &Place,
        place: impl Fn(usize) -> &'a Place,
    ) -> Option<usize> {
        let sizes = (here.space, 0)..=(here.space, u32::MAX);
        self.by_size.range(sizes).find_map(|(&(_, size), starts)| {
            let longest = 1u64.checked_shl(size + 1).unwrap_or(u64::MAX);
            let from = here.bytes.0.saturating_sub(longest);
            let near = starts.range((from, 0)..(here.bytes.1, 0));
            near.map(|&(_, slot)| slot).find(|&slot| {
                let there = place(slot);
                meets(here.partitions, there.partitions) && meets(here.bytes, there.bytes)
            })
        })
    }
}

fn meets(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_meets_another_exactly_where_brute_force_says_so() {
        let mut state = 11u64;
        let mut next = |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..200 {
            let mut all: Vec<Place> = Vec::new();
            let mut active = Active::default();
            let mut live: Vec<usize> = Vec::new();
            for slot in 0..40usize {
                let (partition, byte) = (next(4) * 32, next(64));
                let longest = [1, 4, 40][next(3) as usize];
                let len = next(longest + 1);
                all.push(Place {
                    space: [Space::Sbuf, Space::Psum][next(2) as usize],
                    partitions: (partition, partition + 32 * (1 + next(2))),
                    bytes: (byte, byte + len),
                });
                let here = &all[slot];
                let meets_one = |other: &usize| {
                    let there = &all[*other];
                    here.space == there.space
                        && meets(here.partitions, there.partitions)
                        && meets(here.bytes, there.bytes)
                };
                let found = active.meeting(here, |slot| &all[slot]);
                assert_eq!(found.is_some(), live.iter().any(meets_one));
                assert!(found.is_none_or(|other| live.contains(&other) && meets_one(&other)));
                active.insert(here, slot);
                live.push(slot);
                if next(3) == 0 {
                    let gone = live.swap_remove(next(live.len() as u64) as usize);
                    active.remove(&all[gone], gone);
                }
            }
        }
    }
}
