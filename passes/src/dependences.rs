//! What the passes that state dependences have in common.

use bir_dialect::analysis::deps::{Graph, Kinds, attach};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use crate::pass::{Changed, PassContext, Statistic, symbol_text};

pub(crate) const EDGES: Statistic = Statistic {
    name: "edges",
    doc: "edges stated, one into a set counted once",
};
pub(crate) const SETS: Statistic = Statistic {
    name: "sets",
    doc: "sets that stand for many instructions",
};

/// What a rewrite of a function's edges is called where rewrites are counted.
pub(crate) fn what(ir: &Ir, func: Op) -> String {
    format!("dependences of {}", symbol_text(ir, func))
}

/// Counts what was found.
pub(crate) fn counted(graph: &Graph, cx: &mut PassContext<'_>) {
    cx.matched(graph.ops().len() as u64);
    cx.count(&EDGES, graph.edge_count() as u64);
    cx.count(&SETS, u64::from(graph.set_count()));
}

/// Whether all instructions can carry dependences: those of unknown dialects have no numbers.
pub(crate) fn can_state(ir: &Ir, graph: &Graph, cx: &mut PassContext<'_>) -> bool {
    let stranger = graph.ops().iter().find(|&&op| OpCode::of(ir, op).is_none());
    if let Some(&op) = stranger {
        let name = ir.name_text(op);
        let message = format!("dependences on `{name}` cannot be stated: it can have no number");
        let help = "its dialect is not known: take it out before dependences are stated";
        cx.report(Diagnostic::error(Place::Op(op, Part::Whole), message).help(help));
    }
    stranger.is_none()
}

/// States the edges of some kinds in place of those there are.
pub(crate) fn build(ir: &mut Ir, on: &[Op], kinds: Kinds, cx: &mut PassContext<'_>) -> Changed {
    let graphs = cx.each(ir, on, |ir, func| Graph::build(ir, func, kinds));
    let mut changed = false;
    for (graph, &func) in graphs.iter().zip(on) {
        counted(graph, cx);
        if graph.capped() > 0 {
            let message = format!(
                "{} accesses of {} are too fine to tell apart: dependences may be too many",
                graph.capped(),
                symbol_text(ir, func)
            );
            cx.remark(Place::Op(func, Part::Whole), message);
        }
        if !can_state(ir, graph, cx) {
            break;
        }
        let what = || what(ir, func);
        if !cx.may_rewrite(&what) {
            break;
        }
        changed |= attach(ir, func, graph, kinds);
    }
    Changed::from_bool(changed)
}
