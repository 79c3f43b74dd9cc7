//! The ALU operations, each once: what they are, and who has them.

use super::super::space::Target;
use super::def::EnumDef;

use AluClass::{Arithmetic, Bits};
use Arity::{Binary, Reduction, Unary};

/// What an operation computes on. One instruction uses operations of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AluClass {
    /// Values in f32, or exact integers where all operands are.
    Arithmetic,
    /// Raw bits of integers of one width.
    Bits,
}

/// How many operands an operation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    /// One; the scalar that stands beside it is absent or 0.
    Unary,
    /// Two.
    Binary,
    /// All of a reduction at once.
    Reduction,
}

/// One ALU operation.
#[derive(Clone, Copy, Debug)]
pub struct AluOp {
    /// The word.
    pub name: &'static str,
    /// What it computes on.
    pub class: AluClass,
    /// How many operands it takes.
    pub arity: Arity,
    /// Whether it gives the same value, bit by bit, with its operands swapped.
    pub commutes: bool,
    /// Whether reductions along rows combine by it.
    pub reduces: bool,
    /// Whether sequencers have it for registers.
    pub on_registers: bool,
    /// The first generation that has it.
    pub since: Target,
}

const fn alu(name: &'static str, class: AluClass, arity: Arity) -> AluOp {
    AluOp {
        name,
        class,
        arity,
        commutes: false,
        reduces: false,
        on_registers: false,
        since: Target::Trn1,
    }
}

impl AluOp {
    const fn commuting(mut self) -> AluOp {
        self.commutes = true;
        self
    }

    const fn reducing(mut self) -> AluOp {
        self.reduces = true;
        self
    }

    const fn on_registers(mut self) -> AluOp {
        self.on_registers = true;
        self
    }

    const fn since(mut self, target: Target) -> AluOp {
        self.since = target;
        self
    }

    /// The operation of that name.
    pub fn of(name: &str) -> Option<&'static AluOp> {
        ALU.iter().find(|op| op.name == name)
    }
}

/// All operations. Their order is that of [`ALU_OPS`], which the simulator counts on.
pub static ALU: &[AluOp] = TABLE;

#[rustfmt::skip]
const TABLE: &[AluOp] = &[
    alu("add", Arithmetic, Binary).commuting().reducing().on_registers(),
    alu("subtract", Arithmetic, Binary).reducing().on_registers(),
    alu("multiply", Arithmetic, Binary).commuting().reducing().on_registers(),
    alu("max", Arithmetic, Binary).reducing().on_registers(),
    alu("min", Arithmetic, Binary).reducing().on_registers(),
    alu("equal", Arithmetic, Binary).commuting().on_registers(),
    alu("not_equal", Arithmetic, Binary).commuting().on_registers(),
    alu("greater", Arithmetic, Binary).on_registers(),
    alu("greater_equal", Arithmetic, Binary).on_registers(),
    alu("less", Arithmetic, Binary).on_registers(),
    alu("less_equal", Arithmetic, Binary).on_registers(),
    alu("logical_and", Arithmetic, Binary).commuting().reducing().on_registers(),
    alu("logical_or", Arithmetic, Binary).commuting().reducing().on_registers(),
    alu("logical_xor", Arithmetic, Binary).commuting().reducing().on_registers(),
    alu("bitwise_and", Bits, Binary).commuting().reducing().on_registers(),
    alu("bitwise_or", Bits, Binary).commuting().reducing().on_registers(),
    alu("bitwise_xor", Bits, Binary).commuting().reducing().on_registers(),
    alu("invert", Bits, Unary),
    alu("left_shift", Bits, Binary).on_registers(),
    alu("right_shift", Bits, Binary).on_registers(),
    alu("power", Arithmetic, Binary),
    alu("abs_max", Arithmetic, Binary).since(Target::Trn3),
    alu("abs_min", Arithmetic, Binary).since(Target::Trn3),
    alu("abs", Arithmetic, Unary),
    alu("square", Arithmetic, Unary),
    alu("relu", Arithmetic, Unary),
    alu("rsqrt", Arithmetic, Unary),
    alu("reciprocal", Arithmetic, Unary),
    alu("divide", Arithmetic, Binary),
    alu("divide_int", Arithmetic, Binary).on_registers(),
    alu("mod", Arithmetic, Binary),
    alu("mod_int", Arithmetic, Binary).on_registers(),
    alu("average", Arithmetic, Reduction),
    alu("bypass", Arithmetic, Unary),
];

const WORDS: [&str; TABLE.len()] = {
    let mut words = [""; TABLE.len()];
    let mut i = 0;
    while i < words.len() {
        words[i] = TABLE[i].name;
        i += 1;
    }
    words
};

/// ALU operations of two operands, and the unary ones that take one slot.
pub static ALU_OPS: EnumDef = EnumDef {
    name: "alu_op",
    words: &WORDS,
};

/// Whether an ALU operation works on raw bits, for which integers of one width are required.
pub fn is_bitvec(op: &str) -> bool {
    AluOp::of(op).is_some_and(|op| op.class == Bits)
}

/// Whether an ALU operation gives the same value with its operands swapped.
pub fn commutes(op: &str) -> bool {
    AluOp::of(op).is_some_and(|op| op.commutes)
}
