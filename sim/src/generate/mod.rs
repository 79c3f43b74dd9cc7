//! Valid programs by seed: the fuel of differential tests.
//!
//! [`generate`] makes a program of about so many instructions over the whole op table; it verifies
//! clean at every level and runs without a fault on any input. [`profile`] makes the workloads
//! budgets are measured on. Equal configurations give equal programs, on every machine.
//!
//! Invariants:
//!
//! * whatever is read has been written in full: a location enters its pool when an instruction
//!   that covers it has been inserted, and leaves it with the block that might not have run;
//! * sources and destination of an instruction share no byte, unless they are one access;
//! * every choice comes from one random stream, in program order; what decides which blocks and
//!   loops there are comes from a second one, which every core of a program starts anew.
//!
//! What is not generated: `custom_op` and `inline_asm`, which nobody can execute; meetings of some of
//! a program's cores only, and locations whose bytes another core has (`remote_target`); branches out
//! of loops, and loops in the arms of branches deeper than the limit; accesses by columns named in a tile (`tensor_gather` and
//! `tensor_scatter` have them as ops); data that ends a run, such as an index outside a table
//! without `oob = skip`; files beside the `.bir`.

mod cores;
mod definitions;
mod draft;
mod features;
mod flow;
mod idioms;
mod locations;
mod ops;
mod part;
mod profiles;
mod tiles;
mod words;

use std::borrow::Cow;

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{names, new_ir, op_name};
use bir_dialect::bir::space::Target;
use bir_dialect::ir::{Block, Cursor, Ir, NewOp, NewOperand, Op, Str, Value};

use smallvec::SmallVec;

use crate::random::Random;
use cores::Plan;
use locations::Location;

pub use features::{Counts, Feature, FeatureSet};
pub use profiles::{Profile, profile};

/// What to generate.
#[derive(Clone, Debug)]
pub struct Config {
    /// Start of the random stream.
    pub seed: u64,
    /// Instructions, about.
    pub instructions: usize,
    /// Hardware generation; by the seed where absent.
    pub target: Option<Target>,
    /// Most elements of a tile per partition, at most 16,384.
    pub max_elements: u64,
    /// Most cores of a program; where there may be several, one program in six has them.
    pub max_cores: u32,
    /// Features left out.
    pub without: FeatureSet,
    /// The ops to choose from; all where empty. Whatever they need to read is made all the same.
    pub ops: Vec<OpCode>,
    /// Ops left out.
    pub without_ops: Vec<OpCode>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            seed: 0,
            instructions: 200,
            target: None,
            max_elements: 64,
            max_cores: 1,
            without: FeatureSet::default(),
            ops: Vec::new(),
            without_ops: Vec::new(),
        }
    }
}

/// A program, and what is in it.
pub struct Generated {
    /// The program.
    pub ir: Ir,
    /// What it contains.
    pub counts: Counts,
}

/// A random program.
pub fn generate(config: &Config) -> Generated {
    let mut stock = Stock::new(config);
    let plan = Plan::new(config, stock.target, &mut stock.random);
    for core in 0..plan.cores {
        let structure = stock.structure.clone();
        let mut generator = Generator::new(config, stock, Seat::of(core, &plan));
        generator.body(&plan);
        generator.outputs();
        generator.depsets();
        stock = generator.finish();
        stock.structure = structure;
    }
    stock.into_generated()
}

/// Instructions of a statement, on average.
const PER_STATEMENT: usize = 3;

/// What all cores of a program are made of.
struct Stock {
    ir: Ir,
    random: Random,
    /// What the blocks and loops of every core are decided by: they are the same.
    structure: Random,
    target: Target,
    counts: Counts,
}

/// Instructions room is made for at once; what comes behind makes room for itself.
const ROOM: usize = 1 << 20;

/// An empty file with room for what will be made.
fn roomy_ir(config: &Config) -> Ir {
    let mut ir = new_ir();
    // With the locations there are up to twice as many ops, and half of what they hold is new.
    let instructions = config.instructions.min(ROOM);
    ir.reserve(instructions * 2);
    ir.reserve_values(instructions);
    ir.ctx.reserve(instructions);
    ir
}

impl Stock {
    fn new(config: &Config) -> Stock {
        let mut random = Random::new(config.seed, "generate");
        let target = config.target.unwrap_or_else(|| {
            let n = random.below(Target::ALL.len() as u64);
            Target::ALL[n as usize]
        });
        Stock {
            ir: roomy_ir(config),
            random,
            structure: Random::new(config.seed, "structure"),
            target,
            counts: Counts::default(),
        }
    }

    fn into_generated(self) -> Generated {
        Generated {
            ir: self.ir,
            counts: self.counts,
        }
    }
}

/// A core among those of its program.
#[derive(Clone, Copy)]
struct Seat {
    core: u32,
    cores: u32,
}

impl Seat {
    const ALONE: Seat = Seat { core: 0, cores: 1 };

    fn of(core: u32, plan: &Plan) -> Seat {
        let cores = plan.cores;
        Seat { core, cores }
    }
}

/// A loop around the place of insertion whose bounds are known.
#[derive(Clone, Copy)]
struct Index {
    value: Value,
    /// Smallest and largest value.
    low: i64,
    high: i64,
}

/// A register that can be read here.
#[derive(Clone, Copy)]
struct Register {
    value: Value,
    dtype: DType,
    /// Bounds of its value, where they are known.
    range: Option<(i64, i64)>,
}

