//! `bir-pattern`: checks, formats, lists, explains and verifies rewrite rules.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostics, Place};
use bir_dialect::text::render::{ReportStyle, SourceFile, line_col, render, resolve};
use bir_dialect::text::{ParseOptions, parse};
use bir_patterns::constraints::{CLASSES, CONSTRAINTS, Param};
use bir_patterns::natives::NATIVES;
use bir_patterns::text as pattern_text;
use bir_patterns::verify::{Effort, Verdict, verify};
use bir_patterns::{Flags, Library, Remarks, Rule, RuleSet, Settings, apply};
use bir_tools::files::{Input, Output};
use bir_tools::report::{self, Color, Format};
use clap::{Parser, Subcommand};

const AFTER: &str = "\
Exit codes:
  0  success
  1  a file is wrong, a rule is false, or a layout differs
  2  the command line is wrong";

/// Checks, formats, lists, explains and verifies rewrite rules.
#[derive(Parser)]
#[command(name = "bir-pattern", version, after_help = AFTER, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,

    /// Format of findings
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT", global = true)]
    diagnostics: Format,

    /// Colour in findings
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN", global = true)]
    color: Color,
}

#[derive(Subcommand)]
enum Command {
    /// Find what is wrong with files of rules
    Check {
        /// Files of rules
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
    },
    /// Lay files out anew
    Fmt {
        /// Files of rules; `-` is standard input, written to standard output
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
        /// Write nothing; fail where a file would change
        #[arg(long)]
        check: bool,
    },
    /// List sets and their rules, or what rules may ask and do
    List {
        /// Files of rules besides the shipped ones
        #[arg(value_name = "FILE")]
        files: Vec<String>,
        /// List the constraints and registered rewrites instead
        #[arg(long)]
        constraints: bool,
    },
    /// Print the manual of sets as Markdown
    Doc {
        /// Files of rules; the shipped sets where there is none
        #[arg(value_name = "FILE")]
        files: Vec<String>,
    },
    /// Tell why rules fire, or do not, at a line of a program
    Why {
        /// The program
        #[arg(value_name = "FILE.bir")]
        file: String,
        /// Its line, from 1
        #[arg(value_name = "LINE")]
        line: usize,
        /// The set; all of the files where absent, or the shipped ones where there is no file
        #[arg(long)]
        set: Option<String>,
        /// Files of rules besides the shipped ones
        #[arg(long, value_name = "FILE")]
        patterns: Vec<String>,
    },
    /// Prove rules on the simulator, or refute them
    Verify {
        /// Files of rules; the shipped sets where there is none
        #[arg(value_name = "FILE")]
        files: Vec<String>,
        /// Only this rule (may be repeated)
        #[arg(long, value_name = "NAME")]
        rule: Vec<String>,
        /// Runs of 65,536 values where not all are tried
        #[arg(long, value_name = "N", default_value_t = 1)]
        batches: u64,
        /// Try all values of a single 32-bit input: minutes a rule
        #[arg(long)]
        all_f32: bool,
        /// Write the counterexample of the first false rule to a file
        #[arg(long, value_name = "FILE.bir")]
        counterexample: Option<String>,
    },
}

/// A message, or nothing where findings were printed.
type Done = Result<(), String>;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                report::message("bir-pattern", &message);
            }
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Done {
    match &args.command {
        Command::Check { files } => load(args, files).map(|_| ()),
        Command::Fmt { files, check } => format(args, files, *check),
        Command::List { files, constraints } => match constraints {
            true => say(&names()),
            false => say(&list(&load(args, files)?)),
        },
        Command::Doc { files } => {
            let library = load(args, files)?;
            let skip = if files.is_empty() { 0 } else { shipped() };
            say(&manual(&library.sets[skip..]))
        }
        Command::Why {
            file,
            line,
            set,
            patterns,
        } => why(args, file, *line, set.as_deref(), patterns),
        Command::Verify {
            files,
            rule,
            batches,
            all_f32,
            counterexample,
        } => {
            let library = load(args, files)?;
            let skip = if files.is_empty() { 0 } else { shipped() };
            let effort = Effort {
                batches: (*batches).max(1),
                all_f32: *all_f32,
                ..Effort::default()
            };
            prove(&library, skip, rule, effort, counterexample.as_deref())
        }
    }
}

