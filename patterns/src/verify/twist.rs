//! What is out of the ordinary in an instance.
//!
//! Where nothing is, every variable is a tile of its own, accessed whole and in order. A rule whose
//! conditions are too weak is true there, so each twist makes one thing otherwise: where operands
//! lie, which elements an instruction accesses and in what order, what it takes them for, who else
//! is there.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::space::Space as Memory;

use super::hidden::State;
use super::layout::needs;
use super::space::{Choice, Space, legal_spaces};
use crate::rule::{Action, Form, VarId};

/// What is out of the ordinary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Twist {
    /// Nothing.
    None,
    /// What the first variable is written to is where the second is read from.
    InPlace(VarId, VarId),
    /// Both are one location, the second one column further on.
    Overlap(VarId, VarId),
    /// An instruction accesses the first half of the columns of its tiles.
    Half(usize),
    /// An instruction accesses the second half.
    Window(usize),
    /// An instruction accesses the second half of the partitions.
    Rows(usize),
    /// An instruction accesses a variable from its last column to its first.
    Reversed(usize, VarId),
    /// An instruction accesses a variable one column further on than the others do.
    Shifted(usize, VarId),
    /// An instruction takes a variable for another dtype of that size.
    As(usize, VarId),
    /// A location is declared as another dtype, and everybody takes it for that of the variable.
    Cast(VarId),
    /// Tiles have two free dimensions.
    Deep,
    /// A variable is in PSUM.
    Psum(VarId),
    /// All stands in a loop of two trips, each on one half of the tiles.
    Loop,
    /// Somebody around goes on with a hidden state.
    Around(State),
}

/// What elements of the inputs an element of a result is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spread {
    /// Those of the same place, or those a reduction adds up.
    Element,
    /// Those of its row.
    Row,
    /// All.
    All,
}

impl Twist {
    /// What a verdict calls it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Twist::None => "plain",
            Twist::InPlace(..) => "in place",
            Twist::Overlap(..) => "overlapping",
            Twist::Half(_) => "first half",
            Twist::Window(_) => "second half",
            Twist::Rows(_) => "some partitions",
            Twist::Reversed(..) => "backwards",
            Twist::Shifted(..) => "shifted",
            Twist::As(..) => "as another dtype",
            Twist::Cast(_) => "declared as another dtype",
            Twist::Deep => "two free dimensions",
            Twist::Psum(_) => "in psum",
            Twist::Loop => "in a loop",
            Twist::Around(_) => "hidden state in use",
        }
    }

    /// The fewest partitions and columns that show it.
    pub(super) fn least(self, form: &Form) -> (usize, usize) {
        let (partitions, columns) = match self {
            _ if is_square(form) => (2, 2),
            // Windows start at multiples of 32 partitions.
            Twist::Rows(_) => (64, 1),
            Twist::Deep => (1, 4),
            Twist::Half(_)
            | Twist::Window(_)
            | Twist::Loop
            | Twist::Reversed(..)
            | Twist::Shifted(..)
            | Twist::Overlap(..) => (1, 2),
            _ => (1, 1),
        };
        match self.spread(form) {
            Spread::Element => (partitions, columns),
            // One element has no neighbours.
            Spread::Row | Spread::All => (partitions, columns.max(2)),
        }
    }

    /// What results are made of.
    pub(super) fn spread(self, form: &Form) -> Spread {
        let of_ops = codes(form).map(spread);
        let worst = of_ops.fold(Spread::Element, |worst, one| match (worst, one) {
            (Spread::All, _) | (_, Spread::All) => Spread::All,
            (Spread::Row, _) | (_, Spread::Row) => Spread::Row,
            _ => Spread::Element,
        });
        match self {
            Twist::Reversed(..) | Twist::Shifted(..) | Twist::Overlap(..)
                if worst == Spread::Element =>
            {
                Spread::Row
            }
            _ => worst,
        }
    }
}

/// The ops on both sides.
fn codes(form: &Form) -> impl Iterator<Item = OpCode> + '_ {
    let made = form.actions.iter().filter_map(|action| match action {
        Action::Make(stmt) => Some(stmt.code),
        Action::Call(..) => None,
    });
    form.stmts.iter().map(|stmt| stmt.code).chain(made)
}

fn spread(code: OpCode) -> Spread {
    match code {
        _ if code.def().has(Trait::Elementwise) => Spread::Element,
        OpCode::TensorScalarCumulative | OpCode::TensorTensorScan => Spread::Row,
        OpCode::Memset
        | OpCode::Iota
        | OpCode::Rng
        | OpCode::Rand2
        | OpCode::CopyPredicated
        | OpCode::TensorReduce
        | OpCode::TensorScalarReduce
        | OpCode::ReadActivationAccumulator
        | OpCode::Load
        | OpCode::Save
        | OpCode::DmaCopy
        | OpCode::DmaCompute
        | OpCode::GpsimdSb2sb => Spread::Element,
        _ => Spread::All,
    }
}

