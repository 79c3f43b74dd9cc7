//! The BIR dialect: an IR, its instruction set, its text and its analyses.
//!
//! * [`bir::num`] – dtypes, number text and every dtype-to-dtype conversion.

pub mod bir;
