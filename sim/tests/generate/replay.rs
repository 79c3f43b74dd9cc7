//! Dependences are what the order of a program means: the instructions in any order that keeps them
//! compute the same, and where one that follows from no others is missing, some order does not.
//!
//! With loops and branches the orders are those of each block: what a loop holds stays in it, and what
//! one iteration owes to the one before holds in every such order, as a body is left before it is
//! entered again. An edge from or to what is inside of a loop counts for the loop where the other end
//! is outside; a loop itself has no dependences, so what writes the registers it reads stays on its side.
//! Orders that mix iterations are those of `carried`. Not covered: orders that move instructions from
//! block to block, which the edges of the text say nothing about; and whether edges within an iteration
//! are needed: there they may be too many.

use std::collections::HashMap;

use bir_dialect::analysis::deps::{Edge, Graph, Kinds, reduce};
use bir_dialect::bir::ops::{Kind, OpCode};
use bir_dialect::bir::program::DepKind;
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::{Block, Cursor, Ir, Op, Value};
use bir_dialect::text::{PrintOptions, print};
use bir_sim::Options;
use bir_sim::generate::{Config, Feature, FeatureSet, generate};
use bir_sim::validate::Baseline;

/// Programs a campaign makes: as many as `BIR_FUZZ` says, or `default`.
pub(crate) fn programs(default: u64) -> std::ops::Range<u64> {
    let count = std::env::var("BIR_FUZZ").ok().and_then(|n| n.parse().ok());
    0..count.unwrap_or(default)
}

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// What takes a program out of one block.
const CONTROL: &[Feature] = &[
    Feature::Loop,
    Feature::LoopDefinition,
    Feature::UnlessFirst,
    Feature::NestedLoop,
    Feature::RegisterLoop,
    Feature::While,
    Feature::Branch,
];

/// A program of one block.
fn straight(seed: u64, without: &[Feature], ops: &[OpCode]) -> Ir {
    let mut all = FeatureSet::default();
    for &feature in CONTROL.iter().chain(without) {
        all.insert(feature);
    }
    generate(&Config {
        seed,
        instructions: 60,
        max_elements: 16,
        without: all,
        ops: ops.to_vec(),
        ..Config::default()
    })
    .ir
}

/// A program of one block in which what is written shows: instructions that keep what they read,
/// every location filled with numbers of its own before and saved in the end; and how many instructions
/// fill.
fn telling(seed: u64) -> (Ir, u32) {
    let without = [
        Feature::ClobberedWrite,
        Feature::ConstantOperand,
        Feature::DeadStore,
        Feature::IdentityOp,
        Feature::RedundantCopy,
        Feature::RedundantLoad,
        Feature::RedundantMemset,
    ];
    let ops = [
        OpCode::DmaCopy,
        OpCode::GenericCopy,
        OpCode::Load,
        OpCode::Save,
        OpCode::TensorCopy,
        OpCode::Transpose,
    ];
    let text = print(&straight(seed, &without, &ops), PrintOptions::default());
    let (mut allocs, mut fills, mut saves) = (String::new(), String::new(), String::new());
    for (number, line) in text.lines().enumerate() {
        let Some((name, rest)) = line.trim().split_once(" = alloc ") else {
            continue;
        };
        let (space, ty) = rest.split_once('<').unwrap();
        if !rest.contains("kind = ") {
            let ty = ty.split_once('>').unwrap().0;
            allocs += &format!("%fresh{number} = alloc dram<{ty}> {{kind = input}}\n");
            allocs += &format!("%seen{number} = alloc dram<{ty}> {{kind = output}}\n");
            let (fill, save) = match space {
                "sbuf" => ("load", "save"),
                _ => ("dma_copy", "dma_copy"),
            };
            fills += &format!("{fill} {name} <- %fresh{number}\n");
            saves += &format!("{save} %seen{number} <- {name}\n");
        }
    }
    let last_alloc = text.rfind(" = alloc ").unwrap();
    let behind_allocs = last_alloc + text[last_alloc..].find('\n').unwrap() + 1;
    let (head, body) = text.split_at(behind_allocs);
    let (body, end) = body.split_at(body.rfind("\n  }\n}").unwrap());
    let all = format!("{head}{allocs}{fills}{body}\n{saves}{end}");
    (read(&all), fills.lines().count() as u32)
}

pub(crate) fn read(text: &str) -> Ir {
    bir_dialect::read(text, Level::Off).unwrap()
}

pub(crate) fn function(ir: &Ir) -> Op {
    let functions: Vec<Op> = (ir.walk().ops())
        .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .collect();
    assert_eq!(functions.len(), 1);
    functions[0]
}

/// Whom each instruction directly depends on.
fn before(graph: &Graph) -> Vec<Vec<u32>> {
    (0..graph.ops().len() as u32)
        .map(|number| {
            let mut all: Vec<u32> = (graph.edges(number).iter())
                .flat_map(|edge| graph.expand(edge.source()))
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        })
        .collect()
}

