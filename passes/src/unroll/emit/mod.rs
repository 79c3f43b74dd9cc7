//! Makes the copies a plan asks for, in program order and without recursion.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_DEPS, COL_ID, names, op_name};
use bir_dialect::ir::{Block, Comment, Cursor, Ir, NewOp, Op, Trivia, Value};
use bir_dialect::text::diag::Diagnostic;

use self::instruction::Variant;
use super::plan::{FuncPlan, Root, Shape, Template};
use super::{LOOPS, MADE};
use crate::pass::PassContext;

mod instruction;

type Res<T> = Result<T, Box<Diagnostic>>;

/// What a value of the loop is at the place copies are made.
#[derive(Clone, Copy)]
enum Bound {
    /// Not reached yet.
    Unset,
    /// A register.
    Value(Value),
    /// An index of known value; whether it is the first of its loop.
    Const { value: i64, first: bool },
    /// `value + add`; whether that can be the first of its loop.
    Index { value: Value, add: i64, first: bool },
}

/// A region whose copies are being made.
struct Frame {
    /// The operation it belongs to.
    owner: usize,
    /// Next template and the one behind the last.
    at: usize,
    end: usize,
    /// Where copies go; for an operation that stays, into `blocks`.
    cursor: Cursor,
    /// Where the parts of an unrolled loop go.
    outer: Cursor,
    part: usize,
    copy: u64,
    /// Index values of the part: the index of the new loop, or its first value.
    around: Option<Value>,
    /// Old and new blocks of an operation that stays.
    blocks: Vec<(Block, Block)>,
}

/// Applies the plan of one function; whether anything changed.
pub(super) fn apply(ir: &mut Ir, plan: FuncPlan, cx: &mut PassContext<'_>) -> Res<bool> {
    let mut done = 0;
    for root in &plan.roots {
        let op = root.op();
        if !cx.may_rewrite(&|| format!("unroll {} loops", root.loops)) {
            break;
        }
        done += 1;
        cx.count(&LOOPS, root.loops);
        cx.count(&MADE, root.made);
        ir.reserve(usize::try_from(root.made).unwrap_or(0));
        let mut emitter = Emitter {
            root,
            slots: vec![Bound::Unset; root.slots],
            fresh: vec![true; root.templates.len()],
            variants: Vec::new(),
            path: Vec::new(),
            pending: Vec::new(),
        };
        emitter.variants.resize_with(root.templates.len(), Vec::new);
        emitter.root(ir)?;
        let pending = emitter.pending;
        leave_comments(ir, op, pending);
        ir.erase(op);
    }
    if done == plan.roots.len() {
        for (op, words) in &plan.outside {
            ir.set_words_cell(
                COL_DEPS,
                *op,
                Some(words).filter(|w| !w.is_empty()).map(Vec::as_slice),
            );
        }
    }
    Ok(done > 0)
}

/// Comments behind the last copy go before what follows the loop.
fn leave_comments(ir: &mut Ir, op: Op, mut pending: Vec<Comment>) {
    if pending.is_empty() {
        return;
    }
    if let Some(next) = ir.next(op) {
        let trivia = ir.trivia_mut(next);
        pending.append(&mut trivia.before);
        trivia.before = pending;
    } else if let Some(block) = ir.block(op) {
        pending.extend_from_slice(ir.end_comments(block));
        ir.set_end_comments(block, pending);
    }
}

struct Emitter<'a> {
    root: &'a Root,
    slots: Vec<Bound>,
    /// Whether a template has not been copied yet: its comments are still to be placed.
    fresh: Vec<bool>,
    variants: Vec<Vec<Variant>>,
    /// Per open unrolled loop: number of the copy, and of copies in all.
    path: Vec<(u64, u64)>,
    /// Comments waiting for the next copy.
    pending: Vec<Comment>,
}

