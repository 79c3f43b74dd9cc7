//! Any statements inside a function of the generic form.
#![no_main]

#[path = "../../tests/text/support/check.rs"]
#[allow(dead_code)]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| check::check(&check::in_generic_function(text)));
