//! Eight values found or replaced in a row, and the K largest of sixteen partitions.
//!
//! Values are compared as f32: 0 equals -0, and NaN equals nothing.

use bir_dialect::bir::num::{from_f32, store_bits};

use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

use super::movement::volume;

/// Values looked for at once.
const EIGHT: usize = 8;
/// No position.
const NOWHERE: i64 = -1;

/// Loads all rows of `tile`, which is defined.
fn load(m: &mut Machine, tile: &Tile, at: usize, which: usize) {
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = &mut *m;
    let all = (0, tile.partitions);
    let out = &mut scratch.rows[which];
    rows::load(*lanes, mem, tile, at, all, out, &mut scratch.spare);
}

struct FindIndex {
    dst: Tile,
    src: Tile,
    values: Tile,
}

impl Task for FindIndex {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let FindIndex { dst, src, values } = self;
        let to = m.at(dst)?;
        let (from, values_at) = (m.source(src)?, m.source(values)?);
        load(m, src, from, 0);
        load(m, values, values_at, 1);
        let Machine { mem, scratch, .. } = &mut *m;
        let [data, wanted, ..] = &scratch.rows;
        let mut found = vec![NOWHERE; src.partitions * EIGHT];
        for (p, found) in found.chunks_exact_mut(EIGHT).enumerate() {
            let row = &data[p * src.elements..][..src.elements];
            let wanted = &wanted[p * EIGHT..][..EIGHT];
            // Equal values take the positions one after another.
            for (i, x) in row.iter().enumerate() {
                let slot = (0..EIGHT).find(|&j| found[j] == NOWHERE && wanted[j] == *x);
                if let Some(j) = slot {
                    found[j] = i as i64;
                }
            }
        }
        rows::store_ints(mem, dst, to, (0, dst.partitions), &found);
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src) + volume(&self.values)
    }
}

fn eight_per_row(src: &Tile, others: &[&Tile]) -> Run<()> {
    let fits = |tile: &&Tile| tile.partitions == src.partitions && tile.elements == EIGHT;
    if others.iter().all(fits) {
        return Ok(());
    }
    Err(malformed("its operands differ in shape"))
}

pub(super) fn find_index8(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src, values) = (site.tile("dst")?, site.tile("src")?, site.tile("values")?);
    eight_per_row(&src, &[&dst, &values])?;
    Ok(Box::new(FindIndex { dst, src, values }))
}

struct MatchReplace {
    dst: Tile,
    index: Option<Tile>,
    src: Tile,
    values: Tile,
    replacement: f32,
    /// The same in the dtype of `dst`.
    bits: [u8; 8],
}

impl Task for MatchReplace {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let MatchReplace {
            dst,
            index,
            src,
            values,
            replacement,
            bits,
        } = self;
        let to = m.at(dst)?;
        let (from, values_at) = (m.source(src)?, m.source(values)?);
        let index_at = match index {
            Some(index) => m.at(index)?,
            None => 0,
        };
        load(m, src, from, 0);
        load(m, values, values_at, 1);
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [data, wanted, ..] = &mut scratch.rows;
        let [copy, ..] = &mut scratch.copies;
        let all = (0, src.partitions);
        // Equal dtypes copy bits, so that what is not replaced keeps its payload.
        let same = dst.dtype == src.dtype;
        if same {
            rows::pack(mem, src, from, all, copy);
        }
        let mut found = vec![NOWHERE; src.partitions * EIGHT];
        for (p, found) in found.chunks_exact_mut(EIGHT).enumerate() {
            let wanted = &wanted[p * EIGHT..][..EIGHT];
            for i in p * src.elements..(p + 1) * src.elements {
                let slot = (0..EIGHT)
                    .rev()
                    .find(|&j| found[j] == NOWHERE && wanted[j] == data[i]);
                let Some(j) = slot else { continue };
                found[j] = (i - p * src.elements) as i64;
                data[i] = *replacement;
                if same {
                    copy[i * dst.size..][..dst.size].copy_from_slice(&bits[..dst.size]);
                }
            }
        }
        if same {
            rows::unpack(mem, dst, to, all, copy);
        } else {
            rows::store(*lanes, mem, dst, to, all, data, &mut scratch.spare);
        }
        m.mark(dst, to);
        if let Some(index) = index {
            rows::store_ints(&mut m.mem, index, index_at, all, &found);
            m.mark(index, index_at);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src) + volume(&self.values)
    }
}

