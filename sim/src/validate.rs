//! Whether a module still computes what it did: the same inputs, before and after.
//!
//! Inputs are given, or random by seed, special values among them. Outputs must be equal: the same bits, any
//! NaN equal to any NaN; and so must be what others see beside outputs, where it was written: inputs, and
//! shared and boundary locations that are still there. Where a module reads the same bytes under two dtypes, which NaN an instruction
//! makes may decide elements that are none: runs with other NaNs show which, and these are compared with
//! nothing, as no instruction set promises them.

use bir_dialect::bir::num::same_value;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::Ir;

use crate::compare::{Tolerance, compare};
use crate::fault::Fault;
use crate::random;
use crate::run::{Inputs, Options, Outcome, Port, PortKind, Simulation};
use crate::tensor::Tensor;

/// What a module computed, for some seeds.
#[derive(Clone, Debug)]
pub struct Baseline {
    runs: Vec<Seeded>,
    /// Seeds that were left out: how many, and why the first.
    left_out: Option<(usize, u64, Box<Fault>)>,
    options: Options,
}

#[derive(Clone, Debug)]
struct Seeded {
    seed: u64,
    inputs: Inputs,
    outputs: Vec<(String, Tensor)>,
    /// Of these, how many are outputs; the others are what others see beside them.
    real: usize,
    /// Elements that depend on which NaN is made, or were never written, by output and place.
    free: Vec<(usize, usize)>,
    /// Whether with other NaNs the run does not end well: then nothing is promised.
    adrift: bool,
}

/// Other NaNs that are tried.
const SALTS: u32 = 3;

/// Where a module and its baseline part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// The run ended early.
    Fault {
        /// Of the inputs.
        seed: u64,
        /// Why.
        fault: Box<Fault>,
    },
    /// There is another set of outputs.
    Outputs {
        /// Names found.
        found: Vec<String>,
        /// Names expected.
        expected: Vec<String>,
    },
    /// An output differs.
    Output {
        /// Of the inputs.
        seed: u64,
        /// Which.
        name: String,
        /// Where, and both values.
        difference: String,
    },
    /// What others see though it is no output differs: an input that is written, a shared location.
    Seen {
        /// Of the inputs.
        seed: u64,
        /// Which.
        name: String,
        /// Where, and both values.
        difference: String,
    },
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mismatch::Fault { seed, fault } => {
                write!(f, "the run fails with inputs of seed {seed}: {fault}")
            }
            Mismatch::Outputs { found, expected } => write!(
                f,
                "the outputs are {}, expected {}",
                found.join(", "),
                expected.join(", ")
            ),
            Mismatch::Output {
                seed,
                name,
                difference,
            } => {
                write!(f, "output `%{name}` {difference} (inputs of seed {seed})")
            }
            Mismatch::Seen {
                seed,
                name,
                difference,
            } => {
                write!(
                    f,
                    "`%{name}`, which others see, {difference} (inputs of seed {seed})"
                )
            }
        }
    }
}

fn make_inputs(ports: &[Port], given: &Inputs, seed: u64) -> Inputs {
    ports
        .iter()
        .filter(|port| port.kind != PortKind::Output)
        .map(|port| {
            let random = || random::value(seed, port);
            let other = || given.iter().find(|(name, _)| port.takes(name));
            let value = given
                .get(&port.name)
                .or_else(|| other().map(|(_, value)| value));
            let tensor = value.cloned().unwrap_or_else(random);
            (port.name.clone(), tensor)
        })
        .collect()
}

impl Baseline {
    /// Runs a module on random inputs of some seeds.
    ///
    /// # Errors
    ///
    /// As of [`Baseline::with_inputs`].
    pub fn new(ir: &Ir, seeds: &[u64], options: Options) -> Result<Baseline, Box<Fault>> {
        Baseline::with_inputs(ir, seeds, &Inputs::new(), options)
    }

    /// Runs a module on what is given and, where nothing is, on random inputs of some seeds. Seeds
    /// whose run ends in a fault are left out: see [`Baseline::left_out`].
    ///
    /// # Errors
    ///
    /// What ends the run of the first seed if none runs: such a module cannot be compared with.
    pub fn with_inputs(
        ir: &Ir,
        seeds: &[u64],
        given: &Inputs,
        options: Options,
    ) -> Result<Baseline, Box<Fault>> {
        let options = Options {
            watch: true,
            ..options
        };
        let simulation = Simulation::new(ir, options)?;
        let salts = if rereads(ir) { SALTS } else { 0 };
        let salted = (0..salts).map(|salt| {
            let nan_salt = Some(salt);
            Simulation::new(
                ir,
                Options {
                    nan_salt,
                    ..options
                },
            )
        });
        let salted: Vec<Simulation<'_>> = salted.collect::<Result<_, _>>()?;
        let ports: Vec<Port> = simulation.ports().collect();
        let mut runs = Vec::with_capacity(seeds.len());
        let mut left_out = None;
        for &seed in seeds {
            let inputs = make_inputs(&ports, given, seed);
            let outcome = match simulation.run(&inputs, &mut |_| {}) {
                Ok(outcome) => outcome,
                Err(fault) => {
                    left_out.get_or_insert((0, seed, fault)).0 += 1;
                    continue;
                }
            };
            let real = outcome.outputs.len();
            let (mut free, mut adrift) = (Vec::new(), false);
            for (number, seen) in (real..).zip(&outcome.seen) {
                free.extend(seen.undefined.iter().map(|&at| (number, at)));
            }
            let outputs = all(outcome);
            for other in &salted {
                match other.run(&inputs, &mut |_| {}) {
                    Ok(other) => free.extend(differing(&outputs, &all(other))),
                    Err(_) => adrift = true,
                }
            }
            free.sort_unstable();
            free.dedup();
            runs.push(Seeded {
                seed,
                inputs,
                outputs,
                real,
                free,
                adrift,
            });
        }
        match left_out {
            Some((_, _, fault)) if runs.is_empty() => Err(fault),
            left_out => Ok(Baseline {
                runs,
                left_out,
                options,
            }),
        }
    }

