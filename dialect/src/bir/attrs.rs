//! BIR's own attributes: placements, semaphores, accumulation.

use smallvec::SmallVec;

use super::num::DType;
use super::space::PSUM_BANK_BYTES;
use crate::ir::{Attr, AttrView, Context, Sign, Type, TypeView};

const KIND_PLACEMENT: u16 = 0x0100;
const KIND_SEM: u16 = 0x0101;
const KIND_UNLESS_FIRST: u16 = 0x0102;

/// Where a location is placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Base partition and byte address in the partition.
    Bytes {
        /// First partition.
        partition: u32,
        /// Byte address in each partition.
        byte: u64,
    },
    /// Base partition and PSUM bank.
    Bank {
        /// First partition.
        partition: u32,
        /// Bank number.
        bank: u32,
    },
    /// Address in DRAM.
    Address(u64),
}

impl Placement {
    /// Interns it.
    pub fn intern(self, ctx: &mut Context) -> Attr {
        let words = match self {
            Placement::Bytes { partition, byte } => [0, u64::from(partition), byte],
            Placement::Bank { partition, bank } => [1, u64::from(partition), u64::from(bank)],
            Placement::Address(address) => [2, 0, address],
        };
        ctx.dialect_attr(KIND_PLACEMENT, &words)
    }

    /// First partition on chip; 0 in DRAM.
    pub fn partition(self) -> u32 {
        match self {
            Placement::Bytes { partition, .. } | Placement::Bank { partition, .. } => partition,
            Placement::Address(_) => 0,
        }
    }

    /// First byte in each partition on chip, or the address in DRAM.
    pub fn byte(self) -> u64 {
        match self {
            Placement::Bytes { byte, .. } => byte,
            Placement::Bank { bank, .. } => u64::from(bank) * PSUM_BANK_BYTES,
            Placement::Address(address) => address,
        }
    }

    /// The placement an attribute holds.
    pub fn get(ctx: &Context, attr: Attr) -> Option<Placement> {
        let AttrView::Dialect {
            kind: KIND_PLACEMENT,
            words,
        } = ctx.attr(attr)
        else {
            return None;
        };
        match *words {
            [0, partition, byte] => Some(Placement::Bytes {
                partition: partition as u32,
                byte,
            }),
            [1, partition, bank] => Some(Placement::Bank {
                partition: partition as u32,
                bank: bank as u32,
            }),
            [2, _, address] => Some(Placement::Address(address)),
            _ => None,
        }
    }
}

/// What is asked of, or done to, a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SemOp {
    /// Wait until at least.
    Ge,
    /// Wait until equal.
    Eq,
    /// Add.
    Inc,
    /// Subtract.
    Dec,
    /// Set.
    Set,
}

impl SemOp {
    const ALL: [SemOp; 5] = [SemOp::Ge, SemOp::Eq, SemOp::Inc, SemOp::Dec, SemOp::Set];

    /// The sign in custom form.
    pub const fn sign(self) -> &'static str {
        match self {
            SemOp::Ge => ">=",
            SemOp::Eq => "==",
            SemOp::Inc => "+=",
            SemOp::Dec => "-=",
            SemOp::Set => ":=",
        }
    }

    /// The word in generic form.
    pub const fn word(self) -> &'static str {
        match self {
            SemOp::Ge => "ge",
            SemOp::Eq => "eq",
            SemOp::Inc => "inc",
            SemOp::Dec => "dec",
            SemOp::Set => "set",
        }
    }

    /// From either form.
    pub fn parse(text: &str) -> Option<SemOp> {
        SemOp::ALL
            .into_iter()
            .find(|op| op.sign() == text || op.word() == text)
    }

    /// Whether it is a wait rather than a signal.
    pub const fn is_wait(self) -> bool {
        matches!(self, SemOp::Ge | SemOp::Eq)
    }
}

/// When a signal is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SemEvent {
    /// Not said: when the instruction has completed.
    Default,
    /// When it has completed.
    Complete,
    /// When its inputs have been read.
    Read,
}

/// One wait or signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sem {
    /// Semaphore number.
    pub id: u32,
    /// Operation.
    pub op: SemOp,
    /// Operand.
    pub value: i64,
    /// When, for signals.
    pub event: SemEvent,
}

impl Sem {
    /// Interns it.
    pub fn intern(self, ctx: &mut Context) -> Attr {
        let words = [
            u64::from(self.id),
            self.op as u64,
            self.value as u64,
            self.event as u64,
        ];
        ctx.dialect_attr(KIND_SEM, &words)
    }

