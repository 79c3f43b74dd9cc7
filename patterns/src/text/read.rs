//! Text to syntax tree.

use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place as At};
use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;

use super::ast::*;
use super::grammar::{Grammar, Rule, rule_name};
use super::scan::scan;

/// Reads a file. Findings go to `diags`, those of every item; wrong items are left out.
pub fn parse(text: &str, diags: &mut Diagnostics) -> File {
    let scanned = scan(text);
    for error in scanned.errors {
        diags.push(error);
    }
    let mut file = File::default();
    for span in scanned.comments {
        let comment = text[span.clone()].trim_end().to_owned();
        file.comments.push((span, comment));
    }
    for span in scanned.items {
        let source = &text[span.clone()];
        match Grammar::parse(Rule::item, source) {
            Ok(mut pairs) => {
                let reader = Reader { base: span.start };
                if let Some(item) = pairs.next().and_then(|pair| reader.item(pair, span)) {
                    file.items.push(item);
                }
            }
            Err(error) => diags.push(syntax_error(source, span.start, &error)),
        }
    }
    file
}

fn syntax_error(text: &str, base: usize, error: &pest::error::Error<Rule>) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let rest = &text[at..];
    let word = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let length = match word {
        0 => rest.chars().next().map_or(0, char::len_utf8),
        word => word,
    };
    let found = match &rest[..length] {
        "" => "the end of the item".to_owned(),
        found => match found.chars().find(|c| c.is_control() || *c == '\u{feff}') {
            Some(unseen) => format!("U+{:04X}", u32::from(unseen)),
            None => format!("`{found}`"),
        },
    };
    let mut expected: Vec<&str> = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives
            .iter()
            .filter_map(|&rule| rule_name(rule))
            .collect(),
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    expected.sort_unstable();
    expected.dedup();
    let message = match expected.split_last() {
        None => format!("unexpected {found}"),
        Some((last, [])) => format!("expected {last}, found {found}"),
        Some((last, others)) => {
            format!("expected {} or {last}, found {found}", others.join(", "))
        }
    };
    Diagnostic::error(At::Span(base + at..base + at + length), message)
}

type Node<'a> = Pair<'a, Rule>;

struct Reader {
    base: usize,
}

impl Reader {
    fn span(&self, pair: &Node<'_>) -> Span {
        let span = pair.as_span();
        self.base + span.start()..self.base + span.end()
    }

    fn name(&self, pair: &Node<'_>) -> Name {
        let text = pair.as_str();
        Name {
            text: text
                .strip_prefix(['%', '$', '?'])
                .unwrap_or(text)
                .to_owned(),
            span: self.span(pair),
        }
    }

