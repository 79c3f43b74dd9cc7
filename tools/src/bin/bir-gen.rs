//! `bir-gen`: makes `.bir` programs by seed.

use std::process::ExitCode;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::Target;
use bir_dialect::text::diag::did_you_mean;
use bir_dialect::text::{PrintOptions, write};
use bir_sim::generate::{Config, Counts, Feature, Generated, Profile, generate, profile};
use bir_tools::files::Output;
use clap::Parser;

const AFTER: &str = "\
Exit codes:
  0  success
  1  the file cannot be written
  2  the command line is wrong";

/// Makes a .bir program: a random one, or a workload of one shape.
///
/// Programs verify clean at every level and run on any input, given the memory. Equal options give equal
/// programs.
#[derive(Parser)]
#[command(name = "bir-gen", version, after_help = AFTER, max_term_width = 100)]
struct Args {
    /// `random`, or a workload; `--list` shows them
    #[arg(value_name = "PROFILE", default_value = "random", value_parser = shape)]
    profile: Shape,

    /// Start of the random stream
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,

    /// Instructions of a random program, or the size of a workload in its own unit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    size: Option<u64>,

    /// Hardware generation; by the seed where absent
    #[arg(long, value_name = "TARGET", value_parser = target, help_heading = "Random programs")]
    target: Option<Target>,

    /// Most elements of a tile per partition
    ///
    /// 64 where absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16384), help_heading = "Random programs")]
    max_elements: Option<u64>,

    /// Most cores of a random program; one in six has several, or all where an op asked for needs them
    ///
    /// 1 where absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4), help_heading = "Random programs")]
    max_cores: Option<u32>,

    /// Features and ops left out; what others need to read is made all the same
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = part, help_heading = "Random programs")]
    without: Vec<Part>,

    /// The only ops, with what they need to read
    #[arg(long, value_name = "OP,…", value_delimiter = ',', value_parser = op, help_heading = "Random programs")]
    ops: Vec<OpCode>,

    /// File to write; `-` is standard output
    #[arg(
        short,
        long,
        default_value = "-",
        value_name = "FILE",
        help_heading = "Output"
    )]
    output: String,

    /// Print the generic form
    #[arg(long, help_heading = "Output")]
    print_op_generic: bool,

    /// Print instead how often each op, dtype and feature occurs
    #[arg(long, help_heading = "Output")]
    counts: bool,

    /// List workloads and features
    #[arg(long, help_heading = "Output")]
    list: bool,
}

#[derive(Clone, Copy)]
enum Shape {
    Random,
    Workload(Profile),
}

#[derive(Clone, Copy)]
enum Part {
    Feature(Feature),
    Op(OpCode),
}

/// "unknown …", with the nearest name.
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = did_you_mean(name, known).map_or(String::new(), |near| format!("; {near}"));
    format!("no {what} of that name{near}")
}

fn shape(name: &str) -> Result<Shape, String> {
    if name == "random" {
        return Ok(Shape::Random);
    }
    Profile::from_name(name)
        .map(Shape::Workload)
        .ok_or_else(|| {
            let known = Profile::ALL.iter().map(|profile| profile.name());
            unknown("workload", name, known.chain(["random"]))
        })
}

fn target(name: &str) -> Result<Target, String> {
    Target::from_name(name)
        .ok_or_else(|| unknown("target", name, Target::ALL.iter().map(|t| t.name())))
}

fn op(name: &str) -> Result<OpCode, String> {
    OpCode::from_name(name)
        .ok_or_else(|| unknown("op", name, OpCode::ALL.iter().map(|op| op.def().name)))
}

