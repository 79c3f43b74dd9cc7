//! `localize_shared_memory` on random programs of two cores.

use crate::harness::{Again, Counters, all_counted, check, config, programs, read, text};
use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::ir::Ir;
use bir_passes::LocalizeSharedMemory;
use bir_passes::pass::Anchor;
use bir_sim::generate::{Feature, generate};
use bir_sim::random::Random;

/// A program of two cores that do the same, some of their temporaries shared by name.
///
/// A temporary of the first core may be shared and known to the second, which has its own under
/// another name; then only one core touches it. At the edge of a module it must stay.
fn two_cores(seed: u64) -> String {
    let mut config = config(seed);
    config.without.insert(Feature::MustAlias);
    config.without_ops = OpCode::ALL
        .iter()
        .copied()
        .filter(|&code| code.def().has(Trait::Collective) || code == OpCode::ProcessingRankId)
        .collect();
    let one = text(&generate(&config).ir);
    let mut random = Random::new(seed, "cores");
    let (mut first, mut second) = (String::new(), String::new());
    let mut renamed: Vec<String> = Vec::new();
    for line in one.lines() {
        if let Some(rest) = line.strip_prefix("bir.module @generated {") {
            first += &format!("bir.module @a {{core = 0, {rest}\n");
            second += &format!("bir.module @b {{core = 1, {rest}\n");
            continue;
        }
        let is_temporary = line.contains(" = alloc dram<") && line.trim_end().ends_with('>');
        let name = line.trim().split(' ').next().unwrap_or_default().to_owned();
        if !is_temporary || random.below(3) == 0 {
            first += &format!("{line}\n");
            second += &format!("{line}\n");
            continue;
        }
        let edge = if random.below(3) == 0 {
            ", boundary"
        } else {
            ""
        };
        first += &format!("{line} {{space = shared{edge}}}\n");
        second += &format!("{line} {{space = shared{edge}}}\n");
        second += &format!("{}\n", line.replacen(&name, &format!("{name}_b"), 1));
        renamed.push(name);
    }
    // Uses only: declarations were written by hand.
    let second: Vec<String> = second
        .lines()
        .map(|line| match line.contains(" = alloc ") {
            true => line.to_owned(),
            false => renamed
                .iter()
                .fold(line.to_owned(), |line, name| use_other(&line, name)),
        })
        .collect();
    format!("{first}{}\n", second.join("\n"))
}

/// A line that uses `name_b` where it used `name`.
fn use_other(line: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(name) {
        let (before, behind) = rest.split_at(at);
        let behind = &behind[name.len()..];
        let whole = !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        out += before;
        out += name;
        if whole {
            out += "_b";
        }
        rest = behind;
    }
    out + rest
}

fn check_one(ir: &mut Ir, seed: u64, counters: &mut Counters) {
    let pass = LocalizeSharedMemory::default();
    check(&pass, ir, seed, Again::ChangesNothing, counters);
}

#[test]
fn buffers_of_one_core_become_its_own_and_outputs_stay() {
    let mut counters = Counters::new();
    for seed in programs(60) {
        let mut ir = read(&two_cores(seed));
        check_one(&mut ir, seed, &mut counters);
    }
    all_counted(&counters);
}

#[test]
fn buffers_that_cores_meet_at_stay_shared_and_outputs_stay() {
    let mut counters = Counters::new();
    let mut several = 0;
    for seed in programs(60) {
        let mut config = config(seed);
        config.max_cores = 4;
        let mut ir = generate(&config).ir;
        several += u64::from(Anchor::Module.ops(&ir).len() > 1);
        check_one(&mut ir, seed, &mut counters);
    }
    assert!(several > 0, "no program of several cores");
}
