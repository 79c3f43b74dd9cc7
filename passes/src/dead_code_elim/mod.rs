//! `dead_code_elim_o0`, `dead_code_elim_o1`: what nobody can observe goes.
//!
//! One algorithm at two levels:
//!
//! 1. `sweep` – instructions none of whose results reach anything observable, by whole locations;
//! 2. `stores` (o1) – writes none of whose bytes anybody sees, by bytes;
//! 3. `copies` (`liw-spill`) – a value saved and reloaded that nobody else touches;
//! 4. `loops` and `copies` (o1, in functions neither `sb_allocated` nor `no_dce`) – empty loops,
//!    and copies that change nothing;
//! 5. where 3 or 4 removed something, again from 1, `max-sweeps` times at most;
//! 6. `locations` – locations nobody touches any more, and the tensor map kept in step.
//!
//! What is observable is asked of the op table and of locations, in `roots`. Everything goes by
//! `erase`, which hands edges, waits and signals on.
//! [`checker`] states what the whole must keep, and judges it from outside.
//!
//! Rewrites are counted from the bottom up, users before what they use, so that every number of
//! them leaves a module that verifies.

pub mod checker;
mod copies;
mod locations;
mod loops;
mod roots;
mod stores;
mod sweep;
mod tensor_map;

use bir_dialect::analysis::deps::erase;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Place;

use crate::options::Limit;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic, symbol_text};
use crate::pass_options;
use bir_dialect::analysis::outside::function_allocs;

use locations::{Locations, Touched};
use roots::{Remote, Roots};
use tensor_map::TensorMaps;

pass_options! {
    /// Removes instructions whose results nobody can observe.
    ///
    /// An instruction stays if it has effects somebody sees, synchronises, steers or writes hidden
    /// state, or if what it writes is observable or read by one that stays. Observable are outputs,
    /// inputs that are written, shared and remote locations, those another core writes or an
    /// indirect DMA touches, and partners in `must_alias`. What is read in another block counts as
    /// what is read in its own. Loops stay. Locations that lose their last access go, and with them their entries in the
    /// tensor map. Edges, waits and signals of what is removed pass to its neighbours.
    pub struct DeadCodeElimO0 {
        /// Times at most to go over a function, again where clean-ups removed something
        max_sweeps: Limit = Limit::Unlimited,
        /// Remove saves and reloads of one value nobody else touches
        liw_spill: bool = false,
        /// The `tensor_map.json` to keep in step; the module's attribute is kept in any case
        tensor_map: String = String::new(),
    }
}

pass_options! {
    /// Removes dead instructions, dead stores, copies that change nothing, and unused locations.
    ///
    /// All that `dead_code_elim_o0` does, and: writes none of whose bytes a later read, an output or
    /// an escaping access can see, also where several later writes cover them together; in functions
    /// that are neither `sb_allocated` nor `no_dce` empty loops, `dma_copy` onto the same bytes,
    /// `dma_copy` back to where its source came from, and `dma_copy` between internal locations
    /// whose readers can read the source; and every location nobody touches.
    pub struct DeadCodeElimO1 {
        /// Times at most to go over a function, again where clean-ups removed something
        max_sweeps: Limit = Limit::Unlimited,
        /// Remove saves and reloads of one value nobody else touches
        liw_spill: bool = false,
        /// The `tensor_map.json` to keep in step; the module's attribute is kept in any case
        tensor_map: String = String::new(),
    }
}

const REMOVED: Statistic = Statistic {
    name: "instructions-removed",
    doc: "instructions nobody observes",
};
const STORES: Statistic = Statistic {
    name: "dead-stores",
    doc: "writes none of whose bytes anybody sees",
};
const SPILLS: Statistic = Statistic {
    name: "spill-pairs",
    doc: "saves and reloads of one value nobody else touches",
};
const LOOPS: Statistic = Statistic {
    name: "empty-loops",
    doc: "loops that hold nothing",
};
const ALIASES: Statistic = Statistic {
    name: "must-alias-copies",
    doc: "`dma_copy` onto the same bytes",
};
const BACK: Statistic = Statistic {
    name: "redundant-alias-copies",
    doc: "`dma_copy` back to where its source came from",
};
const INTERNAL: Statistic = Statistic {
    name: "internal-copies",
    doc: "`dma_copy` between internal locations whose readers now read the source",
};
const LOCATIONS: Statistic = Statistic {
    name: "locations-removed",
    doc: "locations nobody touches",
};
const ENTRIES: Statistic = Statistic {
    name: "tensor-map-entries",
    doc: "entries of the tensor map of locations that are gone",
};
const SEMAPHORES: Statistic = Statistic {
    name: "semaphores-left",
    doc: "`event_semaphore`s in the places of what waited and signalled",
};

const STATISTICS: &[Statistic] = &[
    REMOVED, STORES, SPILLS, LOOPS, ALIASES, BACK, INTERNAL, LOCATIONS, ENTRIES, SEMAPHORES,
];

