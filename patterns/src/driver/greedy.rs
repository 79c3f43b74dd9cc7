//! To the fixpoint.
//!
//! Every instruction a form may start at is visited in program order, then what rewrites made and, where
//! forms look around, their neighbours, in the order they came up. An instruction that looks like
//! one before is not asked about again; see `recall`.

use std::collections::VecDeque;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use super::recall::{Recall, Said};
use super::{Work, describe};
use crate::automaton::{Automaton, Class, FormId};
use crate::facts::{MAX_LINKS, passes_on};
use crate::rule::Cond;

/// What an instruction was made by: the rule, and the link before.
struct Link {
    rule: u32,
    before: Option<u32>,
    length: u32,
}

/// Who made what of what.
#[derive(Default)]
struct Links {
    all: Vec<Link>,
    /// By row of the instruction, the link that made it, counted from 1.
    of: Vec<u32>,
}

impl Links {
    /// Notes that a rule made something of these instructions; the link, and how long its chain is.
    fn add(&mut self, rule: u32, gone: impl IntoIterator<Item = Op>) -> (u32, u32) {
        let before = gone
            .into_iter()
            .filter_map(|op| self.of.get(op.index())?.checked_sub(1))
            .max_by_key(|&link| self.all[link as usize].length);
        let length = before.map_or(1, |link| self.all[link as usize].length + 1);
        self.all.push(Link {
            rule,
            before,
            length,
        });
        (self.all.len() as u32 - 1, length)
    }

    /// The rule that made an instruction.
    fn maker(&self, op: Op) -> Option<u32> {
        let link = self.of.get(op.index())?.checked_sub(1)?;
        Some(self.all[link as usize].rule)
    }

    fn made(&mut self, link: u32, op: Op) {
        if self.of.len() <= op.index() {
            self.of.resize(op.index() + 1, 0);
        }
        self.of[op.index()] = link + 1;
    }
}

/// Instructions to visit.
struct Queue {
    /// In program order.
    first: Vec<Op>,
    at: usize,
    /// Then these.
    then: VecDeque<Op>,
    /// By row: whether it was made into another before its turn came, which comes with `then`.
    later: Vec<bool>,
}

impl Queue {
    fn next(&mut self) -> Option<Op> {
        while let Some(&op) = self.first.get(self.at) {
            self.at += 1;
            if self.later.get(op.index()) != Some(&true) {
                return Some(op);
            }
        }
        self.then.pop_front()
    }

    /// Visits what was made.
    fn made(&mut self, op: Op) {
        if self.at < self.first.len() {
            if self.later.len() <= op.index() {
                self.later.resize(op.index() + 1, false);
            }
            self.later[op.index()] = true;
        }
        self.then.push_back(op);
    }
}

