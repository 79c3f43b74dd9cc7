//! Decimal text is rounded once: halfway cases of any length, checked by construction and against
//! the standard library.

// Helpers outside of test functions may fail a test, too.
use bir_dialect::bir::num::{DType, convert, is_nan, parse, print, same_value, to_f64};

const NARROW: [DType; 6] = [
    DType::Bf16,
    DType::F16,
    DType::F8E5M2,
    DType::F8E4M3,
    DType::F8E4M3FN,
    DType::Tf32,
];

fn text(dtype: DType, bits: u64) -> String {
    let mut out = String::new();
    print(dtype, bits, &mut out);
    out
}

fn random(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    })
}

/// A decimal a little above an exact one with a fraction.
fn above(exact: &str, zeros: usize) -> String {
    format!("{exact}{:0<zeros$}1", "")
}

/// A decimal a little below an exact one with a fraction that does not end in 0.
fn below(exact: &str, nines: usize) -> String {
    let (head, last) = exact.split_at(exact.len() - 1);
    let last = last.parse::<u8>().unwrap() - 1;
    format!("{head}{last}{:9<nines$}", "")
}

/// All digits of a value, ending in a digit other than 0 after the point, and an exponent of 0.
fn digits(value: f64) -> String {
    let text = format!("{value:.200}");
    let text = text.trim_end_matches('0');
    match text.strip_suffix('.') {
        // A whole number: shift the point into it.
        Some(whole) => {
            let kept = whole.trim_end_matches('0');
            format!("0.{kept}e{}", whole.len())
        }
        None => format!("{text}e0"),
    }
}

#[test]
fn ties_between_all_neighbours_go_to_even_and_nothing_else_does() {
    for dtype in NARROW {
        let format = dtype.float_format().unwrap();
        let step = 1u64 << format.padding_bits;
        // All but tf32, of which a sample is enough.
        let stride = if dtype == DType::Tf32 { 101 } else { 1 };
        let mut bits = 0;
        while bits < format.max_finite() {
            let next = bits + step;
            let low = to_f64(dtype, bits).unwrap();
            let high = to_f64(dtype, next).unwrap();
            let middle = digits((low + high) / 2.0);
            let (mantissa, exponent) = middle.split_once('e').unwrap();
            let even = if (bits >> format.padding_bits) & 1 == 0 {
                bits
            } else {
                next
            };
            let length = if bits % 512 == 0 { 2000 } else { 40 };
            for (mantissa, expected) in [
                (mantissa.to_owned(), even),
                (format!("{mantissa}000"), even),
                (above(mantissa, length), next),
                (below(mantissa, length), bits),
            ] {
                let number = format!("{mantissa}e{exponent}");
                assert_eq!(parse(dtype, &number), Ok(expected), "{number} in {dtype}");
                let number = format!("-{number}");
                let expected = expected | format.sign_bit();
                assert_eq!(parse(dtype, &number), Ok(expected), "{number} in {dtype}");
            }
            bits += step * stride;
        }
    }
}

#[test]
fn the_last_tie_before_overflow_decides() {
    for dtype in NARROW {
        let max = dtype.float_format().unwrap().max_finite();
        let step = 1 << dtype.float_format().unwrap().padding_bits;
        let value = |bits| to_f64(dtype, bits).unwrap();
        let limit = value(max) + (value(max) - value(max - step)) / 2.0;
        let limit = digits(limit);
        let (mantissa, exponent) = limit.split_once('e').unwrap();
        let under = format!("{}e{exponent}", below(mantissa, 300));
        let over = format!("{}e{exponent}", above(mantissa, 300));
        assert_eq!(parse(dtype, &under), Ok(max), "{dtype}");
        assert!(parse(dtype, &over).is_err(), "{dtype}");
        // On the tie the even one wins: only e4m3fn ends on an even mantissa.
        assert_eq!(
            parse(dtype, &limit).is_ok(),
            dtype == DType::F8E4M3FN,
            "{dtype}"
        );
    }
}

#[test]
fn f32_text_agrees_with_the_standard_library() {
    for pattern in random(100_000) {
        let value = f32::from_bits(pattern as u32);
        if !value.is_finite() {
            continue;
        }
        // Near the shortest text, and near a tie.
        let tie = f64::from(value) * (1.0 + 0.5f64.powi(24));
        for number in [
            format!("{value:e}"),
            format!("{:.6e}", value),
            format!("{:.8e}", tie),
            format!("{:.16e}", tie),
            format!("{:.60e}", tie),
        ] {
            let expected = number.parse::<f32>().unwrap();
            if expected.is_finite() {
                let expected = u64::from(expected.to_bits());
                assert_eq!(parse(DType::F32, &number), Ok(expected), "{number}");
            }
        }
    }
}

