//! The transitive reduction against its definition, and what it costs.

use crate::support::{Rng, expanded, function, fuzz, pairs_of, random_program, read};
use bir_dialect::analysis::deps::{Graph, Kinds, attached, reduce, reduce_in, reduce_within};
use bir_dialect::bir::program::COL_ID;
use bir_dialect::bir::program::DepKind::{Anti, Flow, Output};
use bir_dialect::ir::Ir;

/// Who depends on whom, directly or not, as bits.
fn closure(count: u32, pairs: &[(u32, u32)]) -> Vec<u128> {
    let mut behind = vec![0u128; count as usize];
    // Edges lead down the text, so everything above is complete.
    for to in 0..count {
        for &(from, _) in pairs.iter().filter(|pair| pair.1 == to) {
            behind[to as usize] |= behind[from as usize] | 1 << from;
        }
    }
    behind
}

/// Steps of searching and trees: all by search, all by chains, both in turn, and chains for which
/// there is no room.
const WAYS: [(u64, usize); 4] = [(u64::MAX, 0), (0, usize::MAX), (40, usize::MAX), (10, 0)];

/// Reduces a graph of at most 128 instructions in every way, and compares with the definition.
fn check(ir: &Ir, graph: &Graph, what: &dyn Fn() -> String) {
    let all = expanded(ir, graph);
    let before = pairs_of(&all);
    let count = graph.ops().len() as u32;
    let behind = closure(count, &before);
    // In an acyclic graph a pair stays exactly if nobody in between leads to it.
    let stays = |&&(from, to): &&(u32, u32)| {
        let mut others = before.iter().filter(|pair| pair.1 == to && pair.0 != from);
        !others.any(|pair| behind[pair.0 as usize] >> from & 1 != 0)
    };
    let want: Vec<(u32, u32)> = before.iter().filter(stays).copied().collect();
    for (steps, trees) in WAYS {
        let reduced = reduce_within(graph, steps, trees).unwrap();
        let left = expanded(ir, &reduced.graph);
        let after = pairs_of(&left);
        assert_eq!(left.len(), after.len(), "a pair of two kinds, {}", what());
        assert_eq!(after, want, "{steps} {trees} {}", what());
        assert_eq!(closure(count, &after), behind, "{}", what());
        for &(kind, from, to) in &left {
            let first = all.iter().find(|edge| (edge.1, edge.2) == (from, to));
            assert_eq!(first.map(|edge| edge.0), Some(kind), "{}", what());
        }
        let changed = left != all;
        assert!(!changed || reduced.dropped > 0, "{}", what());
    }
}

#[test]
fn the_reduction_is_the_smallest_set_with_the_same_paths() {
    let mut rng = Rng(0x5eed_0004);
    for round in 0..fuzz(500) {
        let program = random_program(&mut rng, 60, false, false);
        let (ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::of(&[Flow, Anti, Output]));
        check(&ir, &graph, &|| format!("round {round}\n{}", program.text));
    }
}

#[test]
fn reduction_of_random_graphs_with_sets() {
    let mut rng = Rng(0x5eed_0005);
    for round in 0..fuzz(800) {
        // Programs of nothing but ids, dependences and sets.
        let count = 2 + rng.below(50) as u32;
        let mut text = String::from("bir.module @m {\nbir.func @f {\n");
        let mut sets: Vec<u32> = Vec::new();
        let mut lines = String::new();
        for at in 0..count {
            let mut deps: Vec<String> = Vec::new();
            for _ in 0..rng.below(4) {
                let kind = ["flow", "anti", "output", "ordered"][rng.below(4) as usize];
                if at > 0 && rng.below(3) > 0 {
                    deps.push(format!("{kind} {}", rng.below(u64::from(at))));
                } else {
                    let fit: Vec<usize> = (0..sets.len()).filter(|&s| sets[s] < at).collect();
                    if let Some(&set) = fit.get(rng.below(fit.len().max(1) as u64) as usize) {
                        deps.push(format!("{kind} #{set}"));
                    }
                }
            }
            text += &format!("nop {{id = {at}, deps = [{}]}}\n", deps.join(", "));
            if at > 1 && rng.below(4) == 0 {
                let mut members = Vec::new();
                for _ in 0..1 + rng.below(20) {
                    let fit: Vec<usize> = (0..sets.len()).filter(|&s| sets[s] <= at).collect();
                    if !fit.is_empty() && rng.below(4) == 0 {
                        members.push(format!("#{}", fit[rng.below(fit.len() as u64) as usize]));
                    } else {
                        members.push(rng.below(u64::from(at) + 1).to_string());
                    }
                }
                lines += &format!("depset #{} = [{}]\n", sets.len(), members.join(", "));
                sets.push(at);
            }
        }
        text += &lines;
        text += "}\n}\n";
        let (ir, func) = read(&text);
        check(&ir, &attached(&ir, func), &|| {
            format!("round {round}\n{text}")
        });
    }
}

