//! Dependences: the graph, the questions rewrites ask, erasing with hand-over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod erase;
mod graph;
mod memory;
mod ordered;
mod reduce;
mod still;
mod support;
