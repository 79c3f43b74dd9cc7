//! What moves data across partitions, against loops over elements.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, run};
use bir_dialect::bir::num::DType;
use bir_sim::{Options, Simulation};

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        stream_shuffle_moves_rows_within_quadrants,
        &["stream_shuffle"],
    ),
    (
        permute_implicit_reduce_add_adds_rows_that_meet,
        &["permute_implicit_reduce_add"],
    ),
    (
        tensor_partition_reduce_combines_all_partitions,
        &["tensor_partition_reduce"],
    ),
];

fn list(mask: &[usize]) -> String {
    format!("{mask:?}")
}

#[test]
fn stream_shuffle_moves_rows_within_quadrants() {
    let mut seed = 0;
    for dtype in [DType::F32, DType::Bf16, DType::U8, DType::I32] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for rows in [32, 64, 128] {
                seed += 1;
                let x = Operand::new("x", dtype, (rows, 6), reads, seed);
                let d = Operand::new("d", dtype, (rows, 6), form, seed + 1);
                let mask: Vec<usize> = (0..32)
                    .map(|j| {
                        if j % 5 == 4 {
                            255
                        } else {
                            (j * 7 + seed as usize) % 32
                        }
                    })
                    .collect();
                let ops = format!(
                    "stream_shuffle {} <- {} {{mask = {}}}",
                    d.text(),
                    x.text(),
                    list(&mask)
                );
                let found = run("trn2", &[&x, &d], &ops);
                let from = x.bits();
                let want: Vec<Vec<Option<u64>>> = (0..rows)
                    .map(|row| match mask[row % 32] {
                        255 => vec![None; 6],
                        j => from[row / 32 * 32 + j].iter().map(|&b| Some(b)).collect(),
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with(&want), &ops);
            }
        }
    }
}

#[test]
fn stream_shuffle_in_place_and_from_fewer_rows() {
    let x = Operand::new("x", DType::Bf16, (64, 6), Form::Whole, 9);
    let mask: Vec<usize> = (0..32).map(|j| (j + 31) % 32).collect();
    let ops = format!("stream_shuffle %x_t <- %x_t {{mask = {}}}", list(&mask));
    let found = run("trn2", &[&x], &ops);
    let from = x.bits();
    let want: Vec<Vec<Option<u64>>> = (0..64)
        .map(|row| {
            let source = row / 32 * 32 + (row % 32 + 31) % 32;
            from[source].iter().map(|&b| Some(b)).collect()
        })
        .collect();
    assert_tensor(&found["x"], &x.with(&want), "in place");
    // One row to all, and a destination that ends within a quadrant.
    let d = Operand::whole("d", x.tensor.clone());
    let ops = format!(
        "stream_shuffle %d_t[0:20, :] <- %x_t[32:33, :] {{mask = {}}}",
        list(&[0; 32])
    );
    let found = run("trn2", &[&x, &d], &ops);
    for row in 0..64 {
        for i in 0..6 {
            let source = if row < 20 { 32 } else { row };
            assert_eq!(found["d"].bits(row * 6 + i), x.tensor.bits(source * 6 + i));
        }
    }
}

#[test]
fn stream_shuffle_reads_only_rows_the_mask_names() {
    let x = Operand::whole("x", tensor(DType::F32, &[32, 2], (0..64).map(|i| i as f32)));
    let ops = |mask: &[usize]| {
        format!(
            "%u = alloc sbuf<32x2xf32>\ntensor_copy %u[0:1, :] <- %x_t[0:1, :]\n\
             stream_shuffle %x_t <- %u {{mask = {}}}",
            list(mask)
        )
    };
    let mut mask = [0; 32];
    let found = run_unverified(&x, &ops(&mask)).expect("row 0 is defined");
    assert!(values(&found).chunks(2).all(|row| row == [0.0, 1.0]));
    mask[3] = 7;
    assert_eq!(
        run_unverified(&x, &ops(&mask)).expect_err("row 7 is not"),
        "`stream_shuffle` reads `%u`, partitions 7 to 7, elements 0 to 1 of 2, which nothing has written"
    );
}

/// `%x_t` after `ops` that the verifier would refuse, for reading what may be undefined.
fn run_unverified(x: &Operand, ops: &str) -> Result<bir_sim::Tensor, String> {
    let body = crate::views::body(&[x], ops, false);
    let ir = unverified(&body);
    let inputs = std::iter::once(("x".to_owned(), x.tensor.clone())).collect();
    let mut outcome = bir_sim::run(&ir, &inputs).map_err(|f| f.to_string())?;
    Ok(outcome.outputs.remove(0).1)
}

#[test]
fn permute_implicit_reduce_add_adds_rows_that_meet() {
    let mut seed = 50;
    for (dtype, to) in [
        (DType::F32, DType::F32),
        (DType::Bf16, DType::F16),
        (DType::I8, DType::I16),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for (rows, with_init) in [(32, false), (128, true), (64, true)] {
                seed += 1;
                let x = Operand::new("x", dtype, (rows, 4), reads, seed);
                let d = Operand::new("d", to, (rows, 4), form, seed + 1);
                let z = Operand::new("z", DType::F16, (rows, 4), Form::Strided, seed + 2);
                let mask: Vec<usize> = (0..32).map(|i| (i * i + seed as usize) % 32).collect();
                let init = if with_init {
                    format!(", init {}", z.text())
                } else {
                    String::new()
                };
                let ops = format!(
                    "permute_implicit_reduce_add {} <- {}{init} {{mask = {}}}",
                    d.text(),
                    x.text(),
                    list(&mask)
                );
                let found = run("trn2", &[&x, &d, &z], &ops);
                let from = x.values();
                let mut want = if with_init {
                    z.values()
                } else {
                    vec![vec![0.0; 4]; rows]
                };
                for row in 0..rows {
                    for i in 0..4 {
                        want[row / 32 * 32 + mask[row % 32]][i] += from[row][i];
                    }
                }
                assert_tensor(&found["d"], &d.with_values(&want), &ops);
            }
        }
    }
}

