//! What loops carry from one iteration to a later one is what their iterations mean: the instances of
//! a loop's instructions in any order that keeps the dependences within iterations and the carried
//! ones compute the same, and where a carried one that follows from no others is missing, some order
//! does not.
//!
//! A loop is written twice, as one and with its iterations spelled out. Dependences are asked of the
//! loop, and orders are tried on the iterations. A carried dependence at distance `d` holds for all
//! iterations `d` later or more; one at an unknown distance for all later ones. Tested for need are
//! those at exactly the nearest distance: of farther ones only some are.

use bir_dialect::analysis::deps::{Distance, Graph, Kinds, carried};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::{PrintOptions, print};
use bir_sim::Options;
use bir_sim::validate::Baseline;

use crate::replay::{Rng, function, programs, random_order, read, violating_order};

const TRIPS: usize = 4;
/// Tiles that are filled first and saved in the end.
const TILES: usize = 3;
/// Columns of a tile: what the farthest access of the last iteration needs.
const COLUMNS: usize = 12 * TRIPS + 24;

/// Columns of a tile that move with the iteration.
#[derive(Clone, Copy)]
struct Columns {
    tile: usize,
    step: usize,
    from: usize,
    count: usize,
}

impl Columns {
    fn in_loop(self) -> String {
        let Columns {
            tile,
            step,
            from,
            count,
        } = self;
        match step {
            0 => format!("%t{tile}[:, {from}:{}]", from + count),
            _ => format!("%t{tile}[:, {step}*%i + {from} +: {count}]"),
        }
    }

    fn at(self, iteration: usize) -> String {
        let from = self.step * iteration + self.from;
        format!("%t{}[:, {from}:{}]", self.tile, from + self.count)
    }
}

/// Copies of a loop's body, destination first: any columns of any tiles.
fn anything(rng: &mut Rng) -> Vec<[Columns; 2]> {
    let alike = rng.below(2) == 0;
    let columns = |rng: &mut Rng, count: usize| Columns {
        tile: rng.below(TILES),
        step: match alike {
            true => 4,
            false => [0, 4, 8][rng.below(3)],
        },
        from: 4 * rng.below(4),
        count,
    };
    (0..2 + rng.below(4))
        .map(|_| {
            let count = [4, 4, 8][rng.below(3)];
            [columns(rng, count), columns(rng, count)]
        })
        .collect()
}

/// Copies that show what was overwritten when: a tile that nobody writes goes into one whose accesses
/// move alike, and what stands there is kept for each iteration, by whoever wrote it and by others.
fn telling(rng: &mut Rng) -> Vec<[Columns; 2]> {
    // Copies of columns that move as their sources do would write what is there already.
    let step = [0, 4, 8][rng.below(3)];
    let mut tiles = TILES..;
    let mut kept = |columns: Columns| {
        let tile = tiles.next().unwrap_or(TILES);
        let own = Columns {
            tile,
            step: columns.count,
            from: 0,
            ..columns
        };
        [own, columns]
    };
    let mut copies = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let columns = |rng: &mut Rng, tile: usize, step: usize, count: usize| Columns {
            tile,
            step,
            from: 4 * rng.below(4),
            count,
        };
        let count = [4, 4, 8][rng.below(3)];
        if rng.below(3) > 0 {
            copies.push(kept(columns(rng, 1, step, count)));
        }
        let written = columns(rng, 1, step, count);
        copies.push([written, columns(rng, 0, 12, count)]);
        copies.push(kept(written));
    }
    copies
}

/// A loop of copies, and the same with its iterations one behind the other.
struct Twice {
    whole: Ir,
    spelled: Ir,
    copies: usize,
    tiles: usize,
}

fn twice(copies: &[[Columns; 2]]) -> Twice {
    let all = copies.iter().flatten().map(|columns| columns.tile + 1);
    let tiles = all.max().unwrap_or(0).max(TILES);
    let (mut allocs, mut fills, mut saves) = (String::new(), String::new(), String::new());
    for tile in 0..tiles {
        for (name, kind) in [("x", "input"), ("y", "output")] {
            allocs += &format!("%{name}{tile} = alloc dram<4x{COLUMNS}xf32> {{kind = {kind}}}\n");
        }
        allocs += &format!("%t{tile} = alloc sbuf<4x{COLUMNS}xf32>\n");
        fills += &format!("load %t{tile} <- %x{tile}\n");
        saves += &format!("save %y{tile} <- %t{tile}\n");
    }
    let mut body = format!("loop %i = 0 to {TRIPS} {{\n");
    for [to, from] in copies {
        body += &format!("tensor_copy {} <- {}\n", to.in_loop(), from.in_loop());
    }
    body += "}\n";
    let mut spelled = String::new();
    for iteration in 0..TRIPS {
        for [to, from] in copies {
            let (to, from) = (to.at(iteration), from.at(iteration));
            spelled += &format!("tensor_copy {to} <- {from}\n");
        }
    }
    let of = |body: &str| {
        read(&format!(
            "bir.module @m {{\nbir.func @main {{\n{allocs}{fills}{body}{saves}}}\n}}\n"
        ))
    };
    Twice {
        whole: of(&body),
        spelled: of(&spelled),
        copies: copies.len(),
        tiles,
    }
}

