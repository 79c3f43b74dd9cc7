//! `non_ssa_legalization`: one value, one location.
//!
//! * `conflicts` – which locations are written again behind a read;
//! * `splits` – their webs, each of which becomes a location;
//! * `rename` – clones, and the accesses moved to them;
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

use bir_dialect::analysis::index::Touches;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};

use crate::outside::Outside;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic, symbol_text};
use crate::pass_options;
use crate::remove_redundant_loads::{self, LOADS, RETARGETED};
use splits::Split;

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
        let outside = Outside::new(ir);
        let scanned = cx.each(ir, on, |ir, func| scan(ir, func, &outside));
        let loading: Vec<Op> = scanned
            .iter()
            .zip(on)
            .filter_map(|(scanned, &func)| scanned.is_none().then_some(func))
            .collect();
        let mut changed = remove_redundant_loads::remove(ir, &loading, &outside, cx);
        let mut created = 0;
        let mut renamed = Vec::new();
        let found = cx.each(ir, &loading, |ir, func| {
            splits::splits(ir, Touches::new(ir, func), &outside)
        });
        let mut later = found.into_iter();
        for (scanned, &func) in scanned.into_iter().zip(on) {
            let is_loading = scanned.is_none();
            let splits = scanned.or_else(|| later.next()).unwrap_or_default();
            let clones = split(ir, func, &splits, cx);
            created += clones;
            if is_loading && clones > 0 {
                renamed.push(func);
            }
        }
        // A renamed value stays where it is longer, so that more loads may be of what is there. They
        // leave nothing more to split: a tile that is read in place of another has one writer.
        changed |= remove_redundant_loads::remove(ir, &renamed, &outside, cx);
        changed |= created > 0;
        changed |= remove_unused(ir, on, &outside, cx);
        cx.count(&CREATED, created);
        cx.say(&format!(
            "[Non-SSA legalization]created {created} memorylocations\n"
        ));
        Changed::from_bool(changed)
    }
}

/// What is to be split in a function; nothing yet where loads may go before.
fn scan(ir: &Ir, func: Op, outside: &Outside) -> Option<Vec<Split>> {
    let touches = Touches::new(ir, func);
    let is_placed = OpView::new(ir, func).flag("sb_allocated");
    if !is_placed && remove_redundant_loads::may_find(ir, &touches) {
        return None;
    }
    Some(splits::splits(ir, touches, outside))
}

/// Splits locations of a function; how many clones were made.
fn split(ir: &mut Ir, func: Op, splits: &[Split], cx: &mut PassContext<'_>) -> u64 {
    cx.matched(splits.len() as u64);
    let mut names = rename::Names::new(func);
    let (mut clones, mut done, mut moved) = (0, 0, 0);
    for split in splits {
        let what = || rename::what(ir, split.alloc);
        if !cx.may_rewrite(&what) {
            break;
        }
        clones += rename::rename(ir, split, &mut names);
        done += 1;
        moved += split.moved.len() as u64;
    }
    cx.count(&SPLIT, done);
    cx.count(&MOVED, moved);
    clones
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
