//! One run over a file.

use std::ffi::OsString;
use std::ops::Range;
use std::time::{Duration, Instant};

use bir_dialect::bir::files::name_files_from_root;
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::expect::check_expected;
use bir_dialect::text::render::{ReportStyle, SourceFile};
use bir_dialect::text::{ParseOptions, parse, write};
use bir_passes::instrument::{TimingReport, read_reproducer};
use bir_passes::{Manager, Outcome, Pipeline};

use super::args::{Args, LevelArg};
use super::instruments::{self, KEPT, StandardError};
use super::pass_flags::{self, PassFlag};
use super::{Failure, manual, pipeline, roundtrip, rules};
use crate::files::{Input, Output};
use crate::report;

/// Does what the command line says.
pub(super) fn run(
    args: &Args,
    flags: &[PassFlag],
    command_line: &[OsString],
) -> Result<(), Failure> {
    let output = Output::new(&args.output);
    let stop = |text: &str| output.write(text).map_err(Failure::message);
    if let Some(shell) = args.manual.completions {
        return stop(&completions(shell));
    }
    if let Some(op) = &args.manual.show_dialect {
        return stop(&manual::show(args, op.as_deref())?);
    }
    if args.pipeline.list_passes {
        return stop(&pipeline::list(args));
    }
    if let Some(seconds) = args.control.max_seconds {
        give_up_after(seconds);
    }
    if args.control.run_reproducer {
        let input = Input::read(&args.input).map_err(Failure::message)?;
        let (args, flags) = from_reproducer(&input, command_line)?;
        let built = pipeline::build(&args, &flags)?;
        return run_over(&args, &built, &input);
    }
    let built = pipeline::build(args, flags)?;
    if args.pipeline.print_pipeline {
        return stop(&pipeline::table(args, &built));
    }
    let input = Input::read(&args.input).map_err(Failure::message)?;
    run_over(args, &built, &input)
}

fn completions(shell: clap_complete::Shell) -> String {
    use clap::CommandFactory as _;
    let mut command = pass_flags::add(Args::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "bir-opt", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Ends the process when time is up. Only aborts: no result depends on time.
fn give_up_after(seconds: u64) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        report::message(
            "bir-opt",
            &format!("gave up after {seconds} seconds (`--max-seconds`)"),
        );
        std::process::exit(1);
    });
}

/// The command line with the flags in the head of the input put before its own.
fn from_reproducer(
    input: &Input,
    command_line: &[OsString],
) -> Result<(Args, Vec<PassFlag>), Failure> {
    let flags = read_reproducer(&input.text);
    if flags.is_empty() {
        let text = format!(
            "`{}` is no reproducer: it has no lines `// reproduce: …`",
            input.name
        );
        return Err(Failure::Message(text));
    }
    for flag in &flags {
        let name = flag.split('=').next().unwrap_or(flag);
        if !KEPT.contains(&name) {
            let text = format!("`{}`: a reproducer cannot set `{name}`", input.name);
            return Err(Failure::Message(text));
        }
    }
    let (program, rest) = command_line.split_at(1.min(command_line.len()));
    let all: Vec<OsString> = program
        .iter()
        .cloned()
        .chain(flags.into_iter().map(OsString::from))
        .chain(rest.iter().cloned())
        .collect();
    Ok(super::parse(&all))
}

