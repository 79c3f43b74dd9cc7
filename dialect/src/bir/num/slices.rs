//! Conversions between little-endian element bytes and `f32`, in loops that vectorise.

use super::convert::Overflow;
use super::dtype::DType;
use super::error::NumError;
use super::lanes::{self, Edge};

/// The bits of the element at the start of `bytes`, little-endian; `None` if there are too few.
pub fn load_bits(dtype: DType, bytes: &[u8]) -> Option<u64> {
    let bytes = bytes.get(..dtype.size_bytes() as usize)?;
    let mut bits = [0; 8];
    for (to, from) in bits.iter_mut().zip(bytes) {
        *to = *from;
    }
    Some(u64::from_le_bytes(bits))
}

/// Writes an element to the start of `bytes`, little-endian; `None` if there is too little room.
pub fn store_bits(dtype: DType, bits: u64, bytes: &mut [u8]) -> Option<()> {
    let bytes = bytes.get_mut(..dtype.size_bytes() as usize)?;
    for (to, from) in bytes.iter_mut().zip(bits.to_le_bytes()) {
        *to = from;
    }
    Some(())
}

/// The values of all elements of `from`, rounded to `f32` as by [`to_f32`](super::to_f32).
///
/// # Errors
///
/// If the dtype is packed or `from` is not as many elements as `to`.
pub fn widen_to_f32(dtype: DType, from: &[u8], to: &mut [f32]) -> Result<(), NumError> {
    widen_to_f32_inline(dtype, from, to)
}

/// [`widen_to_f32`], compiled into its caller: with the vector instructions the caller may use.
///
/// # Errors
///
/// As [`widen_to_f32`].
#[inline(always)]
pub fn widen_to_f32_inline(dtype: DType, from: &[u8], to: &mut [f32]) -> Result<(), NumError> {
    check_length(dtype, to.len(), from.len())?;
    match dtype {
        DType::F32 => widen(from, to, f32::from_le_bytes),
        DType::Tf32 => widen(from, to, |b| lanes::tf32_to_f32(u32::from_le_bytes(b))),
        DType::Bf16 => widen(from, to, |b| lanes::bf16_to_f32(u16::from_le_bytes(b))),
        DType::F16 => widen(from, to, |b| lanes::f16_to_f32(u16::from_le_bytes(b))),
        DType::F8E5M2 => widen(from, to, |[b]| lanes::F8E5M2[b as usize]),
        DType::F8E4M3 => widen(from, to, |[b]| lanes::F8E4M3[b as usize]),
        DType::F8E4M3FN => widen(from, to, |[b]| lanes::F8E4M3FN[b as usize]),
        DType::F8E8M0FNU => widen(from, to, |[b]| lanes::F8E8M0FNU[b as usize]),
        DType::F8E5M2x4 | DType::F8E4M3FNx4 | DType::F4E2M1FNx4 => {
            return Err(NumError::Packed { dtype });
        }
        DType::I8 => widen(from, to, |b| i8::from_le_bytes(b) as f32),
        DType::I16 => widen(from, to, |b| i16::from_le_bytes(b) as f32),
        DType::I32 => widen(from, to, |b| i32::from_le_bytes(b) as f32),
        DType::I64 => widen(from, to, |b| i64::from_le_bytes(b) as f32),
        DType::U8 => widen(from, to, |[b]| b as f32),
        DType::U16 => widen(from, to, |b| u16::from_le_bytes(b) as f32),
        DType::U32 => widen(from, to, |b| u32::from_le_bytes(b) as f32),
        DType::U64 => widen(from, to, |b| u64::from_le_bytes(b) as f32),
        DType::Bool => widen(from, to, |[b]| (b != 0) as u8 as f32),
    }
    Ok(())
}

