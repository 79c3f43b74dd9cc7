//! The order an access visits elements in, and carrying it over to another location.
//!
//! A [`Traversal`] is canonical: steps of count 1 are dropped and a step that continues the one
//! inside it is merged into it. Two traversals visit the same elements in the same order exactly
//! if they are equal.

use smallvec::SmallVec;

use super::LoopRange;
use super::progression::bounded;
use crate::bir::access::{Access, Pair, Target, Term, Window};
use crate::bir::num::DType;

/// One level of a traversal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// Partitions further.
    pub partitions: i64,
    /// Bytes further.
    pub bytes: i64,
    /// Number of positions.
    pub count: i64,
}

impl Step {
    fn continues(&self, inner: &Step) -> bool {
        let grown = |step: i64| step.checked_mul(inner.count);
        grown(inner.partitions) == Some(self.partitions) && grown(inner.bytes) == Some(self.bytes)
    }
}

type Steps = SmallVec<[Step; 6]>;

/// Elements in the order an access visits them, partition by partition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Traversal {
    /// Bytes of one element.
    pub size: i64,
    /// Whether partitions exist.
    pub partitioned: bool,
    /// Partition of the first element, indices at zero.
    pub partition: i64,
    /// Byte of the first element, indices at zero.
    pub byte: i64,
    /// Levels, outermost first.
    pub steps: SmallVec<[Step; 6]>,
    /// What indices add: target, index, bytes or partitions.
    pub terms: SmallVec<[(Target, u8, i64); 4]>,
}

impl Traversal {
    /// The traversal of an access; `None` where a magnitude passes 2^62.
    pub fn of(access: &Access) -> Option<Traversal> {
        let size = i64::from(access.dtype.size_bytes());
        let mut steps = Steps::new();
        if let Some(window) = access.window {
            steps.push(Step {
                partitions: 1,
                bytes: 0,
                count: i64::try_from(window.count).ok()?,
            });
        }
        for pair in &access.pairs {
            steps.push(Step {
                partitions: 0,
                bytes: bounded(i128::from(pair.step) * i128::from(size))?,
                count: bounded(i128::from(pair.count))?,
            });
        }
        let mut terms = SmallVec::new();
        for term in &access.terms {
            let factor = match term.target {
                Target::Offset => i128::from(size),
                Target::Partition => 1,
            };
            let coef = bounded(i128::from(term.coef) * factor)?;
            terms.push((term.target, term.index, coef));
        }
        Some(Traversal {
            size,
            partitioned: access.window.is_some(),
            partition: access.window.map_or(0, |window| window.start),
            byte: bounded(i128::from(access.offset) * i128::from(size))?,
            steps: canonical(steps),
            terms,
        })
    }

    /// Number of elements, saturating.
    pub fn elements(&self) -> i64 {
        self.steps
            .iter()
            .fold(1i64, |product, step| product.saturating_mul(step.count))
    }

    /// Elements in a row at consecutive bytes.
    pub fn run_elements(&self) -> i64 {
        match self.steps.last() {
            Some(step) if step.partitions == 0 && step.bytes == self.size => step.count,
            Some(step) if step.count == 0 => 0,
            _ => 1,
        }
    }

    /// Contiguous byte runs in visiting order, never across partitions: how many, and how long.
    pub fn runs(&self) -> (i64, i64) {
        match self.run_elements() {
            0 => (0, 0),
            run => (self.elements() / run, run.saturating_mul(self.size)),
        }
    }

