//! Dependences against their definition, and against the faults users of such compilers reported.

use crate::support::{
    Edges, Rng, by_definition, expanded, function, fuzz, pairs_of, random_program, read,
};
use bir_dialect::analysis::deps::{
    Distance, Edge, Graph, Kinds, Source, attach, attached, carried, detach, reduce,
};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::DepKind::{self, Anti, Flow, Ordered, Output};
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{PrintOptions, print};

const MEMORY: &[DepKind] = &[Flow, Anti, Output];

fn edges(body: &str) -> Vec<(DepKind, u32, u32)> {
    let (ir, func) = function(body);
    let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
    expanded(&ir, &graph).into_iter().collect()
}

#[test]
fn straight_code_has_exactly_the_edges_of_the_definition() {
    let mut rng = Rng(0x5eed_0001);
    for round in 0..fuzz(800) {
        let program = random_program(&mut rng, 60, false, false);
        let (ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
        let (got, want) = (expanded(&ir, &graph), by_definition(&program));
        let extra: Vec<_> = got.difference(&want).collect();
        let missing: Vec<_> = want.difference(&got).collect();
        assert!(
            got == want,
            "round {round}: missing {missing:?}, extra {extra:?}\n{}",
            program.text
        );
    }
}

#[test]
fn loops_have_at_least_the_edges_of_the_definition_and_few_more() {
    let mut rng = Rng(0x5eed_0002);
    let (mut found, mut wanted) = (0, 0);
    for round in 0..fuzz(800) {
        let program = random_program(&mut rng, 24, true, false);
        let (ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
        let (got, want) = (expanded(&ir, &graph), by_definition(&program));
        let missing: Vec<_> = want.difference(&got).collect();
        assert!(
            missing.is_empty(),
            "round {round}: missing {missing:?}\n{}",
            program.text
        );
        found += got.len();
        wanted += want.len();
    }
    println!("{found} edges for {wanted}");
    assert!(found * 10 < wanted * 15, "{found} {wanted}");
}

#[test]
fn bodies_whose_accesses_move_alike_are_exact() {
    let mut rng = Rng(0x5eed_0003);
    let (mut found, mut wanted) = (0, 0);
    for round in 0..fuzz(800) {
        let program = random_program(&mut rng, 20, true, true);
        let (ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
        let (got, want) = (expanded(&ir, &graph), by_definition(&program));
        let missing: Vec<_> = want.difference(&got).collect();
        assert!(
            missing.is_empty(),
            "round {round}: missing {missing:?}\n{}",
            program.text
        );
        found += got.len();
        wanted += want.len();
    }
    println!("{found} edges for {wanted}");
    assert!(found * 100 < wanted * 112, "{found} {wanted}");
}

fn errors(ir: &Ir) -> Vec<String> {
    let mut diags = Diagnostics::default();
    let options = VerifyOptions {
        level: Level::Default,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    let wrong = diags.iter().filter(|one| {
        one.message.contains("depend")
            || one.message.contains("member")
            || one.message.contains("number")
    });
    wrong.map(|one| one.message.clone()).collect()
}

#[test]
fn edges_in_text_are_the_edges_of_the_graph() {
    let mut rng = Rng(0x5eed_0006);
    for round in 0..fuzz(500) {
        let program = random_program(&mut rng, 60, round % 2 == 0, false);
        let (mut ir, func) = read(&program.text);
        let graph = Graph::build(&ir, func, Kinds::ALL);
        let want = expanded(&ir, &graph);
        let has_some = !want.is_empty();
        assert_eq!(attach(&mut ir, func, &graph, Kinds::ALL), has_some);
        assert!(!attach(&mut ir, func, &graph, Kinds::ALL), "twice is once");
        assert_eq!(errors(&ir), Vec::<String>::new());
        assert_eq!(expanded(&ir, &attached(&ir, func)), want, "round {round}");
        let text = print(&ir, PrintOptions::default());
        let (again, func) = read(&text);
        assert_eq!(
            expanded(&again, &attached(&again, func)),
            want,
            "round {round}\n{text}"
        );
        // One kind after the other is the same as all at once.
        let (mut parts, func) = read(&program.text);
        for kind in [Output, Flow, Ordered, Anti] {
            let some = Kinds::of(&[kind]);
            let graph = Graph::build(&parts, func, some);
            attach(&mut parts, func, &graph, some);
            assert!(!attach(&mut parts, func, &graph, some), "round {round}");
        }
        assert_eq!(
            expanded(&parts, &attached(&parts, func)),
            want,
            "round {round}"
        );
        // Tearing one down leaves the others.
        assert_eq!(
            detach(&mut parts, func, Kinds::of(&[Flow])),
            want.iter().any(|edge| edge.0 == Flow)
        );
        let left: Edges = want.iter().copied().filter(|edge| edge.0 != Flow).collect();
        assert_eq!(
            expanded(&parts, &attached(&parts, func)),
            left,
            "round {round}"
        );
    }
}

#[test]
fn instructions_are_found_whatever_their_ids() {
    // The second id lies within what the fourth makes room for.
    let body = "
        nop {id = 4000000000}
        nop {id = 1030}
        nop {id = 3}
        nop {id = 1033, deps = [flow 1030, anti 4000000000]}
        nop {id = 70000, deps = [output 3, output 1033]}
        nop {deps = [flow 70000, flow 5, flow 1031, flow 4000000001]}";
    let (ir, func) = function(body);
    let want = [
        (Flow, 1, 3),
        (Anti, 0, 3),
        (Output, 2, 4),
        (Output, 3, 4),
        (Flow, 4, 5),
    ];
    let found = expanded(&ir, &attached(&ir, func));
    assert_eq!(found, want.into_iter().collect::<Edges>());
}

/// What is remembered of straight code is cleared up again and again; nobody sees it.
#[test]
fn rounds_of_long_straight_code_depend_alike() {
    const ROUND: u32 = 6;
    let program = |rounds: usize| {
        let round = "
            memset %a[0:4, 0:8] <- 0.0
            memset %a[0:4, 8:16] <- 1.0
            copy_predicated %a <- %m, %c
            copy_predicated %a[0:4, 4:12] <- %m[0:4, 4:12], %c[0:4, 4:12]
            tensor_copy %b <- %a
            tensor_copy %b[0:4, 0:4] <- %a[0:4, 12:16]";
        let locations = "
            %a = alloc sbuf<4x16xf32>
            %b = alloc sbuf<4x16xf32>
            %c = alloc sbuf<4x16xf32>
            %m = alloc sbuf<4x16xu8>";
        let (ir, func) = function(&(locations.to_owned() + &round.repeat(rounds)));
        let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
        assert_eq!(graph.ops().len(), ROUND as usize * rounds);
        graph
    };
    // Who an instruction depends on, and how far before.
    let before = |graph: &Graph, at: u32| {
        let mut found: Vec<(DepKind, u32)> = Vec::new();
        for edge in graph.edges(at) {
            let from = graph.expand(edge.source()).into_iter();
            found.extend(from.map(|from| (edge.kind(), at - from)));
        }
        found.sort_unstable();
        found
    };
    let few = program(3);
    let want: Vec<_> = (2 * ROUND..3 * ROUND).map(|at| before(&few, at)).collect();
    assert_eq!(
        want[0],
        [
            (Anti, 2),
            (Anti, 3),
            (Anti, 4),
            (Output, 3),
            (Output, 4),
            (Output, 6)
        ]
    );
    let many = program(6_000);
    for at in 2 * ROUND..many.ops().len() as u32 {
        assert_eq!(before(&many, at), want[(at % ROUND) as usize], "{at}");
    }
}

#[test]
fn an_eight_bank_rotation_depends_on_eight_before_and_nothing_else() {
    let mut body =
        String::from("%x = alloc dram<32x64xf32> {kind = input}\n%b = alloc sbuf<32x512xf32>\n");
    for step in 0..24 {
        body += &format!("%o{step} = alloc sbuf<32x64xf32>\n");
    }
    for step in 0..24 {
        let at = step % 8 * 64;
        body += &format!("load %b[0:32, {at}:{}] <- %x\n", at + 64);
        body += &format!("tensor_copy %o{step} <- %b[0:32, {at}:{}]\n", at + 64);
    }
    let mut want = Edges::new();
    for step in 0..24 {
        want.insert((Flow, 2 * step, 2 * step + 1));
        if step >= 8 {
            want.insert((Output, 2 * (step - 8), 2 * step));
            want.insert((Anti, 2 * (step - 8) + 1, 2 * step));
        }
    }
    assert_eq!(edges(&body), Vec::from_iter(want));
}

/// D1: a temporary reloaded and copied out in each iteration, unrolled four times.
#[test]
fn a_reload_waits_for_the_copy_of_what_was_there() {
    let mut body =
        String::from("%x = alloc dram<4x64xf32> {kind = input}\n%t = alloc sbuf<4x64xf32>\n");
    body += "%o = alloc sbuf<4x256xf32>\n";
    for i in 0..4 {
        body += &format!(
            "load %t <- %x\ntensor_copy %o[0:4, {}:{}] <- %t\n",
            64 * i,
            64 * i + 64
        );
    }
    let found = edges(&body);
    for i in 0..3 {
        assert!(found.contains(&(Anti, 2 * i + 1, 2 * i + 2)), "{found:?}");
    }
    assert_eq!(found.len(), 4 + 3 + 3);
}

/// D3: a gather's index tensor is read.
#[test]
fn a_gather_waits_for_its_indices() {
    let body = "
        %x = alloc dram<1024x64xf32> {kind = input}
        %rows = alloc sbuf<128x1xu32>
        %t = alloc sbuf<128x64xf32>
        iota %rows {channel_multiplier = 1, pattern = [[0, 1]]}
        dma_copy %t <- %x, src_index %rows {dge = \"swdge\"}
        iota %rows {channel_multiplier = 2, pattern = [[0, 1]]}";
    assert_eq!(edges(body), [(Flow, 0, 1), (Anti, 1, 2), (Output, 0, 2)]);
}

/// D4: two partly overlapping writes on two engines.
#[test]
fn overlapping_writes_keep_their_order() {
    let body = "
        %t = alloc sbuf<128x64xf32>
        memset %t[0:128, 0:40] <- 1.0 {engine = dve}
        memset %t[0:128, 39:64] <- 2.0 {engine = pool}";
    assert_eq!(edges(body), [(Output, 0, 1)]);
}

/// D5: thousands of slices of one location, read one by one and all at once.
#[test]
fn thousands_of_slices_need_few_edges() {
    for (writers, readers) in [(2_049u32, 2_049u32), (21_504, 72_074)] {
        for wide in [false, true] {
            let mut body = format!(
                "%o = alloc dram<{readers}x2xf32>\n%a = alloc dram<{writers}x2xf32>\n%x = alloc dram<1x2xf32>\n"
            );
            for at in 0..writers {
                body += &format!("dma_copy %a[{at}:{}, :] <- %x\n", at + 1);
            }
            for at in 0..readers {
                let from = match wide {
                    true => ":".to_owned(),
                    false => format!("{}:{}", at % writers, at % writers + 1),
                };
                body += &format!("dma_copy %o[{at}:{}, :] <- %a[{from}, :]\n", at + 1);
            }
            let (ir, func) = function(&body);
            let start = std::time::Instant::now();
            let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
            let count = (writers + readers) as usize;
            println!(
                "{writers} x {readers}, wide {wide}: {:?}, {} B",
                start.elapsed(),
                graph.heap_bytes() / count
            );
            assert!(
                graph.edge_count() <= count && graph.set_count() < writers,
                "{} {}",
                graph.edge_count(),
                graph.set_count()
            );
            assert!(graph.heap_bytes() <= 300 * count);
            let last = graph.edges(writers + readers - 1);
            let [edge] = last else { panic!("{last:?}") };
            let all = graph.expand(edge.source());
            assert_eq!(all.len(), if wide { writers as usize } else { 1 });
            let reduced = reduce(&graph).unwrap();
            assert_eq!(reduced.graph.edge_count(), graph.edge_count());
        }
    }
}

/// Every write of a slice waits for all who read everything before.
#[test]
fn writers_behind_wide_readers_share_them() {
    let mut body = String::from("%a = alloc dram<500x2xf32>\n%x = alloc dram<1x2xf32>\n");
    for at in 0..300 {
        body += &format!("%o{at} = alloc dram<500x2xf32>\n");
    }
    for at in 0..300 {
        body += &format!("dma_copy %o{at} <- %a\n");
    }
    for at in 0..500 {
        body += &format!("dma_copy %a[{at}:{}, :] <- %x\n", at + 1);
    }
    let (ir, func) = function(&body);
    let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
    assert!(graph.edge_count() < 500 * 9, "{}", graph.edge_count());
    let all = expanded(&ir, &graph);
    assert_eq!(all.len(), 300 * 500);
    assert!(
        all.iter()
            .all(|&(kind, from, to)| kind == Anti && from < 300 && to >= 300)
    );
}

/// Clones on one slot conflict though their names differ.
#[test]
fn placed_locations_conflict_by_their_bytes() {
    let body = "
        %x = alloc dram<4x64xf32> {kind = input}
        %t = alloc sbuf<4x64xf32> at [0, 0x0]
        %t_SsaClone0 = alloc sbuf<4x64xf32> at [0, 0x0]
        %a = alloc sbuf<4x64xf32>
        %b = alloc sbuf<4x64xf32>
        load %t <- %x
        tensor_copy %a <- %t
        load %t_SsaClone0 <- %x
        tensor_copy %b <- %t_SsaClone0";
    assert_eq!(
        edges(body),
        [(Flow, 0, 1), (Flow, 2, 3), (Anti, 1, 2), (Output, 0, 2)]
    );
}

#[test]
fn registers_are_flow() {
    let body = "
        %n = alloc dram<1x1xi32> {kind = input}
        %y = alloc dram<1x1xi32>
        %r = register_load <- %n
        %s = register_alu add <- %r, 1
        register_store %y <- %s";
    let found = edges(body);
    assert_eq!(found, [(Flow, 0, 1), (Flow, 1, 2)]);
}

#[test]
fn registers_written_again_order_like_memory() {
    // The copy of the register sees what the loop counted down, and is made before the next value.
    let body = "
        %y = alloc dram<1x1xi32>
        %r = register_move <- 3
        while %r {
          nop
          register_alu subtract %r <- %r, 1
        }
        %q = register_move <- %r
        register_move %r <- 5
        register_store %y <- %q";
    assert_eq!(
        edges(body),
        [
            (Flow, 0, 2),
            (Flow, 0, 3),
            (Flow, 2, 3),
            (Flow, 3, 5),
            (Anti, 3, 4),
            (Output, 0, 2),
            (Output, 0, 4),
            (Output, 2, 4),
        ]
    );
    let body = "
        %r = register_move <- 3
        loop %i = 0 to 8 {
          register_alu subtract %r <- %r, 1
        }";
    let one = Distance::Exactly(1);
    let all = [Flow, Anti, Output].map(|kind| (kind, 0, 0, one));
    assert_eq!(distances(body), all);
}

fn ordered(body: &str) -> Vec<(u32, u32)> {
    let (ir, func) = function(body);
    let graph = Graph::build(&ir, func, Kinds::of(&[Ordered]));
    pairs_of(&expanded(&ir, &graph))
}

#[test]
fn barriers_stand_between_all() {
    let body = "nop\nnop\nall_engine_barrier\nnop\nnop";
    assert_eq!(ordered(body), [(0, 2), (1, 2), (2, 3), (2, 4)]);
    let long = "nop\n".repeat(100) + "drain\nnop\ndrain";
    let (ir, func) = function(&long);
    let graph = Graph::build(&ir, func, Kinds::of(&[Ordered]));
    assert_eq!(graph.edge_count(), 3);
    assert_eq!(graph.set_count(), 1);
}

#[test]
fn code_nobody_gets_to_and_loops_nobody_leaves() {
    // A block without predecessors that branches back closes no loop.
    let body = "
        %t = alloc sbuf<4x64xf32>
        memset %t <- 0.0
        br ^e
      ^dead:
        memset %t <- 1.0
        br ^e
      ^e:
        tensor_scalar add %t <- %t, 1.0";
    let edges = |body: &str| {
        let (ir, func) = function(body);
        let graph = Graph::build(&ir, func, Kinds::of(&[Flow]));
        let edge = |at: u32| {
            graph
                .edges(at)
                .iter()
                .map(move |edge| (edge.source().number(), at))
        };
        (0..graph.ops().len() as u32)
            .flat_map(edge)
            .collect::<Vec<_>>()
    };
    assert_eq!(edges(body), [(0, 2)]);
    let endless = "
        %t = alloc sbuf<4x64xf32>
        memset %t <- 0.0
        br ^a
      ^a:
        tensor_scalar add %t <- %t, 1.0
        br ^b
      ^b:
        tensor_scalar add %t <- %t, 2.0
        br ^a";
    assert_eq!(edges(endless), [(0, 2), (2, 4)]);
}

#[test]
fn bytes_of_another_core_are_one_whatever_their_names() {
    let body = "
        %a = alloc sbuf<4x64xf32> {remote_target = \"s@1\"}
        %b = alloc sbuf<4x64xf32> {remote_target = \"s@1\"}
        %c = alloc sbuf<4x64xf32> {remote_target = \"s@2\"}
        %s = alloc sbuf<4x64xf32>
        %u = alloc sbuf<4x64xf32>
        memset %a <- 0.0
        memset %c <- 1.0
        memset %s <- 2.0
        tensor_copy %u <- %b";
    let (ir, func) = function(body);
    let graph = Graph::build(&ir, func, Kinds::of(&[Flow]));
    let sources: Vec<u32> = graph
        .edges(3)
        .iter()
        .map(|edge| edge.source().number())
        .collect();
    assert_eq!(sources, [0]);
}

#[test]
fn semaphores_stand_still_in_their_engine() {
    let body = "
        %t = alloc sbuf<4x64xf32>
        memset %t <- 0.0 {engine = dve}
        memset %t <- 1.0 {engine = pool}
        memset %t <- 2.0 {engine = dve, wait = [1 >= 1]}
        memset %t <- 3.0 {engine = dve}
        memset %t <- 4.0 {engine = pool, signal = [1 += 1 @complete]}";
    assert_eq!(ordered(body), [(0, 2), (1, 4), (2, 3)]);
}

#[test]
fn hidden_state_orders_who_writes_takes_or_spoils_it() {
    let head = "
        %x = alloc sbuf<4x8xf32>
        %m = alloc sbuf<4x8xf32>
        %r = alloc sbuf<4x1xf32>
        %d = alloc sbuf<4x8xf32>
        %e = alloc sbuf<4x8xf32>
        %f = alloc sbuf<4x8xf32>\n";
    // Idle selections may leave anything in the accumulator that the others go on with.
    let accumulator = "
        tensor_scalar_reduce add %d, reduce max reset %r <- %x, 0.5
        tensor_scalar_reduce add %e, reduce max accumulate %r <- %x, 0.5
        select_reduce %f <- %m, %x, 0.0
        tensor_scalar_reduce add %d, reduce max reset %r <- %x, 0.5";
    let found = ordered(&format!("{head}{accumulator}"));
    assert_eq!(found, [(0, 1), (1, 2), (2, 3)]);
    // Cached scalars are taken by whoever reads the cache, in any order.
    let cache = "
        tensor_scalar_cache multiply add %d <- %x, 2.0, 1.0 {cache_write}
        tensor_scalar_cache multiply add %e <- %x {cache_read}
        tensor_scalar_cache multiply add %f <- %x {cache_read}
        tensor_scalar_cache multiply add %d <- %x, 3.0, 1.0
        tensor_scalar_cache multiply add %d <- %x, 2.0, 1.0 {cache_write}";
    let found = ordered(&format!("{head}{cache}"));
    assert_eq!(found, [(0, 1), (0, 2), (1, 4), (2, 4)]);
    // Activations that accumulate nothing leave the activation engine's accumulator alone.
    let activations = "activation exp %d <- %x\nactivation exp %e <- %x";
    assert_eq!(ordered(&format!("{head}{activations}")), []);
}

#[test]
fn loops_that_keep_their_order_do() {
    let body = "
        loop %i = 0 to 4 {no_reorder} {
          nop
          loop %j = 0 to 2 {
            nop
          }
          nop
        }
        nop
        nop";
    assert_eq!(ordered(body), [(0, 1), (1, 2)]);
}

#[test]
fn effects_seen_outside_stay_in_order() {
    let found = ordered("notify\nnop\nnotify\nnotify");
    assert_eq!(found, [(0, 2), (2, 3)]);
}

fn distances(body: &str) -> Vec<(DepKind, u32, u32, Distance)> {
    let (ir, func) = function(body);
    let around = ir
        .walk_op(func)
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Loop))
        .unwrap();
    let inside: Vec<Op> = ir.walk_op(around).skip(1).collect();
    let (found, complete) = carried(&ir, func, around, 1000);
    assert!(complete);
    let at = |op: Op| inside.iter().position(|&other| other == op).unwrap() as u32;
    let mut all: Vec<_> = found
        .iter()
        .map(|one| (one.kind, at(one.from), at(one.to), one.distance))
        .collect();
    all.sort();
    all
}

#[test]
fn loops_say_how_far_they_carry() {
    let head = "%x = alloc dram<4x64xf32> {kind = input}\n%t = alloc sbuf<4x1024xf32>\n%u = alloc sbuf<4x64xf32>\n%v = alloc sbuf<4x64xf32>\n";
    // A slice is read two iterations later.
    let body = format!(
        "{head}loop %i = 0 to 8 {{\nload %t[0:4, 64*%i + 128 +: 64] <- %x\ntensor_copy %u <- %t[0:4, 64*%i +: 64]\n}}"
    );
    assert_eq!(
        distances(&body),
        [
            (Flow, 0, 1, Distance::Exactly(2)),
            (Output, 1, 1, Distance::Exactly(1))
        ]
    );
    // A temporary: everything one iteration later.
    let body = format!("{head}loop %i = 0 to 8 {{\nload %u <- %x\ntensor_copy %v <- %u\n}}");
    let one = Distance::Exactly(1);
    assert_eq!(
        distances(&body),
        [
            (Flow, 0, 1, one),
            (Anti, 1, 0, one),
            (Output, 0, 0, one),
            (Output, 1, 1, one)
        ]
    );
    // Other coefficients: nobody knows.
    let body = format!(
        "{head}loop %i = 0 to 4 {{\nload %t[0:4, 64*%i +: 64] <- %x\ntensor_copy %t[0:4, 512 +: 64] <- %t[0:4, 128*%i +: 64]\n}}"
    );
    let found = distances(&body);
    assert!(found.contains(&(Flow, 0, 1, Distance::Any)), "{found:?}");
    // One trip carries nothing.
    let body = format!("{head}loop %i = 0 to 1 {{\nload %u <- %x\ntensor_copy %v <- %u\n}}");
    assert_eq!(distances(&body), []);
}

#[test]
fn deep_loops_and_long_chains_of_blocks() {
    let mut body = String::from("%a = alloc sbuf<4x64xf32>\n");
    for at in 0..10_000 {
        body += &format!("loop %i{at} = 0 to 2 {{\nmemset %a <- 0.0\n");
    }
    body += "tensor_copy %a <- %a\n";
    body += &"}\n".repeat(10_000);
    let (ir, func) = function(&body);
    let graph = Graph::build(&ir, func, Kinds::ALL);
    let last = graph.edges(graph.ops().len() as u32 - 1);
    assert!(last.iter().any(|edge| edge.kind() == Flow));
    // Each may write what all around it wrote: sets in sets, of which one instruction is left.
    let body = body.replace("memset %a <-", "memset %a[0:4, %i +: 1] <-");
    let body: String = (body.split("loop %i").enumerate())
        .map(|(at, part)| match at {
            0 => part.to_owned(),
            _ => format!(
                "loop %i{}",
                part.replace("%i +", &format!("%i{} +", at - 1))
            ),
        })
        .collect();
    let (ir, func) = function(&body);
    let graph = Graph::build(&ir, func, Kinds::ALL);
    let reduced = reduce(&graph).unwrap().graph;
    assert_eq!(reduced.edge_count(), 10_000);
    let mut body =
        String::from("%a = alloc sbuf<4x64xf32>\n%b = alloc sbuf<4x64xf32>\nmemset %a <- 0.0\n");
    for block in 0..100_000 {
        body += &format!("br ^b{block}\n^b{block}:\ntensor_copy %b <- %a\n");
    }
    let (ir, func) = function(&body);
    let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
    let last = graph.edges(graph.ops().len() as u32 - 1);
    let first = Edge::new(Flow, Source::instruction(0));
    assert!(last.contains(&first), "{last:?}");
}

#[test]
fn branches_meet_with_what_either_did() {
    let body = "
        %n = alloc dram<1x1xi32> {kind = input}
        %a = alloc sbuf<4x64xf32>
        %b = alloc sbuf<4x64xf32>
        memset %a <- 0.0
        %r = register_load <- %n
        cond_br %r, ^l, ^r
      ^l:
        memset %a <- 1.0
        br ^done
      ^r:
        memset %a[0:4, 0:32] <- 2.0
        br ^done
      ^done:
        tensor_copy %b <- %a";
    let (ir, func) = function(body);
    let graph = Graph::build(&ir, func, Kinds::of(MEMORY));
    let found: Vec<(DepKind, &str, &str)> = expanded(&ir, &graph)
        .into_iter()
        .map(|(kind, from, to)| {
            (
                kind,
                ir.name_text(graph.ops()[from as usize]),
                ir.name_text(graph.ops()[to as usize]),
            )
        })
        .collect();
    let into_copy = found
        .iter()
        .filter(|edge| edge.2 == "bir.tensor_copy")
        .count();
    assert_eq!(into_copy, 3, "{found:?}");
    assert_eq!(
        found.iter().filter(|edge| edge.0 == Output).count(),
        2,
        "{found:?}"
    );
}

#[test]
fn past_the_limit_of_ranges_edges_may_be_too_many_and_it_is_said() {
    let mut body = String::from("%t = alloc sbuf<64x64xf32>\n");
    for at in 0..8 {
        body += &format!(
            "memset %t[p {at}:{}, off {at}, 3 x 5, 7 x 4] <- 0.0\n",
            at + 9
        );
    }
    body += "tensor_copy %t[0:64, 63:64] <- %t[0:64, 62:63]\n";
    let (ir, func) = function(&body);
    let exact = Graph::build(&ir, func, Kinds::of(MEMORY));
    assert_eq!(exact.capped(), 0);
    let rough = Graph::build_within(&ir, func, Kinds::of(MEMORY), 10);
    assert!(rough.capped() > 0);
    assert!(expanded(&ir, &rough).is_superset(&expanded(&ir, &exact)));
}
