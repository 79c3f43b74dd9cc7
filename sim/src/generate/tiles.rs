//! Parts of locations as operands.

use bir_dialect::bir::access::{Pair, Target as TermTarget};
use bir_dialect::bir::num::DType;
use bir_dialect::bir::space::{DTypeSet, Engine, PSUM_BANK_BYTES, PSUM_BANKS, Space, SpaceSet};

use super::Generator;
use super::draft::{Draft, Tile};
use super::features::Feature;
use super::part::{Pairs, Part, Rows};

/// What an operand must be.
#[derive(Clone, Copy)]
pub(super) struct Want {
    pub(super) parts: u64,
    pub(super) elems: u64,
    pub(super) spaces: SpaceSet,
    pub(super) dtypes: DTypeSet,
    /// Partition windows start where engines can start.
    pub(super) aligned: bool,
}

impl Want {
    pub(super) fn of(mut self, dtypes: &[DType]) -> Want {
        self.dtypes = DTypeSet::of(dtypes);
        self
    }

    /// Without dtypes it would take.
    pub(super) fn but(mut self, dtypes: DTypeSet) -> Want {
        self.dtypes = self.dtypes.without(dtypes);
        self
    }

    pub(super) fn within(mut self, spaces: &[Space]) -> Want {
        self.spaces = SpaceSet::of(spaces);
        self
    }
}

/// How elements are visited.
struct Visit {
    offset: i64,
    pairs: Pairs,
    /// Smallest and largest element.
    span: (i64, i64),
}

/// Elements of the largest tiles in PSUM: of eight bytes each, they fill it.
const PSUM_ELEMENTS: u64 = PSUM_BANKS * PSUM_BANK_BYTES / 8;

/// Locations of a pool that count as its latest.
const RECENT: usize = 256;

/// Partitions tiles often have.
const PARTS: &[u64] = &[128, 128, 64, 32, 16, 1, 96, 100, 48, 7];

