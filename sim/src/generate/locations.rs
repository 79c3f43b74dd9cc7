//! Locations: declared, placed, given up.

use bir_dialect::bir::attrs::Placement;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{NUMERIC, OpCode};
use bir_dialect::bir::program::{names, op_name};
use bir_dialect::bir::space::{PSUM_BANK_BYTES, PSUM_BANKS, Space};
use bir_dialect::bir::types::MemType;
use bir_dialect::ir::{Attr, NewOp, Str, Value};
use smallvec::SmallVec;

use super::Generator;
use super::features::Feature;
use super::part::Pairs;
use super::tiles::bits_may_be_written;

/// A declared location.
pub(super) struct Location {
    pub(super) value: Value,
    pub(super) space: Space,
    pub(super) dtype: DType,
    /// Partitions; 1 in DRAM.
    pub(super) parts: u64,
    /// Sizes behind the partition; all of them in DRAM.
    pub(super) dims: SmallVec<[u64; 3]>,
    /// All its elements, row-major.
    pub(super) pairs: Pairs,
    /// Elements per partition, or in all.
    pub(super) elems: u64,
    /// First partition.
    pub(super) base: u64,
    pub(super) storage: u32,
    /// Not a constant.
    pub(super) writable: bool,
    /// In a pool, or was once.
    pub(super) readable: bool,
    /// Has a partner in `must_alias`.
    pub(super) aliased: bool,
    pub(super) slot: Option<Placement>,
    /// Where it is in its pool.
    pub(super) pooled: usize,
}

/// Addresses in use.
#[derive(Default)]
pub(super) struct Placer {
    sbuf: u64,
    dram: u64,
    banks: u64,
    /// Placed locations that may make room, and the bytes they hold per partition.
    slots: Vec<(usize, u64)>,
    /// Addresses nobody uses any more, and the bytes there per partition.
    free: Vec<(Placement, u64)>,
}

