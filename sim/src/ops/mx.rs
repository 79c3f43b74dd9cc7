//! MX data on the tensor engine, their quantisation, and the product with a sparse side.

use bir_dialect::bir::num::{
    DType, Overflow, element_to_f32, load_bits, pack_x4, packed_element_from_f32, store_bits,
    unpack_x4,
};

use crate::alu::Quieten;
use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::product::{Matrix, MatrixMut, multiply};
use crate::rows;
use crate::run::MxScale;
use crate::runs;
use crate::simd::{Kernel, fma};
use crate::tile::Tile;

use super::matrix::{Mode, write};
use super::movement::volume;
use super::partitions::one_row;

/// Partitions whose scales lie together.
const QUADRANT: usize = 32;
/// Partitions that share a scale.
const GROUP: usize = 8;
/// Elements packed into one.
const PACKED: usize = 4;
/// The scale of what is not finite.
const NAN_SCALE: u8 = 0xff;
/// The exponent a scale of 0 stands for, negated.
const BIAS: i32 = 127;

/// The row of a scale tile that serves a partition.
fn scale_row(partition: usize) -> usize {
    partition / QUADRANT * QUADRANT + partition % QUADRANT / GROUP
}

/// Rows a scale tile needs for so many partitions.
fn scale_rows(partitions: usize) -> usize {
    partitions
        .checked_sub(1)
        .map_or(0, |last| scale_row(last) + 1)
}

/// `2^(scale - 127)`, NaN for 255.
fn scale_value(scale: u8) -> f32 {
    if scale == NAN_SCALE {
        return crate::alu::NAN;
    }
    // Built in f64, where 2^-127 is no subnormal, and exact in f32.
    f64::from_bits(((i64::from(scale) - i64::from(BIAS) + 1023) as u64) << 52) as f32
}

/// A side of a product: packed data and its scales.
struct Side {
    data: Tile,
    scale: Tile,
}

impl Side {
    fn of(site: &Site<'_>, data: &str, scale: &str) -> Run<Side> {
        let side = Side {
            data: site.tile(data)?,
            scale: site.tile(scale)?,
        };
        let Side { data, scale } = &side;
        let fits = scale.elements == data.elements && scale.size == 1;
        if !fits || scale.partitions < scale_rows(data.partitions) {
            return Err(malformed("scales have too few partitions or elements"));
        }
        Ok(side)
    }

    /// The values, scaled: row `4 p + j` of `out` holds element `j` of every packed one of
    /// partition `p`.
    fn load(&self, m: &mut Machine, which: usize) -> Run<()> {
        let Side { data, scale } = self;
        let at = m.source(data)?;
        let scale_at = m.at(scale)?;
        // Rows that no partition's scale lies in are not read.
        let row = one_row(scale);
        for p in (0..data.partitions).step_by(GROUP) {
            m.check_defined(&row, scale_at + scale_row(p) * scale.home.pitch)?;
        }
        let Machine { mem, scratch, .. } = &mut *m;
        let [bytes, scales, ..] = &mut scratch.copies;
        rows::pack(mem, data, at, (0, data.partitions), bytes);
        rows::pack(mem, scale, scale_at, (0, scale.partitions), scales);
        let out = &mut scratch.rows[which];
        let columns = data.elements;
        runs::resize(out, data.partitions * PACKED * columns);
        for p in 0..data.partitions {
            for column in 0..columns {
                let element = &bytes[(p * columns + column) * data.size..][..data.size];
                let factor = scale_value(scales[scale_row(p) * columns + column]);
                let parts = load_bits(data.dtype, element)
                    .and_then(|bits| unpack_x4(data.dtype, bits))
                    .unwrap_or_default();
                for (j, part) in parts.into_iter().enumerate() {
                    let value = element_to_f32(data.dtype, part).unwrap_or(0.0);
                    out[(p * PACKED + j) * columns + column] = value * factor;
                }
            }
        }
        Ok(())
    }
}

struct Product {
    dst: Tile,
    stationary: Side,
    moving: Side,
    mode: Mode,
}

