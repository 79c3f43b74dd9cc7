//! MX data, their quantisation, and the sparse product, against loops over elements.

use crate::common::*;
use bir_dialect::bir::num::DType;
use bir_sim::random::Random;
use bir_sim::{Lanes, MxScale, Options, Tensor, random};

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        matmult_mx_scales_groups_of_eight_partitions,
        &["matmult_mx"],
    ),
    (
        quantize_mx_shares_a_scale_that_never_saturates,
        &["quantize_mx"],
    ),
    (
        matmult_sparse_chooses_rows_by_their_tags,
        &["matmult_sparse"],
    ),
];

/// A small float by its fields.
fn small(bits: u8, exponent_bits: u32, mantissa_bits: u32, e5m2: bool, e4m3fn: bool) -> f64 {
    let sign = if bits >> (exponent_bits + mantissa_bits) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let exponent = u32::from(bits) >> mantissa_bits & ((1 << exponent_bits) - 1);
    let mantissa =
        f64::from(u32::from(bits) & ((1 << mantissa_bits) - 1)) / f64::from(1u32 << mantissa_bits);
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let top = (1 << exponent_bits) - 1;
    if e5m2 && exponent == top {
        return if mantissa == 0.0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if e4m3fn && exponent == top && mantissa == 0.875 {
        return f64::NAN;
    }
    if exponent == 0 {
        return sign * mantissa * 2f64.powi(1 - bias);
    }
    sign * (1.0 + mantissa) * 2f64.powi(exponent as i32 - bias)
}

/// Element `j` of a packed one.
fn element(dtype: DType, bits: u64, j: usize) -> f64 {
    match dtype {
        DType::F8E5M2x4 => small((bits >> (8 * j)) as u8, 5, 2, true, false),
        DType::F8E4M3FNx4 => small((bits >> (8 * j)) as u8, 4, 3, false, true),
        _ => small((bits >> (4 * j)) as u8 & 15, 2, 1, false, false),
    }
}

fn scale(byte: u64) -> f64 {
    if byte == 255 {
        f64::NAN
    } else {
        2f64.powi(byte as i32 - 127)
    }
}

fn run_on(target: &str, body: &str, given: &[(&str, Tensor)]) -> Tensor {
    let once = |lanes| {
        let options = Options {
            lanes,
            ..Options::default()
        };
        simulate(options, target, body, given).unwrap_or_else(|f| panic!("{body}\n{f}"))
    };
    let mut found = once(Lanes::best());
    assert_eq!(found, once(Lanes::baseline()));
    found.remove("y").expect("an output `y`")
}

/// A tile seen whole, backwards, or every second element of it: its width, and the access.
fn seen(name: &str, rows: u64, columns: u64, form: u64) -> (u64, String) {
    let last = columns - 1;
    match form % 3 {
        0 => (columns, format!("%{name}")),
        1 => (
            columns,
            format!("%{name}[p 0:{rows}, off {last}, -1 x {columns}]"),
        ),
        _ => (
            2 * columns + 1,
            format!("%{name}[p 0:{rows}, off 1, 2 x {columns}]"),
        ),
    }
}

fn mx_tile(random: &mut Random, dtype: DType, dims: [u64; 2]) -> Tensor {
    let count = dims[0] * dims[1];
    bits(
        dtype,
        &dims,
        (0..count).map(|_| {
            // No infinities and few NaN, so that sums say something.
            let word = random.next_u64() & dtype.mask();
            if random.below(500) == 0 {
                word
            } else {
                word & 0x3f3f_3f3f_bbbb_bbbb
            }
        }),
    )
}

#[test]
fn matmult_mx_scales_groups_of_eight_partitions() {
    let mut random = Random::new(1, "mx");
    for (a_dtype, b_dtype) in [
        (DType::F8E4M3FNx4, DType::F8E5M2x4),
        (DType::F4E2M1FNx4, DType::F4E2M1FNx4),
        (DType::F8E5M2x4, DType::F8E4M3FNx4),
    ] {
        for (k, off) in [(32u64, 0u64), (64, 4), (128, 12), (96, 8)] {
            let (m, n) = (6u64, 5u64);
            let a = mx_tile(&mut random, a_dtype, [k, m]);
            let b = mx_tile(&mut random, b_dtype, [k, n]);
            let mut scales = |columns: u64| {
                bits(
                    DType::U8,
                    &[128, columns],
                    (0..128 * columns).map(|_| 115 + random.below(24)),
                )
            };
            let (sa, sb) = (scales(m), scales(n));
            let (aw, at) = seen("at", k, m, off / 4);
            let (bw, bt) = seen("bt", k, n, off / 4 + 1);
            let body = format!(
                "%a = alloc dram<{k}x{m}x{a_dtype}> {{kind = input}}\n%b = alloc dram<{k}x{n}x{b_dtype}> {{kind = input}}\n\
                 %sa = alloc dram<128x{m}xu8> {{kind = input}}\n%sb = alloc dram<128x{n}xu8> {{kind = input}}\n\
                 %y = alloc dram<{m}x{n}xf32> {{kind = output}}\n\
                 %at = alloc sbuf<{k}x{aw}x{a_dtype}>\n%bt = alloc sbuf<{k}x{bw}x{b_dtype}>\n\
                 %sat = alloc sbuf<128x{m}xu8>\n%sbt = alloc sbuf<128x{n}xf8e8m0fnu>\n\
                 %p = alloc psum<{m}x{n}xf32>\n%yt = alloc sbuf<{m}x{n}xf32>\n\
                 load {at} <- %a\nload {bt} <- %b\nload %sat <- %sa\nload %sbt as u8[:, :] <- %sb\n\
                 matmult_mx %p <- stationary {at}, stationary_scale %sat[{off}:{end}, :], moving {bt}, moving_scale %sbt\n\
                 matmult_mx %p <- stationary {at}, stationary_scale %sat[{off}:{end}, :], moving {bt}, moving_scale %sbt {{accumulate}}\n\
                 tensor_copy %yt <- %p\nsave %y <- %yt",
                end = off + (k - 1) / 32 * 32 + 4
            );
            let y = run_on(
                "trn3",
                &body,
                &[
                    ("a", a.clone()),
                    ("b", b.clone()),
                    ("sa", sa.clone()),
                    ("sb", sb.clone()),
                ],
            );
            for i in 0..m as usize {
                for j in 0..n as usize {
                    let mut acc: Option<f32> = None;
                    for p in 0..k as usize {
                        let row = 32 * (p / 32) + p % 32 / 8;
                        for e in 0..4 {
                            let s = scale(sa.bits((row + off as usize) * m as usize + i));
                            let v = scale(sb.bits(row * n as usize + j));
                            let x = element(a_dtype, a.bits(p * m as usize + i), e) * s;
                            let w = element(b_dtype, b.bits(p * n as usize + j), e) * v;
                            acc = Some(match acc {
                                None => (x * w) as f32,
                                Some(acc) => (x as f32).mul_add(w as f32, acc),
                            });
                        }
                    }
                    let sum = acc.expect("a sum");
                    let found = values(&y)[i * n as usize + j];
                    assert!(
                        same(found, sum + sum),
                        "{k} {off}: {found} is not twice {sum}"
                    );
                }
            }
        }
    }
}

#[test]
fn scales_of_nan_and_rows_that_hold_none() {
    let body = |scale: u64, rows: &str| {
        format!(
            "%y = alloc dram<2x1xf32> {{kind = output}}\n%a = alloc sbuf<32x2xf8e5m2_x4>\n%s = alloc sbuf<32x2xu8>\n\
             %p = alloc psum<2x1xf32>\n%yt = alloc sbuf<2x1xf32>\nmemset %a <- 0x00000000\nmemset %s[{rows}, :] <- {scale}\n\
             matmult_mx %p <- stationary %a, stationary_scale %s, moving %a[:, 0:1], moving_scale %s[:, 0:1]\n\
             tensor_copy %yt <- %p\nsave %y <- %yt"
        )
    };
    let run = |body: &str| {
        bir_sim::run(&unverified(body), &Default::default()).map_err(|f| f.to_string())
    };
    let nan = run(&body(255, "0:4")).expect("runs");
    assert!(values(&nan.outputs[0].1).iter().all(|x| x.is_nan()));
    let zero = run(&body(127, "0:4")).expect("only four rows are read");
    assert_eq!(values(&zero.outputs[0].1), [0.0, 0.0]);
    assert_eq!(
        run(&body(127, "0:3")).expect_err("row 3 is undefined"),
        "`matmult_mx` reads `%s`, partitions 3 to 3, elements 0 to 1 of 2, which nothing has written"
    );
}

/// The nearest value of the format, ties to the even one, by trying all of them.
fn nearest(value: f64, e5m2: bool) -> u8 {
    let decode = |bits: u8| {
        if e5m2 {
            small(bits, 5, 2, true, false)
        } else {
            small(bits, 4, 3, false, true)
        }
    };
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let mut best = 0u8;
    for bits in 0..0x80u8 {
        let (here, there) = (decode(bits), decode(best));
        if !here.is_finite() {
            continue;
        }
        let (d, e) = ((here - value.abs()).abs(), (there - value.abs()).abs());
        if d < e || d == e && bits % 2 == 0 {
            best = bits;
        }
    }
    best | sign
}

#[test]
fn quantize_mx_shares_a_scale_that_never_saturates() {
    quantize_mx(MxScale::Isa, 1);
}

#[test]
fn quantize_mx_clips_by_the_other_rule() {
    quantize_mx(MxScale::Ocp, 0);
}

/// Groups scaled so that their largest has an exponent `room` below the format's.
fn quantize_mx(mx_scale: MxScale, room: i32) {
    let options = Options {
        mx_scale,
        ..Options::default()
    };
    let mut random = Random::new(5, "quantize");
    for source in [DType::Bf16, DType::F16] {
        for packed in [DType::F8E4M3FNx4, DType::F8E5M2x4] {
            for (p, off) in [(32u64, 8u64), (64, 0), (128, 4)] {
                let f = 3u64;
                let mut x = random::tensor(random.next_u64(), "x", source, &[p, 4 * f]);
                if off == 8 {
                    // Groups of zeros, of subnormals, of one infinity, of one NaN.
                    let infinity = if source == DType::Bf16 {
                        0x7f80
                    } else {
                        0x7c00
                    };
                    x = bits(
                        source,
                        &x.dims,
                        (0..x.len()).map(|at| {
                            let (row, column) = (at / 12, at % 12);
                            match row / 8 {
                                0 => 0x8000 * (at as u64 % 2),
                                1 => at as u64 % 5,
                                2 if at == 17 * 12 + 5 => infinity,
                                3 if (row, column) == (25, 3) => infinity + 1,
                                _ => x.bits(at),
                            }
                        }),
                    );
                }
                let end = off + (p - 1) / 32 * 32 + 4;
                let (tw, t) = seen("t", p, 4 * f, off / 4);
                let (qw, q) = seen("q", p, f, off / 4 + 1);
                let body = format!(
                    "%x = alloc dram<{p}x{w}x{source}> {{kind = input}}\n%y = alloc dram<{p}x{f}x{packed}> {{kind = output}}\n\
                     %z = alloc dram<128x{f}xu8> {{kind = output}}\n%t = alloc sbuf<{p}x{tw}x{source}>\n\
                     %q = alloc sbuf<{p}x{qw}x{packed}>\n%s = alloc sbuf<128x{f}xu8>\nmemset %s <- 99\nload {t} <- %x\n\
                     quantize_mx {q}, %s[{off}:{end}, :] <- {t}\nsave %y <- {q}\nsave %z <- %s",
                    w = 4 * f
                );
                let mut found = simulate(options, "trn3", &body, &[("x", x.clone())])
                    .unwrap_or_else(|f| panic!("{body}\n{f}"));
                let (y, z) = (found.remove("y").expect("y"), found.remove("z").expect("z"));
                let v = values(&x);
                let e_max = if packed == DType::F8E5M2x4 { 15 } else { 8 };
                let mut scales = vec![99u64; 128 * f as usize];
                for group in 0..p as usize / 8 {
                    for column in 0..f as usize {
                        let members: Vec<(usize, usize)> = (0..8)
                            .flat_map(|r| (0..4).map(move |j| (group * 8 + r, j)))
                            .collect();
                        let at = |(row, j): (usize, usize)| f64::from(v[row * 12 + column * 4 + j]);
                        let finite = members.iter().all(|&m| at(m).is_finite());
                        let largest = members.iter().map(|&m| at(m).abs()).fold(0.0, f64::max);
                        let byte = if !finite {
                            255
                        } else if largest == 0.0 {
                            0
                        } else {
                            let mut log = -200;
                            while 2f64.powi(log + 1) <= largest {
                                log += 1;
                            }
                            (log - (e_max - room) + 127).clamp(0, 254) as u64
                        };
                        let row = off as usize + group / 4 * 32 + group % 4;
                        scales[row * f as usize + column] = byte;
                        for m in members {
                            let stored = y.bits(m.0 * f as usize + column) >> (8 * m.1) & 0xff;
                            if byte == 255 {
                                assert!(element(packed, stored, 0).is_nan());
                                continue;
                            }
                            let exact = at(m) / 2f64.powi(byte as i32 - 127);
                            assert!(exact.abs() < 2f64.powi(e_max + 1 - room));
                            let most = if e_max == 15 { 57344.0 } else { 448.0 };
                            let clipped = exact.clamp(-most, most);
                            let want = nearest(clipped, packed == DType::F8E5M2x4);
                            assert_eq!(stored, u64::from(want), "{} / 2^{byte}-127", at(m));
                        }
                    }
                }
                let found: Vec<u64> = (0..z.len()).map(|at| z.bits(at)).collect();
                assert_eq!(found, scales, "{source} {packed} {p}");
            }
        }
    }
}

#[test]
fn matmult_sparse_chooses_rows_by_their_tags() {
    let mut random = Random::new(9, "sparse");
    for dtype in [DType::Bf16, DType::F32, DType::F8E5M2] {
        for ratio in 1..=4u64 {
            for (k, m, n) in [(8u64, 6u64, 5u64), (128, 4, 3), (4, 1, 7)] {
                let a = random::tensor(random.next_u64(), "a", dtype, &[k, m]);
                let b = random::tensor(random.next_u64(), "b", dtype, &[k, ratio * n]);
                let words = m.div_ceil(4);
                let tags = bits(
                    DType::U16,
                    &[k, words],
                    (0..k * words).map(|_| {
                        (0..4).fold(0, |word, i| word | random.below(4 * ratio) << (4 * i))
                    }),
                );
                let bn = ratio * n;
                let (aw, at) = seen("at", k, m, k + ratio);
                let (bw, bt) = seen("bt", k, bn, ratio);
                let (gw, gt) = seen("gt", k, words, m + ratio);
                let body = format!(
                    "%a = alloc dram<{k}x{m}x{dtype}> {{kind = input}}\n%b = alloc dram<{k}x{bn}x{dtype}> {{kind = input}}\n\
                     %g = alloc dram<{k}x{words}xu16> {{kind = input}}\n%y = alloc dram<{m}x{n}xf32> {{kind = output}}\n\
                     %at = alloc sbuf<{k}x{aw}x{dtype}>\n%bt = alloc sbuf<{k}x{bw}x{dtype}>\n%gt = alloc sbuf<{k}x{gw}xu16>\n\
                     %p = alloc psum<{m}x{n}xf32>\n%yt = alloc sbuf<{m}x{n}xf32>\nload {at} <- %a\nload {bt} <- %b\nload {gt} <- %g\n\
                     loop %i = 0 to 2 {{\nmatmult_sparse %p <- stationary {at}, moving {bt}, tags {gt} {{ratio = {ratio}, accumulate = unless_first(%i)}}\n}}\n\
                     tensor_copy %yt <- %p\nsave %y <- %yt"
                );
                let y = run_on(
                    "trn2",
                    &body,
                    &[("a", a.clone()), ("b", b.clone()), ("g", tags.clone())],
                );
                let (va, vb) = (values(&a), values(&b));
                for i in 0..m {
                    for j in 0..n {
                        let mut acc = 0.0f32;
                        for p in 0..k {
                            let word = tags.bits((p * words + i / 4) as usize);
                            let tag = word >> (4 * (i % 4)) & 15;
                            let (row, part) = (p / 4 * 4 + tag / ratio, tag % ratio);
                            let x = va[(p * m + i) as usize];
                            let w = vb[(row * ratio * n + part * n + j) as usize];
                            acc = if p == 0 { x * w } else { x.mul_add(w, acc) };
                        }
                        let found = values(&y)[(i * n + j) as usize];
                        assert!(same(found, acc + acc), "{dtype} 4:{} [{i}, {j}]", 4 * ratio);
                    }
                }
            }
        }
    }
}

#[test]
fn double_row_holds_two_rows_of_k_in_each_partition() {
    let mut random = Random::new(11, "rows");
    for (a_dtype, b_dtype) in [
        (DType::F8E4M3, DType::F8E5M2),
        (DType::F8E5M2, DType::F8E5M2),
    ] {
        for (k, m, n) in [(16u64, 5u64, 6u64), (128, 3, 2), (1, 1, 1)] {
            let a = random::tensor(random.next_u64(), "a", a_dtype, &[k, 2, m]);
            let b = random::tensor(random.next_u64(), "b", b_dtype, &[k, 2, n]);
            let body = format!(
                "%a = alloc dram<{k}x2x{m}x{a_dtype}> {{kind = input}}\n%b = alloc dram<{k}x2x{n}x{b_dtype}> {{kind = input}}\n\
                 %y = alloc dram<{m}x{n}xf32> {{kind = output}}\n%at = alloc sbuf<{k}x2x{m}x{a_dtype}>\n%bt = alloc sbuf<{k}x2x{n}x{b_dtype}>\n\
                 %p = alloc psum<{m}x{n}xf32>\n%yt = alloc sbuf<{m}x{n}xf32>\nload %at <- %a\nload %bt <- %b\n\
                 matmult %p <- stationary %at, moving %bt {{double_row}}\ntensor_copy %yt <- %p\nsave %y <- %yt"
            );
            let y = run_on("trn2", &body, &[("a", a.clone()), ("b", b.clone())]);
            let (va, vb) = (values(&a), values(&b));
            for i in 0..m as usize {
                for j in 0..n as usize {
                    let mut acc: Option<f32> = None;
                    for p in 0..k as usize {
                        for row in 0..2 {
                            let x = va[(p * 2 + row) * m as usize + i];
                            let w = vb[(p * 2 + row) * n as usize + j];
                            acc = Some(acc.map_or(x * w, |acc| x.mul_add(w, acc)));
                        }
                    }
                    let found = values(&y)[i * n as usize + j];
                    assert!(same(found, acc.expect("a sum")), "[{i}, {j}]");
                }
            }
        }
    }
}

#[test]
fn tags_beyond_the_block_are_named() {
    let body = "%y = alloc dram<1x1xf32> {kind = output}\n%a = alloc sbuf<8x1xbf16>\n%b = alloc sbuf<8x2xbf16>\n\
                %g = alloc sbuf<8x1xu16>\n%p = alloc psum<1x1xf32>\n%yt = alloc sbuf<1x1xf32>\nmemset %a <- 1.0\nmemset %b <- 1.0\n\
                memset %g <- 8\nmatmult_sparse %p <- stationary %a, moving %b, tags %g {ratio = 2}\ntensor_copy %yt <- %p\nsave %y <- %yt";
    assert_eq!(
        failure(body, &[]),
        "`matmult_sparse` finds position 8 for element 0 of partition 0, but `%b` has 8 there"
    );
}

#[test]
fn hints_of_zeros_and_ones_are_held_to_it() {
    let body = |hint: &str, value: &str, dtype: &str| {
        format!(
            "%y = alloc dram<1x2xf32> {{kind = output}}\n%a = alloc sbuf<4x1x{dtype}>\n%b = alloc sbuf<4x2x{dtype}>\n\
             %p = alloc psum<1x2xf32>\n%yt = alloc sbuf<1x2xf32>\nmemset %a <- 1.0\nmemset %b <- 1.0\nmemset %b[:, 1:2] <- {value}\n\
             matmult %p <- stationary %a, moving %b {{{hint}}}\ntensor_copy %yt <- %p\nsave %y <- %yt"
        )
    };
    assert_eq!(
        values(&output(&body("moving_onezero", "0.0", "f32"), &[])),
        [4.0, 0.0]
    );
    assert_eq!(
        failure(
            &body("stationary_onezero, moving_onezero", "2.5", "f32"),
            &[]
        ),
        "`matmult` is promised zeros and ones by `moving_onezero`, but element 1 of partition 0 is 2.5"
    );
    // Of other dtypes the hint says nothing.
    assert_eq!(
        values(&output(&body("moving_onezero", "2.5", "bf16"), &[])),
        [4.0, 10.0]
    );
}
