//! The verifier: what a module must satisfy, all findings in one run.

pub mod checks;

use super::access::Access;
use super::ops::OpDef;
use super::space::{Engine, Target};
use super::types::MemType;
use super::view::{OpView, RoleView};
use crate::ir::{Ir, Op, Operand};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

/// Constraints of one op, beyond what its table entry says by itself.
pub type OpCheck = fn(&mut OpContext<'_>);

/// What an [`OpCheck`] looks at.
pub struct OpContext<'a> {
    /// The file.
    pub ir: &'a Ir,
    /// The operation.
    pub op: Op,
    /// Its table entry.
    pub def: &'static OpDef,
    /// The generation it must run on.
    pub target: Target,
    /// The engine that executes it; `None` for structure.
    pub engine: Option<Engine>,
    /// Where findings go.
    pub diags: &'a mut Diagnostics,
}

impl<'a> OpContext<'a> {
    /// The operation by role.
    pub fn view(&self) -> OpView<'a> {
        OpView::new(self.ir, self.op)
    }

    /// The operand in a role.
    pub fn operand(&self, role: &str) -> Option<Operand> {
        self.view().role(role).operand()
    }

    /// Location type and access of the operand in a role.
    pub fn access(&self, role: &str) -> Option<(MemType<'a>, Access)> {
        self.view().access(self.operand(role)?)
    }

    /// What stands in a role.
    pub fn role(&self, role: &str) -> RoleView {
        self.view().role(role)
    }

    /// An error about the whole operation.
    pub fn error(&mut self, message: impl Into<String>) {
        self.report(Part::Whole, message.into(), None);
    }

    /// An error about the operand in a role.
    pub fn operand_error(&mut self, role: &str, message: impl Into<String>) {
        let part = self.part_of(role);
        self.report(part, message.into(), None);
    }

    /// An error about an attribute.
    pub fn attr_error(&mut self, attr: &str, message: impl Into<String>) {
        let part = self.ir.ctx.find_str(attr).map_or(Part::Whole, Part::Attr);
        self.report(part, message.into(), None);
    }

    /// An error with a help line.
    pub fn report(&mut self, part: Part, message: String, help: Option<String>) {
        let diagnostic = Diagnostic::error(Place::Op(self.op, part), message).maybe_help(help);
        self.diags.push(diagnostic);
    }

    /// The part of the text that is the operand in a role.
    pub fn part_of(&self, role: &str) -> Part {
        let number = self.def.role(role).unwrap_or(usize::MAX);
        self.ir
            .operands(self.op)
            .iter()
            .position(|operand| operand.role as usize == number)
            .map_or(Part::Whole, Part::Operand)
    }
}
