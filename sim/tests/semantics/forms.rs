//! The everyday ops through every form of access and several dtypes, against loops over elements.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, failure, run};
use bir_dialect::bir::num::{DType, from_f32};
use bir_sim::Tensor;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        copies_keep_bits_of_one_dtype_and_convert_between_two,
        &["tensor_copy", "generic_copy"],
    ),
    (scalars_come_as_numbers_and_as_tiles, &["tensor_scalar_ptr"]),
    (reciprocals_and_exact_activation_functions, &["reciprocal"]),
    (
        integers_wrap_where_no_f32_is_between,
        &["tensor_scalar_addr"],
    ),
    (
        selections_by_mask_range_and_slope,
        &["select", "copy_predicated", "select_reduce"],
    ),
    (ranges_of_positions_and_running_maxima, &["range_select"]),
    (slopes_are_compared_with_zero, &["affine_select"]),
    (
        reductions_scans_and_the_eight_largest,
        &["tensor_reduce", "tensor_tensor_scan", "max8"],
    ),
    (products_of_tiles_in_any_form, &["matmult"]),
    (transpositions_of_tiles_in_any_form, &["transpose"]),
    (
        rows_of_a_table_go_to_and_come_from_tiles_in_any_form,
        &["dma_copy"],
    ),
];

const DTYPES: [DType; 5] = [
    DType::F32,
    DType::Bf16,
    DType::F8E4M3,
    DType::I16,
    DType::U8,
];

/// All pairs of forms, each with a seed of its own.
fn forms() -> impl Iterator<Item = (Form, Form, u64)> {
    WRITES.into_iter().flat_map(|write| {
        READS
            .into_iter()
            .enumerate()
            .map(move |(n, read)| (write, read, n as u64 + 10 * write as u64))
    })
}

/// A dtype for a seed of [`forms`], so that every one of them meets every form.
fn dtype_of(seed: u64) -> DType {
    DTYPES[((seed / 10 + seed % 10) % 5) as usize]
}

fn truth(holds: bool) -> f32 {
    if holds { 1.0 } else { 0.0 }
}

fn compare(op: &str, a: f32, b: f32) -> bool {
    match op {
        "equal" => a == b,
        "not_equal" => a != b,
        "greater" => a > b,
        "greater_equal" => a >= b,
        "less" => a < b,
        _ => a <= b,
    }
}

fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a > b {
        a
    } else {
        b
    }
}

/// Asserts equal numbers, whatever the sign of zero.
fn assert_equal(found: &Tensor, want: &Tensor, what: &str) {
    for (a, b) in values(found).into_iter().zip(values(want)) {
        assert!(same(a, b) || a == b, "{what}: {a:e}, expected {b:e}");
    }
}

fn map(rows: &[Vec<f32>], f: impl Fn(usize, usize, f32) -> f32) -> Vec<Vec<f32>> {
    rows.iter()
        .enumerate()
        .map(|(p, row)| row.iter().enumerate().map(|(i, &x)| f(p, i, x)).collect())
        .collect()
}

#[test]
fn copies_keep_bits_of_one_dtype_and_convert_between_two() {
    for (write, read, seed) in forms() {
        let dtype = dtype_of(seed);
        let x = Operand::new("x", dtype, (33, 6), read, seed);
        let same = Operand::new("s", dtype, (33, 6), write, seed);
        let other = Operand::new("o", DType::F16, (33, 6), write, seed);
        for (op, engine) in [
            ("tensor_copy", "dve"),
            ("tensor_copy", "act"),
            ("generic_copy", "pool"),
            ("dma_copy", "dma"),
        ] {
            let ops = format!(
                "{op} {} <- {x} {{engine = {engine}}}\n{op} {} <- {x} {{engine = {engine}}}",
                same.text(),
                other.text(),
                x = x.text()
            );
            let found = run("trn2", &[&x, &same, &other], &ops);
            let raw: Vec<Vec<Option<u64>>> = x
                .bits()
                .into_iter()
                .map(|row| row.into_iter().map(Some).collect())
                .collect();
            assert_eq!(found["s"], same.with(&raw), "{ops}");
            assert_tensor(&found["o"], &other.with_values(&x.values()), &ops);
        }
    }
}

