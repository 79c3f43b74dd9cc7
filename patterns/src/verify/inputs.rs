//! What both sides are run on.

use bir_dialect::bir::num::{DType, is_nan, parse, to_f64};
use bir_sim::Inputs;
use bir_sim::Tensor;
use bir_sim::random::Random;

use super::Effort;
use super::layout::Layout;
use super::program::{Instance, PARTITIONS, Shape, inputs};
use super::space::Assignment;
use super::twist::{Spread, Twist};
use crate::rule::Form;

/// Values of one run where not all combinations are tried.
const SAMPLES: usize = 1 << 16;
/// The same where something is out of the ordinary: what matters then is not the values.
const TWISTED_SAMPLES: usize = 1 << 12;

/// How an instance is run.
pub(super) struct Plan {
    /// Sizes of its tiles.
    pub shape: Shape,
    /// Runs.
    pub batches: u64,
    /// Whether every combination of inputs is tried.
    pub exhaustive: bool,
    /// Whether the last run has plain numbers only: neither infinite nor NaN, and none so large that
    /// sums and products are.
    pub tame: bool,
    all_f32: bool,
}

impl Plan {
    /// `excused`: whether the contract looks away where something is infinite or NaN.
    pub(super) fn new(form: &Form, assignment: &Assignment, effort: Effort, excused: bool) -> Plan {
        let shape = Shape::of(form, 2);
        let layout = Layout {
            form,
            assignment,
            shape: &shape,
        };
        let spread = layout.spread();
        let given = inputs(&layout);
        let sizes = |dims: &[usize]| dims.iter().product::<usize>();
        let elements: Vec<usize> = given.iter().map(|input| sizes(&input.dims)).collect();
        let bits: u32 = given.iter().map(|input| input.dtype.bits()).sum();
        let alike = elements.windows(2).all(|two| two[0] == two[1])
            && elements.first().is_none_or(|&count| count > PARTITIONS);
        let plain = alike && assignment.twist == Twist::None && spread == Spread::Element;
        // A row in which something is NaN mostly adds up to one.
        let reduces = (0..form.vars.len()).any(|var| {
            let written = form.writer(var).is_some() && layout.tile(var).is_some();
            let most = elements.iter().max().copied().unwrap_or(0);
            written && sizes(&layout.dims(var)) < most
        });
        let tame = excused || reduces || spread != Spread::Element;
        if plain && !reduces && bits <= 16 {
            return Plan {
                shape: Shape::of(form, (1usize << bits).div_ceil(PARTITIONS)),
                batches: 1,
                exhaustive: true,
                tame: false,
                all_f32: false,
            };
        }
        let all_f32 = effort.all_f32 && plain && !reduces && bits == 32 && given.len() == 1;
        let samples = match assignment.twist {
            Twist::None => SAMPLES,
            _ => TWISTED_SAMPLES,
        };
        Plan {
            shape: Shape::of(form, samples / PARTITIONS),
            batches: match (all_f32, assignment.twist) {
                (true, _) => (1 << 32) / SAMPLES as u64,
                (false, Twist::None) => effort.batches,
                (false, _) => 1,
            } + u64::from(tame),
            exhaustive: all_f32,
            tame,
            all_f32,
        }
    }

    /// The inputs of one run.
    pub(super) fn inputs(&self, instance: &Instance, batch: u64) -> Inputs {
        let mut shift = 0;
        let mut stride = 1usize;
        let mut out = Inputs::new();
        let is_tame = self.tame && batch + 1 == self.batches;
        for input in &instance.inputs {
            let count: usize = input.dims.iter().product();
            let size = input.dtype.size_bytes() as usize;
            let mut bytes = Vec::with_capacity(count * size);
            let specials = boundaries(input.dtype);
            let mut random = Random::new(batch, &input.port);
            // Boundary values take at most half of a run.
            let half = count.div_ceil(2);
            for at in 0..count {
                let bits = if is_tame {
                    tame(input.dtype, &mut random)
                } else if self.all_f32 {
                    batch * SAMPLES as u64 + at as u64
                } else if self.exhaustive {
                    (at as u64) >> shift
                } else if batch == 0 && at < half {
                    specials[at / stride % specials.len()]
                } else if random.below(8) == 0 {
                    specials[random.below(specials.len() as u64) as usize]
                } else {
                    any(input.dtype, &mut random)
                };
                let bits = bits & input.dtype.mask() & !padding(input.dtype);
                bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
            }
            shift += input.dtype.bits();
            // The next input changes once all of this one's have been seen beside it.
            stride = stride.saturating_mul(specials.len()).min(half.max(1));
            let tensor = Tensor {
                dtype: input.dtype,
                dims: input.dims.iter().map(|&dim| dim as u64).collect(),
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

/// A plain number.
fn tame(dtype: DType, random: &mut Random) -> u64 {
    let near = (random.unit() - 0.5) * 16.0;
    let whole = if dtype.is_float() { near } else { near.trunc() };
    let whole = match dtype.integer_range() {
        Some((0, _)) => whole.abs(),
        _ => whole,
    };
    match dtype {
        DType::Bool => random.below(2),
        _ => bir_dialect::bir::num::from_f64(dtype, whole).unwrap_or(0),
    }
}

/// Whether an element is NaN; whether it is infinite.
pub(super) fn oddities(dtype: DType, bits: u64) -> (bool, bool) {
    let infinite = to_f64(dtype, bits).is_some_and(f64::is_infinite);
    (is_nan(dtype, bits), infinite)
}

/// Values at the edges of a dtype.
fn boundaries(dtype: DType) -> Vec<u64> {
    let mut list: Vec<u64> = Vec::new();
    if dtype == DType::Bool {
        // It is a byte; all that are not zero are true.
        return vec![0, 1, 2, 0x6E, 0x80, 0xFF];
    }
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
