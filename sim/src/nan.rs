//! NaNs with other bits than ours: whether a result depends on which NaN arithmetic makes.
//!
//! No data sheet says which sign and payload a NaN has that an instruction computes. The simulator makes
//! the canonical one, so that runs are equal everywhere; a program that reads those bits as something
//! else – as another dtype, or as an integer – computes what nobody promised. A run with a *salt* shows it:
//! every NaN an instruction computes gets other bits, and what differs from the run without
//! depends on them. What moves elements without computing keeps every bit, there as here.
//!
//! Not salted: what collectives reduce, accumulators before they are read, and packed elements.

use bir_dialect::bir::num::{DType, DTypeClass, is_nan};
use bir_dialect::bir::ops::OpCode;

use crate::fault::Run;
use crate::lower::Task;
use crate::machine::Machine;
use crate::tile::{Odometer, Tile};

/// An instruction whose results are salted.
pub(crate) struct Salted {
    pub(crate) task: Box<dyn Task>,
    /// The floats it writes.
    pub(crate) results: Vec<Tile>,
    pub(crate) salt: u32,
}

/// Whether results of an op are numbers it computes; others are elements it found somewhere.
pub(crate) fn computes(code: OpCode) -> bool {
    !matches!(
        code,
        OpCode::TensorCopy
            | OpCode::GenericCopy
            | OpCode::Load
            | OpCode::Save
            | OpCode::DmaCopy
            | OpCode::DmaTranspose
            | OpCode::GpsimdSb2sb
            | OpCode::Transpose
            | OpCode::Memset
            | OpCode::Select
            | OpCode::AffineSelect
            | OpCode::CopyPredicated
            | OpCode::StreamShuffle
            | OpCode::MatchReplace8
            | OpCode::TensorCopyDynamicSrc
            | OpCode::TensorCopyDynamicDst
            | OpCode::TensorGather
            | OpCode::TensorScatter
            | OpCode::LocalGather
            | OpCode::NGather
            | OpCode::Rng
            | OpCode::RandGetState
    )
}

impl Task for Salted {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.task.run(m)?;
        for tile in &self.results {
            let Some(made) = canonical(tile.dtype) else {
                continue;
            };
            let start = m.at(tile)?;
            for offset in Odometer::new(tile.all_levels()) {
                let at = (start as i64 + offset) as usize;
                let bytes = &mut m.mem.bytes_mut()[at..at + tile.size];
                let mut bits = [0u8; 8];
                bits[..tile.size].copy_from_slice(bytes);
                if u64::from_le_bytes(bits) == made {
                    let other = salted(tile.dtype, made, at, self.salt).to_le_bytes();
                    bytes.copy_from_slice(&other[..tile.size]);
                }
            }
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.task.bytes()
    }
}

fn canonical(dtype: DType) -> Option<u64> {
    match dtype.class() {
        DTypeClass::Float | DTypeClass::Scale => dtype.float_format()?.nan(),
        _ => None,
    }
}

/// Another NaN of a dtype that has more than one: all bits set for salt 0, the least signalling one for
/// salt 1, as a machine may pass those on, else as place and salt say.
fn salted(dtype: DType, canonical: u64, at: usize, salt: u32) -> u64 {
    let Some(format) = dtype.float_format() else {
        return canonical;
    };
    let least = 1u64 << format.padding_bits;
    let mantissa = ((1u64 << format.mantissa_bits) - 1) * least;
    let noise = match salt {
        0 => u64::MAX,
        1 => least,
        _ => {
            let seed = (at as u64) << 32 | u64::from(salt);
            let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        }
    };
    let bits = canonical & !mantissa | noise & dtype.mask() & !(least - 1);
    match is_nan(dtype, bits) {
        true => bits,
        false => canonical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nans_are_nans_and_differ_where_a_dtype_has_several() {
        for &dtype in DType::ALL {
            let Some(made) = canonical(dtype) else {
                continue;
            };
            let others: Vec<u64> = (0..4).map(|salt| salted(dtype, made, 96, salt)).collect();
            assert!(others.iter().all(|&bits| is_nan(dtype, bits)), "{dtype}");
            let several = (0..1u64 << dtype.bits().min(16))
                .map(|low| low << (dtype.bits() - dtype.bits().min(16)))
                .filter(|&bits| is_nan(dtype, bits))
                .count()
                > 1;
            assert_eq!(others.iter().any(|&bits| bits != made), several, "{dtype}");
        }
    }
}
