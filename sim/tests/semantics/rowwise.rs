//! `exponential`, `activate2`, `tensor_scalar_reduce`, `tensor_scalar_cumulative` and
//! `tensor_scalar_cache` against formulas element by element.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, failure, run};
use bir_dialect::bir::num::DType;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        tensor_scalar_reduce_reduces_what_it_computes_before_conversion,
        &["tensor_scalar_reduce"],
    ),
    (exponential_subtracts_and_sums, &["exponential"]),
    (
        activate2_takes_two_steps_and_reduces_by_five_operations,
        &["activate2"],
    ),
    (
        tensor_scalar_cumulative_runs_along_rows,
        &["tensor_scalar_cumulative"],
    ),
    (
        tensor_scalar_cache_keeps_scalars_for_later,
        &["tensor_scalar_cache"],
    ),
];

fn alu(op: &str, a: f32, b: f32) -> f32 {
    let nan = a.is_nan() || b.is_nan();
    match op {
        "add" => a + b,
        "subtract" => a - b,
        "multiply" => a * b,
        "bypass" => a,
        _ if nan => f32::NAN,
        "max" => {
            if a > b {
                a
            } else {
                b
            }
        }
        "min" => {
            if a < b {
                a
            } else {
                b
            }
        }
        "abs_max" => {
            if a.abs() > b.abs() {
                a
            } else {
                b
            }
        }
        "abs_min" => {
            if a.abs() < b.abs() {
                a
            } else {
                b
            }
        }
        _ => unreachable!("{op}"),
    }
}

fn fold(op: &str, row: &[f32]) -> f32 {
    row[1..].iter().fold(row[0], |acc, &x| alu(op, acc, x))
}

/// One f32 per row, in a tile of its own.
fn column(name: &'static str, rows: usize, seed: u64) -> Operand {
    Operand::new(name, DType::F32, (rows, 1), Form::Part, seed)
}

#[test]
fn tensor_scalar_reduce_reduces_what_it_computes_before_conversion() {
    let mut seed = 0;
    for (dtype, to) in [
        (DType::F32, DType::F32),
        (DType::Bf16, DType::F8E5M2),
        (DType::I8, DType::F16),
        (DType::F16, DType::I16),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS.into_iter().rev()) {
            for reduce in ["add", "multiply", "max", "min"] {
                seed += 1;
                let x = Operand::new("x", dtype, (19, 14), reads, seed);
                let d = Operand::new("d", to, (19, 14), form, seed + 1);
                let c = column("c", 19, seed + 2);
                let s = column("s", 19, seed + 3);
                let ops = format!(
                    "tensor_scalar_reduce subtract {}, reduce {reduce} reset {} <- {}, {} {{negate}}",
                    d.text(),
                    s.text(),
                    x.text(),
                    c.text()
                );
                let found = run("trn2", &[&x, &d, &c, &s], &ops);
                let rows: Vec<Vec<f32>> = x
                    .values()
                    .iter()
                    .zip(c.values())
                    .map(|(row, c)| row.iter().map(|x| x - c[0]).collect())
                    .collect();
                let sums: Vec<Vec<f32>> = rows.iter().map(|row| vec![-fold(reduce, row)]).collect();
                assert_tensor(&found["d"], &d.with_values(&rows), &ops);
                assert_tensor(&found["s"], &s.with_values(&sums), &ops);
            }
        }
    }
}

