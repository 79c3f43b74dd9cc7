//! Loops seen from outside by what they do to each byte, where that is the same in every iteration.
//!
//! *Masks* are trees of bytes that are `KILLED` or not: what accesses that stand still have
//! overwritten for certain since a body began. An access sees of what was before the body only what
//! its mask leaves, at every level further out.
//!
//! A loop in which nothing moves does the same each time: it may add to who wrote a byte, and may
//! put itself in the place of all. `Kept` is that; the second iteration changes nothing more.

use hashbrown::HashMap;

use super::super::super::index::flow::{Flow, LoopId, LoopKind};
use super::super::super::index::tree::{Copied, Node, OUTSIDE, Tree, UNDEFINED, View};
use super::{Frame, MASK, READ_SEEN, READERS, Versions, WRITE_SEEN, WRITERS, Walk};

/// Overwritten for certain.
pub(super) const KILLED: Node = OUTSIDE;

/// The masks of a storage.
pub(super) struct Masks {
    tree: Tree,
    merged: HashMap<(Node, Node, Node), Node, foldhash::fast::FixedState>,
}

impl Masks {
    pub(super) fn new(atoms: u32) -> Masks {
        let mut tree = Tree::new();
        tree.start(atoms);
        Masks {
            tree,
            merged: HashMap::default(),
        }
    }

    pub(super) fn kill(&mut self, mask: Node, lo: u32, hi: u32) -> Node {
        self.tree.write(mask, lo, hi, KILLED)
    }

    /// Killed by one or the other.
    pub(super) fn either(&mut self, a: Node, b: Node) -> Node {
        self.merge(a, b, KILLED)
    }

    /// Killed on both of two paths.
    pub(super) fn both(&mut self, a: Node, b: Node) -> Node {
        self.merge(a, b, UNDEFINED)
    }

    /// The mask that is `strong` where one of the two is.
    fn merge(&mut self, a: Node, b: Node, strong: Node) -> Node {
        let is_weak = |node: Node| node != strong && (node == KILLED || node == UNDEFINED);
        if a == b || a == strong || is_weak(b) {
            return a;
        }
        if b == strong || is_weak(a) {
            return b;
        }
        let key = (a.min(b), a.max(b), strong);
        if let Some(&known) = self.merged.get(&key) {
            return known;
        }
        let (a, b) = (self.tree.halves(a), self.tree.halves(b));
        let (left, right) = (self.merge(a.0, b.0, strong), self.merge(a.1, b.1, strong));
        let made = self.tree.pair(left, right);
        self.merged.insert(key, made);
        made
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.tree.heap_bytes() + self.merged.capacity() * size_of::<((Node, Node, Node), Node)>()
    }
}

/// What one iteration of a loop's body does.
pub(super) struct Kept {
    /// How its accesses were compared.
    frame: Frame,
    /// What it kills.
    mask: Node,
    /// Whether it is gone through to where it does that in every iteration.
    sure: bool,
    /// Whether nothing whose writes are seen behind it moves with it, and nothing whose reads are:
    /// each by itself, as reads are only followed where they are wanted.
    still: (bool, bool),
    /// Who wrote and read at its end, where one of the two stands still.
    versions: Option<(Tree, Versions)>,
}

/// Segments of a loop's body, from its first on, that every way through it leads through.
pub(super) fn cuts(flow: &Flow, id: LoopId) -> Vec<bool> {
    let span = flow.span(id);
    // Ways lead forward only, so a segment no step leads over is on all of them.
    let mut over = vec![0i64; (span.last - span.first + 2) as usize];
    // Behind a loop nobody leaves there may be nothing.
    let behind = (span.last + 1).min(flow.segments.len() as u32 - 1);
    for to in span.first..=behind {
        for from in flow.preds(to).iter().filter(|&&from| from >= span.first) {
            over[(from + 1 - span.first) as usize] += 1;
            over[(to - span.first) as usize] -= 1;
        }
    }
    let mut open = 0;
    let is_cut = |step: &i64| {
        open += step;
        open == 0
    };
    over[..over.len() - 1].iter().map(is_cut).collect()
}

impl Kept {
    pub(super) fn heap_bytes(&self) -> usize {
        let versions = self.versions.as_ref();
        versions.map_or(0, |(tree, _)| tree.heap_bytes())
    }
}

/// The versions at the end of a body, ready to be laid over others.
struct Over {
    tree: Tree,
    /// Per node, whether what was before shows through.
    passes: Vec<bool>,
    /// Per node, the same in the tree of the body around, with nothing showing through.
    copies: Vec<Node>,
}

impl Over {
    fn new(tree: Tree, to: &mut Tree) -> Over {
        let mut passes = vec![false; tree.len()];
        let mut copies = vec![OUTSIDE; tree.len()];
        passes[UNDEFINED as usize] = true;
        // Nodes stand behind those they are made of.
        for node in 3..tree.len() {
            let of = |node: Node| (passes[node as usize], copies[node as usize]);
            let made = match tree.view(node as Node) {
                View::Leaf(None) => continue,
                View::Leaf(Some(event)) => (false, to.leaf(event, 0)),
                View::Pair(a, b) => (of(a).0 || of(b).0, to.pair(of(a).1, of(b).1)),
                View::Over(m, base) => (of(base).0, to.over(of(m).1, of(base).1)),
                View::Join(a, b) => (of(a).0 || of(b).0, to.join(of(a).1, of(b).1)),
            };
            (passes[node], copies[node]) = made;
        }
        Over {
            tree,
            passes,
            copies,
        }
    }

