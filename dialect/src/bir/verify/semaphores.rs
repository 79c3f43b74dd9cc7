//! Waits that nothing meets and counters that overflow, as the token game finds them.

use super::super::attrs::SemOp;
use super::super::program::names;
use super::super::space::Target;
use crate::analysis::sync::{Outcome, Overflow, Unmet, play};
use crate::ir::{Ir, Op};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

/// Checks a function.
pub(super) fn check(ir: &Ir, function: Op, target: Target, diags: &mut Diagnostics) {
    match play(ir, function, target) {
        Outcome::Met | Outcome::Unknown => {}
        Outcome::Unmet(list) => list.iter().for_each(|unmet| diags.push(stuck(ir, unmet))),
        Outcome::Overflow(overflow) => diags.push(overflown(ir, &overflow)),
    }
}

fn mnemonic(ir: &Ir, op: Op) -> &str {
    let name = ir.name_text(op);
    name.strip_prefix("bir.").unwrap_or(name)
}

fn stuck(ir: &Ir, unmet: &Unmet) -> Diagnostic {
    let Unmet { op, wait, .. } = *unmet;
    let message = format!(
        "`{}` waits for semaphore {} {} {}, which is never met",
        mnemonic(ir, op),
        wait.id,
        wait.op.sign(),
        wait.value
    );
    let diagnostic = Diagnostic::error(Place::Op(op, Part::Attr(names::WAIT)), message);
    match unmet.blocked {
        _ if !unmet.is_signalled => diagnostic
            .note(format!("nothing signals semaphore {}", wait.id))
            .help(format!(
                "the instruction waited for is to have `signal = [{} += {}]`",
                wait.id, wait.value
            )),
        Some(blocked) => diagnostic
            .note(format!("semaphore {} stays at {}", wait.id, unmet.value))
            .related(
                Place::Op(blocked, Part::Attr(names::SIGNAL)),
                "never comes to signal it",
            )
            .help("a wait comes behind the signal in the order of every engine"),
        None => diagnostic
            .note(format!("semaphore {} stays at {}", wait.id, unmet.value))
            .help("waits count all signals since the start, as in `>= 32` for the second of 16"),
    }
}

fn overflown(ir: &Ir, overflow: &Overflow) -> Diagnostic {
    let Overflow { op, signal, value } = *overflow;
    let message = format!(
        "`{}` takes semaphore {} to {value}, outside the signed 32 bits of a counter",
        mnemonic(ir, op),
        signal.id
    );
    let help = match signal.op {
        SemOp::Set => "set a smaller number",
        _ => "start again from 0 with `:= 0` or `semaphore_range_clear`",
    };
    Diagnostic::error(Place::Op(op, Part::Attr(names::SIGNAL)), message).help(help)
}
