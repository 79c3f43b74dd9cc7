//! Control flow as the index sees it: segments in reverse postorder, loops as spans of them.
//!
//! Invariants: a segment is a stretch of instructions without a branch or loop boundary inside;
//! predecessors listed are earlier segments (what comes from later ones is a loop); spans nest or
//! are disjoint; `chain` is shared by segments that always follow one another, loop boundaries
//! between them aside, so a storage touched within one chain needs no joins.

/// Loops nested deeper than this are summarised: nothing in them kills.
pub const MAX_DEPTH: u32 = 16;

/// A loop of the function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId(pub u32);

/// Behind all loops.
pub(in crate::analysis) const NO_LOOP: LoopId = LoopId(u32::MAX);

/// How a loop comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopKind {
    /// A `loop` or `while`; whether it makes at least one trip for certain.
    Counted {
        /// Whether the body runs at all for certain.
        certain: bool,
    },
    /// Branches back to an earlier block, entered at its first block only.
    Cycle,
    /// Branches back among blocks entered in several places: nothing in it kills.
    Tangle,
}

/// A loop: the segments of its body.
#[derive(Clone, Copy, Debug)]
pub struct LoopSpan {
    /// First segment of the body.
    pub first: u32,
    /// Last segment of the body.
    pub last: u32,
    /// The loop around it.
    pub parent: Option<LoopId>,
    /// Loops around it.
    pub depth: u32,
    /// How it comes about.
    pub kind: LoopKind,
    /// Whether writes in it kill earlier ones: not in tangles, nor nested too deeply.
    pub exact: bool,
}

/// A stretch of instructions.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Stretches that always follow one another share this.
    pub chain: u32,
    /// The innermost loop around it.
    pub innermost: Option<LoopId>,
    /// Whether no branch decides over it, loops aside.
    pub unconditional: bool,
    /// From which of the loops around it inward no branch decides over it: what such a loop has
    /// run through, it has done in every iteration. Behind all loops where one does in the innermost.
    pub since: LoopId,
    /// Whether it is unconditional and every loop around it makes a trip for certain.
    pub always: bool,
    preds: (u32, u32),
}

/// Segments, predecessors and loops of one function.
#[derive(Clone, Default, Debug)]
pub struct Flow {
    pub(in crate::analysis) segments: Vec<Segment>,
    preds: Vec<u32>,
    pub(in crate::analysis) loops: Vec<LoopSpan>,
    pub(in crate::analysis) exits: Vec<u32>,
    /// Per loop, whether it and those around it make a trip for certain.
    certain: Vec<bool>,
    chains: u32,
}

impl Flow {
    /// One segment, no branch.
    pub fn straight() -> Flow {
        let mut flow = Flow::default();
        flow.segment(&[], None, true, false);
        flow.exit(0);
        flow
    }

    /// Appends a segment: in which loop, whether no branch decides over it, and whether it always
    /// follows the previous one. Behind a loop, the predecessors are where its body ends.
    pub fn segment(
        &mut self,
        preds: &[u32],
        innermost: Option<LoopId>,
        unconditional: bool,
        joined: bool,
    ) -> u32 {
        let always = unconditional && innermost.is_none_or(|id| self.certain[id.0 as usize]);
        if !joined {
            self.chains += 1;
        }
        let from = self.preds.len() as u32;
        self.preds.extend_from_slice(preds);
        self.segments.push(Segment {
            chain: self.chains,
            innermost,
            unconditional,
            since: if unconditional { LoopId(0) } else { NO_LOOP },
            always,
            preds: (from, self.preds.len() as u32),
        });
        (self.segments.len() - 1) as u32
    }

    /// Says from which loop inward no branch decides over a segment.
    pub(in crate::analysis) fn sure_from(&mut self, segment: u32, since: LoopId) {
        self.segments[segment as usize].since = since;
    }

    /// Opens a loop whose body starts with the next segment.
    pub fn open(&mut self, parent: Option<LoopId>, kind: LoopKind) -> LoopId {
        let first = self.segments.len() as u32;
        let depth = parent.map_or(0, |outer| self.loops[outer.0 as usize].depth + 1);
        let outer = parent.is_none_or(|outer| self.certain[outer.0 as usize]);
        let around = parent.is_none_or(|outer| self.loops[outer.0 as usize].exact);
        self.certain
            .push(outer && kind == LoopKind::Counted { certain: true });
        self.loops.push(LoopSpan {
            first,
            last: first,
            parent,
            depth,
            kind,
            exact: around && kind != LoopKind::Tangle && depth < MAX_DEPTH,
        });
        LoopId((self.loops.len() - 1) as u32)
    }

    /// Closes a loop behind the last segment so far.
    pub fn close(&mut self, id: LoopId) {
        let last = (self.segments.len() as u32).saturating_sub(1);
        if let Some(span) = self.loops.get_mut(id.0 as usize) {
            span.last = last.max(span.first);
        }
    }

    /// Marks a segment as one the function ends with.
    pub fn exit(&mut self, segment: u32) {
        self.exits.push(segment);
    }

    /// Earlier segments that lead to a segment.
    pub fn preds(&self, segment: u32) -> &[u32] {
        let (from, to) = self.segments[segment as usize].preds;
        &self.preds[from as usize..to as usize]
    }

    /// A loop.
    pub fn span(&self, id: LoopId) -> LoopSpan {
        self.loops[id.0 as usize]
    }

    /// The number of loops.
    pub fn loop_count(&self) -> usize {
        self.loops.len()
    }
}
