//! Number text: what parses, what prints, and that the two agree.

// Helpers outside of test functions may fail a test, too.
use bir_dialect::bir::num::{DType, NumError, parse, print};

fn text(dtype: DType, bits: u64) -> String {
    let mut out = String::new();
    print(dtype, bits, &mut out);
    out
}

/// Parses and prints again.
fn reprint(dtype: DType, number: &str) -> String {
    text(dtype, parse(dtype, number).unwrap())
}

fn message(dtype: DType, number: &str) -> String {
    parse(dtype, number).unwrap_err().to_string()
}

#[test]
fn f32_numbers_read_back() {
    assert_eq!(parse(DType::F32, "1e-5"), Ok(0x3727_C5AC));
    assert_eq!(reprint(DType::F32, "1e-5"), "1.0e-5");
    assert_eq!(reprint(DType::F32, "1e16"), "1.0e16");
    assert_eq!(parse(DType::F32, "1e-45"), Ok(1));
    assert_eq!(reprint(DType::F32, "1e-45"), "1.0e-45");
    assert_eq!(parse(DType::F32, "-0.0"), Ok(0x8000_0000));
    assert_eq!(reprint(DType::F32, "-0.0"), "-0.0");
    assert_eq!(reprint(DType::F32, "inf"), "inf");
    assert_eq!(reprint(DType::F32, "-inf"), "-inf");
    assert_eq!(reprint(DType::F32, "nan"), "nan");
    assert_eq!(reprint(DType::F32, "0x7F812345"), "0x7F812345");
    assert_eq!(reprint(DType::F32, "-nan"), "0xFFC00000");
    assert_eq!(reprint(DType::F32, "0x3F800000"), "1.0");
    assert_eq!(reprint(DType::F32, "0.1"), "0.1");
    assert_eq!(reprint(DType::F32, "123456.789"), "123456.79");
    assert_eq!(reprint(DType::F32, "0.00012"), "0.00012");
    assert_eq!(reprint(DType::F32, "16777216"), "16777216.0");
}

#[test]
fn a_tenth_is_rounded_once_to_every_float() {
    assert_eq!(parse(DType::Bf16, "0.1"), Ok(0x3DCD));
    assert_eq!(parse(DType::F16, "0.1"), Ok(0x2E66));
    assert_eq!(parse(DType::F8E5M2, "0.1"), Ok(0x2E));
    assert_eq!(parse(DType::F8E4M3, "0.1"), Ok(0x1D));
    assert_eq!(parse(DType::F8E4M3FN, "0.1"), Ok(0x1D));
    for dtype in [
        DType::Tf32,
        DType::Bf16,
        DType::F16,
        DType::F8E5M2,
        DType::F8E4M3,
    ] {
        assert_eq!(reprint(dtype, "0.1"), "0.1", "{dtype}");
    }
}

#[test]
fn finite_text_that_overflows_is_refused() {
    assert_eq!(
        message(DType::F32, "3.4028236e38"),
        "`3.4028236e38` does not fit f32, whose largest finite value is 3.4028235e38"
    );
    assert_eq!(parse(DType::F32, "3.4028235e38"), Ok(0x7F7F_FFFF));
    assert_eq!(
        message(DType::F8E4M3FN, "464.00001"),
        "`464.00001` does not fit f8e4m3fn, whose largest finite value is 448.0"
    );
    assert_eq!(parse(DType::F8E4M3FN, "464"), Ok(0x7E));
    assert!(message(DType::Bf16, "1e99999999999999999999").contains("3.39e38"));
}

#[test]
fn numbers_a_dtype_lacks_are_refused() {
    assert_eq!(
        message(DType::F8E4M3FN, "inf"),
        "`inf` does not fit f8e4m3fn, which has no infinity"
    );
    assert_eq!(
        message(DType::F8E8M0FNU, "0.0"),
        "`0.0` does not fit f8e8m0fnu, which has no zero"
    );
    assert_eq!(
        message(DType::F8E8M0FNU, "-1"),
        "`-1` does not fit f8e8m0fnu, which has no negative numbers"
    );
}

#[test]
fn integers_are_checked() {
    assert_eq!(parse(DType::I8, "-128"), Ok(0x80));
    assert_eq!(parse(DType::U64, "18446744073709551615"), Ok(u64::MAX));
    assert_eq!(
        reprint(DType::I64, "-9223372036854775808"),
        "-9223372036854775808"
    );
    assert_eq!(parse(DType::I16, "-0x10"), Ok(0xFFF0));
    assert_eq!(
        message(DType::I8, "300"),
        "`300` does not fit i8, whose values are -128 to 127"
    );
    assert_eq!(
        message(DType::I32, "1.0"),
        "`1.0` is a float, expected a whole number for i32"
    );
    assert!(matches!(
        parse(DType::U8, "-99999999999999999999999"),
        Err(NumError::IntegerRange { .. })
    ));
    assert_eq!(parse(DType::Bool, "true"), Ok(1));
    assert_eq!(reprint(DType::Bool, "0x37"), "0x37");
    assert!(parse(DType::Bool, "2").is_err());
}

#[test]
fn malformed_text_is_named() {
    for number in [
        "", "-", ".", ".5", "1e", "1e+", "0x", "0xG", "1 ", "infinity", "--1", "1.0.0",
    ] {
        for dtype in DType::ALL {
            assert!(
                matches!(parse(*dtype, number), Err(NumError::Syntax { .. })),
                "{number:?} in {dtype}"
            );
        }
    }
    assert_eq!(
        message(DType::F32, "abc"),
        "`abc` is not a number, expected a decimal, `inf`, `nan` or bits such as `0x7F` for f32"
    );
    assert_eq!(
        message(DType::Bf16, "0x12345"),
        "`0x12345` does not fit bf16, which has 16 bits"
    );
}

#[test]
fn every_pattern_of_16_bits_or_less_reads_back() {
    for dtype in DType::ALL.iter().filter(|d| d.bits() <= 16) {
        for bits in 0..=dtype.mask() {
            let printed = text(*dtype, bits);
            assert_eq!(parse(*dtype, &printed), Ok(bits), "{dtype} {printed}");
        }
    }
}
