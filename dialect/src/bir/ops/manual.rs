//! The op table as a manual.

use super::table::OpCode;

/// How the manual is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManualFormat {
    /// For a terminal.
    Text,
    /// For a page.
    Markdown,
    /// For tools.
    Json,
}

/// The manual page of one op, or of the whole table.
pub fn manual(_op: Option<OpCode>, _format: ManualFormat) -> String {
    String::new()
}
