//! Passes on random programs: what they leave computes what it did.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod apply_patterns;
mod dead_code_elim;
mod harness;
mod instruction_reorder;
mod localize_shared_memory;
mod pipelines;
mod ssa_exit;
mod unroll;
