//! `bir-opt`, by topic.
//!
//! * `args` – the flags; `pass_flags` – the flags made from the table of passes;
//! * `pipeline` – which passes are to run, and what lists them;
//! * `rules` – `--patterns` and `--remarks`;
//! * `run` – one run over a file; `instruments` – what watches it;
//! * `validation` – `--validate`;
//! * `roundtrip` – `--verify-roundtrip`; `manual` – `--show-dialect`.

mod args;
mod instruments;
mod manual;
mod pass_flags;
mod pipeline;
mod roundtrip;
mod rules;
mod run;
mod validation;

use std::ffi::OsString;
use std::fmt::Display;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::report;
use args::Args;

/// Why a run ended without success.
#[derive(Debug)]
enum Failure {
    /// The input is wrong; findings were printed.
    Reported,
    /// The command line is wrong; findings were printed.
    Usage,
    /// A message that belongs to no file.
    Message(String),
}

impl Failure {
    fn message(text: impl Display) -> Failure {
        Failure::Message(text.to_string())
    }
}

/// Runs the tool; the exit code.
pub fn main(command_line: impl IntoIterator<Item = OsString>) -> i32 {
    let command_line: Vec<OsString> = command_line.into_iter().collect();
    let (args, passes) = parse(&command_line);
    match run::run(&args, &passes, &command_line) {
        Ok(()) => 0,
        Err(Failure::Reported) => 1,
        Err(Failure::Usage) => 2,
        Err(Failure::Message(message)) => {
            report::message("bir-opt", &message);
            1
        }
    }
}

/// Reads a command line; ends the process with usage or help where that is what is due.
fn parse(command_line: &[OsString]) -> (Args, Vec<pass_flags::PassFlag>) {
    let command = pass_flags::add(Args::command());
    let matches = command.get_matches_from(command_line);
    match Args::from_arg_matches(&matches) {
        Ok(args) => (args, pass_flags::given(&matches)),
        Err(error) => error.exit(),
    }
}
