//! The index of one storage: plain events in, who reaches whom out.
//!
//! What an answer means (the brute-force tests state the same):
//! * *reaching* – every event that may have written some byte of a read last. Without loops and
//!   branches it is exact. In a loop an access stands for all its iterations, so the answer is a
//!   superset there: a write that an index moves does not kill within the loop, and kills what came
//!   before the loop at its end. Below [`MAX_DEPTH`](super::MAX_DEPTH) nested loops nothing kills.
//! * *uncovered* – bytes of a read that no write may have covered on some path, loops making one
//!   trip: exact for the first iteration.
//!
//! Invariants: positions are indices into the event list; events are in the order of segments; an
//! event reads before it writes.

use super::super::access::Footprint;
use super::atoms::{Atoms, Gap};
use super::flow::{Flow, LoopId};
use super::pass::{Mode, Parts, Pass, in_one_chain, moved_writes};
use super::tree::{Marks, Node, OUTSIDE, Origin, Tree, UNDEFINED, View};
use super::uses::Uses;

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

/// One access.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Who: the caller's number.
    pub id: u32,
    /// What it does.
    pub effect: Effect,
    /// Where it stands.
    pub segment: u32,
    /// Its footprint in the first iteration of all loops, as a number in the footprint list.
    pub first: u32,
    /// Its footprint over all iterations.
    pub all: u32,
    /// The outermost loop whose index moves it.
    pub varies: Option<LoopId>,
    /// Its part of [`Storage::partial`]: where it starts and ends.
    pub partial: (u32, u32),
}

impl Event {
    /// An access outside of loops.
    pub fn plain(id: u32, effect: Effect, footprint: u32) -> Event {
        Event {
            id,
            effect,
            segment: 0,
            first: footprint,
            all: footprint,
            varies: None,
            partial: (0, 0),
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
    /// Accesses in program order.
    pub events: Vec<Event>,
    /// For accesses that several loops move: each of those loops but the outermost, with the
    /// number of the footprint over that loop and those in it, first iterations of those around.
    pub partial: Vec<(LoopId, u32)>,
    /// Whether it is asked what is unwritten where the function ends.
    pub to_end: bool,
}

/// Who may have written the bytes of a read last.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reaching {
    /// Positions of the events, ascending.
    pub events: Vec<u32>,
    /// What else.
    pub origin: Origin,
}

/// A read of bytes that may be undefined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uncovered {
    /// Position of the reading event.
    pub event: u32,
    pub(super) ranges: Vec<(u32, u32)>,
}

/// The index.
pub struct StorageIndex {
    events: Vec<Event>,
    atoms: Atoms,
    tree: Tree,
    /// The version before each event.
    before: Vec<Node>,
    /// Per event, where its nodes start in `posts`.
    post_starts: Vec<u32>,
    /// Nodes reads see.
    posts: Vec<Node>,
    uncovered: Vec<Uncovered>,
    unwritten: Vec<(u32, u32)>,
}

impl StorageIndex {
    /// Indexes a storage.
    pub fn build(storage: Storage, flow: &Flow) -> StorageIndex {
        let atoms = Atoms::new(&storage.whole, &storage.footprints);
        let moved = moved_writes(&storage, flow);
        let mut index = StorageIndex {
            tree: Tree::new(atoms.count()),
            before: Vec::with_capacity(storage.events.len()),
            post_starts: Vec::with_capacity(storage.events.len() + 1),
            posts: Vec::new(),
            uncovered: Vec::new(),
            unwritten: Vec::new(),
            events: storage.events,
            atoms,
        };
        drop(storage.footprints);
        let initial = match storage.initial {
            Initial::Undefined => UNDEFINED,
            Initial::Outside => OUTSIDE,
        };
        let plain = index.in_one_chain(flow)
            && index
                .events
                .iter()
                .all(|e| flow.segments[e.segment as usize].innermost.is_none());
        let parts = Parts {
            events: &index.events,
            atoms: &index.atoms,
            moved: &moved,
        };
        let mut pass = Pass::new(&parts, &mut index.tree, Mode::Reaching);
        let end = pass.run(flow, initial, storage.to_end);
        let Pass {
            before,
            post_starts,
            posts,
            mut uncovered,
            ..
        } = pass;
        let everything = (0, index.atoms.count());
        let mut unwritten = Vec::new();
        if plain {
            index
                .tree
                .undefined(end, everything.0, everything.1, &mut unwritten);
        } else {
            let mut tree = Tree::new(index.atoms.count());
            let mut pass = Pass::new(&parts, &mut tree, Mode::Defined);
            let end = pass.run(flow, initial, storage.to_end);
            uncovered = std::mem::take(&mut pass.uncovered);
            tree.undefined(end, everything.0, everything.1, &mut unwritten);
        }
        (index.before, index.post_starts, index.posts) = (before, post_starts, posts);
        (index.uncovered, index.unwritten) = (uncovered, unwritten);
        index.tree.shrink();
        index.posts.shrink_to_fit();
        index
    }

    fn in_one_chain(&self, flow: &Flow) -> bool {
        in_one_chain(&self.events, flow)
    }