#[test]
fn scalars_come_as_numbers_and_as_tiles() {
    for (write, read, seed) in forms() {
        for dtype in DTYPES {
            let x = Operand::new("x", dtype, (33, 6), read, seed);
            let y = Operand::new("y", DType::F32, (33, 6), Form::Reversed, seed);
            let d = Operand::new("d", dtype, (33, 6), write, seed + 1);
            let e = Operand::new("e", DType::F32, (33, 6), write, seed + 2);
            let g = Operand::new("g", DType::F32, (33, 6), write, seed + 3);
            let c = Operand::new("c", DType::F32, (33, 1), Form::Part, seed + 4);
            let ops = format!(
                "%n = register_move <- 2\n\
                 tensor_scalar subtract max {d} <- {x}, {c}, 0.25 {{reverse0}}\n\
                 tensor_scalar_ptr multiply {e} <- {x}, {c}, offset %n\n\
                 scalar_tensor_tensor add subtract {g} <- {x}, 1.5, {y} {{reverse1}}",
                d = d.text(),
                e = e.text(),
                g = g.text(),
                x = x.text(),
                y = y.text(),
                c = c.text()
            );
            let found = run("trn2", &[&x, &y, &d, &e, &g, &c], &ops);
            let (rows, others, column) = (x.values(), y.values(), c.values());
            let mut further = c.clone();
            further.off += 2;
            let further = further.values();
            let want = map(&rows, |p, _, v| larger(column[p][0] - v, 0.25));
            assert_tensor(&found["d"], &d.with_values(&want), &ops);
            let want = map(&rows, |p, _, v| v * further[p][0]);
            assert_tensor(&found["e"], &e.with_values(&want), &ops);
            let want = map(&rows, |p, i, v| others[p][i] - (v + 1.5));
            assert_tensor(&found["g"], &g.with_values(&want), &ops);
        }
    }
}

type Function = fn(f32) -> f32;

#[test]
fn reciprocals_and_exact_activation_functions() {
    for (write, read, seed) in forms() {
        let dtype = dtype_of(seed);
        let x = Operand::new("x", dtype, (20, 6), read, seed);
        let d = Operand::new("d", DType::F32, (20, 6), write, seed + 1);
        let s = Operand::new("s", DType::F32, (20, 1), Form::Part, seed + 2);
        let functions: [(&str, Function); 7] = [
            ("copy", |x| x),
            ("square", |x| x * x),
            ("relu", |x| larger(x, 0.0)),
            ("abs", f32::abs),
            ("sign", |x| {
                if x.is_nan() {
                    f32::NAN
                } else if x == 0.0 {
                    x
                } else {
                    x.signum()
                }
            }),
            ("prelu", |x| if x >= 0.0 { x } else { 0.01 * x }),
            ("reciprocal", |x| 1.0 / x),
        ];
        let rows = x.values();
        let ops = format!("reciprocal {} <- {}", d.text(), x.text());
        let found = run("trn2", &[&x, &d], &ops);
        let want = map(&rows, |_, _, v| 1.0 / v);
        assert_tensor(&found["d"], &d.with_values(&want), &ops);
        let bias = s.values();
        for (name, f) in functions {
            let ops = format!(
                "activation {name} {} <- {}, scale 0.5, bias {}",
                d.text(),
                x.text(),
                s.text()
            );
            let found = run("trn2", &[&x, &d, &s], &ops);
            let want = map(&rows, |p, _, v| f(v * 0.5 + bias[p][0]));
            assert_equal(&found["d"], &d.with_values(&want), &ops);
        }
    }
}

