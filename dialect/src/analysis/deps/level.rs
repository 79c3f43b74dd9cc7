//! Edges of one storage, loop by loop.
//!
//! Two accesses are compared in the innermost loop that holds both, so that its indices and those
//! around it have the same values on both sides. Loops are gone through inside out. Going through
//! the body of one, an access that stands in it directly is one step, and a loop in it is one step
//! with all it accesses over all its iterations. Behind a body it is known
//!
//! * which accesses see what was there before the body (the others are answered inside),
//! * which accesses are seen behind it (the others are overwritten inside),
//!
//! and only those take part further out. Two versions are carried along: who wrote each atom last,
//! and who read it since. Where every access is of few atoms they are lists by atom, which cost the
//! same however large the storage is. Where accesses in loops stand still, what they see and leave
//! is told byte by byte, see `still`.

mod still;

use hashbrown::HashMap;

use super::super::index::atoms::Atoms;
use super::super::index::collect::Collected;
use super::super::index::event::{Event, Extent, Writes};
use super::super::index::flow::{Flow, LoopId, LoopKind, MAX_DEPTH};
use super::super::index::storage::Part;
use super::super::index::tree::{Copied, Marks, Node, OUTSIDE, Tree, UNDEFINED, View};
use super::build::Builder;
use super::graph::Source;
use super::nodes::Nodes;
use super::sets::{DIRECT, Sets};
use crate::bir::program::DepKind;
use still::{Kept, Masks};

/// An access sees what was there before the body gone through last.
const SEES_BEFORE: u8 = 1;
/// What an access wrote is seen behind the body.
const WRITE_SEEN: u8 = 2;
/// What an access read has not been overwritten since.
const READ_SEEN: u8 = 4;

/// Who wrote last, and who read since, which are nothing where they are by atom; and what is
/// overwritten for certain since the body of a loop began, as a mask.
type Versions = [Node; 3];

const WRITERS: usize = 0;
const READERS: usize = 1;
const MASK: usize = 2;
const NOTHING: Versions = [UNDEFINED; 3];

pub(super) struct Levels<'a> {
    all: &'a Collected,
    /// Per loop, the outermost one around it, or itself, that is not nested too deeply.
    level_of: Vec<LoopId>,
    /// Per loop with branches in its body, the segments that every iteration comes to.
    cuts: HashMap<LoopId, Vec<bool>, foldhash::fast::FixedState>,
    peak: usize,
}

