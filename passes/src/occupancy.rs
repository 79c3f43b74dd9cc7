//! Which locations a function holds, and from which instruction to which.
//!
//! Instructions are numbered in text order. A location accessed in loops is held over whole turns:
//! from the first to the last statement that holds an access of it, in the innermost loop body
//! that holds them all; the whole loop where the body does not begin with a plain write, for then
//! a value may come from the turn before. What the outside knows (inputs, outputs, constants) is
//! held all the time.

use bir_dialect::bir::attrs::Placement;
use bir_dialect::bir::ops::{Kind, OpCode};
use bir_dialect::bir::program::names;
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op, Value, Visit};

/// One location.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) name: String,
    /// `sbuf<128x512xf32>`
    pub(crate) ty: String,
    pub(crate) space: Space,
    /// Bytes in each partition; in all for DRAM.
    pub(crate) bytes: u64,
    /// Bytes in all.
    pub(crate) total: u64,
    pub(crate) partitions: u64,
    pub(crate) placement: Option<Placement>,
    /// Numbers of the first and last instruction, both included; `None` where there is no access.
    pub(crate) span: Option<(usize, usize)>,
}

/// The largest sum of bytes held at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Peak {
    /// Bytes, per partition on chip.
    pub(crate) bytes: u64,
    /// The first instruction with so many.
    pub(crate) at: usize,
}

/// What is known of a location while the function is walked.
struct Track {
    value: Value,
    /// The loops around all accesses so far.
    common: Option<Vec<Op>>,
    carried: bool,
    span: Option<(usize, usize)>,
}

/// The locations of a function in order, and its number of instructions.
pub(crate) fn of_function(ir: &Ir, func: Op) -> (Vec<Held>, usize) {
    let mut tracks: Vec<Track> = Vec::new();
    let mut slot_of = std::collections::HashMap::new();
    for op in ir.walk_op(func) {
        if OpCode::of(ir, op) == Some(OpCode::Alloc)
            && let Some(value) = ir.result(op)
        {
            slot_of.insert(value, tracks.len());
            tracks.push(Track {
                value,
                common: None,
                carried: false,
                span: None,
            });
        }
    }
    let mut spans = std::collections::HashMap::new();
    let mut count = 0;
    each_access(ir, func, |visit| match visit {
        Step::Access(op, at, loops, role) => {
            count = at + 1;
            let Some(&slot) = role.and_then(|(value, _)| slot_of.get(&value)) else {
                return;
            };
            let plain = role.is_some_and(|(_, role)| writes_plainly(ir, op, role));
            let track = &mut tracks[slot];
            match &mut track.common {
                None => {
                    track.common = Some(loops.to_vec());
                    track.carried = !plain;
                }
                Some(common) => {
                    let shared = common.iter().zip(loops).take_while(|(a, b)| a == b).count();
                    common.truncate(shared);
                }
            }
        }
        Step::Loop(op, from, to) => {
            spans.insert(op, (from, to));
        }
    });
    each_access(ir, func, |visit| {
        let Step::Access(_, at, loops, Some((value, _))) = visit else {
            return;
        };
        let Some(&slot) = slot_of.get(&value) else {
            return;
        };
        let track = &mut tracks[slot];
        let depth = match (&track.common, track.carried) {
            (_, true) => 0,
            (common, false) => common.as_ref().map_or(0, Vec::len),
        };
        let (from, to) = match loops.get(depth) {
            Some(inner) => spans.get(inner).copied().unwrap_or((at, at)),
            None => (at, at),
        };
        track.span = Some(match track.span {
            Some((first, last)) => (first.min(from), last.max(to)),
            None => (from, to),
        });
    });
    let held = tracks
        .iter()
        .filter_map(|track| held(ir, track, count))
        .collect();
    (held, count)
}

fn held(ir: &Ir, track: &Track, count: usize) -> Option<Held> {
    let mem = MemType::get(&ir.ctx, ir.value_type(track.value))?;
    let op = ir.def_op(track.value)?;
    let outside = OpView::new(ir, op)
        .word("kind")
        .is_some_and(|kind| kind != "internal");
    let name = ir
        .value_name(track.value)
        .map_or("", |name| ir.ctx.text(name));
    let at = ir.ctx.dict_get(ir.dict(op), names::AT);
    Some(Held {
        name: name.to_owned(),
        ty: mem.text(),
        space: mem.space,
        bytes: mem.free_bytes().unwrap_or(u64::MAX),
        total: mem.bytes().unwrap_or(u64::MAX),
        partitions: mem.partitions(),
        placement: at.and_then(|at| Placement::get(&ir.ctx, at)),
        span: match outside {
            true => Some((0, count.saturating_sub(1))),
            false => track.span,
        },
    })
}

enum Step<'a> {
    /// An operand, or none, of instruction number `.1` with the loops around it.
    Access(Op, usize, &'a [Op], Option<(Value, u8)>),
    /// A loop, with the numbers of the first and last instruction in it.
    Loop(Op, usize, usize),
}

fn each_access(ir: &Ir, func: Op, mut step: impl FnMut(Step<'_>)) {
    let mut loops: Vec<Op> = Vec::new();
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for visit in ir.walk_visits(func) {
        match visit {
            Visit::Enter(op) => {
                if op == func || OpCode::of(ir, op) == Some(OpCode::Alloc) {
                    continue;
                }
                step(Step::Access(op, at, &loops, None));
                for operand in ir.operands(op) {
                    step(Step::Access(
                        op,
                        at,
                        &loops,
                        Some((operand.value, operand.role)),
                    ));
                }
                if !ir.regions(op).is_empty() {
                    loops.push(op);
                    starts.push(at);
                }
                at += 1;
            }
            Visit::Leave(op) if op != func => {
                loops.pop();
                let start = starts.pop().unwrap_or(0);
                step(Step::Loop(op, start, at - 1));
            }
            Visit::Leave(_) => {}
        }
    }
}

/// Whether the operand only writes.
fn writes_plainly(ir: &Ir, op: Op, role: u8) -> bool {
    let Some(def) = OpCode::of(ir, op).map(OpCode::def) else {
        return false;
    };
    let only_out = def
        .operands
        .get(usize::from(role))
        .is_some_and(|operand| operand.kind == Kind::Out);
    only_out && ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE).is_none()
}

/// The peak of one space.
pub(crate) fn peak(held: &[Held], space: Space) -> Peak {
    let mut events: Vec<(usize, bool, u64)> = Vec::new();
    for one in held.iter().filter(|one| one.space == space) {
        if let Some((first, last)) = one.span {
            events.push((first, true, one.bytes));
            events.push((last + 1, false, one.bytes));
        }
    }
    // What ends before an instruction is gone when others begin there.
    events.sort_unstable();
    let (mut now, mut peak) = (0u64, Peak::default());
    for (at, begins, bytes) in events {
        now = match begins {
            true => now.saturating_add(bytes),
            false => now.saturating_sub(bytes),
        };
        if now > peak.bytes {
            peak = Peak { bytes: now, at };
        }
    }
    peak
}
