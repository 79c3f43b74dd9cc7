//! ALU operations: what each does to two f32 (or two integers), and loops of them.
//!
//! * A NaN result is the canonical NaN, whatever went in, so that results do not depend on which
//!   operand's payload an instruction set passes on.
//! * `max` and `min` give NaN where either side is NaN; of equal sides the right one (so of 0 and -0).
//! * Comparisons and logical operations give 1 or 0; a logical operand counts as true if it is not 0.
//! * `mod` has the sign of the divisor, its zero too; `divide_int` is the exact quotient rounded down:
//!   `a = b * divide_int + mod`.
//! * An integer to a negative power is the power's reciprocal rounded to 0: 1, -1, or 0 (of 0 too).

use bir_dialect::bir::num::f32_to_bf16;
use bir_dialect::bir::ops::ALU_OPS;

use crate::func::pow;
use crate::simd::Kernel;

macro_rules! alu {
    ($($variant:ident),* $(,)?) => {
        /// An ALU operation, in the order of the op table's words.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Alu { $($variant),* }
        const ALL: &[Alu] = &[$(Alu::$variant),*];
    };
}

alu!(
    Add,
    Subtract,
    Multiply,
    Max,
    Min,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Invert,
    LeftShift,
    RightShift,
    Power,
    AbsMax,
    AbsMin,
    Abs,
    Square,
    Relu,
    Rsqrt,
    Reciprocal,
    Divide,
    DivideInt,
    Mod,
    ModInt,
    Average,
    Bypass,
);

/// The NaN every arithmetic result uses.
pub(crate) const NAN: f32 = f32::from_bits(0x7fc0_0000);

#[inline(always)]
pub(crate) fn quiet(value: f32) -> f32 {
    // On bits: for floats, the compiler may take any NaN for any other and drop the choice.
    let bits = value.to_bits();
    let nan = bits & 0x7fff_ffff > 0x7f80_0000;
    f32::from_bits(if nan { NAN.to_bits() } else { bits })
}

#[inline(always)]
pub(crate) fn max(a: f32, b: f32) -> f32 {
    let larger = if a > b { a } else { b };
    quiet(if a.is_nan() { a } else { larger })
}

#[inline(always)]
pub(crate) fn min(a: f32, b: f32) -> f32 {
    let smaller = if a < b { a } else { b };
    quiet(if a.is_nan() { a } else { smaller })
}

#[inline(always)]
fn truth(value: bool) -> f32 {
    if value { 1.0 } else { 0.0 }
}

fn modulo(a: f32, b: f32) -> f32 {
    let rest = a % b;
    quiet(if rest == 0.0 {
        rest.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    })
}

/// The quotient rounded down. In f64, as a quotient rounded to f32 may have reached the next integer;
/// that of two f32 is nearer than 2^-24 to no integer it is not, so below 2^29 f64 passes none.
#[inline(always)]
fn divide_down(a: f32, b: f32) -> f32 {
    quiet((f64::from(a) / f64::from(b)).floor() as f32)
}

/// `base` to a power whose result `wrap` keeps in range.
fn power(base: i64, mut exponent: u64, wrap: impl Fn(i64) -> i64) -> i64 {
    let (mut result, mut square) = (1, base);
    while exponent != 0 {
        if exponent & 1 == 1 {
            result = wrap(i64::wrapping_mul(result, square));
        }
        square = wrap(square.wrapping_mul(square));
        exponent >>= 1;
    }
    result
}

impl Alu {
    /// The operation of that word.
    pub(crate) fn from_word(word: &str) -> Option<Alu> {
        let at = ALU_OPS.words.iter().position(|&known| known == word)?;
        ALL.get(at).copied()
    }

    /// Whether it works on bits.
    pub(crate) fn is_bitvec(self) -> bool {
        matches!(
            self,
            Alu::BitwiseAnd
                | Alu::BitwiseOr
                | Alu::BitwiseXor
                | Alu::Invert
                | Alu::LeftShift
                | Alu::RightShift
        )
    }

    /// Whether it looks at its left operand only.
    pub(crate) fn is_unary(self) -> bool {
        matches!(
            self,
            Alu::Abs
                | Alu::Square
                | Alu::Relu
                | Alu::Rsqrt
                | Alu::Reciprocal
                | Alu::Bypass
                | Alu::Invert
        )
    }

