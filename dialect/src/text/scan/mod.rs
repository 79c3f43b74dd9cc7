//! One pass over the bytes of a statement: where it ends, its shape, its holes.
//!
//! The *shape* of a statement is its bytes with every name, decimal number and free string
//! replaced by a mark; what was replaced are its *holes*. Statements of one shape parse alike, so
//! pest sees each shape once (see `recipe`). Digits that stand together with letters
//! (`128x512xf32`, `0x1F`) stay part of the shape, as do strings the dialect gives meaning to.

//!
//! * this file – the pass; `bytes` – what bytes are and where runs of them end; `pattern` – shapes,
//!   and statements that are found to be of a known one without the pass.

mod bytes;
mod pattern;

use super::diag::{Diagnostic, Place};
use bytes::{
    BLANK, COMMA, DIGIT, ID, MARK_NAME, MARK_STR, NAME, OTHER, SYMBOL, class, number, run_end,
};
use pattern::Shape;

pub(crate) use bytes::{is_name, is_name_byte, line_end, skip_blank, string_end, unescaped};
pub(crate) use pattern::{Pattern, Piece};

/// What a hole holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoleKind {
    /// `%name`, `^name` or `@name`, without the sign.
    Name,
    /// Decimal digits; the value is in `value`.
    Int,
    /// A decimal number with a point or exponent.
    Float,
    /// A string, quotes included.
    Str,
}

/// A piece of a statement that its shape leaves open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) kind: HoleKind,
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// Value of an `Int`.
    pub(crate) value: i64,
}

/// How a statement ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// At the end of a line, of the file, or before a closing brace.
    Plain,
    /// With the brace that opens its region.
    Region,
    /// With `({`, which opens the first region of a generic operation.
    GenericRegion,
}

/// A scanned statement; the buffers are reused from one to the next.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) start: usize,
    /// Behind the last byte of the statement, the opening brace included.
    pub(crate) end: usize,
    pub(crate) holes: Vec<Hole>,
    shape: Shape,
    /// Whether the shape has other blanks than the text, or ended where it might have gone on.
    normalized: bool,
}

/// Deepest nesting of brackets inside one statement.
pub(crate) const MAX_DEPTH: usize = 256;

const LOCATION_TYPE: &[u8] = b"!bir.mem<";

/// Whether the statement that begins with this word opens a region with `{`.
fn opens_region(word: &[u8]) -> bool {
    matches!(
        word,
        b"bir.module" | b"bir.func" | b"loop" | b"while" | b"module" | b"builtin.module"
    )
}

fn first_word(src: &[u8], start: usize) -> &[u8] {
    let rest = src.get(start..).unwrap_or(&[]);
    let len = rest
        .iter()
        .position(|&c| class(c) & ID == 0 && c != b'.')
        .unwrap_or(rest.len());
    &rest[..len]
}

/// Whether the brace at `at`, outside brackets, opens a dictionary in front of a region's brace.
fn is_dict(src: &[u8], at: usize) -> bool {
    let mut i = skip_blank(src, at + 1);
    let key_start = i;
    if src.get(i) == Some(&b'"') {
        match string_end(src, i) {
            Some(end) => i = end,
            None => return false,
        }
        i = skip_blank(src, i);
        return src.get(i) == Some(&b'=');
    }
    while src.get(i).is_some_and(|&c| class(c) & ID != 0 || c == b'.') {
        i += 1;
    }
    let empty = i == key_start;
    i = skip_blank(src, i);
    match src.get(i) {
        Some(b'=' | b',') => !empty,
        Some(b'}') => src.get(skip_blank(src, i + 1)) == Some(&b'{'),
        _ => false,
    }
}

