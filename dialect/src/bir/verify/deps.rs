//! Instruction numbers, the dependences that name them, and schedule coordinates.
//!
//! * A number stands for one instruction of its function.
//! * A dependence holds within one iteration: it leads to an instruction that has run before in
//!   program order, so never to itself, never in a circle, and never down the text of its block or of a
//!   function without branches. What one
//!   iteration owes to the one before is no edge.
//! * A `depset` stands for its members, by a number of its own; it may stand anywhere, but what it
//!   leads to leads back neither to it nor to who names it.
//! * A coordinate is made of indices the instruction has, and stays in 64 bits in every iteration.

use hashbrown::HashMap;

use super::super::loops::{loop_of, loop_range};
use super::super::ops::OpCode;
use super::super::program::{self, Dep, OrderTerm, order_terms};
use super::super::view::OpView;
use super::driver::Verifier;
use super::numbers::{Numbered, Table};
use super::words::{counted, value_text};
use crate::ir::Op;
use crate::text::diag::{Diagnostic, Part, Place};

type Fixed = foldhash::fast::FixedState;

/// An instruction by its number, or a `depset`.
fn node(set: bool, id: u32) -> u64 {
    u64::from(set) << 32 | u64::from(id)
}

/// The numbers of a function.
#[derive(Default)]
pub(super) struct Numbers {
    instructions: Table,
    sets: Table,
    /// Instructions seen.
    seen: u32,
    /// Those that have dependences.
    dependent: Vec<Numbered>,
}

impl Numbers {
    /// A new function.
    pub(super) fn clear(&mut self) {
        self.instructions.clear();
        self.sets.clear();
        self.seen = 0;
        self.dependent.clear();
    }

    /// What has a [`node`]'s number.
    fn get(&self, node: u64) -> Option<Numbered> {
        let table = if node >> 32 == 0 {
            &self.instructions
        } else {
            &self.sets
        };
        table.get(node as u32)
    }
}

/// A dependence, from an instruction to the one it must follow.
struct Edge {
    dep: Dep,
    from: Numbered,
    to: Numbered,
    own: Option<u64>,
}

/// What dependences say, taken together.
#[derive(Default)]
struct Edges {
    /// From one [`node`] to another.
    all: Vec<(u64, u64)>,
    /// Those from an instruction to one further down the text.
    down: Vec<Edge>,
    /// Those from an instruction to a set.
    through: Vec<(Dep, Numbered)>,
    /// Whether sets take part.
    sets: bool,
}

