//! BIR's types: memory locations and registers.

use std::fmt::Write as _;

use super::num::DType;
use super::space::Space;
use crate::ir::{Context, Type, TypeView};

const KIND_MEM: u16 = 0x0100;
const KIND_REG: u16 = 0x0101;

/// `!bir.mem<space, shape x dtype>`: a memory location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemType<'a> {
    /// Where it lives.
    pub space: Space,
    /// Element type.
    pub dtype: DType,
    /// Sizes in elements; dimension 0 of SBUF and PSUM is the partition.
    pub dims: &'a [u64],
}

impl<'a> MemType<'a> {
    /// The memory type behind a handle.
    #[inline]
    pub fn get(ctx: &'a Context, ty: Type) -> Option<MemType<'a>> {
        let TypeView::Dialect {
            kind: KIND_MEM,
            words,
        } = ctx.ty(ty)
        else {
            return None;
        };
        let (&head, dims) = words.split_first()?;
        Some(MemType {
            space: Space::ALL.get((head & 0xff) as usize).copied()?,
            dtype: DType::from_index((head >> 8) as u8)?,
            dims,
        })
    }

    /// Interns a memory type.
    pub fn intern(ctx: &mut Context, space: Space, dtype: DType, dims: &[u64]) -> Type {
        let kinds = space as u64 | (u64::from(dtype.index()) << 8);
        let words = std::iter::once(kinds).chain(dims.iter().copied());
        ctx.dialect_type_of(KIND_MEM, words)
    }

    /// Whether dimension 0 is the partition.
    #[inline]
    pub fn is_partitioned(&self) -> bool {
        self.space != Space::Dram
    }

    /// Partitions; 1 for DRAM.
    pub fn partitions(&self) -> u64 {
        match self.space {
            Space::Dram => 1,
            _ => self.dims.first().copied().unwrap_or(1),
        }
    }

    /// The dimensions an offset runs over: all of DRAM's, those behind the partition elsewhere.
    pub fn free_dims(&self) -> &'a [u64] {
        match self.space {
            Space::Dram => self.dims,
            _ => self.dims.get(1..).unwrap_or(&[]),
        }
    }

    /// Elements an offset runs over (per partition on chip); `None` past 2^62.
    pub fn free_elements(&self) -> Option<u64> {
        product(self.free_dims())
    }

    /// Bytes an offset runs over (per partition on chip); `None` past 2^62.
    pub fn free_bytes(&self) -> Option<u64> {
        self.free_elements()?
            .checked_mul(u64::from(self.dtype.size_bytes()))
            .filter(|&bytes| bytes < 1 << 62)
    }

    /// Bytes in all; `None` past 2^62.
    pub fn bytes(&self) -> Option<u64> {
        self.free_bytes()?
            .checked_mul(self.partitions())
            .filter(|&bytes| bytes < 1 << 62)
    }

    /// `128x512xf32`
    pub fn shape_text(&self, out: &mut String) {
        for dim in self.dims {
            let _ = write!(out, "{dim}x");
        }
        out.push_str(self.dtype.name());
    }

    /// `sbuf<128x512xf32>`
    pub fn text(&self) -> String {
        let mut out = String::from(self.space.name());
        out.push('<');
        self.shape_text(&mut out);
        out.push('>');
        out
    }
}

fn product(dims: &[u64]) -> Option<u64> {
    dims.iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim))
        .filter(|&elements| elements < 1 << 62)
}

/// The dtype of a register type.
pub fn reg_dtype(ctx: &Context, ty: Type) -> Option<DType> {
    match ctx.ty(ty) {
        TypeView::Dialect {
            kind: KIND_REG,
            words,
        } => DType::from_index(*words.first()? as u8),
        _ => None,
    }
}

/// Interns a register type, `!bir.reg<i32>`.
pub fn reg_type(ctx: &mut Context, dtype: DType) -> Type {
    ctx.dialect_type(KIND_REG, &[u64::from(dtype.index())])
}

/// Whether a type is `index`, the type of loop indices.
#[inline]
pub fn is_index(ctx: &Context, ty: Type) -> bool {
    matches!(ctx.ty(ty), TypeView::Index)
}

/// A type as `.bir` text shows it in messages.
pub fn type_text(ctx: &Context, ty: Type) -> String {
    if let Some(mem) = MemType::get(ctx, ty) {
        return mem.text();
    }
    if let Some(dtype) = reg_dtype(ctx, ty) {
        return format!("reg<{dtype}>");
    }
    match ctx.ty(ty) {
        TypeView::Index => "index".to_owned(),
        TypeView::None | TypeView::Dialect { .. } => "none".to_owned(),
        TypeView::Int { width, .. } => format!("i{width}"),
        TypeView::Float(name) | TypeView::Function(name) | TypeView::Opaque(name) => {
            ctx.text(name).to_owned()
        }
        TypeView::Tensor { .. } => "tensor".to_owned(),
    }
}