/// The elements nearest to the values of `from`, as by [`from_f32`](super::from_f32).
///
/// # Errors
///
/// If the dtype is packed or `to` is not as many elements as `from`.
pub fn narrow_from_f32(dtype: DType, from: &[f32], to: &mut [u8]) -> Result<(), NumError> {
    narrow_from_f32_with(dtype, from, to, Overflow::Default)
}

/// [`narrow_from_f32`] with a choice of what overflow does.
///
/// # Errors
///
/// If the dtype is packed or `to` is not as many elements as `from`.
pub fn narrow_from_f32_with(
    dtype: DType,
    from: &[f32],
    to: &mut [u8],
    overflow: Overflow,
) -> Result<(), NumError> {
    narrow_from_f32_inline(dtype, from, to, overflow)
}

/// [`narrow_from_f32_with`], compiled into its caller: with the vector instructions the caller may
/// use.
///
/// # Errors
///
/// As [`narrow_from_f32_with`].
#[inline(always)]
pub fn narrow_from_f32_inline(
    dtype: DType,
    from: &[f32],
    to: &mut [u8],
    overflow: Overflow,
) -> Result<(), NumError> {
    check_length(dtype, from.len(), to.len())?;
    let edge = Edge::of(dtype, overflow);
    let round = lanes::round_even;
    match dtype {
        DType::F32 => narrow(from, to, f32::to_le_bytes),
        DType::Tf32 => narrow(from, to, |v| lanes::f32_to_tf32(v).to_le_bytes()),
        DType::Bf16 => narrow(from, to, |v| lanes::f32_to_bf16(v).to_le_bytes()),
        DType::F16 => narrow(from, to, |v| lanes::f32_to_f16(v).to_le_bytes()),
        DType::F8E5M2 => narrow(from, to, |v| [lanes::f32_to_f8e5m2(v, edge)]),
        DType::F8E4M3 | DType::F8E4M3FN => narrow(from, to, |v| [lanes::f32_to_f8e4m3(v, edge)]),
        DType::F8E8M0FNU => narrow(from, to, |v| [lanes::f32_to_f8e8m0fnu(v)]),
        DType::F8E5M2x4 | DType::F8E4M3FNx4 | DType::F4E2M1FNx4 => {
            return Err(NumError::Packed { dtype });
        }
        DType::I8 => narrow(from, to, |v| (round(v) as i8).to_le_bytes()),
        DType::I16 => narrow(from, to, |v| (round(v) as i16).to_le_bytes()),
        DType::I32 => narrow(from, to, |v| (round(v) as i32).to_le_bytes()),
        DType::I64 => narrow(from, to, |v| (round(v) as i64).to_le_bytes()),
        DType::U8 => narrow(from, to, |v| [round(v) as u8]),
        DType::U16 => narrow(from, to, |v| (round(v) as u16).to_le_bytes()),
        DType::U32 => narrow(from, to, |v| (round(v) as u32).to_le_bytes()),
        DType::U64 => narrow(from, to, |v| (round(v) as u64).to_le_bytes()),
        DType::Bool => narrow(from, to, |v| [(v != 0.0) as u8]),
    }
    Ok(())
}

fn check_length(dtype: DType, elements: usize, found: usize) -> Result<(), NumError> {
    let expected = elements.saturating_mul(dtype.size_bytes() as usize);
    if expected == found {
        return Ok(());
    }
    Err(NumError::Length {
        dtype,
        elements,
        expected,
        found,
    })
}

#[inline(always)]
fn widen<const N: usize>(from: &[u8], to: &mut [f32], lane: impl Fn([u8; N]) -> f32) {
    for (to, from) in to.iter_mut().zip(from.as_chunks().0) {
        *to = lane(*from);
    }
}

#[inline(always)]
fn narrow<const N: usize>(from: &[f32], to: &mut [u8], lane: impl Fn(f32) -> [u8; N]) {
    for (to, from) in to.as_chunks_mut().0.iter_mut().zip(from) {
        *to = lane(*from);
    }
}
