//! Number text to bits.
//!
//! Invariants:
//! * a decimal is rounded once, to the dtype, however many digits it has;
//! * a finite text never becomes an infinity or NaN, a nonzero one never a wrong sign;
//! * what [`print()`](super::print()) wrote reads back to the same bits.

use std::cmp::Ordering;

use super::dtype::{DType, DTypeClass};
use super::error::NumError;
use super::format::FloatFormat;
use super::print::print;
use super::value::{F64, Rounded, Value, sign};

/// The bits of a number text.
///
/// * Floats and scales: a decimal (`-1.5`, `3`, `1.0e-5`) rounded once to the nearest value, `inf`,
///   `nan` (the canonical quiet NaN), each with an optional sign, or the raw bits as `0x7FC00001`.
/// * Integers: decimal or hexadecimal digits with an optional sign; hexadecimal is a value here, so
///   -1 in `i8` is not `0xFF`.
/// * `bool`: `true`, `false`, `0`, `1`, or the raw byte in hexadecimal.
/// * Packed dtypes: the raw bits in hexadecimal.
///
/// # Errors
///
/// If the text is none of these, or the number does not fit: a finite number must stay finite and an
/// integer in range. A float too small for the dtype rounds to a subnormal or zero instead.
///
/// ```
/// use bir_dialect::bir::num::{DType, parse};
/// assert_eq!(parse(DType::Bf16, "0.1"), Ok(0x3DCD));
/// assert!(parse(DType::F32, "3.4028236e38").is_err());
/// ```
pub fn parse(dtype: DType, text: &str) -> Result<u64, NumError> {
    match (dtype.class(), dtype.float_format()) {
        (DTypeClass::Float | DTypeClass::Scale, Some(format)) => parse_float(dtype, format, text),
        (DTypeClass::Signed | DTypeClass::Unsigned, _) => parse_integer(dtype, text),
        (DTypeClass::Bool, _) => match text {
            "true" => Ok(1),
            "false" => Ok(0),
            _ if hex_digits(text).is_some() => parse_raw(dtype, text),
            _ => parse_integer(dtype, text),
        },
        _ => parse_raw(dtype, text),
    }
}

/// The digits after `0x`.
fn hex_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn syntax(dtype: DType, text: &str) -> NumError {
    let expected = match dtype.class() {
        DTypeClass::Float => "a decimal, `inf`, `nan` or bits such as `0x7F`",
        DTypeClass::Scale => "a positive decimal, `nan` or bits such as `0x7F`",
        DTypeClass::Packed => "bits such as `0x7F`",
        DTypeClass::Signed | DTypeClass::Unsigned => "a whole number",
        DTypeClass::Bool => "`true`, `false`, `0` or `1`",
    };
    NumError::Syntax {
        text: NumError::quote(text),
        expected,
        dtype,
    }
}

/// Raw bits in hexadecimal.
fn parse_raw(dtype: DType, text: &str) -> Result<u64, NumError> {
    let digits = hex_digits(text).ok_or_else(|| syntax(dtype, text))?;
    match hex_value(digits) {
        None => Err(syntax(dtype, text)),
        Some(Some(bits)) if bits <= dtype.mask() => Ok(bits),
        Some(_) => Err(NumError::TooManyBits {
            text: NumError::quote(text),
            dtype,
        }),
    }
}

/// `None` if these are no digits, `Some(None)` if the value is beyond `u64`.
fn hex_value(digits: &str) -> Option<Option<u64>> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    Some(u64::from_str_radix(digits, 16).ok())
}

fn parse_integer(dtype: DType, text: &str) -> Result<u64, NumError> {
    let (negative, digits) = split_sign(text);
    let (min, max) = dtype.integer_range().ok_or_else(|| syntax(dtype, text))?;
    let magnitude = match hex_digits(digits) {
        Some(digits) => hex_value(digits).ok_or_else(|| syntax(dtype, text))?,
        None if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok()
        }
        None if Decimal::new(digits).is_some() => {
            return Err(NumError::NotWhole {
                text: NumError::quote(text),
                dtype,
            });
        }
        None => return Err(syntax(dtype, text)),
    };
    let value = magnitude.map(|m| {
        if negative {
            -i128::from(m)
        } else {
            i128::from(m)
        }
    });
    match value {
        Some(value) if (min..=max).contains(&value) => Ok(value as u64 & dtype.mask()),
        _ => Err(NumError::IntegerRange {
            text: NumError::quote(text),
            dtype,
            min,
            max,
        }),
    }
}

fn parse_float(dtype: DType, format: FloatFormat, text: &str) -> Result<u64, NumError> {
    if hex_digits(text).is_some() {
        return parse_raw(dtype, text);
    }
    let (negative, digits) = split_sign(text);
    let missing = |missing| NumError::Missing {
        text: NumError::quote(text),
        dtype,
        missing,
    };
    let check_sign = || match negative && !format.signed {
        true => Err(missing("negative numbers")),
        false => Ok(()),
    };
    let special = match digits {
        "inf" => Some((format.infinity(), "infinity")),
        "nan" => Some((format.nan(), "nan")),
        _ => None,
    };
    if let Some((bits, name)) = special {
        check_sign()?;
        let bits = bits.ok_or_else(|| missing(name))?;
        return Ok(bits | sign(format, negative));
    }
    let decimal = Decimal::new(digits).ok_or_else(|| syntax(dtype, text))?;
    check_sign()?;
    match decimal.round_to(format) {
        Rounded::Bits(bits) => Ok(bits | sign(format, negative)),
        Rounded::Overflow { .. } => {
            let mut max = String::new();
            print(dtype, format.max_finite(), &mut max);
            Err(NumError::FloatRange {
                text: NumError::quote(text),
                dtype,
                max,
            })
        }
        Rounded::Missing { .. } => Err(missing("zero")),
    }
}

