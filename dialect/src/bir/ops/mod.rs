//! The op table: every op of the dialect, defined once.

mod alu;
mod def;
mod enums;
mod hidden;
mod manual;
mod table;

pub use alu::{ALU, ALU_OPS, AluClass, AluOp, Arity, commutes, is_bitvec};
pub use def::{
    AttrDef, AttrType, Engines, EnumDef, FLOATS, INTS, ImmType, Kind, NUMERIC, OpDef, OperandDef,
    Syntax, Trait,
};
pub use enums::{ACTIVATION_FUNCS, COMPARE_OPS, LOCATION_KINDS, REDUCE_CMDS};
pub use hidden::{clobbers_hidden_state, reads_hidden_state, writes_hidden_state};
pub use manual::{ManualFormat, manual};
pub use table::{COMMON_ATTRS, OPS, OpCode, views};
