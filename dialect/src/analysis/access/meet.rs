//! What two progressions have in common, without enumerating elements.
//!
//! Equal outer strides: repetitions meet at few relative shifts, each of which is one smaller
//! problem of known multiplicity. Different strides: both are cut at the least common multiple
//! and the strides are equal again; what is shorter than two such blocks is enumerated along its
//! coarser dimension. Where strides divide one another nothing is enumerated at all. Steps are
//! counted; past [`STEPS`] the answer is [`Outcome::Spent`].

use smallvec::SmallVec;

use super::progression::{Dim, Dims, Progression, extent};

/// Steps one question may take: seconds of pathological strides, never reached by strides that
/// divide one another.
pub(super) const STEPS: u32 = 1 << 21;

/// How a question ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Everything was looked at.
    Done,
    /// The sink had seen enough.
    Stopped,
    /// The steps ran out.
    Spent,
}

/// Receives the parts two progressions share, each once.
pub(super) trait Sink {
    /// `part` within `lo .. hi`, repeated along `prefix` (whose strides exceed that window).
    /// Answers whether to go on.
    fn share(&mut self, prefix: &[Dim], part: &Progression, lo: i64, hi: i64) -> bool;
}

/// Number of shared members, up to `enough`.
pub(super) struct Count {
    pub(super) total: i64,
    pub(super) enough: i64,
}

impl Sink for Count {
    fn share(&mut self, prefix: &[Dim], part: &Progression, lo: i64, hi: i64) -> bool {
        let once = part.below(hi) - part.below(lo);
        let times: i64 = prefix.iter().map(|dim| dim.count).product();
        self.total += once * times;
        self.total < self.enough
    }
}

/// The shared parts themselves, up to `limit`.
pub(super) struct Collect<'a> {
    pub(super) out: &'a mut Vec<Progression>,
    pub(super) limit: usize,
}

impl Sink for Collect<'_> {
    fn share(&mut self, prefix: &[Dim], part: &Progression, lo: i64, hi: i64) -> bool {
        let out = &mut *self.out;
        part.clip(lo, hi, &mut |piece| {
            let dims = prefix.iter().chain(piece.dims()).copied();
            out.push(Progression::nested(piece.start(), piece.run_len(), dims));
        });
        out.len() <= self.limit
    }
}

/// One side of the question: a progression whose outer dimensions may have been cut.
#[derive(Clone)]
struct Side {
    start: i64,
    len: i64,
    /// Outermost first.
    dims: SmallVec<[Dim; 6]>,
}

impl Side {
    fn of(set: &Progression) -> Side {
        Side {
            start: set.start(),
            len: set.run_len(),
            dims: SmallVec::from_slice(set.dims()),
        }
    }

    fn end(&self) -> i64 {
        self.start + extent(&self.dims, self.len)
    }

    /// Repetition `i` of the outermost dimension.
    fn slice(&self, i: i64) -> Side {
        let Some((outer, inner)) = self.dims.split_first() else {
            return self.clone();
        };
        Side {
            start: self.start + outer.stride * i,
            len: self.len,
            dims: SmallVec::from_slice(inner),
        }
    }

    /// Drops repetitions of the outermost dimensions that cannot reach `lo .. hi`.
    fn narrow(&mut self, lo: i64, hi: i64) {
        while let Some((outer, inner)) = self.dims.split_first() {
            let reach = extent(inner, self.len);
            let first = (lo - self.start - reach).div_euclid(outer.stride) + 1;
            let last = (hi - self.start - 1).div_euclid(outer.stride);
            let (first, last) = (first.max(0), last.min(outer.count - 1));
            self.start += outer.stride * first;
            let count = last - first + 1;
            if count > 1 {
                self.dims[0].count = count;
                return;
            }
            self.dims.remove(0);
            if count <= 0 {
                // Nothing reaches the window: leave an empty run.
                self.dims.clear();
                self.len = 0;
                return;
            }
        }
    }

    /// Cuts the outermost dimension into blocks of `per` repetitions: whole blocks, then the rest.
    fn blocks(&self, per: i64) -> (Side, Option<Side>) {
        let Some((&outer, inner)) = self.dims.split_first() else {
            return (self.clone(), None);
        };
        let (whole, rest) = (outer.count / per, outer.count % per);
        let stride = outer.stride * per;
        let with = |start, dims: &[Dim]| {
            let mut all: SmallVec<[Dim; 6]> =
                dims.iter().copied().filter(|dim| dim.count > 1).collect();
            all.extend_from_slice(inner);
            Side {
                start,
                len: self.len,
                dims: all,
            }
        };
        let block = |count| Dim {
            stride: outer.stride,
            count,
        };
        let body = with(
            self.start,
            &[
                Dim {
                    stride,
                    count: whole,
                },
                block(per),
            ],
        );
        let tail = (rest > 0).then(|| with(self.start + stride * whole, &[block(rest)]));
        (body, tail)
    }

