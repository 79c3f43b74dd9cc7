//! The canonical layout of a `.pat` file.
//!
//! Invariants:
//! * what is formatted reads back to the same tree, and formats to the same bytes;
//! * every comment is kept: on a line of its own before what follows it, or at the end of the line of
//!   what it stands beside.

use std::fmt::Write as _;

use super::ast::*;

/// A line goes on in the next one past so many characters.
const WIDTH: usize = 100;

/// Formats a file; `text` is what it was read from.
pub fn format(file: &File, text: &str) -> String {
    let mut out = Printer {
        text,
        comments: file.comments.clone().into_iter().peekable(),
        out: String::new(),
        depth: 0,
        last: 0,
    };
    for item in &file.items {
        out.item(item);
    }
    out.before(text.len());
    out.out
}

struct Printer<'a> {
    text: &'a str,
    comments: std::iter::Peekable<std::vec::IntoIter<(Span, String)>>,
    out: String,
    depth: usize,
    /// Where what was printed last ends in the source.
    last: usize,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Whether the source has an empty line between two places.
    fn gap(&self, from: usize, to: usize) -> bool {
        let between = self.text.get(from..to).unwrap_or("");
        let mut ends = between.matches('\n').count();
        // The end of a comment is not part of its span.
        ends -= usize::from(
            ends > 0 && between.trim_end_matches(['\n', ' ', '\t', '\r']).len() == between.len(),
        );
        ends >= 2
    }

    /// Comments before a place, on lines of their own.
    fn before(&mut self, at: usize) {
        while let Some((span, text)) = self.comments.next_if(|(span, _)| span.start < at) {
            if self.depth == 0 && !self.out.is_empty() && self.gap(self.last, span.start) {
                self.blank();
            }
            self.line(&text);
            self.last = span.end;
        }
    }

    /// A comment at the end of the line that ends at a place.
    fn beside(&mut self, at: usize) {
        self.last = at;
        let text = self.text;
        let same_line = |span: &Span| {
            span.start >= at
                && text
                    .get(at..span.start)
                    .is_some_and(|gap| !gap.contains('\n'))
        };
        if let Some((span, comment)) = self.comments.next_if(|(span, _)| same_line(span)) {
            self.out.pop();
            let _ = writeln!(self.out, "  {comment}");
            self.last = span.end;
        }
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn item(&mut self, item: &Item) {
        let tall = matches!(item.kind, ItemKind::Pattern(_)) || !item.docs.is_empty();
        if tall
            && self
                .comments
                .peek()
                .is_none_or(|(span, _)| span.start > item.span.start)
        {
            self.blank();
        }
        // A comment in the documentation, or in what is one line, goes before all of it.
        self.before(match &item.kind {
            ItemKind::Pattern(pattern) => pattern.name.span.start,
            _ => item.span.end,
        });
        if !tall && self.gap(self.last, item.span.start) {
            self.blank();
        }
        for doc in &item.docs {
            self.line(format!("/// {doc}").trim_end());
        }
        match &item.kind {
            ItemKind::Set { name, driver } => {
                let driver = driver
                    .as_ref()
                    .map_or(String::new(), |one| format!(" {}", one.text));
                self.line(&format!("set {}{driver};", name.text));
            }
            ItemKind::Import(name) => self.line(&format!("import {};", name.text)),
            ItemKind::Option { name, default } => {
                self.line(&format!("option {} = {default};", name.text));
            }
            ItemKind::Pattern(pattern) => self.pattern(pattern, item.span.end),
            ItemKind::Rule(rule) => self.rule(rule),
        }
        self.before(item.span.end);
        self.beside(item.span.end);
    }

    fn pattern(&mut self, pattern: &Pattern, end: usize) {
        let header = settings(&pattern.settings);
        self.line(&format!("pattern {}{header} {{", pattern.name.text));
        self.beside(pattern.name.span.end);
        self.depth += 1;
        self.line("match {");
        self.depth += 1;
        for one in &pattern.statements {
            self.before(one.span.start);
            self.line(&statement(one));
            self.beside(one.span.end);
        }
        self.depth -= 1;
        self.line("}");
        if !pattern.conditions.is_empty() {
            self.line("where {");
            self.depth += 1;
            for one in &pattern.conditions {
                let span = condition_span(one);
                self.before(span.start);
                self.line(&format!("{},", condition(one, 0)));
                // The comma may stand between the condition and its comment.
                let comma = self.text.get(span.end..).map_or(0, |rest| {
                    let gap = rest.len() - rest.trim_start().len();
                    if rest[gap..].starts_with(',') {
                        gap + 1
                    } else {
                        0
                    }
                });
                self.beside(span.end + comma);
            }
            self.depth -= 1;
            self.line("}");
        }
        self.before(pattern.rewrite_span.start);
        let at = pattern
            .at
            .as_ref()
            .map_or(String::new(), |at| format!(" at %{}", at.text));
        self.line(&format!("rewrite{at} {{"));
        self.depth += 1;
        for action in &pattern.actions {
            let (line, span) = match action {
                Action::Make(one) => (statement(one), &one.span),
                Action::Call {
                    name,
                    arguments: args,
                    span,
                } => (format!("call {}{};", name.text, arguments(args)), span),
            };
            self.before(span.start);
            self.line(&line);
            self.beside(span.end);
        }
        self.before(end);
        self.depth -= 1;
        self.line("}");
        self.depth -= 1;
        self.line("}");
    }

    fn rule(&mut self, rule: &TermRule) {
        let mut line = format!("rewrite {}", rule.name.text);
        if let Some(law) = &rule.law {
            let _ = write!(line, " \"{law}\"");
        }
        let header = settings(&rule.settings);
        let _ = write!(
            line,
            "{header} : {} => {}",
            term(&rule.left),
            term(&rule.right)
        );
        if rule.conditions.is_empty() {
            self.line(&format!("{line};"));
            return;
        }
        let list: Vec<String> = rule
            .conditions
            .iter()
            .map(|one| condition(one, 0))
            .collect();
        let conditions = format!("where {};", list.join(", "));
        if line.len() + 1 + conditions.len() <= WIDTH {
            self.line(&format!("{line} {conditions}"));
        } else {
            self.line(&line);
            self.depth += 1;
            self.line(&conditions);
            self.depth -= 1;
        }
    }
}

