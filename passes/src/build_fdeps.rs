//! `build_fdeps`: FLOW edges.

use bir_dialect::analysis::deps::Kinds;
use bir_dialect::bir::program::DepKind;
use bir_dialect::ir::{Ir, Op};

use crate::dependences::{self, EDGES, SETS};
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

pass_options! {
    /// States which instruction reads what which other one wrote: FLOW in `deps`.
    ///
    /// An instruction depends on every one that may have written a byte it reads last, and on the
    /// ones that define its registers, within one iteration of the loops around both. FLOW edges
    /// the program had are replaced, those of other kinds stay. Instructions that are depended on
    /// get an `id`; where many depend on many, a `depset` stands in between.
    pub struct BuildFdeps {}
}

impl Pass for BuildFdeps {
    fn name(&self) -> &'static str {
        "build_fdeps"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[EDGES, SETS]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.say("build flow dependencies\n");
        dependences::build(ir, on, Kinds::of(&[DepKind::Flow]), cx)
    }
}
