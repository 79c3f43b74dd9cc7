//! Elementary functions without branches and without a maths library: they vectorise, and give the
//! same bits on every machine.
//!
//! The f64 ones serve results that are rounded to f32: `exp` and `log` are good to a few units in
//! the last place of f64, the others to about 1e-10. The f32 ones are within 2 ulp of f32.

#![allow(
    clippy::excessive_precision,
    reason = "coefficients are written as they were computed"
)]

// Coefficients are near-minimax polynomials, interpolated at Chebyshev nodes with 60 digits.

#[inline(always)]
fn poly<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        sum = sum * x + coefficients[at];
    }
    sum
}

#[inline(always)]
fn poly32<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        sum = sum * x + coefficients[at];
    }
    sum
}

/// Adding it rounds to a whole number, which then stands in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
pub(super) const ROUND32: f32 = 12_582_912.0;

const EXP: [f64; 12] = [
    1.0,
    1.0,
    0.5000000000000019,
    0.1666666666666668,
    0.0416666666664881,
    0.008333333333319601,
    0.0013888888952314775,
    0.00019841269890047113,
    2.4801485482328494e-05,
    2.755724091857897e-06,
    2.763263963904103e-07,
    2.5110037605963777e-08,
];
const EXP_SHORT: [f64; 9] = [
    1.0,
    0.9999999999797852,
    0.49999999999797934,
    0.16666666891045775,
    0.041666666890957,
    0.008333266097949614,
    0.0013888821677630362,
    0.00019915866926782682,
    2.4876164022625967e-05,
];

#[inline(always)]
fn exp_with<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Past these, f32 results have long become 0 or infinity.
    let x = if x > 700.0 { 700.0 } else { x };
    let x = if x < -700.0 { -700.0 } else { x };
    let k = x * std::f64::consts::LOG2_E + ROUND;
    let n = k - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let scale = (k.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023)) << 52;
    poly(r, coefficients) * f64::from_bits(scale)
}

/// `e^x`, to an ulp or two of f64; saturates near `e^±700`.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    exp_with(x, EXP)
}

/// `e^x` to 2e-12.
#[inline(always)]
pub(super) fn exp_short(x: f64) -> f64 {
    exp_with(x, EXP_SHORT)
}

/// `e^x` in f32, for all arguments.
#[inline(always)]
pub(super) fn exp32(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let k = x * std::f32::consts::LOG2_E + ROUND32;
    let n = k - ROUND32;
    // 0.693359375 has few bits, so that its product with `n` is exact.
    let r = x - n * 0.693_359_375 - n * -2.121_944_4e-4;
    let q = poly32(
        r,
        [
            0.5,
            0.166_665_77,
            0.041_666_556,
            0.008_363_173,
            0.001_392_617_6,
        ],
    );
    let p = 1.0 + (r + r * r * q);
    // Two factors: the power itself may be subnormal or past the largest f32.
    let i = (k.to_bits() as i32).wrapping_sub(ROUND32.to_bits() as i32);
    let half = i >> 1;
    let power = |i: i32| f32::from_bits((i.wrapping_add(127) as u32) << 23);
    p * power(half) * power(i.wrapping_sub(half))
}

/// `ln x` for positive normal f64; what f32 holds is.
#[inline(always)]
pub(super) fn log_positive(x: f64) -> f64 {
    const ATANH: [f64; 9] = [
        1.0,
        0.3333333333333333,
        0.20000000000004023,
        0.14285714284327636,
        0.11111111350342509,
        0.0909088594050771,
        0.0769362043043845,
        0.06623490346754578,
        0.06639088473738054,
    ];
    let bits = x.to_bits();
    // Mantissas from sqrt(1/2) on keep their exponent, smaller ones give one up.
    const HALF_ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    let shifted = bits.wrapping_sub(HALF_ROOT);
    let exponent = (shifted as i64) >> 52;
    let mantissa = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
    // Exact conversion of a small integer without the instruction baseline machines lack.
    let n = f64::from_bits(ROUND.to_bits().wrapping_add(exponent as u64)) - ROUND;
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let log = 2.0 * s * poly(s * s, ATANH);
    n * 0.693_147_180_369_123_8 + (n * 1.908_214_929_270_587_7e-10 + log)
}

/// `ln x` with its values at 0, below 0, at infinity.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let inner = log_positive(x);
    let value = if x == 0.0 { f64::NEG_INFINITY } else { inner };
    let value = if x == f64::INFINITY {
        f64::INFINITY
    } else {
        value
    };
    if x < 0.0 || x.is_nan() {
        f64::NAN
    } else {
        value
    }
}

