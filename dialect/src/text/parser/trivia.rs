//! What stands between statements: comments, blank lines, aliases, resources.

use super::Parser;
use crate::ir::{Block, Comment};
use crate::text::cache::Cache;
use crate::text::diag::{Diagnostic, Place};
use crate::text::scan::{line_end, string_end};

impl Parser<'_, '_> {
    pub(super) fn read_trivia(&mut self) {
        let src = self.bytes();
        let mut lines = 0;
        loop {
            match src.get(self.pos) {
                Some(b'\n') => {
                    lines += 1;
                    self.pos += 1;
                }
                Some(b' ' | b'\t' | b'\r') => self.pos += 1,
                Some(b'/') if src.get(self.pos + 1) == Some(&b'/') => {
                    self.blank(&mut lines);
                    let end = line_end(src, self.pos);
                    self.comments
                        .push(Comment::Line(self.text[self.pos..end].trim_end().into()));
                    self.pos = end;
                    lines = 0;
                    if src.get(self.pos) == Some(&b'\n') {
                        self.pos += 1;
                        lines = 1;
                    }
                }
                _ => break,
            }
        }
        if src.get(self.pos).is_some_and(|&c| c != b'}') {
            self.blank(&mut lines);
        }
    }

    /// Keeps one blank line between statements.
    fn blank(&mut self, lines: &mut usize) {
        if *lines > 1
            && (self.after_statement || !self.comments.is_empty())
            && self.comments.last() != Some(&Comment::Blank)
        {
            self.comments.push(Comment::Blank);
        }
        *lines = 0;
    }

    /// The comment on the rest of the line, if one is there.
    pub(super) fn beside(&mut self) -> Option<Box<str>> {
        let src = self.bytes();
        let mut at = self.pos;
        while matches!(src.get(at), Some(b' ' | b'\t' | b'\r')) {
            at += 1;
        }
        let comment = if src.get(at) == Some(&b'/') && src.get(at + 1) == Some(&b'/') {
            let end = line_end(src, at);
            let text = self.text[at..end].trim_end();
            at = end;
            Some(text.into())
        } else {
            None
        };
        self.pos = at;
        comment
    }

    pub(super) fn skip_resources(&mut self) {
        match self.text[self.pos..].find("#-}") {
            Some(len) => self.pos += len + 3,
            None => {
                let place = Place::Span(self.pos..self.pos + 3);
                self.report(Diagnostic::error(place, "`{-#` is not closed by `#-}`"));
                self.pos = self.text.len();
            }
        }
    }

    /// `#name = …` and `!name = …`
    pub(super) fn alias(&mut self) {
        let start = self.pos;
        let end = statement_line_end(self.bytes(), start);
        let line = self.text[start..end].trim_end();
        self.pos = end;
        match line.split_once('=') {
            Some((name, value)) => {
                let name = name.trim_end();
                if self.aliases.iter().any(|(known, _)| **known == *name) {
                    let place = Place::Span(start..start + name.len());
                    let message = format!("alias `{name}` is already defined");
                    self.report(Diagnostic::error(place, message));
                    return;
                }
                self.aliases.push((name.into(), value.trim_start().into()));
                // Recipes made so far took the name for something else.
                self.cache = Cache::default();
            }
            None => self.report(Diagnostic::error(
                Place::Span(start..start + line.len()),
                "expected a statement or an alias `#name = …`",
            )),
        }
    }

    pub(super) fn end_comments(&mut self, block: Block) {
        while self.comments.last() == Some(&Comment::Blank) {
            self.comments.pop();
        }
        if !self.comments.is_empty() {
            let comments = std::mem::take(&mut self.comments);
            self.ir.set_end_comments(block, comments);
        }
    }
}

/// The end of the line, or of what stands before its comment.
fn statement_line_end(src: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        match src.get(at) {
            None | Some(b'\n') => return at,
            Some(b'/') if src.get(at + 1) == Some(&b'/') => return at,
            Some(b'"') => match string_end(src, at) {
                Some(end) => at = end,
                None => return line_end(src, at),
            },
            Some(_) => at += 1,
        }
    }
}
