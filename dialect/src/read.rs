//! Text to a verified program in one call, for whoever embeds the dialect.

use std::fmt;

use crate::bir::program::new_ir;
use crate::bir::verify::{Level, VerifyOptions, verify};
use crate::ir::Ir;
use crate::text::diag::Diagnostics;
use crate::text::render::{ReportStyle, SourceFile, render};
use crate::text::{ParseOptions, parse};

/// Why a text is no program: all findings, shown as reports with the lines they are about.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused {
    messages: Vec<String>,
    reports: String,
}

impl Refused {
    /// What each finding says, in text order.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reports)
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Refused {}

/// Reads a text, in either form, and verifies it.
///
/// # Errors
///
/// All that is wrong with the text; with the program only where the text could be read.
pub fn read(text: &str, level: Level) -> Result<Ir, Refused> {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    let options = ParseOptions::default();
    parse(text, 0..text.len(), &mut ir, options, &mut diags);
    if !diags.has_errors() {
        verify(&ir, options_of(level), &mut diags);
    }
    match refused(&ir, text, &diags) {
        Some(refused) => Err(refused),
        None => Ok(ir),
    }
}

/// Verifies a program that has no text.
///
/// # Errors
///
/// All that is wrong with it.
pub fn check(ir: &Ir, level: Level) -> Result<(), Refused> {
    let mut diags = Diagnostics::new();
    verify(ir, options_of(level), &mut diags);
    refused(ir, "", &diags).map_or(Ok(()), Err)
}

fn options_of(level: Level) -> VerifyOptions {
    VerifyOptions {
        level,
        ..VerifyOptions::default()
    }
}

fn refused(ir: &Ir, text: &str, diags: &Diagnostics) -> Option<Refused> {
    if !diags.has_errors() {
        return None;
    }
    let name = "program";
    Some(Refused {
        messages: diags.iter().map(|one| one.message.clone()).collect(),
        reports: render(
            ir,
            SourceFile { name, text },
            diags.iter(),
            ReportStyle::Plain,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "bir.module @m {\nbir.func @f {\n%t = alloc sbuf<4x8xf32>\n";

    #[test]
    fn a_program_is_read_or_all_its_mistakes_are_told() {
        let good = format!("{HEAD}memset %t <- 0.0\n}}\n}}\n");
        let ir = read(&good, Level::Full).unwrap();
        assert_eq!(check(&ir, Level::Full), Ok(()));
        let bad = format!("{HEAD}memset %u <- 0.0\nnotify 1 2\n}}\n}}\n");
        let refused = read(&bad, Level::Full).map(|_| ()).unwrap_err();
        assert_eq!(refused.messages().len(), 2, "{refused}");
        assert!(
            refused.to_string().contains("memset %u <- 0.0"),
            "{refused}"
        );
    }

    #[test]
    fn a_program_without_text_is_checked_at_the_level_asked() {
        let undefined = format!("{HEAD}%u = alloc sbuf<4x8xf32>\ntensor_copy %u <- %t\n}}\n}}\n");
        let ir = read(&undefined, Level::Default).unwrap();
        let refused = check(&ir, Level::Full).unwrap_err();
        assert!(
            refused.messages()[0].contains("nothing has written"),
            "{refused}"
        );
    }
}
