//! Texts changed: of the same shape, or damaged.

use std::collections::HashMap;

use super::words::{INDICES, REGISTERS, STRINGS, TILES};
use super::{Generator, Random};

impl Generator {
    /// A byte or two gone wrong.
    pub(super) fn damaged(&mut self, text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let at = self.random.below(chars.len());
        let mut out: String = chars[..at].iter().collect();
        match self.random.below(3) {
            0 => out.push(chars[(at + 1) % chars.len()]),
            1 => out.push_str(self.random.pick(&[
                "(", "]", "}", "<", ",", "\"", "%", "@", "^", "=", "//", ":", "é", "0", "x", "-",
                "as ",
            ])),
            _ => {}
        }
        out.extend(&chars[(at + 1).min(chars.len())..]);
        out
    }

    /// The text with some names, numbers and strings replaced by others: its shape stays, what fills it does not.
    pub fn variant(&mut self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut renamed: HashMap<&str, usize> = HashMap::new();
        let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'$';
        let mut out = String::new();
        let mut at = 0;
        while at < bytes.len() {
            let c = bytes[at];
            let start = at;
            if c == b'%' || c == b'^' {
                at += 1;
                while at < bytes.len()
                    && (word(bytes[at]) || bytes[at] == b'.' || bytes[at] == b'-')
                {
                    at += 1;
                }
                let name = &text[start + 1..at];
                let pool = if INDICES.contains(&name) {
                    INDICES
                } else if REGISTERS.contains(&name) {
                    REGISTERS
                } else {
                    TILES
                };
                if name.starts_with("new") {
                    let number = *renamed.entry(name).or_insert_with(|| {
                        self.fresh += 1;
                        self.fresh
                    });
                    out.push_str(&format!("{}new{number}", c as char));
                } else if c == b'%' && self.random.percent(25) {
                    out.push('%');
                    out.push_str(self.random.pick(pool));
                } else {
                    out.push_str(&text[start..at]);
                }
            } else if c.is_ascii_digit() {
                while at < bytes.len() && (word(bytes[at]) || bytes[at] == b'.') {
                    at += 1;
                }
                let number = &text[start..at];
                let replace = self.random.percent(30);
                if number.bytes().all(|c| c.is_ascii_digit()) && replace {
                    out.push_str(&self.int());
                } else if number.contains('.') && replace {
                    out.push_str(&self.float());
                } else {
                    out.push_str(number);
                }
            } else if c == b'"' {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                if self.random.percent(20) {
                    out.push_str(self.random.pick(STRINGS));
                } else {
                    out.push_str(&text[start..at]);
                }
            } else if word(c) {
                while at < bytes.len() && word(bytes[at]) {
                    at += 1;
                }
                out.push_str(&text[start..at]);
            } else {
                at += 1;
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                out.push_str(&text[start..at]);
            }
        }
        out
    }
}

/// The text with bytes, lines and pieces changed, as a file damaged or edited in haste.
pub fn mutated(random: &mut Random, text: &str) -> String {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "\"",
        "%",
        "@",
        "^",
        "#",
        "!",
        "=",
        ",",
        ":",
        "<-",
        "->",
        "//",
        "\n",
        "\r",
        "\t",
        " ",
        "\0",
        "é",
        "\u{202e}",
        "({",
        "})",
        "loop ",
        "%x",
        "-1",
        "0x",
        "99999999999999999999",
        "dense<",
        "loc(",
        "as ",
        "bir.module",
        "bir.func @f {",
        "^bb0:",
        "\"bir.alloc\"",
        ": () -> ()",
        "{-#",
        "#-}",
        "#a = ",
        "!b = ",
        "// -----",
        "unless_first(",
        "[[[[[[",
        "at [",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..random.below(6) + 1 {
        if chars.is_empty() {
            break;
        }
        let at = random.below(chars.len());
        let len = random.below(40).min(chars.len() - at);
        match random.below(8) {
            0 => {
                chars.remove(at);
            }
            1 | 2 => {
                let piece = random.pick(PIECES);
                chars.splice(at..at, piece.chars());
            }
            3 => {
                chars.drain(at..at + len);
            }
            4 => {
                let copy: Vec<char> = chars[at..at + len].to_vec();
                let to = random.below(chars.len());
                chars.splice(to..to, copy);
            }
            5 => chars.truncate(at),
            6 => chars[at] = char::from(random.below(128) as u8),
            _ => {
                let other = random.below(chars.len());
                chars.swap(at, other);
            }
        }
    }
    chars.into_iter().collect()
}
