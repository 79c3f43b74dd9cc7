//! Versions: who may have written each atom last, as persistent segment trees in one arena.
//!
//! A node stands for a region of atoms. What it says is the union of the events reachable from it:
//!
//! * a leaf – one event wrote all of the region last (or nobody, or the outside);
//! * a pair – the two halves of the region;
//! * `over(m, base)` – the events of `m` may have written after `base`;
//! * `join(a, b)` – either of two uniform histories (several paths lead here).
//!
//! Invariants: nodes never change; a pair of equal halves is that half, so "uniform" shows; `over`
//! never stands directly on `over`; a node's stamp is the largest position of an event in it, so
//! the latest write to a range is a maximum over O(log n) nodes. Writing copies O(log n) nodes.
//! Depth is bounded by the logarithm of the atom count, so recursion here is too.

/// A node of the arena.
pub(in crate::analysis) type Node = u32;

/// Nobody wrote.
pub(in crate::analysis) const UNDEFINED: Node = 0;
/// Defined from outside.
pub(in crate::analysis) const OUTSIDE: Node = 1;
/// "What was there before": only in trees that are laid over others.
pub(in crate::analysis) const TRANSPARENT: Node = 2;

const LEAF: u32 = 0;
const PAIR: u32 = 1;
const OVER: u32 = 2;
const JOIN: u32 = 3;
const KIND_SHIFT: u32 = 30;
const HAS_UNDEFINED: u32 = 1 << 29;
const PAYLOAD: u32 = HAS_UNDEFINED - 1;

#[derive(Clone, Copy)]
struct Row {
    /// Kind, undefined flag, and the event or first child.
    a: u32,
    /// Second child.
    b: u32,
    stamp: u32,
}

/// A node, decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::analysis) enum View {
    /// An event's index, or nothing for the three constants.
    Leaf(Option<u32>),
    Pair(Node, Node),
    Over(Node, Node),
    Join(Node, Node),
}

/// The arena.
pub(in crate::analysis) struct Tree {
    rows: Vec<Row>,
    atoms: u32,
    /// The node made last for a pair or an over: repeats are common.
    last_over: (Node, Node, Node),
}

impl Tree {
    /// Without versions; [`Tree::start`] says what the next ones are of.
    pub(in crate::analysis) fn new() -> Tree {
        let constant = |flag| Row {
            a: LEAF << KIND_SHIFT | flag | PAYLOAD,
            b: 0,
            stamp: 0,
        };
        Tree {
            rows: vec![constant(HAS_UNDEFINED), constant(0), constant(0)],
            atoms: 1,
            last_over: (UNDEFINED, UNDEFINED, UNDEFINED),
        }
    }

    /// Versions made from here on are of so many atoms, at least one.
    pub(in crate::analysis) fn start(&mut self, atoms: u32) {
        self.atoms = atoms.max(1);
    }

