//! Texts printed lately: programs repeat their types, accesses and dictionaries.

use crate::ir::Dict;

const SLOTS: usize = 256;
/// Longer texts are not kept: copying them costs as much as making them.
const MOST_BYTES: usize = 1 << 12;
/// The number of no text.
const NONE: u64 = u64::MAX;

fn slot(key: u64) -> usize {
    // The high bits of the product depend on all bits of the key.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize % SLOTS
}

/// Texts by the number of what they say, the last one of each slot.
#[derive(Default)]
pub(super) struct RecentTexts {
    slots: Vec<(u64, String)>,
}

impl RecentTexts {
    pub(super) fn get(&self, key: u64) -> Option<&str> {
        let (known, text) = self.slots.get(slot(key))?;
        (*known == key).then_some(text)
    }

    pub(super) fn keep(&mut self, key: u64, text: &str) {
        if text.len() > MOST_BYTES {
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, (NONE, String::new()));
        }
        let (known, kept) = &mut self.slots[slot(key)];
        *known = key;
        kept.clear();
        kept.push_str(text);
    }
}

/// The entries of a dictionary, each followed by `, `.
pub(super) struct DictText<const CUTS: usize> {
    pub(super) text: String,
    /// Where further entries go, by their names in alphabetic order.
    pub(super) cuts: [usize; CUTS],
}

/// Dictionaries, the last one of each slot.
pub(super) struct RecentDicts<const CUTS: usize = 9> {
    slots: Vec<(u64, DictText<CUTS>)>,
}

impl<const CUTS: usize> Default for RecentDicts<CUTS> {
    fn default() -> Self {
        RecentDicts { slots: Vec::new() }
    }
}

impl<const CUTS: usize> RecentDicts<CUTS> {
    /// What `keep` returned for this dictionary, if it is still there.
    pub(super) fn find(&self, dict: Dict) -> Option<usize> {
        let key = dict.index() as u64;
        let at = slot(key);
        (self.slots.get(at)?.0 == key).then_some(at)
    }

    /// Keeps a text until another one comes to its slot.
    pub(super) fn keep(&mut self, dict: Dict, text: DictText<CUTS>) -> usize {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || {
                let none = DictText {
                    text: String::new(),
                    cuts: [0; CUTS],
                };
                (NONE, none)
            });
        }
        let key = dict.index() as u64;
        let at = slot(key);
        self.slots[at] = (key, text);
        at
    }

    pub(super) fn at(&self, at: usize) -> &DictText<CUTS> {
        &self.slots[at].1
    }

    /// Lets go of a text too long to be kept.
    pub(super) fn trim(&mut self, at: usize) {
        if let Some((key, kept)) = self.slots.get_mut(at)
            && kept.text.len() > MOST_BYTES
        {
            *key = NONE;
            kept.text = String::new();
        }
    }
}
