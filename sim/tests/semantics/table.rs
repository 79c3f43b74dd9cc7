//! Every op of the table runs, but for the two that nobody can run, and each is held to a formula
//! written down a second time.

use std::collections::{BTreeMap, BTreeSet};

use bir_dialect::bir::ops::OpCode;
use bir_sim::executes;

use crate::common;

/// Tests that compute what instructions should give by a formula of their own, and the ops they do it
/// for.
pub(crate) type Claims = &'static [(fn(), &'static [&'static str])];

/// What each module of tests claims. An op that is in none fails
/// [`every_op_is_computed_a_second_time`], and so does one its test does not execute.
const CLAIMS: &[Claims] = &[
    crate::accumulators::NAIVE,
    crate::cores::NAIVE,
    crate::dma::NAIVE,
    crate::elementwise::NAIVE,
    crate::forms::NAIVE,
    crate::gather::NAIVE,
    crate::mx::NAIVE,
    crate::partitions::NAIVE,
    crate::random::NAIVE,
    crate::rowwise::NAIVE,
    crate::silent::NAIVE,
    crate::sorting::NAIVE,
];

/// Ends of functions and bodies: texts may have them, and the reader takes them as read, so that no program
/// holds them as instructions.
const READ_ONLY: [&str; 2] = ["return", "yield"];

/// What nobody can run.
const REFUSED: [&str; 2] = ["custom_op", "inline_asm"];

#[test]
fn every_op_is_computed_a_second_time() {
    let mut claimed: BTreeMap<&str, bool> = BTreeMap::new();
    for (test, ops) in CLAIMS.iter().copied().flatten() {
        common::forget_executed();
        test();
        let executed = common::executed();
        for &op in *ops {
            *claimed.entry(op).or_default() |= executed.contains(op);
        }
    }
    let idle: Vec<&str> = claimed
        .iter()
        .filter(|(_, executed)| !**executed)
        .map(|(op, _)| *op)
        .collect();
    assert_eq!(
        idle, READ_ONLY,
        "what is claimed by tests that do not execute it"
    );
    let known: BTreeSet<&str> = OpCode::ALL.iter().map(|code| code.def().name).collect();
    let missing: Vec<&str> = known
        .iter()
        .copied()
        .filter(|op| !claimed.contains_key(op) && !REFUSED.contains(op))
        .collect();
    assert!(
        missing.is_empty(),
        "no test computes these a second time: {missing:?}; write one, and name it in `NAIVE` of its module"
    );
}

#[test]
fn every_op_is_executed_or_one_of_two_refused_by_name() {
    let refused: Vec<&str> = OpCode::ALL
        .iter()
        .filter(|&&code| !executes(code))
        .map(|code| code.def().name)
        .collect();
    assert_eq!(refused, REFUSED);
    for (op, text) in [
        ("custom_op", "custom_op {name_of_op = \"lookup\"}"),
        ("inline_asm", "inline_asm {text = \"nop\", engine = act}"),
    ] {
        assert_eq!(
            common::failure(text, &[]),
            format!("`{op}` cannot be simulated: nobody but its author knows what it does")
        );
    }
}