/// `ln(1 + t)` for 0 ≤ t ≤ 1.
#[inline(always)]
pub(super) fn log1p(t: f64) -> f64 {
    let series = t - t * t * (0.5 - t * (1.0 / 3.0));
    let exact = log_positive(1.0 + t);
    if t < 1e-4 { series } else { exact }
}

/// `erf z` for |z| ≤ 1, to an ulp or two of f64.
#[inline(always)]
fn erf_near(z: f64) -> f64 {
    z * poly(
        z * z,
        [
            std::f64::consts::FRAC_2_SQRT_PI,
            -0.3761263890318375,
            0.11283791670954879,
            -0.026866170645076792,
            0.0052239776248180145,
            -0.000854832698083379,
            0.0001205533111164271,
            -1.4925595266831182e-05,
            1.6461000484121368e-06,
            -1.6350312701054695e-07,
            1.4659775274047436e-08,
            -1.1372848856791674e-09,
            5.957176147748911e-11,
        ],
    )
}

/// `erfc z` for z ≥ 0.99, relative error 1e-10.
#[inline(always)]
fn erfc_far(z: f64) -> f64 {
    // Past 11 the result is below every f32: there the factor need not be right.
    let t = 2.0 / (2.0 + if z > 11.0 { 11.0 } else { z });
    let scaled = t * poly(
        t,
        [
            0.28209607255929603,
            0.2820510303649982,
            0.24749439077072552,
            0.17047706833847381,
            0.11701239862582516,
            -0.1327465622472882,
            0.2819006028420198,
            -0.6520778843766509,
            0.6548626274318572,
            -0.30884869754056427,
            0.057767239454108846,
        ],
    );
    scaled * exp_short(-z * z)
}

/// `erf z`.
#[inline(always)]
pub(super) fn erf(z: f64) -> f64 {
    let a = z.abs();
    let near = erf_near(z);
    let far = (1.0 - erfc_far(a)).copysign(z);
    if a < 1.0 { near } else { far }
}

/// The normal distribution's `Φ(x) = (1 + erf(x / sqrt 2)) / 2`, with a small relative error in
/// the lower tail too.
#[inline(always)]
pub(super) fn normal_cdf(x: f64) -> f64 {
    let z = x * std::f64::consts::FRAC_1_SQRT_2;
    let a = z.abs();
    let near = 0.5 + 0.5 * erf_near(z);
    let tail = 0.5 * erfc_far(a);
    let far = if z < 0.0 { tail } else { 1.0 - tail };
    if a < 1.0 { near } else { far }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// [`sigmoid`] to 2e-12.
#[inline(always)]
pub(super) fn sigmoid_short(x: f64) -> f64 {
    // Of the negative magnitude, so that the divisor is between 1 and 2 and an f32 quotient with
    // one Newton step is good to 2e-14.
    let e = exp_short(-x.abs());
    let divisor = 1.0 + e;
    let near = f64::from(1.0 / divisor as f32);
    let inverse = near * (2.0 - divisor * near);
    if x < 0.0 { e * inverse } else { inverse }
}

/// `arctan x`.
#[inline(always)]
pub(super) fn arctan(x: f64) -> f64 {
    let a = x.abs();
    let steep = a > 1.0;
    // At most 1, then at most tan(pi / 8).
    let a = if steep { 1.0 / a } else { a };
    let upper = a > 0.414_213_562_373_095_03;
    let s = if upper { (a - 1.0) / (a + 1.0) } else { a };
    let z = s * s;
    let core = s * poly(
        z,
        [
            1.0,
            -0.3333333333078472,
            0.19999999602363222,
            -0.14285690294890238,
            0.11110381840871641,
            -0.09078349078551037,
            0.07563385785694479,
            -0.058732884125488154,
            0.03064357643044098,
        ],
    );
    let angle = if upper {
        std::f64::consts::FRAC_PI_4 + core
    } else {
        core
    };
    let angle = if steep {
        std::f64::consts::FRAC_PI_2 - angle
    } else {
        angle
    };
    angle.copysign(x)
}

/// `sin x` within [-π, π]; outside, the cubic the hardware goes on with: with `d = x - π`,
/// `d³/6 - d`, and symmetrically below -π.
#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    let a = x.abs();
    let d = a - std::f64::consts::PI;
    let s = if a > std::f64::consts::FRAC_PI_2 {
        -d
    } else {
        a
    };
    let z = s * s;
    let inside = s * poly(
        z,
        [
            1.0,
            -0.1666666666666607,
            0.008333333333282452,
            -0.00019841269824780153,
            2.755731659866929e-06,
            -2.5051881272501282e-08,
            1.6048146803827966e-10,
            -7.374119385051447e-13,
        ],
    );
    let outside = d * d * d * (1.0 / 6.0) - d;
    let value = if d > 0.0 { outside } else { inside };
    if x.is_sign_negative() { -value } else { value }
}
