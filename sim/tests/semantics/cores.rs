//! Programs of several cores: collectives, exchanges, barriers, and who waits for whom.

use std::collections::BTreeMap;

use crate::common::*;
use bir_dialect::bir::num::{DType, from_f32, to_f32};
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::Ir;
use bir_sim::{Options, Simulation, Tensor, Uninit, random};

/// Which ops are computed a second time, and where.
pub(crate) const NAIVE: crate::table::Claims = &[
    (
        all_reduce_combines_ranks_in_ascending_order_and_converts_once,
        &["all_reduce"],
    ),
    (
        gathers_concatenate_and_scatters_deal_out,
        &["all_gather", "reduce_scatter"],
    ),
    (all_to_all_transposes_parts, &["all_to_all"]),
    (
        permutations_send_along_pairs_and_rings,
        &[
            "collective_permute",
            "collective_permute_implicit",
            "collective_permute_implicit_reduce",
        ],
    ),
    (
        parts_of_different_sizes_go_where_metadata_say,
        &["all_gather_v", "all_to_all_v"],
    ),
    (
        cores_know_their_numbers,
        &["rank_id", "processing_rank_id", "core_id"],
    ),
    (sendrecv_exchanges_both_ways_by_pipe, &["sendrecv"]),
    (
        shared_buffers_and_barriers_order_the_cores,
        &["core_barrier", "module"],
    ),
];

/// A program whose cores have these bodies.
fn cores(bodies: &[&str], verified: bool) -> Ir {
    let text: String = bodies
        .iter()
        .enumerate()
        .map(|(core, body)| {
            format!(
                "bir.module @c{core} {{target = \"trn3\", core = {core}}} {{\n bir.func @main {{\n{body}\n }}\n}}\n"
            )
        })
        .collect();
    clean(&text, if verified { Level::Default } else { Level::Off })
}

type Tensors = BTreeMap<String, Tensor>;

/// Runs a program twice, on two threads too; outputs by name.
fn run(ir: &Ir, inputs: &Tensors) -> Result<Tensors, String> {
    let once = || {
        let simulation =
            Simulation::new(ir, Options::default()).map_err(|fault| fault.to_string())?;
        let outcome = simulation
            .run(inputs, &mut |_| {})
            .map_err(|fault| fault.to_string())?;
        Ok(outcome.outputs.into_iter().collect::<Tensors>())
    };
    let found = once();
    std::thread::scope(|scope| {
        let other = scope.spawn(once);
        assert_eq!(other.join().expect("no panic"), found);
    });
    if found.is_ok() {
        note_executed(ir);
    }
    found
}

/// The same body on every core, with a random `%x` of that shape on each.
fn spmd(
    n: usize,
    shape: (&str, DType, &[u64]),
    body: &str,
) -> (Vec<Tensor>, Result<Tensors, String>) {
    let (name, dtype, dims) = shape;
    let bodies = vec![body; n];
    let ir = cores(&bodies, true);
    let mut inputs = Tensors::new();
    let mut given = Vec::new();
    for core in 0..n {
        let x = random::tensor(core as u64 + 3, name, dtype, dims);
        inputs.insert(format!("{name}@{core}"), x.clone());
        given.push(x);
    }
    (given, run(&ir, &inputs))
}