impl Generator<'_> {
    /// What the op table says of a role.
    pub(super) fn want(&self, draft: &Draft, role: &str, parts: u64, elems: u64) -> Want {
        self.want_in(draft, draft.role(role), parts, elems)
    }

    fn want_in(&self, draft: &Draft, role: u8, parts: u64, elems: u64) -> Want {
        let Some(entry) = draft.def.operands.get(usize::from(role)) else {
            debug_assert!(false, "{} has no role {role}", draft.def.name);
            return Want {
                parts,
                elems,
                spaces: SpaceSet::EMPTY,
                dtypes: DTypeSet::EMPTY,
                aligned: true,
            };
        };
        let engine = draft.engine.or(draft
            .def
            .engines
            .map(|engines| engines.default_on(self.target)));
        let mut spaces = entry.spaces;
        let ports_taken = || draft.inputs().any(|tile| tile.space == Space::Psum);
        if spaces.has(Space::Psum)
            && (engine == Some(Engine::Pool)
                || elems > PSUM_ELEMENTS
                || !entry.writes() && ports_taken())
        {
            spaces = spaces.without(SpaceSet::of(&[Space::Psum]));
        }
        Want {
            parts,
            elems,
            spaces,
            dtypes: entry.dtypes,
            aligned: !entry.any_partitions && engine != Some(Engine::Dma),
        }
    }

    /// A shape: partitions, and elements per partition.
    pub(super) fn shape(&mut self) -> (u64, u64) {
        if self.chance(2)
            && let Some(at) = self.random_of(Space::Sbuf)
        {
            let location = &self.locations[at];
            let (parts, elems) = (u64::from(location.parts), u64::from(location.elems));
            if elems <= self.config.max_elements {
                return (parts, elems);
            }
        }
        let parts = self.pick(PARTS);
        (parts, self.width(1))
    }

    /// Elements per partition, a multiple of `unit`.
    pub(super) fn width(&mut self, unit: u64) -> u64 {
        let most = (self.config.max_elements / unit).max(1);
        let n = match self.random.below(4) {
            0 => most.next_power_of_two() >> self.random.below(3),
            _ => self.between(1, most),
        };
        n.clamp(1, most) * unit
    }

    /// A location of a pool, mostly one of the latest: programs use what they have just made, and
    /// what is old is out of every cache.
    fn random_of(&mut self, space: Space) -> Option<usize> {
        let pool = &self.pools[space as usize];
        let first = match pool.len() {
            0 => return None,
            len if len > RECENT && self.random.below(8) > 0 => len - RECENT,
            _ => 0,
        };
        let n = self.random.below((pool.len() - first) as u64) as usize;
        pool.get(first + n).map(|&at| at as usize)
    }

    /// A source: part of what is there, or something new.
    #[inline] // mostly the result is not used, and then need not be copied
    pub(super) fn read(&mut self, draft: &mut Draft, role: &str, parts: u64, elems: u64) -> Tile {
        let role = draft.role(role);
        let tile = self.source(self.want_in(draft, role, parts, elems));
        draft.put(role, tile);
        tile
    }

    /// As [`read`](Self::read), with a narrower choice.
    #[inline] // mostly the result is not used, and then need not be copied
    pub(super) fn read_as(&mut self, draft: &mut Draft, role: &str, want: Want) -> Tile {
        let tile = self.source(want);
        draft.tile(role, tile);
        tile
    }

    /// Something to read.
    pub(super) fn source(&mut self, want: Want) -> Tile {
        match self.existing(want, None) {
            Some(tile) => tile,
            None => self.defined(want),
        }
    }

    /// A destination that overlaps no source: mostly new, so that much stays alive.
    #[inline] // mostly the result is not used, and then need not be copied
    pub(super) fn write(&mut self, draft: &mut Draft, role: &str, parts: u64, elems: u64) -> Tile {
        let role = draft.role(role);
        let tile = self.target_tile(draft, self.want_in(draft, role, parts, elems));
        draft.put(role, tile);
        tile
    }

    /// As [`write`](Self::write), with a narrower choice.
    #[inline] // mostly the result is not used, and then need not be copied
    pub(super) fn write_as(&mut self, draft: &mut Draft, role: &str, want: Want) -> Tile {
        let tile = self.target_tile(draft, want);
        draft.tile(role, tile);
        tile
    }

    fn target_tile(&mut self, draft: &Draft, want: Want) -> Tile {
        if !self.chance(3)
            && let Some(tile) = self.existing(want, Some(draft))
        {
            return tile;
        }
        self.undefined(want)
    }

    /// A destination that is also read: something written before, by no source of the draft.
    pub(super) fn update(&mut self, draft: &mut Draft, role: &str, want: Want) -> Tile {
        let tile = match self.existing(want, Some(draft)) {
            Some(tile) => tile,
            None => self.defined(want),
        };
        draft.tile(role, tile);
        tile
    }

    /// A destination that may be the source in `like` itself, by the same access.
    pub(super) fn write_or_in_place(&mut self, draft: &mut Draft, role: &str, like: &Tile) -> Tile {
        let want = self.want(draft, role, like.parts, like.elems);
        let only_source = draft
            .tiles()
            .filter(|tile| tile.storage == like.storage)
            .count()
            == 1;
        let fits = only_source
            && want.spaces.has(like.space)
            && want.dtypes.has(like.dtype)
            && self.locations[like.location].writable
            && like
                .access
                .pairs
                .iter()
                .all(|pair| pair.step != 0 || pair.count == 1);
        if fits && self.uses(Feature::InPlace, 8) {
            draft.tile(role, *like);
            return *like;
        }
        self.write_as(draft, role, want)
    }

    /// A part of a location in a pool; one to write, that no tile of a draft lies in, where that is given.
    fn existing(&mut self, want: Want, written_by: Option<&Draft>) -> Option<Tile> {
        let mut spaces = want.spaces;
        for space in want.spaces.iter() {
            if self.pools[space as usize].is_empty() {
                spaces = spaces.without(SpaceSet::of(&[space]));
            }
        }
        if spaces.is_empty() {
            return None;
        }
        for _ in 0..6 {
            let n = self.random.below(spaces.len() as u64) as usize;
            let Some(at) = spaces.nth(n).and_then(|space| self.random_of(space)) else {
                continue;
            };
            let location = &self.locations[at];
            if let Some(draft) = written_by {
                let mut tiles = draft.tiles();
                if !location.writable || tiles.any(|tile| tile.storage == location.storage) {
                    continue;
                }
            }
            if let Some(tile) = self.part(at, want, written_by.is_some()) {
                return Some(tile);
            }
        }
        None
    }

    /// The dtype a location is accessed as, and the elements it then has.
    fn view(&mut self, at: usize, dtypes: DTypeSet) -> Option<(DType, u64)> {
        let location = &self.locations[at];
        let (own, elems) = (location.dtype, u64::from(location.elems));
        let last = location.pairs.innermost();
        let reinterprets = self.may(Feature::Reinterpret);
        if dtypes.has(own) && !(reinterprets && self.chance(10)) {
            return Some((own, elems));
        }
        if !reinterprets {
            return None;
        }
        let own_size = u64::from(own.size_bytes());
        let others = dtypes.without(DTypeSet::of(&[own]));
        let fits = others.and(dtypes_that_fit(last * own_size));
        if fits.is_empty() {
            return dtypes.has(own).then_some((own, elems));
        }
        let n = self.random.below(fits.len() as u64) as usize;
        let dtype = fits.nth(n)?;
        // Sizes are powers of two.
        let elems = (elems * own_size) >> dtype.size_bytes().trailing_zeros();
        Some((dtype, elems))
    }

    /// A part of one location, if it has one of that shape.
    fn part(&mut self, at: usize, want: Want, writes: bool) -> Option<Tile> {
        let location = &self.locations[at];
        let on_chip = location.space != Space::Dram;
        let (own, base) = (location.dtype, u64::from(location.base));
        let (loc_parts, loc_elems) = (u64::from(location.parts), u64::from(location.elems));
        // A tensor in DRAM has no partitions: all elements stand behind one another.
        let (parts, elems) = if on_chip {
            (want.parts, want.elems)
        } else {
            (1, want.parts * want.elems)
        };
        if parts > loc_parts || parts < loc_parts && !self.may(Feature::PartialWindow) {
            return None;
        }
        let (dtype, room) = self.view(at, want.dtypes)?;
        if writes && !bits_may_be_written(own, dtype) {
            return None;
        }
        let dims_are_whole = want.parts == loc_parts && want.elems == loc_elems;
        let is_own = dtype == own;
        let fits_whole = is_own && (dims_are_whole || !on_chip && elems == room);
        if fits_whole && !self.chance(4) {
            return Some(self.whole(at));
        }
        let Visit {
            offset,
            pairs,
            span,
        } = self.pairs(room, elems, writes)?;
        let mut window = None;
        if on_chip {
            let start = self.window_start(loc_parts, base, parts, want.aligned);
            window = Some(Rows {
                start: start as u8,
                count: parts as u8,
            });
            if parts < loc_parts {
                self.counts.feature(Feature::PartialWindow);
            }
        }
        let access = Part {
            dtype,
            recast: !is_own,
            window,
            offset,
            pairs,
            follows: None,
        };
        let mut tile = self.whole(at);
        if access == tile.access {
            return Some(tile);
        }
        tile.whole = false;
        (tile.access, tile.dtype) = (access, dtype);
        (tile.parts, tile.elems) = (parts, elems);
        self.follow_index(&mut tile, room, span);
        if !is_own {
            self.counts.feature(Feature::Reinterpret);
        }
        Some(tile)
    }

    /// Lets the offset, or the window, of an access follow a loop around it.
    fn follow_index(&mut self, tile: &mut Tile, room: u64, span: (i64, i64)) {
        if self.loops.is_empty() {
            return;
        }
        let index = {
            let n = self.random.below(self.loops.len() as u64);
            self.loops[n as usize]
        };
        if index.low < 0 {
            return;
        }
        let (start, count) = tile.access.window.map_or((0, 0), |rows| {
            (i64::from(rows.start), i64::from(rows.count))
        });
        let location = &self.locations[tile.location];
        let (parts, base) = (i64::from(location.parts), i64::from(location.base));
        // A window may only step from one legal start to the next.
        if count > 0
            && count <= 32
            && base + start + 32 * index.high + count <= 128
            && start + 32 * index.high + count <= parts
            && (base + start) % 32 == 0
            && self.uses(Feature::IndexPartition, 2)
        {
            tile.access.follows = Some((TermTarget::Partition, 32));
            tile.index = Some(index.value);
            return;
        }
        let slack = room as i64 - 1 - span.1;
        if index.high == 0 || slack < index.high {
            return;
        }
        if self.uses(Feature::IndexOffset, 2) {
            let most = (slack / index.high).min(64);
            let coef = self.between(1, most as u64) as i64;
            tile.access.follows = Some((TermTarget::Offset, coef as i32));
            tile.index = Some(index.value);
        }
    }

    /// Where a window of `parts` partitions starts in a location of `room`.
    fn window_start(&mut self, room: u64, base: u64, parts: u64, aligned: bool) -> u64 {
        if !aligned {
            return self.between(0, room - parts);
        }
        let step = match parts {
            0..=32 => 32,
            33..=64 => 64,
            _ => return 0,
        };
        // Bases are starts themselves; what is behind the last partition is none.
        let free = room.min(128u64.saturating_sub(base));
        if !base.is_multiple_of(step) || parts > free {
            return 0;
        }
        self.random.below((free - parts) / step + 1) * step
    }

    /// Pairs that visit `elems` of `room` elements.
    fn pairs(&mut self, room: u64, elems: u64, writes: bool) -> Option<Visit> {
        let pair = |step: i64, count: u64| Pair { step, count };
        if elems > room {
            // Only repetition makes more of it.
            if writes || !self.may(Feature::Broadcast) {
                return None;
            }
            let inner = largest_divisor(elems, room);
            if elems / inner > 60_000 {
                return None;
            }
            self.counts.feature(Feature::Broadcast);
            let offset = self.between(0, room - inner) as i64;
            let pairs = Pairs::of(&[pair(0, elems / inner), pair(1, inner)]);
            return Some(Visit {
                offset,
                pairs,
                span: (offset, offset + inner as i64 - 1),
            });
        }
        if elems > 60_000 {
            return None;
        }
        let slack = room - elems;
        let divisor = self.divisor(elems);
        let (pairs, length): (Pairs, u64) = match self.random.below(8) {
            0 if elems > 1 && slack >= elems - 1 && self.may(Feature::Strided) => {
                let most = ((room - 1) / (elems - 1)).min(9);
                let step = self.between(2.min(most), most);
                if step > 1 {
                    self.counts.feature(Feature::Strided);
                }
                (
                    Pairs::of(&[pair(step as i64, elems)]),
                    step * (elems - 1) + 1,
                )
            }
            1 if divisor > 1 && self.may(Feature::TwoLevel) => {
                let inner = elems / divisor;
                let most = (room - inner) / (divisor - 1);
                let step = self.between(inner, most.min(30_000).max(inner));
                self.counts.feature(Feature::TwoLevel);
                (
                    Pairs::of(&[pair(step as i64, divisor), pair(1, inner)]),
                    step * (divisor - 1) + inner,
                )
            }
            2 if divisor > 1 && self.may(Feature::Permuted) => {
                let outer = elems / divisor;
                self.counts.feature(Feature::Permuted);
                (
                    Pairs::of(&[pair(1, outer), pair(outer as i64, divisor)]),
                    elems,
                )
            }
            3 if elems > 1 && self.may(Feature::Reversed) => {
                self.counts.feature(Feature::Reversed);
                let first = self.between(0, slack) as i64;
                let last = first + elems as i64 - 1;
                let pairs = Pairs::of(&[pair(-1, elems)]);
                return Some(Visit {
                    offset: last,
                    pairs,
                    span: (first, last),
                });
            }
            4 if !writes && divisor > 1 && self.may(Feature::Broadcast) => {
                self.counts.feature(Feature::Broadcast);
                let inner = elems / divisor;
                let pairs = if self.chance(2) {
                    [pair(0, divisor), pair(1, inner)]
                } else {
                    [pair(1, inner), pair(0, divisor)]
                };
                (Pairs::of(&pairs), inner)
            }
            _ => (Pairs::of(&[pair(1, elems)]), elems),
        };
        let offset = if self.may(Feature::Offset) {
            self.between(0, room - length) as i64
        } else {
            0
        };
        if offset != 0 {
            self.counts.feature(Feature::Offset);
        }
        Some(Visit {
            offset,
            pairs,
            span: (offset, offset + length as i64 - 1),
        })
    }

    /// A number that divides `n`.
    pub(super) fn divisor(&mut self, n: u64) -> u64 {
        let found = self.pick(&[2, 3, 4, 5, 8]);
        if n.is_multiple_of(found) { found } else { 1 }
    }

    /// Whether instructions may write a location.
    pub(super) fn is_writable(&self, at: usize) -> bool {
        self.locations[at].writable
    }

    /// The whole of a location.
    pub(super) fn whole(&self, at: usize) -> Tile {
        let location = &self.locations[at];
        let on_chip = location.space != Space::Dram;
        Tile {
            location: at,
            value: location.value,
            access: Part {
                dtype: location.dtype,
                recast: false,
                window: on_chip.then_some(Rows {
                    start: 0,
                    count: location.parts,
                }),
                offset: 0,
                pairs: location.pairs,
                follows: None,
            },
            index: None,
            whole: true,
            space: location.space,
            dtype: location.dtype,
            parts: u64::from(location.parts),
            elems: u64::from(location.elems),
            storage: location.storage,
            defines: !location.readable,
        }
    }

    /// A new location of that shape, not written yet.
    pub(super) fn undefined(&mut self, want: Want) -> Tile {
        let (space, dtype) = self.kind_of(want);
        let at = self.allocate(space, dtype, want.parts, want.elems, &[]);
        self.whole(at)
    }

    pub(super) fn kind_of(&mut self, want: Want) -> (Space, DType) {
        let any_space = |g: &mut Self| {
            let n = g.random.below(want.spaces.len() as u64) as usize;
            want.spaces.nth(n).unwrap_or(Space::Sbuf)
        };
        let space = if want.spaces.len() > 1 && want.spaces.has(Space::Sbuf) && !self.chance(5) {
            Space::Sbuf
        } else {
            any_space(self)
        };
        // What kernels are made of comes up more often.
        let dtype = match self.random.below(4) {
            0 | 1 if want.dtypes.has(DType::F32) => DType::F32,
            2 if want.dtypes.has(DType::Bf16) => DType::Bf16,
            _ => {
                let n = self.random.below(want.dtypes.len() as u64) as usize;
                want.dtypes.nth(n).unwrap_or(DType::F32)
            }
        };
        (space, dtype)
    }
}