    /// What this traversal of a location visits in `src`, if `src` was copied bit by bit to `dst`
    /// in that location: the same elements in the same order. All three count indices in one list,
    /// whose values are `indices`; terms of `dst` must appear in this traversal too (the same
    /// iteration).
    ///
    /// `None` unless all of it lies in `dst` and the result is one traversal.
    pub fn translate(
        &self,
        dst: &Traversal,
        src: &Traversal,
        indices: &[LoopRange],
    ) -> Option<Traversal> {
        let mut copy = CopyMap::new(dst, src)?;
        if !dst.terms.iter().all(|term| self.terms.contains(term)) {
            return None;
        }
        let beside = |term: &&(Target, u8, i64)| !dst.terms.contains(term);
        let own: SmallVec<[(Target, u8, i64); 4]> =
            self.terms.iter().filter(beside).copied().collect();
        let mut levels: Vec<Level> = Vec::new();
        let (mut partition, mut byte) = (i128::from(self.partition), i128::from(self.byte));
        for &(target, index, coef) in &own {
            let range = indices.get(usize::from(index))?;
            let step = bounded(i128::from(coef) * i128::from(range.step))?;
            let moved = i128::from(coef) * i128::from(range.first);
            let (partitions, bytes) = match target {
                Target::Partition => (step, 0),
                Target::Offset => (0, step),
            };
            partition += if target == Target::Partition {
                moved
            } else {
                0
            };
            byte += if target == Target::Offset { moved } else { 0 };
            levels.push(Level {
                step: Step {
                    partitions,
                    bytes,
                    count: i64::try_from(range.trips?).ok()?,
                },
                from: From::Index(index),
            });
        }
        levels.extend(self.steps.iter().map(|&step| Level {
            step,
            from: From::Step,
        }));
        if self.size > 1 {
            levels.push(Level {
                step: Step {
                    partitions: 0,
                    bytes: 1,
                    count: self.size,
                },
                from: From::Element,
            });
        }
        copy.locate(bounded(partition)?, bounded(byte)?)?;

        let (mut start_p, mut start_b) = copy.start()?;
        let mut steps = Steps::new();
        let mut terms: SmallVec<[(Target, u8, i64); 4]> = src.terms.clone();
        for level in levels {
            let pieces = copy.carry(level.step)?;
            match level.from {
                From::Step => steps.extend(pieces),
                From::Element => {
                    let [one] = pieces.as_slice() else {
                        return None;
                    };
                    if (one.partitions, one.bytes) != (0, 1) {
                        return None;
                    }
                }
                From::Index(index) => {
                    let [one] = pieces.as_slice() else {
                        return None;
                    };
                    let range = indices.get(usize::from(index))?;
                    for (target, moved) in [
                        (Target::Partition, one.partitions),
                        (Target::Offset, one.bytes),
                    ] {
                        if range.step == 0 || moved % range.step != 0 {
                            return None;
                        }
                        let coef = moved / range.step;
                        let back = bounded(i128::from(coef) * i128::from(range.first))?;
                        match target {
                            Target::Partition => start_p -= back,
                            Target::Offset => start_b -= back,
                        }
                        add_term(&mut terms, target, index, coef);
                    }
                }
            }
        }
        copy.all_inside().then(|| Traversal {
            size: self.size,
            partitioned: src.partitioned,
            partition: start_p,
            byte: start_b,
            steps: canonical(steps),
            terms,
        })
    }

    /// The access that traverses a location so, with elements of `dtype`; `own` is the location's
    /// dtype. `None` where no access can: partitions that do not step one by one at the outside,
    /// bytes that are no multiple of the element.
    pub fn to_access(&self, dtype: DType, own: DType) -> Option<Access> {
        let size = i64::from(dtype.size_bytes());
        let units = |bytes: i64| (bytes % size == 0).then_some(bytes / size);
        if size != self.size {
            return None;
        }
        let mut steps = self.steps.as_slice();
        let mut window = None;
        if self.partitioned {
            let mut count = 1;
            if let Some((outer, inner)) = steps.split_first()
                && outer.partitions != 0
            {
                if (outer.partitions, outer.bytes) != (1, 0) {
                    return None;
                }
                count = outer.count;
                steps = inner;
            }
            window = Some(Window {
                start: self.partition,
                count: u64::try_from(count).ok()?,
            });
        }
        let mut pairs: SmallVec<[Pair; 5]> = SmallVec::new();
        for step in steps {
            if step.partitions != 0 {
                return None;
            }
            pairs.push(Pair {
                step: units(step.bytes)?,
                count: u64::try_from(step.count).ok()?,
            });
        }
        if pairs.is_empty() {
            pairs.push(Pair { step: 1, count: 1 });
        }
        let mut access = Access {
            dtype,
            recast: dtype != own,
            window,
            offset: units(self.byte)?,
            pairs,
            terms: SmallVec::<[Term; 4]>::new(),
        };
        for &(target, index, coef) in &self.terms {
            let coef = match target {
                Target::Offset => units(coef)?,
                Target::Partition if self.partitioned => coef,
                Target::Partition => return None,
            };
            access.add_term(target, index, coef);
        }
        Some(access)
    }
}

/// Contiguous pieces a transfer between two traversals of equal element count falls into: what a
/// DMA needs descriptors for. `None` where the counts differ.
pub fn transfer_runs(dst: &Traversal, src: &Traversal) -> Option<i64> {
    let elements = dst.elements();
    if elements != src.elements() {
        return None;
    }
    if elements == 0 {
        return Some(0);
    }
    let (a, b) = (dst.run_elements(), src.run_elements());
    // Both cut at multiples of their runs; common multiples are cut once.
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    let both = i128::from(a) / i128::from(x) * i128::from(b);
    let shared = ((i128::from(elements) + both - 1) / both) as i64;
    Some(elements / a + elements / b - shared)
}

