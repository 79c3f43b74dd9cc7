//! The ready-made facts about the instruction set, each a test of its name.

use crate::common::*;
use crate::views::{Form, Operand, run};
use bir_dialect::bir::num::{DType, from_f32, to_f32};

fn activation(func: &str, x: f32) -> f32 {
    let x = tensor(DType::F32, &[1, 1], [x]);
    let y = run_kernel(
        &[("x", &x)],
        "1x1xf32",
        &format!("activation {func} %y_t <- %x_t"),
    );
    values(&y)[0]
}

#[test]
fn activation_sin_of_9_is_about_27_65() {
    let found = activation("sin", 9.0);
    assert!((found - 27.65).abs() < 0.01, "{found}");
}

#[test]
fn abs_max_and_abs_min_return_the_signed_operand_and_ties_the_second() {
    let pair = |op: &str, a: f32, b: f32| {
        let x = Operand::whole("x", tensor(DType::F32, &[1, 2], [a, b]));
        let d = Operand::new("d", DType::F32, (1, 1), Form::Whole, 0);
        let ops = format!(
            "tensor_tensor {op} {} <- %x_t[:, 0:1], %x_t[:, 1:2]",
            d.text()
        );
        let found = run("trn3", &[&x, &d], &ops);
        values(&found["d"])[d.visited(0)[0]]
    };
    assert_eq!(pair("abs_max", -5.0, 3.0), -5.0);
    assert_eq!(pair("abs_max", 1.0, -1.0), -1.0);
    assert_eq!(pair("abs_min", 5.0, -3.0), -3.0);
}

