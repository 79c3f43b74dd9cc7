//! What holds for any text: the one check of the fuzz target and of its share in the test suite.

use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::render::ReportStyle;
use bir_patterns::Library;
use bir_patterns::library::report;
use bir_patterns::text::{format, parse};

/// Reads, checks and reports a text; formats it if it is well-formed, and then once more.
pub(crate) fn check(text: &str) {
    let mut library = Library::shipped();
    let diags = library.add("fuzz.pat", text);
    let shown = report("fuzz.pat", text, &diags, ReportStyle::Json);
    assert_eq!(shown.is_empty(), diags.is_empty());
    let mut diags = Diagnostics::new();
    let file = parse(text, &mut diags);
    if diags.has_errors() {
        return;
    }
    let once = format(&file, text);
    let mut diags = Diagnostics::new();
    let again = parse(&once, &mut diags);
    assert!(!diags.has_errors(), "{text}\n{once}");
    assert_eq!(format(&again, &once), once, "{text}");
}
