//! Who tries which rule where, and when it ends.
//!
//! * `single_shot` – each rule once, in the order they are written, each over the whole function in
//!   program order; what a rule makes is not visited by its own walk, and what its rewrites remove
//!   hands on its edges and waits where the walk ends;
//! * `greedy` – a worklist to the fixpoint, the best rule that fits first; an instruction made by a
//!   chain of [`Settings::max_chain`] rewrites, each of what the one before made, ends in an error that
//!   names the rules that go round in circles.
//!
//! Both change nothing where no rule fits. A rule that matches and would leave things as they are is an
//! error: it would match for ever.

mod checks;
mod greedy;
mod recall;
mod single_shot;

use std::collections::BTreeMap;

use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};
use hashbrown::HashSet;

use crate::automaton::FormId;
use crate::estate::Estate;
use crate::flow::Flow;
use crate::matcher::{Found, Miss, find};
use crate::rewriter::{Plan, Rewriter};
use crate::rule::{Driver, Flags, Rule, RuleSet};
use checks::Checks;

/// A run may make this many instructions of each, and this many more.
const MOST_GROWTH: u64 = 16;
const SOME_GROWTH: u64 = 4096;

/// Which remarks are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Remarks {
    /// None.
    #[default]
    Off,
    /// Where rules fired.
    Passed,
    /// Where rules did not, and the first reason.
    Missed,
    /// Both.
    All,
}

impl Remarks {
    fn passed(self) -> bool {
        matches!(self, Remarks::Passed | Remarks::All)
    }

    fn missed(self) -> bool {
        matches!(self, Remarks::Missed | Remarks::All)
    }
}

/// How a set is applied.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The driver; that of the set where absent.
    pub driver: Option<Driver>,
    /// What is allowed.
    pub allowed: Flags,
    /// Per option of the set, whether it is on; defaults where shorter.
    pub options: Vec<bool>,
    /// Which remarks are made.
    pub remarks: Remarks,
    /// Rewrites of what rewrites made, one after the other, before the greedy driver gives up.
    pub max_chain: u32,
    /// Instructions of a function beyond which rules may not make it grow.
    pub max_instructions: u64,
    /// Whether the rewriter's contract is checked after every step.
    pub expensive_checks: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            driver: None,
            allowed: Flags::default(),
            options: Vec::new(),
            remarks: Remarks::Off,
            max_chain: 64,
            max_instructions: u64::MAX,
            expensive_checks: false,
        }
    }
}

/// What one rule did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counter {
    /// Forms tried at an instruction.
    pub tried: u64,
    /// Matches, conditions included.
    pub matched: u64,
    /// Rewrites.
    pub applied: u64,
    /// Per condition, how often it was the one that said no.
    pub vetoes: BTreeMap<String, u64>,
}

/// What a run over a function did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rewrites.
    pub applied: u64,
    /// Per rule of the set.
    pub counters: Vec<Counter>,
    /// Remarks, in the order they came up.
    pub remarks: Vec<Diagnostic>,
    /// What ended the run.
    pub error: Option<Diagnostic>,
}

/// Who is asked before a rewrite, and told its name.
pub type May<'a> = dyn FnMut(&dyn Fn() -> String) -> bool + 'a;

/// Applies a set to a function. `may` is asked before every rewrite and told its name.
pub fn apply(
    ir: &mut Ir,
    func: Op,
    set: &RuleSet,
    settings: &Settings,
    may: &mut May<'_>,
) -> Report {
    let mut work = Work {
        flow: Flow::new(func),
        estate: Estate::default(),
        checks: settings.expensive_checks.then(|| Checks::new(ir)),
        set,
        settings,
        may,
        stopped: false,
        made_by: None,
        on: set
            .rules
            .iter()
            .map(|rule| is_on(set, rule, settings))
            .collect(),
        grown: 0,
        size: None,
        told: HashSet::default(),
        report: Report {
            counters: vec![Counter::default(); set.rules.len()],
            ..Report::default()
        },
    };
    match settings.driver.unwrap_or(set.driver) {
        Driver::SingleShot => single_shot::run(ir, &mut work),
        Driver::Greedy => greedy::run(ir, &mut work),
    }
    work.settle(ir);
    work.report
}

fn is_on(set: &RuleSet, rule: &Rule, settings: &Settings) -> bool {
    rule.option.is_none_or(|option| {
        let default = set.options.get(option).is_some_and(|option| option.default);
        settings.options.get(option).copied().unwrap_or(default)
    })
}

