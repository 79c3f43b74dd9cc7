//! Several cores of one program, one after another, and where they meet.
//!
//! * The cores run in ascending order, each until it ends or has to wait for others.
//! * A meeting takes place when all its members wait at it: the same op of the same group. Data are
//!   read from all members before any is written to, so that an exchange may be in place.
//! * When every core has ended or waits, and no meeting is complete, the program waits for ever;
//!   the fault says who waits for whom.

use std::fmt::Write as _;

use bir_dialect::ir::Op;

use crate::fault::{Fault, FaultKind, Run};
use crate::lower::{Inst, Program};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::ops::{Exchange, Parcel};
use crate::run::{Cursor, Stopped};

/// Where cores wait for each other.
pub(crate) struct Meeting {
    /// The cores that take part, in the order of their group; the one it belongs to among them.
    pub(crate) members: Vec<u32>,
    /// What tells it from other meetings: op, operation, pipe.
    pub(crate) name: String,
    /// What is exchanged.
    pub(crate) exchange: Exchange,
}

/// One core of a run.
pub(crate) struct Core<'p> {
    pub(crate) program: &'p Program,
    pub(crate) machine: Machine,
    pub(crate) cursor: Cursor,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Waiting,
    Ended,
}

impl<'p> Core<'p> {
    pub(crate) fn new(program: &'p Program, machine: Machine) -> Core<'p> {
        Core {
            program,
            machine,
            cursor: Cursor::new(program),
            state: State::Ready,
        }
    }

    /// The meeting it waits at.
    fn meeting(&self) -> Option<&'p Meeting> {
        match &self.program.insts[self.cursor.at()] {
            Inst::Meet(meeting) if self.state == State::Waiting => Some(meeting),
            _ => None,
        }
    }

    /// The instruction it is at.
    fn place(&self) -> (Op, &'static str) {
        let at = self.cursor.at();
        (self.program.ops[at], self.program.codes[at].def().name)
    }
}

/// Runs all cores to their ends; the memory they leave.
pub(crate) fn run_all(
    cores: &mut [Core<'_>],
    mut mem: Memory,
    max_steps: u64,
    progress: &mut dyn FnMut(u64),
) -> Run<Memory> {
    loop {
        for core in cores.iter_mut().filter(|core| core.state == State::Ready) {
            std::mem::swap(&mut core.machine.mem, &mut mem);
            let stopped = core
                .cursor
                .run(core.program, &mut core.machine, max_steps, progress);
            std::mem::swap(&mut core.machine.mem, &mut mem);
            core.state = match stopped? {
                Stopped::AtMeeting => State::Waiting,
                Stopped::AtEnd => State::Ended,
            };
        }
        let mut met = false;
        for at in 0..cores.len() {
            if let Some(members) = complete(cores, at) {
                exchange(cores, &members, &mut mem)?;
                met = true;
            }
        }
        if !met {
            break;
        }
    }
    match cores.iter().find(|core| core.state == State::Waiting) {
        None => Ok(mem),
        Some(core) => {
            let (op, name) = core.place();
            let waits = waits(cores);
            Err(Fault::new(FaultKind::Deadlock { waits }).at(op, name))
        }
    }
}

/// Positions of the members of the meeting a core waits at, if all of them do.
fn complete(cores: &[Core<'_>], at: usize) -> Option<Vec<usize>> {
    let meeting = cores[at].meeting()?;
    meeting
        .members
        .iter()
        .map(|&member| {
            cores.iter().position(|core| {
                core.program.core == member
                    && core.meeting().is_some_and(|other| {
                        other.name == meeting.name && other.members == meeting.members
                    })
            })
        })
        .collect()
}

/// Lets the members of a meeting exchange their data and go on.
fn exchange(cores: &mut [Core<'_>], members: &[usize], mem: &mut Memory) -> Run<()> {
    let mut parcels: Vec<Parcel> = Vec::with_capacity(members.len());
    for &member in members {
        let core = &mut cores[member];
        let Some(meeting) = core.meeting() else {
            continue;
        };
        std::mem::swap(&mut core.machine.mem, mem);
        let parcel = meeting
            .exchange
            .send(&mut core.machine, core.program.core, members.len());
        std::mem::swap(&mut core.machine.mem, mem);
        let (op, name) = core.place();
        core.machine.settle(op, name);
        parcels.push(parcel.map_err(|fault| fault.at(op, name))?);
    }
    for (position, &member) in members.iter().enumerate() {
        let core = &mut cores[member];
        let Some(meeting) = core.meeting() else {
            continue;
        };
        std::mem::swap(&mut core.machine.mem, mem);
        let done = meeting
            .exchange
            .receive(&mut core.machine, position, &parcels);
        std::mem::swap(&mut core.machine.mem, mem);
        let (op, name) = core.place();
        core.machine.settle(op, name);
        done.map_err(|fault| fault.at(op, name))?;
    }
    for &member in members {
        cores[member].cursor.pass();
        cores[member].state = State::Ready;
    }
    Ok(())
}

/// "core 0 waits at `all_reduce` for core 1, which has ended"
fn waits(cores: &[Core<'_>]) -> String {
    let mut text = String::new();
    for core in cores {
        let Some(meeting) = core.meeting() else {
            continue;
        };
        if !text.is_empty() {
            text.push_str("; ");
        }
        let _ = write!(
            text,
            "core {} waits at {} for ",
            core.program.core, meeting.name
        );
        let absent = meeting.members.iter().filter_map(|&member| {
            let other = cores.iter().find(|core| core.program.core == member)?;
            let here = other.meeting().is_some_and(|other| {
                other.name == meeting.name && other.members == meeting.members
            });
            (!here).then_some((member, other.state == State::Ended))
        });
        for (n, (member, ended)) in absent.enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            let ended = if ended { ", which has ended" } else { "" };
            let _ = write!(text, "{comma}core {member}{ended}");
        }
    }
    text
}
