//! What an access says without its loop terms, computed once per (type, access).

use std::ops::Deref;

use smallvec::SmallVec;

use super::super::access::{Access, Pair, view_dims};
use super::super::num::DType;
use super::super::space::{PSUM_BANK_BYTES, Space};
use super::super::types::MemType;
use super::bounds::is_easy;
use crate::ir::{Annot, Context, Type};

/// Most `step x count` pairs an engine encodes behind the partition.
pub const MAX_FREE_PAIRS: usize = 4;

/// Elements above which overlap of a destination with itself is not enumerated.
const ENUMERATED: u64 = 1 << 20;

/// What is wrong with an access whatever the loops do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing.
    None,
    /// A pair or the window of no elements.
    Empty,
    /// The last dimension is no whole number of elements of the recast dtype.
    Recast,
    /// More pairs than an engine encodes.
    Pairs(usize),
    /// A step outside signed 16 bits.
    Step(i64),
    /// A count outside unsigned 16 bits.
    Count(u64),
}

/// What an access takes part in: what most rules of single ops ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Where the location lives.
    pub space: Space,
    /// Dtype of the elements as accessed.
    pub dtype: DType,
    /// Partitions touched; 1 in DRAM.
    pub partitions: u64,
    /// Elements per partition (on chip) or in all (DRAM).
    pub elements: u64,
    /// `step x count` pairs behind the partition (on chip) or in all (DRAM).
    pub pairs: usize,
    /// Whether it stays in one PSUM bank of its partitions, no loop moving it: where this is false, it
    /// may still.
    pub in_bank: bool,
}

impl Shape {
    /// Whether `other` touches as many partitions and as many elements in each.
    pub fn same_shape(&self, other: &Shape) -> bool {
        self.partitions == other.partitions && self.elements == other.elements
    }

    /// Elements in all.
    pub fn total(&self) -> u64 {
        self.partitions.saturating_mul(self.elements)
    }
}

/// The summary of one access.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// How much of what it touches.
    pub shape: Shape,
    /// First partition, terms at zero.
    pub start: i64,
    /// Smallest element offset, terms at zero.
    pub low: i64,
    /// Largest element offset, terms at zero.
    pub high: i64,
    /// Elements an offset may run over.
    pub limit: u64,
    /// Partitions of the location; 1 in DRAM.
    pub room: u64,
    /// Whether loop indices move it.
    pub has_terms: bool,
    /// Whether it sees the location's bytes as another dtype.
    pub recast: bool,
    /// Whether it touches an element twice.
    pub overlaps_itself: bool,
    /// What is wrong with it.
    pub fault: Fault,
    /// Whether nothing is, whatever the instruction, where its location is not placed.
    pub(super) is_easy: bool,
}

impl Deref for Facts {
    type Target = Shape;

    fn deref(&self) -> &Shape {
        &self.shape
    }
}

impl Facts {
    /// Bytes from the first to behind the last element, terms at zero.
    pub fn byte_range(&self) -> (i64, i64) {
        let size = i64::from(self.dtype.size_bytes());
        (
            self.low.saturating_mul(size),
            self.high.saturating_add(1).saturating_mul(size),
        )
    }

