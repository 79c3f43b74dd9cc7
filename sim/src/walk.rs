//! Elementwise execution: several tiles walked together in f32, one of them written.
//!
//! * Inner runs are cut into chunks that stay in the first-level cache.
//! * Contiguous f32 runs are used where they lie, and bf16 ones in one step of common operations;
//!   everything else goes through a scratch row.
//! * A source that overlaps the destination without being the same walk is copied first, so all
//!   is read before anything is written.

#![allow(
    clippy::needless_range_loop,
    reason = "`k` counts tiles in several arrays at once"
)]

use bir_dialect::bir::num::DType;
use smallvec::SmallVec;

use crate::alu::{Arg, Half};
use crate::fault::{Run, malformed};
use crate::machine::Machine;
use crate::runs::{self, Spaced};
use crate::simd::Lanes;
use crate::tile::{Nest, Odometer, Step, Tile};

/// Elements computed at once.
const CHUNK: usize = 2048;
/// As many where all are used where they lie: what a chunk costs beside its elements shows there.
const LARGE_CHUNK: usize = 8192;

/// A destination (tile 0) and its sources, joined.
#[derive(Debug)]
pub(crate) struct Walk<const K: usize> {
    pub(crate) tiles: [Tile; K],
    levels: [SmallVec<[Step; 6]>; K],
    nest: Nest<K>,
    /// Whether all steps of the destination are multiples of 4.
    aligned: [bool; K],
    /// Whether all are bf16 that lie side by side, or are one and the same, along inner runs.
    halves: bool,
}

/// The levels of a tile that has one element per partition, repeated `elements` times.
fn spread(tile: &Tile, elements: usize) -> SmallVec<[Step; 6]> {
    let mut levels = tile.all_levels();
    levels.truncate(1);
    levels.push(Step {
        bytes: 0,
        count: elements,
    });
    levels
}

impl<const K: usize> Walk<K> {
    /// Joins tiles. A source with one element per partition serves a whole row if the destination
    /// has more.
    pub(crate) fn new(tiles: [Tile; K]) -> Run<Walk<K>> {
        let (partitions, elements) = (tiles[0].partitions, tiles[0].elements);
        let total = partitions.saturating_mul(elements);
        let mut levels: [SmallVec<[Step; 6]>; K] = std::array::from_fn(|_| SmallVec::new());
        for (levels, tile) in levels.iter_mut().zip(&tiles) {
            let per_partition =
                tile.elements == 1 && tile.partitions == partitions && elements != 1;
            *levels = if per_partition {
                spread(tile, elements)
            } else {
                tile.all_levels()
            };
            let found: usize = levels.iter().map(|step| step.count).product();
            if found != total {
                return Err(malformed(format!(
                    "operands of {total} and {found} elements"
                )));
            }
        }
        let nest = Nest::new(std::array::from_fn(|k| {
            (levels[k].as_slice(), tiles[k].size)
        }));
        let aligned =
            std::array::from_fn(|k| nest.outer.iter().all(|level| level.bytes[k] % 4 == 0));
        let halves = (0..K).all(|k| {
            let step = nest.inner.bytes[k];
            tiles[k].dtype == DType::Bf16 && (step == 2 || step == 0 && k > 0) && !nest.linear[k]
        });
        Ok(Walk {
            tiles,
            levels,
            nest,
            aligned,
            halves,
        })
    }

    /// Places the tiles and checks what is read.
    #[inline]
    fn place(&self, m: &Machine) -> Run<[usize; K]> {
        let mut at = [0; K];
        for k in 0..K {
            at[k] = m.at(&self.tiles[k])?;
            if k > 0 {
                m.check_defined(&self.tiles[k], at[k])?;
            }
        }
        Ok(at)
    }

    /// Which sources must be copied before anything is written.
    #[inline]
    fn copied(&self, at: &[usize; K]) -> [bool; K] {
        let mut copied = self.nest.linear;
        for k in 1..K {
            let (dst, src) = (&self.tiles[0], &self.tiles[k]);
            copied[k] |= src.may_overlap(at[k], dst, at[0])
                && !(src.same_walk(at[k], dst, at[0])
                    && src.dtype.size_bytes() == dst.dtype.size_bytes());
        }
        copied
    }

