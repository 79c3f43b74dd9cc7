//! Access patterns: which elements of a location an operand touches, and in which order.
//!
//! An access is the annotation of a memory operand. [`Annot::UNIT`] is the whole location in
//! row-major order; every other access is interned as words:
//!
//! * a partition window (on chip only), start and count;
//! * an element offset in units of the access's dtype, per partition on chip, flat in DRAM;
//! * `[step, count]` pairs, outermost first;
//! * an optional dtype the bytes are seen as;
//! * terms `coefficient · d_k`, added to the offset or the window's start, where `d_k` is the
//!   k-th operand of the instruction in the role `indices`.
//!
//! Invariants: terms are sorted, without zero coefficients or duplicates; an access equal to the
//! whole location is `UNIT`; so equal accesses of one location type have one handle.

use smallvec::SmallVec;

use super::num::DType;
use super::types::MemType;
use crate::ir::{Annot, Context};

/// `step x count`, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// Distance between neighbours.
    pub step: i64,
    /// Number of elements.
    pub count: u64,
}

/// What a term adds to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Target {
    /// The element offset.
    Offset,
    /// The start of the partition window.
    Partition,
}

/// `coefficient · d_index`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term {
    /// What it adds to.
    pub target: Target,
    /// Position among the instruction's `indices`.
    pub index: u8,
    /// Factor, in elements or partitions.
    pub coef: i64,
}

/// A partition window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// First partition, without its terms.
    pub start: i64,
    /// Number of partitions.
    pub count: u64,
}

/// An access in full, whole locations spelt out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Dtype of the elements, the location's own where it is not reinterpreted.
    pub dtype: DType,
    /// Whether the text names that dtype (`as i32`).
    pub recast: bool,
    /// Partition window; `None` in DRAM.
    pub window: Option<Window>,
    /// First element, without its terms.
    pub offset: i64,
    /// Pairs, outermost first; never empty.
    pub pairs: SmallVec<[Pair; 5]>,
    /// Terms, sorted by target and index.
    pub terms: SmallVec<[Term; 4]>,
}

/// As [`Access`], of pairs and terms that lie elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct AccessView<'a> {
    /// As of [`Access`].
    pub dtype: DType,
    /// As of [`Access`].
    pub recast: bool,
    /// As of [`Access`].
    pub window: Option<Window>,
    /// As of [`Access`].
    pub offset: i64,
    /// As of [`Access`].
    pub pairs: &'a [Pair],
    /// As of [`Access`].
    pub terms: &'a [Term],
}

/// Why an access cannot be stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AccessError {
    /// The window does not fit 16 bits.
    #[error("partition window {start}:{count} is outside 0:65535")]
    Window {
        /// First partition.
        start: i64,
        /// Partitions.
        count: u64,
    },
    /// A step or count does not fit 32 bits.
    #[error("step {step} x count {count} does not fit 32 bits")]
    Pair {
        /// Step.
        step: i64,
        /// Count.
        count: u64,
    },
    /// A coefficient does not fit 55 bits.
    #[error("index coefficient {coef} does not fit 55 bits")]
    Coef {
        /// Coefficient.
        coef: i64,
    },
    /// Too many pairs or terms.
    #[error("an access has at most {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
}

const MAX_PAIRS: usize = 32;
const MAX_TERMS: usize = 64;
const COEF_BITS: u32 = 56;

impl Access {
    /// The whole of a location, row-major.
    pub fn whole(mem: &MemType<'_>) -> Access {
        let dims = mem.free_dims();
        let mut pairs: SmallVec<[Pair; 5]> = SmallVec::with_capacity(dims.len());
        let mut step = 1i64;
        for &dim in dims.iter().rev() {
            pairs.push(Pair { step, count: dim });
            step = step.saturating_mul(i64::try_from(dim).unwrap_or(i64::MAX));
        }
        pairs.reverse();
        if pairs.is_empty() {
            pairs.push(Pair { step: 1, count: 1 });
        }
        Access {
            dtype: mem.dtype,
            recast: false,
            window: mem.is_partitioned().then(|| Window {
                start: 0,
                count: mem.partitions(),
            }),
            offset: 0,
            pairs,
            terms: SmallVec::new(),
        }
    }

