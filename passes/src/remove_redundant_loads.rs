//! `remove_redundant_loads`: no load of what a tile holds already.
//!
//! Formally, a load L2 is redundant because of a load L1 that stands before it in its block, reads
//! the same access of the same tensor and writes the same access of a tile of the same type, where
//! no other core writes tensor or tile and nobody may write the bytes read between the two, and either
//!
//! * both write one tile, and nobody may write the bytes written between the two: L2 goes; or
//! * each is the only writer of its whole tile, neither tile is placed or known outside, and whoever
//!   reads the tile of L2 reads what L2 wrote: those who do read the tile of L1, and L2 and its tile
//!   go. The tile of L1 holds its value until L1 is executed again, and L2 would be then too.

use bir_dialect::analysis::deps::erase;
use bir_dialect::analysis::index::{Frames, FunctionIndex, Touch, Touches};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Block, Dict, Ir, Op, Type, Value};
use hashbrown::HashMap;

use crate::outside::Outside;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

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
        Changed::from_bool(remove(ir, on, &outside, cx).0)
    }
}

/// Who touches what in functions, as far as it is known.
pub(crate) type Walks = HashMap<Op, Touches, Fixed>;

/// Removes redundant loads of functions until none is left; whether there were any, and the walks
/// over functions that are as they were then.
pub(crate) fn remove(
    ir: &mut Ir,
    on: &[Op],
    outside: &Outside,
    cx: &mut PassContext<'_>,
) -> (bool, Walks) {
    let mut changed = false;
    let mut walks = Walks::default();
    // A tile that lost its second load may have become one of a single writer.
    let mut left = on.to_vec();
    while !left.is_empty() {
        let found = cx.each(ir, &left, |ir, func| {
            let touches = Touches::new(ir, func);
            (find(ir, &touches, outside), touches)
        });
        let mut again = Vec::new();
        for ((redundant, touches), &func) in found.into_iter().zip(&left) {
            cx.matched(redundant.len() as u64);
            let mut gone = Vec::new();
            for one in redundant {
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
                gone.push(one);
            }
            let loads: Vec<Op> = gone.iter().map(|one| one.load).collect();
            erase(ir, func, &loads);
            for (_, alloc) in gone.iter().filter_map(|one| one.held) {
                ir.erase(alloc);
            }
            if gone.is_empty() {
                walks.insert(func, touches);
            } else {
                changed = true;
                again.push(func);
            }
        }
        left = again;
    }
    (changed, walks)
}

fn tile_name(ir: &Ir, tile: Value) -> String {
    let name = ir.value_name(tile).map_or("", |name| ir.ctx.text(name));
    format!("`%{name}`")
}

/// A load that may go.
struct Redundant {
    load: Op,
    /// The tile it fills.
    to: Value,
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

/// Loads by what makes them alike, and whether there are several.
type Several = HashMap<Key, bool, Fixed>;

/// A load, by its touches: numbers in the list they came from.
#[derive(Clone, Copy)]
struct Load {
    op: Op,
    key: Key,
    tile: Value,
    read: u32,
    write: u32,
    /// Locations of tensor and tile.
    from: u32,
    to: u32,
}

/// Per location, whether several write it.
fn shared(touches: &Touches) -> Vec<bool> {
    let mut writers = vec![0u8; touches.locations().len()];
    for touch in touches.all().iter().filter(|touch| touch.effect.is_write()) {
        let count = &mut writers[touch.location as usize];
        *count = count.saturating_add(1);
    }
    writers.into_iter().map(|count| count > 1).collect()
}

/// Per location, whether a load reads or fills it.
pub(crate) fn loaded(ir: &Ir, touches: &Touches) -> Vec<bool> {
    let mut loaded = vec![false; touches.locations().len()];
    for load in loads(ir, touches.all(), &[]) {
        loaded[load.from as usize] = true;
        loaded[load.to as usize] = true;
    }
    loaded
}

/// The loads among touches, in program order; `shared` says of locations whether several write them.
fn loads<'a>(
    ir: &'a Ir,
    touches: &'a [Touch],
    shared: &'a [bool],
) -> impl Iterator<Item = Load> + 'a {
    (0u32..)
        .zip(touches.windows(2))
        .filter_map(move |(at, pair)| {
            let (read, write) = (pair[0], pair[1]);
            if read.order != write.order || OpCode::of(ir, read.op) != Some(OpCode::Load) {
                return None;
            }
            let (src, dst) = (ir.operand(read.operand), ir.operand(write.operand));
            let key = Key {
                block: ir.block(read.op)?,
                src: src.value,
                read: src.annot,
                written: dst.annot,
                ty: ir.value_type(dst.value),
                tile: shared
                    .get(write.location as usize)
                    .is_some_and(|&shared| shared)
                    .then_some(dst.value),
            };
            Some(Load {
                op: read.op,
                key,
                tile: dst.value,
                read: at,
                write: at + 1,
                from: read.location,
                to: write.location,
            })
        })
}

