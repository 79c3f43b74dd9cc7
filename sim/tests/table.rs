//! What the simulator cannot do is one list, and the list is true.

use bir_dialect::bir::ops::OpCode;

#[test]
fn ops_without_semantics_are_counted() {
    // Goes down only.
    assert_eq!(bir_sim::NOT_YET.len(), 33);
    let mut names: Vec<&str> = bir_sim::NOT_YET.iter().map(|op| op.def().name).collect();
    names.dedup();
    assert_eq!(names.len(), bir_sim::NOT_YET.len());
    assert!(bir_sim::NOT_YET.iter().all(|op| OpCode::ALL.contains(op)));
}
