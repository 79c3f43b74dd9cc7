//! Runs the tests of the NKI front end, `tools/nki/tests`, with the tools of this build.
//!
//! One test by hand: `BIR_OPT=target/debug/bir-opt PYTHONPATH=tools/nki/src target/test-venv/bin/python -m pytest tools/nki/tests -k NAME`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn nki_front_end_passes() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR"));
    // target/, whatever it is called in this build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("a folder inside the target folder");

    let venv = Command::new("python3")
        .arg(tools.join("../test/venv.py"))
        .arg(target.join("test-venv"))
        .stderr(Stdio::inherit())
        .output()
        .expect("the tests of the NKI front end need python3, 3.11 or later, on PATH");
    assert!(
        venv.status.success(),
        "test/venv.py failed: {}",
        venv.status
    );
    let python = PathBuf::from(String::from_utf8_lossy(&venv.stdout).trim());

    // Both tools are built: naming them here makes cargo do so.
    let bir_opt = Path::new(env!("CARGO_BIN_EXE_bir-opt"));
    assert_eq!(
        bir_opt.parent(),
        Path::new(env!("CARGO_BIN_EXE_bir-sim")).parent(),
        "the tools lie in one folder"
    );
    let run = Command::new(&python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(tools.join("nki/tests"))
        .env("BIR_OPT", bir_opt)
        .env("PYTHONPATH", tools.join("nki/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("pytest in the virtual environment");
    println!("{}", String::from_utf8_lossy(&run.stdout));
    assert!(
        run.status.success(),
        "the tests of the NKI front end failed; to run one alone: BIR_OPT={} PYTHONPATH={} {} -m pytest FILE -k NAME\n{}",
        bir_opt.display(),
        tools.join("nki/src").display(),
        python.display(),
        String::from_utf8_lossy(&run.stderr)
    );
}
