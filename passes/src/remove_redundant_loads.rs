//! `remove_redundant_loads`: no load of what a tile holds already.
//!
//! Formally, a load L2 is redundant because of a load L1 that stands before it in its block, reads
//! the same access of the same tensor and writes the same access of a tile of the same type, where
//! no other core writes tensor or tile and nobody may write the bytes read between the two, and either
//!
//! * both write one tile, and nobody may write the bytes written between the two: L2 goes; or
//! * each is the only writer of its whole tile, neither tile is placed or known outside, and whoever
//!   reads the tile of L2 reads what L2 wrote: those who do read the tile of L1, and L2 and its tile
//!   go. The tile of L1 holds its value until L1 is executed again, and L2 would be then too. In a loop,
//!   what L2 awaits so that it may overwrite its tile, L1 does not: there, nothing may wait or signal,
//!   nor L1 or L2 state what they follow.
//!
//! Where anything waits or signals, both are of one queue: who waited for L2 has then waited for L1.

use bir_dialect::analysis::deps::erase;
use bir_dialect::analysis::index::{Frames, FunctionIndex, Touch, Touches};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Block, Dict, Ir, Op, Type, Value};
use hashbrown::HashMap;

use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;
use crate::stand_in::{self, Order};
use bir_dialect::analysis::outside::Outside;

type Fixed = foldhash::fast::FixedState;

pass_options! {
    /// Removes loads of what a tile in SBUF holds already.
    ///
    /// A load of the same access of the same tensor into the same tile goes where neither was
    /// written in between. Where it fills another tile, its readers read the first tile instead, if
    /// both tiles are written by nobody else and not placed yet; then the other tile goes as well.
    pub struct RemoveRedundantLoads {}
}

pub(crate) const LOADS: Statistic = Statistic {
    name: "loads-removed",
    doc: "loads of what the tile held already",
};
pub(crate) const RETARGETED: Statistic = Statistic {
    name: "loads-retargeted",
    doc: "loads whose readers read a tile loaded before",
};

impl Pass for RemoveRedundantLoads {
    fn name(&self) -> &'static str {
        "remove_redundant_loads"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[LOADS, RETARGETED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let outside = Outside::new(ir);
        Changed::from_bool(remove(ir, on, &outside, cx, &mut Walks::default(), None))
    }
}

/// Who touches what in functions, as far as it is known.
#[derive(Default)]
pub(crate) struct Walks {
    known: HashMap<Op, Touches, Fixed>,
    /// Functions whose walks are of what they were.
    stale: Vec<Op>,
}

impl Walks {
    /// The walk of a function, if it is known.
    pub(crate) fn get(&self, func: Op) -> Option<&Touches> {
        debug_assert!(!self.stale.contains(&func));
        self.known.get(&func)
    }

    /// Takes note that instructions, locations or operands of a function changed as
    /// [`Touches::update`] knows it.
    pub(crate) fn changed(&mut self, func: Op) {
        self.stale.push(func);
    }

    /// Makes the walks of functions that are not known, and brings up to date all others.
    pub(crate) fn refresh(&mut self, ir: &Ir, on: &[Op], cx: &mut PassContext<'_>) {
        self.stale.sort_unstable();
        self.stale.dedup();
        for func in self.stale.drain(..) {
            if let Some(touches) = self.known.get_mut(&func) {
                touches.update(ir);
            }
        }
        let known = &mut self.known;
        let is_unknown = |func: &Op| !known.contains_key(func);
        let unknown: Vec<Op> = on.iter().copied().filter(is_unknown).collect();
        let new = cx.each(ir, &unknown, Touches::new);
        known.extend(unknown.into_iter().zip(new));
    }
}

/// Per value, whether it is one a search is about.
pub(crate) struct About(Vec<bool>);

impl About {
    /// Some values.
    pub(crate) fn values(ir: &Ir, values: impl IntoIterator<Item = Value>) -> About {
        let mut about = About(vec![false; ir.value_rows()]);
        for value in values {
            about.0[value.index()] = true;
        }
        about
    }

    fn has(&self, value: Value) -> bool {
        self.0[value.index()]
    }
}

