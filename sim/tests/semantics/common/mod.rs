//! What the tests share: programs from text, tensors from numbers.
#![allow(dead_code, unreachable_pub, clippy::expect_used, clippy::panic)]

mod text;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bir_dialect::bir::num::{DType, from_f32, from_f64, store_bits, to_f32};
use bir_dialect::bir::verify::Level;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::Ir;
use bir_sim::{Fault, Options, Simulation, Tensor};

pub use text::*;

thread_local! {
    /// Ops of the programs this thread has run to their end.
    static EXECUTED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Starts a new list of [`executed`] ops.
pub fn forget_executed() {
    EXECUTED.take();
}

/// Ops in programs that have been run to their end on this thread.
pub fn executed() -> BTreeSet<&'static str> {
    EXECUTED.with_borrow(Clone::clone)
}

/// Notes that a program has been run to its end.
pub fn note_executed(ir: &Ir) {
    let ops = ir.block_ops(ir.root_block());
    let inside = ops.flat_map(|op| ir.walk_op(op));
    let names = inside.filter_map(|op| Some(OpView::new(ir, op).def()?.name));
    EXECUTED.with_borrow_mut(|executed| executed.extend(names));
}

/// Reads and verifies a function's body.
pub fn program(target: &str, body: &str) -> Ir {
    let attrs = format!("target = \"{target}\"");
    clean(&module(&attrs, body), Level::Default)
}

/// Reads a function's body, on `trn3`, without verifying it.
pub fn unverified(body: &str) -> Ir {
    clean(&module("target = \"trn3\"", body), Level::Off)
}

/// What the verifier says about a body on `trn2`.
pub fn findings(body: &str) -> Vec<String> {
    let text = module("target = \"trn2\"", body);
    bir_dialect::read(&text, Level::Full)
        .err()
        .map_or_else(Vec::new, |refused| refused.messages().to_vec())
}

/// A tensor of these f32 values, converted.
pub fn tensor(dtype: DType, dims: &[u64], values: impl IntoIterator<Item = f32>) -> Tensor {
    bits(
        dtype,
        dims,
        values
            .into_iter()
            .map(|v| from_f32(dtype, v).expect("a number")),
    )
}

/// A tensor of these numbers, converted once.
pub fn wide(dtype: DType, dims: &[u64], values: impl IntoIterator<Item = f64>) -> Tensor {
    bits(
        dtype,
        dims,
        values
            .into_iter()
            .map(|v| from_f64(dtype, v).expect("a number")),
    )
}

/// A tensor of these bits.
pub fn bits(dtype: DType, dims: &[u64], values: impl IntoIterator<Item = u64>) -> Tensor {
    let size = dtype.size_bytes() as usize;
    let mut bytes = Vec::new();
    for value in values {
        bytes.resize(bytes.len() + size, 0);
        let at = bytes.len() - size;
        store_bits(dtype, value, &mut bytes[at..]).expect("room");
    }
    assert_eq!(
        bytes.len() as u64,
        dims.iter().product::<u64>() * size as u64
    );
    Tensor {
        dtype,
        dims: dims.to_vec(),
        bytes,
    }
}

/// Runs a body on inputs.
pub fn simulate(
    options: Options,
    target: &str,
    body: &str,
    inputs: &[(&str, Tensor)],
) -> Result<BTreeMap<String, Tensor>, Box<Fault>> {
    let ir = program(target, body);
    let inputs = inputs
        .iter()
        .map(|(name, t)| ((*name).to_owned(), t.clone()))
        .collect();
    let outcome = Simulation::new(&ir, options)?.run(&inputs, &mut |_| {})?;
    note_executed(&ir);
    Ok(outcome.outputs.into_iter().collect())
}

/// The one output `%y` of a body on trn2.
pub fn output(body: &str, inputs: &[(&str, Tensor)]) -> Tensor {
    let mut outputs = simulate(Options::default(), "trn2", body, inputs)
        .unwrap_or_else(|f| panic!("{body}\n{f}"));
    outputs.remove("y").expect("an output `y`")
}

/// The message a body ends with.
pub fn failure(body: &str, inputs: &[(&str, Tensor)]) -> String {
    match simulate(Options::default(), "trn2", body, inputs) {
        Ok(_) => panic!("the run went well:\n{body}"),
        Err(fault) => fault.to_string(),
    }
}

/// Values as f32.
pub fn values(tensor: &Tensor) -> Vec<f32> {
    (0..tensor.len())
        .map(|i| to_f32(tensor.dtype, tensor.bits(i)).expect("a number"))
        .collect()
}

/// A body that loads inputs to tiles of the same name with `_t`, runs `ops`, and saves `%y_t`.
pub fn kernel(inputs: &[(&str, &Tensor)], y: &str, ops: &str) -> String {
    let mut body = String::new();
    for (name, t) in inputs {
        body.push_str(&format!(
            "%{name} = alloc dram<{}> {{kind = input}}\n",
            t.shape_text()
        ));
    }
    body.push_str(&format!(
        "%y = alloc dram<{y}> {{kind = output}}\n%y_t = alloc sbuf<{y}>\n"
    ));
    for (name, t) in inputs {
        body.push_str(&format!("%{name}_t = alloc sbuf<{}>\n", t.shape_text()));
    }
    let (allocs, rest): (Vec<&str>, Vec<&str>) = ops
        .lines()
        .map(str::trim)
        .partition(|line| line.contains("= alloc "));
    body.push_str(&allocs.join("\n"));
    body.push('\n');
    for (name, _) in inputs {
        body.push_str(&format!("load %{name}_t <- %{name}\n"));
    }
    body.push_str(&rest.join("\n"));
    body.push_str("\nsave %y <- %y_t\n");
    body
}

/// [`kernel`], run.
pub fn run_kernel(inputs: &[(&str, &Tensor)], y: &str, ops: &str) -> Tensor {
    let body = kernel(inputs, y, ops);
    let given: Vec<(&str, Tensor)> = inputs
        .iter()
        .map(|(name, t)| (*name, (*t).clone()))
        .collect();
    output(&body, &given)
}

/// As [`simulate`] on `trn3`, of a body the verifier refuses.
pub fn simulate_unverified(
    options: Options,
    body: &str,
    inputs: &[(&str, Tensor)],
) -> Result<BTreeMap<String, Tensor>, Box<Fault>> {
    let ir = unverified(body);
    let inputs = inputs
        .iter()
        .map(|(name, t)| ((*name).to_owned(), t.clone()))
        .collect();
    let outcome = Simulation::new(&ir, options)?.run(&inputs, &mut |_| {})?;
    note_executed(&ir);
    Ok(outcome.outputs.into_iter().collect())
}

/// [`kernel`], run although the verifier refuses it.
pub fn run_unverified(inputs: &[(&str, &Tensor)], y: &str, ops: &str) -> Tensor {
    let given: Vec<(&str, Tensor)> = inputs
        .iter()
        .map(|(name, t)| (*name, (*t).clone()))
        .collect();
    let mut outputs = simulate_unverified(Options::default(), &kernel(inputs, y, ops), &given)
        .unwrap_or_else(|f| panic!("{ops}\n{f}"));
    outputs.remove("y").expect("an output `y`")
}

/// Whether two values are the same: bits, or both NaN.
pub fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Asserts that all elements are the same.
pub fn assert_same(found: &[f32], want: &[f32], what: &str) {
    assert_eq!(found.len(), want.len(), "{what}");
    for (i, (f, w)) in found.iter().zip(want).enumerate() {
        assert!(same(*f, *w), "{what}: element {i} is {f:e}, expected {w:e}");
    }
}
