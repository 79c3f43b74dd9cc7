//! `erase_flow_dependencies`: no more FLOW edges.

use bir_dialect::analysis::deps::{Kinds, detach};
use bir_dialect::bir::program::{COL_DEPS, Dep, DepKind};
use bir_dialect::ir::{Ir, Op};

use crate::dependences;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

pass_options! {
    /// Removes FLOW edges, and sets nobody names any more.
    ///
    /// What `build_fdeps` made is scaffolding for schedulers. Edges of other kinds stay, and so do
    /// the numbers of instructions.
    pub struct EraseFlowDependencies {}
}

const ERASED: Statistic = Statistic {
    name: "edges-erased",
    doc: "FLOW edges removed, one into a set counted once",
};

impl Pass for EraseFlowDependencies {
    fn name(&self) -> &'static str {
        "erase_flow_dependencies"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[ERASED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let counts = cx.each(ir, on, flow_edges);
        let mut changed = false;
        for (count, &func) in counts.into_iter().zip(on) {
            cx.matched(count);
            if count == 0 {
                continue;
            }
            let what = || dependences::what(ir, func);
            if !cx.may_rewrite(&what) {
                break;
            }
            cx.count(&ERASED, count);
            changed |= detach(ir, func, Kinds::of(&[DepKind::Flow]));
        }
        Changed::from_bool(changed)
    }
}

fn flow_edges(ir: &Ir, func: Op) -> u64 {
    let words = ir
        .walk_op(func)
        .flat_map(|op| ir.words_cell(COL_DEPS, op).unwrap_or_default());
    words
        .filter(|&&word| Dep::from_word(word).kind == DepKind::Flow)
        .count() as u64
}
