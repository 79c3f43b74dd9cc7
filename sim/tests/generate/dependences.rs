//! What dependences of workloads take, counted in bytes: of the accesses they come from, of what is
//! remembered on the way, and of the edges.

use bir_dialect::analysis::deps::{Graph, Kinds, reduce};
use bir_dialect::bir::program::DepKind;
use bir_sim::generate::{Profile, profile};

use crate::replay::function;

/// Bytes per instruction.
const BUDGET: usize = 300;

#[test]
fn dependences_of_workloads_stay_within_their_bytes() {
    let workloads = [
        (Profile::Linear, 2_000),
        (Profile::Spill, 20_000),
        (Profile::Fan, 2_049),
        (Profile::Fan, 21_504),
        (Profile::FanWide, 2_049),
        (Profile::FanWide, 21_504),
        (Profile::Million, 60_000),
    ];
    let memory = [DepKind::Anti, DepKind::Output];
    let stages = [
        ("build_fdeps", Kinds::of(&[DepKind::Flow])),
        ("anti_dependency_analyzer", Kinds::of(&memory)),
        ("all", Kinds::ALL),
    ];
    for (workload, size) in workloads {
        let ir = profile(workload, 1, Some(size)).ir;
        let func = function(&ir);
        for (stage, kinds) in stages {
            let graph = Graph::build(&ir, func, kinds);
            let count = graph.ops().len();
            let reduced = reduce(&graph).unwrap();
            let (peak, left) = (graph.peak_bytes(), reduced.graph.heap_bytes());
            println!(
                "{} {size}, {stage}: {count} instructions, {} B each, {} B of edges, {} B reduced, {} steps",
                workload.name(),
                peak / count,
                graph.heap_bytes() / count,
                left / count,
                reduced.steps as f64 / count as f64,
            );
            assert!(peak <= BUDGET * count, "{stage} of {}", workload.name());
            assert!(
                graph.heap_bytes() + left <= BUDGET * count,
                "{}",
                workload.name()
            );
            // Steps per instruction, whatever the workload's size.
            assert!(reduced.steps <= 20 * count as u64, "{}", workload.name());
        }
    }
}
