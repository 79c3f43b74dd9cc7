//! Recurrences along rows: `state = step(lhs, state, rhs)`, every state an element of the result.
//!
//! A step waits for the one before it, so rows go side by side in the lanes of a vector: blocks of
//! eight rows and eight columns are turned, computed column by column, and turned back. Each row
//! goes through the same steps as if it were alone.

use pulp::{Arch, NullaryFnOnce};

use crate::alu::quiet;
use crate::simd::{Kernel, Lanes};

/// Rows side by side, and columns of a block.
pub(crate) const SIDE: usize = 8;

type Block = [[f32; SIDE]; SIDE];

/// Rows that lie one behind another, `len` elements each, at most [`SIDE`] of them: as many as there
/// are states to start from.
pub(crate) struct Rows<'a> {
    pub(crate) lhs: &'a [f32],
    pub(crate) rhs: &'a [f32],
    pub(crate) out: &'a mut [f32],
    pub(crate) len: usize,
    pub(crate) initial: &'a [f32],
}

/// Computes the rows; results that are NaN are the canonical one.
pub(crate) fn recur<F: Fn(f32, f32, f32) -> f32>(lanes: Lanes, rows: Rows<'_>, step: F) {
    match lanes.arch() {
        #[cfg(target_arch = "x86_64")]
        Arch::V3(turn) => turn.vectorize(Job { rows, step, turn }),
        #[cfg(target_arch = "x86_64")]
        Arch::V4(simd) => {
            let turn = *simd;
            simd.vectorize(Job { rows, step, turn });
        }
        _ => {
            let turn = Plainly;
            lanes.run(Job { rows, step, turn });
        }
    }
}

struct Job<'a, F, T> {
    rows: Rows<'a>,
    step: F,
    turn: T,
}

impl<F: Fn(f32, f32, f32) -> f32, T: Turn> NullaryFnOnce for Job<'_, F, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        run(self.rows, self.step, self.turn);
    }
}

impl<F: Fn(f32, f32, f32) -> f32, T: Turn> Kernel for Job<'_, F, T> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        run(self.rows, self.step, self.turn);
    }
}

/// Makes rows columns.
trait Turn: Copy {
    fn turn(self, block: Block) -> Block;
}

/// Element by element.
#[derive(Clone, Copy)]
struct Plainly;

impl Turn for Plainly {
    #[inline(always)]
    fn turn(self, block: Block) -> Block {
        std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]))
    }
}

#[cfg(target_arch = "x86_64")]
impl Turn for pulp::x86::V3 {
    #[inline(always)]
    fn turn(self, block: Block) -> Block {
        use core::arch::x86_64::__m256;
        let avx = self.avx;
        let r: [__m256; SIDE] = block.map(bytemuck::cast);
        let low = |a, b| avx._mm256_unpacklo_ps(a, b);
        let high = |a, b| avx._mm256_unpackhi_ps(a, b);
        // Pairs of rows, then fours, within the halves of a vector.
        let two = [
            low(r[0], r[1]),
            high(r[0], r[1]),
            low(r[2], r[3]),
            high(r[2], r[3]),
            low(r[4], r[5]),
            high(r[4], r[5]),
            low(r[6], r[7]),
            high(r[6], r[7]),
        ];
        let first = |a, b| avx._mm256_shuffle_ps::<0x44>(a, b);
        let last = |a, b| avx._mm256_shuffle_ps::<0xee>(a, b);
        let four = [
            first(two[0], two[2]),
            last(two[0], two[2]),
            first(two[1], two[3]),
            last(two[1], two[3]),
            first(two[4], two[6]),
            last(two[4], two[6]),
            first(two[5], two[7]),
            last(two[5], two[7]),
        ];
        let lower = |a, b| bytemuck::cast(avx._mm256_permute2f128_ps::<0x20>(a, b));
        let upper = |a, b| bytemuck::cast(avx._mm256_permute2f128_ps::<0x31>(a, b));
        [
            lower(four[0], four[4]),
            lower(four[1], four[5]),
            lower(four[2], four[6]),
            lower(four[3], four[7]),
            upper(four[0], four[4]),
            upper(four[1], four[5]),
            upper(four[2], four[6]),
            upper(four[3], four[7]),
        ]
    }
}

/// Columns of rows that lie one behind another.
#[inline(always)]
fn block(from: &[f32], len: usize, column: usize) -> Block {
    let mut block = [[0.0; SIDE]; SIDE];
    for (row, part) in block.iter_mut().enumerate() {
        part.copy_from_slice(&from[row * len + column..][..SIDE]);
    }
    block
}

#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "arrays of one fixed size: indices are constants once the loops are unrolled"
)]
fn run(rows: Rows<'_>, step: impl Fn(f32, f32, f32) -> f32, turn: impl Turn) {
    let Rows {
        lhs,
        rhs,
        out,
        len,
        initial,
    } = rows;
    let mut state = [0.0; SIDE];
    state[..initial.len()].copy_from_slice(initial);
    let mut done = 0;
    if initial.len() == SIDE {
        while done + SIDE <= len {
            let a = turn.turn(block(lhs, len, done));
            let b = turn.turn(block(rhs, len, done));
            let mut states = [[0.0; SIDE]; SIDE];
            for i in 0..SIDE {
                for lane in 0..SIDE {
                    state[lane] = step(a[i][lane], state[lane], b[i][lane]);
                    states[i][lane] = quiet(state[lane]);
                }
            }
            for (row, part) in turn.turn(states).iter().enumerate() {
                out[row * len + done..][..SIDE].copy_from_slice(part);
            }
            done += SIDE;
        }
    }
    for (row, state) in state[..initial.len()].iter_mut().enumerate() {
        for i in row * len + done..(row + 1) * len {
            *state = step(lhs[i], *state, rhs[i]);
            out[i] = quiet(*state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_side_by_side_are_the_plain_loop_bit_by_bit() {
        let mut random = crate::random::Random::new(3, "recur");
        for (count, len) in [(8, 1), (8, 8), (8, 37), (8, 64), (5, 20), (1, 9)] {
            let mut number = || match random.below(40) {
                0 => f32::NAN,
                1 => -0.0,
                2 => f32::INFINITY,
                _ => random.unit() as f32 * 4.0 - 2.0,
            };
            let lhs: Vec<f32> = (0..count * len).map(|_| number()).collect();
            let rhs: Vec<f32> = (0..count * len).map(|_| number()).collect();
            let initial: Vec<f32> = (0..count).map(|_| number()).collect();
            let step = |a: f32, state: f32, b: f32| a * state - b;
            let mut want = vec![0.0; count * len];
            for (row, &first) in initial.iter().enumerate() {
                let mut state = first;
                for i in row * len..(row + 1) * len {
                    state = step(lhs[i], state, rhs[i]);
                    want[i] = quiet(state);
                }
            }
            for lanes in Lanes::every() {
                let mut out = vec![9.0; count * len];
                let rows = Rows {
                    lhs: &lhs,
                    rhs: &rhs,
                    out: &mut out,
                    len,
                    initial: &initial,
                };
                recur(lanes, rows, step);
                let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&out), bits(&want), "{count} x {len} on {lanes:?}");
            }
        }
    }
}
