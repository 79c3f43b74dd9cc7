//! `dep_reduction`: no edge that others imply.

use bir_dialect::analysis::deps::{Kinds, attach, attached, reduce_in};
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use crate::dependences;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

pass_options! {
    /// Removes dependences that follow from others: the exact transitive reduction.
    ///
    /// Of all edges of all kinds exactly those stay that no path of others replaces, so who must
    /// follow whom is the same as before, whichever branches are taken and however often loops on
    /// registers run: a path through what may not be executed replaces nothing outside of it. Where two instructions depend on one another for several
    /// reasons, the first of `flow`, `anti`, `output`, `ordered` is kept.
    pub struct DepReduction {}
}

const DROPPED: Statistic = Statistic {
    name: "edges-dropped",
    doc: "edges that followed from others",
};
const KEPT: Statistic = Statistic {
    name: "edges-kept",
    doc: "edges left, one into a set counted once",
};

impl Pass for DepReduction {
    fn name(&self) -> &'static str {
        "dep_reduction"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[DROPPED, KEPT]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let found = cx.each(ir, on, |ir, func| {
            let graph = attached(ir, func);
            (graph.edge_count() as u64, reduce_in(ir, func, &graph))
        });
        let mut changed = false;
        for ((before, reduced), &func) in found.into_iter().zip(on) {
            cx.matched(before);
            let reduced = match reduced {
                Ok(reduced) => reduced,
                Err(op) => {
                    let place = Place::Op(op, Part::Whole);
                    let message = "cannot reduce dependences: this instruction depends on itself";
                    cx.report(Diagnostic::error(place, message));
                    break;
                }
            };
            if reduced.dropped == 0 {
                cx.count(&KEPT, before);
                continue;
            }
            let what = || dependences::what(ir, func);
            if !cx.may_rewrite(&what) {
                break;
            }
            cx.count(&DROPPED, reduced.dropped);
            cx.count(&KEPT, reduced.graph.edge_count() as u64);
            changed |= attach(ir, func, &reduced.graph, Kinds::ALL);
        }
        Changed::from_bool(changed)
    }
}