/// An unsigned decimal: digits, optionally a point and digits, optionally an exponent.
#[derive(Clone, Copy)]
pub(super) struct Decimal<'a> {
    text: &'a str,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// None if the text is anything else.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                let (negative, exponent) = split_sign(exponent);
                if exponent.is_empty() || !digits(exponent) {
                    return None;
                }
                // An exponent beyond `i64` is beyond every digit count, so its exact size is moot.
                let magnitude = exponent.parse().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
                (mantissa, if negative { -magnitude } else { magnitude })
            }
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return None;
        }
        Some(Decimal {
            text,
            whole,
            fraction,
            exponent,
        })
    }

    /// The digits without leading and trailing zeros, as two parts, and the power of ten of the first
    /// one; none if all are zero.
    fn normalized(self) -> Option<(&'a str, &'a str, i64)> {
        let whole = self.whole.trim_start_matches('0');
        let fraction = self.fraction.trim_end_matches('0');
        if !whole.is_empty() {
            let whole_kept = if fraction.is_empty() {
                whole.trim_end_matches('0')
            } else {
                whole
            };
            return Some((whole_kept, fraction, self.exponent + whole.len() as i64 - 1));
        }
        let kept = fraction.trim_start_matches('0');
        if kept.is_empty() {
            return None;
        }
        let zeros = (fraction.len() - kept.len()) as i64;
        Some(("", kept, self.exponent - zeros - 1))
    }

    /// Compares with a nonzero `f64`, exactly.
    fn compare(self, value: f64) -> Ordering {
        // The callers' values are midpoints of dtypes: at most 25 significant bits, not below 2^-151,
        // hence fewer than 150 digits.
        let exact = format!("{value:.200e}");
        let Some((a_whole, a_fraction, a_exponent)) = self.normalized() else {
            return Ordering::Less;
        };
        let Some((b_whole, b_fraction, b_exponent)) =
            Decimal::new(&exact).and_then(Decimal::normalized)
        else {
            return Ordering::Greater;
        };
        let a = a_whole.bytes().chain(a_fraction.bytes());
        let b = b_whole.bytes().chain(b_fraction.bytes());
        a_exponent.cmp(&b_exponent).then_with(|| a.cmp(b))
    }

    /// The nearest `f64`.
    fn to_f64(self) -> f64 {
        // The standard library clips exponents at some ten thousand, before it counts leading or
        // trailing zeros. In a text this short they cannot make up for such an exponent.
        if self.text.len() < 1000 {
            return self.text.parse().unwrap_or(f64::NAN);
        }
        let Some((whole, fraction, exponent)) = self.normalized() else {
            return 0.0;
        };
        let exponent = exponent.clamp(-1000, 1000) + 1;
        format!("0.{whole}{fraction}e{exponent}")
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// Rounds once to a dtype's format.
    pub(super) fn round_to(self, format: FloatFormat) -> Rounded {
        let nearest = self.to_f64();
        if nearest == 0.0 {
            return match self.normalized() {
                // Nonzero but below every `f64`.
                Some(_) => round(format, 1, -1074),
                None => round(format, 0, 0),
            };
        }
        match Around::new(format, nearest) {
            Around::Same(rounded) => rounded,
            Around::Boundary { below, at, above } => match self.compare(nearest) {
                Ordering::Less => below,
                Ordering::Equal => at,
                Ordering::Greater => above,
            },
        }
    }
}

fn round(format: FloatFormat, mantissa: u64, exponent: i32) -> Rounded {
    Value::Finite {
        negative: false,
        mantissa,
        exponent,
    }
    .round_to_float(format)
}

/// What a positive number rounds to, of which the nearest `f64` is known.
///
/// All points where rounding to a dtype's format changes are `f64` values, so none lies between the
/// number and its nearest `f64`: that one decides alone unless it is such a point.
pub(super) enum Around {
    /// The `f64` decides.
    Same(Rounded),
    /// It is a boundary: it matters on which side of it the number is.
    Boundary {
        /// If the number is less than the `f64`.
        below: Rounded,
        /// If they are equal.
        at: Rounded,
        /// If the number is greater.
        above: Rounded,
    },
}

impl Around {
    pub(super) fn new(format: FloatFormat, nearest: f64) -> Around {
        let Value::Finite {
            mantissa, exponent, ..
        } = Value::from_float(F64, nearest.to_bits())
        else {
            return Around::Same(Rounded::Overflow { negative: false });
        };
        // A quarter of a step to either side stands for "a little less" and "a little more".
        let below = round(format, (4 * mantissa).saturating_sub(1), exponent - 2);
        let above = round(format, 4 * mantissa + 1, exponent - 2);
        if below == above {
            return Around::Same(above);
        }
        Around::Boundary {
            below,
            at: round(format, mantissa, exponent),
            above,
        }
    }
}
