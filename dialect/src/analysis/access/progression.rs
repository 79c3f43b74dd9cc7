//! Progressions: the normal form every byte set is kept in.
//!
//! A [`Progression`] is a run of `len` integers repeated along strided dimensions. Invariants:
//!
//! * `len ≥ 1`; dimensions are outermost first, every stride positive, every count at least 2;
//! * a dimension's stride is at least the extent of what it repeats, so repetitions are disjoint
//!   and ascend;
//! * the innermost stride exceeds `len` (touching runs are one run), and no dimension continues
//!   the one inside it.
//!
//! All magnitudes stay below 2^62; constructors answer `None` past that.

use smallvec::SmallVec;

/// `count` repetitions, `stride` apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Dim {
    /// Distance between neighbours.
    pub stride: i64,
    /// Repetitions.
    pub count: i64,
}

pub(super) type Dims = SmallVec<[Dim; 4]>;

/// A strided, nested repetition of one run of integers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Progression {
    start: i64,
    len: i64,
    dims: Dims,
}

/// Largest magnitude handled.
pub(super) const LIMIT: i64 = 1 << 62;

/// `value`, if it is within the magnitudes handled.
pub(super) fn bounded(value: i128) -> Option<i64> {
    (value.unsigned_abs() < LIMIT as u128).then_some(value as i64)
}

/// First to one past the last, relative to the start.
pub(super) fn extent(dims: &[Dim], len: i64) -> i64 {
    dims.iter()
        .fold(len, |sum, dim| sum + dim.stride * (dim.count - 1))
}

/// What normalising strided dimensions gave.
pub(super) enum Normal {
    /// No element at all.
    Empty,
    /// One progression.
    One(Progression),
    /// Dimension `split` interleaves with the others: enumerate it, normalise the rest.
    Mixed {
        /// First integer of the set.
        start: i64,
        /// The dimensions left, strides positive, ascending.
        dims: SmallVec<[Dim; 8]>,
        /// Which of them to enumerate.
        split: usize,
    },
}

impl Progression {
    /// The run `start .. start + len`; `len` must be positive.
    pub fn run(start: i64, len: i64) -> Progression {
        debug_assert!(len > 0);
        Progression {
            start,
            len,
            dims: Dims::new(),
        }
    }

    /// From parts that already satisfy the invariants, except that counts may be 1.
    pub(super) fn nested(start: i64, len: i64, dims: impl IntoIterator<Item = Dim>) -> Progression {
        Progression {
            start,
            len,
            dims: dims.into_iter().filter(|dim| dim.count > 1).collect(),
        }
    }

    /// Normalises a run repeated along arbitrary dimensions: any sign, zero strides, any order.
    ///
    /// `None` where a magnitude passes 2^62.
    pub(super) fn normalise(
        start: i64,
        len: i64,
        raw: impl IntoIterator<Item = (i64, u64)>,
    ) -> Option<Normal> {
        if len == 0 {
            return Some(Normal::Empty);
        }
        let mut start = i128::from(start);
        let mut reach = i128::from(len);
        let mut dims: SmallVec<[Dim; 8]> = SmallVec::new();
        let mut empty = false;
        for (stride, count) in raw {
            if count == 0 {
                empty = true;
            }
            if count <= 1 || stride == 0 {
                continue;
            }
            let span = i128::from(stride).checked_mul(i128::from(count - 1))?;
            if stride < 0 {
                start = start.checked_add(span)?;
            }
            reach = reach.checked_add(span.checked_abs()?)?;
            dims.push(Dim {
                stride: bounded(i128::from(stride).abs())?,
                count: bounded(i128::from(count))?,
            });
        }
        if empty {
            return Some(Normal::Empty);
        }
        let start = bounded(start)?;
        bounded(reach)?;
        bounded(i128::from(start) + reach)?;
        dims.sort_unstable();
        Some(Progression::nest(start, len, dims))
    }

    /// Merges ascending positive dimensions.
    fn nest(start: i64, mut len: i64, dims: SmallVec<[Dim; 8]>) -> Normal {
        let mut out: Dims = Dims::new();
        for (at, dim) in dims.iter().enumerate() {
            match out.last_mut() {
                None if dim.stride <= len => {
                    len += dim.stride * (dim.count - 1);
                    continue;
                }
                Some(inner)
                    if dim.stride % inner.stride == 0
                        && dim.stride / inner.stride <= inner.count =>
                {
                    inner.count += dim.stride / inner.stride * (dim.count - 1);
                    continue;
                }
                _ => {}
            }
            if dim.stride < extent(&out, len) {
                // Enumerate the shorter of the two dimensions that interleave.
                let split = match at.checked_sub(1) {
                    Some(inner) if dims[inner].count < dim.count => inner,
                    _ => at,
                };
                return Normal::Mixed { start, dims, split };
            }
            out.push(*dim);
        }
        out.reverse();
        Normal::One(Progression {
            start,
            len,
            dims: out,
        })
    }

