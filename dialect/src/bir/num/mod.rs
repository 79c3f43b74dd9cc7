//! Dtypes: their table, number text, and conversions between them.

mod dtype;

pub use dtype::DType;
