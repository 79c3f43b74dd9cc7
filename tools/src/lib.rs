//! What the tools share: reading files, reporting findings, writing results.
//!
//! Exit codes of every tool: 0 success; 1 the input was wrong or a check failed, nothing written;
//! 2 the command line was wrong.

pub mod arrays;
pub mod files;
pub mod opt;
pub mod report;
