//! Inputs by seed.
//!
//! What a location gets depends on the seed, its name and its shape, not on its place in the file.
//! Most tensors of a float dtype hold plain numbers around 1; one in four also holds special values
//! (zeros, infinities, NaN, subnormals, the largest), few enough that sums do not all become NaN.
//! Integers are small, with extremes among them; a single integer is between 0 and 7, for it may be
//! a loop bound. What is only read to choose among rows or elements chooses one that is there, and
//! none twice while there are enough.

use bir_dialect::bir::num::{DType, DTypeClass, from_f64, store_bits};

use crate::run::Port;
use crate::tensor::Tensor;

/// A small generator of good quality (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed and a name.
    pub fn new(seed: u64, name: &str) -> Random {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut random = Random(seed ^ hash.rotate_left(17));
        random.next_u64();
        random
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of a product: a division costs more than all the rest.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Special bits of a float format.
fn special(dtype: DType, random: &mut Random) -> u64 {
    let Some(format) = dtype.float_format() else {
        return 0;
    };
    let sign = (random.next_u64() & 1) << (dtype.bits() - 1);
    let sign = if format.signed { sign } else { 0 };
    let magnitude = match random.below(7) {
        0 => 0,
        1 => format.infinity().unwrap_or(0),
        2 => return format.nan().unwrap_or(0),
        3 => 1 << format.padding_bits,
        4 => format.max_finite(),
        5 => random.below(8) << format.padding_bits,
        _ => from_f64(dtype, 1.0).unwrap_or(0),
    };
    magnitude | sign
}

/// A value for a port.
pub fn value(seed: u64, port: &Port) -> Tensor {
    match port.choices {
        Some(choices) => choosing(seed, &port.name, port.dtype, &port.dims, choices),
        None => tensor(seed, &port.name, port.dtype, &port.dims),
    }
}

/// Numbers below `choices`, which is not 0: different ones, as far as they go.
fn choosing(seed: u64, name: &str, dtype: DType, dims: &[u64], choices: u64) -> Tensor {
    let mut random = Random::new(seed, name);
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // Steps of a length that has no divisor in common with the number of choices meet all of them.
    let start = random.below(choices);
    let first = 1 + random.below(choices);
    let step = { (first..).find(|&step| gcd(step, choices) == 1) }.unwrap_or(1);
    let count = dims.iter().product::<u64>() as usize;
    let size = dtype.size_bytes() as usize;
    let mut bytes = vec![0; count * size];
    let mut at = start;
    for element in bytes.chunks_exact_mut(size) {
        let _ = store_bits(dtype, at, element);
        at = (at + step) % choices;
    }
    Tensor {
        dtype,
        dims: dims.to_vec(),
        bytes,
    }
}

/// A tensor for the location of that name.
pub fn tensor(seed: u64, name: &str, dtype: DType, dims: &[u64]) -> Tensor {
    let mut random = Random::new(seed, name);
    let count = dims.iter().product::<u64>() as usize;
    let size = dtype.size_bytes() as usize;
    let mut bytes = vec![0; count * size];
    let specials = random.below(4) == 0;
    for element in bytes.chunks_exact_mut(size) {
        let bits = match dtype.class() {
            DTypeClass::Float if specials && random.below(256) == 0 => special(dtype, &mut random),
            DTypeClass::Float => {
                // A sum of uniforms is near enough to a normal number.
                let value = (0..4).map(|_| random.unit()).sum::<f64>() * 2.0 - 4.0;
                from_f64(dtype, value).unwrap_or(0)
            }
            DTypeClass::Scale => 120 + random.below(16),
            DTypeClass::Packed => random.next_u64() & dtype.mask() & 0x3f3f_3f3f_3f3f_3f3f,
            DTypeClass::Bool => random.below(2),
            DTypeClass::Signed | DTypeClass::Unsigned if count == 1 => random.below(8),
            DTypeClass::Signed if random.below(32) == 0 => random.next_u64(),
            DTypeClass::Signed => random.below(201).wrapping_sub(100),
            DTypeClass::Unsigned if random.below(32) == 0 => random.next_u64(),
            DTypeClass::Unsigned => random.below(128),
        };
        let _ = store_bits(dtype, bits, element);
    }
    Tensor {
        dtype,
        dims: dims.to_vec(),
        bytes,
    }
}
