//! Campaigns over generated programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod carried;
mod checks;
mod dependences;
mod programs;
mod reduce;
mod replay;
