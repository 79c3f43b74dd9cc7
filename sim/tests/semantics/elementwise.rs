//! Every op against a formula element by element, over dtypes, strides, offsets and aliases.

use crate::common::*;
use bir_dialect::bir::num::{DType, from_f32, to_f32};
use bir_sim::{Lanes, Options, random};

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (a_fill_is_its_number_in_every_element, &["memset"]),
    (tensor_tensor_over_dtypes, &["tensor_tensor"]),
    (
        tensor_scalar_and_scalar_tensor_tensor,
        &["tensor_scalar", "scalar_tensor_tensor"],
    ),
    (activation_sums_rows_before_conversion, &["activation"]),
    (statistics_are_those_of_the_row, &["bn_stats", "bn_aggr"]),
    (fills_and_transpositions, &["iota"]),
    (
        registers_loops_and_branches,
        &[
            "register_load",
            "register_store",
            "register_move",
            "register_alu",
            "loop",
            "while",
            "cond_br",
            "br",
            "nop",
            "func",
        ],
    ),
    (
        wrong_placements_show_as_wrong_data,
        &["alloc", "load", "save"],
    ),
];

fn numbers(seed: u64, dtype: DType, dims: &[u64]) -> bir_sim::Tensor {
    random::tensor(seed, "x", dtype, dims)
}

/// What a value becomes in a dtype and back.
fn through(dtype: DType, value: f32) -> f32 {
    to_f32(dtype, from_f32(dtype, value).expect("a number")).expect("a number")
}

fn binary(op: &str, a: f32, b: f32) -> f32 {
    let truth = |t: bool| if t { 1.0 } else { 0.0 };
    match op {
        "add" => a + b,
        "subtract" => a - b,
        "multiply" => a * b,
        "divide" => a / b,
        "max" => {
            if a.is_nan() || b.is_nan() {
                f32::NAN
            } else if a > b {
                a
            } else {
                b
            }
        }
        "min" => {
            if a.is_nan() || b.is_nan() {
                f32::NAN
            } else if a < b {
                a
            } else {
                b
            }
        }
        "equal" => truth(a == b),
        "not_equal" => truth(a != b),
        "greater" => truth(a > b),
        "less_equal" => truth(a <= b),
        "logical_and" => truth(a != 0.0 && b != 0.0),
        "logical_xor" => truth((a != 0.0) != (b != 0.0)),
        "abs_max" => {
            if a.is_nan() || b.is_nan() {
                f32::NAN
            } else if a.abs() > b.abs() {
                a
            } else {
                b
            }
        }
        _ => unreachable!("{op}"),
    }
}

const OPS: [&str; 12] = [
    "add",
    "subtract",
    "multiply",
    "max",
    "min",
    "equal",
    "not_equal",
    "greater",
    "less_equal",
    "logical_and",
    "logical_xor",
    "divide",
];

#[test]
fn tensor_tensor_over_dtypes() {
    for (seed, dtype) in [
        DType::F32,
        DType::Bf16,
        DType::F16,
        DType::F8E5M2,
        DType::I8,
        DType::U16,
        DType::I32,
    ]
    .into_iter()
    .enumerate()
    {
        let (a, b) = (
            numbers(seed as u64, dtype, &[9, 130]),
            numbers(77 + seed as u64, dtype, &[9, 130]),
        );
        for op in OPS {
            if op == "divide" {
                continue;
            }
            let y = run_kernel(
                &[("a", &a), ("b", &b)],
                "9x130xf32",
                &format!("tensor_tensor {op} %y_t <- %a_t, %b_t"),
            );
            let want: Vec<f32> = values(&a)
                .iter()
                .zip(values(&b))
                .map(|(&a, b)| binary(op, a, b))
                .collect();
            assert_same(&values(&y), &want, &format!("{op} {dtype}"));
            let y = run_kernel(
                &[("a", &a), ("b", &b)],
                "9x130xbf16",
                &format!("tensor_tensor {op} %y_t <- %a_t, %b_t"),
            );
            let want: Vec<f32> = want.iter().map(|&v| through(DType::Bf16, v)).collect();
            assert_same(&values(&y), &want, &format!("{op} {dtype} to bf16"));
        }
    }
}