fn part(name: &str) -> Result<Part, String> {
    let feature = Feature::from_name(name).map(Part::Feature);
    feature
        .or_else(|| OpCode::from_name(name).map(Part::Op))
        .ok_or_else(|| {
            let features = Feature::ALL.iter().map(|feature| feature.name());
            let ops = OpCode::ALL.iter().map(|op| op.def().name);
            unknown("feature or op", name, features.chain(ops))
        })
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(message) = consistent(&args) {
        report_error(&message);
        return ExitCode::from(2);
    }
    let output = Output::new(&args.output);
    let written = if args.list {
        output.write(&list())
    } else {
        let program = make(&args);
        let made = |op: OpCode| { program.counts.by_op() }.any(|(made, n)| made == op && n > 0);
        for op in args.ops.iter().filter(|&&op| !made(op)) {
            report_error(&format!(
                "warning: no `{}` is in the program: no room for it, not on this target, or never made",
                op.def().name
            ));
        }
        if args.counts {
            output.write(&report(&program.counts))
        } else {
            let options = PrintOptions {
                generic: args.print_op_generic,
                ..PrintOptions::default()
            };
            output.write_with(|mut out| write(&program.ir, options, &mut out))
        }
    };
    if let Err(message) = written {
        report_error(&message);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stderr, reason = "a tool reports on standard error")]
fn report_error(message: &str) {
    eprintln!("bir-gen: {message}");
}

/// Whether the flags go together; the error names those that do not.
fn consistent(args: &Args) -> Result<(), String> {
    let without = |op: OpCode| {
        { args.without.iter() }.any(|part| matches!(*part, Part::Op(other) if other == op))
    };
    if let Some(op) = args.ops.iter().find(|&&op| without(op)) {
        return Err(format!("`{}` is in --ops and in --without", op.def().name));
    }
    let Shape::Workload(workload) = args.profile else {
        return Ok(());
    };
    let given = [
        ("--target", args.target.is_some()),
        ("--max-elements", args.max_elements.is_some()),
        ("--max-cores", args.max_cores.is_some()),
        ("--without", !args.without.is_empty()),
        ("--ops", !args.ops.is_empty()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(format!(
            "{flag} is for random programs; workload `{}` takes --size and --seed",
            workload.name()
        ));
    }
    let sizes = workload.sizes();
    match args.size {
        Some(size) if !sizes.contains(&size) => Err(format!(
            "workload `{}` has sizes from {} to {}, found {size}",
            workload.name(),
            sizes.start(),
            sizes.end()
        )),
        _ => Ok(()),
    }
}

fn make(args: &Args) -> Generated {
    match args.profile {
        Shape::Workload(workload) => profile(workload, args.seed, args.size),
        Shape::Random => {
            let mut config = Config {
                seed: args.seed,
                target: args.target,
                max_elements: args.max_elements.unwrap_or(64),
                max_cores: args.max_cores.unwrap_or(1),
                ops: args.ops.clone(),
                ..Config::default()
            };
            if let Some(size) = args.size {
                config.instructions = usize::try_from(size).unwrap_or(usize::MAX);
            }
            for part in &args.without {
                match *part {
                    Part::Feature(feature) => config.without.insert(feature),
                    Part::Op(code) => config.without_ops.push(code),
                }
            }
            generate(&config)
        }
    }
}

fn list() -> String {
    let mut text = String::from("workloads, with the size where none is given:\n");
    for profile in Profile::ALL {
        text += &format!(
            "  {:10} {:>9} {}\n",
            profile.name(),
            profile.size(),
            profile.summary()
        );
    }
    text += "features of random programs:\n";
    for feature in Feature::ALL {
        text += &format!("  {:21} {}\n", feature.name(), feature.summary());
    }
    text
}

fn report(counts: &Counts) -> String {
    let mut text = format!("instructions {}\n", counts.instructions());
    let ops = counts.by_op().map(|(op, count)| (op.def().name, count));
    let dtypes = counts
        .by_dtype()
        .map(|(dtype, count)| (dtype.name(), count));
    let features = counts
        .by_feature()
        .map(|(feature, count)| (feature.name(), count));
    let mut section = |title: &str, rows: &mut dyn Iterator<Item = (&'static str, u64)>| {
        text += title;
        text.push('\n');
        for (name, count) in rows {
            text += &format!("  {name:34} {count:>9}\n");
        }
    };
    section("ops", &mut ops.into_iter());
    section("dtypes of operands", &mut dtypes.into_iter());
    section("features", &mut features.into_iter());
    text
}
