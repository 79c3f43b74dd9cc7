//! The index of storages: plain events in, who reaches whom out.
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

use super::atoms::{ANYWHERE, Atoms, Gap, Map, RANGE_LIMIT, WHOLE};
use super::classes::Classes;
use super::event::{Effect, Event, Extent, Initial, Move, Reads, Storage, Writes};
use super::flow::{Flow, LoopId};
use super::pass::{Log, Mode, Parts, Pass, in_one_chain, moved_writes};
use super::tree::{Marks, Node, OUTSIDE, Origin, Tree, UNDEFINED, View};
use super::uses::Uses;

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
    pub(in crate::analysis) ranges: Vec<(u32, u32)>,
}

/// One storage's part of [`Events`].
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct Part {
    /// Its events: the first and one past the last.
    pub(in crate::analysis) events: (u32, u32),
    pub(in crate::analysis) map: Map,
    initial: Initial,
    to_end: bool,
    /// Whether some extent varies with a loop.
    moves: bool,
}

/// The accesses of storages in few lists: events in order of storages, extents, atoms.
#[derive(Debug)]
pub(in crate::analysis) struct Events {
    pub(in crate::analysis) parts: Vec<Part>,
    pub(in crate::analysis) events: Vec<Event>,
    pub(in crate::analysis) extents: Vec<Extent>,
    pub(in crate::analysis) partial: Vec<(LoopId, u32)>,
    pub(in crate::analysis) moves: Vec<Move>,
    pub(in crate::analysis) atoms: Atoms,
}

impl Events {
    pub(in crate::analysis) fn new(limit: usize) -> Events {
        Events {
            parts: Vec::new(),
            events: Vec::new(),
            extents: vec![Extent::fixed(WHOLE), Extent::fixed(ANYWHERE)],
            partial: Vec::new(),
            moves: Vec::new(),
            atoms: Atoms::new(limit),
        }
    }

    /// Closes a storage whose events are those behind the ones of the storage before, to before `end`.
    pub(in crate::analysis) fn close(
        &mut self,
        end: usize,
        map: Map,
        initial: Initial,
        to_end: bool,
    ) {
        let from = self.parts.last().map_or(0, |part| part.events.1);
        let moves = |event: &Event| self.extents[event.extent as usize].varies.is_some();
        let moves = self.events[from as usize..end].iter().any(moves);
        self.parts.push(Part {
            events: (from, end as u32),
            map,
            initial,
            to_end,
            moves,
        });
    }

    /// Adds a storage by itself.
    fn push(&mut self, storage: Storage) {
        let prints = self.atoms.next_footprint();
        let map = self.atoms.add(&storage.whole, &storage.footprints);
        let (extents, partial) = (self.extents.len() as u32, self.partial.len() as u32);
        let moved = |extent: Extent| Extent {
            first: extent.first + prints,
            all: extent.all + prints,
            partial: (extent.partial.0 + partial, extent.partial.1 + partial),
            ..extent
        };
        self.extents.extend(storage.extents.into_iter().map(moved));
        let over = |(id, print)| (id, print + prints);
        self.partial.extend(storage.partial.into_iter().map(over));
        self.events
            .extend(storage.events.into_iter().map(|event| Event {
                extent: event.extent + extents,
                ..event
            }));
        self.close(self.events.len(), map, storage.initial, storage.to_end);
    }

    /// The events of a storage.
    pub(in crate::analysis) fn of(&self, part: &Part) -> &[Event] {
        &self.events[part.events.0 as usize..part.events.1 as usize]
    }

    pub(in crate::analysis) fn heap_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<Part>()
            + self.events.capacity() * size_of::<Event>()
            + self.extents.capacity() * size_of::<Extent>()
            + self.partial.capacity() * 8
            + self.atoms.heap_bytes()
    }
}

/// What was found about one storage, in the lists of [`Arena`].
#[derive(Clone, Copy, Debug)]
struct Answers {
    /// Its nodes.
    nodes: (u32, u32),
    /// The version where the function ends; meant for storages marked `to_end`.
    end: Node,
    uncovered: (u32, u32),
    unwritten: (u32, u32),
}