fn settings(list: &[Setting]) -> String {
    if list.is_empty() {
        return String::new();
    }
    let list: Vec<String> = list
        .iter()
        .map(|one| match &one.value {
            Some(value) => format!("{} {}", one.name.text, value.text),
            None => one.name.text.clone(),
        })
        .collect();
    format!(" ({})", list.join(", "))
}

/// An instruction on one line.
fn statement(one: &Statement) -> String {
    let mut line = String::new();
    if one.keep {
        line.push_str("keep ");
    }
    line.push_str(&one.op.text);
    let side = |operands: &[Operand]| -> String {
        let list: Vec<String> = operands.iter().map(operand).collect();
        list.join(", ")
    };
    if !one.left.is_empty() {
        let _ = write!(line, " {}", side(&one.left));
    }
    if !one.right.is_empty() {
        let _ = write!(line, " <- {}", side(&one.right));
    }
    if !one.entries.is_empty() || one.open {
        let mut list: Vec<String> = one.entries.iter().map(entry).collect();
        list.extend(one.open.then(|| "..".to_owned()));
        let _ = write!(line, " {{{}}}", list.join(", "));
    }
    line.push(';');
    line
}

fn names(list: &[Name]) -> String {
    let list: Vec<&str> = list.iter().map(|one| one.text.as_str()).collect();
    list.join("|")
}

fn operand(one: &Operand) -> String {
    let mut text = String::new();
    for word in &one.words {
        match word {
            Word::Choice { names: list, maybe } => {
                text.push_str(&names(list));
                text.push_str(if *maybe { "? " } else { " " });
            }
            Word::Var(name) => {
                let _ = write!(text, "${} ", name.text);
            }
        }
    }
    let mark = |maybe: &bool| if *maybe { "?" } else { "" };
    match &one.place {
        Place::Tile(name, maybe) => {
            let _ = write!(text, "%{}{}", name.text, mark(maybe));
        }
        Place::Attr(name, maybe) => {
            let _ = write!(text, "${}{}", name.text, mark(maybe));
        }
        Place::Number(name) => text.push_str(&name.text),
        Place::Any(_) => text.push('_'),
        Place::Sum(sum) => {
            let _ = write!(text, "({})", arith(sum, 0));
        }
    }
    text
}

