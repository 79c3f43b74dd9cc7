//! Every op and whole programs, against formulas written down beside them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_range_loop,
    clippy::type_complexity
)] // a test may fail so

mod accumulators;
mod common;
mod cores;
mod dma;
mod edges;
mod elementwise;
mod facts;
mod forms;
mod gather;
mod mx;
mod partitions;
mod random;
mod refused;
mod rowwise;
mod scenarios;
mod silent;
mod sorting;
mod table;
mod uninit;
mod validate;
mod views;