struct Generator<'c> {
    config: &'c Config,
    ir: Ir,
    random: Random,
    structure: Random,
    target: Target,
    seat: Seat,
    /// Declared so far: put before all else in the end, all at once.
    allocs: Vec<Op>,
    /// The start of the function.
    start: Cursor,
    /// Where the next instruction is inserted.
    at: Cursor,
    /// The block `at` is in.
    block: Block,
    locations: Vec<Location>,
    /// Locations that can be read here, by space.
    pools: [Vec<u32>; 3],
    registers: Vec<Register>,
    loops: Vec<Index>,
    /// Constructs around the place of insertion.
    depth: usize,
    /// Instructions made so far.
    made: usize,
    storages: u32,
    placement: locations::Placer,
    sync: flow::Sync,
    counts: Counts,
    /// Every emitter as often as it weighs.
    emitters: Cow<'static, [ops::Emit]>,
    /// `loc("gen.py": …)`
    file: Str,
    words: words::Words,
    /// Of the instruction being inserted: there is one at a time.
    operands: Vec<NewOperand>,
}

impl<'c> Generator<'c> {
    fn new(config: &'c Config, stock: Stock, seat: Seat) -> Generator<'c> {
        let Stock {
            mut ir,
            mut random,
            structure,
            target,
            counts,
        } = stock;
        let symbol = |ir: &mut Ir, name: &str| {
            let value = ir.ctx.string(name);
            (names::SYM_NAME, value)
        };
        let target_word = ir.ctx.string(target.name());
        let mut attrs: SmallVec<[_; 3]> = SmallVec::new();
        if seat.cores == 1 {
            attrs.push(symbol(&mut ir, "generated"));
        } else {
            attrs.push(symbol(&mut ir, &format!("core{}", seat.core)));
            let (key, core) = (ir.ctx.str("core"), ir.ctx.int(i64::from(seat.core)));
            attrs.push((key, core));
        }
        attrs.push((names::TARGET, target_word));
        let dict = ir.ctx.dict(&attrs);
        let module = ir.insert(
            Cursor::End(ir.root_block()),
            NewOp {
                dict,
                regions: 1,
                ..NewOp::new(op_name(OpCode::Module))
            },
        );
        let name = symbol(&mut ir, "main");
        let dict = ir.ctx.dict(&[name]);
        let inside = ir.regions(module)[0];
        let outer = ir.append_block(inside);
        let func = ir.insert(
            Cursor::End(outer),
            NewOp {
                dict,
                regions: 1,
                ..NewOp::new(op_name(OpCode::Func))
            },
        );
        let region = ir.regions(func)[0];
        let block = ir.append_block(region);
        let file = ir.ctx.str("gen.py");
        let emitters = ops::available(target, config);
        let sync = flow::Sync::new(config, &mut random);
        let room = config.instructions.min(ROOM);
        Generator {
            config,
            ir,
            random,
            structure,
            target,
            seat,
            allocs: Vec::with_capacity(room),
            start: Cursor::Start(block),
            at: Cursor::End(block),
            block,
            locations: Vec::with_capacity(room),
            pools: std::array::from_fn(|_| Vec::with_capacity(room / 2)),
            registers: Vec::new(),
            loops: Vec::new(),
            depth: 0,
            made: 0,
            storages: 0,
            placement: locations::Placer::default(),
            sync,
            counts,
            emitters,
            file,
            words: words::Words::new(),
            operands: Vec::new(),
        }
    }

    fn finish(mut self) -> Stock {
        self.ir.place_all(&self.allocs, self.start);
        Stock {
            ir: self.ir,
            random: self.random,
            structure: self.structure,
            target: self.target,
            counts: self.counts,
        }
    }

    /// Everything between the first instruction and the saves at the end.
    fn body(&mut self, plan: &Plan) {
        if plan.cores == 1 {
            while self.made < self.config.instructions {
                self.statement();
            }
            return;
        }
        // As many statements on every core, and the meetings evenly among them.
        let share = self.config.instructions / (plan.cores as usize * PER_STATEMENT);
        let parts = plan.meetings.len() + 1;
        for part in 0..parts {
            for _ in share * part / parts..share * (part + 1) / parts {
                self.statement();
            }
            if let Some(meeting) = plan.meetings.get(part) {
                self.meet(meeting);
            }
        }
    }

    /// One instruction, idiom or construct.
    fn statement(&mut self) {
        if self.chance(8) {
            self.retire();
        }
        let only_ops = !self.config.ops.is_empty();
        match self.structure.below(100) {
            0..8 if !only_ops => self.construct(),
            8..20 if !only_ops => self.idiom(),
            _ => self.instruction(),
        }
    }

    fn instruction(&mut self) {
        if self.emitters.is_empty() {
            // Nothing the configuration asks for exists on the target.
            return self.nop();
        }
        let n = self.random.below(self.emitters.len() as u64);
        self.emitters[n as usize](self);
    }

    /// Whether a feature may be used.
    fn may(&self, feature: Feature) -> bool {
        !self.config.without.has(feature)
    }

    /// Whether to use a feature this time; counts it.
    fn uses(&mut self, feature: Feature, one_in: u64) -> bool {
        let yes = self.may(feature) && self.chance(one_in);
        if yes {
            self.counts.feature(feature);
        }
        yes
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    /// A number of an inclusive range.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.below(high - low + 1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }
}
