//! One instruction of a pattern, looked for or made: its words, operands and attributes.

use bir_dialect::bir::num::{DType, parse};
use bir_dialect::bir::ops::{AttrDef, AttrType, COMMON_ATTRS, OpCode, OpDef, Syntax};
use bir_dialect::text::diag::{Place as At, did_you_mean};

use super::{Checker, Half, Ty};
use crate::rule::{AttrWhat, Literal, Stmt, StmtAttr, StmtOperand, VarKind, What};
use crate::text::ast;
use crate::text::ast::Span;

impl Checker<'_> {
    pub(super) fn statement(&mut self, one: &ast::Statement, half: Half) -> Option<Stmt> {
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
            if half == Half::Match {
                self.bind_all(one);
            }
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

    /// Binds every name of an instruction nobody knows, so that one mistake is told once.
    fn bind_all(&mut self, one: &ast::Statement) {
        for operand in one.left.iter().chain(&one.right) {
            for word in &operand.words {
                if let ast::Word::Var(name) = word {
                    self.bind(name, VarKind::Attr);
                }
            }
            match &operand.place {
                ast::Place::Tile(name, _) => self.bind(name, VarKind::Tile),
                ast::Place::Attr(name, _) => self.bind(name, VarKind::Attr),
                _ => continue,
            };
        }
        for entry in &one.entries {
            if let Some(ast::Value::Var(name)) = &entry.value {
                self.bind(name, VarKind::Attr);
            }
        }
    }

    /// What must be there, is.
    pub(super) fn complete(&mut self, stmt: &Stmt, one: &ast::Statement, half: Half) {
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

    pub(super) fn operand(
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
            self.error(&one.span, def.one_too_many(left));
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
                Some(What::Number(Literal::new(&name.text)))
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
    pub(super) fn word<'w>(
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

    pub(super) fn entry(
        &mut self,
        one: &ast::Entry,
        def: &'static OpDef,
        half: Half,
        stmt: &mut Stmt,
    ) {
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
            Some(ast::Value::Any(span)) => {
                if half == Half::Rewrite {
                    let text = "`_` stands for anything; a rewrite needs something";
                    self.error(span, text);
                    return;
                }
                // A name nobody can write, so that nobody misses its use.
                let fresh = ast::Name {
                    text: format!("any{}'", self.vars.len()),
                    span: span.clone(),
                };
                Some(AttrWhat::Bind(self.bind(&fresh, VarKind::Attr)))
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
                    Some(AttrWhat::Number(Literal::new(&number.text)))
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

    pub(super) fn words_of(
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
}

fn enum_words(def: &'static OpDef, attr: &str) -> impl Iterator<Item = &'static str> + use<> {
    let words: &[&str] = match def.attr(attr).map(|attr| attr.ty) {
        Some(AttrType::Enum(words)) => words.words,
        _ => &[],
    };
    words.iter().copied()
}
