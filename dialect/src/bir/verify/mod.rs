//! The verifier: what a file must satisfy, all findings in one run.
//!
//! * [`verify`] walks every operation once, without recursion.
//! * `structure` – nesting, names, terminators, branch targets, definitions before uses, core
//!   functions of a program;
//! * `operands` – roles, kinds, spaces, dtypes, shapes, engines;
//! * `deps` – instruction numbers, dependences, schedule coordinates;
//! * `overlaps` – what one instruction writes and reads of the same bytes;
//! * `attributes` – names and types of attributes;
//! * `bounds` – accesses at both extremes of every loop, partition windows, encodings;
//! * `checks` – constraints of single ops, named by the op table;
//! * `known` – what was found good already;
//! * `defined`, `groups`, `lifetimes`, `semaphores` – at [`Level::Full`]: what memory holds where it is
//!   read, who wrote what is accumulated onto, placed locations that overlap, semaphores; `locations` and
//!   `uses` say what there is to follow, and what an op does to what stands in its roles.
//!
//! Invariants:
//! * what is checked of an instruction by itself depends only on its op, dictionary, target, and per
//!   operand role, type, access, placement and loop range: an instruction equal in all of these to
//!   one found good is not checked again; of one equal in all but the accesses, and with these of equal
//!   shapes, only what the accesses have to do with their locations is;
//! * nothing is allocated for a good instruction.

mod attributes;
mod bounds;
pub mod checks;
pub(crate) mod cover;
mod defined;
mod deps;
mod dominance;
mod driver;
mod facts;
mod groups;
mod known;
mod lifetimes;
mod locations;
mod numbers;
mod operands;
mod overlaps;
mod placement;
mod semaphores;
mod structure;
mod uses;
mod words;

use std::cell::Cell;

use super::access::Access;
use super::attrs::Placement;
use super::ops::OpDef;
use super::program::names;
use super::space::{Engine, Target};
use super::types::MemType;
use super::view::{OpView, RoleView};
use crate::ir::{Ir, Op, Operand, Value};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

pub use dominance::Dominators;
pub use facts::{Facts, Fault, MAX_FREE_PAIRS, Shape};
pub use words::value_text;

/// How much is verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Level {
    /// Nothing.
    Off,
    /// Each instruction by itself: all that can be said of a file with other errors in it.
    Instructions,
    /// Structure, accesses, placement.
    #[default]
    Default,
    /// Also what memory holds where it is read, overlapping placements, and semaphores.
    Full,
}

impl Level {
    /// The word in options.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Instructions => "instructions",
            Level::Default => "default",
            Level::Full => "full",
        }
    }

    /// The level of that word.
    pub fn from_name(name: &str) -> Option<Level> {
        [Level::Off, Level::Instructions, Level::Default, Level::Full]
            .into_iter()
            .find(|level| level.name() == name)
    }
}

/// What [`verify`] checks and allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerifyOptions {
    /// How much is verified.
    pub level: Level,
    /// Whether ops of unknown dialects pass unchecked.
    pub allow_unregistered: bool,
}

/// Verifies a whole file; findings go to `diags` in text order.
pub fn verify(ir: &Ir, options: VerifyOptions, diags: &mut Diagnostics) {
    if options.level != Level::Off {
        driver::Verifier::new(ir, options, diags).run();
    }
}

/// Whether the constraints an op has of its own hold for an instruction, which need not stand anywhere
/// yet; what the table says of every op is not asked. For rewrites, which make one at a time.
pub fn obeys_own_check(ir: &Ir, op: Op, target: Target) -> bool {
    let view = OpView::new(ir, op);
    let Some(def) = view.def() else { return false };
    let Some(check) = def.check else { return true };
    let facts: Vec<Option<Facts>> = ir
        .operands(op)
        .iter()
        .map(|operand| {
            let mem = MemType::get(&ir.ctx, ir.value_type(operand.value))?;
            let access = Access::resolve(&ir.ctx, &mem, operand.annot);
            Some(Facts::of(&mem, &access))
        })
        .collect();
    let engines = def.engines;
    let mut diags = Diagnostics::new();
    check(&mut OpContext {
        ir,
        op,
        def,
        target,
        engine: engines.and_then(|engines| {
            let named = view.engine_attr();
            named.or_else(|| Some(engines.default_on(target)))
        }),
        facts: &facts,
        looked_closer: Cell::new(false),
        diags: &mut diags,
    });
    !diags.has_errors()
}

