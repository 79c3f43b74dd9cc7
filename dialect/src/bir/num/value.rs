//! The exact value of a number, and the one place that rounds it into a format.
//!
//! These functions are the definition; the faster ones in `lanes` are tested against them. They are
//! `const` because the 8-bit tables are built from them at compile time.

use super::convert::Overflow;
use super::dtype::{DType, DTypeClass};
use super::format::{FloatFormat, Specials};

/// Layout of `f64`, which is no dtype but a way in and out.
pub(super) const F64: FloatFormat = FloatFormat::ieee(11, 52);

/// A number taken out of its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Nan,
    Infinity {
        negative: bool,
    },
    /// Exactly `±mantissa · 2^exponent`.
    Finite {
        negative: bool,
        mantissa: u64,
        exponent: i32,
    },
}

/// What a rounded value came out as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounded {
    /// The encoding of the nearest number, or of an infinity or NaN that the value already was.
    Bits(u64),
    /// The value is finite and rounds beyond the largest finite number.
    Overflow { negative: bool },
    /// The format has no such number: NaN or infinity without an encoding, zero or a negative
    /// number in a scale.
    Missing { negative: bool },
}

impl Value {
    /// Reads a float; bits outside the format are ignored.
    pub(super) const fn from_float(format: FloatFormat, bits: u64) -> Value {
        let negative = bits & format.sign_bit() != 0;
        let fields = format.exponent_bits + format.mantissa_bits;
        let magnitude = (bits >> format.padding_bits) & ((1 << fields) - 1);
        let max_finite = format.max_finite() >> format.padding_bits;
        if magnitude > max_finite {
            return match format.specials {
                Specials::InfAndNan if magnitude == max_finite + 1 => Value::Infinity { negative },
                _ => Value::Nan,
            };
        }
        let field = (magnitude >> format.mantissa_bits) as i32;
        let mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
        // Field 0 is subnormal: no leading one, the exponent of field 1. A scale has no such field.
        let subnormal = format.signed && field == 0;
        let exponent = if subnormal { 1 } else { field };
        Value::Finite {
            negative,
            mantissa: mantissa | ((!subnormal as u64) << format.mantissa_bits),
            exponent: exponent - format.bias - format.mantissa_bits as i32,
        }
    }

    /// Reads an element; none for packed dtypes.
    pub(super) const fn from_bits(dtype: DType, bits: u64) -> Option<Value> {
        let bits = bits & dtype.mask();
        Some(match dtype.class() {
            DTypeClass::Float | DTypeClass::Scale => match dtype.float_format() {
                Some(format) => Value::from_float(format, bits),
                None => return None,
            },
            DTypeClass::Packed => return None,
            DTypeClass::Signed => {
                let unused = 64 - dtype.bits();
                let value = ((bits << unused) as i64) >> unused;
                Value::Finite {
                    negative: value < 0,
                    mantissa: value.unsigned_abs(),
                    exponent: 0,
                }
            }
            DTypeClass::Unsigned => Value::Finite {
                negative: false,
                mantissa: bits,
                exponent: 0,
            },
            DTypeClass::Bool => Value::Finite {
                negative: false,
                mantissa: (bits != 0) as u64,
                exponent: 0,
            },
        })
    }

    /// Rounds to the nearest number of the format, once.
    pub(super) const fn round_to_float(self, format: FloatFormat) -> Rounded {
        let (negative, mantissa, exponent) = match self {
            Value::Nan => {
                return match format.nan() {
                    Some(bits) => Rounded::Bits(bits),
                    None => Rounded::Missing { negative: false },
                };
            }
            Value::Infinity { negative } => {
                return match format.infinity() {
                    Some(bits) => Rounded::Bits(bits | sign(format, negative)),
                    None => Rounded::Missing { negative },
                };
            }
            Value::Finite {
                negative,
                mantissa,
                exponent,
            } => (negative, mantissa, exponent),
        };
        if !format.signed && (negative || mantissa == 0) {
            return Rounded::Missing { negative };
        }
        if mantissa == 0 {
            return Rounded::Bits(sign(format, negative));
        }
        // Normalised, the value is `mantissa / 2^63 · 2^exponent` with the top bit set.
        let shift = mantissa.leading_zeros() as i32;
        let mantissa = (mantissa << shift) as u128;
        let exponent = exponent - shift + 63;
        let min_exponent = format.min_exponent();
        if !format.signed && exponent < min_exponent {
            // A scale has nothing smaller than its smallest power of two, not even zero.
            return Rounded::Bits(0);
        }
        let below = if exponent < min_exponent {
            min_exponent - exponent
        } else {
            0
        };
        let drop = 63 - format.mantissa_bits + below as u32;
        // From 66 dropped bits on everything rounds to zero, so a longer shift tells nothing more.
        let drop = if drop < 66 { drop } else { 66 };
        let kept = (mantissa >> drop) as u64;
        let rest = mantissa & ((1 << drop) - 1);
        let half = 1u128 << (drop - 1);
        // A power-of-two scale has no even mantissa to prefer: ties go up, as for `float8_e8m0fnu`
        // of the `ml_dtypes` package.
        let up = rest > half || (rest == half && (kept & 1 == 1 || !format.signed));
        let biased = exponent + below + format.bias;
        // The leading one of `kept` adds 1 to the exponent field, and so does a carry out of it.
        let base = (biased - format.signed as i32) as u64;
        let magnitude = if format.signed {
            (base << format.mantissa_bits) + kept + up as u64
        } else {
            base + up as u64
        };
        if magnitude > format.max_finite() >> format.padding_bits {
            return Rounded::Overflow { negative };
        }
        Rounded::Bits((magnitude << format.padding_bits) | sign(format, negative))
    }

