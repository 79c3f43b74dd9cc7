//! `apply_patterns` on random programs, as a pass: outputs equal, clean, idempotent, counters. The rules
//! themselves are tried harder where they live.

use bir_passes::ApplyPatterns;

use crate::harness::{Again, Counters, check, config, programs};
use bir_sim::generate::generate;

#[test]
fn identities_keep_what_programs_compute() {
    let mut counters = Counters::default();
    let pass = ApplyPatterns {
        set: "identities".to_owned(),
        ..ApplyPatterns::default()
    };
    for seed in programs(100) {
        let mut ir = generate(&config(seed)).ir;
        check(&pass, &mut ir, seed, Again::ChangesNothing, &mut counters);
    }
    for name in [
        "rules-applied",
        "rules-matched",
        "rules-tried",
        "rules-vetoed",
    ] {
        let counted = counters.get(&format!("apply_patterns: {name}"));
        assert!(
            counted.is_some_and(|&count| count > 0),
            "{name}: {counters:?}"
        );
    }
}