#[test]
fn a_cycle_is_named_and_not_reduced() {
    let (ir, func) =
        function("nop {id = 0, deps = [flow 2]}\nnop {id = 1}\nnop {id = 2, deps = [flow 0]}");
    let graph = attached(&ir, func);
    let on = reduce(&graph).unwrap_err();
    assert!(graph.ops().iter().position(|&op| op == on).unwrap() != 1);
    assert_eq!(graph.cycle(0), [0, 2]);
    assert!(graph.cycle(1).is_empty());
    // Through a set, in the order of who depends on whom.
    let (ir, func) = function(
        "nop {id = 0, deps = [flow #1]}\nnop {id = 1, deps = [flow 0]}\n\
         nop {id = 2, deps = [anti 1]}\nnop {id = 3}\ndepset #1 = [2, 3]",
    );
    assert_eq!(attached(&ir, func).cycle(0), [0, 1, 2]);
}

/// How a location is written in slices, and read.
#[derive(Clone, Copy, Debug)]
enum Slices {
    /// All slices, then readers of one each, over and over, by one temporary.
    Narrow,
    /// All slices, then readers of everything.
    Wide,
    /// The same of two such locations.
    WideTwice,
    /// A reader of all there is behind every slice.
    Prefixes,
    /// The same, each keeping what it read.
    PrefixesKept,
    /// Two temporaries in turn, whose readers meet every few slices.
    Lanes,
}

const SHAPES: [Slices; 6] = [
    Slices::Narrow,
    Slices::Wide,
    Slices::WideTwice,
    Slices::Prefixes,
    Slices::PrefixesKept,
    Slices::Lanes,
];

fn sliced(shape: Slices, count: usize) -> String {
    let mut body = format!("%a = alloc sbuf<1x{count}xf32>\n%b = alloc sbuf<1x{count}xf32>\n");
    body += &format!("%o = alloc dram<1x{count}xf32>\n%k = alloc sbuf<1x{count}xf32>\n");
    body += "%t = alloc sbuf<1x1xf32>\n%u = alloc sbuf<1x1xf32>\n";
    body += &format!("%w = alloc sbuf<1x{count}xf32>\n%v = alloc sbuf<1x{count}xf32>\n");
    let write = |to: &str, at: usize| format!("memset %{to}[:, {at}:{}] <- 0.0\n", at + 1);
    for at in 0..count {
        match shape {
            Slices::Prefixes | Slices::PrefixesKept => {
                let to = at + 1;
                body += &write("a", at);
                body += &match shape {
                    Slices::Prefixes => {
                        format!("tensor_copy %w[:, 0:{to}] <- %a[:, 0:{to}]\n")
                    }
                    _ => format!(
                        "tensor_reduce add %k[:, {at}:{to}] <- %a[:, 0:{to}] {{axes = [1]}}\n"
                    ),
                };
            }
            Slices::WideTwice => body += &(write("a", at) + &write("b", at)),
            _ => body += &write("a", at),
        }
    }
    let readers = match shape {
        Slices::Narrow => 2 * count,
        _ => count,
    };
    for at in 0..readers {
        body += &match shape {
            Slices::Narrow => {
                // A slice is read again after a while, in another order.
                let from = at * (7919 + at / count * 2) % count;
                format!(
                    "tensor_copy %t <- %a[:, {from}:{}]\nsave %o[:, 0:1] <- %t\n",
                    from + 1
                )
            }
            Slices::Wide => String::from("tensor_copy %w <- %a\nsave %o <- %w\n"),
            Slices::WideTwice => String::from("tensor_tensor add %w <- %a, %b\nsave %o <- %w\n"),
            Slices::Prefixes | Slices::PrefixesKept => String::new(),
            Slices::Lanes => {
                let (lane, from) = (["t", "u"][at % 2], at * 7919 % count);
                let mut lines = format!(
                    "tensor_tensor add %{lane} <- %{lane}, %a[:, {from}:{}]\n",
                    from + 1
                );
                if at % 5 == 0 {
                    lines += "tensor_tensor add %t <- %t, %u\n";
                }
                if at % 7 == 0 {
                    lines += "tensor_tensor add %u <- %t, %u\n";
                }
                lines
            }
        };
    }
    body
}

