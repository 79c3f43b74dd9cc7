//! What an operand touches of its location, in a form that is copied where an access has boxes: tiles are
//! moved about far more often than they become operands.

use bir_dialect::bir::access::{AccessView, Pair, Target, Term, Window};
use bir_dialect::bir::num::DType;
use bir_dialect::ir::{Annot, Context};

/// Pairs of an access, outermost first. No location has more dimensions, nor as many elements as their
/// 32 bits can tell.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    steps: [i32; Pairs::MOST],
    counts: [u32; Pairs::MOST],
    len: u8,
}

impl Pairs {
    const MOST: usize = 3;

    #[inline]
    pub(super) fn of(pairs: &[Pair]) -> Pairs {
        debug_assert!(pairs.len() <= Pairs::MOST);
        let len = pairs.len().min(Pairs::MOST);
        let (mut steps, mut counts) = ([0; Pairs::MOST], [0; Pairs::MOST]);
        for (at, pair) in pairs.iter().take(len).enumerate() {
            (steps[at], counts[at]) = (pair.step as i32, pair.count as u32);
        }
        Pairs {
            steps,
            counts,
            len: len as u8,
        }
    }

    /// `1 x count`
    #[inline]
    pub(super) fn run(count: u64) -> Pairs {
        Pairs::of(&[Pair { step: 1, count }])
    }

    /// All elements of dimensions, row-major.
    #[inline]
    pub(super) fn whole(dims: &[u64]) -> Pairs {
        let mut pairs = Pairs::run(1);
        let len = dims.len().clamp(1, Pairs::MOST);
        let mut step = 1;
        for (at, &count) in dims.iter().enumerate().take(len).rev() {
            (pairs.steps[at], pairs.counts[at]) = (step as i32, count as u32);
            step *= count;
        }
        pairs.len = len as u8;
        pairs
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// One after another.
    #[inline]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Pair> + '_ {
        (0..self.len()).map(|at| Pair {
            step: i64::from(self.steps[at]),
            count: u64::from(self.counts[at]),
        })
    }

    /// Elements of the innermost.
    #[inline]
    pub(super) fn innermost(&self) -> u64 {
        self.counts
            .get(self.len().wrapping_sub(1))
            .map_or(1, |&count| u64::from(count))
    }
}

impl PartialEq for Pairs {
    #[inline]
    fn eq(&self, other: &Pairs) -> bool {
        // What is behind the last is zero.
        (self.steps, self.counts, self.len) == (other.steps, other.counts, other.len)
    }
}

/// Partitions of an access: the first, and how many.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Rows {
    pub(super) start: u8,
    pub(super) count: u8,
}

/// An access, as the dialect's [`AccessView`], that follows one loop index at most.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Part {
    pub(super) dtype: DType,
    pub(super) recast: bool,
    pub(super) window: Option<Rows>,
    pub(super) offset: i64,
    pub(super) pairs: Pairs,
    /// What a loop index adds to, and how often.
    pub(super) follows: Option<(Target, i32)>,
}

impl Part {
    /// Interns it, `index` being the number of what it follows.
    pub(super) fn intern(&self, ctx: &mut Context, index: u8) -> Annot {
        let mut pairs = [Pair { step: 0, count: 0 }; Pairs::MOST];
        for (into, pair) in pairs.iter_mut().zip(self.pairs.iter()) {
            *into = pair;
        }
        let term = self.follows.map(|(target, coef)| Term {
            target,
            index,
            coef: i64::from(coef),
        });
        let access = AccessView {
            dtype: self.dtype,
            recast: self.recast,
            window: self.window.map(|rows| Window {
                start: i64::from(rows.start),
                count: u64::from(rows.count),
            }),
            offset: self.offset,
            pairs: &pairs[..self.pairs.len()],
            terms: term.as_slice(),
        };
        access.intern_part(ctx).unwrap_or(Annot::UNIT)
    }
}
