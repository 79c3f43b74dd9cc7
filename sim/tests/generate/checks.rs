//! What holds of every generated program, and of every reduction: shared by the campaigns of
//! `cargo test` and by the fuzz targets.
#![allow(dead_code, unreachable_pub, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::{PrintOptions, print};
use bir_sim::generate::{Config, Counts, Feature, generate};
use bir_sim::random::Random;
use bir_sim::reduce::{ReduceOptions, instructions, is_valid, reduce};
use bir_sim::validate::Baseline;
use bir_sim::{Fault, Inputs, Options, Outcome, Simulation, Uninit, random};

/// A configuration from bytes: the size, the cores, the seed, features left out. The size comes first, for
/// a fuzzer begins with few bytes.
pub fn config(data: &[u8], most: usize) -> Config {
    let byte = |at: usize| data.get(at).copied().unwrap_or(0);
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| byte(at + i)));
    let mut config = Config {
        instructions: 1 + word(0) as u16 as usize % most,
        max_cores: 1 + u32::from(byte(2)) % 4,
        seed: word(3),
        ..Config::default()
    };
    for (at, &feature) in Feature::ALL.iter().enumerate() {
        if word(11) >> at & 1 != 0 {
            config.without.insert(feature);
        }
    }
    config
}

/// Fails where the verifier finds anything at any level.
pub fn assert_valid(ir: &Ir, what: &str) {
    if let Err(refused) = bir_dialect::check(ir, Level::Full) {
        panic!("{what}\n{}\n{refused}", print(ir, PrintOptions::default()));
    }
}

fn read(text: &str) -> Ir {
    bir_dialect::read(text, Level::Off).unwrap_or_else(|refused| panic!("{text}\n{refused}"))
}

fn generic(ir: &Ir) -> String {
    let options = PrintOptions {
        generic: true,
        ..PrintOptions::default()
    };
    print(ir, options)
}

fn run(ir: &Ir, seed: u64, uninit: Uninit) -> Result<Outcome, Box<Fault>> {
    let options = Options {
        uninit,
        max_steps: 1 << 14,
        ..Options::default()
    };
    let simulation = Simulation::new(ir, options)?;
    let inputs: Inputs = simulation
        .ports()
        .map(|port| {
            let value = random::tensor(seed, &port.name, port.dtype, &port.dims);
            (port.name, value)
        })
        .collect();
    simulation.run(&inputs, &mut |_| {})
}

/// A program verifies clean, runs, and is the same program when it has been through the custom
/// form and the generic form. An instruction less, and it still tells of what it reads undefined.
///
/// Returns what is in it.
pub fn check_program(config: &Config) -> Counts {
    let what = format!(
        "seed {} of {} instructions",
        config.seed, config.instructions
    );
    let program = generate(config);
    let text = print(&program.ir, PrintOptions::default());
    assert_valid(&program.ir, &what);
    let seeds = [config.seed];
    let baseline = Baseline::new(&program.ir, &seeds, Options::default())
        .unwrap_or_else(|fault| panic!("{what}\n{text}\n{fault}"));
    assert_eq!(baseline.left_out(), None, "{what}\n{text}");
    let custom = read(&text);
    assert_eq!(print(&custom, PrintOptions::default()), text, "{what}");
    let general = generic(&custom);
    assert_eq!(general, generic(&program.ir), "{what}");
    if let Err(difference) = baseline.check(&read(&general)) {
        panic!("{what}\n{text}\n{difference}");
    }
    check_holes(&program.ir, config.seed, &what);
    program.counts
}

/// A program's text and what it computes, as one number: the same on every thread.
pub fn digest(config: &Config) -> u64 {
    let ir = generate(config).ir;
    let mut hasher = DefaultHasher::new();
    print(&ir, PrintOptions::default()).hash(&mut hasher);
    let outcome = run(&ir, config.seed, Uninit::Error);
    for (name, tensor) in outcome.expect("a run").outputs {
        (name, tensor.bytes).hash(&mut hasher);
    }
    hasher.finish()
}

/// Without one of its instructions a program may read what nothing wrote. If the run succeeds all
/// the same, then nothing that was not written shows in its outputs.
fn check_holes(ir: &Ir, seed: u64, what: &str) {
    let mut random = Random::new(seed, "holes");
    let droppable: Vec<Op> = { ir.walk().ops() }
        .filter(|&op| is_droppable(ir, op))
        .collect();
    for _ in 0..2 {
        let mut holed = ir.clone();
        let op = droppable[random.below(droppable.len() as u64) as usize];
        if !holed.erase(op) {
            continue;
        }
        let Ok(strict) = run(&holed, seed, Uninit::Error) else {
            continue;
        };
        for uninit in [Uninit::Zero, Uninit::Poison] {
            let filled = run(&holed, seed, uninit).map(|outcome| outcome.outputs);
            assert_eq!(
                filled.as_ref(),
                Ok(&strict.outputs),
                "{what}: undefined bytes in an output\n{}",
                print(&holed, PrintOptions::default())
            );
        }
    }
}

fn is_droppable(ir: &Ir, op: Op) -> bool {
    OpCode::of(ir, op)
        .is_some_and(|code| code.def().engines.is_some() && !code.def().has(Trait::Terminator))
}

/// A reduction keeps what makes a program interesting and valid, never grows it, asks about no
/// program twice, and ends at the same one each time.
pub fn check_reduction(config: &Config) {
    let program = generate(config).ir;
    let what = format!(
        "seed {} of {} instructions",
        config.seed, config.instructions
    );
    let mut random = Random::new(config.seed, "reduction");
    let codes: Vec<OpCode> = { program.walk().ops() }
        .filter(|&op| is_droppable(&program, op))
        .filter_map(|op| OpCode::of(&program, op))
        .collect();
    let code = codes[random.below(codes.len() as u64) as usize];
    let has = |ir: &Ir| ir.walk().ops().any(|op| OpCode::of(ir, op) == Some(code));
    let options = ReduceOptions {
        max_tests: 60,
        ..ReduceOptions::default()
    };
    let smallest = || {
        let mut asked = HashSet::new();
        let mut test = |ir: &Ir| {
            let text = print(ir, PrintOptions::default());
            assert!(is_valid(ir), "{what}: an invalid candidate\n{text}");
            assert!(asked.insert(text), "{what}: a candidate asked about twice");
            has(ir)
        };
        let mut sizes = vec![instructions(&program)];
        let (best, stats) = reduce(&program, options, &mut test, &mut |best, _| {
            assert!(has(best), "{what}: an improvement nobody is interested in");
            sizes.push(instructions(best));
        });
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{what}: {sizes:?}");
        assert_eq!(sizes.len(), stats.kept + 1, "{what}");
        assert!(stats.tests <= options.max_tests, "{what}");
        assert!(has(&best) && is_valid(&best), "{what}");
        print(&best, PrintOptions::default())
    };
    assert_eq!(smallest(), smallest(), "{what}");
}
