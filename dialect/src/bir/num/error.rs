//! What can be wrong with a number.

use thiserror::Error;

use super::dtype::DType;

/// Why a text or a buffer is no number of a dtype.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NumError {
    /// Not the text of any number.
    #[error("`{text}` is not a number, expected {expected} for {dtype}")]
    Syntax {
        /// The text, shortened.
        text: String,
        /// What texts the dtype takes.
        expected: &'static str,
        /// The dtype asked for.
        dtype: DType,
    },
    /// A number with a point or an exponent where a whole number is needed.
    #[error("`{text}` is a float, expected a whole number for {dtype}")]
    NotWhole {
        /// The text, shortened.
        text: String,
        /// The dtype asked for.
        dtype: DType,
    },
    /// A whole number outside the range.
    #[error("`{text}` does not fit {dtype}, whose values are {min} to {max}")]
    IntegerRange {
        /// The text, shortened.
        text: String,
        /// The dtype asked for.
        dtype: DType,
        /// Smallest value of the dtype.
        min: i128,
        /// Largest value of the dtype.
        max: i128,
    },
    /// A finite number that rounds beyond the largest finite value.
    #[error("`{text}` does not fit {dtype}, whose largest finite value is {max}")]
    FloatRange {
        /// The text, shortened.
        text: String,
        /// The dtype asked for.
        dtype: DType,
        /// The largest finite value, printed.
        max: String,
    },
    /// An infinity, NaN, zero or negative number that the dtype cannot hold.
    #[error("`{text}` does not fit {dtype}, which has no {missing}")]
    Missing {
        /// The text, shortened.
        text: String,
        /// The dtype asked for.
        dtype: DType,
        /// What the dtype lacks.
        missing: &'static str,
    },
    /// Hexadecimal bits wider than the dtype.
    #[error("`{text}` does not fit {dtype}, which has {} bits", .dtype.bits())]
    TooManyBits {
        /// The text, shortened.
        text: String,
        /// The dtype asked for.
        dtype: DType,
    },
    /// A packed dtype where single values are needed.
    #[error("{dtype} packs four values, expected a dtype of single values")]
    Packed {
        /// The dtype given.
        dtype: DType,
    },
    /// A byte buffer that does not hold the number of elements asked for.
    #[error("{found} bytes hold no {elements} elements of {dtype}, expected {expected} bytes")]
    Length {
        /// The dtype of the bytes.
        dtype: DType,
        /// Elements of the other buffer.
        elements: usize,
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
}

impl NumError {
    /// The text as a message quotes it: a number can be a megabyte long.
    pub(super) fn quote(text: &str) -> String {
        const LONGEST: usize = 48;
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        }
    }
}
