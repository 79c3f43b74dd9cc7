//! Activation functions: our own polynomials are their definition.
//!
//! Every result is the nearest f32, or within 2 ulp of it, of the mathematical formula; NaN gives
//! the canonical NaN. Where a formula has a limit at infinity, that limit is the value there, and
//! outside the valid range of the hardware the mathematical value is given – but for `sin`.

mod real;
#[cfg(test)]
mod sweep;

use bir_dialect::bir::ops::ACTIVATION_FUNCS;

use crate::alu::{Arg, NAN, max, quiet};
use crate::simd::Kernel;

macro_rules! funcs {
    ($($variant:ident),* $(,)?) => {
        /// A function of the activation engine, in the order of the op table's words.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Func { $($variant),* }
        const ALL: &[Func] = &[$(Func::$variant),*];
    };
}

funcs!(
    Copy,
    Identity,
    Square,
    Sigmoid,
    Relu,
    Prelu,
    Gelu,
    GeluDx,
    GeluTanh,
    GeluSigmoid,
    GeluSigmoidDx,
    Silu,
    SiluDx,
    Tanh,
    Softplus,
    Mish,
    Erf,
    ErfDx,
    Exp,
    Log,
    Sin,
    Arctan,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Sign,
    Abs,
);

impl Func {
    /// The function of that word.
    pub(crate) fn from_word(word: &str) -> Option<Func> {
        let at = ACTIVATION_FUNCS
            .words
            .iter()
            .position(|&known| known == word)?;
        ALL.get(at).copied()
    }

    /// The value for one argument; `alpha` is the slope of `prelu`.
    #[cfg(test)]
    pub(crate) fn apply(self, x: f32, alpha: f32) -> f32 {
        let mut out = [x];
        Apply {
            func: self,
            alpha,
            out: &mut out,
            x: Arg::Own,
            scale: 1.0,
            bias: -0.0,
        }
        .run::<false>();
        out[0]
    }
}

/// `out = func(x * scale + bias)`; a bias of -0 changes nothing.
pub(crate) struct Apply<'a> {
    pub(crate) func: Func,
    pub(crate) alpha: f32,
    pub(crate) out: &'a mut [f32],
    pub(crate) x: Arg<'a>,
    pub(crate) scale: f32,
    pub(crate) bias: f32,
}

#[inline(always)]
fn each(job: Apply<'_>, f: impl Fn(f32) -> f32) {
    let Apply {
        out,
        x,
        scale,
        bias,
        ..
    } = job;
    match x {
        Arg::Row(x) => {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = f(x * scale + bias);
            }
        }
        Arg::Own => {
            for out in out {
                *out = f(*out * scale + bias);
            }
        }
        Arg::Splat(x) => out.fill(f(x * scale + bias)),
    }
}

/// Keeps products of an infinity and a vanishing factor from being NaN.
#[inline(always)]
fn bounded(x: f64) -> f64 {
    let x = if x < -1e9 { -1e9 } else { x };
    if x > 1e39 { f64::INFINITY } else { x }
}

#[inline(always)]
fn bounded_both(x: f64) -> f64 {
    let x = if x < -1e9 { -1e9 } else { x };
    if x > 1e9 { 1e9 } else { x }
}

#[inline(always)]
fn wide(f: impl Fn(f64) -> f64) -> impl Fn(f32) -> f32 {
    move |x| quiet(f(f64::from(x)) as f32)
}

const GELU_SLOPE: f64 = 1.702;