/// The indices of storages, in shared lists: a storage of one access costs a few words.
pub struct Arena {
    pub(in crate::analysis) events: Events,
    answers: Vec<Answers>,
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

impl Arena {
    /// Indexes storages that are accessed in one flow.
    pub fn build(storages: impl IntoIterator<Item = Storage>, flow: &Flow) -> Arena {
        let mut events = Events::new(RANGE_LIMIT);
        for storage in storages {
            events.push(storage);
        }
        events.atoms.finish();
        Arena::index(events, flow)
    }

    pub(in crate::analysis) fn index(events: Events, flow: &Flow) -> Arena {
        let count = events.events.len();
        let mut arena = Arena {
            answers: Vec::with_capacity(events.parts.len()),
            tree: Tree::new(),
            before: Vec::with_capacity(count),
            post_starts: Vec::with_capacity(count + 1),
            posts: Vec::with_capacity(count / 2),
            uncovered: Vec::new(),
            unwritten: Vec::new(),
            events,
        };
        arena.post_starts.push(0);
        let mut leaves = Vec::new();
        for at in 0..arena.events.parts.len() {
            arena.storage_of(at, flow, &mut leaves);
        }
        arena.tree.shrink();
        arena.posts.shrink_to_fit();
        arena
    }

    fn storage_of(&mut self, at: usize, flow: &Flow, leaves: &mut Vec<Node>) {
        let part = &self.events.parts[at];
        let events = self.events.of(part);
        let initial = match part.initial {
            Initial::Undefined => UNDEFINED,
            Initial::Outside => OUTSIDE,
        };
        let (uncovered, unwritten) = (self.uncovered.len() as u32, self.unwritten.len() as u32);
        let nodes = self.tree.len() as u32;
        let plain = in_one_chain(events, flow)
            && (flow.loop_count() == 0
                || events
                    .iter()
                    .all(|e| flow.segments[e.segment as usize].innermost.is_none()));
        let everything = (0, part.map.count());
        self.tree.start(everything.1);
        let one = plain && everything.1 == 1 && (!part.to_end || ends_with(events, flow));
        let last = if one {
            let mut log = Log {
                before: &mut self.before,
                post_starts: &mut self.post_starts,
                posts: &mut self.posts,
            };
            let extents = &self.events.extents;
            let atoms = &self.events.atoms;
            let end = one_atom(
                events,
                extents,
                atoms,
                initial,
                &mut self.tree,
                &mut log,
                &mut |at| {
                    self.uncovered.push(Uncovered {
                        event: at,
                        ranges: vec![everything],
                    });
                },
            );
            if self.tree.has_undefined(end) {
                self.unwritten.push(everything);
            }
            end
        } else {
            let moved = match part.moves {
                true => moved_writes(&self.events, part, flow),
                false => Vec::new(),
            };
            let parts = Parts {
                events,
                extents: &self.events.extents,
                atoms: &self.events.atoms,
                moved: &moved,
            };
            let log = Log {
                before: &mut self.before,
                post_starts: &mut self.post_starts,
                posts: &mut self.posts,
            };
            leaves.clear();
            leaves.resize(events.len(), UNDEFINED);
            let mut pass = Pass::new(&parts, &mut self.tree, Mode::Reaching(log), leaves);
            let end = pass.run(flow, initial, part.to_end);
            let mut found = std::mem::take(&mut pass.uncovered);
            let mut gaps = Vec::new();
            if plain {
                self.tree
                    .undefined(end, everything.0, everything.1, &mut gaps);
            } else {
                let mut tree = Tree::new();
                tree.start(everything.1);
                let mut pass = Pass::new(&parts, &mut tree, Mode::Defined, leaves);
                let end = pass.run(flow, initial, part.to_end);
                found = std::mem::take(&mut pass.uncovered);
                tree.undefined(end, everything.0, everything.1, &mut gaps);
            }
            self.uncovered.extend(found);
            self.unwritten.extend(gaps);
            end
        };
        self.answers.push(Answers {
            nodes: (nodes, self.tree.len() as u32),
            end: last,
            uncovered: (uncovered, self.uncovered.len() as u32),
            unwritten: (unwritten, self.unwritten.len() as u32),
        });
    }

