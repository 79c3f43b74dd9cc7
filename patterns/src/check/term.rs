//! `rewrite` rules written out as patterns: one for each way the instruction set has to write the
//! left side.
//!
//! * a constant beside a variable is an immediate of `tensor_scalar` or a tile of `tensor_tensor` known
//!   to hold it everywhere;
//! * where the op commutes – the op table says – both orders are matched;
//! * what stands deeper is computed by an instruction of its own, which stays, and is read as it was
//!   written.

use bir_dialect::bir::ops::{ALU, AluOp, Arity};
use bir_dialect::text::diag::{Diagnostic, Place as At, did_you_mean};

use crate::text::ast::*;

/// The result of the whole where it has no name; no user can write this one.
const RESULT: &str = "result'";
/// A rule has at most so many forms.
const MAX_FORMS: usize = 256;

/// Instructions, and what must hold of them.
#[derive(Clone, Default)]
struct Piece {
    stmts: Vec<Statement>,
    conds: Vec<Condition>,
}

/// The patterns a rule stands for.
pub(super) fn patterns(rule: &TermRule) -> Result<Vec<Pattern>, Box<Diagnostic>> {
    let (whole, result) = match &rule.left {
        Term::Named(name, inner) => (&**inner, name.text.as_str()),
        term => (term, RESULT),
    };
    if !matches!(whole, Term::Apply(..)) {
        let what = match whole {
            Term::Var(_) => "a bare variable matches everything",
            _ => "a constant alone is no instruction",
        };
        let message = format!("left side of `{}`: {what}", rule.name.text);
        return Err(Box::new(
            Diagnostic::error(At::Span(rule.left.span()), message)
                .help("expected an operation such as `(add ?x ?y)`"),
        ));
    }
    let mut fresh = 0;
    let pieces = left(
        whole,
        result,
        false,
        &mut fresh,
        !rule.conditions.is_empty(),
    )?;
    let action = right(&rule.right, result)?;
    Ok(pieces
        .into_iter()
        .map(|piece| Pattern {
            name: rule.name.clone(),
            settings: rule.settings.clone(),
            statements: piece.stmts,
            conditions: piece
                .conds
                .into_iter()
                .chain(rule.conditions.iter().cloned())
                .collect(),
            at: None,
            actions: vec![Action::Make(action.clone())],
            rewrite_span: rule.right.span(),
        })
        .collect())
}

fn alu(name: &Name, count: usize) -> Result<&'static AluOp, Box<Diagnostic>> {
    let Some(op) = AluOp::of(&name.text).filter(|op| op.arity != Arity::Reduction) else {
        let message = format!("unknown operation `{}`", name.text);
        let known = ALU.iter().filter(|op| op.arity != Arity::Reduction);
        let names: Vec<&str> = known.map(|op| op.name).collect();
        // `mul` is no typing error, and means `multiply`.
        let longer = names.iter().find(|known| known.starts_with(&name.text));
        let help = did_you_mean(&name.text, names.iter().copied())
            .or_else(|| longer.map(|known| format!("did you mean `{known}`?")))
            .unwrap_or_else(|| format!("operations are `{}`", names.join("`, `")));
        return Err(Box::new(
            Diagnostic::error(At::Span(name.span.clone()), message).help(help),
        ));
    };
    let wanted = if op.arity == Arity::Unary { 1 } else { 2 };
    if count != wanted {
        let noun = if wanted == 1 { "operand" } else { "operands" };
        let message = format!("`{}` takes {wanted} {noun}, found {count}", name.text);
        return Err(Box::new(Diagnostic::error(
            At::Span(name.span.clone()),
            message,
        )));
    }
    Ok(op)
}

fn name(text: &str, span: &Span) -> Name {
    Name {
        text: text.to_owned(),
        span: span.clone(),
    }
}

fn operand(words: Vec<Word>, place: Place, span: &Span) -> Operand {
    Operand {
        words,
        place,
        span: span.clone(),
    }
}

fn tile(text: &str, span: &Span) -> Operand {
    operand(Vec::new(), Place::Tile(name(text, span), false), span)
}

