//! Conversions whose results are known without a table: double rounding, saturation, NaN, limits.

// Helpers outside of test functions may fail a test, too.
use bir_dialect::bir::num::{
    DType, DTypeClass, FloatFormat, NumError, Overflow, convert, convert_with, element_to_f32,
    from_f32, from_f64, is_nan, load_bits, narrow_from_f32, pack_x4, packed_element_from_f32,
    same_value, store_bits, to_f32, to_f64, unpack_x4, widen_to_f32,
};

/// A deterministic stream of patterns.
fn random(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    })
}

const I64: DType = DType::I64;
const F8: [DType; 3] = [DType::F8E5M2, DType::F8E4M3, DType::F8E4M3FN];

#[test]
fn f64_is_not_rounded_to_f32_on_the_way() {
    // Just above a tie of the target, but exactly on it once rounded to f32.
    assert_eq!(
        from_f64(DType::Bf16, 1.0 + 0.5f64.powi(8) + 0.5f64.powi(40)),
        Some(0x3F81)
    );
    assert_eq!(from_f64(DType::Bf16, 1.0 + 0.5f64.powi(8)), Some(0x3F80));
    assert_eq!(
        from_f64(DType::F8E4M3FN, 1.0 + 0.5f64.powi(4) + 0.5f64.powi(40)),
        Some(0x39)
    );
    assert_eq!(
        from_f64(DType::F8E5M2, 1.0 + 0.5f64.powi(3) + 0.5f64.powi(40)),
        Some(0x3D)
    );
    assert_eq!(
        from_f64(DType::F16, 1.0 + 0.5f64.powi(11) + 0.5f64.powi(50)),
        Some(0x3C01)
    );
    assert_eq!(from_f64(DType::I32, 0.5 + 0.5f64.powi(40)), Some(1));
    assert_eq!(from_f64(DType::F8E8M0FNU, 1.5 - 0.5f64.powi(40)), Some(127));
}

#[test]
fn large_integers_are_rounded_once() {
    let value = (1u64 << 32) + (1 << 24) + 1;
    assert_eq!(convert(I64, DType::Bf16, value), Some(0x4F81));
    assert_eq!(convert(I64, DType::Bf16, value - 1), Some(0x4F80));
    assert_eq!(
        convert(DType::I32, DType::F32, (1 << 24) + 1),
        Some(0x4B80_0000)
    );
    assert_eq!(
        convert(DType::I32, DType::F32, (1 << 24) + 3),
        Some(0x4B80_0002)
    );
    assert_eq!(convert(DType::I32, DType::F16, 70000), Some(0x7C00));
    assert_eq!(
        convert(DType::I32, DType::F8E4M3FN, -70000i32 as u32 as u64),
        Some(0x7F)
    );
    assert_eq!(convert(DType::U64, DType::F32, u64::MAX), Some(0x5F80_0000));
    assert_eq!(
        to_f64(DType::U64, u64::MAX),
        Some(18_446_744_073_709_551_616.0)
    );
    assert_eq!(to_f64(I64, i64::MIN as u64), Some(i64::MIN as f64));
}

/// The float nearest to an integer has no neighbour that is nearer, and wins ties only if even.
#[test]
fn integers_become_the_nearest_float() {
    let floats = [
        DType::F32,
        DType::Tf32,
        DType::Bf16,
        DType::F16,
        DType::F8E5M2,
        DType::F8E4M3FN,
    ];
    // All floats are multiples of 2^-64 where integers reach, so fixed point is exact.
    let fixed = |dtype, bits| {
        let value = to_f64(dtype, bits).unwrap();
        (value.is_finite()).then(|| (value * 2f64.powi(20)) as i128)
    };
    for pattern in random(20000) {
        // Every size of integer.
        let integer = (pattern as i64) >> (pattern % 61);
        for to in floats {
            let format = to.float_format().unwrap();
            let step = 1 << format.padding_bits;
            let found = convert(I64, to, integer as u64).unwrap();
            let Some(value) = fixed(to, found) else {
                continue;
            };
            let exact = i128::from(integer) << 20;
            let error = (value - exact).abs();
            let magnitude = found & !format.sign_bit();
            for neighbour in [magnitude.wrapping_sub(step), magnitude + step] {
                let neighbour = neighbour & to.mask() | found & format.sign_bit();
                let Some(other) = fixed(to, neighbour) else {
                    continue;
                };
                let other_error = (other - exact).abs();
                let even = (found >> format.padding_bits) & 1 == 0;
                assert!(
                    error < other_error || error == other_error && even,
                    "{integer} in {to}"
                );
            }
        }
    }
}