    pub(in crate::analysis) fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
    }

    pub(in crate::analysis) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(in crate::analysis) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
    }

    fn push(&mut self, row: Row) -> Node {
        debug_assert!(self.rows.len() < PAYLOAD as usize);
        self.rows.push(row);
        (self.rows.len() - 1) as Node
    }

    /// A leaf of an event, at a position of its own.
    pub(in crate::analysis) fn leaf(&mut self, event: u32, stamp: u32) -> Node {
        self.push(Row {
            a: LEAF << KIND_SHIFT | event & PAYLOAD,
            b: 0,
            stamp,
        })
    }

    pub(in crate::analysis) fn view(&self, node: Node) -> View {
        let row = self.rows[node as usize];
        let a = row.a & PAYLOAD;
        match row.a >> KIND_SHIFT {
            PAIR => View::Pair(a, row.b),
            OVER => View::Over(a, row.b),
            JOIN => View::Join(a, row.b),
            _ => View::Leaf((a != PAYLOAD).then_some(a)),
        }
    }

    pub(in crate::analysis) fn stamp(&self, node: Node) -> u32 {
        self.rows[node as usize].stamp
    }

    /// Whether some of the region may be undefined.
    pub(in crate::analysis) fn has_undefined(&self, node: Node) -> bool {
        self.rows[node as usize].a & HAS_UNDEFINED != 0
    }

    fn both(&mut self, kind: u32, a: Node, b: Node, undefined: u32) -> Node {
        let stamp = self.stamp(a).max(self.stamp(b));
        self.push(Row {
            a: kind << KIND_SHIFT | undefined | a,
            b,
            stamp,
        })
    }

    /// A node of two halves.
    pub(in crate::analysis) fn pair(&mut self, a: Node, b: Node) -> Node {
        if a == b {
            return a;
        }
        let flag = (self.rows[a as usize].a | self.rows[b as usize].a) & HAS_UNDEFINED;
        self.both(PAIR, a, b, flag)
    }

    /// Either of two uniform histories.
    pub(in crate::analysis) fn join(&mut self, a: Node, b: Node) -> Node {
        if a == b {
            return a;
        }
        let flag = (self.rows[a as usize].a | self.rows[b as usize].a) & HAS_UNDEFINED;
        self.both(JOIN, a, b, flag)
    }

    /// The events of `m` may have written after `base`.
    pub(in crate::analysis) fn over(&mut self, m: Node, base: Node) -> Node {
        if self.last_over.0 == m && self.last_over.1 == base && self.last_over.2 != UNDEFINED {
            return self.last_over.2;
        }
        let made = match self.view(base) {
            View::Over(below, rest) => {
                let events = self.join(m, below);
                self.both(OVER, events, rest, 0)
            }
            // What may be covered is never called uncovered.
            _ => self.both(OVER, m, base, 0),
        };
        self.last_over = (m, base, made);
        made
    }

    /// Whether the node tells its halves apart.
    fn is_spatial(&self, node: Node) -> bool {
        match self.view(node) {
            View::Pair(..) => true,
            View::Over(_, base) => matches!(self.view(base), View::Pair(..)),
            _ => false,
        }
    }

    /// What a node says of the halves of its region.
    pub(in crate::analysis) fn halves(&mut self, node: Node) -> (Node, Node) {
        match self.view(node) {
            View::Pair(a, b) => (a, b),
            View::Over(m, base) => match self.view(base) {
                View::Pair(a, b) => (self.over(m, a), self.over(m, b)),
                _ => (node, node),
            },
            _ => (node, node),
        }
    }

    /// The tree with `leaf` as the last writer of atoms `lo .. hi`.
    pub(in crate::analysis) fn write(&mut self, root: Node, lo: u32, hi: u32, leaf: Node) -> Node {
        self.change(root, 0, self.atoms, lo, hi, leaf, Change::Kill)
    }

    /// The tree with the events of `m` maybe written last in atoms `lo .. hi`.
    pub(in crate::analysis) fn may_write(&mut self, root: Node, lo: u32, hi: u32, m: Node) -> Node {
        self.change(root, 0, self.atoms, lo, hi, m, Change::May)
    }

    #[allow(clippy::too_many_arguments)]
    fn change(
        &mut self,
        node: Node,
        from: u32,
        to: u32,
        lo: u32,
        hi: u32,
        with: Node,
        change: Change,
    ) -> Node {
        if lo <= from && to <= hi {
            return match change {
                Change::Kill => with,
                Change::May => self.over(with, node),
            };
        }
        if hi <= from || to <= lo || change == Change::Kill && node == with {
            return node;
        }
        let middle = from + (to - from) / 2;
        let (a, b) = self.halves(node);
        let a = if lo < middle {
            self.change(a, from, middle, lo, hi, with, change)
        } else {
            a
        };
        let b = if hi > middle {
            self.change(b, middle, to, lo, hi, with, change)
        } else {
            b
        };
        self.pair(a, b)
    }

    /// Either history; `top` is a tree whose transparent parts let `base` through.
    pub(in crate::analysis) fn either(&mut self, base: Node, top: Node) -> Node {
        if base == top || top == TRANSPARENT {
            return base;
        }
        if let View::Over(m, below) = self.view(top)
            && below == TRANSPARENT
        {
            return self.over(m, base);
        }
        if self.is_spatial(base) || self.is_spatial(top) {
            let (base_a, base_b) = self.halves(base);
            let (top_a, top_b) = self.halves(top);
            let a = self.either(base_a, top_a);
            let b = self.either(base_b, top_b);
            return self.pair(a, b);
        }
        self.join(base, top)
    }

    /// Adds the nodes that say what atoms `lo .. hi` hold; none twice in a row from `since` on.
    pub(in crate::analysis) fn read(
        &self,
        root: Node,
        lo: u32,
        hi: u32,
        since: usize,
        out: &mut Vec<Node>,
    ) {
        self.collect(root, 0, self.atoms, lo, hi, &mut |node| {
            if out[since..].last() != Some(&node) {
                out.push(node);
            }
        });
    }

    /// The same where versions are of `atoms` atoms.
    pub(in crate::analysis) fn read_in(
        &self,
        atoms: u32,
        root: Node,
        lo: u32,
        hi: u32,
        out: &mut Vec<Node>,
    ) {
        self.collect(root, 0, atoms.max(1), lo, hi, &mut |node| {
            if out.last() != Some(&node) {
                out.push(node);
            }
        });
    }

    fn collect(
        &self,
        node: Node,
        from: u32,
        to: u32,
        lo: u32,
        hi: u32,
        emit: &mut impl FnMut(Node),
    ) {
        if hi <= from || to <= lo {
            return;
        }
        if lo <= from && to <= hi {
            emit(node);
            return;
        }
        let middle = from + (to - from) / 2;
        match self.view(node) {
            View::Pair(a, b) => {
                self.collect(a, from, middle, lo, hi, emit);
                self.collect(b, middle, to, lo, hi, emit);
            }
            View::Over(m, base) if matches!(self.view(base), View::Pair(..)) => {
                emit(m);
                self.collect(base, from, to, lo, hi, emit);
            }
            _ => emit(node),
        }
    }

    /// Ascending ranges of atoms in `lo .. hi` that may be undefined.
    pub(in crate::analysis) fn undefined(
        &self,
        root: Node,
        lo: u32,
        hi: u32,
        out: &mut Vec<(u32, u32)>,
    ) {
        self.find_undefined(root, 0, self.atoms, lo, hi, out);
    }

    fn find_undefined(
        &self,
        node: Node,
        from: u32,
        to: u32,
        lo: u32,
        hi: u32,
        out: &mut Vec<(u32, u32)>,
    ) {
        if hi <= from || to <= lo || !self.has_undefined(node) {
            return;
        }
        if let View::Pair(a, b) = self.view(node) {
            let middle = from + (to - from) / 2;
            self.find_undefined(a, from, middle, lo, hi, out);
            self.find_undefined(b, middle, to, lo, hi, out);
            return;
        }
        let (from, to) = (from.max(lo), to.min(hi));
        match out.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => out.push((from, to)),
        }
    }

    /// Events reachable from a node, and whether the outside or nobody is. Visits shared parts
    /// once; `seen` must be empty, and is left so.
    pub(in crate::analysis) fn expand(
        &self,
        nodes: &[Node],
        seen: &mut Marks,
        events: &mut Vec<u32>,
    ) -> Origin {
        let mut origin = Origin::default();
        let mut todo: Vec<Node> = Vec::new();
        for &node in nodes {
            if seen.set(node) {
                todo.push(node);
            }
        }
        while let Some(node) = todo.pop() {
            match self.view(node) {
                View::Leaf(Some(event)) => events.push(event),
                View::Leaf(None) => {
                    origin.undefined |= node == UNDEFINED;
                    origin.outside |= node == OUTSIDE;
                }
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    for child in [b, a] {
                        if seen.set(child) {
                            todo.push(child);
                        }
                    }
                }
            }
        }
        seen.clear();
        origin
    }
}

