//! Shapes: how they are gathered, and how a statement is found to be of a known one.

use super::bytes::{
    DIGIT, MARK_FLOAT, MARK_INT, MARK_NAME, MARK_STR, NAME, SYMBOL, class, number, run_end,
    string_end,
};
use super::{HoleKind, Scanned};

impl HoleKind {
    /// What stands for such a hole in a shape.
    fn mark(self) -> u8 {
        match self {
            HoleKind::Name => MARK_NAME,
            HoleKind::Int => MARK_INT,
            HoleKind::Float => MARK_FLOAT,
            HoleKind::Str => MARK_STR,
        }
    }
}

/// A piece of a shape: bytes, and the mark of the hole behind them, if one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    len: u32,
    mark: Option<u8>,
}

/// A shape with its pieces.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<'a> {
    pub(crate) shape: &'a [u8],
    pub(crate) pieces: &'a [Piece],
}

/// The bytes of a shape, in a buffer that is longer than they are.
#[derive(Default)]
pub(super) struct Shape {
    buffer: Vec<u8>,
    pub(super) len: usize,
}

impl Shape {
    /// Bytes copied at once where a piece is at most as long: cheaper than so many of them.
    const CHUNK: usize = 32;

    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        match self.buffer.get_mut(self.len) {
            Some(slot) => *slot = byte,
            None => {
                self.buffer.resize(self.len + 16 * Self::CHUNK, 0);
                self.buffer[self.len] = byte;
            }
        }
        self.len += 1;
    }

    /// Appends `src[from..to]`.
    #[inline]
    pub(super) fn extend(&mut self, src: &[u8], from: usize, to: usize) {
        let len = to - from;
        let chunk = src.get(from..).and_then(|rest| rest.first_chunk());
        let slot = self
            .buffer
            .get_mut(self.len..)
            .and_then(|rest| rest.first_chunk_mut::<{ Self::CHUNK }>());
        match (chunk, slot) {
            (Some(chunk), Some(slot)) if len <= Self::CHUNK => *slot = *chunk,
            _ => self.extend_slowly(&src[from..to]),
        }
        self.len += len;
    }

    #[inline(never)]
    fn extend_slowly(&mut self, piece: &[u8]) {
        let end = self.len + piece.len();
        if self.buffer.len() < end {
            self.buffer.resize(end + 16 * Self::CHUNK, 0);
        }
        self.buffer[self.len..end].copy_from_slice(piece);
    }
}

/// Whether the first `len` bytes of both are there and equal.
#[inline]
fn begin_alike(a: &[u8], b: &[u8], len: usize) -> bool {
    match (a.first_chunk(), b.first_chunk()) {
        // Most pieces are shorter than a call to compare them.
        (Some(&a), Some(&b)) if len <= 8 => {
            let differing = u64::from_le_bytes(a) ^ u64::from_le_bytes(b);
            differing.trailing_zeros() as usize >= 8 * len
        }
        _ => match (a.get(..len), b.get(..len)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
    }
}

impl Scanned {
    /// The shape of the statement.
    pub(crate) fn shape(&self) -> &[u8] {
        &self.shape.buffer[..self.shape.len]
    }

    /// Appends the pieces of the shape, of a statement whose bytes they are as they stand: one on a
    /// single line, without tabs or comments.
    pub(crate) fn pieces(&self, out: &mut Vec<Piece>) {
        let in_holes: usize = self.holes.iter().map(|hole| hole.len as usize).sum();
        let text = self.end - self.start;
        if self.normalized || text - in_holes + self.holes.len() != self.shape.len {
            return;
        }
        let mut rest = self.start;
        for hole in &self.holes {
            let start = hole.start as usize;
            out.push(Piece {
                len: (start - rest) as u32,
                mark: Some(hole.kind.mark()),
            });
            rest = start + hole.len as usize;
        }
        out.push(Piece {
            len: (self.end - rest) as u32,
            mark: None,
        });
    }

    /// Whether the statement at `start` is one of a shape, and ends its line; if so the result is
    /// that of [`scan`](Self::scan), for far less work.
    ///
    /// It is, because what `scan` does at a byte depends on the bytes before it alone, holes
    /// counting by their kind: where pieces are equal byte by byte and holes in between end where
    /// `scan` would end them, it takes the same steps. What it looks ahead at stays in the piece,
    /// or differs in nothing that it asks about.
    pub(crate) fn matches(
        &mut self,
        src: &[u8],
        start: usize,
        pattern: Pattern<'_>,
        keep: impl Fn(&[u8]) -> bool,
    ) -> bool {
        self.holes.clear();
        let mut shape = pattern.shape;
        let mut i = start;
        for piece in pattern.pieces {
            let len = piece.len as usize;
            let rest = src.get(i..).unwrap_or(&[]);
            if !begin_alike(rest, shape, len) {
                return false;
            }
            let (wanted, behind) = shape.split_at(len);
            i += len;
            let Some(mark) = piece.mark else { break };
            shape = behind.get(1..).unwrap_or(&[]);
            let (end, kind, value) = match mark {
                MARK_NAME => {
                    // Names stand behind their sign.
                    let sign = wanted.last();
                    let end = run_end(src, i, if sign == Some(&b'%') { NAME } else { SYMBOL });
                    if end == i {
                        return false;
                    }
                    (end, HoleKind::Name, 0)
                }
                MARK_STR => {
                    let end = match src.get(i) {
                        Some(b'"') => string_end(src, i),
                        _ => None,
                    };
                    let Some(end) = end else { return false };
                    let text = &src[i + 1..end - 1];
                    if text.contains(&b'\\') || keep(text) {
                        return false;
                    }
                    (end, HoleKind::Str, 0)
                }
                _ => {
                    if src.get(i).is_none_or(|&c| class(c) & DIGIT == 0) {
                        return false;
                    }
                    match number(src, i) {
                        (end, Some((kind, found)), value) if found == mark => (end, kind, value),
                        _ => return false,
                    }
                }
            };
            self.hole(kind, i, end, value);
            i = end;
        }
        if src.get(i) != Some(&b'\n') {
            return false;
        }
        self.start = start;
        self.end = i;
        self.shape.len = 0;
        true
    }

    /// Makes the shape one of its own kind.
    pub(crate) fn mark_shape(&mut self, mark: &[u8]) {
        self.shape.extend(mark, 0, mark.len());
    }
}