/// A run under way.
struct Work<'a> {
    flow: Flow,
    estate: Estate,
    checks: Option<Checks>,
    set: &'a RuleSet,
    settings: &'a Settings,
    may: &'a mut May<'a>,
    /// Whether nothing more may be rewritten.
    stopped: bool,
    /// The rule that made the instruction looked at, if one did.
    made_by: Option<u32>,
    /// Per rule.
    on: Vec<bool>,
    /// Instructions rewrites added, less those that went.
    grown: i64,
    /// Instructions the function had.
    size: Option<u64>,
    /// Remarks that were made.
    told: HashSet<(Op, String), foldhash::fast::FixedState>,
    report: Report,
}

/// What a rewrite made, and what is no more.
struct Done {
    made: Vec<Op>,
    gone: Vec<Op>,
}

/// Forms of a rule tried at an instruction without firing.
struct Tried {
    rule: u32,
    forms: u64,
    /// The form that came furthest says more than one of another shape.
    miss: Option<(u32, Miss)>,
}

impl Tried {
    fn new(rule: u32) -> Tried {
        Tried {
            rule,
            forms: 0,
            miss: None,
        }
    }

    fn add(&mut self, form: u32, miss: Miss) {
        self.forms += 1;
        if self
            .miss
            .is_none_or(|(_, other)| depth(miss) > depth(other))
        {
            self.miss = Some((form, miss));
        }
    }
}

impl Work<'_> {
    /// Tries forms of one rule at an instruction.
    fn attempt(&mut self, ir: &mut Ir, forms: &[FormId], op: Op) -> Option<Done> {
        let &(number, _) = forms.first()?;
        let mut tried = Tried::new(number);
        for &(_, form) in forms {
            match self.one(ir, number as usize, form, op) {
                Ok(done) => {
                    tried.forms += 1;
                    tried.miss = None;
                    self.count(&tried, 1);
                    return done;
                }
                Err(miss) => tried.add(form, miss),
            }
        }
        self.count(&tried, 1);
        let (form, miss) = tried.miss?;
        if self.settings.remarks.missed() {
            let rule = &self.set.rules[number as usize];
            let reason = miss.text(&rule.forms[form as usize]);
            // The file shows what stood there before.
            let on = self.made_by.map_or(String::new(), |maker| {
                let maker = &self.set.rules[maker as usize].name;
                format!(" on what `{maker}` made here")
            });
            let message = format!("`{}` did not fire{on}: {reason}", rule.name);
            self.remark(op, rule, &message);
        }
        None
    }

    /// Counts what was tried so many times.
    fn count(&mut self, tried: &Tried, times: u64) {
        let counter = &mut self.report.counters[tried.rule as usize];
        counter.tried += tried.forms * times;
        let Some((form, miss)) = tried.miss.filter(|_| times > 0) else {
            return;
        };
        let form = &self.set.rules[tried.rule as usize].forms[form as usize];
        if let Some(veto) = miss.veto(form) {
            *counter.vetoes.entry(veto).or_default() += times;
        }
    }

    /// What a form would do at an instruction.
    fn decide(
        &mut self,
        ir: &mut Ir,
        number: usize,
        form: u32,
        op: Op,
    ) -> Result<(Found, Plan), Miss> {
        let rule = &self.set.rules[number];
        let form = &rule.forms[form as usize];
        let found = find(ir, &mut self.flow, form, op, self.settings.allowed)?;
        // Asked last: where nothing fits, an option would change nothing.
        if !self.on[number] {
            return Err(Miss::Option);
        }
        if !self.settings.allowed.allow(rule.contract.needs) {
            return Err(Miss::Flags);
        }
        let mut rewriter = Rewriter::new(ir, &mut self.flow, &mut self.estate);
        let plan = rewriter.plan(form, &found);
        match plan {
            Err(Miss::Unchanged) => Err(Miss::Unchanged),
            Err(miss) => {
                let place = found.ops[form.at].unwrap_or(op);
                self.check_miss(ir, number, place);
                Err(miss)
            }
            Ok(plan) => Ok((found, plan)),
        }
    }

    /// Whether a rewrite may be made; else the run ends.
    fn may(&mut self, ir: &Ir, number: usize, place: Op) -> bool {
        let rule = &self.set.rules[number];
        self.stopped = !(self.may)(&|| format!("{} at {}", rule.name, describe(ir, place)));
        !self.stopped
    }

    /// `Ok(None)` where it may not be carried out, or the run ends.
    fn one(&mut self, ir: &mut Ir, number: usize, form: u32, op: Op) -> Result<Option<Done>, Miss> {
        let rule = &self.set.rules[number];
        let (found, plan) = match self.decide(ir, number, form, op) {
            Ok(decided) => decided,
            Err(Miss::Unchanged) => {
                self.report.counters[number].matched += 1;
                // Of what matches at several instructions, that is the one the search started at.
                self.report.error = Some(unchanged(ir, rule, op));
                return Ok(None);
            }
            Err(_) if self.report.error.is_some() => return Ok(None),
            Err(miss) => return Err(miss),
        };
        let form = &rule.forms[form as usize];
        let place = found.ops[form.at].unwrap_or(op);
        if !self.may(ir, number, place) {
            return Ok(None);
        }
        let mut rewriter = Rewriter::new(ir, &mut self.flow, &mut self.estate);
        if let Err(miss) = rewriter.carry_out(&plan, form, &found) {
            return match self.check_miss(ir, number, place) {
                true => Err(miss),
                false => Ok(None),
            };
        }
        let (made, gone) = (rewriter.made, rewriter.gone);
        let counter = &mut self.report.counters[number];
        counter.matched += 1;
        counter.applied += 1;
        self.report.applied += 1;
        if self.settings.remarks.passed() {
            self.remark(place, rule, &format!("`{}` fired", rule.name));
        }
        self.grown += made.len() as i64 - gone.len() as i64;
        if self.grown > 0 && made.len() > gone.len() {
            self.bound(ir, number, made.first().copied().unwrap_or(place));
        }
        if let Some(checks) = &mut self.checks {
            let broken = checks.fired(ir, &mut self.flow, &self.estate, rule, &made);
            self.report.error = broken.or(self.report.error.take());
        }
        Ok(Some(Done { made, gone }))
    }

    /// Ends a run that makes the function grow and grow.
    fn bound(&mut self, ir: &Ir, number: usize, place: Op) {
        let func = self.flow.func();
        let grown = self.grown;
        // Counted when a rewrite first adds something.
        let size = self
            .size
            .get_or_insert_with(|| (ir.walk_op(func).count() as u64).saturating_sub(grown as u64));
        let now = *size + grown as u64;
        let most = (*size * MOST_GROWTH + SOME_GROWTH).min(self.settings.max_instructions);
        if now <= most {
            return;
        }
        let rule = &self.set.rules[number];
        let message = format!(
            "rules made {now} instructions of {size}, more than the limit of {most}; the last was `{}`",
            rule.name
        );
        let error = Diagnostic::error(Place::Op(place, Part::Whole), message).help(
            "a rule whose right side fits its own left side adds for ever: narrow its left side",
        );
        self.report.error.get_or_insert(error);
    }

    /// Whether a rule that did not fire left things as they were, as far as that is checked.
    fn check_miss(&mut self, ir: &Ir, number: usize, op: Op) -> bool {
        let rule = &self.set.rules[number];
        let checks = self.checks.as_ref();
        let broken = checks.and_then(|checks| checks.missed(ir, rule, op));
        let is_fine = broken.is_none();
        self.report.error = broken.or(self.report.error.take());
        is_fine
    }

    /// Hands on what instructions that went still owe: where a walk ends.
    fn settle(&mut self, ir: &mut Ir) {
        self.estate.settle(ir, &mut self.flow);
    }

    /// Says something of an instruction, once: it may come up again with nothing new about it.
    fn remark(&mut self, op: Op, rule: &Rule, message: &str) {
        if !self.told.insert((op, message.to_owned())) {
            return;
        }
        let mut remark = Diagnostic::remark(Place::Op(op, Part::Whole), message);
        if let Some(law) = &rule.law {
            remark = remark.label(law.clone());
        }
        self.report.remarks.push(remark);
    }

    fn over(&self) -> bool {
        self.stopped || self.report.error.is_some()
    }
}

