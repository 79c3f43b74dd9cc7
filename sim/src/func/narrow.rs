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

/// `(e^r - 1 - r) / r²` for |r| up to `ln 2 / 2`, the lowest power first; `e^r` is wrong by 4e-9 of it at
/// most, a sixteenth of what rounding to f32 may cost.
const EXP: [f32; 5] = [
    0.5,
    0.166_665_35,
    0.041_667_245,
    0.008_367_437,
    0.001_386_306_8,
];

/// Adding it rounds to a whole number `k`, and makes the low bits those of `2^k`'s exponent:
/// [`exponent`] shifts out whatever stands above.
const ROUND_BIASED: f32 = ROUND32 + 127.0;

/// `2^k`, or its double for a constant one above [`ROUND_BIASED`].
#[inline(always)]
fn exponent(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits() << 23)
}

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
    let shifted = fma::<FMA>(y, std::f32::consts::LOG2_E, ROUND_BIASED);
    let n = shifted - ROUND_BIASED;
    let r = fma::<FMA>(n, -LN2_HIGH, y);
    let r = fma::<FMA>(n, -LN2_LOW, r) + low;
    let mut q = EXP[4];
    q = fma::<FMA>(q, r, EXP[3]);
    q = fma::<FMA>(q, r, EXP[2]);
    q = fma::<FMA>(q, r, EXP[1]);
    q = fma::<FMA>(q, r, EXP[0]);
    Power {
        scale: exponent(shifted),
        rest: fma::<FMA>(r * r, q, r),
    }
}

impl Power {
    /// `e^y`.
    #[inline(always)]
    fn value<const FMA: bool>(&self) -> f32 {
        fma::<FMA>(self.scale, self.rest, self.scale)
    }

    /// `1 + e^y`, without rounding `e^y` first.
    #[inline(always)]
    fn plus_one<const FMA: bool>(&self) -> f32 {
        fma::<FMA>(self.scale, self.rest, 1.0) + self.scale
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
///
/// `e` is taken apart as in [`power`], with every constant for `-2r` in place of `r`. So few halvings
/// are left up to the bound that `ln 2` needs no second piece.
#[inline(always)]
pub(super) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    const ROUND: f32 = ROUND_BIASED + 1.0;
    let shifted = fma::<FMA>(a, -2.0 * std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<FMA>(n, 0.5 * LN2_HIGH, a);
    let mut q = -32.0 * EXP[4];
    q = fma::<FMA>(q, r, 16.0 * EXP[3]);
    q = fma::<FMA>(q, r, -8.0 * EXP[2]);
    q = fma::<FMA>(q, r, 4.0 * EXP[1]);
    q = fma::<FMA>(q, r, -2.0 * EXP[0]);
    // `e` is `scale (1 - 2h)`.
    let h = fma::<FMA>(r * r, q, r);
    let twice_scale = exponent(shifted);
    // Both sums are rounded once. Nothing cancels: where `e` is near 1, `scale` is 1.
    let less = fma::<FMA>(twice_scale, h, fma::<FMA>(twice_scale, -0.5, 1.0));
    let more = fma::<FMA>(-twice_scale, h, fma::<FMA>(twice_scale, 0.5, 1.0));
    (less / more).copysign(x)
}

/// `1 / (1 + e^-x)`, up to [`EXP_BOUND`].
#[inline(always)]
pub(super) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / power::<FMA>(-x, -0.0).plus_one::<FMA>()
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
    let front_low = fma::<FMA>(front_low, e.rest, front_low);
    // Of normal size, unlike the product with the power.
    let tail = front + fma::<FMA>(front, e.rest, front_low);
    let whole = if x >= 0.0 { x } else { 0.0 };
    fma::<FMA>(-tail, e.scale, whole)
}