#[test]
fn match_replace8_of_seven_eights() {
    let mut data = vec![1.0, 2.0, 3.0, 4.0];
    data.resize(11, 8.0);
    let x = tensor(DType::F32, &[1, 11], data);
    let mut wanted = vec![3.0];
    wanted.resize(8, 8.0);
    let v = tensor(DType::F32, &[1, 8], wanted);
    let y = run_kernel(
        &[("x", &x), ("v", &v)],
        "1x8xu32",
        "%d = alloc sbuf<1x11xf32>\nmatch_replace8 %d, %y_t <- %x_t, %v_t, -1.0",
    );
    assert_eq!(values(&y), [2.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
}

#[test]
fn nonzero_with_count_of_eight_with_offset_16() {
    let x = tensor(
        DType::F32,
        &[1, 8],
        [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    );
    let y = run_kernel(
        &[("x", &x)],
        "1x9xi32",
        "nonzero_with_count %y_t <- %x_t {offset = 16, padding = -1}",
    );
    assert_eq!(
        values(&y),
        [17.0, 18.0, 21.0, -1.0, -1.0, -1.0, -1.0, -1.0, 3.0]
    );
}

#[test]
fn sequence_bounds_of_nine_ids() {
    let x = tensor(
        DType::I32,
        &[1, 9],
        [0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.0, 3.0, 3.0],
    );
    let y = run_kernel(&[("x", &x)], "1x18xi32", "sequence_bounds %y_t <- %x_t");
    let (starts, ends) = (&values(&y)[..9], &values(&y)[9..]);
    assert_eq!(starts, [9.0, 1.0, 1.0, 3.0, 3.0, 3.0, 9.0, 7.0, 7.0]);
    assert_eq!(ends, [-1.0, 3.0, 3.0, 6.0, 6.0, 6.0, -1.0, 9.0, 9.0]);
}

#[test]
fn stream_shuffle_by_one_rotates_inside_each_quadrant() {
    let x = tensor(DType::F32, &[128, 1], (0..128).map(|p| p as f32));
    let mask: Vec<i32> = (0..32).map(|i| (i + 31) % 32).collect();
    let y = run_kernel(
        &[("x", &x)],
        "128x1xf32",
        &format!("stream_shuffle %y_t <- %x_t {{mask = {mask:?}}}"),
    );
    for p in 0..128 {
        let from = p / 32 * 32 + (p % 32 + 31) % 32;
        assert_eq!(values(&y)[p], from as f32);
    }
}

#[test]
fn range_select_of_a_row_that_is_false_throughout() {
    let x = Operand::whole("x", tensor(DType::F32, &[1, 8], [1.0; 8]));
    let d = Operand::whole("d", tensor(DType::Bf16, &[1, 8], [0.0; 8]));
    let b = Operand::whole("b", tensor(DType::F32, &[1, 1], [100.0]));
    let m = Operand::whole("m", tensor(DType::F32, &[1, 1], [0.0]));
    let found = run(
        "trn2",
        &[&x, &d, &b, &m],
        "range_select greater_equal less %d_t, reduce reset %m_t <- %x_t, %b_t, %b_t",
    );
    assert_eq!(values(&found["d"]), [f32::NEG_INFINITY; 8]);
    assert_eq!(values(&found["m"]), [-3.402_823_5e38]);
}

#[test]
fn tensor_scalar_cumulative_of_64_ones_from_1_ends_at_65_and_goes_on_64_further() {
    let x = tensor(DType::F32, &[1, 64], [1.0; 64]);
    let body = |more: &str| {
        format!(
            "%d = alloc sbuf<1x64xf32>\n\
             tensor_scalar_cumulative multiply add %d <- %x_t, 1.0, init 1.0 {{reduce_cmd = load}}\n{more}\
             tensor_copy %y_t <- %d[:, 63:64]"
        )
    };
    let y = run_kernel(&[("x", &x)], "1x1xf32", &body(""));
    assert_eq!(values(&y), [65.0]);
    let again = "tensor_scalar_cumulative multiply add %d <- %x_t, 1.0 {reduce_cmd = accumulate}\n";
    let y = run_kernel(&[("x", &x)], "1x1xf32", &body(again));
    assert_eq!(values(&y), [129.0]);
}

#[test]
fn bn_stats_and_bn_aggr_give_population_mean_and_variance() {
    let row: Vec<f32> = (0..512).map(|i| ((i * 37) % 101) as f32).collect();
    let x = tensor(DType::F32, &[1, 512], row.iter().copied());
    let y = run_kernel(
        &[("x", &x)],
        "1x2xf32",
        "%six = alloc sbuf<1x6xf32>\nbn_stats %six <- %x_t\nbn_aggr %y_t <- %six",
    );
    let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / 512.0;
    let variance = row
        .iter()
        .map(|&x| (f64::from(x) - mean).powi(2))
        .sum::<f64>()
        / 512.0;
    let found = values(&y);
    assert!((f64::from(found[0]) - mean).abs() < 1e-4);
    assert!((f64::from(found[1]) - variance).abs() < 1e-3 * variance);
}

#[test]
fn matmult_double_row_of_ones_is_256() {
    let body = "%y = alloc dram<1x512xf32> {kind = output}\n%a = alloc sbuf<128x2x1xf8e4m3>\n\
                %b = alloc sbuf<128x2x512xf8e5m2>\n%p = alloc psum<1x512xf32>\n%t = alloc sbuf<1x512xf32>\n\
                memset %a <- 1.0\nmemset %b <- 1.0\nmatmult %p <- stationary %a, moving %b {double_row}\n\
                tensor_copy %t <- %p\nsave %y <- %t";
    assert_eq!(values(&output(body, &[])), [256.0; 512]);
}

#[test]
fn a_gather_that_skips_leaves_rows_as_they_were() {
    let table = tensor(DType::F32, &[4, 2], (0..8).map(|i| i as f32));
    let rows = tensor(DType::I32, &[3, 1], [3.0, 4.0, 0.0]);
    let body = "%table = alloc dram<4x2xf32> {kind = input}\n%rows = alloc dram<3x1xi32> {kind = input}\n\
                %y = alloc dram<3x2xf32> {kind = output}\n%r = alloc sbuf<3x1xi32>\n%t = alloc sbuf<3x2xf32>\n\
                memset %t <- -9.0\nload %r <- %rows\ndma_copy %t <- %table, src_index %r {dge = swdge, oob = skip}\nsave %y <- %t";
    let y = output(body, &[("table", table), ("rows", rows)]);
    assert_eq!(values(&y), [6.0, 7.0, -9.0, -9.0, 0.0, 1.0]);
}

#[test]
fn iota_from_5_by_2() {
    let y = run_kernel(
        &[],
        "128x1xi32",
        "iota %y_t {offset = 5, channel_multiplier = 2, pattern = [[1, 1]]}",
    );
    let want: Vec<f32> = (0..128).map(|p| (5 + 2 * p) as f32).collect();
    assert_eq!((want[0], want[1], want[127]), (5.0, 7.0, 259.0));
    assert_eq!(values(&y), want);
}

#[test]
fn largest_values_of_the_small_floats() {
    for (dtype, max, next) in [
        (DType::F8E4M3, 240.0, f32::INFINITY),
        (DType::F8E4M3FN, 448.0, f32::NAN),
        (DType::F8E5M2, 57344.0, f32::INFINITY),
    ] {
        let convert = |x| to_f32(dtype, from_f32(dtype, x).expect("bits")).expect("a number");
        assert_eq!(convert(max), max);
        assert!(same(convert(max * 1.5), next), "{dtype}");
        // The same through an instruction.
        let x = tensor(DType::F32, &[1, 2], [max, max * 1.5]);
        let y = run_kernel(
            &[("x", &x)],
            &format!("1x2x{dtype}"),
            "tensor_copy %y_t <- %x_t",
        );
        assert_same(&values(&y), &[max, next], dtype.name());
    }
    use bir_dialect::bir::num::element_to_f32;
    let largest = (0..16)
        .filter_map(|bits| element_to_f32(DType::F4E2M1FNx4, bits))
        .fold(0.0, f32::max);
    assert_eq!(largest, 6.0);
}

#[test]
fn quantize_mx_of_a_group_of_zeros() {
    let body = "%y = alloc dram<32x1xf8e4m3fn_x4> {kind = output}\n%z = alloc dram<4x1xu8> {kind = output}\n\
                %x = alloc sbuf<32x4xbf16>\n%q = alloc sbuf<32x1xf8e4m3fn_x4>\n%s = alloc sbuf<4x1xu8>\n\
                memset %x <- 0.0\nquantize_mx %q, %s <- %x\nsave %y <- %q\nsave %z <- %s";
    let found = simulate(bir_sim::Options::default(), "trn3", body, &[]).expect("runs");
    assert!(found["y"].bytes.iter().all(|&byte| byte == 0));
    assert_eq!(found["z"].bytes, [0; 4]);
}

/// The simulator runs instructions in order and keeps no semaphores; the verifier plays them.
#[test]
fn a_dma_transfer_signals_16_and_a_wait_for_16_is_met() {
    let body = |wait: u32| {
        format!(
            "%x = alloc dram<128x4xf32> {{kind = input}}\n%y = alloc dram<128x4xf32> {{kind = output}}\n\
             %t = alloc sbuf<128x4xf32>\nload %t <- %x {{signal = [4 += 16 @complete]}}\n\
             tensor_scalar multiply %t <- %t, 2.0 {{wait = [4 >= {wait}]}}\nsave %y <- %t"
        )
    };
    let x = tensor(DType::F32, &[128, 4], (0..512).map(|i| i as f32));
    let y = output(&body(16), &[("x", x)]);
    assert_eq!(values(&y)[511], 1022.0);
    let errors = findings(&body(17));
    assert!(
        errors
            .iter()
            .any(|e| e.contains("can never be met") || e.contains("never")),
        "{errors:?}"
    );
}