fn canonical(steps: Steps) -> Steps {
    if steps.iter().any(|step| step.count == 0) {
        return SmallVec::from_slice(&[Step {
            partitions: 0,
            bytes: 0,
            count: 0,
        }]);
    }
    let mut kept = Steps::new();
    for step in steps.into_iter().rev() {
        if step.count == 1 {
            continue;
        }
        match kept.last_mut() {
            Some(inner) if step.continues(inner) => inner.count *= step.count,
            _ => kept.push(step),
        }
    }
    kept.reverse();
    kept
}

fn add_term(terms: &mut SmallVec<[(Target, u8, i64); 4]>, target: Target, index: u8, coef: i64) {
    if coef == 0 {
        return;
    }
    match terms
        .iter_mut()
        .find(|term| (term.0, term.1) == (target, index))
    {
        Some(term) => term.2 += coef,
        None => terms.push((target, index, coef)),
    }
    terms.retain(|term| term.2 != 0);
    terms.sort_unstable();
}

/// Where a level being translated comes from.
#[derive(Clone, Copy)]
enum From {
    Step,
    Element,
    Index(u8),
}

struct Level {
    step: Step,
    from: From,
}

/// A level both sides of a copy walk together: a digit of a position in the destination.
#[derive(Clone, Copy)]
struct Digit {
    count: i64,
    dst: (i64, i64),
    src: (i64, i64),
    /// Position of the first element looked up, and how far all levels carried so far reach.
    at: i64,
    low: i64,
    high: i64,
}

/// A bit-by-bit copy as a map from bytes of the destination to bytes of the source.
struct CopyMap {
    dst: (i64, i64),
    src: (i64, i64),
    /// Partition digits first, then byte digits by falling stride; positions are unique.
    digits: SmallVec<[Digit; 8]>,
}

impl CopyMap {
    fn new(dst: &Traversal, src: &Traversal) -> Option<CopyMap> {
        if dst.size != src.size || dst.elements() != src.elements() || dst.elements() == 0 {
            return None;
        }
        let mut map = CopyMap {
            dst: (dst.partition, dst.byte),
            src: (src.partition, src.byte),
            digits: SmallVec::new(),
        };
        let byte = Step {
            partitions: 0,
            bytes: 1,
            count: dst.size,
        };
        let levels = |side: &Traversal| {
            let mut steps = side.steps.clone();
            steps.push(byte);
            canonical(steps)
        };
        let (mut left, mut right) = (levels(dst), levels(src));
        // The common refinement, innermost first.
        while let (Some(a), Some(b)) = (left.pop(), right.pop()) {
            let count = a.count.min(b.count);
            if a.count % count != 0 || b.count % count != 0 {
                return None;
            }
            map.push(count, (a.partitions, a.bytes), (b.partitions, b.bytes))?;
            for (side, step) in [(&mut left, a), (&mut right, b)] {
                if step.count > count {
                    side.push(Step {
                        partitions: step.partitions.checked_mul(count)?,
                        bytes: step.bytes.checked_mul(count)?,
                        count: step.count / count,
                    });
                }
            }
        }
        map.digits.sort_by_key(|digit| std::cmp::Reverse(digit.dst));
        map.merge();
        map.is_nested().then_some(map)
    }

    fn push(&mut self, count: i64, dst: (i64, i64), src: (i64, i64)) -> Option<()> {
        let one_axis = (dst.0 == 0) != (dst.1 == 0);
        if !one_axis || count <= 1 {
            return (count <= 1).then_some(());
        }
        let (mut to, mut from) = (dst, src);
        if dst.0 < 0 || dst.1 < 0 {
            // Walked backwards: both sides start at the other end.
            for (start, step) in [(&mut self.dst, &mut to), (&mut self.src, &mut from)] {
                start.0 += step.0 * (count - 1);
                start.1 += step.1 * (count - 1);
                *step = (-step.0, -step.1);
            }
        }
        self.digits.push(Digit {
            count,
            dst: to,
            src: from,
            at: 0,
            low: 0,
            high: 0,
        });
        Some(())
    }

    /// Joins neighbours that both sides walk as one.
    fn merge(&mut self) {
        let mut kept: SmallVec<[Digit; 8]> = SmallVec::new();
        for digit in self.digits.drain(..).rev() {
            let grown = |step: (i64, i64), by: i64| (step.0 * by, step.1 * by);
            match kept.last_mut() {
                Some(inner)
                    if grown(inner.dst, inner.count) == digit.dst
                        && grown(inner.src, inner.count) == digit.src =>
                {
                    inner.count *= digit.count;
                }
                _ => kept.push(digit),
            }
        }
        kept.reverse();
        self.digits = kept;
    }

