//! Operations seen through their table entry: operands by role, never by position.

use super::access::Access;
use super::ops::{OpCode, OpDef};
use super::program::{names, op_names};
use super::space::Engine;
use super::types::MemType;
use crate::ir::{Attr, AttrView, Ir, Op, Operand, Value};

/// What stands in a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleView {
    /// Nothing.
    Absent,
    /// A value.
    Operand(Operand),
    /// A literal, kept as an attribute.
    Literal(Attr),
}

impl RoleView {
    /// The operand, if a value stands there.
    pub fn operand(self) -> Option<Operand> {
        match self {
            RoleView::Operand(operand) => Some(operand),
            _ => None,
        }
    }

    /// The literal, if one stands there.
    pub fn literal(self) -> Option<Attr> {
        match self {
            RoleView::Literal(attr) => Some(attr),
            _ => None,
        }
    }

    /// Whether anything stands there.
    pub fn is_present(self) -> bool {
        self != RoleView::Absent
    }
}

/// A BIR operation with its table entry.
#[derive(Clone, Copy)]
pub struct OpView<'a> {
    /// The file.
    pub ir: &'a Ir,
    /// The operation.
    pub op: Op,
}

impl<'a> OpView<'a> {
    /// Looks at `op`.
    pub fn new(ir: &'a Ir, op: Op) -> OpView<'a> {
        OpView { ir, op }
    }

    /// Its op, if it is one of the dialect's.
    pub fn code(self) -> Option<OpCode> {
        OpCode::of(self.ir, self.op)
    }

    /// Its table entry, if it is one of the dialect's.
    pub fn def(self) -> Option<&'static OpDef> {
        self.code().map(OpCode::def)
    }

    /// What stands in the role of that number.
    pub fn role_at(self, role: usize) -> RoleView {
        let found = self
            .ir
            .operands(self.op)
            .iter()
            .position(|operand| operand.role as usize == role)
            .and_then(|at| self.ir.operand_ids(self.op).nth(at));
        if let Some(operand) = found {
            return RoleView::Operand(operand);
        }
        let Some(code) = self.code() else {
            return RoleView::Absent;
        };
        match code.def().operands.get(role) {
            Some(entry) if entry.takes_literal() => self
                .ir
                .ctx
                .dict_get(self.ir.dict(self.op), op_names(code).operands[role])
                .map_or(RoleView::Absent, RoleView::Literal),
            _ => RoleView::Absent,
        }
    }

    /// What stands in the role of that name.
    pub fn role(self, name: &str) -> RoleView {
        match self.def().and_then(|def| def.find_role(name)) {
            Some(role) => self.role_at(role),
            None => RoleView::Absent,
        }
    }

    /// The loop indices the accesses of the operation use, by position.
    pub fn indices(self) -> impl Iterator<Item = Value> + 'a {
        let role = self.def().map_or(usize::MAX, OpDef::indices_role);
        self.ir
            .operands(self.op)
            .iter()
            .filter(move |operand| operand.role as usize == role)
            .map(|operand| operand.value)
    }

    /// The location type and access of a memory operand.
    pub fn access(self, operand: Operand) -> Option<(MemType<'a>, Access)> {
        let data = self.ir.operand(operand);
        let mem = MemType::get(&self.ir.ctx, self.ir.value_type(data.value))?;
        let access = Access::resolve(&self.ir.ctx, &mem, data.annot);
        Some((mem, access))
    }

    /// The word an enum attribute holds.
    pub fn word(self, attr: &str) -> Option<&'a str> {
        self.ir.ctx.attr_str(self.ir.attr(self.op, attr)?)
    }

    /// The integer an attribute holds.
    pub fn int(self, attr: &str) -> Option<i64> {
        self.ir.ctx.attr_int(self.ir.attr(self.op, attr)?)
    }

    /// Whether a flag is set.
    pub fn flag(self, attr: &str) -> bool {
        match self.ir.attr(self.op, attr) {
            None => false,
            Some(attr) => self.ir.ctx.attr(attr) != AttrView::Bool(false),
        }
    }

    /// The engine the text names.
    pub fn engine_attr(self) -> Option<Engine> {
        let attr = self.ir.ctx.dict_get(self.ir.dict(self.op), names::ENGINE)?;
        self.ir.ctx.attr_str(attr).and_then(Engine::from_name)
    }

    /// The engine that executes it: the one named, else the op's default; `None` for structure.
    pub fn engine(self) -> Option<Engine> {
        self.engine_attr()
            .or_else(|| Some(self.def()?.engines?.default))
    }
}
