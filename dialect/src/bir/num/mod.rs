//! Dtypes: their table, number text, and conversions between them.
//!
//! A value of any dtype travels as the low bits of a `u64`; bits above the dtype's width are ignored.
//!
//! * Text: [`parse`] rounds a decimal of any length once, straight to the dtype; [`print()`] writes the
//!   shortest text that [`parse`] reads back to the same bits.
//! * Conversion: [`convert`] rounds once, from the exact value of the source. The `*_with` forms
//!   choose what overflow does. Packed dtypes hold four values, so the scalar functions answer
//!   `None` for them; see [`unpack_x4`] and [`pack_x4`].
//! * Slices: [`widen_to_f32`] and [`narrow_from_f32`] are the same conversions over little-endian
//!   bytes, in loops that vectorise.
//!
//! Rules, the same on every path:
//!
//! * one rounding, to nearest, ties to even; subnormals are kept, never flushed;
//! * a NaN becomes the quiet NaN [`FloatFormat::nan`] without its sign or payload, 0 in an integer;
//!   only a conversion between equal dtypes keeps bits as they are;
//! * a float beyond the largest finite value becomes an infinity, or NaN where the format has none
//!   ([`Overflow`] can ask for saturation instead); integers always saturate.

mod convert;
mod dtype;
mod error;
mod format;
mod lanes;
mod packed;
mod parse;
mod print;
mod slices;
mod value;

pub use convert::{
    Overflow, convert, convert_with, from_f32, from_f32_with, from_f64, from_f64_with, is_nan,
    same_value, to_f32, to_f64,
};
pub use dtype::{DType, DTypeClass};
pub use error::NumError;
pub use format::{FloatFormat, Specials};
pub use lanes::f32_to_bf16;
pub use packed::{element_to_f32, pack_x4, packed_element_from_f32, unpack_x4};
pub use parse::parse;
pub use print::{Number, print, write};
pub use slices::{
    load_bits, narrow_from_f32, narrow_from_f32_inline, narrow_from_f32_with, store_bits,
    widen_to_f32, widen_to_f32_inline,
};