#[test]
fn in_place_strided_reversed_and_overlapping() {
    let cases: [(&str, fn(usize) -> usize, fn(usize) -> usize); 4] = [
        ("%x_t, %x_t", |i| i, |i| i),
        ("%x_t[p 0:4, off 63, -1 x 64], %x_t", |i| 63 - i, |i| i),
        (
            "%x_t[p 0:4, off 0, 1 x 8, 8 x 8], %x_t",
            |i| i / 8 + i % 8 * 8,
            |i| i,
        ),
        ("%x_t, %x_t[p 0:4, off 0, 0 x 8, 1 x 8]", |i| i, |i| i % 8),
    ];
    for dtype in [DType::F32, DType::Bf16] {
        let x = tensor(dtype, &[4, 64], (0..256).map(|i| i as f32));
        let v = values(&x);
        let at = |p: usize, i: usize| v[p * 64 + i];
        for (sources, left, right) in cases {
            let y = run_unverified(
                &[("x", &x)],
                &format!("4x64x{dtype}"),
                &format!("tensor_tensor add %x_t <- {sources}\ntensor_copy %y_t <- %x_t"),
            );
            let want: Vec<f32> = (0..256)
                .map(|e| at(e / 64, left(e % 64)) + at(e / 64, right(e % 64)))
                .map(|sum| through(dtype, sum))
                .collect();
            assert_same(&values(&y), &want, &format!("{dtype} {sources}"));
        }
    }
    let x = tensor(DType::F32, &[4, 64], (0..256).map(|i| i as f32));
    let v = values(&x);
    let at = |p: usize, i: usize| v[p * 64 + i];
    // A copy onto a shifted part of itself reads everything first. The verifier refuses it, for an
    // engine does not.
    let y = run_unverified(
        &[("x", &x)],
        "4x64xf32",
        "tensor_copy %x_t[:, 1:64] <- %x_t[:, 0:63]\ntensor_copy %y_t <- %x_t",
    );
    let want: Vec<f32> = (0..256)
        .map(|e| at(e / 64, (e % 64).saturating_sub(1)))
        .collect();
    assert_same(&values(&y), &want, "shift");
    // Shapes that cut rows differently: 6 x 4 against 8 x 3.
    let x = tensor(DType::F32, &[2, 24], (0..48).map(|i| i as f32));
    let y = run_kernel(
        &[("x", &x)],
        "2x24xf32",
        "generic_copy %y_t[p 0:2, off 0, 1 x 6, 6 x 4] <- %x_t[p 0:2, off 0, 1 x 8, 8 x 3]",
    );
    let mut want = vec![0.0; 48];
    for p in 0..2 {
        for i in 0..24 {
            want[p * 24 + i / 4 + i % 4 * 6] = (p * 24 + i / 3 + i % 3 * 8) as f32;
        }
    }
    assert_same(&values(&y), &want, "unequal cuts");
}

#[test]
fn tensor_scalar_and_scalar_tensor_tensor() {
    let (x, s, o) = (
        numbers(1, DType::F32, &[8, 33]),
        numbers(2, DType::F32, &[8, 1]),
        numbers(3, DType::F32, &[8, 33]),
    );
    let (vx, vs, vo) = (values(&x), values(&s), values(&o));
    for (op0, op1) in OPS.iter().zip(OPS.iter().rev()) {
        let y = run_kernel(
            &[("x", &x), ("s", &s)],
            "8x33xf32",
            &format!("tensor_scalar {op0} {op1} %y_t <- %x_t, %s_t, 1.5 {{reverse0}}"),
        );
        let want: Vec<f32> = vx
            .iter()
            .enumerate()
            .map(|(i, &x)| binary(op1, binary(op0, vs[i / 33], x), 1.5))
            .collect();
        assert_same(&values(&y), &want, &format!("{op0} {op1}"));
        let y = run_kernel(
            &[("x", &x), ("s", &s), ("o", &o)],
            "8x33xf32",
            &format!(
                "scalar_tensor_tensor {op0} {op1} %o_t <- %x_t, %s_t, %o_t {{reverse1}}\ntensor_copy %y_t <- %o_t"
            ),
        );
        let want: Vec<f32> = vx
            .iter()
            .enumerate()
            .map(|(i, &x)| binary(op1, vo[i], binary(op0, x, vs[i / 33])))
            .collect();
        assert_same(&values(&y), &want, &format!("stt {op0} {op1}"));
    }
}