/// `op word %out <- sources {reverse0}`
fn instruction(
    op: &str,
    word: Option<&Name>,
    out: &str,
    sources: Vec<Operand>,
    reverse: bool,
    span: &Span,
) -> Statement {
    let words = word.map(|word| Word::Choice {
        names: vec![word.clone()],
        maybe: false,
    });
    let dst = Place::Tile(name(out, span), false);
    Statement {
        keep: false,
        op: name(op, span),
        left: vec![operand(words.into_iter().collect(), dst, span)],
        right: sources,
        entries: reverse
            .then(|| Entry {
                name: name("reverse0", span),
                maybe: false,
                value: None,
            })
            .into_iter()
            .collect(),
        open: false,
        span: span.clone(),
    }
}

/// An argument: a constant, or a tile with what computes it.
enum Side {
    Constant(Operand, Option<Name>),
    Tile(Operand, Vec<Piece>),
}

/// What is computed further inside. Whoever reads it in another order would be given elements of others.
fn inside(
    term: &Term,
    name_of: &str,
    span: &Span,
    fresh: &mut usize,
    asymmetric: bool,
) -> Result<Side, Box<Diagnostic>> {
    let mut pieces = left(term, name_of, true, fresh, asymmetric)?;
    for piece in &mut pieces {
        piece.conds.push(Condition::Named {
            name: name("same_access", span),
            arguments: vec![Argument::Tile(name(name_of, span))],
            span: span.clone(),
        });
    }
    Ok(Side::Tile(tile(name_of, span), pieces))
}

fn left(
    term: &Term,
    out: &str,
    keep: bool,
    fresh: &mut usize,
    asymmetric: bool,
) -> Result<Vec<Piece>, Box<Diagnostic>> {
    let Term::Apply(op, terms, span) = term else {
        return Ok(Vec::new());
    };
    let info = alu(op, terms.len())?;
    let mut sides = Vec::new();
    for term in terms {
        sides.push(match term {
            Term::Var(var) => Side::Tile(tile(&var.text, &var.span), vec![Piece::default()]),
            Term::Splat(number, span) => Side::Constant(
                operand(Vec::new(), Place::Number(number.clone()), span),
                Some(number.clone()),
            ),
            Term::SplatVar(var, span) => Side::Constant(
                operand(Vec::new(), Place::Attr(var.clone(), false), span),
                None,
            ),
            Term::Apply(_, _, span) => {
                *fresh += 1;
                inside(term, &format!("t{fresh}'"), span, fresh, asymmetric)?
            }
            Term::Named(name, term) => match &**term {
                Term::Apply(..) => inside(term, &name.text, &name.span, fresh, asymmetric)?,
                _ => {
                    let message = format!("`?{}` names a constant", name.text);
                    let error = Diagnostic::error(At::Span(name.span.clone()), message);
                    return Err(Box::new(error.help("only what is computed has a name")));
                }
            },
        });
    }
    let mut sides = sides.into_iter();
    let (first, second) = (sides.next(), sides.next());
    let mut ways: Vec<Piece> = Vec::new();
    let ways_inside: usize = [&first, &second]
        .into_iter()
        .map(|side| match side {
            Some(Side::Tile(_, before)) => before.len(),
            _ => 1,
        })
        .product();
    // What follows writes each of them in four ways at most.
    if ways_inside * 4 > MAX_FORMS {
        let message = format!("this can be written in more than {MAX_FORMS} ways");
        return Err(Box::new(
            Diagnostic::error(At::Span(span.clone()), message)
                .help("name what is inside by a `pattern` of several instructions"),
        ));
    }
    let mut way = |before: &[Piece], conds: Vec<Condition>, mut stmt: Statement| {
        stmt.keep = keep;
        for piece in before {
            let mut piece = piece.clone();
            piece.conds.extend(conds.iter().cloned());
            piece.stmts.push(stmt.clone());
            ways.push(piece);
        }
    };
    match (first, second) {
        (Some(Side::Tile(a, before)), None) => {
            way(
                &before,
                vec![],
                instruction("tensor_scalar", Some(op), out, vec![a], false, span),
            );
        }
        (Some(Side::Constant(..)), None) | (Some(Side::Constant(..)), Some(Side::Constant(..))) => {
            let message = format!("`{}` of constants alone is a constant", op.text);
            return Err(Box::new(Diagnostic::error(At::Span(span.clone()), message)));
        }
        (Some(Side::Tile(a, before)), Some(Side::Constant(c, number)))
        | (Some(Side::Constant(c, number)), Some(Side::Tile(a, before))) => {
            let constant_first = !is_tile(&terms[0]);
            let orders: &[bool] = match info.commutes {
                true => &[false, true],
                false => &[false],
            };
            for &swap in orders {
                let reverse = constant_first != swap;
                let sources = vec![a.clone(), c.clone()];
                let stmt = instruction("tensor_scalar", Some(op), out, sources, reverse, span);
                way(&before, vec![], stmt);
            }
            let Some(number) = number else {
                return Ok(ways);
            };
            *fresh += 1;
            let held = format!("c{fresh}'");
            for &swap in orders {
                let k = tile(&held, &c.span);
                let sources = match constant_first != swap {
                    true => vec![k, a.clone()],
                    false => vec![a.clone(), k],
                };
                let cond = Condition::Named {
                    name: name("uniform", &c.span),
                    arguments: vec![
                        Argument::Tile(name(&held, &c.span)),
                        Argument::Number(number.clone()),
                    ],
                    span: c.span.clone(),
                };
                let stmt = instruction("tensor_tensor", Some(op), out, sources, false, span);
                way(&before, vec![cond], stmt);
            }
        }
        (Some(Side::Tile(a, before)), Some(Side::Tile(b, others))) => {
            let mut both = Vec::new();
            for one in &before {
                for other in &others {
                    let mut piece = one.clone();
                    piece.stmts.extend(other.stmts.iter().cloned());
                    piece.conds.extend(other.conds.iter().cloned());
                    both.push(piece);
                }
            }
            let stmt = |x: &Operand, y: &Operand| {
                let sources = vec![x.clone(), y.clone()];
                instruction("tensor_tensor", Some(op), out, sources, false, span)
            };
            way(&both, vec![], stmt(&a, &b));
            let nested = terms
                .iter()
                .any(|term| is_tile(term) && !matches!(term, Term::Var(_)));
            let one_variable = matches!(
                (&terms[0], &terms[1]),
                (Term::Var(x), Term::Var(y)) if x.text == y.text
            );
            if info.commutes && !one_variable && (nested || asymmetric) {
                way(&both, vec![], stmt(&b, &a));
            }
        }
        (None, _) => {}
    }
    Ok(ways)
}

