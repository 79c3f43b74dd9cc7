//! `non_ssa_legalization`: one value, one location.
//!
//! * [`conflicts`](conflicts::conflicts) – which locations are written again behind a read;
//! * [`splits`](splits::splits) – their webs, each of which becomes a location;
//! * [`rename`](rename::rename) – clones, and the accesses moved to them;
//! * [`checker`] – an independent judge of the result.
//!
//! Invariants:
//!
//! * a web moves as a whole, whatever kinds of accesses it has; the first one keeps the location;
//! * a clone has the attributes of its original, placement included, and stands behind it;
//! * placed webs that live at the same time stay in one location: their bytes are the same slot's;
//! * running it again changes nothing.

pub mod checker;
mod conflicts;
mod rename;
mod splits;

use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};

use crate::outside::Outside;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic, symbol_text};
use crate::pass_options;
use crate::remove_redundant_loads::{self, LOADS, RETARGETED};

pass_options! {
    /// Leaves SSA form: gives every value a location of its own.
    ///
    /// Where a location is written again behind a read, every web of definitions and reads but the
    /// first moves to a clone, `%t_SsaClone0`, `%t_SsaClone1` and so on. Only internal, local
    /// locations take part that are accessed in one block and that no other location or core shares.
    /// What writes a part, or adds to what is there, is no new value: it moves with the web it is in.
    /// Clones of placed locations have the same place, and the same `user_allocated`.
    ///
    /// In functions that are not `sb_allocated`, loads of what a tile holds already go first, as
    /// `remove_redundant_loads` does it. Locations nobody uses go, too.
    pub struct NonSsaLegalization {}
}

const CREATED: Statistic = Statistic {
    name: "locations-created",
    doc: "clones made",
};
const SPLIT: Statistic = Statistic {
    name: "locations-split",
    doc: "locations that held several values",
};
const MOVED: Statistic = Statistic {
    name: "accesses-moved",
    doc: "operands that name a clone now",
};
const REMOVED: Statistic = Statistic {
    name: "locations-removed",
    doc: "locations nobody used",
};

impl Pass for NonSsaLegalization {
    fn name(&self) -> &'static str {
        "non_ssa_legalization"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[CREATED, SPLIT, MOVED, REMOVED, LOADS, RETARGETED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let mut changed = false;
        let mut created = 0;
        let outside = Outside::new(ir);
        // A renamed value stays where it is longer, so that more loads may be of what is there.
        let mut left = on.to_vec();
        while !left.is_empty() {
            let unplaced = |&op: &Op| !OpView::new(ir, op).flag("sb_allocated");
            let unplaced: Vec<Op> = left.iter().copied().filter(unplaced).collect();
            changed |= remove_redundant_loads::remove(ir, &unplaced, &outside, cx);
            let made = split(ir, &left, &outside, cx);
            left = made.iter().map(|&(func, _)| func).collect();
            created += made.iter().map(|made| made.1).sum::<u64>();
        }
        changed |= created > 0;
        changed |= remove_unused(ir, on, &outside, cx);
        cx.count(&CREATED, created);
        cx.say(&format!(
            "[Non-SSA legalization]created {created} memorylocations\n"
        ));
        Changed::from_bool(changed)
    }
}

/// Splits locations; functions with clones, and how many were made in each.
fn split(ir: &mut Ir, on: &[Op], outside: &Outside, cx: &mut PassContext<'_>) -> Vec<(Op, u64)> {
    let found = cx.each(ir, on, |ir, func| splits::splits(ir, func, outside));
    let mut made = Vec::new();
    for (splits, &func) in found.into_iter().zip(on) {
        cx.matched(splits.len() as u64);
        let mut names = rename::Names::new(func);
        let mut clones = 0;
        for split in &splits {
            let what = || rename::what(ir, split.alloc);
            if !cx.may_rewrite(&what) {
                break;
            }
            clones += rename::rename(ir, split, &mut names);
            cx.count(&SPLIT, 1);
            cx.count(&MOVED, split.moved.len() as u64);
        }
        if clones > 0 {
            made.push((func, clones));
        }
    }
    made
}

/// Removes locations nobody uses and nobody outside knows.
fn remove_unused(ir: &mut Ir, on: &[Op], outside: &Outside, cx: &mut PassContext<'_>) -> bool {
    let found = cx.each(ir, on, |ir, func| {
        let mut outside = outside.clone();
        crate::outside::function_allocs(ir, func)
            .filter(|&alloc| {
                ir.result(alloc).is_some_and(|value| {
                    ir.first_use(value).is_none() && outside.is_private(ir, alloc, value)
                })
            })
            .collect::<Vec<Op>>()
    });
    let mut changed = false;
    for (unused, &func) in found.into_iter().zip(on) {
        if unused.is_empty() {
            continue;
        }
        cx.matched(unused.len() as u64);
        let what = || format!("unused locations of {}", symbol_text(ir, func));
        if !cx.may_rewrite(&what) {
            break;
        }
        cx.count(&REMOVED, unused.len() as u64);
        for alloc in unused {
            changed |= ir.erase(alloc);
        }
    }
    changed
}