/// Whether all tiles are square: partitions are exchanged with elements, or multiplied with them.
pub(super) fn is_square(form: &Form) -> bool {
    codes(form).any(|code| {
        matches!(
            code,
            OpCode::Transpose | OpCode::DmaTranspose | OpCode::Matmult
        )
    })
}

/// Another dtype of a dtype's size.
pub(super) fn sibling(dtype: DType) -> Option<DType> {
    Some(match dtype {
        DType::F32 => DType::I32,
        DType::I32 | DType::U32 => DType::F32,
        DType::Bf16 | DType::F16 => DType::I16,
        DType::I16 | DType::U16 => DType::Bf16,
        DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3FN => DType::I8,
        DType::I8 => DType::U8,
        DType::U8 => DType::Bool,
        DType::Bool => DType::U8,
        // Bits that are no value may not come to stand in it.
        _ => return None,
    })
}

impl Space<'_> {
    /// What may be out of the ordinary, each with the most ways it is built in.
    pub(super) fn twists(&self) -> Vec<(Twist, usize)> {
        let form = self.form;
        let square = is_square(form);
        let stmts = 0..form.stmts.len();
        let rows: Vec<VarId> = (0..form.vars.len())
            .filter(|&var| self.is_row(var))
            .collect();
        let (written, read): (Vec<VarId>, Vec<VarId>) =
            rows.iter().partition(|&&var| form.writer(var).is_some());
        let pairs: Vec<(VarId, VarId)> = written
            .iter()
            .filter(|&&var| !needs(form, var))
            .flat_map(|&one| read.iter().map(move |&other| (one, other)))
            .filter(|&(one, other)| legal_spaces(form, one) == legal_spaces(form, other))
            .collect();
        let mut places: Vec<(usize, VarId)> = Vec::new();
        for &var in &rows {
            for (stmt, _) in form.places(var) {
                if !places.contains(&(stmt, var)) {
                    places.push((stmt, var));
                }
            }
        }
        let shared =
            |&&(_, var): &&(usize, VarId)| places.iter().filter(|place| place.1 == var).count() > 1;
        let mut twists: Vec<(Twist, usize)> = Vec::new();
        let wide = self.limit.div_ceil(4);
        // One kind of twist has a share, however many there are of it.
        let mut share = |list: Vec<Twist>, most: usize| {
            let each = (most / list.len().max(1)).max(8);
            twists.extend(list.into_iter().map(|twist| (twist, each)));
        };
        let several = if form.stmts.len() > 1 { 1 } else { 4 };
        let inplace = pairs.iter().map(|&(w, r)| Twist::InPlace(w, r)).collect();
        share(inplace, wide * pairs.len());
        if !square {
            let halves = stmts.clone().map(Twist::Half).collect();
            share(halves, wide * form.stmts.len() / several);
        }
        let states = State::all(form);
        let around = states.iter().copied().map(Twist::Around).collect();
        share(around, wide * states.len());
        let eighth = self.limit.div_ceil(8);
        let at_places = |twist: fn(usize, VarId) -> Twist| -> Vec<Twist> {
            let all = places.iter();
            all.map(|&(stmt, var)| twist(stmt, var)).collect()
        };
        share(at_places(Twist::Reversed), eighth);
        let reread = places.iter().filter(shared);
        share(
            reread.map(|&(stmt, var)| Twist::As(stmt, var)).collect(),
            eighth,
        );
        let on_chip = rows.iter().filter(|&&var| {
            let spaces = legal_spaces(form, var);
            spaces.has(Memory::Psum) || spaces.has(Memory::Sbuf)
        });
        share(on_chip.map(|&var| Twist::Cast(var)).collect(), eighth);
        let in_psum = rows.iter().filter(|&&var| {
            let spaces = legal_spaces(form, var);
            spaces.has(Memory::Psum) && spaces.has(Memory::Sbuf)
        });
        share(in_psum.map(|&var| Twist::Psum(var)).collect(), eighth);
        if !square {
            share(at_places(Twist::Shifted), eighth);
            share(stmts.clone().map(Twist::Window).collect(), eighth);
            share(stmts.map(Twist::Rows).collect(), eighth);
            let overlap = pairs.iter().map(|&(w, r)| Twist::Overlap(w, r)).collect();
            share(overlap, eighth);
            share(vec![Twist::Deep], eighth);
            share(vec![Twist::Loop], eighth);
        }
        twists
    }

    /// Whether a variable may be a tile of many columns.
    fn is_row(&self, var: VarId) -> bool {
        let mut choices = self.vars[var].iter();
        choices.any(|choice| matches!(choice, Choice::Tile(_, false)))
    }
}
