//! The rules of a run, as the flags ask.

use bir_dialect::bir::program::new_ir;
use bir_dialect::text::render::SourceFile;
use bir_passes::Rules;
use bir_patterns::{Library, Remarks};

use super::Failure;
use super::args::{Args, RemarkArg};
use crate::files::Input;
use crate::report;

/// Reads the files of `--patterns`; what is wrong with them is printed.
pub(super) fn load(args: &Args) -> Result<Rules, Failure> {
    let given = &args.watch.remarks;
    let has = |which: RemarkArg| given.contains(&which);
    let remarks = match (has(RemarkArg::Passed), has(RemarkArg::Missed)) {
        (false, false) => Remarks::Off,
        (true, false) => Remarks::Passed,
        (false, true) => Remarks::Missed,
        (true, true) => Remarks::All,
    };
    if args.pipeline.patterns.is_empty() {
        return Ok(Rules::shipped(remarks));
    }
    let style = report::style(args.reports.diagnostics, args.reports.color);
    let mut library = Library::shipped();
    let mut wrong = false;
    for path in &args.pipeline.patterns {
        let input = Input::read(path).map_err(Failure::message)?;
        let diags = library.add(&input.name, &input.text);
        let file = SourceFile {
            name: &input.name,
            text: &input.text,
        };
        report::print(&new_ir(), file, &diags, style, args.reports.error_limit);
        wrong |= diags.has_errors();
    }
    match wrong {
        true => Err(Failure::Reported),
        false => Ok(Rules::new(library, remarks)),
    }
}