#[test]
fn hardware_integers_agree_with_casts() {
    for bits in random(50000) {
        let int = (bits as i64) >> (bits % 61);
        assert_eq!(to_f32(I64, int as u64), Some(int as f32));
        assert_eq!(to_f32(DType::U64, bits), Some(bits as f32));
        assert_eq!(to_f32(DType::I32, int as u64), Some(int as i32 as f32));
        for from in [I64, DType::U64, DType::I32, DType::U32, DType::I16] {
            let expected = convert(from, DType::F32, int as u64);
            assert_eq!(
                to_f32(from, int as u64).map(|v| u64::from(v.to_bits())),
                expected
            );
        }
        assert_eq!(convert(I64, DType::I32, int as u64), {
            let saturated = int.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            Some(u64::from(saturated as u32))
        });
    }
}

#[test]
fn floats_to_integers_round_to_even_and_saturate() {
    let to = |dtype, value: f32| from_f32(dtype, value).unwrap();
    assert_eq!(to(DType::I32, 0.5), 0);
    assert_eq!(to(DType::I32, 1.5), 2);
    assert_eq!(to(DType::I32, 2.5), 2);
    assert_eq!(to(DType::I32, -2.5), -2i32 as u32 as u64);
    assert_eq!(to(DType::I32, 8_388_607.5), 8_388_608);
    assert_eq!(to(DType::I32, 3e9), i32::MAX as u64);
    assert_eq!(to(DType::I32, f32::NEG_INFINITY), i32::MIN as u32 as u64);
    assert_eq!(to(DType::I32, f32::NAN), 0);
    assert_eq!(to(DType::I8, 127.5), 127);
    assert_eq!(to(DType::I8, -128.5), 0x80);
    assert_eq!(to(DType::U8, -0.5), 0);
    assert_eq!(to(DType::U8, -300.0), 0);
    assert_eq!(to(DType::U8, 254.5), 254);
    assert_eq!(to(DType::U64, 2e30), u64::MAX);
    assert_eq!(to(I64, -2e30), i64::MIN as u64);
    assert_eq!(to(DType::Bool, f32::NAN), 1);
    assert_eq!(to(DType::Bool, -0.0), 0);
    assert_eq!(to(DType::Bool, 1e-45), 1);
}

#[test]
fn integers_narrow_by_saturating() {
    assert_eq!(convert(DType::I16, DType::I8, 300), Some(127));
    assert_eq!(convert(DType::I16, DType::U8, -1i16 as u16 as u64), Some(0));
    assert_eq!(convert(DType::U64, I64, u64::MAX), Some(i64::MAX as u64));
    assert_eq!(convert(DType::I8, I64, 0x80), Some(-128i64 as u64));
    assert_eq!(convert(DType::I8, DType::U32, 0x80), Some(0));
    assert_eq!(convert(DType::I8, DType::Bool, 0x80), Some(1));
    assert_eq!(convert(DType::Bool, DType::F32, 0x37), Some(0x3F80_0000));
    assert_eq!(convert(DType::Bool, DType::Bool, 0x37), Some(0x37));
}