#[test]
fn activation_sums_rows_before_conversion() {
    for dtype in [DType::F32, DType::Bf16] {
        let (x, b) = (
            numbers(5, DType::F32, &[20, 37]),
            numbers(6, DType::F32, &[20, 1]),
        );
        let ops = format!(
            "%e = alloc sbuf<20x37x{dtype}>\n%s = alloc sbuf<20x1xf32>\n\
             activation square %e, reduce add reset %s <- %x_t, scale 0.5, bias %b_t\n\
             activation square %e, reduce add accumulate %s <- %x_t, scale 0.5, bias %b_t\ntensor_copy %y_t <- %s"
        );
        let y = run_kernel(&[("x", &x), ("b", &b)], "20x1xf32", &ops);
        let (vx, vb) = (values(&x), values(&b));
        let want: Vec<f32> = (0..20)
            .map(|p| {
                let row: Vec<f32> = (0..37)
                    .map(|i| {
                        let t = vx[p * 37 + i] * 0.5 + vb[p];
                        t * t
                    })
                    .collect();
                let sum = row[1..].iter().fold(row[0], |acc, v| acc + v);
                sum + sum
            })
            .collect();
        assert_same(&values(&y), &want, "sums");
    }
    let body = "%y = alloc dram<4x1xf32> {kind = output}\n%s = alloc sbuf<4x1xf32>\nread_activation_accumulator %s\nsave %y <- %s";
    assert!(failure(body, &[]).contains("holds nothing defined"));
}

#[test]
fn reductions_over_one_and_two_axes() {
    let x = numbers(8, DType::F32, &[10, 5, 3, 7]);
    let v = values(&x);
    for op in ["add", "max", "min", "multiply"] {
        for (y, axes, len) in [
            ("10x5x3xf32", "[3]", 7usize),
            ("10x5xf32", "[2, 3]", 21),
            ("10x1xf32", "[1, 2, 3]", 105),
        ] {
            let found = run_kernel(
                &[("x", &x)],
                y,
                &format!("tensor_reduce {op} %y_t <- %x_t {{axes = {axes}, negate}}"),
            );
            let want: Vec<f32> = v
                .chunks_exact(len)
                .map(|c| -c[1..].iter().fold(c[0], |a, &b| binary(op, a, b)))
                .collect();
            assert_same(&values(&found), &want, &format!("{op} {axes}"));
        }
    }
    let x = numbers(9, DType::U8, &[3, 16]);
    let y = run_kernel(
        &[("x", &x)],
        "3x1xu8",
        "tensor_reduce bitwise_or %y_t <- %x_t {axes = [1]}",
    );
    for p in 0..3 {
        assert_eq!(
            y.bits(p),
            (0..16).fold(0, |acc, i| acc | x.bits(p * 16 + i))
        );
    }
}

#[test]
fn logical_reductions_give_truth_values_however_few_the_elements() {
    let x = tensor(
        DType::F32,
        &[4, 3],
        [
            3.0,
            0.0,
            -2.0,
            0.0,
            5.0,
            0.0,
            f32::NAN,
            1.0,
            1.0,
            -0.0,
            0.0,
            0.0,
        ],
    );
    for len in 1..=3 {
        for op in ["logical_and", "logical_or", "logical_xor"] {
            let y = run_kernel(
                &[("x", &x)],
                "4x1xf32",
                &format!("tensor_reduce {op} %y_t <- %x_t[:, 0:{len}] {{axes = [1]}}"),
            );
            let want: Vec<f32> = values(&x)
                .chunks_exact(3)
                .map(|row| {
                    let mut truths = row[..len].iter().map(|&v| v != 0.0);
                    let result = match op {
                        "logical_and" => truths.all(|v| v),
                        "logical_or" => truths.any(|v| v),
                        _ => truths.filter(|&v| v).count() % 2 == 1,
                    };
                    f32::from(u8::from(result))
                })
                .collect();
            assert_same(&values(&y), &want, &format!("{op} of {len}"));
        }
    }
}

