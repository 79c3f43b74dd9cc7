//! Random pipelines of all passes on random programs.

use crate::harness::{Counters, baseline, config, programs, run, text, verified};
use bir_passes::non_ssa_legalization::checker;
use bir_passes::{ApplyPatterns, Pass, Registry};
use bir_sim::generate::generate;
use bir_sim::random::Random;

/// Passes that owe nothing more when they run again.
const IDEMPOTENT: &[&str] = &[
    "apply_patterns",
    "canonicalize_names",
    "dead_code_elim_o0",
    "dead_code_elim_o1",
    "instruction_reorder",
    "localize_shared_memory",
    "non_ssa_legalization",
];

/// Programs whose clones stood in one slot, until blocks that branch were unrolled; and where a dead
/// store left who wrote what it read.
const FOUND: &[u64] = &[100299, 2002236, 2002562];

#[test]
fn pipelines_keep_the_outputs() {
    let names: Vec<&str> = Registry::new().names().collect();
    let mut counters = Counters::new();
    for seed in FOUND.iter().copied().chain(programs(40)) {
        let mut random = Random::new(seed, "pipeline");
        let mut config = config(seed);
        // Orders of generated programs come from no schedule.
        config.without.insert(bir_sim::generate::Feature::Order);
        let mut ir = generate(&config).ir;
        let expected = baseline(&ir, seed, &format!("seed {seed}"));
        let mut ran_so_far = String::new();
        for _ in 0..2 + random.below(6) {
            let name = names[random.below(names.len() as u64) as usize];
            ran_so_far += &format!(" {name}");
            let make = || -> Box<dyn Pass> {
                match name {
                    // It does nothing without the name of a set.
                    "apply_patterns" => Box::new(ApplyPatterns {
                        set: "identities".to_owned(),
                        ..ApplyPatterns::default()
                    }),
                    _ => Registry::new().make(name).unwrap(),
                }
            };
            let what = format!("seed {seed}, pipeline{ran_so_far}");
            let before = ir.clone();
            let ran = run(vec![make()], &mut ir);
            assert!(
                ran.errors.is_empty(),
                "{what}\n{}\n{:#?}",
                text(&before),
                ran.errors
            );
            let is_changed = text(&before) != text(&ir);
            assert_eq!(
                ran.changed,
                is_changed,
                "{what}\n{}\n{}",
                text(&before),
                text(&ir)
            );
            if is_changed {
                verified(&ir, &format!("{what}\n{}", text(&before)));
                if let Err(difference) = expected.check(&ir) {
                    panic!("{what}\n{}\n{}\n{difference}", text(&before), text(&ir));
                }
            }
            if name == "non_ssa_legalization" {
                let faults: Vec<String> = checker::check(&before, &ir)
                    .into_iter()
                    .map(|fault| fault.message)
                    .collect();
                assert!(
                    faults.is_empty(),
                    "{what}\n{}\n{}\n{faults:#?}",
                    text(&before),
                    text(&ir)
                );
            }
            if IDEMPOTENT.contains(&name) {
                let before = text(&ir);
                let again = run(vec![make()], &mut ir);
                assert!(!again.changed, "{what}, again\n{before}\n{}", text(&ir));
            }
            for (name, count) in ran.counters {
                *counters.entry(name).or_default() += count;
            }
        }
    }
    // A pass that never did anything here was not tested here.
    let passes = counters.keys().map(|name| name.split(':').next().unwrap());
    for name in passes.collect::<std::collections::BTreeSet<_>>() {
        let total: u64 = counters
            .iter()
            .filter(|(counter, _)| counter.split(':').next() == Some(name))
            .map(|(_, count)| count)
            .sum();
        // Generated programs have one core, and orders are taken away.
        let is_idle = ["instruction_reorder", "localize_shared_memory"].contains(&name);
        assert!(total > 0 || is_idle, "{name} never counted anything");
    }
}
