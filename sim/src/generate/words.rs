//! Attributes that come up in every other instruction, found without hashing their text again.

use bir_dialect::ir::{Attr, Context, Str};

/// Texts remembered; what does not find room is interned again.
const TEXTS: usize = 256;
/// Integers remembered, from [`LOWEST`] up.
const INTS: usize = 384;
const LOWEST: i64 = -128;

/// Handles of texts by where these lie, above how long they are, neither of which needs more bits: names
/// and words of attributes are constants of this program.
struct Memo<T>(Box<[(u64, Option<T>)]>);

impl<T: Copy> Memo<T> {
    fn new() -> Memo<T> {
        Memo(vec![(0, None); TEXTS].into())
    }

    #[inline]
    fn get(&mut self, text: &'static str, make: impl FnOnce(&str) -> T) -> T {
        let key = (text.as_ptr() as u64) << 16 | text.len() as u64;
        let hash = (key ^ key >> 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let known = &mut self.0[hash as usize >> 56];
        match *known {
            (place, Some(handle)) if place == key => handle,
            _ => {
                let handle = make(text);
                *known = (key, Some(handle));
                handle
            }
        }
    }
}

/// Handles of one context by what they stand for.
pub(super) struct Words {
    texts: Memo<Str>,
    values: Memo<Attr>,
    ints: Box<[Option<Attr>]>,
}

impl Words {
    pub(super) fn new() -> Words {
        Words {
            texts: Memo::new(),
            values: Memo::new(),
            ints: vec![None; INTS].into(),
        }
    }

    /// An interned text.
    pub(super) fn text(&mut self, ctx: &mut Context, text: &'static str) -> Str {
        self.texts.get(text, |text| ctx.str(text))
    }

    /// A text as a value.
    pub(super) fn value(&mut self, ctx: &mut Context, text: &'static str) -> Attr {
        self.values.get(text, |text| ctx.string(text))
    }

    /// An integer as a value.
    pub(super) fn int(&mut self, ctx: &mut Context, value: i64) -> Attr {
        let place = value.wrapping_sub(LOWEST) as usize;
        match self.ints.get_mut(place) {
            Some(known) => *known.get_or_insert_with(|| ctx.int(value)),
            None => ctx.int(value),
        }
    }
}
