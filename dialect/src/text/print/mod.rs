//! Printing: the custom form for people, the generic form for other tools.

mod access;
mod attr;
mod custom;
mod generic;
mod names;

use std::io;

use names::Names;

use crate::ir::{Comment, Ir, Op};

/// How to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// The generic form instead of the custom one.
    pub generic: bool,
    /// Replace the elements of constants of more than this many bytes by a mark.
    pub elide_larger: Option<usize>,
    /// Leave comments out.
    pub strip_comments: bool,
}

/// Indentation stops growing here: ten thousand nested loops would be mostly blanks.
const MAX_INDENT: usize = 64;

/// Text handed on at once while a file is written: enough to make calls cheap, little to hold.
const PIECE: usize = 1 << 16;

struct Printer<'a> {
    ir: &'a Ir,
    options: PrintOptions,
    names: Names,
    out: String,
    depth: usize,
}

/// Prints a whole file.
pub fn print(ir: &Ir, options: PrintOptions) -> String {
    let mut printer = Printer::new(ir, options);
    let per_op = if options.generic { 192 } else { 64 };
    printer.out.reserve(ir.op_rows().saturating_mul(per_op));
    for visit in ir.walk() {
        printer.visit(visit);
    }
    printer.end_comments_of(ir.root_block());
    printer.out
}

/// Writes a whole file in pieces, so that its text is never in memory at once.
pub fn write(ir: &Ir, options: PrintOptions, out: &mut dyn io::Write) -> io::Result<()> {
    let mut printer = Printer::new(ir, options);
    for visit in ir.walk() {
        printer.visit(visit);
        if printer.out.len() >= PIECE {
            out.write_all(printer.out.as_bytes())?;
            printer.out.clear();
        }
    }
    printer.end_comments_of(ir.root_block());
    out.write_all(printer.out.as_bytes())
}

/// Prints one operation, with its regions, on lines of its own.
pub fn print_op(ir: &Ir, op: Op, options: PrintOptions) -> String {
    let mut printer = Printer::new(ir, options);
    printer.operation(op);
    printer.out
}

/// Appends an integer.
fn push_int(out: &mut String, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    // Digits are ASCII, so this never fails.
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or(""));
}

impl Printer<'_> {
    fn new(ir: &Ir, options: PrintOptions) -> Printer<'_> {
        Printer {
            ir,
            options,
            names: Names::new(ir),
            out: String::new(),
            depth: 0,
        }
    }

    /// An operation with what its regions hold: a walk, not recursion.
    fn operation(&mut self, op: Op) {
        for visit in self.ir.walk_visits(op) {
            self.visit(visit);
        }
    }

    fn visit(&mut self, visit: crate::ir::Visit) {
        if self.options.generic {
            self.generic_visit(visit);
        } else {
            self.custom_visit(visit);
        }
    }

    fn indent(&mut self) {
        for _ in 0..self.depth.min(MAX_INDENT) {
            self.out.push_str("  ");
        }
    }

    fn comments(&mut self, comments: &[Comment]) {
        if self.options.strip_comments {
            return;
        }
        for comment in comments {
            match comment {
                Comment::Blank => {}
                Comment::Line(text) => {
                    self.indent();
                    self.out.push_str(text);
                }
            }
            self.out.push('\n');
        }
    }

    fn before(&mut self, op: Op) {
        if let Some(trivia) = self.ir.trivia(op) {
            let ir = self.ir;
            if let Some(trivia) = ir.trivia(op).filter(|_| !trivia.before.is_empty()) {
                self.comments(&trivia.before);
            }
        }
    }

    /// Ends the line of an operation, with the comment beside it.
    fn end_line(&mut self, op: Op) {
        if !self.options.strip_comments
            && let Some(text) = self
                .ir
                .trivia(op)
                .and_then(|trivia| trivia.beside.as_deref())
        {
            self.out.push(' ');
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    /// Ends the line of a closing brace, with the comment behind it.
    fn end_closing(&mut self, op: Op) {
        if !self.options.strip_comments
            && let Some(text) = self
                .ir
                .trivia(op)
                .and_then(|trivia| trivia.closing.as_deref())
        {
            self.out.push(' ');
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    /// Comments at the end of the block before `block`: they stand in front of its label.
    fn comments_above(&mut self, block: crate::ir::Block) {
        if let Some(above) = self.ir.prev_block(block) {
            self.end_comments_of(above);
        }
    }

    fn end_comments_of(&mut self, block: crate::ir::Block) {
        let ir = self.ir;
        self.comments(ir.end_comments(block));
    }
}
