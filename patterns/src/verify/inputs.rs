//! What both sides are run on.

use bir_dialect::bir::num::{DType, parse};
use bir_sim::Inputs;
use bir_sim::Tensor;
use bir_sim::random::Random;

use super::Effort;
use super::instance::{Assignment, Choice, Instance, PARTITIONS};
use crate::rule::Form;

/// Values of one run where not all combinations are tried.
const SAMPLES: usize = 1 << 16;
/// Share of a run that boundary values may take.
const BOUNDARY_SHARE: usize = SAMPLES / 2;

/// How an instance is run.
pub(super) struct Plan {
    /// Columns of its tiles.
    pub columns: usize,
    /// Runs.
    pub batches: u64,
    /// Whether every combination of inputs is tried.
    pub exhaustive: bool,
    all_f32: bool,
}

impl Plan {
    pub(super) fn new(form: &Form, assignment: &Assignment, effort: Effort) -> Plan {
        let mut bits = 0;
        let mut columns = false;
        let mut tiles = 0;
        for var in 0..form.vars.len() {
            let Choice::Tile(dtype, column) = assignment.vars[var] else {
                continue;
            };
            let read = form.writer(var).is_none();
            if read {
                bits += dtype.bits();
                tiles += 1;
                columns |= column;
            }
        }
        if bits <= 16 && !columns {
            return Plan {
                columns: (1usize << bits)
                    .div_ceil(PARTITIONS)
                    .max(assignment.least_columns()),
                batches: 1,
                exhaustive: true,
                all_f32: false,
            };
        }
        let all_f32 = effort.all_f32 && bits == 32 && tiles == 1 && !columns;
        Plan {
            columns: SAMPLES / PARTITIONS,
            batches: match all_f32 {
                true => (1 << 32) / SAMPLES as u64,
                false => effort.batches,
            },
            exhaustive: all_f32,
            all_f32,
        }
    }

    /// The inputs of one run.
    pub(super) fn inputs(&self, instance: &Instance, batch: u64) -> Inputs {
        let mut shift = 0;
        let mut stride = 1usize;
        let mut out = Inputs::new();
        for input in &instance.inputs {
            let columns = if input.column { 1 } else { self.columns };
            let count = PARTITIONS * columns;
            let size = input.dtype.size_bytes() as usize;
            let mut bytes = Vec::with_capacity(count * size);
            let specials = boundaries(input.dtype);
            let mut random = Random::new(batch, &input.port);
            for at in 0..count {
                let bits = if self.all_f32 {
                    batch * SAMPLES as u64 + at as u64
                } else if self.exhaustive {
                    (at as u64) >> shift
                } else if batch == 0 && at < BOUNDARY_SHARE {
                    specials[at / stride % specials.len()]
                } else if random.below(8) == 0 {
                    specials[random.below(specials.len() as u64) as usize]
                } else {
                    any(input.dtype, &mut random)
                };
                let bits = bits & input.dtype.mask() & !padding(input.dtype);
                let bits = if input.dtype == DType::Bool {
                    bits & 1
                } else {
                    bits
                };
                bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
            }
            shift += input.dtype.bits();
            // The next input changes once all of this one's have been seen beside it.
            stride = stride.saturating_mul(specials.len()).min(BOUNDARY_SHARE);
            let tensor = Tensor {
                dtype: input.dtype,
                dims: vec![PARTITIONS as u64, columns as u64],
                bytes,
            };
            out.insert(input.port.clone(), tensor);
        }
        out
    }
}

/// Bits that are zero in every value of a dtype.
fn padding(dtype: DType) -> u64 {
    dtype
        .float_format()
        .map_or(0, |format| (1u64 << format.padding_bits) - 1)
}

/// Random bits; half of floats near one, where most sums and products do not overflow.
fn any(dtype: DType, random: &mut Random) -> u64 {
    let bits = random.next_u64();
    if dtype.is_float() && bits >> 63 == 1 {
        let near = (random.unit() - 0.5) * 16.0;
        return bir_dialect::bir::num::from_f64(dtype, near).unwrap_or(bits);
    }
    bits
}

/// Values at the edges of a dtype.
fn boundaries(dtype: DType) -> Vec<u64> {
    let mut list: Vec<u64> = Vec::new();
    if let Some((low, high)) = dtype.integer_range() {
        for value in [
            0,
            1,
            -1,
            2,
            3,
            7,
            100,
            -100,
            low,
            low + 1,
            high,
            high - 1,
            1 << 24,
            (1 << 24) + 1,
        ] {
            if (low..=high).contains(&value) {
                list.push(value as u64 & dtype.mask());
            }
        }
    } else {
        for text in [
            "0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "3.0", "-3.5", "inf", "-inf", "nan",
            "255.0", "0.1", "-1000.0",
        ] {
            list.extend(parse(dtype, text));
        }
        if let Some(format) = dtype.float_format() {
            let max = format.max_finite();
            let sign = 1u64 << (dtype.bits() - 1);
            let unit = max & max.wrapping_neg();
            let normal = unit << format.mantissa_bits;
            for bits in [max, max - unit, unit, normal, normal - unit, normal + unit] {
                list.extend([bits, bits | sign]);
            }
        }
    }
    list.sort_unstable();
    list.dedup();
    list
}
