//! Programs of several cores: where they meet.
//!
//! Every core comes to the same meetings in the same order, outside of loops and arms, so that none
//! waits for ever; between two meetings all have the same loops and branches, and each does in them
//! what it likes.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::{Space, Target};

use super::draft::{Draft, Tile};
use super::features::Feature;
use super::locations::Location;
use super::tiles::Want;
use super::{Config, Generator};
use crate::random::Random;

/// What cores can meet at, in a group of all of them.
const MEETINGS: &[OpCode] = &[
    OpCode::CoreBarrier,
    OpCode::Sendrecv,
    OpCode::AllReduce,
    OpCode::AllGather,
    OpCode::ReduceScatter,
    OpCode::AllToAll,
    OpCode::CollectivePermute,
    OpCode::CollectivePermuteImplicit,
    OpCode::CollectivePermuteImplicitReduce,
];

/// Those a core alone cannot execute, so that asking for one asks for several cores.
const FOR_SEVERAL: &[OpCode] = &[OpCode::CoreBarrier, OpCode::Sendrecv];

/// Elements of a part, at most: a whole has as many for every core.
const ELEMENTS: u64 = 16;

/// Cores of a program, and where they meet.
pub(super) struct Plan {
    pub(super) cores: u32,
    pub(super) meetings: Vec<Meeting>,
}

/// One meeting: all its members have the same idea of it.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    code: OpCode,
    /// Which of the program's meetings it is.
    number: usize,
    space: Space,
    dtype: DType,
    /// Shape of a part.
    parts: u64,
    elems: u64,
    /// How elements are combined.
    word: &'static str,
    /// Who comes first in a group, or writes what others read behind a barrier.
    first: u32,
}

impl Plan {
    /// A program of one core.
    pub(super) const ALONE: Plan = Plan {
        cores: 1,
        meetings: Vec::new(),
    };

    /// How many cores a program has, and where they meet.
    pub(super) fn new(config: &Config, target: Target, random: &mut Random) -> Plan {
        let asked = |code: &OpCode| config.ops.is_empty() || config.ops.contains(code);
        let available = |code: &OpCode| {
            let engines = code.def().engines;
            engines.is_some_and(|engines| !engines.on(target).is_empty())
                && !config.without_ops.contains(code)
                && asked(code)
        };
        let codes: Vec<OpCode> = { MEETINGS.iter().copied() }.filter(available).collect();
        if config.max_cores < 2 || codes.is_empty() {
            return Plan::ALONE;
        }
        let needed = !config.ops.is_empty() && codes.iter().any(|code| FOR_SEVERAL.contains(code));
        let may = config.ops.is_empty() && !config.without.has(Feature::Cores);
        if !(needed || may && random.below(6) == 0) {
            return Plan::ALONE;
        }
        let cores = match random.below(4) {
            0 => 3,
            1 => 4,
            _ => 2,
        };
        let cores = config.max_cores.min(cores);
        let mut pick = |n: usize| random.below(n as u64) as usize;
        let count = 1 + pick(4);
        let meetings = (0..count).map(|number| Meeting {
            code: codes[pick(codes.len())],
            number,
            space: [Space::Dram, Space::Sbuf][pick(2)],
            dtype: [DType::F32, DType::F32, DType::Bf16, DType::I32][pick(4)],
            parts: [1, 2, 16, 32][pick(4)],
            elems: 1 + pick(ELEMENTS as usize) as u64,
            word: ["add", "min", "max"][pick(3)],
            first: pick(cores as usize) as u32,
        });
        // Only two cores exchange tiles with `sendrecv`.
        let fits = |meeting: &Meeting| cores == 2 || meeting.code != OpCode::Sendrecv;
        Plan {
            cores,
            meetings: meetings.filter(fits).collect(),
        }
    }
}

