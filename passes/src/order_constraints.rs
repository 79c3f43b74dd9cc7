//! `order_constraints`: ORDERED edges.

use bir_dialect::analysis::deps::{self, Graph, Kinds};
use bir_dialect::bir::program::DepKind;
use bir_dialect::ir::{Ir, Op};

use crate::dependences::{self, EDGES, SETS};
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

pass_options! {
    /// States what must keep its order though no byte says so: ORDERED in `deps`.
    ///
    /// Barriers, `drain`, `halt` and what nobody can look into order everything in their block;
    /// instructions that wait or signal order their engine or DMA queue; accumulators, random state
    /// and other hidden state order their users; effects seen outside and collectives come one
    /// after the other, and so do the instructions of a loop with `no_reorder`. ORDERED edges the
    /// program stated itself stay.
    pub struct OrderConstraints {}
}

impl Pass for OrderConstraints {
    fn name(&self) -> &'static str {
        "order_constraints"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[EDGES, SETS]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let ordered = Kinds::of(&[DepKind::Ordered]);
        let graphs = cx.each(ir, on, |ir, func| Graph::build(ir, func, ordered));
        let mut changed = false;
        for (graph, &func) in graphs.iter().zip(on) {
            dependences::counted(graph, cx);
            if !dependences::can_state(ir, graph, cx) {
                break;
            }
            let what = || dependences::what(ir, func);
            if !cx.may_rewrite(&what) {
                break;
            }
            // The user's own come on top.
            changed |= deps::attach(ir, func, graph, Kinds::of(&[]));
        }
        Changed::from_bool(changed)
    }
}