#[test]
fn integers_wrap_where_no_f32_is_between() {
    for (write, read, seed) in forms() {
        for dtype in [DType::I32, DType::U32] {
            let x = Operand::new("x", dtype, (33, 6), read, seed)
                .filled(|at| (at as u64).wrapping_mul(0x9e37_79b9) & 0xffff_ffff);
            let c = Operand::new("c", dtype, (33, 1), Form::Part, seed)
                .filled(|at| (at as u64).wrapping_mul(0x1234_5677) & 0xffff_ffff);
            let d = Operand::new("d", dtype, (33, 6), write, seed);
            let e = Operand::new("e", dtype, (33, 6), write, seed + 1);
            let ops = format!(
                "tensor_scalar_addr multiply subtract {} <- {x}, {}, 77\n\
                 tensor_tensor multiply {} <- {x}, {x} {{engine = pool}}",
                d.text(),
                c.text(),
                e.text(),
                x = x.text()
            );
            let found = run("trn2", &[&x, &c, &d, &e], &ops);
            let scalars = c.bits();
            let each = |f: &dyn Fn(usize, u32) -> u32| -> Vec<Vec<Option<u64>>> {
                x.bits()
                    .iter()
                    .enumerate()
                    .map(|(p, row)| {
                        row.iter()
                            .map(|&v| Some(u64::from(f(p, v as u32))))
                            .collect()
                    })
                    .collect()
            };
            let want = each(&|p, v| {
                let product = v.wrapping_mul(scalars[p][0] as u32);
                product.wrapping_sub(77)
            });
            assert_tensor(&found["d"], &d.with(&want), &ops);
            let want = each(&|_, v| v.wrapping_mul(v));
            assert_tensor(&found["e"], &e.with(&want), &ops);
        }
    }
}

#[test]
fn selections_by_mask_range_and_slope() {
    for (write, read, seed) in forms() {
        for dtype in [DType::F32, DType::Bf16, DType::F16] {
            let x = Operand::new("x", dtype, (33, 6), read, seed);
            let f = Operand::new("f", DType::F32, (33, 1), Form::Part, seed);
            let m = Operand::new("m", DType::U8, (33, 6), Form::Turned, seed)
                .filled(|at| (at % 3) as u64);
            let d = Operand::new("d", dtype, (33, 6), write, seed + 1);
            let e = Operand::new("e", DType::F32, (33, 6), write, seed + 2);
            let g = Operand::new("g", dtype, (33, 6), write, seed + 3);
            let t = Operand::new("t", DType::F32, (33, 1), Form::Strided, seed + 4);
            let ops = format!(
                "select {d} <- {m}, {x}, {f} {{reverse}}\n\
                 select_reduce {e}, reduce reset {t} <- {m}, {x}, {f}\n\
                 copy_predicated {g} <- {m}, {x}",
                d = d.text(),
                e = e.text(),
                g = g.text(),
                x = x.text(),
                f = f.text(),
                m = m.text(),
                t = t.text()
            );
            let found = run("trn2", &[&x, &f, &m, &d, &e, &g, &t], &ops);
            let (rows, masks, other) = (x.values(), m.bits(), f.values());
            let chosen = |set: bool| {
                map(&rows, |p, i, v| {
                    if (masks[p][i] != 0) == set {
                        v
                    } else {
                        other[p][0]
                    }
                })
            };
            assert_tensor(&found["d"], &d.with_values(&chosen(false)), &ops);
            let want = chosen(true);
            assert_tensor(&found["e"], &e.with_values(&want), &ops);
            let tops: Vec<Vec<f32>> = want
                .iter()
                .map(|row| vec![row.iter().copied().reduce(larger).expect("a row")])
                .collect();
            assert_tensor(&found["t"], &t.with_values(&tops), &ops);
            let copied: Vec<Vec<Option<u64>>> = x
                .bits()
                .iter()
                .enumerate()
                .map(|(p, row)| {
                    row.iter()
                        .enumerate()
                        .map(|(i, &bits)| (masks[p][i] != 0).then_some(bits))
                        .collect()
                })
                .collect();
            assert_tensor(&found["g"], &g.with(&copied), &ops);
        }
    }
}

