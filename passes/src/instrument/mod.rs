//! What watches a run: printing, timing, statistics, verification, reproducers, bisection.
//!
//! Instruments stand in a list and nest like brackets: `before_pass` is asked in list order,
//! `after_pass` in reverse, so the last one is nearest to the pass. The ones that decide whether a
//! pass runs come first; behind the first `Skip` nobody else is asked.

mod control;
mod ir_printing;
mod reproducer;
mod statistics;
mod timing;
mod verification;

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;

use crate::pass::{Changed, Pass};
use crate::pipeline::Pipeline;

pub use control::{Bisect, Progress, Skip, StopAfter};
pub use ir_printing::{PassSet, PrintIr, PrintIrOptions, PrintIrTree};
pub use reproducer::{Reproducer, read_reproducer, reproducer_text};
pub use statistics::Statistics;
pub use timing::{Timing, TimingReport};
pub use verification::Verification;

/// Where reports go that belong to no place in a file.
pub trait Log {
    /// Adds text, which ends in a newline.
    fn write(&mut self, text: &str);
}

impl Log for String {
    fn write(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Text or JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportFormat {
    /// For people.
    Text,
    /// One JSON object on one line.
    Json,
}

/// One pass of a run.
#[derive(Clone, Copy)]
pub struct PassEvent<'a> {
    /// Position in the pipeline, from 0.
    pub index: usize,
    /// The whole pipeline.
    pub pipeline: &'a Pipeline,
    /// The pass.
    pub pass: &'a dyn Pass,
}

/// What a pass did.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// Whether it says it changed anything.
    pub changed: Changed,
    /// Its statistics, in the order it declares them.
    pub counters: Vec<u64>,
    /// How many operations it ran on.
    pub anchors: usize,
}

/// What becomes of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It runs.
    Run,
    /// It is left out.
    Skip,
}

/// What becomes of the rest of the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// It runs.
    Continue,
    /// It is left out; that is a success.
    Stop,
}

/// Watches a run; see the module's doc for the order of calls.
pub trait Instrument {
    /// Before each file of a run; its number from 1 where there are several.
    fn begin_file(&mut self, _number: Option<usize>) {}

    /// Before the passes of a file. Errors pushed here end the run.
    fn begin_run(
        &mut self,
        _pipeline: &Pipeline,
        _ir: &Ir,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) {
    }

    /// Before a pass; may leave it out.
    fn before_pass(&mut self, _event: &PassEvent<'_>, _ir: &Ir, _log: &mut dyn Log) -> Verdict {
        Verdict::Run
    }

    /// Before one rewrite of a pass; may forbid it.
    fn before_rewrite(
        &mut self,
        _event: &PassEvent<'_>,
        _what: &dyn Fn() -> String,
        _log: &mut dyn Log,
    ) -> bool {
        true
    }

    /// After a pass that reported no error. Errors pushed here fail it.
    fn after_pass(
        &mut self,
        _event: &PassEvent<'_>,
        _ir: &Ir,
        _report: &PassReport,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) -> Flow {
        Flow::Continue
    }

    /// After a pass that failed, panicked, or was failed by an instrument. The IR is not shown:
    /// nothing is known of its state.
    fn after_failure(
        &mut self,
        _event: &PassEvent<'_>,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) {
    }

    /// After the last pass of a file that was to run, if none failed. Errors pushed here fail the run.
    fn end_run(
        &mut self,
        _pipeline: &Pipeline,
        _ir: &Ir,
        _log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) {
    }

    /// Once, after all files of a run: totals go to the log.
    fn finish(&mut self, _log: &mut dyn Log) {}
}

/// Number of instructions in a file: what stands in functions, locations aside.
pub fn instruction_count(ir: &Ir) -> u64 {
    use bir_dialect::bir::ops::OpCode;
    let is_instruction = |&op: &bir_dialect::ir::Op| {
        !matches!(
            OpCode::of(ir, op),
            Some(
                OpCode::Module
                    | OpCode::Func
                    | OpCode::Alloc
                    | OpCode::Depset
                    | OpCode::Return
                    | OpCode::Yield
            )
        )
    };
    ir.walk().ops().filter(is_instruction).count() as u64
}
