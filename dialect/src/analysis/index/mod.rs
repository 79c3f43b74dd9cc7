//! The memory index: for every read who may have written it last, and for every write who reads it.
//!
//! [`FunctionIndex`] answers for a function; it walks it once, groups accesses by the bytes they
//! are in, and makes one [`StorageIndex`] per group, all in one [`Arena`]. [`StorageIndex`] works on
//! plain events over the bytes of one storage; [`Flow`] is the control flow between them. [`Live`] has the stretches
//! locations are in use. [`Touches`] is who touches what, for those who need an index of few locations or none. Results depend on program order only, never on hashing.

pub(in crate::analysis) mod atoms;
mod classes;
pub(in crate::analysis) mod collect;
pub(in crate::analysis) mod event;
pub(in crate::analysis) mod flow;
mod function;
mod line;
mod live;
mod locate;
mod pass;
mod prints;
mod seen;
pub(in crate::analysis) mod storage;
mod touches;
pub(in crate::analysis) mod tree;
mod uses;
pub(in crate::analysis) mod walk;
mod webs;

pub use atoms::{Gap, RANGE_LIMIT};
pub use classes::Classes;
pub use event::{Effect, Event, Extent, Initial, Reads, Storage, Writes};
pub use flow::{Flow, LoopId, LoopKind, LoopSpan, MAX_DEPTH, Segment};
pub use function::{FunctionIndex, Undefined, Unwritten};
pub use live::{Interval, Live, Overlap, Peak};
pub use locate::{Frames, Location};
pub use seen::Seen;
pub use storage::{Arena, Reaching, StorageIndex, Uncovered};
pub use touches::Touches;
pub use tree::Origin;
pub use uses::Uses;
pub use walk::Touch;
pub(crate) use walk::effect_of;
pub use webs::Web;
