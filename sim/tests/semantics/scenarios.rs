//! Faults that users of such simulators met, S1 to S8: each kind, not only the example.

use crate::common::*;
use bir_dialect::bir::num::{DType, convert, from_f64, to_f32};

#[test]
fn s1_activation_copy_with_scale_and_bias_is_no_identity() {
    let x = tensor(DType::F32, &[4, 8], (0..32).map(|i| i as f32 - 7.5));
    for func in ["copy", "identity"] {
        let y = run_kernel(
            &[("x", &x)],
            "4x8xf32",
            &format!("activation {func} %y_t <- %x_t, scale 2.0, bias 1.0"),
        );
        let want: Vec<f32> = values(&x).iter().map(|v| v * 2.0 + 1.0).collect();
        assert_same(&values(&y), &want, func);
        let plain = run_kernel(
            &[("x", &x)],
            "4x8xf32",
            &format!("activation {func} %y_t <- %x_t"),
        );
        assert_eq!(plain.bytes, x.bytes);
    }
}

#[test]
fn s1_an_absent_bias_keeps_the_sign_of_zero() {
    let x = tensor(DType::F32, &[1, 2], [-0.0, 0.0]);
    let y = run_kernel(&[("x", &x)], "1x2xf32", "activation copy %y_t <- %x_t");
    assert_eq!(y.bytes, x.bytes);
}

#[test]
fn s2_matmult_contracts_partitions_of_both_sides() {
    let (k, m, n) = (5usize, 3usize, 7usize);
    let a = tensor(
        DType::F32,
        &[5, 3],
        (0..k * m).map(|i| (i as f32 * 0.37).sin()),
    );
    let b = tensor(
        DType::F32,
        &[5, 7],
        (0..k * n).map(|i| (i as f32 * 0.11).cos()),
    );
    let y = run_kernel(
        &[("a", &a), ("b", &b)],
        "3x7xf32",
        "%p = alloc psum<3x7xf32>\nmatmult %p <- stationary %a_t, moving %b_t\ntensor_copy %y_t <- %p",
    );
    let (a, b) = (values(&a), values(&b));
    let mut want = Vec::new();
    for i in 0..m {
        for j in 0..n {
            let mut acc = a[i] * b[j];
            for k in 1..k {
                acc = a[k * m + i].mul_add(b[k * n + j], acc);
            }
            want.push(acc);
        }
    }
    assert_same(&values(&y), &want, "product");
}

#[test]
fn s3_reductions_work_on_values_and_nan_survives() {
    for dtype in [DType::Bf16, DType::F8E5M2, DType::F8E4M3, DType::F16] {
        // As bits, -1 would be larger than 1.
        let x = tensor(
            dtype,
            &[2, 4],
            [1.0, -1.0, 0.5, -2.0, 1.0, f32::NAN, 3.0, 0.0],
        );
        for (op, first) in [("max", 1.0), ("min", -2.0), ("add", -1.5)] {
            let y = run_kernel(
                &[("x", &x)],
                "2x1xf32",
                &format!("tensor_reduce {op} %y_t <- %x_t {{axes = [1]}}"),
            );
            let found = values(&y);
            assert_eq!(found[0], first, "{op} of {dtype}");
            assert!(found[1].is_nan(), "{op} of {dtype}");
        }
    }
}

