//! Erasing with hand-over against a brute force: who depends on whom, and who happens before whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Rng, function, fuzz, read};
use bir_dialect::analysis::deps::{Erased, attached, erase};
use bir_dialect::analysis::sync::{Outcome, Stream, play};
use bir_dialect::bir::attrs::Sem;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_ID, DepKind, names};
use bir_dialect::bir::space::Target;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{PrintOptions, print};

/// The instructions whose `id` is one of these.
fn with_ids(ir: &Ir, func: Op, ids: &[u32]) -> Vec<Op> {
    let is_set = |op: &Op| OpCode::of(ir, *op) == Some(OpCode::Depset);
    let of = |op: &Op| ir.int_cell(COL_ID, *op).is_some_and(|id| ids.contains(&id));
    ir.walk_op(func)
        .filter(|op| of(op) && !is_set(op))
        .collect()
}

/// The body after erasing instructions by their numbers, one statement per line.
fn erased(body: &str, ids: &[u32]) -> (Vec<String>, Erased) {
    let (mut ir, func) = function(body);
    let dead = with_ids(&ir, func, ids);
    let done = erase(&mut ir, func, &dead);
    let text = print(&ir, PrintOptions::default());
    read(&text);
    let lines = text.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with("bir.") && *line != "}" && !line.contains("alloc")
    });
    (lines.map(str::to_owned).collect(), done)
}

#[track_caller]
fn check(body: &str, ids: &[u32], want: &[&str]) {
    assert_eq!(erased(body, ids).0, want, "{body}");
}

#[test]
fn edges_pass_to_those_who_depended_on_the_erased() {
    check(
        "nop {id = 1}\nnop {id = 2, deps = [output 1]}\nnop {id = 3, deps = [output 2]}",
        &[2],
        &["nop {id = 1}", "nop {id = 3, deps = [output 1]}"],
    );
    // A chain of erased ones, and one nobody depends on.
    check(
        "nop {id = 1}\nnop {id = 2, deps = [anti 1]}\nnop {id = 3, deps = [output 2]}\nnop {id = 4, deps = [output 3]}\nnop {id = 5, deps = [flow 4]}",
        &[2, 3, 5],
        &["nop {id = 1}", "nop {id = 4, deps = [anti 1]}"],
    );
}

#[test]
fn kinds_of_what_stands_for_two_edges_are_true() {
    let kinds = [
        ("flow", "anti", "output"),
        ("anti", "output", "anti"),
        ("output", "output", "output"),
        ("flow", "flow", "ordered"),
        ("output", "anti", "ordered"),
        ("ordered", "output", "ordered"),
    ];
    for (first, second, both) in kinds {
        let body = format!(
            "nop {{id = 1}}\nnop {{id = 2, deps = [{first} 1]}}\nnop {{id = 3, deps = [{second} 2]}}"
        );
        let want = format!("nop {{id = 3, deps = [{both} 1]}}");
        check(&body, &[2], &["nop {id = 1}", &want]);
    }
    // Where a reason is known, "the program says so" adds nothing; where both stood there, both stay.
    check(
        "nop {id = 1}\nnop {id = 2, deps = [flow 1]}\nnop {id = 3, deps = [flow 1, flow 2]}\nnop {id = 4, deps = [flow 1, ordered 1]}",
        &[2],
        &[
            "nop {id = 1}",
            "nop {id = 3, deps = [flow 1]}",
            "nop {id = 4, deps = [flow 1, ordered 1]}",
        ],
    );
}

#[test]
fn sets_lose_the_erased_and_take_what_they_depended_on() {
    check(
        "nop {id = 1}\nnop {id = 2, deps = [output 1]}\nnop {id = 3}\nnop {id = 4, deps = [output #1]}\nnop {id = 5, deps = [anti #2]}\ndepset #1 = [2, 3]\ndepset #2 = [4, #1]",
        &[2],
        &[
            "nop {id = 1}",
            "nop {id = 3}",
            "nop {id = 4, deps = [output 1, output 3]}",
            "nop {id = 5, deps = [anti #1, ordered 1]}",
            "depset #1 = [3, 4]",
        ],
    );
    // Nobody depends on a set of erased ones any more.
    check(
        "nop {id = 1}\nnop {id = 2}\nnop {id = 3, deps = [flow #1]}\ndepset #1 = [1, 2]",
        &[1, 2],
        &["nop {id = 3}"],
    );
}

