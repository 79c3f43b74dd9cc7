//! Bits to number text.

use std::fmt;

use super::dtype::{DType, DTypeClass};
use super::format::FloatFormat;
use super::parse::{Around, Decimal};
use super::value::{F64, Rounded, Value};
use super::{Overflow, convert};

/// From this value on floats print with an exponent; below it, whole numbers print all their digits.
const POSITIONAL_END: f64 = 1e16;

/// Powers of ten of the first digit that print without an exponent.
const POSITIONAL: std::ops::Range<i32> = -4..16;

/// A number of a dtype that displays as [`write()`] writes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    /// How to read the bits.
    pub dtype: DType,
    /// The bits; those above the dtype's width are ignored.
    pub bits: u64,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.dtype, self.bits, f)
    }
}

/// Appends the text of an element, as [`write()`].
pub fn print(dtype: DType, bits: u64, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write(dtype, bits, out);
}

/// Writes the text of an element; [`parse`](super::parse) reads it back to the same bits.
///
/// A float is the shortest decimal that rounds to it in its own dtype, with a point, and with an
/// exponent below 1e-4 and from 1e16 on: `0.1`, `1.0e-5`, `-0.0`, `65504.0`. Whole numbers in
/// between are exact, being no longer for that, and scales have the digits of an `f32`. The canonical
/// NaN is `nan`; other NaNs and packed elements are their bits, as is anything else that no decimal
/// stands for: `0x7FC00001`.
///
/// # Errors
///
/// If the writer fails.
pub fn write(dtype: DType, bits: u64, out: &mut impl fmt::Write) -> fmt::Result {
    let bits = bits & dtype.mask();
    match (dtype.class(), dtype.float_format()) {
        (DTypeClass::Float | DTypeClass::Scale, Some(format)) => {
            write_float(dtype, format, bits, out)
        }
        (DTypeClass::Signed, _) => {
            let unused = 64 - dtype.bits();
            write!(out, "{}", ((bits << unused) as i64) >> unused)
        }
        (DTypeClass::Unsigned, _) => write!(out, "{bits}"),
        (DTypeClass::Bool, _) if bits <= 1 => write!(out, "{bits}"),
        _ => write_hex(dtype, bits, out),
    }
}

fn write_hex(dtype: DType, bits: u64, out: &mut impl fmt::Write) -> fmt::Result {
    let digits = dtype.size_bytes() as usize * 2;
    write!(out, "0x{bits:0digits$X}")
}

fn write_float(
    dtype: DType,
    format: FloatFormat,
    bits: u64,
    out: &mut impl fmt::Write,
) -> fmt::Result {
    if bits & ((1 << format.padding_bits) - 1) != 0 {
        return write_hex(dtype, bits, out);
    }
    let value = Value::from_float(format, bits);
    let negative = match value {
        Value::Nan if format.nan() == Some(bits) => return out.write_str("nan"),
        Value::Nan => return write_hex(dtype, bits, out),
        Value::Infinity { negative } | Value::Finite { negative, .. } => negative,
    };
    if negative {
        out.write_char('-')?;
    }
    if matches!(value, Value::Infinity { .. }) {
        return out.write_str("inf");
    }
    let magnitude = f64::from_bits(value.to_float(F64, Overflow::Default)).abs();
    if magnitude < POSITIONAL_END && magnitude.fract() == 0.0 {
        return write!(out, "{}.0", magnitude as u64);
    }
    let (digits, exponent) = match dtype {
        DType::F32 | DType::F8E8M0FNU => {
            let bits = convert(dtype, DType::F32, bits).unwrap_or_default();
            split(&format!("{:e}", f32::from_bits(bits as u32).abs()))
        }
        _ => shortest(format, bits & !format.sign_bit(), magnitude),
    };
    write_digits(&digits, exponent, out)
}

/// Writes `d.ddd · 10^exponent`, never a whole number below [`POSITIONAL_END`].
fn write_digits(digits: &str, exponent: i32, out: &mut impl fmt::Write) -> fmt::Result {
    if !POSITIONAL.contains(&exponent) {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
        let rest = if rest.is_empty() { "0" } else { rest };
        return write!(out, "{first}.{rest}e{exponent}");
    }
    if exponent < 0 {
        let zeros = (-1 - exponent) as usize;
        return write!(out, "0.{:0<zeros$}{digits}", "");
    }
    let point = exponent as usize + 1;
    match digits.split_at_checked(point) {
        Some((whole, "")) => write!(out, "{whole}.0"),
        Some((whole, fraction)) => write!(out, "{whole}.{fraction}"),
        None => write!(out, "{digits:0<point$}.0"),
    }
}

/// The digits, without trailing zeros, and the exponent of a `{:e}` text.
fn split(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    (digits, exponent.parse().unwrap_or_default())
}

/// The shortest digits that round to `bits` in the format, nearest to `magnitude` among those, and
/// the power of ten of the first one.
///
/// Of each length only the two decimals around the value need a look. The last length always
/// succeeds, as every dtype here is narrower than `f64`.
fn shortest(format: FloatFormat, bits: u64, magnitude: f64) -> (String, i32) {
    let (exact, exponent) = split(&format!("{magnitude:.16e}"));
    let reads_back = |digits: u64, exponent: i32| {
        let rounded = match scaled(digits, exponent).map(|nearest| Around::new(format, nearest)) {
            Some(Around::Same(rounded)) => Some(rounded),
            Some(Around::Boundary { .. }) | None => {
                let text = format!("{digits}e{exponent}");
                Decimal::new(&text).map(|decimal| decimal.round_to(format))
            }
        };
        rounded == Some(Rounded::Bits(bits))
    };
    for length in 1..exact.len() {
        let Some((head, tail)) = exact.split_at_checked(length) else {
            break;
        };
        let Ok(lower) = head.parse::<u64>() else {
            break;
        };
        let scale = exponent - length as i32 + 1;
        // 9 and 10 are one digit each once the zero is gone, but `0.1` is a shorter text than `0.09`.
        let power_of_ten = lower == 9 && POSITIONAL.contains(&exponent);
        // Digits compare as text, being equally long or one a prefix of the other.
        let nearer_upper = tail > "5" && tail.trim_end_matches('0') != "5"
            || tail.trim_end_matches('0') == "5" && lower % 2 == 1;
        let candidates = if power_of_ten || nearer_upper {
            [lower + 1, lower]
        } else {
            [lower, lower + 1]
        };
        for candidate in candidates {
            if reads_back(candidate, scale) {
                let text = candidate.to_string();
                // Carrying into a new digit moves the point.
                let exponent = scale + text.len() as i32 - 1;
                return (text.trim_end_matches('0').to_owned(), exponent);
            }
        }
    }
    (exact.trim_end_matches('0').to_owned(), exponent)
}

/// `digits · 10^exponent` as the nearest `f64`, where one operation on exact operands finds it.
fn scaled(digits: u64, exponent: i32) -> Option<f64> {
    /// All the powers of ten that an `f64` holds exactly.
    const POWERS: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    if digits >= 1 << 53 {
        return None;
    }
    let power = POWERS.get(exponent.unsigned_abs() as usize)?;
    let digits = digits as f64;
    Some(if exponent < 0 {
        digits / power
    } else {
        digits * power
    })
}
