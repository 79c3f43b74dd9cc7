//! Registers: 32 bits, read as signed integers, or as f32 where their type says so.

use bir_dialect::bir::num::{DType, convert, store_bits};

use crate::alu::Alu;
use crate::fault::{Run, malformed};
use crate::lower::{Bound, Site, Task};
use crate::machine::Machine;
use crate::tile::Tile;

use super::select::one_element;

impl Bound {
    fn value(self, m: &Machine) -> i64 {
        match self {
            Bound::Number(number) => number,
            Bound::Register(slot) => m.regs[slot as usize],
        }
    }
}

struct Load {
    register: u32,
    dtype: DType,
    src: Tile,
}

impl Task for Load {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let at = m.source(&self.src)?;
        let mut value = one_element(m, &self.src, at);
        if self.src.dtype == DType::F32 && self.dtype.is_integer() {
            value = i64::from(value as i32);
        }
        m.regs[self.register as usize] = value;
        Ok(())
    }
}

pub(super) fn register_load(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (register, dtype) = site.register_out()?;
    Ok(Box::new(Load {
        register,
        dtype,
        src: site.tile("src")?,
    }))
}

struct Store {
    dst: Tile,
    src: Bound,
}

impl Task for Store {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let at = m.at(&self.dst)?;
        let value = self.src.value(m) as u64;
        let _ = store_bits(self.dst.dtype, value, &mut m.mem.bytes_mut()[at..]);
        m.mark(&self.dst, at);
        Ok(())
    }
}

pub(super) fn register_store(site: &Site<'_>) -> Run<Box<dyn Task>> {
    Ok(Box::new(Store {
        dst: site.tile("dst")?,
        src: site.bound("src")?,
    }))
}

struct Move {
    register: u32,
    src: Bound,
}

impl Task for Move {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let value = self.src.value(m);
        m.regs[self.register as usize] = value;
        Ok(())
    }
}

pub(super) fn register_move(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (register, dtype) = site.register_out()?;
    let src = match site.bound("value")? {
        Bound::Number(number) if dtype == DType::F32 => {
            let bits = convert(DType::I64, DType::F32, number as u64).unwrap_or(0);
            Bound::Number(bits as i64)
        }
        Bound::Number(number) => Bound::Number(i64::from(number as i32)),
        register => register,
    };
    Ok(Box::new(Move { register, src }))
}

struct Compute {
    register: u32,
    op: Alu,
    lhs: Bound,
    rhs: Bound,
    float: bool,
}

impl Task for Compute {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let (a, b) = (self.lhs.value(m), self.rhs.value(m));
        m.regs[self.register as usize] = if self.float {
            let result = self
                .op
                .apply(f32::from_bits(a as u32), f32::from_bits(b as u32));
            i64::from(result.to_bits())
        } else {
            self.op
                .apply_int(i64::from(a as i32), i64::from(b as i32), 32, true)
        };
        Ok(())
    }
}

pub(super) fn register_alu(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (register, dtype) = site.register_out()?;
    let float = dtype == DType::F32;
    let op = site.alu("op")?;
    if float && op.is_bitvec() {
        return Err(malformed("bit operations on an f32 register"));
    }
    let side = |bound: Bound| match bound {
        Bound::Number(number) if float => Bound::Number(i64::from((number as f32).to_bits())),
        other => other,
    };
    Ok(Box::new(Compute {
        register,
        op,
        lhs: side(site.bound("lhs")?),
        rhs: side(site.bound("rhs")?),
        float,
    }))
}
