//! `anti_dependency_analyzer`: ANTI and OUTPUT edges.

use bir_dialect::analysis::deps::Kinds;
use bir_dialect::bir::program::DepKind;
use bir_dialect::ir::{Ir, Op};

use crate::dependences::{self, EDGES, SETS};
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

pass_options! {
    /// States which instruction overwrites what others read or wrote: ANTI and OUTPUT in `deps`.
    ///
    /// A write depends on every instruction that read or wrote one of its bytes since they were
    /// last overwritten for certain, within one iteration of the loops around both. Locations on
    /// one slot conflict by their bytes, whatever their names. Predicated and indirect writes may
    /// cover, so they end nothing. ANTI and OUTPUT edges the program had are replaced, those of
    /// other kinds stay.
    pub struct AntiDependencyAnalyzer {}
}

impl Pass for AntiDependencyAnalyzer {
    fn name(&self) -> &'static str {
        "anti_dependency_analyzer"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[EDGES, SETS]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        dependences::build(ir, on, Kinds::of(&[DepKind::Anti, DepKind::Output]), cx)
    }
}
