//! Running a function.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bir_dialect::bir::num::DType;
use bir_dialect::bir::space::Space;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};

use crate::choices::choices;
use crate::compare::{Difference, Tolerance, compare};
use crate::cores::{Core, run_all};
use crate::fault::{Fault, FaultKind, Run};
use crate::lower::{Bound, Inst, Location, LocationKind, Program, Regions, entries, lower};
use crate::machine::{Machine, UndefinedRead};
use crate::memory::Memory;
use crate::simd::Lanes;
use crate::stats::Stats;
use crate::tensor::{Tensor, shape_text};

/// What reading an undefined byte does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Uninit {
    /// Ends the run.
    #[default]
    Error,
    /// Gives NaN for floats and bytes `0xA5` for the rest; an output that depends on them is an error.
    Poison,
    /// Gives zeros.
    Zero,
}

/// Where `quantize_mx` puts the largest of a group, among the powers of two its format has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MxScale {
    /// Below `2^E_max`, so that nothing is clipped: the instruction set (`isa-facts.md` §7).
    #[default]
    Isa,
    /// From `2^E_max` on, clipped at the largest finite number: the rule of OCP's samples.
    Ocp,
}

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Most bytes all locations may have together.
    pub max_bytes: u64,
    /// Most instructions executed, by each core.
    pub max_steps: u64,
    /// What reading an undefined byte does.
    pub uninit: Uninit,
    /// The instruction set used; results do not depend on it.
    pub lanes: Lanes,
    /// How `quantize_mx` scales.
    pub mx_scale: MxScale,
    /// Gives every NaN an instruction computes other bits than the canonical ones, as this number says.
    pub nan_salt: Option<u32>,
    /// Also gives what others see beside outputs: [`Outcome::seen`].
    pub watch: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_bytes: 8 << 30,
            max_steps: 1 << 40,
            uninit: Uninit::Error,
            lanes: Lanes::best(),
            mx_scale: MxScale::Isa,
            nan_salt: None,
            watch: false,
        }
    }
}

/// What a port is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// A value is given.
    Input,
    /// A value results.
    Output,
    /// Both.
    InOut,
}

/// A location the outside sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: PortKind,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Vec<u64>,
    /// How many rows or elements there are to choose from, where it is read for nothing else.
    pub choices: Option<u64>,
}

impl Port {
    /// Whether an input of that name is given to it: its own, or what stands before `@core`, which
    /// is given to the ports of all cores.
    pub fn takes(&self, name: &str) -> bool {
        self.name == name || plain(&self.name) == Some(name)
    }
}

/// What stands before `@core` in the name of a port of a program of several cores.
fn plain(name: &str) -> Option<&str> {
    name.rsplit_once('@').map(|(name, _)| name)
}

/// What a location holds when all is done.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub tensor: Tensor,
    /// Its elements nothing has written, ascending.
    pub undefined: Vec<usize>,
}

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every output, in the order of the file.
    pub outputs: Vec<(String, Tensor)>,
    /// With [`Options::watch`], inputs, which may have been written, and unplaced locations that are
    /// `space = shared` or `boundary`.
    pub seen: Vec<Seen>,
    /// What was executed.
    pub stats: Stats,
}

/// Values by name. In a program of several cores `x` is given to every input `x@core` that has no
/// value of its own.
pub type Inputs = BTreeMap<String, Tensor>;

/// A program ready to run: a function, or one for each core.
pub struct Simulation<'a> {
    ir: &'a Ir,
    programs: Vec<Program>,
    regions: Regions,
    options: Options,
}

/// Runs the function of a file once, with default options.
///
/// # Errors
///
/// Whatever stops the run; see [`FaultKind`].
pub fn run(ir: &Ir, inputs: &Inputs) -> Run<Outcome> {
    Simulation::new(ir, Options::default())?.run(inputs, &mut |_| {})
}

/// Steps between two reports of progress.
const PROGRESS: u64 = 1 << 12;

