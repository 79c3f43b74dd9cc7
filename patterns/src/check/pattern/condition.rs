//! What a pattern asks and computes: conditions, arguments, sums, registered rewrites.

use bir_dialect::bir::num::{DType, parse};
use bir_dialect::text::diag::did_you_mean;

use super::{Checker, Half, Ty};
use crate::constraints::{self, Param};
use crate::natives;
use crate::rule::{Action, Arg, Arith, Cond, Flags, VarKind};
use crate::text::ast;
use crate::text::ast::Span;

impl Checker<'_> {
    pub(super) fn condition(&mut self, one: &ast::Condition) -> Option<Cond> {
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

    pub(super) fn arguments(
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

    pub(super) fn argument(&mut self, argument: &ast::Argument) -> Option<Arg> {
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

    pub(super) fn arith(&mut self, sum: &ast::Arith) -> Option<Arith> {
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

    pub(super) fn action(&mut self, one: &ast::Action) -> Option<Action> {
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
