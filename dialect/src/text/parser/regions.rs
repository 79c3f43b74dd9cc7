//! Regions: what opens, labels and closes them.

use super::Parser;
use crate::ir::{Block, Comment, Op, Type, Value};
use crate::text::build::{Head, Source};
use crate::text::diag::{Diagnostic, Place};
use crate::text::recipe::LabelRecipe;
use crate::text::scan::{line_end, skip_blank};
use crate::text::scopes::{Label, label_hint, unknown_block};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
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

/// A region being read.
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    /// The operation it belongs to.
    pub(super) op: Option<Op>,
    /// The block being read.
    pub(super) block: Option<Block>,
    /// The block whose end was read last, where the text says it and the program does not.
    pub(super) ended: Option<Block>,
    /// What the head of a generic operation leaves to its tail.
    pub(super) head: Head,
}

impl Frame {
    /// That of the file.
    pub(super) fn root(block: Block) -> Frame {
        Frame {
            kind: FrameKind::Root,
            op: None,
            block: Some(block),
            ended: None,
            head: Head::default(),
        }
    }
}

impl Parser<'_, '_> {
    fn current(&self) -> &Frame {
        // The root frame is never popped.
        &self.frames[self.frames.len() - 1]
    }

    pub(super) fn block(&self) -> Block {
        self.frames
            .iter()
            .rev()
            .find_map(|frame| frame.block)
            .unwrap_or_else(|| self.ir.root_block())
    }

    pub(super) fn push(&mut self, kind: FrameKind, op: Option<Op>, block: Option<Block>) {
        self.push_frame(Frame {
            kind,
            op,
            block,
            ended: None,
            head: Head::default(),
        });
    }

    pub(super) fn push_frame(&mut self, frame: Frame) {
        let Frame { kind, block, .. } = frame;
        self.after_statement = false;
        self.frames.push(frame);
        if !matches!(kind, FrameKind::Wrapper { .. }) {
            self.scopes.open();
        }
        if let Some(block) = block {
            self.scopes.region = Some(self.ir.block_region(block));
        }
    }

    pub(super) fn close(&mut self) {
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
                    b'"' => at = crate::text::scan::string_end(src, at - 1).unwrap_or(at),
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
                        self.push_frame(Frame { block, ..frame });
                    }
                    None => self.push(FrameKind::Wrapper { generic: true }, None, None),
                }
            }
            Some(b')') => {
                self.pos = skip_blank(src, at + 1);
                match frame {
                    Some(Frame {
                        op: Some(op), head, ..
                    }) => self.tail(op, head),
                    // Of a wrapper or a broken operation: read and dropped.
                    _ => self.pos = line_end(src, self.pos),
                }
            }
            _ => {
                if let Some(frame) = frame {
                    self.poison_results(&frame.head);
                }
                let place = Place::Span(at..(at + 1).min(src.len()));
                self.report(
                    Diagnostic::error(place, "expected `)` or `, {` behind a region")
                        .help("regions of the generic form stand in parentheses: `({ … })`"),
                );
            }
        }
    }

    pub(super) fn label(&mut self, recipe: &LabelRecipe) {
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
        // Its label may be one that means nothing, so that only who was defined tells.
        let own = |label: &&Label| label.region == region;
        let mut labels = self.scopes.labels.iter().rev().take_while(own);
        let fresh_entry = self.ir.entry(region) == Some(at)
            && self.ir.first_op(at).is_none()
            && self.current().ended != Some(at)
            && !labels.any(|label| label.block == at && label.defined)
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
                let text = source.hole_text(arg.hole);
                let name = self.ir.ctx.str(text);
                if !text.starts_with(|c: char| c.is_ascii_digit()) {
                    self.ir.set_value_name(value, Some(name));
                }
                let place = || source.name_place(arg);
                if let Err(Some(diagnostic)) = self.scopes.bind(self.ir, name, value, place) {
                    self.report(*diagnostic);
                }
            }
        }
        self.after_statement = false;
    }
}
