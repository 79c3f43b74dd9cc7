//! ORDERED edges against what the program says, pair by pair.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::support::{Rng, fuzz, read};
use bir_dialect::analysis::deps::{Graph, Kinds};
use bir_dialect::bir::program::{COL_ID, DepKind};

/// An instruction, and all that orders it.
struct One {
    /// Loop and block, from the function inward.
    path: Vec<(u32, u32)>,
    /// Those that may not run though what is around them does.
    frames: Vec<(u32, u32)>,
    /// The engine or queue.
    stream: &'static str,
    waits: bool,
    is_barrier: bool,
    is_seen_outside: bool,
    /// The outermost loop that keeps its order.
    keeper: Option<u32>,
}

#[derive(Default)]
struct Program {
    text: String,
    all: Vec<One>,
    loops: u32,
    left: u64,
}

/// Where the next instruction stands.
#[derive(Clone, Default)]
struct Here {
    path: Vec<(u32, u32)>,
    frames: Vec<(u32, u32)>,
    keeper: Option<u32>,
}

impl Program {
    fn new(rng: &mut Rng, most: u64) -> Program {
        let mut program = Program {
            left: 1 + rng.below(most),
            ..Program::default()
        };
        program.text +=
            "bir.module @m {\nbir.func @f {\n%x = alloc dram<4x64xf32> {kind = input}\n";
        program.text += "%n = alloc dram<1x1xi32> {kind = input}\n%t = alloc sbuf<4x64xf32>\n";
        program.text += "%r = register_load <- %n\n";
        program.region(rng, &Here::default(), 0, true);
        program.text += "}\n}\n";
        program
    }

    /// The blocks of a region.
    fn region(&mut self, rng: &mut Rng, around: &Here, id: u32, is_certain: bool) {
        let has_several = rng.below(3) == 0;
        let mut block = |program: &mut Program, number: u32| {
            let mut here = around.clone();
            here.path.push((id, number));
            if has_several || !is_certain {
                here.frames.push((id, number));
            }
            program.block(rng, &here);
        };
        block(self, 0);
        if !has_several {
            return;
        }
        let branches = |name: &str| format!("^{name}{id}");
        let (a, b, c) = (branches("a"), branches("b"), branches("c"));
        let _ = writeln!(self.text, "cond_br %r, {a}, {b}\n{a}:");
        block(self, 1);
        let _ = writeln!(self.text, "br {c}\n{b}:");
        block(self, 2);
        let _ = writeln!(self.text, "br {c}\n{c}:");
        block(self, 3);
    }

    fn block(&mut self, rng: &mut Rng, here: &Here) {
        for _ in 0..rng.below(6) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            if here.path.len() < 4 && rng.below(4) == 0 {
                self.inner(rng, here);
            } else {
                self.instruction(rng, here);
            }
        }
    }

    fn inner(&mut self, rng: &mut Rng, here: &Here) {
        self.loops += 1;
        let id = self.loops;
        let (head, is_certain) = match rng.below(5) {
            0 => ("while %r".to_owned(), false),
            1 => (format!("loop %i{id} = 0 to %r"), false),
            2 => (format!("loop %i{id} = 3 to 3"), false),
            _ => (format!("loop %i{id} = 0 to 2"), true),
        };
        let keeps = rng.below(6) == 0 && !head.starts_with("while");
        self.text += &head;
        self.text += if keeps { " {no_reorder} {\n" } else { " {\n" };
        let mut around = here.clone();
        if keeps && around.keeper.is_none() {
            around.keeper = Some(id);
        }
        self.region(rng, &around, id, is_certain);
        self.text += "}\n";
    }

    fn instruction(&mut self, rng: &mut Rng, here: &Here) {
        let id = self.all.len();
        let mut one = One {
            path: here.path.clone(),
            frames: here.frames.clone(),
            stream: "",
            waits: false,
            is_barrier: false,
            is_seen_outside: false,
            keeper: here.keeper,
        };
        let (sync, waits) = match rng.below(6) {
            0 => (", wait = [1 >= 0]", true),
            1 => (", signal = [2 += 16]", true),
            _ => ("", false),
        };
        let line = match rng.below(9) {
            0 => {
                one.is_barrier = true;
                ["drain", "all_engine_barrier"][rng.below(2) as usize].to_owned()
                    + &format!(" {{id = {id}}}")
            }
            1 => {
                (one.is_seen_outside, one.stream) = (true, "sp");
                format!("notify {{engine = sp, id = {id}}}")
            }
            2..5 => {
                (one.stream, one.waits) = (["q0", "q1"][rng.below(2) as usize], waits);
                let queue = one.stream;
                format!("load %t <- %x {{queue = \"{queue}\"{sync}, id = {id}}}")
            }
            _ => {
                (one.stream, one.waits) = (["dve", "pool"][rng.below(2) as usize], waits);
                let engine = one.stream;
                format!("memset %t <- 1.0 {{engine = {engine}{sync}, id = {id}}}")
            }
        };
        self.text += &line;
        self.text.push('\n');
        self.all.push(one);
    }

    /// Whether one must stay behind an earlier one.
    fn must_follow(&self, from: usize, to: usize) -> bool {
        let (a, b) = (&self.all[from], &self.all[to]);
        let apart = a.path.iter().zip(&b.path).find(|(a, b)| a != b);
        if apart.is_some_and(|(a, b)| a.0 == b.0) {
            return false; // in two blocks of one region
        }
        a.is_barrier
            || b.is_barrier
            || a.stream == b.stream && (a.waits || b.waits)
            || a.is_seen_outside && b.is_seen_outside
            || a.keeper.is_some() && a.keeper == b.keeper
    }

    /// Whether an instruction runs whenever another does.
    fn runs_with(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.all[one].frames, &self.all[other].frames);
        other.starts_with(one)
    }

    /// Whether a path of edges leads there whose instructions all run where both ends do.
    fn is_implied(&self, edges: &BTreeSet<(usize, usize)>, from: usize, to: usize) -> bool {
        let mut reached = vec![false; self.all.len()];
        reached[from] = true;
        for at in from..to {
            if reached[at] && (at == from || self.runs_with(at, from) || self.runs_with(at, to)) {
                for &(_, next) in edges.range((at, 0)..(at + 1, 0)) {
                    reached[next] = true;
                }
            }
        }
        reached[to]
    }
}

