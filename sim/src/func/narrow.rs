//! The functions kernels spend their time in, in f32 alone: sixteen lanes where f64 has eight.
//!
//! Each is good for arguments up to a bound; past it, and for NaN, the caller takes another form.
//! Fused multiply-adds are part of the definition: they are what keeps the errors below 2 ulp, and
//! the intermediate values they round once are exact where a comment says so.

#![allow(
    clippy::excessive_precision,
    reason = "coefficients are written as they were computed"
)]

use crate::simd::fma;

use super::real::ROUND32;

/// `ln 2` in two pieces; the first has so few bits that `y - k ln 2` is exact.
const LN2_HIGH: f32 = f32::from_bits(0x3f31_7218);
const LN2_LOW: f32 = -1.904_654_3e-9;

/// `e^y` as `2^k (1 + rest)`.
struct Power {
    /// `2^k`.
    scale: f32,
    /// Between -0.3 and 0.42; small where `e^y` is near 1.
    rest: f32,
}

/// Takes `e^(y + low)` apart, for |y| ≤ [`EXP_BOUND`] and a small `low`.
#[inline(always)]
fn power<const FMA: bool>(y: f32, low: f32) -> Power {
    let shifted = fma::<FMA>(y, std::f32::consts::LOG2_E, ROUND32);
    let n = shifted - ROUND32;
    let r = fma::<FMA>(n, -LN2_HIGH, y);
    let r = fma::<FMA>(n, -LN2_LOW, r) + low;
    let mut q = 0.001_391_691;
    q = fma::<FMA>(q, r, 0.008_363_334);
    q = fma::<FMA>(q, r, 0.041_666_698);
    q = fma::<FMA>(q, r, 0.166_665_77);
    q = fma::<FMA>(q, r, 0.5);
    // Whatever stands above the whole number is shifted out.
    let k = shifted.to_bits() << 23;
    Power {
        scale: f32::from_bits(1f32.to_bits().wrapping_add(k)),
        rest: fma::<FMA>(r * r, q, r),
    }
}

impl Power {
    /// `e^y`.
    #[inline(always)]
    fn value<const FMA: bool>(&self) -> f32 {
        fma::<FMA>(self.scale, self.rest, self.scale)
    }

    /// `1 + e^y`. The larger part comes last, so that its rounding is all but the only one.
    #[inline(always)]
    fn plus_one<const FMA: bool>(&self) -> f32 {
        let (small, large) = if self.scale < 1.0 {
            (self.scale, 1.0)
        } else {
            (1.0, self.scale)
        };
        fma::<FMA>(self.scale, self.rest, small) + large
    }
}

/// Up to here `2^k` and `e^±x` are normal numbers.
pub(super) const EXP_BOUND: f32 = 86.5;

/// `e^x`.
#[inline(always)]
pub(super) fn exp<const FMA: bool>(x: f32) -> f32 {
    power::<FMA>(x, -0.0).value::<FMA>()
}

/// Past here the nearest f32 is ±1.
pub(super) const TANH_BOUND: f32 = 10.0;

/// `tanh x`, which is `(1 - e) / (1 + e)` with `e = e^-2|x|`.
#[inline(always)]
pub(super) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let e = power::<FMA>(-2.0 * x.abs(), -0.0);
    // Both sums are rounded once. Nothing cancels: where `e` is near 1, `scale` is 1.
    let less = fma::<FMA>(-e.scale, e.rest, 1.0 - e.scale);
    let more = fma::<FMA>(e.scale, e.rest, 1.0 + e.scale);
    (less / more).copysign(x)
}

/// `1 / d` for `d` from 1 to 2^125, within 0.6 ulp: multiply-adds that overlap with those of other
/// lanes, where a division waits for the one before it.
#[inline(always)]
fn reciprocal<const FMA: bool>(d: f32) -> f32 {
    // The exponent negated and the mantissa mirrored: wrong by an eighth at most.
    let guess = f32::from_bits(0x7ef3_11c7u32.wrapping_sub(d.to_bits()));
    // Each step takes what is left to its third power.
    let e = fma::<FMA>(-d, guess, 1.0);
    let y = fma::<FMA>(guess, fma::<FMA>(e, e, e), guess);
    let e = fma::<FMA>(-d, y, 1.0);
    fma::<FMA>(y, fma::<FMA>(e, e, e), y)
}

/// `1 / (1 + e^-x)`, up to [`EXP_BOUND`].
#[inline(always)]
pub(super) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    reciprocal::<FMA>(power::<FMA>(-x, -0.0).plus_one::<FMA>())
}

/// `x / (1 + e^-x)`, up to [`EXP_BOUND`].
#[inline(always)]
pub(super) fn silu<const FMA: bool>(x: f32) -> f32 {
    x / power::<FMA>(-x, -0.0).plus_one::<FMA>()
}

