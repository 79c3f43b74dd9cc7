//! Workloads of one shape, at sizes that hurt.

use std::ops::RangeInclusive;

use bir_dialect::bir::access::{Access, Pair, Window};
use bir_dialect::bir::attrs::number;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{names, op_name};
use bir_dialect::bir::space::{Space, Target};
use bir_dialect::bir::types::reg_type;
use bir_dialect::ir::{Annot, Block, Cursor, Dict, NewOp, NewOperand, Value};
use smallvec::SmallVec;

use super::{Config, Generated, Generator, Seat, Stock};

macro_rules! profiles {
    ($($variant:ident = $name:literal, $size:literal: $doc:literal;)*) => {
        /// A workload.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Profile { $(#[doc = $doc] $variant),* }

        impl Profile {
            /// All of them, in order.
            pub const ALL: &'static [Profile] = &[$(Profile::$variant),*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Profile::$variant => $name),* }
            }

            /// One line for the manual.
            pub const fn summary(self) -> &'static str {
                match self { $(Profile::$variant => $doc),* }
            }

            /// The size where none is given; what it counts is in the summary.
            pub const fn size(self) -> u64 {
                match self { $(Profile::$variant => $size),* }
            }

            /// Sizes of which there is a program that verifies.
            pub const fn sizes(self) -> RangeInclusive<u64> {
                match self {
                    // All slices together fit a partition of SBUF.
                    Profile::Fan | Profile::FanWide => 1..=57_344,
                    // 16 elements of every fourth lie in the location, whose bytes fit a partition.
                    Profile::Stride => 16..=51_200,
                    // A location to save, and the instruction that writes it.
                    Profile::Million | Profile::Limit => 2..=MOST,
                    // Counts of an access are of 16 bits.
                    Profile::Unalloc => 1..=65_535,
                    _ => 1..=MOST,
                }
            }

            /// The profile of that name.
            pub fn from_name(name: &str) -> Option<Profile> {
                Profile::ALL.iter().copied().find(|profile| profile.name() == name)
            }
        }
    };
}

profiles! {
    Linear = "linear", 7_680: "groups of 18 instructions on 5 locations; two readers a group of one location; fits SBUF";
    Spill = "spill", 100_000: "SBUF locations, about 58 alive at a time, a little more than SBUF holds";
    Fan = "fan", 2_049: "writers of one location, a slice each, and readers of one slice each";
    FanWide = "fan-wide", 2_049: "writers of one location, a slice each, and readers of all of it";
    Stride = "stride", 51_200: "elements of each access of one location with gaps; four accesses write it, others read it";
    Blocks = "blocks", 8_193: "basic blocks, one after the other";
    Deep = "deep", 10_000: "loops inside one another";
    Million = "million", 1_000_000: "instructions of many ops, as kernels have them";
    Limit = "limit", 5_000_001: "instructions: more than a pipeline accepts by default";
    Unalloc = "unalloc", 49_153: "elements of two tiles that together pass SBUF";
    Identity = "identity", 1_000_000: "instructions, of which 60 % change nothing";
}

/// The largest size of any workload.
const MOST: u64 = 100_000_000;

/// A workload of a size, or of its own size. A size that is not one of its [`Profile::sizes`] is
/// taken for the nearest that is.
pub fn profile(profile: Profile, seed: u64, size: Option<u64>) -> Generated {
    let target = match profile {
        Profile::Unalloc => Target::Trn1,
        _ => Target::Trn2,
    };
    let config = Config {
        seed,
        target: Some(target),
        ..Config::default()
    };
    let sizes = profile.sizes();
    let size = size.unwrap_or(profile.size());
    let size = size.clamp(*sizes.start(), *sizes.end());
    let mut workload = Workload::new(&config);
    match profile {
        Profile::Linear => workload.linear(size),
        Profile::Spill => workload.spill(size),
        Profile::Fan => workload.fan(size, false),
        Profile::FanWide => workload.fan(size, true),
        Profile::Stride => workload.stride(size),
        Profile::Blocks => workload.blocks(size),
        Profile::Deep => workload.deep(size),
        Profile::Million | Profile::Limit => workload.kernels(size),
        Profile::Unalloc => workload.two_tiles(size),
        Profile::Identity => workload.identities(size),
    }
    workload.g.finish().into_generated()
}