#[test]
fn quotients_are_rounded_down_exactly_and_rests_have_the_sign_of_the_divisor() {
    // Quotients near integers and on both sides of them.
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for divisor in [0.1f32, -0.1, 0.3, 3.0, -3.0, 0.7, 1e-20, 1e20] {
        for times in [
            0.0f32, -0.0, 1.0, -1.0, 10.0, -10.0, 77.0, -999.0, 0.5, 1e-30,
        ] {
            a.push(times * divisor.abs());
            b.push(divisor);
        }
    }
    a.extend([1.0, -3.0, 3.0]);
    b.extend([0.1, 3.0, -3.0]);
    let dims = [1, a.len() as u64];
    let (x, z) = (
        tensor(DType::F32, &dims, a.iter().copied()),
        tensor(DType::F32, &dims, b.iter().copied()),
    );
    let run = |op: &str| {
        let shape = format!("1x{}xf32", a.len());
        let ops = format!("tensor_tensor {op} %y_t <- %x_t, %z_t");
        values(&run_kernel(&[("x", &x), ("z", &z)], &shape, &ops))
    };
    let (quotients, rests) = (run("divide_int"), run("mod"));
    for at in 0..a.len() {
        let (a, b, q, rest) = (a[at], b[at], quotients[at], rests[at]);
        let what = format!("{a:e} by {b:e}: {q:e}, {rest:e}");
        // The largest integer that times the divisor, exactly, is not past the dividend.
        let (wide, divisor) = (f64::from(a), f64::from(b));
        let past = |q: f64| (q * divisor - wide) * divisor.signum() > 0.0;
        assert!(!past(f64::from(q)) && past(f64::from(q) + 1.0), "{what}");
        assert_eq!(rest.is_sign_negative(), b < 0.0, "{what}");
        let mut exact = a % b;
        if exact != 0.0 && exact.is_sign_negative() != b.is_sign_negative() {
            exact += b;
        }
        assert_eq!(rest, exact, "{what}");
    }
    assert_eq!(quotients[a.len() - 3], 9.0);
}

#[test]
fn extremes_tell_zeros_apart_by_order() {
    let zeros = [-0.0, 0.0, -1.0, 0.0, -0.0, -5.0];
    let row: Vec<f32> = zeros.iter().cycle().take(200).copied().collect();
    let x = tensor(DType::F32, &[1, 200], row.clone());
    let y = run_kernel(
        &[("x", &x)],
        "1x1xf32",
        "tensor_reduce max %y_t <- %x_t {axes = [1]}",
    );
    let want = row[1..].iter().fold(row[0], |a, &b| binary("max", a, b));
    assert_same(&values(&y), &[want], "max");
}

#[test]
fn scan_is_a_recurrence() {
    let (a, b, h) = (
        numbers(11, DType::F32, &[19, 40]),
        numbers(12, DType::F32, &[19, 40]),
        numbers(13, DType::F32, &[19, 1]),
    );
    let (va, vb, vh) = (values(&a), values(&b), values(&h));
    for (op0, op1, initial) in [
        ("multiply", "add", "%h_t"),
        ("max", "min", "0.5"),
        ("subtract", "multiply", "%h_t"),
    ] {
        let y = run_kernel(
            &[("a", &a), ("b", &b), ("h", &h)],
            "19x40xf32",
            &format!("tensor_tensor_scan {op0} {op1} %y_t <- %a_t, %b_t, initial {initial}"),
        );
        let mut want = Vec::new();
        for p in 0..19 {
            let mut state = if initial == "0.5" { 0.5 } else { vh[p] };
            for i in p * 40..p * 40 + 40 {
                state = binary(op1, binary(op0, va[i], state), vb[i]);
                want.push(state);
            }
        }
        assert_same(&values(&y), &want, op0);
    }
}