#[test]
fn s4_integer_division_is_exact_on_pool() {
    let a: Vec<i64> = vec![
        1_000_000_007,
        -1_000_000_007,
        2_147_483_647,
        -2_147_483_648,
        16_777_217,
        7,
        -7,
        0,
    ];
    let b: Vec<i64> = vec![3, 3, 10, 10, 2, -2, 2, 5];
    let ints = |values: &[i64]| bits(DType::I32, &[1, 8], values.iter().map(|&v| v as u64));
    let (x, z) = (ints(&a), ints(&b));
    type Exact = fn(i64, i64) -> i64;
    let cases: [(&str, Exact); 4] = [
        ("divide_int", |a, b| {
            a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0)
        }),
        ("mod_int", |a, b| {
            let r = a % b;
            if r != 0 && (r < 0) != (b < 0) {
                r + b
            } else {
                r
            }
        }),
        ("multiply", |a, b| {
            i64::from((a as i32).wrapping_mul(b as i32))
        }),
        ("add", |a, b| i64::from((a as i32).wrapping_add(b as i32))),
    ];
    for (op, exact) in cases {
        let y = run_kernel(
            &[("x", &x), ("z", &z)],
            "1x8xi32",
            &format!("tensor_tensor {op} %y_t <- %x_t, %z_t {{engine = pool}}"),
        );
        for i in 0..8 {
            let want = match op {
                "divide_int" => (a[i] as f64 / b[i] as f64).floor() as i64,
                _ => exact(a[i], b[i]),
            };
            assert_eq!(
                y.bits(i) as u32 as i32,
                want as i32,
                "{op} {} {}",
                a[i],
                b[i]
            );
        }
    }
    // The vector engine goes through f32.
    let y = run_kernel(
        &[("x", &x), ("z", &z)],
        "1x8xi32",
        "tensor_tensor add %y_t <- %x_t, %z_t {engine = dve}",
    );
    for i in 0..8 {
        let sum = f64::from(a[i] as f32 + b[i] as f32);
        assert_eq!(
            y.bits(i),
            from_f64(DType::I32, sum).expect("an integer"),
            "{} + {}",
            a[i],
            b[i]
        );
    }
}

#[test]
fn s5_conversions_round_once_and_saturate() {
    let x = tensor(
        DType::F32,
        &[1, 10],
        [
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            300.0,
            -300.0,
            1e20,
            f32::NAN,
            f32::NEG_INFINITY,
        ],
    );
    let y = run_kernel(&[("x", &x)], "1x10xi8", "tensor_copy %y_t <- %x_t");
    let found: Vec<i8> = (0..10).map(|i| y.bits(i) as i8).collect();
    assert_eq!(found, [0, 2, 2, 0, -2, 127, -128, 127, 0, -128]);
    // Twice rounded, 1 + 2^-8 + 2^-24 would become 1.
    let tie = f32::from_bits(0x3f80_8001);
    let x = tensor(DType::F32, &[1, 4], [tie, 248.0, 1e6, 464.0]);
    for dtype in [DType::Bf16, DType::F8E4M3, DType::F8E4M3FN, DType::F16] {
        let y = run_kernel(
            &[("x", &x)],
            &format!("1x4x{dtype}"),
            "tensor_copy %y_t <- %x_t",
        );
        for i in 0..4 {
            assert_eq!(
                Some(y.bits(i)),
                convert(DType::F32, dtype, x.bits(i)),
                "{dtype} of element {i}"
            );
        }
    }
}

#[test]
fn s6_psum_accumulation_starts_from_the_old_value() {
    // 1e8 + 1 rounds back to 1e8; 1e8 + 8 does not.
    let big = tensor(DType::F32, &[1, 1], [1e8]);
    let ones = tensor(DType::F32, &[8, 1], [1.0; 8]);
    let y = run_kernel(
        &[("big", &big), ("ones", &ones)],
        "1x1xf32",
        "%p = alloc psum<1x1xf32>\n%unit = alloc sbuf<1x1xf32>\nmemset %unit <- 1.0\n\
         matmult %p <- stationary %unit, moving %big_t\n\
         matmult %p <- stationary %ones_t, moving %ones_t {accumulate}\ntensor_copy %y_t <- %p",
    );
    assert_eq!(values(&y), [1e8 + 8.0]);
    let one_by_one = "matmult %p <- stationary %unit, moving %unit {accumulate}\n".repeat(8);
    let y = run_kernel(
        &[("big", &big)],
        "1x1xf32",
        &format!(
            "%p = alloc psum<1x1xf32>\n%unit = alloc sbuf<1x1xf32>\nmemset %unit <- 1.0\n\
             matmult %p <- stationary %unit, moving %big_t\n{one_by_one}tensor_copy %y_t <- %p"
        ),
    );
    assert_eq!(values(&y), [1e8]);
}

