//! A changed module is told from an equal one, by output, index and values.

use crate::common::*;
use bir_dialect::bir::num::DType;
use bir_sim::validate::{Baseline, Mismatch};
use bir_sim::{Inputs, Options};

const BODY: &str = "%x = alloc dram<4x8xf32> {kind = input}\n%y = alloc dram<4x8xf32> {kind = output}\n\
    %t = alloc sbuf<4x8xf32>\nload %t <- %x\ntensor_tensor add %t <- %t, %t\nsave %y <- %t";

#[test]
fn equal_modules_pass_and_others_are_named() {
    let before = program("trn2", BODY);
    let baseline = Baseline::new(&before, &[0, 1, 2, 3], Options::default()).expect("a run");
    let doubled = program(
        "trn2",
        &BODY.replace(
            "tensor_tensor add %t <- %t, %t",
            "tensor_scalar multiply %t <- %t, 2.0",
        ),
    );
    assert_eq!(baseline.check(&doubled), Ok(()));
    let squared = program("trn2", &BODY.replace("add", "multiply"));
    match baseline.check(&squared) {
        Err(Mismatch::Output {
            name, difference, ..
        }) => {
            assert_eq!(name, "y");
            assert!(difference.contains(" at [0, 0], expected "), "{difference}");
        }
        other => panic!("{other:?}"),
    }
    let partial = program(
        "trn2",
        &BODY.replace("load %t <- %x", "load %t[0:2, :] <- %x[0:2, :]"),
    );
    assert!(matches!(
        baseline.check(&partial),
        Err(Mismatch::Fault { .. })
    ));
    let renamed = program("trn2", &BODY.replace("%y", "%z"));
    assert!(matches!(
        baseline.check(&renamed),
        Err(Mismatch::Outputs { .. })
    ));
}

#[test]
fn what_others_see_beside_outputs_is_compared_too() {
    let written = |to: &str| {
        format!(
            "%x = alloc dram<4x8xf32> {{kind = input}}\n%z = alloc dram<4x8xf32> {to}\n\
             %t = alloc sbuf<4x8xf32>\nload %t <- %x\n\
             tensor_scalar multiply %t <- %t, 2.0\nsave %z[0:2, :] <- %t[0:2, :]"
        )
    };
    for to in ["{kind = input}", "{space = shared}", "{boundary}"] {
        let body = written(to);
        let before = program("trn2", &body);
        let baseline = Baseline::new(&before, &[0], Options::default()).expect("a run");
        assert_eq!(baseline.check(&before), Ok(()));
        let other = program("trn2", &body.replace("2.0", "3.0"));
        match baseline.check(&other) {
            Err(Mismatch::Seen {
                name, difference, ..
            }) => {
                assert_eq!(name, "z", "{to}");
                assert!(difference.contains(" at [0, "), "{difference}");
            }
            other => panic!("{to}: {other:?}"),
        }
        // What nothing wrote is nobody's business.
        if to != "{kind = input}" {
            let more = program(
                "trn2",
                &body.replace("%z[0:2, :] <- %t[0:2, :]", "%z <- %t"),
            );
            assert_eq!(baseline.check(&more), Ok(()), "{to}");
        }
    }
    // Something else may lie in the bytes of what is placed.
    let placed = written("at 0x1000 {kind = input}");
    let before = program("trn2", &placed);
    let baseline = Baseline::new(&before, &[0], Options::default()).expect("a run");
    let other = program("trn2", &placed.replace("2.0", "3.0"));
    assert_eq!(baseline.check(&other), Ok(()));
}

#[test]
fn seeds_that_do_not_run_are_left_out_and_counted() {
    // A row of four by a number below eight that arithmetic has seen.
    let body = "%i = alloc dram<1x1xi32> {kind = input}\n%x = alloc dram<4x4xf32> {kind = input}\n\
        %y = alloc dram<1x4xf32> {kind = output}\n%k = alloc sbuf<1x1xi32>\n%t = alloc sbuf<1x4xf32>\n\
        load %k <- %i\ntensor_scalar add %k <- %k, 0.0\n\
        dma_copy %t <- %x, src_index %k {dge = swdge}\nsave %y <- %t";
    let of = |body: &str, seeds: &[u64]| {
        Baseline::new(&program("trn2", body), seeds, Options::default())
    };
    let seeds: Vec<u64> = (0..20).collect();
    let baseline = of(body, &seeds).expect("some run");
    let (count, first, fault) = baseline.left_out().expect("some do not run");
    assert!((1..20).contains(&count), "{count}");
    assert!(
        fault.to_string().contains("`dma_copy` finds index"),
        "{fault}"
    );
    let alone = of(body, &[first]).expect_err("none runs");
    assert_eq!(&*alone, fault);
    let negated = body.replace(
        "save %y <- %t",
        "tensor_scalar multiply %t <- %t, -1.0\nsave %y <- %t",
    );
    assert!(baseline.check(&program("trn2", &negated)).is_err());
    // What is only an index chooses what is there.
    let index = body.replace("tensor_scalar add %k <- %k, 0.0\n", "");
    assert_eq!(of(&index, &seeds).expect("all run").left_out(), None);
}