#[test]
fn statistics_are_those_of_the_row() {
    let x = tensor(
        DType::F32,
        &[3, 512],
        (0..1536).map(|i| ((i * 7919) % 613) as f32 * 0.37 + 100.0),
    );
    let y = run_kernel(
        &[("x", &x)],
        "3x2xf32",
        "%six = alloc sbuf<3x6xf32>\nbn_stats %six <- %x_t\nbn_aggr %y_t <- %six",
    );
    for (row, found) in values(&x).chunks(512).zip(values(&y).chunks(2)) {
        let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / 512.0;
        let variance = row
            .iter()
            .map(|&v| (f64::from(v) - mean).powi(2))
            .sum::<f64>()
            / 512.0;
        assert!(
            (f64::from(found[0]) - mean).abs() < 1e-5 * mean
                && (f64::from(found[1]) - variance).abs() < 1e-5 * variance
        );
    }
    let odd = tensor(DType::F32, &[1, 1], [4.0]);
    let y = run_kernel(&[("x", &odd)], "1x6xf32", "bn_stats %y_t <- %x_t");
    assert_same(&values(&y), &[1.0, 4.0, 0.0, 0.0, 0.0, 0.0], "one element");
    let x = numbers(14, DType::F32, &[5, 99]);
    let y = run_kernel(&[("x", &x)], "5x8xf32", "max8 %y_t <- %x_t");
    for (row, found) in values(&x).chunks(99).zip(values(&y).chunks(8)) {
        let mut row: Vec<f32> = row
            .iter()
            .map(|v| if v.is_nan() { f32::NEG_INFINITY } else { *v })
            .collect();
        row.sort_by(|a, b| b.partial_cmp(a).expect("no NaN"));
        assert_eq!(found, &row[..8]);
    }
}

#[test]
fn selections_choose() {
    let (m, x, f) = (
        tensor(DType::U8, &[4, 50], (0..200).map(|i| (i % 3) as f32)),
        numbers(21, DType::F32, &[4, 50]),
        numbers(22, DType::F32, &[4, 1]),
    );
    let (vm, vx, vf) = (values(&m), values(&x), values(&f));
    for (flag, on) in [("", true), (" {reverse}", false)] {
        let y = run_kernel(
            &[("m", &m), ("x", &x), ("f", &f)],
            "4x50xf32",
            &format!("select %y_t <- %m_t, %x_t, %f_t{flag}"),
        );
        let want: Vec<f32> = (0..200)
            .map(|i| {
                if (vm[i] != 0.0) == on {
                    vx[i]
                } else {
                    vf[i / 50]
                }
            })
            .collect();
        assert_same(&values(&y), &want, "select");
        let y = run_kernel(
            &[("m", &m), ("x", &x)],
            "4x50xf32",
            &format!("memset %y_t <- 7.0\ncopy_predicated %y_t <- %m_t, %x_t{flag}"),
        );
        let want: Vec<f32> = (0..200)
            .map(|i| if (vm[i] != 0.0) == on { vx[i] } else { 7.0 })
            .collect();
        assert_same(&values(&y), &want, "copy_predicated");
    }
    let y = run_kernel(
        &[("x", &x)],
        "4x50xf32",
        "affine_select greater %y_t <- %x_t, -9.0 {offset = 3, channel_multiplier = 2, pattern = [[-1, 50]]}",
    );
    let want: Vec<f32> = (0..200)
        .map(|i| {
            if 3 + 2 * (i / 50) - (i % 50) > 0 {
                vx[i as usize]
            } else {
                -9.0
            }
        })
        .collect();
    assert_same(&values(&y), &want, "affine_select");
    // Equal dtypes are copied bit by bit: integers f32 cannot hold, and what a NaN carries.
    for (dtype, base) in [
        (DType::I32, 0x0100_0001u64),
        (DType::U32, 0xffff_ff01),
        (DType::Bf16, 0x7f81),
        (DType::F16, 0x7c01),
    ] {
        let x = bits(dtype, &[2, 6], (0..12).map(|i| base + 2 * i));
        let y = run_kernel(
            &[("x", &x)],
            &format!("2x6x{dtype}"),
            "affine_select less %y_t <- %x_t, 5.0 {offset = -3, channel_multiplier = 1, pattern = [[1, 6]]}",
        );
        for at in 0..12 {
            let chosen = -3 + (at / 6) as i64 + (at % 6) as i64 >= 0;
            let want = if chosen {
                from_f32(dtype, 5.0).unwrap()
            } else {
                x.bits(at)
            };
            assert_eq!(y.bits(at), want, "{dtype}, element {at}");
        }
    }
    // A row without a choice: the destination overflows, the accumulator does not.
    let x = tensor(DType::Bf16, &[1, 8], [1.0; 8]);
    let bound = tensor(DType::F32, &[1, 1], [100.0]);
    let y = run_kernel(
        &[("x", &x), ("b", &bound)],
        "1x1xf32",
        "%d = alloc sbuf<1x8xbf16>\nrange_select greater_equal less %d, reduce reset %y_t <- %x_t, %b_t, %b_t",
    );
    assert_same(&values(&y), &[f32::MIN], "range_select");
}

