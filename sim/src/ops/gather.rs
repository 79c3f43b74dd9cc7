//! Elements and columns whose positions are data, and copies at an offset in a register.

use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::lower::{Bound, Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::{Term, Tile};

use super::movement::{transfer, volume};

/// Partitions over which a list of positions lies, column by column.
const SNAKE: usize = 16;

fn dynamic(site: &Site<'_>, moved: &str) -> Run<Box<dyn Task>> {
    let (mut dst, mut src) = (site.tile("dst")?, site.tile("src")?);
    let Bound::Register(slot) = site.bound("offset")? else {
        return Err(malformed("`offset` is no register"));
    };
    let tile = if moved == "dst" { &mut dst } else { &mut src };
    tile.terms.push(Term {
        slot,
        partitions: false,
        factor: tile.size as i64,
    });
    transfer(dst, src)
}

pub(super) fn copy_dynamic_src(site: &Site<'_>) -> Run<Box<dyn Task>> {
    dynamic(site, "src")
}

pub(super) fn copy_dynamic_dst(site: &Site<'_>) -> Run<Box<dyn Task>> {
    dynamic(site, "dst")
}

impl Machine {
    /// A fault of a position that names no element.
    pub(super) fn bad_position(
        &self,
        index: &Tile,
        table: &Tile,
        position: i64,
        reader: String,
    ) -> Box<Fault> {
        Fault::of_operand(
            FaultKind::Position {
                index: position,
                reader,
                count: table.elements as u64,
                name: self.names[table.location].clone(),
            },
            index.operand,
        )
    }
}

/// Where the positions of a row of results come from.
enum List {
    /// One list for all partitions, in a snake.
    Shared,
    /// One list per sixteen partitions, in a snake, each position naming so many neighbours.
    PerGroup { count: usize, width: usize },
    /// Each element its own.
    Own,
}

struct Gather {
    dst: Tile,
    src: Tile,
    index: Tile,
    list: List,
}

/// The list of positions that rows from `first` on spell, column by column.
fn snake(indices: &[i64], index: &Tile, first: usize, count: usize) -> Vec<i64> {
    (0..count)
        .map(|j| indices[(first + j % SNAKE) * index.elements + j / SNAKE])
        .collect()
}

impl Task for Gather {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Gather {
            dst,
            src,
            index,
            list,
        } = self;
        let to = m.at(dst)?;
        let (from, index_at) = (m.at(src)?, m.source(index)?);
        let mut indices = Vec::new();
        let all = (0, index.partitions);
        rows::load_ints(&m.mem, index, index_at, all, &mut indices);
        // Positions of the source, for each element of each row of the destination.
        let mut positions: Vec<i64> = Vec::with_capacity(dst.partitions * dst.elements);
        let mut shared = Vec::new();
        for p in 0..dst.partitions {
            match *list {
                List::Shared => {
                    if p == 0 {
                        shared = snake(&indices, index, 0, dst.elements);
                    }
                    positions.extend(&shared);
                }
                List::PerGroup { count, width } => {
                    if p % SNAKE == 0 {
                        shared = snake(&indices, index, p, count);
                    }
                    for &position in &shared {
                        positions.extend((0..width as i64).map(|e| position + e));
                    }
                }
                List::Own => positions.extend(&indices[p * index.elements..][..dst.elements]),
            }
        }
        let outside = |position: &i64| *position < 0 || *position >= src.elements as i64;
        if let Some(at) = positions.iter().position(outside) {
            let (p, i) = (at / dst.elements, at % dst.elements);
            let reader = format!("element {i} of partition {p}");
            return Err(m.bad_position(index, src, positions[at], reader));
        }
        self.check_chosen(m, from, &positions)?;
        let Machine { mem, scratch, .. } = &mut *m;
        let [bytes, out, ..] = &mut scratch.copies;
        rows::pack(mem, src, from, (0, src.partitions), bytes);
        let size = src.size;
        out.clear();
        for (at, &position) in positions.iter().enumerate() {
            let element = at / dst.elements * src.elements + position as usize;
            out.extend_from_slice(&bytes[element * size..][..size]);
        }
        rows::unpack(mem, dst, to, (0, dst.partitions), out);
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        2 * volume(&self.dst) + volume(&self.index)
    }
}

