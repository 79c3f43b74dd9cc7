//! Questions about memory: how accesses relate, and who wrote what who reads.
//!
//! * [`access`] – the algebra of single accesses;
//! * [`index`] – reaching definitions, definedness and readers, per storage;
//! * [`deps`] – which instruction must follow which;
//! * [`lifetimes`] – when locations live, and which of one slot live together;
//! * [`outside`] – which locations others than their function know;
//! * [`sync`] – semaphores, played as counters.

pub mod access;
pub mod deps;
pub mod index;
pub mod lifetimes;
pub mod outside;
pub mod sync;