#[test]
fn tiny_numbers_round_to_zero_or_the_smallest_scale() {
    for dtype in NARROW {
        let sign = dtype.float_format().unwrap().sign_bit();
        assert_eq!(parse(dtype, "1e-400"), Ok(0));
        assert_eq!(parse(dtype, "-1e-99999999999999999999"), Ok(sign));
        assert_eq!(parse(dtype, "0e99999999999999999999"), Ok(0));
    }
    assert_eq!(parse(DType::F32, "7.006492321624085e-46"), Ok(0));
    assert_eq!(parse(DType::F32, "7.0064923216240854e-46"), Ok(1));
    assert_eq!(parse(DType::F8E8M0FNU, "1e-400"), Ok(0));
    assert_eq!(parse(DType::F8E8M0FNU, "1.5"), Ok(128));
    assert_eq!(
        parse(DType::F8E8M0FNU, "1.49999999999999999999999999"),
        Ok(127)
    );
}

#[test]
fn a_number_of_a_megabyte_is_read_in_full() {
    let zeros = "0".repeat(1 << 20);
    // The tie between 1 and the next bf16.
    assert_eq!(
        parse(DType::Bf16, &format!("1.00390625{zeros}")),
        Ok(0x3F80)
    );
    assert_eq!(
        parse(DType::Bf16, &format!("1.00390625{zeros}1")),
        Ok(0x3F81)
    );
    assert_eq!(
        parse(DType::Bf16, &format!("0.{zeros}1e{}", zeros.len() + 1)),
        Ok(0x3F80)
    );
    assert_eq!(
        parse(DType::F32, &format!("1{zeros}e-{}", zeros.len())),
        Ok(0x3F80_0000)
    );
    let error = parse(DType::F32, &format!("1{zeros}"))
        .unwrap_err()
        .to_string();
    assert!(error.len() < 200, "{error}");
}

#[test]
fn wide_patterns_read_back() {
    let wide = DType::ALL.iter().copied().filter(|d| d.bits() > 16);
    for dtype in wide {
        for pattern in random(50_000) {
            let bits = pattern & dtype.mask();
            let number = text(dtype, bits);
            assert_eq!(parse(dtype, &number), Ok(bits), "{number} in {dtype}");
        }
    }
    for pattern in random(50_000) {
        let bits = pattern & 0xFFFF_E000;
        let number = text(DType::Tf32, bits);
        assert_eq!(parse(DType::Tf32, &number), Ok(bits), "{number}");
        assert!(number.len() <= 19, "{number}");
    }
}

/// Significant digits of a decimal.
fn significant(number: &str) -> usize {
    let mantissa = number.trim_start_matches('-').split('e').next().unwrap();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

/// Of 8-bit floats there are few enough to try every shorter decimal.
#[test]
fn no_shorter_decimal_stands_for_an_8_bit_float() {
    for dtype in [DType::F8E5M2, DType::F8E4M3, DType::F8E4M3FN] {
        let mut least = vec![usize::MAX; 256];
        for exponent in -9..6 {
            for digits in 0..1000 {
                let number = format!("{digits}e{exponent}");
                if let Ok(bits) = parse(dtype, &number) {
                    let length = significant(&number);
                    least[bits as usize] = least[bits as usize].min(length);
                }
            }
        }
        for bits in 0..0x80 {
            let number = text(dtype, bits);
            let value = to_f64(dtype, bits).unwrap();
            // Whole numbers print in full.
            if value.is_finite() && value.fract() != 0.0 {
                assert_eq!(
                    significant(&number),
                    least[bits as usize],
                    "{number} in {dtype}"
                );
            }
        }
    }
}

/// The text of a float in its own dtype is no longer than the text of the same value in f32.
#[test]
fn narrow_floats_print_no_longer_than_as_f32() {
    for dtype in [DType::Bf16, DType::F16] {
        for bits in 0..0x8000 {
            if is_nan(dtype, bits) {
                continue;
            }
            let wide = text(DType::F32, convert(dtype, DType::F32, bits).unwrap());
            let narrow = text(dtype, bits);
            assert!(
                significant(&narrow) <= significant(&wide),
                "{narrow}, {wide}"
            );
            // What f32 prints is good enough for the narrow dtype too.
            assert!(
                same_value(dtype, parse(dtype, &wide).unwrap(), bits),
                "{wide}"
            );
        }
    }
}

#[test]
fn shortest_texts_by_example() {
    for (dtype, number) in [
        (DType::Bf16, "0.1"),
        (DType::Bf16, "3.14"),
        (DType::Bf16, "3.39e38"),
        (DType::Bf16, "1.0e-5"),
        (DType::Bf16, "9.0e-41"),
        (DType::F16, "65504.0"),
        (DType::F16, "6.0e-8"),
        (DType::F16, "3.14"),
        (DType::F16, "0.3333"),
        (DType::F8E5M2, "0.1"),
        (DType::F8E4M3FN, "448.0"),
        (DType::F8E4M3, "0.002"),
        (DType::F8E8M0FNU, "0.25"),
        (DType::F8E8M0FNU, "1024.0"),
        (DType::Tf32, "3.14"),
        (DType::F32, "9007199254740992.0"),
        (DType::F32, "3.1415927"),
    ] {
        assert_eq!(
            text(dtype, parse(dtype, number).unwrap()),
            number,
            "{dtype}"
        );
    }
}
