//! Scalar conversions between dtypes.

use super::dtype::{DType, DTypeClass};
use super::lanes;
use super::packed;
use super::value::{F64, Value};

/// What a float too large for an 8-bit float target becomes.
///
/// Wider targets always overflow to infinity and integers always saturate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Overflow {
    /// Infinity, or NaN in a format without infinities.
    #[default]
    Default,
    /// The largest finite value of that sign, for infinities too; NaN stays NaN.
    Saturate,
}

/// The value of `bits` as a `to`, rounded once; `None` if exactly one of the two is packed or they
/// are different packed dtypes.
///
/// Equal dtypes keep their bits. A `bool` is 1 unless the value is zero, NaN included.
///
/// ```
/// use bir_dialect::bir::num::{DType, convert};
/// assert_eq!(convert(DType::F32, DType::Bf16, 0x3F80_8001), Some(0x3F81));
/// assert_eq!(convert(DType::I16, DType::I8, 300), Some(127));
/// ```
pub fn convert(from: DType, to: DType, bits: u64) -> Option<u64> {
    convert_with(from, to, bits, Overflow::Default)
}

/// [`convert`] with a choice of what overflow does.
pub fn convert_with(from: DType, to: DType, bits: u64, overflow: Overflow) -> Option<u64> {
    if from == to {
        return Some(bits & from.mask());
    }
    Value::from_bits(from, bits)?.to_bits(to, overflow)
}

/// The nearest `f32`; `None` for packed dtypes. An `f32` keeps its bits.
pub fn to_f32(dtype: DType, bits: u64) -> Option<f32> {
    lanes::to_f32(dtype, bits)
}

/// The bits of the nearest value; `None` for packed dtypes. An `f32` keeps its bits.
pub fn from_f32(dtype: DType, value: f32) -> Option<u64> {
    from_f32_with(dtype, value, Overflow::Default)
}

/// [`from_f32`] with a choice of what overflow does.
pub fn from_f32_with(dtype: DType, value: f32, overflow: Overflow) -> Option<u64> {
    lanes::from_f32(dtype, value, overflow)
}

/// The nearest `f64`, which is exact for every dtype but 64-bit integers; `None` for packed dtypes.
pub fn to_f64(dtype: DType, bits: u64) -> Option<f64> {
    let value = Value::from_bits(dtype, bits)?;
    Some(f64::from_bits(value.to_float(F64, Overflow::Default)))
}

/// The bits of the nearest value, rounded once; `None` for packed dtypes.
pub fn from_f64(dtype: DType, value: f64) -> Option<u64> {
    from_f64_with(dtype, value, Overflow::Default)
}

/// [`from_f64`] with a choice of what overflow does.
pub fn from_f64_with(dtype: DType, value: f64, overflow: Overflow) -> Option<u64> {
    Value::from_float(F64, value.to_bits()).to_bits(dtype, overflow)
}

/// Whether the element is a NaN; never for integers and packed dtypes.
pub fn is_nan(dtype: DType, bits: u64) -> bool {
    Value::from_bits(dtype, bits) == Some(Value::Nan)
}

/// Whether two elements are the same: equal bits (so 0 is not -0), or both NaN of any kind.
/// Packed dtypes compare element by element.
pub fn same_value(dtype: DType, a: u64, b: u64) -> bool {
    let (a, b) = (a & dtype.mask(), b & dtype.mask());
    if a == b {
        return true;
    }
    match dtype.class() {
        DTypeClass::Float | DTypeClass::Scale => is_nan(dtype, a) && is_nan(dtype, b),
        DTypeClass::Packed => packed::same_elements(dtype, a, b),
        DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Bool => false,
    }
}
