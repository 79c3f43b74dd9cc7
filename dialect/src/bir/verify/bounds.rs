//! Accesses: inside their location at both ends of every enclosing loop, encodable, and on
//! partitions an engine can address.

use smallvec::SmallVec;

use super::super::access::{Access, Target as TermTarget, Term};
use super::super::attrs::Placement;
use super::super::loops::{loop_of, loop_range};
use super::super::ops::{OpCode, OpDef, Trait};
use super::super::space::{Engine, PARTITIONS, Space};
use super::super::types::MemType;
use super::driver::Verifier;
use super::facts::{Facts, Fault, MAX_FREE_PAIRS};
use super::words::{counted, value_text};
use crate::ir::{Ir, Op, OperandData, Value};
use crate::text::diag::{Diagnostic, Part, Place};

/// Smallest and largest value of a sum of terms, and the iterations that reach them.
struct Extremes {
    low: i128,
    high: i128,
    at_low: SmallVec<[(Value, i128); 4]>,
    at_high: SmallVec<[(Value, i128); 4]>,
}

/// What is known of the sum of an access's terms.
// On the stack for a moment, once per access with terms: not worth an allocation.
#[allow(clippy::large_enum_variant)]
enum Sum {
    Known(Extremes),
    /// A loop starts at a register.
    Unknown,
    /// A loop never runs.
    Never,
}

/// Whether an access is good wherever it stands, its location not being placed: the common case, told
/// once for all instructions that have it.
pub(super) fn is_easy(fact: &Facts) -> bool {
    let is_inside = fact.low >= 0
        && u64::try_from(fact.high).is_ok_and(|high| high < fact.limit)
        && u64::try_from(fact.start).is_ok_and(|start| {
            let end = start.checked_add(fact.partitions);
            end.is_some_and(|end| end <= fact.room)
        });
    is_inside
        && fact.fault == Fault::None
        && !fact.has_terms
        && !fact.overlaps_itself
        && (fact.space == Space::Dram
            || window_is_legal(i128::from(fact.start), fact.partitions)
                && fact.elements <= MAX_PSUM_ELEMENTS)
}

/// Most elements of a partition the vector and the activation engine walk, by space.
const MAX_SBUF_ELEMENTS: u64 = 1 << 16;
const MAX_PSUM_ELEMENTS: u64 = 1 << 12;

/// The partitions a shuffle is active on, on both sides: whole groups of 32.
fn whole_quadrants(ir: &Ir, op: Op, facts: &[Option<Facts>]) -> Option<u64> {
    if OpCode::of(ir, op) != Some(OpCode::StreamShuffle) {
        return None;
    }
    let most = facts.iter().flatten().map(|fact| fact.partitions).max()?;
    Some(most.next_multiple_of(32))
}

