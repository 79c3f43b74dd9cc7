//! What nothing has written: read, poisoned, or zero.

use crate::common::*;
use bir_dialect::bir::num::DType;
use bir_sim::{Options, Uninit};

const HEAD: &str = "%y = alloc dram<4x8xf32> {kind = output}\n%t = alloc sbuf<4x8xf32>\n\
    %u = alloc sbuf<4x8xf32>\n%v = alloc sbuf<4x8xf32>\n%w = alloc sbuf<4x8xf32>\n";

fn with(uninit: Uninit) -> Options {
    Options {
        uninit,
        ..Options::default()
    }
}

#[test]
fn poison_that_nobody_sees_is_harmless() {
    let body = format!(
        "{HEAD}tensor_copy %u <- %t\nmemset %u <- 1.0\nmemset %v[0:2, :] <- 0.0\n\
         tensor_copy %w[0:2, 0:4] <- %v[0:2, 4:8]\nsave %y <- %u"
    );
    let outputs = simulate(with(Uninit::Poison), "trn2", &body, &[]).expect("harmless");
    assert_eq!(values(&outputs["y"]), [1.0; 32]);
    let message = failure(&body, &[]);
    assert!(
        message.starts_with("`tensor_copy` reads `%t`, partitions 0 to 3, elements 0 to 7 of 8"),
        "{message}"
    );
}

#[test]
fn poison_in_an_output_names_the_read_it_came_by() {
    // Three reads of undefined bytes, only the second of which matters.
    let body = format!(
        "{HEAD}tensor_copy %u <- %t\nmemset %u <- 1.0\nmemset %v[:, 0:4] <- 1.0\n\
         tensor_scalar add %w <- %v, 1.0\ntensor_tensor add %u <- %u, %w\n\
         tensor_copy %t[:, 0:4] <- %t[:, 4:8]\nsave %y <- %u"
    );
    let fault = simulate(with(Uninit::Poison), "trn2", &body, &[]).expect_err("poison");
    assert_eq!(
        fault.to_string(),
        "`tensor_scalar` reads `%v`, partitions 0 to 3, elements 4 to 7 of 8, which nothing has written, \
         and output `%y` depends on it: [0, 4] is nan, or 2.0 with zeros there"
    );
}

#[test]
fn poison_is_found_behind_comparisons_and_integers() {
    // No NaN is left of it: what was chosen by it differs.
    let body = format!(
        "{HEAD}%mask = alloc sbuf<4x8xu8>\nmemset %u <- 2.0\ntensor_scalar greater_equal %mask <- %t, 0.0\n\
         select %u <- %mask, %u, 3.0\nsave %y <- %u"
    );
    let fault = simulate(with(Uninit::Poison), "trn2", &body, &[]).expect_err("poison");
    assert!(
        fault.to_string().contains("[0, 0] is 3.0, or 2.0"),
        "{fault}"
    );
    let body = "%y = alloc dram<1x4xi32> {kind = output}\n%t = alloc sbuf<1x4xi32>\nsave %y <- %t";
    let fault = simulate(with(Uninit::Poison), "trn2", body, &[]).expect_err("poison");
    assert!(
        fault.to_string().starts_with("`save` reads `%t`"),
        "{fault}"
    );
    let outputs = simulate(with(Uninit::Zero), "trn2", body, &[]).expect("zeros");
    assert_eq!(values(&outputs["y"]), [0.0; 4]);
}

#[test]
fn poisoned_accumulation_is_found() {
    let body = "%y = alloc dram<1x1xf32> {kind = output}\n%one = alloc sbuf<1x1xf32>\n%p = alloc psum<1x1xf32>\n\
        %t = alloc sbuf<1x1xf32>\nmemset %one <- 1.0\nmatmult %p <- stationary %one, moving %one {accumulate}\n\
        tensor_copy %t <- %p\nsave %y <- %t";
    let ir = crate::common::unverified(body);
    let simulation = bir_sim::Simulation::new(&ir, with(Uninit::Poison)).expect("a program");
    let fault = simulation
        .run(&bir_sim::Inputs::new(), &mut |_| {})
        .expect_err("poison");
    assert!(
        fault.to_string().starts_with("`matmult` reads `%p`"),
        "{fault}"
    );
}

#[test]
fn an_output_must_be_written_in_any_case() {
    let x = tensor(DType::F32, &[4, 8], [1.0; 32]);
    let body = "%x = alloc dram<4x8xf32> {kind = input}\n%y = alloc dram<4x8xf32> {kind = output}\n\
        %t = alloc sbuf<4x8xf32>\nload %t <- %x\nsave %y[0:3, :] <- %t[0:3, :]";
    let wrong = simulate(with(Uninit::Poison), "trn2", body, &[("x", x.clone())]);
    let fault = wrong.expect_err("unwritten").to_string();
    assert_eq!(
        fault,
        "nothing has written element 24 of `%y`, which is an output"
    );
    let outputs = simulate(with(Uninit::Zero), "trn2", body, &[("x", x)]).expect("zeros");
    assert_eq!(values(&outputs["y"])[24..], [0.0; 8]);
}