impl<'a> Simulation<'a> {
    /// Lowers the functions of a file that has been verified, one for each core of the program.
    ///
    /// # Errors
    ///
    /// If the file has no function to run, an op has no semantics, or locations pass the limit.
    pub fn new(ir: &'a Ir, options: Options) -> Run<Simulation<'a>> {
        Simulation::of_entries(ir, &entries(ir)?, options)
    }

    /// Lowers one function.
    ///
    /// # Errors
    ///
    /// If an op has no semantics, or locations pass the limit.
    pub fn of_function(ir: &'a Ir, function: Op, options: Options) -> Run<Simulation<'a>> {
        Simulation::of_entries(ir, &[(0, function)], options)
    }

    fn of_entries(ir: &'a Ir, entries: &[(u32, Op)], options: Options) -> Run<Simulation<'a>> {
        let (programs, regions) = lower(ir, entries, options)?;
        Ok(Simulation {
            ir,
            programs,
            regions,
            options,
        })
    }

    /// Every location of every core, those that are shared once.
    fn locations(&self) -> impl Iterator<Item = &Location> {
        self.programs
            .iter()
            .flat_map(|program| &program.locations)
            .filter(|location| !location.again)
    }

    /// The locations the outside sees, in the order of the file. In a program of several cores those
    /// that are not shared are called `name@core`.
    pub fn ports(&self) -> impl Iterator<Item = Port> + '_ {
        let choices = choices(
            self.ir,
            self.programs.iter().map(|program| &program.ops[..]),
        );
        self.locations().filter_map(move |location| {
            let kind = match location.kind {
                LocationKind::Input => PortKind::Input,
                LocationKind::Output => PortKind::Output,
                LocationKind::InOut => PortKind::InOut,
                LocationKind::Internal | LocationKind::Const => return None,
            };
            Some(Port {
                name: location.name.clone(),
                kind,
                dtype: location.dtype,
                dims: location.dims.clone(),
                choices: choices.get(&location.op).copied(),
            })
        })
    }

    /// Runs it. `progress` hears the number of steps now and then.
    ///
    /// # Errors
    ///
    /// Whatever stops the run; see [`FaultKind`].
    pub fn run(&self, inputs: &Inputs, progress: &mut dyn FnMut(u64)) -> Run<Outcome> {
        let all = |_: &Location| true;
        match self.options.uninit {
            Uninit::Error | Uninit::Zero => Ok(self.once(inputs, None, progress)?.0),
            Uninit::Poison => {
                let (outcome, reads) = self.once(inputs, Some(&all), progress)?;
                self.check_poison(inputs, &outcome, &reads, progress)?;
                Ok(outcome)
            }
        }
    }

    /// Whether poison reached an output: then it has another value with zeros in place of poison.
    ///
    /// Which read is to blame shows when only one location is poisoned.
    fn check_poison(
        &self,
        inputs: &Inputs,
        outcome: &Outcome,
        reads: &[UndefinedRead],
        progress: &mut dyn FnMut(u64),
    ) -> Run<()> {
        let Some(first) = reads.first() else {
            return Ok(());
        };
        let none = |_: &Location| false;
        let plain = self.once(inputs, Some(&none), progress)?.0;
        let Some(mut found) = first_difference(outcome, &plain) else {
            return Ok(());
        };
        let mut culprit = first;
        for read in reads.iter().filter(|_| reads.len() > 1) {
            let only = |location: &Location| location.home == read.home;
            let alone = self.once(inputs, Some(&only), progress)?.0;
            if let Some(difference) = first_difference(&alone, &plain) {
                (culprit, found) = (read, difference);
                break;
            }
        }
        let (output, index, poisoned, plain) = found;
        let mut fault = Fault::of_operand(
            FaultKind::Poison {
                location: culprit.text.clone(),
                output,
                index,
                poisoned,
                plain,
            },
            culprit.operand,
        );
        fault.op = culprit.op;
        Err(fault)
    }

    /// One run; with `poisoned`, those locations start with poison, and reads of undefined bytes are
    /// listed.
    fn once(
        &self,
        inputs: &Inputs,
        poisoned: Option<&dyn Fn(&Location) -> bool>,
        progress: &mut dyn FnMut(u64),
    ) -> Run<(Outcome, Vec<UndefinedRead>)> {
        let mut mem = Memory::new(&self.regions);
        mem.checked = self.options.uninit == Uninit::Error;
        if let Some(poisoned) = poisoned {
            for location in self.locations().filter(|location| poisoned(location)) {
                poison(&mut mem, location);
            }
        }
        self.fill(&mut mem, inputs)?;
        let mut cores: Vec<Core<'_>> = self
            .programs
            .iter()
            .map(|program| {
                let names = program.locations.iter();
                let mut machine = Machine::new(
                    Memory::new(&[]),
                    program.registers,
                    self.options.lanes,
                    program.target,
                    names.map(|location| location.name.clone()).collect(),
                );
                machine.mx_scale = self.options.mx_scale;
                machine.trace = poisoned.map(|_| RefCell::default());
                Core::new(program, machine)
            })
            .collect();
        let mem = run_all(&mut cores, mem, self.options.max_steps, progress)?;
        let outcome = Outcome {
            outputs: self.outputs(&mem)?,
            seen: self.seen(&mem),
            stats: self.stats(&cores),
        };
        let traces = cores.into_iter().filter_map(|core| core.machine.trace);
        let reads = traces.flat_map(|trace| trace.into_inner().reads).collect();
        Ok((outcome, reads))
    }

    /// Values of inputs and constants.
    fn fill(&self, mem: &mut Memory, inputs: &Inputs) -> Run<()> {
        let bad = |what: String| Fault::new(FaultKind::Input(what));
        for location in self.locations() {
            match location.kind {
                LocationKind::Input | LocationKind::InOut => {
                    let name = &location.name;
                    let tensor = inputs
                        .get(name)
                        .or_else(|| inputs.get(plain(name)?))
                        .ok_or_else(|| bad(format!("no value is given for input `%{name}`")))?;
                    if tensor.dtype != location.dtype || tensor.dims != location.dims {
                        return Err(bad(format!(
                            "the value given for input `%{name}` is {}, expected {}",
                            tensor.shape_text(),
                            shape_text(&location.dims, location.dtype)
                        )));
                    }
                    if tensor.bytes.len() != location.bytes() {
                        return Err(bad(format!(
                            "the value given for input `%{name}` is cut short"
                        )));
                    }
                    put(mem, location, &tensor.bytes);
                }
                LocationKind::Const => {
                    if let Some(bytes) = &location.value {
                        let size = location.dtype.size_bytes() as usize;
                        if bytes.len() == location.bytes() {
                            put(mem, location, bytes);
                        } else if bytes.len() == size {
                            put(mem, location, &bytes.repeat(location.bytes() / size));
                        }
                    }
                }
                LocationKind::Internal | LocationKind::Output => {}
            }
        }
        Ok(())
    }

    fn outputs(&self, mem: &Memory) -> Run<Vec<(String, Tensor)>> {
        let mut outputs = Vec::new();
        for location in self.locations() {
            if !matches!(location.kind, LocationKind::Output | LocationKind::InOut) {
                continue;
            }
            if self.options.uninit != Uninit::Zero {
                written(mem, location)?;
            }
            outputs.push((location.name.clone(), tensor(mem, location)));
        }
        Ok(outputs)
    }

    fn seen(&self, mem: &Memory) -> Vec<Seen> {
        let watched = |location: &&Location| location.watched && !location.again;
        let locations = self.locations().filter(watched);
        let seen = |location: &Location| Seen {
            name: location.name.clone(),
            tensor: tensor(mem, location),
            undefined: undefined(mem, location),
        };
        match self.options.watch {
            true => locations.map(seen).collect(),
            false => Vec::new(),
        }
    }

    fn stats(&self, cores: &[Core<'_>]) -> Stats {
        let mut stats = Stats::default();
        for core in cores {
            let program = core.program;
            stats.steps += core.cursor.steps;
            let executed = core.cursor.executed.iter().enumerate();
            for (at, &count) in executed.filter(|(_, count)| **count > 0) {
                let bytes = match &program.insts[at] {
                    Inst::Run(task) => task.bytes(),
                    Inst::Meet(_) => 0,
                    _ => continue,
                };
                let engine = OpView::new(self.ir, program.ops[at]).engine();
                let engine = engine.map_or("none", |engine| engine.name());
                *stats
                    .executed
                    .entry((engine, program.codes[at].def().name))
                    .or_default() += count;
                *stats.bytes.entry(engine).or_default() += count.saturating_mul(bytes);
            }
            // Each core has scratchpads of its own.
            let (mut sbuf, mut psum) = (0, 0);
            for location in program.locations.iter().filter(|location| !location.again) {
                let row = location.home.row as u64;
                let placed = location.home.pitch != location.home.row;
                let total = match location.space {
                    Space::Dram => &mut stats.dram_bytes,
                    Space::Sbuf => &mut sbuf,
                    Space::Psum => &mut psum,
                };
                if placed {
                    let region = location.home.region;
                    let start = location.home.start - self.region_start(region);
                    *total = (*total).max((start % location.home.pitch) as u64 + row);
                } else {
                    *total += row;
                }
            }
            stats.sbuf_bytes = stats.sbuf_bytes.max(sbuf);
            stats.psum_bytes = stats.psum_bytes.max(psum);
        }
        stats
    }

    fn region_start(&self, region: usize) -> usize {
        Memory::arena_bytes(
            self.regions[..region]
                .iter()
                .map(|&(bytes, _)| bytes as u64),
        ) as usize
    }
}

/// Why a core does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// Its function has ended.
    AtEnd,
    /// It waits for other cores.
    AtMeeting,
}

/// How far a core has come.
pub(crate) struct Cursor {
    pc: usize,
    steps: u64,
    /// How often each instruction was executed.
    executed: Vec<u64>,
}

impl Cursor {
    /// At the start of a program.
    pub(crate) fn new(program: &Program) -> Cursor {
        Cursor {
            pc: 0,
            steps: 0,
            executed: vec![0; program.insts.len()],
        }
    }

    /// The instruction it is at.
    pub(crate) fn at(&self) -> usize {
        self.pc
    }

    /// Goes on behind the meeting it waits at.
    pub(crate) fn pass(&mut self) {
        self.pc += 1;
    }

    /// Runs until the function ends or the core has to wait.
    pub(crate) fn run(
        &mut self,
        program: &Program,
        m: &mut Machine,
        max_steps: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Run<Stopped> {
        execute(program, m, self, max_steps, progress)
    }
}

/// The run itself.
fn execute(
    program: &Program,
    m: &mut Machine,
    cursor: &mut Cursor,
    max_steps: u64,
    progress: &mut dyn FnMut(u64),
) -> Run<Stopped> {
    let Cursor {
        pc: resume,
        steps: done,
        executed,
    } = cursor;
    let (mut pc, mut steps) = (*resume, *done);
    let value = |m: &Machine, bound: Bound| match bound {
        Bound::Number(number) => number,
        Bound::Register(slot) => i64::from(m.regs[slot as usize] as i32),
    };
    loop {
        steps += 1;
        if steps > max_steps {
            let at = program.ops[pc];
            let name = program.codes[pc].def().name;
            return Err(Fault::new(FaultKind::Steps { limit: max_steps }).at(at, name));
        }
        if steps.is_multiple_of(PROGRESS) {
            progress(steps);
        }
        executed[pc] += 1;
        match &program.insts[pc] {
            Inst::Run(task) => {
                if let Err(fault) = task.run(m) {
                    return Err(fault.at(program.ops[pc], program.codes[pc].def().name));
                }
                m.settle(program.ops[pc], program.codes[pc].def().name);
                pc += 1;
            }
            &Inst::Enter {
                index,
                end,
                lower,
                upper,
                exit,
            } => {
                let (lower, upper) = (value(m, lower), value(m, upper));
                m.regs[index as usize] = lower;
                m.regs[end as usize] = upper;
                pc = if lower < upper { pc + 1 } else { exit as usize };
            }
            &Inst::Next {
                index,
                end,
                step,
                body,
            } => {
                let next = m.regs[index as usize].checked_add(step);
                let more = next.filter(|&next| next < m.regs[end as usize]);
                pc = match more {
                    Some(next) => {
                        m.regs[index as usize] = next;
                        body as usize
                    }
                    None => pc + 1,
                };
            }
            &Inst::Jump(to) => pc = to as usize,
            &Inst::Branch {
                register,
                zero,
                other,
            } => {
                let taken = m.regs[register as usize] as u32 != 0;
                pc = if taken { other } else { zero } as usize;
            }
            Inst::Stop | Inst::Meet(_) => {
                (*resume, *done) = (pc, steps);
                return Ok(match &program.insts[pc] {
                    Inst::Stop => Stopped::AtEnd,
                    _ => Stopped::AtMeeting,
                });
            }
            Inst::Nothing => pc += 1,
        }
    }
}

/// The first element in which two runs differ: output, coordinates, both values.
fn first_difference(a: &Outcome, b: &Outcome) -> Option<(String, String, String, String)> {
    let bits = Tolerance {
        nan_bits: true,
        ..Tolerance::default()
    };
    let mut pairs = a.outputs.iter().zip(&b.outputs);
    pairs.find_map(|((name, a), (_, b))| match compare(a, b, bits)? {
        Difference::Elements {
            index,
            found,
            expected,
            ..
        } => Some((name.clone(), index, found, expected)),
        Difference::Shape { .. } => None,
    })
}

/// Writes a whole location.
fn put(mem: &mut Memory, location: &Location, bytes: &[u8]) {
    let home = &location.home;
    if home.pitch == home.row {
        let range = home.start..home.start + bytes.len();
        mem.bytes_mut()[range.clone()].copy_from_slice(bytes);
        if !range.is_empty() {
            mem.mark(home.region, range);
        }
        return;
    }
    for (p, row) in bytes.chunks_exact(home.row.max(1)).enumerate() {
        let from = home.start + p * home.pitch;
        mem.bytes_mut()[from..from + home.row].copy_from_slice(row);
        mem.mark(home.region, from..from + home.row);
    }
}

fn poison(mem: &mut Memory, location: &Location) {
    let pattern: Vec<u8> = match location
        .dtype
        .float_format()
        .and_then(|format| format.nan())
    {
        Some(nan) => nan.to_le_bytes()[..location.dtype.size_bytes() as usize].to_vec(),
        None => vec![0xa5; location.dtype.size_bytes() as usize],
    };
    let home = &location.home;
    for p in 0..home.partitions {
        let from = home.start + p * home.pitch;
        for element in mem.bytes_mut()[from..from + home.row].chunks_exact_mut(pattern.len()) {
            element.copy_from_slice(&pattern);
        }
    }
}

/// What a location holds.
fn tensor(mem: &Memory, location: &Location) -> Tensor {
    let home = &location.home;
    let mut bytes = Vec::with_capacity(location.bytes());
    for p in 0..home.partitions {
        let from = home.start + p * home.pitch;
        bytes.extend_from_slice(&mem.bytes()[from..from + home.row]);
    }
    Tensor {
        dtype: location.dtype,
        dims: location.dims.clone(),
        bytes,
    }
}

/// Elements of a location nothing has written, ascending.
fn undefined(mem: &Memory, location: &Location) -> Vec<usize> {
    let (home, size) = (&location.home, location.dtype.size_bytes() as usize);
    let mut found = Vec::new();
    for p in 0..home.partitions {
        let from = home.start + p * home.pitch;
        let mut at = 0;
        while at < home.row
            && let Some(byte) = mem.first_undefined(home.region, from + at..from + home.row)
        {
            let element = (byte - from) / size;
            found.push((p * home.row) / size + element);
            at = (element + 1) * size;
        }
    }
    found
}

/// Checks that an output is written in full.
fn written(mem: &Memory, location: &Location) -> Run<()> {
    let home = &location.home;
    let missing = (0..home.partitions).find_map(|p| {
        let from = home.start + p * home.pitch;
        mem.first_undefined(home.region, from..from + home.row)
            .map(|at| (p, at - from))
    });
    let Some((partition, byte)) = missing else {
        return Ok(());
    };
    let size = location.dtype.size_bytes() as usize;
    let location_text = if home.partitions > 1 {
        format!(
            "partition {partition}, element {} of `%{}`",
            byte / size,
            location.name
        )
    } else {
        format!("element {} of `%{}`", byte / size, location.name)
    };
    let mut fault = Fault::new(FaultKind::Output {
        location: location_text,
    });
    fault.op = Some((location.op, "alloc"));
    Err(fault)
}