fn is_tile(term: &Term) -> bool {
    match term {
        Term::Var(_) | Term::Apply(..) => true,
        Term::Named(_, term) => is_tile(term),
        Term::Splat(..) | Term::SplatVar(..) => false,
    }
}

fn right(term: &Term, result: &str) -> Result<Statement, Box<Diagnostic>> {
    let span = term.span();
    let constant = |term: &Term| match term {
        Term::Splat(number, span) => Some(operand(Vec::new(), Place::Number(number.clone()), span)),
        Term::SplatVar(var, span) => {
            Some(operand(Vec::new(), Place::Attr(var.clone(), false), span))
        }
        _ => None,
    };
    let variable = |term: &Term| match term {
        Term::Var(var) => Some(tile(&var.text, &var.span)),
        _ => None,
    };
    if let Some(source) = variable(term) {
        return Ok(instruction(
            "tensor_copy",
            None,
            result,
            vec![source],
            false,
            &span,
        ));
    }
    if let Some(value) = constant(term) {
        return Ok(instruction(
            "memset",
            None,
            result,
            vec![value],
            false,
            &span,
        ));
    }
    let Term::Apply(op, terms, _) = term else {
        return Err(Box::new(Diagnostic::error(
            At::Span(span),
            "expected a term",
        )));
    };
    alu(op, terms.len())?;
    let made = match &terms[..] {
        [one] => variable(one)
            .map(|a| instruction("tensor_scalar", Some(op), result, vec![a], false, &span)),
        [a, b] => match (variable(a), variable(b), constant(a), constant(b)) {
            (Some(a), Some(b), _, _) => Some(instruction(
                "tensor_tensor",
                Some(op),
                result,
                vec![a, b],
                false,
                &span,
            )),
            (Some(a), _, _, Some(c)) => Some(instruction(
                "tensor_scalar",
                Some(op),
                result,
                vec![a, c],
                false,
                &span,
            )),
            (_, Some(b), Some(c), _) => Some(instruction(
                "tensor_scalar",
                Some(op),
                result,
                vec![b, c],
                true,
                &span,
            )),
            _ => None,
        },
        _ => None,
    };
    made.ok_or_else(|| {
        let message = "the right side is one instruction; expected a variable, a constant, or one \
                       operation on them";
        Box::new(
            Diagnostic::error(At::Span(span), message)
                .help("write a `pattern` to make several instructions"),
        )
    })
}
