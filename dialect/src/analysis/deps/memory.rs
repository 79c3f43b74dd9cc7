//! The questions rewrites ask, kept up to date while instructions come and go.
//!
//! A rewriter tells [`Memory`] of every instruction it inserts, changes or is about to remove, and
//! asks in between; nothing is computed anew. Answers are about the bytes of one operand:
//!
//! * [`clobbered_between`](Memory::clobbered_between) – may somebody write them in between?
//! * [`last_writer`](Memory::last_writer) – who wrote them last, in this block?
//! * [`readers_of`](Memory::readers_of) – who reads what this instruction wrote, in this block?
//! * [`sole_writer`](Memory::sole_writer), [`sole_reader`](Memory::sole_reader) – of a location;
//! * [`touched_between`](Memory::touched_between) – may somebody access them in between?
//!
//! Bytes are cut where accesses of the location start and end; a segment tree over the pieces has
//! the accesses of each node in program order, so an access is found, added or removed in
//! O(log² n). Candidates are compared by the exact algebra of accesses. Where loops or branches lie
//! in between, all they touch counts; answers err on the side of "maybe".

mod moves;

use std::cell::RefCell;
use std::collections::BTreeSet;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::access::{Footprint, LoopRange, footprint_first, footprint_over};
use super::super::index::Frames;
use super::super::index::collect::Collected;
use super::super::index::event::{Effect, Writes};
use super::super::index::walk::{effects, loop_range};
use crate::bir::access::{Access, Target};
use crate::bir::ops::OpCode;
use crate::bir::types::MemType;
use crate::ir::{Annot, Block, Def, Ir, Op, Operand, Value, Visit};

type Fixed = foldhash::fast::FixedState;

/// Distance of positions at first.
const GAP: u64 = 1 << 24;

/// How an access moves: index, whether partitions, and by how much; sorted.
type Moves = SmallVec<[(Value, bool, i64); 2]>;

#[derive(Clone, Debug)]
struct Entry {
    op: Op,
    operand: Operand,
    effect: Effect,
    storage: u32,
    /// Bytes over all iterations, and with all indices at their first values.
    ever: Footprint,
    first: Footprint,
    moves: Moves,
    at: u64,
}

/// Accesses of one storage.
#[derive(Default, Debug)]
struct Store {
    /// Where the pieces start.
    cuts: Vec<i64>,
    /// Per node: accesses of all of the node, and accesses of parts of it.
    nodes: Vec<Lists>,
    writers: BTreeSet<(u64, u32)>,
    readers: BTreeSet<(u64, u32)>,
}

#[derive(Default, Clone, Debug)]
struct Lists {
    own: [BTreeSet<(u64, u32)>; 2],
    below: [BTreeSet<(u64, u32)>; 2],
}

const READS: usize = 0;
const WRITES: usize = 1;

/// A stretch of the program, both ends excluded; loops at its ends count whole.
#[derive(Clone, Copy)]
struct Stretch {
    from: u64,
    to: u64,
    /// Whether indices of loops have one value throughout.
    one_iteration: bool,
}

/// The last writer of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastWriter {
    /// The instruction.
    pub op: Op,
    /// The operand it writes.
    pub operand: Operand,
    /// Whether it certainly wrote all of the bytes.
    pub covers: bool,
}

/// The accesses of a function, for rewrites.
#[derive(Debug)]
pub struct Memory {
    func: Op,
    /// Per location: its storage, and where its first byte stands there.
    locations: HashMap<Value, (u32, (i64, i64)), Fixed>,
    stores: Vec<Store>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    of_op: HashMap<Op, SmallVec<[u32; 4]>, Fixed>,
    /// Where instructions stand, and where loops end.
    at: HashMap<Op, (u64, u64), Fixed>,
}

