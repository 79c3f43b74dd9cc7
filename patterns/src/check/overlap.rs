//! Rules that stand in each other's way.
//!
//! * In a greedy set two rules of one benefit whose left sides both fit some instruction are an error:
//!   which of them fires would be an accident. Dtypes, attributes and literals tell rules apart, other
//!   conditions do not; neither do instructions whose operands are all constants count. Single-shot sets run in written order, and are exempt.
//! * A rule never fires where a better one – or, in a single-shot set, an earlier one – matches all it
//!   matches.

use std::collections::BTreeMap;

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::text::diag::{Diagnostic, Place};

use super::pattern::domain;
use crate::rule::{
    Arg, AttrWhat, Cond, Driver, Form, Literal, Rule, RuleSet, Step, Stmt, StmtAttr, VarId, What,
};

/// What a form asks that a glance tells apart from what another asks, per instruction on the way from
/// the anchor.
struct Sketch {
    /// Per path of operands that leads to it.
    at: BTreeMap<Vec<(bool, usize)>, usize>,
}

/// Reports overlapping and shadowed rules of a set.
pub(super) fn check(set: &RuleSet, file: usize, errors: &mut Vec<Diagnostic>) {
    // Only rules that start at one op can meet.
    let mut by_code: BTreeMap<OpCode, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, rule) in set.rules.iter().enumerate() {
        for (at, form) in rule.forms.iter().enumerate() {
            let code = form.stmts[form.anchor].code;
            by_code.entry(code).or_default().push((number, at));
        }
    }
    // A rule is told of once, with the first it meets.
    let mut told = vec![false; set.rules.len()];
    for forms in by_code.values() {
        for bucket in buckets(set, forms) {
            for (i, &(a, form)) in bucket.iter().enumerate() {
                for &(b, other) in &bucket[i + 1..] {
                    if a == b || told[b] {
                        continue;
                    }
                    let (one, two) = (&set.rules[a], &set.rules[b]);
                    // What two other files disagree about is told there.
                    if one.file != file && two.file != file {
                        continue;
                    }
                    let (x, y) = (&one.forms[form], &two.forms[other]);
                    if let Some(error) = meet(set, (one, x), (two, y), file) {
                        told[b] = true;
                        errors.push(error);
                    }
                }
            }
        }
    }
}

/// Forms that may meet, by the first word of their anchors: rules about different operations need not
/// be compared.
fn buckets(set: &RuleSet, forms: &[(usize, usize)]) -> Vec<Vec<(usize, usize)>> {
    let mut by_key: BTreeMap<(String, String), Vec<(usize, usize)>> = BTreeMap::new();
    let mut vague = Vec::new();
    for &(rule, at) in forms {
        let form = &set.rules[rule].forms[at];
        let anchor = &form.stmts[form.anchor];
        let word = anchor.code.def().words.first();
        let attr = word.and_then(|word| anchor.attrs.iter().find(|attr| attr.def.name == *word));
        let literal = anchor.operands.iter().find_map(|one| match &one.what {
            What::Number(number) => Some(format!("{} {}", one.role, canonical(number))),
            _ => None,
        });
        match (attr.map(|attr| &attr.what), literal) {
            (Some(AttrWhat::Words(words)), Some(literal)) if words.len() == 1 => {
                let key = (words[0].clone(), literal);
                by_key.entry(key).or_default().push((rule, at));
            }
            _ => vague.push((rule, at)),
        }
    }
    if by_key.is_empty() {
        return vec![vague];
    }
    let mut out: Vec<Vec<(usize, usize)>> = by_key.into_values().collect();
    for bucket in &mut out {
        bucket.extend(&vague);
        bucket.sort_unstable();
    }
    out.push(vague);
    out
}

fn canonical(number: &Literal) -> String {
    match number.bits(DType::F32) {
        Some(bits) => format!("{bits:x}"),
        None => number.text.clone(),
    }
}

fn meet(
    set: &RuleSet,
    (a, x): (&Rule, &Form),
    (b, y): (&Rule, &Form),
    file: usize,
) -> Option<Diagnostic> {
    let (better, worse) = match (set.driver, a.benefit >= b.benefit) {
        (Driver::SingleShot, _) | (_, true) => ((a, x), (b, y)),
        (_, false) => ((b, y), (a, x)),
    };
    let ordered = set.driver == Driver::SingleShot || a.benefit != b.benefit;
    let place = |rule: &Rule| match rule.file == file {
        true => Place::Span(rule.span.clone()),
        false => Place::None,
    };
    if ordered {
        // A rule with several forms is hidden only if each of them is; one form is the usual case.
        let hidden = worse
            .0
            .forms
            .iter()
            .all(|form| better.0.forms.iter().any(|other| covers(other, form)));
        let same_option = better.0.option.is_none() || better.0.option == worse.0.option;
        let allowed = worse.0.contract.needs.allow(better.0.contract.needs);
        if !(hidden && same_option && allowed) {
            return None;
        }
        let why = match set.driver {
            Driver::SingleShot => "stands before it".to_owned(),
            Driver::Greedy => format!("of benefit {}", better.0.benefit),
        };
        let text = format!(
            "rule `{}` never fires: `{}`, {why}, matches all it matches",
            worse.0.name, better.0.name
        );
        return Some(
            Diagnostic::error(place(worse.0), text)
                .related(place(better.0), "this one fires instead")
                .help("give the narrower rule the greater benefit, or put it first in a single-shot set"),
        );
    }
    if separated(x, y) {
        return None;
    }
    let text = format!(
        "rules `{}` and `{}` both fit some `{}`, and neither has the greater benefit",
        a.name,
        b.name,
        x.stmts[x.anchor].code.def().name
    );
    Some(
        Diagnostic::error(place(b), text)
            .label(format!("`{}`", b.name))
            .related(place(a), format!("`{}`", a.name))
            .help("give one of them a `benefit`, or tell them apart by an attribute, a literal or a dtype"),
    )
}

