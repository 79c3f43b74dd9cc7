//! Dominators of a region's blocks, without recursion.

use hashbrown::HashMap;

use crate::ir::{Block, Ir, Region};

/// Which blocks of one region dominate which.
pub struct Dominators {
    number: HashMap<Block, u32, foldhash::fast::FixedState>,
    /// Interval of each block in a walk of the dominator tree; empty where unreachable.
    enter: Vec<u32>,
    leave: Vec<u32>,
}

impl Dominators {
    /// Dominators of the blocks of `region`.
    pub fn new(ir: &Ir, region: Region) -> Dominators {
        let blocks: Vec<Block> = ir.blocks(region).collect();
        let mut number = HashMap::with_hasher(foldhash::fast::FixedState::default());
        number.extend(
            blocks
                .iter()
                .enumerate()
                .map(|(i, &block)| (block, i as u32)),
        );
        let successors: Vec<Vec<u32>> = blocks
            .iter()
            .map(|&block| {
                let targets = ir.terminator(block).map_or(&[][..], |op| ir.successors(op));
                targets
                    .iter()
                    .filter_map(|target| number.get(target).copied())
                    .collect()
            })
            .collect();
        let order = postorder(&successors);
        let idom = immediate(&successors, &order);
        let (enter, leave) = intervals(&idom, &order);
        Dominators {
            number,
            enter,
            leave,
        }
    }

    /// Whether every path to `below` goes through `above`; true for unreachable `below`.
    pub fn dominates(&self, above: Block, below: Block) -> bool {
        let (Some(&above), Some(&below)) = (self.number.get(&above), self.number.get(&below))
        else {
            return false;
        };
        let (above, below) = (above as usize, below as usize);
        if self.leave[below] == 0 {
            return true;
        }
        self.enter[above] <= self.enter[below] && self.leave[below] <= self.leave[above]
    }

    /// Whether the block can be reached from the entry.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.number
            .get(&block)
            .is_some_and(|&number| self.leave[number as usize] != 0)
    }
}

/// Blocks of a region in an order in which control may flow, the unreachable ones left out.
pub(super) fn flow_order(ir: &Ir, region: Region) -> Vec<Block> {
    let blocks: Vec<Block> = ir.blocks(region).collect();
    if blocks.len() < 2 {
        return blocks;
    }
    let mut number: HashMap<Block, u32, foldhash::fast::FixedState> = HashMap::default();
    number.extend(
        blocks
            .iter()
            .enumerate()
            .map(|(i, &block)| (block, i as u32)),
    );
    let successors: Vec<Vec<u32>> = blocks
        .iter()
        .map(|&block| {
            let targets = ir.terminator(block).map_or(&[][..], |op| ir.successors(op));
            targets
                .iter()
                .rev()
                .filter_map(|target| number.get(target).copied())
                .collect()
        })
        .collect();
    postorder(&successors)
        .iter()
        .rev()
        .map(|&at| blocks[at as usize])
        .collect()
}

fn postorder(successors: &[Vec<u32>]) -> Vec<u32> {
    let mut seen = vec![false; successors.len()];
    let mut order = Vec::with_capacity(successors.len());
    let mut stack = Vec::new();
    if !successors.is_empty() {
        seen[0] = true;
        stack.push((0u32, 0usize));
    }
    while let Some((block, next)) = stack.last_mut() {
        match successors[*block as usize].get(*next) {
            Some(&target) => {
                *next += 1;
                if !std::mem::replace(&mut seen[target as usize], true) {
                    stack.push((target, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order
}

const NONE: u32 = u32::MAX;

/// Cooper, Harvey and Kennedy's iteration over postorder numbers.
fn immediate(successors: &[Vec<u32>], order: &[u32]) -> Vec<u32> {
    let count = successors.len();
    let mut rank = vec![NONE; count];
    for (i, &block) in order.iter().enumerate() {
        rank[block as usize] = i as u32;
    }
    let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); count];
    for &block in order {
        for &target in &successors[block as usize] {
            predecessors[target as usize].push(block);
        }
    }
    let mut idom = vec![NONE; count];
    if let Some(root) = idom.first_mut() {
        *root = 0;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev().skip(1) {
            let mut found = NONE;
            for &before in &predecessors[block as usize] {
                if idom[before as usize] == NONE {
                    continue;
                }
                found = if found == NONE {
                    before
                } else {
                    meet(&idom, &rank, found, before)
                };
            }
            if found != idom[block as usize] {
                idom[block as usize] = found;
                changed = true;
            }
        }
    }
    idom
}

fn meet(idom: &[u32], rank: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while rank[a as usize] < rank[b as usize] {
            a = idom[a as usize];
        }
        while rank[b as usize] < rank[a as usize] {
            b = idom[b as usize];
        }
    }
    a
}

fn intervals(idom: &[u32], order: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); idom.len()];
    for &block in order.iter().rev().skip(1) {
        children[idom[block as usize] as usize].push(block);
    }
    let (mut enter, mut leave) = (vec![0; idom.len()], vec![0; idom.len()]);
    let mut clock = 0;
    let mut stack = Vec::new();
    if !idom.is_empty() {
        stack.push((0u32, 0usize));
    }
    while let Some((block, next)) = stack.last_mut() {
        let at = *block as usize;
        if *next == 0 {
            clock += 1;
            enter[at] = clock;
        }
        match children[at].get(*next) {
            Some(&child) => {
                *next += 1;
                stack.push((child, 0));
            }
            None => {
                // Also where there are no children: the interval is never empty.
                leave[at] = clock;
                stack.pop();
            }
        }
    }
    (enter, leave)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(edges: &[&[u32]]) -> Vec<u32> {
        let successors: Vec<Vec<u32>> = edges.iter().map(|list| list.to_vec()).collect();
        immediate(&successors, &postorder(&successors))
    }

    #[test]
    fn joins_are_dominated_by_the_fork_and_loops_by_their_header() {
        assert_eq!(tree(&[&[1, 2], &[3], &[3], &[]]), [0, 0, 0, 0]);
        assert_eq!(tree(&[&[1], &[2, 3], &[1], &[]]), [0, 0, 1, 1]);
        assert_eq!(tree(&[&[1], &[], &[1]]), [0, 0, NONE]);
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let count = 100_000u32;
        let successors: Vec<Vec<u32>> = (0..count)
            .map(|i| if i + 1 < count { vec![i + 1] } else { vec![] })
            .collect();
        let order = postorder(&successors);
        let idom = immediate(&successors, &order);
        let (enter, leave) = intervals(&idom, &order);
        assert_eq!(idom[count as usize - 1], count - 2);
        assert!(enter[5] < enter[9] && leave[9] <= leave[5]);
    }
}
