//! Whether a rule is true.
//!
//! Formally: for every instance of the left side that can be built – dtypes, engines, words, literals
//! – on which the rule fires, both sides, run in the simulator on the same inputs, leave equal bytes in
//! everything either writes: the same bits, any NaN equal to any NaN, but for what the rule's contract
//! allows. The rule is carried out by the engine itself, so its conditions are part of what is checked.
//!
//! * `variants` – the forms instances are of: `_` named, `..` filled in; `space` – what variables, engines
//!   and words may be; `twist` – what is out of the ordinary; `hidden` – who is around;
//! * `layout`, `statement`, `program` – where tiles lie, and the text;
//! * `inputs` – what they are run on: every combination of bits where the inputs have 16 bits
//!   together, boundary values with one another and random ones otherwise, and, where one NaN makes
//!   many, plain numbers; `sides` – both sides run and compared;
//! * `counterexample` – the smallest program that shows a difference.
//!
//! In most instances every variable is a tile of its own, accessed whole. In others one thing is
//! otherwise: a result in the place of a source, or overlapping it; an instruction that accesses half
//! of its tiles' columns or partitions, or a variable backwards, one column further on, or as another
//! dtype; a location declared as another dtype than everybody takes it for; two free dimensions; PSUM; a
//! loop of two trips; somebody around who goes on with hidden state.
//!
//! Not built: two of these at once; several generations at once (an instance runs on the first of trn2,
//! trn3, trn1 that has its instructions); operands in registers; index tiles, and instructions whose
//! results have another shape than their sources, but for reductions of trailing dimensions,
//! transpositions and products of square tiles; several cores; asynchronous order (a rule that moves
//! waits and signals is judged by the rewriter's own checks). The mask and the offset an engine keeps
//! are read by no instruction, so no instance sees them.

mod counterexample;
mod hidden;
mod inputs;
mod layout;
mod program;
mod sides;
mod space;
mod statement;
mod twist;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op};

use crate::driver::{Settings, apply};
use crate::library::{Library, SHIPPED};
use crate::rule::{Cond, Contract, Driver, Flags, Form, Rule, RuleSet};
use program::{Extras, Instance, Shape};
use sides::{Judged, Sides, Watched};
use space::{Assignment, Choice, Space};

/// How much is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Runs of 65,536 values each where not all are tried.
    pub batches: u64,
    /// Whether all values of a single 32-bit input are tried.
    pub all_f32: bool,
    /// Instances tried of each form.
    pub instances: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            batches: 1,
            all_f32: false,
            instances: 700,
        }
    }
}

/// What was found about a rule.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Instances built that verify clean.
    pub built: u64,
    /// Those the rule fired on.
    pub fired: u64,
    /// The same by what was out of the ordinary there; `plain` where nothing was.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Results compared.
    pub values: u64,
    /// Input dtypes of instances all of whose inputs were tried.
    pub exhaustive: BTreeSet<DType>,
    /// Where it is false.
    pub refuted: Option<Refutation>,
    /// Forms, by number, that fired on no instance.
    pub idle: Vec<usize>,
    /// Per condition, on how many instances it was the one that said no.
    pub vetoes: BTreeMap<String, u64>,
}

impl Verdict {
    /// Whether the rule is true as far as was looked, and was looked at.
    pub fn holds(&self) -> bool {
        self.refuted.is_none() && self.values > 0
    }
}

/// Where a rule is false.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// One line: inputs and both results.
    pub summary: String,
    /// A program that shows it, ready as a test.
    pub test: String,
}

/// What a program that shows a rule to be false is run with.
struct Source {
    /// The set.
    set: String,
    /// Its file; none where it comes with the tools.
    file: Option<String>,
}

impl Source {
    /// The file a rule stands in, and the set of that file that has it: where a set imports another,
    /// the rule is in both.
    fn of(library: &Library, set: &RuleSet, rule: &Rule) -> Source {
        let owns = |set: &&RuleSet| {
            let mut rules = set.rules.iter();
            rules.any(|one| one.name == rule.name && one.file == rule.file && one.span == rule.span)
        };
        let owner = library.sets.iter().find(owns).unwrap_or(set);
        let shipped = |name: &str| {
            let known = SHIPPED.get(rule.file);
            known.is_some_and(|(known, _)| *known == name)
        };
        let file = library.files.get(rule.file).map(|file| &file.name);
        let file = file.filter(|name| !shipped(name)).map(|name| {
            let last = name.rsplit(['/', '\\']).next();
            last.unwrap_or(name).to_owned()
        });
        Source {
            set: owner.name.clone(),
            file,
        }
    }
}

/// Checks a rule of a set of a library.
pub fn verify(library: &Library, set: &RuleSet, rule: &Rule, effort: Effort) -> Verdict {
    let mut verdict = Verdict::default();
    let mentioned = rule
        .forms
        .iter()
        .flat_map(|form| &form.conds)
        .fold(Flags::default(), |flags, cond| flags.or(flags_of(cond)));
    let mut modes = vec![rule.contract.needs];
    if !rule.contract.needs.allow(mentioned) {
        modes.push(rule.contract.needs.or(mentioned));
    }
    let source = Source::of(library, set, rule);
    for number in 0..rule.forms.len() {
        let before = verdict.fired;
        for &allowed in &modes {
            let one = only(set, rule, number);
            let check = Check {
                set: &one,
                source: &source,
                allowed,
                contract: rule.contract,
                effort,
            };
            if let Err(refutation) = check.form(&mut verdict) {
                verdict.refuted = Some(*refutation);
                return verdict;
            }
        }
        if verdict.fired == before {
            verdict.idle.push(number);
        }
    }
    verdict
}