    /// Copies sources into contiguous stretches; the nest over what results.
    #[cold]
    fn copy_sources(&self, m: &mut Machine, at: &[usize; K], copied: [bool; K]) -> Nest<K> {
        let mut levels = self.levels.clone();
        for k in 1..K {
            if !copied[k] {
                continue;
            }
            let size = self.tiles[k].size;
            let count: usize = levels[k].iter().map(|step| step.count).product();
            runs::resize(&mut m.scratch.copies[k], count * size);
            let bytes = m.mem.bytes();
            for (to, offset) in m.scratch.copies[k]
                .chunks_exact_mut(size)
                .zip(Odometer::new(levels[k].clone()))
            {
                let from = (at[k] as i64 + offset) as usize;
                to.copy_from_slice(&bytes[from..from + size]);
            }
            levels[k] = SmallVec::from_slice(&[Step {
                bytes: size as i64,
                count,
            }]);
        }
        Nest::new(std::array::from_fn(|k| {
            (levels[k].as_slice(), self.tiles[k].size)
        }))
    }

    /// Computes every element: `body` gets a chunk of the destination and of each source.
    pub(crate) fn map(
        &self,
        m: &mut Machine,
        mut body: impl FnMut(Lanes, &mut [f32], &[Arg<'_>]),
    ) -> Run<()> {
        let at = self.place(m)?;
        let copied = self.copied(&at);
        if copied.contains(&true) {
            let nest = self.copy_sources(m, &at, copied);
            self.run(m, &nest, &at, copied, &mut body);
        } else {
            self.run(m, &self.nest, &at, copied, &mut body);
        }
        m.mark(&self.tiles[0], at[0]);
        Ok(())
    }

    /// As [`map`](Self::map), of bf16 from memory to memory, if all are that and no source lies where
    /// something is written; tells whether it was done.
    pub(crate) fn map_halves(
        &self,
        m: &mut Machine,
        mut body: impl FnMut(Lanes, &mut [u8], &[Half<'_>]),
    ) -> Run<bool> {
        if !self.halves {
            return Ok(false);
        }
        let at = self.place(m)?;
        let dst = &self.tiles[0];
        if (1..K).any(|k| self.tiles[k].may_overlap(at[k], dst, at[0])) {
            return Ok(false);
        }
        let (inner, lanes) = (self.nest.inner, m.lanes);
        let len = 2 * inner.count;
        let _ = self.nest.each::<()>(|offsets| {
            let at: [usize; K] = std::array::from_fn(|k| (at[k] as i64 + offsets[k]) as usize);
            let (before, rest) = m.mem.bytes_mut().split_at_mut(at[0]);
            let (out, after) = rest.split_at_mut(len);
            let mut args = [Half::Splat(0.0); K];
            for k in 1..K {
                let (from, first) = match at[k].checked_sub(at[0] + len) {
                    Some(behind) => (&*after, behind),
                    None => (&*before, at[k]),
                };
                args[k] = match inner.bytes[k] {
                    0 => Half::Splat(runs::load_one(from, first, DType::Bf16)),
                    _ => Half::Row(&from[first..first + len]),
                };
            }
            body(lanes, out, &args[1..]);
            Ok(())
        });
        m.mark(dst, at[0]);
        Ok(true)
    }

    fn run(
        &self,
        m: &mut Machine,
        nest: &Nest<K>,
        at: &[usize; K],
        copied: [bool; K],
        body: &mut impl FnMut(Lanes, &mut [f32], &[Arg<'_>]),
    ) {
        let inner = nest.inner;
        let direct: [bool; K] = std::array::from_fn(|k| {
            let tile = &self.tiles[k];
            tile.dtype == DType::F32
                && (inner.bytes[k] == 4 || inner.count == 1 && inner.bytes[k] != 0)
                && at[k].is_multiple_of(4)
                && self.aligned[k]
                && !copied[k]
        });
        let ready = (1..K).all(|k| direct[k] || inner.bytes[k] == 0);
        let most = match direct[0] && ready {
            true => LARGE_CHUNK,
            false => CHUNK,
        };
        let chunk = most.min(inner.count);
        for row in &mut m.scratch.rows {
            runs::resize(row, chunk);
        }
        runs::resize(&mut m.scratch.out, chunk);
        let _ = nest.each::<()>(|offsets| {
            let mut done = 0;
            while done < inner.count {
                let count = chunk.min(inner.count - done);
                let at: [Spaced; K] = std::array::from_fn(|k| Spaced {
                    at: (if copied[k] { 0 } else { at[k] as i64 }
                        + offsets[k]
                        + inner.bytes[k] * done as i64) as usize,
                    step: inner.bytes[k],
                    count,
                    dtype: self.tiles[k].dtype,
                    size: self.tiles[k].size,
                });
                done += count;
                self.chunk(m, &at, direct, copied, body);
            }
            Ok(())
        });
    }

    /// One chunk: sources that do not lie ready go to scratch rows, then `body`, then the results.
    #[inline]
    fn chunk(
        &self,
        m: &mut Machine,
        at: &[Spaced; K],
        mut direct: [bool; K],
        copied: [bool; K],
        body: &mut impl FnMut(Lanes, &mut [f32], &[Arg<'_>]),
    ) {
        let lanes = m.lanes;
        let (dst, count) = (at[0], at[0].count);
        let Machine { mem, scratch, .. } = &mut *m;
        let mut splat = [None; K];
        let mut in_place = [false; K];
        for k in 1..K {
            let run = at[k];
            if run.step == 0 {
                let bytes = if copied[k] {
                    scratch.copies[k].as_slice()
                } else {
                    mem.bytes()
                };
                splat[k] = Some(runs::load_one(bytes, run.at, run.dtype));
                continue;
            }
            in_place[k] = direct[k] && direct[0] && run.at == dst.at;
            // Only the first source is read before anything is written.
            direct[k] &= !(in_place[k] && k > 1);
            in_place[k] &= direct[k];
            if !direct[k] {
                let bytes = if copied[k] {
                    scratch.copies[k].as_slice()
                } else {
                    mem.bytes()
                };
                let row = &mut scratch.rows[k][..count];
                runs::load(lanes, bytes, &run, row, &mut scratch.spare);
            }
        }
        let bytes = mem.bytes_mut();
        let mut args = [Arg::Own; K];
        if direct[0] {
            let len = count * 4;
            let (before, rest) = bytes.split_at_mut(dst.at);
            let (out, after) = rest.split_at_mut(len);
            for k in 1..K {
                args[k] = match splat[k] {
                    Some(value) => Arg::Splat(value),
                    None if in_place[k] => Arg::Own,
                    None if direct[k] && at[k].at < dst.at => {
                        Arg::Row(bytemuck::cast_slice(&before[at[k].at..at[k].at + len]))
                    }
                    None if direct[k] => {
                        let from = at[k].at - dst.at - len;
                        Arg::Row(bytemuck::cast_slice(&after[from..from + len]))
                    }
                    None => Arg::Row(&scratch.rows[k][..count]),
                };
            }
            body(lanes, bytemuck::cast_slice_mut(out), &args[1..]);
        } else {
            for k in 1..K {
                args[k] = match splat[k] {
                    Some(value) => Arg::Splat(value),
                    None if direct[k] => {
                        Arg::Row(bytemuck::cast_slice(&bytes[at[k].at..at[k].at + count * 4]))
                    }
                    None => Arg::Row(&scratch.rows[k][..count]),
                };
            }
            let out = &mut scratch.out[..count];
            body(lanes, out, &args[1..]);
            runs::store(lanes, bytes, &dst, out, &mut scratch.spare);
        }
    }

    /// Copies bits from the source (tile 1), whatever they mean.
    pub(crate) fn copy_bits(&self, m: &mut Machine) -> Run<()> {
        let at = self.place(m)?;
        let mut copied = self.copied(&at);
        copied[1] |= self.tiles[1].may_overlap(at[1], &self.tiles[0], at[0])
            && !self.tiles[1].same_walk(at[1], &self.tiles[0], at[0]);
        let moved;
        let nest = if copied[1] {
            moved = self.copy_sources(m, &at, copied);
            &moved
        } else {
            &self.nest
        };
        let inner = nest.inner;
        let Machine { mem, scratch, .. } = &mut *m;
        let run = |k: usize, offset: i64| Spaced {
            at: (if copied[k] { 0 } else { at[k] as i64 } + offset) as usize,
            step: inner.bytes[k],
            count: inner.count,
            dtype: self.tiles[k].dtype,
            size: self.tiles[k].size,
        };
        let _ = nest.each::<()>(|offsets| {
            let (dst, src) = (run(0, offsets[0]), run(1, offsets[1]));
            if copied[1] {
                let len = src.count * src.size;
                let from = &scratch.copies[1];
                runs::resize(&mut scratch.spare, len);
                runs::pack(from, &src, &mut scratch.spare[..len]);
                runs::unpack(mem.bytes_mut(), &dst, &scratch.spare[..len]);
            } else {
                runs::copy(mem.bytes_mut(), &dst, &src, &mut scratch.spare);
            }
            Ok(())
        });
        m.mark(&self.tiles[0], at[0]);
        Ok(())
    }

    /// Computes every element as integers: `body` turns a row of the first source into one of the result,
    /// and gets those of the others.
    pub(crate) fn map_ints(
        &self,
        m: &mut Machine,
        mut body: impl FnMut(&mut [i64], [&[i64]; 2]),
    ) -> Run<()> {
        let at = self.place(m)?;
        let copied = self.copied(&at);
        let moved;
        let nest = if copied.contains(&true) {
            moved = self.copy_sources(m, &at, copied);
            &moved
        } else {
            &self.nest
        };
        let inner = nest.inner;
        for row in &mut m.scratch.ints {
            runs::resize(row, CHUNK.min(inner.count));
        }
        let _ = nest.each::<()>(|offsets| {
            let mut done = 0;
            while done < inner.count {
                let count = CHUNK.min(inner.count - done);
                let Machine { mem, scratch, .. } = &mut *m;
                let spaced = |k: usize| Spaced {
                    at: (if copied[k] { 0 } else { at[k] as i64 }
                        + offsets[k]
                        + inner.bytes[k] * done as i64) as usize,
                    step: inner.bytes[k],
                    count,
                    dtype: self.tiles[k].dtype,
                    size: self.tiles[k].size,
                };
                let [first, second, third] = &mut scratch.ints;
                for (k, row) in [(1, &mut *first), (2, &mut *second), (3, &mut *third)] {
                    if k < K {
                        let bytes = if copied[k] {
                            scratch.copies[k].as_slice()
                        } else {
                            mem.bytes()
                        };
                        runs::load_ints(bytes, &spaced(k), &mut row[..count]);
                    }
                }
                body(&mut first[..count], [&second[..count], &third[..count]]);
                runs::store_ints(mem.bytes_mut(), &spaced(0), &first[..count]);
                done += count;
            }
            Ok(())
        });
        m.mark(&self.tiles[0], at[0]);
        Ok(())
    }
}

/// A [`Walk`] of however many sources an instruction has.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives in a box, once per instruction"
)]
#[derive(Debug)]
pub(crate) enum AnyWalk {
    /// A destination alone.
    One(Walk<1>),
    /// One source.
    Two(Walk<2>),
    /// Two sources.
    Three(Walk<3>),
    /// Three sources.
    Four(Walk<4>),
}

impl AnyWalk {
    /// Joins a destination and up to three sources.
    pub(crate) fn new(tiles: Vec<Tile>) -> Run<AnyWalk> {
        let tiles = match <[Tile; 1]>::try_from(tiles) {
            Ok(tiles) => return Walk::new(tiles).map(AnyWalk::One),
            Err(tiles) => tiles,
        };
        let tiles = match <[Tile; 2]>::try_from(tiles) {
            Ok(tiles) => return Walk::new(tiles).map(AnyWalk::Two),
            Err(tiles) => tiles,
        };
        let tiles = match <[Tile; 3]>::try_from(tiles) {
            Ok(tiles) => return Walk::new(tiles).map(AnyWalk::Three),
            Err(tiles) => tiles,
        };
        match <[Tile; 4]>::try_from(tiles) {
            Ok(tiles) => Walk::new(tiles).map(AnyWalk::Four),
            Err(tiles) => Err(malformed(format!("{} memory operands", tiles.len()))),
        }
    }

    /// [`Walk::map_halves`].
    #[inline]
    pub(crate) fn map_halves(
        &self,
        m: &mut Machine,
        body: impl FnMut(Lanes, &mut [u8], &[Half<'_>]),
    ) -> Run<bool> {
        match self {
            AnyWalk::One(walk) => walk.map_halves(m, body),
            AnyWalk::Two(walk) => walk.map_halves(m, body),
            AnyWalk::Three(walk) => walk.map_halves(m, body),
            AnyWalk::Four(walk) => walk.map_halves(m, body),
        }
    }

    /// [`Walk::map`].
    #[inline]
    pub(crate) fn map(
        &self,
        m: &mut Machine,
        body: impl FnMut(Lanes, &mut [f32], &[Arg<'_>]),
    ) -> Run<()> {
        match self {
            AnyWalk::One(walk) => walk.map(m, body),
            AnyWalk::Two(walk) => walk.map(m, body),
            AnyWalk::Three(walk) => walk.map(m, body),
            AnyWalk::Four(walk) => walk.map(m, body),
        }
    }
}
