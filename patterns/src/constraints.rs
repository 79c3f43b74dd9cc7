//! The named constraints: one table, sorted by name.
//!
//! A constraint is asked once all instructions of a form are found. It looks and changes nothing; it
//! says no where it does not know.

use bir_dialect::analysis::access::footprint;
use bir_dialect::bir::access::Access;
use bir_dialect::bir::attrs::number_bits;
use bir_dialect::bir::num::{DType, convert, parse, same_value};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::{DTypeSet, Engine, Space};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Attr, AttrView, Op, Operand};

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

/// A named constraint.
pub struct Constraint {
    /// Its name.
    pub name: &'static str,
    /// What it is asked of.
    pub params: &'static [Param],
    /// When it holds.
    pub doc: &'static str,
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
        name: "all_free_axes",
        params: &[Param::Attr, Param::Tile],
        doc: "the list names every dimension of the operand's access but the partition",
        holds: all_free_axes,
    },
    Constraint {
        name: "at_most",
        params: &[Param::Tile, Param::Number],
        doc: "the operand has at most so many elements per partition",
        holds: at_most,
    },
    Constraint {
        name: "disjoint",
        params: &[Param::Tile, Param::Tile],
        doc: "the operands are of different locations, or of one and share no byte of it",
        holds: disjoint,
    },
    Constraint {
        name: "engine",
        params: &[Param::Tile, Param::Word(ENGINES)],
        doc: "the instruction in which the operand is bound runs on that engine",
        holds: engine,
    },
    Constraint {
        name: "exact_int",
        params: &[Param::Tile],
        doc: "integers computed exactly: of at most 16 bits, or of 32 bits in a `tensor_tensor` on \
              `pool` all of whose operands are 32-bit integers",
        holds: exact_int,
    },
    Constraint {
        name: "full",
        params: &[Param::Tile],
        doc: "the operand is the whole of its location, in order",
        holds: full,
    },
    Constraint {
        name: "internal",
        params: &[Param::Tile],
        doc: "nobody outside the function sees the location",
        holds: internal,
    },
    Constraint {
        name: "representable",
        params: &[Param::Attr, Param::Tile],
        doc: "the number is one of the operand's dtype, exactly",
        holds: representable,
    },
    Constraint {
        name: "same_access",
        params: &[Param::Tile],
        doc: "all instructions that have the operand access the same elements in the same order",
        holds: same_access,
    },
    Constraint {
        name: "same_dtype",
        params: &[Param::Tile, Param::Tile],
        doc: "both operands have one dtype",
        holds: same_dtype,
    },
    Constraint {
        name: "sole_reader",
        params: &[Param::Tile],
        doc: "nobody but the instructions of the match reads what was written, and nobody outside sees it",
        holds: sole_reader,
    },
    Constraint {
        name: "space",
        params: &[Param::Tile, Param::Word(SPACES)],
        doc: "the location is in that memory",
        holds: space,
    },
    Constraint {
        name: "uniform",
        params: &[Param::Tile, Param::Number],
        doc: "every element read is known to be that number, the sign of a zero included",
        holds: uniform,
    },
    Constraint {
        name: "zero",
        params: &[Param::Tile],
        doc: "every element read is known to be +0",
        holds: zero,
    },
];

/// Dtypes by one word: all that is `float`, and so on.
pub static CLASSES: &[(&str, &str)] = &[
    (
        "exact_in_f32",
        "every value of the dtype is an f32: floats, integers of at most 16 bits",
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
        "exact_in_f32" => |dtype| dtype.is_float() || dtype.is_integer() && dtype.bits() <= 16,
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

fn all_free_axes(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let list = attr(site, args, 0)?;
    let AttrView::Array(list) = site.ir.ctx.attr(list) else {
        return None;
    };
    let (_, access) = access(site, site.operand(tile(args, 1)?)?)?;
    let axes = list.iter().map(|axis| site.ir.ctx.attr_int(axis));
    Some(axes.eq((1..=access.pairs.len() as i64).map(Some)))
}

fn at_most(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (_, access) = access(site, site.operand(tile(args, 0)?)?)?;
    let Some(Arg::Number(text)) = args.get(1) else {
        return None;
    };
    Some(access.elements() as f64 <= text.parse::<f64>().ok()?)
}

fn disjoint(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let a = site.operand(tile(args, 0)?)?;
    let b = site.operand(tile(args, 1)?)?;
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
    let (op, _) = site.operand(tile(args, 0)?)?;
    let engine = OpView::new(site.ir, op).engine()?;
    Some(
        word(args, 1)
            .iter()
            .any(|one| Engine::from_name(one) == Some(engine)),
    )
}

fn exact_int(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let found = site.operand(tile(args, 0)?)?;
    let dtype = access(site, found)?.1.dtype;
    if !dtype.is_integer() {
        return Some(false);
    }
    if dtype.bits() <= 16 {
        return Some(true);
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
    let (mem, access) = access(site, site.operand(tile(args, 0)?)?)?;
    Some(access.is_whole(&mem))
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
    let to = access(site, site.operand(tile(args, 1)?)?)?.1.dtype;
    let there = convert(dtype, to, bits)?;
    let back = convert(to, dtype, there)?;
    Some(same_value(dtype, back, bits))
}

fn same_access(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let all = site.operands(tile(args, 0)?);
    let (&first, rest) = all.split_first()?;
    Some(rest.iter().all(|&other| site.same_elements(first, other)))
}

fn same_dtype(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let a = access(site, site.operand(tile(args, 0)?)?)?.1.dtype;
    let b = access(site, site.operand(tile(args, 1)?)?)?.1.dtype;
    Some(a == b)
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

fn uniform(site: &mut Site<'_>, args: &[Arg]) -> Option<bool> {
    let (op, operand) = site.operand(tile(args, 0)?)?;
    let Some(Arg::Number(text)) = args.get(1) else {
        return None;
    };
    let (dtype, bits) = facts::uniform(site.ir, site.flow, op, operand)?;
    Some(is_number(dtype, bits, text))
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
    let (op, operand) = site.operand(tile(args, 0)?)?;
    let (_, bits) = facts::uniform(site.ir, site.flow, op, operand)?;
    Some(bits == 0)
}