    /// The result for two values.
    pub(crate) fn apply(self, a: f32, b: f32) -> f32 {
        let mut out = [0.0];
        Binary {
            op: self,
            out: &mut out,
            a: Arg::Splat(a),
            b: Arg::Splat(b),
        }
        .run::<false>();
        out[0]
    }

    /// The result for two integers of `bits` bits, exact and wrapping.
    pub(crate) fn apply_int(self, a: i64, b: i64, bits: u32, signed: bool) -> i64 {
        let unused = 64 - bits;
        let wrap = |value: i64| {
            if signed {
                value << unused >> unused
            } else {
                ((value as u64) << unused >> unused) as i64
            }
        };
        let raw = |value: i64| (value as u64) << unused >> unused;
        let shift = |by: i64| (0..i64::from(bits)).contains(&by);
        wrap(match self {
            Alu::Add => a.wrapping_add(b),
            Alu::Subtract => a.wrapping_sub(b),
            Alu::Multiply => a.wrapping_mul(b),
            Alu::Max => a.max(b),
            Alu::Min => a.min(b),
            Alu::Equal => i64::from(a == b),
            Alu::NotEqual => i64::from(a != b),
            Alu::Greater => i64::from(a > b),
            Alu::GreaterEqual => i64::from(a >= b),
            Alu::Less => i64::from(a < b),
            Alu::LessEqual => i64::from(a <= b),
            Alu::LogicalAnd => i64::from(a != 0 && b != 0),
            Alu::LogicalOr => i64::from(a != 0 || b != 0),
            Alu::LogicalXor => i64::from((a != 0) != (b != 0)),
            Alu::BitwiseAnd => a & b,
            Alu::BitwiseOr => a | b,
            Alu::BitwiseXor => a ^ b,
            Alu::Invert => !a,
            Alu::LeftShift => {
                if shift(b) {
                    a << b
                } else {
                    0
                }
            }
            Alu::RightShift => {
                if shift(b) {
                    (raw(a) >> b) as i64
                } else {
                    0
                }
            }
            Alu::AbsMax => {
                if a.unsigned_abs() > b.unsigned_abs() {
                    a
                } else {
                    b
                }
            }
            Alu::AbsMin => {
                if a.unsigned_abs() < b.unsigned_abs() {
                    a
                } else {
                    b
                }
            }
            Alu::Abs => a.wrapping_abs(),
            Alu::Square => a.wrapping_mul(a),
            Alu::Relu => a.max(0),
            Alu::Divide | Alu::DivideInt if b == 0 => 0,
            Alu::Divide | Alu::DivideInt => {
                let quotient = a.wrapping_div(b);
                quotient - i64::from(a.wrapping_rem(b) != 0 && (a < 0) != (b < 0))
            }
            Alu::Mod | Alu::ModInt if b == 0 => 0,
            Alu::Mod | Alu::ModInt => {
                let rest = a.wrapping_rem(b);
                if rest != 0 && (rest < 0) != (b < 0) {
                    rest + b
                } else {
                    rest
                }
            }
            // Short of 64 bits no exponent is so large that its sign is one of its digits.
            Alu::Power if (signed || bits < 64) && b < 0 => match a {
                1 => 1,
                -1 if b & 1 == 0 => 1,
                -1 => -1,
                _ => 0,
            },
            Alu::Power => power(a, b as u64, wrap),
            Alu::Rsqrt | Alu::Reciprocal => i64::from(a == 1),
            Alu::Average | Alu::Bypass => a,
        })
    }
}

/// Where a loop takes one side from.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a> {
    /// What the output holds already.
    Own,
    /// A row of as many elements.
    Row(&'a [f32]),
    /// One value for all.
    Splat(f32),
}

/// `out = op(a, b)`, element by element.
pub(crate) struct Binary<'a> {
    pub(crate) op: Alu,
    pub(crate) out: &'a mut [f32],
    pub(crate) a: Arg<'a>,
    pub(crate) b: Arg<'a>,
}