impl Task for Product {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Product {
            dst,
            stationary,
            moving,
            mode,
        } = self;
        let to = m.at(dst)?;
        stationary.load(m, 0)?;
        moving.load(m, 1)?;
        let shape = (
            stationary.data.partitions * PACKED,
            stationary.data.elements,
            moving.data.elements,
        );
        let adds = mode.adds(m);
        let lanes = m.lanes;
        let [a, b, _, panel] = &mut m.scratch.rows;
        let out = &mut m.scratch.out;
        runs::resize(out, shape.1 * shape.2);
        multiply(
            lanes,
            Matrix::dense(&a[..shape.0 * shape.1], shape.1),
            Matrix::dense(&b[..shape.0 * shape.2], shape.2),
            shape,
            MatrixMut {
                data: &mut out[..shape.1 * shape.2],
                pitch: shape.2,
            },
            panel,
        );
        write(m, dst, to, shape, adds)
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.stationary.data) + volume(&self.moving.data)
    }
}

pub(super) fn matmult_mx(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let product = Product {
        dst: site.tile("dst")?,
        stationary: Side::of(site, "stationary", "stationary_scale")?,
        moving: Side::of(site, "moving", "moving_scale")?,
        mode: Mode::of(site)?,
    };
    let (a, b) = (&product.stationary.data, &product.moving.data);
    let fits = a.partitions == b.partitions
        && a.partitions > 0
        && (product.dst.partitions, product.dst.elements) == (a.elements, b.elements);
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(product))
}

struct Quantize {
    dst: Tile,
    scale: Tile,
    src: Tile,
}

/// The scale of a group with this largest magnitude, for elements below `2^(limit + 1)`.
fn group_scale(largest: f32, limit: i32) -> u8 {
    if !largest.is_finite() {
        return NAN_SCALE;
    }
    if largest == 0.0 {
        return 0;
    }
    // Normal in f64 whatever it is in f32, so that the exponent is floor(log2).
    let exponent = (f64::from(largest).to_bits() >> 52) as i32 - 1023;
    (exponent - limit + BIAS).clamp(0, 254) as u8
}

impl Task for Quantize {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Quantize { dst, scale, src } = self;
        let (to, scale_at) = (m.at(dst)?, m.at(scale)?);
        let from = m.source(src)?;
        // Largest exponent the elements are given: one below the format's, or its own.
        let own = if dst.dtype == DType::F8E5M2x4 { 15 } else { 8 };
        let (limit, overflow) = match m.mx_scale {
            MxScale::Isa => (own - 1, Overflow::Default),
            MxScale::Ocp => (own, Overflow::Saturate),
        };
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [values, ..] = &mut scratch.rows;
        let [packed, scales, ..] = &mut scratch.copies;
        let all = (0, src.partitions);
        rows::load(*lanes, mem, src, from, all, values, &mut scratch.spare);
        let columns = dst.elements;
        runs::resize(packed, src.partitions * columns * dst.size);
        let written: Vec<usize> = (0..src.partitions).step_by(GROUP).collect();
        runs::resize(scales, written.len() * columns);
        for (group, &first) in written.iter().enumerate() {
            for column in 0..columns {
                let rows =
                    || (first..first + GROUP).map(|p| (p, p * src.elements + column * PACKED));
                // NaN is larger than anything here.
                let largest = rows()
                    .flat_map(|(_, at)| &values[at..at + PACKED])
                    .map(|x| x.abs())
                    .fold(0.0f32, crate::alu::max);
                let scale = group_scale(largest, limit);
                scales[group * columns + column] = scale;
                let factor = f64::from(scale_value(scale));
                for (p, at) in rows() {
                    let elements: [u8; PACKED] = std::array::from_fn(|j| {
                        let value = (f64::from(values[at + j]) / factor) as f32;
                        packed_element_from_f32(dst.dtype, value, overflow).unwrap_or(0)
                    });
                    let bits = pack_x4(dst.dtype, elements).unwrap_or(0);
                    let element = &mut packed[(p * columns + column) * dst.size..][..dst.size];
                    let _ = store_bits(dst.dtype, bits, element);
                }
            }
        }
        rows::unpack(mem, dst, to, all, packed);
        for (group, &first) in written.iter().enumerate() {
            let row = &scales[group * columns..][..columns];
            rows::unpack(mem, scale, scale_at, (scale_row(first), 1), row);
        }
        m.mark(dst, to);
        let row = one_row(scale);
        for first in written {
            m.mark(&row, scale_at + scale_row(first) * scale.home.pitch);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn quantize_mx(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, scale, src) = (site.tile("dst")?, site.tile("scale")?, site.tile("src")?);
    let fits = src.partitions.is_multiple_of(QUADRANT)
        && dst.partitions == src.partitions
        && src.elements == dst.elements * PACKED
        && scale.elements == dst.elements
        && scale.size == 1
        && scale.partitions >= scale_rows(src.partitions);
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(Quantize { dst, scale, src }))
}

