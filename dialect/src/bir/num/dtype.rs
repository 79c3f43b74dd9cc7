//! The dtype table: one row per dtype, everything else derives from it.

use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $bytes:literal, $class:ident;)*) => {
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
    F32 = "f32", 4, Float;
    /// 1/8/10 in a 32-bit container, the low 13 bits are zero.
    Tf32 = "tf32", 4, Float;
    /// 1/8/7.
    Bf16 = "bf16", 2, Float;
    /// IEEE binary16.
    F16 = "f16", 2, Float;
    /// 1/5/2, IEEE-like.
    F8E5M2 = "f8e5m2", 1, Float;
    /// 1/4/3 with the top exponent reserved; largest finite 240.
    F8E4M3 = "f8e4m3", 1, Float;
    /// 1/4/3 of the OCP; no infinity, largest finite 448.
    F8E4M3FN = "f8e4m3fn", 1, Float;
    /// Power-of-two scale of an MX block.
    F8E8M0FNU = "f8e8m0fnu", 1, Scale;
    /// Four `f8e5m2`, element 0 in the least significant byte.
    F8E5M2x4 = "f8e5m2_x4", 4, Packed;
    /// Four `f8e4m3fn`, element 0 in the least significant byte.
    F8E4M3FNx4 = "f8e4m3fn_x4", 4, Packed;
    /// Four 1/2/1 floats, element 0 in the least significant nibble.
    F4E2M1FNx4 = "f4e2m1fn_x4", 2, Packed;
    /// 8-bit signed.
    I8 = "i8", 1, Signed;
    /// 16-bit signed.
    I16 = "i16", 2, Signed;
    /// 32-bit signed.
    I32 = "i32", 4, Signed;
    /// 64-bit signed.
    I64 = "i64", 8, Signed;
    /// 8-bit unsigned.
    U8 = "u8", 1, Unsigned;
    /// 16-bit unsigned.
    U16 = "u16", 2, Unsigned;
    /// 32-bit unsigned.
    U32 = "u32", 4, Unsigned;
    /// 64-bit unsigned.
    U64 = "u64", 8, Unsigned;
    /// 0 or 1.
    Bool = "bool", 1, Bool;
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
