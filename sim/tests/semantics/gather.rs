//! Elements and columns named by data, and copies at run-time offsets, against loops over elements.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, failure, run};
use bir_dialect::bir::num::DType;
use bir_sim::random::Random;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (tensor_gather_reads_columns_in_a_snake, &["tensor_gather"]),
    (
        tensor_scatter_writes_columns_and_leaves_the_others,
        &["tensor_scatter"],
    ),
    (
        local_gather_shares_a_list_among_sixteen_partitions,
        &["local_gather"],
    ),
    (n_gather_gives_each_element_its_position, &["n_gather"]),
    (
        dynamic_copies_start_where_a_register_says,
        &["tensor_copy_dynamic_src", "tensor_copy_dynamic_dst"],
    ),
    (sequence_bounds_are_those_of_runs, &["sequence_bounds"]),
    (
        nonzero_with_count_looks_at_every_sixteenth_partition,
        &["nonzero_with_count"],
    ),
];

fn some(rows: Vec<Vec<u64>>) -> Vec<Vec<Option<u64>>> {
    rows.into_iter()
        .map(|row| row.into_iter().map(Some).collect())
        .collect()
}

/// An index tile of so many rows and columns with random numbers below `bound`.
fn positions(dtype: DType, shape: (usize, usize), bound: u64, form: Form, seed: u64) -> Operand {
    let mut random = Random::new(seed, "positions");
    let numbers: Vec<u64> = (0..1 << 14).map(|_| random.below(bound)).collect();
    Operand::new("i", dtype, shape, form, seed).filled(|at| numbers[at])
}

const DTYPES: [DType; 4] = [DType::F32, DType::Bf16, DType::U8, DType::F8E5M2x4];

#[test]
fn tensor_gather_reads_columns_in_a_snake() {
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (form, reads) in WRITES.into_iter().zip(READS.into_iter().rev()) {
            for index in [DType::U16, DType::U32, DType::I32] {
                let seed = n as u64 + 1;
                let x = Operand::new("x", dtype, (33, 12), reads, seed);
                let d = Operand::new("d", dtype, (33, 20), form, seed + 1);
                // The numbers stand where the tile starts: at the first partition.
                let i = (seed..)
                    .map(|seed| positions(index, (16, 2), 12, Form::Strided, seed))
                    .find(|i| i.text().contains("p 0:"))
                    .expect("a seed that starts there");
                let ops = format!(
                    "tensor_gather {} <- {}, index {}",
                    d.text(),
                    x.text(),
                    i.text()
                );
                let found = run("trn3", &[&x, &d, &i], &ops);
                let (from, list) = (x.bits(), i.bits());
                let want = (0..33)
                    .map(|p| {
                        (0..20)
                            .map(|j| from[p][list[j % 16][j / 16] as usize])
                            .collect()
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with(&some(want)), &ops);
            }
        }
    }
}

#[test]
fn tensor_scatter_writes_columns_and_leaves_the_others() {
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (form, reads) in WRITES.into_iter().zip(READS.into_iter().rev()) {
            let seed = n as u64 + 7;
            let x = Operand::new("x", dtype, (33, 18), reads, seed);
            let d = Operand::new("d", dtype, (33, 24), form, seed + 1);
            // 5 is coprime to 24: no column twice.
            let i = Operand::new("i", DType::U16, (16, 2), Form::Whole, 4)
                .filled(|at| ((at % 2 * 16 + at / 2) * 5 % 24) as u64);
            let ops = format!(
                "tensor_scatter {} <- {}, index {}",
                d.text(),
                x.text(),
                i.text()
            );
            let found = run("trn3", &[&x, &d, &i], &ops);
            let (from, list) = (x.bits(), i.bits());
            let mut want = vec![vec![None; 24]; 33];
            for p in 0..33 {
                for j in 0..18 {
                    want[p][list[j % 16][j / 16] as usize] = Some(from[p][j]);
                }
            }
            assert_tensor(&found["d"], &d.with(&want), &ops);
        }
    }
}

