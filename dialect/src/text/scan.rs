//! One pass over the bytes of a statement: where it ends, its shape, its holes.
//!
//! The *shape* of a statement is its bytes with every name, decimal number and free string
//! replaced by a mark; what was replaced are its *holes*. Statements of one shape parse alike, so
//! pest sees each shape once (see `recipe`). Digits that stand together with letters
//! (`128x512xf32`, `0x1F`) stay part of the shape, as do strings the dialect gives meaning to.

use std::string::FromUtf8Error;

use super::diag::{Diagnostic, Place};

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
    pub(crate) shape: Vec<u8>,
    pub(crate) holes: Vec<Hole>,
}

/// Deepest nesting of brackets inside one statement.
pub(crate) const MAX_DEPTH: usize = 256;

const MARK_NAME: u8 = 1;
const MARK_INT: u8 = 2;
const MARK_FLOAT: u8 = 3;
const MARK_STR: u8 = 4;

const ID: u8 = 1; // may continue a word
const DIGIT: u8 = 2;
const NAME: u8 = 4; // may continue a `%name`

static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let c = i as u8;
        let mut class = 0;
        if c.is_ascii_alphabetic() || c == b'_' || c == b'$' {
            class = ID | NAME;
        } else if c.is_ascii_digit() {
            class = ID | NAME | DIGIT;
        } else if c == b'.' || c == b'-' {
            class = NAME;
        }
        table[i] = class;
        i += 1;
    }
    table
};

fn class(byte: u8) -> u8 {
    CLASS[byte as usize]
}

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

/// End of the string that starts at `at`, behind its closing quote.
pub(crate) fn string_end(src: &[u8], at: usize) -> Option<usize> {
    let mut i = at + 1;
    loop {
        match src.get(i)? {
            b'"' => return Some(i + 1),
            b'\\' => i += 2,
            b'\n' => return None,
            _ => i += 1,
        }
    }
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

/// Behind blanks, line ends and comments.
pub(crate) fn skip_blank(src: &[u8], mut at: usize) -> usize {
    loop {
        match src.get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(b'/') if src.get(at + 1) == Some(&b'/') => at = line_end(src, at),
            _ => return at,
        }
    }
}

/// Whether a text can stand behind `%`.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| class(c) & NAME != 0)
}