/// Whom each instance depends on directly, and which of these are carried by the nearest distance.
fn instances(of: &Twice) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    let func = function(&of.whole);
    let graph = Graph::build(&of.whole, func, Kinds::ALL);
    let copies = of.copies;
    // The loop itself stands behind the loads.
    let first = of.tiles + 1;
    let count = of.tiles + TRIPS * copies + of.tiles;
    // The instances of an instruction: one, or one per iteration.
    let at = |number: u32, iteration: usize| {
        let number = number as usize;
        match number {
            _ if number < of.tiles => number,
            _ if number < first + copies => of.tiles + iteration * copies + number - first,
            _ => of.tiles + TRIPS * copies + number - first - copies,
        }
    };
    let is_inside = |number: u32| (first..first + copies).contains(&(number as usize));
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); count];
    for to in 0..graph.ops().len() as u32 {
        for edge in graph.edges(to) {
            for from in graph.expand(edge.source()) {
                let ends = [from as usize, to as usize];
                assert!(!ends.contains(&of.tiles), "a loop has no dependences");
                for iteration in 0..TRIPS {
                    let (from, to) = (at(from, iteration), at(to, iteration));
                    before[to].push(from as u32);
                }
            }
        }
    }
    let around =
        (of.whole.walk_op(func)).find(|&op| OpCode::of(&of.whole, op) == Some(OpCode::Loop));
    let (all, complete) = carried(&of.whole, func, around.unwrap(), 1000);
    assert!(complete);
    let number = |op: Op| (graph.ops().iter().position(|&other| other == op)).unwrap() as u32;
    let mut nearest = Vec::new();
    for one in &all {
        let (from, to) = (number(one.from), number(one.to));
        assert!(is_inside(from) && is_inside(to));
        let distance = match one.distance {
            Distance::Exactly(by) => by as usize,
            Distance::Any => 1,
        };
        for earlier in 0..TRIPS {
            for later in earlier + distance..TRIPS {
                let (from, to) = (at(from, earlier) as u32, at(to, later) as u32);
                before[to as usize].push(from);
                if later == earlier + distance && one.distance != Distance::Any {
                    nearest.push((from, to));
                }
            }
        }
    }
    for list in &mut before {
        list.sort_unstable();
        list.dedup();
    }
    nearest.sort_unstable();
    nearest.dedup();
    (before, nearest)
}

/// The instructions of the spelled program in another order.
fn reordered(of: &Twice, order: &[u32]) -> Ir {
    let graph = Graph::build(&of.spelled, function(&of.spelled), Kinds::ALL);
    assert_eq!(graph.ops().len(), order.len());
    crate::replay::reordered(&of.spelled, &graph, order)
}

fn shown(of: &Twice, order: &[u32]) -> String {
    let text = |ir: &Ir| print(ir, PrintOptions::default());
    format!(
        "{}in this order:\n{}",
        text(&of.whole),
        text(&reordered(of, order))
    )
}

#[test]
fn iterations_in_every_order_that_keeps_what_they_carry_compute_the_same() {
    let mut rng = Rng(0x0dd8);
    let mut mixed = 0;
    for seed in programs(60) {
        let of = twice(&anything(&mut rng));
        let (before, _) = instances(&of);
        let baseline = Baseline::new(&of.spelled, &[seed], Options::default()).unwrap();
        for _ in 0..20 {
            let order = random_order(&before, &mut rng);
            let body = of.tiles as u32..(before.len() - of.tiles) as u32;
            let iterations = (order.iter().filter(|at| body.contains(at)))
                .map(|at| (at - of.tiles as u32) / of.copies as u32);
            mixed += usize::from(!iterations.is_sorted());
            if let Err(mismatch) = baseline.check(&reordered(&of, &order)) {
                panic!("seed {seed}: {mismatch}\n{}", shown(&of, &order));
            }
        }
    }
    println!("{mixed} orders mix iterations");
    assert!(mixed > 0);
}

#[test]
fn without_what_a_loop_carries_some_order_of_its_iterations_computes_something_else() {
    let mut rng = Rng(0x0dd9);
    let (mut removed, mut noticed) = (0, 0);
    for seed in programs(200) {
        let of = twice(&telling(&mut rng));
        let (before, mut nearest) = instances(&of);
        // Everything an instance depends on, as bits; numbers rise along the dependences.
        let mut behind = vec![0u64; before.len()];
        for to in 0..before.len() {
            for &from in &before[to] {
                behind[to] |= behind[from as usize] | 1 << from;
            }
        }
        nearest.retain(|&(from, to)| {
            let mut others = before[to as usize].iter().filter(|&&other| other != from);
            !others.any(|&other| behind[other as usize] >> from & 1 != 0)
        });
        if nearest.is_empty() {
            continue;
        }
        let (from, late) = nearest[rng.below(nearest.len())];
        let baseline = Baseline::new(&of.spelled, &[seed, seed + 1], Options::default()).unwrap();
        let differs = [false, true].into_iter().any(|early| {
            let order = violating_order(&before, from, late, early)
                .expect("no other dependences lead there");
            baseline.check(&reordered(&of, &order)).is_err()
        });
        removed += 1;
        noticed += usize::from(differs);
        if !differs && std::env::var_os("BIR_SHOW").is_some() {
            let order = violating_order(&before, from, late, false).unwrap();
            println!("seed {seed}: {from} -> {late}\n{}", shown(&of, &order));
        }
    }
    println!("{noticed} of {removed}");
    assert!(removed > 50, "{removed}");
    assert!(noticed * 10 >= removed * 9, "{noticed} of {removed}");
}
