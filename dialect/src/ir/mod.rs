//! The generic IR: operations in blocks in regions, values, attributes. Knows no instruction set.
//!
//! * [`Context`] – interners (strings, types, attributes, dictionaries, annotations) and op names.
//! * [`Ir`] – the operations of one file, behind `u32` handles.
//! * [`Cursor`] – where to insert; [`Ir::insert`], [`Ir::move_op`], [`Ir::replace_op`], [`Ir::erase`].
//! * [`Walk`] – every operation below a place, without recursion.
//! * [`Trivia`] – comments kept beside operations.
//!
//! Invariants, kept by every public method:
//! * an operand is linked into the use list of its value exactly once;
//! * an operation is in at most one block, a block in at most one region, a region under one operation;
//! * order tags rise strictly along a block;
//! * handles are never reused, so a stale handle finds an erased operation, never another one.

mod attr;
mod context;
mod cursor;
mod entity;
mod intern;
mod order;
mod side;
mod storage;
mod walk;

pub use attr::{AttrList, AttrView, Sign, TypeView};
pub use context::{Context, OpInfo, OpTraits, SourceLoc};
pub use cursor::{Cursor, NewOp, NewOperand};
pub use entity::{
    Annot, Attr, Block, Column, Dict, Loc, Op, OpName, Operand, Region, Str, Type, Value,
};
pub use side::{ColumnKind, Comment, Trivia};
pub use storage::{Def, Ir, OperandData};
pub use walk::{Visit, Walk};