/// Whether bits of one dtype may stand where another is read: `bool` and `tf32` have bits that no
/// value of theirs has.
pub(super) fn bits_may_be_written(own: DType, written: DType) -> bool {
    own == written || !matches!(own, DType::Bool | DType::Tf32)
}

/// The dtypes, of those whose bits may be written anywhere, of which some elements fill so many bytes.
fn dtypes_that_fit(bytes: u64) -> DTypeSet {
    const LARGEST: usize = 3;
    const FIT: [DTypeSet; LARGEST + 1] = {
        let mut fit = [DTypeSet::EMPTY; LARGEST + 1];
        let mut i = 0;
        while i < DType::ALL.len() {
            let dtype = DType::ALL[i];
            let size = dtype.size_bytes();
            assert!(size.is_power_of_two() && size <= 1 << LARGEST);
            let mut k = size.trailing_zeros() as usize;
            while k <= LARGEST && !matches!(dtype, DType::Bool | DType::Tf32) {
                fit[k] = fit[k].or(DTypeSet::of(&[dtype]));
                k += 1;
            }
            i += 1;
        }
        fit
    };
    FIT[(bytes.trailing_zeros() as usize).min(LARGEST)]
}

/// Sizes whose divisors are tabulated: those of tiles as they are without options.
const SIZES: usize = 257;

