//! The driver: statements, scopes, regions, comments, and going on after errors.
//!
//! One loop over the text with a stack of open regions; nothing recurses, however deep loops nest.
//! A statement that fails is reported and skipped, the names it would have defined are marked so
//! that their uses are not reported too, and a region it opens is read all the same.
//!
//! * this file – the loop; `statements` – single statements; `regions` – what opens, labels and
//!   closes regions; `trivia` – comments, aliases and what else stands between statements.

mod regions;
mod statements;
mod trivia;

use std::ops::Range;

use typed_arena::Arena;

use super::build::{Forms, Memos};
use super::cache::Cache;
use super::compile::Aliases;
use super::diag::{Diagnostic, Diagnostics, Part, Place};
use super::recipe::Recipe;
use super::scan::Scanned;
use super::scopes::Scopes;
use crate::ir::{Comment, Ir};
use regions::Frame;

/// How to read.
#[derive(Clone, Copy, Debug)]
pub struct ParseOptions {
    /// Keep ops of unknown dialects instead of refusing them.
    pub allow_unregistered: bool,
    /// Stop after this many errors; 0 never stops.
    pub error_limit: usize,
    /// Parse every statement with the grammar alone, without the shape cache (for tests).
    pub plain: bool,
}

impl Default for ParseOptions {
    fn default() -> Self {
        ParseOptions {
            allow_unregistered: false,
            error_limit: 20,
            plain: false,
        }
    }
}

/// Reads `text[range]` into `ir`, behind what it holds. Spans are offsets into `text`.
///
/// Findings are added to `diags`; after an error `ir` holds what could be read.
pub fn parse(
    text: &str,
    range: Range<usize>,
    ir: &mut Ir,
    options: ParseOptions,
    diags: &mut Diagnostics,
) {
    if text.len() >= u32::MAX as usize || !ir.ctx.has_room_for(text.len()) {
        diags.push(
            Diagnostic::error(Place::None, "the file is larger than 4 GiB")
                .help("split it into several modules"),
        );
        return;
    }
    let Some(chunk) = text.get(..range.end) else {
        return;
    };
    let arena = Arena::new();
    let root = ir.root_block();
    let mut parser = Parser {
        text: chunk,
        // Some editors begin a file with a mark of its encoding.
        pos: match chunk.get(range.start..) {
            Some(rest) if rest.starts_with('\u{feff}') => range.start + '\u{feff}'.len_utf8(),
            _ => range.start,
        },
        ir,
        options,
        diags,
        scopes: Scopes::default(),
        frames: vec![Frame::root(root)],
        scanned: Scanned::default(),
        cache: Cache::default(),
        arena: &arena,
        aliases: Vec::new(),
        forms: Forms::default(),
        memos: Memos::default(),
        comments: Vec::new(),
        after_statement: false,
        stopped: false,
    };
    parser.run();
}

struct Parser<'a, 't> {
    text: &'t str,
    pos: usize,
    ir: &'a mut Ir,
    options: ParseOptions,
    diags: &'a mut Diagnostics,
    scopes: Scopes,
    frames: Vec<Frame>,
    scanned: Scanned,
    cache: Cache<'t>,
    arena: &'t Arena<Recipe>,
    aliases: Aliases,
    forms: Forms,
    memos: Memos,
    /// Comments read since the last statement.
    comments: Vec<Comment>,
    /// Whether a statement of this region stands above, so that a blank line means something.
    after_statement: bool,
    stopped: bool,
}

impl<'t> Parser<'_, 't> {
    fn run(&mut self) {
        self.scopes.open();
        self.scopes.region = Some(self.ir.root());
        while !self.stopped {
            self.read_trivia();
            let rest = self.text.as_bytes().get(self.pos..).unwrap_or(&[]);
            match rest {
                [] => break,
                [b'}', ..] => self.close(),
                [b'{', b'-', b'#', ..] => self.skip_resources(),
                [b'#' | b'!', ..] => self.alias(),
                _ => self.statement(),
            }
        }
        if self.stopped {
            return;
        }
        let open = self
            .frames
            .iter()
            .skip(1)
            .rev()
            .find(|frame| frame.op.is_some());
        if self.frames.len() > 1 {
            let place = match open.and_then(|frame| frame.op) {
                Some(op) => Place::Op(op, Part::Whole),
                None => Place::Span(self.pos..self.pos),
            };
            self.report(
                Diagnostic::error(place, "the file ends inside a region")
                    .label("opened here")
                    .help("add the missing `}`"),
            );
        }
        let block = self.ir.root_block();
        self.end_comments(block);
        self.unresolved();
    }

    /// Reports what was used but never defined in the scope about to close.
    fn unresolved(&mut self) {
        for pending in self.scopes.unresolved() {
            if self.stopped {
                break;
            }
            let finding = self.scopes.unknown(self.ir, pending.name, pending.place);
            self.report(finding);
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
        if self.options.error_limit > 0 && self.diags.errors() >= self.options.error_limit {
            self.stopped = true;
        }
    }

    fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }
}
