//! The bytes of a run: where each location lies, and which bytes are defined.
//!
//! Everything lies in one allocation, the *arena*, cut into regions:
//! * a location that is not placed has a region of its own (*logical* memory); aliases share one;
//! * locations that are placed share the region of their space, at their addresses (*physical*
//!   memory), partition by partition, so that a wrong placement shows as wrong data.
//!
//! Invariants:
//! * nothing is allocated before the sum of all regions was compared with the limit;
//! * a region starts at a multiple of 64 bytes of the address space;
//! * `defined` of a region counts its own bytes from 0.

mod bits;

use std::ops::Range;

pub(crate) use bits::Bits;

/// Bytes every region is aligned to: a cache line, and the widest vector.
const ALIGN: usize = 64;

/// A stretch of the arena with definedness of its own.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// First byte in the arena.
    pub(crate) start: usize,
    /// Which bytes are defined.
    pub(crate) defined: Bits,
    /// PSUM only: the words (of 4 bytes) the tensor engine wrote last.
    pub(crate) matmult: Bits,
    /// Whether `matmult` is kept.
    pub(crate) psum: bool,
}

/// All bytes of a run.
pub(crate) struct Memory {
    words: Vec<u64>,
    skew: usize,
    len: usize,
    pub(crate) regions: Vec<Region>,
    /// Whether reading an undefined byte is an error.
    pub(crate) checked: bool,
}

impl Memory {
    /// Bytes of the arena for regions of these sizes.
    pub(crate) fn arena_bytes(sizes: impl IntoIterator<Item = u64>) -> u128 {
        sizes
            .into_iter()
            .map(|bytes| u128::from(bytes).next_multiple_of(ALIGN as u128))
            .sum()
    }

    /// Zeroed, undefined memory: regions of these sizes, and whether each is PSUM. The caller has
    /// compared [`Memory::arena_bytes`] with the limit.
    pub(crate) fn new(regions: &[(usize, bool)]) -> Memory {
        let mut len = 0;
        let regions = regions
            .iter()
            .map(|&(bytes, psum)| {
                let start = len;
                len += bytes.next_multiple_of(ALIGN);
                Region {
                    start,
                    defined: Bits::none(bytes),
                    matmult: Bits::none(if psum { bytes.div_ceil(4) } else { 0 }),
                    psum,
                }
            })
            .collect();
        // Zeroed pages come lazily from the system: a large location costs nothing until used.
        let words = vec![0u64; len / 8 + ALIGN / 8];
        let address = words.as_ptr() as usize;
        let skew = (address.next_multiple_of(ALIGN) - address) / 8;
        Memory {
            words,
            skew,
            len,
            regions,
            checked: true,
        }
    }

    /// The arena.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let words = &self.words[self.skew..self.skew + self.len / 8];
        bytemuck::cast_slice(words)
    }

    /// The arena, to write.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let words = &mut self.words[self.skew..self.skew + self.len / 8];
        bytemuck::cast_slice_mut(words)
    }

    /// Marks bytes of a region, counted from the arena's start, as written by an engine.
    #[inline]
    pub(crate) fn mark(&mut self, region: usize, range: Range<usize>) {
        let region = &mut self.regions[region];
        let range = range.start - region.start..range.end - region.start;
        if region.psum && !region.matmult.is_empty() {
            region
                .matmult
                .remove(range.start / 4..range.end.div_ceil(4));
        }
        region.defined.insert(range);
    }

    /// Marks bytes of a region as written by the tensor engine.
    pub(crate) fn mark_matmult(&mut self, region: usize, range: Range<usize>) {
        let region = &mut self.regions[region];
        let range = range.start - region.start..range.end - region.start;
        region
            .matmult
            .insert(range.start / 4..range.end.div_ceil(4));
        region.defined.insert(range);
    }

    /// The first byte of a range, counted from the arena's start, that is undefined.
    #[inline]
    pub(crate) fn first_undefined(&self, region: usize, range: Range<usize>) -> Option<usize> {
        let region = &self.regions[region];
        if region.defined.is_full() {
            return None;
        }
        let at = region
            .defined
            .first_missing(range.start - region.start..range.end - region.start)?;
        Some(at + region.start)
    }

    /// The first byte of a range whose word the tensor engine did not write last.
    pub(crate) fn first_not_matmult(&self, region: usize, range: Range<usize>) -> Option<usize> {
        let region = &self.regions[region];
        let words = (range.start - region.start) / 4..(range.end - region.start).div_ceil(4);
        let at = region.matmult.first_missing(words)?;
        Some((at * 4 + region.start).max(range.start))
    }
}
