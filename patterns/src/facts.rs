//! What is known of the values in memory at a point: constants through static chains.
//!
//! A chain starts at a constant location or a `memset` and goes on through copies that keep the
//! dtype; each link is the last writer of the bytes read, in the block, and covers them for certain.

use bir_dialect::bir::access::Access;
use bir_dialect::bir::attrs::number_bits;
use bir_dialect::bir::num::{DType, convert, load_bits};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::names;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Ir, Op, Operand};

use crate::flow::Flow;

/// Links of a chain looked at.
pub(crate) const MAX_LINKS: usize = 16;
/// Elements of a constant looked at.
const MAX_ELEMENTS: usize = 1 << 16;

/// Where a chain of copies starts.
enum Start {
    /// A constant location.
    Constant(Op),
    /// A `memset` of that value.
    Fill(DType, u64),
}

/// The one value, as bits of its dtype, that all elements an operand reads have, where that is
/// known.
pub fn uniform(ir: &Ir, flow: &mut Flow, op: Op, operand: Operand) -> Option<(DType, u64)> {
    match start(ir, flow, op, operand, &mut |_, _| true)? {
        Start::Constant(alloc) => {
            let mem = MemType::get(&ir.ctx, ir.value_type(ir.result(alloc)?))?;
            Some((mem.dtype, constant(ir, alloc, &mem)?))
        }
        Start::Fill(dtype, bits) => Some((dtype, bits)),
    }
}

/// Whether an operand is the whole of a square matrix with 1 on its diagonal and +0 elsewhere, row
/// `i` on partition `i`, for certain.
pub fn is_identity_matrix(ir: &Ir, flow: &mut Flow, op: Op, operand: Operand) -> bool {
    let mut shape = None;
    // Whole locations of one shape, so that every element stays where it is.
    let mut whole = |mem: &MemType<'_>, access: &Access| {
        let dims: Vec<u64> = mem.dims.to_vec();
        access.is_whole(mem) && *shape.get_or_insert_with(|| dims.clone()) == dims
    };
    let Some(Start::Constant(alloc)) = start(ir, flow, op, operand, &mut whole) else {
        return false;
    };
    let mem = ir
        .result(alloc)
        .and_then(|value| MemType::get(&ir.ctx, ir.value_type(value)));
    mem.is_some_and(|mem| is_identity(ir, alloc, &mem) == Some(true))
}

/// Follows copies that keep the dtype and whose accesses are as `fits` wants them.
fn start(
    ir: &Ir,
    flow: &mut Flow,
    op: Op,
    operand: Operand,
    fits: &mut dyn FnMut(&MemType<'_>, &Access) -> bool,
) -> Option<Start> {
    let (mut op, mut operand) = (op, operand);
    for _ in 0..MAX_LINKS {
        let data = ir.operand(operand);
        let (mem, access) = OpView::new(ir, op).access(operand)?;
        if !fits(&mem, &access) {
            return None;
        }
        if let Some(alloc) = ir.def_op(data.value)
            && OpView::new(ir, alloc).word("kind") == Some("const")
        {
            return (access.dtype == mem.dtype).then_some(Start::Constant(alloc));
        }
        let last = flow.memory(ir).last_writer(ir, op, operand)?;
        if !last.covers {
            return None;
        }
        let (mem, written) = OpView::new(ir, last.op).access(last.operand)?;
        if written.dtype != access.dtype || !fits(&mem, &written) {
            return None;
        }
        let writer = OpView::new(ir, last.op);
        match writer.code()? {
            OpCode::Memset => {
                let (dtype, bits) = number_bits(&ir.ctx, writer.role("value").literal()?)?;
                return (dtype == access.dtype).then_some(Start::Fill(dtype, bits));
            }
            code if passes_on(code) => {
                let source = writer.role("src").operand()?;
                let (_, read) = writer.access(source)?;
                if read.dtype != written.dtype {
                    return None;
                }
                (op, operand) = (last.op, source);
            }
            _ => return None,
        }
    }
    None
}

/// Whether an op writes the elements it reads, where the dtype stays.
pub(crate) fn passes_on(code: OpCode) -> bool {
    matches!(
        code,
        OpCode::TensorCopy | OpCode::GenericCopy | OpCode::Load | OpCode::Save
    )
}

/// The elements of a constant as bits, in order; one stands for all where the file says so.
fn elements(ir: &Ir, alloc: Op, dtype: DType) -> Option<impl Iterator<Item = Option<u64>> + '_> {
    let value = ir.ctx.dict_get(ir.dict(alloc), names::VALUE)?;
    let AttrView::Dense { hex, .. } = ir.ctx.attr(value) else {
        return None;
    };
    let digits = ir.ctx.text(hex).as_bytes();
    let size = 2 * dtype.size_bytes() as usize;
    if digits.is_empty() || digits.len() / size > MAX_ELEMENTS {
        return None;
    }
    let digit = |c: u8| char::from(c).to_digit(16).unwrap_or(0) as u8;
    Some(digits.chunks(size).map(move |element| {
        let mut bytes = [0u8; 8];
        for (byte, pair) in bytes.iter_mut().zip(element.chunks(2)) {
            *byte = digit(pair[0]) << 4 | pair.get(1).map_or(0, |&low| digit(low));
        }
        load_bits(dtype, bytes.get(..element.len().div_ceil(2))?)
    }))
}

/// The value all elements of a constant have.
fn constant(ir: &Ir, alloc: Op, mem: &MemType<'_>) -> Option<u64> {
    let mut all = elements(ir, alloc, mem.dtype)?;
    let first = all.next()??;
    all.all(|bits| bits == Some(first)).then_some(first)
}

fn is_identity(ir: &Ir, alloc: Op, mem: &MemType<'_>) -> Option<bool> {
    let dims: Vec<u64> = mem.dims.to_vec();
    let &[rows, columns] = &dims[..] else {
        return Some(false);
    };
    let one = convert(DType::F32, mem.dtype, u64::from(1f32.to_bits()))?;
    let mut count = 0u64;
    for bits in elements(ir, alloc, mem.dtype)? {
        let wanted = match count / columns == count % columns {
            true => one,
            false => 0,
        };
        if bits? != wanted {
            return Some(false);
        }
        count += 1;
    }
    Some(rows == columns && count == rows * columns)
}
