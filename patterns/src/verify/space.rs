//! Which instances there are: what variables, engines and words may be.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{AttrType, NUMERIC, OpCode};
use bir_dialect::bir::space::{Engine, Space as Memory, SpaceSet, Target};
use bir_sim::random::Random;

use super::twist::Twist;
use crate::check::domain;
use crate::constraints::Constraint;
use crate::rule::{Arg, AttrWhat, Cond, Form, VarId, VarKind, What};

/// What a variable is in an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// A tile of that dtype, of all columns or of one.
    Tile(DType, bool),
    /// A literal or a word.
    Text(String),
    /// A pattern over all elements of a row, of that step.
    Ramp(i64),
    /// A flag that is set.
    Set,
    /// Nothing.
    Absent,
}

/// One way to build an instance: per variable, and per instruction its engine.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub vars: Vec<Choice>,
    pub twist: Twist,
    pub engines: Vec<Option<Engine>>,
    /// Per choice of words in the form, in order, which is taken.
    pub words: Vec<usize>,
}

/// All ways to build an instance, or a fixed share of them.
pub(super) struct Space<'a> {
    pub(super) form: &'a Form,
    pub(super) vars: Vec<Vec<Choice>>,
    engines: Vec<Vec<Option<Engine>>>,
    /// Per choice of words in the form, in order, how many there are.
    words: Vec<usize>,
    pub(super) limit: usize,
}

/// Dtypes in the order they are tried: the best known first.
const ORDER: &[DType] = &[
    DType::F32,
    DType::Bf16,
    DType::F16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F8E4M3FN,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::Tf32,
    DType::Bool,
];

/// Literals that tell rules apart: powers of two, of which too much is true; numbers that round,
/// products and quotients of which do so again; the edges.
const LITERALS: &[&str] = &[
    "2.0",
    "0.7",
    "0.0",
    "1.0",
    "-0.0",
    "-1.0",
    "1.1",
    "0.5",
    "3.0",
    "-3.3",
    "inf",
    "nan",
    "0.33333334",
    "255.5",
    "1.0e-3",
    "1.0e30",
    "1.0e-40",
    "255",
    "16777217.0",
    "-inf",
];

impl<'a> Space<'a> {
    pub(super) fn new(form: &'a Form, limit: usize) -> Space<'a> {
        let vars = (0..form.vars.len()).map(|var| choices(form, var)).collect();
        let engines = form
            .stmts
            .iter()
            .map(|stmt| {
                let named = stmt.attrs.iter().any(|attr| attr.def.name == "engine");
                let legal = stmt
                    .code
                    .def()
                    .engines
                    .map(|engines| engines.on(Target::Trn2));
                match legal {
                    Some(legal) if !named && stmt.code.def().words.len() < 3 => {
                        let others = legal.iter().map(Some);
                        [None].into_iter().chain(others).collect()
                    }
                    _ => vec![None],
                }
            })
            .collect();
        let words = choices_of_words(form)
            .map(|(_, words)| words.len())
            .collect();
        Space {
            form,
            vars,
            engines,
            words,
            limit,
        }
    }

    /// The ways, the ordinary ones first, and of these that of all first choices.
    pub(super) fn assignments(&self) -> impl Iterator<Item = Assignment> + '_ {
        let twisted = self
            .twists()
            .into_iter()
            .flat_map(|(twist, limit)| self.ways(limit, twist));
        self.ways(self.limit, Twist::None).chain(twisted)
    }

