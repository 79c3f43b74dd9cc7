//! From IR to the flat program that is run.
//!
//! The function is walked once: every operand becomes a [`Tile`], every instruction a [`Task`] with
//! all attributes decoded, loops and branches become jumps. Nothing of the IR is looked at later.

mod locations;
mod site;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::target_of;
use bir_dialect::bir::space::Target;
use bir_dialect::bir::view::{OpView, RoleView};
use bir_dialect::ir::{Block, Ir, Op, Region, Value, Visit};
use hashbrown::HashMap;

use crate::cores::Meeting;
use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::machine::Machine;
use crate::nan::{Salted, computes};
use crate::ops::{Semantics, semantics};
use crate::run::Options;

pub(crate) use locations::{Arena, Kind as LocationKind, Location};
pub(crate) use site::{Scalar, Site, is_arithmetic};

/// An instruction ready to run.
pub(crate) trait Task: Send + Sync {
    /// Executes it.
    fn run(&self, m: &mut Machine) -> Run<()>;

    /// Bytes it reads and writes, for the statistics.
    fn bytes(&self) -> u64 {
        0
    }
}

/// A register or a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// A constant.
    Number(i64),
    /// What a register holds, as signed 32-bit.
    Register(u32),
}

/// One instruction of the flat program.
pub(crate) enum Inst {
    /// An op.
    Run(Box<dyn Task>),
    /// Sets the index to its first value; leaves for `exit` if there is no iteration.
    Enter {
        index: u32,
        end: u32,
        lower: Bound,
        upper: Bound,
        exit: u32,
    },
    /// Adds the step; back to `body` unless the end is reached.
    Next {
        index: u32,
        end: u32,
        step: i64,
        body: u32,
    },
    /// Continues elsewhere.
    Jump(u32),
    /// Continues at `zero` if the register is 0, else at `other`.
    Branch {
        register: u32,
        zero: u32,
        other: u32,
    },
    /// The end of the function.
    Stop,
    /// Waits for other cores, and exchanges data with them.
    Meet(Box<Meeting>),
    /// An op with no effect on values when instructions run in order.
    Nothing,
}

/// A flat program.
pub(crate) struct Program {
    pub(crate) insts: Vec<Inst>,
    /// The operation behind each instruction.
    pub(crate) ops: Vec<Op>,
    pub(crate) codes: Vec<OpCode>,
    pub(crate) locations: Vec<Location>,
    pub(crate) registers: usize,
    pub(crate) target: Target,
    /// The core it runs on.
    pub(crate) core: u32,
}

/// What is known while the function is lowered.
pub(crate) struct Lowering<'a> {
    pub(crate) ir: &'a Ir,
    pub(crate) locations: Vec<Location>,
    pub(crate) by_value: HashMap<Value, usize>,
    slots: HashMap<Value, u32>,
    registers: u32,
    pub(crate) target: Target,
    /// The core it is for, and all cores of the program in ascending order.
    pub(crate) core: u32,
    pub(crate) cores: &'a [u32],
}

/// The functions of a file that are run, with the core each runs on, in ascending order: of every
/// module its only one, or `main`.
///
/// # Errors
///
/// If a module has no function to run, or two modules are for one core.
pub fn entries(ir: &Ir) -> Run<Vec<(u32, Op)>> {
    let program = |what: String| Fault::new(FaultKind::Program(what));
    let mut modules: Vec<(Option<Op>, Vec<Op>)> = Vec::new();
    for visit in ir.walk() {
        if let Visit::Enter(op) = visit {
            match OpCode::of(ir, op) {
                Some(OpCode::Module) => modules.push((Some(op), Vec::new())),
                Some(OpCode::Func) => match modules.last_mut() {
                    Some((_, functions)) => functions.push(op),
                    None => modules.push((None, vec![op])),
                },
                _ => {}
            }
        }
    }
    if modules.is_empty() {
        return Err(program("the file has no function to run".to_owned()));
    }
    let named_main = |op: &Op| {
        bir_dialect::bir::program::symbol_name(ir, *op)
            .is_some_and(|name| ir.ctx.text(name) == "main")
    };
    let several = modules.len() > 1;
    let mut entries: Vec<(u32, Op)> = Vec::with_capacity(modules.len());
    for (position, (module, functions)) in modules.into_iter().enumerate() {
        let core = module
            .and_then(|module| OpView::new(ir, module).int("core"))
            .and_then(|core| u32::try_from(core).ok())
            .unwrap_or(position as u32);
        let place = if several {
            format!("the module of core {core}")
        } else {
            "the file".to_owned()
        };
        let function = match functions.as_slice() {
            [] => return Err(program(format!("{place} has no function to run"))),
            [only] => *only,
            several => several.iter().copied().find(named_main).ok_or_else(|| {
                program(format!(
                    "{place} has {} functions and none of them is `main`",
                    several.len()
                ))
            })?,
        };
        if entries.iter().any(|&(other, _)| other == core) {
            return Err(program(format!(
                "the program has two modules for core {core}"
            )));
        }
        entries.push((core, function));
    }
    entries.sort_by_key(|&(core, _)| core);
    Ok(entries)
}