impl Sketch {
    fn new(form: &Form) -> Sketch {
        let mut at = BTreeMap::new();
        let mut paths = vec![Vec::new(); form.stmts.len()];
        at.insert(Vec::new(), form.anchor);
        for step in &form.plan {
            let (stmt, from, key) = match *step {
                Step::Writer { stmt, from, by, .. } => (stmt, from, (false, by)),
                Step::Reader { stmt, from, by, .. } | Step::Sibling { stmt, from, by, .. } => {
                    (stmt, from, (true, by))
                }
            };
            let mut path: Vec<(bool, usize)> = paths[from].clone();
            path.push(key);
            at.insert(path.clone(), stmt);
            paths[stmt] = path;
        }
        Sketch { at }
    }
}

/// Whether no instruction fits both.
fn separated(x: &Form, y: &Form) -> bool {
    let (one, other) = (Sketch::new(x), Sketch::new(y));
    one.at.iter().any(|(path, &a)| {
        other.at.get(path).is_some_and(|&b| {
            // Of several readers each form may mean another.
            let certain = path.iter().all(|step| !step.0);
            certain && apart((x, &x.stmts[a]), (y, &y.stmts[b]))
        })
    })
}

/// Whether no one instruction is both.
fn apart((x, a): (&Form, &Stmt), (y, b): (&Form, &Stmt)) -> bool {
    if a.code != b.code {
        return true;
    }
    let def = a.code.def();
    let attrs = def.attrs.iter().any(|attr| {
        let find = |stmt: &Stmt| stmt.attrs.iter().position(|one| one.def.name == attr.name);
        match (find(a), find(b)) {
            (Some(i), Some(j)) => values_apart(&a.attrs[i], &b.attrs[j]),
            (Some(i), None) => !b.open && needs(&a.attrs[i]),
            (None, Some(j)) => !a.open && needs(&b.attrs[j]),
            (None, None) => false,
        }
    });
    let roles = (0..def.operands.len()).any(|role| {
        let find = |stmt: &Stmt| stmt.operands.iter().position(|one| one.role == role);
        match (find(a), find(b)) {
            (Some(i), Some(j)) => {
                operands_apart((x, &a.operands[i].what), (y, &b.operands[j].what))
            }
            (Some(i), None) => !b.open && !a.operands[i].optional,
            (None, Some(j)) => !a.open && !b.operands[j].optional,
            (None, None) => false,
        }
    });
    // An instruction of constants alone is left to whoever folds constants.
    let constants = |form: &Form, stmt: &Stmt| -> Vec<usize> {
        let operands = stmt.operands.iter();
        operands
            .filter(|one| matches!(one.what, What::Tile(var) if uniform(form, var).is_some()))
            .map(|one| one.role)
            .collect()
    };
    let (one, other) = (constants(x, a), constants(y, b));
    let folded = !one.is_empty() && !other.is_empty() && one != other;
    attrs || roles || folded
}

fn needs(attr: &StmtAttr) -> bool {
    !attr.optional && !matches!(attr.what, AttrWhat::Absent)
}

fn values_apart(a: &StmtAttr, b: &StmtAttr) -> bool {
    if a.optional && b.optional {
        return false;
    }
    match (&a.what, &b.what) {
        (AttrWhat::Words(x), AttrWhat::Words(y)) => !x.iter().any(|word| y.contains(word)),
        (AttrWhat::Absent, _) => needs(b),
        (_, AttrWhat::Absent) => needs(a),
        (AttrWhat::Int(x), AttrWhat::Int(y)) => x != y,
        (AttrWhat::List(x), AttrWhat::List(y)) => x != y,
        (AttrWhat::Text(x), AttrWhat::Text(y)) => x != y,
        (AttrWhat::Number(x), AttrWhat::Number(y)) => canonical(x) != canonical(y),
        _ => false,
    }
}