/// Columns of a tile; a slice of the shared location in `fan` has as many.
const COLUMNS: u64 = 32;

/// Attributes that come up again and again, made once.
struct Dicts {
    none: Dict,
    add: Dict,
    multiply_step: Dict,
    exp: Dict,
    reduce: Dict,
}

struct Workload<'c> {
    g: Generator<'c>,
    dicts: Dicts,
}

/// A value in a role, by an access.
type Use = (&'static str, Value, Annot);

impl<'c> Workload<'c> {
    fn new(config: &'c Config) -> Workload<'c> {
        let mut g = Generator::new(config, Stock::new(config), Seat::ALONE);
        let mut dict = |entries: &[(&str, &str)]| {
            let entries: SmallVec<[_; 4]> = entries
                .iter()
                .map(|(name, word)| (g.ir.ctx.str(name), g.ir.ctx.string(word)))
                .collect();
            g.ir.ctx.dict(&entries)
        };
        let (add, multiply_step, exp, reduce) = (
            dict(&[("op", "add")]),
            dict(&[("op0", "multiply")]),
            dict(&[("func", "exp")]),
            dict(&[("op", "add")]),
        );
        let axes = g.int_list(&[1]);
        let name = g.ir.ctx.str("axes");
        let reduce = g.ir.ctx.dict_with(reduce, name, Some(axes));
        Workload {
            g,
            dicts: Dicts {
                none: Dict::EMPTY,
                add,
                multiply_step,
                exp,
                reduce,
            },
        }
    }

    fn tile(&mut self, space: Space, dtype: DType, shape: &[u64]) -> Value {
        let value = self.g.declare_location(space, dtype, shape, &[]);
        // Names are numbered by the declarations of the random generator, which makes none here.
        let number = self.g.storages as usize;
        self.g.storages += 1;
        let letter = if space == Space::Dram { b'd' } else { b't' };
        self.g.name(value, letter, number);
        value
    }

    fn sbuf(&mut self, columns: u64) -> Value {
        self.tile(Space::Sbuf, DType::F32, &[128, columns])
    }

    fn port(&mut self, kind: &str, dtype: DType, shape: &[u64]) -> Value {
        let kind = self.g.ir.ctx.string(kind);
        let attrs = [(names::KIND, kind)];
        let value = self.g.declare_location(Space::Dram, dtype, shape, &attrs);
        let number = self.g.storages as usize;
        self.g.storages += 1;
        self.g.name(value, b'd', number);
        value
    }

    /// `[p 0:128, off offset, step x count]`
    fn columns(&mut self, offset: u64, step: i64, count: u64) -> Annot {
        let access = Access {
            dtype: DType::F32,
            recast: false,
            window: Some(Window {
                start: 0,
                count: 128,
            }),
            offset: offset as i64,
            pairs: SmallVec::from_slice(&[Pair { step, count }]),
            terms: SmallVec::new(),
        };
        access
            .intern_part(&mut self.g.ir.ctx)
            .unwrap_or(Annot::UNIT)
    }

    fn op(&mut self, code: OpCode, dict: Dict, uses: &[Use]) {
        let def = code.def();
        let operands: SmallVec<[NewOperand; 4]> = uses
            .iter()
            .map(|&(role, value, annot)| NewOperand {
                value,
                role: def.find_role(role).unwrap_or(0) as u8,
                annot,
            })
            .collect();
        self.g.ir.insert(
            self.g.at,
            NewOp {
                operands: &operands,
                dict,
                ..NewOp::new(op_name(code))
            },
        );
        self.g.counts.op(code);
        self.g.made += 1;
    }

    /// A unary instruction on whole tiles.
    fn unary(&mut self, code: OpCode, dict: Dict, dst: Value, src: Value) {
        let uses = [("dst", dst, Annot::UNIT), ("src", src, Annot::UNIT)];
        self.op(code, dict, &uses);
    }

    fn add(&mut self, dst: Value, lhs: Value, rhs: Value) {
        let uses = [
            ("dst", dst, Annot::UNIT),
            ("lhs", lhs, Annot::UNIT),
            ("rhs", rhs, Annot::UNIT),
        ];
        self.op(OpCode::TensorTensor, self.dicts.add, &uses);
    }

    fn scale_by(&mut self, dst: Value, src: Value, scale: Value) {
        let uses = [
            ("dst", dst, Annot::UNIT),
            ("src", src, Annot::UNIT),
            ("operand0", scale, Annot::UNIT),
        ];
        self.op(OpCode::TensorScalar, self.dicts.multiply_step, &uses);
    }

    fn exp_with_bias(&mut self, dst: Value, src: Value, bias: Value) {
        let uses = [
            ("dst", dst, Annot::UNIT),
            ("src", src, Annot::UNIT),
            ("bias", bias, Annot::UNIT),
        ];
        self.op(OpCode::Activation, self.dicts.exp, &uses);
    }

    fn copy(&mut self, dst: Value, src: Value) {
        self.unary(OpCode::TensorCopy, self.dicts.none, dst, src);
    }

    fn memset(&mut self, dst: Value, annot: Annot, value: f32) {
        let bits = u64::from(value.to_bits());
        let ctx = &mut self.g.ir.ctx;
        let (name, number) = (ctx.str("value"), number(ctx, DType::F32, bits));
        let dict = ctx.dict(&[(name, number)]);
        self.op(OpCode::Memset, dict, &[("dst", dst, annot)]);
    }

    fn linear(&mut self, groups: u64) {
        let shape = [128, COLUMNS];
        let x = self.port("input", DType::F32, &shape);
        let y = self.port("output", DType::F32, &shape);
        let b = self.port("input", DType::F32, &[128, 1]);
        let shared = self.sbuf(1);
        self.unary(OpCode::Load, self.dicts.none, shared, b);
        for _ in 0..groups {
            let [t, u, v] = std::array::from_fn(|_| self.sbuf(COLUMNS));
            let [s, r] = std::array::from_fn(|_| self.sbuf(1));
            self.unary(OpCode::Load, self.dicts.none, t, x);
            self.exp_with_bias(u, t, shared);
            self.scale_by(v, u, shared);
            self.unary(OpCode::TensorReduce, self.dicts.reduce, s, v);
            self.unary(OpCode::Reciprocal, self.dicts.none, r, s);
            self.scale_by(v, v, r);
            for _ in 0..3 {
                self.add(u, u, v);
                self.scale_by(v, v, s);
                self.add(t, t, u);
            }
            self.copy(u, t);
            self.add(v, v, u);
            self.unary(OpCode::Save, self.dicts.none, y, v);
        }
    }

    fn spill(&mut self, locations: u64) {
        /// Locations alive at a time: their interference makes 58 edges for each.
        const ALIVE: usize = 58;
        // 58 tiles of 3,840 bytes are 222,720 of the 229,376 bytes of a partition of SBUF.
        const WIDTH: u64 = 960;
        let shape = [128, WIDTH];
        let x = self.port("input", DType::F32, &shape);
        let y = self.port("output", DType::F32, &shape);
        let mut window: Vec<Value> = Vec::with_capacity(ALIVE + 1);
        for n in 0..locations {
            // Now and then a tile is twice as wide, and something has to go.
            let wide = n % 71 == 70;
            let t = self.sbuf(if wide { 2 * WIDTH } else { WIDTH });
            let halves = [self.columns(0, 1, WIDTH), self.columns(WIDTH, 1, WIDTH)];
            let first = if wide { halves[0] } else { Annot::UNIT };
            let load = [("dst", t, first), ("src", x, Annot::UNIT)];
            self.op(OpCode::Load, self.dicts.none, &load);
            if wide {
                self.op(
                    OpCode::Load,
                    self.dicts.none,
                    &[("dst", t, halves[1]), ("src", x, Annot::UNIT)],
                );
            }
            // Nine of 25 tiles are scaled by their sum, by way of PSUM.
            if n % 25 < 9 {
                let q = self.tile(Space::Psum, DType::F32, &[128, 1]);
                let sum = [("dst", q, Annot::UNIT), ("src", t, first)];
                self.op(OpCode::TensorReduce, self.dicts.reduce, &sum);
                self.unary(OpCode::Reciprocal, self.dicts.none, q, q);
                let scaled = [
                    ("dst", t, first),
                    ("src", t, first),
                    ("operand0", q, Annot::UNIT),
                ];
                self.op(OpCode::TensorScalar, self.dicts.multiply_step, &scaled);
            }
            // The tile's last reader comes when as many others have been written.
            window.push(t);
            if window.len() > ALIVE {
                let old = window.remove(0);
                let was_wide = n >= ALIVE as u64 && (n - ALIVE as u64) % 71 == 70;
                let read = if was_wide { halves[0] } else { Annot::UNIT };
                let uses = [("dst", t, first), ("lhs", t, first), ("rhs", old, read)];
                self.op(OpCode::TensorTensor, self.dicts.add, &uses);
                self.op(OpCode::TensorTensor, self.dicts.add, &uses);
                if n % 16 == 0 {
                    let save = [("dst", y, Annot::UNIT), ("src", t, first)];
                    self.op(OpCode::Save, self.dicts.none, &save);
                }
            }
        }
        if let Some(&last) = window.last() {
            let part = if locations.is_multiple_of(71) {
                self.columns(0, 1, WIDTH)
            } else {
                Annot::UNIT
            };
            let save = [("dst", y, Annot::UNIT), ("src", last, part)];
            self.op(OpCode::Save, self.dicts.none, &save);
        }
    }

    /// `writers` slices; as many readers, or as many more as the largest case seen has.
    fn fan(&mut self, writers: u64, wide: bool) {
        let readers = if writers > 10_000 {
            writers * 72_074 / 21_504
        } else {
            writers
        };
        // All slices together fit a partition.
        let columns = (48 * 1024 / writers).clamp(1, 8);
        let total = columns * writers;
        let shared = self.sbuf(total);
        let t = self.sbuf(columns);
        let y = self.port("output", DType::F32, &[128, columns]);
        for n in 0..writers {
            let slice = self.columns(n * columns, 1, columns);
            self.memset(shared, slice, n as f32);
        }
        let mut reduce = self.dicts.reduce;
        if wide {
            let axes = self.g.int_list(&[2]);
            let name = self.g.ir.ctx.str("axes");
            reduce = self.g.ir.ctx.dict_with(reduce, name, Some(axes));
        }
        let turned = self.interleaved(columns, writers);
        for n in 0..readers {
            if wide {
                let uses = [("dst", t, Annot::UNIT), ("src", shared, turned)];
                self.op(OpCode::TensorReduce, reduce, &uses);
            } else {
                let slice = self.columns(n % writers * columns, 1, columns);
                let uses = [("dst", t, Annot::UNIT), ("src", shared, slice)];
                self.op(OpCode::TensorCopy, self.dicts.none, &uses);
            }
            self.unary(OpCode::Save, self.dicts.none, y, t);
            if n % 8 == 0 {
                self.memset(t, Annot::UNIT, n as f32);
            }
        }
    }

    /// Everything of a location of `slices` slices, the columns of equal number side by side.
    fn interleaved(&mut self, columns: u64, slices: u64) -> Annot {
        let access = Access {
            dtype: DType::F32,
            recast: false,
            window: Some(Window {
                start: 0,
                count: 128,
            }),
            offset: 0,
            pairs: SmallVec::from_slice(&[
                Pair {
                    step: 1,
                    count: columns,
                },
                Pair {
                    step: columns as i64,
                    count: slices,
                },
            ]),
            terms: SmallVec::new(),
        };
        access
            .intern_part(&mut self.g.ir.ctx)
            .unwrap_or(Annot::UNIT)
    }

    /// Four accesses, each of every other element of a half, write a location; the same ones and
    /// plain ones read it.
    fn stride(&mut self, count: u64) {
        let shared = self.tile(Space::Sbuf, DType::U8, &[128, 4 * count]);
        let t = self.tile(Space::Sbuf, DType::U8, &[128, 16]);
        let y = self.port("output", DType::U8, &[128, 16]);
        let ctx = &mut self.g.ir.ctx;
        let (name, seven) = (ctx.str("value"), number(ctx, DType::U8, 7));
        let fill = ctx.dict(&[(name, seven)]);
        for quarter in 0..4 {
            let offset = quarter / 2 * 2 * count + quarter % 2;
            let annot = self.columns(offset, 2, count);
            self.op(OpCode::Memset, fill, &[("dst", shared, annot)]);
        }
        for n in 0..64u64 {
            let step = 2 + (n % 3) as i64;
            let room = 4 * count - 15 * step as u64;
            let annot = self.columns(n * 977 % room, step, 16);
            let uses = [("dst", t, Annot::UNIT), ("src", shared, annot)];
            self.op(OpCode::TensorCopy, self.dicts.none, &uses);
            self.unary(OpCode::Save, self.dicts.none, y, t);
        }
    }

    /// Blocks that end in a branch to the next one; every eighth may skip one.
    fn blocks(&mut self, count: u64) {
        let x = self.port("input", DType::F32, &[128, COLUMNS]);
        let n = self.port("input", DType::I32, &[1, 1]);
        let y = self.port("output", DType::F32, &[128, COLUMNS]);
        let (t, u) = (self.sbuf(COLUMNS), self.sbuf(COLUMNS));
        self.unary(OpCode::Load, self.dicts.none, t, x);
        self.memset(u, Annot::UNIT, 1.0);
        let ty = reg_type(&mut self.g.ir.ctx, DType::I32);
        let op = self.g.ir.insert(
            self.g.at,
            NewOp {
                operands: &[NewOperand {
                    value: n,
                    role: OpCode::RegisterLoad.def().find_role("src").unwrap_or(0) as u8,
                    annot: Annot::UNIT,
                }],
                results: &[ty],
                ..NewOp::new(op_name(OpCode::RegisterLoad))
            },
        );
        let flag = self.g.ir.made_result(op);
        self.g.name(flag, b'r', 0);
        let region = self.g.ir.block_region(self.g.block);
        let mut blocks: Vec<Block> = vec![self.g.block];
        for _ in 1..count {
            blocks.push(self.g.ir.append_block(region));
        }
        for (at, &block) in blocks.iter().enumerate() {
            self.g.at = Cursor::End(block);
            self.add(t, t, u);
            let (next, after) = (blocks.get(at + 1), blocks.get(at + 2));
            match (next, after) {
                (Some(&next), Some(&after)) if at % 8 == 0 => {
                    self.branch(OpCode::CondBr, Some(flag), &[next, after]);
                }
                (Some(&next), _) => self.branch(OpCode::Br, None, &[next]),
                _ => self.unary(OpCode::Save, self.dicts.none, y, t),
            }
        }
    }

    fn branch(&mut self, code: OpCode, cond: Option<Value>, successors: &[Block]) {
        let operands: SmallVec<[NewOperand; 1]> = cond
            .into_iter()
            .map(|value| NewOperand {
                value,
                role: 0,
                annot: Annot::UNIT,
            })
            .collect();
        self.g.ir.insert(
            self.g.at,
            NewOp {
                operands: &operands,
                successors,
                ..NewOp::new(op_name(code))
            },
        );
        self.g.counts.op(code);
    }

    /// Loops of one trip inside one another, the outermost two of more.
    fn deep(&mut self, depth: u64) {
        let y = self.port("output", DType::F32, &[128, COLUMNS]);
        let (t, u) = (self.sbuf(COLUMNS), self.sbuf(COLUMNS));
        self.memset(t, Annot::UNIT, 0.0);
        self.memset(u, Annot::UNIT, 1.0);
        let before = self.g.at;
        for level in 0..depth {
            self.g.made += 1;
            let trips = if level < 2 { 3 } else { 1 };
            let body = self.g.open_loop(trips);
            self.g.at = Cursor::End(body);
            if level % 100 == 0 {
                self.add(t, t, u);
            }
        }
        self.add(t, t, u);
        self.g.at = before;
        self.unary(OpCode::Save, self.dicts.none, y, t);
    }

    /// Tiles of a matrix product with what usually comes around it, in eight sets of locations.
    fn kernels(&mut self, instructions: u64) {
        const SETS: usize = 8;
        let (wide, tall) = ([128, 512], [128, 128]);
        let x = self.port("input", DType::F32, &wide);
        let w = self.port("input", DType::Bf16, &tall);
        let y = self.port("output", DType::F32, &wide);
        let sets: Vec<[Value; 9]> = (0..SETS)
            .map(|_| {
                [
                    self.tile(Space::Sbuf, DType::F32, &wide),
                    self.tile(Space::Sbuf, DType::Bf16, &tall),
                    self.tile(Space::Sbuf, DType::Bf16, &wide),
                    self.tile(Space::Psum, DType::F32, &wide),
                    self.tile(Space::Sbuf, DType::F32, &wide),
                    self.sbuf(1),
                    self.sbuf(1),
                    self.tile(Space::Sbuf, DType::F32, &wide),
                    self.tile(Space::Psum, DType::F32, &tall),
                ]
            })
            .collect();
        let limit = usize::try_from(instructions).unwrap_or(usize::MAX);
        let mut n = 0;
        while self.g.made + 14 <= limit {
            let [t, a, b, p, e, s, r, z, q] = sets[n % SETS];
            n += 1;
            self.unary(OpCode::Load, self.dicts.none, t, x);
            self.unary(OpCode::Load, self.dicts.none, a, w);
            self.copy(b, t);
            let product = [
                ("dst", p, Annot::UNIT),
                ("stationary", a, Annot::UNIT),
                ("moving", b, Annot::UNIT),
            ];
            self.op(OpCode::Matmult, self.dicts.none, &product);
            self.unary(OpCode::TensorReduce, self.dicts.reduce, s, p);
            self.exp_with_bias(e, p, s);
            self.unary(OpCode::TensorReduce, self.dicts.reduce, r, e);
            self.unary(OpCode::Reciprocal, self.dicts.none, r, r);
            self.scale_by(z, e, r);
            self.add(z, z, t);
            let gram = [
                ("dst", q, Annot::UNIT),
                ("stationary", a, Annot::UNIT),
                ("moving", a, Annot::UNIT),
            ];
            self.op(OpCode::Matmult, self.dicts.none, &gram);
            self.copy(a, q);
            self.memset(s, Annot::UNIT, 0.0);
            self.unary(OpCode::Save, self.dicts.none, y, z);
        }
        // The rest, to the very number: at least the output is written.
        let [_, _, _, _, _, s, _, z, _] = sets[0];
        while self.g.made < limit {
            match limit - self.g.made {
                1 => self.unary(OpCode::Save, self.dicts.none, y, z),
                _ if n == 0 => {
                    self.memset(z, Annot::UNIT, 0.0);
                    n = 1;
                }
                _ => self.memset(s, Annot::UNIT, 0.0),
            }
        }
    }

    fn two_tiles(&mut self, elements: u64) {
        let x = self.port("input", DType::Bf16, &[128, elements]);
        let y = self.port("output", DType::Bf16, &[128, elements]);
        let t = self.tile(Space::Sbuf, DType::Bf16, &[128, elements]);
        let u = self.tile(Space::Sbuf, DType::Bf16, &[128, elements]);
        self.unary(OpCode::Load, self.dicts.none, t, x);
        self.copy(u, t);
        self.unary(OpCode::Save, self.dicts.none, y, u);
    }

    /// A chain of scalar steps, three of five of which change nothing.
    fn identities(&mut self, instructions: u64) {
        let x = self.port("input", DType::F32, &[128, 1]);
        let y = self.port("output", DType::F32, &[128, 1]);
        let mut step = |word: &str, value: f32| {
            let ctx = &mut self.g.ir.ctx;
            let (name, word) = (ctx.str("op0"), ctx.string(word));
            let bits = u64::from(value.to_bits());
            let (role, number) = (ctx.str("operand0"), number(ctx, DType::F32, bits));
            ctx.dict(&[(name, word), (role, number)])
        };
        let steps = [
            step("add", -0.0),
            step("multiply", 1.0),
            step("add", 0.5),
            step("subtract", 0.0),
            step("multiply", 0.75),
        ];
        let mut at = self.sbuf(1);
        self.unary(OpCode::Load, self.dicts.none, at, x);
        for n in 0..instructions.saturating_sub(2) {
            let next = self.sbuf(1);
            let dict = steps[(n % 5) as usize];
            self.unary(OpCode::TensorScalar, dict, next, at);
            at = next;
        }
        self.unary(OpCode::Save, self.dicts.none, y, at);
    }
}