impl<'a> Levels<'a> {
    pub(super) fn new(all: &'a Collected) -> Levels<'a> {
        let flow = &all.flow;
        let mut level_of: Vec<LoopId> = Vec::with_capacity(flow.loop_count());
        for at in 0..flow.loop_count() as u32 {
            let span = flow.span(LoopId(at));
            level_of.push(match span.parent {
                Some(outer) if span.depth >= MAX_DEPTH => level_of[outer.0 as usize],
                _ => LoopId(at),
            });
        }
        // Loops whose bodies hold branches: chains are counted in order.
        let chain = |at: u32| flow.segments[at as usize].chain;
        let has_branches = |id: &LoopId| {
            let span = flow.span(*id);
            level_of[id.0 as usize] == *id && chain(span.first) != chain(span.last)
        };
        let loops = (0..flow.loop_count() as u32).map(LoopId);
        let cuts = loops.filter(has_branches);
        let cuts = cuts.map(|id| (id, still::cuts(flow, id))).collect();
        Levels {
            all,
            level_of,
            cuts,
            peak: 0,
        }
    }

    /// Bytes on the heap for one storage, at most.
    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    pub(super) fn storage(&mut self, part: &Part, builder: &mut Builder) {
        let events = self.all.events.of(part);
        let flow = &self.all.flow;
        let mut walk = Walk {
            levels: self,
            events,
            flow,
            atoms: &self.all.events.atoms,
            extents: &self.all.events.extents,
            tree: Tree::new(),
            nodes: Nodes::default(),
            flags: vec![SEES_BEFORE | WRITE_SEEN | READ_SEEN; events.len()],
            masks: Masks::new(part.map.count()),
            masked: Vec::new(),
            laid: HashMap::default(),
            kept: HashMap::default(),
            kept_bytes: 0,
            found: Vec::new(),
            list: Vec::new(),
            wide: HashMap::default(),
            by_atom: None,
            atom_count: part.map.count(),
            floor: 0,
            peak: 0,
            last_write: events.iter().rposition(|e| e.effect.is_write()),
        };
        walk.tree.start(part.map.count());
        // Loops that hold events, inside out.
        let mut loops: Vec<LoopId> = Vec::new();
        for event in events {
            let mut at = walk.level(event);
            while let Some(id) = at {
                if loops.last() == Some(&id) {
                    break;
                }
                loops.push(id);
                at = flow.span(id).parent;
            }
        }
        loops.sort_unstable();
        loops.dedup();
        if !loops.is_empty() {
            walk.masked.resize(events.len(), UNDEFINED);
        }
        for &id in loops.iter().rev() {
            let span = flow.span(id);
            let of = |bound: u32| events.partition_point(|event| event.segment < bound);
            let range = of(span.first)..of(span.last + 1);
            walk.body(Some(id), range, builder);
        }
        walk.body(None, 0..events.len(), builder);
        self.peak = walk.peak.max(self.peak);
    }
}

struct Walk<'w, 'a> {
    levels: &'w Levels<'a>,
    events: &'a [Event],
    flow: &'a Flow,
    atoms: &'a Atoms,
    extents: &'a [Extent],
    tree: Tree,
    nodes: Nodes,
    flags: Vec<u8>,
    masks: Masks,
    /// Per event, what it does not see of what was there before the body gone through last; empty
    /// where there are no loops.
    masked: Vec<Node>,
    /// Versions under masks.
    laid: HashMap<(Node, Node, Node), Node, foldhash::fast::FixedState>,
    /// What loops do that the body around has not come to.
    kept: HashMap<LoopId, Kept, foldhash::fast::FixedState>,
    kept_bytes: usize,
    found: Vec<Node>,
    list: Vec<Source>,
    /// Long lists by footprint and version.
    wide: HashMap<(u32, Node), Source, foldhash::fast::FixedState>,
    /// The versions by atom, where accesses of the body are of few atoms each.
    by_atom: Option<[Vec<Node>; 2]>,
    atom_count: u32,
    /// Rows of the tree that were live when it was last cleared.
    floor: usize,
    peak: usize,
    /// The last event that writes: nobody owes anything to who reads behind it.
    last_write: Option<usize>,
}

/// How accesses are compared in a body.
#[derive(Clone, Copy)]
struct Frame {
    body: Option<LoopId>,
    /// Whether all move alike with the loops around.
    alike: bool,
    /// Whether writes can end what was before.
    exact: bool,
}

impl Walk<'_, '_> {
    /// The innermost loop around an event that is gone through by itself.
    fn level(&self, event: &Event) -> Option<LoopId> {
        let inner = self.flow.segments[event.segment as usize].innermost?;
        Some(self.levels.level_of[inner.0 as usize])
    }

    fn order(&self, at: usize) -> u32 {
        self.levels.all.order(&self.events[at])
    }

    fn extent(&self, at: usize) -> Extent {
        self.extents[self.events[at].extent as usize]
    }

    /// The loop directly in `body` around an event, if one is.
    fn child(&self, body: Option<LoopId>, event: &Event) -> Option<LoopId> {
        let mut at = self.level(event);
        let mut below = None;
        while at != body {
            below = at;
            at = self.flow.span(at?).parent;
        }
        below
    }

    /// Whether a loop around an event is one of `body` or around it.
    fn is_common(&self, id: LoopId, body: Option<LoopId>) -> bool {
        body.is_some_and(|body| id <= body)
    }

    fn frame(&self, body: Option<LoopId>, range: std::ops::Range<usize>) -> Frame {
        let moves = &self.levels.all.events.moves;
        let common = |at: usize| {
            let (from, to) = self.extent(at).moves;
            let own = &moves[from as usize..to as usize];
            let count = own
                .iter()
                .take_while(|moved| self.is_common(moved.id, body))
                .count();
            &own[..count]
        };
        let mut alike = true;
        let mut first = None;
        // Also those nobody outside meets: which ones these are depends on the kinds wanted.
        for at in range {
            let own = common(at);
            alike &= *first.get_or_insert(own) == own;
        }
        Frame {
            body,
            alike,
            exact: body.is_none_or(|id| self.flow.span(id).exact),
        }
    }

