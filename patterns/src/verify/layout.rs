//! Where the variables of an instance lie, and how each instruction accesses them.

use std::ops::Range;

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::Space as Memory;

use super::program::Shape;
use super::space::{Assignment, Choice, calls, legal_spaces};
use super::twist::{Spread, Twist, is_square, sibling};
use crate::rule::{Arg, AttrWhat, Form, VarId, What};

/// Where everything lies in an instance of some size.
pub(super) struct Layout<'a> {
    pub form: &'a Form,
    pub assignment: &'a Assignment,
    pub shape: &'a Shape,
}

impl Layout<'_> {
    /// The dtype a variable has, and whether it has one column.
    pub(super) fn tile(&self, var: VarId) -> Option<(DType, bool)> {
        match self.assignment.vars[var] {
            Choice::Tile(dtype, column) => Some((dtype, column)),
            _ => None,
        }
    }

    /// The variable whose location a variable is in.
    pub(super) fn home(&self, var: VarId) -> VarId {
        match self.assignment.twist {
            Twist::InPlace(written, read) | Twist::Overlap(written, read) if read == var => written,
            _ => var,
        }
    }

    /// The location of a variable.
    pub(super) fn location(&self, var: VarId) -> String {
        name(self.form, self.home(var))
    }

    /// The memory a variable is in.
    pub(super) fn memory(&self, var: VarId) -> Memory {
        let var = self.home(var);
        let legal = legal_spaces(self.form, var);
        match self.assignment.twist {
            Twist::Psum(of) if of == var => Memory::Psum,
            _ => [Memory::Sbuf, Memory::Psum, Memory::Dram]
                .into_iter()
                .find(|&memory| legal.has(memory))
                .unwrap_or(Memory::Sbuf),
        }
    }

    /// What the location of a variable is declared as.
    pub(super) fn declared(&self, var: VarId) -> Option<DType> {
        let (dtype, _) = self.tile(var)?;
        match self.assignment.twist {
            Twist::Cast(of) if of == var => sibling(dtype),
            _ => Some(dtype),
        }
    }

    /// What an instruction takes a variable for.
    pub(super) fn seen_as(&self, stmt: usize, var: VarId) -> Option<DType> {
        let (dtype, _) = self.tile(var)?;
        match self.assignment.twist {
            Twist::As(at, of) if (at, of) == (stmt, var) => sibling(dtype),
            _ => Some(dtype),
        }
    }

    /// Elements of a location, partitions first.
    pub(super) fn dims(&self, var: VarId) -> Vec<usize> {
        let var = self.home(var);
        let Shape {
            partitions,
            columns,
            ..
        } = *self.shape;
        let column = self.tile(var).is_some_and(|(_, column)| column);
        let free = match (self.assignment.twist, column) {
            // Each trip has columns of its own, but for what nobody sees.
            (Twist::Loop, true) if !dropped(self.form, var) => vec![2],
            (Twist::Loop, false) if dropped(self.form, var) => vec![columns / 2],
            (Twist::Deep, true) if self.keeps_outer(var) => vec![columns / 2],
            (_, true) => vec![1],
            (Twist::Deep, false) => vec![columns / 2, 2],
            (Twist::Shifted(_, of), _) if of == var => vec![columns + 1],
            (Twist::Overlap(of, _), _) if of == var => vec![columns + 1],
            _ => vec![columns],
        };
        [vec![partitions], free].concat()
    }

    /// Whether a reduction of the innermost of two free dimensions alone writes a variable.
    fn keeps_outer(&self, var: VarId) -> bool {
        let Some((stmt, _)) = self.form.writer(var) else {
            return false;
        };
        let stmt = &self.form.stmts[stmt];
        let mut attrs = stmt.attrs.iter();
        let axes = attrs.find(|attr| attr.def.name == "axes");
        let inner = match axes.map(|attr| &attr.what) {
            Some(AttrWhat::Bind(var)) => {
                matches!(&self.assignment.vars[*var], Choice::Text(text) if text == "[2]")
            }
            Some(AttrWhat::List(list)) => list[..] == [2],
            _ => false,
        };
        stmt.code == OpCode::TensorReduce && inner
    }

    /// How an instruction accesses a variable: location, dtype, elements.
    pub(super) fn access(&self, stmt: usize, var: VarId) -> Option<String> {
        let (dtype, column) = self.tile(var)?;
        let Shape {
            partitions,
            columns,
            ..
        } = *self.shape;
        let half = columns / 2;
        let place = format!("%{}", self.location(var));
        let (declared, seen) = (self.declared(var)?, self.seen_as(stmt, var)?);
        let place = match declared == seen {
            true => place,
            false => format!("{place} as {seen}"),
        };
        debug_assert!(declared == dtype || seen == dtype);
        let window = match (self.assignment.twist, column) {
            (Twist::Half(at), false) if at == stmt => format!("[:, 0:{half}]"),
            (Twist::Window(at), false) if at == stmt => format!("[:, {half}:{columns}]"),
            (Twist::Rows(at), _) if at == stmt => format!("[{}:{partitions}, :]", partitions / 2),
            (Twist::Loop, true) if !dropped(self.form, var) => "[:, 1*%i +: 1]".to_owned(),
            (Twist::Loop, false) if !dropped(self.form, var) => {
                format!("[:, {half}*%i +: {half}]")
            }
            (Twist::Reversed(at, of), _) if (at, of) == (stmt, var) => {
                let last = columns - 1;
                match self.memory(var) {
                    Memory::Dram => {
                        format!("[off {last}, {columns} x {partitions}, -1 x {columns}]")
                    }
                    _ => format!("[p 0:{partitions}, off {last}, -1 x {columns}]"),
                }
            }
            (Twist::Shifted(at, of), _) if (at, of) == (stmt, var) => {
                format!("[:, 1:{}]", columns + 1)
            }
            (Twist::Shifted(_, of), _) if of == var => format!("[:, 0:{columns}]"),
            (Twist::Overlap(of, _), _) if of == var => format!("[:, 0:{columns}]"),
            (Twist::Overlap(_, of), _) if of == var => format!("[:, 1:{}]", columns + 1),
            _ => String::new(),
        };
        Some(place + &window)
    }

    /// Elements of each row an instruction accesses.
    pub(super) fn elements(&self, stmt: usize) -> usize {
        let columns = self.shape.columns;
        match self.assignment.twist {
            Twist::Half(at) if at == stmt => columns / 2,
            Twist::Window(at) if at == stmt => columns - columns / 2,
            Twist::Loop => columns / 2,
            _ => columns,
        }
    }

    /// Whether some of a location is written by no instruction of the rule, and seen nevertheless.
    pub(super) fn leaves_some(&self, var: VarId) -> bool {
        match self.assignment.twist {
            Twist::Half(_) | Twist::Window(_) | Twist::Rows(_) => true,
            Twist::Shifted(_, of) => of == var,
            _ => false,
        }
    }

    /// What results are made of.
    pub(super) fn spread(&self) -> Spread {
        self.assignment.twist.spread(self.form)
    }
}