#[test]
fn vector_accumulators_go_on_are_loaded_and_are_lost_to_idle_users() {
    let x = Operand::new("x", DType::F32, (5, 8), Form::Whole, 3);
    let d = Operand::new("d", DType::F32, (5, 8), Form::Whole, 4);
    let (s, t, i) = (column("s", 5, 5), column("t", 5, 6), column("i", 5, 7));
    let ops = format!(
        "tensor_scalar_reduce add {d}, reduce add load {s} <- {x}, 1.0, init {i} {{negate}}\n\
         tensor_scalar_reduce add {d}, reduce max accumulate {t} <- {x}, 2.0",
        d = d.text(),
        s = s.text(),
        t = t.text(),
        x = x.text(),
        i = i.text()
    );
    let found = run("trn2", &[&x, &d, &s, &t, &i], &ops);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (row, i) in x.values().iter().zip(i.values()) {
        let shifted = |by: f32| row.iter().map(|x| x + by).collect::<Vec<f32>>();
        let sum = i[0] + fold("add", &shifted(1.0));
        first.push(vec![-sum]);
        // The accumulator keeps what is not negated.
        second.push(vec![alu("max", sum, fold("max", &shifted(2.0)))]);
    }
    assert_tensor(&found["s"], &s.with_values(&first), "load");
    assert_tensor(&found["t"], &t.with_values(&second), "accumulate");
    let idle = format!(
        "tensor_scalar_reduce add {d} <- {x}, 1.0 {{reduce_cmd = reset}}\n\
         tensor_scalar_reduce add {d} <- {x}, 1.0 {{reduce_cmd = idle}}\n\
         tensor_scalar_reduce add {d}, reduce add accumulate {s} <- {x}, 1.0",
        d = d.text(),
        s = s.text(),
        x = x.text()
    );
    assert_eq!(
        failure("trn2", &[&x, &d, &s], &idle),
        "`tensor_scalar_reduce` uses the accumulator of the vector engine for partition 0, which holds nothing defined"
    );
}

#[test]
fn exponential_subtracts_and_sums() {
    let mut seed = 40;
    for (dtype, to) in [
        (DType::F32, DType::F32),
        (DType::Bf16, DType::Bf16),
        (DType::I8, DType::F8E4M3FN),
        (DType::F16, DType::U8),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            seed += 1;
            let x = Operand::new("x", dtype, (33, 6), reads, seed);
            let d = Operand::new("d", to, (33, 6), form, seed + 1);
            let (m, s, t) = (
                column("m", 33, seed + 2),
                column("s", 33, seed + 3),
                column("t", 33, seed + 4),
            );
            let ops = format!(
                "exponential {d} <- {x}\nexponential {d}, reduce load {s} <- {x}, max {m}, init 0.5\n\
                 exponential {d}, reduce accumulate {t} <- {x}, max {m}",
                d = d.text(),
                s = s.text(),
                t = t.text(),
                x = x.text(),
                m = m.text()
            );
            let found = run("trn3", &[&x, &d, &m, &s, &t], &ops);
            // e^t of the library that `activation` is held to, through the same instruction.
            let exp = format!("activation exp {} <- %e_t", d.text());
            let shifted: Vec<Vec<f32>> = x
                .values()
                .iter()
                .zip(m.values())
                .map(|(row, m)| row.iter().map(|x| x - m[0]).collect())
                .collect();
            let e = Operand::whole(
                "e",
                tensor(DType::F32, &[33, 6], shifted.iter().flatten().copied()),
            );
            let want = run("trn3", &[&e, &d], &exp);
            assert_tensor(&found["d"], &want["d"], &ops);
            // Sums are those of the values before conversion.
            let wide = Operand::new("w", DType::F32, (33, 6), Form::Whole, 1);
            let exact = run(
                "trn3",
                &[&e, &wide],
                &format!("activation exp {} <- %e_t", wide.text()),
            );
            let exact = Operand::whole("w", exact["w"].clone()).values();
            for (row, e) in exact.iter().zip(&shifted) {
                for (found, t) in row.iter().zip(e) {
                    let want = f64::from(*t).exp();
                    let near = (f64::from(*found) - want).abs() <= want * 3e-7
                        || want > f64::from(f32::MAX)
                        || want < 1e-37
                        || want.is_nan() && found.is_nan();
                    assert!(near, "e^{t} is {found}");
                }
            }
            let sums: Vec<f32> = exact.iter().map(|row| fold("add", row)).collect();
            let first: Vec<Vec<f32>> = sums.iter().map(|sum| vec![0.5 + sum]).collect();
            let second: Vec<Vec<f32>> = sums.iter().map(|sum| vec![0.5 + sum + sum]).collect();
            assert_tensor(&found["s"], &s.with_values(&first), &ops);
            assert_tensor(&found["t"], &t.with_values(&second), &ops);
        }
    }
}