#[test]
fn local_gather_shares_a_list_among_sixteen_partitions() {
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for (count, width) in [(20, 1), (5, 4), (1, 8)] {
                let seed = n as u64 + 20;
                let x = Operand::new("x", dtype, (64, 30), reads, seed);
                let d = Operand::new("d", dtype, (64, count * width), form, seed + 1);
                let bound = 30 - width as u64 + 1;
                let i = positions(DType::U16, (64, 2), bound, Form::Part, seed);
                let ops = format!(
                    "local_gather {} <- {}, {} {{count = {count}, width = {width}}}",
                    d.text(),
                    x.text(),
                    i.text()
                );
                let found = run("trn2", &[&x, &d, &i], &ops);
                let (from, list) = (x.bits(), i.bits());
                let want = (0..64)
                    .map(|p| {
                        let mut row = Vec::new();
                        for j in 0..count {
                            let position = list[p / 16 * 16 + j % 16][j / 16] as usize;
                            for e in 0..width {
                                row.push(from[p][position + e]);
                            }
                        }
                        row
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with(&some(want)), &ops);
            }
        }
    }
}

#[test]
fn n_gather_gives_each_element_its_position() {
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (form, reads) in WRITES.into_iter().zip(READS.into_iter().rev()) {
            let seed = n as u64 + 30;
            let x = Operand::new("x", dtype, (20, 9), reads, seed);
            let d = Operand::new("d", dtype, (20, 14), form, seed + 1);
            let i = positions(DType::U32, (20, 14), 9, Form::Turned, seed);
            let ops = format!("n_gather {} <- {}, {}", d.text(), x.text(), i.text());
            let found = run("trn2", &[&x, &d, &i], &ops);
            let (from, list) = (x.bits(), i.bits());
            let want = (0..20)
                .map(|p| list[p].iter().map(|&at| from[p][at as usize]).collect())
                .collect();
            assert_tensor(&found["d"], &d.with(&some(want)), &ops);
        }
    }
}

#[test]
fn gathers_read_a_tile_before_they_write_it() {
    let x = Operand::whole("x", tensor(DType::F32, &[2, 6], (0..12).map(|i| i as f32)));
    let i = Operand::whole("i", bits(DType::U32, &[2, 6], (0..12).map(|i| 5 - i % 6)));
    let found = run("trn2", &[&x, &i], "n_gather %x_t <- %x_t, %i_t");
    assert_eq!(
        values(&found["x"]),
        [5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0]
    );
}

#[test]
fn positions_outside_are_named() {
    let x = Operand::new("x", DType::F32, (16, 9), Form::Part, 0);
    let d = Operand::new("d", DType::F32, (16, 8), Form::Whole, 0);
    let at = |dtype, wrong: u64| {
        Operand::new("i", dtype, (16, 8), Form::Whole, 0)
            .filled(move |at| if at == 19 { wrong } else { (at % 8) as u64 })
    };
    let i = at(DType::U32, 9);
    let n = format!("n_gather {} <- {}, {}", d.text(), x.text(), i.text());
    assert_eq!(
        failure("trn3", &[&x, &d, &i], &n),
        "`n_gather` finds position 9 for element 3 of partition 2, but `%x_t` has 9 there"
    );
    let i = at(DType::U16, 8);
    let local = format!(
        "local_gather {} <- {}, {} {{count = 4, width = 2}}",
        d.text(),
        x.text(),
        i.text()
    );
    // Only the first column is used; there all is well.
    run("trn3", &[&x, &d, &i], &local);
    let i = at(DType::U16, 0).filled(|at| if at == 16 { 8 } else { 0 });
    assert_eq!(
        failure("trn3", &[&x, &d, &i], &local),
        "`local_gather` finds position 9 for element 5 of partition 0, but `%x_t` has 9 there"
    );
    let i = at(DType::I32, u64::from(u32::MAX)).filled(|_| u64::from(u32::MAX));
    let gather = format!(
        "tensor_gather {} <- {}, index {}",
        d.text(),
        x.text(),
        i.text()
    );
    assert_eq!(
        failure("trn3", &[&x, &d, &i], &gather),
        "`tensor_gather` finds position -1 for element 0 of partition 0, but `%x_t` has 9 there"
    );
    let scatter = format!(
        "tensor_scatter {} <- {}, index {}",
        x.text(),
        d.text(),
        i.text()
    );
    assert_eq!(
        failure("trn3", &[&x, &d, &i], &scatter),
        "`tensor_scatter` finds position -1 for column 0, but `%x_t` has 9 there"
    );
    let i = i.filled(|at| (at / 8 / 2) as u64);
    assert_eq!(
        failure("trn3", &[&x, &d, &i], &scatter),
        "`tensor_scatter` names column 0 of `%x_t` twice"
    );
}

