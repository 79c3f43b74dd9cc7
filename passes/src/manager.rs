//! Runs a pipeline over a file.

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place, Severity};

use crate::instrument::{Flow, Instrument, Log, PassEvent, PassReport, Verdict, instruction_count};
use crate::panics;
use crate::pass::{Anchor, Changed, Limits, PassContext};
use crate::pipeline::Pipeline;
use crate::rules::Rules;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every pass that was to run has succeeded; these files are to be written, path and text.
    Done(Vec<(String, String)>),
    /// A pass failed. Errors say why, and the IR is in no particular state.
    Failed,
}

/// Runs pipelines, watched by instruments.
#[derive(Default)]
pub struct Manager {
    instruments: Vec<Box<dyn Instrument>>,
    limits: Limits,
    rules: Rules,
}

impl Manager {
    /// Nobody watches.
    pub fn new(limits: Limits) -> Manager {
        Manager {
            instruments: Vec::new(),
            limits,
            rules: Rules::default(),
        }
    }

    /// Lets passes apply these pattern sets.
    pub fn with_rules(mut self, rules: Rules) -> Manager {
        self.rules = rules;
        self
    }

    /// Adds an instrument nearer to the passes than those before it.
    pub fn watch(&mut self, instrument: impl Instrument + 'static) {
        self.instruments.push(Box::new(instrument));
    }

    /// Says that another file begins; its number from 1 where a run has several.
    pub fn begin_file(&mut self, number: Option<usize>) {
        for instrument in &mut self.instruments {
            instrument.begin_file(number);
        }
    }

    /// Runs every pass in order, until one fails.
    pub fn run(
        &mut self,
        pipeline: &Pipeline,
        ir: &mut Ir,
        log: &mut dyn Log,
        diags: &mut Diagnostics,
    ) -> Outcome {
        let mut files = Vec::new();
        let at_start = diags.errors();
        for instrument in &mut self.instruments {
            instrument.begin_run(pipeline, ir, log, diags);
        }
        if !pipeline.steps.is_empty() {
            self.check_size(ir, None, diags);
        }
        if diags.errors() > at_start {
            return Outcome::Failed;
        }
        for (index, step) in pipeline.steps.iter().enumerate() {
            let event = PassEvent {
                index,
                pipeline,
                pass: step.pass.as_ref(),
            };
            let before = diags.errors();
            match self.step(event, ir, log, diags, &mut files) {
                _ if diags.errors() > before => {
                    for instrument in self.instruments.iter_mut().rev() {
                        instrument.after_failure(&event, log, diags);
                    }
                    return Outcome::Failed;
                }
                Flow::Continue => {}
                Flow::Stop => break,
            }
        }
        for instrument in self.instruments.iter_mut().rev() {
            instrument.end_run(pipeline, ir, log, diags);
        }
        match diags.errors() > at_start {
            true => Outcome::Failed,
            false => Outcome::Done(files),
        }
    }

    /// Totals of all runs go to the log.
    pub fn finish(&mut self, log: &mut dyn Log) {
        for instrument in &mut self.instruments {
            instrument.finish(log);
        }
    }

    /// Reports a file that has more instructions than it may have, before the first pass or behind one.
    fn check_size(&self, ir: &Ir, pass: Option<&str>, diags: &mut Diagnostics) {
        let limit = self.limits.max_instructions;
        // Counting costs a walk; most files are far from the limit.
        if ir.op_rows() as u64 <= limit {
            return;
        }
        let count = instruction_count(ir);
        if count > limit {
            let message = match pass {
                None => {
                    format!("the file has {count} instructions, more than the limit of {limit}")
                }
                Some(pass) => {
                    format!(
                        "pass `{pass}` leaves {count} instructions, more than the limit of {limit}"
                    )
                }
            };
            let help = "`--max-instructions` raises the limit";
            diags.push(Diagnostic::error(Place::None, message).help(help));
        }
    }

