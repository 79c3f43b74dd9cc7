//! A BIR file in memory: the registered names, the columns, and what they hold.

use std::sync::LazyLock;

use smallvec::SmallVec;

use super::ops::{COMMON_ATTRS, OPS, OpCode, Trait};
use super::space::Target;
use super::view::OpView;
use crate::ir::{Column, ColumnKind, Context, Ir, Op, OpName, OpTraits, Str};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Strings with a fixed handle in every BIR context.
        pub mod names {
            use super::*;
            names!(@consts 0u32; $($(#[$doc])* $name)*);
            pub(super) const TEXTS: &[&str] = &[$($text),*];
        }
    };
    (@consts $n:expr; ) => {};
    (@consts $n:expr; $(#[$doc:meta])* $name:ident $($rest:tt)*) => {
        $(#[$doc])*
        pub const $name: Str = Str($n);
        names!(@consts $n + 1u32; $($rest)*);
    };
}

names! {
    /// Name of a module, function or location in generic form.
    SYM_NAME = "sym_name";
    /// Name of a loop index in generic form.
    IV_NAME = "iv_name";
    /// Name of a register in generic form.
    NAME = "name";
    /// Source location in generic form.
    SRC = "src";
    /// Access patterns in generic form.
    ACCESS = "access";
    /// Operand segment sizes in generic form.
    SEGMENTS = "operandSegmentSizes";
    /// Instruction number.
    ID = "id";
    /// Dependences.
    DEPS = "deps";
    /// Modulo-schedule coordinate.
    ORDER = "order";
    /// Executing engine.
    ENGINE = "engine";
    /// Waits.
    WAIT = "wait";
    /// Signals.
    SIGNAL = "signal";
    /// Kind of a location.
    KIND = "kind";
    /// Placement of a location.
    AT = "at";
    /// Elements of a constant.
    VALUE = "value";
    /// Loop increment.
    STEP = "step";
    /// Loop start.
    LOWER = "lower";
    /// Loop end.
    UPPER = "upper";
    /// Hardware generation.
    TARGET = "target";
    /// Matmult accumulation.
    ACCUMULATE = "accumulate";
    /// Block label in generic form.
    LABEL = "label";
}

/// The column of instruction numbers.
pub const COL_ID: Column = Column(0);
/// The column of dependences; see [`Dep`].
pub const COL_DEPS: Column = Column(1);
/// The column of schedule coordinates; see [`OrderTerm`].
pub const COL_ORDER: Column = Column(2);

/// Interned names of one op's operands, words and attributes, the same in every BIR context.
#[derive(Debug)]
pub struct OpNames {
    /// Of [`OpDef::operands`](super::ops::OpDef::operands), in order.
    pub operands: Box<[Str]>,
    /// Of [`OpDef::words`](field@super::ops::OpDef::words), in order.
    pub words: Box<[Str]>,
    /// Of [`OpDef::attrs`](super::ops::OpDef::attrs), in order.
    pub attrs: Box<[Str]>,
    /// Per operand, of the words behind its keyword.
    pub key_words: Box<[Box<[Str]>]>,
}

static BASE: LazyLock<Context> = LazyLock::new(base_context);

static OP_NAMES: LazyLock<Vec<OpNames>> = LazyLock::new(|| {
    let find = |text: &str| BASE.find_str(text).unwrap_or(names::SYM_NAME);
    OPS.iter()
        .map(|def| OpNames {
            operands: def.operands.iter().map(|role| find(role.name)).collect(),
            words: def.words.iter().map(|word| find(word)).collect(),
            attrs: def.attrs.iter().map(|attr| find(attr.name)).collect(),
            key_words: def
                .operands
                .iter()
                .map(|role| role.words.iter().map(|word| find(word)).collect())
                .collect(),
        })
        .collect()
});

/// The interned names of an op.
pub fn op_names(code: OpCode) -> &'static OpNames {
    &OP_NAMES[code as usize]
}

/// Names a copy of the context has room for.
const SOME_NAMES: usize = 400;

/// A context with the dialect registered; [`OpCode`] numbers are op name handles.
pub fn context() -> Context {
    BASE.clone()
}

fn base_context() -> Context {
    let mut ctx = Context::new();
    for text in names::TEXTS {
        ctx.str(text);
    }
    for (code, def) in OPS.iter().enumerate() {
        let traits = OpTraits {
            terminator: def.has(Trait::Terminator),
            isolated: code == OpCode::Module as usize || code == OpCode::Func as usize,
        };
        ctx.register_op(&format!("bir.{}", def.name), code as u16, traits);
    }
    for attr in COMMON_ATTRS {
        ctx.str(attr.name);
    }
    for def in OPS {
        for attr in def.attrs {
            ctx.str(attr.name);
        }
        for operand in def.operands {
            ctx.str(operand.name);
        }
    }
    // What a copy has no room for it has to sort in anew, and small programs have a few hundred names.
    ctx.reserve_strings(SOME_NAMES);
    ctx
}

/// An empty BIR file.
pub fn new_ir() -> Ir {
    let mut ir = Ir::new(context());
    for (name, kind) in [
        ("id", ColumnKind::Int),
        ("deps", ColumnKind::Words),
        ("order", ColumnKind::Words),
    ] {
        ir.column(name, kind);
    }
    ir
}

/// The op name handle of an op in a BIR context.
pub fn op_name(code: OpCode) -> OpName {
    OpName(code as u32)
}

/// Why one instruction must follow another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DepKind {
    /// Reads what the other wrote.
    Flow,
    /// Writes what the other read.
    Anti,
    /// Writes what the other wrote.
    Output,
    /// The program says so.
    Ordered,
}

impl DepKind {
    /// All kinds in order.
    pub const ALL: &'static [DepKind] = &[
        DepKind::Flow,
        DepKind::Anti,
        DepKind::Output,
        DepKind::Ordered,
    ];

    /// The word in text.
    pub const fn name(self) -> &'static str {
        match self {
            DepKind::Flow => "flow",
            DepKind::Anti => "anti",
            DepKind::Output => "output",
            DepKind::Ordered => "ordered",
        }
    }

    /// The kind of that word.
    pub fn from_name(name: &str) -> Option<DepKind> {
        DepKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == name)
    }
}

