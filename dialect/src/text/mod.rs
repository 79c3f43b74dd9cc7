//! The `.bir` language: diagnostics, grammar, parser, printer.

pub mod diag;
