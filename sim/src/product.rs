//! The matrix product: `out[m, n] = Σ_k a[k, m] * b[k, n]`.
//!
//! Its definition is [`plain`]: `acc = fma(a, b, acc)` for ascending `k`, from the first product; a NaN
//! is the canonical one. [`multiply`] blocks over `m` and `n` only, so that each element goes through
//! the same steps, and gives the same bits.

use pulp::{Simd, WithSimd};

use crate::alu::quiet;
use crate::runs::Row;
use crate::simd::{Lanes, fma};

/// Rows that begin `pitch` elements apart.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) pitch: usize,
}

impl<'a> Matrix<'a> {
    /// Rows of so many elements, one behind another.
    pub(crate) fn dense(data: &'a [f32], columns: usize) -> Matrix<'a> {
        let pitch = columns;
        Matrix { data, pitch }
    }

    /// Columns from one on, row by row; rows end where the next begins.
    #[inline(always)]
    fn tails(self, column: usize) -> impl Iterator<Item = &'a [f32]> {
        self.data.chunks(self.pitch).map(move |row| &row[column..])
    }
}

/// [`Matrix`], to be written.
pub(crate) struct MatrixMut<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) pitch: usize,
}

/// The definition.
#[cfg(test)]
pub(crate) fn plain(a: &[f32], b: &[f32], (k, m, n): (usize, usize, usize), out: &mut [f32]) {
    for i in 0..m {
        for j in 0..n {
            let mut acc = a[i] * b[j];
            for k in 1..k {
                acc = a[k * m + i].mul_add(b[k * n + j], acc);
            }
            out[i * n + j] = quiet(acc);
        }
    }
}

struct Product<'a> {
    a: Matrix<'a>,
    b: Matrix<'a>,
    shape: (usize, usize, usize),
    out: MatrixMut<'a>,
    panel: &'a mut Row,
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
    for (i, out) in out.data.chunks_mut(out.pitch).take(m).enumerate() {
        let out = &mut out[..n];
        for (out, &b) in out.iter_mut().zip(&b.data[..n]) {
            *out = a.data[i] * b;
        }
        for k in 1..k {
            let a = a.data[k * a.pitch + i];
            for (out, &b) in out.iter_mut().zip(&b.data[k * b.pitch..][..n]) {
                *out = fma::<false>(a, b, *out);
            }
        }
        out.iter_mut().for_each(|out| *out = quiet(*out));
    }
}

/// Vectors side by side in a block.
const VECTORS: usize = 2;

/// Copies columns `from..from + here` of so many rows into strips of `width`, zeros behind them.
#[inline(always)]
fn pack(matrix: Matrix<'_>, from: usize, here: usize, strip: &mut [f32], width: usize) {
    for (to, row) in strip.chunks_exact_mut(width).zip(matrix.tails(from)) {
        to[..here].copy_from_slice(&row[..here]);
        to[here..].fill(0.0);
    }
}

/// Some rows by two vectors at a time, which stay in registers.
///
/// What a block reads lies in strips, one element behind another: of `b` as many columns as a block has,
/// which stay near while all rows pass; of `a` as many as a block has rows.
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
    // Thirty-two registers hold eight rows, sixteen hold four.
    let tall = if lanes == 16 { 8 } else { 4 };
    let strips = m / tall;
    crate::runs::resize(panel, k * (width + strips * tall));
    let (panel, rest) = panel.split_at_mut(k * width);
    for (number, strip) in rest.chunks_exact_mut(k * tall).take(strips).enumerate() {
        pack(a, number * tall, tall, strip, tall);
    }
    let to = out.data;
    for column in (0..n).step_by(width) {
        let here = width.min(n - column);
        pack(b, column, here, panel, width);
        let (vectors, _) = S::as_simd_f32s(panel);
        let (vectors, _) = vectors.as_chunks::<VECTORS>();
        for (number, strip) in rest.chunks_exact(k * tall).take(strips).enumerate() {
            let at = number * tall * out.pitch + column;
            let to = (&mut to[at..], out.pitch, here);
            if lanes == 16 {
                eight::<S>(simd, strip, vectors, to);
            } else {
                four::<S>(simd, strip, vectors, to);
            }
        }
        for row in strips * tall..m {
            let to = &mut to[row * out.pitch + column..][..here];
            one::<S>(simd, a, row, vectors, to);
        }
    }
}

#[inline(always)]
fn put<S: Simd>(out: &mut [f32], values: [S::f32s; VECTORS]) {
    let values: &[f32] = bytemuck::cast_slice(&values);
    for (out, &value) in out.iter_mut().zip(values) {
        *out = quiet(value);
    }
}

