//! The table of all passes, sorted by name.

use crate::options::same_name;
use crate::pass::Pass;
use crate::{
    AntiDependencyAnalyzer, ApplyPatterns, BuildFdeps, CanonicalizeNames, DeadCodeElimO0,
    DeadCodeElimO1, DepReduction, EraseFlowDependencies, InstructionReorder, LocalizeSharedMemory,
    NonSsaLegalization, OrderConstraints, PrintMemoryMap, PrintStats, RemoveRedundantLoads,
    RemoveRedundantMemsets, Unroll, Verifier, test_passes as test,
};

/// Makes a pass with its defaults.
type Make = fn() -> Box<dyn Pass>;

fn make<P: Pass + Default + 'static>() -> Box<dyn Pass> {
    Box::new(P::default())
}

/// Every pass users see.
static PASSES: &[(&str, Make)] = &[
    ("anti_dependency_analyzer", make::<AntiDependencyAnalyzer>),
    ("apply_patterns", make::<ApplyPatterns>),
    ("build_fdeps", make::<BuildFdeps>),
    ("canonicalize_names", make::<CanonicalizeNames>),
    ("dead_code_elim_o0", make::<DeadCodeElimO0>),
    ("dead_code_elim_o1", make::<DeadCodeElimO1>),
    ("dep_reduction", make::<DepReduction>),
    ("erase_flow_dependencies", make::<EraseFlowDependencies>),
    ("instruction_reorder", make::<InstructionReorder>),
    ("localize_shared_memory", make::<LocalizeSharedMemory>),
    ("non_ssa_legalization", make::<NonSsaLegalization>),
    ("order_constraints", make::<OrderConstraints>),
    ("print_memory_map", make::<PrintMemoryMap>),
    ("print_stats", make::<PrintStats>),
    ("remove_redundant_loads", make::<RemoveRedundantLoads>),
    ("remove_redundant_memsets", make::<RemoveRedundantMemsets>),
    ("unroll", make::<Unroll>),
    ("verifier", make::<Verifier>),
];

/// Passes that misbehave on purpose, for tests of the manager.
static TEST_PASSES: &[(&str, Make)] = &[
    ("test_break", make::<test::TestBreak>),
    ("test_error", make::<test::TestError>),
    ("test_lie", make::<test::TestLie>),
    ("test_panic", make::<test::TestPanic>),
    ("test_rename", make::<test::TestRename>),
];

/// The passes a run knows.
#[derive(Clone, Copy, Default, Debug)]
pub struct Registry {
    with_tests: bool,
}

impl Registry {
    /// Every pass users see.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Also the passes that misbehave on purpose.
    pub fn with_test_passes() -> Registry {
        Registry { with_tests: true }
    }

    fn rows(&self) -> impl Iterator<Item = &'static (&'static str, Make)> + use<> {
        let tests: &[_] = if self.with_tests { TEST_PASSES } else { &[] };
        PASSES.iter().chain(tests)
    }

    /// Names in order, with underscores.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.rows().map(|&(name, _)| name)
    }

    /// A pass by name, with its defaults; hyphens and underscores do not differ.
    pub fn make(&self, name: &str) -> Option<Box<dyn Pass>> {
        self.rows()
            .find(|(known, _)| same_name(known, name))
            .map(|(_, make)| make())
    }

    /// Every pass users see, with its defaults.
    pub fn all(&self) -> impl Iterator<Item = Box<dyn Pass>> + use<> {
        PASSES.iter().map(|(_, make)| make())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_rows_agree_with_their_passes() {
        for table in [PASSES, TEST_PASSES] {
            assert!(table.is_sorted_by_key(|row| row.0));
            for (name, make) in table {
                let pass = make();
                assert_eq!(pass.name(), *name);
                assert!(!crate::pass::summary(pass.as_ref()).is_empty());
                for (number, def) in pass.option_defs().iter().enumerate() {
                    assert!(!def.doc.is_empty(), "{name}: {}", def.name);
                    let mut again = make();
                    again.set_option(number, &pass.option(number)).unwrap();
                }
            }
        }
    }
}