#[test]
fn the_program_orders_what_it_says_and_nothing_else() {
    let mut rng = Rng(0x5eed_0011);
    let mut pairs = 0;
    for round in 0..fuzz(1500) {
        let program = Program::new(&mut rng, 30);
        let (ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::of(&[DepKind::Ordered]));
        let id = |at: u32| ir.int_cell(COL_ID, graph.ops()[at as usize]);
        let mut edges = BTreeSet::new();
        for at in 0..graph.ops().len() as u32 {
            let Some(to) = id(at) else { continue };
            for edge in graph.edges(at) {
                let from = graph.expand(edge.source());
                edges.extend(
                    from.into_iter()
                        .filter_map(|from| Some((id(from)? as usize, to as usize))),
                );
            }
        }
        for &(from, to) in &edges {
            assert!(
                from < to && program.must_follow(from, to),
                "round {round}: nothing orders {from} before {to}\n{}",
                program.text
            );
        }
        for to in 0..program.all.len() {
            for from in (0..to).filter(|&from| program.must_follow(from, to)) {
                pairs += 1;
                assert!(
                    program.is_implied(&edges, from, to),
                    "round {round}: {to} must follow {from}\n{}",
                    program.text
                );
            }
        }
    }
    assert!(pairs > 10_000, "{pairs}");
}

/// Thousands of blocks, streams and loops that may not run share what was before them.
#[test]
fn order_in_code_that_may_not_run_takes_few_edges() {
    let mut text = String::from("bir.module @m {\nbir.func @f {\n%t = alloc sbuf<4x64xf32>\n");
    text += "%r = register_move <- 1\n";
    let before = 2000;
    text += &"memset %t <- 1.0 {engine = dve}\n".repeat(before);
    let loops = 2000;
    for at in 0..loops {
        let _ = writeln!(
            text,
            "loop %i{at} = 0 to %r {{\ncond_br %r, ^a{at}, ^b{at}\n^a{at}:\ndrain\nbr ^b{at}\n\
             ^b{at}:\nmemset %t <- 1.0 {{engine = dve, wait = [1 >= 0]}}\n}}\nnop"
        );
    }
    text += "}\n}\n";
    let (ir, func) = read(&text);
    let graph = Graph::build(&ir, func, Kinds::of(&[DepKind::Ordered]));
    let size = before + 3 * loops;
    assert!(graph.edge_count() < 12 * size, "{}", graph.edge_count());
    assert!(graph.heap_bytes() < 300 * size, "{}", graph.heap_bytes());
    // The last barrier stands behind everything but the other side of its loop.
    let ops = graph.ops();
    let last = (0..ops.len()).rfind(|&at| ir.name_text(ops[at]) == "bir.drain");
    let edges = graph.edges(last.unwrap() as u32);
    let all: BTreeSet<u32> = edges
        .iter()
        .flat_map(|edge| graph.expand(edge.source()))
        .collect();
    let is_instruction = |at: u32| {
        let name = ir.name_text(ops[at as usize]);
        ["bir.memset", "bir.nop", "bir.drain"].contains(&name)
    };
    let want = (0..last.unwrap() as u32).filter(|&at| is_instruction(at));
    let missing = want.filter(|at| !all.contains(at)).count();
    // Instructions between loops stand for the barriers before them.
    assert!(missing <= loops, "{missing}");
}