impl Memory {
    /// The accesses of a function as it is.
    pub fn new(ir: &Ir, func: Op) -> Memory {
        let all = Collected::new(ir, func, Frames::Addresses, 0);
        let mut memory = Memory {
            func,
            locations: HashMap::default(),
            stores: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            of_op: HashMap::default(),
            at: HashMap::default(),
        };
        for location in &all.locations {
            let place = (location.storage, location.origin);
            memory.locations.insert(location.value, place);
        }
        drop(all);
        memory.number(ir);
        let mut ops: Vec<Op> = memory.at.keys().copied().collect();
        ops.sort_unstable_by_key(|op| memory.at[op].0);
        let mut entries: Vec<Entry> = Vec::new();
        for op in ops {
            memory.read(ir, op, &mut entries);
        }
        let stores = memory.locations.values().map(|place| place.0 + 1).max();
        let mut cuts: Vec<Vec<i64>> = vec![Vec::new(); stores.unwrap_or(0) as usize];
        for entry in &entries {
            let (from, to) = ends(&entry.ever);
            cuts[entry.storage as usize].extend([from, to]);
        }
        for mut cuts in cuts {
            cuts.sort_unstable();
            cuts.dedup();
            let pieces = cuts.len().max(1);
            memory.stores.push(Store {
                nodes: vec![Lists::default(); 2 * pieces.next_power_of_two()],
                cuts,
                ..Store::default()
            });
        }
        for entry in entries {
            memory.add(entry);
        }
        memory
    }

    /// How far the first byte of one location stands behind that of another – partitions and bytes –
    /// where they may share bytes.
    pub fn distance(&self, from: Value, to: Value) -> Option<(i64, i64)> {
        let (one, other) = (self.locations.get(&from)?, self.locations.get(&to)?);
        let by = (other.1.0 - one.1.0, other.1.1 - one.1.1);
        (one.0 == other.0).then_some(by)
    }

    /// Takes note of an instruction that was inserted, and of what its regions hold.
    pub fn insert(&mut self, ir: &Ir, op: Op) {
        if self.position(ir, op).is_none() {
            // No position is left between the neighbours.
            *self = Memory::new(ir, self.func);
            return;
        }
        for inner in ir.walk_op(op).collect::<Vec<_>>() {
            if inner != op && self.position(ir, inner).is_none() {
                *self = Memory::new(ir, self.func);
                return;
            }
            self.add_all(ir, inner);
        }
    }

    /// Forgets an instruction that is about to be removed, and what its regions hold.
    pub fn remove(&mut self, ir: &Ir, op: Op) {
        for inner in ir.walk_op(op).collect::<Vec<_>>() {
            self.forget(inner);
            self.at.remove(&inner);
        }
    }

    /// Takes note of an instruction whose operands or attributes changed.
    pub fn changed(&mut self, ir: &Ir, op: Op) {
        self.forget(op);
        self.add_all(ir, op);
    }

    fn add_all(&mut self, ir: &Ir, op: Op) {
        let unknown = ir.operands(op).iter().any(|operand| {
            MemType::get(&ir.ctx, ir.value_type(operand.value)).is_some()
                && !self.locations.contains_key(&operand.value)
        });
        if unknown {
            // A new location may share bytes with others.
            *self = Memory::new(ir, self.func);
            return;
        }
        let mut entries = Vec::new();
        self.read(ir, op, &mut entries);
        for entry in entries {
            self.add(entry);
        }
    }

    /// Positions of all instructions.
    fn number(&mut self, ir: &Ir) {
        let mut next = GAP;
        for visit in ir.walk_visits(self.func) {
            match visit {
                Visit::Enter(op) => {
                    self.at.insert(op, (next, next));
                }
                Visit::Leave(op) => {
                    if let Some(at) = self.at.get_mut(&op) {
                        at.1 = next;
                    }
                }
            }
            next += GAP;
        }
    }

    /// Finds a position for an instruction between its neighbours.
    fn position(&mut self, ir: &Ir, op: Op) -> Option<()> {
        let parent = ir.parent(op)?;
        let around = self.at.get(&parent)?;
        let block = ir.block(op)?;
        let before = match ir.prev(op) {
            Some(prev) => self.at.get(&prev)?.1,
            // Behind what stands in the block before.
            None => match ir.prev_block(block).and_then(|block| ir.last_op(block)) {
                Some(last) => self.at.get(&last)?.1,
                None => around.0,
            },
        };
        let behind = self.behind(ir, op, block).unwrap_or(around.1);
        let third = behind.checked_sub(before)? / 3;
        (third > 0).then_some(())?;
        self.at.insert(op, (before + third, before + 2 * third));
        if ir.regions(op).is_empty() {
            self.at.insert(op, (before + third, before + third));
        }
        Some(())
    }

    /// The position of the next instruction that has one.
    fn behind(&self, ir: &Ir, op: Op, block: Block) -> Option<u64> {
        let mut next = ir.next(op);
        let mut block = Some(block);
        loop {
            while let Some(at) = next {
                if let Some(found) = self.at.get(&at) {
                    return Some(found.0);
                }
                next = ir.next(at);
            }
            block = ir.next_block(block?);
            next = ir.first_op(block?);
        }
    }

