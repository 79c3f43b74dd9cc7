//! `.pat` text: grammar, syntax tree, and its one canonical layout.
//!
//! * `scan` – where items start and end, comments, and how deep brackets nest;
//! * [`ast`] – what was written, with spans; [`parse`] makes it, item by item, so that one wrong item
//!   hides no other;
//! * [`format()`] – the layout `bir-pattern fmt` writes; formatting twice changes nothing more.

pub mod ast;
mod format;
mod grammar;
mod read;
mod scan;

pub use format::format;
pub use read::parse;

/// A condition on one line, as remarks show it.
pub(crate) fn condition_text(one: &ast::Condition) -> String {
    format::condition(one, 0)
}

/// An item formatted, without its documentation and comments.
pub(crate) fn item_text(one: &ast::Item) -> String {
    format::item(one)
}
