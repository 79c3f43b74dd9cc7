//! Which instructions write or read state that is no operand: accumulators, caches, random state.

use super::def::{Engines, Kind, Trait};
use super::table::OpCode;
use crate::bir::space::{Engine, Target};
use crate::bir::view::OpView;
use crate::ir::{Ir, Op};

/// Whether an instruction writes hidden state, so that removing it changes what others compute.
///
/// Ops without the trait never do. Of the others, those with `reduce_cmd` do unless it is `idle`,
/// and those whose state is optional do where they ask for it; the rest always do.
pub fn writes_hidden_state(ir: &Ir, op: Op) -> bool {
    let view = OpView::new(ir, op);
    let Some(code) = view.code() else {
        return false;
    };
    let def = code.def();
    if !def.has(Trait::HiddenState) {
        return false;
    }
    match code {
        // Reading leaves the state as it is.
        OpCode::ReadActivationAccumulator | OpCode::RandGetState => false,
        OpCode::TensorTensor => view.flag("accumulate"),
        OpCode::TensorScalarCache => view.flag("cache_write"),
        // The mask applied stays in the engine, too.
        OpCode::CopyPredicated => view.role("pred_out").is_present(),
        OpCode::TensorScalarPtr => view.role("offset").is_present(),
        _ => match def.attr("reduce_cmd") {
            None => true,
            Some(attr) => {
                // Asking for the reduced rows runs the accumulator also where no command is given.
                let asked = def
                    .operands
                    .iter()
                    .any(|role| role.name == "reduce_res" && role.kind == Kind::Out)
                    && view.role("reduce_res").is_present();
                let cmd = view.word("reduce_cmd").or(attr.default).unwrap_or("idle");
                cmd != "idle" || asked
            }
        },
    }
}

/// Whether an instruction that writes no hidden state leaves it undefined: on the vector engine, one
/// that could accumulate and is `idle` (isa-facts §7.3). Nobody misses it, but it does not move in
/// between those that do accumulate.
pub fn clobbers_hidden_state(ir: &Ir, op: Op) -> bool {
    let Some(def) = OpCode::of(ir, op).map(OpCode::def) else {
        return false;
    };
    let on_vector = |engines: Engines| engines.default_on(Target::Trn3) == Engine::Dve;
    def.has(Trait::HiddenState)
        && def.attr("reduce_cmd").is_some()
        && def.engines.is_some_and(on_vector)
        && !writes_hidden_state(ir, op)
}

/// Whether an instruction that writes no hidden state takes some, so that it stays behind who wrote
/// it.
pub fn reads_hidden_state(ir: &Ir, op: Op) -> bool {
    match OpCode::of(ir, op) {
        Some(OpCode::ReadActivationAccumulator | OpCode::RandGetState) => true,
        Some(OpCode::TensorScalarCache) => OpView::new(ir, op).flag("cache_read"),
        _ => false,
    }
}