/// The passes differ in what they do with stores and locations only.
macro_rules! level {
    ($pass:ty, $name:literal, $stores:literal) => {
        impl Pass for $pass {
            fn name(&self) -> &'static str {
                $name
            }

            fn anchor(&self) -> Anchor {
                Anchor::Module
            }

            fn statistics(&self) -> &'static [Statistic] {
                STATISTICS
            }

            fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
                let how = How {
                    stores: $stores,
                    max_sweeps: self.max_sweeps,
                    liw_spill: self.liw_spill,
                    tensor_map: &self.tensor_map,
                };
                how.run(ir, on, cx)
            }
        }
    };
}

level!(DeadCodeElimO0, "dead_code_elim_o0", false);
level!(DeadCodeElimO1, "dead_code_elim_o1", true);

/// One of the two levels, with its options.
struct How<'a> {
    /// Whether it is o1.
    stores: bool,
    max_sweeps: Limit,
    liw_spill: bool,
    tensor_map: &'a str,
}

impl How<'_> {
    fn run(&self, ir: &mut Ir, modules: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let maps = match TensorMaps::read(ir, modules, self.tensor_map) {
            Ok(maps) => maps,
            Err(diagnostic) => {
                cx.report(*diagnostic);
                return Changed::No;
            }
        };
        let before = cx.limits().expensive_checks.then(|| ir.clone());
        let mut changed = false;
        let mut gone = Locations::default();
        // What goes takes no name away that others give.
        let remote = Remote::new(ir);
        for &module in modules {
            for func in functions(ir, module) {
                changed |= self.function(ir, func, &remote, cx, &mut gone);
            }
        }
        let entries = maps.prune(ir, modules, &gone, cx);
        cx.count(&ENTRIES, entries);
        // Of a circle of dead instructions some may be left, reading what others no longer write.
        if let Some(before) = before
            && !cx.was_held_back()
        {
            for diagnostic in checker::check(cx.pass_name(), &before, ir) {
                cx.report(diagnostic);
            }
        }
        Changed::from_bool(changed)
    }

    fn function(
        &self,
        ir: &mut Ir,
        func: Op,
        remote: &Remote,
        cx: &mut PassContext<'_>,
        gone: &mut Locations,
    ) -> bool {
        let view = OpView::new(ir, func);
        let clean_ups = self.stores && !view.flag("sb_allocated") && !view.flag("no_dce");
        let mut changed = false;
        let mut sweeps = 0;
        // o1 looks at all locations.
        let mut touched = match self.stores {
            true => Touched::ignored(),
            false => Touched::noted(ir),
        };
        let roots = loop {
            let roots = Roots::new(ir, func, remote);
            if sweeps == 0 {
                cx.matched(roots.instructions.len() as u64);
            }
            let dead = sweep::dead(ir, &roots);
            changed |= remove(ir, func, dead, &REMOVED, cx, &mut touched);
            let mut again = false;
            if self.stores {
                let dead = stores::dead(ir, func, &roots);
                if remove(ir, func, dead, &STORES, cx, &mut touched) {
                    changed = true;
                    // Who wrote what they read may be dead now.
                    let dead = sweep::dead(ir, &Roots::new(ir, func, remote));
                    again |= remove(ir, func, dead, &REMOVED, cx, &mut touched);
                }
            }
            if self.liw_spill {
                again |= copies::spills(ir, func, &roots, cx, &mut touched);
            }
            if clean_ups {
                // The cores of a program keep the same loops.
                if roots.of(ir, OpCode::Loop).next().is_some() && Anchor::Module.ops(ir).len() == 1
                {
                    again |= loops::empty(ir, func, cx);
                }
                again |= copies::redundant(ir, func, &roots, cx, &mut touched);
            }
            sweeps += 1;
            changed |= again;
            if !again {
                break roots;
            }
            if let Limit::At(limit) = self.max_sweeps
                && sweeps >= limit
            {
                let message = format!(
                    "{} stopped after {limit} of `max-sweeps`, more may be dead",
                    symbol_text(ir, func)
                );
                cx.remark(Place::None, message);
                break roots;
            }
        };
        let candidates = match self.stores {
            true => function_allocs(ir, func).collect(),
            false => touched.list(),
        };
        changed | locations::remove(ir, func, &roots, &candidates, cx, gone)
    }
}

/// The functions of a module.
fn functions(ir: &Ir, module: Op) -> Vec<Op> {
    let regions = ir.regions(module).iter();
    let ops = regions
        .flat_map(|&region| ir.blocks(region))
        .flat_map(|block| ir.block_ops(block));
    ops.filter(|&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .collect()
}

/// Erases what is dead, from the bottom up; whether anything was.
fn remove(
    ir: &mut Ir,
    func: Op,
    mut dead: Vec<Op>,
    statistic: &Statistic,
    cx: &mut PassContext<'_>,
    touched: &mut Touched,
) -> bool {
    let mut kept = dead.len();
    for (at, &op) in dead.iter().enumerate().rev() {
        let what = || {
            format!(
                "remove `{}` from {}",
                ir.name_text(op),
                symbol_text(ir, func)
            )
        };
        if !cx.may_rewrite(&what) {
            break;
        }
        kept = at;
    }
    dead.drain(..kept);
    if dead.is_empty() {
        return false;
    }
    touched.note(ir, &dead);
    let done = erase(ir, func, &dead);
    cx.count(statistic, done.removed);
    cx.count(&SEMAPHORES, done.left_semaphores);
    done.removed > 0
}