#[test]
fn activate2_takes_two_steps_and_reduces_by_five_operations() {
    let mut seed = 100;
    for (op0, op1) in [
        ("multiply", "add"),
        ("multiply", "subtract"),
        ("multiply", "bypass"),
        ("add", "bypass"),
        ("subtract", "bypass"),
        ("bypass", "bypass"),
    ] {
        for reduce in ["add", "max", "min", "abs_max", "abs_min"] {
            for reverse in ["", "reverse0", "reverse1"] {
                let used = match reverse {
                    "reverse0" => op0 != "bypass",
                    "reverse1" => op1 != "bypass",
                    _ => true,
                };
                if !used {
                    continue;
                }
                seed += 1;
                let x = Operand::new("x", DType::Bf16, (7, 10), READS[seed as usize % 6], seed);
                let d = Operand::new("d", DType::F32, (7, 10), WRITES[seed as usize % 5], seed);
                let (c, s, t) = (
                    column("c", 7, seed),
                    column("s", 7, seed + 1),
                    column("t", 7, seed + 2),
                );
                let scalars = match (op0, op1) {
                    ("bypass", _) => String::new(),
                    (_, "bypass") => format!(", {}", c.text()),
                    _ => format!(", {}, 1.5", c.text()),
                };
                let ops = format!(
                    "activate2 relu {op0} {op1} {d}, reduce {reduce} reset {s} <- {x}{scalars} {{{reverse}}}\n\
                     activate2 relu {op0} {op1} {d}, reduce {reduce} accumulate {t} <- {x}{scalars} {{{reverse}}}",
                    d = d.text(),
                    s = s.text(),
                    t = t.text(),
                    x = x.text()
                )
                .replace(" {}", "");
                let found = run("trn3", &[&x, &d, &c, &s, &t], &ops);
                let step = |op: &str, swapped: bool, a: f32, b: f32| {
                    if swapped && op != "bypass" {
                        alu(op, b, a)
                    } else {
                        alu(op, a, b)
                    }
                };
                let rows: Vec<Vec<f32>> = x
                    .values()
                    .iter()
                    .zip(c.values())
                    .map(|(row, c)| {
                        row.iter()
                            .map(|&x| {
                                let first = step(op0, reverse == "reverse0", x, c[0]);
                                let second = step(op1, reverse == "reverse1", first, 1.5);
                                alu("max", second, 0.0)
                            })
                            .collect()
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with_values(&rows), &ops);
                let once: Vec<f32> = rows.iter().map(|row| fold(reduce, row)).collect();
                let twice: Vec<Vec<f32>> = once.iter().map(|&x| vec![alu(reduce, x, x)]).collect();
                let once: Vec<Vec<f32>> = once.iter().map(|&x| vec![x]).collect();
                assert_tensor(&found["s"], &s.with_values(&once), &ops);
                assert_tensor(&found["t"], &t.with_values(&twice), &ops);
            }
        }
    }
}

#[test]
fn activate2_clears_to_the_identity_and_leaves_the_accumulator_when_idle() {
    let x = Operand::new("x", DType::F32, (3, 4), Form::Whole, 1);
    let d = Operand::new("d", DType::F32, (3, 4), Form::Whole, 2);
    for (reduce, identity) in [
        ("add", 0.0),
        ("max", f32::NEG_INFINITY),
        ("min", f32::INFINITY),
        ("abs_max", 0.0),
        ("abs_min", f32::INFINITY),
    ] {
        let s = column("s", 3, 3);
        let ops = format!(
            "activate2 copy bypass bypass {d} <- {x} {{reduce = {reduce}, reduce_cmd = clear}}\n\
             activate2 copy bypass bypass {d} <- {x}\nread_activation_accumulator {s}",
            d = d.text(),
            x = x.text(),
            s = s.text()
        );
        let found = run("trn3", &[&x, &d, &s], &ops);
        assert_tensor(
            &found["s"],
            &s.with_values(&vec![vec![identity]; 3]),
            reduce,
        );
    }
    let s = column("s", 3, 3);
    let ops = format!(
        "activate2 copy bypass bypass {}, reduce add accumulate {} <- {}",
        d.text(),
        s.text(),
        x.text()
    );
    assert_eq!(
        failure("trn3", &[&x, &d, &s], &ops),
        "`activate2` uses the accumulator of the activation engine for partition 0, which holds nothing defined"
    );
}

#[test]
fn tensor_scalar_cumulative_runs_along_rows() {
    let mut seed = 200;
    for (dtype, to) in [
        (DType::F32, DType::F32),
        (DType::Bf16, DType::I16),
        (DType::U8, DType::F16),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for (op1, identity) in [
                ("add", 0.0),
                ("subtract", 0.0),
                ("multiply", 1.0),
                ("max", f32::NEG_INFINITY),
                ("min", f32::INFINITY),
            ] {
                for (cmd, init) in [("reset", ""), ("load", ", init 2.5"), ("accumulate", "")] {
                    seed += 1;
                    let x = Operand::new("x", dtype, (6, 8), reads, seed);
                    let d = Operand::new("d", to, (6, 8), form, seed + 1);
                    let c = column("c", 6, seed + 2);
                    let before = if cmd == "accumulate" {
                        format!(
                            "tensor_scalar_cumulative add {op1} {} <- {}, 1.0\n",
                            d.text(),
                            x.text()
                        )
                    } else {
                        String::new()
                    };
                    let ops = format!(
                        "{before}tensor_scalar_cumulative multiply {op1} {} <- {}, {}{init} {{reduce_cmd = {cmd}}}",
                        d.text(),
                        x.text(),
                        c.text()
                    );
                    let found = run("trn2", &[&x, &d, &c], &ops);
                    let along = |row: &[f32], f: &dyn Fn(f32) -> f32, mut state: f32| {
                        row.iter()
                            .map(|&x| {
                                state = alu(op1, f(x), state);
                                state
                            })
                            .collect::<Vec<f32>>()
                    };
                    let rows: Vec<Vec<f32>> = x
                        .values()
                        .iter()
                        .zip(c.values())
                        .map(|(row, c)| {
                            let start = match cmd {
                                "load" => 2.5,
                                "accumulate" => along(row, &|x| x + 1.0, identity)[7],
                                _ => identity,
                            };
                            along(row, &|x| x * c[0], start)
                        })
                        .collect();
                    assert_tensor(&found["d"], &d.with_values(&rows), &ops);
                }
            }
        }
    }
    let (x, d) = (
        Operand::new("x", DType::F32, (6, 8), Form::Whole, 1),
        Operand::new("d", DType::F32, (6, 8), Form::Whole, 2),
    );
    let ops = "tensor_scalar_cumulative add add %d_t[p 64:70, off 0, 1 x 8] <- %x_t[p 32:38, off 0, 1 x 8], 0.0 {reduce_cmd = accumulate}";
    assert_eq!((d.start, x.start), (64, 32));
    assert!(failure("trn2", &[&x, &d], ops).contains("vector engine for partition 0"));
}