impl Lowering<'_> {
    /// The slot of a register or loop index.
    pub(crate) fn slot(&mut self, value: Value) -> u32 {
        let registers = &mut self.registers;
        *self.slots.entry(value).or_insert_with(|| {
            *registers += 1;
            *registers - 1
        })
    }

    /// A slot that no value names.
    fn fresh_slot(&mut self) -> u32 {
        self.registers += 1;
        self.registers - 1
    }

    /// The slot of a register that was defined.
    pub(crate) fn known_slot(&self, value: Value) -> Option<u32> {
        self.slots.get(&value).copied()
    }
}

enum Pending {
    /// A block's operations from this one on.
    Ops(Option<Op>, Block),
    /// The end of a loop: where it began.
    CloseLoop {
        op: Op,
        enter: usize,
        index: u32,
        end: u32,
        step: i64,
    },
    /// The end of a while loop.
    CloseWhile { op: Op, test: usize },
}

/// Bytes of each region of memory, and whether it is PSUM.
pub(crate) type Regions = Vec<(usize, bool)>;

/// Lowers the functions of a program, each with the core it runs on; and the regions of memory.
pub(crate) fn lower(
    ir: &Ir,
    entries: &[(u32, Op)],
    options: Options,
) -> Run<(Vec<Program>, Regions)> {
    let cores: Vec<u32> = entries.iter().map(|&(core, _)| core).collect();
    let mut arena = Arena::default();
    let mut lowerings = Vec::with_capacity(entries.len());
    for &(core, func) in entries {
        let mut lowering = Lowering {
            ir,
            locations: Vec::new(),
            by_value: HashMap::new(),
            slots: HashMap::new(),
            registers: 0,
            target: target_of(ir, func),
            core,
            cores: &cores,
        };
        lowering.place_locations(func, options.max_bytes, &mut arena)?;
        lowerings.push(lowering);
    }
    let mut programs = Vec::with_capacity(entries.len());
    for (mut lowering, &(_, func)) in lowerings.into_iter().zip(entries) {
        lowering.place_remote(&arena)?;
        programs.push(lower_function(lowering, func, options.nan_salt)?);
    }
    Ok((programs, arena.regions))
}

fn lower_function(mut lowering: Lowering<'_>, func: Op, salt: Option<u32>) -> Run<Program> {
    let ir = lowering.ir;
    let mut program = Program {
        insts: Vec::new(),
        ops: Vec::new(),
        codes: Vec::new(),
        locations: Vec::new(),
        registers: 0,
        target: lowering.target,
        core: lowering.core,
    };
    // Registers may be used in blocks that stand before their definition in the text.
    for op in ir.walk_op(func) {
        if OpCode::of(ir, op) != Some(OpCode::Alloc) {
            for result in ir.results(op) {
                lowering.slot(result);
            }
        }
    }
    let mut starts: HashMap<Block, u32> = HashMap::new();
    let mut fixes: Vec<(usize, [Option<Block>; 2])> = Vec::new();
    for &region in ir.regions(func) {
        region_insts(&mut lowering, &mut program, region, &mut starts, &mut fixes)?;
    }
    emit(&mut program, Inst::Stop, func, OpCode::Return);
    for (at, blocks) in fixes {
        let place = |block: Option<Block>| {
            block
                .and_then(|block| starts.get(&block).copied())
                .ok_or_else(|| malformed("a branch to a block of another region"))
        };
        match &mut program.insts[at] {
            Inst::Jump(to) => *to = place(blocks[0])?,
            Inst::Branch { zero, other, .. } => {
                *other = place(blocks[0])?;
                *zero = place(blocks[1])?;
            }
            _ => {}
        }
    }
    if let Some(salt) = salt {
        salt_results(&lowering, &mut program, salt)?;
    }
    program.registers = lowering.registers as usize;
    program.locations = lowering.locations;
    Ok(program)
}