impl Scanned {
    /// Scans the statement at `start`. `keep` tells which string contents belong to the shape.
    ///
    /// On an error, `end` is where reading can go on.
    pub(crate) fn scan(
        &mut self,
        src: &[u8],
        start: usize,
        keep: impl Fn(&[u8]) -> bool,
    ) -> Result<End, Box<Diagnostic>> {
        self.start = start;
        self.shape.len = 0;
        self.normalized = false;
        self.holes.clear();
        let mut depth = 0usize;
        let mut angles = 0usize;
        let mut stack = [0u8; MAX_DEPTH];
        let mut i = start;
        // What is not yet copied to the shape; copied in one piece when a hole comes.
        let mut from = start;
        // Whether a line end here would be inside the statement.
        let mut open_end = false;
        // Behind the last byte that is neither blank nor comment.
        let mut solid = start;
        let mut braces = false;
        while let Some(&c) = src.get(i) {
            let class_c = class(c);
            if class_c & ID != 0 {
                if class_c & DIGIT != 0 {
                    let (end, kind, value) = number(src, i);
                    if let Some((kind, mark)) = kind {
                        self.shape.extend(src, from, i);
                        self.shape.push(mark);
                        self.hole(kind, i, end, value);
                        from = end;
                    }
                    i = end;
                } else {
                    let word = i;
                    i = run_end(src, i + 1, ID);
                    // Segment sizes decide what operands mean, so they belong to the shape.
                    if c == b'a' && &src[word..i] == b"array" && src.get(i) == Some(&b'<') {
                        i = run_end(src, i, ID | BLANK | COMMA | OTHER);
                    }
                }
                solid = i;
                open_end = false;
                i += usize::from(src.get(i) == Some(&b' '));
                continue;
            }
            match c {
                b' ' => {
                    i += 1;
                    continue;
                }
                b',' => {
                    i += 1;
                    solid = i;
                    open_end = true;
                    i += usize::from(src.get(i) == Some(&b' '));
                    continue;
                }
                // The type of a location is shape; no digits of it stand alone.
                b'!' if src[i..].starts_with(LOCATION_TYPE) => {
                    let end = run_end(src, i + LOCATION_TYPE.len(), ID | BLANK | COMMA);
                    i = if src.get(end) == Some(&b'>') {
                        end + 1
                    } else {
                        i + 1
                    };
                }
                // So are the names of attributes and types, with the digits in them.
                b'#' | b'!' => {
                    let names = src.get(i + 1).is_some_and(u8::is_ascii_alphabetic);
                    i = if names {
                        run_end(src, i + 1, SYMBOL)
                    } else {
                        i + 1
                    };
                }
                b':' | b'+' | b'*' | b'-' | b'.' => {
                    i += 1;
                    solid = i;
                    open_end = false;
                    i += usize::from(src.get(i) == Some(&b' '));
                    continue;
                }
                b'%' | b'^' | b'@' => {
                    let name = i + 1;
                    i = name;
                    i = run_end(src, i, if c == b'%' { NAME } else { SYMBOL });
                    // An empty name (`@"quoted"`, `^^`) is left to the grammar, and so is what is a word to it.
                    if i > name && !(c == b'@' && matches!(&src[name..i], b"complete" | b"read")) {
                        self.shape.extend(src, from, name);
                        self.shape.push(MARK_NAME);
                        self.hole(HoleKind::Name, name, i, 0);
                        from = i;
                    }
                }
                b'"' => {
                    let Some(end) = string_end(src, i) else {
                        self.end = line_end(src, i);
                        return Err(Box::new(
                            Diagnostic::error(
                                Place::Span(i..self.end),
                                "string is not closed on its line",
                            )
                            .help("write line ends inside strings as `\\n`"),
                        ));
                    };
                    if src[i..end].contains(&b'\\') && unescaped(&src[i..end]).is_err() {
                        self.end = line_end(src, i);
                        return Err(Box::new(Diagnostic::error(
                            Place::Span(i..end),
                            "the bytes this string stands for are not UTF-8",
                        )));
                    }
                    // The name of a generic operation stands first, or behind `=` outside braces.
                    let names_op = i == start
                        || src[start] == b'%' && !braces && src.get(solid - 1) == Some(&b'=');
                    if !names_op && !keep(&src[i + 1..end - 1]) {
                        self.shape.extend(src, from, i);
                        self.shape.push(MARK_STR);
                        self.hole(HoleKind::Str, i, end, 0);
                        from = end;
                    }
                    i = end;
                }
                b'\n' | b'\r' | b'\t' => {
                    if c == b'\n' && depth == 0 && !open_end {
                        break;
                    }
                    self.normalized = true;
                    self.shape.extend(src, from, i);
                    self.shape.push(b' ');
                    i += 1;
                    from = i;
                    continue;
                }
                b'/' if src.get(i + 1) == Some(&b'/') => {
                    if depth == 0 && !open_end {
                        break;
                    }
                    self.normalized = true;
                    self.shape.extend(src, from, i);
                    i = line_end(src, i);
                    from = i;
                    continue;
                }
                b'{' if depth == 0 && opens_region(first_word(src, start)) && !is_dict(src, i) => {
                    self.shape.extend(src, from, i + 1);
                    self.end = i + 1;
                    return Ok(End::Region);
                }
                b'(' if depth == 0 && src.get(skip_blank(src, i + 1)) == Some(&b'{') => {
                    self.shape.extend(src, from, i);
                    self.mark_shape(b"({");
                    self.end = skip_blank(src, i + 1) + 1;
                    return Ok(End::GenericRegion);
                }
                b'(' | b'[' | b'{' => {
                    if depth == MAX_DEPTH {
                        self.end = line_end(src, i);
                        return Err(too_deep(i));
                    }
                    stack[depth] = c;
                    depth += 1;
                    braces |= c == b'{';
                    i += 1;
                }
                b'}' if depth == 0 => break,
                b')' | b']' | b'}' => {
                    let open = match c {
                        b')' => b'(',
                        b']' => b'[',
                        _ => b'{',
                    };
                    if depth == 0 || stack[depth - 1] != open {
                        self.end = line_end(src, i);
                        return Err(Box::new(Diagnostic::error(
                            Place::Span(i..i + 1),
                            format!("`{}` closes no `{}`", c as char, open as char),
                        )));
                    }
                    depth -= 1;
                    i += 1;
                }
                b'<' if src.get(i + 1) == Some(&b'-') => {
                    i += 2;
                    solid = i;
                    open_end = true;
                    continue;
                }
                b'<' => {
                    angles += 1;
                    if angles > MAX_DEPTH {
                        self.end = line_end(src, i);
                        return Err(too_deep(i));
                    }
                    i += 1;
                }
                b'>' => {
                    angles = angles.saturating_sub(1);
                    i += 1;
                }
                b'=' => {
                    i += 1;
                    solid = i;
                    open_end = true;
                    continue;
                }
                0..=31 | 127 => {
                    self.end = line_end(src, i);
                    return Err(Box::new(Diagnostic::error(
                        Place::Span(i..i + 1),
                        format!("unexpected control character 0x{c:02x}"),
                    )));
                }
                _ => i += 1,
            }
            solid = i;
            open_end = false;
        }
        if depth > 0 {
            self.end = line_end(src, start);
            let open = stack[depth - 1] as char;
            return Err(Box::new(Diagnostic::error(
                Place::Span(start..self.end),
                format!("`{open}` is not closed before the end of the file"),
            )));
        }
        if solid > from {
            self.shape.extend(src, from, solid);
        }
        self.end = solid;
        self.normalized |= open_end;
        Ok(End::Plain)
    }

    fn hole(&mut self, kind: HoleKind, from: usize, to: usize, value: i64) {
        self.holes.push(Hole {
            kind,
            start: from as u32,
            len: (to - from) as u32,
            value,
        });
    }
}

fn too_deep(at: usize) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(
        Place::Span(at..at + 1),
        format!("brackets nest deeper than {MAX_DEPTH} in one statement"),
    ))
}