    /// The footprint of an event with the indices of the body, and of loops around it, at one
    /// value, or over all of them where not all events move alike.
    fn print(&self, frame: Frame, at: usize) -> u32 {
        let extent = self.extent(at);
        let all = &self.levels.all.events;
        let (from, to) = extent.moves;
        let moves = &all.moves[from as usize..to as usize];
        let is_common = |id: LoopId| self.is_common(id, frame.body);
        if !frame.alike || !moves.first().is_some_and(|moved| is_common(moved.id)) {
            return extent.all;
        }
        let Some(inner) = moves.iter().find(|moved| !is_common(moved.id)) else {
            return extent.first;
        };
        let (from, to) = extent.partial;
        let partial = &all.partial[from as usize..to as usize];
        let over = partial.iter().find(|partial| partial.0 == inner.id);
        over.map_or(extent.all, |over| over.1)
    }

    /// Whether an event overwrites its footprint for certain whenever the body runs.
    fn kills(&self, frame: Frame, child: Option<LoopId>, at: usize) -> bool {
        let event = &self.events[at];
        let varies = self
            .extent(at)
            .varies
            .is_some_and(|id| self.is_common(id, frame.body));
        if !frame.exact
            || event.effect.writes != Writes::Must
            || varies && !frame.alike
            || self.atoms.is_hull(self.print(frame, at))
        {
            return false;
        }
        let innermost = self.flow.segments[event.segment as usize].innermost;
        if child.is_none() {
            return innermost == frame.body;
        }
        let mut inner = innermost;
        while inner != frame.body {
            let Some(id) = inner else { return false };
            let span = self.flow.span(id);
            if !span.exact || span.kind != (LoopKind::Counted { certain: true }) {
                return false;
            }
            inner = span.parent;
        }
        self.flow.segments[event.segment as usize].unconditional
    }

    /// Goes through a body; `None` is the function.
    fn body(&mut self, body: Option<LoopId>, range: std::ops::Range<usize>, builder: &mut Builder) {
        let frame = self.frame(body, range.clone());
        let chain = |at: usize| self.flow.segments[self.events[at].segment as usize].chain;
        let straight = range.clone().all(|at| chain(at) == chain(range.start));
        if straight {
            let listed = self.masked.is_empty() && self.is_fine(frame, range.clone());
            self.by_atom = listed.then(|| {
                let list = || vec![UNDEFINED; self.atom_count as usize];
                [list(), list()]
            });
            let mut at = range.start;
            let mut now = NOTHING;
            while at < range.end {
                let end = self.step_end(frame, at, range.end);
                now = self.step(frame, at..end, now, builder);
                at = end;
                self.tidy(&mut now);
            }
            if let Some(id) = body {
                self.close(now, range.clone());
                let sure = self.is_sure(id, range.start);
                self.keep(frame, now, sure, range);
            }
        } else if let Some(now) = self.branches(frame, range.clone(), builder) {
            self.close(now, range.clone());
            self.keep(frame, now, true, range);
        }
        self.clear();
    }

    /// Whether every access is of few atoms, and there are enough to pay for lists of them.
    fn is_fine(&self, frame: Frame, range: std::ops::Range<usize>) -> bool {
        let few = |at: usize| {
            let ranges = self.atoms.ranges(self.print(frame, at)).iter();
            ranges.map(|&(lo, hi)| (hi - lo) as usize).sum::<usize>() <= DIRECT
        };
        range.len() >= self.atom_count as usize / 4 && range.clone().all(few)
    }

    /// Whether every iteration of a body comes to an event of it, or to the loop in it around that.
    fn is_sure(&self, id: LoopId, at: usize) -> bool {
        let Some(cuts) = self.levels.cuts.get(&id) else {
            return true;
        };
        let child = self.child(Some(id), &self.events[at]);
        let segment = child.map_or(self.events[at].segment, |id| self.flow.span(id).first);
        cuts[(segment - self.flow.span(id).first) as usize]
    }

    /// Where the step that starts at an event ends: the instruction, or the loop it is in.
    fn step_end(&self, frame: Frame, at: usize, limit: usize) -> usize {
        let (child, order) = (self.child(frame.body, &self.events[at]), self.order(at));
        let mut end = at + 1;
        match child {
            None => {
                while end < limit && self.order(end) == order {
                    end += 1;
                }
            }
            Some(id) => {
                let last = self.flow.span(id).last;
                let inside = self.events[at..limit].partition_point(|e| e.segment <= last);
                end = end.max(at + inside);
            }
        }
        end
    }

