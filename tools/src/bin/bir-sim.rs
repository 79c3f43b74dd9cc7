//! `bir-sim`: runs a `.bir` file on data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{VerifyOptions, verify};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::render::{ReportStyle, SourceFile};
use bir_dialect::text::{ParseOptions, parse};
use bir_sim::{
    Fault, Lanes, MxScale, Options, Outcome, Port, PortKind, Simulation, Tensor, Tolerance, Uninit,
    compare, npy, random,
};
use bir_tools::arrays::{from_file, given, named, once, port, tensor};
use bir_tools::files::{Input, Output};
use bir_tools::report::{self, Color, Format};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

const AFTER: &str = "\
Arrays are numpy's. Dtypes numpy has no name for (bf16, 8-bit floats) are read from unsigned
integers or raw elements of their width, as ml_dtypes stores them, and written as raw elements:
  numpy.load(\"y.npy\").view(ml_dtypes.bfloat16)

Exit codes:
  0  success
  1  the input is wrong, the run failed, or an output is not as expected; nothing was written
  2  the command line is wrong";

/// Runs a .bir file on data: reads its inputs, executes its function, writes or checks its outputs.
///
/// The function run is the only one of its module, or `main`. Several modules are the cores of one
/// program: locations that are not shared are then called NAME@CORE, and an input NAME is given to all.
#[derive(Parser)]
#[command(name = "bir-sim", version, after_help = AFTER, max_term_width = 100)]
struct Args {
    /// File to run; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,

    /// Value of one input
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = named, help_heading = "Inputs")]
    input: Vec<(String, PathBuf)>,

    /// Values of inputs, by name
    #[arg(long, value_name = "FILE.npz", help_heading = "Inputs")]
    inputs: Option<PathBuf>,

    /// Random values, special ones among them, for inputs not given
    #[arg(long, value_name = "SEED", help_heading = "Inputs")]
    random: Option<u64>,

    /// What reading a byte does that nothing has written
    #[arg(long, value_enum, default_value_t = UninitArg::Error, value_name = "WHAT", help_heading = "Inputs")]
    uninit: UninitArg,

    /// Largest exponent `quantize_mx` gives the elements of a group
    #[arg(long, value_enum, default_value_t = MxScaleArg::Isa, value_name = "RULE", help_heading = "Inputs")]
    mx_scale: MxScaleArg,

    /// Write one output
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = named, help_heading = "Outputs")]
    output: Vec<(String, PathBuf)>,

    /// Write all outputs
    #[arg(long, value_name = "FILE.npz", help_heading = "Outputs")]
    outputs: Option<PathBuf>,

    /// Compare one output
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = named, help_heading = "Checks")]
    expect: Vec<(String, PathBuf)>,

    /// Compare all outputs; the file holds each of them
    #[arg(long, value_name = "FILE.npz", help_heading = "Checks")]
    expect_all: Option<PathBuf>,

    /// Relative tolerance; without any tolerance bits must be equal
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = tolerance, help_heading = "Checks")]
    rtol: f64,

    /// Absolute tolerance
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = tolerance, help_heading = "Checks")]
    atol: f64,

    /// Tolerance in units of the last place
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Checks")]
    ulp: u64,

    /// Whether any NaN equals any NaN, or their bits count
    #[arg(long, value_enum, default_value_t = NanArg::Any, value_name = "HOW", help_heading = "Checks")]
    nan: NanArg,

    /// Print what was executed
    #[arg(long, help_heading = "Reports")]
    stats: bool,

    /// Most bytes all locations may have together; K, M, G, T stand for powers of 1024
    #[arg(long, value_name = "N", default_value = "8G", value_parser = size, help_heading = "Limits")]
    max_bytes: u64,

    /// Most steps: instructions executed, and ends of loops and functions
    #[arg(long, value_name = "N", default_value = "1T", value_parser = size, help_heading = "Limits")]
    max_steps: u64,

    /// Run without the vector instructions of this machine; results do not depend on it
    #[arg(long, hide_short_help = true, help_heading = "Testing")]
    baseline: bool,

    /// Verify nothing before the run
    #[arg(long, hide_short_help = true, help_heading = "Testing")]
    no_verify: bool,

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
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UninitArg {
    /// End the run
    Error,
    /// Give NaN, or bytes 0xA5 for what is no float
    Poison,
    /// Give zeros
    Zero,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MxScaleArg {
    /// One below the format's largest, so that nothing is clipped
    Isa,
    /// The format's largest, clipped at the largest finite number
    Ocp,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NanArg {
    /// Any NaN equals any NaN
    Any,
    /// Bits count
    Bits,
}

fn size(text: &str) -> Result<u64, String> {
    let unit = match text.chars().last() {
        Some('K' | 'k') => 10,
        Some('M' | 'm') => 20,
        Some('G' | 'g') => 30,
        Some('T' | 't') => 40,
        _ => 0,
    };
    let digits = if unit == 0 {
        text
    } else {
        &text[..text.len() - 1]
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << unit))
        .ok_or_else(|| "expected a number, with K, M, G or T behind it".to_owned())
}

fn tolerance(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| *number >= 0.0 && number.is_finite())
        .ok_or_else(|| "expected a finite number, 0 or more".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            report::message("bir-sim", &message);
            ExitCode::FAILURE
        }
    }
}

