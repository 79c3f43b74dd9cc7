//! The matrix product: `out[m, n] = Σ_k a[k, m] * b[k, n]`.
//!
//! Its definition is [`plain`]: `acc = fma(a, b, acc)` for ascending `k`, from the first product.
//! [`multiply`] blocks over `m` and `n` only, so that each element goes through the same steps, and
//! gives the same bits.

use pulp::{Simd, WithSimd};

use crate::simd::{Lanes, fma};

/// The definition.
#[cfg(test)]
pub(crate) fn plain(a: &[f32], b: &[f32], (k, m, n): (usize, usize, usize), out: &mut [f32]) {
    for i in 0..m {
        for j in 0..n {
            let mut acc = a[i] * b[j];
            for k in 1..k {
                acc = a[k * m + i].mul_add(b[k * n + j], acc);
            }
            out[i * n + j] = acc;
        }
    }
}

struct Product<'a> {
    a: &'a [f32],
    b: &'a [f32],
    shape: (usize, usize, usize),
    out: &'a mut [f32],
    panel: &'a mut Vec<f32>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::IS_SCALAR {
            return row_by_row(self);
        }
        blocked::<S>(simd, self);
    }
}

/// Without the instruction: rows of the result, so that the emulation vectorises.
#[inline(always)]
fn row_by_row(job: Product<'_>) {
    let Product {
        a,
        b,
        shape: (k, m, n),
        out,
        ..
    } = job;
    for (i, out) in out[..m * n].chunks_exact_mut(n).enumerate() {
        for (out, &b) in out.iter_mut().zip(&b[..n]) {
            *out = a[i] * b;
        }
        for k in 1..k {
            let a = a[k * m + i];
            for (out, &b) in out.iter_mut().zip(&b[k * n..][..n]) {
                *out = fma::<false>(a, b, *out);
            }
        }
    }
}

/// Vectors side by side in a block.
const VECTORS: usize = 2;

/// Some rows by two vectors at a time, which stay in registers.
#[inline(always)]
fn blocked<S: Simd>(simd: S, job: Product<'_>) {
    let Product {
        a,
        b,
        shape: (k, m, n),
        out,
        panel,
    } = job;
    let lanes = size_of::<S::f32s>() / 4;
    let width = VECTORS * lanes;
    crate::runs::resize(panel, k * width);
    let panel = &mut panel[..k * width];
    for column in (0..n).step_by(width) {
        let here = width.min(n - column);
        for (to, from) in panel.chunks_exact_mut(width).zip(b.chunks_exact(n)) {
            to[..here].copy_from_slice(&from[column..column + here]);
            to[here..].fill(0.0);
        }
        let (vectors, _) = S::as_simd_f32s(panel);
        let mut row = 0;
        // Thirty-two registers hold eight rows, sixteen hold four.
        while lanes == 16 && row + 8 <= m {
            eight::<S>(simd, a, vectors, (m, n), (row, column, here), out);
            row += 8;
        }
        while row + 4 <= m {
            four::<S>(simd, a, vectors, (m, n), (row, column, here), out);
            row += 4;
        }
        while row < m {
            one::<S>(simd, a, vectors, (m, n), (row, column, here), out);
            row += 1;
        }
    }
}

#[inline(always)]
fn put<S: Simd>(out: &mut [f32], values: [S::f32s; VECTORS]) {
    let values: &[f32] = bytemuck::cast_slice(&values);
    out.copy_from_slice(&values[..out.len()]);
}

/// A block of so many rows. Rows are numbered in the text, not by a loop: with constant positions
/// the compiler keeps every sum in a register.
macro_rules! block {
    ($name:ident, $rows:literal, $($r:literal)*) => {
        #[inline(always)]
        fn $name<S: Simd>(
            simd: S,
            a: &[f32],
            panel: &[S::f32s],
            (m, n): (usize, usize),
            (row, column, here): (usize, usize, usize),
            out: &mut [f32],
        ) {
            let zero = simd.splat_f32s(0.0);
            let mut acc = [[zero; VECTORS]; $rows];
            let first = &a[row..row + $rows];
            $(
                let x = simd.splat_f32s(first[$r]);
                acc[$r] = [simd.mul_f32s(x, panel[0]), simd.mul_f32s(x, panel[1])];
            )*
            let (vectors, _) = panel.as_chunks::<VECTORS>();
            for (a, b) in a.chunks_exact(m).zip(vectors).skip(1) {
                let a = &a[row..row + $rows];
                $(
                    let x = simd.splat_f32s(a[$r]);
                    acc[$r][0] = simd.mul_add_f32s(x, b[0], acc[$r][0]);
                    acc[$r][1] = simd.mul_add_f32s(x, b[1], acc[$r][1]);
                )*
            }
            $( put::<S>(&mut out[(row + $r) * n + column..][..here], acc[$r]); )*
        }
    };
}

block!(eight, 8, 0 1 2 3 4 5 6 7);
block!(four, 4, 0 1 2 3);
block!(one, 1, 0);

/// `out[m, n] = Σ_k a[k, m] * b[k, n]` for a shape `(k, m, n)`; all row-major, `k` at least 1.
pub(crate) fn multiply(
    lanes: Lanes,
    a: &[f32],
    b: &[f32],
    shape: (usize, usize, usize),
    out: &mut [f32],
    panel: &mut Vec<f32>,
) {
    let (k, m, n) = shape;
    let (a, b, out) = (&a[..k * m], &b[..k * n], &mut out[..m * n]);
    lanes.arch().dispatch(Product {
        a,
        b,
        shape,
        out,
        panel,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_products_are_the_plain_loop_bit_by_bit() {
        let mut state = 77u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 22) as f32 - 2.0
        };
        let mut panel = Vec::new();
        let shapes = (1..=128).map(|k| (k, 1 + k % 13, 1 + k % 67)).chain([
            (128, 128, 512),
            (3, 5, 7),
            (17, 128, 33),
            (256, 9, 48),
        ]);
        for (k, m, n) in shapes {
            let a: Vec<f32> = (0..k * m).map(|_| next()).collect();
            let b: Vec<f32> = (0..k * n).map(|_| next() * 1e3).collect();
            let (mut want, mut found) = (vec![0.0; m * n], vec![0.0; m * n]);
            plain(&a, &b, (k, m, n), &mut want);
            for lanes in Lanes::every() {
                found.fill(9.0);
                multiply(lanes, &a, &b, (k, m, n), &mut found, &mut panel);
                let same = want
                    .iter()
                    .zip(&found)
                    .all(|(w, f)| w.to_bits() == f.to_bits());
                assert!(same, "{k} {m} {n} {lanes:?}");
            }
        }
    }
}
