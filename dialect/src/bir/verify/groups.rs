//! Accumulation onto what another engine wrote: up to `trn2` the tensor engine adds only to words it
//! wrote last itself.
//!
//! Formally: of every write that may be the last to some byte an accumulating `matmult` adds to,
//! the engine is `pe`. What the first iteration of `unless_first(%k)` finds is not added to, so
//! there only writes in the body of the loop of `%k` count. Writes whose place in the location is
//! not the same in every iteration count where the index is certain that they are the last.

use super::super::access::Access;
use super::super::attrs::Accumulate;
use super::super::loops::loop_of;
use super::super::ops::{OpCode, OpDef};
use super::super::program::names;
use super::super::space::{Engine, Target};
use super::super::types::MemType;
use super::super::view::OpView;
use super::words::value_text;
use crate::analysis::access::footprint;
use crate::analysis::index::{FunctionIndex, Touch};
use crate::ir::{Ir, Op};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

/// The engine that executes an instruction.
pub(super) fn engine_of(ir: &Ir, op: Op, def: &OpDef, target: Target) -> Option<Engine> {
    let engines = def.engines?;
    OpView::new(ir, op)
        .engine_attr()
        .or_else(|| Some(engines.default_on(target)))
}

/// How an instruction combines with what its destination holds.
pub(super) fn accumulates(ir: &Ir, op: Op) -> Accumulate {
    Accumulate::get(&ir.ctx, ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE))
        .unwrap_or(Accumulate::No)
}

/// Whether an operation is one of the multiplications, which may accumulate.
pub(super) fn is_matmult(code: OpCode) -> bool {
    matches!(
        code,
        OpCode::Matmult | OpCode::MatmultSparse | OpCode::MatmultMx
    )
}

/// Checks the groups of a function; `target` is one that does not add to what others wrote.
pub(super) fn check(ir: &Ir, index: &FunctionIndex, target: Target, diags: &mut Diagnostics) {
    for (number, touch) in (0u32..).zip(index.touches()) {
        if !touch.effect.is_read() || !touch.effect.is_write() {
            continue;
        }
        let Some(code) = OpCode::of(ir, touch.op).filter(|&code| is_matmult(code)) else {
            continue;
        };
        let around = match accumulates(ir, touch.op) {
            Accumulate::No => continue,
            Accumulate::Yes => None,
            Accumulate::UnlessFirst(at) => {
                let value = OpView::new(ir, touch.op).indices().nth(usize::from(at));
                let Some(around) = value.and_then(|value| loop_of(ir, value)) else {
                    continue;
                };
                Some(around)
            }
        };
        let sole = index.sole_definition(number);
        let is_certain = is_steady(ir, touch);
        let (writers, _) = index.reaching(number);
        let wrong = writers.into_iter().find(|&writer| {
            let Some(other) = index.touches().get(writer as usize) else {
                return false;
            };
            let counts = sole == Some(writer) || (is_certain && is_steady(ir, other));
            counts
                && !is_of_tensor_engine(ir, other.op, target)
                && around.is_none_or(|around| is_inside(ir, other.op, around))
        });
        let wrong = wrong.and_then(|writer| index.touches().get(writer as usize));
        if let Some(writer) = wrong {
            report(ir, code, touch, writer, target, diags);
        }
    }
}

fn is_of_tensor_engine(ir: &Ir, op: Op, target: Target) -> bool {
    OpCode::of(ir, op)
        .and_then(|code| engine_of(ir, op, code.def(), target))
        .is_none_or(|engine| engine == Engine::Pe)
}

/// Whether the bytes of an access are known, and the same in every iteration.
fn is_steady(ir: &Ir, touch: &Touch) -> bool {
    let operand = ir.operand(touch.operand);
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(operand.value)) else {
        return false;
    };
    let access = Access::resolve(&ir.ctx, &mem, operand.annot);
    !touch.dynamic
        && access.terms.is_empty()
        && footprint(&access).is_some_and(|print| print.is_exact())
}

fn is_inside(ir: &Ir, op: Op, around: Op) -> bool {
    std::iter::successors(ir.parent(op), |&op| ir.parent(op)).any(|op| op == around)
}

fn report(
    ir: &Ir,
    code: OpCode,
    touch: &Touch,
    writer: &Touch,
    target: Target,
    diags: &mut Diagnostics,
) {
    let position = ir.operand_ids(touch.op).position(|id| id == touch.operand);
    let part = position.map_or(Part::Whole, Part::Operand);
    let name = value_text(ir, ir.operand(touch.operand).value);
    let by = OpCode::of(ir, writer.op).map_or("another instruction", |code| code.def().name);
    let message = format!(
        "`{}` accumulates onto {name}, which `{by}` wrote last, where `{target}` accumulates only onto what the tensor engine wrote",
        code.def().name
    );
    let help = "let the first `matmult` of the group overwrite, and add the tile to its result";
    diags.push(
        Diagnostic::error(Place::Op(touch.op, part), message)
            .related(Place::Op(writer.op, Part::Whole), "written here")
            .help(help),
    );
}
