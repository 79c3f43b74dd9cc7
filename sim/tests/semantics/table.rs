//! Every op of the table runs, but for the two that nobody can run.

use bir_dialect::bir::ops::OpCode;
use bir_sim::executes;

#[test]
fn every_op_is_executed_or_one_of_two_refused_by_name() {
    let refused: Vec<&str> = OpCode::ALL
        .iter()
        .filter(|&&code| !executes(code))
        .map(|code| code.def().name)
        .collect();
    assert_eq!(refused, ["custom_op", "inline_asm"]);
    for (op, text) in [
        ("custom_op", "custom_op {name_of_op = \"lookup\"}"),
        ("inline_asm", "inline_asm {text = \"nop\", engine = act}"),
    ] {
        assert_eq!(
            crate::common::failure(text, &[]),
            format!("`{op}` cannot be simulated: nobody but its author knows what it does")
        );
    }
}