#[test]
fn ranges_of_positions_and_running_maxima() {
    let comparisons = ["equal", "greater", "greater_equal", "less", "less_equal"];
    for (write, read, seed) in forms() {
        let x = Operand::new("x", DType::Bf16, (33, 8), read, seed);
        let d = Operand::new("d", DType::F16, (33, 8), write, seed + 1);
        let low = Operand::new("l", DType::F32, (33, 1), Form::Part, seed)
            .filled(|at| u64::from(((at % 7) as f32 + 4.0).to_bits()));
        let high = Operand::new("h", DType::F32, (33, 1), Form::Whole, seed)
            .filled(|at| u64::from(((at % 9) as f32 + 6.5).to_bits()));
        let (s, t) = (
            Operand::new("s", DType::F32, (33, 1), Form::Whole, seed + 2),
            Operand::new("t", DType::F32, (33, 1), Form::Part, seed + 3),
        );
        for cmp0 in comparisons {
            let cmp1 = comparisons[(seed as usize + cmp0.len()) % 5];
            let ops = format!(
                "range_select {cmp0} {cmp1} {d}, reduce reset {s} <- {x}, {l}, {h} {{range_start = 3}}\n\
                 range_select less greater {d}, reduce accumulate {t} <- {x}, {h}, {l} {{range_start = 3}}\n\
                 range_select {cmp0} {cmp1} {d} <- {x}, {l}, {h} {{range_start = 3}}",
                d = d.text(),
                s = s.text(),
                t = t.text(),
                x = x.text(),
                l = low.text(),
                h = high.text()
            );
            let found = run("trn2", &[&x, &d, &low, &high, &s, &t], &ops);
            let (from, to) = (low.values(), high.values());
            let rows = x.values();
            let first = map(&rows, |p, i, v| {
                let j = 3.0 + i as f32;
                let holds = compare(cmp0, j, from[p][0]) && compare(cmp1, j, to[p][0]);
                if holds { v } else { f32::MIN }
            });
            let second = map(&rows, |p, i, v| {
                let j = 3.0 + i as f32;
                if j < to[p][0] && j > from[p][0] {
                    v
                } else {
                    f32::MIN
                }
            });
            assert_tensor(&found["d"], &d.with_values(&first), &ops);
            let top = |row: &[f32]| row.iter().copied().reduce(larger).expect("a row");
            let tops: Vec<Vec<f32>> = first.iter().map(|row| vec![top(row)]).collect();
            assert_tensor(&found["s"], &s.with_values(&tops), &ops);
            let both: Vec<Vec<f32>> = first
                .iter()
                .zip(&second)
                .map(|(a, b)| vec![larger(top(a), top(b))])
                .collect();
            assert_tensor(&found["t"], &t.with_values(&both), &ops);
        }
    }
}

#[test]
fn slopes_are_compared_with_zero() {
    const PATTERN: &str = "offset = -20, channel_multiplier = 3, pattern = [[5, 2], [-4, 3]]";
    let slope = |p: usize, i: usize| {
        let (p, i) = (p as i64, i as i64);
        (-20 + 3 * p + 5 * (i / 3) - 4 * (i % 3)) as f32
    };
    for (write, read, seed) in forms() {
        let to = [DType::F32, DType::Bf16, DType::I16][seed as usize % 3];
        let x = Operand::new("x", dtype_of(seed), (33, 6), read, seed);
        let d = Operand::new("d", to, (33, 6), write, seed + 1);
        for op in [
            "equal",
            "not_equal",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
        ] {
            let ops = format!(
                "affine_select {op} {} <- {}, -3.5 {{{PATTERN}}}",
                d.text(),
                x.text()
            );
            let found = run("trn2", &[&x, &d], &ops);
            let want = map(&x.values(), |p, i, v| {
                if compare(op, slope(p, i), 0.0) {
                    v
                } else {
                    -3.5
                }
            });
            assert_tensor(&found["d"], &d.with_values(&want), &ops);
        }
        let ops = format!("iota {} {{{PATTERN}}}", d.text());
        let found = run("trn2", &[&d], &ops);
        let want = map(&x.values(), |p, i, _| slope(p, i));
        assert_tensor(&found["d"], &d.with_values(&want), &ops);
    }
}