    fn item(&self, pair: Node<'_>, span: Span) -> Option<Item> {
        let mut docs = Vec::new();
        let mut kind = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::docs => {
                    for doc in part.into_inner() {
                        let line = doc.as_str().trim_start_matches("///");
                        let line = line.strip_prefix(' ').unwrap_or(line);
                        docs.push(line.trim_end().to_owned());
                    }
                }
                Rule::set => kind = self.set(part),
                Rule::import => {
                    let name = part.into_inner().find(|one| one.as_rule() == Rule::ident);
                    kind = name.map(|name| ItemKind::Import(self.name(&name)));
                }
                Rule::option => kind = self.option(part),
                Rule::pattern => kind = self.pattern(part).map(ItemKind::Pattern),
                Rule::law => kind = self.rule(part).map(ItemKind::Rule),
                _ => {}
            }
        }
        Some(Item {
            docs,
            span,
            kind: kind?,
        })
    }

    fn set(&self, pair: Node<'_>) -> Option<ItemKind> {
        let (mut name, mut driver) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(self.name(&part)),
                Rule::driver => driver = Some(self.name(&part)),
                _ => {}
            }
        }
        Some(ItemKind::Set {
            name: name?,
            driver,
        })
    }

    fn option(&self, pair: Node<'_>) -> Option<ItemKind> {
        let (mut name, mut default) = (None, false);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(self.name(&part)),
                Rule::truth => default = part.as_str() == "true",
                _ => {}
            }
        }
        Some(ItemKind::Option {
            name: name?,
            default,
        })
    }

    fn settings(&self, pair: Node<'_>) -> Vec<Setting> {
        pair.into_inner()
            .filter_map(|setting| {
                let mut parts = setting.into_inner();
                Some(Setting {
                    name: self.name(&parts.next()?),
                    value: parts.next().map(|value| self.name(&value)),
                })
            })
            .collect()
    }

    fn pattern(&self, pair: Node<'_>) -> Option<Pattern> {
        let mut name = None;
        let mut out = Pattern {
            name: Name {
                text: String::new(),
                span: self.span(&pair),
            },
            settings: Vec::new(),
            statements: Vec::new(),
            conditions: Vec::new(),
            at: None,
            actions: Vec::new(),
            rewrite_span: self.span(&pair),
        };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(self.name(&part)),
                Rule::header => out.settings = self.settings(part),
                Rule::r#match => {
                    let inner = part.into_inner();
                    let statements = inner.filter(|one| one.as_rule() == Rule::statement);
                    out.statements = statements.filter_map(|one| self.statement(one)).collect();
                }
                Rule::where_block => {
                    let inner = part.into_inner();
                    let conditions = inner.filter(|one| one.as_rule() == Rule::condition);
                    out.conditions = conditions.map(|one| self.condition(one)).collect();
                }
                Rule::rewrite => {
                    for one in part.into_inner() {
                        match one.as_rule() {
                            Rule::kw_rewrite => out.rewrite_span = self.span(&one),
                            Rule::tile => out.at = Some(self.name(&one)),
                            Rule::statement => {
                                out.actions.extend(self.statement(one).map(Action::Make));
                            }
                            Rule::call => out.actions.extend(self.call(one)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        out.name = name?;
        Some(out)
    }

    fn call(&self, pair: Node<'_>) -> Option<Action> {
        let span = self.span(&pair);
        let mut name = None;
        let mut arguments = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(self.name(&part)),
                Rule::arguments => arguments = self.arguments(part),
                _ => {}
            }
        }
        Some(Action::Call {
            name: name?,
            arguments,
            span,
        })
    }

    fn statement(&self, pair: Node<'_>) -> Option<Statement> {
        let span = self.span(&pair);
        let mut op = None;
        let mut keep = false;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut entries = Vec::new();
        let mut open = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::kw_keep => keep = true,
                Rule::ident => op = Some(self.name(&part)),
                Rule::left => left = self.operands(part),
                Rule::right => right = self.operands(part),
                Rule::dict => {
                    for entry in part.into_inner() {
                        match self.entry(entry) {
                            Some(entry) => entries.push(entry),
                            None => open = true,
                        }
                    }
                }
                _ => {}
            }
        }
        Some(Statement {
            keep,
            op: op?,
            left,
            right,
            entries,
            open,
            span,
        })
    }

    fn operands(&self, pair: Node<'_>) -> Vec<Operand> {
        pair.into_inner()
            .filter_map(|operand| self.operand(operand))
            .collect()
    }

    fn operand(&self, pair: Node<'_>) -> Option<Operand> {
        let span = self.span(&pair);
        let mut words = Vec::new();
        let mut place = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::word => {
                    let Some(inner) = part.into_inner().next() else {
                        continue;
                    };
                    words.push(match inner.as_rule() {
                        Rule::word_var => {
                            let var = inner.into_inner().next()?;
                            Word::Var(self.name(&var))
                        }
                        _ => {
                            let (mut names, mut maybe) = (Vec::new(), false);
                            for one in inner.into_inner() {
                                match one.as_rule() {
                                    Rule::maybe => maybe = true,
                                    _ => names.push(self.name(&one)),
                                }
                            }
                            Word::Choice { names, maybe }
                        }
                    });
                }
                Rule::place => place = self.place(part),
                _ => {}
            }
        }
        Some(Operand {
            words,
            place: place?,
            span,
        })
    }

    fn place(&self, pair: Node<'_>) -> Option<Place> {
        let mut parts = pair.into_inner();
        let first = parts.next()?;
        let maybe = parts.next().is_some();
        Some(match first.as_rule() {
            Rule::tile => Place::Tile(self.name(&first), maybe),
            Rule::attribute => Place::Attr(self.name(&first), maybe),
            Rule::number => Place::Number(self.name(&first)),
            Rule::any => Place::Any(self.span(&first)),
            _ => Place::Sum(self.sum(first)?),
        })
    }

    /// `None` for `..`.
    fn entry(&self, pair: Node<'_>) -> Option<Entry> {
        let mut name = None;
        let mut maybe = false;
        let mut value = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::rest => return None,
                Rule::ident => name = Some(self.name(&part)),
                Rule::maybe => maybe = true,
                Rule::value => value = self.value(part),
                _ => {}
            }
        }
        Some(Entry {
            name: name?,
            maybe,
            value,
        })
    }

    fn value(&self, pair: Node<'_>) -> Option<Value> {
        let inner = pair.into_inner().next()?;
        let span = self.span(&inner);
        Some(match inner.as_rule() {
            Rule::any => Value::Any(span),
            Rule::attribute => Value::Var(self.name(&inner)),
            Rule::list => {
                let numbers = inner.into_inner().map(|one| one.as_str().parse());
                // A number too large for any attribute is caught as one that no attribute has.
                Value::List(numbers.map(|one| one.unwrap_or(i64::MAX)).collect(), span)
            }
            Rule::number => Value::Number(self.name(&inner)),
            Rule::choice => Value::Choice(inner.into_inner().map(|one| self.name(&one)).collect()),
            Rule::string => Value::Text(Name {
                text: inner.as_str().trim_matches('"').to_owned(),
                span,
            }),
            _ => Value::Sum(self.sum(inner)?),
        })
    }

    fn condition(&self, pair: Node<'_>) -> Condition {
        let inner = pair.into_inner();
        let all = inner.filter(|one| one.as_rule() == Rule::all);
        let mut list: Vec<Condition> = all
            .map(|all| {
                let ones = all.into_inner().filter(|one| one.as_rule() == Rule::one);
                let mut list: Vec<Condition> = ones.filter_map(|one| self.one(one)).collect();
                match list.len() {
                    1 => list.remove(0),
                    _ => Condition::And(list),
                }
            })
            .collect();
        match list.len() {
            1 => list.remove(0),
            _ => Condition::Or(list),
        }
    }

    fn one(&self, pair: Node<'_>) -> Option<Condition> {
        let whole = self.span(&pair);
        let (nots, rest): (Vec<Node<'_>>, Vec<Node<'_>>) = pair
            .into_inner()
            .partition(|part| part.as_rule() == Rule::kw_not);
        let inner = rest.into_iter().next()?;
        let span = self.span(&inner);
        let one = Some(match inner.as_rule() {
            Rule::condition => self.condition(inner),
            Rule::comparison => {
                let mut parts = inner.into_inner();
                let (left, relation, right) = (parts.next()?, parts.next()?, parts.next()?);
                Condition::Compare(
                    self.sum(left)?,
                    relation.as_str().to_owned(),
                    self.sum(right)?,
                )
            }
            _ => {
                let mut parts = inner.into_inner();
                let name = self.name(&parts.next()?);
                Condition::Named {
                    name,
                    arguments: parts.next().map_or(Vec::new(), |one| self.arguments(one)),
                    span,
                }
            }
        });
        match nots.len() % 2 {
            0 => one,
            _ => one.map(|one| Condition::Not(Box::new(one), whole)),
        }
    }

    fn arguments(&self, pair: Node<'_>) -> Vec<Argument> {
        pair.into_inner()
            .filter_map(|argument| {
                let inner = argument.into_inner().next()?;
                Some(match inner.as_rule() {
                    Rule::tile => Argument::Tile(self.name(&inner)),
                    Rule::variable => Argument::Term(self.name(&inner)),
                    Rule::attribute => Argument::Attr(self.name(&inner)),
                    Rule::number => Argument::Number(self.name(&inner)),
                    _ => Argument::Choice(inner.into_inner().map(|one| self.name(&one)).collect()),
                })
            })
            .collect()
    }

    /// A chain of one precedence, sums or products.
    fn sum(&self, pair: Node<'_>) -> Option<Arith> {
        match pair.as_rule() {
            Rule::factor => {
                let inner = pair.into_inner().next()?;
                return match inner.as_rule() {
                    Rule::attribute => Some(Arith::Var(self.name(&inner))),
                    Rule::number => Some(Arith::Number(self.name(&inner))),
                    _ => self.sum(inner),
                };
            }
            Rule::sum | Rule::product => {}
            _ => return None,
        }
        let mut parts = pair.into_inner();
        let mut left = self.sum(parts.next()?)?;
        while let (Some(op), Some(right)) = (parts.next(), parts.next()) {
            let op = op.as_str().chars().next()?;
            left = Arith::Binary(Box::new(left), op, Box::new(self.sum(right)?));
        }
        Some(left)
    }

    fn rule(&self, pair: Node<'_>) -> Option<TermRule> {
        let (mut name, mut law, mut settings) = (None, None, Vec::new());
        let (mut terms, mut conditions) = (Vec::new(), Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(self.name(&part)),
                Rule::string => law = Some(part.as_str().trim_matches('"').to_owned()),
                Rule::header => settings = self.settings(part),
                Rule::term => terms.push(self.term(part)?),
                Rule::condition => conditions.push(self.condition(part)),
                _ => {}
            }
        }
        let mut terms = terms.into_iter();
        Some(TermRule {
            name: name?,
            law,
            settings,
            left: terms.next()?,
            right: terms.next()?,
            conditions,
        })
    }

    fn term(&self, pair: Node<'_>) -> Option<Term> {
        let mut parts = pair.into_inner();
        let first = parts.next()?;
        if first.as_rule() != Rule::variable {
            return self.apply(first);
        }
        let name = self.name(&first);
        Some(match parts.next() {
            Some(term) => Term::Named(name, Box::new(self.apply(term)?)),
            None => Term::Var(name),
        })
    }

    fn apply(&self, pair: Node<'_>) -> Option<Term> {
        let span = self.span(&pair);
        let mut parts = pair.into_inner();
        let first = parts.next()?;
        Some(match first.as_rule() {
            Rule::kw_splat => {
                let what = parts.next()?;
                match what.as_rule() {
                    Rule::attribute => Term::SplatVar(self.name(&what), span),
                    _ => Term::Splat(self.name(&what), span),
                }
            }
            _ => {
                let terms = parts.map(|term| self.term(term)).collect::<Option<_>>()?;
                Term::Apply(self.name(&first), terms, span)
            }
        })
    }
}