#[test]
fn an_order_of_a_dependence_and_a_semaphore_keeps_what_it_leads_through() {
    // By a dependence to the erased, by a semaphore from it.
    check(
        "nop {id = 0, engine = act}\nnop {engine = pool}\nnop {id = 1, engine = pool, deps = [ordered 0], signal = [4 += 1]}\nnop {engine = pe, wait = [4 >= 1]}",
        &[1],
        &[
            "nop {engine = act, id = 0}",
            "nop {engine = pool}",
            "event_semaphore {engine = pool, signal = [4 += 1], id = 1, deps = [ordered 0]}",
            "nop {engine = pe, wait = [4 >= 1]}",
        ],
    );
    // The other way round.
    check(
        "nop {engine = act, signal = [4 += 1]}\nnop {id = 1, engine = pool, wait = [4 >= 1]}\nnop {engine = pool}\nnop {id = 2, engine = pe, deps = [ordered 1]}",
        &[1],
        &[
            "nop {engine = act, signal = [4 += 1]}",
            "event_semaphore {engine = pool, wait = [4 >= 1], id = 1}",
            "nop {engine = pool}",
            "nop {engine = pe, id = 2, deps = [ordered 1]}",
        ],
    );
    // The engine's own come behind its wait all the same, and what it did before is before its signal.
    check(
        "nop {engine = act, signal = [4 += 1]}\nnop {id = 1, engine = pool, wait = [4 >= 1]}\nnop {id = 2, engine = pool, deps = [ordered 1]}",
        &[1],
        &[
            "nop {engine = act, signal = [4 += 1]}",
            "nop {engine = pool, wait = [4 >= 1], id = 2}",
        ],
    );
    check(
        "nop {id = 0, engine = pool}\nnop {id = 1, engine = pool, deps = [ordered 0], signal = [4 += 1]}\nnop {engine = pe, wait = [4 >= 1]}",
        &[1],
        &[
            "nop {engine = pool, signal = [4 += 1], id = 0}",
            "nop {engine = pe, wait = [4 >= 1]}",
        ],
    );
    // What nobody depends on lets its wait go on.
    check(
        "nop {engine = act, signal = [4 += 1]}\nnop {id = 1, engine = pool, wait = [4 >= 1]}\nnop {engine = pool}",
        &[1],
        &[
            "nop {engine = act, signal = [4 += 1]}",
            "nop {engine = pool, wait = [4 >= 1]}",
        ],
    );
}

#[test]
fn many_signals_of_one_engine_are_taken_in_order() {
    let dead: String = (1..=300)
        .map(|id| format!("nop {{id = {id}, engine = act, signal = [4 += 1, 5 -= 1]}}\n"))
        .collect();
    let all: Vec<u32> = (1..=300).collect();
    let falls = vec!["5 -= 1"; 300].join(", ");
    check(
        &format!("nop {{engine = act}}\n{dead}nop {{engine = act}}"),
        &all,
        &[
            &format!("nop {{engine = act, signal = [4 += 300, {falls}]}}"),
            "nop {engine = act}",
        ],
    );
}

