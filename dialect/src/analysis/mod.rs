//! Questions about memory: how accesses relate, and who wrote what who reads.
//!
//! * [`access`] – the algebra of single accesses;
//! * [`index`] – reaching definitions, definedness and readers, per storage.

pub mod access;
pub mod index;
