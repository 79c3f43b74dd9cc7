//! The smallest program that shows a rule to be false.

use bir_dialect::bir::num::{DType, Number, is_nan, to_f64};
use bir_sim::Inputs;
use bir_sim::Tensor;

use super::program::{Extras, Input, Instance, Shape};
use super::sides::{Judged, Sides, Watched};
use super::space::Assignment;
use super::{Check, Refutation};
use crate::rule::{Flags, Form};

/// Elements of a row tried one by one.
const MOST_TRIED: usize = 64;

/// How hard to grasp the inputs of a result are: the least is shown.
pub(super) fn cost(instance: &Instance, given: &Inputs, of: &Tensor, at: usize) -> u64 {
    instance
        .inputs
        .iter()
        .filter_map(|input| Some((input, given.get(&input.port)?)))
        .flat_map(|(input, tensor)| {
            let lanes = instance.lanes(at, of, tensor);
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
    (form, assignment): (&Form, &Assignment),
    instance: &Instance,
    given: &Inputs,
    (want, got): (&(String, Tensor), &(String, Tensor)),
    at: usize,
) -> Refutation {
    let lanes = |input: &Input| {
        let tensor = given.get(&input.port)?;
        Some((tensor, instance.lanes(at, &want.1, tensor)))
    };
    let widest = instance
        .inputs
        .iter()
        .filter_map(|input| Some(lanes(input)?.1.len()));
    let widest = widest.max().unwrap_or(1).min(MOST_TRIED);
    // A row that gives a difference mostly has a few neighbours that show it alone.
    let small = (0..widest).find_map(|nth| {
        let elements = |small: &Input| {
            let input = instance.inputs.iter().find(|one| one.port == small.port)?;
            let (tensor, lanes) = lanes(input)?;
            let count: usize = match lanes.len() {
                // One stands for all.
                1 => 1,
                _ => small.dims.iter().product(),
            };
            let place = |at: usize| lanes.start + (nth + at) % lanes.len();
            Some((0..count).map(|at| tensor.bits(place(at))).collect())
        };
        small(check, form, assignment, &elements)
    });
    if let Some((summary, text)) = small {
        let test = with_head(check, &text, &summary);
        return Refutation { summary, test };
    }
    let elements = |input: &Input| {
        let (tensor, lanes) = lanes(input)?;
        (lanes.len() == 1).then(|| vec![tensor.bits(lanes.start)])
    };
    let dtype = want.1.dtype;
    let results = (dtype, want.1.bits(at), got.1.bits(at));
    let summary = summary(instance, &elements, results);
    let test = whole(check, instance, &summary);
    Refutation { summary, test }
}

/// The elements of an input that count; `None` where that is too many.
type Elements<'a> = dyn Fn(&Input) -> Option<Vec<u64>> + 'a;

fn number(dtype: DType, bits: u64) -> String {
    format!("{} ({dtype})", Number { dtype, bits })
}

fn numbers(dtype: DType, list: &[u64]) -> String {
    match list {
        [bits] => number(dtype, *bits),
        _ => {
            let list: Vec<String> = list
                .iter()
                .map(|&bits| Number { dtype, bits }.to_string())
                .collect();
            format!("[{}] ({dtype})", list.join(", "))
        }
    }
}

fn summary(
    instance: &Instance,
    elements: &Elements<'_>,
    (dtype, want, got): (DType, u64, u64),
) -> String {
    let inputs: Vec<String> = instance
        .inputs
        .iter()
        .filter_map(|input| {
            let list = elements(input)?;
            let name = input.port.trim_end_matches("_in");
            Some(format!("{name} = {}", numbers(input.dtype, &list)))
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
    form: &Form,
    assignment: &Assignment,
    elements: &Elements<'_>,
) -> Option<(String, String)> {
    let (partitions, columns) = assignment.twist.least(form);
    let shape = Shape {
        partitions,
        columns,
        ..Shape::of(form, columns)
    };
    shape.on_targets().find_map(|shape| {
        let extras = Extras {
            constant: elements,
            watched: false,
        };
        let instance = Instance::build(form, assignment, shape, &extras)?;
        let after = check.rewritten(&instance.ir).ok()?;
        let watched = Watched::of(check, form, assignment, shape, &extras);
        // Constants are given to nobody, but looked at.
        let given: Inputs = instance
            .inputs
            .iter()
            .filter_map(|input| Some((input.port.clone(), constant(input, &elements(input)?))))
            .collect();
        let sides = Sides::new(&instance, &after, &watched)?;
        let Judged::Results {
            wanted,
            found,
            apart,
        } = sides.judge(check, &given)
        else {
            return None;
        };
        let &(output, at) = apart.first()?;
        let (want, got) = (&wanted[output].1, &found[output].1);
        let results = (want.dtype, want.bits(at), got.bits(at));
        Some((summary(&instance, elements, results), instance.text))
    })
}

/// A tensor of an input's shape with those elements; one stands for all.
fn constant(input: &Input, elements: &[u64]) -> Tensor {
    let size = input.dtype.size_bytes() as usize;
    let count: usize = input.dims.iter().product();
    let bytes = (0..count).flat_map(|at| {
        let bits = elements[at % elements.len()].to_le_bytes();
        bits.into_iter().take(size)
    });
    Tensor {
        dtype: input.dtype,
        dims: input.dims.iter().map(|&dim| dim as u64).collect(),
        bytes: bytes.collect(),
    }
}

/// All of an instance, on random inputs.
pub(super) fn whole(check: &Check<'_>, instance: &Instance, summary: &str) -> String {
    with_head(check, &instance.text, summary)
}

fn with_head(check: &Check<'_>, text: &str, summary: &str) -> String {
    let rule = &check.set.rules[0];
    let patterns = match &check.source.file {
        Some(file) => format!("--patterns %S/{file} "),
        None => String::new(),
    };
    let allowed: Vec<&str> = Flags::NAMES
        .into_iter()
        .filter(|name| check.allowed.get(name) == Some(true))
        .collect();
    let apply = match allowed.is_empty() {
        true => format!("--apply-patterns=set={}", check.source.set),
        false => format!(
            "--apply-patterns='set={} allow={}'",
            check.source.set,
            allowed.join(",")
        ),
    };
    format!(
        "// RUN: %bir-opt {patterns}{apply} --validate=end %s\n\
         // Rule `{}` must not fire here: {summary}\n{text}",
        rule.name,
    )
}
