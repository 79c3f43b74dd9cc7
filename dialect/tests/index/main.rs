//! The memory index against brute force and on whole functions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod function;
mod storage;
mod webs;
