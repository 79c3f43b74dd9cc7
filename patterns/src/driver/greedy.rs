//! To the fixpoint.

use std::collections::VecDeque;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};
use hashbrown::HashMap;

use super::{Work, describe};
use crate::automaton::Automaton;

type Fixed = foldhash::fast::FixedState;

/// What an instruction was made by: the rule, and the link before.
struct Link {
    rule: u32,
    before: Option<u32>,
    length: u32,
}

/// Applies rules until none fits.
pub(super) fn run(ir: &mut Ir, work: &mut Work<'_>) {
    let missed = work.settings.remarks.missed();
    let on = work.on.clone();
    let automaton = Automaton::new(&mut ir.ctx, work.set, &|rule| missed || on[rule]);
    let mut queue: VecDeque<Op> = ir
        .walk_op(work.flow.func())
        .filter(|&op| OpCode::of(ir, op).is_some_and(|code| automaton.knows(code)))
        .collect();
    // Rules about one instruction alone need not look at others again.
    let looks_around = work
        .set
        .rules
        .iter()
        .flat_map(|rule| &rule.forms)
        .any(|form| !form.plan.is_empty());
    let mut links: Vec<Link> = Vec::new();
    let mut link_of: HashMap<Op, u32, Fixed> = HashMap::default();
    while let Some(op) = queue.pop_front() {
        if ir.is_erased(op) {
            continue;
        }
        if missed {
            every_miss(ir, work, &automaton, op);
        }
        let candidates = automaton.candidates(ir, op);
        let mut at = 0;
        while at < candidates.len() {
            let rule = candidates[at].0;
            let mut end = at + 1;
            while candidates.get(end).is_some_and(|next| next.0 == rule) {
                end += 1;
            }
            let forms: smallvec::SmallVec<[u32; 4]> =
                candidates[at..end].iter().map(|one| one.1).collect();
            at = end;
            let done = work.attempt(ir, rule as usize, &forms, op);
            if work.over() {
                return;
            }
            let Some(done) = done else { continue };
            let before = done
                .erased
                .iter()
                .chain([&op])
                .filter_map(|op| link_of.get(op).copied())
                .max_by_key(|&link| links[link as usize].length);
            let length = before.map_or(1, |link| links[link as usize].length + 1);
            links.push(Link {
                rule,
                before,
                length,
            });
            let link = links.len() as u32 - 1;
            if length > work.settings.max_chain {
                let place = done.made.first().copied().unwrap_or(op);
                work.report.error = Some(circle(ir, work, &links, link, place));
                return;
            }
            for &made in &done.made {
                link_of.insert(made, link);
                queue.push_back(made);
                if looks_around {
                    around(ir, work, made, &mut queue);
                }
            }
            break;
        }
    }
}

/// Says why each rule that could start at such an instruction does not, were it asked.
///
/// The automaton leaves out whatever differs in an attribute, which is what a user wants to know.
fn every_miss(ir: &mut Ir, work: &mut Work<'_>, automaton: &Automaton, op: Op) {
    let Some(code) = OpCode::of(ir, op) else {
        return;
    };
    let candidates = automaton.candidates(ir, op);
    for (number, rule) in work.set.rules.iter().enumerate() {
        if candidates.iter().any(|one| one.0 as usize == number) {
            continue;
        }
        let forms: Vec<u32> = rule
            .forms
            .iter()
            .enumerate()
            .filter(|(_, form)| form.stmts[form.anchor].code == code)
            .map(|(at, _)| at as u32)
            .collect();
        if !forms.is_empty() {
            let _ = work.attempt(ir, number, &forms, op);
        }
    }
}

/// Instructions that may match now that a neighbour is new.
fn around(ir: &Ir, work: &mut Work<'_>, made: Op, queue: &mut VecDeque<Op>) {
    let view = OpView::new(ir, made);
    let Some(def) = view.def() else { return };
    let memory = work.flow.memory(ir);
    let mut found = Vec::new();
    for (number, role) in def.operands.iter().enumerate() {
        let Some(operand) = view.role_at(number).operand() else {
            continue;
        };
        if role.writes() {
            found.extend(memory.readers_of(ir, made, operand).0);
        } else if role.reads() {
            found.extend(memory.last_writer(ir, made, operand).map(|last| last.op));
        }
    }
    found.retain(|&op| op != made);
    found.sort_unstable();
    found.dedup();
    queue.extend(found);
}

/// The rules that undo one another.
fn circle(ir: &Ir, work: &Work<'_>, links: &[Link], last: u32, place: Op) -> Diagnostic {
    let mut rules = Vec::new();
    let mut at = Some(last);
    while let Some(link) = at.and_then(|at| links.get(at as usize)) {
        rules.push(link.rule);
        at = link.before;
    }
    rules.reverse();
    let period = (1..=rules.len() / 2)
        .find(|&period| {
            let tail = &rules[rules.len() - period..];
            tail == &rules[rules.len() - 2 * period..rules.len() - period]
        })
        .unwrap_or(rules.len());
    let mut names: Vec<String> = rules[rules.len() - period..]
        .iter()
        .map(|&rule| format!("`{}`", work.set.rules[rule as usize].name))
        .collect();
    names.extend(names.first().cloned());
    let message = format!(
        "rules go round in circles at {}: {}",
        describe(ir, place),
        names.join(" -> ")
    );
    Diagnostic::error(Place::Op(place, Part::Whole), message)
        .note(format!(
            "stopped after {} rewrites, each of what the one before had made",
            work.settings.max_chain
        ))
        .help("let one of them say in `where` when the other has nothing to undo")
}
