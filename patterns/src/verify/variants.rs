//! The forms instances are made of: that of the rule, and those with what it leaves open filled in.
//!
//! * `_` becomes a variable nobody else has.
//! * An instruction that ends in `..` takes further operands and attributes: those it cannot be without
//!   are in every form, and there is a form for each of the others, for every two, and for all together.
//!
//! Variables of the rule keep their numbers, so that its conditions speak of the same ones.

use bir_dialect::bir::ops::{AttrDef, AttrType};

use crate::rule::{AttrWhat, Form, StmtAttr, StmtOperand, Var, VarKind, What};

/// Something an instruction may have besides what the rule says.
#[derive(Clone, Copy)]
enum Extra {
    Operand(usize),
    Attr(&'static AttrDef),
}

/// The form of a rule with every `_` named, and every instruction whole.
pub(super) fn named(form: &Form) -> Form {
    let mut out = form.clone();
    for stmt in 0..out.stmts.len() {
        for operand in 0..out.stmts[stmt].operands.len() {
            if matches!(out.stmts[stmt].operands[operand].what, What::Any) {
                let var = fresh(&mut out, "any", VarKind::Tile);
                out.stmts[stmt].operands[operand].what = What::Tile(var);
            }
        }
    }
    for stmt in (0..form.stmts.len()).filter(|&stmt| form.stmts[stmt].open) {
        let missing = extras(&out, stmt, true);
        out = with(&out, stmt, &missing);
    }
    out
}

/// Forms with more than the rule mentions, of a form that is [`named`].
pub(super) fn opened(form: &Form) -> Vec<Form> {
    let mut out = Vec::new();
    for stmt in (0..form.stmts.len()).filter(|&stmt| form.stmts[stmt].open) {
        let extras = extras(form, stmt, false);
        let mut sets: Vec<Vec<Extra>> = Vec::new();
        for (at, &one) in extras.iter().enumerate() {
            sets.push(vec![one]);
            sets.extend(extras[at + 1..].iter().map(|&other| vec![one, other]));
        }
        if extras.len() > 2 {
            sets.push(extras);
        }
        out.extend(sets.iter().map(|set| with(form, stmt, set)));
    }
    out
}

/// What an instruction must have, or what it may have, that the form does not mention.
fn extras(form: &Form, stmt: usize, required: bool) -> Vec<Extra> {
    let stmt = &form.stmts[stmt];
    let def = stmt.code.def();
    let operands = def
        .operands
        .iter()
        .enumerate()
        .filter(|(number, role)| {
            let mentioned = stmt.operands.iter().any(|one| one.role == *number);
            let wanted = role.optional != required && !role.variadic;
            wanted && !role.is_register() && !mentioned
        })
        .map(|(number, _)| Extra::Operand(number));
    let attrs = def.attrs.iter().filter(|attr| {
        let mentioned = stmt.attrs.iter().any(|one| one.def.name == attr.name);
        let sampled = matches!(
            attr.ty,
            AttrType::Flag
                | AttrType::Accumulate
                | AttrType::Int { .. }
                | AttrType::IntList { .. }
                | AttrType::Number(_)
                | AttrType::Enum(_)
                | AttrType::Pattern
        );
        attr.required == required && sampled && !mentioned
    });
    operands.chain(attrs.map(Extra::Attr)).collect()
}

fn with(form: &Form, stmt: usize, extras: &[Extra]) -> Form {
    let mut out = form.clone();
    let span = out.stmts[stmt].span.clone();
    for extra in extras {
        match *extra {
            Extra::Operand(role) => {
                let var = fresh(&mut out, "more", VarKind::Tile);
                out.stmts[stmt].operands.push(StmtOperand {
                    role,
                    optional: false,
                    what: What::Tile(var),
                    span: span.clone(),
                });
            }
            Extra::Attr(def) => {
                let var = fresh(&mut out, "more", VarKind::Attr);
                out.stmts[stmt].attrs.push(StmtAttr {
                    def,
                    what: AttrWhat::Bind(var),
                    optional: false,
                    span: span.clone(),
                });
            }
        }
    }
    out
}

/// A new variable whose name nobody has.
fn fresh(form: &mut Form, stem: &str, kind: VarKind) -> usize {
    let number = form.vars.len();
    let mut name = format!("{stem}{number}");
    while form.vars.iter().any(|var| var.name == name) {
        name.push('_');
    }
    form.vars.push(Var {
        name,
        kind,
        span: 0..0,
    });
    number
}
