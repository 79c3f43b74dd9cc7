//! `unroll`: loops of known trips become straight code, or loops of fewer and longer trips.
//!
//! What it does to a loop of index `k`, formally: the sequence of instructions executed, with the
//! bytes each one accesses, is the same before and after, in the same order.
//!
//! * [`plan`] looks at a function and decides; it changes nothing, so functions are looked at in
//!   parallel.
//! * [`emit`] makes the copies, in program order.
//!
//! Rules:
//! * accesses: a known index folds into the offset or window; a copy in a shorter loop adds its
//!   part of the step; indices that remain are numbered canonically;
//! * `unless_first(%k)` becomes overwriting in the first copy and accumulating in the others;
//! * `order` coordinates fold like accesses; an `id` stays with the first copy, later ones get
//!   new numbers; a dependence inside the body stays inside its copy, one from outside goes to
//!   all copies;
//! * registers defined in the body are one per copy, `%r`, `%r_u1`, `%r_u2`; comments stay with the first copy, source
//!   locations with all.
//!
//! Left as they are, with a remark, or an error where the loop was named: loops with a bound in a
//! register, with branches in their body, with dependences or semaphores of their own, and
//! `no_reorder` loops that would vanish.

mod emit;
mod plan;

use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place, did_you_mean};

use crate::instrument::instruction_count;
use crate::options::OptionValue;
use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

use plan::FuncPlan;

/// How many copies of a body one trip holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Factor {
    /// One per trip of the loop, which vanishes.
    Full,
    /// So many; the loop remains, and a second one for trips left over.
    By(u64),
}

impl OptionValue for Factor {
    const KIND: &'static str = "full|N";

    fn parse(text: &str) -> Result<Factor, String> {
        match (text, text.parse()) {
            ("full", _) => Ok(Factor::Full),
            (_, Ok(factor)) if factor > 0 => Ok(Factor::By(factor)),
            _ => Err(format!(
                "expected `full` or a number from 1, found `{text}`"
            )),
        }
    }

    fn print(&self) -> String {
        match self {
            Factor::Full => "full".to_owned(),
            Factor::By(factor) => factor.to_string(),
        }
    }
}

pass_options! {
    /// Unrolls counted loops, fully or by a factor.
    ///
    /// Every loop of constant trips is unrolled, nested ones with the loops around them; `loops`
    /// picks some by the names of their indices, `innermost` those that hold no loop. By a factor,
    /// a loop of N trips becomes one of N / factor trips with that many copies of its body, and
    /// trips left over go into a second loop behind it. Loops of one trip vanish.
    /// `unroll{loops=k factor=4}` leaves loop `%k` with four copies of its body.
    pub struct Unroll {
        /// Copies of the body per trip; `full` unrolls the loop away
        factor: Factor = Factor::Full,
        /// Loops to unroll, by the names of their indices; empty means all
        loops: Vec<String> = Vec::new(),
        /// Only loops that hold no other loop
        innermost: bool = false,
    }
}

const LOOPS: Statistic = Statistic {
    name: "loops-unrolled",
    doc: "loops unrolled",
};
const LEFT: Statistic = Statistic {
    name: "loops-left",
    doc: "loops that could not be unrolled",
};
const MADE: Statistic = Statistic {
    name: "instructions-made",
    doc: "instructions that stand for those of the loops",
};

impl Pass for Unroll {
    fn name(&self) -> &'static str {
        "unroll"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[LOOPS, LEFT, MADE]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let plans = cx.each(ir, on, |ir, func| plan::plan(self, ir, func));
        if !self.names_known(&plans, cx) | !self.report(&plans, cx) || !fits(ir, &plans, cx) {
            return Changed::No;
        }
        let mut changed = false;
        for plan in plans {
            match emit::apply(ir, plan, cx) {
                Ok(some) => changed |= some,
                Err(diagnostic) => {
                    cx.report(*diagnostic);
                    return Changed::Yes;
                }
            }
        }
        Changed::from_bool(changed)
    }
}

impl Unroll {
    /// Whether every name in `loops` is a loop's.
    fn names_known(&self, plans: &[FuncPlan], cx: &mut PassContext<'_>) -> bool {
        let mut all = true;
        for wanted in &self.loops {
            let mut known: Vec<&str> = plans
                .iter()
                .flat_map(|plan| plan.names.iter().map(String::as_str))
                .collect();
            if known.contains(&wanted.as_str()) {
                continue;
            }
            all = false;
            known.sort_unstable();
            known.dedup();
            let help = did_you_mean(wanted, known.iter().copied()).unwrap_or_else(|| {
                let listed: Vec<String> = known
                    .iter()
                    .take(8)
                    .map(|name| format!("`%{name}`"))
                    .collect();
                match listed.is_empty() {
                    true => "there are no loops".to_owned(),
                    false => format!("there are loops {}", listed.join(", ")),
                }
            });
            let message = format!("`unroll` found no loop `%{wanted}`");
            cx.report(Diagnostic::error(Place::None, message).help(help));
        }
        all
    }

    /// Says which loops are left alone; whether that is no error.
    fn report(&self, plans: &[FuncPlan], cx: &mut PassContext<'_>) -> bool {
        let mut good = true;
        for plan in plans {
            cx.matched(plan.roots.iter().map(|root| root.loops).sum());
            cx.matched(plan.left.len() as u64);
            cx.count(&LEFT, plan.left.len() as u64);
            for left in &plan.left {
                let place = Place::Op(left.op, Part::Whole);
                if left.named {
                    good = false;
                    let message = format!("cannot unroll: {}", left.why);
                    let diagnostic = Diagnostic::error(place, message);
                    cx.report(diagnostic.maybe_help(left.help.clone()));
                } else {
                    cx.remark(place, format!("not unrolled: {}", left.why));
                }
            }
        }
        good
    }
}

/// Whether the file stays within the limit of instructions.
fn fits(ir: &Ir, plans: &[FuncPlan], cx: &mut PassContext<'_>) -> bool {
    let limit = cx.limits().max_instructions;
    let roots = || plans.iter().flat_map(|plan| &plan.roots);
    let made: u64 = roots().fold(0, |sum, root| sum.saturating_add(root.made));
    // Counting the file costs a walk; a file of loops seldom needs it.
    if made.saturating_add(ir.op_rows() as u64) <= limit {
        return true;
    }
    let gone: u64 = roots().map(|root| root.templates.len() as u64).sum();
    let total = made.saturating_add(instruction_count(ir).saturating_sub(gone));
    if total <= limit {
        return true;
    }
    let Some(largest) = roots().max_by_key(|root| root.made) else {
        return true;
    };
    let message =
        format!("unrolling would make {total} instructions, more than the limit of {limit}");
    cx.report(
        Diagnostic::error(Place::Op(largest.op(), Part::Whole), message)
            .label(format!("{} of them", largest.made))
            .help("unroll by a factor or by name, or raise `--max-instructions`"),
    );
    false
}
