//! One pattern: names resolved against the op table, variables bound, instructions joined.
//!
//! * this file – the order of the checks, and variables;
//! * `instruction` – one instruction, looked for or made; `condition` – what is asked and computed;
//! * `whole` – a form as a whole: how instructions hang together, results, dtypes.

mod condition;
mod instruction;
mod whole;

use bir_dialect::bir::ops::AttrType;
use bir_dialect::text::diag::{Diagnostic, Place as At, did_you_mean};

use crate::rule::{Action, Cond, Form, Stmt, Var, VarId, VarKind};
use crate::text::ast;
use crate::text::ast::Span;
pub(crate) use whole::domain;

/// Instructions of a pattern: every one is joined to the others, and asked for at run time.
const MAX_STATEMENTS: usize = 64;

/// What an attribute variable holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Enum(&'static str),
    Number,
    List,
    Flag,
    Text,
    Other,
}

impl Ty {
    fn of(ty: AttrType) -> Ty {
        match ty {
            AttrType::Enum(def) => Ty::Enum(def.name),
            AttrType::Int { .. } | AttrType::Number(_) => Ty::Number,
            AttrType::IntList { .. } => Ty::List,
            AttrType::Flag => Ty::Flag,
            AttrType::Str | AttrType::Symbol | AttrType::DType => Ty::Text,
            _ => Ty::Other,
        }
    }

    fn noun(self) -> String {
        match self {
            Ty::Enum(name) => format!("a word of `{name}`"),
            Ty::Number => "a number".to_owned(),
            Ty::List => "a list".to_owned(),
            Ty::Flag => "a flag".to_owned(),
            Ty::Text => "a text".to_owned(),
            Ty::Other => "an attribute".to_owned(),
        }
    }
}

/// Which half of a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Match,
    Rewrite,
}

/// Reads patterns of one rule.
pub(super) struct Checker<'d> {
    errors: &'d mut Vec<Diagnostic>,
    /// How the rule writes operands: `%` or `?`.
    sign: char,
    vars: Vec<Var>,
    tys: Vec<Option<(Ty, Span)>>,
    /// How often each is mentioned.
    uses: Vec<u32>,
}

