//! `--verify-roundtrip`.

use bir_dialect::bir::program::new_ir;
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostic, Diagnostics, Place};
use bir_dialect::text::render::{ReportStyle, SourceFile};
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};

use crate::report;

/// Whether both forms read back to what was printed; reports where they do not.
pub(super) fn holds(options: ParseOptions, ir: &Ir, style: ReportStyle) -> bool {
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
        parse(text, 0..text.len(), &mut again, options, &mut diags);
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
            report::print(&again, file, &diags, style, options.error_limit);
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
