//! Programs by seed, size and features: see `check_program` for what must hold.
#![no_main]

#[path = "../../tests/generate/checks.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    checks::check_program(&checks::config(data, 400));
});
