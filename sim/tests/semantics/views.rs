//! Operands seen through accesses of every form, with the naive list of the elements they visit.
#![allow(dead_code, unreachable_pub, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bir_dialect::bir::num::{DType, from_f32, same_value, to_f32};
use bir_sim::{Lanes, Options, Tensor, random};

use crate::common::{bits, simulate, simulate_unverified};

/// How a row is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// All of it, in order.
    Whole,
    /// A part in the middle.
    Part,
    /// Every second element.
    Strided,
    /// Backwards.
    Reversed,
    /// Two levels, the inner one the longer step.
    Turned,
    /// One element again and again.
    Repeated,
}

/// Forms a destination may have.
pub const WRITES: [Form; 5] = [
    Form::Whole,
    Form::Part,
    Form::Strided,
    Form::Reversed,
    Form::Turned,
];
/// Forms a source may have.
pub const READS: [Form; 6] = [
    Form::Whole,
    Form::Part,
    Form::Strided,
    Form::Reversed,
    Form::Turned,
    Form::Repeated,
];

/// A tile of two dimensions and a walk over it.
#[derive(Clone)]
pub struct Operand {
    pub name: &'static str,
    /// The whole tile.
    pub tensor: Tensor,
    pub start: usize,
    pub rows: usize,
    pub off: i64,
    pub pairs: Vec<(i64, usize)>,
}

impl Operand {
    /// All of a tensor of two dimensions.
    pub fn whole(name: &'static str, tensor: Tensor) -> Operand {
        let (rows, columns) = (tensor.dims[0] as usize, tensor.dims[1] as usize);
        Operand {
            name,
            tensor,
            start: 0,
            rows,
            off: 0,
            pairs: vec![(1, columns)],
        }
    }

    /// A walk of that form over random values.
    pub fn new(
        name: &'static str,
        dtype: DType,
        (rows, columns): (usize, usize),
        form: Form,
        seed: u64,
    ) -> Operand {
        let (width, off, pairs) = match form {
            Form::Whole => (columns, 0, vec![(1, columns)]),
            Form::Part => (columns + 5, 3, vec![(1, columns)]),
            Form::Strided => (2 * columns + 1, 1, vec![(2, columns)]),
            Form::Reversed => (columns + 2, columns as i64, vec![(-1, columns)]),
            Form::Turned if columns.is_multiple_of(2) => {
                let half = columns / 2;
                (columns + 1, 1, vec![(1, half), (half as i64, 2)])
            }
            Form::Turned => (columns + 1, 1, vec![(1, columns)]),
            Form::Repeated => (3, 2, vec![(0, columns)]),
        };
        // Tiles of up to a quadrant may start in any.
        let start = if rows <= 32 {
            32 * (seed as usize % 4)
        } else {
            0
        };
        let dims = [(start + rows) as u64, width as u64];
        Operand {
            name,
            tensor: random::tensor(seed, name, dtype, &dims),
            start,
            rows,
            off,
            pairs,
        }
    }

    /// The same walk over other elements.
    pub fn filled(mut self, f: impl Fn(usize) -> u64) -> Operand {
        let t = &self.tensor;
        self.tensor = bits(t.dtype, &t.dims, (0..t.len()).map(f));
        self
    }

    pub fn dtype(&self) -> DType {
        self.tensor.dtype
    }

    /// Elements of a row.
    pub fn columns(&self) -> usize {
        self.pairs.iter().map(|pair| pair.1).product()
    }

    /// `%x_t[p 0:4, off 1, 2 x 8]`
    pub fn text(&self) -> String {
        let mut text = format!(
            "%{}_t[p {}:{}, off {}",
            self.name,
            self.start,
            self.start + self.rows,
            self.off
        );
        for (step, count) in &self.pairs {
            let _ = write!(text, ", {step} x {count}");
        }
        text.push(']');
        text
    }

    /// Positions in the tile of the elements of a row.
    pub fn visited(&self, row: usize) -> Vec<usize> {
        let width = self.tensor.dims[1] as i64;
        let mut list = vec![(self.start + row) as i64 * width + self.off];
        for &(step, count) in &self.pairs {
            list = list
                .iter()
                .flat_map(|at| (0..count as i64).map(move |i| at + step * i))
                .collect();
        }
        list.into_iter().map(|at| at as usize).collect()
    }

    /// Bits of each row.
    pub fn bits(&self) -> Vec<Vec<u64>> {
        (0..self.rows)
            .map(|row| {
                let visited = self.visited(row).into_iter();
                visited.map(|at| self.tensor.bits(at)).collect()
            })
            .collect()
    }

    /// Values of each row.
    pub fn values(&self) -> Vec<Vec<f32>> {
        let dtype = self.dtype();
        self.bits()
            .iter()
            .map(|row| {
                row.iter()
                    .map(|&bits| to_f32(dtype, bits).expect("a number"))
                    .collect()
            })
            .collect()
    }

    /// The tile with these bits written through the walk; `None` leaves an element.
    pub fn with(&self, rows: &[Vec<Option<u64>>]) -> Tensor {
        let t = &self.tensor;
        let mut all: Vec<u64> = (0..t.len()).map(|at| t.bits(at)).collect();
        assert_eq!(rows.len(), self.rows);
        for (row, values) in rows.iter().enumerate() {
            let visited = self.visited(row);
            assert_eq!(visited.len(), values.len());
            for (at, value) in visited.into_iter().zip(values) {
                if let Some(value) = value {
                    all[at] = *value;
                }
            }
        }
        bits(t.dtype, &t.dims, all)
    }

