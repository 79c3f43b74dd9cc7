//! Which values the index of a loop takes.

use super::ops::OpCode;
use super::program::names;
use crate::ir::{Block, Def, Ir, Op, Value};

/// The loop whose index a value is.
pub fn loop_of(ir: &Ir, index: Value) -> Option<Op> {
    let Def::Arg { block, index: 0 } = ir.def(index) else {
        return None;
    };
    let around = ir.block_parent(block)?;
    (OpCode::of(ir, around) == Some(OpCode::Loop) && is_entry(ir, block)).then_some(around)
}

fn is_entry(ir: &Ir, block: Block) -> bool {
    ir.entry(ir.block_region(block)) == Some(block)
}

/// Values of a loop index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// In the first iteration.
    pub first: i128,
    /// In the last iteration; `first` where the end is a register.
    pub last: i128,
    /// Distance between neighbours, at least 1.
    pub step: i128,
    /// Number of iterations; `None` where the end is a register.
    pub trips: Option<u64>,
}

/// Whether an op is a loop that makes a trip for certain wherever it is reached.
pub fn makes_a_trip(ir: &Ir, op: Op) -> bool {
    trips(ir, op).is_some_and(|trips| trips > 0)
}

/// Iterations of an op that is a `loop`; `None` for others, and where registers decide.
pub fn trips(ir: &Ir, op: Op) -> Option<u64> {
    let is_loop = OpCode::of(ir, op) == Some(OpCode::Loop);
    is_loop.then(|| loop_range(ir, op)).flatten()?.trips
}

/// Values of the index of a loop; `None` where its start is a register.
pub fn loop_range(ir: &Ir, around: Op) -> Option<Range> {
    let dict = ir.dict(around);
    let int = |name| {
        ir.ctx
            .dict_get(dict, name)
            .and_then(|attr| ir.ctx.attr_int(attr))
    };
    let first = i128::from(int(names::LOWER)?);
    let step = i128::from(int(names::STEP).unwrap_or(1).max(1));
    let Some(upper) = int(names::UPPER) else {
        return Some(Range {
            first,
            last: first,
            step,
            trips: None,
        });
    };
    let upper = i128::from(upper);
    if upper <= first {
        return Some(Range {
            first,
            last: first,
            step,
            trips: Some(0),
        });
    }
    let beyond = (upper - 1 - first) / step;
    Some(Range {
        first,
        last: first + step * beyond,
        step,
        trips: Some(u64::try_from(beyond + 1).unwrap_or(u64::MAX)),
    })
}