#[test]
fn tensor_partition_reduce_combines_all_partitions() {
    let mut seed = 90;
    for (dtype, to) in [
        (DType::F32, DType::F32),
        (DType::Bf16, DType::F16),
        (DType::U8, DType::I32),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for op in ["add", "average", "max"] {
                seed += 1;
                let x = Operand::new("x", dtype, (40, 6), reads, seed);
                let d = Operand::new("d", to, (1, 6), form, seed + 1);
                let ops = format!("tensor_partition_reduce {op} {} <- {}", d.text(), x.text());
                let found = run("trn2", &[&x, &d], &ops);
                let rows = x.values();
                let want: Vec<f32> = (0..6)
                    .map(|i| {
                        let column: Vec<f32> = rows.iter().map(|row| row[i]).collect();
                        if op == "max" {
                            let nan = column.iter().any(|x| x.is_nan());
                            let most = column[1..]
                                .iter()
                                .fold(column[0], |a, &b| if a > b { a } else { b });
                            return if nan { f32::NAN } else { most };
                        }
                        let sum = column[1..].iter().fold(column[0], |a, &b| a + b);
                        if op == "add" { sum } else { sum / 40.0 }
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with_values(&[want]), &ops);
            }
        }
    }
    for dtype in [DType::U8, DType::I16, DType::U32] {
        for (op, f) in [
            ("bitwise_or", (|a, b| a | b) as fn(u64, u64) -> u64),
            ("bitwise_and", |a, b| a & b),
        ] {
            let x = Operand::new("x", dtype, (5, 8), Form::Turned, 7);
            let d = Operand::new("d", dtype, (1, 8), Form::Reversed, 8);
            let ops = format!("tensor_partition_reduce {op} {} <- {}", d.text(), x.text());
            let found = run("trn2", &[&x, &d], &ops);
            let rows = x.bits();
            let want: Vec<Option<u64>> = (0..8)
                .map(|i| Some(rows[1..].iter().fold(rows[0][i], |acc, row| f(acc, row[i]))))
                .collect();
            assert_tensor(&found["d"], &d.with(&[want]), &ops);
        }
    }
}

#[test]
fn undefined_rows_are_named() {
    let x = Operand::whole("x", tensor(DType::F32, &[32, 2], (0..64).map(|i| i as f32)));
    for (op, reader) in [
        (
            format!(
                "permute_implicit_reduce_add %x_t <- %u {{mask = {}}}",
                list(&[0; 32])
            ),
            "permute_implicit_reduce_add",
        ),
        (
            "tensor_partition_reduce add %x_t[0:1, :] <- %u".to_owned(),
            "tensor_partition_reduce",
        ),
    ] {
        let ops = format!("%u = alloc sbuf<32x2xf32>\nmemset %u[:, 0:1] <- 0.0\n{op}");
        assert_eq!(
            run_unverified(&x, &ops).expect_err("half is undefined"),
            format!(
                "`{reader}` reads `%u`, partitions 0 to 31, elements 1 to 1 of 2, which nothing has written"
            )
        );
    }
}

/// Names for one location agree partition by partition, whether it is placed or not, and of whatever width.
#[test]
fn aliases_share_bytes_partition_by_partition() {
    let placed = output(
        "%t = alloc sbuf<2x4xf32> at [0, 0x20]
         %u = alloc sbuf<2x4xf32> at [0, 0x30]
         %a = alloc sbuf<2x4xf32> {must_alias = @t}
         %y = alloc dram<2x4xf32> {kind = output}
         memset %a <- 1.0
         memset %u <- 0.0
         save %y <- %a",
        &[],
    );
    assert_eq!(values(&placed), [1.0; 8]);
    for [wide, narrow] in [["t", "a"], ["a", "t"]] {
        let of = |name: &str| match name == wide {
            true => "2x4xf32",
            false => "2x2xf32",
        };
        let found = output(
            &format!(
                "%t = alloc sbuf<{}>
                 %a = alloc sbuf<{}> {{must_alias = @t}}
                 %y = alloc dram<2x4xf32> {{kind = output}}
                 memset %{wide} <- 1.0
                 memset %{narrow} <- 2.0
                 save %y <- %{wide}",
                of("t"),
                of("a")
            ),
            &[],
        );
        assert_eq!(values(&found), [2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0]);
    }
}

/// What the verifier refuses has a message in the simulator, too.
#[test]
fn aliases_fit_where_their_partner_is_placed() {
    for (partner, alias, finding) in [
        (
            "sbuf<64x4xf32> at [64, 0x20]",
            "sbuf<128x2xf32>",
            "location `%a` begins where `%t` is placed, and covers partitions 64 to 191",
        ),
        (
            "psum<2x512xf32> at [0, 0x3800]",
            "psum<2x600xf32>",
            "location `%a` begins where `%t` is placed, and covers bytes 14336 to 16735",
        ),
    ] {
        let body = format!(
            "%t = alloc {partner}
             %a = alloc {alias} {{must_alias = @t}}
             memset %a <- 1.0"
        );
        let found = findings(&body);
        assert!(
            found.iter().any(|found| found.contains(finding)),
            "{found:?}"
        );
        let fault = Simulation::new(&unverified(&body), Options::default())
            .err()
            .expect("no place for it");
        let text = fault.to_string();
        assert!(
            text.contains("`%a` does not fit where its partner is placed"),
            "{text}"
        );
    }
}