impl Gather {
    /// Only what is chosen has to be defined.
    fn check_chosen(&self, m: &Machine, from: usize, positions: &[i64]) -> Run<()> {
        let src = &self.src;
        if !m.watches_undefined(src) {
            return Ok(());
        }
        let offsets: Vec<i64> = crate::tile::Odometer::new(src.all_levels()).collect();
        for (at, &position) in positions.iter().enumerate() {
            let element = at / self.dst.elements * src.elements + position as usize;
            let start = (from as i64 + offsets[element]) as usize;
            if m.mem
                .first_undefined(src.home.region, start..start + src.size)
                .is_some()
            {
                // One element of the tile, for the message.
                let mut one = src.clone();
                one.partitions = 1;
                one.elements = 1;
                one.levels.clear();
                return m.check_defined(&one, start);
            }
        }
        Ok(())
    }
}

pub(super) fn tensor_gather(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let gather = Gather {
        dst: site.tile("dst")?,
        src: site.tile("src")?,
        index: site.tile("index")?,
        list: List::Shared,
    };
    let Gather {
        dst, src, index, ..
    } = &gather;
    let fits = dst.partitions == src.partitions
        && dst.dtype == src.dtype
        && index.partitions == SNAKE
        && index.partitions * index.elements >= dst.elements;
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(gather))
}

pub(super) fn local_gather(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let number = |attr| usize::try_from(site.int(attr, 1)).unwrap_or(1);
    let (count, width) = (number("count"), number("width"));
    let gather = Gather {
        dst: site.tile("dst")?,
        src: site.tile("src")?,
        index: site.tile("index")?,
        list: List::PerGroup { count, width },
    };
    let Gather {
        dst, src, index, ..
    } = &gather;
    let fits = dst.partitions == src.partitions
        && dst.dtype == src.dtype
        && index.partitions == src.partitions
        && src.partitions.is_multiple_of(SNAKE)
        && dst.elements == count * width
        && index.elements * SNAKE >= count;
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(gather))
}

pub(super) fn n_gather(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let gather = Gather {
        dst: site.tile("dst")?,
        src: site.tile("src")?,
        index: site.tile("index")?,
        list: List::Own,
    };
    let Gather {
        dst, src, index, ..
    } = &gather;
    let fits = dst.partitions == src.partitions
        && dst.dtype == src.dtype
        && (index.partitions, index.elements) == (dst.partitions, dst.elements);
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(gather))
}

struct Scatter {
    dst: Tile,
    src: Tile,
    index: Tile,
}

impl Task for Scatter {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Scatter { dst, src, index } = self;
        let to = m.at(dst)?;
        let (from, index_at) = (m.source(src)?, m.source(index)?);
        let mut indices = Vec::new();
        let all = (0, index.partitions);
        rows::load_ints(&m.mem, index, index_at, all, &mut indices);
        let positions = snake(&indices, index, 0, src.elements);
        let mut taken = vec![false; dst.elements];
        for (j, &position) in positions.iter().enumerate() {
            let slot = usize::try_from(position)
                .ok()
                .and_then(|position| taken.get_mut(position));
            let Some(slot) = slot else {
                return Err(m.bad_position(index, dst, position, format!("column {j}")));
            };
            if std::mem::replace(slot, true) {
                let kind = FaultKind::Twice {
                    what: "column",
                    index: position,
                    name: m.names[dst.location].clone(),
                };
                return Err(Fault::of_operand(kind, index.operand));
            }
        }
        let Machine { mem, scratch, .. } = &mut *m;
        let [bytes, ..] = &mut scratch.copies;
        rows::pack(mem, src, from, (0, src.partitions), bytes);
        let size = src.size;
        let offsets: Vec<i64> = crate::tile::Odometer::new(dst.all_levels()).collect();
        let cells = positions
            .iter()
            .cycle()
            .take(src.partitions * src.elements)
            .enumerate();
        for (at, &position) in cells {
            let element = at / src.elements * dst.elements + position as usize;
            let start = (to as i64 + offsets[element]) as usize;
            mem.bytes_mut()[start..start + size].copy_from_slice(&bytes[at * size..][..size]);
            mem.mark(dst.home.region, start..start + size);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        2 * volume(&self.src) + volume(&self.index)
    }
}

pub(super) fn tensor_scatter(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src, index) = (site.tile("dst")?, site.tile("src")?, site.tile("index")?);
    let fits = dst.partitions == src.partitions
        && dst.dtype == src.dtype
        && index.partitions == SNAKE
        && index.partitions * index.elements >= src.elements;
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(Scatter { dst, src, index }))
}
