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
