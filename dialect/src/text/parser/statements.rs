//! Statements: from their text to operations, and going on where one is wrong.

use std::ops::Range;
use std::sync::LazyLock;

use hashbrown::HashSet;

use super::Parser;
use super::regions::{Frame, FrameKind};
use crate::bir::ops::{AttrType, COMMON_ATTRS, OPS, OpCode};
use crate::ir::{Comment, Cursor, Op, Value};
use crate::text::build::{Builder, Built, Failure, Head, Source};
use crate::text::compile::{Compiler, Tail};
use crate::text::diag::{Diagnostic, Part, Place};
use crate::text::recipe::{OpRecipe, Opens, Recipe};
use crate::text::scan::{End, HoleKind, is_name_byte, line_end, skip_blank};
use crate::text::scopes::POISON;

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

impl<'t> Parser<'_, 't> {
    /// The recipe of the statement just scanned, and whether it was known before.
    fn recipe(
        &mut self,
        end: End,
        tail: Option<Tail>,
    ) -> Result<(&'t Recipe, bool), Box<Diagnostic>> {
        if let Some(Tail(code)) = tail {
            // A tail is no statement of its own and means what its operation makes of it.
            let [low, high] = code.map_or(u16::MAX, |code| code as u16).to_le_bytes();
            self.scanned.mark_shape(&[b'\x05', low, high]);
        }
        let hash = self.cache.hash(self.scanned.shape());
        if !self.options.plain
            && let Some(recipe) = self.cache.find(hash, self.scanned.shape())
        {
            return Ok((recipe, true));
        }
        let (recipe, cacheable) = self.compile(end, tail)?;
        let recipe: &'t Recipe = self.arena.alloc(recipe);
        if cacheable {
            self.cache.insert(hash, &self.scanned, end, recipe);
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
            &mut self.forms,
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

    /// The recipe of the next statement, if it is of the shape that followed the last one's before.
    fn foretold(&mut self) -> Option<&'t Recipe> {
        if self.options.plain {
            return None;
        }
        let (entry, pattern) = self.cache.foretold()?;
        let src = self.text.as_bytes();
        let keep = |text: &[u8]| MEANINGFUL.contains(text);
        if !self.scanned.matches(src, self.pos, pattern, keep) {
            return None;
        }
        self.pos = self.scanned.end;
        Some(self.cache.come_true(entry))
    }

    pub(super) fn statement(&mut self) {
        let start = self.pos;
        if let Some(recipe) = self.foretold() {
            self.apply(recipe, true, End::Plain);
            return;
        }
        let Some(end) = self.scan() else {
            self.poison(start);
            self.after_statement = true;
            return;
        };
        match self.recipe(end, None) {
            Ok((recipe, known)) => self.apply(recipe, known, end),
            Err(diagnostic) => match self.unfinished_line() {
                Some((sign, is_last)) => self.unfinished(sign, is_last),
                None => {
                    self.report(*diagnostic);
                    self.failed(end);
                }
            },
        }
    }

    /// The sign at the end of a line of the statement just scanned that joined it to the next line,
    /// which is a statement of its own; or the arrow that ends it. The flag tells these apart.
    fn unfinished_line(&self) -> Option<(Range<usize>, bool)> {
        let (start, stop) = (self.scanned.start, self.scanned.end);
        let statement = self.text.get(start..stop)?;
        let mut at = start;
        for line in statement.split_inclusive('\n') {
            let code = line.split("//").next().unwrap_or("").trim_end();
            let next = at + line.len();
            let sign = ["<-", ",", "="]
                .into_iter()
                .find(|sign| code.ends_with(sign));
            if let Some(sign) = sign {
                let end = at + code.len();
                let is_last = next == stop;
                let head = &self.bytes()[start..end];
                let count = |signs: &[u8]| head.iter().filter(|c| signs.contains(c)).count();
                let in_brackets = count(b"([{") > count(b")]}");
                let joined = !is_last && !in_brackets && self.begins_statement(next);
                if joined || is_last && sign == "<-" {
                    return Some((end - sign.len()..end, is_last));
                }
            }
            at = next;
        }
        None
    }

    /// Whether what stands at a place looks like the beginning of a statement.
    fn begins_statement(&self, at: usize) -> bool {
        let at = skip_blank(self.bytes(), at);
        let line = &self.text[at..line_end(self.bytes(), at)];
        let word_end = line
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(line.len());
        match line.as_bytes() {
            [b'"' | b'^', ..] => true,
            [b'%', name @ ..] => {
                let behind = name
                    .iter()
                    .position(|&c| !is_name_byte(c))
                    .map_or(&[][..], |end| &name[end..]);
                behind.trim_ascii_start().first() == Some(&b'=')
            }
            _ => OpCode::from_name(&line[..word_end]).is_some(),
        }
    }

    fn unfinished(&mut self, sign: Range<usize>, is_last: bool) {
        let text = &self.text[sign.clone()];
        let (what, remedy) = match text {
            "=" => ("an instruction", "write the instruction there"),
            "," => ("an operand", "write the operand, or remove the comma"),
            _ => ("operands", "write what is read, or remove the arrow"),
        };
        let found = match is_last {
            true => "the end of the statement",
            false => "another statement on the next line",
        };
        let message = format!("expected {what} behind `{text}`, found {found}");
        let help = match is_last {
            true => remedy.to_owned(),
            false => format!("a line that ends with `{text}` goes on in the next: {remedy}"),
        };
        self.report(
            Diagnostic::error(Place::Span(sign.clone()), message)
                .label("here")
                .help(help),
        );
        // The next line is read for itself.
        self.scanned.end = sign.end;
        self.scanned
            .holes
            .retain(|hole| (hole.start as usize) < sign.end);
        self.pos = sign.end;
        self.failed(End::Plain);
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
                if let Some(frame) = self.frames.last_mut() {
                    frame.ended = frame.block;
                }
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
                let built = self.fill(recipe, known, (end, None), |builder, recipe| {
                    builder.op(recipe)
                });
                // Its names are bound once nothing else can be wrong with it: where they stand is
                // known exactly, and a statement built twice would find its own names taken.
                let built = built.and_then(|built| {
                    self.builder().bind_results(op_recipe, &built)?;
                    Ok(built)
                });
                match built {
                    Ok(built) => self.placed(built, op_recipe.opens),
                    Err(failure) => {
                        self.report_failure(failure);
                        self.failed(end);
                    }
                }
            }
        }
    }

    /// A builder for the statement just scanned.
    fn builder(&mut self) -> Builder<'_, '_> {
        Builder {
            src: Source {
                text: self.text,
                base: self.scanned.start,
                holes: &self.scanned.holes,
            },
            ir: self.ir,
            scopes: &mut self.scopes,
            memos: &mut self.memos,
        }
    }

    /// Builds what the statement just scanned says.
    ///
    /// The spans in a known recipe are those of another statement: where it fails, the statement
    /// is compiled anew to say what is wrong where.
    fn fill<T>(
        &mut self,
        recipe: &'t Recipe,
        known: bool,
        (end, tail): (End, Option<Tail>),
        build: impl for<'s> Fn(&mut Builder<'_, 's>, &'s OpRecipe) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (Recipe::Op(op_recipe) | Recipe::Tail(op_recipe)) = recipe else {
            return Err(None);
        };
        let failure = match build(&mut self.builder(), op_recipe) {
            Ok(built) => return Ok(built),
            Err(failure) => failure,
        };
        if !known || failure.is_none() {
            return Err(failure);
        }
        let Ok((recipe, _)) = self.compile(end, tail) else {
            return Err(failure);
        };
        match self.arena.alloc(recipe) {
            Recipe::Op(op_recipe) | Recipe::Tail(op_recipe) => {
                build(&mut self.builder(), op_recipe)
            }
            _ => Err(failure),
        }
    }

    fn report_failure(&mut self, failure: Failure) {
        if let Some(diagnostic) = failure {
            self.report(*diagnostic);
        }
    }

    fn placed(&mut self, built: Built, opens: Opens) {
        let Built { op, iv, head, .. } = built;
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
            self.push_frame(Frame {
                kind,
                op: Some(op),
                block: Some(inner),
                ended: None,
                head,
            });
            if opens == Opens::Custom
                && let Some(iv) = iv
            {
                let index = self.ir.ctx.index_type();
                self.ir.set_args(inner, &[index]);
                if let Some(arg) = self.ir.args(inner).next() {
                    self.ir.set_value_name(arg, Some(iv));
                    let place = || Place::Op(op, Part::Whole);
                    if let Err(failure) = self.scopes.bind(self.ir, iv, arg, place) {
                        self.report_failure(failure);
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

    /// What stands behind the regions of a generic operation.
    pub(super) fn tail(&mut self, op: Op, head: Head) {
        let Some(end) = self.scan() else {
            self.poison_results(&head);
            return;
        };
        let tail = Some(Tail(OpCode::of(self.ir, op)));
        let result = match self.recipe(end, tail) {
            Ok((recipe, known)) => self
                .fill(recipe, known, (end, tail), |builder, recipe| {
                    builder.tail(recipe, op, &head)
                })
                .and_then(|()| self.builder().bind_head(op, &head)),
            Err(diagnostic) => Err(Some(diagnostic)),
        };
        if let Err(failure) = result {
            self.report_failure(failure);
            self.poison_results(&head);
            if end == End::GenericRegion {
                self.failed(end);
                return;
            }
        }
        if let Some(comment) = self.beside() {
            self.ir.trivia_mut(op).closing = Some(comment);
        }
    }

    /// Marks the names of results that nothing was built for.
    pub(super) fn poison_results(&mut self, head: &Head) {
        for result in &head.results {
            if self.scopes.get(result.name) == Value::NONE {
                self.scopes.set(result.name, POISON);
            }
        }
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
