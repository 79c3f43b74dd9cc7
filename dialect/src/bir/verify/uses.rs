//! What an instruction does to what stands in its roles, told once per op: the walk asks it of every
//! operand.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::super::attrs::Accumulate;
use super::super::ops::{AttrType, Kind, OpCode, OpDef, OperandDef, Trait};
use super::super::program::names;
use super::groups;
use crate::ir::{Dict, Ir, Op};

/// When what a role held before is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    Never,
    Always,
    /// Where the instruction accumulates, without a condition.
    IfAccumulating,
}

/// What an op does to a role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) writes: bool,
    reads: Reads,
    /// Roles whose presence says that a register or an index tile decides where this one is written, as bits.
    moved_by: u64,
    /// Roles whose presence says that data decides which part of this one is read, as bits.
    picked_by: u64,
}

/// What an op does to its roles.
#[derive(Debug)]
pub(super) struct OpUses {
    /// By role; empty where operands are none of memory's business.
    pub(super) roles: SmallVec<[Use; 8]>,
    pub(super) is_matmult: bool,
}

static USES: LazyLock<Vec<OpUses>> =
    LazyLock::new(|| OpCode::ALL.iter().map(|&code| OpUses::new(code)).collect());

impl OpUses {
    /// Of an op.
    #[inline]
    pub(super) fn of(code: OpCode) -> Option<&'static OpUses> {
        USES.get(code as usize)
    }

    fn new(code: OpCode) -> OpUses {
        let def = code.def();
        let is_structure = def.engines.is_none() || code == OpCode::CoreBarrier;
        let roles = def.operands.iter().filter(|_| !is_structure);
        OpUses {
            roles: roles.map(|entry| Use::new(code, def, entry)).collect(),
            is_matmult: groups::is_matmult(code),
        }
    }
}

impl Use {
    fn new(code: OpCode, def: &OpDef, entry: &OperandDef) -> Use {
        let accumulates = def
            .attr("accumulate")
            .is_some_and(|attr| matches!(attr.ty, AttrType::Accumulate));
        let reads = match entry.kind {
            Kind::In | Kind::Imm(_) => Reads::Always,
            Kind::InOut => match code {
                OpCode::CopyPredicated | OpCode::DmaScatterAdd | OpCode::DmaGatherAdd => {
                    Reads::Always
                }
                OpCode::AllGatherV | OpCode::AllToAllV if entry.name == "metadata" => Reads::Always,
                // The others leave what they do not write, which may stay undefined.
                _ => Reads::Never,
            },
            Kind::Out if accumulates && entry.name == "dst" => Reads::IfAccumulating,
            _ => Reads::Never,
        };
        let roles = |names: &[&str]| -> u64 {
            let found = names.iter().filter_map(|name| def.find_role(name));
            found.fold(0, |bits, role| bits | 1 << role)
        };
        let is_dynamic = def.has(Trait::Dynamic);
        let moved_by: &[&str] = match (entry.name, entry.kind) {
            ("dst", Kind::InOut) if is_dynamic => &["dst_offset", "dst_index", "offset"],
            ("dst", _) if is_dynamic => &["dst_offset", "dst_index"],
            _ => &[],
        };
        let picked_by: &[&str] = match entry.name {
            "operand0" | "operand1" if is_dynamic => &["offset"],
            "src" | "dst" if is_dynamic && code != OpCode::TensorScalarPtr => {
                &["index", "src_index", "dst_index", "offset", "src_offset"]
            }
            _ => &[],
        };
        Use {
            writes: entry.writes(),
            reads,
            moved_by: roles(moved_by),
            picked_by: roles(picked_by),
        }
    }

    /// Whether an instruction uses what the role held before.
    #[inline]
    pub(super) fn is_read(&self, ir: &Ir, op: Op) -> bool {
        match self.reads {
            Reads::Never => false,
            Reads::Always => true,
            Reads::IfAccumulating => accumulates_always(ir, op),
        }
    }

    /// Whether a register or an index tile decides where an instruction writes the role.
    #[inline]
    pub(super) fn is_moved(&self, ir: &Ir, op: Op) -> bool {
        self.moved_by != 0 && has_any(ir, op, self.moved_by)
    }

    /// Whether data decides which part of the role an instruction reads.
    pub(super) fn is_picked(&self, ir: &Ir, op: Op) -> bool {
        self.picked_by != 0 && has_any(ir, op, self.picked_by)
    }
}

fn accumulates_always(ir: &Ir, op: Op) -> bool {
    let dict = ir.dict(op);
    dict != Dict::EMPTY
        && Accumulate::get(&ir.ctx, ir.ctx.dict_get(dict, names::ACCUMULATE))
            == Some(Accumulate::Yes)
}

/// Whether an instruction has an operand in one of these roles.
fn has_any(ir: &Ir, op: Op, roles: u64) -> bool {
    let operands = ir.operands(op);
    operands
        .iter()
        .any(|operand| roles >> (operand.role & 63) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::super::super::ops::OPS;

    #[test]
    fn roles_fit_the_bits_that_stand_for_them() {
        for def in OPS {
            assert!(def.operands.len() < 64, "{}", def.name);
        }
    }
}