#[test]
fn predicated_copies_define_what_they_write() {
    let (m, x) = (
        tensor(DType::U8, &[1, 4], [1.0, 0.0, 1.0, 1.0]),
        tensor(DType::F32, &[1, 4], [1.0, 2.0, 3.0, 4.0]),
    );
    let body = kernel(
        &[("m", &m), ("x", &x)],
        "1x4xf32",
        "copy_predicated %y_t <- %m_t, %x_t",
    );
    let message = failure(&body, &[("m", m.clone()), ("x", x.clone())]);
    assert!(
        message.contains("`%y_t`, elements 1 to 1 of 4"),
        "{message}"
    );
}

#[test]
fn a_fill_is_its_number_in_every_element() {
    for (dtype, text, want) in [
        (DType::F32, "1.5", 1.5),
        (DType::Bf16, "-3.0", -3.0),
        (DType::F16, "65504.0", 65504.0),
        (DType::I32, "-7", -7.0),
        (DType::U8, "200", 200.0),
    ] {
        let y = run_kernel(
            &[],
            &format!("5x3x{dtype}"),
            &format!("memset %y_t <- {text}"),
        );
        assert_same(&values(&y), &[want; 15], text);
    }
}

#[test]
fn fills_and_transpositions() {
    let y = run_kernel(
        &[],
        "128x1xi32",
        "iota %y_t {offset = 5, channel_multiplier = 2, pattern = [[1, 1]]}",
    );
    assert_eq!(
        values(&y),
        (0..128).map(|p| (5 + 2 * p) as f32).collect::<Vec<_>>()
    );
    let y = run_kernel(
        &[],
        "3x12xbf16",
        "iota %y_t {offset = -4, channel_multiplier = 100, pattern = [[10, 3], [1, 4]]}",
    );
    let want: Vec<f32> = (0..36)
        .map(|e| (-4 + 100 * (e / 12) + 10 * (e % 12 / 4) + e % 4) as f32)
        .collect();
    assert_same(&values(&y), &want, "iota");
    for dtype in [DType::F32, DType::Bf16, DType::U8] {
        let x = numbers(30, dtype, &[20, 32]);
        let y = run_kernel(
            &[("x", &x)],
            &format!("32x20x{dtype}"),
            "transpose %y_t <- %x_t {engine = dve}",
        );
        for p in 0..20 {
            for i in 0..32 {
                assert_eq!(y.bits(i * 20 + p), x.bits(p * 32 + i), "{dtype}");
            }
        }
    }
}