#[test]
fn s6_accumulating_needs_a_matmult_before() {
    let body = "%y = alloc dram<1x1xf32> {kind = output}\n%y_t = alloc sbuf<1x1xf32>\n%unit = alloc sbuf<1x1xf32>\n\
         %p = alloc psum<1x1xf32>\nmemset %unit <- 1.0\nmatmult %p <- stationary %unit, moving %unit\nmemset %p <- 0.0\n\
         matmult %p <- stationary %unit, moving %unit {accumulate}\ntensor_copy %y_t <- %p\nsave %y <- %y_t";
    let message = failure(body, &[]);
    assert!(message.contains("accumulates into `%p`"), "{message}");
    let outputs =
        simulate(bir_sim::Options::default(), "trn3", body, &[]).expect("allowed from trn3 on");
    assert_eq!(values(&outputs["y"]), [1.0]);
}

#[test]
fn s7_extremes_of_infinities_and_nan() {
    let list = [
        0.0,
        -0.0,
        1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        -1.0,
    ];
    let pairs = || list.iter().flat_map(|&a| list.iter().map(move |&b| (a, b)));
    let x = tensor(DType::F32, &[1, 64], pairs().map(|(a, _)| a));
    let z = tensor(DType::F32, &[1, 64], pairs().map(|(_, b)| b));
    for op in ["max", "min"] {
        let y = run_kernel(
            &[("x", &x), ("z", &z)],
            "1x64xf32",
            &format!("tensor_tensor {op} %y_t <- %x_t, %z_t"),
        );
        let want: Vec<f32> = pairs()
            .map(|(a, b)| {
                if a.is_nan() || b.is_nan() {
                    f32::NAN
                } else if op == "max" {
                    if a > b { a } else { b }
                } else if a < b {
                    a
                } else {
                    b
                }
            })
            .collect();
        assert_same(&values(&y), &want, op);
    }
    // A clamp keeps NaN and cuts infinities.
    let y = run_kernel(
        &[("x", &x)],
        "1x64xf32",
        "tensor_scalar max min %y_t <- %x_t, -1.0, 1.0",
    );
    for (x, y) in values(&x).into_iter().zip(values(&y)) {
        assert!(
            if x.is_nan() {
                y.is_nan()
            } else {
                y == x.clamp(-1.0, 1.0)
            },
            "{x} {y}"
        );
    }
}

#[test]
fn s8_small_integers_saturate_in_arithmetic_and_wrap_on_bits() {
    for (dtype, low, high) in [(DType::I8, -128i64, 127), (DType::U8, 0, 255)] {
        let all = || (0..=255u64).map(|v| v & 0xff);
        let x = bits(dtype, &[1, 256], all());
        for other in [0u64, 1, 3, 7, 100, 200, 255] {
            let z = bits(dtype, &[1, 256], std::iter::repeat_n(other, 256));
            let value = |bits: u64| {
                if dtype == DType::I8 {
                    i64::from(bits as i8)
                } else {
                    bits as i64
                }
            };
            for op in ["add", "multiply", "subtract"] {
                let y = run_kernel(
                    &[("x", &x), ("z", &z)],
                    &format!("1x256x{dtype}"),
                    &format!("tensor_tensor {op} %y_t <- %x_t, %z_t"),
                );
                for (i, v) in all().enumerate() {
                    let (a, b) = (value(v), value(other));
                    let exact = match op {
                        "add" => a + b,
                        "multiply" => a * b,
                        _ => a - b,
                    };
                    assert_eq!(
                        value(y.bits(i)),
                        exact.clamp(low, high),
                        "{dtype} {a} {op} {b}"
                    );
                }
            }
            for op in ["left_shift", "right_shift", "bitwise_xor"] {
                let y = run_kernel(
                    &[("x", &x), ("z", &z)],
                    &format!("1x256x{dtype}"),
                    &format!("tensor_tensor {op} %y_t <- %x_t, %z_t"),
                );
                for (i, v) in all().enumerate() {
                    let by = value(other);
                    let want = match op {
                        "bitwise_xor" => v ^ other,
                        _ if !(0..8).contains(&by) => 0,
                        "left_shift" => (v << by) & 0xff,
                        // Zeros come in, for signed numbers too.
                        _ => v >> by,
                    };
                    assert_eq!(y.bits(i), want, "{dtype} {v} {op} {by}");
                }
            }
        }
    }
    assert_eq!(to_f32(DType::I8, 0xff), Some(-1.0));
}