#[test]
fn reductions_scans_and_the_eight_largest() {
    for (write, read, seed) in forms() {
        for dtype in DTYPES {
            let x = Operand::new("x", dtype, (33, 12), read, seed);
            let y = Operand::new("y", DType::F32, (33, 12), Form::Strided, seed);
            let d = Operand::new("d", DType::F32, (33, 12), write, seed + 1);
            let e = Operand::new("e", dtype, (33, 8), write, seed + 2);
            let s = Operand::new("s", DType::F32, (33, 1), Form::Part, seed + 3);
            // The dimensions of the access as it is spelt, all of them.
            let axes: Vec<usize> = (1..=x.pairs.len()).collect();
            let ops = format!(
                "tensor_reduce add {s} <- {x} {{axes = {axes:?}, negate}}\n\
                 tensor_tensor_scan multiply add {d} <- {x}, {y}, initial 0.5\nmax8 {e} <- {x}",
                s = s.text(),
                d = d.text(),
                e = e.text(),
                x = x.text(),
                y = y.text()
            );
            let found = run("trn2", &[&x, &y, &d, &e, &s], &ops);
            let (rows, others) = (x.values(), y.values());
            let sums: Vec<Vec<f32>> = rows
                .iter()
                .map(|row| vec![-row[1..].iter().fold(row[0], |acc, v| acc + v)])
                .collect();
            assert_tensor(&found["s"], &s.with_values(&sums), &ops);
            let scanned: Vec<Vec<f32>> = rows
                .iter()
                .zip(&others)
                .map(|(a, b)| {
                    let mut state = 0.5f32;
                    a.iter()
                        .zip(b)
                        .map(|(a, b)| {
                            state = a * state + b;
                            state
                        })
                        .collect()
                })
                .collect();
            assert_tensor(&found["d"], &d.with_values(&scanned), &ops);
            let largest: Vec<Vec<f32>> = rows
                .iter()
                .map(|row| {
                    let mut row: Vec<f32> = row
                        .iter()
                        .map(|x| if x.is_nan() { f32::NEG_INFINITY } else { *x })
                        .collect();
                    row.sort_by(|a, b| b.partial_cmp(a).expect("no NaN"));
                    row.truncate(8);
                    row
                })
                .collect();
            assert_equal(&found["e"], &e.with_values(&largest), &ops);
        }
    }
}