    /// The access behind an annotation of an operand of type `mem`.
    pub fn resolve(ctx: &Context, mem: &MemType<'_>, annot: Annot) -> Access {
        if annot == Annot::UNIT {
            return Access::whole(mem);
        }
        Access::decode(ctx.annot_words(annot), mem.dtype)
    }

    /// Whether loop indices move the access behind an annotation.
    pub fn has_terms(ctx: &Context, annot: Annot) -> bool {
        let head = ctx.annot_words(annot).first().copied().unwrap_or(0);
        head >> 16 & 0xff != 0
    }

    fn decode(words: &[u64], own: DType) -> Access {
        let head = words.first().copied().unwrap_or(0);
        let recast = (head & 0xff) as u8;
        let pair_count = (head >> 8 & 0xff) as usize;
        let windowed = head >> 24 & 1 != 0;
        let rest = words.get(2..).unwrap_or_default();
        let (pairs, terms) = rest.split_at(pair_count.min(rest.len()));
        let pairs = pairs
            .iter()
            .map(|&word| Pair {
                step: i64::from((word >> 32) as i32),
                count: word & 0xffff_ffff,
            })
            .collect();
        let terms = terms
            .iter()
            .map(|&word| Term {
                target: if word >> 63 != 0 {
                    Target::Partition
                } else {
                    Target::Offset
                },
                index: (word >> COEF_BITS & 0x7f) as u8,
                coef: ((word << (64 - COEF_BITS)) as i64) >> (64 - COEF_BITS),
            })
            .collect();
        Access {
            dtype: recast
                .checked_sub(1)
                .and_then(DType::from_index)
                .unwrap_or(own),
            recast: recast != 0,
            window: windowed.then_some(Window {
                start: i64::from((head >> 32) as u16 as i16),
                count: head >> 48,
            }),
            offset: words.get(1).copied().unwrap_or(0) as i64,
            pairs,
            terms,
        }
    }

    /// Whether it is the whole of a location of type `mem`, row-major.
    pub fn is_whole(&self, mem: &MemType<'_>) -> bool {
        if self.recast || self.offset != 0 || !self.terms.is_empty() {
            return false;
        }
        let window = match self.window {
            Some(window) => window.start == 0 && window.count == mem.partitions(),
            None => !mem.is_partitioned(),
        };
        let dims = mem.free_dims();
        if !window || self.pairs.len() != dims.len().max(1) {
            return false;
        }
        let mut stride = 1i64;
        for (i, pair) in self.pairs.iter().enumerate().rev() {
            let dim = dims.get(i).copied().unwrap_or(1);
            if pair.step != stride || pair.count != dim {
                return false;
            }
            stride = stride.saturating_mul(i64::try_from(dim).unwrap_or(i64::MAX));
        }
        true
    }

    /// Interns the access for a location whose whole access is `whole`, which becomes `UNIT`.
    pub fn intern(&self, ctx: &mut Context, whole: &Access) -> Result<Annot, AccessError> {
        if !self.recast && self.terms.is_empty() && self == whole {
            return Ok(Annot::UNIT);
        }
        self.intern_part(ctx)
    }

    /// Interns an access that is not the whole of its location.
    pub fn intern_part(&self, ctx: &mut Context) -> Result<Annot, AccessError> {
        let view = AccessView {
            dtype: self.dtype,
            recast: self.recast,
            window: self.window,
            offset: self.offset,
            pairs: &self.pairs,
            terms: &self.terms,
        };
        view.intern_part(ctx)
    }

    /// Adds `coef · d_index` to a target, keeping the terms sorted and without zeros.
    pub fn add_term(&mut self, target: Target, index: u8, coef: i64) {
        let key = (target, index);
        let at = self
            .terms
            .iter()
            .position(|term| (term.target, term.index) >= key)
            .unwrap_or(self.terms.len());
        match self.terms.get_mut(at) {
            Some(term) if (term.target, term.index) == key => {
                term.coef = term.coef.wrapping_add(coef);
                if term.coef == 0 {
                    self.terms.remove(at);
                }
            }
            _ if coef != 0 => self.terms.insert(
                at,
                Term {
                    target,
                    index,
                    coef,
                },
            ),
            _ => {}
        }
    }

    /// Elements per partition (on chip) or in all (DRAM); saturating.
    pub fn elements(&self) -> u64 {
        self.pairs
            .iter()
            .fold(1u64, |product, pair| product.saturating_mul(pair.count))
    }

