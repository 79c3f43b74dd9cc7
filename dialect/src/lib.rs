//! The BIR dialect: an IR, its instruction set, its text and its analyses.
//!
//! * [`ir`] – operations, blocks, regions, values; knows no instruction set.
//! * [`bir::num`] – dtypes, number text and every dtype-to-dtype conversion.

pub mod bir;
pub mod ir;
pub mod text;
