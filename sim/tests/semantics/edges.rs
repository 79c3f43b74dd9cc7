//! The scenarios S1 to S8 once more, on the numbers generated programs get: infinities, NaN,
//! subnormals, the largest, extremes of integers. What is expected is written out number by number.

use crate::common::*;
use bir_dialect::bir::num::{DType, to_f32, to_f64};
use bir_sim::Tensor;
use bir_sim::random;

/// Generated tensors of a shape, special values in each that is of a float dtype.
fn generated(dtype: DType, dims: &[u64]) -> Vec<Tensor> {
    let special = |tensor: &Tensor| {
        (0..tensor.len()).any(|at| to_f64(dtype, tensor.bits(at)).is_some_and(|v| !v.is_finite()))
    };
    let tensors: Vec<Tensor> = (0..400)
        .map(|seed| random::tensor(seed, "x", dtype, dims))
        .filter(|tensor| dtype.float_format().is_none() || special(tensor))
        .take(6)
        .collect();
    assert_eq!(
        tensors.len(),
        6,
        "{dtype} has special values in few tensors"
    );
    tensors
}

/// Each with the next one.
fn pairs(tensors: &[Tensor]) -> impl Iterator<Item = (&Tensor, &Tensor)> {
    tensors.iter().zip(tensors.iter().cycle().skip(1))
}

#[test]
fn s1_scale_and_bias() {
    for x in generated(DType::F32, &[16, 32]) {
        let y = run_kernel(
            &[("x", &x)],
            "16x32xf32",
            "activation copy %y_t <- %x_t, scale -0.5, bias 3.0",
        );
        let want: Vec<f32> = values(&x).iter().map(|v| v * -0.5 + 3.0).collect();
        assert_same(&values(&y), &want, "copy");
    }
}

#[test]
fn s2_and_s6_products_added_to_what_is_there() {
    for (a, b) in pairs(&generated(DType::F32, &[16, 32])) {
        let y = run_kernel(
            &[("a", a), ("b", b)],
            "32x32xf32",
            "%p = alloc psum<32x32xf32>\nmatmult %p <- stationary %a_t, moving %b_t\n\
             matmult %p <- stationary %b_t, moving %a_t {accumulate}\ntensor_copy %y_t <- %p",
        );
        let (a, b) = (values(a), values(b));
        let product = |a: &[f32], b: &[f32], i: usize, j: usize| {
            (1..16).fold(a[i] * b[j], |sum, k| {
                a[k * 32 + i].mul_add(b[k * 32 + j], sum)
            })
        };
        let want: Vec<f32> = (0..32 * 32)
            .map(|at| (at / 32, at % 32))
            .map(|(i, j)| product(&a, &b, i, j) + product(&b, &a, i, j))
            .collect();
        assert_same(&values(&y), &want, "products");
    }
}

