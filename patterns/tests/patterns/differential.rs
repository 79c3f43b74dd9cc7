//! Rules on random programs: what they leave computes what it did, verifies, and is a fixpoint.
//!
//! Random programs have identities and fills in them; more are planted, so that every rule fires and every
//! veto is met.

use std::collections::BTreeMap;

use bir_dialect::bir::attrs::{number, number_bits};
use bir_dialect::bir::num::{DType, parse};
use bir_dialect::bir::ops::{OpCode, is_bitvec};
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostics, Severity};
use bir_dialect::text::{PrintOptions, print};
use bir_patterns::{Driver, Library, Remarks, Report, RuleSet, Settings, apply};
use bir_sim::Options;
use bir_sim::generate::{Config, generate};
use bir_sim::validate::Baseline;

use crate::common::library;

fn text(ir: &Ir) -> String {
    print(ir, PrintOptions::default())
}

fn functions(ir: &Ir) -> Vec<Op> {
    let all = ir.walk().ops();
    all.filter(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .collect()
}

fn errors(ir: &Ir) -> Vec<String> {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Full,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    let errors = diags.iter().filter(|one| one.severity == Severity::Error);
    errors.map(|one| one.message.clone()).collect()
}

/// What scalar steps become: identities, and what looks like one.
const STEPS: &[(&str, &str)] = &[
    ("multiply", "1.0"),
    ("add", "-0.0"),
    ("subtract", "0.0"),
    ("divide", "1.0"),
    ("add", "0.0"),
    ("multiply", "0.0"),
    ("add", "2.0"),
];

/// Turns every other scalar step and fill into one of those; only what is legal for the op there.
fn plant(ir: &mut Ir, seed: u64) {
    let all: Vec<Op> = functions(ir)
        .into_iter()
        .flat_map(|func| ir.walk_op(func).collect::<Vec<_>>())
        .collect();
    for (at, op) in (seed..).zip(all) {
        let view = OpView::new(ir, op);
        match view.code() {
            Some(OpCode::TensorScalar) if at % 2 == 0 => {
                let is_plain = view.word("op0").is_some_and(|op0| !is_bitvec(op0))
                    && view.word("op1").is_none()
                    && view.role("operand0").literal().is_some()
                    && ir.attr(op, "engine").is_none();
                if !is_plain {
                    continue;
                }
                let (step, literal) = STEPS[(at / 2) as usize % STEPS.len()];
                let word = ir.ctx.string(step);
                let bits = parse(DType::F32, literal).unwrap();
                let literal = number(&mut ir.ctx, DType::F32, bits);
                ir.set_attr(op, "op0", Some(word));
                ir.set_attr(op, "operand0", Some(literal));
            }
            Some(OpCode::Memset) if at % 3 == 0 => {
                let value = view.role("value").literal();
                let Some((dtype, _)) = value.and_then(|value| number_bits(&ir.ctx, value)) else {
                    continue;
                };
                // Integers may be sizes, offsets, trips.
                let Some(bits) = parse(dtype, "1.0").ok().filter(|_| dtype.is_float()) else {
                    continue;
                };
                let literal = number(&mut ir.ctx, dtype, bits);
                ir.set_attr(op, "value", Some(literal));
            }
            Some(OpCode::TensorTensor) if at % 2 == 0 => {
                let is_plain = view.word("op").is_some_and(|op| !is_bitvec(op));
                if is_plain && ir.attr(op, "engine").is_none() {
                    let word = ir.ctx.string("multiply");
                    ir.set_attr(op, "op", Some(word));
                }
            }
            _ => {}
        }
    }
}

/// What a campaign counted, per rule: tried, matched, applied, vetoes.
#[derive(Default, Debug)]
struct Counted {
    rules: BTreeMap<String, [u64; 3]>,
    vetoes: BTreeMap<String, u64>,
}

impl Counted {
    fn add(&mut self, set: &RuleSet, report: &Report) {
        for (rule, counter) in set.rules.iter().zip(&report.counters) {
            let sums = self.rules.entry(rule.name.clone()).or_default();
            let found = [counter.tried, counter.matched, counter.applied];
            sums.iter_mut()
                .zip(found)
                .for_each(|(sum, one)| *sum += one);
            for (veto, count) in &counter.vetoes {
                *self.vetoes.entry(veto.clone()).or_default() += count;
            }
        }
    }

    fn all_fired(&self) {
        for (rule, sums) in &self.rules {
            assert!(sums.iter().all(|&sum| sum > 0), "{rule}: {self:?}");
        }
    }
}

fn everywhere(ir: &mut Ir, set: &RuleSet, settings: &Settings) -> Vec<Report> {
    let mut reports = Vec::new();
    for func in functions(ir) {
        reports.push(apply(ir, func, set, settings, &mut |_| true));
    }
    reports
}

fn campaign(
    library: &Library,
    set: &str,
    driver: Driver,
    programs: u64,
    expensive_checks: bool,
) -> Counted {
    let set = library.set(set).unwrap();
    let settings = Settings {
        driver: Some(driver),
        expensive_checks,
        ..Settings::default()
    };
    let scale = std::env::var("BIR_FUZZ").ok().and_then(|n| n.parse().ok());
    let mut counted = Counted::default();
    let mut planted = 0;
    for seed in 0..scale.unwrap_or(programs) {
        let config = Config {
            seed,
            instructions: 60 + (seed % 7) as usize * 20,
            max_elements: 32,
            ..Config::default()
        };
        // A planted step may be no program, or one that ends in a fault: then there is the one without.
        let plain = generate(&config).ir;
        let mut ir = plain.clone();
        plant(&mut ir, seed);
        let run = |ir: &Ir| Baseline::new(ir, &[seed], Options::default());
        let expected = match errors(&ir).is_empty().then(|| run(&ir)) {
            Some(Ok(expected)) => {
                planted += 1;
                expected
            }
            _ => {
                ir = plain;
                run(&ir).unwrap()
            }
        };
        let before = text(&ir);
        let mut asked = ir.clone();
        let reports = everywhere(&mut ir, set, &settings);
        let after = text(&ir);
        let what = format!("seed {seed}\n{before}\n{after}");
        let mut applied = 0;
        for report in &reports {
            assert!(report.error.is_none(), "{what}\n{:?}", report.error);
            counted.add(set, report);
            applied += report.applied;
        }
        assert_eq!(applied > 0, before != after, "{what}");
        assert!(errors(&ir).is_empty(), "{what}\n{:#?}", errors(&ir));
        if let Err(difference) = expected.check(&ir) {
            panic!("{what}\n{difference}");
        }
        if driver == Driver::Greedy {
            // Who watches has every instruction asked about; else what looks alike is not asked again.
            let watched = Settings {
                remarks: Remarks::Passed,
                ..settings.clone()
            };
            let others = everywhere(&mut asked, set, &watched);
            assert_eq!(text(&asked), after, "{what}");
            for (report, other) in reports.iter().zip(&others) {
                assert_eq!(report.counters, other.counters, "{what}");
            }
            let again = everywhere(&mut ir, set, &settings);
            assert!(again.iter().all(|report| report.applied == 0), "{what}");
            assert_eq!(text(&ir), after, "{what}");
        }
    }
    assert!(planted * 10 > scale.unwrap_or(programs) * 9, "{planted}");
    counted
}

#[test]
fn identities_keep_what_programs_compute() {
    for driver in [Driver::Greedy, Driver::SingleShot] {
        let counted = campaign(&Library::shipped(), "identities", driver, 150, false);
        counted.all_fired();
        assert!(counted.vetoes["exact_in_f32(?x)"] > 0, "{counted:?}");
    }
}

#[test]
fn identities_keep_the_rewriters_contract() {
    let counted = campaign(&Library::shipped(), "identities", Driver::Greedy, 12, true);
    counted.all_fired();
}

/// Several instructions, in place of the first, of the last, and in place of one by two.
const STEPS_OF_TWO: &str = "
set steps single_shot;

/// What a copy of a fresh result is read for, the result is good for as well.
pattern copy_early {
  match {
    tensor_scalar $f %t <- %x, $a;
    tensor_copy %y <- %t;
  }
  where { sole_reader(%t), same_access(%t), f32(%t) }
  rewrite at %t { tensor_scalar $f %y <- %x, $a; }
}

/// What is read of a copy is as good read from where it came.
pattern copy_late {
  match {
    keep tensor_copy %t <- %x;
    tensor_scalar $f %y <- %t, $a;
  }
  where { same_access(%t), same_dtype(%t, %x) }
  rewrite { tensor_scalar $f %y <- %x, $a; }
}

pattern copy_of_constant {
  match {
    keep memset %c <- $v;
    tensor_copy %y <- %c;
  }
  where { same_dtype(%c, %y) }
  rewrite { memset %y <- $v; }
}
";

#[test]
fn rules_of_several_instructions_keep_what_programs_compute() {
    let library = library(STEPS_OF_TWO);
    for driver in [Driver::Greedy, Driver::SingleShot] {
        let counted = campaign(&library, "steps", driver, 300, false);
        counted.all_fired();
    }
    campaign(&library, "steps", Driver::SingleShot, 12, true);
}
