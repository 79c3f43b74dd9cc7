//! `memset` and `iota`.

use bir_dialect::bir::num::{DType, narrow_from_f32, store_bits};

use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

struct Memset {
    dst: Tile,
    /// One element, repeated to at least a row's run.
    pattern: Vec<u8>,
}

impl Task for Memset {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let at = m.at(&self.dst)?;
        let Memset { dst, pattern } = self;
        let size = dst.size;
        let zero = pattern.iter().all(|&byte| byte == 0);
        let bytes = m.mem.bytes_mut();
        for range in dst.ranges(at) {
            let to = &mut bytes[range];
            if zero {
                to.fill(0);
                continue;
            }
            for chunk in to.chunks_mut(pattern.len()) {
                chunk.copy_from_slice(&pattern[..chunk.len()]);
            }
        }
        debug_assert_eq!(pattern.len() % size, 0);
        m.mark(dst, at);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        (self.dst.partitions * self.dst.elements * self.dst.size) as u64
    }
}

/// Bytes of the pattern a fill repeats.
const PATTERN: usize = 256;

pub(super) fn memset(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let dst = site.tile("dst")?;
    let (dtype, bits) = site
        .literal("value")
        .ok_or_else(|| malformed("`value` is no number"))?;
    // Packed dtypes take the integer 0.
    let bits = match bir_dialect::bir::num::convert(dtype, dst.dtype, bits) {
        Some(bits) => bits,
        None => bits,
    };
    let mut pattern = vec![0; PATTERN / dst.size * dst.size];
    for element in pattern.chunks_exact_mut(dst.size) {
        let _ = store_bits(dst.dtype, bits, element);
    }
    Ok(Box::new(Memset { dst, pattern }))
}

/// `offset + p * channel_multiplier + Σ step * i`, in wrapping int32, for each element of a row.
pub(super) struct Ramp {
    /// Values of the first row.
    pub(super) first: Vec<i32>,
    pub(super) channel: i32,
}

impl Ramp {
    pub(super) fn new(site: &Site<'_>, elements: usize) -> Run<Ramp> {
        let offset = site.int("offset", 0) as i32;
        let channel = site.int("channel_multiplier", 0) as i32;
        let pattern = site.pattern("pattern");
        let counted = pattern
            .iter()
            .try_fold(1usize, |product, &(_, count)| product.checked_mul(count));
        if counted != Some(elements) {
            return Err(malformed("`pattern` does not count the elements of a row"));
        }
        let mut first = vec![offset];
        for &(step, count) in &pattern {
            first = first
                .iter()
                .flat_map(|&base| {
                    (0..count).map(move |i| base.wrapping_add((step as i32).wrapping_mul(i as i32)))
                })
                .collect();
        }
        Ok(Ramp { first, channel })
    }

    /// The value of element `i` in row `p`.
    pub(super) fn at(&self, p: usize, i: usize) -> i32 {
        self.first[i].wrapping_add(self.channel.wrapping_mul(p as i32))
    }
}

struct Iota {
    dst: Tile,
    ramp: Ramp,
}

impl Task for Iota {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let at = m.at(&self.dst)?;
        let dst = &self.dst;
        let mut row = vec![0i32; dst.elements];
        let mut packed = vec![0u8; dst.elements * dst.size];
        let mut floats = vec![0f32; dst.elements];
        for p in 0..dst.partitions {
            for (i, value) in row.iter_mut().enumerate() {
                *value = self.ramp.at(p, i);
            }
            match dst.dtype {
                DType::I32 | DType::U32 => {
                    for (to, value) in packed.chunks_exact_mut(4).zip(&row) {
                        let bits = if dst.dtype == DType::U32 {
                            (*value).max(0)
                        } else {
                            *value
                        };
                        to.copy_from_slice(&bits.to_le_bytes());
                    }
                }
                dtype => {
                    for (to, &value) in floats.iter_mut().zip(&row) {
                        *to = value as f32;
                    }
                    narrow_from_f32(dtype, &floats, &mut packed)
                        .map_err(|error| malformed(error.to_string()))?;
                }
            }
            rows::unpack(&mut m.mem, dst, at, (p, 1), &packed);
        }
        m.mark(dst, at);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        (self.dst.partitions * self.dst.elements * self.dst.size) as u64
    }
}

pub(super) fn iota(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let dst = site.tile("dst")?;
    let ramp = Ramp::new(site, dst.elements)?;
    Ok(Box::new(Iota { dst, ramp }))
}
