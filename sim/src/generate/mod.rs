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
//! * every choice comes from the one random stream, in program order.
//!
//! What is not generated: `custom_op` and `inline_asm`, which nobody can execute; programs of
//! several cores, so collectives have groups of one rank; branches out of loops, and loops in the
//! arms of branches deeper than the limit; accesses by columns named in a tile (`tensor_gather` and
//! `tensor_scatter` have them as ops); data that ends a run, such as an index outside a table
//! without `oob = skip`; files beside the `.bir`.

mod definitions;
mod draft;
mod features;
mod flow;
mod idioms;
mod locations;
mod ops;
mod profiles;
mod tiles;

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{names, new_ir, op_name};
use bir_dialect::bir::space::Target;
use bir_dialect::ir::{Block, Cursor, Ir, NewOp, Str, Value};

use crate::random::Random;
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
    /// Most elements of a tile per partition.
    pub max_elements: u64,
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
    let mut generator = Generator::new(config);
    generator.body();
    generator.outputs();
    generator.depsets();
    generator.finish()
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
    target: Target,
    /// Where the next location is declared, and the next instruction inserted.
    declare: Cursor,
    at: Cursor,
    /// The block `at` is in.
    block: Block,
    locations: Vec<Location>,
    /// Locations that can be read here, by space.
    pools: [Vec<usize>; 3],
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
    emitters: Vec<&'static ops::Emitter>,
    weight: u64,
    /// `loc("gen.py": …)`
    file: Str,
    text: String,
}

impl<'c> Generator<'c> {
    fn new(config: &'c Config) -> Generator<'c> {
        let mut ir = new_ir();
        let mut random = Random::new(config.seed, "generate");
        let target = config.target.unwrap_or_else(|| {
            let n = random.below(Target::ALL.len() as u64);
            Target::ALL[n as usize]
        });
        let symbol = |ir: &mut Ir, name: &str| {
            let value = ir.ctx.string(name);
            (names::SYM_NAME, value)
        };
        let target_word = ir.ctx.string(target.name());
        let name = symbol(&mut ir, "generated");
        let dict = ir.ctx.dict(&[name, (names::TARGET, target_word)]);
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
        let weight = emitters.iter().map(|emitter| emitter.weight).sum();
        let sync = flow::Sync::new(config, &mut random);
        Generator {
            config,
            ir,
            random,
            target,
            declare: Cursor::Start(block),
            at: Cursor::End(block),
            block,
            locations: Vec::new(),
            pools: [Vec::new(), Vec::new(), Vec::new()],
            registers: Vec::new(),
            loops: Vec::new(),
            depth: 0,
            made: 0,
            storages: 0,
            placement: locations::Placer::default(),
            sync,
            counts: Counts::default(),
            emitters,
            weight,
            file,
            text: String::new(),
        }
    }

    fn finish(self) -> Generated {
        Generated {
            ir: self.ir,
            counts: self.counts,
        }
    }

    /// Everything between the first instruction and the saves at the end.
    fn body(&mut self) {
        while self.made < self.config.instructions {
            self.statement();
        }
    }

    /// One instruction, idiom or construct.
    fn statement(&mut self) {
        if self.chance(8) {
            self.retire();
        }
        let only_ops = !self.config.ops.is_empty();
        match self.random.below(100) {
            0..8 if !only_ops => self.construct(),
            8..20 if !only_ops => self.idiom(),
            _ => self.instruction(),
        }
    }

    fn instruction(&mut self) {
        if self.weight == 0 {
            // Nothing the configuration asks for exists on the target.
            self.nop();
            return;
        }
        let mut at = self.random.below(self.weight);
        for emitter in &self.emitters {
            if at < emitter.weight {
                (emitter.emit)(self);
                return;
            }
            at -= emitter.weight;
        }
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
