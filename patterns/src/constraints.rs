//! The named constraints: one table, sorted by name.
//!
//! A constraint is asked once all instructions of a form are found. It looks and changes nothing; it
//! says no where it does not know. An operand that several instructions have need not be the same bytes
//! to all of them, so what is asked of it holds for each, if not said otherwise.

use bir_dialect::analysis::access::footprint;
use bir_dialect::bir::access::Access;
use bir_dialect::bir::attrs::number_bits;
use bir_dialect::bir::num::{DType, convert, parse, same_value};
use bir_dialect::bir::ops::{OpCode, Trait, reads_hidden_state, writes_hidden_state};
use bir_dialect::bir::space::{DTypeSet, Engine, Space};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Attr, AttrView, Ir, Op, Operand};

use crate::facts;
use crate::matcher::Site;
use crate::rule::{Arg, VarId};

/// What an argument may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Param {
    /// An operand, `%x`.
    Tile,
    /// An attribute, `$c`.
    Attr,
    /// A number.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Param {
    /// What messages call it.
    pub fn noun(self) -> String {
        match self {
            Param::Tile => "an operand `%x`".to_owned(),
            Param::Attr => "an attribute `$c`".to_owned(),
            Param::Number => "a number".to_owned(),
            Param::Word(words) => format!("`{}`", words.join("`, `")),
        }
    }
}

/// What an answer depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Looks {
    /// The instructions of the match: their ops, dictionaries, accesses, the types of their operands and
    /// which of these are one location; the target.
    Instruction,
    /// More: memory, other instructions, where locations come from.
    Program,
}