    /// Partitions touched; 1 in DRAM.
    pub fn partitions(&self) -> u64 {
        self.window.map_or(1, |window| window.count)
    }

    /// Smallest and largest element offset, all terms at zero; saturating.
    pub fn offset_range(&self) -> (i64, i64) {
        let (mut low, mut high) = (self.offset, self.offset);
        for pair in &self.pairs {
            let last = i64::try_from(pair.count)
                .unwrap_or(i64::MAX)
                .saturating_sub(1);
            let reach = pair.step.saturating_mul(last);
            if reach < 0 {
                low = low.saturating_add(reach);
            } else {
                high = high.saturating_add(reach);
            }
        }
        (low, high)
    }
}

impl AccessView<'_> {
    /// Interns an access that is not the whole of its location.
    pub fn intern_part(&self, ctx: &mut Context) -> Result<Annot, AccessError> {
        if self.pairs.len() > MAX_PAIRS {
            return Err(AccessError::TooMany {
                what: "step x count pairs",
                limit: MAX_PAIRS,
            });
        }
        if self.terms.len() > MAX_TERMS {
            return Err(AccessError::TooMany {
                what: "index terms",
                limit: MAX_TERMS,
            });
        }
        let mut words: SmallVec<[u64; 16]> = SmallVec::new();
        let recast = if self.recast {
            u64::from(self.dtype.index()) + 1
        } else {
            0
        };
        let mut head = recast | (self.pairs.len() as u64) << 8 | (self.terms.len() as u64) << 16;
        if let Some(window) = self.window {
            let (start, count) = (i16::try_from(window.start), u16::try_from(window.count));
            let (Ok(start), Ok(count)) = (start, count) else {
                return Err(AccessError::Window {
                    start: window.start,
                    count: window.count,
                });
            };
            head |= 1 << 24 | u64::from(start as u16) << 32 | u64::from(count) << 48;
        }
        words.push(head);
        words.push(self.offset as u64);
        for pair in self.pairs {
            let (step, count) = (i32::try_from(pair.step), u32::try_from(pair.count));
            let (Ok(step), Ok(count)) = (step, count) else {
                return Err(AccessError::Pair {
                    step: pair.step,
                    count: pair.count,
                });
            };
            words.push(u64::from(step as u32) << 32 | u64::from(count));
        }
        for term in self.terms {
            let limit = 1i64 << (COEF_BITS - 1);
            if term.coef >= limit || term.coef < -limit {
                return Err(AccessError::Coef { coef: term.coef });
            }
            let target = match term.target {
                Target::Offset => 0,
                Target::Partition => 1 << 63,
            };
            words.push(
                target
                    | u64::from(term.index & 0x7f) << COEF_BITS
                    | (term.coef as u64) & ((1 << COEF_BITS) - 1),
            );
        }
        Ok(ctx.annot(&words))
    }
}

/// Sizes of the dimensions an offset runs over, in elements of `dtype`.
///
/// `None` where the last dimension is no whole number of such elements.
pub fn view_dims(mem: &MemType<'_>, dtype: DType) -> Option<SmallVec<[u64; 6]>> {
    let mut dims: SmallVec<[u64; 6]> = SmallVec::from_slice(mem.free_dims());
    let (from, to) = (
        u64::from(mem.dtype.size_bytes()),
        u64::from(dtype.size_bytes()),
    );
    if from != to {
        match dims.last_mut() {
            Some(last) => {
                let bytes = last.checked_mul(from)?;
                if bytes % to != 0 {
                    return None;
                }
                *last = bytes / to;
            }
            None => {
                if from % to != 0 {
                    return None;
                }
                dims.push(from / to);
            }
        }
    }
    Some(dims)
}

/// Row-major strides of `dims`, in elements.
pub fn strides(dims: &[u64]) -> SmallVec<[i64; 6]> {
    let mut strides: SmallVec<[i64; 6]> = SmallVec::with_capacity(dims.len());
    let mut stride = 1i64;
    for &dim in dims.iter().rev() {
        strides.push(stride);
        stride = stride.saturating_mul(i64::try_from(dim).unwrap_or(i64::MAX));
    }
    strides.reverse();
    strides
}
