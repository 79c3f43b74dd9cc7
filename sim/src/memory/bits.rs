//! Sets of positions, as bits: which bytes are defined, which words the tensor engine wrote.

use std::ops::Range;

/// A set of positions below a bound, with "all of them" told at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
    missing: usize,
}

/// The bits of a range that fall into one word.
fn mask(from: usize, to: usize) -> u64 {
    debug_assert!(from < to && to <= 64);
    (u64::MAX >> (64 - (to - from))) << from
}

impl Bits {
    /// No position of `len`.
    pub(crate) fn none(len: usize) -> Bits {
        Bits {
            words: Vec::new(),
            len,
            missing: len,
        }
    }

    /// Every position is in it.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.missing == 0
    }

    /// Nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.missing == self.len
    }

    fn pieces(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let (start, end) = (range.start, range.end);
        let words = if start < end {
            start / 64..(end - 1) / 64 + 1
        } else {
            0..0
        };
        words.map(move |word| {
            let from = start.max(word * 64) - word * 64;
            let to = end.min(word * 64 + 64) - word * 64;
            (word, mask(from, to))
        })
    }

    /// Adds a range.
    pub(crate) fn insert(&mut self, range: Range<usize>) {
        if self.missing == 0 {
            return;
        }
        if range.start == 0 && range.end >= self.len {
            self.words = Vec::new();
            self.missing = 0;
            return;
        }
        if self.words.is_empty() {
            self.words = vec![0; self.len.div_ceil(64)];
        }
        for (word, mask) in Bits::pieces(range) {
            self.missing -= (mask & !self.words[word]).count_ones() as usize;
            self.words[word] |= mask;
        }
        if self.missing == 0 {
            self.words = Vec::new();
        }
    }

    /// Takes a range out.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        if self.missing == self.len {
            return;
        }
        if self.words.is_empty() {
            self.words = vec![0; self.len.div_ceil(64)];
            for (word, mask) in Bits::pieces(0..self.len) {
                self.words[word] = mask;
            }
        }
        for (word, mask) in Bits::pieces(range) {
            self.missing += (mask & self.words[word]).count_ones() as usize;
            self.words[word] &= !mask;
        }
        if self.missing == self.len {
            self.words = Vec::new();
        }
    }

    /// The first position of a range that is not in it.
    pub(crate) fn first_missing(&self, range: Range<usize>) -> Option<usize> {
        if self.missing == 0 || range.is_empty() {
            return None;
        }
        if self.words.is_empty() {
            return Some(range.start);
        }
        Bits::pieces(range).find_map(|(word, mask)| {
            let absent = mask & !self.words[word];
            (absent != 0).then(|| word * 64 + absent.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_a_list_of_flags() {
        let mut state = 9u64;
        let mut next = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for len in [1, 63, 64, 65, 200] {
            let mut bits = Bits::none(len);
            let mut flags = vec![false; len];
            for _ in 0..2000 {
                let (a, b) = (next(len + 1), next(len + 1));
                let range = a.min(b)..a.max(b);
                match next(3) {
                    0 => {
                        bits.insert(range.clone());
                        flags[range].fill(true);
                    }
                    1 => {
                        bits.remove(range.clone());
                        flags[range].fill(false);
                    }
                    _ => {
                        let want = flags[range.clone()].iter().position(|&set| !set);
                        assert_eq!(
                            bits.first_missing(range.clone()),
                            want.map(|at| at + range.start)
                        );
                    }
                }
                assert_eq!(bits.is_full(), flags.iter().all(|&set| set));
                assert_eq!(bits.is_empty(), flags.iter().all(|&set| !set));
            }
        }
    }
}