/// Whether all went well; errors that belong to no place in the file are the message.
fn run(args: &Args) -> Result<bool, String> {
    let style = report::style(args.diagnostics, args.color);
    let input = Input::read(&args.file)?;
    let file = SourceFile {
        name: &input.name,
        text: &input.text,
    };
    let mut diags = Diagnostics::new();
    let mut ir = new_ir();
    ir.folder.clone_from(&input.folder);
    parse(
        &input.text,
        0..input.text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    if !diags.has_errors() && !args.no_verify {
        verify(&ir, VerifyOptions::default(), &mut diags);
    }
    report::print(&ir, file, &diags, style, report::ERROR_LIMIT);
    if diags.has_errors() {
        return Ok(false);
    }
    let fault = |fault: Box<Fault>| {
        print_fault(&ir, file, &fault, style);
        Ok(false)
    };
    let options = Options {
        max_bytes: args.max_bytes,
        max_steps: args.max_steps,
        uninit: match args.uninit {
            UninitArg::Error => Uninit::Error,
            UninitArg::Poison => Uninit::Poison,
            UninitArg::Zero => Uninit::Zero,
        },
        lanes: if args.baseline {
            Lanes::baseline()
        } else {
            Lanes::best()
        },
        mx_scale: match args.mx_scale {
            MxScaleArg::Isa => MxScale::Isa,
            MxScaleArg::Ocp => MxScale::Ocp,
        },
        nan_salt: None,
        watch: false,
    };
    let simulation = match Simulation::new(&ir, options) {
        Ok(simulation) => simulation,
        Err(error) => return fault(error),
    };
    let ports: Vec<Port> = simulation.ports().collect();
    let inputs = inputs(args, &ports)?;
    let expected = expected(args, &ports)?;
    for (name, _) in &args.output {
        port(&ports, name, PortKind::Output)?;
    }
    different_files(args)?;
    let bar = progress_bar();
    let outcome = simulation.run(&inputs, &mut |steps| bar.set_position(steps));
    bar.finish_and_clear();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return fault(error),
    };
    let as_expected = check(args, &outcome, &expected);
    if as_expected {
        // What cannot be told leaves no files behind.
        if args.stats {
            Output::Stdout.write(&outcome.stats.to_string())?;
        }
        write(args, &outcome)?;
    }
    Ok(as_expected)
}

fn print_fault(ir: &bir_dialect::ir::Ir, file: SourceFile<'_>, fault: &Fault, style: ReportStyle) {
    let mut diags = Diagnostics::new();
    diags.push(fault.diagnostic());
    report::print(ir, file, &diags, style, report::ERROR_LIMIT);
}

