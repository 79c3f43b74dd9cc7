//! New locations with something in them.

use bir_dialect::bir::access::Pair;
use bir_dialect::bir::num::{DType, DTypeClass};
use bir_dialect::bir::ops::{NUMERIC, OpCode};
use bir_dialect::bir::program::names;
use bir_dialect::bir::space::Space;
use bir_dialect::ir::Sign;

use super::Generator;
use super::draft::{Draft, Tile};
use super::features::Feature;
use super::locations::Location;
use super::part::Pairs;
use super::tiles::Want;

impl Generator<'_> {
    /// A new location of that shape, written.
    pub(super) fn defined(&mut self, want: Want) -> Tile {
        let (space, dtype) = self.kind_of(want);
        match space {
            Space::Dram => self.defined_dram(dtype, want.parts, want.elems),
            Space::Sbuf => self.defined_sbuf(dtype, want.parts, want.elems),
            Space::Psum => {
                let at = self.allocate(space, dtype, want.parts, want.elems, &[]);
                self.fill(self.whole(at));
                self.whole(at)
            }
        }
    }

    /// A location with a `kind`.
    pub(super) fn port(&mut self, kind: &str, dtype: DType, parts: u64, elems: u64) -> usize {
        let kind = self.ir.ctx.string(kind);
        self.allocate(Space::Dram, dtype, parts, elems, &[(names::KIND, kind)])
    }

    fn defined_dram(&mut self, dtype: DType, parts: u64, elems: u64) -> Tile {
        let at = match self.random.below(8) {
            0 if self.may(Feature::ConstLocation) => {
                self.counts.feature(Feature::ConstLocation);
                self.constant(dtype, parts, elems)
            }
            1 if self.may(Feature::InOutLocation) => {
                self.counts.feature(Feature::InOutLocation);
                self.port("inout", dtype, parts, elems)
            }
            2 | 3 if self.may(Feature::DramTemporary) => {
                self.counts.feature(Feature::DramTemporary);
                let at = self.allocate(Space::Dram, dtype, parts, elems, &[]);
                let mut draft = Draft::new(OpCode::Save);
                let source = self.want(&draft, "src", parts, elems).of(&[dtype]);
                self.read_as(&mut draft, "src", source);
                draft.tile("dst", self.whole(at));
                self.emit(&mut draft);
                at
            }
            _ => {
                let at = self.port("input", dtype, parts, elems);
                self.locations[at].writable = self.uses(Feature::WrittenInput, 4);
                at
            }
        };
        self.publish(at);
        self.whole(at)
    }

    /// A constant with random elements, or one element that stands for all.
    fn constant(&mut self, dtype: DType, parts: u64, elems: u64) -> usize {
        let count = if self.chance(4) { 1 } else { parts * elems };
        let mut elements: Vec<u64> = (0..count).map(|_| self.number(dtype)).collect();
        // The text keeps one of equal elements, and so does what is read from it.
        if elements.windows(2).all(|pair| pair[0] == pair[1]) {
            elements.truncate(1);
        }
        let mut hex = String::with_capacity(elements.len() * 2 * dtype.size_bytes() as usize);
        for bits in elements {
            for byte in &bits.to_le_bytes()[..dtype.size_bytes() as usize] {
                for digit in [byte >> 4, byte & 15] {
                    hex.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
                }
            }
        }
        let ctx = &mut self.ir.ctx;
        let element = ctx.int_type(dtype.bits(), Sign::Unsigned);
        let ty = ctx.tensor_type(&[parts, elems], element);
        let hex = ctx.str(&hex);
        let value = ctx.dense(ty, hex);
        let kind = ctx.string("const");
        let attrs = [(names::KIND, kind), (names::VALUE, value)];
        // The value's type has the location's shape.
        let value = self.declare_location(Space::Dram, dtype, &[parts, elems], &attrs);
        let kind = (Space::Dram, dtype);
        self.locations.push(Location {
            writable: false,
            ..Location::new(value, kind, 1, &[parts, elems], self.storages)
        });
        self.storages += 1;
        self.locations.len() - 1
    }

    fn defined_sbuf(&mut self, dtype: DType, parts: u64, elems: u64) -> Tile {
        let at = self.allocate(Space::Sbuf, dtype, parts, elems, &[]);
        let whole = self.whole(at);
        let is_plain = !matches!(dtype.class(), DTypeClass::Packed | DTypeClass::Scale);
        match self.random.below(10) {
            0..2 if is_plain => self.fill(whole),
            2..4 if NUMERIC.has(dtype) => self.ramp(whole),
            4 if elems >= 2 && self.may(Feature::PiecewiseDefinition) => {
                self.counts.feature(Feature::PiecewiseDefinition);
                self.fill_in_pieces(whole);
            }
            5 if elems >= 2 && is_plain && self.may_define_in_loop() => {
                self.counts.feature(Feature::LoopDefinition);
                self.fill_in_loop(whole);
            }
            _ => self.load_new(whole),
        }
        self.publish(at);
        self.whole(at)
    }

    /// Several cores have the same loops, and this choice is that of one.
    fn may_define_in_loop(&self) -> bool {
        self.may(Feature::LoopDefinition) && self.depth < 3 && self.seat.cores == 1
    }

    /// Loads an input made for it.
    fn load_new(&mut self, tile: Tile) {
        let mut draft = Draft::new(OpCode::Load);
        let port = self.defined_dram_input(tile.dtype, tile.parts, tile.elems);
        draft.tile("src", port);
        draft.tile("dst", tile);
        self.emit(&mut draft);
    }

    fn defined_dram_input(&mut self, dtype: DType, parts: u64, elems: u64) -> Tile {
        let at = self.port("input", dtype, parts, elems);
        self.locations[at].writable = false;
        self.publish(at);
        self.whole(at)
    }

    /// Two halves of a tile by columns or by odd and even columns.
    fn fill_in_pieces(&mut self, tile: Tile) {
        let (elems, strided) = (tile.elems, self.chance(2));
        let halves: [(i64, Pair); 2] = if strided {
            let pair = |count| Pair { step: 2, count };
            [(0, pair(elems.div_ceil(2))), (1, pair(elems / 2))]
        } else {
            let cut = self.between(1, elems - 1);
            let pair = |count| Pair { step: 1, count };
            [(0, pair(cut)), (cut as i64, pair(elems - cut))]
        };
        for (offset, pair) in halves {
            let mut part = tile;
            part.whole = false;
            part.defines = false;
            part.access.offset = offset;
            part.access.pairs = Pairs::of(&[pair]);
            part.elems = pair.count;
            if NUMERIC.has(part.dtype) && self.chance(2) {
                self.ramp(part);
            } else if matches!(part.dtype.class(), DTypeClass::Packed | DTypeClass::Scale) {
                self.load_new(part);
            } else {
                self.fill(part);
            }
        }
    }
}
