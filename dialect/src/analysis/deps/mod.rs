//! Dependences: which instruction must follow which, and why.
//!
//! Formally, over a function's instructions in program order, within one iteration of the loops
//! that hold both instructions (an instruction reads before it writes):
//!
//! * FLOW `a -> b` – `b` reads a byte `a` wrote, and nothing overwrote the byte for certain in
//!   between; also where `b` uses a register `a` defines;
//! * ANTI `a -> b` – `b` may write a byte `a` read, and nothing overwrote it for certain since;
//! * OUTPUT `a -> b` – `b` may write a byte `a` may have written, and nothing overwrote it for
//!   certain in between;
//! * ORDERED `a -> b` – the program says so: barriers, semaphores, hidden state, effects somebody
//!   outside sees, `no_reorder` loops.
//!
//! Bytes are addresses where locations are placed, else those of a location and its `must_alias`
//! partners. Predicated and indirect writes may cover: they never end what was before.
//!
//! * [`Graph`] – the edges, with join nodes: an edge may end in a set that stands for many
//!   instructions, and sets hold sets; exact once expanded;
//! * [`attach`], [`detach`], [`attached`] – edges as `deps` and `depset` in the program;
//! * [`carried`] – what a loop carries from one iteration to a later one, with distances;
//! * [`reduce`] – the transitive reduction;
//! * [`erase`] – instructions go, and hand over what others owe to them and they to others;
//! * [`Memory`] – the questions rewrites ask, kept up to date while instructions come and go.
//!
//! Exactness: straight code is exact, and so are `loop` and `while` where no access moves with
//! their indices, whatever the blocks of their bodies: every way through blocks counts. In other
//! loops, accesses whose indices have equal coefficients are compared exactly within the iteration;
//! others by all they touch, and then overwrite nothing for certain, so there may be edges too many
//! and never one too few. What an access that a loop moves sees of what stands outside of the loop,
//! and leaves to it, is what all its iterations touch, as a whole; it is overwritten there only by
//! one that no branch decides over. The same holds for loops made of branches back, below
//! [`MAX_DEPTH`](super::index::MAX_DEPTH) nested loops and where ranges pass their limit.

mod build;
mod carried;
mod erase;
mod graph;
mod level;
mod memory;
mod nodes;
mod ordered;
mod reduce;
mod semaphores;
mod sets;
mod text;

pub use carried::{Carried, Distance, carried};
pub use erase::{Erased, erase};
pub use graph::{Edge, Graph, Kinds, Source};
pub use memory::{LastWriter, Memory};
pub use ordered::meets_others;
pub use reduce::{Reduced, reduce, reduce_in, reduce_within};
pub use semaphores::stand_in;
pub use text::{attach, attached, detach};
