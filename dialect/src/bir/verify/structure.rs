//! Nesting, names, terminators, branch targets, definitions before uses, and the core functions of
//! a program.

use hashbrown::HashMap;

use super::super::ops::{OpCode, Syntax};
use super::super::program::symbol_name;
use super::super::space::Target;
use super::super::types::is_index;
use super::super::view::OpView;
use super::Level;
use super::deps::Numbers;
use super::dominance::Dominators;
use super::driver::{NONE, Verifier};
use super::words::{counted, symbol_text, value_text};
use crate::analysis::outside::remote_core;
use crate::ir::{Block, Def, Dict, Op, Region, Str, Value};
use crate::text::diag::{Diagnostic, Part, Place};

type Names = HashMap<Str, Op, foldhash::fast::FixedState>;

/// A function, with the number of blocks in each of its regions in text order.
type Blocks = (Op, Vec<u32>);

/// What is collected over the file.
#[derive(Default)]
pub(super) struct Program {
    modules: Names,
    functions: Names,
    locations: Names,
    /// Buffers that cores share, by function and name, as the first core declares them.
    shared: HashMap<(usize, Str), (Op, Op)>,
    /// Functions of each module, with the number of blocks in each of their regions in text order.
    cores: Vec<(Op, Vec<Blocks>)>,
    /// Regions of the function being walked.
    blocks: Vec<u32>,
    /// Instruction numbers of the function being walked.
    pub(super) numbers: Numbers,
    /// Findings before the function.
    errors: usize,
    /// Whether control may take more than one way through the function being walked.
    pub(super) branches: bool,
    /// Whether an instruction of it waits, signals, or meets others.
    pub(super) sync: bool,
}

