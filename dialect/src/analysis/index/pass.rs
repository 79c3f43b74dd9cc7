//! The pass that turns events into versions.
//!
//! One version is carried along a chain of segments; where paths meet, versions are joined segment
//! by segment. At a loop's head what its body leaves behind is laid over the version at hand; at its
//! end, writes that its index moved have all been made.

use super::atoms::Atoms;
use super::event::{Event, Extent, Reads, Writes};
use super::flow::{Flow, LoopId, LoopKind, MAX_DEPTH};
use super::storage::{Events, Part, Uncovered};
use super::tree::{Node, OUTSIDE, TRANSPARENT, Tree, UNDEFINED};

pub(super) fn in_one_chain(events: &[Event], flow: &Flow) -> bool {
    let chain = |event: &Event| flow.segments[event.segment as usize].chain;
    match events.first() {
        Some(first) => events.iter().all(|event| chain(event) == chain(first)),
        None => true,
    }
}

/// Where the answers of a pass go, event by event.
pub(super) struct Log<'a> {
    /// The version before each event.
    pub(super) before: &'a mut Vec<Node>,
    /// Where the nodes of each event end, and so those of the next start.
    pub(super) post_starts: &'a mut Vec<u32>,
    /// Nodes reads see.
    pub(super) posts: &'a mut Vec<Node>,
}

pub(super) enum Mode<'a> {
    /// Who wrote last, over all iterations.
    Reaching(Log<'a>),
    /// What has been written at all, in first iterations.
    Defined,
}

/// What passes work on.
pub(super) struct Parts<'a> {
    pub(super) events: &'a [Event],
    pub(super) extents: &'a [Extent],
    pub(super) atoms: &'a Atoms,
    /// For every loop the footprints written over all its trips, by index-moved writes that no
    /// branch in it decides over; sorted.
    pub(super) moved: &'a [(LoopId, u32)],
}

pub(super) fn moved_writes(all: &Events, part: &Part, flow: &Flow) -> Vec<(LoopId, u32)> {
    let mut moved = Vec::new();
    for event in all.of(part) {
        let extent = &all.extents[event.extent as usize];
        if let Some(outermost) = extent.varies
            && event.effect.is_write()
        {
            // Whether the loop itself runs is a matter of the paths that lead through it.
            let since = flow.segments[event.segment as usize].since;
            let (from, to) = extent.partial;
            let partial = all.partial[from as usize..to as usize].iter().copied();
            let written = partial.chain([(outermost, extent.all)]);
            moved.extend(written.filter(|entry| entry.0 >= since));
        }
    }
    moved.sort_unstable();
    moved.dedup();
    moved
}

