//! DMA: copies between memories, by row numbers or from run-time offsets too.

use bir_dialect::bir::space::Space;

use crate::fault::{Run, malformed};
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

/// Rows of a table, each named by an index.
struct Indexed {
    /// The tile whose partitions are the rows.
    tile: Tile,
    /// One row of the table, row 0.
    row: Tile,
    index: Tile,
    /// Bytes from row to row of the table.
    pitch: i64,
    /// Rows of the table.
    rows: u64,
    /// Whether rows outside are left out rather than an error.
    skip: bool,
    /// From the table to the tile.
    gather: bool,
}

impl Task for Indexed {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Indexed {
            tile,
            row,
            index,
            pitch,
            rows,
            skip,
            gather,
        } = self;
        let mut indices = Vec::new();
        let index_at = m.source(index)?;
        rows::load_ints(&m.mem, index, index_at, (0, index.partitions), &mut indices);
        let tile_at = m.at(tile)?;
        for (p, &number) in indices[..tile.partitions].iter().enumerate() {
            if number < 0 || number as u64 >= *rows {
                if *skip {
                    continue;
                }
                return Err(m.bad_index(index, row, number, format!("partition {p}"), *rows));
            }
            let mut part = tile.clone();
            part.partitions = 1;
            let part_at = tile_at + p * tile.home.pitch;
            let row_at = m.shifted(row, pitch * number)?;
            let (dst, src) = if *gather {
                ((&part, part_at), (row, row_at))
            } else {
                ((row, row_at), (&part, part_at))
            };
            m.check_defined(src.0, src.1)?;
            let Machine {
                mem,
                scratch,
                lanes,
                ..
            } = &mut *m;
            if dst.0.dtype == src.0.dtype {
                let bytes = &mut scratch.copies[0];
                rows::pack(mem, src.0, src.1, (0, 1), bytes);
                rows::unpack(mem, dst.0, dst.1, (0, 1), bytes);
            } else {
                rows::load(
                    *lanes,
                    mem,
                    src.0,
                    src.1,
                    (0, 1),
                    &mut scratch.out,
                    &mut scratch.spare,
                );
                rows::store(
                    *lanes,
                    mem,
                    dst.0,
                    dst.1,
                    (0, 1),
                    &scratch.out,
                    &mut scratch.spare,
                );
            }
            m.mark(dst.0, dst.1);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        2 * movement::volume(&self.tile)
    }
}

/// The first row of a table, and bytes and number of its rows.
fn table_row(site: &Site<'_>, table: &Tile) -> Run<(Tile, i64, u64)> {
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
    Ok((row, pitch, rows))
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
    let (row, pitch, rows) = table_row(site, &table)?;
    if row.elements != tile.elements || index.partitions * index.elements < tile.partitions {
        return Err(malformed(
            "rows of the table and partitions of the tile differ",
        ));
    }
    Ok(Box::new(Indexed {
        tile,
        row,
        index,
        pitch,
        rows,
        skip,
        gather,
    }))
}
