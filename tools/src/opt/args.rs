//! The flags of `bir-opt`, but those of passes.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use clap_complete::Shell;

use super::validation::Validate;
use crate::arrays::named;
use crate::report::{Color, Format};

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the input is wrong or a check failed; nothing was written
  2  the command line is wrong

Names of passes and options may be written with hyphens or underscores.
";

/// Reads a .bir file, runs passes over it, verifies and prints it.
///
/// Custom and generic form may be mixed in the input. Findings go to standard error, all of them
/// in one run.
#[derive(Parser)]
#[command(
    name = "bir-opt",
    version,
    after_help = EXIT_CODES,
    max_term_width = 100,
    args_override_self = true
)]
pub(super) struct Args {
    /// File to read; `-` is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub(super) input: String,

    /// File to write; `-` is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(super) output: String,

    #[command(flatten)]
    pub(super) pipeline: PipelineArgs,

    #[command(flatten)]
    pub(super) control: ControlArgs,

    #[command(flatten)]
    pub(super) watch: WatchArgs,

    #[command(flatten)]
    pub(super) printing: PrintingArgs,

    #[command(flatten)]
    pub(super) testing: TestingArgs,

    #[command(flatten)]
    pub(super) verification: VerificationArgs,

    #[command(flatten)]
    pub(super) reports: ReportArgs,

    #[command(flatten)]
    pub(super) manual: ManualArgs,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Pipeline")]
pub(super) struct PipelineArgs {
    /// Passes to run: `module(a{option=value}, func(b))`
    ///
    /// Anchors nest as program(module(func(…))); shorter strings are completed, so `unroll,
    /// canonicalize-names` is one too. Options stand in braces, separated by blanks or commas;
    /// values with blanks, braces or commas stand in quotes.
    #[arg(long, value_name = "STRING")]
    pub(super) pass_pipeline: Option<String>,

    /// Run a named pipeline, 0 to 3
    #[arg(short = 'O', value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=3), conflicts_with = "pass_pipeline")]
    pub(super) opt_level: Option<u8>,

    /// Print the whole pipeline, every option set, to standard error before it runs
    #[arg(long)]
    pub(super) dump_pass_pipeline: bool,

    /// Print the pipeline as a table with order numbers, and stop
    #[arg(long)]
    pub(super) print_pipeline: bool,

    /// File of rewrite rules for `apply_patterns` (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(super) patterns: Vec<String>,

    /// List all passes with their options, and stop
    #[arg(long)]
    pub(super) list_passes: bool,

    /// Allow passes that misbehave on purpose
    #[arg(long, hide = true)]
    pub(super) enable_test_passes: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Running")]
pub(super) struct ControlArgs {
    /// Leave a pass out (may be repeated)
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub(super) skip_pass: Vec<String>,

    /// Leave out everything behind the first run of a pass
    #[arg(long, value_name = "PASS")]
    pub(super) stop_after: Option<String>,

    /// Allow only N passes and rewrites, counted together, and number them on standard error; -1
    /// allows all
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub(super) bisect_limit: Option<i64>,

    /// Give up when passes are to run over more than N instructions, or one would leave more
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    pub(super) max_instructions: u64,

    /// Give up after N seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_seconds: Option<u64>,

    /// Threads that look at functions at once; no result depends on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) threads: Option<u16>,

    /// Use one thread
    #[arg(long, hide = true)]
    pub(super) mlir_disable_threading: bool,

    /// When a pass fails, write the module before it and the flags that show it into a folder
    #[arg(
        long,
        value_name = "DIR",
        visible_alias = "mlir-pass-pipeline-crash-reproducer"
    )]
    pub(super) crash_reproducer: Option<String>,

    /// Run the pipeline written in the head of the input, as --crash-reproducer leaves it
    #[arg(long)]
    pub(super) run_reproducer: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Watching passes")]
pub(super) struct WatchArgs {
    /// Print the module before passes: all, or those named
    #[arg(long, value_name = "PASS", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "", alias = "mlir-print-ir-before")]
    pub(super) print_ir_before: Option<Vec<String>>,

    /// Print the module after passes: all, or those named
    #[arg(long, value_name = "PASS", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "", alias = "mlir-print-ir-after")]
    pub(super) print_ir_after: Option<Vec<String>>,

    /// Print the module before every pass
    #[arg(long, alias = "mlir-print-ir-before-all")]
    pub(super) print_ir_before_all: bool,

    /// Print the module after every pass
    #[arg(long, alias = "mlir-print-ir-after-all")]
    pub(super) print_ir_after_all: bool,

    /// Print the module after passes that changed it
    #[arg(long, alias = "mlir-print-ir-after-change")]
    pub(super) print_ir_after_change: bool,

    /// Print what each pass changed, as a unified diff
    #[arg(long)]
    pub(super) print_ir_diff: bool,

    /// Write the module after each pass into a folder, one file each
    #[arg(long, value_name = "DIR", alias = "mlir-print-ir-tree-dir")]
    pub(super) print_ir_tree_dir: Option<String>,