/// The text a quoted string stands for: `\\`, `\"`, `\n`, `\t` and bytes as `\HH`.
pub(crate) fn unescaped(quoted: &[u8]) -> Result<String, FromUtf8Error> {
    let inner = match quoted {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(high) => {
                let mut ahead = rest.clone();
                match (hex_digit(high), ahead.next().and_then(hex_digit)) {
                    (Some(high), Some(low)) => {
                        rest = ahead;
                        bytes.push(high << 4 | low);
                    }
                    _ => bytes.push(high),
                }
            }
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8(bytes)
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// At the line end at or behind `at`.
pub(crate) fn line_end(src: &[u8], at: usize) -> usize {
    src.get(at..)
        .and_then(|rest| rest.iter().position(|&c| c == b'\n'))
        .map_or(src.len(), |len| at + len)
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
        self.shape.clear();
        self.holes.clear();
        let region_word = opens_region(first_word(src, start));
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
            if class_c & DIGIT != 0 {
                let (end, kind, value) = number(src, i);
                if let Some((kind, mark)) = kind {
                    self.shape.extend_from_slice(&src[from..i]);
                    self.shape.push(mark);
                    self.hole(kind, i, end, value);
                    from = end;
                }
                i = end;
                solid = i;
                open_end = false;
                continue;
            }
            if class_c & ID != 0 {
                let word = i;
                i += 1;
                while src.get(i).is_some_and(|&c| class(c) & ID != 0) {
                    i += 1;
                }
                // Segment sizes decide what operands mean, so they belong to the shape.
                if c == b'a' && &src[word..i] == b"array" && src.get(i) == Some(&b'<') {
                    while src.get(i).is_some_and(|&c| c != b'>' && c != b'\n') {
                        i += 1;
                    }
                }
                solid = i;
                open_end = false;
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
                    continue;
                }
                b':' | b'+' | b'*' | b'-' | b'.' | b'#' | b'!' => i += 1,
                b'%' | b'^' | b'@' => {
                    let name = i + 1;
                    i = name;
                    let name_class = if c == b'%' { NAME } else { ID };
                    while src
                        .get(i)
                        .is_some_and(|&n| class(n) & name_class != 0 || n == b'.')
                    {
                        i += 1;
                    }
                    // An empty name (`@"quoted"`, `^^`) is left to the grammar.
                    if i > name {
                        self.shape.extend_from_slice(&src[from..name]);
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
                        self.shape.extend_from_slice(&src[from..i]);
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
                    self.shape.extend_from_slice(&src[from..i]);
                    self.shape.push(b' ');
                    i += 1;
                    from = i;
                    continue;
                }
                b'/' if src.get(i + 1) == Some(&b'/') => {
                    if depth == 0 && !open_end {
                        break;
                    }
                    self.shape.extend_from_slice(&src[from..i]);
                    i = line_end(src, i);
                    from = i;
                    continue;
                }
                b'{' if depth == 0 && region_word && !is_dict(src, i) => {
                    self.shape.extend_from_slice(&src[from..=i]);
                    self.end = i + 1;
                    return Ok(End::Region);
                }
                b'(' if depth == 0 && src.get(skip_blank(src, i + 1)) == Some(&b'{') => {
                    self.shape.extend_from_slice(&src[from..i]);
                    self.shape.extend_from_slice(b"({");
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
            self.shape.extend_from_slice(&src[from..solid]);
        }
        self.end = solid;
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

/// A number that begins at a digit: where it ends, and what it is if it is a hole.
fn number(src: &[u8], from: usize) -> (usize, Option<(HoleKind, u8)>, i64) {
    let mut i = from;
    let mut value: i64 = 0;
    while let Some(&c) = src.get(i) {
        if class(c) & DIGIT == 0 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(c - b'0'));
        i += 1;
    }
    let next = src.get(i).copied().unwrap_or(b' ');
    if class(next) & (ID | NAME) == 0 && i - from <= 18 {
        return (i, Some((HoleKind::Int, MARK_INT)), value);
    }
    let float = Some((HoleKind::Float, MARK_FLOAT));
    if next == b'.' {
        let mut j = i + 1;
        while src.get(j).is_some_and(|&c| class(c) & DIGIT != 0) {
            j += 1;
        }
        j = exponent(src, j).unwrap_or(j);
        if src.get(j).is_none_or(|&c| class(c) & ID == 0) {
            return (j, float, 0);
        }
    } else if let Some(j) = exponent(src, i)
        && src.get(j).is_none_or(|&c| class(c) & ID == 0)
    {
        return (j, float, 0);
    } else if class(next) & ID == 0 && i - from <= 18 {
        return (i, Some((HoleKind::Int, MARK_INT)), value);
    }
    // Digits inside a word, or more of them than 64 bits hold: part of the shape.
    while src.get(i).is_some_and(|&c| class(c) & ID != 0) {
        i += 1;
    }
    (i, None, 0)
}

/// End of the exponent that begins at `at`, if one does.
fn exponent(src: &[u8], at: usize) -> Option<usize> {
    if !matches!(src.get(at), Some(b'e' | b'E')) {
        return None;
    }
    let mut j = at + 1;
    if matches!(src.get(j), Some(b'+' | b'-')) {
        j += 1;
    }
    let first = j;
    while src.get(j).is_some_and(|&c| class(c) & DIGIT != 0) {
        j += 1;
    }
    (j > first).then_some(j)
}

fn too_deep(at: usize) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(
        Place::Span(at..at + 1),
        format!("brackets nest deeper than {MAX_DEPTH} in one statement"),
    ))
}