#[inline(always)]
fn each(out: &mut [f32], a: Arg<'_>, b: Arg<'_>, f: impl Fn(f32, f32) -> f32) {
    match (a, b) {
        (Arg::Row(a), Arg::Row(b)) => {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        }
        (Arg::Row(a), Arg::Splat(b)) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a, b);
            }
        }
        (Arg::Splat(a), Arg::Row(b)) => {
            for (out, &b) in out.iter_mut().zip(b) {
                *out = f(a, b);
            }
        }
        (Arg::Own, Arg::Row(b)) => {
            for (out, &b) in out.iter_mut().zip(b) {
                *out = f(*out, b);
            }
        }
        (Arg::Row(a), Arg::Own) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a, *out);
            }
        }
        (Arg::Own, Arg::Splat(b)) => {
            for out in out {
                *out = f(*out, b);
            }
        }
        (Arg::Splat(a), Arg::Own) => {
            for out in out {
                *out = f(a, *out);
            }
        }
        (Arg::Own, Arg::Own) => {
            for out in out {
                *out = f(*out, *out);
            }
        }
        (Arg::Splat(a), Arg::Splat(b)) => out.fill(f(a, b)),
    }
}

impl Kernel for Binary<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Binary { op, out, a, b } = self;
        match op {
            Alu::Add => each(out, a, b, |a, b| quiet(a + b)),
            Alu::Subtract => each(out, a, b, |a, b| quiet(a - b)),
            Alu::Multiply => each(out, a, b, |a, b| quiet(a * b)),
            Alu::Max => each(out, a, b, max),
            Alu::Min => each(out, a, b, min),
            Alu::Equal => each(out, a, b, |a, b| truth(a == b)),
            Alu::NotEqual => each(out, a, b, |a, b| truth(a != b)),
            Alu::Greater => each(out, a, b, |a, b| truth(a > b)),
            Alu::GreaterEqual => each(out, a, b, |a, b| truth(a >= b)),
            Alu::Less => each(out, a, b, |a, b| truth(a < b)),
            Alu::LessEqual => each(out, a, b, |a, b| truth(a <= b)),
            Alu::LogicalAnd => each(out, a, b, |a, b| truth((a != 0.0) & (b != 0.0))),
            Alu::LogicalOr => each(out, a, b, |a, b| truth((a != 0.0) | (b != 0.0))),
            Alu::LogicalXor => each(out, a, b, |a, b| truth((a != 0.0) != (b != 0.0))),
            Alu::AbsMax => each(out, a, b, |a, b| {
                let larger = if a.abs() > b.abs() { a } else { b };
                quiet(if a.is_nan() { a } else { larger })
            }),
            Alu::AbsMin => each(out, a, b, |a, b| {
                let smaller = if a.abs() < b.abs() { a } else { b };
                quiet(if a.is_nan() { a } else { smaller })
            }),
            Alu::Abs => each(out, a, b, |a, _| quiet(a.abs())),
            Alu::Square => each(out, a, b, |a, _| quiet(a * a)),
            Alu::Relu => each(out, a, b, |a, _| max(a, 0.0)),
            Alu::Rsqrt => each(out, a, b, |a, _| quiet((1.0 / f64::from(a).sqrt()) as f32)),
            Alu::Reciprocal => each(out, a, b, |a, _| quiet(1.0 / a)),
            Alu::Divide => each(out, a, b, |a, b| quiet(a / b)),
            Alu::DivideInt => each(out, a, b, divide_down),
            Alu::Mod | Alu::ModInt => each(out, a, b, modulo),
            Alu::Power => each(out, a, b, pow),
            // The bit operations never come here; `average` divides where it is used.
            Alu::Average
            | Alu::Bypass
            | Alu::BitwiseAnd
            | Alu::BitwiseOr
            | Alu::BitwiseXor
            | Alu::Invert
            | Alu::LeftShift
            | Alu::RightShift => each(out, a, b, |a, _| a),
        }
    }
}

/// Where a loop over bf16 takes one side from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Half<'a> {
    /// A row of as many elements, two bytes each.
    Row(&'a [u8]),
    /// One value for all.
    Splat(f32),
}

/// [`Binary`] from bf16 to bf16, each element in registers from end to end.
pub(crate) struct BinaryHalves<'a> {
    pub(crate) op: Alu,
    pub(crate) out: &'a mut [u8],
    pub(crate) a: Half<'a>,
    pub(crate) b: Half<'a>,
}

impl BinaryHalves<'_> {
    /// Whether there is a loop for an operation: for those whose result is a NaN of any kind exactly where
    /// it would be the canonical one, which is left to rounding.
    pub(crate) fn has(op: Alu) -> bool {
        matches!(
            op,
            Alu::Add | Alu::Subtract | Alu::Multiply | Alu::Max | Alu::Min
        )
    }
}