#[test]
fn s3_reductions() {
    for dtype in [
        DType::F32,
        DType::Bf16,
        DType::F16,
        DType::F8E5M2,
        DType::F8E4M3,
    ] {
        for x in generated(dtype, &[16, 32]) {
            for op in ["max", "min", "add"] {
                let y = run_kernel(
                    &[("x", &x)],
                    "16x1xf32",
                    &format!("tensor_reduce {op} %y_t <- %x_t {{axes = [1]}}"),
                );
                let x = values(&x);
                for (row, found) in x.chunks(32).zip(values(&y)) {
                    let nan = row.iter().any(|v| v.is_nan());
                    let want = match op {
                        "add" => row[1..].iter().fold(row[0], |sum, v| sum + v),
                        _ if nan => f32::NAN,
                        "max" => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                        _ => row.iter().copied().fold(f32::INFINITY, f32::min),
                    };
                    assert!(
                        want == found || want.is_nan() && found.is_nan(),
                        "{op} of {dtype}: {found} of {row:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn s4_integers_on_pool() {
    for (a, b) in pairs(&generated(DType::I32, &[16, 32])) {
        for op in ["add", "subtract", "multiply", "divide_int", "mod_int"] {
            let y = run_kernel(
                &[("a", a), ("b", b)],
                "16x32xi32",
                &format!("tensor_tensor {op} %y_t <- %a_t, %b_t {{engine = pool}}"),
            );
            for at in 0..y.len() {
                let number = |tensor: &Tensor| i128::from(tensor.bits(at) as u32 as i32);
                let (a, b, found) = (number(a), number(b), number(&y));
                let floor = if b == 0 { 0 } else { (a - (a % b + b) % b) / b };
                let exact = match op {
                    "add" => a + b,
                    "subtract" => a - b,
                    "multiply" => a * b,
                    "divide_int" => floor,
                    _ if b == 0 => 0,
                    _ => a - floor * b,
                };
                assert_eq!(found, i128::from(exact as u32 as i32), "{a} {op} {b}");
            }
        }
    }
}

#[test]
fn s4_integer_powers_wrap() {
    let bases = [3i64, 4, -1, -1, 1, 0, 0, -2, 7, 2, 2, 5, -3, 0x7fff_ffff];
    let exponents = [
        100i64,
        -1,
        -3,
        -4,
        -7,
        -2,
        0,
        31,
        65,
        31,
        32,
        0,
        0x7fff_ffff,
        2,
    ];
    for (dtype, signed) in [(DType::I32, true), (DType::U32, false)] {
        let ints = |values: &[i64]| bits(dtype, &[1, 14], values.iter().map(|&v| v as u32 as u64));
        let y = run_kernel(
            &[("a", &ints(&bases)), ("b", &ints(&exponents))],
            &format!("1x14x{dtype}"),
            "tensor_tensor power %y_t <- %a_t, %b_t {engine = pool}",
        );
        for (at, (&base, &exponent)) in bases.iter().zip(&exponents).enumerate() {
            let want = if signed && exponent < 0 {
                match base {
                    1 => 1,
                    -1 => (exponent % 2 * 2 + 1) as u32,
                    _ => 0,
                }
            } else {
                // Powers of a residue return: by squares of the base, bit by bit from the top.
                let exponent = exponent as u32;
                (0..32).rev().fold(1u32, |power, bit| {
                    let square = power.wrapping_mul(power);
                    if exponent >> bit & 1 == 1 {
                        square.wrapping_mul(base as u32)
                    } else {
                        square
                    }
                })
            };
            assert_eq!(y.bits(at) as u32, want, "{dtype}: {base} to {exponent}");
        }
    }
}

/// The bits of the number nearest to `x`, the even ones of two: by looking at all numbers.
fn nearest(dtype: DType, x: f64) -> u64 {
    let distance = |&bits: &u64| {
        let value = to_f64(dtype, bits).filter(|value| value.is_finite());
        let signs_differ = value == Some(0.0) && bits != 0 && !x.is_sign_negative()
            || value == Some(0.0) && bits == 0 && x.is_sign_negative();
        let far = value.map_or(f64::INFINITY, |value| (value - x).abs());
        (far, signs_differ, bits & 1)
    };
    (0..1u64 << dtype.bits())
        .min_by(|a, b| {
            let (a, b) = (distance(a), distance(b));
            a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
        })
        .unwrap_or(0)
}

#[test]
fn s5_conversions() {
    for dtype in [DType::F8E5M2, DType::F8E4M3, DType::F8E4M3FN, DType::I8] {
        let largest = (0..256)
            .filter_map(|bits| to_f64(dtype, bits))
            .filter(|value| value.is_finite())
            .fold(0.0, f64::max);
        for x in generated(DType::F32, &[16, 32]) {
            let y = run_kernel(
                &[("x", &x)],
                &format!("16x32x{dtype}"),
                "tensor_copy %y_t <- %x_t",
            );
            for (at, &x) in values(&x).iter().enumerate() {
                let found = y.bits(at);
                let value = to_f64(dtype, found).unwrap_or(f64::NAN);
                if x.is_nan() {
                    assert!(
                        value.is_nan() || dtype == DType::I8 && value == 0.0,
                        "{dtype}"
                    );
                } else if f64::from(x).abs() > largest {
                    // The largest number or an infinity, never one of the other sign or less.
                    assert!(
                        value.abs() >= largest && (value < 0.0) == (x < 0.0) || value.is_nan(),
                        "{dtype} of {x} is {value}"
                    );
                } else {
                    assert_eq!(found, nearest(dtype, f64::from(x)), "{dtype} of {x:e}");
                }
            }
        }
    }
}

#[test]
fn s7_extremes() {
    for (a, b) in pairs(&generated(DType::F32, &[16, 32])) {
        for op in ["max", "min"] {
            let y = run_kernel(
                &[("a", a), ("b", b)],
                "16x32xf32",
                &format!("tensor_tensor {op} %y_t <- %a_t, %b_t"),
            );
            for ((a, b), found) in values(a).into_iter().zip(values(b)).zip(values(&y)) {
                let larger = (a > b) == (op == "max");
                let want = if larger { a } else { b };
                assert!(
                    if a.is_nan() || b.is_nan() {
                        found.is_nan()
                    } else {
                        found == want
                    },
                    "{op} of {a:e} and {b:e} is {found:e}"
                );
            }
        }
        let y = run_kernel(
            &[("a", a)],
            "16x32xf32",
            "tensor_scalar max min %y_t <- %a_t, -0.5, 0.5",
        );
        for (a, found) in values(a).into_iter().zip(values(&y)) {
            let clamped = if a < -0.5 { -0.5 } else { a };
            let clamped = if clamped > 0.5 { 0.5 } else { clamped };
            assert!(
                found == clamped || a.is_nan() && found.is_nan(),
                "{a:e} becomes {found:e}"
            );
        }
    }
}

#[test]
fn s8_small_integers() {
    for dtype in [DType::I8, DType::U8] {
        let (low, high) = if dtype == DType::I8 {
            (-128.0, 127.0)
        } else {
            (0.0, 255.0)
        };
        for (a, b) in pairs(&generated(dtype, &[16, 32])) {
            for op in ["add", "subtract", "multiply", "left_shift", "right_shift"] {
                let y = run_kernel(
                    &[("a", a), ("b", b)],
                    &format!("16x32x{dtype}"),
                    &format!("tensor_tensor {op} %y_t <- %a_t, %b_t"),
                );
                for at in 0..y.len() {
                    let number =
                        |tensor: &Tensor| to_f32(dtype, tensor.bits(at)).unwrap_or(f32::NAN);
                    let (x, by, found) = (number(a), number(b), number(&y));
                    let shifted = if (0.0..8.0).contains(&by) {
                        let factor = 2f32.powi(by as i32);
                        let x = a.bits(at) as f32;
                        let bits = if op == "left_shift" {
                            x * factor
                        } else {
                            x / factor
                        };
                        to_f32(dtype, bits as u64 & 0xff).unwrap_or(f32::NAN)
                    } else {
                        0.0
                    };
                    let want = match op {
                        "add" => (x + by).clamp(low, high),
                        "subtract" => (x - by).clamp(low, high),
                        "multiply" => (x * by).clamp(low, high),
                        _ => shifted,
                    };
                    assert_eq!(found, want, "{dtype} {x} {op} {by}");
                }
            }
        }
    }
}

#[test]
fn s4_an_unsigned_base_has_negative_powers_too() {
    let ints = |dtype, values: [i64; 4]| bits(dtype, &[1, 4], values.map(|v| v as u32 as u64));
    let bases = ints(DType::U32, [3, 1, 0, 0xffff_ffff]);
    let exponents = ints(DType::I32, [-1, -5, -2, -1]);
    let y = run_kernel(
        &[("a", &bases), ("b", &exponents)],
        "1x4xu32",
        "tensor_tensor power %y_t <- %a_t, %b_t {engine = pool}",
    );
    assert_eq!(
        (0..4).map(|at| y.bits(at)).collect::<Vec<_>>(),
        [0, 1, 0, 0]
    );
}

#[test]
fn s4_odd_functions_keep_the_sign_of_zero() {
    let x = tensor(DType::F32, &[1, 2], [0.0, -0.0]);
    for func in [
        "sin",
        "tanh",
        "erf",
        "arctan",
        "gelu",
        "gelu_apprx_tanh",
        "silu",
        "mish",
        "sqrt",
    ] {
        let y = run_kernel(
            &[("x", &x)],
            "1x2xf32",
            &format!("activation {func} %y_t <- %x_t"),
        );
        let signs = [y.bits(0), y.bits(1)];
        assert_eq!(signs, [0, 0x8000_0000], "{func}");
    }
}

#[test]
fn both_scalars_of_integer_arithmetic_may_be_tiles() {
    let ints = |dims: &[u64], values: Vec<i64>| {
        bits(
            DType::I32,
            dims,
            values.into_iter().map(|v| v as u32 as u64),
        )
    };
    let x = ints(&[2, 3], vec![1, -2, 3, 0x4000_0000, 5, -6]);
    let (a, b) = (ints(&[2, 1], vec![3, 4]), ints(&[2, 1], vec![-1, 7]));
    let inputs = [("x", &x), ("a", &a), ("b", &b)];
    let y = run_kernel(
        &inputs,
        "2x3xi32",
        "tensor_scalar_addr multiply add %y_t <- %x_t, %a_t, %b_t",
    );
    let found: Vec<i32> = (0..6).map(|at| y.bits(at) as u32 as i32).collect();
    assert_eq!(found, [2, -7, 8, 7, 27, -17]);
    let y = run_kernel(
        &inputs,
        "2x3xi32",
        "tensor_scalar bitwise_and bitwise_xor %y_t <- %x_t, %a_t, %b_t",
    );
    let found: Vec<i32> = (0..6).map(|at| y.bits(at) as u32 as i32).collect();
    assert_eq!(found, [-2, -3, -4, 7, 3, 7]);
}