#[test]
fn tensor_scalar_cache_keeps_scalars_for_later() {
    for (form, reads) in WRITES.into_iter().zip(READS) {
        let x = Operand::new("x", DType::Bf16, (9, 6), reads, 5);
        let z = Operand::new("z", DType::F32, (9, 6), Form::Whole, 6);
        let d = Operand::new("d", DType::F32, (9, 6), form, 7);
        let e = Operand::new("e", DType::F16, (9, 6), form, 8);
        let c = column("c", 9, 9);
        let ops = format!(
            "tensor_scalar_cache multiply add {d} <- {x}, {c}, 3.0 {{cache_write}}\n\
             tensor_scalar_cache subtract max {d} <- {x}, 7.0, 8.0\n\
             tensor_scalar_cache subtract multiply {e} <- {z} {{cache_read, reverse0}}",
            d = d.text(),
            e = e.text(),
            x = x.text(),
            z = z.text(),
            c = c.text()
        );
        let found = run("trn2", &[&x, &z, &d, &e, &c], &ops);
        let second: Vec<Vec<f32>> = x
            .values()
            .iter()
            .map(|row| row.iter().map(|&x| alu("max", x - 7.0, 8.0)).collect())
            .collect();
        let cached: Vec<Vec<f32>> = z
            .values()
            .iter()
            .zip(c.values())
            .map(|(row, c)| row.iter().map(|z| (c[0] - z) * 3.0).collect())
            .collect();
        assert_tensor(&found["d"], &d.with_values(&second), &ops);
        assert_tensor(&found["e"], &e.with_values(&cached), &ops);
    }
    let x = Operand::new("x", DType::F32, (9, 6), Form::Whole, 4);
    let short = "tensor_scalar_cache add %x_t[0:4, :] <- %x_t[0:4, :], 1.0 {cache_write}\n\
                 tensor_scalar_cache add %x_t <- %x_t {cache_read}";
    assert_eq!(
        failure("trn2", &[&x], short),
        "`tensor_scalar_cache` takes scalar 0 of partition 4 from the cache, which holds nothing there"
    );
}

