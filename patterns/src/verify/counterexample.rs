//! The smallest program that shows a rule to be false.

use bir_dialect::bir::num::{DType, Number, is_nan, to_f64};
use bir_dialect::bir::space::Target;
use bir_sim::Tensor;
use bir_sim::{Inputs, Options, Simulation};

use super::instance::{Assignment, Instance, Shape, program, read};
use super::{Check, Refutation};
use crate::rule::RuleSet;

/// How hard to grasp the inputs of a result are: the least is shown.
pub(super) fn cost(instance: &Instance, given: &Inputs, of: &Tensor, at: usize) -> u64 {
    instance
        .inputs
        .iter()
        .filter_map(|input| {
            Some((
                input.dtype,
                given.get(&input.port)?.bits(input.lane(at, of)),
            ))
        })
        .map(|(dtype, bits)| strangeness(dtype, bits))
        .sum()
}

fn strangeness(dtype: DType, bits: u64) -> u64 {
    if is_nan(dtype, bits) {
        // The quiet one without payload is the least strange.
        return 2000 + u64::from(bits.count_ones());
    }
    let Some(value) = to_f64(dtype, bits) else {
        return 5000;
    };
    let sign = u64::from(value.is_sign_negative());
    if value == 0.0 {
        return sign;
    }
    if value.is_infinite() {
        return 1000 + sign;
    }
    let size = value.abs().log2().abs() as u64;
    let whole = u64::from(value.fract() != 0.0) * 40;
    2 + sign + size * 3 + whole + u64::from(value.to_bits().count_ones())
}

/// A program of one element on constants, if it shows the difference too; else all of the instance.
pub(super) fn make(
    check: &Check<'_>,
    assignment: &Assignment,
    instance: &Instance,
    given: &Inputs,
    (want, got): (&(String, Tensor), &(String, Tensor)),
    at: usize,
) -> Refutation {
    let number = |dtype, bits| format!("{} ({dtype})", Number { dtype, bits });
    let inputs: Vec<String> = instance
        .inputs
        .iter()
        .filter_map(|input| {
            let bits = given.get(&input.port)?.bits(input.lane(at, &want.1));
            let name = input.port.trim_end_matches("_in");
            Some(format!("{name} = {}", number(input.dtype, bits)))
        })
        .collect();
    let dtype = want.1.dtype;
    let given_text = match inputs.is_empty() {
        true => String::new(),
        false => format!("{}: ", inputs.join(", ")),
    };
    let summary = format!(
        "{given_text}the left side gives {}, the right side {}",
        number(dtype, want.1.bits(at)),
        number(dtype, got.1.bits(at))
    );
    let constant = |port: &str| {
        let input = instance.inputs.iter().find(|input| input.port == port)?;
        Some(given.get(port)?.bits(input.lane(at, &want.1)))
    };
    let form = &check.set.rules[0].forms[0];
    let small = [Target::Trn2, Target::Trn3, Target::Trn1]
        .into_iter()
        .find_map(|target| {
            let shape = Shape {
                partitions: 1,
                columns: 1,
                target,
            };
            let (text, _) = program(form, assignment, &shape, &constant)?;
            let ir = read(&text)?;
            let after = check.rewritten(&ir)?;
            let run = |ir| {
                let simulation = Simulation::new(ir, Options::default()).ok()?;
                Some(simulation.run(&Inputs::new(), &mut |_| {}).ok()?.outputs)
            };
            (run(&ir)? != run(&after)?).then_some(text)
        });
    let test = match small {
        Some(text) => with_head(check.set, &text, &summary),
        None => whole(check.set, instance, &summary),
    };
    Refutation { summary, test }
}

/// All of an instance, on random inputs.
pub(super) fn whole(set: &RuleSet, instance: &Instance, summary: &str) -> String {
    with_head(set, &instance.text, summary)
}

fn with_head(set: &RuleSet, text: &str, summary: &str) -> String {
    let rule = &set.rules[0];
    format!(
        "// RUN: %bir-opt --patterns %S/{name}.pat --apply-patterns=set={name} --validate=end %s\n\
         // Rule `{}` must not fire here: {summary}\n{text}",
        rule.name,
        name = set.name,
    )
}
