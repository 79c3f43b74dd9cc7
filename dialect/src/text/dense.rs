//! Elements of constants, `dense<…>`, in every spelling the generic form knows.
//!
//! Kept: upper-case hex of the little-endian elements, or of one element where all are equal, of
//! the location's shape as an unsigned integer tensor – floats never travel as floats, because
//! other tools round or quieten them.

use std::fmt::Write as _;

use super::build::{Source, alloc_type};
use super::recipe::{DenseRecipe, NumSrc, OpRecipe, StrSrc};
use crate::bir::num::{self, DType};
use crate::bir::types::MemType;
use crate::ir::{Attr, Ir, Sign, Type, TypeView};

/// Builds the attribute, or says what is wrong with it.
pub(super) fn build(
    ir: &mut Ir,
    src: Source<'_>,
    elements: &DenseRecipe,
    stated: Option<Type>,
    recipe: &OpRecipe,
) -> Result<Attr, String> {
    let shape = alloc_type(ir, recipe).and_then(|ty| {
        let mem = MemType::get(&ir.ctx, ty)?;
        Some((
            mem.dims.to_vec(),
            mem.dtype.size_bytes() as usize,
            mem.dtype,
        ))
    });
    let stated = stated.and_then(|ty| match ir.ctx.ty(ty) {
        TypeView::Tensor { dims, elem } => Some((dims.to_vec(), elem)),
        _ => None,
    });
    let stated_width = stated.as_ref().map(|&(_, elem)| match ir.ctx.ty(elem) {
        TypeView::Int { width, .. } => Ok(width.div_ceil(8) as usize),
        _ => Err("elements of a constant are integers of the dtype's width".to_owned()),
    });
    let (dims, width, dtype) = match (shape, &stated, stated_width) {
        (Some(shape), _, None) => shape,
        (Some((dims, width, dtype)), Some((stated_dims, _)), Some(stated_width)) => {
            if stated_width? != width {
                return Err(format!("elements of a {dtype} constant have {width} bytes"));
            }
            if count(stated_dims) != count(&dims) {
                return Err(format!(
                    "a constant of {} elements in a location of {}",
                    describe(count(stated_dims)),
                    describe(count(&dims))
                ));
            }
            (dims, width, dtype)
        }
        (None, Some((dims, _)), Some(width)) => {
            let width = width?;
            (dims.clone(), width, dtype_of_width(width))
        }
        _ => return Err("`dense<…>` needs a tensor type".to_owned()),
    };
    let expected = count(&dims);
    let hex = match elements {
        DenseRecipe::Hex(text) => hex_elements(ir, src, text, width, expected)?,
        DenseRecipe::List(list, splat) => {
            list_elements(src, list, *splat, dtype_of_width(width), expected)?
        }
    };
    let hex = shorten(&hex, width);
    let elem = ir.ctx.int_type(width as u32 * 8, Sign::Unsigned);
    let ty = ir.ctx.tensor_type(&dims, elem);
    let hex = ir.ctx.str(hex);
    debug_assert!(dtype.size_bytes() as usize == width);
    Ok(ir.ctx.dense(ty, hex))
}

fn count(dims: &[u64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim))
}

fn describe(count: Option<u64>) -> String {
    count.map_or("more than 2^64".to_owned(), |count| count.to_string())
}

fn dtype_of_width(width: usize) -> DType {
    match width {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    }
}

fn hex_elements(
    ir: &Ir,
    src: Source<'_>,
    text: &StrSrc,
    width: usize,
    expected: Option<u64>,
) -> Result<String, String> {
    let text = match text {
        StrSrc::Const(text) => ir.ctx.text(*text),
        StrSrc::Hole(hole) => src.hole_text(*hole).trim_matches('"'),
    };
    let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) else {
        return Err("elements of a constant begin with `0x`".to_owned());
    };
    if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
        return Err(format!("`{bad}` is no hex digit"));
    }
    let bytes = digits.len() as u64 / 2;
    let fits = expected.and_then(|count| count.checked_mul(width as u64)) == Some(bytes);
    let splat = bytes == width as u64;
    if digits.len() % 2 != 0 || !(fits || splat) {
        return Err(format!(
            "a constant of {} elements of {width} bytes has {bytes} bytes of data",
            describe(expected)
        ));
    }
    Ok(digits.to_ascii_uppercase())
}

fn list_elements(
    src: Source<'_>,
    list: &[NumSrc],
    splat: bool,
    dtype: DType,
    expected: Option<u64>,
) -> Result<String, String> {
    if !splat && expected != Some(list.len() as u64) {
        return Err(format!(
            "a constant of {} elements lists {}",
            describe(expected),
            list.len()
        ));
    }
    let width = dtype.size_bytes() as usize;
    let mut hex = String::with_capacity(list.len() * width * 2);
    for number in list {
        let text = src.number_text(number);
        let bits = match text.strip_prefix('-') {
            Some(_) => text
                .parse::<i64>()
                .map(|v| v as u64)
                .map_err(|e| e.to_string()),
            None => num::parse(dtype, text).map_err(|error| error.to_string()),
        }?;
        for byte in bits.to_le_bytes().iter().take(width) {
            let _ = write!(hex, "{byte:02X}");
        }
    }
    Ok(hex)
}

/// One element where all are equal.
fn shorten(hex: &str, width: usize) -> &str {
    let Some(first) = hex.get(..width * 2) else {
        return hex;
    };
    let equal = hex
        .as_bytes()
        .chunks(width * 2)
        .all(|element| element == first.as_bytes());
    if equal { first } else { hex }
}