/// Removes redundant loads of functions until none is left; whether there were any. A search may be about
/// loads only that are like one that reads or fills a location of some.
pub(crate) fn remove(
    ir: &mut Ir,
    on: &[Op],
    outside: &Outside,
    cx: &mut PassContext<'_>,
    walks: &mut Walks,
    mut about: Option<About>,
) -> bool {
    let mut changed = false;
    let mut left = on.to_vec();
    while !left.is_empty() {
        walks.refresh(ir, &left, cx);
        let found = cx.each(ir, &left, |ir, func| match walks.get(func) {
            Some(touches) => find(ir, touches, outside, about.as_ref()),
            None => Found::default(),
        });
        let mut again = Vec::new();
        let mut single = Vec::new();
        for (found, &func) in found.into_iter().zip(&left) {
            cx.matched(found.loads.len() as u64);
            let mut gone = Vec::new();
            for one in found.loads {
                let what = || format!("a load of {}", tile_name(ir, one.to));
                if !cx.may_rewrite(&what) {
                    break;
                }
                match one.held {
                    None => cx.count(&LOADS, 1),
                    Some((held, _)) => {
                        cx.count(&RETARGETED, 1);
                        ir.replace_uses(one.to, held);
                    }
                }
                stand_in::depend(ir, one.first, one.load);
                gone.push(one);
            }
            let loads: Vec<Op> = gone.iter().map(|one| one.load).collect();
            erase(ir, func, &loads);
            for (_, alloc) in gone.iter().filter_map(|one| one.held) {
                ir.erase(alloc);
            }
            if !gone.is_empty() {
                walks.changed(func);
                changed = true;
                again.extend((!found.single.is_empty()).then_some(func));
                single.extend(found.single);
            }
        }
        about = Some(About::values(ir, single));
        left = again;
    }
    changed
}

fn tile_name(ir: &Ir, tile: Value) -> String {
    let name = ir.value_name(tile).map_or("", |name| ir.ctx.text(name));
    format!("`%{name}`")
}

/// What was found in a function.
#[derive(Default)]
struct Found {
    /// The redundant loads, in program order.
    loads: Vec<Redundant>,
    /// Tiles that have a single writer without them: it may be redundant, or make others so.
    single: Vec<Value>,
}

/// A load that may go.
struct Redundant {
    load: Op,
    /// The load that fills the tile that holds the same.
    first: Op,
    /// The tile it fills, and its location in the walk.
    to: Value,
    location: u32,
    /// The tile that holds the same, and the `alloc` of `to`.
    held: Option<(Value, Op)>,
}

/// What makes two loads alike: block, tensor and access, access and type of the tile. Loads of one
/// tile are alike, and those that are the only writers of theirs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    block: Block,
    src: Value,
    read: Annot,
    written: Annot,
    ty: Type,
    /// The tile, where others write it, too.
    tile: Option<Value>,
}

/// Loads that are alike.
#[derive(Clone, Copy)]
struct Alike {
    several: bool,
    /// Whether the search is about one of them.
    asked: bool,
}

/// A load, by its touches: numbers in the list of all.
#[derive(Clone, Copy)]
struct Load {
    op: Op,
    read: u32,
    write: u32,
    /// Locations of tensor and tile.
    from: u32,
    to: u32,
}

impl Load {
    /// What makes it like others; `shared` says whether several write its tile.
    fn key(&self, ir: &Ir, touches: &Touches, shared: bool) -> Option<Key> {
        let data = |at: u32| ir.operand(touches.all()[at as usize].operand);
        let (src, dst) = (data(self.read), data(self.write));
        Some(Key {
            block: ir.block(self.op)?,
            src: src.value,
            read: src.annot,
            written: dst.annot,
            ty: ir.value_type(dst.value),
            tile: shared.then_some(dst.value),
        })
    }
}

/// Per location, whether a load reads or fills it.
pub(crate) fn loaded(touches: &Touches) -> Vec<bool> {
    let mut loaded = vec![false; touches.locations().len()];
    let all = touches.all();
    for load in (0..all.len()).filter_map(|at| load_at(all, at)) {
        loaded[load.from as usize] = true;
        loaded[load.to as usize] = true;
    }
    loaded
}

/// The load whose write is one of the touches.
#[inline]
fn load_at(touches: &[Touch], at: usize) -> Option<Load> {
    let write = &touches[at];
    if !write.effect.is_write() || write.code != Some(OpCode::Load) {
        return None;
    }
    let before = at.checked_sub(1)?;
    let read = &touches[before];
    (read.order == write.order).then_some(Load {
        op: read.op,
        read: before as u32,
        write: at as u32,
        from: read.location,
        to: write.location,
    })
}

