//! Random numbers against a second generator, written from the same description.

use crate::common::*;
use crate::views::{Form, Operand, READS, WRITES, assert_tensor, failure, run};
use bir_dialect::bir::num::DType;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (rng_fills_with_the_low_bits_of_each_lane, &["rng"]),
    (
        the_same_seed_gives_the_same_stream_and_none_is_seed_zero,
        &["set_rng_seed"],
    ),
    (
        states_are_written_and_read_back,
        &["rand_set_state", "rand_get_state"],
    ),
    (rand2_is_uniform_between_its_bounds, &["rand2"]),
    (
        dropout_zeroes_below_the_probability_and_keeps_bits,
        &["dropout"],
    ),
];

/// One lane: six words, as Marsaglia gives them.
#[derive(Clone)]
struct Lane {
    x: u32,
    y: u32,
    z: u32,
    w: u32,
    v: u32,
    d: u32,
}

impl Lane {
    fn from_words(words: &[u32]) -> Lane {
        Lane {
            x: words[0],
            y: words[1],
            z: words[2],
            w: words[3],
            v: words[4],
            d: words[5],
        }
    }

    fn seeded(seed: u32) -> Lane {
        let word = |i: u32| {
            let mut h = u64::from(seed.wrapping_add(0x9E37_79B9u32.wrapping_mul(i)));
            h = ((h ^ (h >> 16)) * 0x85EB_CA6B) & 0xffff_ffff;
            h = ((h ^ (h >> 13)) * 0xC2B2_AE35) & 0xffff_ffff;
            (h ^ (h >> 16)) as u32
        };
        Lane::from_words(&[word(1), word(2), word(3), word(4), word(5), word(6)])
    }

    fn next(&mut self) -> u32 {
        let t = self.x ^ (self.x >> 2);
        (self.x, self.y, self.z, self.w) = (self.y, self.z, self.w, self.v);
        self.v = (self.v ^ (self.v << 4)) ^ (t ^ (t << 1));
        self.d = self.d.wrapping_add(362_437);
        self.d.wrapping_add(self.v)
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 8) as f32 / 16_777_216.0
    }
}

/// The generators of an engine: per lane one, or four.
struct Engine(Vec<Vec<Lane>>);

impl Engine {
    fn seeded(seed: u32, per_lane: u32) -> Engine {
        Engine(
            (0..128u32)
                .map(|lane| {
                    (0..per_lane)
                        .map(|g| Lane::seeded(seed ^ (lane + 128 * g).wrapping_mul(0x9E37_79B9)))
                        .collect()
                })
                .collect(),
        )
    }

    fn rows<T>(
        &mut self,
        (rows, columns): (usize, usize),
        f: impl Fn(&mut Lane) -> T,
    ) -> Vec<Vec<T>> {
        (0..rows)
            .map(|lane| {
                let generators = &mut self.0[lane];
                let n = generators.len();
                (0..columns).map(|i| f(&mut generators[i % n])).collect()
            })
            .collect()
    }
}