/// Appends a number in decimal: every location and register has one in its name.
fn push_number(text: &mut String, number: usize) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// Bytes per partition given to placed locations, of what the smallest generation has.
const PLACED_BYTES: u64 = 128 * 1024;
impl Generator<'_> {
    /// Declares a location, perhaps at an address.
    pub(super) fn allocate(
        &mut self,
        space: Space,
        dtype: DType,
        parts: u64,
        elems: u64,
        attrs: &[(Str, Attr)],
    ) -> usize {
        let is_internal = attrs.iter().all(|entry| entry.0 != names::KIND);
        let slot = if is_internal {
            let bytes = elems * u64::from(dtype.size_bytes());
            self.place(space, dtype, parts, bytes)
        } else {
            None
        };
        self.allocate_at(slot, space, dtype, (parts, elems), attrs)
    }

    /// Declares a location at an address, or at none.
    pub(super) fn allocate_at(
        &mut self,
        slot: Option<Placement>,
        space: Space,
        dtype: DType,
        (parts, elems): (u64, u64),
        attrs: &[(Str, Attr)],
    ) -> usize {
        let mut dims: SmallVec<[u64; 3]> = SmallVec::new();
        if space == Space::Dram {
            dims.push(parts);
        }
        let divisor = self.divisor(elems);
        if elems > 1 && divisor > 1 && self.chance(3) {
            dims.extend_from_slice(&[divisor, elems / divisor]);
        } else {
            dims.push(elems);
        }
        let shape: SmallVec<[u64; 4]> = if space == Space::Dram {
            SmallVec::from_slice(&dims)
        } else {
            std::iter::once(parts).chain(dims.iter().copied()).collect()
        };
        let mut attrs: SmallVec<[(Str, Attr); 4]> = SmallVec::from_slice(attrs);
        let bytes = elems * u64::from(dtype.size_bytes());
        if let Some(slot) = slot {
            let attr = slot.intern(&mut self.ir.ctx);
            attrs.push((names::AT, attr));
        }
        let storage = self.storages;
        self.storages += 1;
        let value = self.declare_location(space, dtype, &shape, &attrs);
        let base = match slot {
            Some(Placement::Bytes { partition, .. } | Placement::Bank { partition, .. }) => {
                u64::from(partition)
            }
            _ => 0,
        };
        self.locations.push(Location {
            value,
            space,
            dtype,
            parts: if space == Space::Dram { 1 } else { parts },
            pairs: Pairs::whole(&dims),
            elems: dims.iter().product(),
            dims,
            base,
            storage,
            writable: true,
            readable: false,
            aliased: false,
            slot,
            pooled: 0,
        });
        let at = self.locations.len() - 1;
        if slot.is_some() && space == Space::Sbuf {
            self.placement.slots.push((at, bytes));
        }
        at
    }

    /// Inserts an `alloc` behind the others.
    pub(super) fn declare_location(
        &mut self,
        space: Space,
        dtype: DType,
        shape: &[u64],
        attrs: &[(Str, Attr)],
    ) -> Value {
        let ty = MemType::intern(&mut self.ir.ctx, space, dtype, shape);
        let dict = self.ir.ctx.dict(attrs);
        let op = self.ir.create(NewOp {
            results: &[ty],
            dict,
            ..NewOp::new(op_name(OpCode::Alloc))
        });
        self.allocs.push(op);
        self.counts.op(OpCode::Alloc);
        let value = self.ir.made_result(op);
        let letter = match space {
            Space::Dram => 'd',
            Space::Sbuf => 't',
            Space::Psum => 'p',
        };
        self.name(value, letter, self.locations.len());
        value
    }

    /// Names a value by a letter and a number.
    pub(super) fn name(&mut self, value: Value, letter: char, number: usize) {
        self.text.clear();
        self.text.push(letter);
        push_number(&mut self.text, number);
        let name = self.ir.ctx.str(&self.text);
        self.ir.set_value_name(value, Some(name));
    }

    /// An address for an internal location.
    fn place(&mut self, space: Space, dtype: DType, parts: u64, bytes: u64) -> Option<Placement> {
        if !self.may(Feature::Placed) || !self.chance(4) {
            return None;
        }
        let align = u64::from(dtype.size_bytes()).max(64);
        let found = match space {
            Space::Dram => {
                let at = self.placement.dram;
                self.placement.dram += (parts * bytes).next_multiple_of(align);
                Placement::Address(at)
            }
            Space::Psum => {
                let banks = bytes.div_ceil(PSUM_BANK_BYTES);
                let bank = self.placement.banks;
                if bank + banks > PSUM_BANKS {
                    return None;
                }
                self.placement.banks += banks;
                let bank = bank as u32;
                Placement::Bank { partition: 0, bank }
            }
            Space::Sbuf => match self.freed_slot(parts, bytes) {
                Some(slot) => slot,
                None => {
                    let byte = self.placement.sbuf;
                    if byte + bytes > PLACED_BYTES {
                        return None;
                    }
                    self.placement.sbuf += bytes.next_multiple_of(align);
                    let step = if parts <= 32 { 32 } else { 64 };
                    let starts = if parts > 64 { 1 } else { 128 / step };
                    let partition = (self.random.below(starts) * step) as u32;
                    Placement::Bytes { partition, byte }
                }
            },
        };
        self.counts.feature(Feature::Placed);
        Some(found)
    }

    /// Gives up a placed location between two statements outside of loops and arms, so that
    /// another can take its address: there what comes first in the text comes first in time.
    pub(super) fn retire(&mut self) {
        if self.depth > 0 || self.placement.slots.is_empty() || !self.may(Feature::SlotReuse) {
            return;
        }
        let n = self.random.below(self.placement.slots.len() as u64) as usize;
        let (at, bytes) = self.placement.slots[n];
        let (old, pool) = (&self.locations[at], &mut self.pools[Space::Sbuf as usize]);
        let place = old.pooled;
        if let (Some(slot), Some(&found), false) = (old.slot, pool.get(place), old.aliased)
            && found == at
        {
            pool.swap_remove(place);
            if let Some(&moved) = pool.get(place) {
                self.locations[moved].pooled = place;
            }
            self.placement.slots.swap_remove(n);
            self.placement.free.push((slot, bytes));
        }
    }

    /// Puts a location in its pool.
    fn pool(&mut self, at: usize) {
        let pool = &mut self.pools[self.locations[at].space as usize];
        self.locations[at].pooled = pool.len();
        pool.push(at);
    }

    fn freed_slot(&mut self, parts: u64, bytes: u64) -> Option<Placement> {
        let &(slot, held) = self.placement.free.last()?;
        let Placement::Bytes { partition, .. } = slot else {
            return None;
        };
        let step = match parts {
            0..=32 => 32,
            33..=64 => 64,
            _ => 128,
        };
        let first = u64::from(partition);
        if bytes > held || !first.is_multiple_of(step) || first + parts > 128 {
            return None;
        }
        self.placement.free.pop();
        self.counts.feature(Feature::SlotReuse);
        Some(slot)
    }

    /// A location is defined from now on.
    pub(super) fn publish(&mut self, at: usize) {
        let location = &mut self.locations[at];
        if !location.readable {
            location.readable = true;
            self.pool(at);
            self.alias(at);
        }
    }

    /// Now and then gives a location a second name.
    fn alias(&mut self, at: usize) {
        let location = &self.locations[at];
        let alone = location.slot.is_none() && !location.aliased;
        if location.space != Space::Sbuf || !alone || !self.uses(Feature::MustAlias, 24) {
            return;
        }
        let location = &self.locations[at];
        let (dtype, parts, value) = (location.dtype, location.parts, location.value);
        let (dims, storage) = (location.dims.clone(), location.storage);
        let Some(name) = self.ir.value_name(value) else {
            return;
        };
        let same_size: SmallVec<[DType; 16]> = NUMERIC
            .iter()
            .filter(|other| other.size_bytes() == dtype.size_bytes())
            .filter(|other| {
                bits_may_be_written(*other, dtype) && bits_may_be_written(dtype, *other)
            })
            .collect();
        let other = if same_size.is_empty() || self.chance(2) {
            dtype
        } else {
            self.pick(&same_size)
        };
        let symbol = self.ir.ctx.symbol(name);
        let key = self.ir.ctx.str("must_alias");
        let shape: SmallVec<[u64; 4]> =
            std::iter::once(parts).chain(dims.iter().copied()).collect();
        let partner = self.declare_location(Space::Sbuf, other, &shape, &[(key, symbol)]);
        self.locations[at].aliased = true;
        self.locations.push(Location {
            value: partner,
            space: Space::Sbuf,
            dtype: other,
            parts,
            pairs: Pairs::whole(&dims),
            elems: dims.iter().product(),
            dims,
            base: 0,
            storage,
            writable: true,
            readable: true,
            aliased: true,
            slot: None,
            pooled: 0,
        });
        let partner = self.locations.len() - 1;
        self.pool(partner);
    }
}
