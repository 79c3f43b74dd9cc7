//! One pattern: names resolved against the op table, variables bound, instructions joined.

use bir_dialect::bir::num::{DType, parse};
use bir_dialect::bir::ops::{AttrDef, AttrType, COMMON_ATTRS, OpCode, OpDef, Syntax};
use bir_dialect::bir::space::{DTypeSet, SpaceSet};
use bir_dialect::text::diag::{Diagnostic, Place as At, did_you_mean};

use crate::constraints::{self, Param};
use crate::natives;
use crate::rule::{
    Action, Arg, Arith, AttrWhat, Cond, Flags, Form, Step, Stmt, StmtAttr, StmtOperand, Var, VarId,
    VarKind, What,
};
use crate::text::ast;
use crate::text::ast::Span;

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
                    true => "name it in the rewrite, or match any by the op's words".to_owned(),
                    false => "write `_` for an operand that may be anything".to_owned(),
                });
            }
        }
    }

    // ---- instructions ----

    fn statement(&mut self, one: &ast::Statement, half: Half) -> Option<Stmt> {
        let code =
            OpCode::from_name(&one.op.text).filter(|code| code.def().syntax == Syntax::Instruction);
        let Some(code) = code else {
            let known = OpCode::ALL
                .iter()
                .filter(|code| code.def().syntax == Syntax::Instruction)
                .map(|code| code.def().name);
            let help = did_you_mean(&one.op.text, known);
            let text = format!("unknown instruction `{}`", one.op.text);
            self.error(&one.op.span, text).help = help;
            return None;
        };
        let def = code.def();
        if half == Half::Rewrite && (one.keep || one.open) {
            let text = "`keep` and `..` belong to what is matched, not to what is made";
            self.error(&one.span, text);
        }
        let before = self.errors.len();
        let mut stmt = Stmt {
            code,
            keep: one.keep,
            open: one.open,
            operands: Vec::new(),
            attrs: Vec::new(),
            span: one.span.clone(),
        };
        let mut head = def.words;
        let sides = [(true, &one.left), (false, &one.right)];
        for (left, operands) in sides {
            for operand in operands {
                self.operand(operand, def, left, half, &mut head, &mut stmt);
            }
        }
        for entry in &one.entries {
            self.entry(entry, def, half, &mut stmt);
        }
        self.complete(&stmt, one, half);
        (self.errors.len() == before).then_some(stmt)
    }

    /// What must be there, is.
    fn complete(&mut self, stmt: &Stmt, one: &ast::Statement, half: Half) {
        if stmt.open {
            return;
        }
        let def = stmt.code.def();
        for attr in def.attrs.iter().filter(|attr| attr.required) {
            if stmt.attrs.iter().any(|one| one.def.name == attr.name) {
                continue;
            }
            let text = match half {
                Half::Match => format!(
                    "can never match: `{}` always has attribute `{}`, which the pattern does not mention",
                    def.name, attr.name
                ),
                Half::Rewrite => format!("`{}` needs attribute `{}`", def.name, attr.name),
            };
            self.error(&one.span, text);
        }
        for role in def
            .operands
            .iter()
            .enumerate()
            .filter(|(_, role)| !role.optional)
        {
            if stmt.operands.iter().any(|one| one.role == role.0) {
                continue;
            }
            let name = role.1.name;
            let text = match half {
                Half::Match => format!(
                    "can never match: `{}` always has operand `{name}`, which the pattern does not mention",
                    def.name
                ),
                Half::Rewrite => format!("`{}` needs operand `{name}`", def.name),
            };
            self.error(&one.span, text);
        }
    }

    fn operand(
        &mut self,
        one: &ast::Operand,
        def: &'static OpDef,
        left: bool,
        half: Half,
        head: &mut &'static [&'static str],
        stmt: &mut Stmt,
    ) {
        let mut words = one.words.iter().peekable();
        for attr in std::mem::take(head) {
            self.word(attr, &mut words, def, half, stmt);
        }
        let mut optional = false;
        let role = match words.next() {
            None => def.operands.iter().enumerate().position(|(at, role)| {
                role.is_left() == left
                    && role.keyword.is_none()
                    && !stmt.operands.iter().any(|one| one.role == at)
            }),
            Some(ast::Word::Var(name)) => {
                let text = format!(
                    "`{}` has no word here for `${}` to stand for",
                    def.name, name.text
                );
                self.error(&name.span, text);
                return;
            }
            Some(ast::Word::Choice { names, maybe }) => {
                optional = *maybe;
                let name = &names[0];
                let found = def.operands.iter().position(|role| {
                    role.is_left() == left
                        && (role.keyword == Some(&name.text) || role.name == name.text)
                });
                let Some(found) = found else {
                    let known = def
                        .operands
                        .iter()
                        .filter(|role| role.is_left() == left)
                        .map(|role| role.keyword.unwrap_or(role.name))
                        .chain(def.words.iter().flat_map(|word| enum_words(def, word)));
                    let help = did_you_mean(&name.text, known);
                    let text =
                        format!("`{}` has no operand or word `{}` here", def.name, name.text);
                    self.error(&name.span, text).help = help;
                    return;
                };
                if stmt.operands.iter().any(|one| one.role == found) {
                    let text = format!(
                        "operand `{}` of `{}` is given twice",
                        def.operands[found].name, def.name
                    );
                    self.error(&name.span, text);
                    return;
                }
                for attr in def.operands[found].words {
                    self.word(attr, &mut words, def, half, stmt);
                }
                if let Some(extra) = words.next() {
                    let (text, span) = match extra {
                        ast::Word::Choice { names, .. } => (&names[0].text, &names[0].span),
                        ast::Word::Var(name) => (&name.text, &name.span),
                    };
                    let text = format!("unexpected word `{text}`");
                    self.error(span, text);
                    return;
                }
                Some(found)
            }
        };
        let Some(role) = role else {
            let limit = def
                .operands
                .iter()
                .filter(|role| role.is_left() == left)
                .count();
            let side = if left { "before" } else { "behind" };
            let text = format!(
                "`{}` takes {limit} operands {side} `<-`, found one more",
                def.name
            );
            self.error(&one.span, text);
            return;
        };
        let entry = &def.operands[role];
        if entry.is_register() {
            let text = format!(
                "operand `{}` of `{}` is a register; patterns match memory and literals",
                entry.name, def.name
            );
            self.error(&one.span, text);
            return;
        }
        let literal = |checker: &mut Self, what: &str, span: &Span| {
            let fine = entry.takes_literal();
            if !fine {
                let text = format!(
                    "operand `{}` of `{}` is always a location, found {what}",
                    entry.name, def.name
                );
                checker.error(span, text);
            }
            fine
        };
        let what = match &one.place {
            ast::Place::Tile(name, maybe) => {
                optional |= maybe;
                match half {
                    Half::Match => Some(What::Tile(self.bind(name, VarKind::Tile))),
                    Half::Rewrite => self.used(name, VarKind::Tile).map(What::Tile),
                }
            }
            ast::Place::Attr(name, maybe) => {
                optional |= maybe;
                if !literal(self, &format!("the attribute `${}`", name.text), &name.span) {
                    return;
                }
                let id = match half {
                    Half::Match => Some(self.bind(name, VarKind::Attr)),
                    Half::Rewrite => self.used(name, VarKind::Attr),
                };
                if let Some(id) = id {
                    self.typed(id, Ty::Number, &name.span);
                }
                id.map(What::Literal)
            }
            ast::Place::Number(name) => {
                if !literal(self, &format!("the number `{}`", name.text), &name.span) {
                    return;
                }
                let fits = DType::ALL
                    .iter()
                    .any(|&dtype| parse(dtype, &name.text).is_ok());
                if !fits {
                    let text =
                        format!("can never match: no dtype holds the number `{}`", name.text);
                    self.error(&name.span, text);
                }
                Some(What::Number(name.text.clone()))
            }
            ast::Place::Any(span) => {
                if half == Half::Rewrite {
                    self.error(span, "`_` stands for anything; a rewrite needs something");
                }
                Some(What::Any)
            }
            ast::Place::Sum(sum) => {
                if half == Half::Match {
                    let text = "arithmetic belongs to the rewrite; compare numbers in `where`";
                    self.error(&sum.span(), text);
                }
                if !literal(self, "a number", &sum.span()) {
                    return;
                }
                self.arith(sum).map(What::Sum)
            }
        };
        if optional && !entry.optional {
            let text = format!(
                "operand `{}` of `{}` is never absent; `?` is for optional ones",
                entry.name, def.name
            );
            self.error(&one.span, text);
        }
        if let Some(what) = what {
            stmt.operands.push(StmtOperand {
                role,
                optional,
                what,
                span: one.span.clone(),
            });
        }
    }

    /// The word of an enum attribute, if the next one is.
    fn word<'w>(
        &mut self,
        attr: &str,
        words: &mut std::iter::Peekable<impl Iterator<Item = &'w ast::Word>>,
        def: &'static OpDef,
        half: Half,
        stmt: &mut Stmt,
    ) {
        let Some(entry) = def.attr(attr) else { return };
        let Some(next) = words.peek() else { return };
        let what = match next {
            ast::Word::Var(name) => {
                let id = match half {
                    Half::Match => Some(self.bind(name, VarKind::Attr)),
                    Half::Rewrite => self.used(name, VarKind::Attr),
                };
                let Some(id) = id else {
                    words.next();
                    return;
                };
                self.typed(id, Ty::of(entry.ty), &name.span);
                (AttrWhat::Bind(id), false, name.span.clone())
            }
            ast::Word::Choice { names, maybe } => {
                let known: Vec<&str> = enum_words(def, attr).collect();
                let other = names
                    .iter()
                    .find(|name| !known.contains(&name.text.as_str()));
                if let Some(other) = other {
                    // An optional word may be left out; then this one is a keyword.
                    let keyword = def
                        .operands
                        .iter()
                        .any(|role| role.keyword == Some(&other.text) || role.name == other.text);
                    if !entry.required && (keyword || names.len() == 1) {
                        return;
                    }
                    let help = did_you_mean(&other.text, known.iter().copied());
                    let text = format!(
                        "attribute `{attr}` of `{}` has no word `{}`",
                        def.name, other.text
                    );
                    self.error(&other.span, text).help = help;
                    words.next();
                    return;
                }
                if half == Half::Rewrite && names.len() > 1 {
                    self.error(&names[0].span, "a rewrite needs one word, found a choice");
                }
                let list = names.iter().map(|name| name.text.clone()).collect();
                (AttrWhat::Words(list), *maybe, names[0].span.clone())
            }
        };
        words.next();
        let (what, optional, span) = what;
        if optional && entry.required {
            let text = format!("attribute `{attr}` of `{}` is never absent", def.name);
            self.error(&span, text);
        }
        stmt.attrs.push(StmtAttr {
            def: entry,
            what,
            optional,
            span,
        });
    }

    fn entry(&mut self, one: &ast::Entry, def: &'static OpDef, half: Half, stmt: &mut Stmt) {
        let name = &one.name;
        let common = COMMON_ATTRS.iter().find(|attr| attr.name == name.text);
        if let Some(attr) = common.filter(|attr| attr.name != "engine") {
            let text = format!(
                "`{}` belongs to the instruction, not to the pattern: the rewriter hands it on",
                attr.name
            );
            self.error(&name.span, text);
            return;
        }
        let Some(entry) = def.attr(&name.text).or(common) else {
            let known = def.attrs.iter().map(|attr| attr.name);
            let help = did_you_mean(&name.text, known);
            let text = format!("unknown attribute `{}` of `{}`", name.text, def.name);
            self.error(&name.span, text).help = help;
            return;
        };
        if let Some(first) = stmt.attrs.iter().find(|attr| attr.def.name == entry.name) {
            let at = first.span.clone();
            let text = format!("attribute `{}` is given twice", name.text);
            let error = self.error(&name.span, text);
            error.related = vec![(At::Span(at), "first here".to_owned())];
            return;
        }
        let wanted = |found: &str| {
            format!(
                "attribute `{}` of `{}` is {}, found {found}",
                entry.name,
                def.name,
                Ty::of(entry.ty).noun()
            )
        };
        let flag = matches!(entry.ty, AttrType::Flag | AttrType::Accumulate);
        let what = match &one.value {
            None if flag => Some(AttrWhat::Flag),
            None if one.maybe => None,
            None => {
                let text = format!("attribute `{}` of `{}` needs a value", entry.name, def.name);
                self.error(&name.span, text);
                return;
            }
            Some(ast::Value::Var(var)) => {
                let id = match half {
                    Half::Match => Some(self.bind(var, VarKind::Attr)),
                    Half::Rewrite => self.used(var, VarKind::Attr),
                };
                let Some(id) = id else { return };
                self.typed(id, Ty::of(entry.ty), &var.span);
                Some(AttrWhat::Bind(id))
            }
            Some(ast::Value::Choice(names)) => match self.words_of(names, entry, def, half) {
                Some(what) => Some(what),
                None => return,
            },
            Some(ast::Value::Number(number)) => match entry.ty {
                AttrType::Int { min, max } => match number.text.parse::<i64>() {
                    Ok(int) if (min..=max).contains(&int) => Some(AttrWhat::Int(int)),
                    _ => {
                        let text = format!(
                            "can never match: attribute `{}` of `{}` is an integer from {min} to {max}, found `{}`",
                            entry.name, def.name, number.text
                        );
                        self.error(&number.span, text);
                        return;
                    }
                },
                AttrType::Number(dtype) if parse(dtype, &number.text).is_ok() => {
                    Some(AttrWhat::Number(number.text.clone()))
                }
                _ => {
                    self.error(&number.span, wanted("a number"));
                    return;
                }
            },
            Some(ast::Value::List(list, span)) => match entry.ty {
                AttrType::IntList { min, max }
                    if list.iter().all(|int| (min..=max).contains(int)) =>
                {
                    Some(AttrWhat::List(list.clone()))
                }
                _ => {
                    self.error(span, wanted("a list that no instruction has"));
                    return;
                }
            },
            Some(ast::Value::Text(text)) => match Ty::of(entry.ty) {
                Ty::Text => Some(AttrWhat::Text(text.text.clone())),
                _ => {
                    self.error(&text.span, wanted("a text"));
                    return;
                }
            },
            Some(ast::Value::Sum(sum)) => {
                if half == Half::Match {
                    let text = "arithmetic belongs to the rewrite; compare numbers in `where`";
                    self.error(&sum.span(), text);
                    return;
                }
                if Ty::of(entry.ty) != Ty::Number {
                    self.error(&sum.span(), wanted("a number"));
                    return;
                }
                match self.arith(sum) {
                    Some(sum) => Some(AttrWhat::Sum(sum)),
                    None => return,
                }
            }
        };
        if one.maybe && entry.required {
            let text = format!(
                "attribute `{}` of `{}` is never absent",
                entry.name, def.name
            );
            self.error(&name.span, text);
            return;
        }
        // `{negate?}` says that it does not matter.
        let (what, optional) = match (what, half) {
            (Some(what), _) => (
                what,
                one.maybe || flag && matches!(one.value, Some(ast::Value::Var(_))),
            ),
            (None, Half::Rewrite) => {
                self.error(&name.span, "`?` belongs to what is matched");
                return;
            }
            (None, Half::Match) => {
                let any = ast::Name {
                    text: format!("{}'", entry.name),
                    span: name.span.clone(),
                };
                (AttrWhat::Bind(self.bind(&any, VarKind::Attr)), true)
            }
        };
        stmt.attrs.push(StmtAttr {
            def: entry,
            what,
            optional,
            span: name.span.clone(),
        });
    }

    fn words_of(
        &mut self,
        names: &[ast::Name],
        entry: &'static AttrDef,
        def: &'static OpDef,
        half: Half,
    ) -> Option<AttrWhat> {
        let first = &names[0];
        if names.len() == 1 && (first.text == "absent" || first.text == "false") && !entry.required
        {
            return Some(AttrWhat::Absent);
        }
        if names.len() == 1 && first.text == "true" && Ty::of(entry.ty) == Ty::Flag {
            return Some(AttrWhat::Flag);
        }
        if half == Half::Rewrite && names.len() > 1 {
            self.error(&first.span, "a rewrite needs one word, found a choice");
            return None;
        }
        match entry.ty {
            AttrType::Enum(words) => {
                let other = names
                    .iter()
                    .find(|name| !words.words.contains(&name.text.as_str()));
                if let Some(other) = other {
                    let help = did_you_mean(&other.text, words.words.iter().copied());
                    let text = format!(
                        "attribute `{}` of `{}` has no word `{}`",
                        entry.name, def.name, other.text
                    );
                    self.error(&other.span, text).help = help;
                    return None;
                }
                Some(AttrWhat::Words(
                    names.iter().map(|name| name.text.clone()).collect(),
                ))
            }
            AttrType::DType => Some(AttrWhat::Words(
                names.iter().map(|name| name.text.clone()).collect(),
            )),
            _ => {
                let text = format!(
                    "attribute `{}` of `{}` is {}, found the word `{}`",
                    entry.name,
                    def.name,
                    Ty::of(entry.ty).noun(),
                    first.text
                );
                self.error(&first.span, text);
                None
            }
        }
    }

    // ---- conditions ----

    fn condition(&mut self, one: &ast::Condition) -> Option<Cond> {
        let text = crate::text::condition_text(one);
        Some(match one {
            ast::Condition::And(list) => {
                Cond::All(list.iter().filter_map(|one| self.condition(one)).collect())
            }
            ast::Condition::Or(list) => {
                Cond::Any(list.iter().filter_map(|one| self.condition(one)).collect())
            }
            ast::Condition::Not(inner, _) => Cond::Not(Box::new(self.condition(inner)?)),
            ast::Condition::Compare(a, op, b) => {
                let (a, b) = (self.arith(a), self.arith(b));
                Cond::Compare(a?, op.clone(), b?)
            }
            ast::Condition::Named {
                name,
                arguments,
                span,
            } => {
                if let Some(flag) = Flags::NAMES.into_iter().find(|flag| *flag == name.text) {
                    // `nsz(?x)` reads well; the flag is the pipeline's and of no operand.
                    for argument in arguments {
                        self.argument(argument);
                    }
                    return Some(Cond::Allowed(flag));
                }
                if let Some(set) = constraints::dtypes(&name.text) {
                    let args = self.arguments(&name.text, &[Param::Tile], arguments, span)?;
                    let Some(Arg::Tile(var)) = args.first() else {
                        return None;
                    };
                    return Some(Cond::DType(*var, set, text));
                }
                let Some(constraint) = constraints::find(&name.text) else {
                    let help = did_you_mean(&name.text, constraints::names());
                    let text = format!("unknown constraint `{}`", name.text);
                    let error = self.error(&name.span, text);
                    error.help = help.or(Some(
                        "`bir-pattern list --constraints` shows all".to_owned(),
                    ));
                    return None;
                };
                let args = self.arguments(&name.text, constraint.params, arguments, span)?;
                Cond::Call(constraint, args, text)
            }
        })
    }

    fn arguments(
        &mut self,
        name: &str,
        params: &[Param],
        arguments: &[ast::Argument],
        span: &Span,
    ) -> Option<Vec<Arg>> {
        if arguments.len() != params.len() {
            let wanted: Vec<String> = params.iter().map(|param| param.noun()).collect();
            let text = format!(
                "`{name}` is given {} arguments, expected {}: {}",
                arguments.len(),
                params.len(),
                wanted.join(", ")
            );
            self.error(span, text);
            return None;
        }
        let mut out = Vec::new();
        for (param, argument) in params.iter().zip(arguments) {
            let given = self.argument(argument)?;
            let fits = match (param, &given) {
                (Param::Tile, Arg::Tile(_)) | (Param::Attr, Arg::Attr(_)) => true,
                (Param::Number, Arg::Number(_)) => true,
                (Param::Word(known), Arg::Words(words)) => {
                    words.iter().all(|word| known.contains(&word.as_str()))
                }
                _ => false,
            };
            if !fits {
                let text = format!("`{name}` expects {} here", param.noun());
                let at = argument_span(argument);
                self.error(&at, text);
                return None;
            }
            out.push(given);
        }
        Some(out)
    }

    fn argument(&mut self, argument: &ast::Argument) -> Option<Arg> {
        Some(match argument {
            ast::Argument::Tile(name) | ast::Argument::Term(name) => {
                Arg::Tile(self.used(name, VarKind::Tile)?)
            }
            ast::Argument::Attr(name) => Arg::Attr(self.used(name, VarKind::Attr)?),
            ast::Argument::Number(name) => Arg::Number(name.text.clone()),
            ast::Argument::Choice(names) => {
                Arg::Words(names.iter().map(|name| name.text.clone()).collect())
            }
        })
    }

    fn arith(&mut self, sum: &ast::Arith) -> Option<Arith> {
        Some(match sum {
            ast::Arith::Var(name) => {
                let id = self.used(name, VarKind::Attr)?;
                self.typed(id, Ty::Number, &name.span);
                Arith::Var(id)
            }
            ast::Arith::Number(name) => {
                let bits = parse(DType::F32, &name.text);
                let value: Option<f64> = name.text.parse().ok().or_else(|| {
                    bits.ok()
                        .and_then(|bits| bir_dialect::bir::num::to_f64(DType::F32, bits))
                });
                match value {
                    Some(value) => Arith::Number(value),
                    None => {
                        let text = format!("`{}` is no number to compute with", name.text);
                        self.error(&name.span, text);
                        return None;
                    }
                }
            }
            ast::Arith::Binary(a, op, b) => {
                let (a, b) = (self.arith(a), self.arith(b));
                Arith::Binary(Box::new(a?), *op, Box::new(b?))
            }
        })
    }

    fn action(&mut self, one: &ast::Action) -> Option<Action> {
        match one {
            ast::Action::Make(stmt) => self.statement(stmt, Half::Rewrite).map(Action::Make),
            ast::Action::Call {
                name,
                arguments,
                span,
            } => {
                let Some(native) = natives::find(&name.text) else {
                    let known = natives::NATIVES.iter().map(|one| one.name);
                    let help = did_you_mean(&name.text, known);
                    let text = format!("unknown registered rewrite `{}`", name.text);
                    self.error(&name.span, text).help = help;
                    return None;
                };
                let args = self.arguments(&name.text, native.params, arguments, span)?;
                Some(Action::Call(native, args))
            }
        }
    }

    // ---- the whole ----

    /// Each result has one writer, and is read behind it.
    fn dataflow(&mut self, form: &Form) {
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
    fn join(&mut self, form: &mut Form) {
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
                    "`{}` shares no result with the other instructions, so nothing leads to it",
                    form.stmts[number].code.def().name
                );
                let span = form.stmts[number].span.clone();
                self.error(&span, text).help =
                    Some("let one instruction read what the other writes".to_owned());
            }
        }
    }

    fn place(&mut self, form: &mut Form, pattern: &ast::Pattern) {
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
    fn results(&mut self, form: &Form, pattern: &ast::Pattern) {
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
    fn domains(&mut self, form: &Form) {
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
    None
}

fn operand_span(form: &Form, (stmt, role): (usize, usize)) -> Span {
    let operands = &form.stmts[stmt].operands;
    let found = operands.iter().find(|one| one.role == role);
    found.map_or(form.stmts[stmt].span.clone(), |one| one.span.clone())
}

fn argument_span(argument: &ast::Argument) -> Span {
    match argument {
        ast::Argument::Tile(name)
        | ast::Argument::Term(name)
        | ast::Argument::Attr(name)
        | ast::Argument::Number(name) => name.span.clone(),
        ast::Argument::Choice(names) => {
            let end = names.last().map_or(0, |name| name.span.end);
            names.first().map_or(0, |name| name.span.start)..end
        }
    }
}

fn enum_words(def: &'static OpDef, attr: &str) -> impl Iterator<Item = &'static str> + use<> {
    let words: &[&str] = match def.attr(attr).map(|attr| attr.ty) {
        Some(AttrType::Enum(words)) => words.words,
        _ => &[],
    };
    words.iter().copied()
}
