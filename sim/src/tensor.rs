//! Values of whole locations.

use bir_dialect::bir::num::{DType, load_bits};

/// Elements of one dtype, row-major, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Vec<u64>,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size_bytes() as usize
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bits of an element; 0 past the end.
    pub fn bits(&self, at: usize) -> u64 {
        let from = at.saturating_mul(self.dtype.size_bytes() as usize);
        self.bytes
            .get(from..)
            .and_then(|bytes| load_bits(self.dtype, bytes))
            .unwrap_or(0)
    }

    /// Coordinates of an element: `[3, 17]`.
    pub fn index_text(&self, at: usize) -> String {
        let mut rest = at as u64;
        let mut index: Vec<u64> = Vec::with_capacity(self.dims.len());
        for &dim in self.dims.iter().rev() {
            index.push(rest.checked_rem(dim).unwrap_or(0));
            rest = rest.checked_div(dim).unwrap_or(0);
        }
        index.reverse();
        format!("{index:?}")
    }

    /// `128x512xf32`
    pub fn shape_text(&self) -> String {
        shape_text(&self.dims, self.dtype)
    }
}

/// `128x512xf32`
pub(crate) fn shape_text(dims: &[u64], dtype: DType) -> String {
    let mut text: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    text.push_str(dtype.name());
    text
}
