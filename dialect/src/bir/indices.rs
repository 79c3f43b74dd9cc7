//! The loop indices an instruction uses, in the one order every text of it gives them.
//!
//! Canonical: by first operand that uses the index; inside one access, window before offset and
//! large coefficients before small ones, which is how slices print; then `unless_first`, then
//! `order`. So an instruction built by a pass equals the same instruction read from its text.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::access::{Target, Term};
use super::program::OrderTerm;
use crate::ir::Value;

/// Gives indices their canonical numbers.
pub struct Numbering<'a> {
    values: &'a [Value],
    numbers: SmallVec<[Option<u8>; 4]>,
    next: u8,
}

impl<'a> Numbering<'a> {
    /// No index of `values` is met yet.
    pub fn new(values: &'a [Value]) -> Numbering<'a> {
        Numbering {
            values,
            numbers: SmallVec::from_elem(None, values.len()),
            next: 0,
        }
    }

    /// Meets one index by its present number.
    pub fn meet(&mut self, index: u8) {
        let at = usize::from(index);
        let (Some(&value), Some(None)) = (self.values.get(at), self.numbers.get(at)) else {
            return;
        };
        // The same loop under two numbers is one index.
        let same = self
            .values
            .iter()
            .zip(&self.numbers)
            .find_map(|(&other, &number)| number.filter(|_| other == value));
        self.numbers[at] = Some(same.unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        }));
    }

    /// Meets the indices of one access.
    pub fn meet_terms(&mut self, terms: &[Term]) {
        let mut sorted: SmallVec<[Term; 4]> = SmallVec::from_slice(terms);
        sorted.sort_by_key(|term| {
            (
                term.target != Target::Partition,
                Reverse(term.coef.unsigned_abs()),
                term.index,
            )
        });
        for term in &sorted {
            self.meet(term.index);
        }
    }

    /// Meets the indices of a schedule coordinate.
    pub fn meet_order(&mut self, order: &[OrderTerm]) {
        for term in order {
            for &(index, _) in &term.terms {
                self.meet(index);
            }
        }
    }

    /// The new number of every index, `None` for those not met.
    pub fn finish(self) -> SmallVec<[Option<u8>; 4]> {
        self.numbers
    }
}
