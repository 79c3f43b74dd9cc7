//! What a pass is, and what it is given while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::symbol_name;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place, Severity};

use crate::instrument::{Instrument, Log, PassEvent};
use crate::options::PassOptions;
use crate::panics;
use crate::rules::Rules;

/// What a pass works on at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Anchor {
    /// All modules of a file.
    Program,
    /// One module.
    Module,
    /// One function.
    Func,
}

impl Anchor {
    /// All anchors, outermost first.
    pub const ALL: [Anchor; 3] = [Anchor::Program, Anchor::Module, Anchor::Func];

    /// The word in pipelines.
    pub const fn name(self) -> &'static str {
        match self {
            Anchor::Program => "program",
            Anchor::Module => "module",
            Anchor::Func => "func",
        }
    }

    /// The anchor of that word.
    pub fn from_name(name: &str) -> Option<Anchor> {
        Anchor::ALL.into_iter().find(|anchor| anchor.name() == name)
    }

    /// "every module", for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Anchor::Program => "the program",
            Anchor::Module => "modules",
            Anchor::Func => "functions",
        }
    }

    /// What of a file is anchored here, in text order; the modules for the program.
    pub fn ops(self, ir: &Ir) -> Vec<Op> {
        let modules = ir
            .block_ops(ir.root_block())
            .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Module));
        if self != Anchor::Func {
            return modules.collect();
        }
        modules
            .flat_map(|module| ir.regions(module).iter())
            .flat_map(|&region| ir.blocks(region))
            .flat_map(|block| ir.block_ops(block))
            .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
            .collect()
    }
}

/// Whether a pass changed anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    /// Not a byte.
    No,
    /// Something.
    Yes,
}

impl Changed {
    /// `Yes` if `changed`.
    pub fn from_bool(changed: bool) -> Changed {
        match changed {
            true => Changed::Yes,
            false => Changed::No,
        }
    }
}

/// A number a pass counts, kept over all it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Statistic {
    /// Name in reports, with hyphens.
    pub name: &'static str,
    /// What is counted.
    pub doc: &'static str,
}

/// A transformation or a report. One pass is one struct of typed options, declared with
/// [`pass_options!`](crate::pass_options), and one row of the [registry](crate::registry).
pub trait Pass: PassOptions + Send + Sync {
    /// The name, with underscores.
    fn name(&self) -> &'static str;

    /// What it works on.
    fn anchor(&self) -> Anchor;

    /// What it counts.
    fn statistics(&self) -> &'static [Statistic] {
        &[]
    }

    /// Runs on everything it is anchored to, in text order: all of `on` are operations of the
    /// anchor's kind. Errors go to `cx` and fail the run. "No change" promises that not a byte of
    /// the module would print otherwise.
    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed;
}

/// The first line of a pass's manual.
pub fn summary(pass: &dyn Pass) -> &'static str {
    pass.doc()
        .trim()
        .lines()
        .next()
        .unwrap_or("")
        .trim_end_matches('.')
}

/// Bounds on a run. They count nodes and steps, never time, so results do not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instructions a file may have when passes run over it, and when one is done.
    pub max_instructions: u64,
    /// Threads that look at functions at once; no result depends on it.
    pub threads: usize,
    /// Whether passes that have a checker of their own run it, whatever it costs.
    pub expensive_checks: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_instructions: 5_000_000,
            threads: 1,
            expensive_checks: false,
        }
    }
}

/// What a pass says and asks while it runs.
pub struct PassContext<'a> {
    pub(crate) event: PassEvent<'a>,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) diags: &'a mut Diagnostics,
    pub(crate) instruments: &'a mut [Box<dyn Instrument>],
    pub(crate) log: &'a mut dyn Log,
    pub(crate) counters: Vec<u64>,
    pub(crate) matched: u64,
    pub(crate) held_back: bool,
    pub(crate) files: Vec<(String, String)>,
}

impl PassContext<'_> {
    /// The bounds of this run.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The pattern sets of this run.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The name of the pass that runs.
    pub fn pass_name(&self) -> &'static str {
        self.event.pass.name()
    }

    /// Reports a finding; an error fails the pass.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    /// Reports context that fails nothing.
    pub fn remark(&mut self, place: Place, message: impl Into<String>) {
        self.diags.push(Diagnostic {
            severity: Severity::Remark,
            ..Diagnostic::error(place, message)
        });
    }

    /// Says that `count` things the pass is for were found, changed or not.
    pub fn matched(&mut self, count: u64) {
        self.matched = self.matched.saturating_add(count);
    }

    /// Adds to the statistic of that name.
    pub fn count(&mut self, statistic: &Statistic, count: u64) {
        let declared = self.event.pass.statistics();
        let at = declared.iter().position(|one| one.name == statistic.name);
        if let Some(counter) = at.and_then(|at| self.counters.get_mut(at)) {
            *counter = counter.saturating_add(count);
        }
    }

    /// Asks, in program order and outside of parallel phases, whether one more rewrite may be
    /// made; `what` names it for people who bisect.
    pub fn may_rewrite(&mut self, what: &dyn Fn() -> String) -> bool {
        let mut may = true;
        for instrument in self.instruments.iter_mut() {
            may &= instrument.before_rewrite(&self.event, what, self.log);
        }
        self.held_back |= !may;
        may
    }

    /// Whether a rewrite was held back: what the pass promises of its result may not hold.
    pub fn was_held_back(&self) -> bool {
        self.held_back
    }

    /// Prints a report the user asked for.
    pub fn say(&mut self, text: &str) {
        self.log.write(text);
    }

    /// Hands over a file to be written when the run has succeeded.
    pub fn file(&mut self, path: &str, text: String) {
        self.files.push((path.to_owned(), text));
    }

    /// Looks at every anchor, in parallel where threads allow it, and returns what was found in
    /// program order. Nothing is changed or interned meanwhile.
    pub fn each<T: Send>(&self, ir: &Ir, on: &[Op], look: impl Fn(&Ir, Op) -> T + Sync) -> Vec<T> {
        let threads = self.limits.threads.min(on.len());
        if threads <= 1 {
            return on.iter().map(|&op| look(ir, op)).collect();
        }
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut found = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(&op) = on.get(at) else { return found };
                found.push((at, panics::catch(|| look(ir, op))));
            }
        };
        let mut all: Vec<(usize, Result<T, panics::Caught>)> = std::thread::scope(|scope| {
            let handles: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
            let mut all = worker();
            for handle in handles {
                match handle.join() {
                    Ok(found) => all.extend(found),
                    Err(payload) => std::panic::resume_unwind(payload),
                }
            }
            all
        });
        all.sort_by_key(|&(at, _)| at);
        all.into_iter()
            .map(|(_, result)| result.unwrap_or_else(|caught| panics::pass_on(caught)))
            .collect()
    }
}

/// `@main`, for messages.
pub fn symbol_text(ir: &Ir, op: Op) -> String {
    match symbol_name(ir, op) {
        Some(name) => format!("`@{}`", ir.ctx.text(name)),
        None => "without a name".to_owned(),
    }
}