    /// The index of a storage, by its number.
    pub fn storage(&self, at: usize) -> StorageIndex<'_> {
        StorageIndex {
            arena: self,
            part: &self.events.parts[at],
            answers: &self.answers[at],
        }
    }

    /// Number of storages.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether there is no storage.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Footprints kept as hulls because all of them together passed [`RANGE_LIMIT`].
    pub fn capped(&self) -> usize {
        self.events.atoms.capped()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.events.heap_bytes()
            + self.answers.capacity() * size_of::<Answers>()
            + self.tree.heap_bytes()
            + (self.before.capacity() + self.post_starts.capacity() + self.posts.capacity()) * 4
            + self.unwritten.capacity() * 8
    }
}

/// Whether the function ends in the stretch the events are in.
fn ends_with(events: &[Event], flow: &Flow) -> bool {
    let chain = |segment: u32| flow.segments.get(segment as usize).map(|s| s.chain);
    match (events.last(), flow.exits.as_slice()) {
        (Some(event), &[exit]) => chain(event.segment) == chain(exit),
        _ => false,
    }
}

/// [`Pass`] for a storage of one atom in straight code.
fn one_atom(
    events: &[Event],
    extents: &[Extent],
    atoms: &Atoms,
    initial: Node,
    tree: &mut Tree,
    log: &mut Log<'_>,
    uncovered: &mut dyn FnMut(u32),
) -> Node {
    let mut current = initial;
    for (at, event) in (0u32..).zip(events) {
        let print = extents[event.extent as usize].all;
        let touches = !atoms.ranges(print).is_empty();
        log.before.push(current);
        if event.effect.is_read() && touches {
            log.posts.push(current);
            if event.effect.reads == Reads::Checked && tree.has_undefined(current) {
                uncovered(at);
            }
        }
        log.post_starts.push(log.posts.len() as u32);
        if event.effect.is_write() && touches {
            let leaf = tree.leaf(at, at + 1);
            current = match event.effect.writes == Writes::Must && !atoms.is_hull(print) {
                true => leaf,
                false => tree.over(leaf, current),
            };
        }
    }
    current
}

/// The index of one storage.
#[derive(Clone, Copy)]
pub struct StorageIndex<'a> {
    arena: &'a Arena,
    part: &'a Part,
    answers: &'a Answers,
}

impl<'a> StorageIndex<'a> {
    /// Whether both are the index of one storage.
    pub(in crate::analysis) fn is(&self, other: &StorageIndex<'_>) -> bool {
        std::ptr::eq(self.part, other.part)
    }