/// Applies rules until none fits.
pub(super) fn run(ir: &mut Ir, work: &mut Work<'_>) {
    let missed = work.settings.remarks.missed();
    let on = work.on.clone();
    let mut automaton = Automaton::new(&mut ir.ctx, work.set, &|rule| missed || on[rule]);
    let known = |ir: &Ir, automaton: &mut Automaton, op| match missed {
        true => OpCode::of(ir, op).is_some_and(|code| automaton.knows(code)),
        false => automaton.class(ir, op) != Class::NONE,
    };
    let first = ir.walk_op(work.flow.func());
    let mut queue = Queue {
        first: first.filter(|&op| known(ir, &mut automaton, op)).collect(),
        at: 0,
        then: VecDeque::new(),
        later: Vec::new(),
    };
    let forms = || work.set.rules.iter().flat_map(|rule| &rule.forms);
    // Rules about one instruction alone need not look at others again.
    let looks_around =
        forms().any(|form| !(form.plan.is_empty() && form.conds.iter().all(Cond::is_local)));
    // Remarks and checks are about each instruction, so none is like another; neither do types say which
    // locations share bytes.
    let is_watched = work.settings.remarks != super::Remarks::Off
        || work.checks.is_some()
        || work.flow.has_ties(ir);
    let mut recall = Recall::default();
    let mut links = Links::default();
    while let Some(op) = queue.next() {
        if ir.is_erased(op) {
            continue;
        }
        if missed {
            work.made_by = links.maker(op);
            every_miss(ir, work, &mut automaton, op);
        }
        let said = match is_watched {
            true => Said::Ask,
            false => recall.ask(ir, work, &mut automaton, op),
        };
        let (rule, gone, made) = match said {
            Said::Nothing => continue,
            Said::Fires(look) => match recall.fire(ir, work, look, op) {
                Some(rule) => (rule, Vec::new(), None),
                None => break,
            },
            Said::Ask => match ask(ir, work, &mut automaton, op) {
                Some((rule, done)) => (rule, done.gone, Some(done.made)),
                None if work.over() => break,
                None => continue,
            },
        };
        if work.over() {
            break;
        }
        let (link, length) = links.add(rule, gone.iter().copied().chain([op]));
        let made = made.as_deref().unwrap_or(std::slice::from_ref(&op));
        if length > work.settings.max_chain {
            let place = made.first().copied().unwrap_or(op);
            work.report.error = Some(circle(ir, work, &links.all, link, place));
            break;
        }
        for &op in made {
            let starts = OpCode::of(ir, op).is_some_and(|code| automaton.knows(code));
            // What no form starts at is found, if at all, from its neighbours.
            if starts || looks_around {
                links.made(link, op);
            }
            if starts {
                queue.made(op);
            }
            if looks_around {
                around(ir, work, op, &mut queue.then);
            }
        }
    }
    recall.count(work);
}

/// Tries the rules that may start at an instruction, best first: which fired, and what it did.
fn ask(
    ir: &mut Ir,
    work: &mut Work<'_>,
    automaton: &mut Automaton,
    op: Op,
) -> Option<(u32, super::Done)> {
    let candidates = automaton.candidates(ir, op);
    for forms in candidates.chunk_by(|a, b| a.0 == b.0) {
        let done = work.attempt(ir, forms, op);
        if work.over() && done.is_none() {
            return None;
        }
        if let Some(done) = done {
            return Some((forms[0].0, done));
        }
    }
    None
}

/// Says why each rule that could start at such an instruction does not, were it asked.
///
/// The automaton leaves out whatever differs in an attribute, which is what a user wants to know.
fn every_miss(ir: &mut Ir, work: &mut Work<'_>, automaton: &mut Automaton, op: Op) {
    let Some(code) = OpCode::of(ir, op) else {
        return;
    };
    let candidates = automaton.candidates(ir, op);
    for (number, rule) in work.set.rules.iter().enumerate() {
        if candidates.iter().any(|one| one.0 as usize == number) {
            continue;
        }
        let forms: Vec<FormId> = (0u32..)
            .zip(&rule.forms)
            .filter(|(_, form)| form.stmts[form.anchor].code == code)
            .map(|(at, _)| (number as u32, at))
            .collect();
        let _ = work.attempt(ir, &forms, op);
    }
}

/// Instructions that may match now that a neighbour is new: who wrote what it reads, who reads what it
/// wrote, and who reads that where it is passed on as it is.
fn around(ir: &Ir, work: &mut Work<'_>, made: Op, queue: &mut VecDeque<Op>) {
    // As long as nobody asked, nothing was decided by what stands around.
    let Some(memory) = work.flow.known() else {
        return;
    };
    let mut found = Vec::new();
    let mut ahead = vec![made];
    for depth in 0..=MAX_LINKS {
        for op in std::mem::take(&mut ahead) {
            let view = OpView::new(ir, op);
            let Some(def) = view.def() else { continue };
            for (number, role) in def.operands.iter().enumerate() {
                let Some(operand) = view.role_at(number).operand() else {
                    continue;
                };
                if role.writes() {
                    for reader in memory.readers_of(ir, op, operand).0 {
                        found.push(reader);
                        if OpCode::of(ir, reader).is_some_and(passes_on) {
                            ahead.push(reader);
                        }
                    }
                } else if role.reads() && depth == 0 {
                    found.extend(memory.last_writer(ir, op, operand).map(|last| last.op));
                }
            }
        }
        ahead.sort_unstable();
        ahead.dedup();
        if ahead.is_empty() {
            break;
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