fn apply(op: &str, a: f32, b: f32) -> f32 {
    match op {
        "add" => a + b,
        _ if a.is_nan() || b.is_nan() => f32::NAN,
        "max" => {
            if a > b {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn through(dtype: DType, x: f32) -> f32 {
    to_f32(dtype, from_f32(dtype, x).expect("bits")).expect("a number")
}

#[test]
fn all_reduce_combines_ranks_in_ascending_order_and_converts_once() {
    for op in ["add", "max", "min"] {
        for dtype in [DType::F32, DType::Bf16, DType::I8] {
            // The order of the list does not change the sum.
            let body = format!(
                "%x = alloc dram<4x6x{dtype}> {{kind = input}}\n%y = alloc dram<4x6x{dtype}> {{kind = output}}\n\
                 %z = alloc dram<24x{dtype}> {{kind = output}}\n\
                 all_reduce {op} %y, %z <- %x, %x[off 23, -1 x 24] {{groups = [[2, 0], [3, 1]]}}"
            );
            let (x, found) = spmd(4, ("x", dtype, &[4, 6]), &body);
            let found = found.expect("runs");
            for core in 0..4 {
                let (a, b) = (values(&x[core % 2]), values(&x[core % 2 + 2]));
                let want: Vec<f32> = a
                    .iter()
                    .zip(&b)
                    .map(|(&a, &b)| through(dtype, apply(op, a, b)))
                    .collect();
                assert_same(&values(&found[&format!("y@{core}")]), &want, op);
                let back: Vec<f32> = want.iter().rev().copied().collect();
                assert_same(&values(&found[&format!("z@{core}")]), &back, op);
            }
        }
    }
}

#[test]
fn sums_of_three_ranks_start_with_the_lowest() {
    // 1e8 + -1e8 + 1 in this order is 1; in another it is 0.
    let body = "%x = alloc dram<1xf32> {kind = input}\n%y = alloc dram<1xf32> {kind = output}\n\
                all_reduce add %y <- %x {groups = [[2, 1, 0]]}";
    let ir = cores(&[body; 3], true);
    let one = |x: f32| tensor(DType::F32, &[1], [x]);
    let inputs = Tensors::from([
        ("x@0".to_owned(), one(1e8)),
        ("x@1".to_owned(), one(-1e8)),
        ("x@2".to_owned(), one(1.0)),
    ]);
    let found = run(&ir, &inputs).expect("runs");
    for core in 0..3 {
        assert_eq!(values(&found[&format!("y@{core}")]), [1.0]);
    }
}

#[test]
fn exchanges_in_place_in_sbuf() {
    let body = "%x = alloc dram<4x6xf32> {kind = input}\n%y = alloc dram<4x6xf32> {kind = output}\n\
                %t = alloc sbuf<4x6xf32>\nload %t <- %x\nall_reduce add %t <- %t {groups = [[0, 1]]}\nsave %y <- %t";
    let (x, found) = spmd(2, ("x", DType::F32, &[4, 6]), body);
    let found = found.expect("runs");
    let want: Vec<f32> = values(&x[0])
        .iter()
        .zip(values(&x[1]))
        .map(|(a, b)| a + b)
        .collect();
    assert_same(&values(&found["y@0"]), &want, "core 0");
    assert_same(&values(&found["y@1"]), &want, "core 1");
}

#[test]
fn gathers_concatenate_and_scatters_deal_out() {
    let body = "%x = alloc dram<2x6xbf16> {kind = input}\n%y = alloc dram<6x6xbf16> {kind = output}\n\
                %w = alloc dram<2x18xbf16> {kind = output}\n%z = alloc dram<2x6xbf16> {kind = output}\n\
                %t = alloc sbuf<2x6xbf16>\n%u = alloc sbuf<2x18xbf16>\nload %t <- %x\n\
                all_gather %y <- %x {groups = [[1, 0, 2]]}\n\
                all_gather %u <- %t {groups = [[1, 0, 2]], dim = 1}\nsave %w <- %u\n\
                reduce_scatter add %z <- %y {groups = [[1, 0, 2]]}";
    let (x, found) = spmd(3, ("x", DType::Bf16, &[2, 6]), body);
    let found = found.expect("runs");
    let group = [1usize, 0, 2];
    let mut all = Vec::new();
    for core in group {
        all.extend(values(&x[core]));
    }
    for (position, core) in group.into_iter().enumerate() {
        assert_same(&values(&found[&format!("y@{core}")]), &all, "all_gather");
        let mut wide = Vec::new();
        for row in 0..2 {
            for other in group {
                wide.extend(values(&x[other])[row * 6..row * 6 + 6].to_vec());
            }
        }
        assert_same(&values(&found[&format!("w@{core}")]), &wide, "dim 1");
        // All ranks hold the same: three times each element, of the own part.
        let want: Vec<f32> = all[position * 12..position * 12 + 12]
            .iter()
            .map(|&x| through(DType::Bf16, x + x + x))
            .collect();
        assert_same(
            &values(&found[&format!("z@{core}")]),
            &want,
            "reduce_scatter",
        );
    }
}

#[test]
fn all_to_all_transposes_parts() {
    let body = "%x = alloc dram<4x6xu8> {kind = input}\n%y = alloc dram<4x6xu8> {kind = output}\n\
                all_to_all %y <- %x {groups = [[0, 1]]}";
    let (x, found) = spmd(2, ("x", DType::U8, &[4, 6]), body);
    let found = found.expect("runs");
    for core in 0..2 {
        let y = &found[&format!("y@{core}")];
        for from in 0..2 {
            for i in 0..12 {
                assert_eq!(y.bits(from * 12 + i), x[from].bits(core * 12 + i));
            }
        }
    }
}

#[test]
fn permutations_send_along_pairs_and_rings() {
    let body = "%x = alloc dram<2x3xf32> {kind = input}\n%a = alloc dram<2x3xf32> {kind = output}\n\
                %b = alloc dram<2x3xf32> {kind = output}\n%c = alloc dram<2x3xf32> {kind = output}\n\
                %d = alloc dram<2x3xbf16> {kind = output}\n%z = alloc sbuf<2x3xf32>\n%h = alloc dram<2x3xbf16>\n\
                memset %z <- 7.0\nsave %a <- %z\ndma_copy %h <- %x\n\
                collective_permute %a <- %x {pairs = [[0, 2], [2, 1]]}\n\
                collective_permute_implicit %b, %c <- %x, %x[off 5, -1 x 6] {groups = [[0, 2, 1]]}\n\
                collective_permute_implicit_reduce max %d <- %h, %h {groups = [[0, 1, 2]]}";
    let (x, found) = spmd(3, ("x", DType::F32, &[2, 3]), body);
    let found = found.expect("runs");
    let out = |name: &str, core: usize| values(&found[&format!("{name}@{core}")]);
    let v: Vec<Vec<f32>> = x.iter().map(values).collect();
    assert_same(&out("a", 2), &v[0], "0 to 2");
    assert_same(&out("a", 1), &v[2], "2 to 1");
    assert_same(&out("a", 0), &[7.0; 6], "no target");
    for (core, before) in [(2, 0), (1, 2), (0, 1)] {
        assert_same(&out("b", core), &v[before], "ring");
        let back: Vec<f32> = v[before].iter().rev().copied().collect();
        assert_same(&out("c", core), &back, "second channel");
    }
    for core in 0..3 {
        let want: Vec<f32> = v[(core + 2) % 3]
            .iter()
            .map(|&x| through(DType::Bf16, x))
            .collect();
        assert_same(&out("d", core), &want, "reduce");
    }
}

#[test]
fn parts_of_different_sizes_go_where_metadata_say() {
    for (op, with_displacements) in [
        ("all_to_all_v", false),
        ("all_to_all_v", true),
        ("all_gather_v", false),
    ] {
        let rows = if with_displacements { 4 } else { 3 };
        let body = format!(
            "%x = alloc dram<10xf32> {{kind = input}}\n%m = alloc dram<{rows}x2xu32> {{kind = inout}}\n\
             %y = alloc dram<12xf32> {{kind = inout}}\n{op} %y, %m <- %x {{groups = [[0, 1]]}}"
        );
        let ir = cores(&[&body, &body], true);
        let mut inputs = Tensors::new();
        // Counts and displacements for each receiver, and where what comes is put.
        let send: [[u64; 4]; 2] = [[3, 2, 1, 8], [4, 5, 0, 5]];
        let put: [[u64; 2]; 2] = [[7, 1], [2, 6]];
        for core in 0..2 {
            let mut numbers = send[core].to_vec();
            numbers.extend([99, 99]);
            if with_displacements {
                numbers.extend(put[core]);
            }
            let x = tensor(DType::F32, &[10], (0..10).map(|i| (100 * core + i) as f32));
            inputs.insert(format!("x@{core}"), x);
            inputs.insert(format!("m@{core}"), bits(DType::U32, &[rows, 2], numbers));
            inputs.insert(format!("y@{core}"), tensor(DType::F32, &[12], [-1.0; 12]));
        }
        let found = run(&ir, &inputs).expect("runs");
        for me in 0..2 {
            let mut want = [-1.0f32; 12];
            for from in 0..2 {
                let start = if with_displacements {
                    put[me][from]
                } else {
                    6 * from as u64
                };
                for i in 0..send[from][me] {
                    want[(start + i) as usize] =
                        100.0 * from as f32 + (send[from][2 + me] + i) as f32;
                }
            }
            assert_same(&values(&found[&format!("y@{me}")]), &want, op);
            let m = &found[&format!("m@{me}")];
            assert_eq!([m.bits(4), m.bits(5)], [send[0][me], send[1][me]], "counts");
        }
    }
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let body = "%x = alloc dram<10xf32> {kind = input}\n%m = alloc dram<3x2xu32> {kind = inout}\n\
                %y = alloc dram<12xf32>\nall_to_all_v %y, %m <- %x {groups = [[0, 1]]}";
    let ir = cores(&[body, body], true);
    let message = |count: u64, from: u64| {
        let mut inputs = Tensors::new();
        for core in 0..2 {
            inputs.insert(format!("x@{core}"), tensor(DType::F32, &[10], [0.0; 10]));
            let numbers = [1, count, 0, from, 0, 0];
            inputs.insert(format!("m@{core}"), bits(DType::U32, &[3, 2], numbers));
        }
        run(&ir, &inputs).expect_err("it does not fit")
    };
    assert_eq!(
        message(3, 8),
        "`all_to_all_v` leaves `%x@0`: elements 8 to 10 of 10"
    );
    assert_eq!(
        message(7, 0),
        "`all_to_all_v` cannot be simulated: core 0 sends 7 elements to a slot of 6"
    );
}

#[test]
fn cores_know_their_numbers() {
    let body = "%y = alloc dram<1x5xi32> {kind = output}\n%r = rank_id\n%c = core_id\n\
                %f = processing_rank_id <- 0 {groups = [[0, 2, 1]]}\n%g = processing_rank_id <- 1 {groups = [[0, 2, 1]]}\n\
                %n = register_move <- 5\n%h = processing_rank_id <- %n {groups = [[0, 2, 1]]}\n\
                register_store %y[0:1, 0:1] <- %r\nregister_store %y[0:1, 1:2] <- %c\nregister_store %y[0:1, 2:3] <- %f\n\
                register_store %y[0:1, 3:4] <- %g\nregister_store %y[0:1, 4:5] <- %h";
    let ir = cores(&[body; 3], true);
    let found = run(&ir, &Tensors::new()).expect("runs");
    let group = [0, 2, 1];
    for core in 0..3usize {
        let position = group
            .iter()
            .position(|&rank| rank == core)
            .expect("a member");
        let before = |n: usize| group[(position + 6 - n) % 3] as f32;
        let own = core as f32;
        assert_eq!(
            values(&found[&format!("y@{core}")]),
            [own, own, own, before(1), before(5)]
        );
    }
}

#[test]
fn sendrecv_exchanges_both_ways_by_pipe() {
    let body = |peer: usize, first: usize| {
        format!(
            "%x = alloc dram<4x6xf32> {{kind = input}}\n%y = alloc dram<4x6xf32> {{kind = output}}\n\
             %t = alloc sbuf<4x6xf32>\n%u = alloc sbuf<4x6xf32>\nload %t <- %x\n\
             sendrecv %u[:, 0:2] <- %t[:, 0:2] {{send_to = {peer}, recv_from = {peer}, pipe_id = {first}}}\n\
             sendrecv %u[:, 2:6] <- %t[:, 2:6] {{send_to = {peer}, recv_from = {peer}, pipe_id = {}}}\nsave %y <- %u",
            1 - first
        )
    };
    let inputs = || {
        (0..2)
            .map(|core| {
                (
                    format!("x@{core}"),
                    random::tensor(core, "x", DType::F32, &[4, 6]),
                )
            })
            .collect::<Tensors>()
    };
    let ir = cores(&[&body(1, 0), &body(0, 0)], true);
    let given = inputs();
    let found = run(&ir, &given).expect("runs");
    assert_eq!(found["y@0"], given["x@1"]);
    assert_eq!(found["y@1"], given["x@0"]);
    let crossed = cores(&[&body(1, 0), &body(0, 1)], true);
    assert_eq!(
        run(&crossed, &given).expect_err("each waits at another pipe"),
        "`sendrecv` is never passed: core 0 waits at `sendrecv` of pipe 0 for core 1; \
         core 1 waits at `sendrecv` of pipe 1 for core 0"
    );
}

#[test]
fn shared_buffers_and_barriers_order_the_cores() {
    let shared = "%s = alloc dram<2x3xf32> {space = shared}\n%x = alloc dram<2x3xf32> {kind = input, space = shared}\n\
                  %y = alloc dram<2x3xf32> {kind = output}\n%t = alloc sbuf<2x3xf32>\n";
    let writer = format!(
        "{shared}load %t <- %x\nsave %s <- %t\ncore_barrier %s {{cores = [0, 1]}}\nsave %y <- %t"
    );
    let reader =
        format!("{shared}core_barrier %s {{cores = [0, 1]}}\nload %t <- %s\nsave %y <- %t\nnop");
    let x = random::tensor(1, "x", DType::F32, &[2, 3]);
    let inputs = Tensors::from([("x".to_owned(), x.clone())]);
    // Core 0 reads what core 1 writes: without the barrier it would be too early.
    let ir = cores(&[&reader, &writer], true);
    let found = run(&ir, &inputs).expect("runs");
    assert_eq!((&found["y@0"], &found["y@1"]), (&x, &x));
    let early = reader.replace("core_barrier %s {cores = [0, 1]}", "nop");
    let late = writer.replace("core_barrier %s {cores = [0, 1]}", "nop");
    assert_eq!(
        run(&cores(&[&early, &late], true), &inputs).expect_err("nothing is written yet"),
        "`load` reads `%s`, elements 0 to 5 of 6, which nothing has written"
    );
}

#[test]
fn who_waits_for_whom_is_told() {
    let barrier = "core_barrier {cores = [0, 1]}";
    assert_eq!(
        run(&cores(&[barrier, "nop"], true), &Tensors::new()).expect_err("core 1 ends"),
        "`core_barrier` is never passed: core 0 waits at `core_barrier` for core 1, which has ended"
    );
    let reduce = |op: &str| {
        format!(
            "%x = alloc sbuf<1x1xf32>\nmemset %x <- 1.0\nall_reduce {op} %x <- %x {{groups = [[0, 1]]}}"
        )
    };
    let ir = cores(&[&reduce("add"), &reduce("max")], true);
    assert_eq!(
        run(&ir, &Tensors::new()).expect_err("they disagree"),
        "`all_reduce` is never passed: core 0 waits at `all_reduce add` for core 1; \
         core 1 waits at `all_reduce max` for core 0"
    );
    let three = "core_barrier {cores = [0, 1, 2]}";
    let ir = cores(&[three, "nop", three], true);
    assert_eq!(
        run(&ir, &Tensors::new()).expect_err("core 1 ends"),
        "`core_barrier` is never passed: core 0 waits at `core_barrier` for core 1, which has ended; \
         core 2 waits at `core_barrier` for core 1, which has ended"
    );
}

#[test]
fn ranks_the_program_has_not_are_refused() {
    let with = |groups: &str| {
        format!(
            "%x = alloc sbuf<1x1xf32>\nmemset %x <- 1.0\nall_reduce add %x <- %x {{groups = {groups}}}"
        )
    };
    let one = cores(&[&with("[[0, 1]]")], true);
    assert_eq!(
        run(&one, &Tensors::new()).expect_err("no rank 1"),
        "`all_reduce` cannot be simulated: it exchanges data with rank 1, but the program's cores are [0]"
    );
    let alone = cores(&[&with("[[1]]")], true);
    assert_eq!(
        run(&alone, &Tensors::new()).expect_err("not a member"),
        "`all_reduce` cannot be simulated: core 0 is in none of its groups"
    );
    let body = with("[[0]]");
    run(&cores(&[&body], true), &Tensors::new()).expect("alone in its group");
    let outside = ["nop", "nop", "core_barrier {cores = [0, 1]}"];
    assert_eq!(
        run(&cores(&outside, true), &Tensors::new()).expect_err("core 2 is no member"),
        "`core_barrier` cannot be simulated: core 2 is none of those that meet"
    );
    // A barrier of a core that is simulated alone holds nobody up.
    run(&cores(&["core_barrier"], true), &Tensors::new()).expect("nobody to wait for");
}

#[test]
fn members_bring_equal_amounts() {
    let with = |n: usize| {
        format!(
            "%x = alloc sbuf<1x{n}xf32>\nmemset %x <- 1.0\nall_reduce add %x <- %x {{groups = [[0, 1]]}}"
        )
    };
    let ir = cores(&[&with(3), &with(4)], true);
    assert_eq!(
        run(&ir, &Tensors::new()).expect_err("3 and 4"),
        "`all_reduce` cannot be simulated: core 1 brings 4 elements of `f32`, but here 3 of `f32` are expected"
    );
    let with = |dtype: &str| {
        format!(
            "%x = alloc dram<4x{dtype}> {{kind = input}}\n%y = alloc dram<4x{dtype}>\nall_to_all %y <- %x {{groups = [[0, 1]]}}"
        )
    };
    let ir = cores(&[&with("f16"), &with("bf16")], true);
    let inputs = Tensors::from([
        ("x@0".to_owned(), tensor(DType::F16, &[4], [0.0; 4])),
        ("x@1".to_owned(), tensor(DType::Bf16, &[4], [0.0; 4])),
    ]);
    assert_eq!(
        run(&ir, &inputs).expect_err("two dtypes"),
        "`all_to_all` cannot be simulated: core 1 brings 4 elements of `bf16`, but here 4 of `f16` are expected"
    );
}

#[test]
fn undefined_data_of_a_member_are_named() {
    let body = "%x = alloc sbuf<2x2xf32>\n%y = alloc sbuf<2x2xf32>\nmemset %x[:, 0:1] <- 1.0\nall_reduce add %y <- %x {groups = [[0, 1]]}";
    let ir = cores(&[body, body], false);
    assert_eq!(
        run(&ir, &Tensors::new()).expect_err("half of %x is undefined"),
        "`all_reduce` reads `%x@0`, partitions 0 to 1, elements 1 to 1 of 2, which nothing has written"
    );
    let options = Options {
        uninit: Uninit::Zero,
        ..Options::default()
    };
    let simulation = Simulation::new(&ir, options).expect("lowers");
    assert!(simulation.run(&Tensors::new(), &mut |_| {}).is_ok());
}

#[test]
fn gpsimd_copies_to_the_location_of_another_core() {
    let sender = "%x = alloc dram<2x3xf32> {kind = input, space = shared}\n%t = alloc sbuf<2x3xf32>\n\
                  %there = alloc sbuf<2x3xf32> {remote_target = \"inbox\"}\nload %t <- %x\ngpsimd_sb2sb %there <- %t\ncore_barrier";
    let receiver = "%y = alloc dram<2x3xf32> {kind = output}\n%inbox = alloc sbuf<2x3xf32> {boundary}\ncore_barrier\nsave %y <- %inbox\nnop\nnop";
    let x = random::tensor(2, "x", DType::F32, &[2, 3]);
    let inputs = Tensors::from([("x".to_owned(), x.clone())]);
    let found = run(&cores(&[sender, receiver], true), &inputs).expect("runs");
    assert_eq!(found["y@1"], x);
    let wrong = sender.replace("inbox", "outbox");
    assert_eq!(
        run(&cores(&[&wrong, receiver], true), &inputs).expect_err("no such location"),
        "`alloc` cannot be simulated: the bytes of `%there@0` live at `outbox@1`, which no core of the program has"
    );
    let chained = receiver.replace("{boundary}", "{remote_target = \"t\"}");
    assert_eq!(
        run(&cores(&[sender, &chained], true), &inputs).expect_err("a chain"),
        "`alloc` cannot be simulated: the bytes of `%there@0` live at `inbox@1`, whose own bytes live elsewhere"
    );
    let small = receiver.replace(
        "%inbox = alloc sbuf<2x3xf32>",
        "%inbox = alloc sbuf<2x3xf16>",
    );
    let small = small.replace("%y = alloc dram<2x3xf32>", "%y = alloc dram<2x3xf16>");
    assert_eq!(
        run(&cores(&[sender, &small], true), &inputs).expect_err("another size"),
        "`alloc` cannot be simulated: the bytes of `%there@0` live at `inbox@1`, which is of another size"
    );
}

#[test]
fn shared_buffers_are_the_same_on_every_core() {
    let a = "%s = alloc dram<2xf32> {space = shared}";
    let b = "%s = alloc dram<2xi32> {space = shared}";
    // The verifier says so first, where it is asked.
    assert_eq!(
        run(&cores(&[a, b], false), &Tensors::new()).expect_err("two dtypes"),
        "`alloc` cannot be simulated: `%s` is shared, but is another buffer on an earlier core"
    );
    let two = "bir.module @a {core = 3} {\n bir.func @main {\n }\n}\n";
    let text = format!("{two}{}", two.replace("@a", "@b"));
    let ir = clean(&text, Level::Off);
    assert_eq!(
        run(&ir, &Tensors::new()).expect_err("core 3 twice"),
        "the program has two modules for core 3"
    );
}

#[test]
fn placed_locations_of_two_cores_lie_in_two_scratchpads() {
    let body = |value: &str| {
        format!(
            "%y = alloc dram<2x3xf32> {{kind = output}}\n%t = alloc sbuf<2x3xf32> at [0, 0x0]\nmemset %t <- {value}\n\
             core_barrier\nsave %y <- %t"
        )
    };
    let ir = cores(&[&body("1.0"), &body("2.0")], true);
    let found = run(&ir, &Tensors::new()).expect("runs");
    assert_eq!(values(&found["y@0"]), [1.0; 6]);
    assert_eq!(values(&found["y@1"]), [2.0; 6]);
}

#[test]
fn loops_meet_in_every_iteration() {
    let body = "%x = alloc dram<1x4xf32> {kind = input}\n%y = alloc dram<1x4xf32> {kind = output}\n%t = alloc sbuf<1x4xf32>\n\
                load %t <- %x\nloop %i = 0 to 4 {\nall_reduce add %t[:, %i +: 1] <- %t[:, %i +: 1] {groups = [[0, 1]]}\n}\nsave %y <- %t";
    let (x, found) = spmd(2, ("x", DType::F32, &[1, 4]), body);
    let found = found.expect("runs");
    let want: Vec<f32> = values(&x[0])
        .iter()
        .zip(values(&x[1]))
        .map(|(a, b)| a + b)
        .collect();
    assert_same(&values(&found["y@1"]), &want, "loop");
    let ir = cores(&[body, body], true);
    let inputs = (0..2)
        .map(|core| (format!("x@{core}"), x[core].clone()))
        .collect();
    let simulation = Simulation::new(&ir, Options::default()).expect("lowers");
    let stats = simulation.run(&inputs, &mut |_| {}).expect("runs").stats;
    assert_eq!(stats.executed[&("dma", "all_reduce")], 8);
    let limited = Options {
        max_steps: 5,
        ..Options::default()
    };
    let simulation = Simulation::new(&ir, limited).expect("lowers");
    let fault = simulation.run(&inputs, &mut |_| {}).expect_err("too many");
    assert!(fault.to_string().contains("within the limit of 5 steps"));
}

#[test]
fn an_input_of_a_plain_name_is_given_to_every_core() {
    let body = "%x = alloc dram<1x4xf32> {kind = input}\n%y = alloc dram<1x4xf32> {kind = output}\ndma_copy %y <- %x";
    let ir = cores(&[body, body], true);
    let (x, own) = (
        random::tensor(1, "x", DType::F32, &[1, 4]),
        random::tensor(2, "x", DType::F32, &[1, 4]),
    );
    let inputs = Tensors::from([("x".to_owned(), x.clone()), ("x@1".to_owned(), own.clone())]);
    let found = run(&ir, &inputs).expect("runs");
    assert_eq!((&found["y@0"], &found["y@1"]), (&x, &own));
    assert_eq!(
        run(&ir, &Tensors::from([("x@1".to_owned(), own)])).expect_err("core 0 has none"),
        "no value is given for input `%x@0`"
    );
}
