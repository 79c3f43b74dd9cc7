//! What is to become of the loops of a function. Reads only.

use std::collections::{HashMap, HashSet};

use bir_dialect::bir::access::Access;
use bir_dialect::bir::attrs::Accumulate;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_DEPS, COL_ID, COL_ORDER, Dep, OrderTerm, names, order_terms};
use bir_dialect::bir::types::MemType;
use bir_dialect::ir::{Annot, Ir, Op, Value, Visit};

use super::{Factor, Unroll};

/// A loop left alone.
pub(super) struct Left {
    pub(super) op: Op,
    pub(super) why: String,
    pub(super) help: Option<String>,
    /// Whether the user asked for this loop.
    pub(super) named: bool,
}

/// What [`plan`] found.
#[derive(Default)]
pub(super) struct FuncPlan {
    pub(super) roots: Vec<Root>,
    pub(super) left: Vec<Left>,
    /// Names of all loops.
    pub(super) names: Vec<String>,
    /// New dependences of instructions outside of the loops.
    pub(super) outside: Vec<(Op, Vec<u64>)>,
}

/// An outermost loop to unroll, with everything in it, in text order.
pub(super) struct Root {
    /// The loop itself first.
    pub(super) templates: Vec<Template>,
    /// Number of values defined inside.
    pub(super) slots: usize,
    /// Loops to unroll, itself included.
    pub(super) loops: u64,
    /// Instructions that will stand for it; saturating.
    pub(super) made: u64,
}

impl Root {
    pub(super) fn op(&self) -> Op {
        self.templates[0].op
    }
}

/// One instruction of the text, of which there will be copies.
pub(super) struct Template {
    pub(super) op: Op,
    /// Behind the last template inside this one.
    pub(super) end: usize,
    pub(super) shape: Shape,
    /// Operands, index operands aside.
    pub(super) operands: Vec<TemplateOperand>,
    /// Index operands.
    pub(super) indices: Vec<Source>,
    pub(super) index_role: u8,
    /// The index of its `unless_first`.
    pub(super) accumulate: Option<u8>,
    pub(super) order: Vec<OrderTerm>,
    pub(super) id: Option<Ids>,
    pub(super) deps: Vec<TemplateDep>,
    /// Slot of the first result, or of the index of a loop.
    pub(super) slot: usize,
}

pub(super) enum Shape {
    /// An instruction.
    Plain,
    /// Something with regions that stays.
    Kept,
    /// A loop that is unrolled.
    Unrolled(Vec<Segment>, i64),
}

/// Consecutive trips of an unrolled loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// Copies of the body.
    pub(super) copies: u64,
    /// The index in the first of them.
    pub(super) first: i64,
    /// End and step of the loop around them; `None` where there is none.
    pub(super) around: Option<(i64, i64)>,
}

/// Where a value comes from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// Outside of the loop.
    Outer(Value),
    /// Inside: a slot.
    Local(usize),
}

pub(super) struct TemplateOperand {
    pub(super) source: Source,
    pub(super) role: u8,
    pub(super) annot: Annot,
    /// The access, and the whole of the location, where indices are in it.
    pub(super) access: Option<Box<(Access, Access)>>,
}

/// Numbers of the copies of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    /// Of the first copy.
    pub(super) first: u32,
    /// Of the second; the others follow.
    pub(super) base: u32,
}