    /// What is behind a body: marks who is still seen.
    fn close(&mut self, now: Versions, range: std::ops::Range<usize>) {
        for (which, flag) in [(WRITERS, WRITE_SEEN), (READERS, READ_SEEN)] {
            let mut marks = Marks::new(3);
            let mut seen = Vec::new();
            let versions = match &self.by_atom {
                Some(lists) => &lists[which][..],
                None => &now[which..=which],
            };
            self.tree.expand(versions, &mut marks, &mut seen);
            seen.sort_unstable();
            for at in range.clone() {
                if seen.binary_search(&(at as u32)).is_err() {
                    self.flags[at] &= !flag;
                }
            }
        }
    }

    /// One instruction, or one loop, with edges into it from what was before.
    fn step(
        &mut self,
        frame: Frame,
        step: std::ops::Range<usize>,
        now: Versions,
        builder: &mut Builder,
    ) -> Versions {
        for at in step.clone() {
            let effect = self.events[at].effect;
            if self.flags[at] & SEES_BEFORE == 0 {
                continue;
            }
            let is_asked = effect.is_write() && builder.wanted.has(DepKind::Output)
                || effect.is_write() && builder.wanted.has(DepKind::Anti)
                || effect.is_read() && builder.wanted.has(DepKind::Flow);
            if !is_asked {
                self.flags[at] &= !SEES_BEFORE;
                continue;
            }
            let to = self.order(at);
            let print = self.print(frame, at);
            let mask = self.masked.get(at).copied().unwrap_or(UNDEFINED);
            let mut left = now;
            left[WRITERS] = self.lay(mask, now[WRITERS], OUTSIDE);
            let before = self.sources(&left, WRITERS, print, &mut builder.sets);
            if effect.is_read() {
                builder.all(DepKind::Flow, &self.list, to);
            }
            if effect.is_write() {
                builder.all(DepKind::Output, &self.list, to);
                if builder.wanted.has(DepKind::Anti) {
                    left[READERS] = self.lay(mask, now[READERS], UNDEFINED);
                    self.sources(&left, READERS, print, &mut builder.sets);
                    builder.all(DepKind::Anti, &self.list, to);
                }
            }
            if !before {
                self.flags[at] &= !SEES_BEFORE;
            } else if frame.body.is_some() {
                self.masked[at] = self.masks.either(now[MASK], mask);
            }
        }
        let child = self.child(frame.body, &self.events[step.start]);
        match child {
            None => self.instruction(frame, step, now, builder.wanted.has(DepKind::Anti)),
            Some(id) => self.inner_loop(frame, id, step, now, builder.wanted.has(DepKind::Anti)),
        }
    }

    /// An instruction reads, then writes.
    fn instruction(
        &mut self,
        frame: Frame,
        step: std::ops::Range<usize>,
        mut now: Versions,
        anti: bool,
    ) -> Versions {
        for at in step.clone().filter(|_| anti) {
            if self.events[at].effect.is_read() && self.last_write > Some(at) {
                self.spread(&mut now, READERS, frame, at);
            }
        }
        for at in step {
            if !self.events[at].effect.is_write() {
                continue;
            }
            if self.kills(frame, None, at) {
                self.overwrite(&mut now, frame, at, anti);
            } else {
                self.spread(&mut now, WRITERS, frame, at);
            }
        }
        now
    }

    /// A loop: what it certainly overwrites, then all it may leave behind.
    fn inner_loop(
        &mut self,
        frame: Frame,
        child: LoopId,
        step: std::ops::Range<usize>,
        mut now: Versions,
        anti: bool,
    ) -> Versions {
        let (writers, readers) = self.whole_loop(frame, child, step.clone(), &mut now, anti);
        if writers && (readers || !anti) {
            return now;
        }
        let told = now;
        let mut left = 0;
        let mut killed = false;
        for at in step.clone() {
            if !self.events[at].effect.is_write() {
                continue;
            }
            left += u32::from(self.flags[at] & WRITE_SEEN != 0);
            if self.kills(frame, Some(child), at) {
                self.overwrite(&mut now, frame, at, anti);
                killed |= self.flags[at] & WRITE_SEEN != 0;
            }
        }
        // Which of several wrote a byte last, nobody asks.
        for at in step.clone() {
            let effect = self.events[at].effect;
            let (write, read) = (
                self.flags[at] & WRITE_SEEN != 0 && effect.is_write(),
                self.flags[at] & READ_SEEN != 0 && effect.is_read() && self.last_write > Some(at),
            );
            if write && !(left == 1 && killed) {
                self.spread(&mut now, WRITERS, frame, at);
            }
            if read && anti {
                self.spread(&mut now, READERS, frame, at);
            }
        }
        if writers {
            now[WRITERS] = told[WRITERS];
        }
        if readers {
            now[READERS] = told[READERS];
        }
        now
    }