/// One entry of `deps`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dep {
    /// Why.
    pub kind: DepKind,
    /// Number of the instruction, or of the `depset` standing for several.
    pub id: u32,
    /// Whether `id` names a `depset`.
    pub set: bool,
}

impl Dep {
    /// The column's form.
    pub fn word(self) -> u64 {
        u64::from(self.id) | (self.kind as u64) << 32 | u64::from(self.set) << 40
    }

    /// From the column's form.
    pub fn from_word(word: u64) -> Dep {
        Dep {
            kind: DepKind::ALL
                .get((word >> 32 & 0xff) as usize)
                .copied()
                .unwrap_or(DepKind::Ordered),
            id: word as u32,
            set: word >> 40 & 1 != 0,
        }
    }
}

/// One affine coordinate of `order`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OrderTerm {
    /// Constant part.
    pub constant: i64,
    /// `(position in indices, coefficient)`
    pub terms: SmallVec<[(u8, i64); 2]>,
}

/// `order` in the column's form.
pub fn order_words(order: &[OrderTerm]) -> SmallVec<[u64; 8]> {
    let mut words = SmallVec::new();
    for term in order {
        words.push(term.terms.len() as u64);
        words.push(term.constant as u64);
        for &(index, coef) in &term.terms {
            words.push(u64::from(index));
            words.push(coef as u64);
        }
    }
    words
}

/// `order` from the column's form.
pub fn order_terms(mut words: &[u64]) -> Vec<OrderTerm> {
    let mut order = Vec::new();
    while let [count, constant, rest @ ..] = words {
        let (terms, rest) = rest.split_at((*count as usize * 2).min(rest.len()));
        order.push(OrderTerm {
            constant: *constant as i64,
            terms: terms
                .chunks_exact(2)
                .map(|pair| (pair[0] as u8, pair[1] as i64))
                .collect(),
        });
        words = rest;
    }
    order
}

/// The target of the module around `op`, the default where it names none.
pub fn target_of(ir: &Ir, op: Op) -> Target {
    let mut at = Some(op);
    while let Some(op) = at {
        if OpCode::of(ir, op) == Some(OpCode::Module) {
            return OpView::new(ir, op)
                .word("target")
                .and_then(Target::from_name)
                .unwrap_or(Target::Trn2);
        }
        at = ir.parent(op);
    }
    Target::Trn2
}

/// The name of a module, function or location.
pub fn symbol_name(ir: &Ir, op: Op) -> Option<Str> {
    if let Some(value) = ir.result(op) {
        return ir.value_name(value);
    }
    match ir.ctx.attr(ir.ctx.dict_get(ir.dict(op), names::SYM_NAME)?) {
        crate::ir::AttrView::Str(name) => Some(name),
        _ => None,
    }
}
