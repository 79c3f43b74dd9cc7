//! What passes look for, made on purpose: real programs have little of it.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::{DTypeSet, Space, SpaceSet};

use super::Generator;
use super::draft::{Draft, Tile};
use super::features::Feature;
use super::part::Pairs;
use super::tiles::Want;

/// Outputs of a program, at most.
const OUTPUTS: usize = 8;

impl Generator<'_> {
    /// A few instructions that belong together.
    pub(super) fn idiom(&mut self) {
        // By the structure: some have loops.
        match self.structure.below(12) {
            0 if self.may(Feature::DeadStore) => self.dead_store(),
            1 if self.may(Feature::ClobberedWrite) => self.clobbered_write(),
            2 if self.may(Feature::RedundantCopy) => self.copy_chain(),
            3 if self.may(Feature::RedundantLoad) => self.load_twice(),
            4 if self.may(Feature::RedundantMemset) => self.fill_twice(),
            5 if self.may(Feature::IdentityOp) => self.identity(),
            6 if self.may(Feature::ConstantOperand) => self.constant_arithmetic(),
            7 if self.may(Feature::UnlessFirst) && self.depth < 2 => self.accumulate_in_loop(),
            // What these consist of follows what was drawn, and cores draw apart.
            8..=11 if self.seat.cores > 1 => self.instruction(),
            8 if self.may(Feature::NoOpCopy) => self.no_op_copy(),
            9 if self.may(Feature::SpillPair) => self.spill_pair(),
            10 if self.may(Feature::EmptyLoop) && self.depth < 2 => self.empty_loop(),
            11 if self.may(Feature::CoveredByPieces) => self.covered_by_pieces(),
            _ => self.instruction(),
        }
    }

    /// `dma_copy %d <- %d`, `dma_copy %e <- %d; dma_copy %d <- %e`, or `dma_copy %e <- %d` and `%e`
    /// read, over tensors nobody else knows.
    fn no_op_copy(&mut self) {
        self.counts.feature(Feature::NoOpCopy);
        let (parts, _) = self.shape();
        let tile = self.column(Space::Sbuf, parts);
        self.fill(tile);
        let (first, second) = (
            self.column(Space::Dram, parts),
            self.column(Space::Dram, parts),
        );
        self.transfer(OpCode::Save, &tile, &first);
        let from = match self.random.below(3) {
            0 => {
                self.transfer(OpCode::DmaCopy, &first, &first);
                first
            }
            1 => {
                self.transfer(OpCode::DmaCopy, &first, &second);
                self.transfer(OpCode::DmaCopy, &second, &first);
                first
            }
            _ => {
                self.transfer(OpCode::DmaCopy, &first, &second);
                second
            }
        };
        let back = self.column(Space::Sbuf, parts);
        self.transfer(OpCode::Load, &from, &back);
        self.publish(back.location);
    }

    /// `save %s <- %t; load %t <- %s`, or a reload to another tile.
    fn spill_pair(&mut self) {
        self.counts.feature(Feature::SpillPair);
        let (parts, _) = self.shape();
        let tile = self.column(Space::Sbuf, parts);
        self.fill(tile);
        let slot = self.column(Space::Dram, parts);
        self.transfer(OpCode::Save, &tile, &slot);
        let again = match self.chance(2) {
            true => tile,
            false => self.column(Space::Sbuf, parts),
        };
        self.transfer(OpCode::Load, &slot, &again);
        self.publish(again.location);
    }

    /// `loop %i { }`, perhaps with a write nobody reads in it.
    fn empty_loop(&mut self) {
        self.counts.feature(Feature::EmptyLoop);
        let trips = self.between(1, 4) as i64;
        let tile = self.chance(2).then(|| self.column(Space::Sbuf, 32));
        self.loop_around(trips, tile);
    }

    /// `memset %t; memset %t[:, 0:1]; memset %t[:, 1:2]`
    fn covered_by_pieces(&mut self) {
        self.counts.feature(Feature::CoveredByPieces);
        let (parts, _) = self.shape();
        let at = self.allocate_at(None, Space::Sbuf, DType::F32, (parts, 2), &[]);
        let whole = Tile {
            defines: false,
            ..self.whole(at)
        };
        self.fill(whole);
        for offset in 0..2 {
            let mut piece = Tile {
                whole: false,
                defines: false,
                elems: 1,
                ..whole
            };
            piece.access.offset = offset;
            piece.access.pairs = Pairs::run(1);
            self.fill(piece);
        }
        self.publish(at);
    }

    /// A new location of one f32 per partition, or of as many rows, that nobody else uses.
    fn column(&mut self, space: Space, parts: u64) -> Tile {
        let at = self.allocate_at(None, space, DType::F32, (parts, 1), &[]);
        Tile {
            defines: false,
            ..self.whole(at)
        }
    }

    /// DMA of all of one location to all of another.
    fn transfer(&mut self, code: OpCode, from: &Tile, to: &Tile) {
        let mut draft = Draft::new(code);
        draft.tile("src", *from);
        draft.tile("dst", *to);
        self.emit(&mut draft);
    }

    /// A tile of f32 or bf16 in SBUF.
    fn float_tile(&mut self) -> Tile {
        let (parts, elems) = self.shape();
        self.source(Want {
            parts,
            elems,
            spaces: SpaceSet::of(&[Space::Sbuf]),
            dtypes: DTypeSet::of(&[DType::F32, DType::Bf16]),
            aligned: true,
        })
    }

    /// A new tile in SBUF like another.
    fn like(&mut self, tile: &Tile) -> Tile {
        let at = self.allocate(Space::Sbuf, tile.dtype, tile.parts, tile.elems, &[]);
        self.whole(at)
    }

    fn copy_to(&mut self, from: &Tile, to: Tile) -> Tile {
        let code = if self.chance(4) {
            OpCode::GenericCopy
        } else {
            OpCode::TensorCopy
        };
        let mut draft = Draft::new(code);
        draft.tile("src", *from);
        let location = to.location;
        draft.tile("dst", to);
        self.emit(&mut draft);
        self.whole(location)
    }

    /// A tile that is written and never read.
    fn dead_store(&mut self) {
        self.counts.feature(Feature::DeadStore);
        let from = self.float_tile();
        let to = self.like(&from);
        let at = to.location;
        self.copy_to(&from, to);
        let pool = &mut self.pools[Space::Sbuf as usize];
        if pool.last() == Some(&(at as u32)) {
            pool.pop();
        }
    }

    /// A tile written twice before it is read.
    fn clobbered_write(&mut self) {
        self.counts.feature(Feature::ClobberedWrite);
        let from = self.float_tile();
        let to = self.like(&from);
        self.fill(to);
        let again = Tile {
            defines: false,
            ..to
        };
        self.copy_to(&from, again);
    }

    /// A copy of a copy; now and then the source changes in between.
    fn copy_chain(&mut self) {
        self.counts.feature(Feature::RedundantCopy);
        let from = self.float_tile();
        let first = self.like(&from);
        let first = self.copy_to(&from, first);
        if self.chance(3)
            && from
                .access
                .pairs
                .iter()
                .all(|p| p.step != 0 || p.count == 1)
        {
            let at = from.location;
            let mut part = from;
            part.location = at;
            if self.is_writable(at) {
                self.fill(part);
            }
        }
        let second = self.like(&first);
        let second = self.copy_to(&first, second);
        let mut draft = Draft::new(OpCode::TensorTensor);
        self.word(&mut draft, "op", "add");
        draft.tile("lhs", first);
        draft.tile("rhs", second);
        self.write(&mut draft, "dst", second.parts, second.elems);
        self.emit(&mut draft);
    }

    /// One input loaded to two tiles, or to one tile twice.
    fn load_twice(&mut self) {
        self.counts.feature(Feature::RedundantLoad);
        let (parts, elems) = self.shape();
        let port = self.port("input", DType::F32, parts, elems);
        self.publish(port);
        let like = Tile {
            parts,
            elems,
            ..self.whole(port)
        };
        let first = self.like(&like);
        let mut draft = Draft::new(OpCode::Load);
        draft.tile("src", self.whole(port));
        draft.tile("dst", first);
        self.emit(&mut draft);
        let second = if self.chance(2) {
            self.like(&like)
        } else {
            Tile {
                defines: false,
                ..first
            }
        };
        let mut draft = Draft::new(OpCode::Load);
        draft.tile("src", self.whole(port));
        draft.tile("dst", second);
        self.emit(&mut draft);
    }

    /// A tile filled twice with one number; now and then something is written in between, or read.
    fn fill_twice(&mut self) {
        self.counts.feature(Feature::RedundantMemset);
        let from = self.float_tile();
        let to = self.like(&from);
        let bits = self.number(to.dtype);
        self.fill_with(to, bits);
        let to = Tile {
            defines: false,
            ..to
        };
        match self.random.below(3) {
            0 => {
                self.copy_to(&from, to);
            }
            1 => {
                let read = self.like(&to);
                self.copy_to(&to, read);
            }
            _ => {}
        }
        self.fill_with(to, bits);
    }

    /// Arithmetic that changes nothing, or nearly: x + 0, x * 1, x - 0, x * 0.
    fn identity(&mut self) {
        self.counts.feature(Feature::IdentityOp);
        let src = self.float_tile();
        let (word, number) = self.pick(&[
            ("add", 0.0f32),
            ("add", -0.0),
            ("multiply", 1.0),
            ("subtract", 0.0),
            ("multiply", 0.0),
            ("add", 1.0),
            ("divide", 1.0),
            ("max", f32::NEG_INFINITY),
        ]);
        let mut draft = Draft::new(OpCode::TensorScalar);
        draft.tile("src", src);
        self.word(&mut draft, "op0", word);
        self.literal(
            &mut draft,
            "operand0",
            DType::F32,
            u64::from(number.to_bits()),
        );
        let dst = self.like(&src);
        draft.tile("dst", dst);
        self.emit(&mut draft);
    }

    /// Arithmetic on tiles that were filled.
    fn constant_arithmetic(&mut self) {
        self.counts.feature(Feature::ConstantOperand);
        let (parts, elems) = self.shape();
        let mut tiles = Vec::new();
        for _ in 0..2 {
            let at = self.allocate(Space::Sbuf, DType::F32, parts, elems, &[]);
            self.fill(self.whole(at));
            tiles.push(self.whole(at));
        }
        let mut draft = Draft::new(OpCode::TensorTensor);
        let word = self.pick(&["add", "multiply", "subtract", "max"]);
        self.word(&mut draft, "op", word);
        for (role, tile) in ["lhs", "rhs"].into_iter().zip(tiles) {
            draft.tile(role, tile);
        }
        self.write(&mut draft, "dst", parts, elems);
        self.emit(&mut draft);
    }

    /// `loop %k { matmult %p <- … {accumulate = unless_first(%k)} }`
    fn accumulate_in_loop(&mut self) {
        self.counts.feature(Feature::UnlessFirst);
        let (m, n) = (self.pick(&[32, 64]), self.width(1).min(512));
        let at = self.allocate(Space::Psum, DType::F32, m, n, &[]);
        let sides: Vec<Tile> = [m, n]
            .into_iter()
            .map(|elems| {
                self.source(Want {
                    parts: 128,
                    elems,
                    spaces: SpaceSet::of(&[Space::Sbuf]),
                    dtypes: DTypeSet::of(&[DType::Bf16]),
                    aligned: true,
                })
            })
            .collect();
        self.unless_first_loop(at, sides);
    }

    /// Makes what is left at the end visible.
    pub(super) fn outputs(&mut self) {
        let mut made = 0;
        let mut pool = self.pools[Space::Sbuf as usize].clone();
        while made < OUTPUTS && !pool.is_empty() {
            let n = self.random.below(pool.len() as u64) as usize;
            let at = pool.swap_remove(n);
            let tile = self.whole(at as usize);
            self.save_output(tile);
            made += 1;
        }
        if let Some(&at) = self.pools[Space::Psum as usize].last() {
            let tile = self.whole(at as usize);
            let to = self.like(&tile);
            let copied = self.copy_to(&tile, to);
            self.save_output(copied);
            made += 1;
        }
        if made == 0 {
            let at = self.allocate(Space::Sbuf, DType::F32, 1, 1, &[]);
            self.fill(self.whole(at));
            let tile = self.whole(at);
            self.save_output(tile);
        }
    }

    fn save_output(&mut self, tile: Tile) {
        let port = self.port("output", tile.dtype, tile.parts, tile.elems);
        let mut draft = Draft::new(OpCode::Save);
        draft.tile("src", tile);
        draft.tile("dst", self.whole(port));
        self.emit(&mut draft);
    }
}