impl Generator<'_> {
    /// Comes to a meeting.
    pub(super) fn meet(&mut self, meeting: &Meeting) {
        self.counts.feature(Feature::Cores);
        let mut draft = Draft::new(meeting.code);
        let parts = meeting.parts;
        let whole = parts * u64::from(self.seat.cores);
        match meeting.code {
            OpCode::CoreBarrier => return self.barrier(draft, meeting),
            OpCode::Sendrecv => {
                let other = i64::from(1 - self.seat.core.min(1));
                self.int(&mut draft, "send_to", other);
                self.int(&mut draft, "recv_from", other);
                self.int(&mut draft, "pipe_id", meeting.number as i64);
                self.sides(&mut draft, meeting, ("dst", parts), &[("src", parts)]);
            }
            OpCode::AllReduce | OpCode::CollectivePermuteImplicit => {
                self.sides(&mut draft, meeting, ("dsts", parts), &[("srcs", parts)]);
            }
            OpCode::AllGather if meeting.space == Space::Sbuf && meeting.first > 0 => {
                self.int(&mut draft, "dim", 1);
                self.side_by_side(&mut draft, meeting);
            }
            OpCode::AllGather => {
                self.sides(&mut draft, meeting, ("dst", whole), &[("src", parts)]);
            }
            OpCode::ReduceScatter => {
                self.sides(&mut draft, meeting, ("dst", parts), &[("src", whole)]);
            }
            OpCode::AllToAll => {
                self.sides(&mut draft, meeting, ("dst", whole), &[("src", whole)]);
            }
            OpCode::CollectivePermuteImplicitReduce => {
                let sides = [("lhs", parts), ("rhs", parts)];
                self.sides(&mut draft, meeting, ("dst", parts), &sides);
            }
            _ => self.sides(&mut draft, meeting, ("dst", parts), &[("src", parts)]),
        }
        if draft.def.attr("op").is_some() {
            self.word(&mut draft, "op", meeting.word);
        }
        // `first` is the first of a group, or how far data move.
        let ranks = i64::from(self.seat.cores);
        let order: Vec<i64> = (0..ranks)
            .map(|k| (k + i64::from(meeting.first)) % ranks)
            .collect();
        match meeting.code {
            OpCode::Sendrecv => {}
            OpCode::CollectivePermute => {
                let pairs: Vec<[i64; 2]> = { (0..ranks).zip(order) }.map(Into::into).collect();
                let pairs: Vec<&[i64]> = pairs.iter().map(|pair| &pair[..]).collect();
                self.lists(&mut draft, "pairs", &pairs);
            }
            _ => self.lists(&mut draft, "groups", &[&order]),
        }
        self.emit(&mut draft);
    }

    /// Sources and destination of so many partitions each.
    fn sides(
        &mut self,
        draft: &mut Draft,
        meeting: &Meeting,
        dst: (&str, u64),
        srcs: &[(&str, u64)],
    ) {
        for &(role, parts) in srcs {
            let want = self.want(draft, role, parts, meeting.elems);
            self.read_as(draft, role, meeting.narrow(want));
        }
        let want = self.want(draft, dst.0, dst.1, meeting.elems);
        self.write_as(draft, dst.0, meeting.narrow(want));
    }

    /// Parts that go into one partition each.
    fn side_by_side(&mut self, draft: &mut Draft, meeting: &Meeting) {
        let (parts, elems) = (meeting.parts, meeting.elems);
        let want = self.want(draft, "src", parts, elems);
        self.read_as(draft, "src", meeting.narrow(want));
        let want = self.want(draft, "dst", parts, elems * u64::from(self.seat.cores));
        self.write_as(draft, "dst", meeting.narrow(want));
    }

    /// `core_barrier`, between the writes of one core to shared memory and the reads of all.
    fn barrier(&mut self, mut draft: Draft, meeting: &Meeting) {
        let cores: Vec<i64> = (0..i64::from(self.seat.cores)).collect();
        self.ints(&mut draft, "cores", &cores);
        if self.may(Feature::SharedLocation) && meeting.space == Space::Dram {
            self.counts.feature(Feature::SharedLocation);
            let shared = self.shared_location(meeting);
            if self.seat.core == meeting.first {
                let mut save = Draft::new(OpCode::Save);
                let want = self.want(&save, "src", meeting.parts, meeting.elems);
                self.read_as(&mut save, "src", want.of(&[meeting.dtype]));
                save.tile("dst", shared);
                self.emit(&mut save);
            }
            let defines = self.seat.core != meeting.first;
            draft.tile("data", Tile { defines, ..shared });
        }
        self.emit(&mut draft);
    }

    /// A buffer that all cores have under one name; one writes it, so nobody else may.
    fn shared_location(&mut self, meeting: &Meeting) -> Tile {
        let (key, space) = (self.ir.ctx.str("space"), self.ir.ctx.string("shared"));
        let dims = [meeting.parts, meeting.elems];
        let attrs = [(key, space)];
        let value = self.declare_location(Space::Dram, meeting.dtype, &dims, &attrs);
        self.name(value, b's', meeting.number);
        let kind = (Space::Dram, meeting.dtype);
        self.locations.push(Location {
            writable: false,
            ..Location::new(value, kind, 1, &dims, self.storages)
        });
        self.storages += 1;
        self.whole(self.locations.len() - 1)
    }

    /// The number of the own core, which is its rank.
    pub(super) fn rank(&self) -> i64 {
        i64::from(self.seat.core)
    }
}

impl Meeting {
    /// What its operands must be, of what they may be.
    fn narrow(&self, mut want: Want) -> Want {
        if want.spaces.has(self.space) {
            want = want.within(&[self.space]);
        }
        want.of(&[self.dtype])
    }
}
