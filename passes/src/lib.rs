//! The pass manager, pipeline strings, and the passes.
//!
//! * [`pass`] – what a pass is: options, statistics, what it is given while it runs;
//! * [`options`] – options declared once, for parsing, printing, help and manual;
//! * [`registry`] – the one table of all passes; [`planes`] – the named pipelines `-O0` to `-O3`;
//! * [`rules`] – the pattern sets a run knows;
//! * [`pipeline`] – pipeline strings to passes and back;
//! * [`manager`] – runs a pipeline; [`instrument`] – everything that watches it.

pub mod instrument;
pub mod manager;
pub mod options;
pub mod pass;
pub mod pipeline;
pub mod planes;
pub mod registry;
pub mod rules;

mod anti_dependency_analyzer;
mod apply_patterns;
mod build_fdeps;
mod canonicalize_names;
pub mod dead_code_elim;
mod dep_reduction;
mod dependences;
mod erase_flow_dependencies;
mod instruction_reorder;
mod lives;
mod localize_shared_memory;
pub mod non_ssa_legalization;
mod occupancy;
mod order_constraints;
mod panics;
mod print_memory_map;
mod print_stats;
mod remove_redundant_loads;
mod remove_redundant_memsets;
mod stand_in;
mod test_passes;
mod unroll;
mod verifier;

pub use anti_dependency_analyzer::AntiDependencyAnalyzer;
pub use apply_patterns::{ApplyPatterns, DriverChoice};
pub use build_fdeps::BuildFdeps;
pub use canonicalize_names::CanonicalizeNames;
pub use dead_code_elim::{DeadCodeElimO0, DeadCodeElimO1};
pub use dep_reduction::DepReduction;
pub use erase_flow_dependencies::EraseFlowDependencies;
pub use instruction_reorder::InstructionReorder;
pub use localize_shared_memory::LocalizeSharedMemory;
pub use manager::{Manager, Outcome};
pub use non_ssa_legalization::NonSsaLegalization;
pub use order_constraints::OrderConstraints;
pub use pass::{Anchor, Pass};
pub use pipeline::Pipeline;
pub use print_memory_map::{MapFormat, PrintMemoryMap};
pub use print_stats::PrintStats;
pub use registry::Registry;
pub use remove_redundant_loads::RemoveRedundantLoads;
pub use remove_redundant_memsets::RemoveRedundantMemsets;
pub use rules::Rules;
pub use unroll::{Factor, Unroll};
pub use verifier::Verifier;