#[test]
fn random_indices_name_rows_and_columns_that_are_there_each_once() {
    let bodies = [
        // The smaller table counts; rows are written once each.
        "%i = alloc dram<16x1xi32> {kind = input}\n%a = alloc dram<40x4xf32> {kind = input}\n\
         %b = alloc dram<16x4xf32> {kind = inout}\n%k = alloc sbuf<16x1xi32>\n%t = alloc sbuf<16x4xf32>\n\
         load %k <- %i\ndma_copy %t <- %a, src_index %k {dge = swdge}\n\
         dma_copy %b <- %t, dst_index %k {dge = swdge, unique_indices}",
        "%i = alloc dram<16x2xu16> {kind = input}\n%a = alloc dram<16x9xf32> {kind = input}\n\
         %y = alloc dram<16x32xf32> {kind = output}\n%k = alloc sbuf<16x2xu16>\n%h = alloc sbuf<16x2xu16>\n\
         %t = alloc sbuf<16x9xf32>\n%u = alloc sbuf<16x32xf32>\nload %h <- %i\ntensor_copy %k <- %h\n\
         load %t <- %a\nlocal_gather %u <- %t, %k {count = 8, width = 4}\nsave %y <- %u",
        "%i = alloc dram<16x2xu32> {kind = input}\n%a = alloc dram<16x3xf32> {kind = input}\n\
         %y = alloc dram<16x2xf32> {kind = output}\n%k = alloc sbuf<16x2xu32>\n%t = alloc sbuf<16x3xf32>\n\
         %u = alloc sbuf<16x2xf32>\nload %k <- %i\nload %t <- %a\nn_gather %u <- %t, %k\nsave %y <- %u",
    ];
    let seeds: Vec<u64> = (0..30).collect();
    for body in bodies {
        let baseline = Baseline::new(&program("trn2", body), &seeds, Options::default());
        let baseline = baseline.unwrap_or_else(|fault| panic!("{body}\n{fault}"));
        assert_eq!(baseline.left_out(), None, "{body}");
    }
}

#[test]
fn halt_ends_a_program_in_a_loop_too() {
    let body = |halt: &str| {
        format!(
            "%y = alloc dram<1x1xf32> {{kind = output}}\n%t = alloc sbuf<1x1xf32>\nmemset %t <- 0.0\n\
             loop %i = 0 to 5 {{\ntensor_scalar add %t <- %t, 1.0\nsave %y <- %t\n{halt}\n}}\n\
             tensor_scalar add %t <- %t, 100.0\nsave %y <- %t"
        )
    };
    assert_eq!(values(&output(&body("nop"), &[])), [105.0]);
    assert_eq!(values(&output(&body("halt"), &[])), [1.0]);
}

/// A NaN with a payload times one is a NaN, and which one nobody says: neither an instruction set nor we.
#[test]
fn what_depends_on_the_bits_of_a_computed_nan_is_not_compared() {
    let body = |step: &str, read: &str| {
        let text = format!(
            "%x = alloc dram<4x2xi32> {{kind = input}}\n%y = alloc dram<4x4xbf16> {{kind = output}}\n\
             %n = alloc dram<4x2xf32> {{kind = output}}\n%a = alloc sbuf<4x2xi32>\n\
             %t = alloc sbuf<4x2xf32>\n%z = alloc sbuf<4x4xbf16>\nload %a <- %x\n\
             {step}\ntensor_copy %z <- {read}\nsave %y <- %z\nsave %n <- %t"
        );
        program("trn2", &text)
    };
    // Payloads, among them what is a signalling NaN; the upper halves as integers; numbers.
    let words: [u32; 8] = [
        0x7fc1_2345,
        0xff81_0001,
        0x7f80_3f80,
        0x7fff_ffff,
        0x3f80_0000,
        0xc000_3f80,
        0,
        0x8000_0000,
    ];
    let input = bits(DType::I32, &[4, 2], words.map(u64::from));
    let inputs = Inputs::from([("x".to_owned(), input)]);
    let of = |ir| Baseline::with_inputs(ir, &[0], &inputs, Options::default()).expect("a run");
    let halves = "%t as bf16[:, 0:4]";
    let times_one = body(
        "tensor_scalar multiply %t <- %a as f32[:, 0:2], 1.0",
        halves,
    );
    let copied = body("tensor_copy %t <- %a as f32[:, 0:2]", halves);
    assert_eq!(of(&times_one).check(&copied), Ok(()));
    // Halves of numbers are compared all the same.
    let negated = body(
        "tensor_scalar multiply %t <- %a as f32[:, 0:2], -1.0",
        halves,
    );
    assert!(matches!(
        of(&times_one).check(&negated),
        Err(Mismatch::Output { .. })
    ));
    // So are bits that are only moved: those of NaNs too.
    let swapped = body(
        "tensor_copy %t <- %a as f32[:, 0:2]",
        "%t as bf16[p 0:4, off 3, -1 x 4]",
    );
    match of(&copied).check(&swapped) {
        Err(Mismatch::Output { name, .. }) => assert_eq!(name, "y"),
        other => panic!("{other:?}"),
    }
}