#[test]
fn gathers_need_only_what_they_choose_to_be_defined() {
    let i = Operand::whole("i", bits(DType::U32, &[2, 4], [1, 1, 3, 1, 3, 3, 3, 1]));
    let d = Operand::whole("d", tensor(DType::F32, &[2, 4], [0.0; 8]));
    let ops = |columns: &str| {
        format!("%u = alloc sbuf<2x4xf32>\nmemset %u[{columns}] <- 7.0\nn_gather %d_t <- %u, %i_t")
    };
    let run = |ops: &str| {
        let body = crate::views::body(&[&i, &d], ops, false);
        let inputs = [&i, &d]
            .map(|o| (o.name.to_owned(), o.tensor.clone()))
            .into_iter()
            .collect();
        bir_sim::run(&unverified(&body), &inputs).map_err(|f| f.to_string())
    };
    assert!(run(&ops("0:2, 1:4:2")).is_ok());
    assert_eq!(
        run(&ops("0:2, 1:2")).expect_err("column 3 is undefined"),
        "`n_gather` reads `%u`, partitions 0 to 0, elements 3 to 3 of 4, which nothing has written"
    );
}

#[test]
fn dynamic_copies_start_where_a_register_says() {
    for (dtype, to) in [(DType::F32, DType::F32), (DType::Bf16, DType::I16)] {
        for form in [Form::Part, Form::Reversed] {
            let x = Operand::new("x", dtype, (33, 6), form, 3);
            let d = Operand::new("d", to, (33, 6), Form::Whole, 4);
            let ops = format!(
                "%n = register_move <- 2\ntensor_copy_dynamic_src {} <- {}, offset %n",
                d.text(),
                x.text()
            );
            if form == Form::Reversed {
                // It walks down from element 6 to 1 of 8; two further on is one too far.
                assert_eq!(
                    failure("trn2", &[&x, &d], &ops),
                    "`tensor_copy_dynamic_src` leaves `%x_t`: elements 3 to 8 of a partition of 8"
                );
                continue;
            }
            let found = run("trn2", &[&x, &d], &ops);
            let mut moved = x.clone();
            moved.off += 2;
            assert_tensor(&found["d"], &d.with_values(&moved.values()), &ops);
        }
    }
    let x = Operand::new("x", DType::F32, (4, 6), Form::Turned, 5);
    let d = Operand::new("d", DType::F32, (4, 6), Form::Part, 6);
    let ops = format!(
        "%n = register_move <- -3\ntensor_copy_dynamic_dst {} <- {}, offset %n",
        d.text(),
        x.text()
    );
    let found = run("trn2", &[&x, &d], &ops);
    let mut moved = d.clone();
    moved.off -= 3;
    assert_tensor(&found["d"], &moved.with_values(&x.values()), &ops);
    assert_eq!(
        failure("trn2", &[&x, &d], &ops.replace("-3", "-4")),
        "`tensor_copy_dynamic_dst` leaves `%d_t`: elements -1 to 4 of a partition of 11"
    );
}

