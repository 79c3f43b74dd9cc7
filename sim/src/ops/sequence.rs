//! Positions in rows: `sequence_bounds` and `nonzero_with_count`.

use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

use super::movement::volume;
use super::partitions::one_row;

/// A row of f32 or 32-bit integers, exact.
fn exact(m: &mut Machine, tile: &Tile, at: usize, row: usize, out: &mut Vec<f64>) {
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = &mut *m;
    out.clear();
    if tile.dtype.is_integer() {
        let [values, ..] = &mut scratch.ints;
        rows::load_ints(mem, tile, at, (row, 1), values);
        out.extend(values[..tile.elements].iter().map(|&x| x as f64));
    } else {
        let [values, ..] = &mut scratch.rows;
        rows::load(*lanes, mem, tile, at, (row, 1), values, &mut scratch.spare);
        out.extend(values[..tile.elements].iter().map(|&x| f64::from(x)));
    }
}

struct SequenceBounds {
    dst: Tile,
    src: Tile,
}

impl Task for SequenceBounds {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let SequenceBounds { dst, src } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let mut ids = Vec::new();
        exact(m, src, from, 0, &mut ids);
        let n = ids.len();
        let mut bounds = vec![0i64; 2 * n];
        let mut start = 0;
        for i in 0..n {
            if i > 0 && ids[i - 1] != ids[i] {
                start = i;
            }
            bounds[i] = start as i64;
            if i + 1 == n || ids[i] != ids[i + 1] {
                bounds[n + start..=n + i].fill(i as i64 + 1);
            }
        }
        for i in (0..n).filter(|&i| ids[i] == 0.0) {
            bounds[i] = n as i64;
            bounds[n + i] = -1;
        }
        if dst.dtype.is_integer() {
            rows::store_ints(&mut m.mem, dst, to, (0, 1), &bounds);
        } else {
            let out: Vec<f32> = bounds.iter().map(|&bound| bound as f32).collect();
            let Machine {
                mem,
                scratch,
                lanes,
                ..
            } = &mut *m;
            rows::store(*lanes, mem, dst, to, (0, 1), &out, &mut scratch.spare);
        }
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn sequence_bounds(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if src.partitions != 1 || dst.partitions != 1 || dst.elements != 2 * src.elements {
        return Err(malformed("`dst` is not one row of twice the elements"));
    }
    Ok(Box::new(SequenceBounds { dst, src }))
}

/// Every so many partitions have a core that looks at them.
const CORE: usize = 16;

struct NonzeroWithCount {
    dst: Tile,
    src: Tile,
    offset: i64,
    padding: i64,
}

impl Task for NonzeroWithCount {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let NonzeroWithCount {
            dst,
            src,
            offset,
            padding,
        } = self;
        let to = m.at(dst)?;
        let from = m.at(src)?;
        let (read, written) = (one_row(src), one_row(dst));
        let mut values = Vec::new();
        let mut out = Vec::new();
        let rows_read = || (0..src.partitions).step_by(CORE);
        for p in rows_read() {
            m.check_defined(&read, from + p * src.home.pitch)?;
        }
        for p in rows_read() {
            exact(m, src, from, p, &mut values);
            let found = (0i64..).zip(&values).filter(|(_, x)| **x != 0.0);
            out.extend(found.map(|(i, _)| i + offset));
            let count = out.len() % dst.elements.max(1);
            out.resize(out.len() - count + src.elements, *padding);
            out.push(count as i64);
        }
        // All rows are read before any is written: the tiles may overlap.
        for (p, row) in rows_read().zip(out.chunks_exact(dst.elements)) {
            rows::store_ints(&mut m.mem, dst, to, (p, 1), row);
            m.mark(&written, to + p * dst.home.pitch);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        (volume(&self.dst) + volume(&self.src)) / CORE as u64
    }
}

pub(super) fn nonzero_with_count(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if dst.partitions != src.partitions || dst.elements != src.elements + 1 {
        return Err(malformed("`dst` has not one element more than `src`"));
    }
    Ok(Box::new(NonzeroWithCount {
        dst,
        src,
        offset: site.int("offset", 0),
        padding: site.int("padding", -1),
    }))
}