    fn progression(&self) -> Progression {
        Progression::nested(self.start, self.len, self.dims.iter().copied())
    }
}

/// Reports what `a` and `b` share to `sink`.
pub(super) fn meet(
    a: &Progression,
    b: &Progression,
    steps: &mut u32,
    sink: &mut impl Sink,
) -> Outcome {
    if a.start() >= b.end() || b.start() >= a.end() {
        return Outcome::Done;
    }
    if a.dims().is_empty() || b.dims().is_empty() {
        let (run, other) = if a.dims().is_empty() { (a, b) } else { (b, a) };
        return go_on(sink.share(&[], other, run.start(), run.end()));
    }
    let mut prefix = Dims::new();
    step(Side::of(a), Side::of(b), &mut prefix, steps, sink)
}

fn go_on(more: bool) -> Outcome {
    if more {
        Outcome::Done
    } else {
        Outcome::Stopped
    }
}

// The depth is bounded by the dimensions of both sides, each cut at most once per level.
fn step(
    mut a: Side,
    mut b: Side,
    prefix: &mut Dims,
    steps: &mut u32,
    sink: &mut impl Sink,
) -> Outcome {
    if *steps == 0 {
        return Outcome::Spent;
    }
    *steps -= 1;
    a.narrow(b.start, b.end());
    if a.len == 0 || a.start >= b.end() || b.start >= a.end() {
        return Outcome::Done;
    }
    b.narrow(a.start, a.end());
    if b.len == 0 || a.start >= b.end() || b.start >= a.end() {
        return Outcome::Done;
    }
    let (Some(&outer_a), Some(&outer_b)) = (a.dims.first(), b.dims.first()) else {
        let (run, other) = if a.dims.is_empty() {
            (&a, &b)
        } else {
            (&b, &a)
        };
        let more = sink.share(prefix, &other.progression(), run.start, run.start + run.len);
        return go_on(more);
    };
    if outer_a.stride == outer_b.stride {
        return equal_strides(&a, &b, outer_a, outer_b, prefix, steps, sink);
    }
    if outer_a.stride < outer_b.stride {
        std::mem::swap(&mut a, &mut b);
        return different_strides(&a, &b, outer_b, outer_a, prefix, steps, sink);
    }
    different_strides(&a, &b, outer_a, outer_b, prefix, steps, sink)
}

fn equal_strides(
    a: &Side,
    b: &Side,
    outer_a: Dim,
    outer_b: Dim,
    prefix: &mut Dims,
    steps: &mut u32,
    sink: &mut impl Sink,
) -> Outcome {
    let stride = outer_a.stride;
    let (reach_a, reach_b) = (extent(&a.dims[1..], a.len), extent(&b.dims[1..], b.len));
    let apart = b.start - a.start;
    // Repetition i of `a` meets i + shift of `b` where their distance is within their reach.
    let low = (-reach_b - apart).div_euclid(stride) + 1;
    let high = (reach_a - apart - 1).div_euclid(stride);
    for shift in low.max(1 - outer_a.count)..=high.min(outer_b.count - 1) {
        let first = (-shift).max(0);
        let count = outer_a.count.min(outer_b.count - shift) - first;
        if count <= 0 {
            continue;
        }
        prefix.push(Dim { stride, count });
        let outcome = step(a.slice(first), b.slice(first + shift), prefix, steps, sink);
        prefix.pop();
        if outcome != Outcome::Done {
            return outcome;
        }
    }
    Outcome::Done
}

/// `a` has the larger stride.
fn different_strides(
    a: &Side,
    b: &Side,
    outer_a: Dim,
    outer_b: Dim,
    prefix: &mut Dims,
    steps: &mut u32,
    sink: &mut impl Sink,
) -> Outcome {
    let shared = gcd(outer_a.stride, outer_b.stride);
    let (per_a, per_b) = (outer_b.stride / shared, outer_a.stride / shared);
    if outer_a.count / per_a >= 2 && outer_b.count / per_b >= 2 {
        let (body_a, tail_a) = a.blocks(per_a);
        let (body_b, tail_b) = b.blocks(per_b);
        for left in std::iter::once(body_a).chain(tail_a) {
            for right in std::iter::once(&body_b).chain(&tail_b) {
                let outcome = step(left.clone(), right.clone(), prefix, steps, sink);
                if outcome != Outcome::Done {
                    return outcome;
                }
            }
        }
        return Outcome::Done;
    }
    for i in 0..outer_a.count {
        let outcome = step(a.slice(i), b.clone(), prefix, steps, sink);
        if outcome != Outcome::Done {
            return outcome;
        }
    }
    Outcome::Done
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