/// A random order of the numbers that keeps the dependences.
pub(crate) fn random_order(before: &[Vec<u32>], rng: &mut Rng) -> Vec<u32> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut behind: Vec<Vec<u32>> = vec![Vec::new(); before.len()];
    for (to, list) in (0u32..).zip(before) {
        for &from in list {
            behind[from as usize].push(to);
        }
    }
    let mut ready: Vec<u32> = (0u32..)
        .zip(&waiting)
        .filter(|(_, count)| **count == 0)
        .map(|(number, _)| number)
        .collect();
    let mut order = Vec::with_capacity(before.len());
    while !ready.is_empty() {
        let number = ready.swap_remove(rng.below(ready.len()));
        order.push(number);
        for &to in &behind[number as usize] {
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                ready.push(to);
            }
        }
    }
    assert_eq!(order.len(), before.len(), "dependences are no cycle");
    order
}

/// An order that keeps all dependences but the one of `late` on `from`, which comes behind it:
/// whatever does not need `late` comes first where `early`, else as late as it can.
pub(crate) fn violating_order(
    before: &[Vec<u32>],
    from: u32,
    late: u32,
    early: bool,
) -> Option<Vec<u32>> {
    let direct = |number: u32| {
        let list = &before[number as usize];
        list.iter()
            .copied()
            .filter(move |&other| (number, other) != (late, from))
    };
    let mut needed = vec![false; before.len()];
    needed[late as usize] = true;
    for number in (0..=late).rev() {
        if needed[number as usize] {
            direct(number).for_each(|other| needed[other as usize] = true);
        }
    }
    if needed[from as usize] {
        return None;
    }
    // Whoever needs `from` cannot come before `late` then.
    let mut follows = vec![false; before.len()];
    follows[from as usize] = true;
    for number in 0..before.len() as u32 {
        follows[number as usize] |= direct(number).any(|other| follows[other as usize]);
    }
    let all = 0..before.len() as u32;
    let first = |number: &u32| match early {
        true => !follows[*number as usize] && *number <= late || needed[*number as usize],
        false => needed[*number as usize],
    };
    let (mut order, rest): (Vec<u32>, Vec<u32>) = all.partition(first);
    order.extend(rest);
    Some(order)
}

/// The program with its instructions in another order.
pub(crate) fn reordered(ir: &Ir, graph: &Graph, order: &[u32]) -> Ir {
    let mut ir = ir.clone();
    let ops = graph.ops();
    let block = ir.block(ops[0]).expect("an instruction stands in a block");
    for &number in order {
        ir.move_op(ops[number as usize], Cursor::End(block));
    }
    let end = (ir.block_ops(block)).find(|&op| OpCode::of(&ir, op) == Some(OpCode::Return));
    if let Some(end) = end {
        ir.move_op(end, Cursor::End(block));
    }
    ir
}

/// A program with loops and branches.
fn branching(seed: u64) -> Ir {
    generate(&Config {
        seed,
        instructions: 60,
        max_elements: 16,
        ..Config::default()
    })
    .ir
}

/// What stands in a block, and on whom of it each depends directly.
struct Body {
    block: Block,
    ops: Vec<Op>,
    before: Vec<Vec<u32>>,
}

/// Keeps what writes the registers that say how often a loop runs on its side of the loop: a loop has
/// no dependences.
fn keep_registers_of_loops(ir: &Ir, body: &mut Body) {
    let writes = |around: Op, register: Value| {
        ir.walk_op(around).any(|op| {
            let operands = ir.operands(op);
            ir.result(op) == Some(register)
                || operands.iter().any(|operand| {
                    let def = OpCode::of(ir, op).map(OpCode::def);
                    let entry = def.and_then(|def| def.operands.get(usize::from(operand.role)));
                    operand.value == register && entry.is_some_and(|e| e.kind == Kind::RegOut)
                })
        })
    };
    for (at, &op) in body.ops.iter().enumerate() {
        if ir.regions(op).is_empty() {
            continue;
        }
        for register in ir.operands(op).iter().map(|operand| operand.value) {
            for (other, &writer) in body.ops.iter().enumerate() {
                if other != at && writes(writer, register) {
                    body.before[at.max(other)].push(at.min(other) as u32);
                }
            }
        }
    }
}

/// The blocks a function's instructions stand in.
fn bodies(ir: &Ir, graph: &Graph) -> Vec<Body> {
    let mut bodies: Vec<Body> = Vec::new();
    let mut at: HashMap<Block, usize> = HashMap::new();
    let mut place: HashMap<Op, u32> = HashMap::new();
    for &op in graph.ops().iter().filter(|&&op| !ir.traits(op).terminator) {
        let block = ir.block(op).expect("an instruction stands in a block");
        let number = *at.entry(block).or_insert(bodies.len());
        if number == bodies.len() {
            let (ops, before) = (Vec::new(), Vec::new());
            bodies.push(Body { block, ops, before });
        }
        place.insert(op, bodies[number].ops.len() as u32);
        bodies[number].ops.push(op);
        bodies[number].before.push(Vec::new());
    }
    // An instruction, and what it stands in.
    let around = |op: Op| std::iter::successors(Some(op), |&op| ir.parent(op));
    for (to, list) in before(graph).into_iter().enumerate() {
        for from in list {
            let (from, to) = (graph.ops()[from as usize], graph.ops()[to]);
            let meeting = around(from).find_map(|a| {
                let b = around(to).find(|&b| ir.block(b) == ir.block(a))?;
                Some((a, b))
            });
            let Some((a, b)) = meeting else { continue };
            if let (Some(&a_place), Some(&b_place)) = (place.get(&a), place.get(&b))
                && a != b
            {
                let block = ir.block(a).expect("it was found there");
                bodies[at[&block]].before[b_place as usize].push(a_place);
            }
        }
    }
    for body in &mut bodies {
        keep_registers_of_loops(ir, body);
    }
    for list in bodies.iter_mut().flat_map(|body| &mut body.before) {
        list.sort_unstable();
        list.dedup();
    }
    bodies
}