    /// The events, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.events.capacity() * size_of::<Event>()
            + self.atoms.heap_bytes()
            + self.tree.heap_bytes()
            + (self.before.capacity() + self.post_starts.capacity() + self.posts.capacity()) * 4
    }

    /// Number of atoms the bytes were cut into.
    pub fn atom_count(&self) -> u32 {
        self.atoms.count()
    }

    /// Footprints kept only as hulls, so that their events may touch more than they do.
    pub fn hull_count(&self) -> usize {
        self.events
            .iter()
            .filter(|event| self.atoms.is_hull(event.all))
            .count()
    }

    /// The version nodes a read sees: the sets of writers that reach it, shared between reads.
    pub(super) fn posted(&self, event: u32) -> &[Node] {
        let (from, to) = (
            self.post_starts[event as usize] as usize,
            self.post_starts[event as usize + 1] as usize,
        );
        &self.posts[from..to]
    }

    pub(super) fn posts(&self) -> &[Node] {
        &self.posts
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Every event that may have written some byte of a read last.
    pub fn reaching(&self, event: u32) -> Reaching {
        self.expand(self.posted(event))
    }

    /// Every event that may have written some byte of a footprint last, directly before `event`.
    pub fn last_writers_before(&self, event: u32, footprint: u32) -> Reaching {
        let mut nodes = Vec::new();
        self.nodes_of(self.before[event as usize], footprint, &mut nodes);
        self.expand(&nodes)
    }

    fn nodes_of(&self, version: Node, footprint: u32, nodes: &mut Vec<Node>) {
        for &(lo, hi) in self.atoms.ranges(footprint) {
            self.tree.read(version, lo, hi, 0, nodes);
        }
    }

    fn expand(&self, nodes: &[Node]) -> Reaching {
        let mut reaching = Reaching::default();
        let mut marks = Marks::default();
        reaching.origin = self.tree.expand(nodes, &mut marks, &mut reaching.events);
        reaching.events.sort_unstable();
        reaching.events.dedup();
        reaching
    }

    /// The one event that wrote every byte of a read last, if there is one for certain.
    pub fn sole_definition(&self, event: u32) -> Option<u32> {
        let [node] = self.posted(event) else {
            return None;
        };
        match self.tree.view(*node) {
            View::Leaf(found) => found,
            _ => None,
        }
    }

    /// Whether some event between the events at `from` and `to`, both excluded, may write a byte
    /// of a footprint; `from` must stand before `to` on every path to it.
    pub fn clobbered_between(&self, from: u32, to: u32, footprint: u32) -> bool {
        let mut nodes = Vec::new();
        self.nodes_of(self.before[to as usize], footprint, &mut nodes);
        nodes.iter().any(|&node| self.tree.stamp(node) > from + 1)
    }

    /// Reads of bytes that may be undefined, in order.
    pub fn uncovered(&self) -> &[Uncovered] {
        &self.uncovered
    }

    /// The bytes of such a read as rectangles, and whether that is all of them.
    pub fn uncovered_gaps(&self, uncovered: &Uncovered, limit: usize) -> (Vec<Gap>, bool) {
        self.atoms.gaps(&uncovered.ranges, limit)
    }

    /// The bytes no write may have covered where the function ends, and whether that is all of
    /// them. Asked of storages marked `to_end`.
    pub fn unwritten_gaps(&self, limit: usize) -> (Vec<Gap>, bool) {
        self.atoms.gaps(&self.unwritten, limit)
    }

    /// Positions of the events that write.
    pub fn writers(&self) -> impl Iterator<Item = u32> + '_ {
        self.positions(|effect| effect.is_write())
    }

    /// Positions of the events that read.
    pub fn readers(&self) -> impl Iterator<Item = u32> + '_ {
        self.positions(|effect| effect.is_read())
    }

    fn positions(&self, want: impl Fn(Effect) -> bool + 'static) -> impl Iterator<Item = u32> + '_ {
        (0u32..)
            .zip(&self.events)
            .filter(move |(_, event)| want(event.effect))
            .map(|(at, _)| at)
    }

    /// The only writing event, if there is exactly one.
    pub fn sole_writer(&self) -> Option<u32> {
        let mut all = self.writers();
        all.next().filter(|_| all.next().is_none())
    }

    /// The only reading event, if there is exactly one.
    pub fn sole_reader(&self) -> Option<u32> {
        let mut all = self.readers();
        all.next().filter(|_| all.next().is_none())
    }

    /// Whether two events' footprints over all iterations share a byte; `true` where one is kept
    /// as a hull.
    pub fn events_overlap(&self, a: u32, b: u32) -> bool {
        let ranges = |at: u32| self.atoms.ranges(self.events[at as usize].all);
        let (mut left, mut right) = (ranges(a).iter(), ranges(b).iter());
        let (mut x, mut y) = (left.next(), right.next());
        while let (Some(one), Some(two)) = (x, y) {
            if one.0 < two.1 && two.0 < one.1 {
                return true;
            }
            if one.1 <= two.0 {
                x = left.next();
            } else {
                y = right.next();
            }
        }
        false
    }

    /// Whether a footprint is all bytes of the storage.
    pub(super) fn is_everything(&self, footprint: u32) -> bool {
        self.atoms.ranges(footprint) == [(0, self.atoms.count())] && !self.atoms.is_hull(footprint)
    }

    /// The way back: which reads a definition reaches. Costs O(nodes) once.
    pub fn uses(&self) -> Uses<'_> {
        Uses::new(self)
    }
}