impl Kernel for Apply<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let alpha = self.alpha;
        match self.func {
            Func::Copy | Func::Identity => each(self, quiet),
            Func::Square => each(self, |x| quiet(x * x)),
            Func::Relu => each(self, |x| max(x, 0.0)),
            Func::Prelu => each(self, move |x| quiet(if x >= 0.0 { x } else { alpha * x })),
            Func::Exp => each(self, |x| quiet(real::exp32(x))),
            Func::Tanh => each(self, |x| quiet(real::tanh32(x))),
            Func::Sqrt => each(self, |x| quiet(x.sqrt())),
            Func::Rsqrt => each(self, |x| quiet((1.0 / f64::from(x).sqrt()) as f32)),
            Func::Reciprocal => each(self, |x| quiet(1.0 / x)),
            Func::Abs => each(self, |x| quiet(x.abs())),
            Func::Sign => each(self, |x| {
                let sign = if x > 0.0 { 1.0 } else { 0.0 };
                let sign = if x < 0.0 { -1.0 } else { sign };
                quiet(if x.is_nan() { x } else { sign })
            }),
            Func::Sigmoid => each(self, wide(real::sigmoid_short)),
            Func::Silu => each(self, wide(|x| bounded(x) * real::sigmoid_short(x))),
            Func::SiluDx => each(
                self,
                wide(|x| {
                    let s = real::sigmoid(x);
                    s * (1.0 + bounded_both(x) * (1.0 - s))
                }),
            ),
            Func::Gelu => each(self, wide(|x| bounded(x) * real::normal_cdf(x))),
            Func::GeluDx => each(
                self,
                wide(|x| {
                    const DENSITY: f64 = 0.398_942_280_401_432_7;
                    let b = bounded_both(x);
                    real::normal_cdf(x) + b * DENSITY * real::exp(-0.5 * b * b)
                }),
            ),
            // x (1 + tanh u) / 2 is x σ(2u), which does not cancel.
            Func::GeluTanh => each(
                self,
                wide(|x| {
                    const TWICE: f64 = 1.595_769_121_605_731;
                    bounded(x) * real::sigmoid_short(TWICE * (x + 0.044715 * x * x * x))
                }),
            ),
            Func::GeluSigmoid => each(
                self,
                wide(|x| bounded(x) * real::sigmoid_short(GELU_SLOPE * x)),
            ),
            Func::GeluSigmoidDx => each(
                self,
                wide(|x| {
                    let s = real::sigmoid(GELU_SLOPE * x);
                    s + GELU_SLOPE * bounded_both(x) * s * (1.0 - s)
                }),
            ),
            Func::Softplus => each(
                self,
                wide(|x| {
                    let positive = if x > 0.0 { x } else { 0.0 };
                    let value = positive + real::log1p(real::exp_short(-x.abs()));
                    if x.is_nan() { f64::NAN } else { value }
                }),
            ),
            // tanh(ln(1 + e^x)) is w / (w + 2) with w = e^x (e^x + 2).
            Func::Mish => each(
                self,
                wide(|x| {
                    let e = real::exp_short(if x > 40.0 { 40.0 } else { x });
                    let w = e * (e + 2.0);
                    bounded(x) * (w / (w + 2.0))
                }),
            ),
            Func::Erf => each(self, wide(real::erf)),
            Func::ErfDx => each(
                self,
                wide(|x| std::f64::consts::FRAC_2_SQRT_PI * real::exp_short(-x * x)),
            ),
            Func::Log => each(self, wide(real::log)),
            Func::Sin => each(self, wide(real::sin)),
            Func::Arctan => each(self, wide(real::arctan)),
        }
    }
}

/// `a^b` by way of f64, with the special values of IEEE 754.
pub(crate) fn pow(a: f32, b: f32) -> f32 {
    if b == 0.0 || a == 1.0 {
        return 1.0;
    }
    if a.is_nan() || b.is_nan() {
        return NAN;
    }
    let whole = b.trunc() == b;
    let odd = whole && b.abs() < 16_777_216.0 && b % 2.0 != 0.0;
    let magnitude = if a.abs() == 1.0 {
        1.0
    } else if b.is_infinite() {
        if (a.abs() > 1.0) == (b > 0.0) {
            f64::INFINITY
        } else {
            0.0
        }
    } else if a == 0.0 || a.is_infinite() {
        if (a == 0.0) == (b < 0.0) {
            f64::INFINITY
        } else {
            0.0
        }
    } else {
        let exponent = f64::from(b) * real::log_positive(f64::from(a.abs()));
        real::exp(exponent)
    };
    if a < 0.0 && a.is_finite() && !whole && !b.is_infinite() {
        return NAN;
    }
    let value = magnitude as f32;
    if a.is_sign_negative() && odd {
        -value
    } else {
        value
    }
}
