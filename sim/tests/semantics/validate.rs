//! A changed module is told from an equal one, by output, index and values.

use crate::common::*;
use bir_sim::Options;
use bir_sim::validate::{Baseline, Mismatch};

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