/// Constraints of one op, beyond what its table entry says by itself.
pub type OpCheck = fn(&mut OpContext<'_>);

/// What an [`OpCheck`] looks at. Only what the module's invariant names may decide a finding.
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
    /// Summaries of its accesses, one per operand as stored; `None` for what is no memory.
    facts: &'a [Option<Facts>],
    /// Whether more was asked of an access than its shape.
    looked_closer: Cell<bool>,
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

    /// The value in a role.
    pub fn value(&self, role: &str) -> Option<Value> {
        Some(self.ir.operand(self.operand(role)?).value)
    }

    /// Location type and access of the operand in a role.
    pub fn access(&self, role: &str) -> Option<(MemType<'a>, Access)> {
        self.looked_closer.set(true);
        self.view().access(self.operand(role)?)
    }

    /// The summary of the access in a role; `None` for literals and absent operands.
    pub fn facts(&self, role: &str) -> Option<Facts> {
        self.looked_closer.set(true);
        self.facts.get(self.position(role)?).copied().flatten()
    }

    /// The shape of the access in a role; `None` for literals and absent operands. What only asks
    /// for shapes is asked once for all instructions that have them.
    pub fn shape(&self, role: &str) -> Option<Shape> {
        let facts = self.facts.get(self.position(role)?)?.as_ref()?;
        Some(facts.shape)
    }

    /// The shapes of all accesses in a variadic role.
    pub fn shapes(&self, role: &str) -> Vec<Shape> {
        let Some(number) = self.def.find_role(role) else {
            return Vec::new();
        };
        self.ir
            .operands(self.op)
            .iter()
            .zip(self.facts)
            .filter(|(operand, _)| usize::from(operand.role) == number)
            .filter_map(|(_, facts)| Some(facts.as_ref()?.shape))
            .collect()
    }

    /// The first partition the tile in a role covers, placement included; `None` where loops move it.
    pub fn start_partition(&self, role: &str) -> Option<i64> {
        let facts = self.facts(role)?;
        if facts.has_terms {
            return None;
        }
        let alloc = self.ir.def_op(self.value(role)?)?;
        let at = self.ir.ctx.dict_get(self.ir.dict(alloc), names::AT);
        let base = at
            .and_then(|at| Placement::get(&self.ir.ctx, at))
            .map_or(0, Placement::partition);
        facts.start.checked_add(i64::from(base))
    }

    /// What stands in a role.
    pub fn role(&self, role: &str) -> RoleView {
        self.view().role(role)
    }

    fn position(&self, role: &str) -> Option<usize> {
        let number = self.def.find_role(role)?;
        self.ir
            .operands(self.op)
            .iter()
            .position(|operand| usize::from(operand.role) == number)
    }

    /// An error about the whole operation.
    pub fn error(&mut self, message: impl Into<String>) {
        self.report(Part::Whole, message.into(), None);
    }

    /// An error about the operand in a role; the message goes on behind "operand `role` of `op`".
    pub fn operand_error(&mut self, role: &str, message: impl AsRef<str>) {
        self.operand_error_help(role, message, None);
    }

    /// As [`operand_error`](Self::operand_error), with a help line.
    pub fn operand_error_help(
        &mut self,
        role: &str,
        message: impl AsRef<str>,
        help: Option<String>,
    ) {
        let message = format!(
            "operand `{role}` of `{}` {}",
            self.def.name,
            message.as_ref()
        );
        self.report(self.part_of(role), message, help);
    }

    /// An error about an attribute; the message goes on behind "attribute `attr` of `op`".
    pub fn attr_error(&mut self, attr: &str, message: impl AsRef<str>) {
        self.attr_error_help(attr, message, None);
    }

    /// As [`attr_error`](Self::attr_error), with a help line.
    pub fn attr_error_help(&mut self, attr: &str, message: impl AsRef<str>, help: Option<String>) {
        let part = self.ir.ctx.find_str(attr).map_or(Part::Whole, Part::Attr);
        let message = format!(
            "attribute `{attr}` of `{}` {}",
            self.def.name,
            message.as_ref()
        );
        self.report(part, message, help);
    }

    /// An error with a help line.
    pub fn report(&mut self, part: Part, message: String, help: Option<String>) {
        let diagnostic = Diagnostic::error(Place::Op(self.op, part), message).maybe_help(help);
        self.diags.push(diagnostic);
    }

    /// The part of the text that is what stands in a role.
    pub fn part_of(&self, role: &str) -> Part {
        match self.position(role) {
            Some(position) => Part::Operand(position),
            None => self
                .ir
                .ctx
                .find_str(role)
                .filter(|&name| self.ir.ctx.dict_get(self.ir.dict(self.op), name).is_some())
                .map_or(Part::Whole, Part::Attr),
        }
    }
}