impl Emitter<'_> {
    fn template(&self, at: usize) -> &'_ Template {
        &self.root.templates[at]
    }

    fn root(&mut self, ir: &mut Ir) -> Res<()> {
        let mut frames = Vec::new();
        self.open(ir, 0, Cursor::Before(self.root.op()), &mut frames);
        while let Some(frame) = frames.last_mut() {
            let at = frame.at;
            if at == frame.end {
                self.close(ir, &mut frames);
                continue;
            }
            frame.at = self.root.templates[at].end.max(at + 1);
            if !frame.blocks.is_empty()
                && let Some(block) = ir.block(self.root.templates[at].op)
                && let Some(&(_, new)) = frame.blocks.iter().find(|&&(old, _)| old == block)
            {
                frame.cursor = Cursor::End(new);
            }
            let cursor = frame.cursor;
            match &self.root.templates[at].shape {
                Shape::Plain => {
                    let blocks = std::mem::take(&mut frame.blocks);
                    self.copy(ir, at, cursor, &blocks)?;
                    if let Some(frame) = frames.last_mut() {
                        frame.blocks = blocks;
                    }
                }
                Shape::Kept => {
                    let copy = self.copy(ir, at, cursor, &[])?;
                    self.keep(ir, at, copy, &mut frames);
                }
                Shape::Unrolled(..) => self.open(ir, at, cursor, &mut frames),
            }
        }
        Ok(())
    }

    /// Begins an unrolled loop.
    fn open(&mut self, ir: &mut Ir, at: usize, cursor: Cursor, frames: &mut Vec<Frame>) {
        let root = self.root;
        let Shape::Unrolled(parts, _) = &root.templates[at].shape else {
            return;
        };
        let keeps_loop = parts.first().is_some_and(|part| part.around.is_some());
        if !keeps_loop {
            self.take_header_comments(ir, at);
        }
        if parts.is_empty() {
            self.take_closing_comments(ir, at);
            self.fresh[at] = false;
            return;
        }
        self.path
            .push((0, parts.iter().map(|part| part.copies).sum()));
        frames.push(Frame {
            owner: at,
            at: at + 1,
            end: root.templates[at].end,
            cursor,
            outer: cursor,
            part: 0,
            copy: 0,
            around: None,
            blocks: Vec::new(),
        });
        if let Some(frame) = frames.last_mut() {
            self.begin_part(ir, frame);
        }
    }

    /// Makes the loop around a part, if it has one, and sets the index for its first copy.
    fn begin_part(&mut self, ir: &mut Ir, frame: &mut Frame) {
        let root = self.root;
        let template = &root.templates[frame.owner];
        let Shape::Unrolled(parts, _) = &template.shape else {
            return;
        };
        let part = parts[frame.part];
        frame.around = None;
        frame.cursor = frame.outer;
        if let Some((upper, step)) = part.around {
            let op = self.make_loop(ir, frame, part.first, upper, step);
            let region = ir.regions(op).first().copied();
            let Some(region) = region else { return };
            let body = ir.append_block(region);
            let index = ir.ctx.index_type();
            ir.set_args(body, &[index]);
            let old = entry_args(ir, template.op);
            frame.around = ir.args(body).next();
            if let (Some(&old), Some(new)) = (old.first(), frame.around) {
                let name = ir.value_name(old);
                ir.set_value_name(new, name);
            }
            if self.fresh[frame.owner] {
                let old = entry_block(ir, template.op);
                let label = old.and_then(|block| ir.label(block));
                ir.set_label(body, label);
            }
            frame.cursor = Cursor::End(body);
        }
        self.begin_copy(frame);
    }

    fn make_loop(&mut self, ir: &mut Ir, frame: &Frame, lower: i64, upper: i64, step: i64) -> Op {
        let old = self.root.templates[frame.owner].op;
        let mut dict = ir.dict(old);
        let step = (step != 1).then_some(step);
        for (name, value) in [
            (names::LOWER, Some(lower)),
            (names::UPPER, Some(upper)),
            (names::STEP, step),
        ] {
            let attr = value.map(|value| ir.ctx.int(value));
            dict = ir.ctx.dict_with(dict, name, attr);
        }
        let op = ir.insert(
            frame.outer,
            NewOp {
                dict,
                regions: 1,
                loc: ir.loc(old),
                ..NewOp::new(op_name(OpCode::Loop))
            },
        );
        let span = ir.span(old);
        ir.set_span(op, span);
        if self.fresh[frame.owner] && frame.part == 0 {
            self.take_comments(ir, old, op);
            if frame.outer_copies(&self.path) == 0 {
                let id = ir.int_cell(COL_ID, old);
                ir.set_int_cell(COL_ID, op, id);
            }
        }
        op
    }

    fn begin_copy(&mut self, frame: &mut Frame) {
        let template = self.template(frame.owner);
        let slot = template.slot;
        let Shape::Unrolled(parts, step) = &template.shape else {
            return;
        };
        let part = parts[frame.part];
        let add = step.wrapping_mul(frame.copy as i64);
        let first = frame.part == 0 && frame.copy == 0;
        let bound = match frame.around {
            Some(value) => Bound::Index { value, add, first },
            None => Bound::Const {
                value: part.first.wrapping_add(add),
                first,
            },
        };
        frame.at = frame.owner + 1;
        self.slots[slot] = bound;
    }

    /// Behind the last template of a region: the next copy, the next part, or the end.
    fn close(&mut self, ir: &mut Ir, frames: &mut Vec<Frame>) {
        let Some(mut frame) = frames.pop() else {
            return;
        };
        let root = self.root;
        let template = &root.templates[frame.owner];
        let Shape::Unrolled(parts, _) = &template.shape else {
            self.fresh[frame.owner] = false;
            return;
        };
        if self.fresh[frame.owner] && frame.part == 0 && frame.copy == 0 {
            self.end_comments(ir, &frame);
        }
        frame.copy += 1;
        if let Some(last) = self.path.last_mut() {
            last.0 += 1;
        }
        if frame.copy < parts[frame.part].copies {
            self.begin_copy(&mut frame);
            frames.push(frame);
            return;
        }
        frame.copy = 0;
        frame.part += 1;
        if frame.part < parts.len() {
            self.begin_part(ir, &mut frame);
            frames.push(frame);
            return;
        }
        self.path.pop();
        if self.fresh[frame.owner] && parts[0].around.is_none() {
            self.take_closing_comments(ir, frame.owner);
        }
        self.fresh[frame.owner] = false;
    }

    /// Comments behind the last instruction of a body.
    fn end_comments(&mut self, ir: &mut Ir, frame: &Frame) {
        let Some(block) = entry_block(ir, self.template(frame.owner).op) else {
            return;
        };
        let mut comments = std::mem::take(&mut self.pending);
        comments.extend_from_slice(ir.end_comments(block));
        if comments.is_empty() {
            return;
        }
        match frame.cursor {
            Cursor::End(body) if frame.around.is_some() => ir.set_end_comments(body, comments),
            _ => self.pending = comments,
        }
    }

    /// The comments of a loop that vanishes wait for the first copy of what is in it.
    fn take_header_comments(&mut self, ir: &mut Ir, at: usize) {
        if !self.fresh[at] {
            return;
        }
        let op = self.template(at).op;
        if ir.trivia(op).is_some() {
            let trivia = ir.trivia_mut(op);
            let mut before = std::mem::take(&mut trivia.before);
            let beside = trivia.beside.take();
            self.pending.append(&mut before);
            self.pending.extend(beside.map(Comment::Line));
        }
    }

    fn take_closing_comments(&mut self, ir: &mut Ir, at: usize) {
        let op = self.template(at).op;
        if ir.trivia(op).is_some() {
            let closing = ir.trivia_mut(op).closing.take();
            self.pending.extend(closing.map(Comment::Line));
        }
    }

    /// Comments of an operation, and those waiting, go to its first copy.
    fn take_comments(&mut self, ir: &mut Ir, old: Op, new: Op) {
        if self.pending.is_empty() && ir.trivia(old).is_none() {
            return;
        }
        let mut trivia = match ir.trivia(old) {
            Some(_) => std::mem::take(ir.trivia_mut(old)),
            None => Trivia::default(),
        };
        let mut before = std::mem::take(&mut self.pending);
        before.append(&mut trivia.before);
        trivia.before = before;
        *ir.trivia_mut(new) = trivia;
    }

    /// Begins an operation with regions that stays.
    fn keep(&mut self, ir: &mut Ir, at: usize, copy: Op, frames: &mut Vec<Frame>) {
        let old = self.template(at).op;
        let mut slot = self.template(at).slot + ir.results(old).len();
        let fresh = self.fresh[at];
        let mut blocks = Vec::new();
        let regions: Vec<_> = ir
            .regions(old)
            .iter()
            .copied()
            .zip(ir.regions(copy).iter().copied())
            .collect();
        for (from, to) in regions {
            for old in ir.blocks(from).collect::<Vec<_>>() {
                let new = ir.append_block(to);
                let types: Vec<_> = ir.args(old).map(|arg| ir.value_type(arg)).collect();
                if !types.is_empty() {
                    ir.set_args(new, &types);
                }
                for (old, new) in ir.args(old).zip(ir.args(new)) {
                    let name = ir.value_name(old);
                    ir.set_value_name(new, name);
                    self.slots[slot] = Bound::Index {
                        value: new,
                        add: 0,
                        first: true,
                    };
                    slot += 1;
                }
                let label = ir.label(old);
                ir.set_label(new, label);
                if fresh && !ir.end_comments(old).is_empty() {
                    let comments = ir.end_comments(old).to_vec();
                    ir.set_end_comments(new, comments);
                }
                blocks.push((old, new));
            }
        }
        let Some(&(_, first)) = blocks.first() else {
            return;
        };
        frames.push(Frame {
            owner: at,
            at: at + 1,
            end: self.template(at).end,
            cursor: Cursor::End(first),
            outer: Cursor::End(first),
            part: 0,
            copy: 0,
            around: None,
            blocks,
        });
    }
}

impl Frame {
    /// Which copy of the loops around this one is being made; 0 is the first.
    fn outer_copies(&self, path: &[(u64, u64)]) -> u64 {
        path.iter().rev().skip(1).map(|&(copy, _)| copy).sum()
    }
}

fn entry_block(ir: &Ir, op: Op) -> Option<Block> {
    ir.regions(op).first().and_then(|&region| ir.entry(region))
}

fn entry_args(ir: &Ir, op: Op) -> Vec<Value> {
    entry_block(ir, op).map_or(Vec::new(), |block| ir.args(block).collect())
}
