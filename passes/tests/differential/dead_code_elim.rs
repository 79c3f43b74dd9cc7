//! Dead code elimination on random programs: outputs equal, clean, idempotent, and what its checker
//! says – which is tested here, too.

use crate::harness::{Again, Counters, all_counted, check, programs, verified};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_DEPS, COL_ID, new_ir};
use bir_dialect::ir::{Cursor, Ir, Op};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, parse};
use bir_passes::dead_code_elim::checker;
use bir_passes::instrument::{Instrument, Log, PassEvent};
use bir_passes::pass::Limits;
use bir_passes::{DeadCodeElimO0, DeadCodeElimO1, Manager, Pass, Pipeline};
use bir_sim::Options;
use bir_sim::generate::{Config, generate};
use bir_sim::validate::Baseline;

fn program(seed: u64) -> Ir {
    let config = Config {
        seed,
        instructions: 120,
        max_elements: 16,
        ..Config::default()
    };
    generate(&config).ir
}

/// Programs the checker once objected to.
const FOUND: &[u64] = &[100101, 104308];

/// Runs a level over programs; what it counted.
fn campaign<P: Pass + Clone + 'static>(pass: &P) -> Counters {
    let mut counters = Counters::new();
    for seed in FOUND.iter().copied().chain(programs(150)) {
        let ir = &mut program(seed);
        check(pass, ir, seed, Again::ChangesNothing, &mut counters);
    }
    // Generated modules have no tensor map.
    counters.remove(&format!("{}: tensor-map-entries", pass.name()));
    counters
}

#[test]
fn o0_keeps_what_programs_compute() {
    let mut counters = campaign(&DeadCodeElimO0 {
        liw_spill: true,
        ..DeadCodeElimO0::default()
    });
    // These are for o1 alone.
    for name in [
        "dead-stores",
        "empty-loops",
        "must-alias-copies",
        "redundant-alias-copies",
        "internal-copies",
    ] {
        let counted = counters.remove(&format!("dead_code_elim_o0: {name}"));
        assert_eq!(counted, Some(0), "{name}");
    }
    all_counted(&counters);
}

#[test]
fn o1_keeps_what_programs_compute_and_every_clean_up_fires() {
    let counters = campaign(&DeadCodeElimO1 {
        liw_spill: true,
        ..DeadCodeElimO1::default()
    });
    all_counted(&counters);
}

#[test]
fn every_number_of_rewrites_leaves_a_module_that_verifies() {
    struct Stop(u64);
    impl Instrument for Stop {
        fn before_rewrite(
            &mut self,
            _event: &PassEvent<'_>,
            _what: &dyn Fn() -> String,
            _log: &mut dyn Log,
        ) -> bool {
            let may = self.0 > 0;
            self.0 = self.0.saturating_sub(1);
            may
        }
    }
    for seed in 0..6 {
        let config = Config {
            seed,
            instructions: 60,
            max_elements: 8,
            ..Config::default()
        };
        let ir = generate(&config).ir;
        let baseline = Baseline::new(&ir, &[seed], Options::default()).expect("it ran before");
        for limit in 0..30 {
            let mut ir = ir.clone();
            let mut pipeline = Pipeline::default();
            pipeline.push(Box::new(DeadCodeElimO1 {
                liw_spill: true,
                ..DeadCodeElimO1::default()
            }));
            let mut manager = Manager::new(Limits::default());
            manager.watch(Stop(limit));
            let mut diags = Diagnostics::new();
            manager.run(&pipeline, &mut ir, &mut String::new(), &mut diags);
            verified(&ir, &format!("seed {seed}, {limit} rewrites"));
            assert!(baseline.check(&ir).is_ok(), "seed {seed}, {limit} rewrites");
        }
    }
}

fn read(body: &str) -> (Ir, Op) {
    let text = format!(
        "bir.module @m {{\nbir.func @f {{\n%x = alloc dram<4x8xf32> {{kind = input}}\n%y = alloc dram<4x8xf32> {{kind = output}}\n%h = alloc dram<4x8xf32> {{space = shared}}\n%t = alloc sbuf<4x8xf32>\n%u = alloc sbuf<4x8xf32>\n{body}\n}}\n}}\n"
    );
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    parse(
        &text,
        0..text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    assert!(!diags.has_errors(), "{text}");
    let func = ir
        .walk()
        .ops()
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Func));
    (ir, func.unwrap())
}

