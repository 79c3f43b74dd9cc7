//! Interners: equal contents get equal handles, numbered in order of first sight.
//!
//! Nothing here exposes a hash container's iteration order, so handles depend only on the
//! sequence of calls.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// Handles by the hash of what they stand for: a power of two of slots, each zero or a hash above a handle
/// and one, found by going on from where the hash points. Looking for something new reads one line of
/// memory, mostly, and leaves where it goes; growing reads no contents.
#[derive(Clone, Default)]
struct Table {
    slots: Vec<u64>,
    used: usize,
}

impl Table {
    /// The handle of that hash that `is` the one, or the free slot behind all that are not.
    #[inline]
    fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        // Without slots every place is outside, and nothing is found.
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            match self.slots.get(at) {
                None | Some(0) => return Err(at),
                Some(&slot) => {
                    let id = (slot as u32).wrapping_sub(1);
                    if (slot >> 32) as u32 == hash && is(id) {
                        return Ok(id);
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a handle at the slot [`find`](Self::find) left.
    #[inline]
    fn insert(&mut self, hash: u32, id: u32, mut at: usize) {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.resize((2 * self.slots.len()).max(16));
            at = self.free(hash);
        }
        self.slots[at] = u64::from(hash) << 32 | u64::from(id + 1);
        self.used += 1;
    }

    /// Makes room for so many further handles.
    fn reserve(&mut self, more: usize) {
        let slots = (4 * (self.used + more)).div_ceil(3).next_power_of_two();
        if slots > self.slots.len() {
            self.resize(slots);
        }
    }

    fn resize(&mut self, slots: usize) {
        for slot in std::mem::replace(&mut self.slots, vec![0; slots]) {
            if slot != 0 {
                let at = self.free((slot >> 32) as u32);
                self.slots[at] = slot;
            }
        }
    }

    /// The first free slot for a hash; there is one.
    fn free(&self, hash: u32) -> usize {
        self.find(hash, |_| false).err().unwrap_or(0)
    }
}

/// Interned strings in one buffer.
#[derive(Clone)]
pub(crate) struct StrInterner {
    text: String,
    ends: Vec<u32>,
    table: Table,
    state: FixedState,
    /// Short strings asked for lately, by what [`short_word`] makes of them.
    recent: [(u64, u32); RECENT],
}

const RECENT: usize = 128;

/// A string of at most seven bytes as a word of its own, never zero.
fn short_word(text: &str) -> Option<u64> {
    if text.len() > 7 {
        return None;
    }
    let length = (text.len() as u64 + 1) << 56;
    Some(
        text.bytes()
            .fold(0, |word, byte| word << 8 | u64::from(byte))
            | length,
    )
}

fn recent_slot(word: u64) -> usize {
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57) as usize % RECENT
}

impl Default for StrInterner {
    fn default() -> Self {
        StrInterner {
            text: String::new(),
            ends: Vec::new(),
            table: Table::default(),
            state: FixedState::default(),
            recent: [(0, 0); RECENT],
        }
    }
}

/// Strings that differ in the last three bits only are eight slots of a [`Table`] behind one another, mostly one
/// line of memory: names are numbered more often than not, and asked for in the order of their numbers.
fn beside(hash: u32, last: u64) -> u32 {
    hash & !7 | last as u32 & 7
}

fn hash_short(word: u64) -> u32 {
    beside(hash_words(&[word >> 3]), word)
}

fn hash_long(state: &FixedState, text: &str) -> u32 {
    let (last, rest) = text.as_bytes().split_last().unwrap_or((&0, &[]));
    let mut hasher = state.build_hasher();
    hasher.write(rest);
    hasher.write_u8(last >> 3);
    beside(hasher.finish() as u32, u64::from(*last))
}

impl StrInterner {
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        let Some(word) = short_word(text) else {
            return self.intern_hashed(hash_long(&self.state, text), text);
        };
        let slot = recent_slot(word);
        match self.recent[slot] {
            (known, id) if known == word => id,
            _ => {
                let id = self.intern_hashed(hash_short(word), text);
                self.recent[slot] = (word, id);
                id
            }
        }
    }

    fn intern_hashed(&mut self, hash: u32, text: &str) -> u32 {
        match self.find_hashed(hash, text) {
            Ok(id) => id,
            Err(at) => {
                let id = self.ends.len() as u32;
                self.table.insert(hash, id, at);
                self.text.push_str(text);
                self.ends.push(self.text.len() as u32);
                id
            }
        }
    }

    /// Makes room for so many further strings, of eight bytes each.
    pub(crate) fn reserve(&mut self, strings: usize) {
        self.text.reserve(8 * strings);
        self.ends.reserve(strings);
        self.table.reserve(strings);
    }

    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let hash = short_word(text).map_or_else(|| hash_long(&self.state, text), hash_short);
        self.find_hashed(hash, text).ok()
    }

    fn find_hashed(&self, hash: u32, text: &str) -> Result<u32, usize> {
        let is = |id| slice_str(&self.text, &self.ends, id) == text;
        self.table.find(hash, is)
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        slice_str(&self.text, &self.ends, id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether `more` further bytes still fit the 32-bit offsets.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.text.len() + more < u32::MAX as usize
    }
}