#[test]
fn overflow_is_infinity_or_nan_or_the_largest_value() {
    let with = |to, value: f32, overflow| {
        convert_with(DType::F32, to, value.to_bits().into(), overflow).unwrap()
    };
    assert_eq!(with(DType::F16, 65520.0, Overflow::Default), 0x7C00);
    assert_eq!(with(DType::F16, 65519.0, Overflow::Default), 0x7BFF);
    assert_eq!(with(DType::F16, 1e9, Overflow::Saturate), 0x7C00);
    assert_eq!(with(DType::Bf16, f32::MIN, Overflow::Saturate), 0xFF80);
    assert_eq!(with(DType::F8E4M3, 250.0, Overflow::Default), 0x78);
    assert_eq!(with(DType::F8E4M3, 247.0, Overflow::Default), 0x77);
    assert_eq!(with(DType::F8E4M3FN, 465.0, Overflow::Default), 0x7F);
    assert_eq!(
        with(DType::F8E4M3FN, f32::NEG_INFINITY, Overflow::Default),
        0x7F
    );
    for to in F8 {
        let max = to.float_format().unwrap().max_finite();
        for value in [1e9, f32::INFINITY] {
            assert_eq!(with(to, value, Overflow::Saturate), max);
            assert_eq!(with(to, -value, Overflow::Saturate), max | 0x80);
        }
        assert!(is_nan(to, with(to, f32::NAN, Overflow::Saturate)));
    }
    assert_eq!(
        with(DType::F8E8M0FNU, f32::INFINITY, Overflow::Saturate),
        0xFF
    );
}

#[test]
fn largest_values_are_those_of_the_format_tables() {
    let max = |dtype: DType| to_f64(dtype, dtype.float_format().unwrap().max_finite()).unwrap();
    assert_eq!(max(DType::F32), f64::from(f32::MAX));
    assert_eq!(max(DType::Bf16), 3.3895313892515355e38);
    assert_eq!(max(DType::F16), 65504.0);
    assert_eq!(F8.map(max), [57344.0, 240.0, 448.0]);
    assert_eq!(max(DType::F8E8M0FNU), 2f64.powi(127));
    assert_eq!(max(DType::Tf32), 2f64.powi(128) - 2f64.powi(117));
    assert_eq!(FloatFormat::finite(2, 1).max_finite(), 7);
}

#[test]
fn nan_becomes_the_one_quiet_nan() {
    for (to, expected) in [
        (DType::Tf32, 0x7FC0_0000),
        (DType::Bf16, 0x7FC0),
        (DType::F16, 0x7E00),
        (DType::F8E5M2, 0x7E),
        (DType::F8E4M3, 0x7C),
        (DType::F8E4M3FN, 0x7F),
        (DType::F8E8M0FNU, 0xFF),
    ] {
        for bits in [0x7F80_0001, 0xFFC0_0000, 0xFFFF_FFFF] {
            assert_eq!(convert(DType::F32, to, bits), Some(expected));
            assert_eq!(from_f32(to, f32::from_bits(bits as u32)), Some(expected));
        }
        assert_eq!(convert(to, DType::F32, expected), Some(0x7FC0_0000));
    }
    assert_eq!(
        convert(DType::F32, DType::F32, 0xFF81_2345),
        Some(0xFF81_2345)
    );
    assert_eq!(
        from_f32(DType::F32, f32::from_bits(0xFF81_2345)),
        Some(0xFF81_2345)
    );
}

#[test]
fn tf32_ignores_its_padding() {
    assert_eq!(
        convert(DType::Tf32, DType::F32, 0x3F80_1FFF),
        Some(0x3F80_0000)
    );
    assert_eq!(to_f32(DType::Tf32, 0x3F80_1FFF), Some(1.0));
    assert_eq!(to_f32(DType::Tf32, 0x7F80_0001), Some(f32::INFINITY));
    assert_eq!(
        convert(DType::F32, DType::Tf32, 0x3F80_1000),
        Some(0x3F80_0000)
    );
    assert_eq!(
        convert(DType::F32, DType::Tf32, 0x3F80_1001),
        Some(0x3F80_2000)
    );
    for bits in random(50000) {
        let expected = convert(DType::Tf32, DType::F32, bits).unwrap();
        assert_eq!(
            to_f32(DType::Tf32, bits).map(|v| u64::from(v.to_bits())),
            Some(expected)
        );
    }
}