#[test]
fn waits_go_on_and_signals_go_back() {
    // The next instruction of the engine takes the wait; of two for one counter, the later.
    check(
        "nop {engine = pe, signal = [4 += 9]}\nnop {id = 1, engine = act, wait = [4 >= 2]}\nnop {engine = pool}\nnop {engine = act, wait = [4 >= 1, 5 >= 0]}",
        &[1],
        &[
            "nop {engine = pe, signal = [4 += 9]}",
            "nop {engine = pool}",
            "nop {engine = act, wait = [4 >= 2, 5 >= 0]}",
        ],
    );
    // The one before takes the signal.
    check(
        "nop {engine = act, signal = [4 += 1]}\nnop {engine = pool}\nnop {id = 1, engine = act, signal = [4 += 2, 5 := 3 @read]}\nnop {engine = act}",
        &[1],
        &[
            "nop {engine = act, signal = [4 += 3, 5 := 3]}",
            "nop {engine = pool}",
            "nop {engine = act}",
        ],
    );
    // Raised early and raised late are two.
    check(
        "nop {engine = act, signal = [4 += 1 @read]}\nnop {id = 1, engine = act, signal = [4 += 2]}",
        &[1],
        &["nop {engine = act, signal = [4 += 1 @read, 4 += 2]}"],
    );
    // DMA queues are streams of their own.
    let copies = "%x = alloc dram<4x4xf32> {kind = input}\n%t = alloc sbuf<4x4xf32>\n%u = alloc sbuf<4x4xf32>\n%v = alloc sbuf<4x4xf32>\nload %t <- %x {queue = \"a\"}\nload %u <- %x {id = 1, queue = \"b\", signal = [3 += 16]}\nload %v <- %x {queue = \"b\"}";
    check(
        copies,
        &[1],
        &[
            "load %t <- %x {queue = \"a\"}",
            "event_semaphore {queue = \"b\", engine = dma, signal = [3 += 16], id = 1}",
            "load %v <- %x {queue = \"b\"}",
        ],
    );
}

#[test]
fn an_event_semaphore_stays_where_nobody_can_take_both() {
    // X signals, I waits and signals, Y waits: X is still before Y.
    let (lines, done) = erased(
        "nop {engine = pe, signal = [1 += 1]}\nnop {engine = act}\nnop {id = 7, engine = act, wait = [1 >= 1], signal = [2 += 1]}\nnop {engine = pool, wait = [2 >= 1], deps = [ordered 7]}",
        &[7],
    );
    assert_eq!(
        lines,
        [
            "nop {engine = pe, signal = [1 += 1]}",
            "nop {engine = act}",
            "event_semaphore {engine = act, wait = [1 >= 1], signal = [2 += 1], id = 7}",
            "nop {engine = pool, wait = [2 >= 1], deps = [ordered 7]}",
        ]
    );
    assert_eq!((done.removed, done.left_semaphores), (1, 1));
    // Several waits of erased ones before a signal of one.
    check(
        "nop {engine = pe, signal = [1 += 1, 2 += 1]}\nnop {id = 7, engine = act, wait = [1 >= 1]}\nnop {id = 8, engine = act, wait = [2 >= 1]}\nnop {id = 9, engine = act, signal = [3 += 1]}",
        &[7, 8, 9],
        &[
            "nop {engine = pe, signal = [1 += 1, 2 += 1]}",
            "event_semaphore {engine = act, wait = [1 >= 1, 2 >= 1], signal = [3 += 1], id = 9}",
        ],
    );
}

#[test]
fn nothing_passes_barriers_loops_ends_and_clears() {
    for wall in [
        "all_engine_barrier",
        "semaphore_range_clear {first = 100, count = 4, engine = act}",
    ] {
        let body = format!(
            "nop {{engine = act, signal = [1 += 1]}}\nnop {{id = 1, engine = act, wait = [1 >= 1]}}\n{wall}\nnop {{id = 2, engine = act, signal = [5 += 1]}}\nnop {{engine = act}}"
        );
        let want = [
            "nop {engine = act, signal = [1 += 1]}",
            "event_semaphore {engine = act, wait = [1 >= 1], id = 1}",
            wall,
            "event_semaphore {engine = act, signal = [5 += 1], id = 2}",
            "nop {engine = act}",
        ];
        let (lines, _) = erased(&body, &[1, 2]);
        assert_eq!(lines.len(), want.len(), "{lines:?}");
        for (line, want) in lines.iter().zip(want) {
            if want != wall {
                assert_eq!(line, want);
            }
        }
    }
    check(
        "nop {engine = act, signal = [1 += 1]}\nnop {id = 1, engine = act, wait = [1 >= 1]}\nloop %i = 0 to 4 {\nnop {engine = act}\n}\nnop {id = 2, engine = act, signal = [5 += 1]}\nnop {id = 3, engine = act, wait = [1 >= 1]}",
        &[1, 2, 3],
        &[
            "nop {engine = act, signal = [1 += 1]}",
            "event_semaphore {engine = act, wait = [1 >= 1], id = 1}",
            "loop %i = 0 to 4 {",
            "nop {engine = act}",
            "event_semaphore {engine = act, signal = [5 += 1], id = 2}",
            "event_semaphore {engine = act, wait = [1 >= 1], id = 3}",
        ],
    );
}

