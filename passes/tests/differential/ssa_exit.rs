//! `non_ssa_legalization`, `remove_redundant_loads` and `remove_redundant_memsets` on random programs;
//! the exit from SSA is judged by its checker, too.

use crate::harness::{Again, Counters, all_counted, check, config, programs, read, text};
use bir_dialect::ir::{Cursor, Dict, Ir};
use bir_passes::non_ssa_legalization::checker;
use bir_passes::pass::Anchor;
use bir_passes::{NonSsaLegalization, RemoveRedundantLoads, RemoveRedundantMemsets};
use bir_sim::generate::generate;

/// A program; every third says that its SBUF is placed, every fifth has a location nobody uses.
fn program(seed: u64) -> Ir {
    let mut ir = generate(&config(seed)).ir;
    if seed.is_multiple_of(5) {
        let func = Anchor::Func.ops(&ir)[0];
        let plain = ir
            .walk_op(func)
            .find(|&op| ir.name_text(op) == "bir.alloc" && ir.dict(op) == Dict::EMPTY);
        if let Some(alloc) = plain {
            let spare = ir.clone_op(alloc, |value| value);
            ir.place(spare, Cursor::After(alloc));
            let value = ir.made_result(spare);
            ir.name_value(value, "spare");
        }
    }
    if seed.is_multiple_of(3) {
        let flag = ir.ctx.unit();
        for func in Anchor::Func.ops(&ir) {
            ir.set_attr(func, "sb_allocated", Some(flag));
        }
    }
    ir
}

/// Programs whose clones the verifier once objected to.
const FOUND: &[u64] = &[1732, 100247, 102529, 104403, 106637, 107334];

#[test]
fn values_get_locations_of_their_own_and_outputs_stay() {
    let mut counters = Counters::new();
    for seed in FOUND.iter().copied().chain(programs(120)) {
        let mut ir = program(seed);
        let before = ir.clone();
        check(
            &NonSsaLegalization::default(),
            &mut ir,
            seed,
            Again::ChangesNothing,
            &mut counters,
        );
        let faults: Vec<String> = checker::check(&before, &ir)
            .into_iter()
            .map(|fault| fault.message)
            .collect();
        assert!(
            faults.is_empty(),
            "seed {seed}\n{}\n{}\n{faults:#?}",
            text(&before),
            text(&ir)
        );
    }
    all_counted(&counters);
}

#[test]
fn redundant_loads_go_and_outputs_stay() {
    let mut counters = Counters::new();
    for seed in programs(60) {
        let mut ir = program(seed);
        check(
            &RemoveRedundantLoads::default(),
            &mut ir,
            seed,
            Again::ChangesNothing,
            &mut counters,
        );
    }
    all_counted(&counters);
}

#[test]
fn redundant_memsets_go_and_outputs_stay() {
    let mut counters = Counters::new();
    for seed in programs(60) {
        let mut ir = program(seed);
        check(
            &RemoveRedundantMemsets::default(),
            &mut ir,
            seed,
            Again::ChangesNothing,
            &mut counters,
        );
    }
    all_counted(&counters);
}

/// A program whose exit from SSA is known, and its file.
fn exited() -> (Ir, Ir) {
    let before = read(
        "bir.module @m {\n bir.func @main {\n  %x = alloc dram<4x8xf32> {kind = input}\n  %y = alloc dram<4x8xf32> {kind = output}\n  \
         %t = alloc sbuf<4x8xf32>\n  %u = alloc sbuf<4x8xf32>\n  load %t <- %x\n  load %u <- %x\n  save %y <- %t\n  memset %t <- 1.0\n  \
         memset %t[:, 0:1] <- 2.0\n  save %y <- %t\n  save %y <- %u\n }\n}\n",
    );
    let mut after = before.clone();
    crate::harness::run(vec![Box::new(NonSsaLegalization::default())], &mut after);
    assert!(text(&after).contains("%t_SsaClone0"));
    assert!(!text(&after).contains("%u"));
    (before, after)
}

fn messages(before: &Ir, after: &Ir) -> Vec<String> {
    let faults = checker::check(before, after).into_iter();
    faults.map(|fault| fault.message).collect()
}

#[test]
fn the_checker_accepts_what_is_right_and_names_what_is_not() {
    let (before, after) = exited();
    assert_eq!(messages(&before, &after), Vec::<String>::new());
    let ops = |ir: &Ir| -> Vec<_> {
        let func = Anchor::Func.ops(ir)[0];
        ir.walk_op(func).collect()
    };
    let named = |ir: &Ir, name: &str| {
        let all = ops(ir);
        let mut found = all.iter().filter(|&&op| ir.name_text(op) == name);
        *found.next().unwrap()
    };
    // The partial write stays behind: the last read sees other definitions.
    let mut wrong = after.clone();
    let memsets: Vec<_> = ops(&wrong)
        .into_iter()
        .filter(|&op| wrong.name_text(op) == "bir.memset")
        .collect();
    let load = named(&wrong, "bir.load");
    let old = wrong.operands(load)[0].value;
    let operand = wrong.operand_ids(memsets[1]).next().unwrap();
    wrong.set_operand(operand, old);
    assert!(messages(&before, &wrong).contains(&"reads other definitions of `%t`".to_owned()));
    // Nothing moved but the name.
    let mut wrong = after.clone();
    let clone = wrong.operands(memsets[0])[0].value;
    let name = wrong.ctx.str("t_copy");
    wrong.set_value_name(clone, Some(name));
    assert!(
        messages(&before, &wrong)
            .contains(&"names a clone that is not named for its location".to_owned())
    );
    // A clone that is pinned where its original is not.
    let mut wrong = after.clone();
    let alloc = wrong.def_op(clone).unwrap();
    let flag = wrong.ctx.unit();
    wrong.set_attr(alloc, "pinned", Some(flag));
    assert!(
        messages(&before, &wrong)
            .contains(&"names a clone with other attributes than its location".to_owned())
    );
    // A save gone, a memset moved.
    let mut wrong = after.clone();
    let save = named(&wrong, "bir.save");
    wrong.erase(save);
    assert_eq!(messages(&before, &wrong), ["was removed, and is no load"]);
    let mut wrong = after.clone();
    wrong.move_op(memsets[1], Cursor::Before(memsets[0]));
    assert_eq!(
        messages(&before, &wrong),
        ["has its instructions in another order"]
    );
    // A load gone that was the only one of its kind.
    let mut wrong = before.clone();
    let load = named(&wrong, "bir.load");
    let twin = wrong.next(load).unwrap();
    for op in [load, twin] {
        wrong.erase(op);
    }
    assert!(messages(&before, &wrong).contains(&"reads other definitions of `%t`".to_owned()));
    // Two values in a clone: what was to be split is not.
    let mut wrong = after.clone();
    let (clone, old) = (clone, old);
    let uses: Vec<_> = wrong.uses(old).collect();
    for operand in uses {
        wrong.set_operand(operand, clone);
    }
    assert!(
        messages(&before, &wrong).contains(&"`%t_SsaClone0` still holds several values".to_owned())
    );
}