/// Rows of `moving` a kept element chooses among, per row of a block.
const BLOCK: usize = 4;

struct Sparse {
    dst: Tile,
    stationary: Tile,
    moving: Tile,
    tags: Tile,
    mode: Mode,
    ratio: usize,
}

/// `out[m, n] = Σ_p kept[p, m] * rows[chosen[p, m]][n]`
struct ChosenRows<'a> {
    kept: &'a [f32],
    /// Row of `rows` each kept element is multiplied with.
    chosen: &'a [usize],
    rows: &'a [f32],
    shape: (usize, usize, usize),
    out: &'a mut [f32],
}

impl Kernel for ChosenRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let ChosenRows {
            kept,
            chosen,
            rows,
            shape: (k, m, n),
            out,
        } = self;
        for (i, out) in out[..m * n].chunks_exact_mut(n).enumerate() {
            for p in 0..k {
                let at = p * m + i;
                let row = &rows[chosen[at] * n..][..n];
                for (out, &b) in out.iter_mut().zip(row) {
                    *out = if p == 0 {
                        kept[at] * b
                    } else {
                        fma::<FMA>(kept[at], b, *out)
                    };
                }
            }
        }
    }
}

impl Task for Sparse {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Sparse {
            dst,
            stationary,
            moving,
            tags,
            mode,
            ratio,
        } = self;
        let to = m.at(dst)?;
        let (a_at, b_at) = (m.source(stationary)?, m.source(moving)?);
        let tags_at = m.source(tags)?;
        let adds = mode.adds(m);
        let (k, columns, n) = (
            stationary.partitions,
            stationary.elements,
            moving.elements / ratio,
        );
        let mut words = Vec::new();
        rows::load_ints(&m.mem, tags, tags_at, (0, k), &mut words);
        let mut chosen = Vec::with_capacity(k * columns);
        for p in 0..k {
            for column in 0..columns {
                let word = words[p * tags.elements + column / 4];
                let tag = (word >> (column % 4 * 4)) as usize & 15;
                // Rows of a block are counted partition by partition.
                let row = p / BLOCK * BLOCK * ratio + tag;
                let rows = BLOCK.min(k - p / BLOCK * BLOCK) * ratio;
                if tag >= rows {
                    let reader = format!("element {column} of partition {p}");
                    let mut block = moving.clone();
                    block.elements = rows;
                    return Err(m.bad_position(tags, &block, tag as i64, reader));
                }
                chosen.push(row);
            }
        }
        let Machine {
            mem,
            scratch,
            lanes,
            ..
        } = &mut *m;
        let [a, b, ..] = &mut scratch.rows;
        let (out, spare) = (&mut scratch.out, &mut scratch.spare);
        rows::load(*lanes, mem, stationary, a_at, (0, k), a, spare);
        rows::load(*lanes, mem, moving, b_at, (0, k), b, spare);
        runs::resize(out, columns * n);
        lanes.run(ChosenRows {
            kept: a,
            chosen: &chosen,
            rows: b,
            shape: (k, columns, n),
            out,
        });
        lanes.run(Quieten(&mut scratch.out[..columns * n]));
        write(m, dst, to, (k, columns, n), adds)
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.stationary) + volume(&self.moving)
    }
}

pub(super) fn matmult_sparse(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let sparse = Sparse {
        dst: site.tile("dst")?,
        stationary: site.tile("stationary")?,
        moving: site.tile("moving")?,
        tags: site.tile("tags")?,
        mode: Mode::of(site)?,
        ratio: usize::try_from(site.int("ratio", 1)).unwrap_or(1).max(1),
    };
    let (a, b) = (&sparse.stationary, &sparse.moving);
    let fits = a.partitions == b.partitions
        && a.partitions > 0
        && b.elements.is_multiple_of(sparse.ratio)
        && sparse.tags.partitions == a.partitions
        && sparse.tags.elements * 4 >= a.elements
        && (sparse.dst.partitions, sparse.dst.elements) == (a.elements, b.elements / sparse.ratio);
    if !fits {
        return Err(malformed("the shapes of its operands disagree"));
    }
    Ok(Box::new(sparse))
}
