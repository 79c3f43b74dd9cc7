//! Whether a module still computes what it did: the same inputs, before and after.
//!
//! Inputs are given, or random by seed, special values among them. Outputs must be equal: the same bits, any
//! NaN equal to any NaN.

use bir_dialect::ir::Ir;

use crate::compare::{Tolerance, compare};
use crate::fault::Fault;
use crate::random;
use crate::run::{Inputs, Options, Port, PortKind, Simulation};
use crate::tensor::Tensor;

/// What a module computed, for some seeds.
#[derive(Clone, Debug)]
pub struct Baseline {
    runs: Vec<Seeded>,
    options: Options,
}

#[derive(Clone, Debug)]
struct Seeded {
    seed: u64,
    inputs: Inputs,
    outputs: Vec<(String, Tensor)>,
}

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
        }
    }
}

fn make_inputs(ports: &[Port], given: &Inputs, seed: u64) -> Inputs {
    ports
        .iter()
        .filter(|port| port.kind != PortKind::Output)
        .map(|port| {
            let random = || random::tensor(seed, &port.name, port.dtype, &port.dims);
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
    /// What ends a run: such a module cannot be compared with.
    pub fn new(ir: &Ir, seeds: &[u64], options: Options) -> Result<Baseline, Box<Fault>> {
        Baseline::with_inputs(ir, seeds, &Inputs::new(), options)
    }

    /// Runs a module on what is given and, where nothing is, on random inputs of some seeds.
    ///
    /// # Errors
    ///
    /// What ends a run: such a module cannot be compared with.
    pub fn with_inputs(
        ir: &Ir,
        seeds: &[u64],
        given: &Inputs,
        options: Options,
    ) -> Result<Baseline, Box<Fault>> {
        let simulation = Simulation::new(ir, options)?;
        let ports: Vec<Port> = simulation.ports().collect();
        let mut runs = Vec::with_capacity(seeds.len());
        for &seed in seeds {
            let inputs = make_inputs(&ports, given, seed);
            let outputs = simulation.run(&inputs, &mut |_| {})?.outputs;
            runs.push(Seeded {
                seed,
                inputs,
                outputs,
            });
        }
        Ok(Baseline { runs, options })
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
        for run in &self.runs {
            let seed = run.seed;
            let found = simulation
                .run(&run.inputs, &mut |_| {})
                .map_err(|fault| Mismatch::Fault { seed, fault })?
                .outputs;
            let names = |outputs: &[(String, Tensor)]| {
                let mut names: Vec<String> = outputs.iter().map(|(name, _)| name.clone()).collect();
                names.sort();
                names
            };
            let (now, before) = (names(&found), names(&run.outputs));
            if now != before {
                return Err(Mismatch::Outputs {
                    found: now,
                    expected: before,
                });
            }
            for (name, want) in &run.outputs {
                let output = found.iter().find(|(other, _)| other == name);
                let difference =
                    output.and_then(|(_, found)| compare(found, want, Tolerance::default()));
                if let Some(difference) = difference {
                    return Err(Mismatch::Output {
                        seed,
                        name: name.clone(),
                        difference: difference.to_string(),
                    });
                }
            }
        }
        Ok(())
    }
}
