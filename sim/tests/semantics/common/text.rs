//! Programs from text: for tests and benches.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use bir_dialect::bir::verify::Level;
use bir_dialect::ir::Ir;

/// A module with one function.
pub fn module(attrs: &str, body: &str) -> String {
    format!("bir.module @t {{{attrs}}} {{\n bir.func @main {{\n{body}\n }}\n}}\n")
}

/// A program in which nothing is found at a level.
pub fn clean(text: &str, level: Level) -> Ir {
    bir_dialect::read(text, level).unwrap()
}
