//! What every node depends on, as prefixes of chains.
//!
//! Chains cover the nodes; on a chain every node depends on the one before. What a node depends on
//! is then a prefix of every chain, and a tree over the chains says how long each is. Equal trees
//! are one tree, so a node that depends on what another does and on one thing more costs a path,
//! and comparing two such trees looks only at where they differ.
//!
//! Invariants:
//! * nodes get their trees in topological order, up to `done`;
//! * a tree is kept as long as somebody may ask for it: until the last instruction that depends
//!   on its node, by sets or not;
//! * slots of the lowest level hold lengths, marked by [`LENGTH`]; all others hold trees.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use super::reach::Nodes;

/// Marks a length among trees.
const LENGTH: u32 = 1 << 31;
/// Trees made before the first collection of what nobody asks for anymore.
const SLACK: usize = 1 << 14;

type Slots = [u32; 4];

/// Trees by what they hold; tree 0 is the empty one.
struct Trees {
    slots: Vec<Slots>,
    table: HashTable<u32>,
    state: FixedState,
    levels: u32,
    steps: u64,
}

impl Trees {
    fn new(chains: u32) -> Trees {
        let mut levels = 1;
        while levels < 16 && chains > 1 << (2 * levels) {
            levels += 1;
        }
        Trees {
            slots: vec![[0; 4]],
            table: HashTable::new(),
            state: FixedState::default(),
            levels,
            steps: 0,
        }
    }

    fn intern(&mut self, slots: Slots) -> u32 {
        self.steps += 1;
        if slots == [0; 4] {
            return 0;
        }
        let Trees { slots: all, .. } = self;
        let hash = self.state.hash_one(slots);
        let entry = self.table.entry(
            hash,
            |&at| all[at as usize] == slots,
            |&at| self.state.hash_one(all[at as usize]),
        );
        *entry
            .or_insert_with(|| {
                all.push(slots);
                all.len() as u32 - 1
            })
            .get()
    }

    /// How long the prefix of a chain is.
    fn length(&self, tree: u32, chain: u32) -> u32 {
        let mut at = tree;
        for level in (0..self.levels).rev() {
            at = self.slots[at as usize][(chain >> (2 * level) & 3) as usize];
            if at == 0 {
                return 0;
            }
        }
        at & !LENGTH
    }

    /// The tree with the prefix of a chain so long at least.
    fn with(&mut self, tree: u32, chain: u32, length: u32) -> u32 {
        if length == 0 {
            return tree;
        }
        let mut path = [0u32; 16];
        let mut at = tree;
        for level in (0..self.levels).rev() {
            path[level as usize] = at;
            at = self.slots[at as usize][(chain >> (2 * level) & 3) as usize];
        }
        if at & !LENGTH >= length {
            return tree;
        }
        at = LENGTH | length;
        for level in 0..self.levels {
            let mut slots = self.slots[path[level as usize] as usize];
            slots[(chain >> (2 * level) & 3) as usize] = at;
            at = self.intern(slots);
        }
        at
    }

    /// The longer prefix of every chain.
    fn union(&mut self, a: u32, b: u32) -> u32 {
        // Not deeper than the levels there are.
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        let (left, right) = (self.slots[a as usize], self.slots[b as usize]);
        let mut both = left;
        for (slot, &other) in both.iter_mut().zip(&right) {
            *slot = match (*slot | other) & LENGTH {
                0 => self.union(*slot, other),
                _ => (*slot).max(other),
            };
        }
        if both == left {
            self.steps += 1;
            a
        } else if both == right {
            self.steps += 1;
            b
        } else {
            self.intern(both)
        }
    }

    /// Keeps what the roots hold.
    fn collect(&mut self, roots: &mut [u32]) {
        let mut place = vec![0u32; self.slots.len()];
        for &root in roots.iter() {
            place[root as usize] = 1;
        }
        // What a tree holds is older than itself.
        for at in (1..self.slots.len()).rev() {
            if place[at] != 0 {
                for slot in self.slots[at] {
                    if slot & LENGTH == 0 {
                        place[slot as usize] = 1;
                    }
                }
            }
        }
        place[0] = 0;
        let mut kept: Vec<Slots> = vec![[0; 4]];
        let mut table = HashTable::new();
        for at in 1..self.slots.len() {
            if place[at] == 0 {
                continue;
            }
            let slots = self.slots[at].map(|slot| match slot & LENGTH {
                0 => place[slot as usize],
                _ => slot,
            });
            place[at] = kept.len() as u32;
            let state = &self.state;
            table.insert_unique(state.hash_one(slots), place[at], |&at: &u32| {
                state.hash_one(kept[at as usize])
            });
            kept.push(slots);
        }
        for root in roots {
            *root = place[*root as usize];
        }
        self.steps += self.slots.len() as u64;
        (self.slots, self.table) = (kept, table);
    }
}