fn operands_apart((x, a): (&Form, &What), (y, b): (&Form, &What)) -> bool {
    match (a, b) {
        (What::Number(x), What::Number(y)) => canonical(x) != canonical(y),
        (What::Tile(p), What::Tile(q)) => {
            let (one, other) = (domain(x, *p), domain(y, *q));
            let dtypes = !one.0.iter().any(|dtype| other.0.has(dtype));
            let literal = |form: &Form, var: VarId| {
                form.places(var)
                    .any(|(stmt, role)| form.stmts[stmt].code.def().operands[role].takes_literal())
            };
            let tiles = !literal(x, *p) && !literal(y, *q);
            let values = match (uniform(x, *p), uniform(y, *q)) {
                (Some(one), Some(other)) => {
                    canonical(&Literal::new(one)) != canonical(&Literal::new(other))
                }
                _ => false,
            };
            tiles && dtypes || values
        }
        _ => false,
    }
}

/// The number every element of a variable has to be.
fn uniform(form: &Form, var: VarId) -> Option<&str> {
    form.conds.iter().find_map(|cond| match cond {
        Cond::Call(constraint, args, _) if constraint.name == "uniform" => match &args[..] {
            [Arg::Tile(of), Arg::Number(text)] if *of == var => Some(text.as_str()),
            _ => None,
        },
        Cond::Call(constraint, args, _) if constraint.name == "zero" => match &args[..] {
            [Arg::Tile(of)] if *of == var => Some("0"),
            _ => None,
        },
        _ => None,
    })
}

/// Whether a form matches everything another does: both of one instruction, and each thing asked is
/// asked by the other as well.
fn covers(wide: &Form, narrow: &Form) -> bool {
    if wide.stmts.len() != 1 || narrow.stmts.len() != 1 {
        return false;
    }
    let (a, b) = (&wide.stmts[0], &narrow.stmts[0]);
    if a.code != b.code || b.open && !a.open {
        return false;
    }
    let def = a.code.def();
    let attrs = def.attrs.iter().all(|attr| {
        let find = |stmt: &Stmt| stmt.attrs.iter().position(|one| one.def.name == attr.name);
        match (find(a), find(b)) {
            (Some(i), Some(j)) => wider(&a.attrs[i], &b.attrs[j]),
            (Some(i), None) => a.attrs[i].optional || matches!(a.attrs[i].what, AttrWhat::Absent),
            (None, Some(_)) => a.open,
            (None, None) => true,
        }
    });
    let mut of: BTreeMap<VarId, VarId> = BTreeMap::new();
    let roles = (0..def.operands.len()).all(|role| {
        let find = |stmt: &Stmt| stmt.operands.iter().position(|one| one.role == role);
        match (find(a), find(b)) {
            (Some(i), Some(j)) => {
                let (p, q) = (&a.operands[i], &b.operands[j]);
                (p.optional || !q.optional)
                    && match (&p.what, &q.what) {
                        (What::Any, _) => true,
                        (What::Tile(p), What::Tile(q)) => *of.entry(*p).or_insert(*q) == *q,
                        (What::Literal(p), What::Literal(q)) => *of.entry(*p).or_insert(*q) == *q,
                        (What::Literal(_), What::Number(_)) => true,
                        (What::Number(x), What::Number(y)) => canonical(x) == canonical(y),
                        _ => false,
                    }
            }
            (Some(i), None) => a.operands[i].optional,
            (None, Some(_)) => a.open,
            (None, None) => true,
        }
    });
    // Conditions are compared by what they say of variables of one name.
    let conds = wide.conds.iter().all(|cond| {
        if let Cond::DType(var, set, _) = cond {
            let narrow_var = of.get(var).copied();
            let left = narrow_var.map(|var| domain(narrow, var).0);
            if left.is_some_and(|left| left.iter().all(|dtype| set.has(dtype))) {
                return true;
            }
        }
        let text = cond.text();
        let same_names = of
            .iter()
            .all(|(&p, &q)| wide.vars[p].name == narrow.vars[q].name);
        same_names && narrow.conds.iter().any(|other| other.text() == text)
    });
    attrs && roles && conds
}

fn wider(a: &StmtAttr, b: &StmtAttr) -> bool {
    if b.optional && !a.optional {
        return false;
    }
    match (&a.what, &b.what) {
        (AttrWhat::Bind(_), AttrWhat::Absent) => a.optional,
        (AttrWhat::Bind(_), _) => true,
        (AttrWhat::Words(x), AttrWhat::Words(y)) => y.iter().all(|word| x.contains(word)),
        (AttrWhat::Flag, AttrWhat::Flag) | (AttrWhat::Absent, AttrWhat::Absent) => true,
        (AttrWhat::Int(x), AttrWhat::Int(y)) => x == y,
        (AttrWhat::List(x), AttrWhat::List(y)) => x == y,
        (AttrWhat::Text(x), AttrWhat::Text(y)) => x == y,
        (AttrWhat::Number(x), AttrWhat::Number(y)) => canonical(x) == canonical(y),
        _ => false,
    }
}