impl Verifier<'_> {
    /// Number and coordinate of an instruction.
    pub(super) fn check_number(&mut self, op: Op) {
        let ir = self.ir;
        let numbers = &mut self.program.numbers;
        let at = numbers.seen;
        numbers.seen += 1;
        let here = Numbered::new(op, at);
        if ir.words_cell(program::COL_DEPS, op).is_some() {
            numbers.dependent.push(here);
        }
        if let Some(id) = ir.int_cell(program::COL_ID, op) {
            let is_set = OpCode::of(ir, op) == Some(OpCode::Depset);
            let table = if is_set {
                &mut numbers.sets
            } else {
                &mut numbers.instructions
            };
            if let Some(first) = table.insert(id, here) {
                let (message, label, help) = if is_set {
                    (
                        format!("set number #{id} is taken"),
                        format!("the first `depset #{id}`"),
                        "every `depset` of a function has a number of its own",
                    )
                } else {
                    (
                        format!("instruction number {id} is taken"),
                        format!("the first with `id = {id}`"),
                        "every instruction of a function has a number of its own, or none",
                    )
                };
                self.diags.push(
                    Diagnostic::error(Place::Op(op, Part::Whole), message)
                        .related(Place::Op(first.op, Part::Whole), label)
                        .help(help),
                );
            }
        }
        if let Some(words) = ir.words_cell(program::COL_ORDER, op) {
            for (number, term) in order_terms(words).iter().enumerate() {
                self.check_coordinate(op, number, term);
            }
        }
    }

    fn check_coordinate(&mut self, op: Op, number: usize, term: &OrderTerm) {
        let ir = self.ir;
        let view = OpView::new(ir, op);
        let name = view.def().map_or("", |def| def.name);
        let (mut low, mut high) = (i128::from(term.constant), i128::from(term.constant));
        let mut at: Vec<String> = Vec::new();
        for &(index, coef) in &term.terms {
            let Some(value) = view.indices().nth(usize::from(index)) else {
                let has = counted(view.indices().count() as u64, "index operand");
                let message = format!(
                    "coordinate {number} of `order` of `{name}` names loop index d{index}, but the operation has {has}"
                );
                let help =
                    "`order` is made of the operation's index operands, `d0` being the first";
                self.error(op, Part::Whole, message, Some(help.to_owned()));
                return;
            };
            let range = loop_of(ir, value).and_then(|around| loop_range(ir, around));
            let Some(range) = range.filter(|range| range.trips != Some(0)) else {
                return;
            };
            let ends = [range.first, range.last].map(|end| end.saturating_mul(i128::from(coef)));
            low = low.saturating_add(ends[0].min(ends[1]));
            high = high.saturating_add(ends[0].max(ends[1]));
            at.push(value_text(ir, value));
        }
        let fits = |value: i128| i64::try_from(value).is_ok();
        if !fits(low) || !fits(high) {
            let message = format!(
                "coordinate {number} of `order` of `{name}` runs from {low} to {high}, outside 64 bits"
            );
            let note = format!("over all iterations of the loops of {}", at.join(", "));
            let help = "only the order of coordinates matters: use smaller ones".to_owned();
            self.diags.push(
                Diagnostic::error(Place::Op(op, Part::Whole), message)
                    .note(note)
                    .help(help),
            );
        }
    }

    /// Dependences name instructions of the function that have run before.
    pub(super) fn check_deps(&mut self) {
        let ir = self.ir;
        let dependent = std::mem::take(&mut self.program.numbers.dependent);
        let mut edges = Edges::default();
        for &from in &dependent {
            let is_set = OpCode::of(ir, from.op) == Some(OpCode::Depset);
            let words = ir.words_cell(program::COL_DEPS, from.op).unwrap_or(&[]);
            let own = ir.int_cell(program::COL_ID, from.op);
            let own = own.map(|id| node(is_set, id));
            edges.sets |= is_set;
            for &word in words {
                self.check_dep(Dep::from_word(word), own, is_set, from, &mut edges);
            }
        }
        // Edges that all lead up make no circle.
        if edges.down.is_empty() && !edges.sets {
            return;
        }
        let cycle = find_cycle(&mut edges.all).unwrap_or_default();
        if cycle.is_empty() {
            self.check_sets(&edges);
        }
        if let Some(first) = cycle.first()
            && let Some(Numbered { op, .. }) = self.program.numbers.get(*first)
        {
            let message = format!("dependences form a cycle: {}", cycle_text(&cycle));
            let help = "leave out one of them: an instruction follows what has run before it";
            self.error(op, Part::Whole, message, Some(help.to_owned()));
        }
        let is_straight = !self.program.branches;
        let members: hashbrown::HashSet<u64, Fixed> = cycle.into_iter().collect();
        let in_cycle = |id: Option<u64>| id.is_some_and(|id| members.contains(&id));
        for edge in edges.down {
            let is_below = is_straight || ir.block(edge.from.op) == ir.block(edge.to.op);
            if !is_below || (in_cycle(edge.own) && in_cycle(Some(node(false, edge.dep.id)))) {
                continue;
            }
            let message = format!(
                "dependence `{}` leads to an instruction further down",
                dep_text(edge.dep)
            );
            self.diags.push(
                Diagnostic::error(Place::Op(edge.from.op, Part::Whole), message)
                    .related(
                        Place::Op(edge.to.op, Part::Whole),
                        format!("instruction {}", edge.dep.id),
                    )
                    .help("a dependence holds within one iteration, in program order"),
            );
        }
    }

    /// Nobody depends through a set, or through sets in it, on an instruction further down.
    fn check_sets(&mut self, edges: &Edges) {
        // Per set, the member that stands furthest down, once it and the sets in it were looked at.
        let mut lowest: HashMap<u64, Option<(u64, Numbered)>, Fixed> = HashMap::default();
        let members = |set: u64| {
            let from = edges.all.partition_point(|edge| edge.0 < set);
            let all = edges.all[from..].iter();
            all.take_while(move |edge| edge.0 == set).map(|edge| edge.1)
        };
        for &(dep, from) in &edges.through {
            let root = node(true, dep.id);
            let mut open = vec![root];
            while let Some(&set) = open.last() {
                let before = open.len();
                let is_new = |&member: &u64| member >> 32 != 0 && !lowest.contains_key(&member);
                open.extend(members(set).filter(is_new));
                if open.len() > before {
                    continue;
                }
                open.pop();
                let found = members(set).filter_map(|member| match member >> 32 {
                    0 => Some((member, self.program.numbers.get(member)?)),
                    _ => *lowest.get(&member)?,
                });
                let found = found.max_by_key(|(_, to)| to.at);
                lowest.insert(set, found);
            }
            let Some(&Some((member, to))) = lowest.get(&root) else {
                continue;
            };
            let is_below = !self.program.branches || self.ir.block(from.op) == self.ir.block(to.op);
            if to.at < from.at || !is_below {
                continue;
            }
            let number = node_text(member);
            let message = format!(
                "dependence `{}` leads to instruction {number} further down",
                dep_text(dep)
            );
            self.diags.push(
                Diagnostic::error(Place::Op(from.op, Part::Whole), message)
                    .related(
                        Place::Op(to.op, Part::Whole),
                        format!("instruction {number}"),
                    )
                    .help("a dependence holds within one iteration, in program order"),
            );
        }
    }

    fn check_dep(
        &mut self,
        dep: Dep,
        own: Option<u64>,
        is_set: bool,
        from: Numbered,
        edges: &mut Edges,
    ) {
        let named = node(dep.set, dep.id);
        let (what, help) = if Some(named) == own {
            let noun = if is_set { "a set" } else { "an instruction" };
            (
                format!("leads from {noun} to itself"),
                "what an iteration owes to the one before is no dependence in the text".to_owned(),
            )
        } else if let Some(to) = self.program.numbers.get(named) {
            edges.all.extend(own.map(|own| (own, named)));
            edges.sets |= dep.set;
            if dep.set && !is_set {
                edges.through.push((dep, from));
            }
            if to.at > from.at && !dep.set && !is_set {
                edges.down.push(Edge { dep, from, to, own });
            }
            return;
        } else if dep.set {
            (
                "names no `depset` of the function".to_owned(),
                format!("a set is written `depset #{} = [7, 9]`", dep.id),
            )
        } else {
            (
                "names no instruction of the function".to_owned(),
                format!("an instruction is given its number by `id = {}`", dep.id),
            )
        };
        let text = if is_set {
            format!("member `{}`", node_text(named))
        } else {
            format!("dependence `{}`", dep_text(dep))
        };
        self.error(from.op, Part::Whole, format!("{text} {what}"), Some(help));
    }
}