/// A set of one form of one rule.
fn only(set: &RuleSet, rule: &Rule, form: usize) -> RuleSet {
    let mut rule = rule.clone();
    rule.forms = vec![rule.forms[form].clone()];
    rule.option = None;
    RuleSet {
        rules: vec![rule],
        options: Vec::new(),
        driver: Driver::SingleShot,
        ..set.clone()
    }
}

fn flags_of(cond: &Cond) -> Flags {
    match cond {
        Cond::All(list) | Cond::Any(list) => list
            .iter()
            .fold(Flags::default(), |flags, one| flags.or(flags_of(one))),
        Cond::Not(one) => flags_of(one),
        Cond::Allowed(flag) => {
            let mut flags = Flags::default();
            flags.set(flag);
            flags
        }
        _ => Flags::default(),
    }
}

/// One form under one set of flags.
struct Check<'a> {
    set: &'a RuleSet,
    source: &'a Source,
    allowed: Flags,
    contract: Contract,
    effort: Effort,
}

/// Nothing, or where the rule is false.
type Found = Result<(), Box<Refutation>>;

impl Check<'_> {
    fn form(&self, verdict: &mut Verdict) -> Found {
        let form = variants::named(&self.set.rules[0].forms[0]);
        let space = Space::new(&form, self.effort.instances);
        for assignment in space.assignments() {
            self.instance(&form, &assignment, verdict)?;
        }
        let opened = variants::opened(&form);
        let share = (self.effort.instances / 2 / opened.len().max(1)).max(8);
        for form in &opened {
            for assignment in Space::new(form, share).plain_assignments() {
                self.instance(form, &assignment, verdict)?;
            }
        }
        Ok(())
    }

    fn instance(&self, form: &Form, assignment: &Assignment, verdict: &mut Verdict) -> Found {
        let odd = |choice: &Choice| match choice {
            Choice::Text(text) => {
                self.allowed.nnan && text == "nan" || self.allowed.ninf && text.ends_with("inf")
            }
            _ => false,
        };
        if assignment.vars.iter().any(odd) {
            // Nothing is promised then.
            return Ok(());
        }
        // Whether it fires is the same for every size; small ones are made fast.
        let (partitions, columns) = assignment.twist.least(form);
        let least = Shape::of(form, columns);
        let least = Shape {
            partitions: least.partitions.max(partitions),
            ..least
        };
        let Some(small) = Instance::plain(form, assignment, least) else {
            return Ok(());
        };
        verdict.built += 1;
        let after = match self.rewritten(&small.ir) {
            Ok(after) => after,
            Err(vetoes) => {
                for (veto, count) in vetoes {
                    *verdict.vetoes.entry(veto).or_default() += count;
                }
                return Ok(());
            }
        };
        verdict.fired += 1;
        *verdict.kinds.entry(assignment.twist.label()).or_default() += 1;
        if let Some(error) = program::broken(&after) {
            return Err(self.no_program(&small, format!("the right side is no program: {error}")));
        }
        self.compare(form, assignment, verdict)
    }

    /// The right side is wrong whatever the inputs are.
    fn no_program(&self, instance: &Instance, summary: String) -> Box<Refutation> {
        let test = counterexample::whole(self, instance, &summary);
        Box::new(Refutation { summary, test })
    }

    /// The program with the rule applied, or what said no.
    fn rewritten(&self, ir: &Ir) -> Result<Ir, BTreeMap<String, u64>> {
        let mut after = ir.clone();
        let Some(func) = function(&after) else {
            return Err(BTreeMap::new());
        };
        let settings = Settings {
            allowed: self.allowed,
            ..Settings::default()
        };
        let report = apply(&mut after, func, self.set, &settings, &mut |_| true);
        match report.applied {
            0 => Err(report
                .counters
                .into_iter()
                .flat_map(|counter| counter.vetoes)
                .collect()),
            _ => Ok(after),
        }
    }

    fn compare(&self, form: &Form, assignment: &Assignment, verdict: &mut Verdict) -> Found {
        let plan = inputs::Plan::new(form, assignment, self.effort, self.excuses());
        let extras = Extras {
            constant: &|_| None,
            watched: false,
        };
        let Some(instance) = Instance::build(form, assignment, plan.shape, &extras) else {
            return Ok(());
        };
        let Ok(after) = self.rewritten(&instance.ir) else {
            return Ok(());
        };
        let watched = Watched::of(self, form, assignment, plan.shape, &extras);
        let Some(sides) = Sides::new(&instance, &after, &watched) else {
            return Ok(());
        };
        for batch in 0..plan.batches {
            let given = plan.inputs(&instance, batch);
            let (wanted, found, apart) = match sides.judge(self, &given) {
                Judged::Nothing => continue,
                Judged::Fault(fault) => {
                    let summary = format!("the right side cannot run: {fault}");
                    return Err(self.no_program(&instance, summary));
                }
                Judged::Results {
                    wanted,
                    found,
                    apart,
                } => (wanted, found, apart),
            };
            let all = wanted.iter().map(|(_, want)| want.len() as u64);
            verdict.values += all.sum::<u64>();
            let cost = |&(output, at): &(usize, usize)| {
                counterexample::cost(&instance, &given, &wanted[output].1, at)
            };
            if let Some((output, at)) = apart.into_iter().min_by_key(cost) {
                let outputs = (&wanted[output], &found[output]);
                return Err(Box::new(counterexample::make(
                    self,
                    (form, assignment),
                    &instance,
                    &given,
                    outputs,
                    at,
                )));
            }
        }
        if plan.exhaustive {
            let dtypes = instance.inputs.iter().map(|input| input.dtype);
            verdict.exhaustive.extend(dtypes);
        }
        Ok(())
    }
}

fn function(ir: &Ir) -> Option<Op> {
    ir.walk()
        .ops()
        .find(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
}
