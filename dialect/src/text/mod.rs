//! The `.bir` language: diagnostics, grammar, parser, printer.
//!
//! * [`parse`] reads custom and generic form, mixed as they come.
//! * `scan` finds where a statement ends and what its shape is; `cache` knows the recipes of shapes
//!   and foretells the next one; `grammar` is the one pest grammar; `compile` makes a recipe from
//!   pest's parse of a shape; `build` fills recipes from statements; `parser` drives all of them.
//! * [`print()`] and [`write()`] print either form.
//! * [`diag`] – findings as values.

mod build;
mod cache;
mod compile;
mod dense;
pub mod diag;
pub mod expect;
mod grammar;
mod parser;
mod print;
mod recipe;
pub mod render;
mod scan;
mod scopes;

pub use parser::{ParseOptions, parse};
pub use print::{PrintOptions, print, print_op, write};
