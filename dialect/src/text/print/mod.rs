//! Printing: the custom form for people, the generic form for other tools.

mod access;
mod attr;
mod custom;
mod generic;
mod names;
mod recent;

use std::io;

use names::Names;
use recent::{RecentDicts, RecentTexts};

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
    /// Types, accesses of either form and dictionaries of the generic form.
    types: RecentTexts,
    custom_accesses: RecentTexts,
    generic_accesses: RecentTexts,
    dicts: RecentDicts,
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

/// `00` to `99`.
const PAIRS: &str = {
    const BYTES: [u8; 200] = {
        let mut bytes = [b'0'; 200];
        let mut i = 0;
        while i < 100 {
            bytes[2 * i] += (i / 10) as u8;
            bytes[2 * i + 1] += (i % 10) as u8;
            i += 1;
        }
        bytes
    };
    match str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// Appends an integer.
fn push_int(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_magnitude(out, value.unsigned_abs());
}

/// As [`push_int`], for what has its sign elsewhere.
fn push_magnitude(out: &mut String, mut rest: u64) {
    let mut pairs = [0u8; 10];
    let mut count = 0;
    while rest >= 100 {
        pairs[count] = (rest % 100) as u8;
        rest /= 100;
        count += 1;
    }
    if rest < 10 {
        out.push(char::from(b'0' + rest as u8));
    } else {
        out.push_str(pair(rest as u8));
    }
    for &digits in pairs[..count].iter().rev() {
        out.push_str(pair(digits));
    }
}

fn pair(digits: u8) -> &'static str {
    let at = 2 * usize::from(digits);
    &PAIRS[at..at + 2]
}

impl Printer<'_> {
    fn new(ir: &Ir, options: PrintOptions) -> Printer<'_> {
        Printer {
            ir,
            options,
            names: Names::new(ir),
            out: String::new(),
            depth: 0,
            types: RecentTexts::default(),
            custom_accesses: RecentTexts::default(),
            generic_accesses: RecentTexts::default(),
            dicts: RecentDicts::default(),
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

#[cfg(test)]
mod tests {
    use super::push_int;

    #[test]
    fn integers_print_as_the_standard_library_prints_them() {
        let edges = (0..19).flat_map(|n| [10i64.pow(n) - 1, 10i64.pow(n), 10i64.pow(n) + 1]);
        for value in edges
            .chain([i64::MAX, 42, 305, 99_007])
            .flat_map(|n| [n, -n])
            .chain([i64::MIN])
        {
            let mut text = String::new();
            push_int(&mut text, value);
            assert_eq!(text, value.to_string());
        }
    }
}
