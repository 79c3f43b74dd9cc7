//! What an operand touches of its location, in a form that is copied where an access has boxes: tiles are
//! moved about far more often than they become operands.

use bir_dialect::bir::access::{Access, Pair, Target, Term, Window};
use bir_dialect::bir::num::DType;
use bir_dialect::ir::{Annot, Context};
use smallvec::SmallVec;

/// Pairs of an access, outermost first. No location has more dimensions.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    len: u8,
    items: [Pair; Pairs::MOST],
}

impl Pairs {
    const MOST: usize = 3;

    pub(super) fn of(pairs: &[Pair]) -> Pairs {
        let mut items = [Pair { step: 0, count: 0 }; Pairs::MOST];
        debug_assert!(pairs.len() <= Pairs::MOST);
        let len = pairs.len().min(Pairs::MOST);
        items[..len].copy_from_slice(&pairs[..len]);
        Pairs {
            len: len as u8,
            items,
        }
    }

    /// `1 x count`
    pub(super) fn run(count: u64) -> Pairs {
        Pairs::of(&[Pair { step: 1, count }])
    }

    /// All elements of dimensions, row-major.
    pub(super) fn whole(dims: &[u64]) -> Pairs {
        let mut pairs = Pairs::run(1);
        let mut step = 1u64;
        pairs.len = dims.len().clamp(1, Pairs::MOST) as u8;
        for (pair, &count) in pairs.items.iter_mut().zip(dims).take(dims.len()).rev() {
            let signed = step as i64;
            *pair = Pair {
                step: signed,
                count,
            };
            step *= count;
        }
        pairs
    }
}

impl std::ops::Deref for Pairs {
    type Target = [Pair];

    #[inline]
    fn deref(&self) -> &[Pair] {
        &self.items[..usize::from(self.len)]
    }
}

impl PartialEq for Pairs {
    fn eq(&self, other: &Pairs) -> bool {
        **self == **other
    }
}

/// An access, as [`Access`], that follows one loop index at most.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Part {
    pub(super) dtype: DType,
    pub(super) recast: bool,
    pub(super) window: Option<Window>,
    pub(super) offset: i64,
    pub(super) pairs: Pairs,
    /// What a loop index adds to, and how often.
    pub(super) follows: Option<(Target, i64)>,
}

impl Part {
    /// Interns it, `index` being the number of what it follows.
    pub(super) fn intern(&self, ctx: &mut Context, index: u8) -> Annot {
        let term = self.follows.map(|(target, coef)| Term {
            target,
            index,
            coef,
        });
        let access = Access {
            dtype: self.dtype,
            recast: self.recast,
            window: self.window,
            offset: self.offset,
            pairs: SmallVec::from_slice(&self.pairs),
            terms: term.into_iter().collect(),
        };
        access.intern_part(ctx).unwrap_or(Annot::UNIT)
    }
}
