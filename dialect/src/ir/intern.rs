//! Interners: equal contents get equal handles, numbered in order of first sight.
//!
//! Nothing here exposes a hash container's iteration order, so handles depend only on the
//! sequence of calls.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// A row of an interner's table. It keeps the hash: growing a table reads no contents, and few but equal
/// ones are compared.
#[derive(Clone, Copy)]
struct Known {
    hash: u32,
    id: u32,
}

/// A hash as tables want it: they take the place from the low bits and a tag from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn rehash(known: &Known) -> u64 {
    spread(known.hash)
}

/// Interned strings in one buffer.
#[derive(Clone)]
pub(crate) struct StrInterner {
    text: String,
    ends: Vec<u32>,
    table: HashTable<Known>,
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
            table: HashTable::new(),
            state: FixedState::default(),
            recent: [(0, 0); RECENT],
        }
    }
}

fn hash_str(state: &FixedState, text: &str) -> u32 {
    let mut hasher = state.build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish() as u32
}

impl StrInterner {
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        let Some(word) = short_word(text) else {
            return self.intern_any(text);
        };
        let slot = recent_slot(word);
        match self.recent[slot] {
            (known, id) if known == word => id,
            _ => {
                let id = self.intern_any(text);
                self.recent[slot] = (word, id);
                id
            }
        }
    }

    fn intern_any(&mut self, text: &str) -> u32 {
        let hash = hash_str(&self.state, text);
        if let Some(id) = self.find_hashed(hash, text) {
            return id;
        }
        let id = self.ends.len() as u32;
        let known = Known { hash, id };
        self.table.insert_unique(spread(hash), known, rehash);
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        id
    }

    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.find_hashed(hash_str(&self.state, text), text)
    }

    fn find_hashed(&self, hash: u32, text: &str) -> Option<u32> {
        let is = |known: &Known| {
            known.hash == hash && slice_str(&self.text, &self.ends, known.id) == text
        };
        Some(self.table.find(spread(hash), is)?.id)
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
#[derive(Clone)]
pub(crate) struct WordInterner {
    words: Vec<u64>,
    ends: Vec<u32>,
    table: HashTable<Known>,
    state: FixedState,
}

impl Default for WordInterner {
    fn default() -> Self {
        WordInterner {
            words: Vec::new(),
            ends: Vec::new(),
            table: HashTable::new(),
            state: FixedState::default(),
        }
    }
}

fn hash_words(state: &FixedState, words: &[u64]) -> u32 {
    let mut hasher = state.build_hasher();
    for &word in words {
        hasher.write_u64(word);
    }
    hasher.finish() as u32
}

impl WordInterner {
    pub(crate) fn intern(&mut self, words: &[u64]) -> u32 {
        let hash = hash_words(&self.state, words);
        let (pool, ends) = (&self.words, &self.ends);
        let is = |known: &Known| known.hash == hash && slice_words(pool, ends, known.id) == words;
        if let Some(known) = self.table.find(spread(hash), is) {
            return known.id;
        }
        let id = self.ends.len() as u32;
        let known = Known { hash, id };
        self.table.insert_unique(spread(hash), known, rehash);
        self.words.extend_from_slice(words);
        self.ends.push(self.words.len() as u32);
        id
    }

    /// Makes room for so many further sequences, of four words each.
    pub(crate) fn reserve(&mut self, sequences: usize) {
        self.words.reserve(4 * sequences);
        self.ends.reserve(sequences);
        self.table.reserve(sequences, rehash);
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &[u64] {
        slice_words(&self.words, &self.ends, id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.words.capacity() * 8
            + self.ends.capacity() * 4
            + self.table.capacity() * (size_of::<Known>() + 1)
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
}
