//! One element to and from `f32`, without branches, for scalar and slice callers alike.
//!
//! Each function must agree with `value` on every input.

use super::convert::Overflow;
use super::dtype::DType;
use super::format::FloatFormat;
use super::value::{F64, Value};

const F32: FloatFormat = FloatFormat::ieee(8, 23);
const F32_INFINITY: u32 = 0x7F80_0000;
const F32_NAN: u32 = 0x7FC0_0000;
const F32_MAGNITUDE: u32 = 0x7FFF_FFFF;

/// Every value of an 8-bit format as `f32`.
const fn table(format: FloatFormat) -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut bits = 0;
    while bits < 256 {
        let value = Value::from_float(format, bits as u64);
        table[bits] = f32::from_bits(value.to_float(F32, Overflow::Default) as u32);
        bits += 1;
    }
    table
}

/// The format of a dtype whose row has one.
const fn format(dtype: DType) -> FloatFormat {
    match dtype.float_format() {
        Some(format) => format,
        None => F64,
    }
}

pub(super) static F8E5M2: [f32; 256] = table(format(DType::F8E5M2));
pub(super) static F8E4M3: [f32; 256] = table(format(DType::F8E4M3));
pub(super) static F8E4M3FN: [f32; 256] = table(format(DType::F8E4M3FN));
pub(super) static F8E8M0FNU: [f32; 256] = table(format(DType::F8E8M0FNU));

#[inline(always)]
pub(super) fn tf32_to_f32(bits: u32) -> f32 {
    let bits = bits & !0x1FFF;
    let nan = bits & F32_MAGNITUDE > F32_INFINITY;
    f32::from_bits(if nan { F32_NAN } else { bits })
}

#[inline(always)]
pub(super) fn bf16_to_f32(bits: u16) -> f32 {
    let nan = bits & 0x7FFF > 0x7F80;
    f32::from_bits(if nan { F32_NAN } else { (bits as u32) << 16 })
}

#[inline(always)]
pub(super) fn f16_to_f32(bits: u16) -> f32 {
    const REBIAS: u32 = (127 - 15) << 23;
    let magnitude = (bits as u32 & 0x7FFF) << 13;
    let sign = (bits as u32 & 0x8000) << 16;
    let normal = magnitude + REBIAS;
    // A subnormal has no leading one: supply it as part of 2^-14 and take that away again.
    const SMALLEST: f32 = f32::from_bits(113 << 23);
    let subnormal = (f32::from_bits(magnitude + (113 << 23)) - SMALLEST).to_bits();
    let finite = if magnitude < 1 << 23 {
        subnormal
    } else {
        normal
    };
    let signed = if magnitude >= 31 << 23 {
        F32_INFINITY | sign
    } else {
        finite | sign
    };
    f32::from_bits(if magnitude > 31 << 23 {
        F32_NAN
    } else {
        signed
    })
}

#[inline(always)]
pub(super) fn f32_to_tf32(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0xFFF + ((bits >> 13) & 1)) & !0x1FFF;
    if value.is_nan() { F32_NAN } else { rounded }
}

/// The nearest bf16 as bits, of two as near the even one; the canonical NaN for any NaN.
#[inline(always)]
pub fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16) as u16;
    if value.is_nan() { 0x7FC0 } else { rounded }
}

/// To a float of `EXPONENT` and `MANTISSA` bits, both fewer than in `f32`.
#[inline(always)]
fn narrow<const EXPONENT: u32, const MANTISSA: u32>(value: f32, edge: Edge) -> u32 {
    let bias = (1u32 << (EXPONENT - 1)) - 1;
    let shift = 23 - MANTISSA;
    let magnitude = value.to_bits() & F32_MAGNITUDE;
    let sign = value.to_bits() >> 31 << (EXPONENT + MANTISSA);
    let odd = (magnitude >> shift) & 1;
    let normal = magnitude
        .wrapping_sub((127 - bias) << 23)
        .wrapping_add((1 << (shift - 1)) - 1 + odd)
        >> shift;
    // Adding a power of two whose last mantissa bit is the smallest subnormal makes the adder round.
    let anchor = (127 - bias + shift + 1) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(anchor))
        .to_bits()
        .wrapping_sub(anchor);
    let finite = if magnitude < (128 - bias) << 23 {
        subnormal
    } else {
        normal
    };
    let signed = if finite > edge.max {
        edge.over | (sign & edge.over_sign)
    } else {
        finite | sign
    };
    if magnitude > F32_INFINITY {
        edge.nan
    } else {
        signed
    }
}

/// What happens at the upper end of a narrow format.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    /// Largest finite magnitude.
    max: u32,
    /// What a larger magnitude becomes.
    over: u32,
    /// Which sign bits `over` takes from the value: NaN takes none.
    over_sign: u32,
    /// What NaN becomes.
    nan: u32,
}

