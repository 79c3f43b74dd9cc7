//! `--validate`: the simulator's comparison of a module before and after passes.

use std::path::PathBuf;
use std::str::FromStr;

use bir_dialect::bir::files::print_elsewhere;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::Ir;
use bir_dialect::text::PrintOptions;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place};
use bir_passes::Pipeline;
use bir_passes::instrument::{
    Flow, Instrument, Log, PassEvent, PassReport, Verdict, reproducer_text,
};
use bir_passes::pass::Changed;
use bir_passes::pipeline::pass_text;
use bir_sim::validate::{Baseline, Mismatch};
use bir_sim::{Fault, FaultKind, Options, Port, Simulation};

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

impl std::fmt::Display for Validate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Validate::Each => f.write_str("each"),
            Validate::End => f.write_str("end"),
            Validate::Random(count) => write!(f, "random:{count}"),
        }
    }
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

/// What a reproducer is made of.
pub(super) struct Keeping {
    /// Where reproducers go; where there is no folder for them, to that of temporary files.
    pub(super) folder: Option<PathBuf>,
    /// What file names begin with.
    pub(super) stem: String,
    /// Flags of the run that must be given again, the pipeline aside.
    pub(super) flags: Vec<String>,
}

/// Instructions after which a run counts as endless.
const MAX_STEPS: u64 = 1 << 26;

/// Compares modules as `--validate` says. A module that cannot be simulated as it comes in is an
/// error, unless nobody could: then it is left alone, with a line in the log.
pub(super) struct Validation {
    mode: Validate,
    given: Given,
    /// Whether any module that cannot be simulated is left alone.
    lenient: bool,
    keeping: Keeping,
    /// Number of the file, where there are several.
    file: Option<usize>,
    baseline: Option<Baseline>,
    /// The module before the pass, or before all of them, for the reproducer.
    before: String,
    /// The passes that ran.
    ran: Vec<String>,
}

impl Validation {
    pub(super) fn new(mode: Validate, given: Given, lenient: bool, keeping: Keeping) -> Validation {
        Validation {
            mode,
            given,
            lenient,
            keeping,
            file: None,
            baseline: None,
            before: String::new(),
            ran: Vec::new(),
        }
    }

    fn count(&self) -> u64 {
        match self.mode {
            Validate::Random(count) => u64::from(count),
            Validate::Each | Validate::End => 1,
        }
    }

    /// Runs the module that comes in.
    fn measure(&self, ir: &Ir) -> Result<Baseline, Unable> {
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
        let seeds: Vec<u64> = (0..self.count()).collect();
        Baseline::with_inputs(ir, &seeds, &given, options).map_err(Unable::Simulate)
    }

    /// Compares a module; `what` changed it last, by passes of that text.
    fn check(&self, ir: &Ir, what: &str, passes: &str, diags: &mut Diagnostics) {
        let Some(Err(mismatch)) = { self.baseline.as_ref() }.map(|baseline| baseline.check(ir))
        else {
            return;
        };
        let did = match &mismatch {
            Mismatch::Fault { .. } => "broke the module",
            _ => "changed what the module computes",
        };
        let message = format!("{what} {did}: {mismatch}");
        let diagnostic = Diagnostic::error(Place::None, message.clone());
        diags.push(match self.reproduce(&message, passes) {
            Ok(path) => diagnostic
                .note(format!("the module before it is `{path}`"))
                .help(format!("`bir-opt --run-reproducer {path}` runs it again")),
            Err(error) => diagnostic.note(error),
        });
    }

