//! The verifier on generated modules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod definedness;
mod modules;
mod sync;