fn run_over(args: &Args, pipeline: &Pipeline, input: &Input) -> Result<(), Failure> {
    if args.pipeline.dump_pass_pipeline {
        report::line(&pipeline.dump());
    }
    let rules = rules::load(args)?;
    let output = Output::new(&args.output);
    let chunks = input.chunks(args.testing.split_input_file);
    let many = chunks.len() > 1;
    let timing = TimingReport::default();
    let mut run = Run {
        args,
        pipeline,
        input,
        style: report::style(args.reports.diagnostics, args.reports.color),
        timing: timing.clone(),
        manager: instruments::manager(args, verify_options(args), &timing, rules),
        files: Vec::new(),
    };
    let mut results: Vec<Ir> = Vec::new();
    let mut all_well = true;
    for (number, chunk) in chunks.into_iter().enumerate() {
        run.manager.begin_file(many.then_some(number + 1));
        match run.chunk(chunk) {
            Some(result) => results.push(result),
            None => all_well = false,
        }
    }
    if output.is_outside(&input.folder) {
        results.iter_mut().for_each(name_files_from_root);
    }
    // A wrong chunk does not stop the others, but a file is written whole or not at all.
    let written = all_well || (args.testing.split_input_file && matches!(output, Output::Stdout));
    if written && !args.testing.verify_diagnostics && !args.printing.no_output {
        let options = instruments::print_options(args);
        run.timed("print", || {
            output.write_with(|out| {
                for (number, ir) in results.iter().enumerate() {
                    if number > 0 {
                        out.write_all(b"// -----\n")?;
                    }
                    write(ir, options, out)?;
                }
                Ok(())
            })
        })
        .map_err(Failure::message)?;
    }
    if all_well {
        for (path, text) in &run.files {
            Output::new(path).write(text).map_err(Failure::message)?;
        }
    }
    run.manager.finish(&mut StandardError);
    match all_well {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

struct Run<'a> {
    args: &'a Args,
    pipeline: &'a Pipeline,
    input: &'a Input,
    style: ReportStyle,
    timing: TimingReport,
    manager: Manager,
    files: Vec<(String, String)>,
}

impl Run<'_> {
    fn timed<T>(&self, what: &str, body: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = body();
        self.timing.add(what, start.elapsed());
        result
    }

    /// The result of one chunk, or `None` if errors were reported.
    fn chunk(&mut self, chunk: Range<usize>) -> Option<Ir> {
        let args = self.args;
        let file = SourceFile {
            name: &self.input.name,
            text: &self.input.text,
        };
        let mut diags = Diagnostics::new();
        let mut ir = new_ir();
        ir.folder.clone_from(&self.input.folder);
        self.timed("read", || {
            parse(
                file.text,
                chunk.clone(),
                &mut ir,
                parse_options(args),
                &mut diags,
            )
        });
        let limit = parse_options(args).error_limit;
        if limit == 0 || diags.errors() < limit {
            let mut options = verify_options(args);
            if diags.has_errors() {
                // What could be read can be wrong by itself; what is missing around it says nothing.
                options.level = options.level.min(Level::Instructions);
            }
            self.timed("verify", || verify(&ir, options, &mut diags));
        }
        let mut files = Vec::new();
        if !diags.has_errors() && !self.pipeline.steps.is_empty() {
            let outcome = self
                .manager
                .run(self.pipeline, &mut ir, &mut StandardError, &mut diags);
            if let Outcome::Done(made) = outcome {
                files = made;
            }
        }
        if args.testing.verify_diagnostics {
            let differences = check_expected(&ir, file, chunk, &diags);
            let shown = args.reports.error_limit;
            report::print(&ir, file, &differences, self.style, shown);
            return (!differences.has_errors()).then_some(ir);
        }
        report::print(&ir, file, &diags, self.style, limit);
        if diags.has_errors() {
            return None;
        }
        self.files.extend(files);
        let options = parse_options(args);
        if args.testing.verify_roundtrip && !roundtrip::holds(options, &ir, self.style) {
            return None;
        }
        Some(ir)
    }
}

fn parse_options(args: &Args) -> ParseOptions {
    ParseOptions {
        allow_unregistered: args.verification.allow_unregistered_dialect,
        // Expectations are compared with all there is.
        error_limit: match args.testing.verify_diagnostics {
            true => 0,
            false => args.reports.error_limit,
        },
        plain: args.testing.plain_parser,
    }
}

fn verify_options(args: &Args) -> VerifyOptions {
    VerifyOptions {
        level: match args.verification.verify_each {
            _ if args.verification.no_verify => Level::Off,
            LevelArg::Off => Level::Off,
            LevelArg::Default => Level::Default,
            LevelArg::Full => Level::Full,
        },
        allow_unregistered: args.verification.allow_unregistered_dialect,
    }
}