    /// Whether every position has one combination of digits.
    fn is_nested(&self) -> bool {
        let (mut partitions, mut bytes) = (1i64, 1i64);
        self.digits.iter().rev().all(|digit| {
            let (step, reach) = match digit.dst {
                (0, step) => (step, &mut bytes),
                (step, _) => (step, &mut partitions),
            };
            let fits = step >= *reach;
            *reach = reach.saturating_add(step.saturating_mul(digit.count - 1));
            fits
        })
    }

    /// Sets every digit to the position of a byte; `None` outside the destination.
    fn locate(&mut self, partition: i64, byte: i64) -> Option<()> {
        let mut left = (partition - self.dst.0, byte - self.dst.1);
        for digit in &mut self.digits {
            let (rest, step) = match digit.dst {
                (0, step) => (&mut left.1, step),
                (step, _) => (&mut left.0, step),
            };
            if *rest < 0 {
                return None;
            }
            digit.at = (*rest / step).min(digit.count - 1);
            *rest -= digit.at * step;
        }
        (left == (0, 0)).then_some(())
    }

    fn start(&self) -> Option<(i64, i64)> {
        let mut at = (i128::from(self.src.0), i128::from(self.src.1));
        for digit in &self.digits {
            at.0 += i128::from(digit.src.0) * i128::from(digit.at);
            at.1 += i128::from(digit.src.1) * i128::from(digit.at);
        }
        Some((bounded(at.0)?, bounded(at.1)?))
    }

    /// The step in the source that a step in the destination is, as several where it runs through
    /// more than one digit, outermost first.
    fn carry(&mut self, step: Step) -> Option<SmallVec<[Step; 2]>> {
        let mut done: SmallVec<[Step; 2]> = SmallVec::new();
        let mut todo: SmallVec<[Step; 4]> = SmallVec::from_slice(&[step]);
        while let Some(step) = todo.pop() {
            if step.count <= 1 {
                if done.is_empty() && todo.is_empty() {
                    done.push(Step {
                        partitions: 0,
                        bytes: 0,
                        count: 1,
                    });
                }
                continue;
            }
            let backwards = step.partitions < 0 || step.bytes < 0;
            let sign = if backwards { -1 } else { 1 };
            let mut left = (step.partitions * sign, step.bytes * sign);
            let mut moves: SmallVec<[(usize, i64); 4]> = SmallVec::new();
            for (at, digit) in self.digits.iter().enumerate() {
                let (rest, unit) = match digit.dst {
                    (0, unit) => (&mut left.1, unit),
                    (unit, _) => (&mut left.0, unit),
                };
                let by = *rest / unit;
                *rest -= by * unit;
                if by != 0 {
                    moves.push((at, by));
                }
            }
            if left != (0, 0) {
                return None;
            }
            if let [(at, by)] = moves.as_slice() {
                // Runs off the digit: the part within it, and the rest in the digits outside it.
                let digit = &self.digits[*at];
                let within = digit.count / by;
                if (step.count - 1).checked_mul(*by)? >= digit.count {
                    if digit.count % by != 0 || within == 0 || step.count % within != 0 {
                        return None;
                    }
                    if within == 1 {
                        return None;
                    }
                    todo.push(Step {
                        count: within,
                        ..step
                    });
                    todo.push(Step {
                        partitions: step.partitions.checked_mul(within)?,
                        bytes: step.bytes.checked_mul(within)?,
                        count: step.count / within,
                    });
                    continue;
                }
            }
            let mut moved = (0i64, 0i64);
            for (at, by) in moves {
                let digit = &mut self.digits[at];
                let reach = by.checked_mul(step.count - 1)?;
                if backwards {
                    digit.low = digit.low.checked_sub(reach)?;
                } else {
                    digit.high = digit.high.checked_add(reach)?;
                }
                moved.0 = moved.0.checked_add(digit.src.0.checked_mul(by * sign)?)?;
                moved.1 = moved.1.checked_add(digit.src.1.checked_mul(by * sign)?)?;
            }
            done.push(Step {
                partitions: moved.0,
                bytes: moved.1,
                count: step.count,
            });
        }
        Some(done)
    }

    /// Whether every position carried over stays within every digit.
    fn all_inside(&self) -> bool {
        self.digits
            .iter()
            .all(|digit| digit.at + digit.low >= 0 && digit.at + digit.high < digit.count)
    }
}