/// A block of so many rows. Rows are numbered in the text, not by a loop: with constant positions
/// the compiler keeps every sum in a register.
macro_rules! block {
    ($name:ident, $rows:literal, $($r:literal)*) => {
        #[inline(always)]
        fn $name<S: Simd>(
            simd: S,
            strip: &[f32],
            vectors: &[[S::f32s; VECTORS]],
            (out, pitch, here): (&mut [f32], usize, usize),
        ) {
            let zero = simd.splat_f32s(0.0);
            let mut acc = [[zero; VECTORS]; $rows];
            let (strip, _) = strip.as_chunks::<$rows>();
            if let (Some(a), Some(b)) = (strip.first(), vectors.first()) {
                $(
                    let x = simd.splat_f32s(a[$r]);
                    acc[$r] = [simd.mul_f32s(x, b[0]), simd.mul_f32s(x, b[1])];
                )*
            }
            for (a, b) in strip.iter().zip(vectors).skip(1) {
                $(
                    let x = simd.splat_f32s(a[$r]);
                    acc[$r][0] = simd.mul_add_f32s(x, b[0], acc[$r][0]);
                    acc[$r][1] = simd.mul_add_f32s(x, b[1], acc[$r][1]);
                )*
            }
            $( put::<S>(&mut out[$r * pitch..][..here], acc[$r]); )*
        }
    };
}

block!(eight, 8, 0 1 2 3 4 5 6 7);
block!(four, 4, 0 1 2 3);

/// A row that is left over.
#[inline(always)]
fn one<S: Simd>(
    simd: S,
    a: Matrix<'_>,
    row: usize,
    vectors: &[[S::f32s; VECTORS]],
    out: &mut [f32],
) {
    let mut acc = [simd.splat_f32s(0.0); VECTORS];
    for (k, (a, b)) in a.tails(row).zip(vectors).enumerate() {
        let x = simd.splat_f32s(a[0]);
        for (acc, &b) in acc.iter_mut().zip(b) {
            *acc = match k {
                0 => simd.mul_f32s(x, b),
                _ => simd.mul_add_f32s(x, b, *acc),
            };
        }
    }
    put::<S>(out, acc);
}

/// `out[m, n] = Σ_k a[k, m] * b[k, n]` for a shape `(k, m, n)`; all row-major, `k` at least 1.
pub(crate) fn multiply(
    lanes: Lanes,
    a: Matrix<'_>,
    b: Matrix<'_>,
    shape: (usize, usize, usize),
    out: MatrixMut<'_>,
    panel: &mut Row,
) {
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
        let mut panel = Row::default();
        let shapes = (1..=128).map(|k| (k, 1 + k % 13, 1 + k % 67)).chain([
            (128, 128, 512),
            (3, 5, 7),
            (17, 128, 33),
            (256, 9, 48),
        ]);
        for (k, m, n) in shapes {
            let a: Vec<f32> = (0..k * m).map(|_| next()).collect();
            let mut b: Vec<f32> = (0..k * n).map(|_| next() * 1e3).collect();
            // A NaN of other bits, in every seventh shape.
            if (k + n) % 7 == 0 {
                b[k * n / 2] = f32::from_bits(0xffc1_2345);
            }
            let (mut want, mut found) = (vec![0.0; m * n], vec![0.0; m * n]);
            plain(&a, &b, (k, m, n), &mut want);
            for lanes in Lanes::every() {
                found.fill(9.0);
                // Rows that begin further apart than they are long, with something between them.
                for gap in [0, 3] {
                    let spread = |rows: &[f32], len: usize| -> Vec<f32> {
                        let rows = rows.chunks_exact(len);
                        rows.flat_map(|row| [row, &[7.0; 3][..gap]].concat())
                            .collect()
                    };
                    let (a, b, mut found) = (spread(&a, m), spread(&b, n), spread(&found, n));
                    let matrix = |data, columns| Matrix {
                        data,
                        pitch: columns + gap,
                    };
                    let out = MatrixMut {
                        data: &mut found,
                        pitch: n + gap,
                    };
                    multiply(
                        lanes,
                        matrix(&a, m),
                        matrix(&b, n),
                        (k, m, n),
                        out,
                        &mut panel,
                    );
                    let want = spread(&want, n);
                    let same = want
                        .iter()
                        .zip(&found)
                        .all(|(w, f)| w.to_bits() == f.to_bits());
                    assert!(same, "{k} {m} {n} {lanes:?}, {gap} apart");
                }
            }
        }
    }
}
