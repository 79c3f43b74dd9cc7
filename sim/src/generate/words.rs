//! Attributes that come up in every other instruction, found without hashing their text again.

use bir_dialect::ir::{Attr, Context, Str};

/// Texts remembered; what does not find room is interned again.
const TEXTS: usize = 256;
/// Integers remembered, from [`LOWEST`] up.
const INTS: usize = 384;
const LOWEST: i64 = -128;

/// Handles of one context by what they stand for.
pub(super) struct Words {
    /// By where a text lies: names and words of attributes are constants of this program.
    texts: Box<[(usize, usize, Option<Str>)]>,
    /// The same, as values.
    values: Box<[(usize, usize, Option<Attr>)]>,
    ints: Box<[Option<Attr>]>,
}

fn slot(text: &'static str) -> usize {
    let place = text.as_ptr() as usize ^ text.len() << 7;
    (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 56
}

impl Words {
    pub(super) fn new() -> Words {
        Words {
            texts: vec![(0, 0, None); TEXTS].into(),
            values: vec![(0, 0, None); TEXTS].into(),
            ints: vec![None; INTS].into(),
        }
    }

    /// An interned text.
    pub(super) fn text(&mut self, ctx: &mut Context, text: &'static str) -> Str {
        let place = (text.as_ptr() as usize, text.len());
        let known = &mut self.texts[slot(text)];
        match *known {
            (at, len, Some(known)) if (at, len) == place => known,
            _ => {
                let handle = ctx.str(text);
                *known = (place.0, place.1, Some(handle));
                handle
            }
        }
    }

    /// A text as a value.
    pub(super) fn value(&mut self, ctx: &mut Context, text: &'static str) -> Attr {
        let place = (text.as_ptr() as usize, text.len());
        let known = &mut self.values[slot(text)];
        match *known {
            (at, len, Some(known)) if (at, len) == place => known,
            _ => {
                let handle = ctx.string(text);
                *known = (place.0, place.1, Some(handle));
                handle
            }
        }
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