    /// The wait or signal an attribute holds.
    pub fn get(ctx: &Context, attr: Attr) -> Option<Sem> {
        match ctx.attr(attr) {
            AttrView::Dialect {
                kind: KIND_SEM,
                words: &[id, op, value, event],
            } => Some(Sem {
                id: id as u32,
                op: SemOp::ALL.get(op as usize).copied()?,
                value: value as i64,
                event: match event {
                    1 => SemEvent::Complete,
                    2 => SemEvent::Read,
                    _ => SemEvent::Default,
                },
            }),
            _ => None,
        }
    }

    /// The waits or signals in a list attribute.
    pub fn list(ctx: &Context, attr: Attr) -> Option<SmallVec<[Sem; 4]>> {
        match ctx.attr(attr) {
            AttrView::Array(list) => list.iter().map(|attr| Sem::get(ctx, attr)).collect(),
            _ => None,
        }
    }
}

/// How a matmult treats what its destination holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accumulate {
    /// Replaces it.
    No,
    /// Adds to it.
    Yes,
    /// Replaces it in the first iteration of the loop of index number `n` of the instruction's
    /// `indices`, adds in the others.
    UnlessFirst(u8),
}

impl Accumulate {
    /// Interns it; `None` for [`Accumulate::No`], which is the attribute's absence.
    pub fn intern(self, ctx: &mut Context) -> Option<Attr> {
        match self {
            Accumulate::No => None,
            Accumulate::Yes => Some(ctx.unit()),
            Accumulate::UnlessFirst(index) => {
                Some(ctx.dialect_attr(KIND_UNLESS_FIRST, &[u64::from(index)]))
            }
        }
    }

    /// What an attribute says.
    pub fn get(ctx: &Context, attr: Option<Attr>) -> Option<Accumulate> {
        match attr.map(|attr| ctx.attr(attr)) {
            None | Some(AttrView::Bool(false)) => Some(Accumulate::No),
            Some(AttrView::Unit | AttrView::Bool(true)) => Some(Accumulate::Yes),
            Some(AttrView::Dialect {
                kind: KIND_UNLESS_FIRST,
                words: &[index],
            }) => Some(Accumulate::UnlessFirst(index as u8)),
            _ => None,
        }
    }
}

/// The builtin type a literal of a dtype carries: `i8` … `ui64` for integers, the dtype's own name
/// for floats. `bool` literals are `ui8`.
pub fn literal_type(ctx: &mut Context, dtype: DType) -> Type {
    match dtype {
        DType::I8 => ctx.int_type(8, Sign::Signless),
        DType::I16 => ctx.int_type(16, Sign::Signless),
        DType::I32 => ctx.int_type(32, Sign::Signless),
        DType::I64 => ctx.int_type(64, Sign::Signless),
        DType::U8 => ctx.int_type(8, Sign::Unsigned),
        DType::U16 => ctx.int_type(16, Sign::Unsigned),
        DType::U32 => ctx.int_type(32, Sign::Unsigned),
        DType::U64 => ctx.int_type(64, Sign::Unsigned),
        DType::Bool => ctx.int_type(1, Sign::Unsigned),
        other => ctx.float_type(other.name()),
    }
}

/// The dtype whose literals carry a type.
pub fn literal_dtype(ctx: &Context, ty: Type) -> Option<DType> {
    match ctx.ty(ty) {
        TypeView::Float(name) => DType::from_name(ctx.text(name)),
        TypeView::Int { width: 1, .. } => Some(DType::Bool),
        TypeView::Int { width, sign } => {
            let unsigned = sign == Sign::Unsigned;
            match (width, unsigned) {
                (8, false) => Some(DType::I8),
                (16, false) => Some(DType::I16),
                (32, false) => Some(DType::I32),
                (64, false) => Some(DType::I64),
                (8, true) => Some(DType::U8),
                (16, true) => Some(DType::U16),
                (32, true) => Some(DType::U32),
                (64, true) => Some(DType::U64),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A number of a dtype, by its bits. Integers are kept as their value.
pub fn number(ctx: &mut Context, dtype: DType, bits: u64) -> Attr {
    let ty = literal_type(ctx, dtype);
    if dtype.is_integer() {
        let unused = 64 - 8 * dtype.size_bytes().min(8);
        let value = match dtype {
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => ((bits << unused) as i64) >> unused,
            _ => ((bits << unused) >> unused) as i64,
        };
        ctx.typed_int(value, ty)
    } else {
        ctx.float(bits, ty)
    }
}

/// Dtype and bits of a number attribute.
pub fn number_bits(ctx: &Context, attr: Attr) -> Option<(DType, u64)> {
    let (bits, ty) = match ctx.attr(attr) {
        AttrView::Int { value, ty } => (value as u64, ty),
        AttrView::Float { bits, ty } => (bits, ty),
        AttrView::Bool(value) => return Some((DType::Bool, u64::from(value))),
        _ => return None,
    };
    let dtype = literal_dtype(ctx, ty)?;
    let unused = 64 - 8 * dtype.size_bytes().min(8);
    Some((dtype, (bits << unused) >> unused))
}
