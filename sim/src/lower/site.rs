//! One instruction seen by the function that makes its task: operands and attributes by name.

use bir_dialect::bir::access::{Access, Target as TermTarget};
use bir_dialect::bir::attrs::number_bits;
use bir_dialect::bir::num::{DType, DTypeClass, to_f32};
use bir_dialect::bir::space::{Engine, PARTITIONS, Target};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::{OpView, RoleView};
use bir_dialect::ir::{AttrView, Ir, Op, Operand, Value};
use smallvec::SmallVec;

use crate::alu::Alu;
use crate::fault::{Run, malformed};
use crate::func::Func;
use crate::tile::{Home, Step, Term, Tile, canonical};

use super::{Bound, Location, Lowering};

/// What stands where a number or one value per partition may.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "it lives in a box, once per instruction"
)]
pub(crate) enum Scalar {
    /// A number.
    Number(f32),
    /// A tile.
    Tile(Tile),
}

/// An instruction being lowered.
pub(crate) struct Site<'a> {
    lowering: &'a Lowering<'a>,
    pub(crate) ir: &'a Ir,
    pub(crate) op: Op,
    view: OpView<'a>,
}

impl<'a> Site<'a> {
    pub(crate) fn new(lowering: &'a Lowering<'a>, op: Op) -> Site<'a> {
        Site {
            lowering,
            ir: lowering.ir,
            op,
            view: OpView::new(lowering.ir, op),
        }
    }

    /// The generation the program is for.
    pub(crate) fn target(&self) -> Target {
        self.lowering.target
    }

    /// The op's mnemonic.
    pub(crate) fn name(&self) -> &'static str {
        self.view.def().map_or("unknown", |def| def.name)
    }

    /// The core it is executed on.
    pub(crate) fn core(&self) -> u32 {
        self.lowering.core
    }

    /// The cores of the program, in ascending order.
    pub(crate) fn cores(&self) -> &'a [u32] {
        self.lowering.cores
    }

    /// The engine that executes it.
    pub(crate) fn engine(&self) -> Option<Engine> {
        self.view.engine()
    }

    /// The location behind a tile.
    pub(crate) fn location(&self, tile: &Tile) -> &'a Location {
        &self.lowering.locations[tile.location]
    }

    /// The tile in a role.
    pub(crate) fn tile(&self, role: &str) -> Run<Tile> {
        self.maybe_tile(role)?
            .ok_or_else(|| malformed(format!("operand `{role}` is missing")))
    }

    /// The tile in a role, if one stands there.
    pub(crate) fn maybe_tile(&self, role: &str) -> Run<Option<Tile>> {
        match self.view.role(role) {
            RoleView::Operand(operand) => self.resolve(role, operand).map(Some),
            _ => Ok(None),
        }
    }

    /// The tiles in a variadic role.
    pub(crate) fn tiles(&self, role: &str) -> Run<Vec<Tile>> {
        let number = self.view.def().and_then(|def| def.find_role(role));
        self.ir
            .operand_ids(self.op)
            .filter(|&operand| Some(usize::from(self.ir.operand(operand).role)) == number)
            .map(|operand| self.resolve(role, operand))
            .collect()
    }

    /// The tiles of floats it writes.
    pub(crate) fn float_results(&self) -> Run<Vec<Tile>> {
        let Some(def) = self.view.def() else {
            return Ok(Vec::new());
        };
        let mut results = Vec::new();
        for operand in self.ir.operand_ids(self.op) {
            let role = usize::from(self.ir.operand(operand).role);
            let Some(role) = def.operands.get(role).filter(|role| role.writes()) else {
                continue;
            };
            if self.view.access(operand).is_none() {
                continue;
            }
            let tile = self.resolve(role.name, operand)?;
            if tile.dtype.is_float() && is_arithmetic(tile.dtype) {
                results.push(tile);
            }
        }
        Ok(results)
    }

    /// The number or tile in a role, if anything stands there.
    pub(crate) fn scalar(&self, role: &str) -> Run<Option<Scalar>> {
        match self.view.role(role) {
            RoleView::Absent => Ok(None),
            RoleView::Operand(operand) => self
                .resolve(role, operand)
                .map(|tile| Some(Scalar::Tile(tile))),
            RoleView::Literal(attr) => {
                let value = match number_bits(&self.ir.ctx, attr) {
                    Some((dtype, bits)) => to_f32(dtype, bits),
                    None => self.ir.ctx.attr_int(attr).map(|value| value as f32),
                };
                value
                    .map(|value| Some(Scalar::Number(value)))
                    .ok_or_else(|| malformed(format!("`{role}` is no number")))
            }
        }
    }

    /// The literal in a role, as dtype and bits.
    pub(crate) fn literal(&self, role: &str) -> Option<(DType, u64)> {
        let attr = self.view.role(role).literal()?;
        number_bits(&self.ir.ctx, attr)
    }

    /// The integer literal in a role.
    pub(crate) fn literal_int(&self, role: &str) -> Option<i64> {
        self.ir.ctx.attr_int(self.view.role(role).literal()?)
    }

    /// The ALU operation an attribute names.
    pub(crate) fn alu(&self, attr: &str) -> Run<Alu> {
        self.maybe_alu(attr)?
            .ok_or_else(|| malformed(format!("attribute `{attr}` is missing")))
    }

    /// The ALU operation an attribute names, if it is there.
    pub(crate) fn maybe_alu(&self, attr: &str) -> Run<Option<Alu>> {
        self.view
            .word(attr)
            .map(|word| {
                Alu::from_word(word).ok_or_else(|| malformed(format!("`{word}` is no operation")))
            })
            .transpose()
    }

    /// The activation function.
    pub(crate) fn func(&self) -> Run<Func> {
        self.view
            .word("func")
            .and_then(Func::from_word)
            .ok_or_else(|| malformed("attribute `func` is missing"))
    }

    /// The word of an attribute.
    pub(crate) fn word(&self, attr: &str) -> Option<&'a str> {
        self.view.word(attr)
    }

    /// The integer of an attribute.
    pub(crate) fn int(&self, attr: &str, missing: i64) -> i64 {
        self.view.int(attr).unwrap_or(missing)
    }

    /// The number of an attribute.
    pub(crate) fn number(&self, attr: &str, missing: f32) -> f32 {
        self.ir
            .attr(self.op, attr)
            .and_then(|attr| number_bits(&self.ir.ctx, attr))
            .and_then(|(dtype, bits)| to_f32(dtype, bits))
            .unwrap_or(missing)
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, attr: &str) -> bool {
        self.view.flag(attr)
    }

    /// The integers of a list attribute.
    pub(crate) fn ints(&self, attr: &str) -> Vec<i64> {
        let ctx = &self.ir.ctx;
        match self.ir.attr(self.op, attr).map(|attr| ctx.attr(attr)) {
            Some(AttrView::Array(list)) => {
                list.iter().filter_map(|attr| ctx.attr_int(attr)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The lists of integers of an attribute.
    pub(crate) fn lists(&self, attr: &str) -> Vec<Vec<u32>> {
        let ctx = &self.ir.ctx;
        let Some(AttrView::Array(lists)) = self.ir.attr(self.op, attr).map(|attr| ctx.attr(attr))
        else {
            return Vec::new();
        };
        lists
            .iter()
            .filter_map(|list| match ctx.attr(list) {
                AttrView::Array(list) => Some(
                    list.iter()
                        .filter_map(|attr| u32::try_from(ctx.attr_int(attr)?).ok())
                        .collect(),
                ),
                _ => None,
            })
            .collect()
    }

    /// The `[step, count]` pairs of a pattern attribute.
    pub(crate) fn pattern(&self, attr: &str) -> Vec<(i64, usize)> {
        let ctx = &self.ir.ctx;
        let Some(AttrView::Array(list)) = self.ir.attr(self.op, attr).map(|attr| ctx.attr(attr))
        else {
            return Vec::new();
        };
        list.iter()
            .filter_map(|pair| match ctx.attr(pair) {
                AttrView::Array(pair) => {
                    let mut numbers = pair.iter().filter_map(|attr| ctx.attr_int(attr));
                    Some((numbers.next()?, usize::try_from(numbers.next()?).ok()?))
                }
                _ => None,
            })
            .collect()
    }

    /// The register or integer in a role.
    pub(crate) fn bound(&self, role: &str) -> Run<Bound> {
        super::bound(self.lowering, self.view, role, 0)
    }

    /// The register or integer in a role of another operation.
    pub(crate) fn bound_of(&self, op: Op, role: &str) -> Run<Bound> {
        super::bound(self.lowering, OpView::new(self.ir, op), role, 0)
    }

    /// The slot and dtype of the register an instruction writes.
    pub(crate) fn register_out(&self) -> Run<(u32, DType)> {
        let value = match self.view.role("dst") {
            RoleView::Operand(operand) => Some(self.ir.operand(operand).value),
            _ => self.ir.result(self.op),
        };
        let value = value.ok_or_else(|| malformed("it writes no register"))?;
        Ok((self.slot(value)?, self.register_dtype(value)))
    }

    /// The dtype of a register.
    pub(crate) fn register_dtype(&self, value: Value) -> DType {
        bir_dialect::bir::types::reg_dtype(&self.ir.ctx, self.ir.value_type(value))
            .unwrap_or(DType::I32)
    }

    fn slot(&self, value: Value) -> Run<u32> {
        self.lowering
            .known_slot(value)
            .ok_or_else(|| malformed("it uses a register nothing defines"))
    }

    /// The register slot of the n-th index operand.
    pub(crate) fn index_slot(&self, index: u8) -> Run<u32> {
        let value = self
            .view
            .indices()
            .nth(usize::from(index))
            .ok_or_else(|| malformed(format!("there is no index number {index}")))?;
        self.slot(value)
    }

    /// The value of the n-th index operand.
    pub(crate) fn index_value(&self, index: u8) -> Option<Value> {
        self.view.indices().nth(usize::from(index))
    }

    fn resolve(&self, role: &str, operand: Operand) -> Run<Tile> {
        let data = self.ir.operand(operand);
        let position = self
            .ir
            .operand_ids(self.op)
            .position(|id| id == operand)
            .unwrap_or(0);
        let bad = |what: &str| malformed(format!("operand `{role}` {what}"));
        let number = *self
            .lowering
            .by_value
            .get(&data.value)
            .ok_or_else(|| bad("is no location of this function"))?;
        let location = &self.lowering.locations[number];
        let mem = MemType::get(&self.ir.ctx, self.ir.value_type(data.value))
            .ok_or_else(|| bad("is no memory"))?;
        let access = Access::resolve(&self.ir.ctx, &mem, data.annot);
        let mut terms: SmallVec<[Term; 2]> = SmallVec::new();
        let size = i64::from(access.dtype.size_bytes());
        for term in &access.terms {
            let partitions = term.target == TermTarget::Partition;
            terms.push(Term {
                slot: self.index_slot(term.index)?,
                partitions,
                factor: if partitions {
                    term.coef
                } else {
                    term.coef.saturating_mul(size)
                },
            });
        }
        if access.partitions() > u64::from(PARTITIONS) {
            let found = access.partitions();
            return Err(malformed(format!("a tile of {found} partitions")));
        }
        tile(location.home, number, position, &access, terms)
            .ok_or_else(|| bad("has an access that is too large"))
    }
}

/// Resolves an access of a location; `None` where numbers pass what memory can have.
fn tile(
    home: Home,
    location: usize,
    operand: usize,
    access: &Access,
    terms: SmallVec<[Term; 2]>,
) -> Option<Tile> {
    let size = i64::from(access.dtype.size_bytes());
    let mut spelt: SmallVec<[Step; 4]> = SmallVec::new();
    let mut elements = 1usize;
    for pair in &access.pairs {
        let count = usize::try_from(pair.count).ok()?;
        elements = elements.checked_mul(count).filter(|&n| n < 1 << 40)?;
        spelt.push(Step {
            bytes: pair.step.checked_mul(size)?,
            count,
        });
    }
    let byte = access.offset.checked_mul(size)?;
    let (low, high) = access.offset_range();
    let low = low.checked_sub(access.offset)?.checked_mul(size)?;
    let high = high
        .checked_sub(access.offset)?
        .checked_add(1)?
        .checked_mul(size)?;
    let bounded = |value: i64| value.unsigned_abs() < 1 << 61;
    if !(bounded(byte) && bounded(low) && bounded(high)) {
        return None;
    }
    Some(Tile {
        home,
        location,
        operand,
        dtype: access.dtype,
        size: size as usize,
        partition: access.window.map_or(0, |window| window.start),
        byte,
        partitions: usize::try_from(access.partitions()).ok()?,
        elements,
        levels: canonical(&spelt),
        spelt,
        low,
        high,
        terms,
    })
}

/// Whether f32 arithmetic can read and write a dtype.
pub(crate) fn is_arithmetic(dtype: DType) -> bool {
    dtype.class() != DTypeClass::Packed
}