/// The redundant loads of a function.
fn find(ir: &Ir, touches: &Touches, outside: &Outside, about: Option<&About>) -> Found {
    let mut all: Vec<Load> = Vec::new();
    let mut writers = vec![0u32; touches.locations().len()];
    let mut filled = vec![0u32; touches.locations().len()];
    for (at, touch) in touches.all().iter().enumerate() {
        if touch.effect.is_write() {
            writers[touch.location as usize] += 1;
            if let Some(load) = load_at(touches.all(), at) {
                filled[load.to as usize] += 1;
                all.push(load);
            }
        }
    }
    if all.len() < 2 {
        return Found::default();
    }
    let mut kinds: HashMap<Key, Alike, Fixed> = HashMap::default();
    let mut keyed: Vec<(Load, Key)> = Vec::new();
    for load in all {
        let to = load.to as usize;
        // Of a tile others write, too, only a second load can be redundant.
        if writers[to] > 1 && filled[to] < 2 {
            continue;
        }
        let Some(key) = load.key(ir, touches, writers[to] > 1) else {
            continue;
        };
        let tile = touches.locations()[to].1;
        let asked = about.is_none_or(|about| about.has(key.src) || about.has(tile));
        kinds
            .entry(key)
            .and_modify(|alike| {
                alike.several = true;
                alike.asked |= asked;
            })
            .or_insert(Alike {
                several: false,
                asked,
            });
        keyed.push((load, key));
    }
    keyed.retain(|(_, key)| {
        let alike = kinds.get(key);
        alike.is_some_and(|alike| alike.several && alike.asked)
    });
    if keyed.is_empty() {
        return Found::default();
    }
    let loads = Search::new(ir, touches, outside, keyed, &writers).run();
    let mut single = Vec::new();
    for one in loads.iter().filter(|one| one.held.is_none()) {
        let left = &mut writers[one.location as usize];
        *left -= 1;
        if *left == 1 {
            single.push(one.to);
        }
    }
    Found { loads, single }
}

/// A load that may be redundant, or make others so.
#[derive(Clone, Copy)]
struct Candidate {
    op: Op,
    key: Key,
    tile: Value,
    /// Its touches and its tile in the index; the one that reads is there unless nobody writes what it
    /// reads.
    read: Option<u32>,
    write: u32,
    to: u32,
    /// Whether another core may write tensor or tile.
    foreign: bool,
    in_loop: bool,
}

/// A load others may repeat.
struct Held {
    first: Candidate,
    /// The last load that was found to fill the tile with the same.
    last: Candidate,
}

struct Search<'a> {
    ir: &'a Ir,
    order: Order,
    index: FunctionIndex,
    /// The index's locations in the walk.
    kept: Vec<u32>,
    outside: Outside,
    candidates: Vec<Candidate>,
}