#[test]
fn rows_by_number() {
    let table = numbers(40, DType::F32, &[10, 6]);
    let rows = tensor(DType::I32, &[4, 1], [7.0, 0.0, 7.0, 9.0]);
    let body = "%table = alloc dram<10x6xf32> {kind = input}\n%rows = alloc dram<4x1xi32> {kind = input}\n\
                %y = alloc dram<4x6xf32> {kind = output}\n%r = alloc sbuf<4x1xi32>\n%t = alloc sbuf<4x6xf32>\n\
                memset %t <- -1.0\nload %r <- %rows\ndma_copy %t <- %table, src_index %r {dge = swdge}\nsave %y <- %t";
    let y = output(body, &[("table", table.clone()), ("rows", rows)]);
    let v = values(&table);
    let want: Vec<f32> = [7, 0, 7, 9]
        .iter()
        .flat_map(|&r| v[r * 6..r * 6 + 6].to_vec())
        .collect();
    assert_same(&values(&y), &want, "gather");
    let outside = tensor(DType::I32, &[4, 1], [7.0, -1.0, 10.0, 9.0]);
    assert!(
        failure(body, &[("table", table.clone()), ("rows", outside.clone())])
            .contains("finds index -1")
    );
    let y = output(
        &body.replace("{dge = swdge}", "{dge = swdge, oob = skip}"),
        &[("table", table), ("rows", outside)],
    );
    assert_eq!(values(&y)[6..18], [-1.0; 12]);
}

#[test]
fn registers_loops_and_branches() {
    let n = tensor(DType::I32, &[1, 1], [5.0]);
    let body = "%n = alloc dram<1x1xi32> {kind = input}\n%y = alloc dram<1x4xi32> {kind = output}\n\
        %r = register_load <- %n[0:1, 0:1]\n%sum = register_move <- 0\n%one = register_move <- 1\n\
        loop %i = 0 to %r {\nloop %j = 2 to 8 step 3 {\nregister_alu add %sum <- %sum, 1\n}\n}\n\
        register_store %y[0:1, 0:1] <- %sum\n%w = register_alu multiply <- %r, -3\nregister_store %y[0:1, 1:2] <- %w\n\
        while %r {\nregister_alu subtract %r <- %r, 1\n}\nregister_store %y[0:1, 2:3] <- %r\n\
        cond_br %r, ^a, ^b\n^a:\nregister_store %y[0:1, 3:4] <- %one\nbr ^c\n^b:\nregister_store %y[0:1, 3:4] <- %sum\nbr ^c\n^c:\nnop";
    assert_eq!(values(&output(body, &[("n", n)])), [10.0, -15.0, 0.0, 10.0]);
}

#[test]
fn wrong_placements_show_as_wrong_data() {
    let x = numbers(50, DType::F32, &[4, 8]);
    let at = |byte: u32| {
        format!(
            "%x = alloc dram<4x8xf32> {{kind = input}}\n%y = alloc dram<4x8xf32> {{kind = output}}\n\
             %a = alloc sbuf<4x8xf32> at [0, 0x0]\n%b = alloc sbuf<4x8xf32> at [0, {byte:#x}]\n\
             load %a <- %x\nmemset %b <- 3.0\nsave %y <- %a"
        )
    };
    assert_same(
        &values(&output(&at(32), &[("x", x.clone())])),
        &values(&x),
        "apart",
    );
    assert_eq!(values(&output(&at(0), &[("x", x)])), [3.0; 32]);
}

#[test]
fn results_do_not_depend_on_the_machine_or_the_thread() {
    let text = include_str!("../../../test/kernels/softmax.bir");
    let ir = clean(text, bir_dialect::bir::verify::Level::Default);
    let inputs = std::iter::once(("x".to_owned(), numbers(60, DType::F32, &[1024, 512]))).collect();
    let run = |lanes: Lanes| {
        let options = Options {
            lanes,
            ..Options::default()
        };
        bir_sim::Simulation::new(&ir, options)
            .and_then(|s| s.run(&inputs, &mut |_| {}))
            .expect("a result")
            .outputs
    };
    let want = run(Lanes::best());
    assert_eq!(want, run(Lanes::baseline()));
    let both = std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| run(Lanes::best())),
            scope.spawn(|| run(Lanes::best())),
        ];
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert!(both.iter().all(|found| *found == want));
}
