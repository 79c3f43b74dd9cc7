//! A form as a whole: how its instructions hang together, where the new ones stand, what may be where.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::space::{DTypeSet, SpaceSet};
use bir_dialect::text::diag::Place as At;

use super::Checker;
use crate::rule::{Action, Arg, Cond, Form, Step, VarId, VarKind, What};
use crate::text::ast;
use crate::text::ast::Span;

impl Checker<'_> {
    /// Each result has one writer, and is read behind it.
    pub(super) fn dataflow(&mut self, form: &Form) {
        for var in 0..form.vars.len() {
            let places: Vec<(usize, usize)> = form.places(var).collect();
            let writes = |&(stmt, role): &(usize, usize)| {
                form.stmts[stmt].code.def().operands[role].writes()
            };
            let mut writers = places.iter().copied().filter(|place| writes(place));
            let Some(first) = writers.next() else {
                continue;
            };
            let name = form.vars[var].name.clone();
            let sign = self.sign;
            if let Some(second) = writers.next() {
                let span = operand_span(form, second);
                let text =
                    format!("`{sign}{name}` is written twice; give each result its own name");
                let error = self.error(&span, text);
                error.related =
                    vec![(At::Span(operand_span(form, first)), "first here".to_owned())];
            }
            if let Some(&early) = places.iter().find(|place| place.0 < first.0) {
                let span = operand_span(form, early);
                let text = format!(
                    "`{sign}{name}` is read before it is written; instructions stand in program order"
                );
                self.error(&span, text);
            }
        }
    }

    /// The anchor, and how the other instructions are found from it.
    pub(super) fn join(&mut self, form: &mut Form) {
        form.anchor = form.stmts.len() - 1;
        let mut known = vec![form.anchor];
        loop {
            let step = next_step(form, &known);
            let Some((stmt, step)) = step else { break };
            known.push(stmt);
            form.plan.push(step);
        }
        for number in 0..form.stmts.len() {
            if !known.contains(&number) {
                let text = format!(
                    "`{}` shares no operand with the other instructions, so nothing leads to it",
                    form.stmts[number].code.def().name
                );
                let span = form.stmts[number].span.clone();
                self.error(&span, text).help = Some(
                    "let one instruction read what the other writes, or both read the same"
                        .to_owned(),
                );
            }
        }
    }

    pub(super) fn place(&mut self, form: &mut Form, pattern: &ast::Pattern) {
        let replaced = form.stmts.iter().rposition(|stmt| !stmt.keep);
        let makes = form
            .actions
            .iter()
            .any(|one| matches!(one, Action::Make(_)));
        if replaced.is_none() && makes {
            let text = "all instructions are kept: a rewrite replaces at least one";
            self.error(&pattern.rewrite_span, text);
        }
        form.at = replaced.unwrap_or(form.anchor);
        let Some(at) = &pattern.at else { return };
        let known = form
            .vars
            .iter()
            .position(|var| var.kind == VarKind::Tile && var.name == at.text);
        let place = known.and_then(|var| form.writer(var).or(form.places(var).next()));
        match place {
            Some((stmt, _)) if form.stmts[stmt].keep => {
                let text = format!(
                    "the instruction of `%{}` is kept, so its place is taken",
                    at.text
                );
                self.error(&at.span, text);
            }
            Some((stmt, _)) => form.at = stmt,
            None => {
                let text = format!("`%{}` is not bound by what is matched", at.text);
                self.error(&at.span, text);
            }
        }
    }

    /// Nothing that is replaced leaves a result unwritten, and nothing is read that is not there.
    pub(super) fn results(&mut self, form: &Form, pattern: &ast::Pattern) {
        let writes = |action: &Action, var: VarId| match action {
            Action::Make(stmt) => stmt.operands.iter().any(|one| {
                matches!(one.what, What::Tile(id) if id == var)
                    && stmt.code.def().operands[one.role].writes()
            }),
            Action::Call(native, args) => {
                native.writes && matches!(args.first(), Some(Arg::Tile(id)) if *id == var)
            }
        };
        let unread = |var: VarId| {
            form.conds.iter().any(|cond| match cond {
                Cond::Call(constraint, args, _) => {
                    constraint.name == "sole_reader"
                        && matches!(args.first(), Some(Arg::Tile(id)) if *id == var)
                }
                _ => false,
            })
        };
        for stmt in form.stmts.iter().filter(|stmt| !stmt.keep) {
            let def = stmt.code.def();
            for operand in &stmt.operands {
                if !def.operands[operand.role].writes() {
                    continue;
                }
                let name = match operand.what {
                    What::Tile(var) => {
                        if form.actions.iter().any(|action| writes(action, var)) || unread(var) {
                            continue;
                        }
                        format!("%{}", form.vars[var].name)
                    }
                    _ => "_".to_owned(),
                };
                let text = format!(
                    "pattern `{}` replaces `{}`, and its rewrite leaves `{name}` unwritten",
                    pattern.name.text, def.name
                );
                let error = self.error(&operand.span, text);
                error.related = vec![(
                    At::Span(pattern.rewrite_span.clone()),
                    "nothing here writes it".to_owned(),
                )];
                error.help = Some(
                    "write it, or `keep` the instruction, or ask `sole_reader` of it".to_owned(),
                );
            }
        }
        let mut written: Vec<VarId> = Vec::new();
        for action in &form.actions {
            let Action::Make(stmt) = action else { continue };
            let def = stmt.code.def();
            for operand in &stmt.operands {
                let What::Tile(var) = operand.what else {
                    continue;
                };
                let role = &def.operands[operand.role];
                let gone = form.writer(var).is_some_and(|(by, _)| {
                    !form.stmts[by].keep
                        // What is updated in place was there before.
                        && !form.places(var).any(|place| {
                            place.0 == by && form.stmts[by].code.def().operands[place.1].reads()
                        })
                });
                if role.reads() && gone && !written.contains(&var) {
                    let text = format!(
                        "`%{}` is read before anything writes it: the instruction that did is replaced",
                        form.vars[var].name
                    );
                    self.error(&operand.span, text);
                }
            }
            written.extend(
                stmt.operands
                    .iter()
                    .filter_map(|operand| match operand.what {
                        What::Tile(var) if def.operands[operand.role].writes() => Some(var),
                        _ => None,
                    }),
            );
        }
    }

    /// Every operand has a dtype and a space left.
    pub(super) fn domains(&mut self, form: &Form) {
        for var in 0..form.vars.len() {
            if form.vars[var].kind != VarKind::Tile {
                continue;
            }
            let places: Vec<(usize, usize)> = form.places(var).collect();
            // Where a literal may stand, the roles say nothing about it.
            let literal = |&(stmt, role): &(usize, usize)| {
                form.stmts[stmt].code.def().operands[role].takes_literal()
            };
            if places.iter().any(literal) {
                continue;
            }
            let (dtypes, spaces) = domain(form, var);
            let what = if dtypes.is_empty() {
                "dtype"
            } else if spaces.is_empty() {
                "memory space"
            } else {
                continue;
            };
            let text = format!(
                "can never match: no {what} is left for `{}{}`",
                self.sign, form.vars[var].name
            );
            let mut related: Vec<(At, String)> = Vec::new();
            for &place in &places {
                let role = &form.stmts[place.0].code.def().operands[place.1];
                let list = match what {
                    "dtype" => role.dtypes.list(),
                    _ => role.spaces.list(),
                };
                related.push((At::Span(operand_span(form, place)), format!("here {list}")));
            }
            let span = form.vars[var].span.clone();
            self.error(&span, text).related = related;
        }
    }
}

