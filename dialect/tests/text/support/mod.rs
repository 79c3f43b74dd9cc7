//! Shared by the tests of the text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses a part

pub mod check;
pub mod generate;

use std::fs;
use std::path::{Path, PathBuf};

/// Every `.bir` file under `test/` that is a test of neither errors nor several files in one, with its text.
pub fn good_files() -> Vec<(PathBuf, String)> {
    let is_good = |(path, text): &(PathBuf, String)| {
        !path.components().any(|part| part.as_os_str() == "Inputs")
            && !["expected-", "%exits", "// -----"]
                .iter()
                .any(|mark| text.contains(mark))
    };
    all_files().into_iter().filter(is_good).collect()
}

/// Every `.bir` file under `test/`, with its text.
pub fn all_files() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../test")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "bir") {
                let text = fs::read_to_string(&path).expect("a text");
                files.push((path, text));
            }
        }
    }
    files.sort();
    assert!(files.len() > 20, "the test files are gone");
    files
}

/// What does not hold for some of many texts.
#[derive(Default)]
pub struct Faults(Vec<String>);

impl Faults {
    pub fn check(&mut self, text: &str) {
        if self.0.len() < 200
            && let Err(fault) = check::holds(text)
        {
            self.0.push(format!("{fault}\n--- from\n{text}"));
        }
    }

    /// Panics with the shortest.
    pub fn none(self) {
        let shortest = self.0.iter().min_by_key(|fault| fault.len());
        if let Some(fault) = shortest {
            if let Ok(path) = std::env::var("BIR_FAULTS") {
                fs::write(path, self.0.join("\n=====\n")).expect("a file to write");
            }
            panic!("{} faults, of which the shortest:\n{fault}", self.0.len());
        }
    }
}

/// How much more than usual is tried: the variable `BIR_FUZZ`, 1 where it is not set.
pub fn effort() -> usize {
    std::env::var("BIR_FUZZ")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}
