//! Accesses built lately.

use crate::ir::{Annot, Type};
use crate::text::scan::Hole;

/// Integers an access may depend on to be remembered.
pub(crate) const MEMO_INTS: usize = 6;

/// Accesses built lately, by what they depend on: repeated code repeats its accesses.
pub(crate) struct AccessMemos {
    slots: Vec<(MemoKey, Annot)>,
}

/// Number of the access recipe, location type, integers.
type MemoKey = (u32, Type, [i64; MEMO_INTS]);

impl Default for AccessMemos {
    fn default() -> Self {
        AccessMemos {
            slots: vec![((0, Type(0), [0; MEMO_INTS]), Annot::UNIT); 1 << 10],
        }
    }
}

impl AccessMemos {
    pub(super) fn key(number: u32, ty: Type, holes: &[u32], values: &[Hole]) -> MemoKey {
        let mut ints = [0; MEMO_INTS];
        for (int, &hole) in ints.iter_mut().zip(holes) {
            *int = values[hole as usize].value;
        }
        (number, ty, ints)
    }

    fn slot(&self, key: &MemoKey) -> usize {
        let mut hash = u64::from(key.0) << 32 | u64::from(key.1.0);
        for &int in &key.2 {
            hash = (hash.rotate_left(5) ^ int as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        (hash >> 54) as usize
    }

    pub(super) fn find(&self, key: &MemoKey) -> Option<Annot> {
        let (known, annot) = &self.slots[self.slot(key)];
        (known == key).then_some(*annot)
    }

    pub(super) fn insert(&mut self, key: MemoKey, annot: Annot) {
        let slot = self.slot(&key);
        self.slots[slot] = (key, annot);
    }
}