#[test]
fn statistics_of_halves_in_any_form() {
    for (write, read, seed) in forms() {
        for dtype in [DType::F32, DType::I16] {
            let x = Operand::new("x", dtype, (33, 10), read, seed)
                .filled(|at| from_f32(dtype, ((at * 37) % 23) as f32 - 9.0).expect("a number"));
            let d = Operand::new("d", DType::F32, (33, 6), write, seed + 1);
            let ops = format!("bn_stats {} <- {}", d.text(), x.text());
            let found = run("trn2", &[&x, &d], &ops);
            let mut got = d.clone();
            got.tensor = found["d"].clone();
            for (row, six) in x.values().iter().zip(got.values()) {
                for half in 0..2 {
                    let part: Vec<f64> = row
                        .iter()
                        .skip(half)
                        .step_by(2)
                        .map(|&v| f64::from(v))
                        .collect();
                    let n = part.len() as f64;
                    let mean = part.iter().sum::<f64>() / n;
                    let squares = part.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
                    for (found, want) in six[3 * half..].iter().zip([n, mean, squares]) {
                        assert!(
                            (f64::from(*found) - want).abs() <= 1e-5 * (1.0 + want.abs()),
                            "{ops}: {found}, expected {want}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn comparisons_between_tiles_give_ones_and_zeros() {
    for (write, read, seed) in forms() {
        let a = Operand::new("a", DType::Bf16, (33, 6), read, seed);
        let b = Operand::new("b", DType::I8, (33, 6), Form::Turned, seed);
        let d = Operand::new("d", DType::U8, (33, 6), write, seed);
        for op in [
            "equal",
            "not_equal",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
        ] {
            let ops = format!(
                "tensor_tensor {op} {} <- {}, {}",
                d.text(),
                a.text(),
                b.text()
            );
            let found = run("trn2", &[&a, &b, &d], &ops);
            let right = b.values();
            let want = map(&a.values(), |p, i, v| truth(compare(op, v, right[p][i])));
            assert_tensor(&found["d"], &d.with_values(&want), &ops);
        }
    }
}

#[test]
fn products_of_tiles_in_any_form() {
    for (_, read, seed) in forms() {
        for (dtype, other) in [(DType::F32, DType::F32), (DType::Bf16, DType::F8E4M3)] {
            let a = Operand::new("a", dtype, (40, 6), read, seed);
            let b = Operand::new("b", other, (40, 5), Form::Reversed, seed + 1);
            let y = Operand::new("y", DType::F32, (6, 5), Form::Whole, 0);
            let ops = format!(
                "%p = alloc psum<6x5xf32>\nmatmult %p <- stationary {}, moving {}\ntensor_copy {} <- %p",
                a.text(),
                b.text(),
                y.text()
            );
            let found = run("trn2", &[&a, &b, &y], &ops);
            let (left, right) = (a.values(), b.values());
            let want: Vec<Vec<f32>> = (0..6)
                .map(|m| {
                    (0..5)
                        .map(|n| {
                            let mut acc = left[0][m] * right[0][n];
                            for k in 1..40 {
                                acc = left[k][m].mul_add(right[k][n], acc);
                            }
                            acc
                        })
                        .collect()
                })
                .collect();
            assert_tensor(&found["y"], &y.with_values(&want), &ops);
        }
    }
}

#[test]
fn transpositions_of_tiles_in_any_form() {
    for (write, read, seed) in forms() {
        for dtype in [DType::F32, DType::F16, DType::I8] {
            let x = Operand::new("x", dtype, (20, 6), read, seed);
            let d = Operand::new("d", dtype, (6, 20), write, seed + 1);
            let ops = format!("transpose {} <- {} {{engine = dve}}", d.text(), x.text());
            let found = run("trn2", &[&x, &d], &ops);
            let from = x.bits();
            let want: Vec<Vec<Option<u64>>> = (0..6)
                .map(|i| (0..20).map(|p| Some(from[p][i])).collect())
                .collect();
            assert_eq!(found["d"], d.with(&want), "{ops}");
        }
    }
}

#[test]
fn rows_of_a_table_go_to_and_come_from_tiles_in_any_form() {
    for (write, read, seed) in forms() {
        let i =
            Operand::new("i", DType::U16, (20, 1), read, seed).filled(|at| (at * 7 % 50) as u64);
        for to in [DType::F32, DType::Bf16] {
            let d = Operand::new("d", to, (20, 6), write, seed + 1);
            let constant = "%table = alloc dram<50x6xf32>\n%w = alloc sbuf<50x6xf32>\n";
            let fill = "iota %w {channel_multiplier = 10, pattern = [[1, 6]]}\nsave %table <- %w\n";
            let ops = format!(
                "{constant}{fill}dma_copy {} <- %table, src_index {} {{dge = swdge}}",
                d.text(),
                i.text()
            );
            let found = run("trn2", &[&i, &d], &ops);
            let want: Vec<Vec<f32>> = i
                .bits()
                .iter()
                .map(|row| (0..6).map(|c| (row[0] * 10 + c) as f32).collect())
                .collect();
            assert_tensor(&found["d"], &d.with_values(&want), &ops);
        }
        let missing = format!(
            "%table = alloc dram<50x6xf32>\n%w = alloc sbuf<50x6xf32>\nmemset %w <- 0.0\nsave %table <- %w\n\
             dma_copy %d_t[p 0:20, off 0, 1 x 6] <- %table, src_index {} {{dge = swdge}}",
            i.text()
        );
        let d = Operand::new("d", DType::F32, (20, 6), Form::Whole, 0);
        let wrong = i.clone().filled(|_| 50);
        assert_eq!(
            failure("trn2", &[&wrong, &d], &missing),
            "`dma_copy` finds index 50 for partition 0, but `%table` has 50 rows"
        );
    }
}