    /// Smallest member.
    #[inline]
    pub fn start(&self) -> i64 {
        self.start
    }

    /// One past the largest member.
    #[inline]
    pub fn end(&self) -> i64 {
        self.start + extent(&self.dims, self.len)
    }

    /// Length of one run.
    #[inline]
    pub fn run_len(&self) -> i64 {
        self.len
    }

    /// Repetitions of the run, outermost first.
    #[inline]
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// Number of runs.
    pub fn runs(&self) -> i64 {
        self.dims.iter().map(|dim| dim.count).product()
    }

    /// Number of members.
    pub fn size(&self) -> i64 {
        self.len * self.runs()
    }

    /// The same set, `by` further up.
    pub fn shifted(mut self, by: i64) -> Progression {
        self.start += by;
        self
    }

    /// Repetition `i` of dimension `at`, with the other dimensions.
    pub(in super::super) fn without_dim(&self, at: usize, i: i64) -> Progression {
        let mut one = self.clone();
        let dim = one.dims.remove(at);
        one.start += dim.stride * i;
        one
    }

    /// Counted from `origin` in units that divide every member's position and every length.
    pub(in super::super) fn divided(&self, origin: i64, unit: i64) -> Progression {
        Progression {
            start: (self.start - origin) / unit,
            len: self.len / unit,
            dims: self
                .dims
                .iter()
                .map(|dim| Dim {
                    stride: dim.stride / unit,
                    count: dim.count,
                })
                .collect(),
        }
    }

    /// How many members are below `x`.
    pub fn below(&self, x: i64) -> i64 {
        let mut left = x - self.start;
        let mut slice = self.size();
        let mut total = 0;
        for dim in &self.dims {
            if left <= 0 {
                return total;
            }
            slice /= dim.count;
            let whole = left / dim.stride;
            if whole >= dim.count {
                return total + slice * dim.count;
            }
            total += slice * whole;
            left -= dim.stride * whole;
        }
        total + left.clamp(0, self.len)
    }

    /// The members in `lo .. hi`, as at most two progressions per dimension and one more.
    pub fn clip(&self, lo: i64, hi: i64, emit: &mut impl FnMut(Progression)) {
        clip(self.start, self.len, &self.dims, lo, hi, emit);
    }

    /// The runs in ascending order, as `(start, len)`.
    pub fn each_run(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        let mut index: SmallVec<[i64; 4]> = SmallVec::from_elem(0, self.dims.len());
        let mut next = Some(self.start);
        std::iter::from_fn(move || {
            let at = next?;
            let mut following = at;
            next = None;
            for (digit, dim) in index.iter_mut().zip(&self.dims).rev() {
                if *digit + 1 < dim.count {
                    *digit += 1;
                    next = Some(following + dim.stride);
                    break;
                }
                following -= dim.stride * *digit;
                *digit = 0;
            }
            Some((at, self.len))
        })
    }
}

fn clip(start: i64, len: i64, dims: &[Dim], lo: i64, hi: i64, emit: &mut impl FnMut(Progression)) {
    let Some((outer, inner)) = dims.split_first() else {
        let (from, to) = (start.max(lo), (start + len).min(hi));
        if from < to {
            emit(Progression::run(from, to - from));
        }
        return;
    };
    let reach = extent(inner, len);
    // Repetitions that touch the window, then those of them that lie inside it.
    let first = (lo - start - reach).div_euclid(outer.stride) + 1;
    let last = (hi - start - 1).div_euclid(outer.stride);
    let (first, last) = (first.max(0), last.min(outer.count - 1));
    if first > last || lo >= hi {
        return;
    }
    let inside = |i: i64| {
        let at = start + outer.stride * i;
        at >= lo && at + reach <= hi
    };
    let (mut from, mut to) = (first, last + 1);
    if !inside(first) {
        from += 1;
        clip(start + outer.stride * first, len, inner, lo, hi, emit);
    }
    let cut = last > first && !inside(last);
    if cut {
        to -= 1;
    }
    if from < to {
        let whole = Dim {
            stride: outer.stride,
            count: to - from,
        };
        let dims = std::iter::once(whole).chain(inner.iter().copied());
        emit(Progression::nested(start + outer.stride * from, len, dims));
    }
    if cut {
        clip(start + outer.stride * last, len, inner, lo, hi, emit);
    }
}
