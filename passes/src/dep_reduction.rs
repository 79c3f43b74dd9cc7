//! `dep_reduction`: no edge that others imply.

use bir_dialect::analysis::deps::{Graph, Kinds, attach, attached, reduce_in};
use bir_dialect::bir::program::COL_ID;
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
    /// registers run: a path counts that leads through what is around one of its ends, and one through
    /// a branch, or a loop that may make no trip, replaces nothing outside of it. Of an edge out of such
    /// code from or to hundreds of others not all paths are tried. Where two instructions depend on one
    /// another for several reasons, the first of `flow`, `anti`, `output`, `ordered` is kept.
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
            let reduced =
                reduce_in(ir, func, &graph).map_err(|op| (op, cycle_text(ir, &graph, op)));
            (graph.edge_count() as u64, reduced)
        });
        let mut changed = false;
        for ((before, reduced), &func) in found.into_iter().zip(on) {
            cx.matched(before);
            let reduced = match reduced {
                Ok(reduced) => reduced,
                Err((op, cycle)) => {
                    let place = Place::Op(op, Part::Whole);
                    let message = format!(
                        "cannot reduce dependences: this instruction depends on itself, by the cycle {cycle}"
                    );
                    let help = "a dependence holds in program order: take the one that leads to an instruction further down out of `deps`";
                    cx.report(Diagnostic::error(place, message).help(help));
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

/// Instructions of a cycle a message names; the middle of a longer one is left out.
const NAMED: usize = 12;

/// "5 -> 6 -> 5": each depends on the one before it.
fn cycle_text(ir: &Ir, graph: &Graph, op: Op) -> String {
    let number = graph.ops().iter().position(|&other| other == op);
    let cycle = graph.cycle(number.unwrap_or(0) as u32);
    let name = |&at: &u32| {
        let op = graph.ops()[at as usize];
        // What others depend on has a number.
        let id = ir.int_cell(COL_ID, op);
        id.map_or_else(|| ir.name_text(op).to_owned(), |id| id.to_string())
    };
    let mut names: Vec<String> = cycle.iter().map(name).collect();
    let count = names.len();
    names.extend(names.first().cloned());
    if count > NAMED {
        let left_out = NAMED / 2..count - NAMED / 2;
        names.splice(left_out, ["…".to_owned()]);
    }
    names.join(" -> ")
}
