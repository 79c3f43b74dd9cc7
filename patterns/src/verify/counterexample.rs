//! The smallest program that shows a rule to be false.

use bir_dialect::bir::num::{DType, Number, is_nan, same_value, to_f64};
use bir_dialect::bir::space::Target;
use bir_sim::Tensor;
use bir_sim::{Inputs, Options, Simulation};

use super::instance::{Assignment, Input, Instance, Shape, program, read};
use super::{Check, Refutation};
use crate::rule::RuleSet;

/// How hard to grasp the inputs of a result are: the least is shown.
pub(super) fn cost(instance: &Instance, given: &Inputs, of: &Tensor, at: usize) -> u64 {
    instance
        .inputs
        .iter()
        .filter_map(|input| Some((input, given.get(&input.port)?)))
        .flat_map(|(input, tensor)| {
            let lanes = input.lanes(at, of, tensor);
            lanes.map(|lane| strangeness(input.dtype, tensor.bits(lane)))
        })
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

/// A small program on constants, if one shows the difference too; else all of the instance.
pub(super) fn make(
    check: &Check<'_>,
    assignment: &Assignment,
    instance: &Instance,
    given: &Inputs,
    (want, got): (&(String, Tensor), &(String, Tensor)),
    at: usize,
) -> Refutation {
    let lanes = |input: &Input| {
        let tensor = given.get(&input.port)?;
        Some((tensor, input.lanes(at, &want.1, tensor)))
    };
    let widest = instance
        .inputs
        .iter()
        .filter_map(|input| Some(lanes(input)?.1.len()));
    let widest = widest.max().unwrap_or(1);
    // A row that adds up to a difference mostly has an element that shows it alone.
    let small = (0..widest).find_map(|nth| {
        let element = |input: &Input| {
            let (tensor, lanes) = lanes(input)?;
            Some(tensor.bits(lanes.start + nth.min(lanes.len() - 1)))
        };
        small(check, assignment, instance, &element)
    });
    if let Some((summary, text)) = small {
        let test = with_head(check.set, &text, &summary);
        return Refutation { summary, test };
    }
    let element = |input: &Input| {
        let (tensor, lanes) = lanes(input)?;
        (lanes.len() == 1).then(|| tensor.bits(lanes.start))
    };
    let dtype = want.1.dtype;
    let results = (dtype, want.1.bits(at), got.1.bits(at));
    let summary = summary(instance, &element, results);
    let test = whole(check.set, instance, &summary);
    Refutation { summary, test }
}

/// What an input has in the one place that counts; `None` where that is not one.
type Element<'a> = dyn Fn(&Input) -> Option<u64> + 'a;

fn number(dtype: DType, bits: u64) -> String {
    format!("{} ({dtype})", Number { dtype, bits })
}

fn summary(
    instance: &Instance,
    element: &Element<'_>,
    (dtype, want, got): (DType, u64, u64),
) -> String {
    let inputs: Vec<String> = instance
        .inputs
        .iter()
        .filter_map(|input| {
            let bits = element(input)?;
            let name = input.port.trim_end_matches("_in");
            Some(format!("{name} = {}", number(input.dtype, bits)))
        })
        .collect();
    let given = match inputs.is_empty() {
        true => String::new(),
        false => format!("{}: ", inputs.join(", ")),
    };
    format!(
        "{given}the left side gives {}, the right side {}",
        number(dtype, want),
        number(dtype, got)
    )
}

/// A program of the fewest elements on constants, if it shows a difference.
fn small(
    check: &Check<'_>,
    assignment: &Assignment,
    instance: &Instance,
    element: &Element<'_>,
) -> Option<(String, String)> {
    let constant = |port: &str| {
        let input = instance.inputs.iter().find(|input| input.port == port)?;
        element(input)
    };
    let form = &check.set.rules[0].forms[0];
    [Target::Trn2, Target::Trn3, Target::Trn1]
        .into_iter()
        .find_map(|target| {
            let shape = Shape {
                partitions: 1,
                columns: assignment.least_columns(),
                target,
            };
            let (text, _) = program(form, assignment, &shape, &constant)?;
            let ir = read(&text)?;
            let after = check.rewritten(&ir).ok()?;
            let run = |ir| {
                let simulation = Simulation::new(ir, Options::default()).ok()?;
                Some(simulation.run(&Inputs::new(), &mut |_| {}).ok()?.outputs)
            };
            let (left, right) = (run(&ir)?, run(&after)?);
            let mut pairs = left.iter().zip(&right);
            let results = pairs.find_map(|((_, want), (_, got))| {
                let mut differing = (0..want.len())
                    .filter(|&at| !same_value(want.dtype, want.bits(at), got.bits(at)));
                let at = differing.next()?;
                Some((want.dtype, want.bits(at), got.bits(at)))
            })?;
            Some((summary(instance, element, results), text))
        })
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