    pub(super) fn of(mem: &MemType<'_>, access: &Access) -> Facts {
        let window = access.window;
        let (low, high) = access.offset_range();
        let size = i128::from(access.dtype.size_bytes());
        let bank = |byte: i128| byte.div_euclid(i128::from(PSUM_BANK_BYTES));
        let mut facts = Facts {
            shape: Shape {
                space: mem.space,
                dtype: access.dtype,
                partitions: access.partitions(),
                elements: access.elements(),
                pairs: access.pairs.len(),
                in_bank: mem.space == Space::Psum
                    && access.terms.is_empty()
                    && bank(i128::from(low) * size) == bank((i128::from(high) + 1) * size - 1),
            },
            start: window.map_or(0, |window| window.start),
            low,
            high,
            limit: 0,
            room: mem.partitions(),
            has_terms: !access.terms.is_empty(),
            recast: access.dtype != mem.dtype,
            overlaps_itself: false,
            fault: Fault::None,
            is_easy: false,
        };
        match view_elements(mem, access.dtype) {
            Some(elements) => facts.limit = elements,
            None => facts.fault = Fault::Recast,
        }
        if facts.elements == 0 || facts.partitions == 0 {
            facts.fault = Fault::Empty;
        } else if facts.fault == Fault::None {
            if mem.is_partitioned() {
                facts.fault = encoding_fault(&access.pairs);
            }
            facts.overlaps_itself = overlaps_itself(&access.pairs);
        }
        facts.is_easy = is_easy(&facts);
        facts
    }
}

/// Elements of `dtype` an offset runs over; `None` where rows are no whole number of them.
fn view_elements(mem: &MemType<'_>, dtype: DType) -> Option<u64> {
    let product = |dims: &[u64]| {
        dims.iter()
            .fold(1u64, |product, &dim| product.saturating_mul(dim))
    };
    if dtype.size_bytes() == mem.dtype.size_bytes() {
        return Some(product(mem.free_dims()));
    }
    view_dims(mem, dtype).map(|dims| product(&dims))
}

/// Whether an engine's access registers hold the pairs, neighbours that continue one another joined.
fn encoding_fault(pairs: &[Pair]) -> Fault {
    let fits = |pair: &Pair| {
        pair.count <= u64::from(u16::MAX) && (i16::try_from(pair.step).is_ok() || pair.count == 1)
    };
    if pairs.len() <= MAX_FREE_PAIRS && pairs.iter().all(fits) {
        return Fault::None;
    }
    let mut joined: SmallVec<[Pair; 8]> = SmallVec::new();
    for &pair in pairs.iter().rev().filter(|pair| pair.count > 1) {
        if let Some(inner) = joined.last_mut() {
            let continues = i64::try_from(inner.count)
                .ok()
                .and_then(|count| inner.step.checked_mul(count));
            let count = inner.count.saturating_mul(pair.count);
            if continues == Some(pair.step) && count <= u64::from(u16::MAX) {
                inner.count = count;
                continue;
            }
        }
        joined.push(pair);
    }
    for pair in &joined {
        if i16::try_from(pair.step).is_err() {
            return Fault::Step(pair.step);
        }
        if pair.count > u64::from(u16::MAX) {
            return Fault::Count(pair.count);
        }
    }
    if joined.len() > MAX_FREE_PAIRS {
        return Fault::Pairs(joined.len());
    }
    Fault::None
}

/// Whether two positions of the pairs are one element.
fn overlaps_itself(pairs: &[Pair]) -> bool {
    if let [pair] = pairs {
        return pair.step == 0 && pair.count > 1;
    }
    let mut moving: SmallVec<[(u64, u64); 8]> = SmallVec::new();
    for pair in pairs.iter().filter(|pair| pair.count > 1) {
        if pair.step == 0 {
            return true;
        }
        moving.push((pair.step.unsigned_abs(), pair.count));
    }
    moving.sort_unstable();
    // Each stride beyond the reach of all smaller ones: no two sums are equal.
    let mut reach = 0u64;
    let mut is_nested = true;
    for &(step, count) in &moving {
        is_nested &= step > reach;
        reach = reach.saturating_add(step.saturating_mul(count - 1));
    }
    if is_nested {
        return false;
    }
    if let [(a, a_count), (b, b_count)] = moving[..] {
        // x·a = y·b has its smallest solution at x = b/g, y = a/g.
        let g = gcd(a, b);
        return b / g < a_count && a / g < b_count;
    }
    let elements = moving
        .iter()
        .fold(1u64, |product, &(_, count)| product.saturating_mul(count));
    if elements > reach.saturating_add(1) {
        return true;
    }
    if elements > ENUMERATED || reach > ENUMERATED * 64 {
        return false;
    }
    enumerate(&moving, reach)
}