#[test]
fn rng_fills_with_the_low_bits_of_each_lane() {
    for (target, per_lane) in [("trn1", 1), ("trn2", 1), ("trn3", 4)] {
        for dtype in [DType::U32, DType::I32, DType::U16, DType::I8, DType::Bool] {
            for form in WRITES {
                let d = Operand::new("d", dtype, (33, 10), form, 1);
                let seed = Operand::whole("s", bits(DType::U32, &[1, 1], [0xdead_beef]));
                let ops = format!("set_rng_seed <- %s_t\nrng {d}\nrng {d}", d = d.text());
                let found = run(target, &[&d, &seed], &ops);
                let mut engine = Engine::seeded(0xdead_beef, per_lane);
                engine.rows((33, 10), Lane::next);
                let mask = if dtype == DType::Bool {
                    1
                } else {
                    dtype.mask()
                };
                let want: Vec<Vec<Option<u64>>> =
                    engine.rows((33, 10), |lane| Some(u64::from(lane.next()) & mask));
                assert_tensor(&found["d"], &d.with(&want), &ops);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_stream_and_none_is_seed_zero() {
    let seed = Operand::whole("s", tensor(DType::F32, &[1, 2], [0.0, 1.5]));
    let (a, b, c) = (
        Operand::new("a", DType::U32, (7, 5), Form::Whole, 0),
        Operand::new("b", DType::U32, (7, 5), Form::Whole, 0),
        Operand::new("c", DType::U32, (7, 5), Form::Whole, 0),
    );
    let ops = format!(
        "rng {a}\nset_rng_seed <- %s_t[:, 1:2]\nrng {b}\nset_rng_seed <- %s_t[:, 0:1]\nrng {c}",
        a = a.text(),
        b = b.text(),
        c = c.text()
    );
    let found = run("trn2", &[&seed, &a, &b, &c], &ops);
    assert_eq!(found["a"], found["c"]);
    assert_ne!(found["a"], found["b"]);
    // The seed is 32 bits, whatever they mean.
    let want =
        Engine::seeded(1.5f32.to_bits(), 1).rows((7, 5), |lane| Some(u64::from(lane.next())));
    assert_tensor(&found["b"], &b.with(&want), "bits of a float");
}

#[test]
fn engines_have_streams_of_their_own() {
    let (a, b) = (
        Operand::new("a", DType::U32, (4, 3), Form::Whole, 0),
        Operand::new("b", DType::U32, (4, 3), Form::Whole, 0),
    );
    let seed = Operand::whole("s", bits(DType::U32, &[1, 1], [7]));
    let ops = format!(
        "set_rng_seed <- %s_t\nrng {} {{engine = pool}}\nrng {}",
        a.text(),
        b.text()
    );
    let found = run("trn2", &[&seed, &a, &b], &ops);
    let next = |lane: &mut Lane| Some(u64::from(lane.next()));
    let pool = Engine::seeded(0, 1).rows((4, 3), next);
    let dve = Engine::seeded(7, 1).rows((4, 3), next);
    assert_tensor(&found["a"], &a.with(&pool), "pool is not seeded");
    assert_tensor(&found["b"], &b.with(&dve), "dve");
}

#[test]
fn states_are_written_and_read_back() {
    for (target, engine, per_lane) in [("trn2", "pool", 1), ("trn3", "pool", 1), ("trn3", "dve", 4)]
    {
        let words = per_lane * 6;
        for (form, reads) in WRITES.into_iter().zip(READS) {
            let s = Operand::new("s", DType::U32, (33, words), reads, 5);
            let d = Operand::new("d", DType::U16, (33, 9), Form::Whole, 6);
            let g = Operand::new("g", DType::U32, (33, words), form, 7);
            let ops = format!(
                "rand_set_state <- {s} {{engine = {engine}}}\nrng {d} {{engine = {engine}}}\n\
                 rand_get_state {g} {{engine = {engine}}}",
                s = s.text(),
                d = d.text(),
                g = g.text()
            );
            let found = run(target, &[&s, &d, &g], &ops);
            let mut lanes = Engine(
                s.bits()
                    .iter()
                    .map(|row| {
                        let row: Vec<u32> = row.iter().map(|&word| word as u32).collect();
                        row.chunks(6).map(Lane::from_words).collect()
                    })
                    .collect(),
            );
            let want = lanes.rows((33, 9), |lane| Some(u64::from(lane.next()) & 0xffff));
            assert_tensor(&found["d"], &d.with(&want), &ops);
            let state: Vec<Vec<Option<u64>>> = lanes
                .0
                .iter()
                .map(|row| {
                    row.iter()
                        .flat_map(|l| [l.x, l.y, l.z, l.w, l.v, l.d])
                        .map(|word| Some(u64::from(word)))
                        .collect()
                })
                .collect();
            assert_tensor(&found["g"], &g.with(&state), &ops);
        }
    }
}

#[test]
fn rand2_is_uniform_between_its_bounds() {
    for dtype in [DType::F32, DType::Bf16, DType::F8E4M3, DType::I8] {
        for form in WRITES {
            let d = Operand::new("d", dtype, (40, 12), form, 2);
            let low = Operand::new("l", DType::F32, (40, 1), Form::Part, 3)
                .filled(|at| u64::from((-(at as f32) / 7.0).to_bits()));
            let ops = format!("rand2 {} <- {}, 50.5", d.text(), low.text());
            let found = run("trn3", &[&d, &low], &ops);
            let units = Engine::seeded(0, 4).rows((40, 12), Lane::unit);
            let want: Vec<Vec<f32>> = units
                .iter()
                .zip(low.values())
                .map(|(row, low)| row.iter().map(|u| low[0] + u * (50.5 - low[0])).collect())
                .collect();
            assert_tensor(&found["d"], &d.with_values(&want), &ops);
        }
    }
    let d = Operand::new("d", DType::F32, (3, 4), Form::Whole, 0);
    let low = Operand::whole("l", tensor(DType::F32, &[3, 1], [0.0, 0.5, 1.0]));
    assert_eq!(
        failure("trn3", &[&d, &low], "rand2 %d_t[0:3, :] <- %l_t, 1.0"),
        "`rand2` draws from the empty range 1 to 1 in partition 2"
    );
    let low = Operand::whole("l", tensor(DType::F32, &[3, 1], [f32::NAN; 3]));
    assert_eq!(
        failure("trn3", &[&d, &low], "rand2 %d_t[0:3, :] <- 0.0, %l_t"),
        "`rand2` draws from the empty range 0 to NaN in partition 0"
    );
}

#[test]
fn dropout_zeroes_below_the_probability_and_keeps_bits() {
    for (target, per_lane) in [("trn2", 1), ("trn3", 4)] {
        for dtype in [DType::F32, DType::Bf16, DType::I8] {
            for (form, reads) in WRITES.into_iter().zip(READS) {
                let x = Operand::new("x", dtype, (33, 10), reads, 9);
                let d = Operand::new("d", dtype, (33, 10), form, 10);
                let p = Operand::new("p", DType::F32, (33, 1), Form::Part, 11)
                    .filled(|at| u64::from((at as f32 / 200.0).to_bits()));
                let ops = format!("dropout {} <- {}, {}", d.text(), x.text(), p.text());
                let found = run(target, &[&x, &d, &p], &ops);
                let units = Engine::seeded(0, per_lane).rows((33, 10), Lane::unit);
                let want: Vec<Vec<Option<u64>>> = x
                    .bits()
                    .iter()
                    .enumerate()
                    .map(|(row, bits)| {
                        let prob = p.values()[row][0];
                        (0..10)
                            .map(|i| Some(if units[row][i] < prob { 0 } else { bits[i] }))
                            .collect()
                    })
                    .collect();
                assert_tensor(&found["d"], &d.with(&want), &ops);
            }
        }
    }
    // 1 drops everything, 0 nothing, in place too; NaN payloads stay.
    let x = Operand::whole(
        "x",
        bits(DType::F32, &[1, 4], [0x7fc1_2345, 1, 2, 0xff80_0000]),
    );
    let found = run("trn2", &[&x], "dropout %x_t <- %x_t, 0.0");
    assert_eq!(found["x"], x.tensor);
    let found = run("trn2", &[&x], "dropout %x_t <- %x_t, 1.0");
    assert!(found["x"].bytes.iter().all(|&byte| byte == 0));
}
