//! The BIR dialect proper: instruction table, types, access patterns, targets.

pub mod num;