    /// Writes the module before, with the flags that show the fault again; the file's name.
    fn reproduce(&self, message: &str, passes: &str) -> Result<String, String> {
        let Keeping {
            folder,
            stem,
            flags,
        } = &self.keeping;
        let lines = [message].into_iter();
        let text = reproducer_text("validation failed", lines, flags, passes, &self.before);
        let number = { self.file }.map_or(String::new(), |number| format!("-{number}"));
        let stem = format!("{stem}{number}-");
        let failed = |error: std::io::Error| format!("cannot write a reproducer: {error}");
        let path = match folder {
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(failed)?;
                folder.join(format!("{stem}validate.bir"))
            }
            // Another name each time: the file of another run may still be wanted.
            None => {
                let file = tempfile::Builder::new()
                    .prefix(&stem)
                    .suffix(".validate.bir")
                    .tempfile()
                    .map_err(failed)?;
                file.keep().map_err(|error| failed(error.error))?.1
            }
        };
        let path = path.display().to_string();
        Output::new(&path).write(&text)?;
        Ok(path)
    }
}

/// Why there is nothing to compare with.
enum Unable {
    Simulate(Box<Fault>),
    Give(String),
}

/// Whether a module that cannot be simulated may be as it should be: what it holds has no semantics
/// here, or it is more than a simulator takes.
fn beyond_us(ir: &Ir, fault: &Fault) -> bool {
    let limit = matches!(
        fault.kind,
        FaultKind::Memory { .. } | FaultKind::Steps { .. } | FaultKind::Program(_)
    );
    let opaque = |op| OpCode::of(ir, op).is_some_and(|code| !bir_sim::executes(code));
    limit || ir.walk().ops().any(opaque)
}

impl Instrument for Validation {
    fn begin_file(&mut self, number: Option<usize>) {
        self.file = number;
    }

    fn begin_run(
        &mut self,
        _pipeline: &Pipeline,
        ir: &Ir,
        log: &mut dyn Log,
        diags: &mut Diagnostics,
    ) {
        self.ran.clear();
        self.baseline = match self.measure(ir) {
            Ok(baseline) => {
                if let Some((count, seed, fault)) = baseline.left_out() {
                    log.write(&format!(
                        "validate: {} of {} seeds are compared; the module does not run on the inputs \
                         of the others, the first of them {seed}: {fault}\n",
                        self.count() - count as u64,
                        self.count(),
                    ));
                }
                Some(baseline)
            }
            Err(Unable::Give(what)) => {
                diags.push(Diagnostic::error(Place::None, what));
                None
            }
            Err(Unable::Simulate(fault)) if self.lenient || beyond_us(ir, &fault) => {
                log.write(&format!("validate: nothing to compare with: {fault}\n"));
                None
            }
            Err(Unable::Simulate(fault)) => {
                let mut diagnostic = fault.diagnostic();
                diagnostic.message = format!("validate: nothing to compare with: {fault}");
                diags.push(diagnostic.help(
                    "`--input NAME=FILE.npy` gives values it runs on; `--allow-unvalidated` lets it pass \
                     without",
                ));
                None
            }
        };
        if self.baseline.is_some() && self.mode == Validate::End {
            self.before = print_elsewhere(ir, PrintOptions::default());
        }
    }

    fn before_pass(&mut self, _event: &PassEvent<'_>, ir: &Ir, _log: &mut dyn Log) -> Verdict {
        if self.baseline.is_some() && self.mode != Validate::End {
            self.before = print_elsewhere(ir, PrintOptions::default());
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
        let passes = pass_text(event.pass);
        if self.mode == Validate::End {
            self.ran.push(passes);
        } else if report.changed != Changed::No && !diags.has_errors() {
            self.check(ir, &format!("pass `{}`", event.pass.name()), &passes, diags);
        }
        Flow::Continue
    }

    fn end_run(
        &mut self,
        _pipeline: &Pipeline,
        ir: &Ir,
        _log: &mut dyn Log,
        diags: &mut Diagnostics,
    ) {
        // Passes may have been skipped, or the run stopped before the last: what counts is what ran.
        if self.mode == Validate::End && !diags.has_errors() {
            self.check(ir, "the pipeline", &self.ran.join(","), diags);
        }
    }
}