impl<'a> Search<'a> {
    fn new(
        ir: &'a Ir,
        touches: &Touches,
        outside: &Outside,
        keyed: Vec<(Load, Key)>,
        writers: &[u32],
    ) -> Search<'a> {
        let locations = touches.locations();
        // Loads are many of few tensors, and of tiles filled again.
        let mut foreign: Vec<Option<bool>> = vec![None; locations.len()];
        let mut is_foreign = |at: u32| {
            *foreign[at as usize].get_or_insert_with(|| {
                let (alloc, value) = locations[at as usize];
                outside.is_foreign(ir, alloc, value)
            })
        };
        // Others may share bytes with one of these.
        let mut last: Option<(Dict, bool)> = None;
        let mut keep: Vec<bool> = locations
            .iter()
            .map(|&(alloc, value)| {
                let dict = ir.dict(alloc);
                let shares = match last {
                    Some((known, shares)) if known == dict => shares,
                    _ => ["at", "must_alias"]
                        .iter()
                        .any(|name| ir.attr(alloc, name).is_some()),
                };
                last = Some((dict, shares));
                shares || outside.is_named(ir, value)
            })
            .collect();
        for (load, _) in &keyed {
            keep[load.to as usize] = true;
            // What nobody writes needs no index.
            keep[load.from as usize] |= writers[load.from as usize] > 0;
        }
        let (index, kept) =
            touches.index(ir, Frames::Addresses, |location| keep[location as usize]);
        let mut number = vec![u32::MAX; locations.len()];
        for (at, &location) in (0u32..).zip(&kept) {
            number[location as usize] = at;
        }
        // Touches of the index are those of its locations, in the same order.
        let mut at = 0;
        let mut rank = |touch: u32| {
            let wanted = touches.all()[touch as usize].operand;
            let mut left = index.touches()[at..].iter();
            at += left.position(|touch| touch.operand == wanted).unwrap_or(0);
            at as u32
        };
        let candidates = keyed
            .into_iter()
            .map(|(load, key)| Candidate {
                op: load.op,
                key,
                tile: locations[load.to as usize].1,
                read: keep[load.from as usize].then(|| rank(load.read)),
                write: rank(load.write),
                to: number[load.to as usize],
                foreign: is_foreign(load.from) || is_foreign(load.to),
                in_loop: touches.is_in_loop(&touches.all()[load.write as usize]),
            })
            .collect();
        Search {
            ir,
            order: Order::new(touches.func()),
            index,
            kept,
            outside: outside.clone(),
            candidates,
        }
    }

    fn run(mut self) -> Vec<Redundant> {
        let mut held: HashMap<Key, Held, Fixed> = HashMap::default();
        let mut found = Vec::new();
        for load in std::mem::take(&mut self.candidates) {
            if let Some(before) = held.get_mut(&load.key)
                && self.is_source_kept(&before.last, &load)
                && self.order.may_stand_in(self.ir, before.first.op, load.op)
            {
                if before.first.tile == load.tile {
                    let (from, to) = (before.last.write, load.write);
                    if !self.index.clobbered_between(from, to, to) {
                        before.last = load;
                        found.push(Redundant {
                            load: load.op,
                            first: before.first.op,
                            to: load.tile,
                            location: self.kept[load.to as usize],
                            held: None,
                        });
                        continue;
                    }
                } else if self.is_held_long(&before.first, &load)
                    && let Some(alloc) = self.only_reads(&before.first, &load)
                {
                    before.last.read = load.read;
                    before.last.op = load.op;
                    found.push(Redundant {
                        load: load.op,
                        first: before.first.op,
                        to: load.tile,
                        location: self.kept[load.to as usize],
                        held: Some((before.first.tile, alloc)),
                    });
                    continue;
                }
            }
            let new = Held {
                first: load,
                last: load,
            };
            held.insert(load.key, new);
        }
        found
    }

    /// Whether a load reads what the one before it read.
    fn is_source_kept(&self, before: &Candidate, load: &Candidate) -> bool {
        let indices = |load: &Candidate| OpView::new(self.ir, load.op);
        let is_clobbered = |(from, to): (u32, u32)| self.index.clobbered_between(from, to, to);
        // Only parts follow loops, and both are the same parts.
        let is_part = load.key.read != Annot::UNIT || load.key.written != Annot::UNIT;
        !load.foreign
            && (!is_part || indices(before).indices().eq(indices(load).indices()))
            && !before.read.zip(load.read).is_some_and(is_clobbered)
    }

    /// Whether the next iteration cannot overwrite the tile held before those of a load's tile have read it:
    /// what only the load awaited, or says it follows, nobody would.
    fn is_held_long(&mut self, first: &Candidate, load: &Candidate) -> bool {
        let ir = self.ir;
        let follows = |load: &Candidate| stand_in::follows(ir, load.op);
        !load.in_loop || !(follows(first) || follows(load) || self.order.has_semaphores(ir))
    }

    /// The `alloc` of a load's tile, where all who read it may read the tile held instead.
    fn only_reads(&mut self, before: &Candidate, load: &Candidate) -> Option<Op> {
        let (index, ir) = (&self.index, self.ir);
        let [a, b] = [before.to, load.to].map(|at| &index.locations()[at as usize]);
        // Tiles alike in all they say, so unplaced both.
        if load.key.written != Annot::UNIT
            || ir.dict(a.op) != ir.dict(b.op)
            || a.place.is_some()
            || !self.outside.is_private(ir, a.op, a.value)
            || !self.outside.is_private(ir, b.op, b.value)
        {
            return None;
        }
        if index.sole_writer(before.to) != Some(before.write)
            || index.sole_writer(load.to) != Some(load.write)
        {
            return None;
        }
        let mut others = index
            .storage_of(load.to)
            .events()
            .iter()
            .map(|event| event.id);
        others
            .all(|touch| touch == load.write || index.sole_definition(touch) == Some(load.write))
            .then_some(b.op)
    }
}
