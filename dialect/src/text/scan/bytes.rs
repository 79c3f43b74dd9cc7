//! What bytes are, and where runs of them end.

use std::string::FromUtf8Error;

use super::HoleKind;

pub(super) const MARK_NAME: u8 = 1;
pub(super) const MARK_INT: u8 = 2;
pub(super) const MARK_FLOAT: u8 = 3;
pub(super) const MARK_STR: u8 = 4;

pub(super) const ID: u8 = 1; // may continue a word
pub(super) const DIGIT: u8 = 2;
pub(super) const NAME: u8 = 4; // may continue a `%name`
pub(super) const SYMBOL: u8 = 8; // may continue a `@name` or `^name`
pub(super) const BLANK: u8 = 16;
pub(super) const COMMA: u8 = 32;
pub(super) const OTHER: u8 = 64; // in `array<f32: 1.0e+5, -1>`

static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let c = i as u8;
        let mut class = 0;
        if c.is_ascii_alphabetic() || c == b'_' || c == b'$' {
            class = ID | NAME | SYMBOL;
        } else if c.is_ascii_digit() {
            class = ID | NAME | SYMBOL | DIGIT;
        } else if c == b'.' {
            class = NAME | SYMBOL | OTHER;
        } else if c == b'-' {
            class = NAME | OTHER;
        } else if matches!(c, b'<' | b':' | b'+') {
            class = OTHER;
        } else if c == b' ' {
            class = BLANK;
        } else if c == b',' {
            class = COMMA;
        }
        table[i] = class;
        i += 1;
    }
    table
};

pub(super) fn class(byte: u8) -> u8 {
    CLASS[byte as usize]
}

/// Behind the bytes from `at` on that are of one of `classes`.
#[inline]
pub(super) fn run_end(src: &[u8], at: usize, classes: u8) -> usize {
    let rest = src.get(at..).unwrap_or(&[]);
    let len = rest.iter().position(|&c| class(c) & classes == 0);
    at + len.unwrap_or(rest.len())
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
    !text.is_empty() && text.bytes().all(is_name_byte)
}

/// Whether a byte can be part of what stands behind `%`.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    class(byte) & NAME != 0
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

/// A number that begins at a digit: where it ends, and what it is if it is a hole.
#[inline]
pub(super) fn number(src: &[u8], from: usize) -> (usize, Option<(HoleKind, u8)>, i64) {
    let mut i = from;
    let mut value: i64 = 0;
    for &c in src.get(from..).unwrap_or(&[]) {
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
    odd_number(src, from, i, value)
}

/// A number whose digits end at `i`, but which may go on.
#[inline(never)]
fn odd_number(
    src: &[u8],
    from: usize,
    mut i: usize,
    value: i64,
) -> (usize, Option<(HoleKind, u8)>, i64) {
    let next = src.get(i).copied().unwrap_or(b' ');
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
    i = run_end(src, i, ID);
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