    fn overwrite(&mut self, now: &mut Versions, frame: Frame, at: usize, anti: bool) {
        let leaf = self.tree.leaf(at as u32, 0);
        for &(lo, hi) in self.atoms.ranges(self.print(frame, at)) {
            if let Some([writers, readers]) = &mut self.by_atom {
                let atoms = lo as usize..hi as usize;
                writers[atoms.clone()].fill(leaf);
                if anti {
                    readers[atoms].fill(UNDEFINED);
                }
                continue;
            }
            now[WRITERS] = self.tree.write(now[WRITERS], lo, hi, leaf);
            if anti {
                now[READERS] = self.tree.write(now[READERS], lo, hi, UNDEFINED);
            }
        }
        if frame.body.is_some() && self.extent(at).varies.is_none() {
            for &(lo, hi) in self.atoms.ranges(self.print(frame, at)) {
                now[MASK] = self.masks.kill(now[MASK], lo, hi);
            }
        }
    }

    /// Adds an event to a version, over its bytes.
    fn spread(&mut self, now: &mut Versions, which: usize, frame: Frame, at: usize) {
        let leaf = self.tree.leaf(at as u32, 0);
        for &(lo, hi) in self.atoms.ranges(self.print(frame, at)) {
            match &mut self.by_atom {
                Some(lists) => {
                    for node in &mut lists[which][lo as usize..hi as usize] {
                        *node = self.tree.over(leaf, *node);
                    }
                }
                None => now[which] = self.tree.may_write(now[which], lo, hi, leaf),
            }
        }
    }

    /// Puts into `list` what a version holds in a footprint; whether some of it is what was there
    /// before the body.
    fn sources(&mut self, now: &Versions, which: usize, print: u32, sets: &mut Sets) -> bool {
        self.list.clear();
        let version = now[which];
        if version == UNDEFINED && self.by_atom.is_none() {
            return true;
        }
        self.found.clear();
        let ranges = self.atoms.ranges(print);
        if ranges.len() > DIRECT
            && let Some(&set) = self.wide.get(&(print, version))
        {
            self.list.push(set);
            // A list that held what was before is not kept.
            return false;
        }
        for &(lo, hi) in ranges {
            match &self.by_atom {
                Some(lists) => {
                    let nodes = &lists[which][lo as usize..hi as usize];
                    self.found.extend_from_slice(nodes);
                }
                None => self
                    .tree
                    .read_in(self.atom_count, version, lo, hi, &mut self.found),
            }
        }
        self.found.dedup();
        let mut before = false;
        for &node in &self.found {
            // Nothing is to be remembered of one instruction.
            if let View::Leaf(event) = self.tree.view(node) {
                before |= node == UNDEFINED;
                let at = event.map(|event| self.order(event as usize));
                self.list.extend(at.map(Source::instruction));
                continue;
            }
            let place = self.nodes.of(node, &self.tree, sets, |event| {
                self.levels.all.order(&self.events[event as usize])
            });
            let place = self.nodes.as_one(node, place, sets);
            before |= place.before;
            self.list.extend_from_slice(self.nodes.list(place));
        }
        if self.found.len() > 1 {
            self.list.sort_unstable();
            self.list.dedup();
        }
        if self.list.len() > DIRECT && ranges.len() > DIRECT && !before {
            let set = sets.make(&self.list);
            self.wide.insert((print, version), set);
            self.list.clear();
            self.list.push(set);
        }
        before
    }

