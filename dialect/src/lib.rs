//! The BIR dialect: an IR, its instruction set, its text and its analyses.
//!
//! * [`ir`] – operations, blocks, regions, values; knows no instruction set.
//! * [`analysis`] – the access algebra and the memory dataflow index.
//! * [`bir::num`] – dtypes, number text and every dtype-to-dtype conversion.
//! * [`read`] – text to a verified program, [`check`] – whether a program is one.

pub mod analysis;
pub mod bir;
pub mod ir;
mod read;
pub mod text;

pub use read::{Refused, check, read};
