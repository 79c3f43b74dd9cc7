//! When two tensors are equal, and where they are not.
//!
//! Without a tolerance: the same bits, any NaN equal to any NaN. Bits of NaN count on request.

use std::fmt;

use bir_dialect::bir::num::{DType, Number, same_value, to_f64};

use crate::tensor::Tensor;

/// How far apart elements may be.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tolerance {
    /// Relative to the expected value.
    pub relative: f64,
    /// Absolute.
    pub absolute: f64,
    /// In units of the last place of the dtype.
    pub ulp: u64,
    /// Whether payloads of NaN count.
    pub nan_bits: bool,
}

/// How two tensors differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// In shape or dtype.
    Shape {
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// In elements.
    Elements {
        /// Coordinates of the first.
        index: String,
        /// Its value.
        found: String,
        /// The expected one.
        expected: String,
        /// How many differ.
        count: usize,
        /// Of how many.
        of: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Shape { found, expected } => write!(f, "is {found}, expected {expected}"),
            Difference::Elements {
                index,
                found,
                expected,
                count,
                of,
            } => write!(
                f,
                "is {found} at {index}, expected {expected}; {count} of {of} elements differ"
            ),
        }
    }
}

/// Position of a float on the line of all floats of its dtype, so that neighbours differ by one.
fn rank(dtype: DType, bits: u64) -> i128 {
    if dtype.is_integer() {
        return to_f64(dtype, bits).map_or(0, |value| value as i128);
    }
    if dtype == DType::F8E8M0FNU {
        return i128::from(bits);
    }
    let sign = 1u64 << (dtype.bits() - 1);
    let magnitude = i128::from(bits & (sign - 1));
    if bits & sign != 0 {
        -magnitude
    } else {
        magnitude
    }
}

fn close(dtype: DType, found: u64, expected: u64, tolerance: Tolerance) -> bool {
    if tolerance.nan_bits {
        if found == expected {
            return true;
        }
    } else if same_value(dtype, found, expected) {
        return true;
    }
    let (Some(a), Some(b)) = (to_f64(dtype, found), to_f64(dtype, expected)) else {
        return false;
    };
    if a.is_nan() || b.is_nan() {
        return false;
    }
    let allowed = tolerance.absolute + tolerance.relative * b.abs();
    let near = allowed > 0.0 && b.is_finite() && (a - b).abs() <= allowed;
    near || tolerance.ulp > 0
        && a.is_finite() == b.is_finite()
        && rank(dtype, found).abs_diff(rank(dtype, expected)) <= u128::from(tolerance.ulp)
}

/// The difference between a tensor and the expected one, if there is one.
pub fn compare(found: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Option<Difference> {
    if found.dtype != expected.dtype || found.dims != expected.dims {
        return Some(Difference::Shape {
            found: found.shape_text(),
            expected: expected.shape_text(),
        });
    }
    if found.bytes == expected.bytes {
        return None;
    }
    let dtype = found.dtype;
    let mut first = None;
    let mut count = 0;
    for at in 0..found.len() {
        if !close(dtype, found.bits(at), expected.bits(at), tolerance) {
            first.get_or_insert(at);
            count += 1;
        }
    }
    let at = first?;
    let text = |tensor: &Tensor| {
        Number {
            dtype,
            bits: tensor.bits(at),
        }
        .to_string()
    };
    Some(Difference::Elements {
        index: found.index_text(at),
        found: text(found),
        expected: text(expected),
        count,
        of: found.len(),
    })
}