    /// Tell where rewrite rules fired, or did not and why
    #[arg(long, value_enum, value_name = "WHICH", value_delimiter = ',')]
    pub(super) remarks: Vec<RemarkArg>,

    /// Print time, time per instruction and peak memory of each pass
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", alias = "mlir-timing")]
    pub(super) timing: Option<TableFormat>,

    /// Print what passes counted
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", alias = "mlir-pass-statistics")]
    pub(super) pass_statistics: Option<TableFormat>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Printing")]
pub(super) struct PrintingArgs {
    /// Print the generic form, which mlir-opt and xdsl-opt read
    #[arg(long, visible_alias = "mlir-print-op-generic")]
    pub(super) print_op_generic: bool,

    /// Leave comments out of the output
    #[arg(long)]
    pub(super) strip_comments: bool,

    /// Print constants of more than N bytes as a mark (the output cannot be read back)
    #[arg(
        long,
        value_name = "N",
        visible_alias = "mlir-elide-elementsattrs-if-larger"
    )]
    pub(super) elide_constants_larger: Option<usize>,

    /// Print no module, only findings
    #[arg(long)]
    pub(super) no_output: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Testing")]
pub(super) struct TestingArgs {
    /// Treat the parts of the input between lines `// -----` as files of their own
    #[arg(long)]
    pub(super) split_input_file: bool,

    /// Compare findings with `// expected-error@+1 {{text}}` comments; exit 0 if they agree
    #[arg(long)]
    pub(super) verify_diagnostics: bool,

    /// Print, read back and print again, in both forms, and fail on any difference
    #[arg(long)]
    pub(super) verify_roundtrip: bool,

    /// Parse every statement with the grammar alone, without the cache of statement shapes
    #[arg(long, hide_short_help = true)]
    pub(super) plain_parser: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Verification")]
pub(super) struct VerificationArgs {
    /// Keep ops of unknown dialects instead of refusing them
    #[arg(long, visible_alias = "mlir-allow-unregistered-dialect")]
    pub(super) allow_unregistered_dialect: bool,

    /// How much is verified, before the first pass and after each
    #[arg(
        long,
        value_enum,
        default_value_t = LevelArg::Default,
        default_missing_value = "default",
        num_args = 0..=1,
        require_equals = true,
        value_name = "LEVEL"
    )]
    pub(super) verify_each: LevelArg,

    /// Verify nothing (as --verify-each=off)
    #[arg(long)]
    pub(super) no_verify: bool,

    /// Let passes that have an independent checker run it behind each use
    #[arg(long)]
    pub(super) expensive_checks: bool,

    /// Simulate the module before and after passes and compare outputs, and inputs and shared and
    /// boundary locations it writes: `each` pass, the `end`, or each pass on inputs of N seeds, `random:N`
    #[arg(long, value_name = "WHEN")]
    pub(super) validate: Option<Validate>,

    /// Let a program pass that `--validate` cannot run, with a remark
    #[arg(long, hide_short_help = true, requires = "validate")]
    pub(super) allow_unvalidated: bool,

    /// Value of one input for `--validate`; those not given are random
    #[arg(
        id = "validate-input",
        long = "input",
        value_name = "NAME=FILE.npy",
        value_parser = named,
        requires = "validate"
    )]
    pub(super) given: Vec<(String, PathBuf)>,

    /// Values of inputs for `--validate`, by name
    #[arg(
        id = "validate-inputs",
        long = "inputs",
        value_name = "FILE.npz",
        requires = "validate"
    )]
    pub(super) given_all: Option<PathBuf>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Reports")]
pub(super) struct ReportArgs {
    /// Stop after N errors; 0 reports all
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(super) error_limit: usize,

    /// Format of findings
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub(super) diagnostics: Format,

    /// Colour in findings
    #[arg(
        long,
        value_enum,
        default_value_t = Color::Auto,
        default_missing_value = "always",
        num_args = 0..=1,
        require_equals = true,
        value_name = "WHEN"
    )]
    pub(super) color: Color,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Manual")]
pub(super) struct ManualArgs {
    /// Describe the dialect, or one op of it, and stop
    #[arg(long, value_name = "OP", num_args = 0..=1, require_equals = true)]
    pub(super) show_dialect: Option<Option<String>>,

    /// Format of --show-dialect
    #[arg(long, value_enum, default_value_t = ManualArg::Text, value_name = "FORMAT")]
    pub(super) format: ManualArg,

    /// Print a completion script for a shell, and stop
    #[arg(long, value_enum, value_name = "SHELL")]
    pub(super) completions: Option<Shell>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RemarkArg {
    /// Where rules fired
    Passed,
    /// Where rules did not fire, and the first thing in the way
    Missed,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// For people
    Text,
    /// One JSON object on one line
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LevelArg {
    /// Nothing
    Off,
    /// Structure, accesses, placement
    Default,
    /// Also definedness, overlaps and semaphores, and whether passes say what they changed
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ManualArg {
    Text,
    Markdown,
    Json,
}
