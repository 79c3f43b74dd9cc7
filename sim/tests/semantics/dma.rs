//! DMA that adds and transposes, and the pool engine's copies, against loops over elements.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, run};
use bir_dialect::bir::num::{DType, from_f32, to_f32};
use bir_sim::{Options, Tensor, random};

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        dma_compute_adds_in_f32_in_the_order_of_its_sources,
        &["dma_compute"],
    ),
    (
        dma_scatter_add_and_gather_add_add_rows_by_number,
        &["dma_scatter_add", "dma_gather_add"],
    ),
    (
        dma_transpose_reverses_two_and_three_dimensions_and_swaps_the_ends_of_four,
        &["dma_transpose"],
    ),
    (
        gpsimd_sb2sb_moves_bits_between_partitions,
        &["gpsimd_sb2sb"],
    ),
];

#[test]
fn dma_compute_adds_in_f32_in_the_order_of_its_sources() {
    let mut seed = 0;
    for to in [DType::F32, DType::Bf16, DType::I8] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for count in [1usize, 2, 3, 5, 16] {
                seed += 1;
                let names = [
                    "a", "b", "c", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "q", "r",
                ];
                let dtypes = [DType::F32, DType::I32, DType::F16, DType::U8];
                let sources: Vec<Operand> = (0..count)
                    .map(|n| Operand::new(names[n], dtypes[n % 4], (33, 6), reads, seed + n as u64))
                    .collect();
                let d = Operand::new("d", to, (33, 6), form, seed);
                let list: Vec<String> = sources.iter().map(Operand::text).collect();
                let ops = format!("dma_compute add {} <- {}", d.text(), list.join(", "));
                let mut all: Vec<&Operand> = sources.iter().collect();
                all.push(&d);
                let found = run("trn2", &all, &ops);
                let rows: Vec<Vec<Vec<f32>>> = sources.iter().map(Operand::values).collect();
                let want: Vec<Vec<f32>> = (0..33)
                    .map(|p| {
                        (0..6)
                            .map(|i| {
                                let terms: Vec<f32> = rows.iter().map(|r| r[p][i]).collect();
                                terms[1..].iter().fold(terms[0], |acc, x| acc + x)
                            })
                            .collect()
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with_values(&want), &ops);
            }
        }
    }
}

#[test]
fn dma_compute_reads_all_before_it_writes_and_shapes_may_differ() {
    let x = random::tensor(1, "x", DType::F32, &[6, 4]);
    let body = "%x = alloc dram<6x4xf32> {kind = inout}\n%t = alloc sbuf<4x6xf32>\n%y = alloc dram<24xf32> {kind = output}\n\
                load %t <- %x\ndma_compute add %x <- %x[off 23, -1 x 24], %t\ndma_compute add %y <- %x";
    let outputs = simulate_unverified(Options::default(), body, &[("x", x.clone())]).expect("runs");
    let v = values(&x);
    let want: Vec<f32> = (0..24).map(|i| v[23 - i] + v[i]).collect();
    assert_same(&values(&outputs["x"]), &want, "x");
    assert_same(&values(&outputs["y"]), &want, "y");
}

fn rows_body(table: &Tensor, tile: &Tensor, index: &Tensor, op: &str) -> String {
    format!(
        "%table = alloc dram<{}> {{kind = inout}}\n%x = alloc dram<{tile}> {{kind = input}}\n\
         %i = alloc dram<{index}> {{kind = input}}\n%y = alloc dram<{tile}> {{kind = output}}\n\
         %t = alloc sbuf<{tile}>\n%r = alloc sbuf<{index}>\nload %t <- %x\nload %r <- %i\n{op}\nsave %y <- %t",
        table.shape_text(),
        tile = tile.shape_text(),
        index = index.shape_text(),
    )
}

