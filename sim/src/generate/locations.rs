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

/// A declared location. Large programs have many and look at any of them at random: it is kept within a
/// line of the cache.
pub(super) struct Location {
    /// All its elements, row-major: the sizes behind the partition, all of them in DRAM.
    pub(super) pairs: Pairs,
    pub(super) value: Value,
    /// Elements per partition, or in all.
    pub(super) elems: u32,
    pub(super) storage: u32,
    /// Where it is in its pool.
    pub(super) pooled: u32,
    pub(super) space: Space,
    pub(super) dtype: DType,
    /// Partitions; 1 in DRAM.
    pub(super) parts: u8,
    /// First partition.
    pub(super) base: u8,
    /// Not a constant.
    pub(super) writable: bool,
    /// In a pool, or was once.
    pub(super) readable: bool,
    /// Has a partner in `must_alias`.
    pub(super) aliased: bool,
    /// Has an address.
    pub(super) placed: bool,
}

const _: () = assert!(
    size_of::<Location>() <= 64,
    "larger than a line of the cache"
);

impl Location {
    /// A location of so many partitions, and dimensions behind them, that nothing has been written to.
    #[inline]
    pub(super) fn new(
        value: Value,
        (space, dtype): (Space, DType),
        parts: u64,
        dims: &[u64],
        storage: u32,
    ) -> Location {
        Location {
            pairs: Pairs::whole(dims),
            value,
            elems: dims.iter().product::<u64>() as u32,
            storage,
            pooled: 0,
            space,
            dtype,
            parts: parts as u8,
            base: 0,
            writable: true,
            readable: false,
            aliased: false,
            placed: false,
        }
    }
}

/// A placed location that may make room.
#[derive(Clone, Copy)]
struct Slot {
    location: usize,
    at: Placement,
    /// Bytes it holds per partition.
    bytes: u64,
}

/// Addresses in use.
#[derive(Default)]
pub(super) struct Placer {
    sbuf: u64,
    dram: u64,
    banks: u64,
    slots: Vec<Slot>,
    /// Addresses nobody uses any more, and the bytes there per partition.
    free: Vec<(Placement, u64)>,
}

/// A letter and a number in decimal: every location and register has such a name.
#[inline]
fn numbered(letter: u8, mut number: usize, digits: &mut [u8; 24]) -> &str {
    let mut at = digits.len();
    while at > 1 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    at -= 1;
    digits[at] = letter;
    str::from_utf8(&digits[at..]).unwrap_or_default()
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
        // Partitions first, on chip as in DRAM, where they are a dimension like any other.
        let divisor = self.divisor(elems);
        let splits = elems > 1 && divisor > 1 && self.chance(3);
        let shape = match splits {
            true => [parts, divisor, elems / divisor],
            false => [parts, elems, 0],
        };
        let shape = &shape[..if splits { 3 } else { 2 }];
        let value = match slot {
            None => self.declare_location(space, dtype, shape, attrs),
            Some(slot) => {
                let mut attrs: SmallVec<[(Str, Attr); 4]> = SmallVec::from_slice(attrs);
                attrs.push((names::AT, slot.intern(&mut self.ir.ctx)));
                self.declare_location(space, dtype, shape, &attrs)
            }
        };
        let (parts, dims) = match space {
            Space::Dram => (1, shape),
            _ => (parts, &shape[1..]),
        };
        let mut location = Location::new(value, (space, dtype), parts, dims, self.storages);
        self.storages += 1;
        let at = self.locations.len();
        if let Some(slot) = slot {
            location.base = slot.partition() as u8;
            location.placed = true;
            if space == Space::Sbuf {
                let bytes = elems * u64::from(dtype.size_bytes());
                let location = at;
                self.placement.slots.push(Slot {
                    location,
                    at: slot,
                    bytes,
                });
            }
        }
        self.locations.push(location);
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
            Space::Dram => b'd',
            Space::Sbuf => b't',
            Space::Psum => b'p',
        };
        self.name(value, letter, self.locations.len());
        value
    }

    /// Names a value by an ASCII letter and a number.
    pub(super) fn name(&mut self, value: Value, letter: u8, number: usize) {
        let mut digits = [0; 24];
        let name = self.ir.ctx.str(numbered(letter, number, &mut digits));
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
        let slot = self.placement.slots[n];
        let (old, pool) = (
            &self.locations[slot.location],
            &mut self.pools[Space::Sbuf as usize],
        );
        let place = old.pooled as usize;
        if !old.aliased
            && let Some(&found) = pool.get(place)
            && found as usize == slot.location
        {
            pool.swap_remove(place);
            if let Some(&moved) = pool.get(place) {
                self.locations[moved as usize].pooled = place as u32;
            }
            self.placement.slots.swap_remove(n);
            self.placement.free.push((slot.at, slot.bytes));
        }
    }

    /// Puts a location in its pool.
    fn pool(&mut self, at: usize) {
        let pool = &mut self.pools[self.locations[at].space as usize];
        self.locations[at].pooled = pool.len() as u32;
        pool.push(at as u32);
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
        let alone = !location.placed && !location.aliased;
        if location.space != Space::Sbuf || !alone || !self.uses(Feature::MustAlias, 24) {
            return;
        }
        let location = &self.locations[at];
        let (dtype, parts, value) = (location.dtype, u64::from(location.parts), location.value);
        let (pairs, storage) = (location.pairs, location.storage);
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
        let mut shape: SmallVec<[u64; 4]> = SmallVec::new();
        shape.push(parts);
        shape.extend(pairs.iter().map(|pair| pair.count));
        let partner = self.declare_location(Space::Sbuf, other, &shape, &[(key, symbol)]);
        self.locations[at].aliased = true;
        let kind = (Space::Sbuf, other);
        self.locations.push(Location {
            readable: true,
            aliased: true,
            ..Location::new(partner, kind, parts, &shape[1..], storage)
        });
        let partner = self.locations.len() - 1;
        self.pool(partner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_letter_and_a_number() {
        for number in [0, 9, 10, 100, 4_294_967_296, usize::MAX] {
            let mut digits = [0; 24];
            assert_eq!(numbered(b't', number, &mut digits), format!("t{number}"));
        }
    }
}