#[inline(always)]
fn each_half(out: &mut [u8], a: Half<'_>, b: Half<'_>, f: impl Fn(f32, f32) -> f32) {
    let out = out.as_chunks_mut::<2>().0.iter_mut();
    // A NaN keeps its bits: the result has others.
    let value = |bytes: [u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16);
    match (a, b) {
        (Half::Row(a), Half::Row(b)) => {
            for ((out, &a), &b) in out.zip(a.as_chunks().0).zip(b.as_chunks().0) {
                *out = f32_to_bf16(f(value(a), value(b))).to_le_bytes();
            }
        }
        (Half::Row(a), Half::Splat(b)) => {
            for (out, &a) in out.zip(a.as_chunks().0) {
                *out = f32_to_bf16(f(value(a), b)).to_le_bytes();
            }
        }
        (Half::Splat(a), Half::Row(b)) => {
            for (out, &b) in out.zip(b.as_chunks().0) {
                *out = f32_to_bf16(f(a, value(b))).to_le_bytes();
            }
        }
        (Half::Splat(a), Half::Splat(b)) => {
            let result = f32_to_bf16(f(a, b)).to_le_bytes();
            out.for_each(|out| *out = result);
        }
    }
}

impl Kernel for BinaryHalves<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let BinaryHalves { op, out, a, b } = self;
        match op {
            Alu::Subtract => each_half(out, a, b, |a, b| a - b),
            Alu::Multiply => each_half(out, a, b, |a, b| a * b),
            Alu::Max => each_half(out, a, b, max),
            Alu::Min => each_half(out, a, b, min),
            // Nothing else comes here, as `has` says.
            _ => each_half(out, a, b, |a, b| a + b),
        }
    }
}

/// Makes every NaN the canonical one.
pub(crate) struct Quieten<'a>(pub(crate) &'a mut [f32]);

impl Kernel for Quieten<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for value in self.0 {
            *value = quiet(*value);
        }
    }
}

/// Reduces `lanes` rows side by side, each in order from its first element.
///
/// `rows` holds the rows one behind another, `len` elements each; `out` gets one result per row.
pub(crate) struct ReduceRows<'a> {
    pub(crate) op: Alu,
    pub(crate) rows: &'a [f32],
    pub(crate) len: usize,
    /// From one row to the next.
    pub(crate) stride: usize,
    pub(crate) out: &'a mut [f32],
}

/// Rows whose sums run side by side: the additions of one wait for each other, those of several
/// do not.
const SIDE_BY_SIDE: usize = 8;

#[inline(always)]
fn fold_rows(job: ReduceRows<'_>, f: impl Fn(f32, f32) -> f32) {
    let ReduceRows {
        rows,
        len,
        stride,
        out,
        ..
    } = job;
    let mut row = 0;
    while row < out.len() {
        let here = SIDE_BY_SIDE.min(out.len() - row);
        if here == SIDE_BY_SIDE {
            let part: [&[f32]; SIDE_BY_SIDE] =
                std::array::from_fn(|i| &rows[(row + i) * stride..][..len]);
            let mut acc: [f32; SIDE_BY_SIDE] = std::array::from_fn(|i| part[i][0]);
            for at in 1..len {
                for (acc, part) in acc.iter_mut().zip(part) {
                    *acc = f(*acc, part[at]);
                }
            }
            out[row..row + here].copy_from_slice(&acc);
        } else {
            for i in 0..here {
                let part = &rows[(row + i) * stride..][..len];
                out[row + i] = part[1..].iter().fold(part[0], |acc, &x| f(acc, x));
            }
        }
        row += here;
    }
}

/// Extremes do not depend on the order but for the sign of zero and NaN: lanes, then a check.
#[inline(always)]
fn extreme_rows(job: ReduceRows<'_>, f: impl Fn(f32, f32) -> f32) {
    const LANES: usize = 32;
    let ReduceRows {
        rows,
        len,
        stride,
        out,
        ..
    } = job;
    for (i, out) in out.iter_mut().enumerate() {
        let row = &rows[i * stride..][..len];
        let (chunks, rest) = row.as_chunks::<LANES>();
        let mut best = match chunks.split_first() {
            Some((first, chunks)) => {
                let mut acc = *first;
                for chunk in chunks {
                    for lane in 0..LANES {
                        acc[lane] = f(acc[lane], chunk[lane]);
                    }
                }
                acc[1..].iter().fold(acc[0], |best, &x| f(best, x))
            }
            None => rest[0],
        };
        best = rest.iter().fold(best, |best, &x| f(best, x));
        if best == 0.0 {
            best = row
                .iter()
                .rev()
                .copied()
                .find(|&x| x == 0.0)
                .unwrap_or(best);
        }
        *out = best;
    }
}

