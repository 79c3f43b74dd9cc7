//! The pattern language: its text, its checks, what it does, and its proofs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod apply;
mod bounds;
mod check;
mod common;
mod constraints;
mod differential;
mod fuzz_check;
mod handover;
mod readme;
mod text;
mod verify;
