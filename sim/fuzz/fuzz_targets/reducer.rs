//! Reductions of small programs: see `check_reduction` for what must hold.
#![no_main]

#[path = "../../tests/generate/checks.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    checks::check_reduction(&checks::config(data, 60));
});
