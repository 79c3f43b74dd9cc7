//! What watches a run, as the flags ask.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use bir_dialect::bir::verify::VerifyOptions;
use bir_dialect::text::PrintOptions;
use bir_passes::instrument::{
    Bisect, Log, PassSet, PrintIr, PrintIrOptions, PrintIrTree, Progress, ReportFormat, Reproducer,
    Skip, Statistics, StopAfter, Timing, TimingReport, Verification,
};
use bir_passes::pass::Limits;
use bir_passes::{Manager, Rules};

use super::args::{Args, LevelArg, TableFormat};
use super::validation::{Given, Keeping, Validation};

/// Standard error.
pub(super) struct StandardError;

impl Log for StandardError {
    fn write(&mut self, text: &str) {
        // Nobody is left to tell where standard error fails.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

fn report_format(format: TableFormat) -> ReportFormat {
    match format {
        TableFormat::Text => ReportFormat::Text,
        TableFormat::Json => ReportFormat::Json,
    }
}

fn pass_set(names: &Option<Vec<String>>, all: bool) -> PassSet {
    match names {
        _ if all => PassSet::All,
        None => PassSet::None,
        Some(names) if names.iter().all(String::is_empty) => PassSet::All,
        Some(names) => PassSet::Names(names.clone()),
    }
}

/// How modules are printed.
pub(super) fn print_options(args: &Args) -> PrintOptions {
    PrintOptions {
        generic: args.printing.print_op_generic,
        elide_larger: args.printing.elide_constants_larger,
        strip_comments: args.printing.strip_comments,
    }
}

/// Bounds on the run.
pub(super) fn limits(args: &Args) -> Limits {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match args.control.threads {
        _ if args.control.mlir_disable_threading => 1,
        Some(threads) => usize::from(threads),
        None => cores(),
    };
    Limits {
        max_instructions: args.control.max_instructions,
        threads,
        expensive_checks: args.verification.expensive_checks,
    }
}

/// A manager with everything the flags ask for; the first to be added stands farthest from the
/// passes.
pub(super) fn manager(
    args: &Args,
    verify: VerifyOptions,
    timing: &TimingReport,
    rules: Rules,
) -> Manager {
    let mut manager = Manager::new(limits(args)).with_rules(rules);
    let control = &args.control;
    if !control.skip_pass.is_empty() {
        let names = control.skip_pass.clone();
        manager.watch(Skip { names });
    }
    if let Some(limit) = control.bisect_limit {
        manager.watch(Bisect::new(u64::try_from(limit).ok()));
    }
    if let Some(name) = &control.stop_after {
        manager.watch(StopAfter { name: name.clone() });
    }
    if io::stderr().is_terminal() {
        manager.watch(Progress::new());
    }
    if let Some(folder) = &control.crash_reproducer {
        let stem = reproducer_stem(&args.input);
        manager.watch(Reproducer::new(
            PathBuf::from(folder),
            stem,
            kept_flags(args),
        ));
    }
    manager.watch(Verification::new(verify));
    if let Some(mode) = args.verification.validate {
        let given = Given {
            files: args.verification.given.clone(),
            archive: args.verification.given_all.clone(),
        };
        let keeping = Keeping {
            folder: control.crash_reproducer.as_ref().map(PathBuf::from),
            stem: reproducer_stem(&args.input),
            flags: kept_flags(args),
        };
        let lenient = args.verification.allow_unvalidated;
        manager.watch(Validation::new(mode, given, lenient, keeping));
    }
    let watch = &args.watch;
    let options = PrintIrOptions {
        before: pass_set(&watch.print_ir_before, watch.print_ir_before_all),
        after: pass_set(&watch.print_ir_after, watch.print_ir_after_all),
        after_change: watch.print_ir_after_change,
        diff: watch.print_ir_diff,
        print: print_options(args),
    };
    manager.watch(PrintIr::new(options));
    if let Some(folder) = &watch.print_ir_tree_dir {
        manager.watch(PrintIrTree::new(PathBuf::from(folder), print_options(args)));
    }
    if let Some(format) = watch.pass_statistics {
        manager.watch(Statistics::new(report_format(format)));
    }
    if let Some(format) = watch.timing {
        manager.watch(Timing::new(timing.clone(), report_format(format)));
    }
    manager
}

fn reproducer_stem(input: &str) -> String {
    match input {
        "-" => "stdin".to_owned(),
        path => Path::new(path)
            .file_stem()
            .map_or("input".to_owned(), |stem| {
                stem.to_string_lossy().into_owned()
            }),
    }
}

/// Flags without which a failure might not show again; [`KEPT`] allows them in a reproducer.
fn kept_flags(args: &Args) -> Vec<String> {
    let level = match args.verification.verify_each {
        _ if args.verification.no_verify => "off",
        LevelArg::Off => "off",
        LevelArg::Default => "default",
        LevelArg::Full => "full",
    };
    let mut flags = vec![
        format!("--verify-each={level}"),
        format!("--max-instructions={}", args.control.max_instructions),
    ];
    if args.verification.allow_unregistered_dialect {
        flags.push("--allow-unregistered-dialect".to_owned());
    }
    // A reproducer may be run from another folder.
    let anywhere = |file: &Path| {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        file.display().to_string()
    };
    for file in &args.pipeline.patterns {
        flags.push(format!("--patterns={}", anywhere(Path::new(file))));
    }
    if let Some(mode) = args.verification.validate {
        flags.push(format!("--validate={mode}"));
    }
    if args.verification.allow_unvalidated {
        flags.push("--allow-unvalidated".to_owned());
    }
    if let Some(file) = &args.verification.given_all {
        flags.push(format!("--inputs={}", anywhere(file)));
    }
    for (name, file) in &args.verification.given {
        flags.push(format!("--input={name}={}", anywhere(file)));
    }
    if args.pipeline.enable_test_passes {
        flags.push("--enable-test-passes".to_owned());
    }
    flags
}

/// The flags a reproducer may set: what writes files is not among them, nor what reads others but for rules
/// and inputs.
pub(super) const KEPT: [&str; 11] = [
    "--patterns",
    "--validate",
    "--allow-unvalidated",
    "--input",
    "--inputs",
    "--pass-pipeline",
    "--verify-each",
    "--max-instructions",
    "--allow-unregistered-dialect",
    "--enable-test-passes",
    "--threads",
];