#[test]
fn locations_in_slices_are_reduced_exactly() {
    for shape in SHAPES {
        for count in [3, 9, 10, 17, 20] {
            let (ir, func) = function(&sliced(shape, count));
            let graph = Graph::build(&ir, func, Kinds::of(&[Flow, Anti, Output]));
            assert!(graph.ops().len() <= 128, "{shape:?}: {}", graph.ops().len());
            check(&ir, &graph, &|| format!("{shape:?} {count}"));
        }
    }
}

/// What a reduction costs is counted in nodes looked at, so that no clock is asked.
#[test]
fn the_work_grows_like_the_graph() {
    for shape in SHAPES {
        let cost = |count: usize| {
            let (ir, func) = function(&sliced(shape, count));
            let graph = Graph::build(&ir, func, Kinds::of(&[Flow, Anti, Output]));
            let size = (graph.ops().len() + graph.edge_count()) as f64;
            let [both, chains] = [
                reduce(&graph).unwrap(),
                reduce_within(&graph, 0, usize::MAX).unwrap(),
            ];
            println!(
                "{shape:?} {count}: {} instructions, {} edges, {} sets, {} steps, {} by chains alone",
                graph.ops().len(),
                graph.edge_count(),
                graph.set_count(),
                both.steps,
                chains.steps
            );
            let made = both.graph.heap_bytes() / 4;
            [
                (both.steps as f64 + made as f64) / size,
                chains.steps as f64 / size,
            ]
        };
        let (few, many) = (cost(1_500), cost(15_000));
        // An exponent of 1.10, and the logarithm that trees over chains, and sets of prefixes, come with.
        let growth = 1.26 * (15_000f64.ln() / 1_500f64.ln());
        assert!(many[0] < few[0] * growth, "{shape:?}: {few:?} {many:?}");
        assert!(
            many.iter().all(|&steps| steps < 30.0),
            "{shape:?}: {many:?}"
        );
    }
}

/// Instructions in loops and branches, each with dependences on some before it.
struct Parts<'a> {
    rng: &'a mut Rng,
    text: String,
    sets: String,
    set_count: u64,
    /// Per instruction, what decides over it.
    guards: Vec<Vec<u32>>,
    guard_count: u32,
    loop_count: u32,
}

impl Parts<'_> {
    fn instruction(&mut self, around: &[u32]) {
        let id = self.guards.len() as u64;
        let mut deps = Vec::new();
        for _ in 0..self.rng.below(4) {
            if id > 0 {
                let kind = ["flow", "anti", "ordered"][self.rng.below(3) as usize];
                deps.push(format!("{kind} {}", self.rng.below(id)));
            }
        }
        if id > 3 && self.rng.below(4) == 0 {
            let members: Vec<u64> = (0..id).filter(|_| self.rng.below(2) == 0).collect();
            if !members.is_empty() {
                self.set_count += 1;
                self.sets += &format!("depset #{} = {members:?}\n", self.set_count);
                deps.push(format!("ordered #{}", self.set_count));
            }
        }
        self.text += &format!("nop {{id = {id}, deps = [{}]}}\n", deps.join(", "));
        self.guards.push(around.to_vec());
    }

    fn items(&mut self, around: &[u32], depth: u32) {
        for _ in 0..1 + self.rng.below(4) {
            if depth > 2 || self.guards.len() > 35 || self.rng.below(3) > 0 {
                self.instruction(around);
                continue;
            }
            let mut inside = around.to_vec();
            let bound = match self.rng.below(2) {
                0 => "2",
                _ => {
                    inside.push(self.guard_count);
                    self.guard_count += 1;
                    "%r"
                }
            };
            self.loop_count += 1;
            self.text += &format!("loop %i{} = 0 to {bound} {{\n", self.loop_count);
            self.items(&inside, depth + 1);
            self.text += "}\n";
        }
    }
}