    /// The events, in order.
    pub fn events(&self) -> &'a [Event] {
        self.arena.events.of(self.part)
    }

    fn atoms(&self) -> &'a Atoms {
        &self.arena.events.atoms
    }

    /// The bytes of an event.
    pub fn extent(&self, event: &Event) -> &'a Extent {
        &self.arena.events.extents[event.extent as usize]
    }

    fn all(&self, event: &Event) -> u32 {
        self.extent(event).all
    }

    /// Number of atoms the bytes were cut into.
    pub fn atom_count(&self) -> u32 {
        self.part.map.count()
    }

    /// Footprints kept only as hulls, so that their events may touch more than they do.
    pub fn hull_count(&self) -> usize {
        self.events()
            .iter()
            .filter(|event| self.atoms().is_hull(self.all(event)))
            .count()
    }

    /// The version nodes a read sees: the sets of writers that reach it, shared between reads.
    pub(in crate::analysis) fn posted(&self, event: u32) -> &'a [Node] {
        let at = (self.part.events.0 + event) as usize;
        let starts = &self.arena.post_starts;
        &self.arena.posts[starts[at] as usize..starts[at + 1] as usize]
    }

    /// The nodes all its reads see.
    pub(in crate::analysis) fn posts(&self) -> &'a [Node] {
        let (from, to) = self.part.events;
        let starts = &self.arena.post_starts;
        &self.arena.posts[starts[from as usize] as usize..starts[to as usize] as usize]
    }

    pub(in crate::analysis) fn tree(&self) -> &'a Tree {
        &self.arena.tree
    }

    /// Where its nodes start in the tree, and one past the last; the three constants aside.
    pub(in crate::analysis) fn nodes(&self) -> (Node, Node) {
        self.answers.nodes
    }

    /// What its bytes hold where the function ends. Asked of storages marked `to_end`.
    pub(in crate::analysis) fn end(&self) -> Node {
        self.answers.end
    }

    pub(super) fn before(&self, event: u32) -> Node {
        self.arena.before[(self.part.events.0 + event) as usize]
    }

    /// Every event that may have written some byte of a read last.
    pub fn reaching(&self, event: u32) -> Reaching {
        self.expand(self.posted(event))
    }

    /// Every event that may have written some byte of a footprint last, directly before `event`.
    pub fn last_writers_before(&self, event: u32, footprint: u32) -> Reaching {
        let mut nodes = Vec::new();
        self.nodes_of(self.before(event), footprint, &mut nodes);
        self.expand(&nodes)
    }

    pub(super) fn nodes_of(&self, version: Node, footprint: u32, nodes: &mut Vec<Node>) {
        for &(lo, hi) in self.atoms().ranges(footprint) {
            self.tree()
                .read_in(self.part.map.count(), version, lo, hi, nodes);
        }
    }

    fn expand(&self, nodes: &[Node]) -> Reaching {
        let mut reaching = Reaching::default();
        let mut marks = Marks::new(self.nodes().0);
        reaching.origin = self.tree().expand(nodes, &mut marks, &mut reaching.events);
        reaching.events.sort_unstable();
        reaching.events.dedup();
        reaching
    }

    /// The one event that wrote every byte of a read last, if there is one for certain.
    pub fn sole_definition(&self, event: u32) -> Option<u32> {
        let [node] = self.posted(event) else {
            return None;
        };
        match self.tree().view(*node) {
            View::Leaf(found) => found,
            _ => None,
        }
    }

    /// Whether some event between the events at `from` and `to`, both excluded, may write a byte
    /// of a footprint; `from` must stand before `to` on every path to it.
    pub fn clobbered_between(&self, from: u32, to: u32, footprint: u32) -> bool {
        let mut nodes = Vec::new();
        self.nodes_of(self.before(to), footprint, &mut nodes);
        nodes.iter().any(|&node| self.tree().stamp(node) > from + 1)
    }

    /// Reads of bytes that may be undefined, in order.
    pub fn uncovered(&self) -> &'a [Uncovered] {
        let (from, to) = self.answers.uncovered;
        &self.arena.uncovered[from as usize..to as usize]
    }

    /// The bytes of such a read as rectangles, and whether that is all of them.
    pub fn uncovered_gaps(&self, uncovered: &Uncovered, limit: usize) -> (Vec<Gap>, bool) {
        self.atoms().gaps(&self.part.map, &uncovered.ranges, limit)
    }

    /// The bytes no write may have covered where the function ends, and whether that is all of
    /// them. Asked of storages marked `to_end`.
    pub fn unwritten_gaps(&self, limit: usize) -> (Vec<Gap>, bool) {
        let (from, to) = self.answers.unwritten;
        let ranges = &self.arena.unwritten[from as usize..to as usize];
        self.atoms().gaps(&self.part.map, ranges, limit)
    }

    /// Positions of the events that write.
    pub fn writers(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.positions(|effect| effect.is_write())
    }

    /// Positions of the events that read.
    pub fn readers(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.positions(|effect| effect.is_read())
    }

    fn positions<F: Fn(Effect) -> bool>(&self, want: F) -> impl Iterator<Item = u32> + use<'a, F> {
        (0u32..)
            .zip(self.events())
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
        let ranges = |at: u32| self.atoms().ranges(self.all(&self.events()[at as usize]));
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
    pub(in crate::analysis) fn is_everything(&self, footprint: u32) -> bool {
        let atoms = self.atoms();
        atoms.ranges(footprint) == [(0, self.part.map.count())] && !atoms.is_hull(footprint)
    }

    /// The way back: which reads a definition reaches. Costs O(nodes) once.
    pub fn uses(&self) -> Uses<'a> {
        Uses::new(*self)
    }

    /// Events by a class of each, to ask whether all who wrote bytes last are of one.
    pub fn classes(&self, class: Vec<Option<u32>>) -> Classes<'a> {
        Classes::new(*self, class)
    }
}