/// "3", "#12"
fn node_text(node: u64) -> String {
    let hash = if node >> 32 == 0 { "" } else { "#" };
    format!("{hash}{}", node as u32)
}

/// Members of a cycle a message names; the middle of a longer one is left out.
const NAMED: usize = 12;

/// "5 -> 6 -> 7 -> 5"
fn cycle_text(cycle: &[u64]) -> String {
    let Some(first) = cycle.first() else {
        return String::new();
    };
    let first = node_text(*first);
    let list = |members: &[u64]| -> String {
        let texts: Vec<String> = members.iter().map(|&member| node_text(member)).collect();
        texts.join(" -> ")
    };
    if cycle.len() <= NAMED {
        return format!("{} -> {first}", list(cycle));
    }
    let (head, tail) = (&cycle[..NAMED / 2], &cycle[cycle.len() - NAMED / 2..]);
    format!(
        "{} -> … -> {} -> {first}, {} instructions",
        list(head),
        list(tail),
        cycle.len()
    )
}

/// "flow 3", "anti #12"
fn dep_text(dep: Dep) -> String {
    format!("{} {}", dep.kind.name(), node_text(node(dep.set, dep.id)))
}

/// Some cycle of edges `from -> to`, from its smallest member on.
fn find_cycle(edges: &mut [(u64, u64)]) -> Option<Vec<u64>> {
    edges.sort_unstable();
    let targets = |from: u64, nth: usize| {
        let start = edges.partition_point(|edge| edge.0 < from);
        edges
            .get(start + nth)
            .filter(|edge| edge.0 == from)
            .map(|edge| edge.1)
    };
    let mut done: hashbrown::HashSet<u64, foldhash::fast::FixedState> =
        hashbrown::HashSet::default();
    let mut on_path: hashbrown::HashSet<u64, foldhash::fast::FixedState> =
        hashbrown::HashSet::default();
    for &(root, _) in edges.iter() {
        if done.contains(&root) {
            continue;
        }
        let mut path = vec![(root, 0)];
        on_path.insert(root);
        while let Some((at, next)) = path.last_mut() {
            let from = *at;
            match targets(from, *next) {
                Some(to) => {
                    *next += 1;
                    if on_path.contains(&to) {
                        let members: Vec<u64> = path.iter().map(|step| step.0).collect();
                        let start = members.iter().position(|&member| member == to)?;
                        let mut cycle = members[start..].to_vec();
                        let smallest = cycle.iter().enumerate().min_by_key(|step| step.1)?.0;
                        cycle.rotate_left(smallest);
                        return Some(cycle);
                    }
                    if !done.contains(&to) {
                        on_path.insert(to);
                        path.push((to, 0));
                    }
                }
                None => {
                    done.insert(from);
                    on_path.remove(&from);
                    path.pop();
                }
            }
        }
    }
    None
}