/// Lets instructions that compute floats make other NaNs.
fn salt_results(lowering: &Lowering<'_>, program: &mut Program, salt: u32) -> Run<()> {
    for (at, inst) in program.insts.iter_mut().enumerate() {
        if !computes(program.codes[at]) || !matches!(inst, Inst::Run(_)) {
            continue;
        }
        let results = Site::new(lowering, program.ops[at]).float_results()?;
        if results.is_empty() {
            continue;
        }
        if let Inst::Run(task) = std::mem::replace(inst, Inst::Nothing) {
            *inst = Inst::Run(Box::new(Salted {
                task,
                results,
                salt,
            }));
        }
    }
    Ok(())
}

fn emit(program: &mut Program, inst: Inst, op: Op, code: OpCode) -> usize {
    program.insts.push(inst);
    program.ops.push(op);
    program.codes.push(code);
    program.insts.len() - 1
}

/// Lowers the blocks of a region in order. Nested regions are kept on a list, not on the stack.
fn region_insts(
    lowering: &mut Lowering<'_>,
    program: &mut Program,
    region: Region,
    starts: &mut HashMap<Block, u32>,
    fixes: &mut Vec<(usize, [Option<Block>; 2])>,
) -> Run<()> {
    let ir = lowering.ir;
    let mut pending: Vec<Pending> = Vec::new();
    let mut exits: HashMap<Region, Vec<usize>> = HashMap::new();
    if let Some(block) = ir.entry(region) {
        pending.push(Pending::Ops(ir.first_op(block), block));
        starts.insert(block, program.insts.len() as u32);
    }
    while let Some(next) = pending.pop() {
        let (op, block) = match next {
            Pending::CloseLoop {
                op,
                enter,
                index,
                end,
                step,
            } => {
                close_exits(ir, program, op, &mut exits);
                emit(
                    program,
                    Inst::Next {
                        index,
                        end,
                        step,
                        body: enter as u32 + 1,
                    },
                    op,
                    OpCode::Loop,
                );
                let after = program.insts.len() as u32;
                if let Inst::Enter { exit, .. } = &mut program.insts[enter] {
                    *exit = after;
                }
                continue;
            }
            Pending::CloseWhile { op, test } => {
                close_exits(ir, program, op, &mut exits);
                emit(program, Inst::Jump(test as u32), op, OpCode::While);
                let after = program.insts.len() as u32;
                if let Inst::Branch { zero, .. } = &mut program.insts[test] {
                    *zero = after;
                }
                continue;
            }
            Pending::Ops(None, block) => {
                // Falling off a block leaves the function, or ends an iteration.
                if let Some(next) = ir.next_block(block) {
                    let parent = ir.block_parent(block);
                    let branches = ir
                        .terminator(block)
                        .and_then(|op| OpCode::of(ir, op))
                        .is_some_and(|code| {
                            matches!(code, OpCode::Br | OpCode::CondBr | OpCode::Return)
                        });
                    if let Some(op) = parent
                        && !branches
                    {
                        if OpCode::of(ir, op) == Some(OpCode::Func) {
                            emit(program, Inst::Stop, op, OpCode::Return);
                        } else {
                            let at = emit(program, Inst::Jump(0), op, OpCode::Yield);
                            exits.entry(ir.block_region(block)).or_default().push(at);
                        }
                    }
                    starts.insert(next, program.insts.len() as u32);
                    pending.push(Pending::Ops(ir.first_op(next), next));
                }
                continue;
            }
            Pending::Ops(Some(op), block) => (op, block),
        };
        pending.push(Pending::Ops(ir.next(op), block));
        let Some(code) = OpCode::of(ir, op) else {
            return Err(Fault::new(FaultKind::Unsupported {
                why: "it is of another dialect",
            })
            .at(op, "unknown"));
        };
        let name = code.def().name;
        let at_op = |fault: Box<Fault>| fault.at(op, name);
        match semantics(code) {
            Semantics::Task(lower) => {
                let task = lower(&Site::new(lowering, op)).map_err(at_op)?;
                emit(program, Inst::Run(task), op, code);
            }
            Semantics::Meet(lower) => {
                let inst = match lower(&Site::new(lowering, op)).map_err(at_op)? {
                    Some(meeting) => Inst::Meet(Box::new(meeting)),
                    None => Inst::Nothing,
                };
                emit(program, inst, op, code);
            }
            Semantics::Nothing => {
                emit(program, Inst::Nothing, op, code);
            }
            Semantics::Structure => {}
            Semantics::Refused(why) => {
                return Err(at_op(Fault::new(FaultKind::Unsupported { why })));
            }
            Semantics::Control => {
                control(lowering, program, op, code, &mut pending, starts, fixes).map_err(at_op)?
            }
        }
    }
    Ok(())
}

