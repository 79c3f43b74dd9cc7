//! Registers, semaphores, barriers, messages to the outside.

use bir_dialect::bir::attrs::{Sem, SemEvent, SemOp};
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{ACTIVATION_FUNCS, OpCode};
use bir_dialect::bir::program::names;

use super::super::Generator;
use super::super::draft::Draft;

pub(super) fn register_load(g: &mut Generator<'_>) {
    g.loaded_register();
}

pub(super) fn register_store(g: &mut Generator<'_>) {
    let register = g.any_register();
    let mut draft = Draft::new(OpCode::RegisterStore);
    draft.value("src", register);
    let want = g.want(&draft, "dst", 1, 1).of(&[DType::I32]);
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn register_move(g: &mut Generator<'_>) {
    let value = g.random.below(100) as i64;
    g.constant_register(value);
}

pub(super) fn register_alu(g: &mut Generator<'_>) {
    let lhs = g.any_register();
    let mut draft = Draft::new(OpCode::RegisterAlu);
    let word = g.pick(&[
        "add",
        "subtract",
        "multiply",
        "max",
        "min",
        "equal",
        "not_equal",
        "greater",
        "less_equal",
        "logical_and",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "left_shift",
        "right_shift",
        "divide_int",
        "mod_int",
    ]);
    g.word(&mut draft, "op", word);
    draft.value("lhs", lhs);
    if g.chance(2) && !word.ends_with("_int") {
        let rhs = g.any_register();
        draft.value("rhs", rhs);
    } else {
        let rhs = g.between(1, 7) as i64;
        g.int(&mut draft, "rhs", rhs);
    }
    g.define_register(&mut draft, DType::I32, None);
}

/// Sets a semaphore no pair of instructions uses.
pub(super) fn event_semaphore(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::EventSemaphore);
    if g.depth == 0 && g.chance(2) {
        let sem = Sem {
            id: 240 + g.random.below(8) as u32,
            op: SemOp::Set,
            value: 0,
            event: SemEvent::Default,
        };
        let sem = sem.intern(&mut g.ir.ctx);
        let list = g.ir.ctx.array(&[sem]);
        draft.attr(names::SIGNAL, list);
    }
    g.emit(&mut draft);
}

pub(super) fn semaphore_range_clear(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::SemaphoreRangeClear);
    let first = g.between(248, 255) as i64;
    let count = g.between(1, (256 - first) as u64) as i64;
    g.int(&mut draft, "first", first);
    g.int(&mut draft, "count", count);
    g.emit(&mut draft);
}

fn plain(g: &mut Generator<'_>, code: OpCode) {
    let mut draft = Draft::new(code);
    g.emit(&mut draft);
}

pub(super) fn all_engine_barrier(g: &mut Generator<'_>) {
    plain(g, OpCode::AllEngineBarrier);
}

pub(super) fn drain(g: &mut Generator<'_>) {
    plain(g, OpCode::Drain);
}

pub(super) fn nop(g: &mut Generator<'_>) {
    g.nop();
}

pub(super) fn notify(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Notify);
    let event = g.random.below(100) as i64;
    g.int(&mut draft, "event", event);
    g.emit(&mut draft);
}

pub(super) fn dma_trigger(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::DmaTrigger);
    g.word(&mut draft, "queue", "q0");
    g.emit(&mut draft);
}

pub(super) fn set_ordering_mode(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::SetOrderingMode);
    let mode = g.pick(&["strict", "relaxed"]);
    g.word(&mut draft, "mode", mode);
    g.emit(&mut draft);
}

pub(super) fn modify_pool_config(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::ModifyPoolConfig);
    g.word(&mut draft, "config", "default");
    g.emit(&mut draft);
}

pub(super) fn load_activation_table(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::LoadActivationTable);
    let func = g.pick(ACTIVATION_FUNCS.words);
    g.word(&mut draft, "func", func);
    g.emit(&mut draft);
}

pub(super) fn device_print(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::DevicePrint);
    g.unary(&mut draft);
    g.word(&mut draft, "text", "here");
    g.emit(&mut draft);
}
