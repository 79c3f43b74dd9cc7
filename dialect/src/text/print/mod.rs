//! Printing: the custom form for people, the generic form for other tools.

mod access;
mod attr;
mod custom;
mod generic;
mod names;

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

struct Printer<'a> {
    ir: &'a Ir,
    options: PrintOptions,
    names: Names,
    out: String,
    depth: usize,
}

/// Prints a whole file.
pub fn print(ir: &Ir, options: PrintOptions) -> String {
    let mut printer = Printer {
        ir,
        options,
        names: Names::new(ir),
        out: String::with_capacity(ir.op_rows() * if options.generic { 192 } else { 64 }),
        depth: 0,
    };
    printer.file();
    printer.out
}

/// Prints one operation, with its regions, on lines of its own.
pub fn print_op(ir: &Ir, op: Op, options: PrintOptions) -> String {
    let mut printer = Printer {
        ir,
        options,
        names: Names::new(ir),
        out: String::new(),
        depth: 0,
    };
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
    /// Every operation of the file; nested ones are opened and closed by the walk, not by recursion.
    fn file(&mut self) {
        for visit in self.ir.walk() {
            self.visit(visit);
        }
        self.end_comments_of(self.ir.root_block());
    }

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

    fn end_comments_of(&mut self, block: crate::ir::Block) {
        let ir = self.ir;
        self.comments(ir.end_comments(block));
    }
}
