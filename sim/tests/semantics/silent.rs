//! Instructions that change no data: a program with them computes what it computes without.

use bir_dialect::bir::num::DType;

use crate::common::*;

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        what_synchronises_or_configures_leaves_data_alone,
        &[
            "event_semaphore",
            "semaphore_range_clear",
            "all_engine_barrier",
            "drain",
            "notify",
            "dma_trigger",
            "set_ordering_mode",
            "modify_pool_config",
            "load_activation_table",
            "device_print",
            "depset",
            "nop",
        ],
    ),
    (
        a_program_ends_where_it_says_so,
        &["return", "yield", "halt"],
    ),
];

#[test]
fn what_synchronises_or_configures_leaves_data_alone() {
    let x = tensor(DType::F32, &[4, 8], (0..32).map(|i| i as f32 * 0.5 - 3.0));
    let want: Vec<f32> = values(&x).iter().map(|v| (v + 1.0) * 2.0).collect();
    let silent = [
        "event_semaphore {signal = [6 := 0]}",
        "semaphore_range_clear {first = 200, count = 3}",
        "all_engine_barrier",
        "drain {engine = dve}",
        "notify {event = 3}",
        "dma_trigger {queue = \"q0\"}",
        "set_ordering_mode {mode = strict}",
        "modify_pool_config {config = \"default\"}",
        "load_activation_table {func = exp}",
        "device_print <- %x_t {text = \"here\"}",
        "nop {engine = pe}",
    ];
    for between in silent.iter().copied().chain([silent.join("\n").as_str()]) {
        let ops = format!(
            "tensor_scalar add %y_t <- %x_t, 1.0 {{id = 1}}\n{between}\n\
             tensor_scalar multiply %y_t <- %y_t, 2.0 {{id = 2}}\n{between}\ndepset #3 = [1, 2]"
        );
        let y = run_kernel(&[("x", &x)], "4x8xf32", &ops);
        assert_same(&values(&y), &want, between);
    }
}

#[test]
fn a_program_ends_where_it_says_so() {
    let body = |end: &str| {
        format!(
            "%y = alloc dram<1x1xf32> {{kind = output}}\n%c = alloc sbuf<1x1xf32>\nmemset %c <- 1.0\n\
             loop %i = 0 to 5 {{\ntensor_scalar multiply %c <- %c, 2.0\n\"bir.yield\"() : () -> ()\n}}\n\
             save %y <- %c\n{end}"
        )
    };
    for end in ["", "\"bir.return\"() : () -> ()", "halt"] {
        assert_eq!(values(&output(&body(end), &[])), [32.0], "{end}");
    }
}
