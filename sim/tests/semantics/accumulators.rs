//! Row sums of the activation engine, in the two ways to have them written.

use bir_dialect::bir::num::{DType, from_f32, to_f32};
use bir_sim::random;

use crate::common::*;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[(
    sums_are_written_at_once_or_read_later,
    &["activation_reduce", "read_activation_accumulator"],
)];

/// The row sums of `(x * scale + bias)²`, from the first element on.
fn sums(x: &[f32], columns: usize, scale: f32, bias: &[f32]) -> Vec<f32> {
    x.chunks_exact(columns)
        .zip(bias)
        .map(|(row, bias)| {
            let mut sum = None;
            for x in row {
                let t = x * scale + bias;
                let squared = t * t;
                sum = Some(sum.map_or(squared, |sum: f32| sum + squared));
            }
            sum.expect("a column")
        })
        .collect()
}

#[test]
fn sums_are_written_at_once_or_read_later() {
    for (dtype, columns) in [(DType::F32, 1), (DType::F32, 70), (DType::Bf16, 33)] {
        let x = random::tensor(5, "x", dtype, &[9, columns as u64]);
        let b = random::tensor(6, "b", DType::F32, &[9, 1]);
        let want = sums(&values(&x), columns, 0.75, &values(&b));
        let square = "square %d, %s <- %x_t, scale 0.75, bias %b_t";
        let again = "activation square %d, reduce add reset %s <- %x_t, scale 0.75, bias %b_t";
        for (ops, result) in [
            (format!("activation_reduce {square}"), "%s"),
            (
                format!("activation_reduce {square}\nread_activation_accumulator %r"),
                "%r",
            ),
            (format!("{again}\nread_activation_accumulator %r"), "%r"),
        ] {
            let ops = format!(
                "%d = alloc sbuf<9x{columns}x{dtype}>\n%s = alloc sbuf<9x1xf32>\n%r = alloc sbuf<9x1xf32>\n\
                 {ops}\ntensor_copy %y_t <- {result}"
            );
            for to in [DType::F32, DType::Bf16] {
                let y = run_kernel(&[("x", &x), ("b", &b)], &format!("9x1x{to}"), &ops);
                let want: Vec<f32> = want
                    .iter()
                    .map(|&sum| {
                        let bits = from_f32(to, sum).expect("a number");
                        to_f32(to, bits).expect("a number")
                    })
                    .collect();
                assert_same(&values(&y), &want, &ops);
            }
        }
    }
}
