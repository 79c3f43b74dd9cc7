//! Activation functions: our own polynomials are their definition.
//!
//! Every result is the nearest f32, or within 2 ulp of it, of the mathematical formula; NaN gives
//! the canonical NaN. Where a formula has a limit at infinity, that limit is the value there, and
//! outside the valid range of the hardware the mathematical value is given – but for `sin`.

#![allow(
    clippy::needless_range_loop,
    reason = "blocks are arrays of one fixed size: indices vectorise without a check"
)]

mod narrow;
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

/// A function of one number. A trait, not a closure, so that it is always inlined: out of line it
/// would be compiled without the instructions of the kernel around it.
trait Curve: Copy {
    fn at<const FMA: bool>(self, alpha: f32, x: f32) -> f32;
}

/// A [`Curve`]: `curve!(|x| …)`, or `curve!(|alpha, x| …)`; `FMA` stands for the parameter.
macro_rules! curve {
    (|$x:ident| $body:expr) => {
        curve!(|_alpha, $x| $body)
    };
    (|$alpha:ident, $x:ident| $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Here;
        impl Curve for Here {
            #[inline(always)]
            fn at<const FMA: bool>(self, $alpha: f32, $x: f32) -> f32 {
                $body
            }
        }
        Here
    }};
}

/// A [`Curve`] computed in f64.
macro_rules! wide {
    (|$x:ident| $body:expr) => {
        curve!(|x| {
            let $x = f64::from(x);
            quiet($body as f32)
        })
    };
}

#[inline(always)]
fn each<const FMA: bool>(job: Apply<'_>, f: impl Curve) {
    let Apply {
        alpha,
        out,
        x,
        scale,
        bias,
        ..
    } = job;
    match x {
        Arg::Row(x) => {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = f.at::<FMA>(alpha, x * scale + bias);
            }
        }
        Arg::Own => {
            for out in out {
                *out = f.at::<FMA>(alpha, *out * scale + bias);
            }
        }
        Arg::Splat(x) => out.fill(f.at::<FMA>(alpha, x * scale + bias)),
    }
}

/// Arguments computed at once.
const BLOCK: usize = 64;

/// A function in two forms: where the argument is at most `bound` in magnitude, `near`; elsewhere,
/// and for NaN, `full`.
///
/// Blocks of arguments that are all near never see the full form, which does not show in a bit.
struct Bounded<N, F> {
    bound: f32,
    near: N,
    full: F,
}

/// A function in one form, whose code is so long that it is better there once than thrice, as in
/// [`each`].
fn whole<F: Curve>(f: F) -> Bounded<F, F> {
    Bounded {
        bound: f32::from_bits(u32::MAX),
        near: f,
        full: f,
    }
}

impl<N: Curve, F: Curve> Bounded<N, F> {
    #[inline(always)]
    fn near<const FMA: bool>(&self, t: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
        for i in 0..BLOCK {
            out[i] = self.near.at::<FMA>(0.0, t[i]);
        }
    }

    /// Whether any argument is past the bound, or NaN.
    #[inline(always)]
    fn some_far(&self, t: &[f32; BLOCK]) -> bool {
        let bound = self.bound.to_bits();
        let mut far = false;
        for i in 0..BLOCK {
            far |= t[i].abs().to_bits() > bound;
        }
        far
    }

    /// Replaces what [`Self::near`] made of arguments past the bound.
    #[inline(always)]
    fn far<const FMA: bool>(&self, t: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
        let bound = self.bound.to_bits();
        for i in 0..BLOCK {
            let value = self.full.at::<FMA>(0.0, t[i]);
            let far = t[i].abs().to_bits() > bound;
            out[i] = if far { value } else { out[i] };
        }
    }
}

#[inline(always)]
fn scaled(out: &mut [f32], x: &[f32], scale: f32, bias: f32) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = x * scale + bias;
    }
}

