//! Each rule once.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op};
use hashbrown::{HashMap, HashSet};

use super::Work;
use crate::automaton::FormId;

type Fixed = foldhash::fast::FixedState;

/// Applies every rule once, in order.
pub(super) fn run(ir: &mut Ir, work: &mut Work<'_>) {
    let mut places = places(ir, work);
    for number in 0..work.set.rules.len() {
        let forms = &work.set.rules[number].forms;
        let mut at: Vec<(OpCode, Vec<FormId>)> = Vec::new();
        for (form, one) in (0u32..).zip(forms) {
            let id = (number as u32, form);
            let code = one.stmts[one.anchor].code;
            match at.iter_mut().find(|(other, _)| *other == code) {
                Some((_, forms)) => forms.push(id),
                None => at.push((code, vec![id])),
            }
        }
        let mut changed = false;
        // Program order across ops: a rule may start at several.
        let mut all: Vec<(Op, &[FormId])> = Vec::new();
        for (code, forms) in &at {
            let ops = places.get(code).map_or(&[][..], Vec::as_slice);
            all.extend(ops.iter().map(|&op| (op, &forms[..])));
        }
        if at.len() > 1 {
            let order = order(ir, work.flow.func());
            all.sort_by_key(|(op, _)| order.get(op).copied());
        }
        let mut gone: HashSet<Op, Fixed> = HashSet::default();
        for (op, forms) in all {
            if ir.is_erased(op) || gone.contains(&op) {
                continue;
            }
            if let Some(done) = work.attempt(ir, forms, op) {
                changed = true;
                gone.extend(done.gone);
            }
            if work.over() {
                return;
            }
        }
        if changed {
            work.settle(ir);
            places = self::places(ir, work);
        }
    }
}

/// The instructions rules start at, by op, in program order.
fn places(ir: &Ir, work: &Work<'_>) -> HashMap<OpCode, Vec<Op>, Fixed> {
    let mut wanted = vec![false; OpCode::ALL.len()];
    for form in work.set.rules.iter().flat_map(|rule| &rule.forms) {
        wanted[form.stmts[form.anchor].code as usize] = true;
    }
    let mut places: HashMap<OpCode, Vec<Op>, Fixed> = HashMap::default();
    for op in ir.walk_op(work.flow.func()) {
        if let Some(code) = OpCode::of(ir, op).filter(|&code| wanted[code as usize]) {
            places.entry(code).or_default().push(op);
        }
    }
    places
}

fn order(ir: &Ir, func: Op) -> HashMap<Op, u32, Fixed> {
    let ops = ir.walk_op(func).enumerate();
    ops.map(|(at, op)| (op, at as u32)).collect()
}