pub(super) fn match_replace8(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src, values) = (site.tile("dst")?, site.tile("src")?, site.tile("values")?);
    let index = site.maybe_tile("dst_index")?;
    eight_per_row(&src, &[&values])?;
    if let Some(index) = &index {
        eight_per_row(&src, &[index])?;
    }
    if dst.partitions != src.partitions || dst.elements != src.elements {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    let replacement = match site.scalar("replacement")? {
        Some(crate::lower::Scalar::Number(number)) => number,
        _ => return Err(malformed("`replacement` is no number")),
    };
    let mut bits = [0; 8];
    let _ = from_f32(dst.dtype, replacement)
        .and_then(|value| store_bits(dst.dtype, value, &mut bits[..dst.size]));
    Ok(Box::new(MatchReplace {
        dst,
        index,
        src,
        values,
        replacement,
        bits,
    }))
}

/// Partitions whose elements form one row, in a snake.
const SNAKE: usize = 16;

struct TopK {
    dst: Tile,
    index: Tile,
    src: Tile,
    k: usize,
}

impl Task for TopK {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let TopK { dst, index, src, k } = self;
        let (to, index_at) = (m.at(dst)?, m.at(index)?);
        let from = m.source(src)?;
        load(m, src, from, 0);
        let Machine { mem, scratch, .. } = &mut *m;
        let all = (0, src.partitions);
        let [bits, positions, _] = &mut scratch.ints;
        // bf16 are the upper half of f32: the bits as they lie, NaN payloads too.
        rows::load_ints(mem, src, from, all, bits);
        let [data, ..] = &scratch.rows;
        let columns = dst.elements;
        // What the results leave of the last column.
        positions.clear();
        positions.resize(dst.partitions * columns, NOWHERE);
        let mut best = vec![0xff80; dst.partitions * columns];
        let mut order: Vec<u32> = Vec::new();
        for group in (0..src.partitions).step_by(SNAKE) {
            let at = |e: u32| {
                let e = e as usize;
                (group + e % SNAKE) * src.elements + e / SNAKE
            };
            // NaN ranks as -inf; of equal values the first ones are the largest.
            let rank = |e: u32| {
                let x = data[at(e)];
                if x.is_nan() { f32::NEG_INFINITY } else { x }
            };
            order.clear();
            order.extend(0..(SNAKE * src.elements) as u32);
            order.sort_by(|&a, &b| {
                let (a, b) = (rank(a), rank(b));
                b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal)
            });
            for (r, &e) in order[..*k].iter().rev().enumerate() {
                let slot = (group + r % SNAKE) * columns + r / SNAKE;
                best[slot] = bits[at(e)];
                positions[slot] = i64::from(e);
            }
        }
        rows::store_ints(mem, dst, to, (0, dst.partitions), &best);
        rows::store_ints(mem, index, index_at, (0, dst.partitions), positions);
        m.mark(dst, to);
        m.mark(index, index_at);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.index) + volume(&self.src)
    }
}

pub(super) fn topk(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, index, src) = (
        site.tile("dst")?,
        site.tile("dst_index")?,
        site.tile("src")?,
    );
    let k = usize::try_from(site.int("k", 0)).unwrap_or(0);
    let fits = src.partitions.is_multiple_of(SNAKE)
        && dst.partitions == src.partitions
        && dst.elements == k.div_ceil(SNAKE)
        && (index.partitions, index.elements) == (dst.partitions, dst.elements)
        && k <= SNAKE * src.elements
        && src.elements < 1 << 16;
    if !fits {
        return Err(malformed("`k` and the shapes of its operands disagree"));
    }
    Ok(Box::new(TopK { dst, index, src, k }))
}