fn enumerate(moving: &[(u64, u64)], reach: u64) -> bool {
    let mut seen = vec![0u64; (reach / 64 + 1) as usize];
    let mut counter: SmallVec<[u64; 8]> = SmallVec::from_elem(0, moving.len());
    loop {
        let at: u64 = counter
            .iter()
            .zip(moving)
            .map(|(i, &(step, _))| i * step)
            .sum();
        let (word, bit) = ((at / 64) as usize, 1u64 << (at % 64));
        if seen[word] & bit != 0 {
            return true;
        }
        seen[word] |= bit;
        let Some(next) = counter
            .iter()
            .zip(moving)
            .position(|(&i, &(_, count))| i + 1 < count)
        else {
            return false;
        };
        counter[..next].fill(0);
        counter[next] += 1;
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Recently used facts, by (type, access).
pub(super) struct FactCache {
    slots: Vec<Option<(Type, Annot, Option<Facts>)>>,
}

impl FactCache {
    /// Of a power of two of slots.
    pub(super) fn new(slots: usize) -> FactCache {
        FactCache {
            slots: vec![None; slots],
        }
    }

    /// The facts of an access to a value of type `ty`; `None` where that is no memory.
    pub(super) fn get(&mut self, ctx: &Context, ty: Type, annot: Annot) -> Option<Facts> {
        let slot = (annot.index().wrapping_mul(31) ^ ty.index()) & (self.slots.len() - 1);
        if let Some((known_ty, known_annot, facts)) = self.slots[slot]
            && known_ty == ty
            && known_annot == annot
        {
            return facts;
        }
        let facts =
            MemType::get(ctx, ty).map(|mem| Facts::of(&mem, &Access::resolve(ctx, &mem, annot)));
        self.slots[slot] = Some((ty, annot, facts));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(i64, u64)]) -> Vec<Pair> {
        list.iter()
            .map(|&(step, count)| Pair { step, count })
            .collect()
    }

    #[test]
    fn overlap_of_a_destination_with_itself_equals_enumeration() {
        let mut state = 7u64;
        let mut next = |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..20_000 {
            let list: Vec<(i64, u64)> = (0..1 + next(4))
                .map(|_| (next(13) as i64 - 6, 1 + next(5)))
                .collect();
            let mut seen = std::collections::HashSet::new();
            let mut twice = false;
            let total: u64 = list.iter().map(|pair| pair.1).product();
            for mut i in 0..total {
                let mut at = 0;
                for &(step, count) in &list {
                    at += step * (i % count) as i64;
                    i /= count;
                }
                twice |= !seen.insert(at);
            }
            assert_eq!(overlaps_itself(&pairs(&list)), twice, "{list:?}");
        }
    }

    #[test]
    fn pairs_that_continue_one_another_count_once() {
        let six = pairs(&[(32, 2), (16, 2), (8, 2), (4, 2), (2, 2), (1, 2)]);
        assert_eq!(encoding_fault(&six), Fault::None);
        let holes = pairs(&[(320, 2), (100, 2), (30, 2), (9, 2), (2, 2)]);
        assert_eq!(encoding_fault(&holes), Fault::Pairs(5));
        assert_eq!(encoding_fault(&pairs(&[(32768, 2)])), Fault::Step(32768));
        assert_eq!(encoding_fault(&pairs(&[(32768, 1), (1, 4)])), Fault::None);
        assert_eq!(encoding_fault(&pairs(&[(-32768, 2)])), Fault::None);
        assert_eq!(encoding_fault(&pairs(&[(1, 65536)])), Fault::Count(65536));
        assert_eq!(encoding_fault(&pairs(&[(1, 65535)])), Fault::None);
    }
}
