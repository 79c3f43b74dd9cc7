//! The access algebra: which bytes an access touches, in which order, and how accesses relate.
//!
//! A [`Footprint`] is a product: a set of partitions and a set of bytes inside a partition (device
//! memory is one partition). Both are [`StrideSet`]s, unions of disjoint [`Progression`]s. A
//! [`Traversal`] keeps the order too.
//!
//! Exactness:
//! * the footprint of one access without index terms is exact whatever its steps – negative, zero,
//!   of another dtype – unless dimensions interleave without nesting (`3 x 100, 2 x 100`) into more
//!   than [`RUN_LIMIT`] runs; then it is its hull and says so ([`Footprint::is_exact`]);
//! * over enclosing loops ([`footprint_over`]) it is exact while no index moves both the window
//!   and the offset and every trip count is known;
//! * `overlaps`, `covers`, `same_as`, `common` and `intersection` are exact on exact footprints.
//!   Past a fixed number of steps – only strides that do not divide one another, in several
//!   dimensions of large counts, get there – `overlaps` answers `true`, `covers` and `same_as`
//!   answer `false`, `common` answers `None`, `intersection` is an inexact superset;
//! * [`Traversal::translate`] answers `None` rather than an access that is not the same elements
//!   in the same order; it may answer `None` for one that exists in an unusual form.

mod meet;
mod progression;
mod set;
mod traverse;
mod whole;
mod window;

pub use progression::{Dim, Progression};
pub use set::{PIECE_LIMIT, RUN_LIMIT, StrideSet};
pub use traverse::{Step, Traversal, transfer_runs};
pub use whole::Wholes;
pub use window::{WindowFault, window_fault};

use smallvec::SmallVec;

use self::progression::bounded;
use crate::bir::access::{Access, Target};
use crate::bir::types::MemType;

/// The values an enclosing loop's index takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopRange {
    /// First value.
    pub first: i64,
    /// Distance between values.
    pub step: i64,
    /// Number of values; `None` where a register decides.
    pub trips: Option<u64>,
}

/// Bytes touched: partitions × bytes within a partition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Footprint {
    /// Partitions; `0..1` in device memory.
    pub partitions: StrideSet,
    /// Bytes within each of them.
    pub bytes: StrideSet,
}

impl Footprint {
    /// No byte.
    pub fn empty() -> Footprint {
        Footprint {
            partitions: StrideSet::empty(),
            bytes: StrideSet::empty(),
        }
    }

    /// `partitions` from 0, `bytes` from 0 in each.
    pub fn block(partitions: i64, bytes: i64) -> Footprint {
        Footprint {
            partitions: StrideSet::run(0, partitions),
            bytes: StrideSet::run(0, bytes),
        }
    }

    /// All of a location; `None` past 2^62 bytes.
    pub fn whole(mem: &MemType<'_>) -> Option<Footprint> {
        let partitions = i64::try_from(mem.partitions()).ok()?;
        let bytes = i64::try_from(mem.free_bytes()?).ok()?;
        Some(Footprint::block(partitions, bytes))
    }

    /// Whether it is exactly the bytes touched, not a superset.
    pub fn is_exact(&self) -> bool {
        self.partitions.is_exact() && self.bytes.is_exact()
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty() || self.bytes.is_empty()
    }

    /// The same bytes as an upper bound only.
    pub(in crate::analysis) fn hull_only(self) -> Footprint {
        Footprint {
            partitions: self.partitions.inexact(),
            bytes: self.bytes.inexact(),
        }
    }

    /// Number of bytes.
    pub fn size(&self) -> i64 {
        self.partitions.size().saturating_mul(self.bytes.size())
    }

    /// The footprint in another frame: where the location stands there.
    pub fn placed(&self, partition: i64, byte: i64) -> Footprint {
        Footprint {
            partitions: self.partitions.shifted(partition),
            bytes: self.bytes.shifted(byte),
        }
    }

    /// Whether the footprints, seen in one frame, may share a byte.
    pub fn overlaps(&self, other: &Footprint) -> bool {
        self.partitions.overlaps(&other.partitions) && self.bytes.overlaps(&other.bytes)
    }

    /// Whether every byte of `other` certainly is in this footprint.
    pub fn covers(&self, other: &Footprint) -> bool {
        other.is_empty()
            || self.partitions.covers(&other.partitions) && self.bytes.covers(&other.bytes)
    }

    /// Whether `other` lies within the smallest rectangle around this footprint.
    pub(super) fn hull_covers(&self, other: &Footprint) -> bool {
        let within = |a: &StrideSet, b: &StrideSet| a.start() <= b.start() && a.end() >= b.end();
        within(&self.partitions, &other.partitions) && within(&self.bytes, &other.bytes)
    }

    /// Whether both certainly are the same bytes.
    pub fn same_as(&self, other: &Footprint) -> bool {
        if self.is_empty() || other.is_empty() {
            return self.is_empty() == other.is_empty();
        }
        self.partitions.same_as(&other.partitions) && self.bytes.same_as(&other.bytes)
    }

    /// Number of shared bytes; `None` past counting.
    pub fn common(&self, other: &Footprint) -> Option<i64> {
        let partitions = self.partitions.common(&other.partitions)?;
        let bytes = self.bytes.common(&other.bytes)?;
        Some(partitions.saturating_mul(bytes))
    }

    /// The shared bytes.
    pub fn intersection(&self, other: &Footprint) -> Footprint {
        Footprint {
            partitions: self.partitions.intersection(&other.partitions),
            bytes: self.bytes.intersection(&other.bytes),
        }
    }
}

/// The footprint of an access with all indices at zero.
///
/// `None` where a magnitude passes 2^62.
pub fn footprint(access: &Access) -> Option<Footprint> {
    build(access, 0, 0, &[], &[])
}