#[test]
fn sequence_bounds_are_those_of_runs() {
    for dtype in [DType::F32, DType::I32] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            let mut random = Random::new(3, "ids");
            let ids: Vec<u64> = (0..200)
                .map(|_| match dtype {
                    DType::I32 => random.below(3),
                    _ => u64::from((random.below(3) as f32).to_bits()),
                })
                .collect();
            let x = Operand::new("x", dtype, (1, 40), reads, 2).filled(|at| ids[at % 200]);
            let d = Operand::new("d", dtype, (1, 80), form, 1);
            let ops = format!("sequence_bounds {} <- {}", d.text(), x.text());
            let found = run("trn2", &[&x, &d], &ops);
            let row = &x.bits()[0];
            let mut want = vec![0.0; 80];
            for i in 0..40 {
                let mut start = i;
                while start > 0 && row[start - 1] == row[i] {
                    start -= 1;
                }
                let mut end = i + 1;
                while end < 40 && row[end] == row[i] {
                    end += 1;
                }
                let padding = row[i] == 0;
                want[i] = if padding { 40.0 } else { start as f32 };
                want[40 + i] = if padding { -1.0 } else { end as f32 };
            }
            assert_tensor(&found["d"], &d.with_values(&[want]), &ops);
        }
    }
    // Integers that f32 would not tell apart; zeros of either sign; NaN is no run.
    let x = Operand::whole("x", bits(DType::I32, &[1, 2], [0x0100_0000, 0x0100_0001]));
    let d = Operand::whole("d", bits(DType::I32, &[1, 4], [0; 4]));
    let found = run("trn2", &[&x, &d], "sequence_bounds %d_t <- %x_t");
    assert_eq!(values(&found["d"]), [0.0, 1.0, 1.0, 2.0]);
    let x = Operand::whole(
        "x",
        tensor(DType::F32, &[1, 4], [0.0, -0.0, f32::NAN, f32::NAN]),
    );
    let d = Operand::whole("d", tensor(DType::F32, &[1, 8], [0.0; 8]));
    let found = run("trn2", &[&x, &d], "sequence_bounds %d_t <- %x_t");
    assert_eq!(
        values(&found["d"]),
        [4.0, 4.0, 2.0, 3.0, -1.0, -1.0, 3.0, 4.0]
    );
}

#[test]
fn nonzero_with_count_looks_at_every_sixteenth_partition() {
    for (dtype, rows) in [(DType::F32, 128), (DType::I32, 40), (DType::F32, 1)] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            let x = Operand::new("x", dtype, (rows, 9), reads, 12);
            let x = if dtype == DType::I32 {
                x.filled(|at| (at % 3) as u64)
            } else {
                x.filled(|at| [0, 0x8000_0000, 0x7fc0_0000, 0x3f80_0000][at * 5 % 7 % 4])
            };
            let d = Operand::new("d", DType::I32, (rows, 10), form, 13);
            let ops = format!(
                "nonzero_with_count {} <- {} {{offset = -20, padding = 77}}",
                d.text(),
                x.text()
            );
            let found = run("trn2", &[&x, &d], &ops);
            let want: Vec<Vec<Option<u64>>> = x
                .values()
                .iter()
                .enumerate()
                .map(|(p, row)| {
                    if p % 16 != 0 {
                        return vec![None; 10];
                    }
                    let hits: Vec<i64> = (0..9)
                        .filter(|&i| row[i as usize] != 0.0)
                        .map(|i| i - 20)
                        .collect();
                    let mut out = hits.clone();
                    out.resize(9, 77);
                    out.push(hits.len() as i64);
                    out.into_iter()
                        .map(|x| Some(x as u64 & 0xffff_ffff))
                        .collect()
                })
                .collect();
            assert_tensor(&found["d"], &d.with(&want), &ops);
        }
    }
}