    /// The ordinary ways, and those with somebody around.
    pub(super) fn plain_assignments(&self) -> impl Iterator<Item = Assignment> + '_ {
        let around = super::hidden::State::all(self.form).into_iter();
        let around = around.flat_map(|state| self.ways(self.limit, Twist::Around(state)));
        self.ways(self.limit, Twist::None).chain(around)
    }

    /// Variables whose tiles have the dtype of others: pairs of the other, and the one.
    fn ties(&self, twist: Twist) -> Vec<(VarId, VarId)> {
        let mut ties: Vec<(VarId, VarId)> = Vec::new();
        let mut tie = |a: VarId, b: VarId| {
            let is_tied = |var| ties.iter().any(|tie| tie.1 == var);
            match (is_tied(a), is_tied(b)) {
                (_, false) if a != b => ties.push((a, b)),
                (false, true) if a != b => ties.push((b, a)),
                _ => {}
            }
        };
        if let Twist::InPlace(written, read) | Twist::Overlap(written, read) = twist {
            tie(written, read);
        }
        for (constraint, args) in calls(self.form) {
            if constraint.name == "same_dtype"
                && let [Arg::Tile(a), Arg::Tile(b)] = args[..]
            {
                tie(a, b);
            }
        }
        // Instructions of two dtypes there are none of.
        for stmt in &self.form.stmts {
            let alike = stmt.code.def().same_dtype;
            let mut tiles = stmt.operands.iter().filter_map(|one| match one.what {
                What::Tile(var) if alike.contains(&stmt.code.def().operands[one.role].name) => {
                    Some(var)
                }
                _ => None,
            });
            if let Some(first) = tiles.next() {
                tiles.for_each(|other| tie(first, other));
            }
        }
        ties
    }

    pub(super) fn ways(&self, limit: usize, twist: Twist) -> impl Iterator<Item = Assignment> + '_ {
        let ties = self.ties(twist);
        let tied = |var: usize| ties.iter().any(|tie| tie.1 == var);
        let counts: Vec<usize> = (0..self.vars.len())
            .map(|var| match self.form.vars[var].kind {
                VarKind::Tile if tied(var) => 1,
                // What names a second free dimension is for tiles that have one.
                VarKind::Attr if twist != Twist::Deep && is_axes(self.form, var) => 1,
                _ => self.vars[var].len(),
            })
            .collect();
        let radices: Vec<usize> = self
            .words
            .iter()
            .copied()
            .chain(self.engines.iter().map(Vec::len))
            .chain(counts)
            .collect();
        sample(radices, limit as u64).map(move |digits| {
            let mut digits = digits.into_iter();
            let words = self
                .words
                .iter()
                .map(|_| digits.next().unwrap_or(0))
                .collect();
            let engines = self
                .engines
                .iter()
                .map(|list| list[digits.next().unwrap_or(0)])
                .collect();
            let mut vars: Vec<Choice> = self
                .vars
                .iter()
                .map(|list| list[digits.next().unwrap_or(0)].clone())
                .collect();
            // A chain of ties is as long as there are ties.
            for &(of, var) in ties.iter().flat_map(|_| &ties) {
                let column = self.vars[var].iter().find_map(|choice| match choice {
                    Choice::Tile(_, column) => Some(*column),
                    _ => None,
                });
                if let (Choice::Tile(dtype, _), Some(column)) = (&vars[of], column) {
                    vars[var] = Choice::Tile(*dtype, column);
                }
            }
            Assignment {
                vars,
                twist,
                engines,
                words,
            }
        })
    }
}

/// Choices of one from each list, of lists of so many: all of them where there are no more than
/// `limit`, else so many. The first is that of all firsts. Each list is gone through in an order of
/// its own, shuffled every time, so that every one of its choices comes as often and with any of the
/// others.
fn sample(radices: Vec<usize>, limit: u64) -> impl Iterator<Item = Vec<usize>> {
    let total = radices
        .iter()
        .fold(1u64, |total, &radix| total.saturating_mul(radix as u64));
    let mut rounds: Vec<Vec<usize>> = vec![Vec::new(); radices.len()];
    let mut random = Random::new(0, "choices");
    (0..total.min(limit)).map(move |number| {
        if total <= limit {
            let mut rest = number;
            let digits = radices.iter().map(|&radix| {
                let digit = (rest % radix as u64) as usize;
                rest /= radix as u64;
                digit
            });
            return digits.collect();
        }
        let digits = radices.iter().zip(&mut rounds).map(|(&radix, round)| {
            if round.is_empty() {
                // The last is taken first.
                round.extend((0..radix).rev());
                let moving = if number == 0 { radix - 1 } else { radix };
                for at in (1..moving).rev() {
                    round.swap(at, random.below(at as u64 + 1) as usize);
                }
            }
            round.pop().unwrap_or(0)
        });
        digits.collect()
    })
}

