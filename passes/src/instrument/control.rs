//! Leaving passes out: by name, from one on, or from the N-th step on.

use std::time::Instant;

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;

use super::{Flow, Instrument, Log, PassEvent, PassReport, Verdict};
use crate::options::same_name;

/// Leaves passes out by name.
pub struct Skip {
    /// Their names.
    pub names: Vec<String>,
}

impl Instrument for Skip {
    fn before_pass(&mut self, event: &PassEvent<'_>, _ir: &Ir, _log: &mut dyn Log) -> Verdict {
        match self
            .names
            .iter()
            .any(|name| same_name(name, event.pass.name()))
        {
            true => Verdict::Skip,
            false => Verdict::Run,
        }
    }
}

/// Leaves out everything behind the first pass of a name.
pub struct StopAfter {
    /// Its name.
    pub name: String,
}

impl Instrument for StopAfter {
    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        _ir: &Ir,
        _report: &PassReport,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) -> Flow {
        match same_name(&self.name, event.pass.name()) {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }
}

/// Counts passes and rewrites together and stops allowing them at a limit.
///
/// A step number means the same thing in every run of the same input and flags, so halving the
/// limit finds the step that breaks something.
pub struct Bisect {
    limit: Option<u64>,
    steps: u64,
}

impl Bisect {
    /// Allows `limit` steps; `None` allows all and only numbers them.
    pub fn new(limit: Option<u64>) -> Bisect {
        Bisect { limit, steps: 0 }
    }

    fn step(&mut self, what: &str, log: &mut dyn Log) -> bool {
        self.steps += 1;
        let may = self.limit.is_none_or(|limit| self.steps <= limit);
        let verdict = if may { "running" } else { "not running" };
        log.write(&format!("bisect: {verdict} ({}) {what}\n", self.steps));
        may
    }
}

impl Instrument for Bisect {
    fn before_pass(&mut self, event: &PassEvent<'_>, _ir: &Ir, log: &mut dyn Log) -> Verdict {
        match self.step(&format!("pass {}", event.pass.name()), log) {
            true => Verdict::Run,
            false => Verdict::Skip,
        }
    }

    fn before_rewrite(
        &mut self,
        event: &PassEvent<'_>,
        what: &dyn Fn() -> String,
        log: &mut dyn Log,
    ) -> bool {
        self.step(
            &format!("rewrite of {}: {}", event.pass.name(), what()),
            log,
        )
    }
}

/// A line before each pass once a run takes long.
pub struct Progress {
    start: Instant,
}

/// Runs shorter than this show nothing.
const QUIET_SECONDS: f64 = 1.0;

impl Progress {
    /// Counts from now.
    pub fn new() -> Progress {
        Progress {
            start: Instant::now(),
        }
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

impl Instrument for Progress {
    fn before_pass(&mut self, event: &PassEvent<'_>, _ir: &Ir, log: &mut dyn Log) -> Verdict {
        let seconds = self.start.elapsed().as_secs_f64();
        if seconds >= QUIET_SECONDS {
            log.write(&format!(
                "[{}/{}] {} ({seconds:.1} s so far)\n",
                event.index + 1,
                event.pipeline.steps.len(),
                event.pass.name()
            ));
        }
        Verdict::Run
    }
}
