//! DMA: copies between memories, by row numbers or from run-time offsets too.

use bir_dialect::bir::space::Space;

use crate::alu::{Alu, Arg, Binary};
use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::lower::{Bound, Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::{Term, Tile};

use super::movement;

pub(super) fn transfer(site: &Site<'_>) -> Run<Box<dyn Task>> {
    movement::transfer(site.tile("dst")?, site.tile("src")?)
}

/// A copy whose ends may lie outside at run time.
struct Offset {
    copy: Box<dyn Task>,
    ends: [Tile; 2],
}

impl Task for Offset {
    fn run(&self, m: &mut Machine) -> Run<()> {
        // What lies outside is dropped as a whole.
        if self.ends.iter().any(|tile| tile.at(&m.regs).is_none()) {
            return Ok(());
        }
        self.copy.run(m)
    }

    fn bytes(&self) -> u64 {
        self.copy.bytes()
    }
}

/// A table in DRAM whose rows have numbers.
pub(super) struct Table {
    /// Row 0.
    pub(super) row: Tile,
    /// Bytes from row to row.
    pitch: i64,
    /// Rows there are.
    rows: u64,
}

impl Table {
    /// Where a row starts; a fault where there is none of that number.
    pub(super) fn at(
        &self,
        m: &Machine,
        index: &Tile,
        number: i64,
        reader: impl Fn() -> String,
    ) -> Run<usize> {
        if !self.has(number) {
            return Err(m.bad_index(index, &self.row, number, reader(), self.rows));
        }
        m.shifted(&self.row, self.pitch * number)
    }

    fn has(&self, number: i64) -> bool {
        u64::try_from(number).is_ok_and(|number| number < self.rows)
    }
}

/// Rows of a table, each named by an index.
struct Indexed {
    /// The tile whose partitions are the rows.
    tile: Tile,
    table: Table,
    index: Tile,
    /// Whether rows outside are left out rather than an error.
    skip: bool,
    /// From the table to the tile.
    gather: bool,
    /// Whether what is read is added to what is there.
    add: bool,
    /// Whether no row may be named twice.
    unique: bool,
}

impl Task for Indexed {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Indexed {
            tile,
            table,
            index,
            skip,
            gather,
            ..
        } = self;
        let mut indices = Vec::new();
        let index_at = m.source(index)?;
        rows::load_ints(&m.mem, index, index_at, (0, index.partitions), &mut indices);
        let indices = &indices[..tile.partitions];
        if self.unique {
            self.check_unique(m, indices)?;
        }
        let tile_at = m.at(tile)?;
        let part = super::partitions::one_row(tile);
        for (p, &number) in indices.iter().enumerate() {
            if *skip && !table.has(number) {
                continue;
            }
            let row_at = table.at(m, index, number, || format!("partition {p}"))?;
            let part_at = tile_at + p * tile.home.pitch;
            let (dst, src) = if *gather {
                ((&part, part_at), (&table.row, row_at))
            } else {
                ((&table.row, row_at), (&part, part_at))
            };
            self.one(m, dst, src)?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        2 * movement::volume(&self.tile)
    }
}

impl Indexed {
    /// Copies or adds one row.
    fn one(&self, m: &mut Machine, dst: (&Tile, usize), src: (&Tile, usize)) -> Run<()> {
        m.check_defined(src.0, src.1)?;
        if self.add {
            m.check_defined(dst.0, dst.1)?;
        }
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let row = (0, 1);
        if dst.0.dtype == src.0.dtype && !self.add {
            let bytes = &mut scratch.copies[0];
            rows::pack(mem, src.0, src.1, row, bytes);
            rows::unpack(mem, dst.0, dst.1, row, bytes);
        } else {
            let (out, spare) = (&mut scratch.out, &mut scratch.spare);
            rows::load(*lanes, mem, src.0, src.1, row, out, spare);
            if self.add {
                let [before, ..] = &mut scratch.rows;
                rows::load(*lanes, mem, dst.0, dst.1, row, before, spare);
                let len = dst.0.elements;
                lanes.run(Binary {
                    op: Alu::Add,
                    out: &mut out[..len],
                    a: Arg::Row(&before[..len]),
                    b: Arg::Own,
                });
            }
            rows::store(*lanes, mem, dst.0, dst.1, row, out, spare);
        }
        m.mark(dst.0, dst.1);
        Ok(())
    }

    /// No row is named twice: the writes would meet in an order nobody knows.
    fn check_unique(&self, m: &Machine, indices: &[i64]) -> Run<()> {
        let mut sorted = indices.to_vec();
        sorted.sort_unstable();
        let is_twice = |pair: &&[i64]| pair[0] == pair[1] && self.table.has(pair[0]);
        let Some(pair) = sorted.windows(2).find(is_twice) else {
            return Ok(());
        };
        let kind = FaultKind::Twice {
            what: "row",
            index: pair[0],
            name: m.names[self.table.row.location].clone(),
        };
        Err(Fault::of_operand(kind, self.index.operand))
    }
}

/// The first row of a table, and bytes and number of its rows.
pub(super) fn table_row(site: &Site<'_>, table: &Tile) -> Run<Table> {
    let location = site.location(table);
    if location.space != Space::Dram || location.dims.is_empty() {
        return Err(malformed("a table of rows is in `dram`"));
    }
    let rows = location.dims[0];
    let pitch = if rows == 0 {
        0
    } else {
        location.home.row as i64 / rows as i64
    };
    let mut row = table.clone();
    let spelt = &table.spelt[1.min(table.spelt.len())..];
    row.spelt = spelt.into();
    row.levels = crate::tile::canonical(spelt);
    row.elements = spelt.iter().map(|step| step.count).product();
    let last = |step: &crate::tile::Step| step.bytes * (step.count as i64 - 1);
    row.low = spelt.iter().map(last).filter(|&reach| reach < 0).sum();
    row.high = spelt
        .iter()
        .map(last)
        .filter(|&reach| reach > 0)
        .sum::<i64>()
        + row.size as i64;
    Ok(Table { row, pitch, rows })
}

/// `dma_scatter_add` and `dma_gather_add`.
pub(super) fn indexed_add(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src, index) = (site.tile("dst")?, site.tile("src")?, site.tile("index")?);
    let gather = site.location(&dst).space != Space::Dram;
    let (tile, table) = if gather { (dst, src) } else { (src, dst) };
    let task = Indexed {
        table: table_row(site, &table)?,
        tile,
        index,
        skip: site.word("oob") == Some("skip"),
        gather,
        add: true,
        unique: !gather,
    };
    indexed(task)
}

