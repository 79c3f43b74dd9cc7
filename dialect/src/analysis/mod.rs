//! Questions about memory: how accesses relate, and who wrote what who reads.
//!
//! * [`access`] – the algebra of single accesses.

pub mod access;