    fn step(
        &mut self,
        event: PassEvent<'_>,
        ir: &mut Ir,
        log: &mut dyn Log,
        diags: &mut Diagnostics,
        files: &mut Vec<(String, String)>,
    ) -> Flow {
        for instrument in &mut self.instruments {
            if instrument.before_pass(&event, ir, log) == Verdict::Skip {
                return Flow::Continue;
            }
        }
        let pass = event.pass;
        let before = diags.errors();
        let on = pass.anchor().ops(ir);
        let mut context = PassContext {
            event,
            limits: self.limits,
            rules: self.rules.clone(),
            diags,
            instruments: &mut self.instruments,
            log,
            counters: vec![0; pass.statistics().len()],
            matched: 0,
            held_back: false,
            files: Vec::new(),
        };
        let caught = panics::catch(|| pass.run(ir, &on, &mut context));
        let PassContext {
            counters,
            matched,
            files: new_files,
            ..
        } = context;
        let changed = match caught {
            Ok(changed) => changed,
            Err(caught) => {
                let name = pass.name();
                let message = format!("pass `{name}` panicked: {}", caught.message);
                let mut diagnostic = Diagnostic::error(Place::None, message).help(
                    "this is a fault of the pass; `--crash-reproducer DIR` keeps what shows it",
                );
                if let Some(place) = caught.place {
                    diagnostic = diagnostic.note(format!("at {place}"));
                }
                diags.push(diagnostic);
                return Flow::Stop;
            }
        };
        if changed == Changed::Yes {
            self.check_size(ir, Some(pass.name()), diags);
        }
        if diags.errors() > before {
            return Flow::Stop;
        }
        files.extend(new_files);
        // In a named pipeline nobody asked for this pass in particular.
        let asked = event.pipeline.steps[event.index].order.is_none();
        if matched == 0 && asked {
            diags.push(nothing_found(&event, on.len()));
        }
        let report = PassReport {
            changed,
            counters,
            anchors: on.len(),
        };
        let mut flow = Flow::Continue;
        for instrument in self.instruments.iter_mut().rev() {
            if instrument.after_pass(&event, ir, &report, log, diags) == Flow::Stop {
                flow = Flow::Stop;
            }
        }
        flow
    }
}

fn nothing_found(event: &PassEvent<'_>, anchors: usize) -> Diagnostic {
    let (name, anchor) = (event.pass.name(), event.pass.anchor());
    let message = match (anchors, anchor) {
        (0, Anchor::Func) => format!("pass `{name}` found no function to run on"),
        (0, _) => format!("pass `{name}` found no module to run on"),
        (1, _) => format!("pass `{name}` matched nothing"),
        (count, Anchor::Program) => format!("pass `{name}` matched nothing in {count} modules"),
        (count, _) => format!("pass `{name}` matched nothing in {count} {}", anchor.noun()),
    };
    Diagnostic {
        severity: Severity::Remark,
        ..Diagnostic::error(Place::None, message)
    }
}

/// Runs one pass over a file with its defaults and nobody watching: for tests and benches.
pub fn run_alone(
    pass: impl crate::Pass + 'static,
    ir: &mut Ir,
    diags: &mut Diagnostics,
) -> Changed {
    run_boxed(Box::new(pass), ir, diags)
}

/// [`run_alone`] for a pass whose type is not known.
pub fn run_boxed(pass: Box<dyn crate::Pass>, ir: &mut Ir, diags: &mut Diagnostics) -> Changed {
    struct Watch(std::rc::Rc<std::cell::Cell<bool>>);
    impl Instrument for Watch {
        fn after_pass(
            &mut self,
            _event: &PassEvent<'_>,
            _ir: &Ir,
            report: &PassReport,
            _log: &mut dyn Log,
            _diags: &mut Diagnostics,
        ) -> Flow {
            self.0.set(report.changed == Changed::Yes);
            Flow::Continue
        }
    }
    let changed = std::rc::Rc::new(std::cell::Cell::new(false));
    let mut pipeline = Pipeline::default();
    pipeline.push(pass);
    let mut manager = Manager::new(Limits::default());
    manager.watch(Watch(changed.clone()));
    manager.run(&pipeline, ir, &mut String::new(), diags);
    Changed::from_bool(changed.get())
}
