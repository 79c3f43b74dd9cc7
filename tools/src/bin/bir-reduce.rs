//! `bir-reduce`: makes a `.bir` file smaller while a test still finds it interesting.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use bir_dialect::bir::files::print_elsewhere;
use bir_dialect::bir::program::new_ir;
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::render::{ReportStyle, SourceFile};
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use bir_sim::reduce::{ReduceOptions, ReduceStats, instructions, is_valid, reduce};
use bir_tools::files::{Input, Output};
use bir_tools::report;
use clap::Parser;

const AFTER: &str = "\
The test gets the name of a file as its last argument and says by exit code 0 that the file is
interesting, by any other that it is not. A miscompile, for example, is kept by
  bir-reduce bug.bir --test sh --test-arg=-c \\
      --test-arg='! bir-opt --pass-pipeline=my_pass --validate=end \"$0\" -o /dev/null'

Only programs that verify clean are tested, if the input does; what is found is written to the
output file at each step, so nothing is lost if the tool is stopped.

Exit codes:
  0  success
  1  the input cannot be read, or is not interesting, or the test cannot be run
  2  the command line is wrong";

/// Makes a .bir file smaller while a test still finds it interesting.
#[derive(Parser)]
#[command(name = "bir-reduce", version, after_help = AFTER, max_term_width = 100)]
struct Args {
    /// File to reduce; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,

    /// Program that tests a file
    #[arg(long, value_name = "CMD")]
    test: PathBuf,

    /// Argument of the test before the file, any number of times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    test_arg: Vec<String>,

    /// File to write; `-` is standard output, in the end
    #[arg(short, long, default_value = "reduced.bir", value_name = "FILE")]
    output: String,

    /// Test programs that do not verify, too
    #[arg(long)]
    allow_invalid: bool,

    /// Most files tested
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    max_tests: usize,

    /// Show what the test prints
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                say(&format!("bir-reduce: {message}"));
            }
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a tool reports on standard error")]
fn say(message: &str) {
    eprintln!("{message}");
}

/// A file a candidate is written to, and the program that tests it. The file has a folder of its own: what
/// a test does beside it hits nobody else's.
struct Test<'a> {
    args: &'a Args,
    folder: tempfile::TempDir,
    crashes: usize,
    failure: Option<String>,
}

impl Test<'_> {
    fn run(&mut self, ir: &Ir) -> Result<ExitStatus, String> {
        let test = self.args.test.display();
        // Files it names are not beside the file tested.
        let text = print_elsewhere(ir, PrintOptions::default());
        let file = self.folder.path().join("candidate.bir");
        // A test may have removed all there was.
        std::fs::create_dir_all(self.folder.path())
            .and_then(|()| std::fs::write(&file, text))
            .map_err(|error| format!("cannot write a file to test: {error}"))?;
        let output = || {
            if self.args.verbose {
                Stdio::inherit()
            } else {
                Stdio::null()
            }
        };
        Command::new(&self.args.test)
            .args(&self.args.test_arg)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(output())
            .stderr(output())
            .status()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("there is no test `{test}`"),
                std::io::ErrorKind::PermissionDenied => {
                    format!("the test `{test}` is not executable; `chmod +x {test}` makes it so")
                }
                _ => format!("cannot run the test `{test}`: {error}"),
            })
    }

    /// A test that crashes says nothing about the file.
    fn is_interesting(&mut self, ir: &Ir) -> bool {
        match self.run(ir) {
            Ok(status) => {
                self.crashes += usize::from(status.code().is_none());
                status.success()
            }
            Err(message) => {
                self.failure.get_or_insert(message);
                false
            }
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let input = Input::read(&args.file)?;
    let ir = read(&input)?;
    let keep_valid = !args.allow_invalid && is_valid(&ir);
    let folder = tempfile::tempdir()
        .map_err(|error| format!("cannot make a folder for the test: {error}"))?;
    let stopped = folder.path().to_owned();
    ctrlc::set_handler(move || {
        let _ = std::fs::remove_dir_all(&stopped);
        // As a shell tells it of who was interrupted.
        std::process::exit(130);
    })
    .map_err(|error| format!("cannot handle signals: {error}"))?;
    let mut test = Test {
        args,
        folder,
        crashes: 0,
        failure: None,
    };
    first_test(&mut test, &ir, &input.name)?;
    if !keep_valid && !args.allow_invalid {
        say(&format!(
            "bir-reduce: warning: `{}` does not verify at every level, so neither need the result",
            input.name
        ));
    }
    let options = ReduceOptions {
        keep_valid,
        max_tests: args.max_tests,
    };
    let output = Output::new(&args.output);
    let before = instructions(&ir);
    let outside = output.is_outside(&input.folder);
    let print = |ir: &Ir| match outside {
        true => print_elsewhere(ir, PrintOptions::default()),
        false => print(ir, PrintOptions::default()),
    };
    let live = std::io::stderr().is_terminal();
    let is_kept = matches!(output, Output::File(_));
    if is_kept {
        // Who cannot write there should hear of it now.
        output.write(&print(&ir))?;
    }
    let mut unwritten = None;
    let mut progress = |best: &Ir, stats: ReduceStats| {
        if is_kept && let Err(message) = output.write(&print(best)) {
            unwritten.get_or_insert(message);
        }
        if live {
            let _ = write!(
                std::io::stderr(),
                "\r{} instructions after {} tests ",
                instructions(best),
                stats.tests
            );
        }
    };
    let (best, stats) = reduce(
        &ir,
        options,
        &mut |ir| test.is_interesting(ir),
        &mut progress,
    );
    if live {
        say("");
    }
    if let Some(message) = unwritten.or(test.failure) {
        return Err(message);
    }
    output.write(&print(&best))?;
    if test.crashes > 0 {
        say(&format!(
            "bir-reduce: warning: the test was killed {} times, which counted as not interesting",
            test.crashes
        ));
    }
    if stats.tests >= args.max_tests {
        say(&format!(
            "bir-reduce: warning: stopped after {} tests; more may be possible",
            stats.tests
        ));
    }
    say(&format!(
        "bir-reduce: {before} to {} instructions in {} tests, written to {output}",
        instructions(&best),
        stats.tests,
    ));
    Ok(())
}

/// The input itself must be interesting, or there is nothing to keep.
fn first_test(test: &mut Test<'_>, ir: &Ir, name: &str) -> Result<(), String> {
    let status = test.run(ir)?;
    let command = test.args.test.display();
    if status.success() {
        return Ok(());
    }
    Err(match status.code() {
        None => format!("the test `{command}` crashed on `{name}` ({status})"),
        Some(code) => format!(
            "`{name}` is not interesting: the test `{command}` ended with exit code {code}; \
             0 means interesting"
        ),
    })
}

fn read(input: &Input) -> Result<Ir, String> {
    let mut ir = new_ir();
    ir.folder.clone_from(&input.folder);
    let mut diags = Diagnostics::new();
    let options = ParseOptions::default();
    parse(
        &input.text,
        0..input.text.len(),
        &mut ir,
        options,
        &mut diags,
    );
    if diags.has_errors() {
        let file = SourceFile {
            name: &input.name,
            text: &input.text,
        };
        report::print(&ir, file, &diags, ReportStyle::Plain, report::ERROR_LIMIT);
        return Err(String::new());
    }
    Ok(ir)
}