#[test]
fn dma_scatter_add_and_gather_add_add_rows_by_number() {
    for (to, from) in [
        (DType::F32, DType::F32),
        (DType::Bf16, DType::F32),
        (DType::I16, DType::F16),
    ] {
        for index in [DType::U16, DType::I32, DType::U32] {
            let table = random::tensor(3, "table", to, &[10, 6]);
            let tile = random::tensor(4, "tile", from, &[4, 6]);
            let i = wide(index, &[4, 1], [7.0, 0.0, 9.0, 3.0]);
            let given = [
                ("table", table.clone()),
                ("x", tile.clone()),
                ("i", i.clone()),
            ];
            let add = |dtype, a: f32, b: f32| {
                let sum = from_f32(dtype, a + b).expect("a number");
                to_f32(dtype, sum).expect("a number")
            };
            let (vt, vx) = (values(&table), values(&tile));
            let rows = [7usize, 0, 9, 3];
            let body = rows_body(
                &table,
                &tile,
                &i,
                "dma_scatter_add %table <- %t, %r {dge = swdge}",
            );
            let outputs = simulate(Options::default(), "trn2", &body, &given).expect("runs");
            let mut want = vt.clone();
            for (p, row) in rows.into_iter().enumerate() {
                for c in 0..6 {
                    want[row * 6 + c] = add(to, vt[row * 6 + c], vx[p * 6 + c]);
                }
            }
            assert_same(&values(&outputs["table"]), &want, "scatter");
            let body = rows_body(
                &table,
                &tile,
                &i,
                "dma_gather_add %t <- %table, %r {dge = swdge}",
            );
            let outputs = simulate(Options::default(), "trn2", &body, &given).expect("runs");
            let mut want = vx.clone();
            for (p, row) in rows.into_iter().enumerate() {
                for c in 0..6 {
                    want[p * 6 + c] = add(from, vx[p * 6 + c], vt[row * 6 + c]);
                }
            }
            assert_same(&values(&outputs["y"]), &want, "gather");
        }
    }
}

#[test]
fn rows_that_do_not_exist_or_occur_twice() {
    let table = random::tensor(3, "table", DType::F32, &[5, 2]);
    let tile = random::tensor(4, "tile", DType::F32, &[3, 2]);
    let with = |numbers: [f32; 3], op: &str| {
        let i = tensor(DType::I32, &[3, 1], numbers);
        let body = rows_body(&table, &tile, &i, op);
        let given = [("table", table.clone()), ("x", tile.clone()), ("i", i)];
        simulate(Options::default(), "trn2", &body, &given).map_err(|f| f.to_string())
    };
    let scatter = "dma_scatter_add %table <- %t, %r {dge = swdge}";
    let gather = "dma_gather_add %t <- %table, %r {dge = swdge}";
    assert_eq!(
        with([0.0, 5.0, 1.0], scatter).expect_err("row 5"),
        "`dma_scatter_add` finds index 5 for partition 1, but `%table` has 5 rows"
    );
    assert_eq!(
        with([0.0, 1.0, -1.0], gather).expect_err("row -1"),
        "`dma_gather_add` finds index -1 for partition 2, but `%table` has 5 rows"
    );
    assert_eq!(
        with([4.0, 1.0, 4.0], scatter).expect_err("row 4 twice"),
        "`dma_scatter_add` names row 4 of `%table` twice"
    );
    assert!(with([4.0, 1.0, 4.0], gather).is_ok());
    assert_eq!(
        with([-1.0, -1.0, 4.0], &scatter.replace("}", ", oob = skip}")).err(),
        None
    );
    assert_eq!(
        with(
            [2.0, 2.0, 1.0],
            "dma_copy %table <- %t, dst_index %r {dge = swdge, unique_indices}"
        )
        .expect_err("row 2 twice"),
        "`dma_copy` names row 2 of `%table` twice"
    );
    // Skipped rows are neither read nor written, and may be named as often as one likes.
    let skip = scatter.replace("}", ", oob = skip}");
    let outputs = with([-1.0, 3.0, -1.0], &skip).expect("runs");
    let (vt, vx) = (values(&table), values(&tile));
    let mut want = vt.clone();
    for c in 0..2 {
        want[6 + c] = vt[6 + c] + vx[2 + c];
    }
    assert_same(&values(&outputs["table"]), &want, "skip");
}