/// The places where a form has several words: instruction and attribute, and the words.
pub(super) fn choices_of_words(
    form: &Form,
) -> impl Iterator<Item = ((usize, &'static str), &[String])> {
    form.stmts.iter().enumerate().flat_map(|(number, stmt)| {
        stmt.attrs.iter().filter_map(move |attr| match &attr.what {
            AttrWhat::Words(words) if words.len() > 1 => {
                Some(((number, attr.def.name), &words[..]))
            }
            _ => None,
        })
    })
}

/// The constraints that must hold, whatever else does.
pub(super) fn calls(form: &Form) -> Vec<(&'static Constraint, &[Arg])> {
    fn walk<'f>(cond: &'f Cond, out: &mut Vec<(&'static Constraint, &'f [Arg])>) {
        match cond {
            Cond::All(list) => list.iter().for_each(|one| walk(one, out)),
            Cond::Call(constraint, args, _) => out.push((constraint, args)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    form.conds.iter().for_each(|cond| walk(cond, &mut out));
    out
}

/// Memories a variable may be in, as far as roles and conditions say.
pub(super) fn legal_spaces(form: &Form, var: VarId) -> SpaceSet {
    let legal = domain(form, var).1;
    let asked = calls(form).into_iter().find_map(|(constraint, args)| {
        let [Arg::Tile(of), Arg::Words(words)] = args else {
            return None;
        };
        (constraint.name == "space" && *of == var).then_some(words)
    });
    let Some(words) = asked else { return legal };
    let spaces = Memory::ALL.iter().copied();
    let fitting: Vec<Memory> = spaces
        .filter(|space| legal.has(*space) && words.iter().any(|word| word == space.name()))
        .collect();
    SpaceSet::of(&fitting)
}

fn bound_in(form: &Form, var: VarId) -> Option<&crate::rule::StmtAttr> {
    let mut attrs = form.stmts.iter().flat_map(|stmt| &stmt.attrs);
    attrs.find(|attr| matches!(attr.what, AttrWhat::Bind(id) if id == var))
}

fn is_axes(form: &Form, var: VarId) -> bool {
    bound_in(form, var).is_some_and(|attr| matches!(attr.def.ty, AttrType::IntList { .. }))
}

fn choices(form: &Form, var: VarId) -> Vec<Choice> {
    let mut list = match form.vars[var].kind {
        VarKind::Tile => tile_choices(form, var),
        VarKind::Attr => attr_choices(form, var),
    };
    if list.is_empty() {
        list.push(Choice::Absent);
    }
    list
}

fn literals() -> impl Iterator<Item = Choice> {
    LITERALS.iter().map(|text| Choice::Text((*text).to_owned()))
}

fn tile_choices(form: &Form, var: VarId) -> Vec<Choice> {
    let mut list = Vec::new();
    let places: Vec<(usize, usize)> = form.places(var).collect();
    let role = |&(stmt, role): &(usize, usize)| {
        let def = form.stmts[stmt].code.def();
        (def, &def.operands[role])
    };
    let is_scalar = places.iter().all(|place| role(place).1.takes_literal());
    let column = places.iter().any(|place| {
        let (def, role) = role(place);
        let rows = matches!(
            form.stmts[place.0].code,
            OpCode::TensorReduce | OpCode::ReadActivationAccumulator
        );
        def.per_partition.contains(&role.name) || rows && role.name == "dst"
    });
    if is_scalar {
        list.extend(literals());
    }
    let legal = domain(form, var).0;
    for &dtype in ORDER
        .iter()
        .filter(|&&dtype| legal.has(dtype) && NUMERIC.has(dtype))
    {
        list.push(Choice::Tile(dtype, column));
        // Where a number may stand may also be one for every partition.
        if is_scalar && !column {
            list.push(Choice::Tile(dtype, true));
        }
    }
    let optional = form.stmts.iter().flat_map(|stmt| &stmt.operands);
    if optional
        .filter(|one| matches!(one.what, What::Tile(id) if id == var))
        .all(|one| one.optional)
    {
        list.push(Choice::Absent);
    }
    list
}

fn attr_choices(form: &Form, var: VarId) -> Vec<Choice> {
    let mut list = Vec::new();
    let text = |text: &str| Choice::Text(text.to_owned());
    let bound = bound_in(form, var);
    match bound.map(|attr| attr.def.ty) {
        Some(AttrType::Enum(words)) => list.extend(words.words.iter().map(|word| text(word))),
        Some(AttrType::Flag | AttrType::Accumulate) => list.push(Choice::Set),
        // The first is for tiles of one free dimension.
        Some(AttrType::IntList { .. }) => list.extend(["[1]", "[2]", "[1, 2]"].map(text)),
        Some(AttrType::Pattern) => list.extend([1, 0, -1, 3].map(Choice::Ramp)),
        Some(AttrType::Int { min, max }) => {
            let ints = [0, 1, 2, 7, -3].into_iter();
            let ints = ints.filter(|int| (min..=max).contains(int));
            list.extend(ints.map(|int| Choice::Text(int.to_string())));
        }
        _ => list.extend(literals()),
    }
    let optional = bound.is_some_and(|attr| attr.optional)
        || form
            .stmts
            .iter()
            .flat_map(|stmt| &stmt.operands)
            .any(|one| one.optional && matches!(one.what, What::Literal(id) if id == var));
    if optional {
        list.push(Choice::Absent);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::sample;

    #[test]
    fn few_choices_are_all_taken_and_of_many_each_as_often_and_not_in_step() {
        let all: Vec<Vec<usize>> = sample(vec![2, 3], 10).collect();
        assert_eq!(all.len(), 6);
        let some: Vec<Vec<usize>> = sample(vec![20, 20, 14, 4], 700).collect();
        assert_eq!((some.len(), &some[0][..]), (700, &[0, 0, 0, 0][..]));
        for at in 0..20 {
            let often = some.iter().filter(|way| way[0] == at).count();
            assert_eq!(often, 35, "{at}");
        }
        // Two lists of one length come together in most of their pairs.
        let mut pairs: Vec<(usize, usize)> = some.iter().map(|way| (way[0], way[1])).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert!(pairs.len() > 300, "{}", pairs.len());
    }
}