/// A named constraint.
pub struct Constraint {
    /// Its name.
    pub name: &'static str,
    /// What it is asked of.
    pub params: &'static [Param],
    /// When it holds.
    pub doc: &'static str,
    /// What its answer depends on.
    pub looks: Looks,
    /// Asks it.
    pub(crate) holds: fn(&mut Site<'_>, &[Arg]) -> Option<bool>,
}

impl std::fmt::Debug for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const SPACES: &[&str] = &["dram", "sbuf", "psum"];
const ENGINES: &[&str] = &["pe", "act", "dve", "pool", "sp", "dma"];

/// All constraints.
pub static CONSTRAINTS: &[Constraint] = &[
    Constraint {
        name: "accumulator_free",
        params: &[Param::Tile],
        doc: "nobody goes on with what the accumulator of the operand's engine holds there: behind the \
              instruction it is started anew first, or not used",
        looks: Looks::Program,
        holds: accumulator_free,
    },
    Constraint {
        name: "all_free_axes",
        params: &[Param::Attr, Param::Tile],
        doc: "the list names every dimension of the operand's access but the partition",
        looks: Looks::Instruction,
        holds: all_free_axes,
    },
    Constraint {
        name: "at_most",
        params: &[Param::Tile, Param::Number],
        doc: "the operand has at most so many elements per partition",
        looks: Looks::Instruction,
        holds: at_most,
    },
    Constraint {
        name: "covers",
        params: &[Param::Tile, Param::Tile],
        doc: "the first operand accesses every byte the second does, of one location",
        looks: Looks::Instruction,
        holds: covers,
    },
    Constraint {
        name: "disjoint",
        params: &[Param::Tile, Param::Tile],
        doc: "the operands are of different locations, or of one and share no byte of it",
        looks: Looks::Program,
        holds: disjoint,
    },
    Constraint {
        name: "engine",
        params: &[Param::Tile, Param::Word(ENGINES)],
        doc: "the instruction that writes the operand, or else the first that reads it, runs on that engine",
        looks: Looks::Instruction,
        holds: engine,
    },
    Constraint {
        name: "exact_int",
        params: &[Param::Tile],
        doc: "integers computed exactly: of at most 16 bits, or of 32 bits in a `tensor_tensor` on \
              `pool` all of whose operands are 32-bit integers",
        looks: Looks::Instruction,
        holds: exact_int,
    },
    Constraint {
        name: "full",
        params: &[Param::Tile],
        doc: "the operand is the whole of its location, in order",
        looks: Looks::Instruction,
        holds: full,
    },
    Constraint {
        name: "identity_matrix",
        params: &[Param::Tile],
        doc: "the operand is known to be a whole square matrix with 1 on the diagonal and +0 elsewhere",
        looks: Looks::Program,
        holds: identity_matrix,
    },
    Constraint {
        name: "internal",
        params: &[Param::Tile],
        doc: "nobody outside the function sees the location",
        looks: Looks::Program,
        holds: internal,
    },
    Constraint {
        name: "representable",
        params: &[Param::Attr, Param::Tile],
        doc: "the number is one of the operand's dtype, exactly",
        looks: Looks::Instruction,
        holds: representable,
    },
    Constraint {
        name: "same_access",
        params: &[Param::Tile],
        doc: "all instructions that have the operand access the same elements in the same order",
        looks: Looks::Instruction,
        holds: same_access,
    },
    Constraint {
        name: "same_dtype",
        params: &[Param::Tile, Param::Tile],
        doc: "both operands have one dtype",
        looks: Looks::Instruction,
        holds: same_dtype,
    },
    Constraint {
        name: "sole_reader",
        params: &[Param::Tile],
        doc: "nobody but the instructions of the match reads what was written, and nobody outside sees it",
        looks: Looks::Program,
        holds: sole_reader,
    },
    Constraint {
        name: "space",
        params: &[Param::Tile, Param::Word(SPACES)],
        doc: "the location is in that memory",
        looks: Looks::Instruction,
        holds: space,
    },
    Constraint {
        name: "uniform",
        params: &[Param::Tile, Param::Number],
        doc: "every element read is known to be that number, the sign of a zero included",
        looks: Looks::Program,
        holds: uniform,
    },
    Constraint {
        name: "zero",
        params: &[Param::Tile],
        doc: "every element read is known to be +0",
        looks: Looks::Program,
        holds: zero,
    },
];

/// Dtypes by one word: all that is `float`, and so on.
pub static CLASSES: &[(&str, &str)] = &[
    (
        "exact_in_f32",
        "every value of the dtype is an f32: floats, integers of at most 16 bits; not bool, of which arithmetic \
         makes 0 or 1",
    ),
    ("float", "the dtype is a floating-point format"),
    ("integer", "the dtype is an integer, or bool"),
];

/// The constraint of a name.
pub fn find(name: &str) -> Option<&'static Constraint> {
    CONSTRAINTS.iter().find(|one| one.name == name)
}

/// The dtypes a name stands for: those of a class, or one by its own name.
pub fn dtypes(name: &str) -> Option<DTypeSet> {
    if let Some(dtype) = DType::from_name(name) {
        return Some(DTypeSet::of(&[dtype]));
    }
    let is: fn(DType) -> bool = match name {
        "float" => DType::is_float,
        "integer" => DType::is_integer,
        "exact_in_f32" => |dtype| {
            let is_small = dtype.is_integer() && dtype.bits() <= 16 && dtype != DType::Bool;
            dtype.is_float() || is_small
        },
        _ => return None,
    };
    let mut set = DTypeSet::EMPTY;
    for &dtype in DType::ALL.iter().filter(|&&dtype| is(dtype)) {
        set = set.or(DTypeSet::of(&[dtype]));
    }
    Some(set)
}

/// Every name a condition may begin with.
pub fn names() -> impl Iterator<Item = &'static str> {
    let dtypes = DType::ALL.iter().map(|dtype| dtype.name());
    CONSTRAINTS
        .iter()
        .map(|one| one.name)
        .chain(CLASSES.iter().map(|one| one.0))
        .chain(crate::rule::Flags::NAMES)
        .chain(dtypes)
}

