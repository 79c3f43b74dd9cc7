//! Values found, replaced and ranked, against the words of the manual taken literally.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, run};
use bir_dialect::bir::num::DType;
use bir_sim::random::Random;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        find_index8_gives_equal_values_successive_positions,
        &["find_index8"],
    ),
    (
        match_replace8_claims_from_the_last_value_to_the_first,
        &["match_replace8"],
    ),
    (topk_ranks_the_snake_of_sixteen_partitions, &["topk"]),
];

/// Few different values, so that there are many matches; some NaN, both zeros.
fn few(operand: Operand, seed: u64) -> Operand {
    let mut random = Random::new(seed, "few");
    let dtype = operand.dtype();
    let choices: Vec<u64> = [0.0, -0.0, 1.0, 2.0, 3.0, f32::NAN, f32::INFINITY, -1.0]
        .iter()
        .map(|&x| bir_dialect::bir::num::from_f32(dtype, x).expect("a number"))
        .collect();
    let numbers: Vec<u64> = (0..operand.tensor.len())
        .map(|_| choices[random.below(8) as usize])
        .collect();
    operand.filled(|at| numbers[at])
}

#[test]
fn find_index8_gives_equal_values_successive_positions() {
    let mut seed = 0;
    for (dtype, index) in [
        (DType::F32, DType::U32),
        (DType::Bf16, DType::U16),
        (DType::I8, DType::U32),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            seed += 1;
            let x = few(Operand::new("x", dtype, (33, 20), reads, seed), seed);
            let v = few(
                Operand::new("v", dtype, (33, 8), Form::Turned, seed),
                seed + 1,
            );
            let d = Operand::new("d", index, (33, 8), form, seed);
            let ops = format!("find_index8 {} <- {}, {}", d.text(), x.text(), v.text());
            let found = run("trn2", &[&x, &v, &d], &ops);
            let want: Vec<Vec<i64>> = x
                .values()
                .iter()
                .zip(v.values())
                .map(|(row, wanted)| {
                    (0..8)
                        .map(|j| {
                            let before = (0..j).filter(|&k| wanted[k] == wanted[j]).count();
                            let mut matches = (0..20).filter(|&i| row[i] == wanted[j]);
                            matches.nth(before).map_or(-1, |i| i as i64)
                        })
                        .collect()
                })
                .collect();
            assert_tensor(&found["d"], &d.with_ints(&want), &ops);
        }
    }
}

/// What the manual says: from the last value to the first, each claims the smallest free match.
fn claims(row: &[f32], wanted: &[f32]) -> Vec<Option<usize>> {
    let mut claimed = vec![None; 8];
    for j in (0..8).rev() {
        claimed[j] = (0..row.len()).find(|&i| row[i] == wanted[j] && !claimed.contains(&Some(i)));
    }
    claimed
}

#[test]
fn match_replace8_claims_from_the_last_value_to_the_first() {
    let mut seed = 30;
    for (dtype, to, index) in [
        (DType::F32, DType::F32, DType::U32),
        (DType::Bf16, DType::F32, DType::U16),
        (DType::F16, DType::F16, DType::U32),
        (DType::F32, DType::I8, DType::U32),
    ] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            seed += 1;
            let x = few(Operand::new("x", dtype, (33, 20), reads, seed), seed);
            let v = few(
                Operand::new("v", DType::F32, (33, 8), Form::Whole, seed),
                seed + 1,
            );
            let d = Operand::new("d", to, (33, 20), form, seed);
            let i = Operand::new("i", index, (33, 8), Form::Reversed, seed);
            let ops = format!(
                "match_replace8 {}, {} <- {}, {}, -300.0",
                d.text(),
                i.text(),
                x.text(),
                v.text()
            );
            let found = run("trn2", &[&x, &v, &d, &i], &ops);
            let (mut rows, mut at) = (x.values(), Vec::new());
            for (row, wanted) in rows.iter_mut().zip(v.values()) {
                let claimed = claims(row, &wanted);
                for &i in claimed.iter().flatten() {
                    row[i] = -300.0;
                }
                at.push(
                    claimed
                        .iter()
                        .map(|i| i.map_or(-1, |i| i as i64))
                        .collect::<Vec<i64>>(),
                );
            }
            assert_tensor(&found["d"], &d.with_values(&rows), &ops);
            assert_tensor(&found["i"], &i.with_ints(&at), &ops);
        }
    }
}

#[test]
fn match_replace8_works_in_place_and_keeps_payloads() {
    let nan = 0x7fc0_1234u64;
    let x = Operand::whole(
        "x",
        bits(
            DType::F32,
            &[1, 8],
            [nan, 0x3f80_0000, 0, 0, 0x3f80_0000, 0, 0, nan],
        ),
    );
    let v = Operand::whole(
        "v",
        tensor(
            DType::F32,
            &[1, 8],
            [1.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0],
        ),
    );
    let found = run("trn2", &[&x, &v], "match_replace8 %x_t <- %x_t, %v_t, 2.0");
    let words: Vec<u64> = (0..8).map(|i| found["x"].bits(i)).collect();
    assert_eq!(words, [nan, 0x4000_0000, 0, 0, 0x3f80_0000, 0, 0, nan]);
}

#[test]
fn topk_ranks_the_snake_of_sixteen_partitions() {
    let mut seed = 60;
    for k in [1usize, 5, 16, 37, 64] {
        for (form, reads) in WRITES.into_iter().zip(READS) {
            for many_equal in [true, false] {
                seed += 1;
                let columns = k.div_ceil(16);
                let x = Operand::new("x", DType::Bf16, (48, 4), reads, seed);
                let x = if many_equal { few(x, seed) } else { x };
                let d = Operand::new("d", DType::Bf16, (48, columns), form, seed + 1);
                let i = Operand::new("i", DType::U32, (48, columns), Form::Strided, seed + 2);
                let ops = format!(
                    "topk {}, {} <- {} {{k = {k}}}",
                    d.text(),
                    i.text(),
                    x.text()
                );
                let found = run("trn2", &[&x, &d, &i], &ops);
                let (raw, rows) = (x.bits(), x.values());
                let mut best = vec![vec![Some(0xff80); columns]; 48];
                let mut places = vec![vec![-1i64; columns]; 48];
                for group in 0..3 {
                    // Selection by the words: K times the largest left, the first of equal ones.
                    let mut left: Vec<usize> = (0..64).collect();
                    let mut chosen = Vec::new();
                    for _ in 0..k {
                        let value = |e: usize| {
                            let x = rows[group * 16 + e % 16][e / 16];
                            if x.is_nan() { f32::NEG_INFINITY } else { x }
                        };
                        let mut top = left[0];
                        for &e in &left {
                            if value(e) > value(top) {
                                top = e;
                            }
                        }
                        left.retain(|&e| e != top);
                        chosen.push(top);
                    }
                    chosen.reverse();
                    for (r, e) in chosen.into_iter().enumerate() {
                        let (p, column) = (group * 16 + r % 16, r / 16);
                        best[p][column] = Some(raw[group * 16 + e % 16][e / 16]);
                        places[p][column] = e as i64;
                    }
                }
                assert_tensor(&found["d"], &d.with(&best), &ops);
                assert_tensor(&found["i"], &i.with_ints(&places), &ops);
            }
        }
    }
}
