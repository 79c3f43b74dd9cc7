//! Any text: see `check` for what must hold.
#![no_main]

#[path = "../../tests/text/support/check.rs"]
#[allow(dead_code)]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| check::check(text));
