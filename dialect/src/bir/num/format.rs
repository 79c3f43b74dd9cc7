//! Layout of a floating-point format: where the fields are and which encodings are not numbers.

/// Which encodings of a format are not finite numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Specials {
    /// Top exponent reserved: mantissa 0 is infinity, the rest NaN (IEEE 754).
    InfAndNan,
    /// Only the encoding with every exponent and mantissa bit set, which is NaN (OCP "fn").
    NanOnly,
    /// Every encoding is a finite number.
    None,
}

/// A binary floating-point layout: sign, exponent, mantissa, from the most significant bit down,
/// then padding bits that are written 0 and ignored when read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FloatFormat {
    /// Width of the exponent field.
    pub exponent_bits: u32,
    /// Width of the mantissa field, the implicit leading one not counted.
    pub mantissa_bits: u32,
    /// The exponent field of 1.0.
    pub bias: i32,
    /// Whether there is a sign bit; formats without one have neither zero nor subnormals.
    pub signed: bool,
    /// Encodings that are not finite numbers.
    pub specials: Specials,
    /// Unused low bits of the container.
    pub padding_bits: u32,
}

impl FloatFormat {
    const fn signed(exponent_bits: u32, mantissa_bits: u32, specials: Specials) -> Self {
        FloatFormat {
            exponent_bits,
            mantissa_bits,
            bias: (1 << (exponent_bits - 1)) - 1,
            signed: true,
            specials,
            padding_bits: 0,
        }
    }

    /// A format with infinities and NaNs, as IEEE 754 lays them out.
    pub const fn ieee(exponent_bits: u32, mantissa_bits: u32) -> Self {
        Self::signed(exponent_bits, mantissa_bits, Specials::InfAndNan)
    }

    /// A format without infinity, with one NaN per sign.
    pub const fn nan_only(exponent_bits: u32, mantissa_bits: u32) -> Self {
        Self::signed(exponent_bits, mantissa_bits, Specials::NanOnly)
    }

    /// A format of finite numbers only.
    pub const fn finite(exponent_bits: u32, mantissa_bits: u32) -> Self {
        Self::signed(exponent_bits, mantissa_bits, Specials::None)
    }

    /// Powers of two only, all ones being NaN.
    pub const fn scale(exponent_bits: u32) -> Self {
        FloatFormat {
            signed: false,
            ..Self::signed(exponent_bits, 0, Specials::NanOnly)
        }
    }

    /// The same format in a wider container, with that many unused low bits.
    pub const fn padded(self, padding_bits: u32) -> Self {
        FloatFormat {
            padding_bits,
            ..self
        }
    }

    /// Exponent of the smallest normal number, as a power of two.
    pub const fn min_exponent(self) -> i32 {
        (self.signed as i32) - self.bias
    }

    /// The sign bit, 0 for formats without one.
    pub const fn sign_bit(self) -> u64 {
        (self.signed as u64) << (self.exponent_bits + self.mantissa_bits + self.padding_bits)
    }

    /// Bits of the largest finite number.
    pub const fn max_finite(self) -> u64 {
        let fields = 1u64 << (self.exponent_bits + self.mantissa_bits);
        let magnitude = match self.specials {
            Specials::InfAndNan => fields - (1 << self.mantissa_bits) - 1,
            Specials::NanOnly => fields - 2,
            Specials::None => fields - 1,
        };
        magnitude << self.padding_bits
    }

    /// Bits of positive infinity, if there is one.
    pub const fn infinity(self) -> Option<u64> {
        match self.specials {
            Specials::InfAndNan => Some(self.max_finite() + (1 << self.padding_bits)),
            Specials::NanOnly | Specials::None => None,
        }
    }

    /// Bits of the quiet NaN that conversions produce, if there is a NaN.
    pub const fn nan(self) -> Option<u64> {
        match self.specials {
            // Quiet: the top mantissa bit is set.
            Specials::InfAndNan => Some(
                self.max_finite()
                    + (1 << self.padding_bits)
                    + (1 << (self.mantissa_bits - 1 + self.padding_bits)),
            ),
            Specials::NanOnly => Some(self.max_finite() + (1 << self.padding_bits)),
            Specials::None => None,
        }
    }
}