impl Edge {
    pub(super) const fn new(format: FloatFormat, overflow: Overflow) -> Edge {
        let max = format.max_finite() as u32;
        let nan = match format.nan() {
            Some(nan) => nan as u32,
            None => 0,
        };
        let (over, over_sign) = match (overflow, format.infinity()) {
            (Overflow::Saturate, _) if format.saturates() => (max, u32::MAX),
            (_, Some(infinity)) => (infinity as u32, u32::MAX),
            (_, None) => (nan, 0),
        };
        Edge {
            max,
            over,
            over_sign,
            nan,
        }
    }

    pub(super) const fn of(dtype: DType, overflow: Overflow) -> Edge {
        Self::new(format(dtype), overflow)
    }
}

#[inline(always)]
pub(super) fn f32_to_f16(value: f32) -> u16 {
    const EDGE: Edge = Edge::of(DType::F16, Overflow::Default);
    narrow::<5, 10>(value, EDGE) as u16
}

#[inline(always)]
pub(super) fn f32_to_f8e5m2(value: f32, edge: Edge) -> u8 {
    narrow::<5, 2>(value, edge) as u8
}

/// Both 1/4/3 formats; they differ at the edge only.
#[inline(always)]
pub(super) fn f32_to_f8e4m3(value: f32, edge: Edge) -> u8 {
    narrow::<4, 3>(value, edge) as u8
}

#[inline(always)]
pub(super) fn f32_to_f8e8m0fnu(value: f32) -> u8 {
    let bits = value.to_bits();
    // 2^-127 is subnormal in `f32`, so its upper neighbourhood does not start at a half mantissa.
    let small = (bits >= 0x0060_0000) as u32;
    let normal = (bits.wrapping_add(0x0040_0000) >> 23).min(0xFF);
    let scale = if bits < 0x0080_0000 { small } else { normal };
    // Negative numbers, zero and NaN are no powers of two. A sign bit makes `bits` the largest.
    if bits == 0 || bits >= F32_INFINITY {
        0xFF
    } else {
        scale as u8
    }
}

/// The nearest whole number, ties to even; `as` then saturates and makes NaN 0.
///
/// From 2^23 on every `f32` is whole; below, adding 2^23 makes the adder round. (The rounding
/// instruction is not part of the baseline of every target, where it would become a call.)
#[inline(always)]
pub(super) fn round_even(value: f32) -> f32 {
    let anchor = 8_388_608f32.copysign(value);
    let rounded = (value + anchor) - anchor;
    if value.abs() < 8_388_608.0 {
        rounded
    } else {
        value
    }
}

pub(super) fn to_f32(dtype: DType, bits: u64) -> Option<f32> {
    Some(match dtype {
        DType::F32 => f32::from_bits(bits as u32),
        DType::Tf32 => tf32_to_f32(bits as u32),
        DType::Bf16 => bf16_to_f32(bits as u16),
        DType::F16 => f16_to_f32(bits as u16),
        DType::F8E5M2 => F8E5M2[bits as u8 as usize],
        DType::F8E4M3 => F8E4M3[bits as u8 as usize],
        DType::F8E4M3FN => F8E4M3FN[bits as u8 as usize],
        DType::F8E8M0FNU => F8E8M0FNU[bits as u8 as usize],
        DType::F8E5M2x4 | DType::F8E4M3FNx4 | DType::F4E2M1FNx4 => return None,
        DType::I8 => bits as i8 as f32,
        DType::I16 => bits as i16 as f32,
        DType::I32 => bits as i32 as f32,
        DType::I64 => bits as i64 as f32,
        DType::U8 => bits as u8 as f32,
        DType::U16 => bits as u16 as f32,
        DType::U32 => bits as u32 as f32,
        DType::U64 => bits as f32,
        DType::Bool => (bits as u8 != 0) as u8 as f32,
    })
}

pub(super) fn from_f32(dtype: DType, value: f32, overflow: Overflow) -> Option<u64> {
    let edge = || Edge::of(dtype, overflow);
    Some(match dtype {
        DType::F32 => value.to_bits() as u64,
        DType::Tf32 => f32_to_tf32(value) as u64,
        DType::Bf16 => f32_to_bf16(value) as u64,
        DType::F16 => f32_to_f16(value) as u64,
        DType::F8E5M2 => f32_to_f8e5m2(value, edge()) as u64,
        DType::F8E4M3 | DType::F8E4M3FN => f32_to_f8e4m3(value, edge()) as u64,
        DType::F8E8M0FNU => f32_to_f8e8m0fnu(value) as u64,
        DType::F8E5M2x4 | DType::F8E4M3FNx4 | DType::F4E2M1FNx4 => return None,
        DType::I8 => round_even(value) as i8 as u8 as u64,
        DType::I16 => round_even(value) as i16 as u16 as u64,
        DType::I32 => round_even(value) as i32 as u32 as u64,
        DType::I64 => round_even(value) as i64 as u64,
        DType::U8 => round_even(value) as u8 as u64,
        DType::U16 => round_even(value) as u16 as u64,
        DType::U32 => round_even(value) as u32 as u64,
        DType::U64 => round_even(value) as u64,
        DType::Bool => (value != 0.0) as u64,
    })
}