/// What the checker says where somebody does this to a program.
#[track_caller]
fn judged(body: &str, change: impl FnOnce(&mut Ir, &[Op]), want: &str) {
    let (before, func) = read(body);
    let mut after = before.clone();
    let ops: Vec<Op> = after
        .walk_op(func)
        .skip(1)
        .filter(|&op| OpCode::of(&after, op) != Some(OpCode::Alloc))
        .collect();
    assert!(checker::check("nothing", &before, &after).is_empty());
    change(&mut after, &ops);
    let found = checker::check("dead_code_elim_o1", &before, &after);
    let messages: Vec<&str> = found.iter().map(|d| d.message.as_str()).collect();
    let want = format!("`dead_code_elim_o1` went wrong: {want}");
    assert!(messages.contains(&want.as_str()), "{messages:#?}");
}

fn erase(at: usize) -> impl FnOnce(&mut Ir, &[Op]) {
    move |ir, ops| assert!(ir.erase(ops[at]))
}

#[test]
fn the_checker_finds_what_is_lost() {
    judged(
        "load %t <- %x\nload %t[:, 0:4] <- %x[:, 0:4]\nsave %y <- %t",
        erase(1),
        "what `save` reads was written by `load`, which is gone",
    );
    judged(
        "memset %t <- 1.0\nactivation exp %u <- %t\nmemset %u[:, 0:1] <- 2.0\nsave %y <- %u",
        erase(1),
        "what `save` reads was written by `activation`, which is gone",
    );
    judged(
        "load %t <- %x\nsave %y <- %t\nmemset %t <- 1.0\nsave %y[:, 0:4] <- %t[:, 0:4]",
        erase(3),
        "what is seen where the function ends was written by `save`, which is gone",
    );
    judged(
        "load %t <- %x\nmemset %u <- 1.0\ndma_copy %u <- %t\nsave %y <- %u",
        erase(2),
        "what `save` reads comes from elsewhere",
    );
    judged(
        "memset %t <- 1.0\nload %u <- %x\nsave %y <- %u",
        |ir, ops| {
            let read = ir.operand_ids(ops[2]).nth(1).unwrap();
            let other = ir.operands(ops[0])[0].value;
            ir.set_operand(read, other);
        },
        "what `save` reads comes from elsewhere",
    );
    judged(
        "load %t <- %x\nsave %y <- %t\ndrain",
        erase(2),
        "`drain`, which has effects of its own, is gone",
    );
    judged(
        "load %t <- %x\ndropout %u <- %t, 0.5\nsave %y <- %t",
        erase(1),
        "`dropout`, which writes hidden state, is gone",
    );
    judged(
        "load %t <- %x\nsave %h <- %t\nsave %y <- %t",
        erase(1),
        "`save`, which writes what others may look at, is gone",
    );
    judged(
        "load %t <- %x\nsave %y <- %t\nload %u <- %x",
        |ir, ops| ir.move_op(ops[2], Cursor::Before(ops[0])),
        "instructions that stay have another order",
    );
    judged(
        "load %t <- %x\nsave %y <- %t {queue = \"a\"}",
        |ir, ops| ir.set_attr(ops[1], "queue", None),
        "`save` is not what it was",
    );
}

#[test]
fn the_checker_finds_lost_order_and_semaphores() {
    let chain = "load %t <- %x {id = 1}\nmemset %u <- 1.0 {id = 2, deps = [ordered 1]}\nsave %y <- %t {id = 3, deps = [ordered 2]}";
    judged(
        chain,
        |ir, ops| {
            ir.set_words_cell(COL_DEPS, ops[2], None);
            assert!(ir.erase(ops[1]));
        },
        "`save` no longer follows `load`",
    );
    judged(
        "load %t <- %x {id = 1}\nmemset %u <- 1.0 {id = 2}\nsave %y <- %t {id = 3, deps = [flow 1]}",
        |ir, ops| {
            ir.set_words_cell(COL_DEPS, ops[1], Some(&[1]));
            ir.set_int_cell(COL_ID, ops[1], Some(2));
        },
        "`memset` now follows `load`",
    );
    let waits = "load %t <- %x {signal = [1 += 16]}\nmemset %u <- 1.0 {wait = [1 >= 16], signal = [2 += 1]}\nsave %y <- %t {wait = [2 >= 1]}";
    judged(waits, erase(1), "signals are lost or new");
    judged(waits, erase(1), "waits are lost or new");
}