    /// `base` behind the loop, which runs for certain or may not.
    fn lay(&self, top: Node, base: Node, certain: bool, to: &mut Tree) -> Node {
        if top == UNDEFINED || top == OUTSIDE && !certain {
            return base;
        }
        let copy = |node: Node| self.copies[node as usize];
        if certain && !self.passes[top as usize] {
            return copy(top);
        }
        match self.tree.view(top) {
            View::Pair(a, b) => {
                let (base_a, base_b) = to.halves(base);
                let a = self.lay(a, base_a, certain, to);
                let b = self.lay(b, base_b, certain, to);
                to.pair(a, b)
            }
            View::Over(m, rest) => {
                let rest = self.lay(rest, base, certain, to);
                to.over(copy(m), rest)
            }
            View::Leaf(_) | View::Join(..) => to.over(copy(top), base),
        }
    }

    /// A version without what the writers at `top` put themselves in the place of.
    fn uncover(&self, top: Node, version: Node, to: &mut Tree) -> Node {
        if top == UNDEFINED || version == UNDEFINED {
            return version;
        }
        if !self.passes[top as usize] {
            return UNDEFINED;
        }
        match self.tree.view(top) {
            View::Pair(a, b) => {
                let (version_a, version_b) = to.halves(version);
                let a = self.uncover(a, version_a, to);
                let b = self.uncover(b, version_b, to);
                to.pair(a, b)
            }
            View::Over(_, rest) => self.uncover(rest, version, to),
            View::Leaf(_) | View::Join(..) => version,
        }
    }
}

impl Walk<'_, '_> {
    /// A version with `with` where a mask kills.
    pub(super) fn lay(&mut self, mask: Node, version: Node, with: Node) -> Node {
        if mask == UNDEFINED || version == with {
            return version;
        }
        if mask == KILLED {
            return with;
        }
        let key = (mask, version, with);
        if let Some(&known) = self.laid.get(&key) {
            return known;
        }
        let masks = self.masks.tree.halves(mask);
        let versions = self.tree.halves(version);
        let a = self.lay(masks.0, versions.0, with);
        let b = self.lay(masks.1, versions.1, with);
        let made = self.tree.pair(a, b);
        self.laid.insert(key, made);
        made
    }

    /// Remembers what a body does, for the one around it; `sure` where each iteration does.
    pub(super) fn keep(
        &mut self,
        frame: Frame,
        now: Versions,
        sure: bool,
        range: std::ops::Range<usize>,
    ) {
        let Some(id) = frame.body else { return };
        if !matches!(self.flow.span(id).kind, LoopKind::Counted { .. }) {
            return;
        }
        let moves = &self.levels.all.events.moves;
        let stands_still = |at: usize| {
            let extent = self.extent(at);
            let (from, to) = extent.moves;
            let own = &moves[from as usize..to as usize];
            extent.varies.is_none() || !own.is_empty() && own.iter().all(|moved| moved.id != id)
        };
        let is_still = |seen: u8| {
            let mut range = range.clone();
            range.all(|at| self.flags[at] & seen == 0 || stands_still(at))
        };
        let still = (is_still(WRITE_SEEN), is_still(READ_SEEN));
        let versions = (still.0 || still.1).then(|| {
            let mut tree = Tree::new();
            tree.start(self.atom_count);
            let mut copied = Copied::new(&self.tree);
            let writers = self.tree.copy_to(now[WRITERS], &mut tree, &mut copied);
            let readers = self.tree.copy_to(now[READERS], &mut tree, &mut copied);
            tree.shrink();
            (tree, [writers, readers, now[MASK]])
        });
        let kept = Kept {
            frame,
            mask: now[MASK],
            sure,
            still,
            versions,
        };
        self.kept_bytes += kept.heap_bytes();
        self.kept.insert(id, kept);
    }

    /// What is behind a loop, by what its body does each time; whether that says all of who wrote,
    /// and of who read.
    pub(super) fn whole_loop(
        &mut self,
        frame: Frame,
        child: LoopId,
        step: std::ops::Range<usize>,
        now: &mut Versions,
        anti: bool,
    ) -> (bool, bool) {
        let Some(kept) = self.kept.remove(&child) else {
            return (false, false);
        };
        self.kept_bytes -= kept.heap_bytes();
        let kind = self.flow.span(child).kind;
        let certain = kept.sure && kind == (LoopKind::Counted { certain: true });
        if certain && frame.body.is_some() {
            now[MASK] = self.masks.either(now[MASK], kept.mask);
        }
        let is_same = |seen: u8| {
            let mut step = step.clone();
            step.all(|at| {
                self.flags[at] & seen == 0 || self.print(frame, at) == self.print(kept.frame, at)
            })
        };
        let writers = kept.still.0 && is_same(WRITE_SEEN);
        let readers = kept.still.1 && is_same(READ_SEEN);
        let before = *now;
        if certain {
            now[WRITERS] = self.lay(kept.mask, now[WRITERS], OUTSIDE);
            now[READERS] = self.lay(kept.mask, now[READERS], UNDEFINED);
        }
        if let Some((tree, end)) = kept.versions
            && (writers || readers)
        {
            let over = Over::new(tree, &mut self.tree);
            if anti && readers {
                if certain && writers {
                    now[READERS] = over.uncover(end[WRITERS], before[READERS], &mut self.tree);
                }
                now[READERS] = over.lay(end[READERS], now[READERS], certain, &mut self.tree);
            }
            if writers {
                now[WRITERS] = over.lay(end[WRITERS], before[WRITERS], certain, &mut self.tree);
            }
        }
        (writers, readers)
    }
}
