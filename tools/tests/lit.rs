//! Runs the lit suite under `test/` with the `bir-opt` of this build; `LIT_FILTER=regex` picks tests.
//!
//! One test by hand: `target/test-venv/bin/lit -v test/kernels/softmax.bir`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn lit_suite_passes() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../test")
        .canonicalize()
        .expect("the folder test/ beside tools/");
    // target/, whatever it is called in this build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("a folder inside the target folder");

    let venv = Command::new("python3")
        .arg(suite.join("venv.py"))
        .arg(target.join("test-venv"))
        .stderr(Stdio::inherit())
        .output()
        .expect("the lit suite needs python3, 3.11 or later, on PATH");
    assert!(
        venv.status.success(),
        "test/venv.py failed: {}",
        venv.status
    );
    let python = PathBuf::from(String::from_utf8_lossy(&venv.stdout).trim());
    let lit = python.with_file_name("lit");

    let run = Command::new(&lit)
        // The output of tests that fail, and of those only.
        .args(["-v", "--order=lexical"])
        .arg(&suite)
        .env("BIR_OPT", env!("CARGO_BIN_EXE_bir-opt"))
        .env("BIR_TEST_OUT", target.join("lit"))
        .output()
        .expect("lit in the virtual environment");
    // A line per test that passed says nothing; what was skipped, what failed and the totals do.
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        if !line.starts_with("PASS: ") {
            println!("{line}");
        }
    }
    assert!(
        run.status.success(),
        "the lit suite failed; to run one test alone: {} -v FILE\n{}",
        lit.display(),
        String::from_utf8_lossy(&run.stderr)
    );
}
