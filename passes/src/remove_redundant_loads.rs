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

use std::collections::HashMap;

use bir_dialect::analysis::deps::erase;
use bir_dialect::analysis::index::{Frames, FunctionIndex, Touches};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Annot, Block, Ir, Op, Operand, Type, Value};

use crate::outside::Outside;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

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
        Changed::from_bool(remove(ir, on, &outside, cx))
    }
}

/// Removes redundant loads of functions until none is left; whether there were any.
pub(crate) fn remove(ir: &mut Ir, on: &[Op], outside: &Outside, cx: &mut PassContext<'_>) -> bool {
    let mut changed = false;
    // A tile that lost its second load may have become one of a single writer.
    let mut left = on.to_vec();
    while !left.is_empty() {
        let found = cx.each(ir, &left, |ir, func| find(ir, func, outside));
        let mut again = Vec::new();
        for (redundant, &func) in found.into_iter().zip(&left) {
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
            if !gone.is_empty() {
                changed = true;
                again.push(func);
            }
        }
        left = again;
    }
    changed
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

/// What makes two loads alike: block, tensor and access, access and type of the tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    block: Block,
    src: Value,
    read: Annot,
    written: Annot,
    ty: Type,
}

#[derive(Clone, Copy)]
struct Load {
    op: Op,
    key: Key,
    src: Operand,
    dst: Operand,
    tile: Value,
}

fn load(ir: &Ir, op: Op) -> Option<Load> {
    if OpCode::of(ir, op) != Some(OpCode::Load) {
        return None;
    }
    let view = OpView::new(ir, op);
    let (src, dst) = (view.role("src").operand()?, view.role("dst").operand()?);
    let (read, written) = (ir.operand(src), ir.operand(dst));
    let key = Key {
        block: ir.block(op)?,
        src: read.value,
        read: read.annot,
        written: written.annot,
        ty: ir.value_type(written.value),
    };
    Some(Load {
        op,
        key,
        src,
        dst,
        tile: written.value,
    })
}

/// The loads of a function that repeat others, in program order.
fn find(ir: &Ir, func: Op, outside: &Outside) -> Vec<Redundant> {
    let mut first_of: HashMap<Key, bool> = HashMap::new();
    let mut loads: Vec<Load> = Vec::new();
    for load in ir.walk_op(func).filter_map(|op| load(ir, op)) {
        first_of
            .entry(load.key)
            .and_modify(|several| *several = true)
            .or_insert(false);
        loads.push(load);
    }
    loads.retain(|load| first_of.get(&load.key) == Some(&true));
    if loads.is_empty() {
        return Vec::new();
    }
    Search::new(ir, func, outside, &loads).run(&loads)
}

/// A load others may repeat.
struct Held {
    tile: Value,
    /// The load that filled the tile.
    write: u32,
    /// The last load that was found to fill the tile with the same.
    last: Touched,
}

/// The touches of a load.
#[derive(Clone, Copy)]
struct Touched {
    op: Op,
    read: u32,
    write: u32,
}

struct Search<'a> {
    ir: &'a Ir,
    index: FunctionIndex,
    outside: Outside,
    touch_of: HashMap<Operand, u32>,
    location_of: HashMap<Value, u32>,
}

impl<'a> Search<'a> {
    fn new(ir: &'a Ir, func: Op, outside: &Outside, loads: &[Load]) -> Search<'a> {
        let mut operands: HashMap<Operand, u32> = HashMap::new();
        let mut location_of: HashMap<Value, u32> = HashMap::new();
        for load in loads {
            operands.extend([(load.src, u32::MAX), (load.dst, u32::MAX)]);
            location_of.extend([(load.key.src, u32::MAX), (load.tile, u32::MAX)]);
        }
        let touches = Touches::new(ir, func);
        let keep: Vec<bool> = touches
            .locations()
            .iter()
            .map(|&(alloc, value)| {
                // Others may share bytes with one of these.
                let shares = ["at", "must_alias"]
                    .iter()
                    .any(|name| ir.attr(alloc, name).is_some());
                shares || outside.is_named(ir, value) || location_of.contains_key(&value)
            })
            .collect();
        let index = touches.index(ir, Frames::Addresses, |location| keep[location as usize]);
        for (at, location) in (0u32..).zip(index.locations()) {
            location_of
                .entry(location.value)
                .and_modify(|slot| *slot = at);
        }
        for (at, touch) in (0u32..).zip(index.touches()) {
            operands.entry(touch.operand).and_modify(|slot| *slot = at);
        }
        Search {
            ir,
            index,
            outside: outside.clone(),
            touch_of: operands,
            location_of,
        }
    }

    fn run(mut self, loads: &[Load]) -> Vec<Redundant> {
        let mut held: HashMap<Key, Held> = HashMap::new();
        let mut found = Vec::new();
        for load in loads {
            let of = |operand| self.touch_of.get(&operand).copied().unwrap_or(u32::MAX);
            let here = Touched {
                op: load.op,
                read: of(load.src),
                write: of(load.dst),
            };
            if here.read == u32::MAX || here.write == u32::MAX {
                continue;
            }
            if let Some(before) = held.get_mut(&load.key)
                && self.is_source_kept(load, before.last, here)
            {
                if before.tile == load.tile {
                    let (from, to) = (before.last.write, here.write);
                    if !self.index.clobbered_between(from, to, to) {
                        before.last = here;
                        found.push(Redundant {
                            load: load.op,
                            to: load.tile,
                            held: None,
                        });
                        continue;
                    }
                } else if let Some(alloc) = self.only_reads(before, load, here) {
                    before.last.read = here.read;
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
                write: here.write,
                last: here,
            };
            held.insert(load.key, new);
        }
        found
    }

    /// Whether another core may write a location.
    fn is_foreign(&self, value: Value) -> bool {
        self.location_of.get(&value).is_none_or(|&at| {
            let location = &self.index.locations()[at as usize];
            self.outside.is_foreign(self.ir, location.op, value)
        })
    }

    /// Whether a load reads what the one before it read.
    fn is_source_kept(&self, load: &Load, before: Touched, here: Touched) -> bool {
        if self.is_foreign(load.key.src) || self.is_foreign(load.tile) {
            return false;
        }
        OpView::new(self.ir, before.op)
            .indices()
            .eq(OpView::new(self.ir, here.op).indices())
            && !self
                .index
                .clobbered_between(before.read, here.read, here.read)
    }

    /// The `alloc` of a load's tile, where all who read it may read the tile held instead.
    fn only_reads(&mut self, before: &Held, load: &Load, here: Touched) -> Option<Op> {
        let (index, ir) = (&self.index, self.ir);
        let held = *self.location_of.get(&before.tile)?;
        let own = *self.location_of.get(&load.tile)?;
        let [a, b] = [held, own].map(|at| &index.locations()[at as usize]);
        // Tiles alike in all they say, so unplaced both.
        if load.key.written != Annot::UNIT
            || ir.dict(a.op) != ir.dict(b.op)
            || a.place.is_some()
            || !self.outside.is_private(ir, a.op, a.value)
            || !self.outside.is_private(ir, b.op, b.value)
        {
            return None;
        }
        if index.sole_writer(held) != Some(before.write)
            || index.sole_writer(own) != Some(here.write)
        {
            return None;
        }
        let mut others = index.storage_of(own).events().iter().map(|event| event.id);
        others
            .all(|touch| touch == here.write || index.sole_definition(touch) == Some(here.write))
            .then_some(b.op)
    }
}
