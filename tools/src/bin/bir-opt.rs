//! `bir-opt`: reads a `.bir` file, verifies it, and prints it.

use std::io::Write as _;
use std::process::ExitCode;

use bir_dialect::bir::ops::{ManualFormat, OpCode, manual};
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place, did_you_mean};
use bir_dialect::text::expect::check_expected;
use bir_dialect::text::render::{ReportStyle, SourceFile};
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use bir_tools::files::{Input, Output};
use bir_tools::report::{self, Color, Format};
use clap::{Parser, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the input is wrong or a check failed; nothing was written
  2  the command line is wrong";

/// Reads a .bir file, verifies it, and prints it.
///
/// Custom and generic form may be mixed in the input. Findings go to standard error, all of them
/// in one run.
#[derive(Parser)]
#[command(name = "bir-opt", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Args {
    /// File to read; `-` is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    input: String,

    /// File to write; `-` is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: String,

    /// Print the generic form, which mlir-opt and xdsl-opt read
    #[arg(
        long,
        visible_alias = "mlir-print-op-generic",
        help_heading = "Printing"
    )]
    print_op_generic: bool,

    /// Leave comments out of the output
    #[arg(long, help_heading = "Printing")]
    strip_comments: bool,

    /// Print constants of more than N bytes as a mark (the output cannot be read back)
    #[arg(
        long,
        value_name = "N",
        visible_alias = "mlir-elide-elementsattrs-if-larger",
        help_heading = "Printing"
    )]
    elide_constants_larger: Option<usize>,

    /// Print no module, only findings
    #[arg(long, help_heading = "Printing")]
    no_output: bool,

    /// Treat the parts of the input between lines `// -----` as files of their own
    #[arg(long, help_heading = "Testing")]
    split_input_file: bool,

    /// Compare findings with `// expected-error@+1 {{text}}` comments; exit 0 if they agree
    #[arg(long, help_heading = "Testing")]
    verify_diagnostics: bool,

    /// Print, read back and print again, in both forms, and fail on any difference
    #[arg(long, help_heading = "Testing")]
    verify_roundtrip: bool,

    /// Parse every statement with the grammar alone, without the cache of statement shapes
    #[arg(long, help_heading = "Testing", hide_short_help = true)]
    plain_parser: bool,

    /// Keep ops of unknown dialects instead of refusing them
    #[arg(
        long,
        visible_alias = "mlir-allow-unregistered-dialect",
        help_heading = "Verification"
    )]
    allow_unregistered_dialect: bool,

    /// How much is verified
    #[arg(
        long,
        value_enum,
        default_value_t = LevelArg::Default,
        default_missing_value = "default",
        num_args = 0..=1,
        require_equals = true,
        value_name = "LEVEL",
        help_heading = "Verification"
    )]
    verify_each: LevelArg,

    /// Verify nothing (as --verify-each=off)
    #[arg(long, help_heading = "Verification")]
    no_verify: bool,

    /// Stop after N errors; 0 reports all
    #[arg(long, default_value_t = 20, value_name = "N", help_heading = "Reports")]
    error_limit: usize,

    /// Format of findings
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT", help_heading = "Reports")]
    diagnostics: Format,

    /// Colour in findings
    #[arg(
        long,
        value_enum,
        default_value_t = Color::Auto,
        default_missing_value = "always",
        num_args = 0..=1,
        require_equals = true,
        value_name = "WHEN",
        help_heading = "Reports"
    )]
    color: Color,

    /// Describe the dialect, or one op of it, and stop
    #[arg(long, value_name = "OP", num_args = 0..=1, require_equals = true, help_heading = "Manual")]
    show_dialect: Option<Option<String>>,

    /// Format of --show-dialect
    #[arg(long, value_enum, default_value_t = ManualArg::Text, value_name = "FORMAT", help_heading = "Manual")]
    format: ManualArg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LevelArg {
    /// Nothing
    Off,
    /// Structure, accesses, placement
    Default,
    /// Also definedness, overlaps and semaphores
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ManualArg {
    Text,
    Markdown,
    Json,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let code = match run(&args) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(message) => {
            report::message("bir-opt", &message);
            1
        }
    };
    // The process ends here: returning the memory of a large module one table at a time would
    // only take time.
    let _ = std::io::stdout().flush();
    std::process::exit(code)
}