/// No array may replace another one, nor the program.
fn different_files(args: &Args) -> Result<(), String> {
    // Names of one file are the same however they are spelt, and where it does not exist yet.
    let real = |path: &Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = absolute
            .parent()
            .and_then(|folder| folder.canonicalize().ok());
        let joined = folder.zip(absolute.file_name());
        let spelt = joined.map(|(folder, name)| folder.join(name));
        path.canonicalize().ok().or(spelt).unwrap_or(absolute)
    };
    let single = args.output.iter().map(|(_, path)| path);
    let mut seen = BTreeMap::from([(real(Path::new(&args.file)), "the program".to_owned())]);
    for path in single.chain(&args.outputs) {
        if path == Path::new("-") {
            return Err("`-` is no file that arrays are written to".to_owned());
        }
        let target = real(path);
        // A device or a pipe takes all there is.
        if target.exists() && !target.is_file() {
            continue;
        }
        let what = format!("another output, as `{}`", path.display());
        if let Some(other) = seen.insert(target, what) {
            return Err(format!(
                "`{}` is named for an output, but is {other}",
                path.display()
            ));
        }
    }
    Ok(())
}

fn progress_bar() -> ProgressBar {
    // Draws nothing unless standard error is a terminal, and only once the run has taken a moment.
    let bar = ProgressBar::no_length().with_style(
        ProgressStyle::with_template("{spinner} {human_pos} instructions, {per_sec}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn inputs(args: &Args, ports: &[Port]) -> Result<BTreeMap<String, Tensor>, String> {
    let mut inputs = given(ports, args.inputs.as_deref(), &args.input, args.max_bytes)?;
    if let Some(seed) = args.random {
        for port in ports.iter().filter(|port| port.kind != PortKind::Output) {
            if !inputs.keys().any(|name| port.takes(name)) {
                let value = random::value(seed, port);
                inputs.insert(port.name.clone(), value);
            }
        }
    }
    let missing: Vec<String> = ports
        .iter()
        .filter(|port| port.kind != PortKind::Output)
        .filter(|port| !inputs.keys().any(|name| port.takes(name)))
        .map(|port| format!("`%{}`", port.name))
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "no value is given for {}; give it with --input or --inputs, or make it with --random",
            missing.join(", ")
        ));
    }
    Ok(inputs)
}

fn expected(args: &Args, ports: &[Port]) -> Result<BTreeMap<String, Tensor>, String> {
    let mut expected = BTreeMap::new();
    if let Some(path) = &args.expect_all {
        for (name, array) in npy::read_all(path, args.max_bytes)? {
            let port = port(ports, &name, PortKind::Output)?;
            let what = format!("array `{name}` of `{}`", path.display());
            expected.insert(name, tensor(port, array, &what)?);
        }
        let absent = ports
            .iter()
            .find(|port| port.kind != PortKind::Input && !expected.contains_key(&port.name));
        if let Some(port) = absent {
            return Err(format!("`{}` has no array `{}`", path.display(), port.name));
        }
    }
    once(&args.expect, "expected output")?;
    for (name, path) in &args.expect {
        let port = port(ports, name, PortKind::Output)?;
        expected.insert(name.clone(), from_file(port, path, args.max_bytes)?);
    }
    Ok(expected)
}

/// Whether outputs are as expected; reports each that is not.
fn check(args: &Args, outcome: &Outcome, expected: &BTreeMap<String, Tensor>) -> bool {
    let tolerance = Tolerance {
        relative: args.rtol,
        absolute: args.atol,
        ulp: args.ulp,
        nan_bits: args.nan == NanArg::Bits,
    };
    let mut well = true;
    for (name, found) in &outcome.outputs {
        let difference = expected
            .get(name)
            .and_then(|want| compare(found, want, tolerance));
        if let Some(difference) = difference {
            report::message("bir-sim", &format!("output `%{name}` {difference}"));
            well = false;
        }
    }
    well
}

fn write(args: &Args, outcome: &Outcome) -> Result<(), String> {
    let mut files = Vec::new();
    for (name, path) in &args.output {
        if let Some((_, tensor)) = outcome.outputs.iter().find(|(output, _)| output == name) {
            files.push((path.clone(), npy::encode(tensor)));
        }
    }
    if let Some(path) = &args.outputs {
        let tensors = outcome
            .outputs
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor));
        files.push((path.clone(), npy::encode_all(tensors)?));
    }
    npy::write_files(&files)
}