impl Kernel for ReduceRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        if self.len == 0 {
            return;
        }
        match self.op {
            Alu::Add | Alu::Average => fold_rows(self, |a, b| a + b),
            Alu::Multiply => fold_rows(self, |a, b| a * b),
            Alu::Subtract => fold_rows(self, |a, b| a - b),
            Alu::Max => extreme_rows(self, max),
            Alu::Min => extreme_rows(self, min),
            op => fold_rows(self, move |a, b| op.apply(a, b)),
        }
    }
}

/// [`ReduceRows`] with NaN results made canonical, and those of logical operations 1 or 0.
pub(crate) fn reduce_rows(lanes: crate::simd::Lanes, job: ReduceRows<'_>) {
    let ReduceRows {
        op,
        rows,
        len,
        stride,
        out,
    } = job;
    lanes.run(ReduceRows {
        op,
        rows,
        len,
        stride,
        out: &mut *out,
    });
    let logical = matches!(op, Alu::LogicalAnd | Alu::LogicalOr | Alu::LogicalXor);
    for value in out {
        // A row of one element is no truth value yet.
        *value = if logical {
            truth(*value != 0.0)
        } else {
            quiet(*value)
        };
    }
}

#[cfg(test)]
mod tests {
    use bir_dialect::bir::num::{DType, narrow_from_f32, widen_to_f32};

    use super::*;
    use crate::simd::Lanes;

    /// Zeros, subnormals, neighbours of 1, what overflows and what cancels, infinities, NaNs of all kinds.
    const HALVES: [u16; 23] = [
        0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x3f7f, 0x3f80, 0x3f81, 0xbf80, 0xbf81,
        0x4049, 0xc2f7, 0x0c31, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xff81, 0x7fc0, 0xffff,
        0x7fa5,
    ];

    #[test]
    fn loops_over_bf16_are_those_over_f32_between_conversions() {
        // Every pair, and a length that is no multiple of any vector's.
        let pairs = HALVES.iter().flat_map(|&a| HALVES.map(|b| (a, b)));
        let (a, b): (Vec<u16>, Vec<u16>) = pairs.unzip();
        let bytes = |halves: &[u16]| halves.iter().flat_map(|h| h.to_le_bytes()).collect();
        let (a, b): (Vec<u8>, Vec<u8>) = (bytes(&a), bytes(&b));
        let widened = |bytes: &[u8]| {
            let mut wide = vec![0.0; bytes.len() / 2];
            widen_to_f32(DType::Bf16, bytes, &mut wide).unwrap();
            wide
        };
        let (wide_a, wide_b) = (widened(&a), widened(&b));
        let covered: Vec<Alu> = ALL
            .iter()
            .copied()
            .filter(|&op| BinaryHalves::has(op))
            .collect();
        assert_eq!(covered.len(), 5, "one of them is not told from `add`");
        for (lanes, op) in Lanes::every()
            .into_iter()
            .flat_map(|lanes| covered.iter().map(move |&op| (lanes, op)))
        {
            let check = |halves: [Half<'_>; 2], args: [Arg<'_>; 2]| {
                let mut want = vec![0.0; wide_a.len()];
                lanes.run(Binary {
                    op,
                    out: &mut want,
                    a: args[0],
                    b: args[1],
                });
                let mut narrow = vec![0; a.len()];
                narrow_from_f32(DType::Bf16, &want, &mut narrow).unwrap();
                let mut found = vec![0; a.len()];
                lanes.run(BinaryHalves {
                    op,
                    out: &mut found,
                    a: halves[0],
                    b: halves[1],
                });
                assert_eq!(found, narrow, "{op:?} {lanes:?} {halves:?}");
            };
            check(
                [Half::Row(&a), Half::Row(&b)],
                [Arg::Row(&wide_a), Arg::Row(&wide_b)],
            );
            for value in [0.1, -0.0, f32::NAN, f32::INFINITY] {
                let (half, arg) = (Half::Splat(value), Arg::Splat(value));
                check([Half::Row(&a), half], [Arg::Row(&wide_a), arg]);
                check([half, Half::Row(&b)], [arg, Arg::Row(&wide_b)]);
                check([half, half], [arg, arg]);
            }
        }
    }
}