/// A node's chain and its place on it, from 1.
#[derive(Clone, Copy, Default)]
struct On {
    chain: u32,
    at: u32,
}

pub(super) struct Chains {
    on: Vec<On>,
    /// Per node, its place in the order.
    place: Vec<u32>,
    /// Per node, its tree: the prefixes of other chains, its own node not counted.
    trees_of: Vec<u32>,
    /// Per node, the place of the last instruction that may ask for it.
    last: Vec<u32>,
    trees: Trees,
    /// Nodes that have their trees.
    done: u32,
    /// Trees there were when the last collection ended.
    floor: usize,
    /// Trees there may be.
    limit: usize,
    /// Room to sort in.
    before: Vec<u32>,
}

impl Chains {
    /// Covers the nodes, given in topological order; `limit` trees may be kept.
    pub(super) fn new(nodes: Nodes<'_>, order: &[u32], place: Vec<u32>, limit: usize) -> Chains {
        let mut on = vec![On::default(); order.len()];
        let mut is_end = vec![false; order.len()];
        let mut count = 0u32;
        for &node in order {
            let ends = nodes.before(node).filter(|&from| is_end[from as usize]);
            let nearest = ends.max_by_key(|&from| place[from as usize]);
            on[node as usize] = match nearest {
                Some(from) => {
                    is_end[from as usize] = false;
                    let On { chain, at } = on[from as usize];
                    On { chain, at: at + 1 }
                }
                None => {
                    count += 1;
                    On {
                        chain: count - 1,
                        at: 1,
                    }
                }
            };
            is_end[node as usize] = true;
        }
        let mut last = place.clone();
        for &node in order.iter().rev() {
            let until = match nodes.is_set(node) {
                true => last[node as usize],
                false => place[node as usize],
            };
            for from in nodes.before(node) {
                let known = &mut last[from as usize];
                *known = until.max(*known);
            }
        }
        Chains {
            on,
            place,
            trees_of: vec![0; order.len()],
            last,
            trees: Trees::new(count),
            done: 0,
            floor: 0,
            limit,
            before: Vec::new(),
        }
    }

    pub(super) fn steps(&self) -> u64 {
        self.trees.steps
    }

    /// Gives all nodes up to a place their trees; `now` is the place of the instruction asked for.
    /// Whether there was room.
    pub(super) fn advance(&mut self, nodes: Nodes<'_>, order: &[u32], to: u32, now: u32) -> bool {
        while self.done <= to {
            let node = order[self.done as usize];
            let own = self.on[node as usize];
            self.before.clear();
            self.before.extend(nodes.before(node));
            // The nearest first: what they depend on, others are among, with all these depend on.
            self.before
                .sort_unstable_by_key(|&from| std::cmp::Reverse(self.place[from as usize]));
            let on_own = |from: u32| self.on[from as usize].chain == own.chain;
            let last = self.before.iter().find(|&&from| on_own(from));
            let mut tree = last.map_or(0, |&from| self.trees_of[from as usize]);
            for &from in &self.before {
                let On { chain, at } = self.on[from as usize];
                if chain != own.chain && self.trees.length(tree, chain) < at {
                    tree = self.trees.union(tree, self.trees_of[from as usize]);
                    tree = self.trees.with(tree, chain, at);
                }
            }
            self.trees_of[node as usize] = tree;
            self.done += 1;
            let few = 2 * self.floor + (self.done as usize + SLACK).min(self.limit);
            if self.trees.slots.len() > few && !self.tidy(order, now) {
                return false;
            }
        }
        true
    }

    fn tidy(&mut self, order: &[u32], now: u32) -> bool {
        for &node in &order[..self.done as usize] {
            if self.last[node as usize] < now {
                self.trees_of[node as usize] = 0;
            }
        }
        self.trees.collect(&mut self.trees_of);
        self.floor = self.trees.slots.len();
        self.floor <= self.limit
    }

    /// Whether `to`, which has its tree, depends on `from` or is it.
    pub(super) fn reaches(&mut self, from: u32, to: u32) -> bool {
        let (from, on) = (self.on[from as usize], self.on[to as usize]);
        if from.chain == on.chain {
            return from.at <= on.at;
        }
        self.trees.steps += 1;
        self.trees.length(self.trees_of[to as usize], from.chain) >= from.at
    }

    /// Drops of a list, given last first, what others of it depend on; all have their trees.
    pub(super) fn retain_last(&mut self, list: &mut Vec<u32>) {
        let mut before = 0;
        for &at in list.iter() {
            let On { chain, at: place } = self.on[at as usize];
            if self.trees.length(before, chain) < place {
                before = self.trees.union(before, self.trees_of[at as usize]);
                before = self.trees.with(before, chain, place - 1);
            }
        }
        list.retain(|&at| {
            let On { chain, at: place } = self.on[at as usize];
            self.trees.length(before, chain) < place
        });
    }
}