impl Verifier<'_> {
    pub(super) fn enter_module(&mut self, op: Op) {
        self.target = OpView::new(self.ir, op)
            .word("target")
            .and_then(Target::from_name)
            .unwrap_or(Target::Trn2);
        self.program.functions.clear();
        self.program.cores.push((op, Vec::new()));
        self.check_name(op, "module", |program| &mut program.modules);
    }

    /// Reports a second operation of the same name.
    fn check_name(&mut self, op: Op, what: &str, table: fn(&mut Program) -> &mut Names) {
        let Some(name) = symbol_name(self.ir, op) else {
            return;
        };
        match table(&mut self.program).entry(name) {
            hashbrown::hash_map::Entry::Vacant(entry) => {
                entry.insert(op);
            }
            hashbrown::hash_map::Entry::Occupied(entry) => {
                let first = *entry.get();
                let sigil = if what == "location" { '%' } else { '@' };
                let name = self.ir.ctx.text(name);
                self.diags.push(
                    Diagnostic::error(
                        Place::Op(op, Part::Whole),
                        format!("{what} name `{sigil}{name}` is taken"),
                    )
                    .related(
                        Place::Op(first, Part::Whole),
                        format!("the first `{sigil}{name}`"),
                    ),
                );
            }
        }
    }

    pub(super) fn unregistered(&mut self, op: Op) {
        let name = self.ir.name_text(op);
        let (message, help) = match name.strip_prefix("bir.") {
            Some(mnemonic) => (
                format!("unknown operation `{mnemonic}`"),
                crate::text::diag::did_you_mean(
                    mnemonic,
                    OpCode::ALL.iter().map(|code| code.def().name),
                ),
            ),
            None => (
                format!("operation `{name}` is of an unknown dialect"),
                Some("`--allow-unregistered-dialect` keeps such operations".to_owned()),
            ),
        };
        self.error(op, Part::Whole, message, help);
    }

    /// Whether an operation may stand where it does.
    pub(super) fn check_place(&mut self, op: Op, code: Option<OpCode>) {
        let Some(code) = code else {
            if let Some(frame) = self.frames.last_mut() {
                frame.first_instruction.get_or_insert(op);
            }
            return;
        };
        let Some(frame) = self.frames.last() else {
            return;
        };
        let (owner, around) = (frame.owner, frame.code);
        // What stands inside an operation of another dialect is that dialect's business.
        if owner.is_some() && around.is_none() {
            return;
        }
        match code {
            OpCode::Module => {
                if owner.is_some() {
                    self.error(
                        op,
                        Part::Whole,
                        "a module stands at the top level of a file",
                        None,
                    );
                }
            }
            OpCode::Func => {
                if around != Some(OpCode::Module) {
                    self.error(op, Part::Whole, "a function stands in a module", None);
                }
                self.enter_function(op);
            }
            OpCode::Alloc => self.check_alloc_place(op),
            _ => {
                if around.is_none() || around == Some(OpCode::Module) {
                    let name = code.def().name;
                    self.error(
                        op,
                        Part::Whole,
                        format!("`{name}` stands in a function"),
                        None,
                    );
                }
                if let Some(frame) = self.frames.last_mut() {
                    frame.first_instruction.get_or_insert(op);
                }
                let def = code.def();
                if def.syntax != Syntax::Instruction {
                    self.check_control(op, code);
                }
                self.check_number(op);
            }
        }
    }

    fn enter_function(&mut self, op: Op) {
        self.homes.clear();
        self.program.locations.clear();
        self.program.blocks.clear();
        self.program.numbers.clear();
        self.program.errors = self.diags.errors();
        (self.program.branches, self.program.sync) = (false, false);
        self.check_name(op, "function", |program| &mut program.functions);
    }

    pub(super) fn leave_function(&mut self, op: Op) {
        let blocks = std::mem::take(&mut self.program.blocks);
        if let Some((_, functions)) = self.program.cores.last_mut() {
            functions.push((op, blocks));
        }
        self.check_deps();
        if self.options.level == Level::Full && self.diags.errors() == self.program.errors {
            let Program { branches, sync, .. } = self.program;
            super::defined::check(
                self.ir,
                op,
                self.target,
                branches,
                &mut self.slots,
                self.diags,
            );
            if sync {
                super::semaphores::check(self.ir, op, self.target, self.diags);
            }
        }
    }

    fn check_alloc_place(&mut self, op: Op) {
        let ir = self.ir;
        let Some(frame) = self.frames.last().filter(|_| ir.result(op).is_some()) else {
            // What declares no location is a finding by itself.
            return;
        };
        let (owner, around, first) = (frame.owner, frame.code, frame.first_instruction);
        let name = || {
            ir.result(op)
                .map_or_else(String::new, |value| value_text(ir, value))
        };
        match around {
            Some(OpCode::Func) => {
                let in_entry = frame.region.and_then(|region| ir.entry(region)) == frame.block;
                if let Some(first) = first.filter(|_| in_entry) {
                    let message = format!(
                        "location {} stands behind the first instruction of its function",
                        name()
                    );
                    let first = (
                        Place::Op(first, Part::Whole),
                        "the first instruction".to_owned(),
                    );
                    self.diags.push(
                        Diagnostic::error(Place::Op(op, Part::Whole), message)
                            .related(first.0, first.1)
                            .maybe_help(Some("move it before the first instruction".to_owned())),
                    );
                } else if !in_entry {
                    let message = format!(
                        "location {} stands in a later block of its function",
                        name()
                    );
                    let help = "move it to the start of the function".to_owned();
                    self.error(op, Part::Whole, message, Some(help));
                }
            }
            Some(OpCode::Loop | OpCode::While) => {
                let function = owner.and_then(|op| self.function_around(op)).map_or_else(
                    || "the function".to_owned(),
                    |op| format!("function {}", symbol_text(ir, op)),
                );
                let message = format!("location {} is declared inside a loop", name());
                let help = format!("move it to the start of {function}");
                self.error(op, Part::Whole, message, Some(help));
            }
            _ => self.error(
                op,
                Part::Whole,
                format!("location {} stands outside a function", name()),
                None,
            ),
        }
        self.check_name(op, "location", |program| &mut program.locations);
        self.check_shared(op);
        self.check_remote(op);
    }

    /// Bytes of another core are not those of the own one.
    fn check_remote(&mut self, op: Op) {
        let ir = self.ir;
        if ir.dict(op) == Dict::EMPTY {
            return;
        }
        let target = ir.attr(op, "remote_target");
        let named = target
            .and_then(|attr| ir.ctx.attr_str(attr))
            .and_then(remote_core);
        let (Some(named), Some(&(module, _))) = (named, self.program.cores.last()) else {
            return;
        };
        let own = ir
            .attr(module, "core")
            .and_then(|attr| ir.ctx.attr_int(attr));
        if own.is_some() && named.parse().ok() == own {
            let message = format!("`remote_target` names core {named}, which is its own");
            let help = "to have two names for the same bytes, use `must_alias`";
            self.error(op, Part::Whole, message, Some(help.to_owned()));
        }
    }

    /// Buffers of one name are one buffer on all cores of a program, so of one type.
    fn check_shared(&mut self, op: Op) {
        let ir = self.ir;
        let dict = ir.dict(op);
        if dict == Dict::EMPTY || OpView::new(ir, op).word("space") != Some("shared") {
            return;
        }
        let Some(((module, functions), (value, name))) = self
            .program
            .cores
            .last()
            .zip(ir.result(op).zip(symbol_name(ir, op)))
        else {
            return;
        };
        let key = (functions.len(), name);
        let (core, first) = *self.program.shared.entry(key).or_insert((*module, op));
        let other = ir.result(first).map(|value| ir.value_type(value));
        if core == *module || other == Some(ir.value_type(value)) {
            return;
        }
        let message = format!(
            "{} is shared, but another buffer on core {}",
            value_text(ir, value),
            symbol_text(ir, core)
        );
        self.diags.push(
            Diagnostic::error(Place::Op(op, Part::Whole), message)
                .related(Place::Op(first, Part::Whole), "the first one of its name")
                .help(
                    "shared buffers of one name are one buffer: give them one type, or two names",
                ),
        );
    }

    fn function_around(&self, op: Op) -> Option<Op> {
        std::iter::successors(Some(op), |&op| self.ir.parent(op))
            .find(|&op| OpCode::of(self.ir, op) == Some(OpCode::Func))
    }

    /// Terminators and their targets.
    fn check_control(&mut self, op: Op, code: OpCode) {
        let ir = self.ir;
        let around = self.frames.last().and_then(|frame| frame.code);
        match code {
            OpCode::Return if around != Some(OpCode::Func) => {
                self.error(
                    op,
                    Part::Whole,
                    "`return` ends a block of a function, not of a loop",
                    None,
                );
            }
            OpCode::Yield if !matches!(around, Some(OpCode::Loop | OpCode::While)) => {
                self.error(op, Part::Whole, "`yield` ends a block of a loop body", None);
            }
            _ => {}
        }
        if ir.traits(op).terminator
            && let Some(next) = ir.next(op)
        {
            let name = code.def().name;
            self.diags.push(
                Diagnostic::error(
                    Place::Op(op, Part::Whole),
                    format!("`{name}` is not the last operation of its block"),
                )
                .related(Place::Op(next, Part::Whole), "never reached"),
            );
        }
        let region = ir.block(op).map(|block| ir.block_region(block));
        for &target in ir.successors(op) {
            let label = self.block_text(target);
            if Some(ir.block_region(target)) != region {
                let message = format!("block {label} is not in the region of this branch");
                let help = "a branch stays in its function or loop body".to_owned();
                self.error(op, Part::Whole, message, Some(help));
            } else if region.and_then(|region| ir.entry(region)) == Some(target) {
                let message =
                    format!("block {label} is the entry block, which no branch may target");
                self.error(op, Part::Whole, message, None);
            }
        }
    }

    fn block_text(&self, block: Block) -> String {
        match self.ir.label(block) {
            Some(label) => format!("`^{}`", self.ir.ctx.text(label)),
            None => "without a label".to_owned(),
        }
    }

    /// Counts blocks and checks their arguments: one `index` where a loop body begins.
    pub(super) fn check_block(&mut self, block: Block) {
        let ir = self.ir;
        let region = ir.block_region(block);
        let Some(owner) = ir.region_parent(region) else {
            return;
        };
        let code = OpCode::of(ir, owner);
        let is_entry = ir.entry(region) == Some(block);
        self.program.branches |= !is_entry;
        if code.is_none() {
            return;
        }
        if is_entry && code != Some(OpCode::Module) {
            self.program.blocks.push(self.block_count(region));
        }
        let args = ir.args(block);
        let expected = usize::from(code == Some(OpCode::Loop) && is_entry);
        let is_good = args.len() == expected && {
            let mut args = args;
            args.all(|arg| is_index(&ir.ctx, ir.value_type(arg)))
        };
        if !is_good {
            let what = match (code, is_entry) {
                (Some(OpCode::Loop), true) => {
                    "the body of a loop takes one argument of type `index`"
                }
                _ => "a block takes no arguments",
            };
            self.error(owner, Part::Whole, what, None);
        }
        if code == Some(OpCode::Module) && !is_entry {
            self.error(owner, Part::Whole, "a module has one block", None);
        }
    }

    fn block_count(&self, region: Region) -> u32 {
        self.ir.blocks(region).count() as u32
    }

    /// A use whose definition is not simply above it in an open block.
    pub(super) fn check_definition(&mut self, op: Op, position: usize, value: Value, walked: bool) {
        let ir = self.ir;
        let place = Part::Operand(position);
        let (def_op, def_block) = match ir.def(value) {
            Def::Result { op, .. } => (Some(op), ir.block(op)),
            Def::Arg { block, .. } => (None, Some(block)),
        };
        let Some(def_block) = def_block else {
            self.error(op, place, "an operand's definition was removed", None);
            return;
        };
        let region = ir.block_region(def_block);
        let name = value_text(ir, value);
        match self.open[region.index()] {
            NONE if is_index(&ir.ctx, ir.value_type(value)) => {
                let message = format!("loop index {name} is used outside its loop");
                let note = self.enclosing_loops();
                let mut diagnostic = Diagnostic::error(Place::Op(op, place), message).note(note);
                if let Some(around) = ir.block_parent(def_block) {
                    diagnostic = diagnostic.related(
                        Place::Op(around, Part::Whole),
                        format!("the loop of {name}"),
                    );
                }
                self.diags.push(diagnostic);
            }
            NONE => {
                let message = format!("{name} is not visible here");
                self.report_use(
                    op,
                    place,
                    message,
                    def_op,
                    "defined here, in another region",
                );
            }
            here if here == def_block.index() as u32 => {
                if !walked {
                    let message = format!("{name} is used before its definition");
                    self.report_use(op, place, message, def_op, "defined here");
                }
            }
            here => {
                let here = Block::new(here as usize);
                if !self.dominates(region, def_block, here) {
                    let message = format!("{name} is not defined on every path to this use");
                    self.report_use(op, place, message, def_op, "defined here");
                }
            }
        }
    }

    fn report_use(&mut self, op: Op, part: Part, message: String, def: Option<Op>, label: &str) {
        let mut diagnostic = Diagnostic::error(Place::Op(op, part), message);
        if let Some(def) = def {
            diagnostic = diagnostic.related(Place::Op(def, Part::Whole), label);
        }
        self.diags.push(diagnostic);
    }

    fn dominates(&mut self, region: Region, above: Block, below: Block) -> bool {
        let ir = self.ir;
        let Some(frame) = self
            .frames
            .iter_mut()
            .find(|frame| frame.region == Some(region))
        else {
            return false;
        };
        frame
            .dominators
            .get_or_insert_with(|| Dominators::new(ir, region))
            .dominates(above, below)
    }

    /// "enclosing loops: `%k`, `%n`"
    fn enclosing_loops(&self) -> String {
        let ir = self.ir;
        let names: Vec<String> = self
            .frames
            .iter()
            .filter(|frame| frame.code == Some(OpCode::Loop))
            .filter_map(|frame| {
                let entry = ir.entry(frame.region?)?;
                ir.args(entry).next().map(|arg| value_text(ir, arg))
            })
            .collect();
        match names.len() {
            0 => "no loop encloses the use".to_owned(),
            1 => format!("the loop that encloses the use is that of {}", names[0]),
            _ => format!(
                "the loops that enclose the use are those of {}",
                names.join(", ")
            ),
        }
    }

    /// The functions of the cores of a program have equal blocks.
    pub(super) fn check_program(&mut self) {
        let cores = std::mem::take(&mut self.program.cores);
        let Some(((first, expected), rest)) = cores.split_first() else {
            return;
        };
        for (module, functions) in rest {
            let (here, there) = (symbol_text(self.ir, *module), symbol_text(self.ir, *first));
            if functions.len() != expected.len() {
                let message = format!(
                    "core {here} has {}, but core {there} has {}",
                    counted(functions.len() as u64, "function"),
                    expected.len()
                );
                self.error(*module, Part::Whole, message, None);
                continue;
            }
            for ((function, blocks), (other, others)) in functions.iter().zip(expected) {
                let name = symbol_text(self.ir, *function);
                let top = |blocks: &[u32]| blocks.first().copied().unwrap_or(1);
                let message = if top(blocks) != top(others) {
                    format!(
                        "function {name} of core {here} has {}, but that of core {there} has {}",
                        counted(u64::from(top(blocks)), "block"),
                        top(others)
                    )
                } else if blocks != others {
                    format!(
                        "function {name} of core {here} has other loops than that of core {there}"
                    )
                } else {
                    continue;
                };
                self.diags.push(
                    Diagnostic::error(Place::Op(*function, Part::Whole), message)
                        .related(
                            Place::Op(*other, Part::Whole),
                            format!("the function of core {there}"),
                        )
                        .note("all cores of a program take the same path"),
                );
            }
        }
    }
}
