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
//!
//! With `--expensive-checks` the judge looks at every use.

pub mod checker;
mod conflicts;
mod rename;
mod splits;

use bir_dialect::analysis::index::Touches;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op, Value};

use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic, symbol_text};
use crate::pass_options;
use crate::remove_redundant_loads::{self, About, LOADS, RETARGETED, Walks};
use bir_dialect::analysis::outside::Outside;
use splits::Splits;

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
        let before = cx.limits().expensive_checks.then(|| ir.clone());
        let outside = Outside::new(ir);
        let is_placed = |ir: &Ir, func: Op| OpView::new(ir, func).flag("sb_allocated");
        let loading: Vec<Op> = on
            .iter()
            .copied()
            .filter(|&func| !is_placed(ir, func))
            .collect();
        let mut walks = Walks::default();
        let mut changed =
            remove_redundant_loads::remove(ir, &loading, &outside, cx, &mut walks, None);
        walks.refresh(ir, on, cx);
        let found = cx.each(ir, on, |ir, func| match walks.get(func) {
            Some(touches) => plan(ir, func, touches, &outside),
            None => Plan::default(),
        });
        let mut created = 0;
        let mut renamed = Vec::new();
        let mut values = Vec::new();
        for (plan, &func) in found.into_iter().zip(on) {
            let clones = split(ir, func, &plan.splits, cx);
            created += clones.len() as u64;
            if !clones.is_empty() && plan.loaded && !is_placed(ir, func) {
                walks.changed(func);
                renamed.push(func);
                values.extend(plan.splits.splits.iter().map(|split| split.value));
                values.extend(clones);
            }
        }
        // A renamed value stays where it is longer, so that more loads may be of what is there. They
        // leave nothing more to split: a tile that is read in place of another has one writer.
        let about = (!renamed.is_empty()).then(|| About::values(ir, values));
        changed |= remove_redundant_loads::remove(ir, &renamed, &outside, cx, &mut walks, about);
        changed |= created > 0;
        changed |= remove_unused(ir, on, &outside, cx);
        cx.count(&CREATED, created);
        cx.say(&format!(
            "[Non-SSA legalization]created {created} memorylocations\n"
        ));
        // Where rewrites were held back, what was to be split is not.
        if let Some(before) = before
            && !cx.was_held_back()
        {
            checker::check(&before, ir)
                .into_iter()
                .for_each(|finding| cx.report(finding));
        }
        Changed::from_bool(changed)
    }
}

/// What is to be done in a function.
#[derive(Default)]
struct Plan {
    splits: Splits,
    /// Whether a load reads or fills one of the locations to be split.
    loaded: bool,
}

fn plan(ir: &Ir, func: Op, touches: &Touches, outside: &Outside) -> Plan {
    let splits = Splits::new(ir, func, touches, outside);
    let loaded = !splits.splits.is_empty() && {
        let loaded = remove_redundant_loads::loaded(touches);
        let mut all = splits.splits.iter();
        all.any(|split| loaded[split.location as usize])
    };
    Plan { splits, loaded }
}

/// Splits locations of a function; the clones made.
fn split(ir: &mut Ir, func: Op, found: &Splits, cx: &mut PassContext<'_>) -> Vec<Value> {
    cx.matched(found.splits.len() as u64);
    let mut allowed = found.splits.as_slice();
    for (at, split) in found.splits.iter().enumerate() {
        let what = || rename::what(ir, split.alloc);
        if !cx.may_rewrite(&what) {
            allowed = &found.splits[..at];
            break;
        }
    }
    let mut names = rename::Names::new(func);
    let (clones, moved) = rename::rename(ir, allowed, &found.moves, &mut names);
    cx.count(&SPLIT, allowed.len() as u64);
    cx.count(&MOVED, moved);
    clones
}

/// Removes locations nobody uses and nobody outside knows.
fn remove_unused(ir: &mut Ir, on: &[Op], outside: &Outside, cx: &mut PassContext<'_>) -> bool {
    let found = cx.each(ir, on, |ir, func| {
        let mut outside = outside.clone();
        bir_dialect::analysis::outside::function_allocs(ir, func)
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
