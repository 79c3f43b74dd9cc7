//! The shape cache: recipes by the shape of the statements they are for.

use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::recipe::Recipe;
use super::scan::{End, Pattern, Piece, Scanned};

/// Recipes by shape.
#[derive(Default)]
pub(super) struct Cache<'a> {
    table: HashTable<u32>,
    entries: Vec<CacheEntry<'a>>,
    shapes: Vec<u8>,
    pieces: Vec<Piece>,
    state: FixedState,
    /// The entry of the statement read last.
    last: Option<u32>,
}

struct CacheEntry<'a> {
    hash: u64,
    shape: Range<u32>,
    recipe: &'a Recipe,
    /// Empty where statements of the shape cannot be foretold.
    pieces: Range<u32>,
    /// The entry of the statement that followed one of this shape last.
    next: Option<u32>,
}

/// Shapes kept at most: beyond that, text repeats too little for the cache to help.
const MAX_SHAPES: usize = 1 << 16;
/// Bytes of shapes kept at most.
const MAX_SHAPE_BYTES: usize = 1 << 26;

impl<'a> Cache<'a> {
    pub(super) fn hash(&self, shape: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write(shape);
        hasher.finish()
    }

    pub(super) fn find(&mut self, hash: u64, shape: &[u8]) -> Option<&'a Recipe> {
        let (entries, shapes) = (&self.entries, &self.shapes);
        let found = self.table.find(hash, |&at| {
            let entry = &entries[at as usize];
            entry.hash == hash && &shapes[range(&entry.shape)] == shape
        });
        let &at = found?;
        self.follow(Some(at));
        Some(self.entries[at as usize].recipe)
    }

    pub(super) fn insert(&mut self, hash: u64, scanned: &Scanned, end: End, recipe: &'a Recipe) {
        let shape = scanned.shape();
        if self.entries.len() >= MAX_SHAPES || self.shapes.len() + shape.len() > MAX_SHAPE_BYTES {
            self.follow(None);
            return;
        }
        let (shape_start, pieces_start) = (self.shapes.len() as u32, self.pieces.len() as u32);
        self.shapes.extend_from_slice(shape);
        if end == End::Plain {
            scanned.pieces(&mut self.pieces);
        }
        let at = self.entries.len() as u32;
        self.entries.push(CacheEntry {
            hash,
            shape: shape_start..self.shapes.len() as u32,
            recipe,
            pieces: pieces_start..self.pieces.len() as u32,
            next: None,
        });
        let entries = &self.entries;
        self.table
            .insert_unique(hash, at, |&at| entries[at as usize].hash);
        self.follow(Some(at));
    }

    /// The pattern of what followed a statement like the last one before, and its entry.
    pub(super) fn foretold(&self) -> Option<(u32, Pattern<'_>)> {
        let next = self.entries[self.last? as usize].next?;
        let entry = &self.entries[next as usize];
        let pieces = &self.pieces[range(&entry.pieces)];
        let pattern = Pattern {
            shape: &self.shapes[range(&entry.shape)],
            pieces,
        };
        (!pieces.is_empty()).then_some((next, pattern))
    }

    /// The recipe of a statement that was foretold.
    pub(super) fn come_true(&mut self, entry: u32) -> &'a Recipe {
        // It is what the last statement leads to already.
        self.last = Some(entry);
        self.entries[entry as usize].recipe
    }

    fn follow(&mut self, at: Option<u32>) {
        if let Some(last) = self.last {
            self.entries[last as usize].next = at;
        }
        self.last = at;
    }
}

fn range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