    /// Rounds to an integer of the range, saturating.
    const fn round_to_integer(self, min: i128, max: i128) -> i128 {
        let (negative, mantissa, exponent) = match self {
            Value::Nan => return 0,
            Value::Infinity { negative } => return if negative { min } else { max },
            Value::Finite {
                negative,
                mantissa,
                exponent,
            } => (negative, mantissa as u128, exponent),
        };
        let magnitude = if exponent >= 0 {
            if exponent >= 64 && mantissa != 0 {
                return if negative { min } else { max };
            }
            // Below 2^127 for a shift below 64; zero stays zero.
            let exponent = if exponent < 64 { exponent } else { 0 };
            mantissa << exponent
        } else {
            let drop = if exponent > -100 { -exponent } else { 100 };
            let kept = mantissa >> drop;
            let rest = mantissa & ((1 << drop) - 1);
            let half = 1u128 << (drop - 1);
            kept + (rest > half || (rest == half && kept & 1 == 1)) as u128
        };
        let value = if negative {
            -(magnitude as i128)
        } else {
            magnitude as i128
        };
        if value < min {
            min
        } else if value > max {
            max
        } else {
            value
        }
    }

    /// The bits of a float for this value, overflow and missing numbers resolved.
    pub(super) const fn to_float(self, format: FloatFormat, overflow: Overflow) -> u64 {
        let (negative, overflowed) = match self.round_to_float(format) {
            Rounded::Bits(bits) => match (self, overflow) {
                (Value::Infinity { negative }, Overflow::Saturate) => (negative, bits),
                _ => return bits,
            },
            Rounded::Overflow { negative } | Rounded::Missing { negative } => {
                let bits = match (format.infinity(), format.nan()) {
                    (Some(infinity), _) => infinity | sign(format, negative),
                    (None, Some(nan)) => nan,
                    // Nothing but finite numbers: NaN has to be one of them, and infinity is large.
                    (None, None) => match self {
                        Value::Nan => 0,
                        _ => format.max_finite() | sign(format, negative),
                    },
                };
                match self {
                    Value::Nan => return bits,
                    _ => (negative, bits),
                }
            }
        };
        match overflow {
            Overflow::Saturate if format.saturates() => {
                format.max_finite() | sign(format, negative)
            }
            _ => overflowed,
        }
    }

    /// The bits of an element for this value; none for packed dtypes.
    pub(super) const fn to_bits(self, dtype: DType, overflow: Overflow) -> Option<u64> {
        Some(match dtype.class() {
            DTypeClass::Float | DTypeClass::Scale => match dtype.float_format() {
                Some(format) => self.to_float(format, overflow),
                None => return None,
            },
            DTypeClass::Packed => return None,
            DTypeClass::Bool => match self {
                Value::Finite { mantissa: 0, .. } => 0,
                // As in C: NaN is not equal to zero.
                _ => 1,
            },
            DTypeClass::Signed | DTypeClass::Unsigned => match dtype.integer_range() {
                Some((min, max)) => self.round_to_integer(min, max) as u64 & dtype.mask(),
                None => return None,
            },
        })
    }
}

/// The sign bit if `negative`.
pub(super) const fn sign(format: FloatFormat, negative: bool) -> u64 {
    if negative { format.sign_bit() } else { 0 }
}

impl FloatFormat {
    /// Whether [`Overflow::Saturate`] concerns this format: the signed 8-bit ones.
    pub(super) const fn saturates(self) -> bool {
        self.signed && self.exponent_bits + self.mantissa_bits <= 7
    }
}