/// The largest divisor of `elems` that is at most `room`, and 64.
fn largest_divisor(elems: u64, room: u64) -> u64 {
    /// By size, the divisors from 1 to 64, as bits from the lowest.
    static DIVISORS: [u64; SIZES] = {
        let mut divisors = [u64::MAX; SIZES];
        let mut size = 1;
        while size < SIZES {
            let mut n = 1;
            while n <= 64 {
                if size % n != 0 {
                    divisors[size] &= !(1 << (n - 1));
                }
                n += 1;
            }
            size += 1;
        }
        divisors
    };
    let most = room.clamp(1, 64);
    match DIVISORS.get(elems as usize) {
        Some(divisors) => {
            let within = divisors << (64 - most);
            most - u64::from(within.leading_zeros())
        }
        None => (1..=most)
            .rev()
            .find(|n| elems.is_multiple_of(*n))
            .unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabulated_divisors_are_those_found_by_division() {
        for elems in 1..2 * SIZES as u64 {
            for room in 1..80 {
                let found = (1..=room.min(64)).rev().find(|n| elems.is_multiple_of(*n));
                assert_eq!(Some(largest_divisor(elems, room)), found, "{elems} {room}");
            }
        }
    }

    #[test]
    fn whole_elements_of_every_dtype_fit() {
        for bytes in 1..64 {
            let fitting = dtypes_that_fit(bytes);
            for &dtype in DType::ALL {
                let whole = bytes % u64::from(dtype.size_bytes()) == 0;
                let may = bits_may_be_written(dtype, DType::F32) && dtype != DType::Tf32;
                assert_eq!(fitting.has(dtype), whole && may, "{bytes} {dtype}");
            }
        }
    }
}