impl Verifier<'_> {
    pub(super) fn check_accesses(
        &mut self,
        op: Op,
        def: &'static OpDef,
        engine: Option<Engine>,
        facts: &[Option<Facts>],
    ) {
        let ir = self.ir;
        let whole = whole_quadrants(ir, op, facts);
        for (position, operand) in ir.operands(op).iter().enumerate() {
            let Some(Some(fact)) = facts.get(position) else {
                continue;
            };
            if fact.is_easy && whole.is_none() && self.placement(operand.value).is_none() {
                continue;
            }
            let fact = *fact;
            let Some(entry) = def.operands.get(usize::from(operand.role)) else {
                continue;
            };
            if fact.fault != Fault::None {
                self.report_fault(op, def, position, operand, &fact);
                continue;
            }
            if fact.overlaps_itself && entry.writes() {
                let message = format!(
                    "operand `{}` of `{}` writes an element more than once",
                    entry.name, def.name
                );
                let help = "a step of 0, or steps that meet, may only be read".to_owned();
                self.error(op, Part::Operand(position), message, Some(help));
            }
            let is_inside = self.check_bounds(op, def, position, operand, &fact);
            let is_compute = fact.space != Space::Dram
                && !def.has(Trait::Dma)
                && !entry.any_partitions
                && engine.is_some_and(|engine| !matches!(engine, Engine::Dma | Engine::Sp));
            if is_inside && is_compute {
                self.check_window(op, def, position, operand, &fact, whole);
                self.check_length(op, def, position, operand, &fact, engine);
            }
        }
    }

    /// The vector and the activation engine walk only so many elements of a partition.
    fn check_length(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        fact: &Facts,
        engine: Option<Engine>,
    ) {
        let Some(engine @ (Engine::Dve | Engine::Act)) = engine else {
            return;
        };
        let limit = match fact.space {
            Space::Psum => MAX_PSUM_ELEMENTS,
            _ => MAX_SBUF_ELEMENTS,
        };
        if fact.elements <= limit {
            return;
        }
        let role = def
            .operands
            .get(usize::from(operand.role))
            .map_or("", |entry| entry.name);
        let message = format!(
            "operand `{role}` of `{}` walks {} elements of each partition, where engine `{engine}` walks at most {limit} in `{}`",
            def.name, fact.elements, fact.space
        );
        let help = "cut the tile into several instructions".to_owned();
        self.error(op, Part::Operand(position), message, Some(help));
    }

    fn report_fault(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        fact: &Facts,
    ) {
        let ir = self.ir;
        let role = def
            .operands
            .get(usize::from(operand.role))
            .map_or("", |entry| entry.name);
        let subject = format!("operand `{role}` of `{}`", def.name);
        let message = match fact.fault {
            Fault::None => return,
            Fault::Empty => format!("{subject} has an access of no elements"),
            Fault::Recast => format!(
                "{subject} sees {} as {}, but its rows are no whole number of {}-byte elements",
                value_text(ir, operand.value),
                fact.dtype,
                fact.dtype.size_bytes()
            ),
            Fault::Pairs(count) => format!(
                "{subject} walks {count} dimensions behind the partition, where an engine walks at most {MAX_FREE_PAIRS}"
            ),
            Fault::Step(step) => format!(
                "{subject} has step {step}, outside the signed 16 bits of an access in `{}`",
                fact.space
            ),
            Fault::Count(count) => format!(
                "{subject} has count {count}, outside the unsigned 16 bits of an access in `{}`",
                fact.space
            ),
        };
        self.error(op, Part::Operand(position), message, None);
    }

    /// Whether the access stays inside its location; findings reported.
    fn check_bounds(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        fact: &Facts,
    ) -> bool {
        if !fact.has_terms {
            let low = i128::from(fact.low);
            let high = i128::from(fact.high);
            let start = i128::from(fact.start);
            let elements = low >= 0 && high < i128::from(fact.limit);
            let partitions =
                start >= 0 && start + i128::from(fact.partitions) <= i128::from(fact.room);
            if !elements {
                self.report_elements(op, def, position, operand, fact, low, high, &[]);
            }
            if !partitions {
                self.report_partitions(op, def, position, operand, fact, start, &[]);
            }
            return elements && partitions;
        }
        let Some(access) = self.access(operand) else {
            return false;
        };
        let mut is_inside = true;
        match self.sum(op, &access, TermTarget::Offset) {
            Ok(Sum::Known(sum)) => {
                let low = i128::from(fact.low) + sum.low;
                let high = i128::from(fact.high) + sum.high;
                if low < 0 || high >= i128::from(fact.limit) {
                    // The end that is further out is the one shown.
                    let (shift, at) = if low < 0 {
                        (sum.low, &sum.at_low)
                    } else {
                        (sum.high, &sum.at_high)
                    };
                    let low = i128::from(fact.low) + shift;
                    let high = i128::from(fact.high) + shift;
                    self.report_elements(op, def, position, operand, fact, low, high, at);
                    is_inside = false;
                }
            }
            Ok(Sum::Unknown) => {}
            Ok(Sum::Never) => return true,
            Err(index) => {
                self.report_index(op, def, position, index);
                return false;
            }
        }
        match self.sum(op, &access, TermTarget::Partition) {
            Ok(Sum::Known(sum)) => {
                let low = i128::from(fact.start) + sum.low;
                let high = i128::from(fact.start) + sum.high;
                if low < 0 || high + i128::from(fact.partitions) > i128::from(fact.room) {
                    let (start, at) = if low < 0 {
                        (low, &sum.at_low)
                    } else {
                        (high, &sum.at_high)
                    };
                    self.report_partitions(op, def, position, operand, fact, start, at);
                    is_inside = false;
                }
            }
            Ok(Sum::Unknown | Sum::Never) => {}
            Err(index) => {
                self.report_index(op, def, position, index);
                is_inside = false;
            }
        }
        is_inside
    }

    fn access(&self, operand: &OperandData) -> Option<Access> {
        let ctx = &self.ir.ctx;
        let mem = MemType::get(ctx, self.ir.value_type(operand.value))?;
        Some(Access::resolve(ctx, &mem, operand.annot))
    }

    fn index_value(&self, op: Op, index: u8) -> Option<Value> {
        super::super::view::OpView::new(self.ir, op)
            .indices()
            .nth(usize::from(index))
    }

    /// Coefficients by loop index; `Err` names a position the instruction has no index for.
    fn coefficients(
        &self,
        op: Op,
        terms: &[Term],
        target: TermTarget,
    ) -> Result<SmallVec<[(Value, i128); 4]>, u8> {
        let mut coefs: SmallVec<[(Value, i128); 4]> = SmallVec::new();
        for term in terms.iter().filter(|term| term.target == target) {
            let value = self.index_value(op, term.index).ok_or(term.index)?;
            let coef = i128::from(term.coef);
            match coefs.iter_mut().find(|known| known.0 == value) {
                Some(known) => known.1 += coef,
                None => coefs.push((value, coef)),
            }
        }
        Ok(coefs)
    }

    fn sum(&self, op: Op, access: &Access, target: TermTarget) -> Result<Sum, u8> {
        let mut sum = Extremes {
            low: 0,
            high: 0,
            at_low: SmallVec::new(),
            at_high: SmallVec::new(),
        };
        let mut is_known = true;
        for (value, coef) in self.coefficients(op, &access.terms, target)? {
            let range = loop_of(self.ir, value).and_then(|around| loop_range(self.ir, around));
            let Some(range) = range else {
                is_known = false;
                continue;
            };
            if range.trips == Some(0) {
                return Ok(Sum::Never);
            }
            let (low, high) = if coef < 0 {
                (range.last, range.first)
            } else {
                (range.first, range.last)
            };
            sum.low += coef * low;
            sum.high += coef * high;
            sum.at_low.push((value, low));
            sum.at_high.push((value, high));
        }
        Ok(if is_known {
            Sum::Known(sum)
        } else {
            Sum::Unknown
        })
    }

    fn report_index(&mut self, op: Op, def: &OpDef, position: usize, index: u8) {
        let message = format!(
            "an access of `{}` names loop index d{index}, but the operation has {}",
            def.name,
            counted(
                super::super::view::OpView::new(self.ir, op)
                    .indices()
                    .count() as u64,
                "index operand"
            )
        );
        self.error(op, Part::Operand(position), message, None);
    }

    #[allow(clippy::too_many_arguments)]
    fn report_elements(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        fact: &Facts,
        low: i128,
        high: i128,
        at: &[(Value, i128)],
    ) {
        let ir = self.ir;
        let Some(entry) = def.operands.get(usize::from(operand.role)) else {
            return;
        };
        let verb = if entry.writes() { "writes" } else { "reads" };
        let per = if fact.space == Space::Dram {
            ""
        } else {
            " in each partition"
        };
        let message = format!(
            "operand `{}` of `{}` {verb} elements {low} to {high} of {}, which has {}{per}",
            entry.name,
            def.name,
            value_text(ir, operand.value),
            fact.limit
        );
        self.report_at(op, position, message, at);
    }

    #[allow(clippy::too_many_arguments)]
    fn report_partitions(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        fact: &Facts,
        start: i128,
        at: &[(Value, i128)],
    ) {
        let ir = self.ir;
        let Some(entry) = def.operands.get(usize::from(operand.role)) else {
            return;
        };
        let verb = if entry.writes() { "writes" } else { "reads" };
        let message = format!(
            "operand `{}` of `{}` {verb} partitions {start} to {} of {}, which has {}",
            entry.name,
            def.name,
            start + i128::from(fact.partitions) - 1,
            value_text(ir, operand.value),
            fact.room
        );
        self.report_at(op, position, message, at);
    }

    fn report_at(&mut self, op: Op, position: usize, message: String, at: &[(Value, i128)]) {
        let mut diagnostic = Diagnostic::error(Place::Op(op, Part::Operand(position)), message);
        if !at.is_empty() {
            let values: Vec<String> = at
                .iter()
                .map(|&(value, number)| format!("{} = {number}", value_text(self.ir, value)))
                .collect();
            diagnostic = diagnostic.note(format!("in the iteration with {}", values.join(", ")));
        }
        self.diags.push(diagnostic);
    }

    /// The start and size rule of partition windows.
    fn check_window(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        fact: &Facts,
        whole: Option<u64>,
    ) {
        let count = whole.unwrap_or(fact.partitions);
        let base = self
            .placement(operand.value)
            .and_then(|at| Placement::get(&self.ir.ctx, at))
            .map_or(0, |at| i128::from(at.partition()));
        let quantum = window_quantum(count);
        let start = i128::from(fact.start);
        if !fact.has_terms {
            if !window_is_legal(base + start, count) {
                self.report_window(op, def, position, operand, count, base, start);
            }
            return;
        }
        // Legal in every iteration: the first one is, and no index moves off the quantum.
        let Some(access) = self.access(operand) else {
            return;
        };
        let Ok(coefs) = self.coefficients(op, &access.terms, TermTarget::Partition) else {
            return;
        };
        let mut first = start;
        let mut moved: Option<i128> = None;
        for (value, coef) in coefs {
            let range = loop_of(self.ir, value).and_then(|around| loop_range(self.ir, around));
            let Some(range) = range else { return };
            if range.trips == Some(0) {
                return;
            }
            first += coef * range.first;
            let stride = coef * range.step;
            if range.trips != Some(1)
                && quantum.map_or(stride != 0, |quantum| stride % quantum != 0)
            {
                moved.get_or_insert(stride);
            }
        }
        if !window_is_legal(base + first, count) {
            self.report_window(op, def, position, operand, count, base, first);
        } else if let Some(stride) = moved {
            self.report_window(op, def, position, operand, count, base, first + stride);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn report_window(
        &mut self,
        op: Op,
        def: &OpDef,
        position: usize,
        operand: &OperandData,
        count: u64,
        base: i128,
        start: i128,
    ) {
        let ir = self.ir;
        let role = def
            .operands
            .get(usize::from(operand.role))
            .map_or("", |entry| entry.name);
        let rule = match count {
            0..=32 => "1 to 32 partitions start at 0, 32, 64 or 96",
            33..=64 => "33 to 64 partitions start at 0 or 64",
            _ => "65 to 128 partitions start at 0",
        };
        let message = format!(
            "operand `{role}` of `{}` covers {} from partition {}, but {rule}",
            def.name,
            counted(count, "partition"),
            base + start
        );
        let mut diagnostic = Diagnostic::error(Place::Op(op, Part::Operand(position)), message);
        if base != 0 {
            diagnostic = diagnostic.note(format!(
                "{} is placed at partition {base}, and the access starts at its partition {start}",
                value_text(ir, operand.value)
            ));
        }
        self.diags.push(diagnostic);
    }
}

/// Distance between legal starts of a window of `count` partitions; `None` where 0 is the only one.
fn window_quantum(count: u64) -> Option<i128> {
    match count {
        0..=32 => Some(32),
        33..=64 => Some(64),
        _ => None,
    }
}

/// Whether an engine addresses `count` partitions from `start` as one operand.
pub(super) fn window_is_legal(start: i128, count: u64) -> bool {
    let end = start + i128::from(count);
    start >= 0
        && end <= i128::from(PARTITIONS)
        && match window_quantum(count) {
            Some(quantum) => start % quantum == 0,
            None => start == 0,
        }
}

#[cfg(test)]
mod tests {
    use super::window_is_legal;

    #[test]
    fn partition_windows_follow_the_table_of_the_hardware() {
        for start in 0..128u64 {
            for count in 1..=128u64 {
                let expected = match count {
                    1..=32 => [0, 32, 64, 96].contains(&start),
                    33..=64 => [0, 64].contains(&start),
                    _ => start == 0,
                } && start + count <= 128;
                assert_eq!(
                    window_is_legal(i128::from(start), count),
                    expected,
                    "{start}+{count}"
                );
            }
        }
    }
}
