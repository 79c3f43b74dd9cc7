//! Side tables: what only some operations carry, kept out of the operation's own row.
//!
//! * columns – per-operation integers or word lists a dialect declares (BIR: `id`, `deps`);
//!   distinct values per operation cost four bytes here instead of a dictionary each;
//! * locations stated by the program;
//! * comments.

use hashbrown::HashMap;

use super::entity::{Block, Column, Loc, Op};
use super::storage::Ir;

/// What one cell of a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// An integer below `u32::MAX`.
    Int,
    /// A list of words.
    Words,
}

#[derive(Clone)]
struct ColumnData {
    name: String,
    kind: ColumnKind,
    /// Per operation: the integer, or the start in `words`; `u32::MAX` where absent.
    cells: Vec<u32>,
    /// Lists, each preceded by its length.
    words: Vec<u64>,
}

/// One comment line, with its `//`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comment {
    /// `// text`
    Line(Box<str>),
    /// An empty line between statements.
    Blank,
}

/// Comments around one operation.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Trivia {
    /// On lines of their own, before it.
    pub before: Vec<Comment>,
    /// At the end of its line; for an operation with a region, behind the opening brace.
    pub beside: Option<Box<str>>,
    /// Behind its closing brace.
    pub closing: Option<Box<str>>,
}

#[derive(Clone, Default)]
pub(super) struct SideTables {
    columns: Vec<ColumnData>,
    locs: Vec<Loc>,
    trivia: HashMap<Op, Trivia>,
    block_end: HashMap<Block, Vec<Comment>>,
}

impl SideTables {
    pub(super) fn loc(&self, op: Op) -> Option<Loc> {
        self.locs.get(op.index()).and_then(|loc| loc.some())
    }

    pub(super) fn set_loc(&mut self, op: Op, loc: Option<Loc>) {
        match loc {
            None => {
                if let Some(cell) = self.locs.get_mut(op.index()) {
                    *cell = Loc::NONE;
                }
            }
            Some(loc) => {
                if self.locs.len() <= op.index() {
                    self.locs.resize(op.index() + 1, Loc::NONE);
                }
                self.locs[op.index()] = loc;
            }
        }
    }

    pub(super) fn forget(&mut self, op: Op) {
        self.trivia.remove(&op);
        self.set_loc(op, None);
        for column in &mut self.columns {
            if let Some(cell) = column.cells.get_mut(op.index()) {
                *cell = u32::MAX;
            }
        }
    }

    pub(super) fn move_trivia(&mut self, from: Op, to: Op) {
        if let Some(moved) = self.trivia.remove(&from) {
            let kept = self.trivia.entry(to).or_default();
            if kept.before.is_empty() {
                kept.before = moved.before;
            }
            kept.beside = kept.beside.take().or(moved.beside);
            kept.closing = kept.closing.take().or(moved.closing);
        }
    }

    pub(super) fn copy_columns(&mut self, from: Op, to: Op) {
        if let Some(loc) = self.loc(from) {
            self.set_loc(to, Some(loc));
        }
        for column in &mut self.columns {
            if let Some(&cell) = column.cells.get(from.index())
                && cell != u32::MAX
            {
                set_cell(&mut column.cells, to, cell);
            }
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.locs.capacity() * 4
            + self
                .columns
                .iter()
                .map(|column| column.cells.capacity() * 4 + column.words.capacity() * 8)
                .sum::<usize>()
    }
}

fn set_cell(cells: &mut Vec<u32>, op: Op, cell: u32) {
    if cells.len() <= op.index() {
        cells.resize(op.index() + 1, u32::MAX);
    }
    cells[op.index()] = cell;
}

impl Ir {
    /// Declares a column, or finds the one of that name.
    pub fn column(&mut self, name: &str, kind: ColumnKind) -> Column {
        let known = self.side.columns.iter().position(|c| c.name == name);
        let index = known.unwrap_or_else(|| {
            self.side.columns.push(ColumnData {
                name: name.to_owned(),
                kind,
                cells: Vec::new(),
                words: Vec::new(),
            });
            self.side.columns.len() - 1
        });
        debug_assert!(self.side.columns[index].kind == kind);
        Column::new(index)
    }

    /// The integer an operation has in a column.
    #[inline]
    pub fn int_cell(&self, column: Column, op: Op) -> Option<u32> {
        let cells = &self.side.columns[column.index()].cells;
        cells
            .get(op.index())
            .copied()
            .filter(|&cell| cell != u32::MAX)
    }

    /// Sets or clears an integer.
    pub fn set_int_cell(&mut self, column: Column, op: Op, value: Option<u32>) {
        let cells = &mut self.side.columns[column.index()].cells;
        if value.is_some() || op.index() < cells.len() {
            set_cell(cells, op, value.unwrap_or(u32::MAX));
        }
    }

    /// The words an operation has in a column.
    #[inline]
    pub fn words_cell(&self, column: Column, op: Op) -> Option<&[u64]> {
        let data = &self.side.columns[column.index()];
        let &cell = data.cells.get(op.index())?;
        let start = cell as usize;
        let &len = data.words.get(start)?;
        data.words.get(start + 1..start + 1 + len as usize)
    }

    /// Sets or clears a word list.
    pub fn set_words_cell(&mut self, column: Column, op: Op, words: Option<&[u64]>) {
        let data = &mut self.side.columns[column.index()];
        let cell = match words {
            Some(words) => {
                let start = data.words.len() as u32;
                data.words.push(words.len() as u64);
                data.words.extend_from_slice(words);
                start
            }
            None if op.index() >= data.cells.len() => return,
            None => u32::MAX,
        };
        set_cell(&mut data.cells, op, cell);
    }

    /// Comments around an operation.
    pub fn trivia(&self, op: Op) -> Option<&Trivia> {
        if self.side.trivia.is_empty() {
            return None;
        }
        self.side.trivia.get(&op)
    }

    /// Comments around an operation, to change.
    pub fn trivia_mut(&mut self, op: Op) -> &mut Trivia {
        self.side.trivia.entry(op).or_default()
    }

    /// Comments behind the last operation of a block.
    pub fn end_comments(&self, block: Block) -> &[Comment] {
        self.side.block_end.get(&block).map_or(&[], Vec::as_slice)
    }

    /// Sets the comments behind the last operation of a block.
    pub fn set_end_comments(&mut self, block: Block, comments: Vec<Comment>) {
        self.side.block_end.insert(block, comments);
    }
}