impl Ids {
    /// The number of copy `number`.
    pub(super) fn of(self, number: u64) -> u32 {
        match number {
            0 => self.first,
            _ => self.base + (number - 1) as u32,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum TemplateDep {
    /// The same in all copies.
    Fixed(u64),
    /// On copies of an instruction of the same outermost loop: those with equal trips of the
    /// first `shared` loops, `each` of them.
    Copies {
        dep: Dep,
        ids: Ids,
        shared: usize,
        each: u64,
    },
}

/// What becomes of one loop.
enum Choice {
    Unroll(Vec<Segment>, i64),
    Keep,
    Refuse { why: String, help: Option<String> },
}

/// Looks at a function.
pub(super) fn plan(pass: &Unroll, ir: &Ir, func: Op) -> FuncPlan {
    let mut plan = FuncPlan::default();
    let facts = Facts::of(ir, func);
    let mut walk = ir.walk_visits(func);
    while let Some(visit) = walk.next() {
        let Visit::Enter(op) = visit else { continue };
        if OpCode::of(ir, op) != Some(OpCode::Loop) {
            continue;
        }
        if let Choice::Unroll(..) = choose(pass, ir, op, &facts, &mut plan) {
            root(pass, ir, op, &facts, &mut plan);
            walk.skip_regions(op);
        }
    }
    number(ir, func, &facts, &mut plan);
    plan
}

/// What the choice for one loop depends on elsewhere in the function.
struct Facts {
    /// Numbers dependences name.
    depended: HashSet<u32>,
    /// Numbers in sets, which copies would not be in.
    in_sets: HashSet<u32>,
    has_sets: bool,
    next_id: u32,
}

impl Facts {
    fn of(ir: &Ir, func: Op) -> Facts {
        let mut facts = Facts {
            depended: HashSet::new(),
            in_sets: HashSet::new(),
            has_sets: false,
            next_id: 0,
        };
        for op in ir.walk_op(func) {
            if let Some(id) = ir.int_cell(COL_ID, op)
                && OpCode::of(ir, op) != Some(OpCode::Depset)
            {
                facts.next_id = facts.next_id.max(id.saturating_add(1));
            }
            let deps = ir.words_cell(COL_DEPS, op).unwrap_or_default();
            if OpCode::of(ir, op) == Some(OpCode::Depset) {
                let members = deps.iter().map(|&word| Dep::from_word(word).id);
                facts.in_sets.extend(members);
                facts.has_sets = true;
                continue;
            }
            let deps = deps.iter().map(|&word| Dep::from_word(word));
            facts
                .depended
                .extend(deps.filter(|dep| !dep.set).map(|dep| dep.id));
        }
        facts
    }
}

/// The index of a loop.
fn index_of(ir: &Ir, op: Op) -> Option<Value> {
    let entry = ir
        .regions(op)
        .first()
        .and_then(|&region| ir.entry(region))?;
    ir.args(entry).next()
}

fn loop_text(ir: &Ir, op: Op) -> String {
    match index_of(ir, op).and_then(|index| ir.value_name(index)) {
        Some(name) => format!("loop `%{}`", ir.ctx.text(name)),
        None => "the loop".to_owned(),
    }
}

/// Decides about one loop, and notes in `plan` what the user must know.
fn choose(pass: &Unroll, ir: &Ir, op: Op, facts: &Facts, plan: &mut FuncPlan) -> Choice {
    let name = index_of(ir, op).and_then(|index| ir.value_name(index));
    let name = name.map_or("", |name| ir.ctx.text(name));
    plan.names.push(name.to_owned());
    let named = pass.loops.iter().any(|wanted| wanted == name);
    if !named && !pass.loops.is_empty() || pass.factor == Factor::By(1) {
        return Choice::Keep;
    }
    if pass.innermost && holds_loop(ir, op) {
        return Choice::Keep;
    }
    let choice = can_unroll(pass.factor, ir, op, facts);
    if let Choice::Refuse { why, help } = &choice {
        plan.left.push(Left {
            op,
            why: why.clone(),
            help: help.clone(),
            named,
        });
    }
    choice
}

fn holds_loop(ir: &Ir, op: Op) -> bool {
    ir.walk_op(op)
        .skip(1)
        .any(|inner| matches!(OpCode::of(ir, inner), Some(OpCode::Loop | OpCode::While)))
}

fn can_unroll(factor: Factor, ir: &Ir, op: Op, facts: &Facts) -> Choice {
    let refuse = |why: String, help: Option<&str>| Choice::Refuse {
        why,
        help: help.map(str::to_owned),
    };
    let what = loop_text(ir, op);
    if let Some(bound) = ir.operands(op).first() {
        let name = ir
            .value_name(bound.value)
            .map_or("", |name| ir.ctx.text(name));
        let why = format!("{what} has its bound in register `%{name}`, its trips are not known");
        return refuse(why, Some("only loops between constants can be unrolled"));
    }
    let int = |name| ir.ctx.attr_int(ir.ctx.dict_get(ir.dict(op), name)?);
    let (Some(lower), Some(upper)) = (int(names::LOWER), int(names::UPPER)) else {
        return refuse(format!("{what} has no constant bounds"), None);
    };
    let step = int(names::STEP).unwrap_or(1);
    let blocks = ir
        .regions(op)
        .first()
        .map_or(0, |&region| ir.blocks(region).take(2).count());
    if blocks != 1 {
        return refuse(format!("{what} has branches in its body"), None);
    }
    let has = |name| ir.ctx.dict_get(ir.dict(op), name).is_some();
    let depended = ir
        .int_cell(COL_ID, op)
        .is_some_and(|id| facts.depended.contains(&id));
    let own = ir
        .words_cell(COL_DEPS, op)
        .is_some_and(|deps| !deps.is_empty());
    if depended || own || has(names::WAIT) || has(names::SIGNAL) {
        let why = format!("{what} has dependences or semaphores of its own");
        return refuse(why, Some("move them to the instructions in it"));
    }
    let in_set = |op: Op| {
        let id = ir.int_cell(COL_ID, op);
        id.is_some_and(|id| facts.in_sets.contains(&id))
    };
    if !facts.in_sets.is_empty() && ir.walk_op(op).any(in_set) {
        let why = format!("{what} has instructions that a `depset` names");
        return refuse(why, Some("unroll before dependences are stated"));
    }
    let is_set = |op: Op| OpCode::of(ir, op) == Some(OpCode::Depset);
    if facts.has_sets && ir.walk_op(op).any(is_set) {
        let why = format!("{what} holds a `depset`, whose number is its own");
        return refuse(why, Some("unroll before dependences are stated"));
    }
    if step < 1 {
        return refuse(format!("{what} has step {step}"), None);
    }
    let distance = (i128::from(upper) - i128::from(lower)).max(0) as u128;
    let trips = distance.div_ceil(step as u128);
    let Ok(trips) = u64::try_from(trips) else {
        return refuse(format!("{what} has too many trips"), None);
    };
    let no_reorder = ir.attr(op, "no_reorder").is_some();
    match segments(lower, upper, step, trips, factor, no_reorder) {
        Some(segments) => Choice::Unroll(segments, step),
        None => refuse(
            format!("{what} is `no_reorder`, which only a loop can say"),
            Some("unroll it by a factor smaller than its trips"),
        ),
    }
}

/// The parts a loop falls into; `None` if it would vanish and must not.
fn segments(
    lower: i64,
    upper: i64,
    step: i64,
    trips: u64,
    factor: Factor,
    no_reorder: bool,
) -> Option<Vec<Segment>> {
    if trips == 0 {
        return Some(Vec::new());
    }
    let factor = match factor {
        Factor::By(factor) if factor < trips => factor,
        _ if no_reorder => return None,
        _ => {
            return Some(vec![Segment {
                copies: trips,
                first: lower,
                around: None,
            }]);
        }
    };
    let (rounds, rest) = (trips / factor, trips % factor);
    // Below `upper` where trips are left over, so it fits.
    let split = i128::from(lower) + i128::from(rounds * factor) * i128::from(step);
    let split = i64::try_from(split).unwrap_or(upper);
    let keep = |trips: u64| trips > 1 || no_reorder;
    // More than one trip of the long step lie below `upper`; for a single one any step will do.
    let long = i64::try_from(i128::from(step) * i128::from(factor)).unwrap_or(step);
    let end = if rest == 0 { upper } else { split };
    let mut parts = vec![Segment {
        copies: factor,
        first: lower,
        around: keep(rounds).then_some((end, long)),
    }];
    if rest > 0 {
        parts.push(Segment {
            copies: 1,
            first: split,
            around: keep(rest).then_some((upper, step)),
        });
    }
    Some(parts)
}

/// Plans an outermost loop; nothing is added if it cannot be.
fn root(pass: &Unroll, ir: &Ir, op: Op, facts: &Facts, plan: &mut FuncPlan) {
    let mut root = Root {
        templates: Vec::new(),
        slots: 0,
        loops: 0,
        made: 0,
    };
    let mut slots: HashMap<Value, usize> = HashMap::new();
    // Per open operation: its template, instructions of one copy of its body so far.
    let mut open: Vec<(usize, u64)> = Vec::new();
    for visit in ir.walk_visits(op) {
        match visit {
            Visit::Enter(inner) => {
                let code = OpCode::of(ir, inner);
                let around = open.last().map(|&(at, _)| &root.templates[at].shape);
                let copied = matches!(around, Some(Shape::Unrolled(..)));
                if copied && code == Some(OpCode::Yield) {
                    continue;
                }
                let shape = if ir.regions(inner).is_empty() {
                    Shape::Plain
                } else if code != Some(OpCode::Loop) {
                    Shape::Kept
                } else {
                    let choice = match inner == op {
                        true => can_unroll(pass.factor, ir, op, facts),
                        false => choose(pass, ir, inner, facts, plan),
                    };
                    match choice {
                        Choice::Unroll(segments, step) => {
                            root.loops += 1;
                            Shape::Unrolled(segments, step)
                        }
                        _ => Shape::Kept,
                    }
                };
                let at = root.templates.len();
                let template = template(ir, inner, code, shape, &slots, root.slots);
                let results = ir.results(inner);
                let args = ir
                    .regions(inner)
                    .iter()
                    .flat_map(|&region| ir.blocks(region));
                let args = args.flat_map(|block| ir.args(block));
                for value in results.chain(args) {
                    slots.insert(value, root.slots);
                    root.slots += 1;
                }
                root.templates.push(template);
                match ir.regions(inner).is_empty() {
                    true => {
                        if let Some((_, made)) = open.last_mut() {
                            *made = made.saturating_add(1);
                        }
                    }
                    false => open.push((at, 0)),
                }
            }
            Visit::Leave(_) => {
                let end = root.templates.len();
                let Some((at, body)) = open.pop() else {
                    continue;
                };
                root.templates[at].end = end;
                let made = match &root.templates[at].shape {
                    Shape::Unrolled(segments, _) => segments.iter().fold(0u64, |sum, part| {
                        let loops = u64::from(part.around.is_some());
                        sum.saturating_add(loops.saturating_add(body.saturating_mul(part.copies)))
                    }),
                    _ => body.saturating_add(1),
                };
                match open.last_mut() {
                    Some((_, sum)) => *sum = sum.saturating_add(made),
                    None => root.made = made,
                }
            }
        }
    }
    // With branches in a loop that stays, a use may stand above its definition in the text.
    let is_late =
        |source: &Source| matches!(source, Source::Outer(value) if slots.contains_key(value));
    let uses = |template: &Template| {
        let operands = template.operands.iter().map(|operand| operand.source);
        operands
            .chain(template.indices.iter().copied())
            .any(|source| is_late(&source))
    };
    if root.templates.iter().any(uses) {
        let why = format!(
            "{} holds branches whose blocks are out of order",
            loop_text(ir, op)
        );
        let named = !pass.loops.is_empty();
        plan.left.push(Left {
            op,
            why,
            help: None,
            named,
        });
        return;
    }
    plan.roots.push(root);
}

fn template(
    ir: &Ir,
    op: Op,
    code: Option<OpCode>,
    shape: Shape,
    slots: &HashMap<Value, usize>,
    slot: usize,
) -> Template {
    let source = |value: Value| match slots.get(&value) {
        Some(&slot) => Source::Local(slot),
        None => Source::Outer(value),
    };
    let index_role = code.map_or(u8::MAX, |code| code.def().indices_role() as u8);
    let mut operands = Vec::new();
    let mut indices = Vec::new();
    for operand in ir.operands(op) {
        if operand.role == index_role {
            indices.push(source(operand.value));
            continue;
        }
        let access = (operand.annot != Annot::UNIT)
            .then(|| MemType::get(&ir.ctx, ir.value_type(operand.value)))
            .flatten()
            .map(|mem| {
                (
                    Access::resolve(&ir.ctx, &mem, operand.annot),
                    Access::whole(&mem),
                )
            })
            .filter(|(access, _)| !access.terms.is_empty());
        operands.push(TemplateOperand {
            source: source(operand.value),
            role: operand.role,
            annot: operand.annot,
            access: access.map(Box::new),
        });
    }
    let accumulate = ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE);
    let accumulate = match Accumulate::get(&ir.ctx, accumulate) {
        Some(Accumulate::UnlessFirst(index)) => Some(index),
        _ => None,
    };
    Template {
        op,
        end: 0,
        shape,
        operands,
        indices,
        index_role,
        accumulate,
        order: ir
            .words_cell(COL_ORDER, op)
            .map(order_terms)
            .unwrap_or_default(),
        id: None,
        deps: Vec::new(),
        slot,
    }
}

/// Numbers the copies and points the dependences at them.
fn number(ir: &Ir, func: Op, facts: &Facts, plan: &mut FuncPlan) {
    if facts.next_id == 0 {
        return;
    }
    /// An instruction with a number in one of the loops.
    struct Numbered {
        root: usize,
        ids: Ids,
        copies: u64,
        /// Per unrolled loop around it, outermost first: template and copies.
        around: Vec<(usize, u64)>,
    }
    let mut known: HashMap<u32, Numbered> = HashMap::new();
    let mut next = u64::from(facts.next_id);
    for (at, root) in plan.roots.iter_mut().enumerate() {
        let mut around: Vec<(usize, u64)> = Vec::new();
        for number in 0..root.templates.len() {
            while around
                .last()
                .is_some_and(|&(open, _)| root.templates[open].end <= number)
            {
                around.pop();
            }
            let template = &mut root.templates[number];
            if let Shape::Unrolled(segments, _) = &template.shape {
                around.push((number, segments.iter().map(|part| part.copies).sum()));
                continue;
            }
            let Some(first) = ir.int_cell(COL_ID, template.op) else {
                continue;
            };
            let copies = around
                .iter()
                .fold(1u64, |all, &(_, some)| all.saturating_mul(some));
            let ids = Ids {
                first,
                base: u32::try_from(next).unwrap_or(u32::MAX),
            };
            next = next.saturating_add(copies.saturating_sub(1));
            template.id = Some(ids);
            let around = around.clone();
            known.insert(
                first,
                Numbered {
                    root: at,
                    ids,
                    copies,
                    around,
                },
            );
        }
        if next > u64::from(u32::MAX) {
            // More copies than any limit allows; `fits` refuses them.
            root.made = u64::MAX;
            return;
        }
    }
    let all_copies = |dep: Dep, numbered: &Numbered, out: &mut Vec<u64>| {
        out.extend((0..numbered.copies).map(|copy| {
            let id = numbered.ids.of(copy);
            Dep { id, ..dep }.word()
        }));
    };
    let mut inside: HashSet<Op> = HashSet::new();
    for (at, root) in plan.roots.iter_mut().enumerate() {
        let mut around: Vec<(usize, u64)> = Vec::new();
        for number in 0..root.templates.len() {
            while around
                .last()
                .is_some_and(|&(open, _)| root.templates[open].end <= number)
            {
                around.pop();
            }
            let template = &mut root.templates[number];
            inside.insert(template.op);
            for &word in ir.words_cell(COL_DEPS, template.op).unwrap_or_default() {
                let dep = Dep::from_word(word);
                match known.get(&dep.id).filter(|_| !dep.set) {
                    None => template.deps.push(TemplateDep::Fixed(word)),
                    Some(on) if on.root != at => {
                        let mut words = Vec::new();
                        all_copies(dep, on, &mut words);
                        template
                            .deps
                            .extend(words.into_iter().map(TemplateDep::Fixed));
                    }
                    Some(on) => {
                        let pairs = around.iter().zip(&on.around);
                        let shared = pairs.take_while(|(a, b)| a.0 == b.0).count();
                        let inner = on.around[shared..].iter().map(|&(_, copies)| copies);
                        let each = inner.fold(1u64, u64::saturating_mul);
                        template.deps.push(TemplateDep::Copies {
                            dep,
                            ids: on.ids,
                            shared,
                            each,
                        });
                    }
                }
            }
            if let Shape::Unrolled(segments, _) = &template.shape {
                around.push((number, segments.iter().map(|part| part.copies).sum()));
            }
        }
    }
    for op in ir.walk_op(func) {
        let Some(words) = ir.words_cell(COL_DEPS, op) else {
            continue;
        };
        let is_moved = |&word: &u64| {
            let dep = Dep::from_word(word);
            !dep.set && known.get(&dep.id).is_some_and(|on| on.copies != 1)
        };
        if inside.contains(&op) || !words.iter().any(is_moved) {
            continue;
        }
        let mut out = Vec::new();
        for &word in words {
            let dep = Dep::from_word(word);
            match known.get(&dep.id).filter(|_| !dep.set) {
                Some(on) => all_copies(dep, on, &mut out),
                None => out.push(word),
            }
        }
        plan.outside.push((op, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index in every trip, as the parts execute them.
    fn trips(parts: &[Segment], step: i64) -> Vec<i64> {
        let mut out = Vec::new();
        for part in parts {
            let (end, long) = part.around.unwrap_or((part.first + 1, 1));
            let mut at = part.first;
            while at < end {
                out.extend((0..part.copies).map(|copy| at + copy as i64 * step));
                at += long;
            }
        }
        out
    }

    #[test]
    fn parts_of_a_loop_run_its_trips_in_order() {
        for (lower, upper, step) in [(0, 16, 1), (-3, 20, 4), (5, 5, 1), (7, 3, 2), (0, 1, 9)] {
            let wanted: Vec<i64> = (lower..upper).step_by(step as usize).collect();
            for factor in (1..20).map(Factor::By).chain([Factor::Full]) {
                for no_reorder in [false, true] {
                    let count = wanted.len() as u64;
                    if let Some(parts) = segments(lower, upper, step, count, factor, no_reorder) {
                        assert_eq!(
                            trips(&parts, step),
                            wanted,
                            "{lower} {upper} {step} {factor:?}"
                        );
                        assert!(!no_reorder || parts.iter().all(|part| part.around.is_some()));
                    }
                }
            }
        }
    }

    #[test]
    fn loops_at_the_ends_of_the_integers_do_not_overflow() {
        let parts = segments(i64::MIN, i64::MAX, i64::MAX, 3, Factor::By(2), false).unwrap();
        assert_eq!(trips(&parts, i64::MAX), vec![i64::MIN, -1, i64::MAX - 1]);
    }
}
