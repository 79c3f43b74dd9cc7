//! Printing the module around passes: whole, as a difference, or into a folder.

use std::fs;
use std::path::PathBuf;

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place};
use bir_dialect::text::{PrintOptions, print};
use similar::{Algorithm, TextDiff};

use super::{Flow, Instrument, Log, PassEvent, PassReport, Verdict};
use crate::options::same_name;
use crate::pass::{Anchor, Changed};

/// Some passes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub enum PassSet {
    /// None.
    #[default]
    None,
    /// Every one.
    All,
    /// Those of these names.
    Names(Vec<String>),
}

impl PassSet {
    /// Whether a pass is one of them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            PassSet::None => false,
            PassSet::All => true,
            PassSet::Names(names) => names.iter().any(|known| same_name(known, name)),
        }
    }
}

/// What [`PrintIr`] prints.
#[derive(Clone, Debug, Default)]
pub struct PrintIrOptions {
    /// Before these.
    pub before: PassSet,
    /// After these.
    pub after: PassSet,
    /// After any pass that changed something.
    pub after_change: bool,
    /// The difference each pass made.
    pub diff: bool,
    /// How the module is printed.
    pub print: PrintOptions,
}

/// Prints the module before and after passes.
pub struct PrintIr {
    options: PrintIrOptions,
    before: String,
}

/// Lines on which differences are computed; beyond, everything between the first and the last
/// differing line counts as replaced.
const MAX_DIFF_LINES: usize = 20_000;

impl PrintIr {
    /// Prints what `options` say.
    pub fn new(options: PrintIrOptions) -> PrintIr {
        PrintIr {
            options,
            before: String::new(),
        }
    }
}

impl Instrument for PrintIr {
    fn before_pass(&mut self, event: &PassEvent<'_>, ir: &Ir, log: &mut dyn Log) -> Verdict {
        let name = event.pass.name();
        let show = self.options.before.has(name);
        if show || self.options.diff {
            self.before = print(ir, self.options.print);
        }
        if show {
            log.write(&format!("// *** before `{name}` ***\n{}\n", self.before));
        }
        Verdict::Run
    }

    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        ir: &Ir,
        report: &PassReport,
        log: &mut dyn Log,
        _diags: &mut Diagnostics,
    ) -> Flow {
        let name = event.pass.name();
        let changed = report.changed == Changed::Yes;
        let show = self.options.after.has(name) || self.options.after_change && changed;
        let diff = self.options.diff && changed;
        if show || diff {
            let after = print(ir, self.options.print);
            if show {
                log.write(&format!("// *** after `{name}` ***\n{after}\n"));
            }
            if diff {
                log.write(&difference(name, &self.before, &after));
            }
        }
        Flow::Continue
    }
}

/// A unified difference.
fn difference(name: &str, before: &str, after: &str) -> String {
    let (old, new) = (format!("before {name}"), format!("after {name}"));
    let lines = before.lines().count() + after.lines().count();
    if lines <= MAX_DIFF_LINES {
        return TextDiff::configure()
            .algorithm(Algorithm::Patience)
            .diff_lines(before, after)
            .unified_diff()
            .context_radius(3)
            .header(&old, &new)
            .to_string();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[same..], &b[same..]);
    let tail = rest_a
        .iter()
        .rev()
        .zip(rest_b.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (gone, come) = (
        &rest_a[..rest_a.len() - tail],
        &rest_b[..rest_b.len() - tail],
    );
    let mut out = format!(
        "--- {old}\n+++ {new}\n@@ -{},{} +{},{} @@\n",
        same + 1,
        gone.len(),
        same + 1,
        come.len()
    );
    for (sign, lines) in [('-', gone), ('+', come)] {
        for line in lines {
            out.push(sign);
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Writes the module after each pass into a folder: `DIR/program/module/func/0_unroll.bir`.
pub struct PrintIrTree {
    /// The folder, made if it is not there.
    pub folder: PathBuf,
    /// How the module is printed.
    pub print: PrintOptions,
    /// A folder of its own for each of several files, `file1/`.
    part: Option<String>,
}

impl PrintIrTree {
    /// Writes into `folder`.
    pub fn new(folder: PathBuf, print: PrintOptions) -> PrintIrTree {
        PrintIrTree {
            folder,
            print,
            part: None,
        }
    }
}

impl Instrument for PrintIrTree {
    fn begin_file(&mut self, number: Option<usize>) {
        self.part = number.map(|number| format!("file{number}"));
    }

    fn after_pass(
        &mut self,
        event: &PassEvent<'_>,
        ir: &Ir,
        _report: &PassReport,
        _log: &mut dyn Log,
        diags: &mut Diagnostics,
    ) -> Flow {
        let mut folder = self.folder.clone();
        folder.extend(&self.part);
        let anchor = event.pass.anchor();
        folder.extend(
            Anchor::ALL
                .iter()
                .filter(|&&a| a <= anchor)
                .map(|a| a.name()),
        );
        let path = folder.join(format!("{}_{}.bir", event.index, event.pass.name()));
        let written = fs::create_dir_all(&folder)
            .and_then(|()| super::reproducer::write_whole(&path, &print(ir, self.print)));
        if let Err(error) = written {
            let message = format!("cannot write `{}`: {error}", path.display());
            diags.push(Diagnostic::error(Place::None, message));
        }
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_differences_are_one_replaced_run_of_lines() {
        let before: String = (0..15_000).map(|i| format!("a{i}\n")).collect();
        let after = before.replace("a7\n", "b\nc\n");
        let text = difference("p", &before, &after);
        assert_eq!(
            text,
            "--- before p\n+++ after p\n@@ -8,1 +8,2 @@\n-a7\n+b\n+c\n"
        );
    }
}
