//! Which passes are to run, and what lists them.

use std::fmt::Write as _;

use bir_dialect::bir::program::new_ir;
use bir_dialect::text::diag::{Diagnostics, did_you_mean};
use bir_dialect::text::render::SourceFile;
use bir_passes::Registry;
use bir_passes::pipeline::{Pipeline, parse, pass_text};
use bir_passes::planes::Plane;

use super::Failure;
use super::args::Args;
use super::pass_flags::PassFlag;
use crate::report;

/// The passes this run knows.
pub(super) fn registry(args: &Args) -> Registry {
    match args.pipeline.enable_test_passes {
        true => Registry::with_test_passes(),
        false => Registry::new(),
    }
}

/// The named pipeline, if one is asked for.
pub(super) fn plane(args: &Args) -> Option<Plane> {
    args.pipeline.opt_level.and_then(Plane::new)
}

/// The passes to run.
pub(super) fn build(args: &Args, flags: &[PassFlag]) -> Result<Pipeline, Failure> {
    check_names(args)?;
    let registry = registry(args);
    let usage = |text: &str| {
        report::message("bir-opt", text);
        Failure::Usage
    };
    if let Some(plane) = plane(args) {
        if !flags.is_empty() {
            let flag = flags[0].name.replace('_', "-");
            return Err(usage(&format!(
                "`{}` is a whole pipeline; `--{flag}` cannot be given beside it",
                plane.name()
            )));
        }
        let pipeline = Pipeline::of_plane(&registry, &plane);
        if !pipeline.missing.is_empty() && !args.pipeline.print_pipeline {
            report::note(
                "bir-opt",
                &format!(
                    "{} of the {} passes of {} are not in this version; --print-pipeline shows which",
                    pipeline.missing.len(),
                    pipeline.missing.len() + pipeline.steps.len(),
                    plane.name()
                ),
            );
        }
        return Ok(pipeline);
    }
    if let Some(text) = &args.pipeline.pass_pipeline {
        if !flags.is_empty() {
            let flag = flags[0].name.replace('_', "-");
            return Err(usage(&format!(
                "passes are given by `--pass-pipeline` or by flags such as `--{flag}`, not by both"
            )));
        }
        return read(args, &registry, "--pass-pipeline", text);
    }
    let mut pipeline = Pipeline::default();
    for flag in flags {
        let name = format!("--{}", flag.name.replace('_', "-"));
        let text = match flag.options.is_empty() {
            true => flag.name.to_owned(),
            false => format!("{}{{{}}}", flag.name, flag.options),
        };
        let one = read(args, &registry, &name, &text)?;
        pipeline.steps.extend(one.steps);
    }
    Ok(pipeline)
}

fn read(args: &Args, registry: &Registry, name: &str, text: &str) -> Result<Pipeline, Failure> {
    let mut diags = Diagnostics::new();
    let pipeline = parse(registry, text, &mut diags);
    let style = report::style(args.reports.diagnostics, args.reports.color);
    report::print(&new_ir(), SourceFile { name, text }, &diags, style, 0);
    pipeline.ok_or(Failure::Usage)
}

/// Whether every pass a flag names exists.
fn check_names(args: &Args) -> Result<(), Failure> {
    let registry = registry(args);
    let listed = |names: &Option<Vec<String>>| names.clone().unwrap_or_default();
    let uses = [
        ("--skip-pass", args.control.skip_pass.clone()),
        (
            "--stop-after",
            args.control.stop_after.iter().cloned().collect(),
        ),
        ("--print-ir-before", listed(&args.watch.print_ir_before)),
        ("--print-ir-after", listed(&args.watch.print_ir_after)),
    ];
    for (flag, names) in uses {
        for name in names.iter().filter(|name| !name.is_empty()) {
            let later = bir_passes::planes::order_of(name).is_some();
            if registry.make(name).is_none() && !later {
                let help = did_you_mean(name, registry.names())
                    .map_or(String::new(), |help| format!("; {help}"));
                report::message("bir-opt", &format!("{flag}: unknown pass `{name}`{help}"));
                return Err(Failure::Usage);
            }
        }
    }
    Ok(())
}

/// `--print-pipeline`: one line per pass with its order number.
pub(super) fn table(args: &Args, pipeline: &Pipeline) -> String {
    let mut out = String::new();
    let mut steps = pipeline.steps.iter();
    match plane(args) {
        Some(plane) => {
            let _ = writeln!(out, "{}", plane.name());
            for entry in plane.entries() {
                let missing = pipeline.missing.contains(&(entry.order, entry.pass));
                let text = match missing {
                    true => format!("{} (not in this version)", entry.pass),
                    false => steps
                        .next()
                        .map_or(String::new(), |step| pass_text(step.pass.as_ref())),
                };
                let _ = writeln!(out, "{:>6}  {text}", entry.order);
            }
        }
        None => {
            for (number, step) in steps.enumerate() {
                let _ = writeln!(out, "{number:>6}  {}", pass_text(step.pass.as_ref()));
            }
        }
    }
    out
}

/// `--list-passes`: the manual of every pass.
pub(super) fn list(args: &Args) -> String {
    let registry = registry(args);
    let mut out = String::new();
    for name in registry.names() {
        let Some(pass) = registry.make(name) else {
            continue;
        };
        let _ = writeln!(out, "{name} ({})", pass.anchor().name());
        for line in pass.doc().trim_end().lines() {
            let _ = writeln!(out, "    {line}");
        }
        for (number, def) in pass.option_defs().iter().enumerate() {
            let value = bir_passes::pipeline::value_text(&pass.option(number));
            let _ = writeln!(
                out,
                "    {{{}={}}}  {}",
                def.printed(),
                value,
                def.doc.trim()
            );
        }
        for statistic in pass.statistics() {
            let _ = writeln!(out, "    counts {}: {}", statistic.name, statistic.doc);
        }
        out.push('\n');
    }
    out
}