/// Up to here `1.702 x` is within [`EXP_BOUND`].
pub(super) const GELU_SIGMOID_BOUND: f32 = 50.0;

/// `x / (1 + e^(-1.702 x))`.
#[inline(always)]
pub(super) fn gelu_sigmoid<const FMA: bool>(x: f32) -> f32 {
    const SLOPE: f32 = 1.702;
    const SLOPE_LOW: f32 = (1.702 - SLOPE as f64) as f32;
    let y = -SLOPE * x;
    let low = fma::<FMA>(-SLOPE_LOW, x, fma::<FMA>(-SLOPE, x, -y));
    x / power::<FMA>(y, low).plus_one::<FMA>()
}

/// Up to here the argument of the exponential is within [`EXP_BOUND`].
pub(super) const GELU_TANH_BOUND: f32 = 9.9;

/// `x (1 + tanh u) / 2` with `u = sqrt(2 / π) (x + 0.044715 x³)`, which is `x / (1 + e^-2u)`.
///
/// An error of `2u` counts as often in the result as `2u` is large, so it is made in two pieces.
#[inline(always)]
pub(super) fn gelu_tanh<const FMA: bool>(x: f32) -> f32 {
    const LINEAR: f64 = 1.595_769_121_605_730_8;
    const CUBIC: f64 = 0.071_354_816_272_600_25;
    // So short that its difference to any sum with it is exact.
    const A: f32 = 1.595_769_f32 - 1.595_769_f32 % (1.0 / 1_048_576.0);
    const A_LOW: f32 = (LINEAR - A as f64) as f32;
    const B: f32 = CUBIC as f32;
    const B_LOW: f32 = (CUBIC - B as f64) as f32;
    let z = x * x;
    let z_low = fma::<FMA>(x, x, -z);
    let w = fma::<FMA>(z, B, A);
    let w_low = fma::<FMA>(z, B, A - w) + A_LOW;
    let w_low = fma::<FMA>(z, B_LOW, fma::<FMA>(z_low, B, w_low));
    let y = -x * w;
    let low = fma::<FMA>(-x, w_low, fma::<FMA>(-x, w, -y));
    x / power::<FMA>(y, low).plus_one::<FMA>()
}

/// Up to here the smaller tail of the normal distribution keeps all its bits.
pub(super) const GELU_BOUND: f32 = 13.0;

/// `x Φ(x)` with the normal distribution's `Φ`.
///
/// With `v = a / (a + 3)`, which grows from 0 to 1, `a Φ(-a)` is `e^(-a²/2) v` times a polynomial
/// of `2v - 1`; `Φ(a)` is 1 less `Φ(-a)`. What `v`, the polynomial's last step and its product with
/// `v` lose is made good.
#[inline(always)]
pub(super) fn gelu<const FMA: bool>(x: f32) -> f32 {
    const K: f32 = 3.0;
    let a = x.abs();
    let z = a * a;
    let z_low = fma::<FMA>(a, a, -z);
    let e = power::<FMA>(-0.5 * z, -0.5 * z_low);
    let sum = a + K;
    let sum_low = a - (sum - K);
    let v = a / sum;
    let left = fma::<FMA>(-v, sum_low, fma::<FMA>(-v, sum, a));
    let v_low = left * fma::<FMA>(v, -1.0 / K, 1.0 / K);
    let q = fma::<FMA>(2.0, v_low, fma::<FMA>(2.0, v, -1.0));
    let mut p = 5.467_886_5e-5;
    p = fma::<FMA>(p, q, 0.000_131_898_55);
    p = fma::<FMA>(p, q, -0.000_244_433_6);
    p = fma::<FMA>(p, q, -0.001_033_033_2);
    p = fma::<FMA>(p, q, 0.001_024_361_6);
    p = fma::<FMA>(p, q, 0.006_969_416_5);
    p = fma::<FMA>(p, q, -0.010_462_386_5);
    p = fma::<FMA>(p, q, -0.047_262_695);
    p = fma::<FMA>(p, q, 0.230_017_69);
    p = fma::<FMA>(p, q, -0.509_332);
    const FIRST: f32 = 0.729_083_7;
    let last = fma::<FMA>(p, q, FIRST);
    let lost = fma::<FMA>(p, q, FIRST - last) + fma::<FMA>(9.747_609e-9, q, -2.630_068e-8);
    let front = v * last;
    let front_low = fma::<FMA>(v_low, last, fma::<FMA>(v, last, -front));
    let front_low = fma::<FMA>(v, lost, front_low);
    // Of normal size, unlike the product with the power.
    let tail = front + fma::<FMA>(front, e.rest, front_low);
    let whole = if x >= 0.0 { x } else { 0.0 };
    fma::<FMA>(-tail, e.scale, whole)
}
