//! The driver: statements, scopes, regions, comments, and going on after errors.
//!
//! One loop over the text with a stack of open regions; nothing recurses, however deep loops nest.
//! A statement that fails is reported and skipped, the names it would have defined are marked so
//! that their uses are not reported too, and a region it opens is read all the same.

use std::ops::Range;
use std::sync::LazyLock;

use hashbrown::HashSet;
use typed_arena::Arena;

use super::build::{AccessMemos, Builder, Failure, Source};
use super::cache::Cache;
use super::compile::{Aliases, Compiler, Tail};
use super::diag::{Diagnostic, Diagnostics, Part, Place};
use super::recipe::{LabelRecipe, Opens, Recipe};
use super::scan::{End, HoleKind, Scanned, line_end, skip_blank, string_end};
use super::scopes::{Label, POISON, Scopes, label_hint, unknown_block};
use crate::bir::ops::{AttrType, COMMON_ATTRS, OPS, OpCode};
use crate::ir::{Block, Comment, Cursor, Ir, Op, Str, Type, Value};

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
        frames: vec![Frame {
            kind: FrameKind::Root,
            op: None,
            block: Some(root),
            regions_done: 0,
        }],
        scanned: Scanned::default(),
        cache: Cache::default(),
        arena: &arena,
        aliases: Vec::new(),
        memo_numbers: 0,
        memos: AccessMemos::default(),
        comments: Vec::new(),
        after_statement: false,
        stopped: false,
    };
    parser.run();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// The file.
    Root,
    /// `module { … }` around the file; what is in it belongs to the file.
    Wrapper { generic: bool },
    /// A region of the custom form.
    Custom,
    /// A region of the generic form.
    Generic,
    /// A region whose header was wrong.
    Broken { generic: bool },
}

struct Frame {
    kind: FrameKind,
    op: Option<Op>,
    block: Option<Block>,
    regions_done: usize,
}

