//! The functional simulator of BIR: the oracle every claim of equality rests on.
//!
//! * [`Simulation`] – a function lowered once to a flat program, and run on inputs.
//! * [`Tensor`] – a value with its dtype; [`random`] makes some, [`Difference`] compares two.
//! * [`validate`] – whether two modules compute the same.
//! * [`generate`] – random programs, and the workloads budgets are measured on.
//! * [`reduce`] – makes a program smaller while it stays interesting.
//! * [`npy`] – numpy's files.
//! * [`Fault`] – what can go wrong, as values with the instruction they belong to.
//!
//! The code is the semantics, the same on every machine: activation functions are our own
//! polynomials, the matrix product is one loop (`product`), sums start from their first element in
//! the order of the access.

#[cfg(target_endian = "big")]
compile_error!("memory is little-endian, and rows are used where they lie");

mod alu;
mod choices;
mod compare;
mod cores;
mod fault;
mod func;
pub mod generate;
mod hidden;
mod lower;
mod machine;
mod memory;
mod nan;
pub mod npy;
mod ops;
mod product;
pub mod random;
mod recur;
pub mod reduce;
mod rows;
mod run;
mod runs;
mod simd;
mod stats;
mod tensor;
mod tile;
pub mod validate;
mod walk;

pub use compare::{Difference, Tolerance, compare};
pub use fault::{Fault, FaultKind, Run};
pub use lower::entries;
pub use ops::executes;
pub use run::{Inputs, MxScale, Options, Outcome, Port, PortKind, Simulation, Uninit, run};
pub use simd::Lanes;
pub use stats::Stats;
pub use tensor::Tensor;