    /// The accesses of an instruction.
    fn read(&self, ir: &Ir, op: Op, entries: &mut Vec<Entry>) {
        let Some(&(at, _)) = self.at.get(&op) else {
            return;
        };
        let location = |value: Value| self.locations.get(&value).copied();
        for (operand, effect, dynamic) in effects(ir, op, |value| location(value).is_some()) {
            let data = ir.operand(operand);
            let (Some((storage, origin)), Some(mem)) = (
                location(data.value),
                MemType::get(&ir.ctx, ir.value_type(data.value)),
            ) else {
                continue;
            };
            let whole = Footprint::whole(&mem).unwrap_or_else(Footprint::empty);
            let print = match dynamic {
                true => None,
                false => prints(ir, op, &mem, data.annot, &whole),
            };
            let (ever, first, moves) = print
                .unwrap_or_else(|| (whole.clone().hull_only(), whole.hull_only(), Moves::new()));
            entries.push(Entry {
                op,
                operand,
                effect,
                storage,
                ever: ever.placed(origin.0, origin.1),
                first: first.placed(origin.0, origin.1),
                moves,
                at,
            });
        }
    }

    fn add(&mut self, entry: Entry) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.of_op.entry(entry.op).or_default().push(number);
        self.stores[entry.storage as usize].change(&entry, number, true);
        self.entries[number as usize] = Some(entry);
    }

    fn forget(&mut self, op: Op) {
        for number in self.of_op.remove(&op).unwrap_or_default() {
            if let Some(entry) = self.entries[number as usize].take() {
                self.stores[entry.storage as usize].change(&entry, number, false);
                self.free.push(number);
            }
        }
    }

    fn entry(&self, op: Op, operand: Operand) -> Option<&Entry> {
        let numbers = self.of_op.get(&op)?.iter();
        numbers
            .filter_map(|&number| self.entries[number as usize].as_ref())
            .find(|entry| entry.operand == operand)
    }

    /// Whether an instruction between two may write a byte of what an operand of `of` accesses.
    /// `from` must come before `to`; neither counts, unless a loop repeats it in between.
    pub fn clobbered_between(&self, ir: &Ir, from: Op, to: Op, of: Op, operand: Operand) -> bool {
        let Some(query) = self.entry(of, operand) else {
            // Nothing is known of it.
            return true;
        };
        let stretch = self.stretch(ir, from, to);
        let hit = |entry: &Entry| {
            let shares = shares(entry, query, stretch.one_iteration);
            // What repeats in a loop at the end is not between for that.
            shares && (entry.op != from && entry.op != to || !stretch.one_iteration)
        };
        self.backwards(query, WRITES, stretch, hit).is_some()
    }

    /// Who wrote bytes of what an operand reads last, before the operand's instruction and in its
    /// block, loops in the block included. `None` where nobody in the block did.
    pub fn last_writer(&self, ir: &Ir, op: Op, operand: Operand) -> Option<LastWriter> {
        let query = self.entry(op, operand)?;
        let block = ir.block(op)?;
        let parent = ir.parent(op)?;
        let start = match ir.prev_block(block).and_then(|block| ir.last_op(block)) {
            Some(last) => self.at.get(&last)?.1,
            None => self.at.get(&parent)?.0,
        };
        let stretch = Stretch {
            from: start,
            to: query.at,
            one_iteration: true,
        };
        let found = self.backwards(query, WRITES, stretch, |entry| shares(entry, query, true))?;
        let same = found.moves == query.moves;
        let covers = ir.block(found.op) == Some(block)
            && found.effect.writes == Writes::Must
            && (same || found.moves.is_empty())
            && found.first.is_exact()
            && match same {
                true => found.first.covers(&query.first),
                false => found.first.covers(&query.ever),
            };
        Some(LastWriter {
            op: found.op,
            operand: found.operand,
            covers,
        })
    }

    /// Who reads what an operand of `def` wrote, in its block and behind it, up to where all of it
    /// is overwritten; and whether that is everybody: not where it is still there at the block's
    /// end and others elsewhere read the location.
    pub fn readers_of(&self, ir: &Ir, def: Op, operand: Operand) -> (Vec<Op>, bool) {
        let Some(query) = self.entry(def, operand) else {
            return (Vec::new(), false);
        };
        let Some(block) = ir.block(def) else {
            return (Vec::new(), false);
        };
        let end = match ir.last_op(block).and_then(|last| self.at.get(&last)) {
            Some(last) => last.1.saturating_add(1),
            None => return (Vec::new(), false),
        };
        let store = &self.stores[query.storage as usize];
        let stretch = Stretch {
            from: query.at,
            to: end,
            one_iteration: true,
        };
        // The first that overwrites all of it.
        let kill = self.forwards(query, WRITES, stretch, |entry| {
            ir.block(entry.op) == Some(block) && overwrites(entry, query)
        });
        let last = kill.map_or(end, |entry| entry.at.saturating_add(1));
        let mut found: Vec<(u64, Op)> = Vec::new();
        let mut partial: Vec<&Entry> = Vec::new();
        self.each(
            query,
            WRITES,
            Stretch {
                to: last,
                ..stretch
            },
            |entry| {
                if ir.block(entry.op) == Some(block) && entry.effect.writes == Writes::Must {
                    partial.push(entry);
                }
            },
        );
        self.each(
            query,
            READS,
            Stretch {
                to: last,
                ..stretch
            },
            |entry| {
                if !shares(entry, query, true) {
                    return;
                }
                let print = |entry: &Entry| match entry.moves == query.moves {
                    true => entry.first.clone(),
                    false => entry.ever.clone(),
                };
                let common = print(entry).intersection(&query.first);
                // Somebody wrote all it would see of it in between.
                let hidden = partial.iter().any(|write| {
                    write.at < entry.at
                        && write.moves == query.moves
                        && write.first.is_exact()
                        && write.first.covers(&common)
                });
                if !(hidden && entry.moves == query.moves) {
                    found.push((entry.at, entry.op));
                }
            },
        );
        found.sort_unstable();
        found.dedup();
        let elsewhere = store.readers.iter().any(|&(at, number)| {
            (at <= query.at || at >= last)
                && self.entries[number as usize]
                    .as_ref()
                    .is_some_and(|entry| entry.op != def && entry.ever.overlaps(&query.ever))
        });
        let readers = found.into_iter().map(|pair| pair.1).collect();
        (readers, kill.is_some() || !elsewhere)
    }

    /// Who else in the block reads bytes of what an operand of `op` reads, nearest first, `most` of them at
    /// most: before it back to where a byte of it may have been written last, or behind it up to where one
    /// may be written next.
    pub fn readers_beside(
        &self,
        ir: &Ir,
        op: Op,
        operand: Operand,
        before: bool,
        most: usize,
    ) -> Vec<Op> {
        let (Some(query), Some(block), Some(parent)) =
            (self.entry(op, operand), ir.block(op), ir.parent(op))
        else {
            return Vec::new();
        };
        let Some(&around) = self.at.get(&parent) else {
            return Vec::new();
        };
        let mut stretch = Stretch {
            from: if before { around.0 } else { query.at },
            to: if before { query.at } else { around.1 },
            one_iteration: true,
        };
        let writes = |entry: &Entry| shares(entry, query, true);
        match before {
            true => {
                let last = self.backwards(query, WRITES, stretch, writes);
                stretch.from = last.map_or(stretch.from, |entry| entry.at);
            }
            false => {
                let next = self.forwards(query, WRITES, stretch, writes);
                // Who writes reads before.
                stretch.to = next.map_or(stretch.to, |entry| entry.at.saturating_add(1));
            }
        }
        let found = RefCell::new(Vec::new());
        let take = |entry: &Entry| {
            let mut found = found.borrow_mut();
            let is_near = ir.block(entry.op) == Some(block) && shares(entry, query, true);
            if is_near && !found.contains(&entry.op) {
                found.push(entry.op);
            }
            found.len() == most
        };
        match before {
            true => self.backwards(query, READS, stretch, take),
            false => self.forwards(query, READS, stretch, take),
        };
        found.into_inner()
    }

    /// The only instruction that writes bytes a location has, if there is exactly one.
    pub fn sole_writer(&self, location: Value) -> Option<Op> {
        self.sole(location, WRITES)
    }

    /// The only instruction that reads bytes a location has, if there is exactly one.
    pub fn sole_reader(&self, location: Value) -> Option<Op> {
        self.sole(location, READS)
    }

    fn sole(&self, location: Value, what: usize) -> Option<Op> {
        let store = &self.stores[self.locations.get(&location)?.0 as usize];
        let list = if what == WRITES {
            &store.writers
        } else {
            &store.readers
        };
        let mut ops = list
            .iter()
            .filter_map(|&(_, number)| Some(self.entries[number as usize].as_ref()?.op));
        let first = ops.next()?;
        ops.all(|op| op == first).then_some(first)
    }

    /// What lies between two instructions.
    fn stretch(&self, ir: &Ir, from: Op, to: Op) -> Stretch {
        let whole = Stretch {
            from: 0,
            to: u64::MAX,
            one_iteration: false,
        };
        let around = |op: Op| -> Vec<Op> {
            let mut path = vec![op];
            let mut at = op;
            while let Some(parent) = ir.parent(at).filter(|_| at != self.func) {
                path.push(parent);
                at = parent;
            }
            path.reverse();
            path
        };
        let (a, b) = (around(from), around(to));
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let (Some(&one), Some(&two)) = (a.get(common), b.get(common)) else {
            return whole;
        };
        let (Some(&first), Some(&last)) = (self.at.get(&one), self.at.get(&two)) else {
            return whole;
        };
        if ir.block(one) != ir.block(two) || first.0 > last.0 {
            // Branches or a way round a loop: all of what holds both.
            let parent = ir.parent(one).and_then(|parent| self.at.get(&parent));
            return parent.map_or(whole, |&(from, to)| Stretch {
                from,
                to,
                one_iteration: false,
            });
        }
        let nested = one != from || two != to;
        Stretch {
            from: if one == from {
                first.0
            } else {
                first.0.saturating_sub(1)
            },
            to: if two == to {
                last.0
            } else {
                last.1.saturating_add(1)
            },
            one_iteration: !nested,
        }
    }

    /// The last access in a stretch, of nodes a query touches, that fits.
    fn backwards(
        &self,
        query: &Entry,
        what: usize,
        stretch: Stretch,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<&Entry> {
        let lists = self.stores[query.storage as usize].lists(query, what);
        let mut bound = (stretch.to, 0);
        loop {
            let before = |list: &&BTreeSet<(u64, u32)>| list.range(..bound).next_back().copied();
            let next = lists.iter().filter_map(before).max()?;
            if next.0 <= stretch.from {
                return None;
            }
            if let Some(entry) = self.entries[next.1 as usize].as_ref()
                && fits(entry)
            {
                return Some(entry);
            }
            bound = next;
        }
    }

    fn forwards(
        &self,
        query: &Entry,
        what: usize,
        stretch: Stretch,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<&Entry> {
        let lists = self.stores[query.storage as usize].lists(query, what);
        let mut bound = (stretch.from.saturating_add(1), 0);
        loop {
            let behind = |list: &&BTreeSet<(u64, u32)>| list.range(bound..).next().copied();
            let next = lists.iter().filter_map(behind).min()?;
            if next.0 >= stretch.to {
                return None;
            }
            if let Some(entry) = self.entries[next.1 as usize].as_ref()
                && fits(entry)
            {
                return Some(entry);
            }
            bound = (next.0, next.1 + 1);
        }
    }

    fn each<'a>(
        &'a self,
        query: &Entry,
        what: usize,
        stretch: Stretch,
        mut visit: impl FnMut(&'a Entry),
    ) {
        let mut seen: Vec<(u64, u32)> = Vec::new();
        for list in self.stores[query.storage as usize].lists(query, what) {
            seen.extend(list.range((stretch.from.saturating_add(1), 0)..(stretch.to, 0)));
        }
        seen.sort_unstable();
        seen.dedup();
        for (_, number) in seen {
            if let Some(entry) = self.entries[number as usize].as_ref() {
                visit(entry);
            }
        }
    }
}

/// Whether two accesses may share a byte.
fn shares(a: &Entry, b: &Entry, one_iteration: bool) -> bool {
    match one_iteration && a.moves == b.moves {
        true => a.first.overlaps(&b.first),
        false => a.ever.overlaps(&b.ever),
    }
}

/// Whether a write overwrites all bytes of another for certain.
fn overwrites(write: &Entry, of: &Entry) -> bool {
    write.effect.writes == Writes::Must
        && write.first.is_exact()
        && match write.moves == of.moves {
            true => write.first.covers(&of.first),
            false => write.moves.is_empty() && write.first.covers(&of.ever),
        }
}

fn ends(print: &Footprint) -> (i64, i64) {
    (
        print.bytes.start().unwrap_or(0),
        print.bytes.end().unwrap_or(0),
    )
}

/// Bytes of an access over all iterations and in the first, and how it moves.
fn prints(
    ir: &Ir,
    op: Op,
    mem: &MemType<'_>,
    annot: Annot,
    whole: &Footprint,
) -> Option<(Footprint, Footprint, Moves)> {
    let access = Access::resolve(&ir.ctx, mem, annot);
    let role = OpCode::of(ir, op).map_or(usize::MAX, |code| code.def().indices_role());
    let operands = ir.operands(op).iter();
    let indices: SmallVec<[Value; 4]> = operands
        .filter(|operand| usize::from(operand.role) == role)
        .map(|operand| operand.value)
        .collect();
    let mut ranges: SmallVec<[LoopRange; 4]> = SmallVec::new();
    for &index in &indices {
        let Def::Arg { block, .. } = ir.def(index) else {
            return None;
        };
        ranges.push(loop_range(ir, ir.region_parent(ir.block_region(block))?)?);
    }
    let mut moves = Moves::new();
    for term in &access.terms {
        let index = *indices.get(usize::from(term.index))?;
        let size = i64::from(access.dtype.size_bytes());
        moves.push(match term.target {
            Target::Partition => (index, true, term.coef),
            Target::Offset => (index, false, term.coef.checked_mul(size)?),
        });
    }
    moves.sort_unstable();
    let ever = footprint_over(&access, whole, &ranges)?;
    let first = footprint_first(&access, &ranges)?;
    Some((ever, first, moves))
}

impl Store {
    /// The pieces a footprint meets, as a range.
    fn pieces(&self, print: &Footprint) -> (usize, usize) {
        let (from, to) = ends(print);
        if from >= to || self.cuts.is_empty() {
            return (0, 0);
        }
        // Bytes before the first cut and behind the last belong to the pieces there.
        let lo = self.cuts.partition_point(|&cut| cut <= from).max(1) - 1;
        let hi = self.cuts.partition_point(|&cut| cut < to).max(lo + 1);
        (lo, hi)
    }

    /// The nodes that make up a range of pieces, and those above them.
    fn nodes_of(&self, (lo, hi): (usize, usize)) -> (SmallVec<[usize; 32]>, BTreeSet<usize>) {
        let leaves = self.nodes.len() / 2;
        let mut own: SmallVec<[usize; 32]> = SmallVec::new();
        let (mut left, mut right) = (lo + leaves, hi + leaves);
        while left < right {
            if left & 1 == 1 {
                own.push(left);
                left += 1;
            }
            if right & 1 == 1 {
                right -= 1;
                own.push(right);
            }
            left /= 2;
            right /= 2;
        }
        let mut above = BTreeSet::new();
        for &node in &own {
            let mut at = node / 2;
            while at >= 1 && above.insert(at) {
                at /= 2;
            }
        }
        (own, above)
    }

    fn change(&mut self, entry: &Entry, number: u32, add: bool) {
        let key = (entry.at, number);
        let (own, above) = self.nodes_of(self.pieces(&entry.ever));
        let set = |list: &mut BTreeSet<(u64, u32)>| match add {
            true => list.insert(key),
            false => list.remove(&key),
        };
        for (what, holds) in [
            (READS, entry.effect.is_read()),
            (WRITES, entry.effect.is_write()),
        ] {
            if !holds {
                continue;
            }
            for &node in &own {
                set(&mut self.nodes[node].own[what]);
            }
            for &node in &above {
                set(&mut self.nodes[node].below[what]);
            }
            set(if what == WRITES {
                &mut self.writers
            } else {
                &mut self.readers
            });
        }
    }

    /// Lists with every access that meets a query's pieces.
    fn lists(&self, query: &Entry, what: usize) -> Vec<&BTreeSet<(u64, u32)>> {
        let (own, above) = self.nodes_of(self.pieces(&query.ever));
        let mut lists: Vec<&BTreeSet<(u64, u32)>> = Vec::new();
        for &node in &own {
            lists.push(&self.nodes[node].own[what]);
            lists.push(&self.nodes[node].below[what]);
        }
        lists.extend(above.iter().map(|&node| &self.nodes[node].own[what]));
        lists.retain(|list| !list.is_empty());
        lists
    }
}