impl Tree {
    /// Copies a version into another tree of the same atoms; `copied` knows what was copied there
    /// before.
    pub(in crate::analysis) fn copy_to(
        &self,
        root: Node,
        to: &mut Tree,
        copied: &mut Copied,
    ) -> Node {
        if let Some(copy) = copied.get(root) {
            return copy;
        }
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            if copied.get(node).is_some() {
                stack.pop();
                continue;
            }
            let row = self.rows[node as usize];
            let made = match self.view(node) {
                View::Leaf(_) => to.push(row),
                View::Pair(a, b) | View::Over(a, b) | View::Join(a, b) => {
                    match (copied.get(a), copied.get(b)) {
                        (Some(a), Some(b)) => to.push(Row {
                            a: row.a & !PAYLOAD | a,
                            b,
                            ..row
                        }),
                        (known_a, known_b) => {
                            stack.extend(known_a.is_none().then_some(a));
                            stack.extend(known_b.is_none().then_some(b));
                            continue;
                        }
                    }
                }
            };
            copied.of[node as usize] = made;
            stack.pop();
        }
        copied.get(root).unwrap_or(UNDEFINED)
    }
}

/// Where the nodes of a tree are in another one.
pub(in crate::analysis) struct Copied {
    of: Vec<Node>,
}

impl Copied {
    /// Nothing of `tree` is copied yet.
    pub(in crate::analysis) fn new(tree: &Tree) -> Copied {
        let mut of = vec![Node::MAX; tree.len()];
        for node in [UNDEFINED, OUTSIDE, TRANSPARENT] {
            of[node as usize] = node;
        }
        Copied { of }
    }

    fn get(&self, node: Node) -> Option<Node> {
        let copy = self.of[node as usize];
        (copy != Node::MAX).then_some(copy)
    }

    /// Nodes and their copies, the constants aside, in the order of the old tree.
    pub(in crate::analysis) fn pairs(&self) -> impl Iterator<Item = (Node, Node)> + '_ {
        let all = (0..).zip(self.of.iter().copied()).skip(3);
        all.filter(|&(_, copy)| copy != Node::MAX)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Kill,
    May,
}

/// What else than events reaches a read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Origin {
    /// Some byte may come from outside the function.
    pub outside: bool,
    /// Some byte may never have been written.
    pub undefined: bool,
}

/// A set of nodes that forgets quickly.
#[derive(Default)]
pub(in crate::analysis) struct Marks {
    bits: Vec<u64>,
    touched: Vec<u32>,
    /// The first node besides the three constants.
    base: Node,
}

impl Marks {
    /// For the constants and nodes from `base` on.
    pub(in crate::analysis) fn new(base: Node) -> Marks {
        Marks {
            base: base.max(3),
            ..Marks::default()
        }
    }

    /// Adds a node; whether it was new.
    pub(in crate::analysis) fn set(&mut self, node: Node) -> bool {
        let node = match node.checked_sub(self.base) {
            Some(above) => above + 3,
            None => node,
        };
        let (word, bit) = (node as usize / 64, 1u64 << (node % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let new = self.bits[word] & bit == 0;
        if new {
            if self.bits[word] == 0 {
                self.touched.push(word as u32);
            }
            self.bits[word] |= bit;
        }
        new
    }

    pub(in crate::analysis) fn clear(&mut self) {
        for word in self.touched.drain(..) {
            self.bits[word as usize] = 0;
        }
    }
}
