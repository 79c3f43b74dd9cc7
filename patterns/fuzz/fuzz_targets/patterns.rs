//! Any text as a `.pat` file.

#![no_main]

#[path = "../../tests/patterns/fuzz_check.rs"]
mod fuzz_check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        fuzz_check::check(text);
    }
});
