//! One kernel, compiled for several instruction sets, chosen at run time.
//!
//! Every kernel gives the same bits on every level: nothing is contracted, and where a kernel asks
//! for a fused multiply-add, [`fma`] computes it exactly without the instruction.

use pulp::{Arch, Simd, WithSimd};

/// The instruction set kernels run with.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(Arch);

/// Code compiled once per instruction set; `FMA` tells whether the instruction exists.
pub(crate) trait Kernel {
    type Out;
    fn run<const FMA: bool>(self) -> Self::Out;
}

struct Adapter<K>(K);

impl<K: Kernel> WithSimd for Adapter<K> {
    type Output = K::Out;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Out {
        if S::IS_SCALAR {
            self.0.run::<false>()
        } else {
            self.0.run::<true>()
        }
    }
}

impl Lanes {
    /// The widest this machine has.
    pub fn best() -> Lanes {
        Lanes(Arch::new())
    }

    /// What every machine of this architecture has.
    pub fn baseline() -> Lanes {
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        {
            Lanes(Arch::Scalar)
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
        {
            Lanes(Arch::new())
        }
    }

    /// Every level of this machine, for tests that hold them equal.
    #[cfg(test)]
    pub(crate) fn every() -> Vec<Lanes> {
        let mut every = vec![Lanes::baseline(), Lanes::best()];
        #[cfg(target_arch = "x86_64")]
        every.extend(pulp::x86::V3::try_new().map(|level| Lanes(Arch::V3(level))));
        every
    }

    /// The instruction set itself, for code written with explicit vectors.
    pub(crate) fn arch(self) -> Arch {
        self.0
    }

    #[inline(always)]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        self.0.dispatch(Adapter(kernel))
    }
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA {
        a.mul_add(b, c)
    } else {
        exact_fma(a, b, c)
    }
}

/// The fused multiply-add by way of f64: the product is exact there, the sum is rounded to odd, so
/// that rounding it to f32 is the only rounding.
#[inline(always)]
fn exact_fma(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let sum = product + c;
    let part = sum - product;
    let rest = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    // Where something was lost and the last bit is even, the odd neighbour towards what was lost.
    let inexact = rest != 0.0 && sum.is_finite() && bits & 1 == 0;
    let away = (rest > 0.0) == (sum > 0.0);
    let odd = if away {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    f64::from_bits(if inexact { odd } else { bits }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_fma_is_the_fused_one() {
        let mut state = 0x1234_5678_9abc_def0u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..2_000_000u32 {
            let (x, y) = (next(), next());
            let a = f32::from_bits(x as u32);
            let b = f32::from_bits((x >> 32) as u32);
            let mut c = f32::from_bits(y as u32);
            if round % 2 == 0 {
                // Sums that nearly cancel, and halfway cases.
                c = -a * b * f32::from_bits(0x3f80_0000 + (y >> 60) as u32);
            }
            let (want, found) = (a.mul_add(b, c), exact_fma(a, b, c));
            assert!(
                want.to_bits() == found.to_bits() || want.is_nan() && found.is_nan(),
                "fma({a:e}, {b:e}, {c:e}) is {want:e}, found {found:e}"
            );
        }
        assert_eq!(exact_fma(-1.0, 0.0, 0.0).to_bits(), 0);
        assert_eq!(exact_fma(-1.0, 0.0, -0.0).to_bits(), 0x8000_0000);
    }
}
