//! Pipelines: a list of passes, and its text.
//!
//! The text nests anchors, `program(module(func(…)))`. A pass has one anchor, so the nesting says
//! nothing the passes do not: shorter strings are completed when read, and [`Pipeline::dump`]
//! groups neighbours of one anchor. Passes run one after the other, each over everything it is
//! anchored to.
//!
//! Invariant, held by a property test: what `dump` prints reads back to equal passes with equal
//! options, and dumps the same.

mod grammar;
mod parse;

use crate::pass::{Anchor, Pass};
use crate::planes::Plane;
use crate::registry::Registry;

pub use parse::parse;

/// One pass of a pipeline.
pub struct Step {
    /// The pass with its options.
    pub pass: Box<dyn Pass>,
    /// Its number in the named pipelines, if it comes from one.
    pub order: Option<&'static str>,
}

/// Passes in the order they run.
#[derive(Default)]
pub struct Pipeline {
    /// The passes.
    pub steps: Vec<Step>,
    /// Passes of a named pipeline this version lacks: order number and name.
    pub missing: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.dump())
    }
}

impl Pipeline {
    /// The passes of a named pipeline that are there.
    pub fn of_plane(registry: &Registry, plane: &Plane) -> Pipeline {
        let mut pipeline = Pipeline::default();
        for entry in plane.entries() {
            let Some(mut pass) = registry.make(entry.pass) else {
                pipeline.missing.push((entry.order, entry.pass));
                continue;
            };
            for &(name, value) in entry.options {
                let number = pass.option_defs().iter().position(|def| def.name == name);
                if let Some(number) = number {
                    // The table is checked by a test.
                    let _ = pass.set_option(number, value);
                }
            }
            pipeline.steps.push(Step {
                pass,
                order: Some(entry.order),
            });
        }
        pipeline
    }

    /// Adds a pass at the end.
    pub fn push(&mut self, pass: Box<dyn Pass>) {
        self.steps.push(Step { pass, order: None });
    }

    /// The whole string, every option set.
    pub fn dump(&self) -> String {
        self.dump_from(0)
    }

    /// The string of the passes from number `first` (from 0) on.
    pub fn dump_from(&self, first: usize) -> String {
        let mut out = String::from("program(");
        let mut depth = Anchor::Program;
        let mut fresh = true;
        for step in self.steps.iter().skip(first) {
            let anchor = step.pass.anchor();
            for _ in 0..(depth as usize).saturating_sub(anchor as usize) {
                out.push(')');
            }
            if !fresh {
                out.push(',');
            }
            for wrap in [Anchor::Module, Anchor::Func] {
                if wrap > depth && wrap <= anchor {
                    out.push_str(wrap.name());
                    out.push('(');
                }
            }
            depth = anchor;
            fresh = false;
            out.push_str(&pass_text(step.pass.as_ref()));
        }
        for _ in 0..=depth as usize {
            out.push(')');
        }
        out
    }
}

/// A pass with every option, as pipelines write it.
pub fn pass_text(pass: &dyn Pass) -> String {
    let mut out = pass.name().to_owned();
    let defs = pass.option_defs();
    if defs.is_empty() {
        return out;
    }
    out.push('{');
    for (number, def) in defs.iter().enumerate() {
        if number > 0 {
            out.push(' ');
        }
        out.push_str(&def.printed());
        out.push('=');
        out.push_str(&value_text(&pass.option(number)));
    }
    out.push('}');
    out
}

/// A value as it stands behind `=`: bare where it can be, else in quotes.
pub fn value_text(value: &str) -> String {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !",{}()\"'=\\".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
