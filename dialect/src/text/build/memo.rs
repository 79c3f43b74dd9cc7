//! Accesses and dictionaries built lately: repeated code repeats them.
//!
//! Both depend on a *form*, what is left of their recipe without its holes, which has a number,
//! and on what fills the holes. Recipes of other statements share their accesses' forms.

use hashbrown::HashMap;

use super::Source;
use crate::ir::{Annot, Dict, Type};
use crate::text::recipe::{AccessRecipe, AffineRecipe, IntSrc, SliceRecipe, WindowEnd};
use crate::text::scan::Hole;
use smallvec::SmallVec;

/// Integers an access may depend on to be remembered: a window, an offset, two pairs.
const INTS: usize = 8;
/// Bytes a dictionary may depend on to be remembered.
const BYTES: usize = 32;

/// Numbers of forms.
#[derive(Default)]
pub(crate) struct Forms {
    accesses: HashMap<Vec<u8>, u32>,
    dicts: u32,
}

/// What an access depends on beside the type of its location.
#[derive(Clone, Debug)]
pub(crate) struct AccessMemo {
    form: u32,
    /// Holes of its integers.
    ints: SmallVec<[u32; 4]>,
}

/// What a dictionary depends on.
#[derive(Clone, Debug)]
pub(crate) struct DictMemo {
    form: u32,
    holes: SmallVec<[u32; 4]>,
    /// Position of the operand that a literal takes its dtype from.
    operand: Option<u8>,
}

impl Forms {
    /// What `access` depends on, unless that is more than is remembered.
    pub(crate) fn access(&mut self, access: &AccessRecipe) -> Option<AccessMemo> {
        let mut form = Form::default();
        let fixed = match access {
            AccessRecipe::Whole => false,
            AccessRecipe::Slices { recast, slices } => {
                form.bytes.push(b's');
                form.bytes
                    .push(recast.map_or(u8::MAX, |dtype| dtype.index()));
                slices.iter().all(|(slice, _)| form.slice(slice))
            }
            AccessRecipe::Raw {
                recast,
                window,
                offset,
                pairs,
            } => {
                form.bytes.push(b'r');
                form.bytes
                    .push(recast.map_or(u8::MAX, |dtype| dtype.index()));
                let window_fixed = window.as_deref().is_none_or(|(start, end)| {
                    let (tag, end) = match end {
                        WindowEnd::End(end) => (b'e', end),
                        WindowEnd::Length(length) => (b'l', length),
                    };
                    form.bytes.push(tag);
                    form.int(end);
                    form.affine(start)
                });
                let offset_fixed = form.affine(offset);
                for (step, count) in pairs {
                    form.int(step);
                    form.int(count);
                }
                window_fixed && offset_fixed
            }
        };
        if !fixed || form.ints.len() > INTS {
            return None;
        }
        let next = self.accesses.len() as u32;
        Some(AccessMemo {
            form: *self.accesses.entry(form.bytes).or_insert(next),
            ints: form.ints,
        })
    }

    /// A form of its own for a dictionary.
    pub(crate) fn dict(&mut self, holes: SmallVec<[u32; 4]>, operand: Option<u8>) -> DictMemo {
        self.dicts += 1;
        DictMemo {
            form: self.dicts,
            holes,
            operand,
        }
    }
}

/// An access without its integers, and where those are.
#[derive(Default)]
struct Form {
    bytes: Vec<u8>,
    ints: SmallVec<[u32; 4]>,
}

impl Form {
    fn int(&mut self, src: &IntSrc) {
        match src {
            IntSrc::Const(value) => {
                self.bytes.push(b'c');
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            IntSrc::Hole { hole, negative } => {
                self.bytes.push(if *negative { b'-' } else { b'+' });
                self.ints.push(*hole);
            }
        }
    }

    /// Whether the sum names no loop indices.
    fn affine(&mut self, affine: &AffineRecipe) -> bool {
        self.bytes.push(affine.constants.len().min(255) as u8);
        affine.constants.iter().for_each(|int| self.int(int));
        affine.terms.is_empty() && affine.constants.len() < 255
    }

    fn slice(&mut self, slice: &SliceRecipe) -> bool {
        match slice {
            SliceRecipe::At(at) => {
                self.bytes.push(b'a');
                self.affine(at)
            }
            SliceRecipe::Length(start, length, step) => {
                self.bytes.push(b'l');
                self.int(length);
                self.step(step);
                self.affine(start)
            }
            SliceRecipe::Range(start, end, step) => {
                self.bytes.push(b'r');
                self.step(step);
                [start, end].into_iter().all(|bound| match bound {
                    Some(bound) => self.affine(bound),
                    None => {
                        self.bytes.push(u8::MAX);
                        true
                    }
                })
            }
        }
    }

    fn step(&mut self, step: &Option<IntSrc>) {
        match step {
            Some(step) => self.int(step),
            None => self.bytes.push(b'n'),
        }
    }
}

/// Form of the access, location type, integers.
type AccessKey = (u32, Type, [i64; INTS]);

/// Form of the dictionary, type and access of the operand it depends on, texts of its holes with
/// a byte for the length of each.
type DictKey = (u32, (Type, Annot), [u8; BYTES]);

/// Accesses and dictionaries built lately, the last one of each slot.
#[derive(Default)]
pub(crate) struct Memos {
    accesses: Slots<AccessKey, Annot>,
    dicts: Slots<DictKey, Dict>,
}

/// What was kept last in each slot. Small files take few slots: to fill them all first takes as
/// long as to read a hundred lines.
struct Slots<K, V> {
    slots: Vec<Option<(K, V)>>,
    /// Kept since the table grew last.
    kept: usize,
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Slots {
            slots: Vec::new(),
            kept: 0,
        }
    }
}