/// The elements of an input that an element of a result is made of; both have so many partitions.
pub(super) fn lanes(
    spread: Spread,
    partitions: usize,
    at: usize,
    of: usize,
    given: usize,
) -> Range<usize> {
    let (own, other) = (given / partitions, (of / partitions).max(1));
    let (row, column) = (at / other, at % other);
    match spread {
        Spread::All => 0..given,
        Spread::Row => row * own..(row + 1) * own,
        Spread::Element if own > other => {
            // One of so many that were reduced to one.
            let many = own / other;
            let first = row * own + column * many;
            first..first + many
        }
        Spread::Element => {
            let lane = row * own + column * own / other;
            lane..lane + 1
        }
    }
}

/// Whether a variable holds something before: the first instruction that has it reads it.
pub(super) fn needs(form: &Form, var: VarId) -> bool {
    let reads = |(stmt, role): (usize, usize)| form.stmts[stmt].code.def().operands[role].reads();
    form.places(var).next().is_some_and(reads)
        || form.writer(var).is_some_and(|(stmt, _)| {
            form.places(var)
                .any(|place| place.0 == stmt && reads(place))
        })
}

/// Whether nobody will see what is written there.
pub(super) fn dropped(form: &Form, var: VarId) -> bool {
    calls(form).iter().any(|(constraint, args)| {
        matches!(constraint.name, "sole_reader" | "internal")
            && matches!(args.first(), Some(Arg::Tile(of)) if *of == var)
    })
}

/// The one number a variable is known to hold.
pub(super) fn uniform(form: &Form, var: VarId) -> Option<&str> {
    calls(form)
        .iter()
        .find_map(|(constraint, args)| match (constraint.name, args) {
            ("uniform", [Arg::Tile(of), Arg::Number(text)]) if *of == var => Some(text.as_str()),
            ("zero", [Arg::Tile(of)]) if *of == var => Some("0.0"),
            _ => None,
        })
}

/// Whether a variable is to be an identity matrix.
pub(super) fn is_identity(form: &Form, var: VarId) -> bool {
    is_square(form)
        && calls(form).iter().any(|(constraint, args)| {
            constraint.name == "identity_matrix"
                && matches!(args.first(), Some(Arg::Tile(of)) if *of == var)
        })
}

/// A name that text allows.
pub(super) fn name(form: &Form, var: VarId) -> String {
    match form.vars[var].name.strip_suffix('\'') {
        Some(made) => format!("{made}_"),
        None => form.vars[var].name.clone(),
    }
}

/// The tile an instruction writes first.
pub(super) fn written_by(form: &Form, stmt: usize) -> Option<VarId> {
    let stmt = &form.stmts[stmt];
    let def = stmt.code.def();
    let mut written = stmt.operands.iter().filter_map(|one| match one.what {
        What::Tile(var) if def.operands[one.role].writes() => Some((one.role, var)),
        _ => None,
    });
    let first = written.next()?;
    Some(written.fold(first, |first, other| first.min(other)).1)
}