/// The footprint with every index at the first value of its loop; `indices` in the order of the
/// instruction's `indices`, missing ones count as zero.
pub fn footprint_first(access: &Access, indices: &[LoopRange]) -> Option<Footprint> {
    let (mut partition, mut offset) = (0i128, 0i128);
    for term in &access.terms {
        let first = indices
            .get(usize::from(term.index))
            .map_or(0, |range| range.first);
        let moved = i128::from(term.coef) * i128::from(first);
        match term.target {
            Target::Partition => partition += moved,
            Target::Offset => offset += moved,
        }
    }
    build(access, bounded(partition)?, bounded(offset)?, &[], &[])
}

/// The footprint over all iterations of the enclosing loops, clipped to `whole` where a trip count
/// is unknown.
///
/// Empty where a loop makes no trip. `None` where a magnitude passes 2^62.
pub fn footprint_over(
    access: &Access,
    whole: &Footprint,
    indices: &[LoopRange],
) -> Option<Footprint> {
    if access.terms.is_empty() {
        return footprint(access);
    }
    let (mut partition, mut offset) = (0i128, 0i128);
    let mut partition_dims: SmallVec<[(i64, u64); 4]> = SmallVec::new();
    let mut offset_dims: SmallVec<[(i64, u64); 4]> = SmallVec::new();
    let mut exact = true;
    let mut moved_by: SmallVec<[u8; 4]> = SmallVec::new();
    for term in &access.terms {
        let Some(range) = indices.get(usize::from(term.index)) else {
            continue;
        };
        let Some(trips) = range.trips else {
            return Some(Footprint {
                partitions: whole.partitions.clone().inexact(),
                bytes: whole.bytes.clone().inexact(),
            });
        };
        exact &= trips <= 1 || !moved_by.contains(&term.index);
        moved_by.push(term.index);
        let moved = i128::from(term.coef) * i128::from(range.first);
        let stride = bounded(i128::from(term.coef) * i128::from(range.step))?;
        match term.target {
            Target::Partition => {
                partition += moved;
                partition_dims.push((stride, trips));
            }
            Target::Offset => {
                offset += moved;
                offset_dims.push((stride, trips));
            }
        }
    }
    let over = build(
        access,
        bounded(partition)?,
        bounded(offset)?,
        &partition_dims,
        &offset_dims,
    )?;
    Some(if exact {
        over
    } else {
        Footprint {
            partitions: over.partitions.inexact(),
            bytes: over.bytes.inexact(),
        }
    })
}

fn build(
    access: &Access,
    partition: i64,
    offset: i64,
    partition_dims: &[(i64, u64)],
    offset_dims: &[(i64, u64)],
) -> Option<Footprint> {
    let size = i64::from(access.dtype.size_bytes());
    let (start, count) = match access.window {
        Some(window) => (
            bounded(i128::from(window.start) + i128::from(partition))?,
            i64::try_from(window.count).ok()?,
        ),
        None => (0, 1),
    };
    let partitions = StrideSet::strided(
        start,
        bounded(i128::from(count))?,
        partition_dims.iter().copied(),
    )?;
    let first = (i128::from(access.offset) + i128::from(offset)) * i128::from(size);
    let mut too_far = false;
    let dims = access
        .pairs
        .iter()
        .map(|pair| (pair.step, pair.count))
        .chain(offset_dims.iter().copied())
        .map(|(step, count)| match step.checked_mul(size) {
            Some(step) => (step, count),
            None => {
                too_far = true;
                (0, count)
            }
        });
    let bytes = StrideSet::strided(bounded(first)?, size, dims)?;
    (!too_far).then_some(Footprint { partitions, bytes })
}

/// Smallest and largest values an access reaches over its loops, inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extremes {
    /// Partitions; `None` in device memory.
    pub partitions: Option<(i128, i128)>,
    /// Element offsets, in units of the access's dtype.
    pub elements: (i128, i128),
}

/// The extremes of an access over the enclosing loops, in 128 bits, so nothing overflows.
///
/// `None` where a trip count that matters is unknown, or where nothing is touched at all (a
/// count or trip count of zero).
pub fn extremes(access: &Access, indices: &[LoopRange]) -> Option<Extremes> {
    let mut partitions = match access.window {
        Some(window) if window.count == 0 => return None,
        Some(window) => Some((
            i128::from(window.start),
            i128::from(window.start) + i128::from(window.count) - 1,
        )),
        None => None,
    };
    let first = i128::from(access.offset);
    let mut elements = (first, first);
    for pair in &access.pairs {
        let last = i128::from(pair.count.checked_sub(1)?);
        widen(&mut elements, 0, i128::from(pair.step) * last);
    }
    for term in &access.terms {
        let Some(range) = indices.get(usize::from(term.index)) else {
            continue;
        };
        let last = range.trips?.checked_sub(1)?;
        // Indices and trips have 64 bits each, coefficients 55: saturate far outside any memory.
        let at_first = i128::from(term.coef) * i128::from(range.first);
        let span = (i128::from(range.step) * i128::from(last))
            .checked_mul(i128::from(term.coef))
            .unwrap_or(i128::MAX / 4);
        match (term.target, &mut partitions) {
            (Target::Offset, _) => widen(&mut elements, at_first, span),
            (Target::Partition, Some(reach)) => widen(reach, at_first, span),
            (Target::Partition, None) => {}
        }
    }
    Some(Extremes {
        partitions,
        elements,
    })
}

fn widen(reach: &mut (i128, i128), shift: i128, span: i128) {
    reach.0 = reach.0.saturating_add(shift).saturating_add(span.min(0));
    reach.1 = reach.1.saturating_add(shift).saturating_add(span.max(0));
}
