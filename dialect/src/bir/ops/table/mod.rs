//! The table, by topic.
//!
//! An entry reads: doc comment (the manual page, with an example), `Variant = "mnemonic":
//! "summary"`, operand roles in segment order, attributes, then rules. To add an op, add an entry
//! to a section, its semantics in the simulator, and its lit tests under `test/dialect/`.
//!
//! Each section is a macro that hands its entries on, so that all of them make one enum.

use super::super::num::DType;
use super::super::space::Engine::{Act, Dma, Dve, Pe, Pool, Sp};
use super::super::space::{DTypeSet, SpaceSet};
use super::super::verify::checks;
use super::alu::ALU_OPS;
use super::def::*;
use super::enums::*;
use crate::ir::{Ir, Op};

use AttrType::{Accumulate, Enum, Flag, Int, Pattern, Str, Symbol};

/// Expands the first section that is left, or the table when none is.
macro_rules! next_section {
    ([] { $($entries:tt)* }) => { op_table! { $($entries)* } };
    ([structure $($rest:ident)*] { $($done:tt)* }) => { structure_section! { [$($rest)*] { $($done)* } } };
    ([movement $($rest:ident)*] { $($done:tt)* }) => { movement_section! { [$($rest)*] { $($done)* } } };
    ([elementwise $($rest:ident)*] { $($done:tt)* }) => { elementwise_section! { [$($rest)*] { $($done)* } } };
    ([reductions $($rest:ident)*] { $($done:tt)* }) => { reductions_section! { [$($rest)*] { $($done)* } } };
    ([selection $($rest:ident)*] { $($done:tt)* }) => { selection_section! { [$($rest)*] { $($done)* } } };
    ([generation $($rest:ident)*] { $($done:tt)* }) => { generation_section! { [$($rest)*] { $($done)* } } };
    ([matrix $($rest:ident)*] { $($done:tt)* }) => { matrix_section! { [$($rest)*] { $($done)* } } };
    ([dma $($rest:ident)*] { $($done:tt)* }) => { dma_section! { [$($rest)*] { $($done)* } } };
    ([collectives $($rest:ident)*] { $($done:tt)* }) => { collectives_section! { [$($rest)*] { $($done)* } } };
    ([control $($rest:ident)*] { $($done:tt)* }) => { control_section! { [$($rest)*] { $($done)* } } };
}

#[macro_use]
mod structure;
#[macro_use]
mod movement;
#[macro_use]
mod elementwise;
#[macro_use]
mod reductions;
#[macro_use]
mod selection;
#[macro_use]
mod generation;
#[macro_use]
mod matrix;
#[macro_use]
mod dma;
#[macro_use]
mod collectives;
#[macro_use]
mod control;

macro_rules! op_table {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident = $name:literal : $summary:literal {
            $(operands { $($role:ident = $operand:expr;)* })?
            $(attrs { $($attr:ident = $attr_def:expr;)* })?
            $(rules $(. $rule:ident ( $($arg:expr),* $(,)? ))*)?
        }
    )*) => {
        /// Every op of the dialect; the number is also its name handle in a BIR context.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum OpCode { $($variant),* }

        impl OpCode {
            /// All ops, in table order.
            pub const ALL: &'static [OpCode] = &[$(OpCode::$variant),*];
        }

        /// The op table, indexed by [`OpCode`].
        pub static OPS: &[OpDef] = &[$({
            const OPERANDS: &[OperandDef] = &[$($($operand.named(stringify!($role)),)*)?];
            const ATTRS: &[AttrDef] = &[$($($attr_def.named(stringify!($attr)),)*)?];
            OpDef::new($name, $summary, concat!($($doc, "\n",)*), OPERANDS, ATTRS)
                $($(.$rule($($arg),*))*)?
        }),*];

        /// Typed views of operations: operands by role name.
        #[allow(missing_docs)]
        pub mod views {
            use super::*;
            use crate::bir::view::{OpView, RoleView};

            $(
                #[doc = $summary]
                #[derive(Clone, Copy, PartialEq, Eq, Debug)]
                pub struct $variant(pub Op);

                impl $variant {
                    /// The view, if `op` is one.
                    pub fn cast(ir: &Ir, op: Op) -> Option<$variant> {
                        (OpCode::of(ir, op) == Some(OpCode::$variant)).then_some($variant(op))
                    }

                    $($(
                        /// What stands in this role.
                        pub fn $role(self, ir: &Ir) -> RoleView {
                            const ROLE: usize = match OPS[OpCode::$variant as usize].role(stringify!($role)) {
                                Some(role) => role,
                                None => 0,
                            };
                            OpView::new(ir, self.0).role_at(ROLE)
                        }
                    )*)?
                }
            )*
        }
    };
}

impl OpCode {
    /// The op's table entry.
    #[inline]
    pub fn def(self) -> &'static OpDef {
        &OPS[self as usize]
    }

    /// The op of an operation; `None` for ops of other dialects.
    #[inline]
    pub fn of(ir: &Ir, op: Op) -> Option<OpCode> {
        ir.code(op)
            .and_then(|code| OpCode::ALL.get(code as usize).copied())
    }

    /// The op of that mnemonic.
    pub fn from_name(name: &str) -> Option<OpCode> {
        OpCode::ALL.iter().copied().find(|op| op.def().name == name)
    }
}

const U32_MAX: i64 = u32::MAX as i64 - 1;

/// Attributes every instruction may carry.
pub static COMMON_ATTRS: &[AttrDef] = &[
    optional(Enum(&ENGINES))
        .named("engine")
        .default("by op and generation")
        .doc("engine that executes it"),
    optional(Int {
        min: 0,
        max: U32_MAX,
    })
    .named("id")
    .doc("number other instructions' `deps` refer to, unique in the function"),
    optional(AttrType::IntList {
        min: i64::MIN,
        max: i64::MAX,
    })
    .named("order")
    .doc("modulo-schedule coordinate: affine expressions in enclosing loop indices"),
    optional(Str)
        .named("deps")
        .doc("instructions it must follow: `[flow 3, anti 5, output 6, ordered 7]`"),
    optional(AttrType::Waits)
        .named("wait")
        .doc("semaphores it waits for before it starts: `[4 >= 36]`"),
    optional(AttrType::Signals)
        .named("signal")
        .doc("semaphores it changes: `[6 += 1 @complete]`"),
];

/// What collectives are.
const COLLECTIVE: &[Trait] = &[
    Trait::Dma,
    Trait::Observable,
    Trait::Sync,
    Trait::MustKeep,
    Trait::Collective,
];

/// Column and row numbers.
const INDEX_DTYPES: DTypeSet = DTypeSet::of(&[DType::U16, DType::U32, DType::I32]);
/// MX data.
const PACKED: DTypeSet = DTypeSet::of(&[DType::F8E5M2x4, DType::F8E4M3FNx4, DType::F4E2M1FNx4]);
/// Whole numbers but the unsigned 32-bit ones.
const SMALL_INTS: DTypeSet = DTypeSet::of(&[
    DType::I8,
    DType::I16,
    DType::I32,
    DType::U8,
    DType::U16,
    DType::Bool,
]);
/// What a running combination takes: no 32-bit integers.
const CUMULATIVE: DTypeSet = FLOATS.or(DTypeSet::of(&[
    DType::I8,
    DType::I16,
    DType::U8,
    DType::U16,
    DType::Bool,
]));

next_section! {
    [structure movement elementwise reductions selection generation matrix dma collectives control] {}
}
