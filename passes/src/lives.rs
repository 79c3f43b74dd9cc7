//! Dead writes that keep the lives of placed locations apart.
//!
//! Locations placed in the same bytes take turns, and who judges that, the verifier, sees a life
//! begin where an instruction writes all of a location. Many writes that cover it together, or one that a
//! loop moves, may make a write of the whole dead before them. It stays all the same: without it the
//! life would have begun earlier, in what another location wrote there meanwhile.

use bir_dialect::analysis::access::Wholes;
use bir_dialect::analysis::index::FunctionIndex;
use bir_dialect::ir::{Ir, Op};

/// Which of the dead instructions of a function have to stay; `is_dead` is asked of all that write
/// placed locations.
pub(crate) fn needed(ir: &Ir, index: &FunctionIndex, is_dead: impl Fn(Op) -> bool) -> Vec<Op> {
    let mut wholes = Wholes::default();
    let mut found = Vec::new();
    // Per location, whether the next write that stays is one of the whole, or there is none.
    let mut is_whole_next = vec![true; index.locations().len()];
    for touch in index.touches().iter().rev() {
        let location = touch.location as usize;
        if !touch.effect.is_write() || index.locations()[location].place.is_none() {
            continue;
        }
        let is_whole = touch.defines() && wholes.is_whole(ir, ir.operand(touch.operand));
        let next = &mut is_whole_next[location];
        if !is_dead(touch.op) {
            *next = is_whole;
        } else if is_whole && !*next {
            found.push(touch.op);
            *next = true;
        }
    }
    found
}
