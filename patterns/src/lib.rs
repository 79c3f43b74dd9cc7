//! Rewrite rules as text.
//!
//! * [`text`] – the `.pat` language: grammar, syntax tree, formatter;
//! * `check` – what was written against the op table, every static error; [`rule`] – what comes out;
//! * [`constraints`], [`natives`] – what rules may ask and do by name; [`facts`] – what is known of
//!   values;
//! * `automaton`, [`matcher`] – which rules fit an instruction; [`rewriter`] – the one thing that changes
//!   the program; `estate` – what instructions that go hand on; [`flow`] – its view of memory; [`driver`] – who tries what where;
//! * [`library`] – the shipped sets and those of the user; [`verify`](mod@verify) – whether a rule is true.

mod automaton;
mod check;
pub mod constraints;
pub mod driver;
mod estate;
pub mod facts;
pub mod flow;
pub mod library;
pub mod matcher;
pub mod natives;
pub mod rewriter;
pub mod rule;
mod states;
pub mod text;
pub mod verify;

pub use driver::{Remarks, Report, Settings, apply};
pub use library::{Library, SHIPPED};
pub use rule::{Driver, Flags, Rule, RuleSet};
