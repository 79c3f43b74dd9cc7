//! `instruction_reorder` on random programs whose orders come from legal schedules.

use crate::harness::{Again, Counters, all_counted, check, config, programs};
use bir_dialect::analysis::deps::{Graph, Kinds};
use bir_dialect::bir::ops::{Kind, OpCode, Trait};
use bir_dialect::bir::program::{COL_ORDER, OrderTerm, order_words};
use bir_dialect::ir::{Block, Ir, Op, Value};
use bir_passes::InstructionReorder;
use bir_passes::pass::Anchor;
use bir_sim::generate::{Feature, generate};
use bir_sim::random::Random;
use std::collections::HashMap;

/// Whether an instruction may be given an order: it is one, and nothing outside hangs on its place.
fn may_move(ir: &Ir, op: Op) -> bool {
    let sync = ["wait", "signal"]
        .iter()
        .any(|name| ir.attr(op, name).is_some());
    let code = OpCode::of(ir, op).unwrap();
    !sync
        && !code.def().has(Trait::Terminator)
        && !matches!(
            code,
            OpCode::Alloc | OpCode::Depset | OpCode::Return | OpCode::Yield
        )
}

/// Gives the instructions of runs of a block an order that respects the dependences.
fn schedule(
    ir: &mut Ir,
    block: Block,
    graph: &Graph,
    number: &HashMap<Op, u32>,
    random: &mut Random,
) {
    let mut runs: Vec<Vec<Op>> = vec![Vec::new()];
    for op in ir.block_ops(block) {
        // Every ninth stays where it is.
        if may_move(ir, op) && random.below(9) > 0 {
            runs.last_mut().unwrap().push(op);
        } else {
            runs.push(Vec::new());
        }
    }
    for run in runs {
        let inside: HashMap<Op, usize> = run.iter().copied().zip(0..).collect();
        // What each one must follow: of a loop, whatever is in it.
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); run.len()];
        let top = |op: Op| {
            std::iter::successors(Some(op), |&op| ir.parent(op))
                .find_map(|op| inside.get(&op).copied())
        };
        // A loop is no instruction of the graph: it stays where it is among those who write the
        // registers it tests.
        let mut writers: HashMap<Value, Vec<usize>> = HashMap::new();
        let mut testers: HashMap<Value, Vec<usize>> = HashMap::new();
        for (at, &op) in run.iter().enumerate() {
            for inner in ir.walk_op(op) {
                let is_loop = !ir.regions(inner).is_empty();
                let def = OpCode::of(ir, inner).unwrap().def();
                for operand in ir.operands(inner) {
                    let role = def.operands.get(usize::from(operand.role));
                    if is_loop {
                        after[at].extend(writers.get(&operand.value).into_iter().flatten());
                        testers.entry(operand.value).or_default().push(at);
                    } else if role.is_some_and(|role| role.kind == Kind::RegOut) {
                        after[at].extend(testers.get(&operand.value).into_iter().flatten());
                        writers.entry(operand.value).or_default().push(at);
                    }
                }
                if let Some(value) = ir.result(inner) {
                    writers.entry(value).or_default().push(at);
                }
                let Some(&inner) = number.get(&inner) else {
                    continue;
                };
                for edge in graph.edges(inner) {
                    let sources = graph.expand(edge.source()).into_iter();
                    let sources = sources.filter_map(|source| top(graph.ops()[source as usize]));
                    after[at].extend(sources);
                }
            }
        }
        for (at, after) in after.iter_mut().enumerate() {
            after.retain(|&source| source != at);
        }
        let mut left: Vec<usize> = (0..run.len()).collect();
        let mut done = vec![false; run.len()];
        let mut place = 0i64;
        while !left.is_empty() {
            let ready: Vec<usize> = left
                .iter()
                .copied()
                .filter(|&at| after[at].iter().all(|&source| done[source]))
                .collect();
            let next = ready[random.below(ready.len() as u64) as usize];
            left.retain(|&at| at != next);
            done[next] = true;
            // Two elements, or one and a longer one behind it, or as they come.
            let order = match place % 5 {
                0 => vec![place / 5],
                rest => vec![place / 5, rest],
            };
            let terms: Vec<OrderTerm> = order
                .into_iter()
                .map(|constant| OrderTerm {
                    constant,
                    ..OrderTerm::default()
                })
                .collect();
            let words = order_words(&terms);
            ir.set_words_cell(COL_ORDER, run[next], Some(&words));
            place += 1;
        }
    }
}

#[test]
fn legal_orders_keep_the_outputs() {
    let mut counters = Counters::new();
    for seed in programs(80) {
        let mut config = config(seed);
        config.without.insert(Feature::Deps);
        config.without.insert(Feature::Order);
        // Who lives where and when is the program's order, which no edge says.
        config.without.insert(Feature::SlotReuse);
        let mut ir = generate(&config).ir;
        let mut random = Random::new(seed, "orders");
        for func in Anchor::Func.ops(&ir) {
            let graph = Graph::build(&ir, func, Kinds::ALL);
            let number: HashMap<Op, u32> = graph.ops().iter().copied().zip(0..).collect();
            let blocks: Vec<Block> = ir
                .walk_op(func)
                .flat_map(|op| ir.regions(op).to_vec())
                .flat_map(|region| ir.blocks(region).collect::<Vec<_>>())
                .collect();
            for block in blocks {
                schedule(&mut ir, block, &graph, &number, &mut random);
            }
        }
        check(
            &InstructionReorder::default(),
            &mut ir,
            seed,
            Again::ChangesNothing,
            &mut counters,
        );
    }
    all_counted(&counters);
}
