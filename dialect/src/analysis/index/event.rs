//! What the index is told of a storage: its accesses, and the bytes they are in.

use super::super::access::Footprint;
use super::flow::LoopId;

/// How an event reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// Not at all.
    No,
    /// Its bytes must be defined.
    Checked,
    /// It merely merges with what is there.
    Unchecked,
}

/// How an event writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// Not at all.
    No,
    /// Some of its bytes, which ones the data decides.
    May,
    /// All of its bytes.
    Must,
}

/// What an event does to its footprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Reads, first.
    pub reads: Reads,
    /// Writes, then.
    pub writes: Writes,
}

impl Effect {
    /// Reads all.
    pub const READ: Effect = Effect::new(Reads::Checked, Writes::No);
    /// Overwrites all.
    pub const WRITE: Effect = Effect::new(Reads::No, Writes::Must);
    /// Overwrites some.
    pub const MAY_WRITE: Effect = Effect::new(Reads::No, Writes::May);
    /// Reads all, then overwrites all.
    pub const READ_WRITE: Effect = Effect::new(Reads::Checked, Writes::Must);
    /// Overwrites some and keeps the rest, whatever it is.
    pub const UPDATE: Effect = Effect::new(Reads::Unchecked, Writes::May);
    /// Overwrites all in the first iteration, reads and overwrites all in others.
    pub const ACCUMULATE: Effect = Effect::new(Reads::Unchecked, Writes::Must);

    const fn new(reads: Reads, writes: Writes) -> Effect {
        Effect { reads, writes }
    }

    /// Whether it reads.
    pub fn is_read(self) -> bool {
        self.reads != Reads::No
    }

    /// Whether it writes.
    pub fn is_write(self) -> bool {
        self.writes != Writes::No
    }
}

/// The bytes of an access: which ones in which iterations.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its footprint in the first iteration of all loops, as a number in the footprint list.
    pub first: u32,
    /// Its footprint over all iterations.
    pub all: u32,
    /// The outermost loop whose index moves it.
    pub varies: Option<LoopId>,
    /// Its part of [`Storage::partial`]: where it starts and ends.
    pub partial: (u32, u32),
    /// How loops move it, where that is known: its part of a list of [`Move`]s.
    pub(in crate::analysis) moves: (u32, u32),
}

/// How far one step of a loop's index moves an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::analysis) struct Move {
    pub(in crate::analysis) id: LoopId,
    pub(in crate::analysis) partition: i64,
    pub(in crate::analysis) byte: i64,
}

impl Extent {
    /// The same bytes always.
    pub const fn fixed(footprint: u32) -> Extent {
        Extent {
            first: footprint,
            all: footprint,
            varies: None,
            partial: (0, 0),
            moves: (0, 0),
        }
    }

    /// Bytes that loops move: in the first iteration and over all, the outermost loop that does,
    /// and the part of [`Storage::partial`].
    pub const fn moving(
        first: u32,
        all: u32,
        varies: Option<LoopId>,
        partial: (u32, u32),
    ) -> Extent {
        Extent {
            first,
            all,
            varies,
            partial,
            moves: (0, 0),
        }
    }
}

/// One access.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Who: the caller's number.
    pub id: u32,
    /// Where it stands.
    pub segment: u32,
    /// Its bytes, as a number in the list of extents.
    pub extent: u32,
    /// What it does.
    pub effect: Effect,
}

impl Event {
    /// An access outside of loops.
    pub fn plain(id: u32, effect: Effect, extent: u32) -> Event {
        Event {
            id,
            segment: 0,
            extent,
            effect,
        }
    }
}

/// What the bytes are before the first event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Initial {
    /// Undefined.
    Undefined,
    /// Defined from outside: inputs, constants.
    Outside,
}

/// A storage and everything that happens to it.
#[derive(Clone, Debug)]
pub struct Storage {
    /// All its bytes.
    pub whole: Footprint,
    /// What they are at first.
    pub initial: Initial,
    /// Distinct footprints, in the frame of `whole`.
    pub footprints: Vec<Footprint>,
    /// Distinct extents, in terms of `footprints`.
    pub extents: Vec<Extent>,
    /// Accesses in program order.
    pub events: Vec<Event>,
    /// For accesses that several loops move: each of those loops but the outermost, with the
    /// number of the footprint over that loop and those in it, first iterations of those around.
    pub partial: Vec<(LoopId, u32)>,
    /// Whether it is asked what is unwritten where the function ends.
    pub to_end: bool,
}

impl Storage {
    /// A storage accessed outside of loops: extents are footprints.
    pub fn fixed(whole: Footprint, footprints: Vec<Footprint>, events: Vec<Event>) -> Storage {
        Storage {
            whole,
            initial: Initial::Undefined,
            extents: (0..footprints.len() as u32).map(Extent::fixed).collect(),
            footprints,
            events,
            partial: Vec::new(),
            to_end: false,
        }
    }
}
