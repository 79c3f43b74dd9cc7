//! The memory index: for every read who may have written it last, and for every write who reads it.
//!
//! [`StorageIndex`] works on plain events over the bytes of one storage; [`Flow`] is the control
//! flow between them. Results depend on the order of events only, never on hashing.

mod atoms;
mod flow;
mod pass;
mod storage;
mod tree;
mod uses;

pub use atoms::{Gap, RANGE_LIMIT};
pub use flow::{Flow, LoopId, LoopKind, LoopSpan, Segment};
pub use storage::{
    Effect, Event, Initial, MAX_DEPTH, Reaching, Reads, Storage, StorageIndex, Uncovered, Writes,
};
pub use tree::Origin;
pub use uses::Uses;
