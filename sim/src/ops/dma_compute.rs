//! DMA that adds, and DMA that transposes.

use bir_dialect::bir::space::Space;
use smallvec::SmallVec;

use crate::alu::{Alu, Arg, Binary, Quieten};
use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::runs;
use crate::tile::{Odometer, Step, Tile};

use super::dma::{Table, table_row};
use super::movement::volume;

/// The sum of sources in f32, from the first on.
struct Sum {
    dst: Tile,
    sources: Vec<Tile>,
}

impl Task for Sum {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let to = m.at(&self.dst)?;
        let total = self.dst.partitions * self.dst.elements;
        let mut at = SmallVec::<[usize; 16]>::new();
        for source in &self.sources {
            at.push(m.source(source)?);
        }
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [values, ..] = &mut scratch.rows;
        let (sums, spare) = (&mut scratch.out, &mut scratch.spare);
        for (number, (source, &at)) in self.sources.iter().zip(&at).enumerate() {
            let all = (0, source.partitions);
            if number == 0 {
                rows::load(*lanes, mem, source, at, all, sums, spare);
                continue;
            }
            rows::load(*lanes, mem, source, at, all, values, spare);
            lanes.run(Binary {
                op: Alu::Add,
                out: &mut sums[..total],
                a: Arg::Own,
                b: Arg::Row(&values[..total]),
            });
        }
        lanes.run(Quieten(&mut sums[..total]));
        rows::store(
            *lanes,
            mem,
            &self.dst,
            to,
            (0, self.dst.partitions),
            sums,
            spare,
        );
        m.mark(&self.dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + self.sources.iter().map(volume).sum::<u64>()
    }
}

pub(super) fn dma_compute(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let dst = site.tile("dst")?;
    let sources = site.tiles("srcs")?;
    if site.alu("op")? != Alu::Add {
        return Err(malformed("a DMA only adds"));
    }
    let total = |tile: &Tile| tile.partitions * tile.elements;
    if sources.is_empty() || sources.iter().any(|source| total(source) != total(&dst)) {
        return Err(malformed(
            "its operands differ in how many elements they have",
        ));
    }
    Ok(Box::new(Sum { dst, sources }))
}

/// The sizes an access has, the partitions first where there are any.
fn sizes(site: &Site<'_>, tile: &Tile) -> SmallVec<[usize; 4]> {
    let partitions = (site.location(tile).space != Space::Dram).then_some(tile.partitions);
    partitions
        .into_iter()
        .chain(tile.spelt.iter().map(|step| step.count))
        .collect()
}

/// Which dimension of the source becomes the n-th of the destination.
fn order(rank: usize) -> Option<&'static [usize]> {
    match rank {
        2 => Some(&[1, 0]),
        3 => Some(&[2, 1, 0]),
        4 => Some(&[3, 1, 2, 0]),
        _ => None,
    }
}

#[allow(
    clippy::large_enum_variant,
    reason = "it lives in a box, once per instruction"
)]
enum Rows {
    /// The whole of the source.
    All(Tile),
    /// Rows of a table, named by an index tile.
    Named { table: Table, index: Tile },
}

struct Transpose {
    dst: Tile,
    rows: Rows,
    /// Sizes of what is transposed.
    sizes: SmallVec<[usize; 4]>,
    order: &'static [usize],
}

impl Task for Transpose {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Transpose {
            dst,
            rows,
            sizes,
            order,
        } = self;
        let to = m.at(dst)?;
        let size = dst.size;
        let total = sizes.iter().product::<usize>() * size;
        match rows {
            Rows::All(src) => {
                let from = m.source(src)?;
                let Machine { mem, scratch, .. } = &mut *m;
                let [bytes, ..] = &mut scratch.copies;
                rows::pack(mem, src, from, (0, src.partitions), bytes);
            }
            Rows::Named { table, index } => gather_rows(m, table, index, sizes[0])?,
        }
        let Machine { mem, scratch, .. } = &mut *m;
        let [bytes, turned, ..] = &mut scratch.copies;
        runs::resize(turned, total);
        // Steps of the source's dimensions, in the order of the destination's.
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(size, sizes.len());
        for dim in (1..sizes.len()).rev() {
            strides[dim - 1] = strides[dim] * sizes[dim];
        }
        let walk: SmallVec<[Step; 6]> = order
            .iter()
            .map(|&dim| Step {
                bytes: strides[dim] as i64,
                count: sizes[dim],
            })
            .collect();
        for (to, from) in turned[..total]
            .chunks_exact_mut(size)
            .zip(Odometer::new(walk))
        {
            to.copy_from_slice(&bytes[from as usize..][..size]);
        }
        rows::unpack(mem, dst, to, (0, dst.partitions), turned);
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        2 * volume(&self.dst)
    }
}

/// Packs the rows of a table that the first `count` indices name, read column by column.
fn gather_rows(m: &mut Machine, table: &Table, index: &Tile, count: usize) -> Run<()> {
    let index_at = m.source(index)?;
    let mut indices = Vec::new();
    rows::load_ints(&m.mem, index, index_at, (0, index.partitions), &mut indices);
    let row_bytes = table.row.elements * table.row.size;
    let mut row = Vec::new();
    runs::resize(&mut m.scratch.copies[0], count * row_bytes);
    for k in 0..count {
        let (p, column) = (k % index.partitions, k / index.partitions);
        let number = indices[p * index.elements + column];
        let at = table.at(m, index, number, || {
            format!("partition {p}, column {column}")
        })?;
        m.check_defined(&table.row, at)?;
        rows::pack(&m.mem, &table.row, at, (0, 1), &mut row);
        m.scratch.copies[0][k * row_bytes..][..row_bytes].copy_from_slice(&row[..row_bytes]);
    }
    Ok(())
}

pub(super) fn dma_transpose(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if dst.dtype != src.dtype {
        return Err(malformed("`dst` and `src` differ in dtype"));
    }
    let sizes_of_src = sizes(site, &src);
    let Some(order) = order(sizes_of_src.len()) else {
        return Err(malformed("`src` has not 2 to 4 dimensions"));
    };
    let turned: SmallVec<[usize; 4]> = order.iter().map(|&dim| sizes_of_src[dim]).collect();
    if turned != sizes(site, &dst) {
        return Err(malformed("`dst` is not of the transposed shape"));
    }
    let rows = match site.maybe_tile("src_index")? {
        None => Rows::All(src),
        Some(index) => {
            if index.partitions * index.elements < sizes_of_src[0] {
                return Err(malformed(
                    "`src_index` has fewer numbers than `src` has rows",
                ));
            }
            let table = table_row(site, &src)?;
            Rows::Named { table, index }
        }
    };
    Ok(Box::new(Transpose {
        dst,
        rows,
        sizes: sizes_of_src,
        order,
    }))
}