#[test]
fn where_counters_fall_two_waits_do_not_become_one() {
    // Counter 1 is 1 only until the second instruction of `pe`: met one after the other, never at once.
    check(
        "nop {engine = pe, signal = [1 += 1]}\nnop {id = 1, engine = act, wait = [1 >= 1]}\nnop {engine = pe, signal = [1 -= 1, 2 += 1]}\nnop {engine = act, wait = [2 >= 1]}\nnop {id = 2, engine = act, wait = [2 >= 1]}\nnop {engine = act}",
        &[1, 2],
        &[
            "nop {engine = pe, signal = [1 += 1]}",
            "event_semaphore {engine = act, wait = [1 >= 1], id = 1}",
            "nop {engine = pe, signal = [1 -= 1, 2 += 1]}",
            "nop {engine = act, wait = [2 >= 1]}",
            "nop {engine = act, wait = [2 >= 1]}",
        ],
    );
}

#[test]
fn loops_go_with_all_they_hold() {
    let (lines, done) = erased(
        "nop {id = 1}\nloop %i = 0 to 4 {id = 2, deps = [ordered 1]} {\nnop {id = 3, deps = [ordered 1]}\nloop %j = 0 to 4 {\nnop {id = 4, deps = [ordered 3]}\n}\n}\nnop {id = 5, deps = [ordered 4]}\nnop {id = 6, deps = [output 2]}",
        &[2, 4],
    );
    assert_eq!(
        lines,
        [
            "nop {id = 1}",
            "nop {id = 5, deps = [ordered 1]}",
            "nop {id = 6, deps = [ordered 1]}"
        ]
    );
    assert_eq!((done.removed, done.refused.len()), (4, 0));
}

#[test]
fn what_somebody_needs_stays() {
    let (lines, done) = erased(
        "%r = register_move <- 5 {id = 1}\nall_engine_barrier {id = 9}\n%s = register_alu add <- %r, 1 {id = 2}\nregister_alu add %s <- %s, 1 {id = 3}\n%u = register_alu add <- %r, 1 {id = 4}\nloop %i = 0 to 4 {id = 5} {\nnop {signal = [4 += 1]}\n}",
        &[1, 2, 4, 5, 9],
    );
    // `%s` is used by 3, so it stays, and so does `%r`, which it uses.
    assert_eq!(lines[0], "%r = register_move <- 5 {id = 1}");
    assert_eq!(lines[1], "all_engine_barrier {id = 9}");
    assert_eq!(lines[2], "%s = register_alu add <- %r, 1 {id = 2}");
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!((done.removed, done.refused.len()), (1, 4));
}

/// Pairs of `id`s of instructions that stay, of which the second follows the first.
type Order = BTreeSet<(u32, u32)>;

fn closure(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; count]; count];
    for &(from, to) in edges {
        reach[from][to] = true;
    }
    for middle in 0..count {
        let behind = reach[middle].clone();
        for row in reach.iter_mut().filter(|row| row[middle]) {
            for (to, &reaches) in row.iter_mut().zip(&behind) {
                *to |= reaches;
            }
        }
    }
    reach
}

fn pairs(ids: &[Option<u32>], stay: &BTreeSet<u32>, reach: &[Vec<bool>]) -> Order {
    let of = |at: usize| ids[at].filter(|id| stay.contains(id));
    let mut found = Order::new();
    for (from, row) in reach.iter().enumerate() {
        for (to, &reaches) in row.iter().enumerate() {
            if let (true, Some(a), Some(b)) = (reaches, of(from), of(to)) {
                found.insert((a, b));
            }
        }
    }
    found
}