fn entry(one: &Entry) -> String {
    let mark = if one.maybe { "?" } else { "" };
    let name = format!("{}{mark}", one.name.text);
    let value = match &one.value {
        None => return name,
        Some(Value::Any(_)) => "_".to_owned(),
        Some(Value::Var(var)) => format!("${}", var.text),
        Some(Value::List(list, _)) => format!("{list:?}"),
        Some(Value::Number(number)) => number.text.clone(),
        Some(Value::Choice(list)) => names(list),
        Some(Value::Text(text)) => format!("\"{}\"", text.text),
        Some(Value::Sum(sum)) => format!("({})", arith(sum, 0)),
    };
    format!("{name} = {value}")
}

fn arith(sum: &Arith, level: u8) -> String {
    match sum {
        Arith::Var(name) => format!("${}", name.text),
        Arith::Number(name) => name.text.clone(),
        Arith::Binary(a, op, b) => {
            let own = if matches!(op, '+' | '-') { 1 } else { 2 };
            let text = format!("{} {op} {}", arith(a, own), arith(b, own + 1));
            if own < level {
                format!("({text})")
            } else {
                text
            }
        }
    }
}

fn arguments(list: &[Argument]) -> String {
    let list: Vec<String> = list
        .iter()
        .map(|one| match one {
            Argument::Tile(name) => format!("%{}", name.text),
            Argument::Term(name) => format!("?{}", name.text),
            Argument::Attr(name) => format!("${}", name.text),
            Argument::Number(name) => name.text.clone(),
            Argument::Choice(list) => names(list),
        })
        .collect();
    match list.is_empty() {
        true => String::new(),
        false => format!("({})", list.join(", ")),
    }
}

/// Where a condition stands.
fn condition_span(one: &Condition) -> Span {
    match one {
        Condition::And(list) | Condition::Or(list) => {
            let start = list.first().map_or(0, |one| condition_span(one).start);
            start..list.last().map_or(0, |one| condition_span(one).end)
        }
        Condition::Not(_, span) | Condition::Named { span, .. } => span.clone(),
        Condition::Compare(a, _, b) => a.span().start..b.span().end,
    }
}

/// A condition as text.
pub(super) fn condition(one: &Condition, level: u8) -> String {
    let join = |list: &[Condition], word: &str, own: u8| {
        let list: Vec<String> = list.iter().map(|one| condition(one, own + 1)).collect();
        let text = list.join(word);
        if own < level {
            format!("({text})")
        } else {
            text
        }
    };
    match one {
        Condition::Or(list) => join(list, " or ", 0),
        Condition::And(list) => join(list, " and ", 1),
        Condition::Not(inner, _) => format!("not {}", condition(inner, 2)),
        Condition::Compare(a, op, b) => format!("{} {op} {}", arith(a, 0), arith(b, 0)),
        Condition::Named {
            name,
            arguments: args,
            ..
        } => format!("{}{}", name.text, arguments(args)),
    }
}

fn term(one: &Term) -> String {
    match one {
        Term::Var(name) => format!("?{}", name.text),
        Term::Named(name, inner) => format!("?{}:{}", name.text, term(inner)),
        Term::Splat(number, _) => format!("(splat {})", number.text),
        Term::SplatVar(name, _) => format!("(splat ${})", name.text),
        Term::Apply(op, list, _) => {
            let mut text = format!("({}", op.text);
            for one in list {
                let _ = write!(text, " {}", term(one));
            }
            text.push(')');
            text
        }
    }
}

/// An item by itself, without its documentation.
pub(super) fn item(one: &Item) -> String {
    let mut out = Printer {
        text: "",
        comments: Vec::new().into_iter().peekable(),
        out: String::new(),
        depth: 0,
        last: 0,
    };
    let bare = Item {
        docs: Vec::new(),
        ..one.clone()
    };
    out.item(&bare);
    out.out
}