    /// Blocks: versions are joined where paths meet. Returns what is at the ends of a loop's body,
    /// where that is the only way out of it.
    fn branches(
        &mut self,
        frame: Frame,
        range: std::ops::Range<usize>,
        builder: &mut Builder,
    ) -> Option<Versions> {
        let (first, last) = match frame.body {
            Some(id) => (self.flow.span(id).first, self.flow.span(id).last),
            None => {
                let mut first = self.events[range.start].segment;
                let mut at = self.flow.segments[first as usize].innermost;
                while let Some(id) = at {
                    first = self.flow.span(id).first;
                    at = self.flow.span(id).parent;
                }
                (first, self.events[range.end - 1].segment)
            }
        };
        let mut out: Vec<Versions> = Vec::with_capacity((last - first + 1) as usize);
        let mut at = range.start;
        let mut segment = first;
        while segment <= last {
            let mut now = self.arriving(segment, first, &out).unwrap_or(NOTHING);
            let mut end_segment = segment;
            while at < range.end && self.events[at].segment <= end_segment {
                let child = self.child(frame.body, &self.events[at]);
                let end = self.step_end(frame, at, range.end);
                now = self.step(frame, at..end, now, builder);
                at = end;
                if let Some(id) = child {
                    end_segment = end_segment.max(self.flow.span(id).last);
                }
            }
            // A loop is entered where its first segment is, whichever holds its first event.
            if let Some(event) = self.events[..range.end].get(at)
                && let Some(id) = self.child(frame.body, event)
                && self.flow.span(id).first == segment
            {
                let end = self.step_end(frame, at, range.end);
                now = self.step(frame, at..end, now, builder);
                at = end;
                end_segment = end_segment.max(self.flow.span(id).last);
            }
            while segment <= end_segment {
                out.push(now);
                segment += 1;
            }
        }
        let kind = self.flow.span(frame.body?).kind;
        match kind {
            // What comes next stands behind the ends of the body.
            LoopKind::Counted { .. } => self.arriving(last + 1, first, &out),
            LoopKind::Cycle | LoopKind::Tangle => None,
        }
    }

    /// What the ways to a segment have in common, or any of them left; `out` is what is behind the
    /// segments from `first` on.
    fn arriving(&mut self, segment: u32, first: u32, out: &[Versions]) -> Option<Versions> {
        let mut now: Option<Versions> = None;
        for &pred in self.flow.preds(segment) {
            let coming = pred
                .checked_sub(first)
                .and_then(|at| out.get(at as usize).copied())
                .unwrap_or(NOTHING);
            now = Some(match now {
                None => coming,
                Some(known) => [
                    self.tree.either(known[WRITERS], coming[WRITERS]),
                    self.tree.either(known[READERS], coming[READERS]),
                    self.masks.both(known[MASK], coming[MASK]),
                ],
            });
        }
        now
    }

    /// Copies the versions in use where most of the tree is not.
    fn tidy(&mut self, now: &mut Versions) {
        let listed = match self.by_atom {
            Some(_) => self.atom_count as usize,
            None => 0,
        };
        if self.tree.len() < 2 * self.floor + (1 << 14) + listed {
            return;
        }
        self.weigh();
        let mut fresh = Tree::new();
        fresh.start(self.atom_count);
        let mut copied = Copied::new(&self.tree);
        let lists = self.by_atom.iter_mut().flatten().flatten();
        for version in now[..MASK].iter_mut().chain(lists) {
            *version = self.tree.copy_to(*version, &mut fresh, &mut copied);
        }
        // What is known of nodes moves with them, so that sets are not made twice.
        let mut nodes = Nodes::default();
        for (from, to) in copied.pairs() {
            if let Some(place) = self.nodes.known(from) {
                self.nodes.copy(place, to, &mut nodes);
            }
        }
        (self.tree, self.nodes) = (fresh, nodes);
        self.wide.clear();
        self.laid.clear();
        self.floor = self.tree.len();
    }

    /// Notes how much there is, before some of it goes.
    fn weigh(&mut self) {
        let lists = self.by_atom.iter().flatten();
        let bytes = self.tree.heap_bytes()
            + self.flags.capacity()
            + self.nodes.heap_bytes()
            + lists.map(|list| 4 * list.capacity()).sum::<usize>()
            + self.wide.capacity() * size_of::<((u32, Node), Source)>()
            + self.laid.capacity() * size_of::<((Node, Node, Node), Node)>()
            + 4 * self.masked.capacity()
            + self.masks.heap_bytes()
            + self.kept_bytes;
        self.peak = bytes.max(self.peak);
    }

    fn clear(&mut self) {
        self.weigh();
        self.tree = Tree::new();
        self.tree.start(self.atom_count);
        self.nodes = Nodes::default();
        self.by_atom = None;
        self.wide.clear();
        self.laid.clear();
        self.floor = 0;
    }
}
