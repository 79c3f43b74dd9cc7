//! Choosing by masks, positions and ranges.

use bir_dialect::bir::num::{DType, from_f32};

use crate::alu::{Alu, Arg, ReduceRows, max, reduce_rows};
use crate::fault::{Run, malformed};
use crate::lower::{Scalar, Site, Task};
use crate::machine::Machine;
use crate::rows::{self, Rows};
use crate::runs::{self, Spaced};
use crate::simd::Kernel;
use crate::tile::Tile;
use crate::walk::{AnyWalk, Walk};

use super::accumulate::{Command, per_row, place, write_column};
use super::fill::Ramp;
use super::movement::{transfer, volume};

/// The smallest finite f32: what is not chosen.
const FILL: f32 = f32::MIN;

/// `out = mask != 0 ? on_true : on_false`
struct Choose<'a> {
    out: &'a mut [f32],
    mask: Arg<'a>,
    on_true: Arg<'a>,
    on_false: Arg<'a>,
    reverse: bool,
}

impl Kernel for Choose<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Choose {
            out,
            mask,
            on_true,
            on_false,
            reverse,
        } = self;
        if let (Arg::Row(mask), Arg::Row(t), Arg::Splat(f)) = (mask, on_true, on_false) {
            for ((out, &mask), &t) in out.iter_mut().zip(mask).zip(t) {
                *out = if (mask != 0.0) != reverse { t } else { f };
            }
            return;
        }
        if let (Arg::Row(mask), Arg::Row(t), Arg::Row(f)) = (mask, on_true, on_false) {
            for (((out, &mask), &t), &f) in out.iter_mut().zip(mask).zip(t).zip(f) {
                *out = if (mask != 0.0) != reverse { t } else { f };
            }
            return;
        }
        for i in 0..out.len() {
            let own = out[i];
            let pick = |arg: Arg<'_>| match arg {
                Arg::Own => own,
                Arg::Row(row) => row[i],
                Arg::Splat(value) => value,
            };
            out[i] = if (pick(mask) != 0.0) != reverse {
                pick(on_true)
            } else {
                pick(on_false)
            };
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Number(f32),
    Source(usize),
}

struct Select {
    walk: AnyWalk,
    on_true: Side,
    on_false: Side,
    reverse: bool,
    bytes: u64,
}