/// The whole job in blocks; what is left over is computed as part of a full one.
#[inline(always)]
fn blockwise<const FMA: bool>(job: Apply<'_>, f: Bounded<impl Curve, impl Curve>) {
    let Apply {
        out,
        x,
        scale,
        bias,
        ..
    } = job;
    let plain = scale == 1.0 && bias.to_bits() == (-0f32).to_bits();
    // Arguments are used where they lie, or made in `out`.
    let row = match x {
        Arg::Row(x) if plain => Some(x),
        Arg::Row(x) => {
            scaled(out, x, scale, bias);
            None
        }
        Arg::Own => {
            if !plain {
                out.iter_mut().for_each(|out| *out = *out * scale + bias);
            }
            None
        }
        Arg::Splat(x) => {
            out.fill(x * scale + bias);
            None
        }
    };
    let (row_blocks, row_rest) = row.unwrap_or(&[]).as_chunks::<BLOCK>();
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    let (mut own, mut left_over) = ([0.0; BLOCK], [0.0; BLOCK]);
    // One call of `f`, so that its code is there once.
    for number in 0..blocks.len() + usize::from(!rest.is_empty()) {
        let (t, to) = match (blocks.get_mut(number), row_blocks.get(number)) {
            (Some(to), Some(t)) => (t, to),
            (Some(to), None) => {
                own = *to;
                (&own, to)
            }
            (None, _) => {
                let from = if row.is_some() { row_rest } else { &*rest };
                own[..from.len()].copy_from_slice(from);
                (&own, &mut left_over)
            }
        };
        f.near::<FMA>(t, to);
        if f.some_far(t) {
            f.far::<FMA>(t, to);
        }
    }
    rest.copy_from_slice(&left_over[..rest.len()]);
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

const GELU_SLOPE: f64 = 1.702;

impl Kernel for Apply<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        match self.func {
            Func::Copy | Func::Identity => each::<FMA>(self, curve!(|x| quiet(x))),
            Func::Square => each::<FMA>(self, curve!(|x| quiet(x * x))),
            Func::Relu => each::<FMA>(self, curve!(|x| max(x, 0.0))),
            Func::Prelu => each::<FMA>(
                self,
                curve!(|alpha, x| quiet(if x >= 0.0 { x } else { alpha * x })),
            ),
            Func::Exp => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::EXP_BOUND,
                    near: curve!(|x| narrow::exp::<FMA>(x)),
                    full: curve!(|x| quiet(real::exp32(x))),
                },
            ),
            Func::Tanh => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::TANH_BOUND,
                    near: curve!(|x| narrow::tanh::<FMA>(x)),
                    full: curve!(|x| if x.is_nan() { NAN } else { 1f32.copysign(x) }),
                },
            ),
            Func::Sqrt => each::<FMA>(self, curve!(|x| quiet(x.sqrt()))),
            Func::Rsqrt => each::<FMA>(self, wide!(|x| 1.0 / x.sqrt())),
            Func::Reciprocal => each::<FMA>(self, curve!(|x| quiet(1.0 / x))),
            Func::Abs => each::<FMA>(self, curve!(|x| quiet(x.abs()))),
            Func::Sign => each::<FMA>(
                self,
                curve!(|x| {
                    let sign = if x > 0.0 { 1.0 } else { 0.0 };
                    let sign = if x < 0.0 { -1.0 } else { sign };
                    quiet(if x.is_nan() { x } else { sign })
                }),
            ),
            Func::Sigmoid => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::EXP_BOUND,
                    near: curve!(|x| narrow::sigmoid::<FMA>(x)),
                    full: wide!(|x| real::sigmoid_short(x)),
                },
            ),
            Func::Silu => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::EXP_BOUND,
                    near: curve!(|x| narrow::silu::<FMA>(x)),
                    full: wide!(|x| bounded(x) * real::sigmoid_short(x)),
                },
            ),
            Func::SiluDx => blockwise::<FMA>(
                self,
                whole(wide!(|x| {
                    let s = real::sigmoid(x);
                    s * (1.0 + bounded_both(x) * (1.0 - s))
                })),
            ),
            Func::Gelu => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::GELU_BOUND,
                    near: curve!(|x| narrow::gelu::<FMA>(x)),
                    full: wide!(|x| bounded(x) * real::normal_cdf(x)),
                },
            ),
            Func::GeluDx => blockwise::<FMA>(
                self,
                whole(wide!(|x| {
                    const DENSITY: f64 = 0.398_942_280_401_432_7;
                    let b = bounded_both(x);
                    real::normal_cdf(x) + b * DENSITY * real::exp(-0.5 * b * b)
                })),
            ),
            // x (1 + tanh u) / 2 is x σ(2u), which does not cancel.
            Func::GeluTanh => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::GELU_TANH_BOUND,
                    near: curve!(|x| narrow::gelu_tanh::<FMA>(x)),
                    full: wide!(|x| {
                        const TWICE: f64 = 1.595_769_121_605_731;
                        bounded(x) * real::sigmoid_short(TWICE * (x + 0.044715 * x * x * x))
                    }),
                },
            ),
            Func::GeluSigmoid => blockwise::<FMA>(
                self,
                Bounded {
                    bound: narrow::GELU_SIGMOID_BOUND,
                    near: curve!(|x| narrow::gelu_sigmoid::<FMA>(x)),
                    full: wide!(|x| bounded(x) * real::sigmoid_short(GELU_SLOPE * x)),
                },
            ),
            Func::GeluSigmoidDx => blockwise::<FMA>(
                self,
                whole(wide!(|x| {
                    let s = real::sigmoid(GELU_SLOPE * x);
                    s + GELU_SLOPE * bounded_both(x) * s * (1.0 - s)
                })),
            ),
            Func::Softplus => blockwise::<FMA>(
                self,
                whole(wide!(|x| {
                    let positive = if x > 0.0 { x } else { 0.0 };
                    let value = positive + real::log1p(real::exp_short(-x.abs()));
                    if x.is_nan() { f64::NAN } else { value }
                })),
            ),
            Func::Mish => blockwise::<FMA>(
                self,
                whole(wide!(|x| {
                    let e = real::exp_short(if x > 40.0 { 40.0 } else { x });
                    let w = e * (e + 2.0);
                    bounded(x) * (w / (w + 2.0))
                })),
            ),
            Func::Erf => blockwise::<FMA>(self, whole(wide!(|x| real::erf(x)))),
            Func::ErfDx => blockwise::<FMA>(
                self,
                whole(wide!(
                    |x| std::f64::consts::FRAC_2_SQRT_PI * real::exp_short(-x * x)
                )),
            ),
            Func::Log => blockwise::<FMA>(self, whole(wide!(|x| real::log(x)))),
            Func::Sin => blockwise::<FMA>(self, whole(wide!(|x| real::sin(x)))),
            Func::Arctan => blockwise::<FMA>(self, whole(wide!(|x| real::arctan(x)))),
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
