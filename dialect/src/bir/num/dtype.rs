//! The dtype table: one row per dtype, everything else derives from it.

use std::fmt;

use super::format::FloatFormat;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $bytes:literal, $class:ident, $format:expr;)*) => {
        /// Element type of a memory location, as stored.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType { $($(#[$doc])* $variant,)* }

        impl DType {
            /// All dtypes, in table order; the position is the dtype's [`index`](Self::index).
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The name in `.bir` text.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),* }
            }

            /// Bytes of one stored element.
            pub const fn size_bytes(self) -> u32 {
                match self { $(DType::$variant => $bytes),* }
            }

            /// What kind of number it stores.
            pub const fn class(self) -> DTypeClass {
                match self { $(DType::$variant => DTypeClass::$class),* }
            }

            /// Layout of a float or scale, or of one element of a packed dtype; none for integers.
            pub const fn float_format(self) -> Option<FloatFormat> {
                match self { $(DType::$variant => $format),* }
            }

            /// The dtype of that name.
            pub fn from_name(name: &str) -> Option<DType> {
                match name { $($name => Some(DType::$variant),)* _ => None }
            }
        }
    };
}

/// What kind of number a dtype stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DTypeClass {
    /// A floating-point format with a sign, an exponent and a mantissa.
    Float,
    /// A power-of-two scale: exponent only.
    Scale,
    /// Four packed small floats moved as one element (MX data).
    Packed,
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// 0 or 1 in one byte.
    Bool,
}

dtypes! {
    /// IEEE binary32, the compute type of every engine.
    F32 = "f32", 4, Float, Some(FloatFormat::ieee(8, 23));
    /// 1/8/10 in a 32-bit container, the low 13 bits are zero.
    Tf32 = "tf32", 4, Float, Some(FloatFormat::ieee(8, 10).padded(13));
    /// 1/8/7.
    Bf16 = "bf16", 2, Float, Some(FloatFormat::ieee(8, 7));
    /// IEEE binary16.
    F16 = "f16", 2, Float, Some(FloatFormat::ieee(5, 10));
    /// 1/5/2, IEEE-like.
    F8E5M2 = "f8e5m2", 1, Float, Some(FloatFormat::ieee(5, 2));
    /// 1/4/3 with the top exponent reserved; largest finite 240.
    F8E4M3 = "f8e4m3", 1, Float, Some(FloatFormat::ieee(4, 3));
    /// 1/4/3 of the OCP; no infinity, largest finite 448.
    F8E4M3FN = "f8e4m3fn", 1, Float, Some(FloatFormat::nan_only(4, 3));
    /// Power-of-two scale of an MX block.
    F8E8M0FNU = "f8e8m0fnu", 1, Scale, Some(FloatFormat::scale(8));
    /// Four `f8e5m2`, element 0 in the least significant byte.
    F8E5M2x4 = "f8e5m2_x4", 4, Packed, DType::F8E5M2.float_format();
    /// Four `f8e4m3fn`, element 0 in the least significant byte.
    F8E4M3FNx4 = "f8e4m3fn_x4", 4, Packed, DType::F8E4M3FN.float_format();
    /// Four 1/2/1 floats, element 0 in the least significant nibble.
    F4E2M1FNx4 = "f4e2m1fn_x4", 2, Packed, Some(FloatFormat::finite(2, 1));
    /// 8-bit signed.
    I8 = "i8", 1, Signed, None;
    /// 16-bit signed.
    I16 = "i16", 2, Signed, None;
    /// 32-bit signed.
    I32 = "i32", 4, Signed, None;
    /// 64-bit signed.
    I64 = "i64", 8, Signed, None;
    /// 8-bit unsigned.
    U8 = "u8", 1, Unsigned, None;
    /// 16-bit unsigned.
    U16 = "u16", 2, Unsigned, None;
    /// 32-bit unsigned.
    U32 = "u32", 4, Unsigned, None;
    /// 64-bit unsigned.
    U64 = "u64", 8, Unsigned, None;
    /// 0 or 1.
    Bool = "bool", 1, Bool, None;
}

impl DType {
    /// Position in [`DType::ALL`].
    pub const fn index(self) -> u8 {
        self as u8
    }

    /// The dtype at that position of [`DType::ALL`].
    pub fn from_index(index: u8) -> Option<DType> {
        Self::ALL.get(index as usize).copied()
    }

    /// Bits of one stored element.
    pub const fn bits(self) -> u32 {
        self.size_bytes() * 8
    }

    /// Ones in the low [`bits`](Self::bits) positions: what of a `u64` belongs to an element.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The smallest and the largest value of an integer dtype (bool included); none for others.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        match self.class() {
            DTypeClass::Signed => {
                let half = 1i128 << (self.bits() - 1);
                Some((-half, half - 1))
            }
            DTypeClass::Unsigned => Some((0, (1i128 << self.bits()) - 1)),
            DTypeClass::Bool => Some((0, 1)),
            DTypeClass::Float | DTypeClass::Scale | DTypeClass::Packed => None,
        }
    }

    /// Whether values are whole numbers (bool included).
    pub const fn is_integer(self) -> bool {
        matches!(
            self.class(),
            DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Bool
        )
    }

    /// Whether values are floating-point numbers (scales and packed types are not).
    pub const fn is_float(self) -> bool {
        matches!(self.class(), DTypeClass::Float)
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