fn indexed(task: Indexed) -> Run<Box<dyn Task>> {
    let Indexed {
        tile, table, index, ..
    } = &task;
    if table.row.elements != tile.elements || index.partitions * index.elements < tile.partitions {
        return Err(malformed(
            "rows of the table and partitions of the tile differ",
        ));
    }
    Ok(Box::new(task))
}

pub(super) fn dma_copy(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (mut dst, mut src) = (site.tile("dst")?, site.tile("src")?);
    let skip = site.word("oob") == Some("skip");
    let mut moved = false;
    for (role, tile) in [("src_offset", &mut src), ("dst_offset", &mut dst)] {
        if let Bound::Register(slot) = site.bound(role)? {
            moved = true;
            tile.terms.push(Term {
                slot,
                partitions: false,
                factor: tile.size as i64,
            });
        }
    }
    let (gather, index) = match (site.maybe_tile("src_index")?, site.maybe_tile("dst_index")?) {
        (Some(index), _) => (true, index),
        (None, Some(index)) => (false, index),
        (None, None) => {
            let ends = [dst.clone(), src.clone()];
            let copy = movement::transfer(dst, src)?;
            return Ok(if moved && skip {
                Box::new(Offset { copy, ends })
            } else {
                copy
            });
        }
    };
    let (tile, table) = if gather { (dst, src) } else { (src, dst) };
    indexed(Indexed {
        table: table_row(site, &table)?,
        tile,
        index,
        skip,
        gather,
        add: false,
        unique: site.flag("unique_indices") && !gather,
    })
}