    /// How many seeds were left out because the module does not run on their inputs, the first of
    /// them, and why.
    pub fn left_out(&self) -> Option<(usize, u64, &Fault)> {
        let (count, seed, fault) = self.left_out.as_ref()?;
        Some((*count, *seed, fault))
    }

    /// Compares another module with it.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn check(&self, ir: &Ir) -> Result<(), Mismatch> {
        let first = self.runs.first().map_or(0, |run| run.seed);
        let simulation = Simulation::new(ir, self.options)
            .map_err(|fault| Mismatch::Fault { seed: first, fault })?;
        for run in self.runs.iter().filter(|run| !run.adrift) {
            let seed = run.seed;
            let outcome = simulation
                .run(&run.inputs, &mut |_| {})
                .map_err(|fault| Mismatch::Fault { seed, fault })?;
            let real = outcome.outputs.len();
            let mut found = all(outcome);
            let names = |outputs: &[(String, Tensor)]| {
                let mut names: Vec<String> = outputs.iter().map(|(name, _)| name.clone()).collect();
                names.sort();
                names
            };
            let (now, before) = (names(&found[..real]), names(&run.outputs[..run.real]));
            if now != before {
                return Err(Mismatch::Outputs {
                    found: now,
                    expected: before,
                });
            }
            for (number, (name, want)) in run.outputs.iter().enumerate() {
                let is_real = number < run.real;
                // What others see may be gone: nobody sees it then.
                let (outputs, seen) = found.split_at_mut(real);
                let here = if is_real { outputs } else { seen };
                let output = here.iter_mut().find(|(other, value)| {
                    other == name
                        && (is_real || (value.dtype, &value.dims) == (want.dtype, &want.dims))
                });
                let from = run.free.partition_point(|&(output, _)| output < number);
                let free = run.free[from..].iter();
                let free = free.take_while(|&&(output, _)| output == number);
                let output = output.map(|output| {
                    forgive(&mut output.1, want, free.map(|&(_, at)| at));
                    &*output
                });
                let difference =
                    output.and_then(|(_, found)| compare(found, want, Tolerance::default()));
                if let Some(difference) = difference {
                    let (name, difference) = (name.clone(), difference.to_string());
                    return Err(match is_real {
                        true => Mismatch::Output {
                            seed,
                            name,
                            difference,
                        },
                        false => Mismatch::Seen {
                            seed,
                            name,
                            difference,
                        },
                    });
                }
            }
        }
        Ok(())
    }
}

/// Whether somewhere bytes may be read as another dtype than they were written as.
fn rereads(ir: &Ir) -> bool {
    ir.walk().ops().any(|op| {
        let view = OpView::new(ir, op);
        if view.code() == Some(OpCode::Alloc) {
            return ir.attr(op, "must_alias").is_some();
        }
        ir.operand_ids(op).any(|operand| {
            let access = view.access(operand);
            access.is_some_and(|(mem, access)| access.dtype != mem.dtype)
        })
    })
}

/// Outputs, and what others see behind them.
fn all(outcome: Outcome) -> Vec<(String, Tensor)> {
    let seen = outcome
        .seen
        .into_iter()
        .map(|seen| (seen.name, seen.tensor));
    outcome.outputs.into_iter().chain(seen).collect()
}

/// The elements in which outputs differ, by output and place.
fn differing(outputs: &[(String, Tensor)], others: &[(String, Tensor)]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (number, ((_, one), (_, other))) in outputs.iter().zip(others).enumerate() {
        if one.bytes == other.bytes {
            continue;
        }
        let differ = |&at: &usize| !same_value(one.dtype, one.bits(at), other.bits(at));
        found.extend((0..one.len()).filter(differ).map(|at| (number, at)));
    }
    found
}

/// Makes the elements that nothing is promised of the wanted ones.
fn forgive(found: &mut Tensor, want: &Tensor, free: impl Iterator<Item = usize>) {
    if found.dtype != want.dtype || found.dims != want.dims {
        return;
    }
    let size = want.dtype.size_bytes() as usize;
    for at in free {
        let range = at * size..(at + 1) * size;
        if let (Some(to), Some(from)) = (found.bytes.get_mut(range.clone()), want.bytes.get(range))
        {
            to.copy_from_slice(from);
        }
    }
}