/// One pass over the events.
pub(super) struct Pass<'a> {
    events: &'a [Event],
    extents: &'a [Extent],
    moved: &'a [(LoopId, u32)],
    atoms: &'a Atoms,
    tree: &'a mut Tree,
    mode: Mode<'a>,
    current: Node,
    /// Leaf of each event, where made.
    leaves: &'a mut Vec<Node>,
    /// Open loops, with the version before each.
    open: Vec<(LoopId, Node)>,
    pub(super) uncovered: Vec<Uncovered>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        parts: &Parts<'a>,
        tree: &'a mut Tree,
        mode: Mode<'a>,
        leaves: &'a mut Vec<Node>,
    ) -> Pass<'a> {
        let &Parts {
            events,
            extents,
            atoms,
            moved,
        } = parts;
        Pass {
            events,
            extents,
            moved,
            atoms,
            tree,
            mode,
            current: UNDEFINED,
            leaves,
            open: Vec::new(),
            uncovered: Vec::new(),
        }
    }

    fn is_defining(&self) -> bool {
        matches!(self.mode, Mode::Defined)
    }

    fn extent(&self, event: &Event) -> &'a Extent {
        &self.extents[event.extent as usize]
    }

    /// Goes over all events; the version where the function ends.
    pub(super) fn run(&mut self, flow: &Flow, initial: Node, to_end: bool) -> Node {
        self.current = initial;
        // Where paths do not matter, loops aside, one version is carried along.
        let joins = !in_one_chain(self.events, flow) || to_end && flow.exits.len() != 1;
        let last = (flow.segments.len() as u32).saturating_sub(1);
        let ends_elsewhere = to_end
            && self.events.last().is_some_and(|event| {
                let of = |segment: u32| flow.segments[segment as usize].chain;
                of(event.segment) != of(flow.exits.first().copied().unwrap_or(last))
            });
        if joins || ends_elsewhere {
            return self.run_segments(flow, initial, to_end);
        }
        for at in 0..self.events.len() as u32 {
            self.move_to(flow, self.events[at as usize].segment);
            self.event(flow, at);
        }
        while let Some((id, before)) = self.open.pop() {
            self.leave(flow, id, before);
        }
        self.current
    }

    /// Every segment from the first to the last that matters, with versions joined where paths
    /// meet.
    fn run_segments(&mut self, flow: &Flow, initial: Node, to_end: bool) -> Node {
        let outermost = |event: &Event| {
            let mut first = event.segment;
            let mut at = flow.segments[event.segment as usize].innermost;
            while let Some(id) = at {
                let span = flow.span(id);
                first = span.first;
                at = span.parent;
            }
            first
        };
        // Loops nest, so the first event's outermost loop starts first.
        let from = self.events.first().map_or(0, outermost);
        let to = match (to_end, self.events.last()) {
            (false, Some(event)) => event.segment + 1,
            _ => flow.segments.len() as u32,
        };
        let mut out: Vec<Node> = Vec::with_capacity((to - from) as usize);
        let mut next = 0usize;
        for segment in from..to {
            let mut version = None;
            for &pred in flow.preds(segment) {
                let coming = match pred.checked_sub(from) {
                    Some(at) => out.get(at as usize).copied().unwrap_or(initial),
                    None => initial,
                };
                version = Some(match version {
                    None => coming,
                    Some(known) => self.tree.either(known, coming),
                });
            }
            self.current = version.unwrap_or(initial);
            self.move_to(flow, segment);
            while next < self.events.len() && self.events[next].segment == segment {
                self.event(flow, next as u32);
                next += 1;
            }
            out.push(self.current);
        }
        let mut end = None;
        for &exit in &flow.exits {
            let coming = match exit.checked_sub(from) {
                Some(at) => out.get(at as usize).copied().unwrap_or(initial),
                None => initial,
            };
            end = Some(match end {
                None => coming,
                Some(known) => self.tree.either(known, coming),
            });
        }
        end.unwrap_or(self.current)
    }

    /// Leaves loops that ended before a segment and enters those around it.
    fn move_to(&mut self, flow: &Flow, segment: u32) {
        while let Some(&(id, before)) = self.open.last() {
            if flow.span(id).last >= segment {
                break;
            }
            self.open.pop();
            self.leave(flow, id, before);
        }
        let mut entering = Vec::new();
        let mut at = flow.segments[segment as usize].innermost;
        while let Some(id) = at {
            if self.open.last().is_some_and(|open| open.0 == id) {
                break;
            }
            entering.push(id);
            at = flow.span(id).parent;
        }
        for &id in entering.iter().rev() {
            let before = self.current;
            self.enter(flow, id);
            self.open.push((id, before));
        }
    }

    /// Positions of the events within a loop.
    fn within(&self, flow: &Flow, id: LoopId) -> std::ops::Range<u32> {
        let span = flow.span(id);
        let from = self
            .events
            .partition_point(|event| event.segment < span.first);
        let to = self
            .events
            .partition_point(|event| event.segment <= span.last);
        from as u32..to as u32
    }

    fn kills(&self, flow: &Flow, event: &Event) -> bool {
        event.effect.writes == Writes::Must
            && !self.atoms.is_hull(self.extent(event).all)
            && flow.segments[event.segment as usize]
                .innermost
                .is_none_or(|id| flow.span(id).exact)
    }

    /// What later iterations find: what the body leaves behind, on top of what was there.
    fn enter(&mut self, flow: &Flow, id: LoopId) {
        if self.is_defining() || flow.span(id).depth >= MAX_DEPTH {
            return;
        }
        let within = self.within(flow, id);
        let stamp = within.start + 1;
        let mut carried = TRANSPARENT;
        for at in within {
            let event = self.events[at as usize];
            if !event.effect.is_write() {
                continue;
            }
            let extent = self.extent(&event);
            let kills = extent.varies.is_none()
                && flow.segments[event.segment as usize].always
                && self.kills(flow, &event);
            let leaf = self.tree.leaf(at, stamp);
            for &(lo, hi) in self.atoms.ranges(extent.all) {
                carried = match kills {
                    true => self.tree.write(carried, lo, hi, leaf),
                    false => self.tree.may_write(carried, lo, hi, leaf),
                };
            }
        }
        self.current = self.tree.either(self.current, carried);
    }

    /// Behind a loop: the writes its index moved have all been made.
    fn leave(&mut self, flow: &Flow, id: LoopId, before: Node) {
        let span = flow.span(id);
        let LoopKind::Counted { certain } = span.kind else {
            return;
        };
        if self.is_defining() {
            let from = self.moved.partition_point(|moved| moved.0 < id);
            let to = self.moved.partition_point(|moved| moved.0 <= id);
            for at in from..to {
                self.cover(self.moved[at].1);
            }
            return;
        }
        if !span.exact {
            return;
        }
        if certain {
            self.settle(flow, id);
        } else {
            self.current = self.tree.either(before, self.current);
        }
    }

    fn settle(&mut self, flow: &Flow, id: LoopId) {
        let within = self.within(flow, id);
        let writes = within
            .clone()
            .filter(|&at| self.events[at as usize].effect.is_write())
            .count();
        let mut settled: Vec<(u32, u32)> = Vec::new();
        for at in within.clone() {
            let event = self.events[at as usize];
            let extent = self.extent(&event);
            if extent.varies == Some(id)
                && flow.segments[event.segment as usize].always
                && self.kills(flow, &event)
            {
                let leaf = self.leaf(at);
                for &(lo, hi) in self.atoms.ranges(extent.all) {
                    self.current = self.tree.write(self.current, lo, hi, leaf);
                }
                settled.extend_from_slice(self.atoms.ranges(extent.all));
            }
        }
        if settled.is_empty() || writes < 2 {
            return;
        }
        // Which of several writes of these bytes came last, nobody knows.
        settled.sort_unstable();
        settled.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
        for at in within {
            let event = self.events[at as usize];
            if !event.effect.is_write() {
                continue;
            }
            let leaf = self.leaf(at);
            for &(lo, hi) in self.atoms.ranges(self.extent(&event).all) {
                let from = settled.partition_point(|range| range.1 <= lo);
                for range in settled[from..].iter().take_while(|range| range.0 < hi) {
                    let (lo, hi) = (lo.max(range.0), hi.min(range.1));
                    self.current = self.tree.may_write(self.current, lo, hi, leaf);
                }
            }
        }
    }

    fn leaf(&mut self, at: u32) -> Node {
        if self.leaves[at as usize] == UNDEFINED {
            self.leaves[at as usize] = self.tree.leaf(at, at + 1);
        }
        self.leaves[at as usize]
    }

    fn cover(&mut self, footprint: u32) {
        for &(lo, hi) in self.atoms.ranges(footprint) {
            self.current = self.tree.write(self.current, lo, hi, OUTSIDE);
        }
    }

    fn event(&mut self, flow: &Flow, at: u32) {
        let event = self.events[at as usize];
        let extent = self.extent(&event);
        let Mode::Reaching(log) = &mut self.mode else {
            if event.effect.reads == Reads::Checked {
                self.check(at, extent.first);
            }
            if event.effect.is_write() {
                self.cover(extent.first);
            }
            return;
        };
        log.before.push(self.current);
        let mut maybe_undefined = false;
        if event.effect.is_read() {
            let from = log.posts.len();
            for &(lo, hi) in self.atoms.ranges(extent.all) {
                self.tree.read(self.current, lo, hi, from, log.posts);
            }
            maybe_undefined = event.effect.reads == Reads::Checked
                && log.posts[from..]
                    .iter()
                    .any(|&node| self.tree.has_undefined(node));
        }
        log.post_starts.push(log.posts.len() as u32);
        if maybe_undefined {
            self.check(at, extent.all);
        }
        if !event.effect.is_write() {
            return;
        }
        let leaf = self.leaf(at);
        let kills = extent.varies.is_none() && self.kills(flow, &event);
        for &(lo, hi) in self.atoms.ranges(extent.all) {
            self.current = match kills {
                true => self.tree.write(self.current, lo, hi, leaf),
                false => self.tree.may_write(self.current, lo, hi, leaf),
            };
        }
    }

    fn check(&mut self, event: u32, footprint: u32) {
        let mut ranges = Vec::new();
        for &(lo, hi) in self.atoms.ranges(footprint) {
            self.tree.undefined(self.current, lo, hi, &mut ranges);
        }
        if !ranges.is_empty() {
            self.uncovered.push(Uncovered { event, ranges });
        }
    }
}
