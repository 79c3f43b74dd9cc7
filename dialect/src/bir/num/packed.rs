//! Packed dtypes: four small floats moved as one element, element 0 in the lowest bits.

use super::convert::Overflow;
use super::dtype::{DType, DTypeClass};
use super::format::FloatFormat;
use super::value::{F64, Value};

/// Format and width of one element; none if the dtype is not packed.
const fn element(dtype: DType) -> Option<(FloatFormat, u32)> {
    match (dtype.class(), dtype.float_format()) {
        (DTypeClass::Packed, Some(format)) => Some((format, dtype.bits() / 4)),
        _ => None,
    }
}

/// The bits of the four elements; `None` if the dtype is not packed.
pub fn unpack_x4(dtype: DType, bits: u64) -> Option<[u8; 4]> {
    let (_, width) = element(dtype)?;
    let mask = (1u64 << width) - 1;
    Some([0, 1, 2, 3].map(|i| ((bits >> (i * width)) & mask) as u8))
}

/// The element that holds those four; bits above an element's width are dropped. `None` if the dtype
/// is not packed.
pub fn pack_x4(dtype: DType, elements: [u8; 4]) -> Option<u64> {
    let (_, width) = element(dtype)?;
    let mask = (1u64 << width) - 1;
    let mut bits = 0;
    for element in elements.iter().rev() {
        bits = (bits << width) | (*element as u64 & mask);
    }
    Some(bits)
}

/// The value of one element of a packed dtype, exact; `None` if the dtype is not packed.
pub fn element_to_f32(dtype: DType, element_bits: u8) -> Option<f32> {
    let (format, _) = element(dtype)?;
    let value = Value::from_float(format, element_bits as u64);
    // Every element is exact in both, so the second step does not round.
    Some(f64::from_bits(value.to_float(F64, Overflow::Default)) as f32)
}

/// The bits of the element of a packed dtype nearest to the value; `None` if the dtype is not packed.
///
/// `f4e2m1fn` has neither infinity nor NaN: large values become ±6 and NaN becomes 0.
pub fn packed_element_from_f32(dtype: DType, value: f32, overflow: Overflow) -> Option<u8> {
    let (format, _) = element(dtype)?;
    let value = Value::from_float(FloatFormat::ieee(8, 23), value.to_bits() as u64);
    Some(value.to_float(format, overflow) as u8)
}

/// Whether the four elements are pairwise equal bits or both NaN.
pub(super) fn same_elements(dtype: DType, a: u64, b: u64) -> bool {
    let (Some((format, _)), Some(a), Some(b)) =
        (element(dtype), unpack_x4(dtype, a), unpack_x4(dtype, b))
    else {
        return false;
    };
    let nan = |bits: u8| Value::from_float(format, bits as u64) == Value::Nan;
    a.iter()
        .zip(&b)
        .all(|(&a, &b)| a == b || (nan(a) && nan(b)))
}