/// What `deps` say.
fn depends(ir: &Ir, func: Op, stay: &BTreeSet<u32>) -> Order {
    let graph = attached(ir, func);
    let ids: Vec<_> = graph
        .ops()
        .iter()
        .map(|&op| ir.int_cell(COL_ID, op))
        .collect();
    let mut edges = Vec::new();
    for at in 0..graph.ops().len() as u32 {
        for edge in graph.edges(at) {
            for from in graph.expand(edge.source()) {
                edges.push((from as usize, at as usize));
            }
        }
    }
    pairs(&ids, stay, &closure(graph.ops().len(), &edges))
}

/// What engines and semaphores say, every counter being raised once, to 1.
fn happens_before(ir: &Ir, func: Op, stay: &BTreeSet<u32>) -> Order {
    let ops: Vec<Op> = ir
        .walk_op(func)
        .filter(|&op| OpCode::of(ir, op).is_some_and(|code| code.def().engines.is_some()))
        .collect();
    let ids: Vec<_> = ops.iter().map(|&op| ir.int_cell(COL_ID, op)).collect();
    let sems = |op: Op, name| {
        let attr = ir.ctx.dict_get(ir.dict(op), name);
        attr.and_then(|attr| Sem::list(&ir.ctx, attr))
            .unwrap_or_default()
    };
    let mut edges = Vec::new();
    let mut last: Vec<(Stream, usize)> = Vec::new();
    let mut signalled: BTreeMap<u32, usize> = BTreeMap::new();
    let mut barrier = None;
    for (at, &op) in ops.iter().enumerate() {
        let stream = Stream::of(ir, op, Target::Trn2).unwrap();
        edges.extend(barrier.map(|barrier| (barrier, at)));
        if OpCode::of(ir, op) == Some(OpCode::AllEngineBarrier) {
            edges.extend(last.iter().map(|&(_, before)| (before, at)));
            barrier = Some(at);
        }
        match last.iter_mut().find(|known| known.0 == stream) {
            Some(known) => {
                edges.push((known.1, at));
                known.1 = at;
            }
            None => last.push((stream, at)),
        }
        for signal in sems(op, names::SIGNAL) {
            assert!(signalled.insert(signal.id, at).is_none());
        }
    }
    for (at, &op) in ops.iter().enumerate() {
        for wait in sems(op, names::WAIT) {
            edges.push((signalled[&wait.id], at));
        }
    }
    pairs(&ids, stay, &closure(ops.len(), &edges))
}

fn random_body(rng: &mut Rng) -> (String, u32) {
    let mut body = String::new();
    let count = 4 + rng.below(26) as u32;
    let mut sems: Vec<u32> = Vec::new();
    let mut sets: Vec<String> = Vec::new();
    let mut next_sem = 0;
    let mut open = false;
    for id in 0..count {
        let engine = ["pe", "act", "dve", "pool", "sp"][rng.below(3) as usize];
        let mut attrs = format!("id = {id}");
        let mut deps = BTreeSet::new();
        for _ in 0..rng.below(4) {
            let kind = DepKind::ALL[rng.below(4) as usize].name();
            if !sets.is_empty() && rng.below(4) == 0 {
                deps.insert(format!("{kind} #{}", 1 + rng.below(sets.len() as u64)));
            } else if id > 0 {
                deps.insert(format!("{kind} {}", rng.below(u64::from(id))));
            }
        }
        if !deps.is_empty() {
            let list: Vec<_> = deps.into_iter().collect();
            attrs += &format!(", deps = [{}]", list.join(", "));
        }
        // In loops a counter would rise more than once.
        if !open {
            if !sems.is_empty() && rng.below(3) == 0 {
                let wait = sems[rng.below(sems.len() as u64) as usize];
                attrs += &format!(", wait = [{wait} >= 1]");
            }
            if rng.below(3) == 0 {
                attrs += &format!(", signal = [{next_sem} += 1]");
                sems.push(next_sem);
                next_sem += 1;
            }
        }
        let barrier = !open && rng.below(16) == 0;
        let name = if barrier { "all_engine_barrier" } else { "nop" };
        body += &format!("{name} {{engine = {engine}, {attrs}}}\n");
        if id > 0 && rng.below(5) == 0 {
            let mut members = BTreeSet::new();
            for _ in 0..1 + rng.below(12) {
                members.insert(rng.below(u64::from(id) + 1).to_string());
            }
            if !sets.is_empty() && rng.below(2) == 0 {
                members.insert(format!("#{}", 1 + rng.below(sets.len() as u64)));
            }
            let list: Vec<_> = members.into_iter().collect();
            sets.push(list.join(", "));
        }
        if rng.below(8) == 0 {
            body += if open { "}\n" } else { "loop %i = 0 to 2 {\n" };
            open = !open;
        }
    }
    if open {
        body += "}\n";
    }
    for (number, list) in (1..).zip(&sets) {
        body += &format!("depset #{number} = [{list}]\n");
    }
    (body, count)
}