#[test]
fn sources_that_overlap_the_destination_are_read_first() {
    let x = Operand::whole(
        "x",
        tensor(
            DType::F32,
            &[33, 12],
            (0..396).map(|i| ((i * 7) % 31) as f32),
        ),
    );
    let old = x.values();
    type Row<'a> = &'a dyn Fn(&[f32]) -> Vec<f32>;
    let cases: [(&str, Row<'_>); 6] = [
        (
            "tensor_scalar_reduce add %x_t[:, 1:12] <- %x_t[:, 0:11], 1.0",
            &|row| row[..11].iter().map(|x| x + 1.0).collect(),
        ),
        (
            "tensor_scalar_cumulative multiply add %x_t[:, 1:12] <- %x_t[:, 0:11], 1.0",
            &|row| (1..12).map(|n| row[..n].iter().sum()).collect(),
        ),
        (
            "tensor_scalar_cache multiply %x_t[:, 1:12] <- %x_t[:, 0:11], %x_t[:, 5:6] {cache_write}",
            &|row| row[..11].iter().map(|x| x * row[5]).collect(),
        ),
        (
            "activate2 copy multiply bypass %x_t[:, 1:12] <- %x_t[:, 0:11], %x_t[:, 11:12]",
            &|row| row[..11].iter().map(|x| x * row[11]).collect(),
        ),
        ("dropout %x_t[:, 1:12] <- %x_t[:, 0:11], 0.0", &|row| {
            row[..11].to_vec()
        }),
        (
            "dma_compute add %x_t[:, 1:12] <- %x_t[:, 0:11], %x_t[:, 1:12]",
            &|row| (0..11).map(|i| row[i] + row[i + 1]).collect(),
        ),
    ];
    for (ops, f) in cases {
        let found = crate::views::run_refused(&[&x], ops);
        let want: Vec<f32> = old
            .iter()
            .flat_map(|row| {
                let mut row = row.clone();
                let new = f(&row);
                row[1..].copy_from_slice(&new);
                row
            })
            .collect();
        assert_same(&values(&found["x"]), &want, ops);
    }
}