impl<'d> Checker<'d> {
    pub(super) fn new(errors: &'d mut Vec<Diagnostic>, sign: char) -> Checker<'d> {
        Checker {
            errors,
            sign,
            vars: Vec::new(),
            tys: Vec::new(),
            uses: Vec::new(),
        }
    }

    fn error(&mut self, span: &Span, message: impl Into<String>) -> &mut Diagnostic {
        let message = message.into();
        let place = At::Span(span.clone());
        // Forms of one rule repeat what is wrong with it.
        let known = self
            .errors
            .iter()
            .position(|error| error.place == place && error.message == message);
        let at = known.unwrap_or_else(|| {
            self.errors.push(Diagnostic::error(place, message));
            self.errors.len() - 1
        });
        &mut self.errors[at]
    }

    /// The form of a pattern; `None` where something is wrong with it.
    pub(super) fn form(&mut self, pattern: &ast::Pattern) -> Option<Form> {
        let before = self.errors.len();
        if pattern.statements.is_empty() {
            let text = format!("pattern `{}` matches no instruction", pattern.name.text);
            self.error(&pattern.name.span, text);
        }
        if let Some(one) = pattern.statements.get(MAX_STATEMENTS) {
            let text = format!("a pattern matches {MAX_STATEMENTS} instructions at most");
            self.error(&one.span, text);
            return None;
        }
        let stmts: Vec<Option<Stmt>> = pattern
            .statements
            .iter()
            .map(|one| self.statement(one, Half::Match))
            .collect();
        let conds: Vec<Option<Cond>> = pattern
            .conditions
            .iter()
            .map(|one| self.condition(one))
            .collect();
        let actions: Vec<Option<Action>> =
            pattern.actions.iter().map(|one| self.action(one)).collect();
        let calls = actions
            .iter()
            .filter(|one| matches!(one, Some(Action::Call(..))))
            .count();
        if calls > 1 {
            self.error(&pattern.rewrite_span, "a rewrite has one `call` at most");
        }
        if self.errors.len() > before {
            return None;
        }
        let mut form = Form {
            vars: std::mem::take(&mut self.vars),
            stmts: stmts.into_iter().collect::<Option<_>>()?,
            conds: conds.into_iter().collect::<Option<_>>()?,
            actions: actions.into_iter().collect::<Option<_>>()?,
            at: 0,
            anchor: 0,
            plan: Vec::new(),
        };
        self.unused(&form);
        self.dataflow(&form);
        if self.errors.len() == before {
            self.join(&mut form);
            self.place(&mut form, pattern);
            self.results(&form, pattern);
            self.domains(&form);
        }
        (self.errors.len() == before).then_some(form)
    }

    // ---- variables ----

    fn known(&self, name: &str, kind: VarKind) -> Option<VarId> {
        self.vars
            .iter()
            .position(|var| var.kind == kind && var.name == name)
    }

    fn bind(&mut self, name: &ast::Name, kind: VarKind) -> VarId {
        let id = self.known(&name.text, kind).unwrap_or_else(|| {
            self.vars.push(Var {
                name: name.text.clone(),
                kind,
                span: name.span.clone(),
            });
            self.tys.push(None);
            self.uses.push(0);
            self.vars.len() - 1
        });
        self.uses[id] += 1;
        id
    }

    /// A variable where it is used: it has to be bound.
    fn used(&mut self, name: &ast::Name, kind: VarKind) -> Option<VarId> {
        if let Some(id) = self.known(&name.text, kind) {
            self.uses[id] += 1;
            return Some(id);
        }
        let sign = match kind {
            VarKind::Tile => self.sign,
            VarKind::Attr => '$',
        };
        let names: Vec<String> = self
            .vars
            .iter()
            .filter(|var| var.kind == kind)
            .map(|var| var.name.clone())
            .collect();
        let help = did_you_mean(&name.text, names.iter().map(String::as_str)).map(|help| {
            help.replace('`', &format!("`{sign}"))
                .replace(&format!("`{sign}?"), "`?")
        });
        let text = format!("`{sign}{}` is not bound by what is matched", name.text);
        let error = self.error(&name.span, text);
        error.help = help;
        None
    }

    fn typed(&mut self, id: VarId, ty: Ty, span: &Span) {
        match self.tys[id].clone() {
            None => self.tys[id] = Some((ty, span.clone())),
            Some((first, at)) if first != ty => {
                let name = self.vars[id].name.clone();
                let text = format!(
                    "`${name}` is {} here, and {} where it is bound",
                    ty.noun(),
                    first.noun()
                );
                let error = self.error(span, text);
                if error.related.is_empty() {
                    error.related.push((At::Span(at), "bound here".to_owned()));
                }
            }
            Some(_) => {}
        }
    }

    fn unused(&mut self, form: &Form) {
        for (id, var) in form.vars.iter().enumerate() {
            // A law may forget a variable: `x * 0 = 0`.
            let law = self.sign == '?' && var.kind == VarKind::Tile;
            if self.uses[id] == 1 && !law && !var.name.ends_with('\'') {
                let sign = if var.kind == VarKind::Tile {
                    self.sign
                } else {
                    '$'
                };
                let text = format!("`{sign}{}` is bound and never used", var.name);
                let kept = var.kind == VarKind::Attr;
                let error = self.error(&var.span, text);
                error.help = Some(match kept {
                    true => "ask or use it, or end the dictionary in `..` where an attribute may be anything".to_owned(),
                    false => "write `_` for an operand that may be anything".to_owned(),
                });
            }
        }
    }

    // ---- instructions ----
}
