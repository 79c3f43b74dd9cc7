//! Numbers of every dtype: values, text, rounding, and tables that other libraries compute.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod rounding;
mod tables;
mod text;
mod values;