#[test]
fn dma_transpose_reverses_two_and_three_dimensions_and_swaps_the_ends_of_four() {
    let shapes: [(&[usize], &[usize]); 3] = [
        (&[6, 9], &[1, 0]),
        (&[4, 3, 5], &[2, 1, 0]),
        (&[4, 3, 2, 5], &[3, 1, 2, 0]),
    ];
    let text = |dims: &[usize], dtype: DType| {
        let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
        format!("{}x{dtype}", dims.join("x"))
    };
    for dtype in [DType::F32, DType::Bf16, DType::U8] {
        for (dims, order) in shapes {
            let turned: Vec<usize> = order.iter().map(|&d| dims[d]).collect();
            let shape: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
            let x = random::tensor(8, "x", dtype, &shape);
            let flat = |index: &[usize], dims: &[usize]| {
                index.iter().zip(dims).fold(0, |at, (i, d)| at * d + i)
            };
            for through in ["", "sbuf"] {
                let (from, to) = (text(dims, dtype), text(&turned, dtype));
                let load = if through.is_empty() {
                    "dma_transpose %t <- %x".to_owned()
                } else {
                    "load %s <- %x\ndma_transpose %t <- %s".to_owned()
                };
                let body = format!(
                    "%x = alloc dram<{from}> {{kind = input}}\n%y = alloc dram<{to}> {{kind = output}}\n\
                     %s = alloc sbuf<{from}>\n%t = alloc sbuf<{to}>\n{load}\nsave %y <- %t"
                );
                let y = output(&body, &[("x", x.clone())]);
                let mut index = vec![0; dims.len()];
                for at in 0..x.len() {
                    let mut rest = at;
                    for d in (0..dims.len()).rev() {
                        index[d] = rest % dims[d];
                        rest /= dims[d];
                    }
                    let there: Vec<usize> = order.iter().map(|&d| index[d]).collect();
                    assert_eq!(
                        y.bits(flat(&there, &turned)),
                        x.bits(at),
                        "{dtype} {dims:?} {index:?} {through}"
                    );
                }
            }
        }
    }
}

#[test]
fn dma_transpose_gathers_rows_in_the_order_of_index_columns() {
    let x = random::tensor(9, "x", DType::Bf16, &[300, 24]);
    // 128 rows and two columns: 144 of the 256 numbers are used, read column by column.
    let numbers: Vec<usize> = (0..256).map(|i| i * 37 % 300).collect();
    let index = tensor(DType::U32, &[128, 2], numbers.iter().map(|&n| n as f32));
    let body = "%x = alloc dram<300x24xbf16> {kind = input}\n%i = alloc dram<128x2xu32> {kind = input}\n\
                %y = alloc dram<24x144xbf16> {kind = output}\n%r = alloc sbuf<128x2xu32>\n%t = alloc sbuf<24x144xbf16>\n\
                load %r <- %i\ndma_transpose %t <- %x[0:144, :], src_index %r {dge = swdge}\nsave %y <- %t";
    let y = output(body, &[("x", x.clone()), ("i", index)]);
    for k in 0..144 {
        let row = numbers[k % 128 * 2 + k / 128];
        for c in 0..24 {
            assert_eq!(y.bits(c * 144 + k), x.bits(row * 24 + c), "row {k}");
        }
    }
    let outside = tensor(
        DType::U32,
        &[128, 2],
        (0..256).map(|i| if i == 3 { 300.0 } else { 0.0 }),
    );
    let message = failure(body, &[("x", x.clone()), ("i", outside)]);
    // Number 3 is column 1 of partition 1, which is entry 129.
    assert_eq!(
        message,
        "`dma_transpose` finds index 300 for partition 1, column 1, but `%x` has 300 rows"
    );
}

#[test]
fn gpsimd_sb2sb_moves_bits_between_partitions() {
    for (dtype, rows) in [(DType::F32, 7), (DType::Bf16, 33), (DType::F8E5M2x4, 20)] {
        let x = Operand::new("x", dtype, (rows, 6), Form::Strided, 1);
        let d = Operand::new("d", dtype, (rows, 6), Form::Reversed, 2);
        let ops = format!("gpsimd_sb2sb {} <- {}", d.text(), x.text());
        let found = run("trn2", &[&x, &d], &ops);
        let want: Vec<Vec<Option<u64>>> = x
            .bits()
            .into_iter()
            .map(|row| row.into_iter().map(Some).collect())
            .collect();
        assert_tensor(&found["d"], &d.with(&want), &ops);
    }
    // Any partitions: from 5 on to 50 on.
    let x = Operand::new("x", DType::U8, (90, 3), Form::Whole, 3);
    let found = run(
        "trn2",
        &[&x],
        "gpsimd_sb2sb %x_t[50:59, :] <- %x_t[5:14, :]",
    );
    for p in 0..90 {
        let from = if (50..59).contains(&p) { p - 45 } else { p };
        for i in 0..3 {
            assert_eq!(found["x"].bits(p * 3 + i), x.tensor.bits(from * 3 + i));
        }
    }
}