#[test]
fn every_order_of_every_block_that_keeps_the_dependences_computes_the_same() {
    let mut rng = Rng(0x0dd7);
    let (mut in_loops, mut in_blocks) = (0, 0);
    for seed in programs(25) {
        let ir = branching(seed);
        let func = function(&ir);
        let graph = Graph::build(&ir, func, Kinds::ALL);
        let bodies = bodies(&ir, &graph);
        let baseline = Baseline::new(&ir, &[seed], Options::default()).unwrap();
        let region = ir.regions(func)[0];
        for _ in 0..20 {
            let mut other = ir.clone();
            for body in &bodies {
                let order = random_order(&body.before, &mut rng);
                let moved = order.iter().zip(0..).filter(|(at, n)| *at != n).count();
                let home = ir.block_region(body.block);
                if home != region {
                    in_loops += moved;
                } else if ir.entry(region) != Some(body.block) {
                    in_blocks += moved;
                }
                let end: Vec<Op> = (ir.block_ops(body.block))
                    .filter(|&op| ir.traits(op).terminator)
                    .collect();
                let order = order.iter().map(|&at| body.ops[at as usize]);
                for op in order.chain(end) {
                    other.move_op(op, Cursor::End(body.block));
                }
            }
            if let Err(mismatch) = baseline.check(&other) {
                panic!(
                    "seed {seed}: {mismatch}\n{}\nin this order:\n{}",
                    print(&ir, PrintOptions::default()),
                    print(&other, PrintOptions::default())
                );
            }
        }
    }
    println!("{in_loops} moved in loops, {in_blocks} behind branches");
    assert!(in_loops > 0 && in_blocks > 0);
}

#[test]
fn every_order_that_keeps_the_dependences_computes_the_same() {
    let mut rng = Rng(0x0dd5);
    let mut moved = 0;
    for seed in programs(25) {
        let ir = straight(seed, &[], &[]);
        let graph = Graph::build(&ir, function(&ir), Kinds::ALL);
        let before = before(&graph);
        let baseline = Baseline::new(&ir, &[seed], Options::default()).unwrap();
        for _ in 0..50 {
            let order = random_order(&before, &mut rng);
            moved += order.iter().zip(0..).filter(|(at, n)| *at != n).count();
            let other = reordered(&ir, &graph, &order);
            if let Err(mismatch) = baseline.check(&other) {
                panic!(
                    "seed {seed}: {mismatch}\n{}\nin this order:\n{}",
                    print(&ir, PrintOptions::default()),
                    print(&other, PrintOptions::default())
                );
            }
        }
    }
    assert!(moved > 0);
}

#[test]
fn without_a_dependence_that_follows_from_no_others_some_order_computes_something_else() {
    let mut rng = Rng(0x0dd6);
    let (mut removed, mut noticed) = (0, 0);
    for seed in programs(60) {
        let (ir, fills) = telling(seed);
        let graph = Graph::build(&ir, function(&ir), Kinds::ALL);
        let graph = reduce(&graph).unwrap().graph;
        let before = before(&graph);
        let baseline = Baseline::new(&ir, &[seed, seed + 1], Options::default()).unwrap();
        // ORDERED states what engines, queues and semaphores keep; one run after the other does not
        // show it.
        let through_memory = |edge: &Edge| edge.kind() != DepKind::Ordered;
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for to in 0..before.len() as u32 {
            for &edge in graph.edges(to).iter().filter(|edge| through_memory(edge)) {
                edges.extend(graph.expand(edge.source()).iter().map(|&from| (from, to)));
            }
        }
        edges.retain(|&(from, _)| from >= fills);
        let (from, late) = edges[rng.below(edges.len())];
        let differs = [false, true].into_iter().any(|early| {
            let order = violating_order(&before, from, late, early)
                .expect("no other dependences lead there");
            baseline.check(&reordered(&ir, &graph, &order)).is_err()
        });
        removed += 1;
        noticed += usize::from(differs);
        if !differs && std::env::var_os("BIR_SHOW").is_some() {
            println!(
                "seed {seed}: {from} -> {late}\n{}",
                print(&ir, PrintOptions::default())
            );
        }
    }
    println!("{noticed} of {removed}");
    assert!(noticed * 10 >= removed * 9, "{noticed} of {removed}");
}
