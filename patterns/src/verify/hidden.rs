//! State of the engines that is no operand, and who would see it changed.
//!
//! A rule that removes, adds or weakens an instruction with such state changes nothing it writes;
//! what it changes shows in whoever uses the state next. So instances have somebody around: before,
//! an instruction that leaves something known there, and behind, one that takes it and writes it out.

use std::fmt::Write as _;

use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::space::{Engine, Target};

use super::program::{Shape, Text};
use crate::rule::{Action, Form};

/// A kind of hidden state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    /// The accumulator of the activation engine.
    Activation,
    /// The accumulator of the vector engine.
    Vector,
    /// The scalars the vector engine keeps.
    Scalars,
    /// The random numbers of the vector and the pool engine.
    Random,
}

impl State {
    /// The state an op reads or writes, if somebody can see it.
    pub(super) fn of(code: OpCode) -> Option<State> {
        let def = code.def();
        if !def.has(Trait::HiddenState) {
            return None;
        }
        let engine = def.engines?.default_on(Target::Trn3);
        match code {
            OpCode::Rng
            | OpCode::Rand2
            | OpCode::Dropout
            | OpCode::SetRngSeed
            | OpCode::RandSetState
            | OpCode::RandGetState => Some(State::Random),
            _ if engine == Engine::Act => Some(State::Activation),
            _ if def.attr("cache_read").is_some() => Some(State::Scalars),
            _ if def.attr("reduce_cmd").is_some() || def.attr("accumulate").is_some() => {
                Some(State::Vector)
            }
            _ => None,
        }
    }

    /// The states either side of a rule has to do with, in order.
    pub(super) fn all(form: &Form) -> Vec<State> {
        let made = form.actions.iter().filter_map(|action| match action {
            Action::Make(stmt) => Some(stmt.code),
            Action::Call(..) => None,
        });
        let codes = form.stmts.iter().map(|stmt| stmt.code).chain(made);
        let mut all: Vec<State> = codes.filter_map(State::of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Puts somebody before and behind a program.
    pub(super) fn surround(self, text: &mut Text, shape: &Shape) {
        let rows = shape.partitions;
        let dtype = match self {
            State::Random => "u32",
            _ => "f32",
        };
        let names: &[&str] = match self {
            State::Random => &["around_c", "around_d"],
            _ => &["around_a", "around_b", "around_c"],
        };
        for name in names {
            let _ = writeln!(text.allocs, "    %{name} = alloc sbuf<{rows}x1x{dtype}>");
        }
        let mut seen = vec!["around_c"];
        let (before, behind) = match self {
            State::Activation => (
                "    activation copy %around_b, reduce add reset %around_c <- %around_a\n",
                "    read_activation_accumulator %around_c\n",
            ),
            State::Vector => (
                "    tensor_scalar_reduce add %around_b, reduce add reset %around_c <- %around_a, 1.0\n",
                "    tensor_scalar_reduce add %around_b, reduce add accumulate %around_c <- %around_a, 1.0\n",
            ),
            State::Scalars => (
                "    tensor_scalar_cache multiply add %around_b <- %around_a, 3.0, 5.0 {cache_write}\n",
                "    tensor_scalar_cache multiply add %around_c <- %around_a {cache_read}\n",
            ),
            // Before they are seeded, the numbers are those of seed 0.
            State::Random if shape.target == Target::Trn1 => ("", "    rng %around_c\n"),
            State::Random => {
                seen.push("around_d");
                (
                    "",
                    "    rng %around_c {engine = dve}\n    rng %around_d {engine = pool}\n",
                )
            }
        };
        if self != State::Random {
            text.before.push_str("    memset %around_a <- 3.0\n");
        }
        text.before.push_str(before);
        text.behind.push_str(behind);
        for name in seen {
            let _ = writeln!(
                text.allocs,
                "    %{name}_out = alloc dram<{rows}x1x{dtype}> {{kind = output}}"
            );
            let _ = writeln!(text.behind, "    save %{name}_out <- %{name}");
        }
    }
}

#[cfg(test)]
mod tests {
    use bir_dialect::bir::ops::OPS;

    use super::*;

    #[test]
    fn every_hidden_state_somebody_can_see_has_somebody_around() {
        for def in OPS {
            let Some(code) = OpCode::from_name(def.name) else {
                continue;
            };
            // Nothing reads the mask or the offset an engine keeps, and no run has the others.
            let unseen = def.has(Trait::Observable)
                || matches!(
                    code,
                    OpCode::CopyPredicated | OpCode::TensorScalarPtr | OpCode::ModifyPoolConfig
                );
            let wanted = def.has(Trait::HiddenState) && !unseen;
            assert_eq!(State::of(code).is_some(), wanted, "{}", def.name);
        }
    }
}
