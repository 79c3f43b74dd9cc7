//! Whether a rule is true.
//!
//! Formally: for every instance of the left side that can be built – dtypes, engines, words, literals
//! – on which the rule fires, both sides, run in the simulator on the same inputs, leave equal bytes in
//! everything either writes: the same bits, any NaN equal to any NaN, but for what the rule's contract
//! allows. The rule is carried out by the engine itself, so its conditions are part of what is checked.
//!
//! * `instance` – programs with the left side in them; `inputs` – what they are run on: every
//!   combination of bits where the inputs have 16 bits together, boundary values with one another and
//!   random ones otherwise; `counterexample` – the smallest program that shows a difference.
//!
//! Every variable is a tile of its own, accessed whole; some instances have a result in the place of a
//! source, an instruction that accesses halves, or somebody around who uses the accumulator.
//!
//! Not built: other accesses, loops, several generations at once (an instance runs on
//! the first of trn2, trn3, trn1 that has its instructions), operands in registers.

mod counterexample;
mod inputs;
mod instance;

use std::collections::{BTreeMap, BTreeSet};

use bir_dialect::bir::num::{DType, is_nan, same_value, to_f64};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op};
use bir_sim::Tensor;
use bir_sim::{Inputs, Options, Simulation};
use bir_sim::{Tolerance, compare};

use crate::driver::{Settings, apply};
use crate::rule::{Cond, Contract, Driver, Flags, Rule, RuleSet};
use instance::{Instance, Space};

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

/// Checks a rule of a set.
pub fn verify(set: &RuleSet, rule: &Rule, effort: Effort) -> Verdict {
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
    for number in 0..rule.forms.len() {
        let before = verdict.fired;
        for &allowed in &modes {
            let one = only(set, rule, number);
            let check = Check {
                set: &one,
                allowed,
                contract: rule.contract,
                effort,
            };
            check.form(&mut verdict);
            if verdict.refuted.is_some() {
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
    allowed: Flags,
    contract: Contract,
    effort: Effort,
}

impl Check<'_> {
    fn form(&self, verdict: &mut Verdict) {
        let form = &self.set.rules[0].forms[0];
        let space = Space::new(form, self.effort.instances);
        for assignment in space.assignments() {
            // Whether it fires is the same for every size; small ones are made fast.
            let least = assignment.least_columns();
            let Some(small) = Instance::build(form, &assignment, least) else {
                continue;
            };
            verdict.built += 1;
            let after = match self.rewritten(&small.ir) {
                Ok(after) => after,
                Err(vetoes) => {
                    for (veto, count) in vetoes {
                        *verdict.vetoes.entry(veto).or_default() += count;
                    }
                    continue;
                }
            };
            verdict.fired += 1;
            if let Some(error) = instance::broken(&after) {
                let summary = format!("the right side is no program: {error}");
                let test = counterexample::whole(self.set, &small, &summary);
                verdict.refuted = Some(Refutation { summary, test });
                return;
            }
            if let Err(refutation) = self.compare(&assignment, verdict) {
                verdict.refuted = Some(*refutation);
                return;
            }
        }
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

    fn compare(
        &self,
        assignment: &instance::Assignment,
        verdict: &mut Verdict,
    ) -> Result<(), Box<Refutation>> {
        let form = &self.set.rules[0].forms[0];
        let plan = inputs::Plan::new(form, assignment, self.effort);
        let Some(instance) = Instance::build(form, assignment, plan.columns) else {
            return Ok(());
        };
        let Ok(after) = self.rewritten(&instance.ir) else {
            return Ok(());
        };
        let options = Options::default();
        let Ok(left) = Simulation::new(&instance.ir, options) else {
            return Ok(());
        };
        let right = Simulation::new(&after, options);
        for batch in 0..plan.batches {
            let given = plan.inputs(&instance, batch);
            // Inputs the left side itself does not take say nothing.
            let Ok(wanted) = left.run(&given, &mut |_| {}) else {
                continue;
            };
            let found = match &right {
                Ok(right) => right.run(&given, &mut |_| {}),
                Err(fault) => Err(fault.clone()),
            };
            let found = match found {
                Ok(found) => found,
                Err(fault) => {
                    let summary = format!("the right side cannot run: {fault}");
                    let test = counterexample::whole(self.set, &instance, &summary);
                    return Err(Box::new(Refutation { summary, test }));
                }
            };
            let mut worst: Option<(u64, usize, usize)> = None;
            for (number, ((_, want), (_, got))) in
                wanted.outputs.iter().zip(&found.outputs).enumerate()
            {
                verdict.values += want.len() as u64;
                if want.bytes == got.bytes {
                    continue;
                }
                for at in 0..want.len() {
                    if self.equal(&instance, &given, want, got, at) {
                        continue;
                    }
                    let cost = counterexample::cost(&instance, &given, want, at);
                    if worst.is_none_or(|(least, ..)| cost < least) {
                        worst = Some((cost, number, at));
                    }
                }
            }
            if let Some((_, number, at)) = worst {
                let outputs = (&wanted.outputs[number], &found.outputs[number]);
                let refutation =
                    counterexample::make(self, assignment, &instance, &given, outputs, at);
                return Err(Box::new(refutation));
            }
        }
        if plan.exhaustive {
            verdict
                .exhaustive
                .extend(instance.inputs.iter().map(|input| input.dtype));
        }
        Ok(())
    }

    /// Whether two results are as near as the contract and what is allowed want them.
    fn equal(
        &self,
        instance: &Instance,
        given: &Inputs,
        want: &Tensor,
        got: &Tensor,
        at: usize,
    ) -> bool {
        let (a, b) = (want.bits(at), got.bits(at));
        let dtype = want.dtype;
        if same_value(dtype, a, b) {
            return true;
        }
        let number = |bits| to_f64(dtype, bits);
        if self.allowed.nsz && number(a) == Some(0.0) && number(b) == Some(0.0) {
            return true;
        }
        let sources: Vec<(DType, u64)> = instance
            .inputs
            .iter()
            .filter_map(|input| Some((input, given.get(&input.port)?)))
            .flat_map(|(input, tensor)| {
                let lanes = input.lanes(at, want, tensor);
                lanes.map(|lane| (input.dtype, tensor.bits(lane)))
            })
            .chain([(dtype, a), (dtype, b)])
            .collect();
        if self.allowed.nnan && sources.iter().any(|&(dtype, bits)| is_nan(dtype, bits)) {
            return true;
        }
        let infinite =
            |&(dtype, bits): &(DType, u64)| to_f64(dtype, bits).is_some_and(f64::is_infinite);
        if self.allowed.ninf && sources.iter().any(infinite) {
            return true;
        }
        if self.contract.ulp == 0 {
            return false;
        }
        let single = |tensor: &Tensor, bits: u64| Tensor {
            dtype: tensor.dtype,
            dims: vec![1],
            bytes: bits.to_le_bytes()[..tensor.dtype.size_bytes() as usize].to_vec(),
        };
        let tolerance = Tolerance {
            ulp: self.contract.ulp,
            ..Tolerance::default()
        };
        compare(&single(got, b), &single(want, a), tolerance).is_none()
    }
}

fn function(ir: &Ir) -> Option<Op> {
    ir.walk()
        .ops()
        .find(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
}
