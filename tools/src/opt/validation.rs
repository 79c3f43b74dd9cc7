//! `--validate`: the simulator's comparison of a module before and after passes.

use std::path::PathBuf;
use std::str::FromStr;

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place};
use bir_dialect::text::{PrintOptions, print};
use bir_passes::instrument::{Flow, Instrument, Log, PassEvent, PassReport, Verdict};
use bir_passes::pass::Changed;
use bir_sim::validate::{Baseline, Mismatch};
use bir_sim::{Fault, Options, Port, Simulation};

use crate::arrays;
use crate::files::Output;

/// When modules are compared, and on how many inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Validate {
    /// After each pass that changed something.
    Each,
    /// After the last pass.
    End,
    /// After each pass that changed something, on inputs of so many seeds.
    Random(u16),
}

impl FromStr for Validate {
    type Err = String;

    fn from_str(text: &str) -> Result<Validate, String> {
        match text.split_once(':') {
            None if text == "each" => Ok(Validate::Each),
            None if text == "end" => Ok(Validate::End),
            Some(("random", count)) => match count.parse() {
                Ok(count) if count > 0 => Ok(Validate::Random(count)),
                _ => Err("expected `random:N` with N from 1 to 65535".to_owned()),
            },
            _ => Err("expected `each`, `end` or `random:N`".to_owned()),
        }
    }
}

/// Files that hold values of inputs.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// `--input`
    pub(super) files: Vec<(String, PathBuf)>,
    /// `--inputs`
    pub(super) archive: Option<PathBuf>,
}

impl Given {
    /// The flags that give the same again.
    fn flags(&self) -> String {
        let archive = self.archive.iter();
        let archive = archive.map(|path| format!(" --inputs {}", path.display()));
        let files = self.files.iter();
        let files = files.map(|(name, path)| format!(" --input {name}={}", path.display()));
        archive.chain(files).collect()
    }
}

/// Instructions after which a run counts as endless.
const MAX_STEPS: u64 = 1 << 26;

/// Compares modules as `--validate` says. A module that cannot be simulated as it comes in is left
/// alone, with a line in the log.
pub(super) struct Validation {
    mode: Validate,
    given: Given,
    baseline: Option<Baseline>,
    /// What is wrong with the values given.
    wrong: Option<String>,
    /// Whether the file that comes in could not be simulated.
    given_up: bool,
    /// The module before the pass, for the reproducer.
    before: String,
    stem: String,
}

impl Validation {
    pub(super) fn new(mode: Validate, given: Given, stem: String) -> Validation {
        Validation {
            mode,
            given,
            baseline: None,
            wrong: None,
            given_up: false,
            before: String::new(),
            stem,
        }
    }

    /// Runs the module that comes in.
    fn measure(&self, ir: &Ir) -> Result<Baseline, Unable> {
        let count = match self.mode {
            Validate::Random(count) => u64::from(count),
            Validate::Each | Validate::End => 1,
        };
        let options = Options {
            max_steps: MAX_STEPS,
            ..Options::default()
        };
        let ports: Vec<Port> = match Simulation::new(ir, options) {
            Ok(simulation) => simulation.ports().collect(),
            Err(fault) => return Err(Unable::Simulate(fault)),
        };
        let Given { files, archive } = &self.given;
        let given = arrays::given(&ports, archive.as_deref(), files, options.max_bytes)
            .map_err(Unable::Give)?;
        let seeds: Vec<u64> = (0..count).collect();
        Baseline::with_inputs(ir, &seeds, &given, options).map_err(Unable::Simulate)
    }

    /// Writes the module before the pass, with the command that shows the fault.
    fn reproduce(&self, event: &PassEvent<'_>) -> Result<PathBuf, String> {
        let name = format!("{}-{}.validate.bir", self.stem, event.pass.name());
        let command = match self.mode {
            Validate::Random(count) => format!("--validate=random:{count}"),
            _ => "--validate=each".to_owned(),
        };
        let pass = bir_passes::pipeline::pass_text(event.pass);
        let text = format!(
            "// bir-opt --pass-pipeline='{pass}' {command}{} {name}\n{}",
            self.given.flags(),
            self.before
        );
        let path = std::env::temp_dir().join(name);
        Output::new(&path.display().to_string()).write(&text)?;
        Ok(path)
    }
}

/// Why there is nothing to compare with.
enum Unable {
    Simulate(Box<Fault>),
    Give(String),
}

impl Instrument for Validation {
    fn begin_file(&mut self, _number: Option<usize>) {
        self.baseline = None;
        self.wrong = None;
        self.given_up = false;
    }

    fn before_pass(&mut self, event: &PassEvent<'_>, ir: &Ir, log: &mut dyn Log) -> Verdict {
        if self.baseline.is_none() && !self.given_up {
            match self.measure(ir) {
                Ok(baseline) => self.baseline = Some(baseline),
                Err(unable) => {
                    self.given_up = true;
                    match unable {
                        Unable::Simulate(fault) => {
                            log.write(&format!("validate: nothing to compare with: {fault}\n"));
                        }
                        Unable::Give(what) => self.wrong = Some(what),
                    }
                }
            }
        }
        if self.baseline.is_some() && (self.mode != Validate::End || event.index == 0) {
            self.before = print(ir, PrintOptions::default());
        }
        Verdict::Run
    }

    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        ir: &Ir,
        report: &PassReport,
        _log: &mut dyn Log,
        diags: &mut Diagnostics,
    ) -> Flow {
        if let Some(what) = self.wrong.take() {
            diags.push(Diagnostic::error(Place::None, what));
        }
        let due = match self.mode {
            Validate::End => event.index + 1 == event.pipeline.steps.len(),
            _ => report.changed != Changed::No,
        };
        let Some(baseline) = self
            .baseline
            .as_ref()
            .filter(|_| due && !diags.has_errors())
        else {
            return Flow::Continue;
        };
        if let Err(mismatch) = baseline.check(ir) {
            let name = event.pass.name();
            let culprit = if self.mode == Validate::End {
                "the pipeline".to_owned()
            } else {
                format!("pass `{name}`")
            };
            let what = match &mismatch {
                Mismatch::Fault { .. } => "broke the module",
                _ => "changed what the module computes",
            };
            let mut diagnostic =
                Diagnostic::error(Place::None, format!("{culprit} {what}: {mismatch}"));
            diagnostic = match self.reproduce(event) {
                Ok(path) => {
                    diagnostic.note(format!("the module before it is `{}`", path.display()))
                }
                Err(error) => diagnostic.note(error),
            };
            diags.push(diagnostic);
        }
        Flow::Continue
    }
}