/// Strings the dialect gives meaning to; all others are free text.
static MEANINGFUL: LazyLock<HashSet<&'static [u8]>> = LazyLock::new(|| {
    OPS.iter()
        .flat_map(|op| op.attrs)
        .chain(COMMON_ATTRS)
        .filter_map(|attr| match attr.ty {
            AttrType::Enum(words) => Some(words.words),
            _ => None,
        })
        .flatten()
        .map(|word| word.as_bytes())
        .collect()
});

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
    memo_numbers: u32,
    memos: AccessMemos,
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
            let finding = self.scopes.unknown(self.ir, &pending.text, pending.place);
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

    fn read_trivia(&mut self) {
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
    fn beside(&mut self) -> Option<Box<str>> {
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

    fn skip_resources(&mut self) {
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
    fn alias(&mut self) {
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

    // ---- regions ----

    fn current(&self) -> &Frame {
        // The root frame is never popped.
        &self.frames[self.frames.len() - 1]
    }

    fn block(&self) -> Block {
        self.frames
            .iter()
            .rev()
            .find_map(|frame| frame.block)
            .unwrap_or_else(|| self.ir.root_block())
    }

    fn push(&mut self, kind: FrameKind, op: Option<Op>, block: Option<Block>) {
        self.after_statement = false;
        self.frames.push(Frame {
            kind,
            op,
            block,
            regions_done: 0,
        });
        if !matches!(kind, FrameKind::Wrapper { .. }) {
            self.scopes.open();
        }
        if let Some(block) = block {
            self.scopes.region = Some(self.ir.block_region(block));
        }
    }

    fn end_comments(&mut self, block: Block) {
        while self.comments.last() == Some(&Comment::Blank) {
            self.comments.pop();
        }
        if !self.comments.is_empty() {
            let comments = std::mem::take(&mut self.comments);
            self.ir.set_end_comments(block, comments);
        }
    }

    fn close(&mut self) {
        let start = self.pos;
        self.pos += 1;
        let kind = self.current().kind;
        match kind {
            FrameKind::Root => {
                self.report(
                    Diagnostic::error(Place::Span(start..start + 1), "`}` closes no region")
                        .help("remove it, or open the region it should close"),
                );
                return;
            }
            FrameKind::Wrapper { generic } => {
                self.frames.pop();
                self.after_statement = true;
                if generic {
                    self.close_generic(None);
                } else {
                    self.skip_loc();
                    let comment = self.beside();
                    self.comments.extend(comment.map(Comment::Line));
                }
                return;
            }
            _ => {}
        }
        let block = self.block();
        self.end_comments(block);
        let region = self.ir.block_region(block);
        if self.current().block.is_some() {
            self.unresolved();
            let labels = self.scopes.take_labels(region);
            for label in labels.iter().filter(|label| !label.defined) {
                if self.stopped {
                    break;
                }
                self.report(unknown_block(self.ir, label, &labels));
            }
        }
        self.scopes.close();
        let Some(frame) = self.frames.pop() else {
            return;
        };
        self.after_statement = true;
        let outer = self.block();
        self.scopes.region = Some(self.ir.block_region(outer));
        match kind {
            FrameKind::Generic | FrameKind::Broken { generic: true } => {
                self.close_generic(Some(frame));
            }
            _ => {
                if let (Some(comment), Some(op)) = (self.beside(), frame.op) {
                    self.ir.trivia_mut(op).closing = Some(comment);
                }
            }
        }
    }

    /// `loc(…)` behind a closing brace, which mlir-opt writes; it says nothing about our operations.
    fn skip_loc(&mut self) {
        let src = self.bytes();
        let mut at = self.pos;
        while matches!(src.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        if self.text[at..].starts_with("loc(") {
            let mut depth = 0usize;
            while let Some(&c) = src.get(at) {
                at += 1;
                match c {
                    b'"' => at = super::scan::string_end(src, at - 1).unwrap_or(at),
                    b'(' => depth += 1,
                    b')' if depth <= 1 => break,
                    b')' => depth -= 1,
                    b'\n' => return,
                    _ => {}
                }
            }
            self.pos = at;
        }
    }

    /// Behind `}` of a generic region: another region, or the rest of the operation.
    fn close_generic(&mut self, frame: Option<Frame>) {
        let src = self.bytes();
        let at = skip_blank(src, self.pos);
        match src.get(at) {
            Some(b',') if src.get(skip_blank(src, at + 1)) == Some(&b'{') => {
                self.pos = skip_blank(src, at + 1) + 1;
                match frame {
                    Some(frame) => {
                        let block = frame.op.map(|op| {
                            let region = self.ir.add_region(op);
                            self.ir.append_block(region)
                        });
                        self.push(frame.kind, frame.op, block);
                        if let Some(top) = self.frames.last_mut() {
                            top.regions_done = frame.regions_done + 1;
                        }
                    }
                    None => self.push(FrameKind::Wrapper { generic: true }, None, None),
                }
            }
            Some(b')') => {
                self.pos = skip_blank(src, at + 1);
                match frame.and_then(|frame| frame.op) {
                    Some(op) => self.tail(op),
                    None => {
                        // Of a wrapper or a broken operation: read and dropped.
                        self.pos = line_end(src, self.pos);
                    }
                }
            }
            _ => {
                let place = Place::Span(at..(at + 1).min(src.len()));
                self.report(
                    Diagnostic::error(place, "expected `)` or `, {` behind a region")
                        .help("regions of the generic form stand in parentheses: `({ … })`"),
                );
            }
        }
    }

    // ---- statements ----

    /// The recipe of the statement just scanned, and whether it was known before.
    fn recipe(
        &mut self,
        end: End,
        tail: Option<Tail>,
    ) -> Result<(&'t Recipe, bool), Box<Diagnostic>> {
        if let Some(Tail(code)) = tail {
            // A tail is no statement of its own and means what its operation makes of it.
            let code = code.map_or(u16::MAX, |code| code as u16);
            self.scanned.shape.push(b'\x05');
            self.scanned.shape.extend_from_slice(&code.to_le_bytes());
        }
        let hash = self.cache.hash(&self.scanned.shape);
        if !self.options.plain
            && let Some(recipe) = self.cache.find(hash, &self.scanned.shape)
        {
            return Ok((recipe, true));
        }
        let (recipe, cacheable) = self.compile(end, tail)?;
        let recipe: &'t Recipe = self.arena.alloc(recipe);
        if cacheable {
            self.cache.insert(hash, &self.scanned.shape, recipe);
        }
        Ok((recipe, false))
    }

    fn compile(&mut self, end: End, tail: Option<Tail>) -> Result<(Recipe, bool), Box<Diagnostic>> {
        let (start, stop) = (self.scanned.start, self.scanned.end);
        let mut compiler = Compiler::new(
            self.ir,
            &self.text[start..stop],
            start,
            &self.scanned.holes,
            &self.aliases,
            &mut self.memo_numbers,
        );
        let recipe = compiler.compile(end, tail)?;
        Ok((recipe, compiler.cacheable))
    }

    /// Scans at the current position; on failure reports and moves on.
    fn scan(&mut self) -> Option<End> {
        let result = self.scanned.scan(self.text.as_bytes(), self.pos, |text| {
            MEANINGFUL.contains(text)
        });
        self.pos = self.scanned.end.max(self.pos + 1);
        match result {
            Ok(end) => Some(end),
            Err(diagnostic) => {
                self.report(*diagnostic);
                None
            }
        }
    }

    fn statement(&mut self) {
        let start = self.pos;
        let Some(end) = self.scan() else {
            self.poison(start);
            self.after_statement = true;
            return;
        };
        match self.recipe(end, None) {
            Ok((recipe, known)) => self.apply(recipe, known, end),
            Err(diagnostic) => {
                self.report(*diagnostic);
                self.failed(end);
            }
        }
    }

    /// A statement was reported: marks what it would have defined and reads its region.
    fn failed(&mut self, end: End) {
        let start = self.scanned.start;
        self.poison(start);
        match end {
            End::Plain => {
                let comment = self.beside();
                self.comments.extend(comment.map(Comment::Line));
            }
            End::Region | End::GenericRegion => {
                self.push(
                    FrameKind::Broken {
                        generic: end == End::GenericRegion,
                    },
                    None,
                    None,
                );
                // A loop's index is known to its body.
                let first = self.scanned.holes.first().copied();
                if let Some(hole) = first.filter(|hole| hole.kind == HoleKind::Name)
                    && self.text.as_bytes().get(hole.start as usize - 1) == Some(&b'%')
                {
                    let from = hole.start as usize;
                    let name = self.ir.ctx.str(&self.text[from..from + hole.len as usize]);
                    self.scopes.set(name, POISON);
                }
            }
        }
        self.after_statement = true;
    }

    /// Marks the names left of `=`.
    fn poison(&mut self, start: usize) {
        if self.bytes().get(start) != Some(&b'%') {
            return;
        }
        let equals = self.text[start..]
            .find(['=', '\n'])
            .map_or(self.text.len(), |len| start + len);
        let names: Vec<(usize, usize)> = self
            .scanned
            .holes
            .iter()
            .take_while(|hole| (hole.start as usize) < equals)
            .filter(|hole| hole.kind == HoleKind::Name)
            .map(|hole| (hole.start as usize, hole.len as usize))
            .collect();
        for (from, len) in names {
            let name = self.ir.ctx.str(&self.text[from..from + len]);
            if self.scopes.get(name) == Value::NONE {
                self.scopes.set(name, POISON);
            }
        }
    }

    fn apply(&mut self, recipe: &'t Recipe, known: bool, end: End) {
        let start = self.scanned.start;
        match recipe {
            Recipe::Nothing => {
                let comment = self.beside();
                self.comments.extend(comment.map(Comment::Line));
            }
            Recipe::Wrapper { generic } => {
                if self.frames.iter().any(|frame| frame.op.is_some()) {
                    self.report(Diagnostic::error(
                        Place::Span(start..self.scanned.end),
                        "`builtin.module` can only stand around the whole file",
                    ));
                }
                self.push(FrameKind::Wrapper { generic: *generic }, None, None);
                let comment = self.beside();
                self.comments.extend(comment.map(Comment::Line));
            }
            Recipe::Label(label) => {
                self.label(label);
                let comment = self.beside().filter(|text| !is_predecessor_note(text));
                self.comments.extend(comment.map(Comment::Line));
            }
            Recipe::Tail(_) => {}
            Recipe::Op(op_recipe) => {
                if op_recipe.code.is_none() && !self.options.allow_unregistered {
                    let name = self.ir.ctx.text(self.ir.ctx.op_info(op_recipe.name).name);
                    let message = format!("op `{name}` belongs to no known dialect");
                    self.report(
                        Diagnostic::error(Place::Span(start..self.scanned.end), message)
                            .help("pass `--allow-unregistered-dialect` to keep it as it is"),
                    );
                    self.failed(end);
                    return;
                }
                let source = Source {
                    text: self.text,
                    base: start,
                    holes: &self.scanned.holes,
                };
                let built = Builder {
                    ir: self.ir,
                    scopes: &mut self.scopes,
                    memos: &mut self.memos,
                    src: source,
                }
                .op(op_recipe);
                match built {
                    Ok(built) => self.placed(built.op, built.iv, op_recipe.opens),
                    Err(failure) => self.build_failed(failure, known, end),
                }
            }
        }
    }

    fn build_failed(&mut self, failure: Failure, known: bool, end: End) {
        let Some(mut diagnostic) = failure else {
            self.failed(end);
            return;
        };
        if known {
            // The spans in a known recipe are those of another statement.
            let source_start = self.scanned.start;
            if let Ok((recipe, _)) = self.compile(end, None) {
                let recipe: &'t Recipe = self.arena.alloc(recipe);
                if let Recipe::Op(op_recipe) = recipe {
                    let source = Source {
                        text: self.text,
                        base: source_start,
                        holes: &self.scanned.holes,
                    };
                    let again = Builder {
                        ir: self.ir,
                        scopes: &mut self.scopes,
                        memos: &mut self.memos,
                        src: source,
                    }
                    .op(op_recipe);
                    if let Err(Some(exact)) = again {
                        diagnostic = exact;
                    }
                }
            }
        }
        self.report(*diagnostic);
        self.failed(end);
    }

    fn placed(&mut self, op: Op, iv: Option<Str>, opens: Opens) {
        let start = self.scanned.start;
        let block = self.block();
        self.ir.place(op, Cursor::End(block));
        self.ir.set_span(op, Some(start));
        if !self.comments.is_empty() {
            let comments = std::mem::take(&mut self.comments);
            self.ir.trivia_mut(op).before = comments;
        }
        if opens != Opens::Nothing {
            let inner = match self.ir.regions(op).first().copied() {
                Some(region) => self.ir.append_block(region),
                None => block,
            };
            let kind = match opens {
                Opens::Generic => FrameKind::Generic,
                _ => FrameKind::Custom,
            };
            self.push(kind, Some(op), Some(inner));
            if opens == Opens::Custom
                && let Some(iv) = iv
            {
                let index = self.ir.ctx.index_type();
                self.ir.set_args(inner, &[index]);
                if let Some(arg) = self.ir.args(inner).next() {
                    self.ir.set_value_name(arg, Some(iv));
                    let bound = self.scopes.bind(self.ir, iv, arg, || {
                        (Place::Op(op, Part::Whole), String::new())
                    });
                    if let Err(Some(mut diagnostic)) = bound {
                        diagnostic.message =
                            format!("`%{}` is already defined", self.ir.ctx.text(iv));
                        self.report(*diagnostic);
                    }
                }
            }
        } else {
            self.after_statement = true;
        }
        if let Some(comment) = self.beside() {
            self.ir.trivia_mut(op).beside = Some(comment);
        }
    }

    fn tail(&mut self, op: Op) {
        let start = self.pos;
        let Some(end) = self.scan() else { return };
        let code = OpCode::of(self.ir, op);
        let recipe = match self.recipe(end, Some(Tail(code))) {
            Ok((recipe, _)) => recipe,
            Err(diagnostic) => {
                self.report(*diagnostic);
                return;
            }
        };
        if let Recipe::Tail(tail) = recipe {
            let source = Source {
                text: self.text,
                base: start,
                holes: &self.scanned.holes,
            };
            let result = Builder {
                ir: self.ir,
                scopes: &mut self.scopes,
                memos: &mut self.memos,
                src: source,
            }
            .tail(tail, op);
            match result {
                Ok(Some(name)) => {
                    let entry = self.ir.regions(op).first().and_then(|&r| self.ir.entry(r));
                    if let Some(index) = entry.and_then(|block| self.ir.args(block).next()) {
                        self.ir.set_value_name(index, Some(name));
                    }
                }
                Ok(None) => {}
                Err(Some(diagnostic)) => self.report(*diagnostic),
                Err(None) => {}
            }
        }
        if let Some(comment) = self.beside() {
            self.ir.trivia_mut(op).closing = Some(comment);
        }
    }

    fn label(&mut self, recipe: &LabelRecipe) {
        let start = self.scanned.start;
        let source = Source {
            text: self.text,
            base: start,
            holes: &self.scanned.holes,
        };
        let text = source.hole_text(recipe.name.hole);
        let place = Place::Span(start..start + text.len() + 1);
        let at = self.block();
        let region = self.ir.block_region(at);
        if matches!(
            self.current().kind,
            FrameKind::Root | FrameKind::Wrapper { .. }
        ) {
            self.report(Diagnostic::error(
                place,
                "a block label can only stand in a region",
            ));
            return;
        }
        let name = self.ir.ctx.str(text);
        let fresh_entry = self.ir.entry(region) == Some(at)
            && self.ir.first_op(at).is_none()
            && self.ir.label(at).is_none()
            && self.ir.end_comments(at).is_empty();
        // What stands in front of a label ends the block above.
        if !fresh_entry && !self.comments.is_empty() {
            let comments = std::mem::take(&mut self.comments);
            self.ir.set_end_comments(at, comments);
        }
        let known = self.scopes.blocks.get(&(region, name)).copied();
        let block = match known {
            Some(known) if self.scopes.labels[known].defined => {
                self.report(Diagnostic::error(
                    place,
                    format!("block `^{text}` is already defined"),
                ));
                return;
            }
            Some(known) => {
                self.scopes.labels[known].defined = true;
                self.scopes.labels[known].block
            }
            None => {
                let block = if fresh_entry {
                    self.ir.set_label(at, label_hint(text, name));
                    at
                } else {
                    self.scopes.block(self.ir, text, || place.clone())
                };
                match self.scopes.blocks.get(&(region, name)).copied() {
                    Some(at) => self.scopes.labels[at].defined = true,
                    None => {
                        self.scopes
                            .blocks
                            .insert((region, name), self.scopes.labels.len());
                        self.scopes.labels.push(Label {
                            region,
                            block,
                            name,
                            defined: true,
                            place: place.clone(),
                        });
                    }
                }
                block
            }
        };
        if block != at {
            self.ir.move_block_to_end(block, region);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.block = Some(block);
        }
        let fixed_args = self.ir.args(block).len() > 0;
        if !recipe.args.is_empty() && !fixed_args {
            let types: Vec<Type> = recipe.args.iter().map(|&(_, ty)| ty).collect();
            self.ir.set_args(block, &types);
            let values: Vec<Value> = self.ir.args(block).collect();
            for ((arg, _), value) in recipe.args.iter().zip(values) {
                let source = Source {
                    text: self.text,
                    base: start,
                    holes: &self.scanned.holes,
                };
                let text = source.hole_text(arg.hole).to_owned();
                let name = self.ir.ctx.str(&text);
                if !text.starts_with(|c: char| c.is_ascii_digit()) {
                    self.ir.set_value_name(value, Some(name));
                }
                let bound = self
                    .scopes
                    .bind(self.ir, name, value, || (place.clone(), text));
                if let Err(Some(diagnostic)) = bound {
                    self.report(*diagnostic);
                }
            }
        }
        self.after_statement = false;
    }
}

/// mlir-opt writes who branches to a block behind its label; that is no comment of the user's.
fn is_predecessor_note(text: &str) -> bool {
    let text = text.trim_start_matches(['/', ' ']);
    text.starts_with("pred: ^")
        || text
            .split_once(" preds: ^")
            .is_some_and(|(count, _)| count.parse::<u32>().is_ok())
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