fn unchanged(ir: &Ir, rule: &Rule, place: Op) -> Diagnostic {
    let what = describe(ir, place);
    let message = format!(
        "rule `{}` matches {what} and would leave it as it is",
        rule.name
    );
    Diagnostic::error(Place::Op(place, Part::Whole), message)
        .help("a rule that changes nothing would match for ever: narrow its left side")
}

/// How far a match came.
fn depth(miss: Miss) -> u8 {
    match miss {
        Miss::Op(_) => 0,
        Miss::Attr(..) | Miss::Extra(_) | Miss::Operand(..) => 1,
        Miss::NoWriter(_) | Miss::NoReader(_) | Miss::NoSibling(_) => 2,
        _ => 3,
    }
}

/// `tensor_scalar` writing `%t3`, for messages.
fn describe(ir: &Ir, op: Op) -> String {
    let view = OpView::new(ir, op);
    let Some(def) = view.def() else {
        return "an instruction".to_owned();
    };
    let written = ir.operands(op).iter().find(|operand| {
        let role = def.operands.get(usize::from(operand.role));
        role.is_some_and(|role| role.writes())
    });
    let name = written
        .and_then(|operand| ir.value_name(operand.value))
        .map(|name| format!(" writing `%{}`", ir.ctx.text(name)));
    format!("`{}`{}", def.name, name.unwrap_or_default())
}