/// Dtypes and spaces a variable may have, by its roles and by conditions on its dtype.
pub(crate) fn domain(form: &Form, var: VarId) -> (DTypeSet, SpaceSet) {
    let mut dtypes: Vec<DType> = DType::ALL.to_vec();
    let mut spaces = SpaceSet::ALL.iter().collect::<Vec<_>>();
    for (stmt, role) in form.places(var) {
        let role = &form.stmts[stmt].code.def().operands[role];
        dtypes.retain(|&dtype| role.dtypes.has(dtype));
        spaces.retain(|&space| role.spaces.has(space));
    }
    for cond in &form.conds {
        dtypes.retain(|&dtype| may_be(cond, var, dtype));
    }
    (DTypeSet::of(&dtypes), SpaceSet::of(&spaces))
}

/// Whether a condition leaves a dtype possible, as far as it speaks of dtypes alone.
fn may_be(cond: &Cond, var: VarId, dtype: DType) -> bool {
    match cond {
        Cond::DType(of, set, _) => *of != var || set.has(dtype),
        Cond::Not(inner) => match &**inner {
            Cond::DType(of, set, _) => *of != var || !set.has(dtype),
            _ => true,
        },
        Cond::All(list) => list.iter().all(|one| may_be(one, var, dtype)),
        Cond::Any(list) => list.iter().any(|one| may_be(one, var, dtype)),
        _ => true,
    }
}

fn next_step(form: &Form, known: &[usize]) -> Option<(usize, Step)> {
    // Who wrote is one instruction; who reads may be many.
    for &from in known {
        for operand in &form.stmts[from].operands {
            let What::Tile(var) = operand.what else {
                continue;
            };
            if !form.stmts[from].code.def().operands[operand.role].reads() {
                continue;
            }
            if let Some((stmt, role)) = form.writer(var)
                && !known.contains(&stmt)
            {
                let by = operand.role;
                return Some((
                    stmt,
                    Step::Writer {
                        stmt,
                        role,
                        from,
                        by,
                    },
                ));
            }
        }
    }
    for &from in known {
        for operand in &form.stmts[from].operands {
            let What::Tile(var) = operand.what else {
                continue;
            };
            if form.writer(var) != Some((from, operand.role)) {
                continue;
            }
            let reader = form.places(var).find(|place| !known.contains(&place.0));
            if let Some((stmt, role)) = reader {
                let by = operand.role;
                return Some((
                    stmt,
                    Step::Reader {
                        stmt,
                        role,
                        from,
                        by,
                    },
                ));
            }
        }
    }
    // Who reads the same, where nothing else leads there.
    for &from in known {
        for operand in &form.stmts[from].operands {
            let What::Tile(var) = operand.what else {
                continue;
            };
            let role = &form.stmts[from].code.def().operands[operand.role];
            if !role.reads() || role.takes_literal() || form.writer(var).is_some() {
                continue;
            }
            let other = form.places(var).find(|&(stmt, role)| {
                let role = &form.stmts[stmt].code.def().operands[role];
                !known.contains(&stmt) && role.reads() && !role.takes_literal()
            });
            if let Some((stmt, role)) = other {
                let by = operand.role;
                return Some((
                    stmt,
                    Step::Sibling {
                        stmt,
                        role,
                        from,
                        by,
                    },
                ));
            }
        }
    }
    None
}

fn operand_span(form: &Form, (stmt, role): (usize, usize)) -> Span {
    let operands = &form.stmts[stmt].operands;
    let found = operands.iter().find(|one| one.role == role);
    found.map_or(form.stmts[stmt].span.clone(), |one| one.span.clone())
}