impl Task for Select {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.walk.map(m, |lanes, out, args| {
            let arg = |side| match side {
                Side::Number(number) => Arg::Splat(number),
                Side::Source(at) => args[at],
            };
            lanes.run(Choose {
                out,
                mask: args[0],
                on_true: arg(self.on_true),
                on_false: arg(self.on_false),
                reverse: self.reverse,
            });
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn choose(site: &Site<'_>) -> Run<Select> {
    let mut tiles = vec![site.tile("dst")?, site.tile("pred")?];
    let mut side = |role: &str| -> Run<Side> {
        match site.scalar(role)? {
            None => Err(malformed(format!("operand `{role}` is missing"))),
            Some(Scalar::Number(number)) => Ok(Side::Number(number)),
            Some(Scalar::Tile(tile)) => {
                tiles.push(tile);
                Ok(Side::Source(tiles.len() - 2))
            }
        }
    };
    let (on_true, on_false) = (side("on_true")?, side("on_false")?);
    let bytes = tiles.iter().map(volume).sum();
    Ok(Select {
        walk: AnyWalk::new(tiles)?,
        on_true,
        on_false,
        reverse: site.flag("reverse"),
        bytes,
    })
}

pub(super) fn select(site: &Site<'_>) -> Run<Box<dyn Task>> {
    Ok(Box::new(choose(site)?))
}

/// Runs row maxima through the vector engine's accumulator and writes it.
fn keep_maxima(
    m: &mut Machine,
    maxima: &mut [f32; 128],
    partitions: usize,
    command: Command,
    init: f32,
    result: Option<&Tile>,
) -> Run<()> {
    if command == Command::Idle {
        m.dve.poison();
        return match result {
            Some(_) => m.dve.get(0).map(|_| ()),
            None => Ok(()),
        };
    }
    for (p, value) in maxima[..partitions.min(128)].iter_mut().enumerate() {
        *value = match command {
            Command::Accumulate => max(m.dve.get(p)?, *value),
            Command::Load => max(init, *value),
            Command::Clear => f32::NEG_INFINITY,
            Command::Idle | Command::Reset => *value,
        };
        m.dve.set(p, *value);
    }
    match result {
        Some(result) => write_column(m, result, maxima),
        None => Ok(()),
    }
}

struct SelectReduce {
    select: Select,
    dst: Tile,
    command: Command,
    result: Option<Tile>,
}

impl Task for SelectReduce {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.select.run(m)?;
        let at = m.at(&self.dst)?;
        let mut maxima = [f32::NEG_INFINITY; 128];
        if self.command != Command::Idle {
            rows::reduce(m, Alu::Max, &self.dst, at, &mut maxima);
        }
        keep_maxima(
            m,
            &mut maxima,
            self.dst.partitions,
            self.command,
            0.0,
            self.result.as_ref(),
        )
    }

    fn bytes(&self) -> u64 {
        self.select.bytes
    }
}

pub(super) fn select_reduce(site: &Site<'_>) -> Run<Box<dyn Task>> {
    Ok(Box::new(SelectReduce {
        select: choose(site)?,
        dst: site.tile("dst")?,
        command: Command::of(site, Command::Idle),
        result: site.maybe_tile("reduce_res")?,
    }))
}

struct RangeSelect {
    dst: Tile,
    src: Tile,
    bounds: [Scalar; 2],
    compare: [Alu; 2],
    start: f32,
    command: Command,
    result: Option<Tile>,
}

impl Task for RangeSelect {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let RangeSelect {
            dst,
            src,
            bounds,
            compare,
            start,
            command,
            result,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (bound, out) in bounds.iter().zip([&mut low, &mut high]) {
            let at = place(m, bound, src.partitions)?;
            per_row(m, bound, at, (0, src.partitions), out);
        }
        let len = src.elements.max(1);
        let mut maxima = [FILL; 128];
        rows::map(m, (dst, to), [(src, from)], |rows| {
            let Rows {
                lanes,
                first,
                sources: [values],
                out,
            } = rows;
            let mut p = first;
            for (row, out) in values.chunks_exact(len).zip(out.chunks_exact_mut(len)) {
                for (j, (out, &value)) in out.iter_mut().zip(row).enumerate() {
                    let at = start + j as f32;
                    let holds =
                        compare[0].apply(at, low[p]) != 0.0 && compare[1].apply(at, high[p]) != 0.0;
                    *out = if holds { value } else { FILL };
                }
                p += 1;
            }
            let job = ReduceRows {
                op: Alu::Max,
                rows: out,
                len,
                stride: len,
                out: &mut maxima[first..p],
            };
            reduce_rows(lanes, job);
        })?;
        keep_maxima(
            m,
            &mut maxima,
            src.partitions,
            *command,
            FILL,
            result.as_ref(),
        )
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn range_select(site: &Site<'_>) -> Run<Box<dyn Task>> {
    Ok(Box::new(RangeSelect {
        dst: site.tile("dst")?,
        src: site.tile("src")?,
        bounds: [
            Scalar::Tile(site.tile("bound0")?),
            Scalar::Tile(site.tile("bound1")?),
        ],
        compare: [site.alu("cmp0")?, site.alu("cmp1")?],
        start: site.int("range_start", 0) as f32,
        command: Command::of(site, Command::Reset),
        result: site.maybe_tile("reduce_res")?,
    }))
}

struct AffineSelect {
    dst: Tile,
    src: Tile,
    ramp: Ramp,
    compare: Alu,
    on_false: f32,
    /// Its bits where both sides have one dtype: then bits are copied, and nothing goes through f32.
    bits: Option<Vec<u8>>,
}

impl AffineSelect {
    /// Copies the bits of elements whose slope compares, and writes `bits` to the others.
    fn copy_bits(&self, m: &mut Machine, to: usize, from: usize, bits: &[u8]) {
        let AffineSelect { dst, src, ramp, .. } = self;
        let all = (0, src.partitions);
        let Machine { mem, scratch, .. } = &mut *m;
        let [values, ..] = &mut scratch.copies;
        rows::pack(mem, src, from, all, values);
        let rows = values.chunks_exact_mut(src.size * src.elements.max(1));
        for (p, row) in rows.take(src.partitions).enumerate() {
            for (j, value) in row.chunks_exact_mut(src.size).enumerate() {
                if !self.holds(ramp.at(p, j)) {
                    value.copy_from_slice(bits);
                }
            }
        }
        rows::unpack(mem, dst, to, all, values);
        m.mark(dst, to);
    }

    fn holds(&self, value: i32) -> bool {
        match self.compare {
            Alu::Equal => value == 0,
            Alu::NotEqual => value != 0,
            Alu::Greater => value > 0,
            Alu::GreaterEqual => value >= 0,
            Alu::Less => value < 0,
            _ => value <= 0,
        }
    }
}

impl Task for AffineSelect {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let AffineSelect { dst, src, ramp, .. } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        if let Some(bits) = &self.bits {
            self.copy_bits(m, to, from, bits);
            return Ok(());
        }
        let len = src.elements.max(1);
        rows::map(m, (dst, to), [(src, from)], |rows| {
            let [values] = rows.sources;
            let results = rows.out.chunks_exact_mut(len);
            for (i, (row, out)) in values.chunks_exact(len).zip(results).enumerate() {
                for (j, (out, &value)) in out.iter_mut().zip(row).enumerate() {
                    let holds = self.holds(ramp.at(rows.first + i, j));
                    *out = if holds { value } else { self.on_false };
                }
            }
        })
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn affine_select(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if (dst.partitions, dst.elements) != (src.partitions, src.elements) {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    let ramp = Ramp::new(site, src.elements)?;
    let on_false = match site.scalar("on_false")? {
        Some(Scalar::Number(number)) => number,
        _ => return Err(malformed("`on_false` is no number")),
    };
    // f32 is itself on either way, and rows of it need no copy.
    let copies = dst.dtype == src.dtype && dst.dtype != DType::F32;
    let bits = from_f32(dst.dtype, on_false).filter(|_| copies);
    let bits = bits.map(|bits| bits.to_le_bytes()[..dst.size].to_vec());
    Ok(Box::new(AffineSelect {
        bits,
        dst,
        src,
        ramp,
        compare: site.alu("op")?,
        on_false,
    }))
}

/// Writes where the mask holds, and only there.
struct CopyPredicated {
    /// Destination, mask, and the source where it is a tile.
    dst: Tile,
    mask: Tile,
    src: Source,
    reverse: bool,
    applied: Option<Box<dyn Task>>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "it lives in a box, once per instruction"
)]
enum Source {
    Tile(Tile),
    Bits(Vec<u8>),
}

impl Task for CopyPredicated {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let CopyPredicated {
            dst,
            mask,
            src,
            reverse,
            applied,
        } = self;
        let to = m.at(dst)?;
        let mask_at = m.source(mask)?;
        let all = (0, dst.partitions);
        let size = dst.size;
        let len = dst.partitions * dst.elements;
        if let Source::Tile(src) = src {
            // Only what is copied has to be defined, but the hardware reads it all.
            let at = m.source(src)?;
            let Machine { mem, scratch, .. } = &mut *m;
            rows::pack(mem, src, at, all, &mut scratch.copies[1]);
        }
        let Machine { mem, scratch, .. } = &mut *m;
        let [masks, ..] = &mut scratch.ints;
        rows::load_ints(mem, mask, mask_at, all, masks);
        let chosen: Vec<bool> = masks[..len]
            .iter()
            .map(|&bits| (bits != 0) != *reverse)
            .collect();
        let [kept, from, ..] = &mut scratch.copies;
        rows::pack(mem, dst, to, all, kept);
        for (i, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
            let value = match src {
                Source::Tile(src) if src.elements == 1 && dst.elements != 1 => {
                    &from[i / dst.elements * size..][..size]
                }
                Source::Tile(_) => &from[i * size..][..size],
                Source::Bits(bits) => bits.as_slice(),
            };
            kept[i * size..][..size].copy_from_slice(value);
        }
        rows::unpack(mem, dst, to, all, kept);
        if chosen.iter().all(|&chosen| chosen) {
            m.mark(dst, to);
        } else {
            self.mark_chosen(m, to, &chosen);
        }
        match applied {
            Some(task) => task.run(m),
            None => Ok(()),
        }
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.mask)
    }
}

impl CopyPredicated {
    /// Marks as defined what the mask chose.
    fn mark_chosen(&self, m: &mut Machine, to: usize, chosen: &[bool]) {
        let dst = &self.dst;
        let region = dst.home.region;
        let known = &m.mem.regions[region];
        if known.defined.is_full() && known.matmult.is_empty() {
            return;
        }
        let offsets = crate::tile::Odometer::new(dst.all_levels());
        for (offset, _) in offsets.zip(chosen).filter(|(_, chosen)| **chosen) {
            let at = (to as i64 + offset) as usize;
            m.mem.mark(region, at..at + dst.size);
        }
    }
}

/// The mask as 0 and 1.
struct Applied {
    walk: Walk<2>,
    reverse: bool,
}

impl Task for Applied {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.walk.map(m, |lanes, out, args| {
            let choose = Choose {
                out,
                mask: args[0],
                on_true: Arg::Splat(1.0),
                on_false: Arg::Splat(0.0),
                reverse: self.reverse,
            };
            lanes.run(choose);
        })
    }
}

pub(super) fn copy_predicated(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, mask) = (site.tile("dst")?, site.tile("pred")?);
    if dst.partitions != mask.partitions || dst.elements != mask.elements {
        return Err(malformed("`dst` and `pred` differ in shape"));
    }
    let src = match site.maybe_tile("on_true")? {
        Some(src) => {
            if src.dtype != dst.dtype {
                // Refused by the verifier; a copy of bits would be silently wrong.
                transfer(dst.clone(), src.clone())?;
                return Err(malformed("`dst` and `src` differ in dtype"));
            }
            let fits = src.partitions == dst.partitions
                && (src.elements == dst.elements || src.elements == 1);
            if !fits {
                return Err(malformed("`dst` and `src` differ in shape"));
            }
            Source::Tile(src)
        }
        None => {
            let (dtype, bits) = site
                .literal("on_true")
                .ok_or_else(|| malformed("`src` is missing"))?;
            let bits = bir_dialect::bir::num::convert(dtype, dst.dtype, bits).unwrap_or(bits);
            Source::Bits(bits.to_le_bytes()[..dst.size].to_vec())
        }
    };
    let reverse = site.flag("reverse");
    let applied = match site.maybe_tile("pred_out")? {
        Some(out) => Some(Box::new(Applied {
            walk: Walk::new([out, mask.clone()])?,
            reverse,
        }) as Box<dyn Task>),
        None => None,
    };
    Ok(Box::new(CopyPredicated {
        dst,
        mask,
        src,
        reverse,
        applied,
    }))
}

/// Reads one element of a tile as an integer or the bits of a float.
pub(super) fn one_element(m: &Machine, tile: &Tile, at: usize) -> i64 {
    let mut out = [0];
    let run = Spaced {
        at,
        step: 0,
        count: 1,
        dtype: tile.dtype,
        size: tile.size,
    };
    runs::load_ints(m.mem.bytes(), &run, &mut out);
    out[0]
}
