//! Text: the cache of statement shapes, and damaged files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod cache;
mod fuzz;
mod support;
