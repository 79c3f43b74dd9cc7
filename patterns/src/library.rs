//! The rules a run knows: the shipped sets, and those of files the user names.

use bir_dialect::ir::Ir;
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::render::{ReportStyle, SourceFile, render};

use crate::check::check;
use crate::rule::RuleSet;
use crate::text::parse;

/// The sets that come with the tools: file name and text.
pub static SHIPPED: &[(&str, &str)] = &[("identities.pat", include_str!("../lib/identities.pat"))];

/// A file of rules.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name as reports show it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Checked sets and the files they come from.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The files.
    pub files: Vec<Source>,
    /// The sets, in order.
    pub sets: Vec<RuleSet>,
}

impl Library {
    /// Without any set.
    pub fn empty() -> Library {
        Library::default()
    }

    /// The shipped sets. Findings about them, of which a test says there are none, are dropped.
    pub fn shipped() -> Library {
        let mut library = Library::empty();
        for (name, text) in SHIPPED {
            library.add(name, text);
        }
        library
    }

    /// Reads and checks a file; its sets are known from here on, those without errors.
    ///
    /// Places in the findings are bytes of the file.
    pub fn add(&mut self, name: &str, text: &str) -> Diagnostics {
        let mut diags = Diagnostics::new();
        let file = parse(text, &mut diags);
        let sets = check(&file, self.files.len(), &self.sets, &mut diags);
        self.files.push(Source {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        if !diags.has_errors() {
            self.sets.extend(sets);
        }
        diags
    }

    /// The set of a name.
    pub fn set(&self, name: &str) -> Option<&RuleSet> {
        self.sets.iter().find(|set| set.name == name)
    }
}

/// Findings about a file of rules as a report.
pub fn report(name: &str, text: &str, diags: &Diagnostics, style: ReportStyle) -> String {
    let ir: Ir = bir_dialect::bir::program::new_ir();
    let mut list: Vec<_> = diags.iter().collect();
    list.sort_by_key(|one| match &one.place {
        bir_dialect::text::diag::Place::Span(span) => span.start,
        _ => usize::MAX,
    });
    render(&ir, SourceFile { name, text }, list, style)
}
