//! What the walk has found good already: the most recent of each hash, compared word by word.

use super::super::ops::OpCode;
use super::facts::Facts;
use crate::ir::{Dict, OperandData};

/// The most slots a table has; a small file is not worth clearing them all.
pub(super) const SLOTS: usize = 1 << 10;
/// Words of the longest statement that is remembered.
const FORM_WORDS: usize = 40;
/// Words of the longest key that is remembered.
const KEY_WORDS: usize = 20;

/// Mixes words into a hash that chooses slots.
fn hash_of(words: &[u32]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for pair in words.chunks(2) {
        let low = pair.first().copied().unwrap_or(0);
        let high = pair.get(1).copied().unwrap_or(0);
        let both = u64::from(low) | u64::from(high) << 32;
        hash = (hash ^ both).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash
}

/// A statement without its accesses.
#[derive(Clone)]
struct Form {
    hash: u64,
    len: u32,
    serial: u32,
    is_good: bool,
    words: [u32; FORM_WORDS],
}

/// Forms of statements met, and which of them are good whatever the accesses.
pub(super) struct Forms {
    slots: Vec<Form>,
    met: u32,
}

/// A form in the table: its slot, and a number no other form has had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FormId {
    slot: usize,
    serial: u32,
}

impl Forms {
    /// Of a power of two of slots.
    pub(super) fn new(slots: usize) -> Forms {
        let empty = Form {
            hash: 0,
            len: 0,
            serial: 0,
            is_good: false,
            words: [0; FORM_WORDS],
        };
        Forms {
            slots: vec![empty; slots],
            met: 0,
        }
    }

    /// The form of these words; `None` where it is too long to be remembered.
    #[inline]
    pub(super) fn find(&mut self, words: &[u32]) -> Option<FormId> {
        let hash = hash_of(words);
        let slot = hash as usize & (self.slots.len() - 1);
        let form = self.slots.get_mut(slot)?;
        let is_known = form.hash == hash && form.words.get(..form.len as usize) == Some(words);
        if !is_known {
            form.words.get_mut(..words.len())?.copy_from_slice(words);
            self.met += 1;
            form.len = words.len() as u32;
            form.hash = hash;
            form.serial = self.met;
            form.is_good = false;
        }
        let serial = form.serial;
        Some(FormId { slot, serial })
    }

    /// Whether the form is good whatever its accesses.
    pub(super) fn is_good(&self, form: FormId) -> bool {
        let known = self.slots.get(form.slot);
        known.is_some_and(|known| known.serial == form.serial && known.is_good)
    }

    /// From now on it is.
    pub(super) fn set_good(&mut self, form: FormId) {
        if let Some(known) = self.slots.get_mut(form.slot)
            && known.serial == form.serial
        {
            known.is_good = true;
        }
    }
}

/// A form with something about each of its operands.
#[derive(Clone, Copy)]
pub(super) struct Key {
    words: [u32; KEY_WORDS],
    len: usize,
}

impl Key {
    fn new(form: FormId) -> Key {
        let mut words = [0; KEY_WORDS];
        words[0] = form.serial;
        Key { words, len: 1 }
    }

    #[inline]
    fn push(&mut self, word: u32) -> Option<()> {
        *self.words.get_mut(self.len)? = word;
        self.len += 1;
        Some(())
    }

    /// The statement; `None` where it has too many operands to be remembered.
    #[inline]
    pub(super) fn whole(form: FormId, operands: &[OperandData]) -> Option<Key> {
        let mut key = Key::new(form);
        for operand in operands {
            key.push(operand.annot.index() as u32)?;
        }
        Some(key)
    }

    /// All statements with accesses of the same shapes; `None` where they are too many or too large.
    #[inline]
    pub(super) fn shapes(form: FormId, facts: &[Option<Facts>]) -> Option<Key> {
        let mut key = Key::new(form);
        for facts in facts.iter().flatten() {
            let partitions = u32::from(u16::try_from(facts.partitions).ok()?);
            let pairs = u32::from(u8::try_from(facts.pairs).ok()?);
            key.push(partitions | pairs << 16 | u32::from(facts.in_bank) << 24)?;
            key.push(u32::try_from(facts.elements).ok()?)?;
        }
        Some(key)
    }

    fn words(&self) -> &[u32] {
        self.words.get(..self.len).unwrap_or_default()
    }
}

/// Keys found good.
pub(super) struct Keys {
    slots: Vec<(u64, Key)>,
}

impl Keys {
    /// Of a power of two of slots.
    pub(super) fn new(slots: usize) -> Keys {
        let words = [0; KEY_WORDS];
        Keys {
            slots: vec![(0, Key { words, len: 0 }); slots],
        }
    }

    #[inline]
    pub(super) fn contains(&self, key: &Key) -> bool {
        let hash = hash_of(key.words());
        let known = self.slots.get(hash as usize & (self.slots.len() - 1));
        known.is_some_and(|known| known.0 == hash && known.1.words() == key.words())
    }

    pub(super) fn insert(&mut self, key: &Key) {
        let hash = hash_of(key.words());
        let at = hash as usize & (self.slots.len() - 1);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = (hash, *key);
        }
    }
}

/// Dictionaries found good for an op.
pub(super) struct GoodDicts {
    slots: Vec<(u32, u32)>,
}

impl GoodDicts {
    /// Of a power of two of slots.
    pub(super) fn new(slots: usize) -> GoodDicts {
        GoodDicts {
            slots: vec![(u32::MAX, u32::MAX); slots],
        }
    }

    fn slot(&self, code: OpCode, dict: Dict) -> usize {
        ((code as usize).wrapping_mul(0x9e37) ^ dict.index()) & (self.slots.len() - 1)
    }

    pub(super) fn contains(&self, code: OpCode, dict: Dict) -> bool {
        self.slots[self.slot(code, dict)] == (code as u32, dict.index() as u32)
    }

    pub(super) fn insert(&mut self, code: OpCode, dict: Dict) {
        let slot = self.slot(code, dict);
        self.slots[slot] = (code as u32, dict.index() as u32);
    }
}