/// Number of shipped sets.
fn shipped() -> usize {
    Library::shipped().sets.len()
}

fn say(text: &str) -> Done {
    Output::Stdout.write(text)
}

/// Prints findings about a file of rules.
fn print_findings(input: &Input, diags: &Diagnostics, style: ReportStyle) {
    let file = SourceFile {
        name: &input.name,
        text: &input.text,
    };
    report::print(&new_ir(), file, diags, style, report::ERROR_LIMIT);
}

/// The shipped sets and those of files; findings are printed.
fn load(args: &Args, files: &[String]) -> Result<Library, String> {
    let style = report::style(args.diagnostics, args.color);
    let mut library = Library::shipped();
    let mut wrong = false;
    for path in files {
        let input = Input::read(path)?;
        let diags = library.add(&input.name, &input.text);
        print_findings(&input, &diags, style);
        wrong |= diags.has_errors();
    }
    match wrong {
        true => Err(String::new()),
        false => Ok(library),
    }
}

fn format(args: &Args, files: &[String], check: bool) -> Done {
    let mut failed = false;
    for path in files {
        let input = Input::read(path)?;
        let mut diags = Diagnostics::new();
        let file = pattern_text::parse(&input.text, &mut diags);
        if diags.has_errors() {
            let style = report::style(args.diagnostics, args.color);
            print_findings(&input, &diags, style);
            failed = true;
            continue;
        }
        let text = pattern_text::format(&file, &input.text);
        if text == input.text && path != "-" {
            continue;
        }
        if check {
            report::note("bir-pattern", &format!("`{}` is not laid out", input.name));
            failed = true;
        } else {
            Output::new(path).write(&text)?;
        }
    }
    match failed {
        true => Err(String::new()),
        false => Ok(()),
    }
}

fn names() -> String {
    let mut out = String::from("Constraints\n");
    let params = |params: &[Param]| -> String {
        let list: Vec<String> = params
            .iter()
            .map(|param| match param {
                Param::Tile => "%x".to_owned(),
                Param::Attr => "$c".to_owned(),
                Param::Number => "N".to_owned(),
                Param::Word(words) => words.join("|"),
            })
            .collect();
        list.join(", ")
    };
    for one in CONSTRAINTS {
        let _ = writeln!(
            out,
            "  {}({})\n      {}",
            one.name,
            params(one.params),
            one.doc
        );
    }
    for (name, doc) in CLASSES {
        let _ = writeln!(out, "  {name}(%x)\n      {doc}");
    }
    let _ = writeln!(out, "  f32(%x), i8(%x), …\n      the dtype is that one");
    for flag in Flags::NAMES {
        let _ = writeln!(
            out,
            "  {flag}\n      the pipeline allows it: `apply_patterns{{allow={flag}}}`"
        );
    }
    out.push_str("\nRegistered rewrites\n");
    for one in NATIVES {
        let _ = writeln!(
            out,
            "  call {}({})\n      {}",
            one.name,
            params(one.params),
            one.doc
        );
    }
    out
}

fn list(library: &Library) -> String {
    let mut out = String::new();
    for set in &library.sets {
        let _ = writeln!(out, "{} ({})", set.name, set.driver.name());
        for rule in &set.rules {
            let law = rule
                .law
                .clone()
                .or(rule.doc.lines().next().map(str::to_owned));
            let _ = writeln!(out, "  {:<28} {}", rule.name, law.unwrap_or_default());
        }
    }
    out
}

fn manual(sets: &[RuleSet]) -> String {
    let mut out = String::new();
    for set in sets {
        let _ = writeln!(out, "# `{}`\n", set.name);
        if !set.doc.is_empty() {
            let _ = writeln!(out, "{}\n", set.doc);
        }
        let _ = writeln!(out, "Driver: `{}`.\n", set.driver.name());
        for option in &set.options {
            let _ = writeln!(
                out,
                "- option `{}` (default {}): {}",
                option.name, option.default, option.doc
            );
        }
        for rule in &set.rules {
            let _ = writeln!(out, "## `{}`\n", rule.name);
            for text in [rule.law.as_deref().unwrap_or(""), &rule.doc] {
                if !text.is_empty() {
                    let _ = writeln!(out, "{text}\n");
                }
            }
            let _ = writeln!(out, "```pat\n{}```\n", rule.text);
        }
    }
    out
}