fn slice_str<'a>(pool: &'a str, ends: &[u32], id: u32) -> &'a str {
    let end = ends[id as usize] as usize;
    let start = match id {
        0 => 0,
        _ => ends[id as usize - 1] as usize,
    };
    &pool[start..end]
}

/// Interned sequences of 64-bit words; types, attributes, dictionaries and annotations are
/// encoded as such, so that one mechanism compares and stores them without a box per item.
#[derive(Clone, Default)]
pub(crate) struct WordInterner {
    words: Vec<u64>,
    ends: Vec<u32>,
    table: Table,
}

/// The halves of a product folded for each word: sequences are short, and setting up a hasher costs more
/// than what it would hash.
#[inline]
fn hash_words(words: &[u64]) -> u32 {
    let folded = words
        .iter()
        .fold(words.len() as u64 ^ 0x243f_6a88_85a3_08d3, |hash, word| {
            let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
            product as u64 ^ (product >> 64) as u64
        });
    folded as u32 ^ (folded >> 32) as u32
}

/// Word by word: sequences are a few words long, too few for a call of `memcmp`.
#[inline]
fn same_words(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

impl WordInterner {
    pub(crate) fn intern(&mut self, words: &[u64]) -> u32 {
        let hash = hash_words(words);
        let is = |id| same_words(slice_words(&self.words, &self.ends, id), words);
        match self.table.find(hash, is) {
            Ok(id) => id,
            Err(at) => {
                let id = self.ends.len() as u32;
                self.table.insert(hash, id, at);
                self.words.extend_from_slice(words);
                self.ends.push(self.words.len() as u32);
                id
            }
        }
    }

    /// Makes room for so many further sequences, of six words each.
    pub(crate) fn reserve(&mut self, sequences: usize) {
        self.words.reserve(6 * sequences);
        self.ends.reserve(sequences);
        self.table.reserve(sequences);
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &[u64] {
        slice_words(&self.words, &self.ends, id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.words.capacity() * 8 + self.ends.capacity() * 4 + self.table.slots.len() * 8
    }
}

fn slice_words<'a>(pool: &'a [u64], ends: &[u32], id: u32) -> &'a [u64] {
    let end = ends[id as usize] as usize;
    let start = match id {
        0 => 0,
        _ => ends[id as usize - 1] as usize,
    };
    &pool[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_handle_and_survive_growth() {
        let mut strings = StrInterner::default();
        let ids: Vec<u32> = (0..5000)
            .map(|i| strings.intern(&format!("s{i}")))
            .collect();
        for (i, &id) in ids.iter().enumerate() {
            assert_eq!(strings.get(id), format!("s{i}"));
            assert_eq!(strings.intern(&format!("s{i}")), id);
            assert_eq!(strings.find(&format!("s{i}")), Some(id));
        }
        assert_eq!(strings.len(), 5000);
        assert_eq!(strings.find("t"), None);
    }

    #[test]
    fn short_strings_differ_by_length_and_content() {
        let mut strings = StrInterner::default();
        let texts = [
            "", "\0", "\0\0", "a", "a\0", "\0a", "1234567", "12345678", "é", "ab",
        ];
        let ids: Vec<u32> = texts.iter().map(|text| strings.intern(text)).collect();
        for (text, &id) in texts.iter().zip(&ids) {
            assert_eq!(strings.intern(text), id);
            assert_eq!(strings.get(id), *text);
        }
        assert_eq!(strings.len(), texts.len());
    }

    #[test]
    fn word_sequences_of_different_length_differ() {
        let mut words = WordInterner::default();
        let a = words.intern(&[]);
        let b = words.intern(&[0]);
        let c = words.intern(&[0, 0]);
        assert_eq!((a, b, c), (0, 1, 2));
        assert_eq!(words.intern(&[0]), b);
        assert_eq!(words.get(c), &[0, 0]);
    }

    #[test]
    fn word_sequences_survive_growth_and_room_made_at_once() {
        for room in [0, 1, 100, 5000] {
            let mut words = WordInterner::default();
            // Two of three differ in one high bit only.
            let sequence = |i: u64| [i / 3, (i % 3) << 62, 7];
            for i in 0..5000 {
                if i == 50 {
                    words.reserve(room);
                }
                assert_eq!(words.intern(&sequence(i)), i as u32);
            }
            for i in 0..5000 {
                assert_eq!(words.intern(&sequence(i)), i as u32);
                assert_eq!(words.get(i as u32), sequence(i));
            }
            assert_eq!(words.len(), 5000);
        }
    }

    #[test]
    fn handles_of_one_hash_are_told_apart_by_what_they_stand_for() {
        let mut table = Table::default();
        for id in 0..100 {
            let slot = table.find(7, |other| other == id);
            table.insert(7, id, slot.unwrap_err());
        }
        for id in 0..100 {
            assert_eq!(table.find(7, |other| other == id), Ok(id));
        }
        assert!(table.find(7, |other| other == 100).is_err());
        assert!(table.find(8, |_| true).is_err());
    }
}