impl<K: Copy + Eq, V: Copy> Slots<K, V> {
    const FIRST: usize = 32;
    const MOST: usize = 1 << 10;

    fn find(&self, hash: u64, key: &K) -> Option<V> {
        match self.slots.get(self.slot(hash)) {
            Some(Some((known, value))) if known == key => Some(*value),
            _ => None,
        }
    }

    fn slot(&self, hash: u64) -> usize {
        // The high bits of a product depend on all of its factors.
        (hash >> 48) as usize & self.slots.len().wrapping_sub(1)
    }

    fn keep(&mut self, hash: u64, key: K, value: V) {
        if self.kept >= self.slots.len() && self.slots.len() < Self::MOST {
            let len = (self.slots.len() * 4).clamp(Self::FIRST, Self::MOST);
            self.slots = vec![None; len];
            self.kept = 0;
        }
        self.kept += 1;
        let slot = self.slot(hash);
        self.slots[slot] = Some((key, value));
    }
}

fn mixed(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Memos {
    pub(super) fn access_key(memo: &AccessMemo, ty: Type, values: &[Hole]) -> AccessKey {
        let mut ints = [0; INTS];
        for (int, &hole) in ints.iter_mut().zip(&memo.ints) {
            *int = values[hole as usize].value;
        }
        (memo.form, ty, ints)
    }

    fn access_hash(key: &AccessKey) -> u64 {
        let hash = u64::from(key.0) << 32 | u64::from(key.1.0);
        key.2
            .iter()
            .fold(hash, |hash, &int| mixed(hash, int as u64))
    }

    pub(super) fn access(&self, key: &AccessKey) -> Option<Annot> {
        self.accesses.find(Self::access_hash(key), key)
    }

    pub(super) fn keep_access(&mut self, key: AccessKey, annot: Annot) {
        self.accesses.keep(Self::access_hash(&key), key, annot);
    }

    /// `None` if the texts of the holes are too long.
    pub(super) fn dict_key(
        memo: &DictMemo,
        operand: impl Fn(u8) -> Option<(Type, Annot)>,
        source: &Source<'_>,
    ) -> Option<DictKey> {
        let operand = match memo.operand {
            Some(at) => operand(at)?,
            None => (Type(0), Annot::UNIT),
        };
        let mut bytes = [0; BYTES];
        let mut rest = &mut bytes[..];
        for &hole in &memo.holes {
            let text = source.hole_text(hole).as_bytes();
            let (len, behind) = rest.split_first_mut()?;
            if text.len() > behind.len() {
                return None;
            }
            *len = text.len() as u8;
            let (own, behind) = behind.split_at_mut(text.len());
            own.copy_from_slice(text);
            rest = behind;
        }
        Some((memo.form, operand, bytes))
    }

    fn dict_hash(key: &DictKey) -> u64 {
        let (form, (ty, annot), bytes) = key;
        let hash = mixed(u64::from(*form), u64::from(ty.0) << 32 | u64::from(annot.0));
        bytes
            .as_chunks::<8>()
            .0
            .iter()
            .fold(hash, |hash, word| mixed(hash, u64::from_le_bytes(*word)))
    }

    pub(super) fn dict(&self, key: &DictKey) -> Option<Dict> {
        self.dicts.find(Self::dict_hash(key), key)
    }

    pub(super) fn keep_dict(&mut self, key: DictKey, dict: Dict) {
        self.dicts.keep(Self::dict_hash(&key), key, dict);
    }
}