#[test]
fn same_value_compares_bits_but_not_nans() {
    assert!(same_value(DType::F32, 0x7FC0_0000, 0xFF80_0001));
    assert!(!same_value(DType::F32, 0, 0x8000_0000));
    assert!(!same_value(DType::I32, 0x7FC0_0000, 0x7FC0_0001));
    assert!(same_value(DType::I8, 0x100, 0));
    assert!(same_value(DType::F8E4M3FNx4, 0x7F00_0000, 0xFF00_0000));
    assert!(!same_value(DType::F8E4M3FNx4, 0x7F00_0000, 0xFF00_0001));
    assert!(!same_value(DType::F4E2M1FNx4, 0x7000, 0xF000));
}

#[test]
fn packed_dtypes_have_elements_and_no_value() {
    for dtype in DType::ALL
        .iter()
        .filter(|d| d.class() == DTypeClass::Packed)
    {
        assert_eq!(convert(*dtype, DType::F32, 0), None);
        assert_eq!(convert(DType::F32, *dtype, 0), None);
        assert_eq!(convert(*dtype, *dtype, 0x1234), Some(0x1234));
        assert_eq!(to_f32(*dtype, 0), None);
        assert_eq!(from_f32(*dtype, 0.0), None);
        assert_eq!(to_f64(*dtype, 0), None);
        assert_eq!(
            widen_to_f32(*dtype, &vec![0; dtype.size_bytes() as usize], &mut [0.0]),
            Err(NumError::Packed { dtype: *dtype })
        );
        for bits in random(100) {
            let elements = unpack_x4(*dtype, bits).unwrap();
            assert_eq!(pack_x4(*dtype, elements), Some(bits & dtype.mask()));
        }
    }
    assert_eq!(unpack_x4(DType::F4E2M1FNx4, 0x4321), Some([1, 2, 3, 4]));
    assert_eq!(unpack_x4(DType::F8E5M2x4, 0x0403_0201), Some([1, 2, 3, 4]));
    assert_eq!(unpack_x4(DType::F32, 0), None);
    let f4 = DType::F4E2M1FNx4;
    let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for (bits, value) in (0..).zip(values) {
        assert_eq!(element_to_f32(f4, bits), Some(value));
        assert_eq!(element_to_f32(f4, bits | 8), Some(-value));
    }
    assert_eq!(
        packed_element_from_f32(f4, -1e9, Overflow::Default),
        Some(15)
    );
    assert_eq!(
        packed_element_from_f32(DType::F8E5M2x4, 0.1, Overflow::Default),
        Some(0x2E)
    );
}

#[test]
fn buffers_of_a_wrong_length_are_refused() {
    let error = widen_to_f32(DType::Bf16, &[0; 5], &mut [0.0; 2]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "5 bytes hold no 2 elements of bf16, expected 4 bytes"
    );
    assert!(narrow_from_f32(DType::F32, &[0.0], &mut []).is_err());
    assert_eq!(load_bits(DType::I32, &[1, 2, 3]), None);
    let mut bytes = [0; 3];
    assert_eq!(store_bits(DType::F16, 0x1234, &mut bytes), Some(()));
    assert_eq!(bytes, [0x34, 0x12, 0]);
    assert_eq!(load_bits(DType::U16, &bytes), Some(0x1234));
}

#[test]
fn bits_above_the_width_do_not_count() {
    for dtype in DType::ALL.iter().filter(|d| d.bits() < 64) {
        for bits in random(200) {
            let low = bits & dtype.mask();
            for to in DType::ALL {
                assert_eq!(convert(*dtype, *to, bits), convert(*dtype, *to, low));
            }
            let bits_of = |bits| to_f32(*dtype, bits).map(f32::to_bits);
            assert_eq!(bits_of(bits), bits_of(low));
        }
    }
}