fn tile(args: &[Arg], at: usize) -> Option<VarId> {
    match args.get(at) {
        Some(Arg::Tile(var)) => Some(*var),
        _ => None,
    }
}

fn attr(site: &Site<'_>, args: &[Arg], at: usize) -> Option<Attr> {
    match args.get(at) {
        Some(Arg::Attr(var)) => site.literal(*var),
        _ => None,
    }
}

fn word(args: &[Arg], at: usize) -> &[String] {
    match args.get(at) {
        Some(Arg::Words(words)) => words,
        _ => &[],
    }
}

fn access<'a>(site: &Site<'a>, found: (Op, Operand)) -> Option<(MemType<'a>, Access)> {
    OpView::new(site.ir, found.0).access(found.1)
}

/// An operand of an instruction.
type Place = (Op, Operand);

/// Whether something holds for every access of an operand; `None` where it is no tile.
fn every(
    site: &Site<'_>,
    args: &[Arg],
    at: usize,
    holds: &mut dyn FnMut(&MemType<'_>, &Access) -> bool,
) -> Option<bool> {
    let all = site.operands(tile(args, at)?);
    let mut good = !all.is_empty();
    for found in all {
        let (mem, access) = access(site, found)?;
        good &= holds(&mem, &access);
    }
    Some(good)
}

/// Whether something holds for every two accesses of two operands.
fn pairs(
    site: &Site<'_>,
    args: &[Arg],
    holds: fn(&Site<'_>, Place, Place) -> Option<bool>,
) -> Option<bool> {
    let (a, b) = (site.operands(tile(args, 0)?), site.operands(tile(args, 1)?));
    let mut good = !a.is_empty() && !b.is_empty();
    for &one in &a {
        for &other in &b {
            good &= holds(site, one, other)?;
        }
    }
    Some(good)
}

/// The instruction that writes an operand, or the first that reads it.
fn home(site: &Site<'_>, args: &[Arg], at: usize) -> Option<(Op, Operand)> {
    site.operands(tile(args, at)?).first().copied()
}

fn accumulator_free(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (op, _) = home(site, args, 0)?;
    let ir = site.ir;
    let engine = OpView::new(ir, op).engine()?;
    let of_engine = |op: Op| {
        let view = OpView::new(ir, op);
        let hidden = view.def().is_some_and(|def| def.has(Trait::HiddenState));
        hidden && view.engine() == Some(engine)
    };
    let goes_on = |op: Op| of_engine(op) && goes_on(ir, op);
    let func = site.flow.func();
    let states = site.flow.states(ir);
    for &at in states.behind(ir, op) {
        if ir.walk_op(at).any(goes_on) {
            return Some(false);
        }
        if ir.regions(at).is_empty() && of_engine(at) && writes_hidden_state(ir, at) {
            // It starts anew.
            return Some(true);
        }
    }
    // What is elsewhere may come later, and does where a loop repeats it.
    let own = ir.block(op)?;
    let elsewhere =
        |at: Op| ir.block(at) != Some(own) || ir.order_in_block(at) < ir.order_in_block(op);
    let straight = ir.parent(op) == Some(func) && ir.next_block(own).is_none();
    Some(straight || !states.all().any(|at| elsewhere(at) && goes_on(at)))
}

/// Whether what an instruction does depends on what its engine's accumulator holds.
fn goes_on(ir: &Ir, op: Op) -> bool {
    if reads_hidden_state(ir, op) {
        return true;
    }
    let view = OpView::new(ir, op);
    if !writes_hidden_state(ir, op) || view.code() == Some(OpCode::ActivationReduce) {
        return false;
    }
    !matches!(view.word("reduce_cmd"), Some("reset" | "load" | "clear"))
}

fn all_free_axes(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let list = attr(site, args, 0)?;
    let AttrView::Array(list) = site.ir.ctx.attr(list) else {
        return None;
    };
    let axes: Vec<Option<i64>> = list.iter().map(|axis| site.ir.ctx.attr_int(axis)).collect();
    every(site, args, 1, &mut |_, access| {
        let wanted = (1..=access.pairs.len() as i64).map(Some);
        axes.iter().copied().eq(wanted)
    })
}

fn at_most(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let Some(Arg::Number(text)) = args.get(1) else {
        return None;
    };
    let most: f64 = text.parse().ok()?;
    every(site, args, 0, &mut |_, access| {
        access.elements() as f64 <= most
    })
}

fn covers(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    pairs(site, args, covered)
}

fn covered(site: &Site<'_>, a: Place, b: Place) -> Option<bool> {
    if site.ir.operand(a.1).value != site.ir.operand(b.1).value {
        return Some(false);
    }
    if site.same_elements(a, b) {
        return Some(true);
    }
    let ((_, x), (_, y)) = (access(site, a)?, access(site, b)?);
    if !x.terms.is_empty() || !y.terms.is_empty() {
        return Some(false);
    }
    let (x, y) = (footprint(&x)?, footprint(&y)?);
    Some(x.is_exact() && x.covers(&y))
}

fn disjoint(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    pairs(site, args, apart)
}

fn apart(site: &Site<'_>, a: Place, b: Place) -> Option<bool> {
    let (one, other) = (site.ir.operand(a.1).value, site.ir.operand(b.1).value);
    let ((_, x), (_, y)) = (access(site, a)?, access(site, b)?);
    let alone = |value| {
        let alloc = site.ir.def_op(value)?;
        Some(site.ir.attr(alloc, "must_alias").is_none() && site.ir.attr(alloc, "at").is_none())
    };
    if one != other {
        return Some(alone(one)? && alone(other)?);
    }
    if !x.terms.is_empty() || !y.terms.is_empty() {
        return Some(false);
    }
    Some(!footprint(&x)?.overlaps(&footprint(&y)?))
}

fn engine(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (op, _) = home(site, args, 0)?;
    let engine = OpView::new(site.ir, op).engine()?;
    Some(
        word(args, 1)
            .iter()
            .any(|one| Engine::from_name(one) == Some(engine)),
    )
}

fn exact_int(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let found = home(site, args, 0)?;
    let mut bits = 0;
    let integer = every(site, args, 0, &mut |_, access| {
        bits = bits.max(access.dtype.bits());
        access.dtype.is_integer()
    })?;
    if !integer || bits <= 16 {
        return Some(integer);
    }
    let view = OpView::new(site.ir, found.0);
    let all_wide = site.ir.operand_ids(found.0).all(|operand| {
        let access = OpView::new(site.ir, found.0).access(operand);
        access.is_none_or(|(_, access)| matches!(access.dtype, DType::I32 | DType::U32))
    });
    Some(
        view.code() == Some(OpCode::TensorTensor)
            && view.engine() == Some(Engine::Pool)
            && all_wide,
    )
}

fn full(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    every(site, args, 0, &mut |mem, access| access.is_whole(mem))
}

fn identity_matrix(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let known = |site: &mut Site<'_>, (op, operand)| {
        facts::is_identity_matrix(site.ir, site.flow, op, operand).then_some((DType::F32, 0))
    };
    values(site, args, known, &mut |_, _| true)
}

fn internal(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (_, operand) = site.operand(tile(args, 0)?)?;
    Some(is_internal(site, operand))
}

fn is_internal(site: &Site<'_>, operand: Operand) -> bool {
    let Some(alloc) = site.ir.def_op(site.ir.operand(operand).value) else {
        return false;
    };
    let view = OpView::new(site.ir, alloc);
    let escapes = ["must_alias", "remote_target", "written_by_core", "boundary"];
    view.word("kind").is_none_or(|kind| kind == "internal")
        && view.word("space").is_none_or(|space| space == "local")
        && escapes
            .iter()
            .all(|name| site.ir.attr(alloc, name).is_none())
}

fn representable(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (dtype, bits) = number_bits(&site.ir.ctx, attr(site, args, 0)?)?;
    every(site, args, 1, &mut |_, access| {
        let there = convert(dtype, access.dtype, bits);
        let back = there.and_then(|there| convert(access.dtype, dtype, there));
        back.is_some_and(|back| same_value(dtype, back, bits))
    })
}

fn same_access(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let all = site.operands(tile(args, 0)?);
    let (&first, rest) = all.split_first()?;
    Some(rest.iter().all(|&other| site.same_elements(first, other)))
}

fn same_dtype(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let mut first = None;
    let mut same =
        |_: &MemType<'_>, access: &Access| *first.get_or_insert(access.dtype) == access.dtype;
    Some(every(site, args, 0, &mut same)? && every(site, args, 1, &mut same)?)
}

fn sole_reader(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let var = tile(args, 0)?;
    let (stmt, role) = site.form.writer(var)?;
    let (op, operand) = site.operand_at(stmt, role)?;
    if !is_internal(site, operand) {
        return Some(false);
    }
    let (readers, all) = site.flow.memory(site.ir).readers_of(site.ir, op, operand);
    let matched = site.form.places(var).filter(|&place| place != (stmt, role));
    let matched: Vec<Option<Op>> = matched.map(|(stmt, _)| site.found.ops[stmt]).collect();
    let known = readers
        .iter()
        .all(|&reader| matched.contains(&Some(reader)));
    Some(all && known)
}

fn space(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (mem, _) = access(site, site.operand(tile(args, 0)?)?)?;
    Some(
        word(args, 1)
            .iter()
            .any(|one| Space::from_name(one) == Some(mem.space)),
    )
}

/// The one value of all elements an operand reads.
fn fill(site: &mut Site<'_>, (op, operand): Place) -> Option<(DType, u64)> {
    facts::uniform(site.ir, site.flow, op, operand)
}

/// Whether something holds for what is known of every read of an operand.
fn values(
    site: &mut Site<'_>,
    args: &[Arg],
    known: fn(&mut Site<'_>, Place) -> Option<(DType, u64)>,
    holds: &mut dyn FnMut(DType, u64) -> bool,
) -> Option<bool> {
    let var = tile(args, 0)?;
    let form = site.form;
    let reads = |&(stmt, role): &(usize, usize)| {
        let role = &form.stmts[stmt].code.def().operands[role];
        role.reads()
    };
    let places: Vec<(usize, usize)> = form.places(var).filter(reads).collect();
    let mut good = !places.is_empty();
    for (stmt, role) in places {
        let found = site.operand_at(stmt, role)?;
        let (dtype, bits) = known(site, found)?;
        good &= holds(dtype, bits);
    }
    Some(good)
}

fn uniform(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let Some(Arg::Number(text)) = args.get(1) else {
        return None;
    };
    values(site, args, fill, &mut |dtype, bits| {
        is_number(dtype, bits, text)
    })
}

/// Whether bits are exactly the number a text says.
pub(crate) fn is_number(dtype: DType, bits: u64, text: &str) -> bool {
    // `1.0` is an integer's 1, and no number is rounded to be equal. No integer is -0.0: what is added
    // to a float is +0.0.
    let exact = match parse(DType::F32, text) {
        Ok(wanted) => convert(dtype, DType::F32, bits).is_some_and(|found| {
            let exact =
                convert(DType::F32, dtype, found).is_some_and(|back| same_value(dtype, back, bits));
            same_value(DType::F32, found, wanted) && exact
        }),
        Err(_) => false,
    };
    exact || parse(dtype, text).is_ok_and(|wanted| dtype.is_integer() && wanted == bits)
}

fn zero(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    values(site, args, fill, &mut |_, bits| bits == 0)
}
