//! The shape cache: recipes by the shape of the statements they are for.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::recipe::Recipe;

/// Recipes by shape.
#[derive(Default)]
pub(super) struct Cache<'a> {
    table: HashTable<CacheEntry<'a>>,
    shapes: Vec<u8>,
    state: FixedState,
}

struct CacheEntry<'a> {
    hash: u64,
    start: u32,
    len: u32,
    recipe: &'a Recipe,
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

    pub(super) fn find(&self, hash: u64, shape: &[u8]) -> Option<&'a Recipe> {
        self.table
            .find(hash, |entry| {
                let start = entry.start as usize;
                entry.hash == hash && &self.shapes[start..start + entry.len as usize] == shape
            })
            .map(|entry| entry.recipe)
    }

    pub(super) fn insert(&mut self, hash: u64, shape: &[u8], recipe: &'a Recipe) {
        if self.table.len() >= MAX_SHAPES || self.shapes.len() + shape.len() > MAX_SHAPE_BYTES {
            return;
        }
        let entry = CacheEntry {
            hash,
            start: self.shapes.len() as u32,
            len: shape.len() as u32,
            recipe,
        };
        self.shapes.extend_from_slice(shape);
        self.table.insert_unique(hash, entry, |entry| entry.hash);
    }
}