/// Jumps that end an iteration lead to what is emitted next.
fn close_exits(ir: &Ir, program: &mut Program, op: Op, exits: &mut HashMap<Region, Vec<usize>>) {
    let here = program.insts.len() as u32;
    for region in ir.regions(op) {
        for at in exits.remove(region).unwrap_or_default() {
            program.insts[at] = Inst::Jump(here);
        }
    }
}

fn bound(lowering: &Lowering<'_>, view: OpView<'_>, role: &str, missing: i64) -> Run<Bound> {
    match view.role(role) {
        RoleView::Absent => Ok(Bound::Number(missing)),
        RoleView::Literal(attr) => view
            .ir
            .ctx
            .attr_int(attr)
            .map(Bound::Number)
            .ok_or_else(|| malformed(format!("`{role}` is no integer"))),
        RoleView::Operand(operand) => lowering
            .known_slot(view.ir.operand(operand).value)
            .map(Bound::Register)
            .ok_or_else(|| malformed(format!("`{role}` is no register"))),
    }
}

fn control(
    lowering: &mut Lowering<'_>,
    program: &mut Program,
    op: Op,
    code: OpCode,
    pending: &mut Vec<Pending>,
    starts: &mut HashMap<Block, u32>,
    fixes: &mut Vec<(usize, [Option<Block>; 2])>,
) -> Run<()> {
    let ir = lowering.ir;
    let view = OpView::new(ir, op);
    let body = ir.regions(op).first().and_then(|&region| ir.entry(region));
    let condition = |lowering: &Lowering<'_>| match bound(lowering, view, "cond", 0)? {
        Bound::Register(slot) => Ok(slot),
        Bound::Number(_) => Err(malformed("`cond` is no register")),
    };
    match code {
        OpCode::Loop => {
            let Some(body) = body else { return Ok(()) };
            let index = ir
                .args(body)
                .next()
                .ok_or_else(|| malformed("a loop without an index"))?;
            let index = lowering.slot(index);
            let end = lowering.fresh_slot();
            let (lower, upper) = (
                bound(lowering, view, "lower", 0)?,
                bound(lowering, view, "upper", 0)?,
            );
            let step = view.int("step").unwrap_or(1).max(1);
            let enter = emit(
                program,
                Inst::Enter {
                    index,
                    end,
                    lower,
                    upper,
                    exit: 0,
                },
                op,
                code,
            );
            pending.push(Pending::CloseLoop {
                op,
                enter,
                index,
                end,
                step,
            });
            starts.insert(body, program.insts.len() as u32);
            pending.push(Pending::Ops(ir.first_op(body), body));
        }
        OpCode::While => {
            let Some(body) = body else { return Ok(()) };
            let register = condition(lowering)?;
            let test = program.insts.len();
            emit(
                program,
                Inst::Branch {
                    register,
                    zero: 0,
                    other: test as u32 + 1,
                },
                op,
                code,
            );
            pending.push(Pending::CloseWhile { op, test });
            starts.insert(body, program.insts.len() as u32);
            pending.push(Pending::Ops(ir.first_op(body), body));
        }
        OpCode::Br => {
            let at = emit(program, Inst::Jump(0), op, code);
            fixes.push((at, [ir.successors(op).first().copied(), None]));
        }
        OpCode::CondBr => {
            let register = condition(lowering)?;
            let at = emit(
                program,
                Inst::Branch {
                    register,
                    zero: 0,
                    other: 0,
                },
                op,
                code,
            );
            let successors = ir.successors(op);
            fixes.push((
                at,
                [successors.first().copied(), successors.get(1).copied()],
            ));
        }
        // It ends the program of its core, in whatever block or loop it stands.
        OpCode::Halt => {
            emit(program, Inst::Stop, op, code);
        }
        // `return`
        _ if ir.parent(op).and_then(|op| OpCode::of(ir, op)) == Some(OpCode::Func) => {
            emit(program, Inst::Stop, op, code);
        }
        _ => {}
    }
    Ok(())
}