fn why(args: &Args, path: &str, line: usize, only: Option<&str>, files: &[String]) -> Done {
    let library = load(args, files)?;
    let input = Input::read(path)?;
    let file = SourceFile {
        name: &input.name,
        text: &input.text,
    };
    let style = report::style(args.diagnostics, args.color);
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    parse(
        &input.text,
        0..input.text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    if diags.has_errors() {
        report::print(&ir, file, &diags, style, report::ERROR_LIMIT);
        return Err(String::new());
    }
    if let Some(name) = only
        && library.set(name).is_none()
    {
        return Err(format!("unknown set `{name}`"));
    }
    let mut told = 0;
    let skip = match only.is_some() || files.is_empty() {
        true => 0,
        false => shipped(),
    };
    for set in library.sets[skip..]
        .iter()
        .filter(|set| only.is_none_or(|name| set.name == name))
    {
        let settings = Settings {
            remarks: Remarks::All,
            allowed: Flags::ALL,
            ..Settings::default()
        };
        let mut work: Ir = ir.clone();
        let funcs: Vec<_> = work
            .walk()
            .ops()
            .filter(|&op| OpCode::of(&work, op) == Some(OpCode::Func))
            .collect();
        for func in funcs {
            let report = apply(&mut work, func, set, &settings, &mut |_| true);
            let here: Vec<_> = report
                .remarks
                .iter()
                .filter(|remark| {
                    let place = match &remark.place {
                        Place::None => None,
                        place => resolve(&work, file, place),
                    };
                    place.is_some_and(|place| line_col(file.text, place.start).0 == line)
                })
                .collect();
            told += here.len();
            let text = render(&work, file, here, style);
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
        }
    }
    match told {
        0 => Err(format!("`{}`: no rule starts at line {line}", input.name)),
        _ => Ok(()),
    }
}

/// Proves the rules of all sets but the first ones.
fn prove(
    library: &Library,
    skip: usize,
    only: &[String],
    effort: Effort,
    file: Option<&str>,
) -> Done {
    let rules: Vec<(&RuleSet, &Rule)> = library.sets[skip..]
        .iter()
        .flat_map(|set| set.rules.iter().map(move |rule| (set, rule)))
        .filter(|(_, rule)| only.is_empty() || only.contains(&rule.name))
        .collect();
    if let Some(name) = only
        .iter()
        .find(|name| !rules.iter().any(|(_, rule)| rule.name == **name))
    {
        return Err(format!("there is no rule `{name}`"));
    }
    let mut failed = 0;
    let mut written = false;
    for (set, rule) in &rules {
        let verdict = verify(library, set, rule, effort);
        say(&line(set, rule, &verdict))?;
        failed += usize::from(!verdict.holds());
        if let Some(refutation) = &verdict.refuted {
            match file.filter(|_| !written) {
                Some(path) => {
                    Output::new(path).write(&refutation.test)?;
                    say(&format!("  counterexample written to `{path}`\n"))?;
                    written = true;
                }
                None => {
                    let shown: String = refutation
                        .test
                        .lines()
                        .map(|line| format!("  | {line}\n"))
                        .collect();
                    say(&shown)?;
                }
            }
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} of {} rules do not hold", rules.len())),
    }
}

fn line(set: &RuleSet, rule: &Rule, verdict: &Verdict) -> String {
    let name = format!("{}.{}", set.name, rule.name);
    if let Some(refutation) = &verdict.refuted {
        return format!("{name}: false: {}\n", refutation.summary);
    }
    if verdict.fired == 0 {
        return format!(
            "{name}: not shown: it fired on none of the {} programs that could be built\n",
            verdict.built
        );
    }
    let mut text = format!(
        "{name}: holds on {} programs, {} values",
        verdict.fired, verdict.values
    );
    if !verdict.exhaustive.is_empty() {
        let list: Vec<&str> = verdict
            .exhaustive
            .iter()
            .map(|dtype| dtype.name())
            .collect();
        let _ = write!(text, "; all inputs of {}", list.join(", "));
    }
    if !verdict.idle.is_empty() {
        let _ = write!(text, "; {} of its forms fired nowhere", verdict.idle.len());
    }
    text.push('\n');
    text
}
