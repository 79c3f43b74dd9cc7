//! What is known of the values in memory at a point: constants through static chains.
//!
//! A chain starts at a constant location or a `memset` and goes on through copies that keep the
//! dtype; each link is the last writer of the bytes read, in the block, and covers them for certain.

use bir_dialect::bir::attrs::number_bits;
use bir_dialect::bir::num::{DType, load_bits};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::names;
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Ir, Op, Operand};

use crate::flow::Flow;

/// Links of a chain looked at.
const MAX_LINKS: usize = 16;
/// Elements of a constant looked at.
const MAX_ELEMENTS: usize = 1 << 16;

/// The one value, as bits of its dtype, that all elements an operand reads have, where that is
/// known.
pub fn uniform(ir: &Ir, flow: &mut Flow, op: Op, operand: Operand) -> Option<(DType, u64)> {
    let (mut op, mut operand) = (op, operand);
    for _ in 0..MAX_LINKS {
        let data = ir.operand(operand);
        let (mem, access) = OpView::new(ir, op).access(operand)?;
        if let Some(alloc) = ir.def_op(data.value)
            && OpView::new(ir, alloc).word("kind") == Some("const")
        {
            let bits = constant(ir, alloc, &mem)?;
            return (access.dtype == mem.dtype).then_some((mem.dtype, bits));
        }
        let last = flow.memory(ir).last_writer(ir, op, operand)?;
        if !last.covers {
            return None;
        }
        let (_, written) = OpView::new(ir, last.op).access(last.operand)?;
        if written.dtype != access.dtype {
            return None;
        }
        let writer = OpView::new(ir, last.op);
        match writer.code()? {
            OpCode::Memset => {
                let (dtype, bits) = number_bits(&ir.ctx, writer.role("value").literal()?)?;
                return (dtype == access.dtype).then_some((dtype, bits));
            }
            OpCode::TensorCopy | OpCode::GenericCopy | OpCode::Load | OpCode::Save => {
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

/// The value all elements of a constant have.
fn constant(ir: &Ir, alloc: Op, mem: &MemType<'_>) -> Option<u64> {
    let value = ir.ctx.dict_get(ir.dict(alloc), names::VALUE)?;
    let AttrView::Dense { hex, .. } = ir.ctx.attr(value) else {
        return None;
    };
    let digits = ir.ctx.text(hex).as_bytes();
    let size = 2 * mem.dtype.size_bytes() as usize;
    let first = digits.get(..size)?;
    let same =
        digits.len() / size <= MAX_ELEMENTS && digits.chunks(size).all(|element| element == first);
    let digit = |c: u8| char::from(c).to_digit(16).unwrap_or(0) as u8;
    let bytes: Vec<u8> = first
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | pair.get(1).map_or(0, |&low| digit(low)))
        .collect();
    let bits = load_bits(mem.dtype, &bytes)?;
    same.then_some(bits)
}
