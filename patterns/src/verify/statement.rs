//! An instruction of an instance, in custom form.

use std::fmt::Write as _;

use bir_dialect::bir::num::{DType, convert, parse as parse_number, print, same_value};
use bir_dialect::bir::ops::{ImmType, Kind, is_bitvec};

use super::layout::{Layout, written_by};
use super::space::{Choice, choices_of_words};
use super::twist::Twist;
use crate::rule::{AttrWhat, Stmt, What};

/// A number as a literal of a dtype, if it is one exactly.
pub(super) fn literal(dtype: DType, text: &str) -> Option<String> {
    let bits = match parse_number(dtype, text) {
        Ok(bits) => bits,
        Err(_) => {
            let float = parse_number(DType::F32, text).ok()?;
            let bits = convert(DType::F32, dtype, float)?;
            let back = convert(dtype, DType::F32, bits)?;
            same_value(DType::F32, back, float).then_some(bits)?
        }
    };
    let mut out = String::new();
    print(dtype, bits, &mut out);
    Some(out)
}

impl Layout<'_> {
    /// The value of an attribute of an instruction; nothing for a flag.
    fn value(&self, number: usize, name: &str) -> Option<String> {
        let stmt = &self.form.stmts[number];
        let attr = stmt.attrs.iter().find(|attr| attr.def.name == name)?;
        Some(match &attr.what {
            AttrWhat::Bind(var) => match &self.assignment.vars[*var] {
                Choice::Text(text) => text.clone(),
                Choice::Ramp(step) => self.ramp(number, *step),
                Choice::Set => String::new(),
                _ => return None,
            },
            AttrWhat::Words(words) => {
                let mut choices = choices_of_words(self.form);
                let at = choices.position(|(at, _)| at == (number, attr.def.name));
                let taken = at.map_or(0, |at| self.assignment.words[at]);
                words.get(taken)?.clone()
            }
            AttrWhat::Flag => String::new(),
            AttrWhat::Absent | AttrWhat::Sum(_) => return None,
            AttrWhat::Int(int) => int.to_string(),
            AttrWhat::Number(literal) => literal.text.clone(),
            AttrWhat::List(list) => format!("{list:?}"),
            AttrWhat::Text(text) => format!("\"{text}\""),
        })
    }

    /// A pattern over the elements an instruction accesses.
    fn ramp(&self, number: usize, step: i64) -> String {
        let elements = self.elements(number);
        match self.assignment.twist {
            Twist::Deep => format!("[[{}, {}], [1, 2]]", 2 * step, elements / 2),
            _ => format!("[[{step}, {elements}]]"),
        }
    }

    /// A literal as the role of an instruction takes it.
    fn number(&self, number: usize, kind: Kind, text: &str) -> Option<String> {
        let stmt: &Stmt = &self.form.stmts[number];
        let def = stmt.code.def();
        let bits = || {
            let mut words = def.words.iter();
            words.any(|word| {
                self.value(number, word)
                    .is_some_and(|word| is_bitvec(&word))
            })
        };
        match kind {
            Kind::Imm(ImmType::Dst) => {
                let dst = written_by(self.form, number)?;
                literal(self.seen_as(number, dst)?, text)
            }
            // Bit operations have integer literals.
            Kind::Imm(ImmType::Alu) if bits() => literal(DType::I32, text),
            _ => Some(text.to_owned()),
        }
    }

    /// Appends an instruction; `None` where it cannot be written.
    pub(super) fn statement(&self, out: &mut String, number: usize) -> Option<()> {
        let stmt: &Stmt = &self.form.stmts[number];
        let def = stmt.code.def();
        out.push_str(def.name);
        let mut told: Vec<&str> = Vec::new();
        for word in def.words {
            if let Some(text) = self.value(number, word) {
                let _ = write!(out, " {text}");
            }
            told.push(word);
        }
        for left in [true, false] {
            let mut first = true;
            for (at, role) in def.operands.iter().enumerate() {
                let Some(operand) = stmt.operands.iter().find(|one| one.role == at) else {
                    continue;
                };
                if role.is_left() != left {
                    continue;
                }
                let text = match &operand.what {
                    What::Tile(var) | What::Literal(var) => match &self.assignment.vars[*var] {
                        Choice::Tile(..) => self.access(number, *var)?,
                        Choice::Text(text) => self.number(number, role.kind, text)?,
                        _ => continue,
                    },
                    What::Number(literal) => literal.text.clone(),
                    What::Any | What::Sum(_) => return None,
                };
                out.push_str(match (left, first) {
                    (_, false) => ", ",
                    (true, true) => " ",
                    (false, true) => " <- ",
                });
                first = false;
                if let Some(keyword) = role.keyword {
                    let _ = write!(out, "{keyword} ");
                    for word in role.words {
                        if let Some(text) = self.value(number, word) {
                            let _ = write!(out, "{text} ");
                        }
                        told.push(word);
                    }
                }
                out.push_str(&text);
            }
        }
        let mut entries: Vec<String> = Vec::new();
        for attr in &stmt.attrs {
            if told.contains(&attr.def.name) {
                continue;
            }
            match self.value(number, attr.def.name) {
                Some(text) if text.is_empty() => entries.push(attr.def.name.to_owned()),
                Some(text) => entries.push(format!("{} = {text}", attr.def.name)),
                None => {}
            }
        }
        if let Some(engine) = self.assignment.engines[number] {
            entries.push(format!("engine = {engine}"));
        }
        if !entries.is_empty() {
            let _ = write!(out, " {{{}}}", entries.join(", "));
        }
        Some(())
    }
}