/// Whether all went well; errors that belong to no file are the message.
fn run(args: &Args) -> Result<bool, String> {
    if let Some(op) = &args.show_dialect {
        return show_dialect(args, op.as_deref()).map(|()| true);
    }
    let style = report::style(args.diagnostics, args.color);
    let input = Input::read(&args.input)?;
    let output = Output::new(&args.output);
    let chunks = input.chunks(args.split_input_file);
    let mut results: Vec<String> = Vec::new();
    let mut all_well = true;
    for chunk in chunks {
        match process(args, &input, chunk, style) {
            Some(result) => results.push(result),
            None => all_well = false,
        }
    }
    // A wrong chunk does not stop the others, but a file is written whole or not at all.
    let write = all_well || (args.split_input_file && matches!(output, Output::Stdout));
    if write && !args.verify_diagnostics && !args.no_output {
        output.write(&results.join("// -----\n"))?;
    }
    Ok(all_well)
}

/// The printed result of one chunk, or `None` if findings were reported.
fn process(
    args: &Args,
    input: &Input,
    chunk: std::ops::Range<usize>,
    style: ReportStyle,
) -> Option<String> {
    let file = SourceFile {
        name: &input.name,
        text: &input.text,
    };
    let mut diags = Diagnostics::new();
    let mut ir = new_ir();
    parse(
        &input.text,
        chunk.clone(),
        &mut ir,
        parse_options(args),
        &mut diags,
    );
    if !diags.has_errors() {
        verify(&ir, verify_options(args), &mut diags);
    }
    if args.verify_diagnostics {
        let differences = check_expected(&ir, file, chunk, &diags);
        report::print(&ir, file, &differences, style);
        return (!differences.has_errors()).then(String::new);
    }
    report::print(&ir, file, &diags, style);
    if diags.has_errors() {
        return None;
    }
    let options = PrintOptions {
        generic: args.print_op_generic,
        elide_larger: args.elide_constants_larger,
        strip_comments: args.strip_comments,
    };
    if args.verify_roundtrip && !round_trips(args, &ir, style) {
        return None;
    }
    if args.no_output {
        return Some(String::new());
    }
    Some(print(&ir, options))
}

fn parse_options(args: &Args) -> ParseOptions {
    ParseOptions {
        allow_unregistered: args.allow_unregistered_dialect,
        error_limit: args.error_limit,
        plain: args.plain_parser,
    }
}

fn verify_options(args: &Args) -> VerifyOptions {
    VerifyOptions {
        level: match args.verify_each {
            _ if args.no_verify => Level::Off,
            LevelArg::Off => Level::Off,
            LevelArg::Default => Level::Default,
            LevelArg::Full => Level::Full,
        },
        allow_unregistered: args.allow_unregistered_dialect,
    }
}

/// Whether both forms read back to what was printed; reports where they do not.
fn round_trips(args: &Args, ir: &Ir, style: ReportStyle) -> bool {
    let forms = |ir: &Ir| {
        [false, true].map(|generic| {
            print(
                ir,
                PrintOptions {
                    generic,
                    ..PrintOptions::default()
                },
            )
        })
    };
    let first = forms(ir);
    for (text, name) in first.iter().zip(["<custom form>", "<generic form>"]) {
        let file = SourceFile { name, text };
        let mut diags = Diagnostics::new();
        let mut again = new_ir();
        parse(
            text,
            0..text.len(),
            &mut again,
            parse_options(args),
            &mut diags,
        );
        if !diags.has_errors() {
            for (before, after) in first.iter().zip(forms(&again)) {
                if let Some(difference) = difference(before, &after) {
                    diags.push(
                        Diagnostic::error(
                            Place::None,
                            format!("{name} does not read back to itself"),
                        )
                        .note(difference),
                    );
                    break;
                }
            }
        }
        if diags.has_errors() {
            report::print(&again, file, &diags, style);
            return false;
        }
    }
    true
}

/// The first line in which two texts differ.
fn difference(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let mut lines = before.lines().zip(after.lines()).enumerate();
    let differing = lines.find(|(_, (before, after))| before != after);
    Some(match differing {
        Some((line, (before, after))) => {
            format!(
                "line {}: `{}` became `{}`",
                line + 1,
                before.trim(),
                after.trim()
            )
        }
        None => format!(
            "{} lines became {}",
            before.lines().count(),
            after.lines().count()
        ),
    })
}

fn show_dialect(args: &Args, op: Option<&str>) -> Result<(), String> {
    let code = match op {
        None => None,
        Some(name) => {
            let name = name.strip_prefix("bir.").unwrap_or(name);
            let known = OpCode::ALL.iter().map(|op| op.def().name);
            let code = OpCode::from_name(name).ok_or_else(|| {
                let help =
                    did_you_mean(name, known).map_or(String::new(), |help| format!("; {help}"));
                format!("there is no op `{name}`{help}")
            })?;
            Some(code)
        }
    };
    let format = match args.format {
        ManualArg::Text => ManualFormat::Text,
        ManualArg::Markdown => ManualFormat::Markdown,
        ManualArg::Json => ManualFormat::Json,
    };
    Output::new(&args.output).write(&manual(code, format))
}