#[test]
fn survivors_follow_the_same_survivors() {
    let mut rng = Rng(0x5eed_0e4a);
    let (mut removed, mut left) = (0, 0);
    for round in 0..fuzz(600) {
        let (body, count) = random_body(&mut rng);
        let (mut ir, func) = function(&body);
        let share = 1 + rng.below(4);
        let (dead, stay): (Vec<u32>, Vec<u32>) = (0..count).partition(|_| rng.below(5) < share);
        let stay: BTreeSet<u32> = stay.into_iter().collect();
        let before = (depends(&ir, func, &stay), happens_before(&ir, func, &stay));
        assert_eq!(play(&ir, func, Target::Trn2), Outcome::Met, "{body}");
        // In any order.
        let mut ops = with_ids(&ir, func, &dead);
        if rng.below(2) == 0 {
            ops.reverse();
        }
        let is_barrier = |op: &&Op| OpCode::of(&ir, **op) == Some(OpCode::AllEngineBarrier);
        let barriers = ops.iter().filter(is_barrier).count();
        let done = erase(&mut ir, func, &ops);
        assert_eq!(done.refused.len(), barriers);
        (removed, left) = (removed + done.removed, left + done.left_semaphores);
        let text = print(&ir, PrintOptions::default());
        let place = format!("round {round}, without {dead:?}\n{body}\n{text}");
        // Sets and edges are written so that they read back, and the verifier finds nothing.
        let (ir, func) = read(&text);
        let mut diags = Diagnostics::default();
        let options = VerifyOptions {
            level: Level::Full,
            ..VerifyOptions::default()
        };
        verify(&ir, options, &mut diags);
        let found: Vec<_> = diags.iter().map(|one| one.message.clone()).collect();
        assert!(found.is_empty(), "{found:?}\n{place}");
        let after = (depends(&ir, func, &stay), happens_before(&ir, func, &stay));
        assert_eq!(before.0, after.0, "deps, {place}");
        assert_eq!(before.1, after.1, "engines, {place}");
    }
    assert!(left > 0 && removed > 3 * left, "{removed} {left}");
}

#[test]
fn a_long_batch_costs_a_line_each() {
    // Each depends on all before it by a set, and nearly all of them go.
    let mut body = String::from("nop {id = 0}\n");
    let count = 20_000;
    for id in 1..count {
        body += &format!(
            "nop {{id = {id}, deps = [output {}, anti #{id}]}}\n",
            id - 1
        );
    }
    body += "depset #1 = [0]\n";
    for id in 2..count {
        body += &format!("depset #{id} = [{}, #{}]\n", id - 1, id - 1);
    }
    let (mut ir, func) = function(&body);
    let dead: Vec<u32> = (1..count - 1).collect();
    let ids: BTreeSet<u32> = dead.iter().copied().collect();
    let ops: Vec<Op> = ir
        .walk_op(func)
        .filter(|&op| {
            OpCode::of(&ir, op) == Some(OpCode::Nop)
                && ir.int_cell(COL_ID, op).is_some_and(|id| ids.contains(&id))
        })
        .collect();
    let done = erase(&mut ir, func, &ops);
    assert_eq!(done.removed, u64::from(count) - 2);
    let graph = attached(&ir, func);
    assert_eq!(graph.ops().len(), 2);
    let from: BTreeSet<u32> = graph
        .edges(1)
        .iter()
        .flat_map(|edge| graph.expand(edge.source()))
        .collect();
    assert_eq!(from, BTreeSet::from([0]));
    assert!(graph.edge_count() <= 4);
}
