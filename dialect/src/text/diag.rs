//! Diagnostics: errors as values with spans, collected, rendered in one place.

use std::ops::Range;

use crate::ir::{Op, Str};

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Context only.
    Remark,
    /// Suspicious, but the run goes on and succeeds.
    Warning,
    /// The run fails.
    Error,
}

impl Severity {
    /// `error`, `warning`, `remark`
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Remark => "remark",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The part of an operation's text a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The whole statement.
    Whole,
    /// The n-th operand as stored (all roles, `indices` included).
    Operand(usize),
    /// An attribute.
    Attr(Str),
}

/// Where a finding is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere in a file.
    None,
    /// Bytes of the file.
    Span(Range<usize>),
    /// A part of an operation; found in the text when the report is made.
    Op(Op, Part),
}

/// One finding. Messages are lower case, quote IR names, say what was expected and found, and
/// have no full stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where, and what to write beside the caret.
    pub place: Place,
    /// Text beside the caret.
    pub label: Option<String>,
    /// Further places, each with its text.
    pub related: Vec<(Place, String)>,
    /// Context.
    pub notes: Vec<String>,
    /// The fix, or the nearest name.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(place: Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            place,
            label: None,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning at a place.
    pub fn warning(place: Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(place, message)
        }
    }

    /// A remark at a place.
    pub fn remark(place: Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Remark,
            ..Diagnostic::error(place, message)
        }
    }

    /// Adds the text beside the caret.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = Some(text.into());
        self
    }

    /// Adds a further place.
    pub fn related(mut self, place: Place, text: impl Into<String>) -> Diagnostic {
        self.related.push((place, text.into()));
        self
    }

    /// Adds a line of context.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds the fix.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Adds the fix if there is one.
    pub fn maybe_help(mut self, text: Option<String>) -> Diagnostic {
        self.help = text.or(self.help);
        self
    }
}

/// All findings of a run, in order.
#[derive(Clone, Default, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.list.push(diagnostic);
    }

    /// Adds all findings of `other`.
    pub fn append(&mut self, other: Diagnostics) {
        self.errors += other.errors;
        self.list.extend(other.list);
    }

    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The findings in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether there is no finding.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The candidate nearest to `name`, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = edit_distance(name, candidate, limit)?;
            Some((distance, candidate))
        })
        .min_by_key(|&(distance, candidate)| (distance, candidate.len(), candidate))
        .map(|(_, candidate)| candidate)
}

/// "did you mean …" for the nearest candidate.
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Edits (insert, delete, replace, swap neighbours) between two names, if at most `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let fold = |c: char| {
        if c == '-' {
            '_'
        } else {
            c.to_ascii_lowercase()
        }
    };
    // Names longer than any of ours are no typos, and the table below is quadratic.
    if a.len() > 128 || a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let a: Vec<char> = a.chars().map(fold).collect();
    let b: Vec<char> = b.chars().map(fold).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j - 1] + same).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|&distance| distance <= limit)
}

/// `1 operand`, `3 operands`
pub(crate) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_takes_swaps_and_ties_in_a_fixed_order() {
        assert_eq!(
            nearest("activaton", ["activation", "save"]),
            Some("activation")
        );
        assert_eq!(nearest("laod", ["load", "save"]), Some("load"));
        assert_eq!(
            nearest("dead-code-elim", ["dead_code_elim"]),
            Some("dead_code_elim")
        );
        assert_eq!(nearest("zzzzzz", ["load", "save"]), None);
        assert_eq!(nearest("ab", ["ac", "aa"]), Some("aa"));
    }
}