#[test]
fn paths_lead_only_through_what_is_executed() {
    let mut rng = Rng(0x5eed_0007);
    let (mut dropped, mut broken) = (0, 0);
    for round in 0..fuzz(400) {
        let mut parts = Parts {
            rng: &mut rng,
            text: String::new(),
            sets: String::new(),
            set_count: 0,
            guards: Vec::new(),
            guard_count: 0,
            loop_count: 0,
        };
        parts.items(&[], 0);
        let entry = std::mem::take(&mut parts.text);
        let branch = parts.guard_count;
        parts.guard_count += 2;
        parts.items(&[branch], 2);
        let taken = std::mem::take(&mut parts.text);
        parts.items(&[branch + 1], 1);
        let text = format!(
            "bir.module @m {{\nbir.func @f {{\n%r = register_move <- 1\n{entry}{}cond_br %r, ^a, ^b\n\
             ^a:\n{taken}br ^b\n^b:\n{}}}\n}}\n",
            parts.sets, parts.text
        );
        let (ir, func) = read(&text);
        let graph = attached(&ir, func);
        let all = pairs_of(&expanded(&ir, &graph));
        let reduced = reduce_in(&ir, func, &graph).unwrap();
        dropped += reduced.dropped;
        let left = pairs_of(&expanded(&ir, &reduced.graph));
        let blind = pairs_of(&expanded(&ir, &reduce(&graph).unwrap().graph));
        // The register comes first, the terminators last or between.
        let guards = guards_of(&ir, &graph, &parts.guards);
        let count = guards.len() as u32;
        for &(a, b) in &left {
            // Where both are executed, so is all that stands in what is around one of them.
            let around = |at: u32| {
                let of = |end: u32| guards[end as usize].starts_with(&guards[at as usize]);
                of(a) || of(b)
            };
            let along = all.iter().copied().filter(|&(from, to)| {
                (from, to) != (a, b) && (from == a || around(from)) && (to == b || around(to))
            });
            let paths = closure(count, &along.collect::<Vec<_>>());
            assert!(
                paths[b as usize] >> a & 1 == 0,
                "round {round}: {a} -> {b} follows from others\n{text}"
            );
        }
        for taken in 0..1u64 << parts.guard_count.min(10) {
            let runs = |at: u32| {
                guards[at as usize]
                    .iter()
                    .all(|guard| taken >> guard & 1 != 0)
            };
            let executed = |pairs: &[(u32, u32)]| {
                let both = pairs.iter().copied().filter(|&(a, b)| runs(a) && runs(b));
                closure(count, &both.collect::<Vec<_>>())
            };
            let want = executed(&all);
            assert_eq!(executed(&left), want, "round {round}, {taken:b}\n{text}");
            broken += u32::from(executed(&blind) != want);
        }
    }
    assert!(dropped > 0 && broken > 0, "{dropped} {broken}");
}

/// What decides over each instruction of a graph, counted as [`expanded`] counts them.
fn guards_of(ir: &Ir, graph: &Graph, of_id: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let plain = graph.ops().iter().filter(|&&op| ir.regions(op).is_empty());
    let id = |&op: &_| ir.int_cell(COL_ID, op);
    let guards = plain.map(|op| id(op).map_or_else(Vec::new, |id| of_id[id as usize].clone()));
    guards.collect()
}