fn several(ir: &Ir, touches: &Touches, shared: &[bool]) -> Several {
    let mut several = Several::default();
    for load in loads(ir, touches.all(), shared) {
        several
            .entry(load.key)
            .and_modify(|several| *several = true)
            .or_insert(false);
    }
    several
}

/// The redundant loads of a function, in program order.
fn find(ir: &Ir, touches: &Touches, outside: &Outside) -> Vec<Redundant> {
    let shared = shared(touches);
    let several = several(ir, touches, &shared);
    if !several.values().any(|&several| several) {
        return Vec::new();
    }
    Search::new(ir, touches, outside, several, shared).run()
}

/// A load others may repeat.
struct Held {
    tile: Value,
    location: u32,
    /// The load that filled the tile.
    write: u32,
    /// The last load that was found to fill the tile with the same.
    last: Load,
}

struct Search<'a> {
    ir: &'a Ir,
    index: FunctionIndex,
    outside: Outside,
    several: Several,
    /// Per location, whether several write it.
    shared: Vec<bool>,
    /// Per location, whether another core may write it.
    foreign: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(
        ir: &'a Ir,
        touches: &Touches,
        outside: &Outside,
        several: Several,
        shared: Vec<bool>,
    ) -> Search<'a> {
        let mut keep = vec![false; touches.locations().len()];
        let mut foreign = vec![false; touches.locations().len()];
        for load in loads(ir, touches.all(), &shared) {
            if several.get(&load.key) == Some(&true) {
                for at in [load.from, load.to] {
                    let (alloc, value) = touches.locations()[at as usize];
                    if !std::mem::replace(&mut keep[at as usize], true) {
                        foreign[at as usize] = outside.is_foreign(ir, alloc, value);
                    }
                }
            }
        }
        // Others may share bytes with one of these.
        let mut last: Option<(Dict, bool)> = None;
        for (keep, &(alloc, value)) in keep.iter_mut().zip(touches.locations()) {
            let dict = ir.dict(alloc);
            let shares = match last {
                Some((known, shares)) if known == dict => shares,
                _ => ["at", "must_alias"]
                    .iter()
                    .any(|name| ir.attr(alloc, name).is_some()),
            };
            last = Some((dict, shares));
            *keep |= shares || outside.is_named(ir, value);
        }
        let index = touches.index(ir, Frames::Addresses, |location| keep[location as usize]);
        Search {
            ir,
            index,
            outside: outside.clone(),
            several,
            shared,
            foreign,
        }
    }

    fn run(mut self) -> Vec<Redundant> {
        let mut held: HashMap<Key, Held, Fixed> = HashMap::default();
        let mut found = Vec::new();
        let loads: Vec<Load> = loads(self.ir, self.index.touches(), &self.shared)
            .filter(|load| self.several.get(&load.key) == Some(&true))
            .collect();
        for load in loads {
            if let Some(before) = held.get_mut(&load.key)
                && self.is_source_kept(&before.last, &load)
            {
                if before.tile == load.tile {
                    let (from, to) = (before.last.write, load.write);
                    if !self.index.clobbered_between(from, to, to) {
                        before.last = load;
                        found.push(Redundant {
                            load: load.op,
                            to: load.tile,
                            held: None,
                        });
                        continue;
                    }
                } else if let Some(alloc) = self.only_reads(before, &load) {
                    before.last.read = load.read;
                    before.last.op = load.op;
                    found.push(Redundant {
                        load: load.op,
                        to: load.tile,
                        held: Some((before.tile, alloc)),
                    });
                    continue;
                }
            }
            let new = Held {
                tile: load.tile,
                location: load.to,
                write: load.write,
                last: load,
            };
            held.insert(load.key, new);
        }
        found
    }

    /// Whether a load reads what the one before it read.
    fn is_source_kept(&self, before: &Load, load: &Load) -> bool {
        let is_foreign = |at: u32| self.foreign[at as usize];
        !is_foreign(load.from)
            && !is_foreign(load.to)
            && OpView::new(self.ir, before.op)
                .indices()
                .eq(OpView::new(self.ir, load.op).indices())
            && !self
                .index
                .clobbered_between(before.read, load.read, load.read)
    }

    /// The `alloc` of a load's tile, where all who read it may read the tile held instead.
    fn only_reads(&mut self, before: &Held, load: &Load) -> Option<Op> {
        let (index, ir) = (&self.index, self.ir);
        let [a, b] = [before.location, load.to].map(|at| &index.locations()[at as usize]);
        // Tiles alike in all they say, so unplaced both.
        if load.key.written != Annot::UNIT
            || ir.dict(a.op) != ir.dict(b.op)
            || a.place.is_some()
            || !self.outside.is_private(ir, a.op, a.value)
            || !self.outside.is_private(ir, b.op, b.value)
        {
            return None;
        }
        if index.sole_writer(before.location) != Some(before.write)
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