    /// The tile with these numbers written through the walk, converted.
    pub fn with_values(&self, rows: &[Vec<f32>]) -> Tensor {
        let convert = |x: &f32| Some(from_f32(self.dtype(), *x).expect("a number"));
        let rows: Vec<Vec<Option<u64>>> = rows
            .iter()
            .map(|row| row.iter().map(convert).collect())
            .collect();
        self.with(&rows)
    }

    /// The tile with these integers written through the walk.
    pub fn with_ints(&self, rows: &[Vec<i64>]) -> Tensor {
        let mask = self.dtype().mask();
        let rows: Vec<Vec<Option<u64>>> = rows
            .iter()
            .map(|row| row.iter().map(|&x| Some(x as u64 & mask)).collect())
            .collect();
        self.with(&rows)
    }
}

/// The body that loads every operand's tile, runs `ops` and saves every tile to `%<name>_y`.
pub fn body(operands: &[&Operand], ops: &str, placed: bool) -> String {
    let mut text = String::new();
    for operand in operands {
        let shape = operand.tensor.shape_text();
        let name = operand.name;
        let _ = writeln!(text, "%{name} = alloc dram<{shape}> {{kind = input}}");
        let _ = writeln!(text, "%{name}_y = alloc dram<{shape}> {{kind = output}}");
    }
    let mut byte = 0u64;
    for operand in operands {
        let shape = operand.tensor.shape_text();
        let place = if placed {
            format!(" at [0, {byte:#x}]")
        } else {
            String::new()
        };
        let _ = writeln!(text, "%{}_t = alloc sbuf<{shape}>{place}", operand.name);
        let row = operand.tensor.bytes.len() as u64 / operand.tensor.dims[0].max(1);
        byte += row.next_multiple_of(64);
    }
    let is_alloc = |line: &&str| line.contains("= alloc ");
    for line in ops.lines().map(str::trim).filter(is_alloc) {
        let _ = writeln!(text, "{line}");
    }
    for operand in operands {
        let name = operand.name;
        let _ = writeln!(text, "load %{name}_t <- %{name}");
    }
    for line in ops.lines().map(str::trim).filter(|line| !is_alloc(line)) {
        let _ = writeln!(text, "{line}");
    }
    for operand in operands {
        let name = operand.name;
        let _ = writeln!(text, "save %{name}_y <- %{name}_t");
    }
    text
}

/// Every tile after `ops`. Logical and physical memory, every instruction set and two threads give
/// the same, or this fails.
pub fn run(target: &str, operands: &[&Operand], ops: &str) -> BTreeMap<String, Tensor> {
    run_with(operands, ops, |options, body, inputs| {
        simulate(options, target, body, inputs)
    })
}

/// As [`run`] on `trn3`, of instructions the verifier refuses.
pub fn run_refused(operands: &[&Operand], ops: &str) -> BTreeMap<String, Tensor> {
    run_with(operands, ops, simulate_unverified)
}

fn run_with(
    operands: &[&Operand],
    ops: &str,
    simulate: impl Fn(
        Options,
        &str,
        &[(&str, Tensor)],
    ) -> Result<BTreeMap<String, Tensor>, Box<bir_sim::Fault>>
    + Sync,
) -> BTreeMap<String, Tensor> {
    let inputs: Vec<(&str, Tensor)> = operands
        .iter()
        .map(|operand| (operand.name, operand.tensor.clone()))
        .collect();
    let once = |placed: bool, lanes: Lanes| {
        let options = Options {
            lanes,
            ..Options::default()
        };
        let body = body(operands, ops, placed);
        simulate(options, &body, &inputs).unwrap_or_else(|f| panic!("{body}\n{f}"))
    };
    let found = once(false, Lanes::best());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| once(true, Lanes::baseline()));
        assert_eq!(other.join().expect("no panic"), found, "{ops}");
    });
    found
        .into_iter()
        .map(|(name, t)| (name.trim_end_matches("_y").to_owned(), t))
        .collect()
}

/// The message `ops` end with.
pub fn failure(target: &str, operands: &[&Operand], ops: &str) -> String {
    let inputs: Vec<(&str, Tensor)> = operands
        .iter()
        .map(|operand| (operand.name, operand.tensor.clone()))
        .collect();
    let body = body(operands, ops, false);
    match simulate(Options::default(), target, &body, &inputs) {
        Ok(_) => panic!("the run went well:\n{body}"),
        Err(fault) => fault.to_string(),
    }
}

/// Asserts that two tensors hold the same values, any NaN being any NaN.
pub fn assert_tensor(found: &Tensor, want: &Tensor, what: &str) {
    assert_eq!(
        (found.dtype, &found.dims),
        (want.dtype, &want.dims),
        "{what}"
    );
    for at in 0..want.len() {
        let (f, w) = (found.bits(at), want.bits(at));
        assert!(
            f == w || same_value(want.dtype, f, w),
            "{what}: element {} is {f:#x}, expected {w:#x}",
            want.index_text(at)
        );
    }
}
