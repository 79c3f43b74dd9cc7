//! Definedness: no read of bytes that no earlier write covers, and every output written in full.
//!
//! Where there are branches, the index of the function answers. Straight code and loops take a
//! faster way, which the tests hold equal to the index.
//!
//! Formally: walk the instructions in program order, loop bodies once at their first iteration; a write defines its bytes, at a loop's end those of all
//! its iterations; a read whose bytes are not defined is a finding, one per location. Inputs,
//! constants and what other cores write are defined. What cannot be followed (a register bound, an
//! indexed or predicated write, an access too fine) counts as defining, never as undefined.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::super::access::{Access, Target};
use super::super::attrs::Accumulate;
use super::super::loops::{loop_of, loop_range, trips};
use super::super::ops::{Kind, OpCode, OperandDef};
use super::super::space::{Engine, Space, Target as GenTarget};
use super::super::types::MemType;
use super::super::view::OpView;
use super::cover::{Gap, Rect, Runs, runs};
use super::dominance::flow_order;
use super::groups;
use super::lifetimes::Placed;
use super::locations::{Location, Slots};
use super::uses::{OpUses, Use};
use super::words::{symbol_text, value_text};
use crate::analysis::index::{self, Frames, FunctionIndex, effect_of};
use crate::ir::{Annot, Ir, Op, OperandData, Value, Visit};
use crate::text::diag::{Diagnostic, Diagnostics, Part, Place};

type Fixed = foldhash::fast::FixedState;

pub(super) struct Definedness<'a> {
    pub(super) ir: &'a Ir,
    pub(super) target: GenTarget,
    pub(super) diags: &'a mut Diagnostics,
    pub(super) locations: Vec<Location>,
    pub(super) slots: &'a mut Slots,
    open: HashSet<Op, Fixed>,
    /// Writes to repeat for all iterations when a loop ends.
    pending: HashMap<Op, Vec<(Op, usize)>, Fixed>,
    pub(super) lifetimes: Placed,
    branches: bool,
}

/// Checks a function, and that placed locations that overlap are never live together; `branches` says
/// whether control may take more than one way through it.
pub(super) fn check(
    ir: &Ir,
    function: Op,
    target: GenTarget,
    branches: bool,
    slots: &mut Slots,
    diags: &mut Diagnostics,
) {
    slots.clear();
    let mut walk = Definedness {
        ir,
        target,
        diags,
        locations: Vec::new(),
        slots,
        open: HashSet::default(),
        pending: HashMap::default(),
        lifetimes: Placed::default(),
        branches,
    };
    walk.function(function);
}

impl Definedness<'_> {
    fn function(&mut self, function: Op) {
        let ir = self.ir;
        let Some(&region) = ir.regions(function).first() else {
            return;
        };
        let Some(entry) = ir.entry(region) else {
            return;
        };
        for op in ir.block_ops(entry) {
            if OpCode::of(ir, op) == Some(OpCode::Alloc) {
                self.declare(op);
            }
        }
        self.alias();
        let mut index = None;
        if self.branches {
            let found = FunctionIndex::build(ir, function, Frames::Locations);
            self.ask_index(function, &found);
            self.lifetimes.scatter(ir, &found);
            index = Some(found);
            for location in &mut self.locations {
                location.cover = None;
            }
        }
        for block in flow_order(ir, region) {
            for op in ir.block_ops(block) {
                if ir.regions(op).is_empty() {
                    self.instruction(op);
                } else {
                    self.nested(op);
                }
            }
        }
        for slot in 0..self.locations.len() {
            self.output(function, slot);
        }
        if self
            .locations
            .iter()
            .any(|location| location.is_accumulated && location.is_shared)
        {
            let index =
                index.unwrap_or_else(|| FunctionIndex::build(ir, function, Frames::Locations));
            groups::check(ir, &index, self.target, self.diags);
        }
        self.lifetimes.check(ir, self.diags);
    }

    /// Definedness by the index: on every path.
    fn ask_index(&mut self, function: Op, index: &FunctionIndex) {
        let ir = self.ir;
        for read in index.undefined_reads() {
            let Some(slot) = self.slots.get(read.value) else {
                continue;
            };
            if self.locations[slot].is_reported {
                continue;
            }
            let Some(code) = OpCode::of(ir, read.op) else {
                continue;
            };
            let mut operands = ir.operand_ids(read.op);
            let Some(position) = operands.position(|operand| operand == read.operand) else {
                continue;
            };
            let role = ir.operand(read.operand).role;
            let Some(entry) = code.def().operands.get(usize::from(role)) else {
                continue;
            };
            let what = self.first_gap(slot, &read.gaps);
            self.report(
                read.op,
                code,
                entry,
                position,
                slot,
                &what,
                "not every path writes",
            );
        }
        for output in index.unwritten_outputs() {
            let Some(slot) = self.slots.get(output.value) else {
                continue;
            };
            let what = self.first_gap(slot, &output.gaps);
            let name = value_text(ir, output.value);
            let function = symbol_text(ir, function);
            let message = match what {
                Some(gap) => {
                    format!("{gap} of output {name} of {function} are not written on every path")
                }
                None => format!("output {name} of {function} is not written on every path"),
            };
            let alloc = self.locations[slot].alloc;
            self.diags
                .push(Diagnostic::error(Place::Op(alloc, Part::Whole), message));
        }
    }

    /// The first of the index's gaps in words; `None` where it is the whole location.
    fn first_gap(&self, slot: usize, gaps: &[index::Gap]) -> Option<String> {
        let location = &self.locations[slot];
        let gap = gaps.first()?;
        let mem = MemType::get(&self.ir.ctx, self.ir.value_type(location.value))?;
        let width = location.width;
        let gap = match mem.space {
            Space::Dram if gap.bytes.0 % width == 0 && gap.bytes.1 % width == 0 => Gap {
                rows: (gap.bytes.0 / width, gap.bytes.1 / width),
                cols: (0, width),
            },
            Space::Dram => {
                let row = gap.bytes.0 / width;
                Gap {
                    rows: (row, row + 1),
                    cols: (gap.bytes.0 % width, width.min(gap.bytes.1 - row * width)),
                }
            }
            _ => Gap {
                rows: gap.partitions,
                cols: gap.bytes,
            },
        };
        let full = gap.cols == (0, width);
        (!full || gap.rows != (0, location.rows))
            .then(|| gap_text(self.ir, location.value, &gap, full))
    }

    fn nested(&mut self, op: Op) {
        let ir = self.ir;
        let mut walk = ir.walk_visits(op);
        while let Some(visit) = walk.next() {
            match visit {
                Visit::Enter(op) if ir.regions(op).is_empty() => self.instruction(op),
                Visit::Enter(op) => {
                    let trips = trips(ir, op);
                    if trips == Some(0) {
                        walk.skip_regions(op);
                    }
                    self.open.insert(op);
                    let runs = trips.is_some_and(|trips| trips > 0);
                    self.lifetimes.live.enter(op, runs);
                }
                Visit::Leave(op) => {
                    self.open.remove(&op);
                    self.lifetimes.live.leave();
                    for (write, position) in self.pending.remove(&op).unwrap_or_default() {
                        self.define(write, position, Some(op));
                    }
                }
            }
        }
    }

    fn instruction(&mut self, op: Op) {
        let ir = self.ir;
        let Some(code) = OpCode::of(ir, op) else {
            return;
        };
        let Some(uses) = OpUses::of(code) else { return };
        if code == OpCode::Halt {
            self.lifetimes.end();
        }
        if uses.roles.is_empty() {
            return;
        }
        self.lifetimes.live.step();
        let operands = ir.operands(op);
        for (position, operand) in operands.iter().enumerate() {
            let Some(entry) = uses.roles.get(usize::from(operand.role)) else {
                continue;
            };
            if !entry.writes {
                self.lifetimes.touch(ir, op, operand, || {
                    effect_of(ir, op, code, usize::from(operand.role))
                });
            }
            if let Some(slot) = self.slots.get(operand.value)
                && self.may_be_undefined(slot)
                && entry.is_read(ir, op)
            {
                self.read(op, code, entry, position, operand, slot);
            }
        }
        for (position, operand) in operands.iter().enumerate() {
            let Some(entry) = uses.roles.get(usize::from(operand.role)) else {
                continue;
            };
            if !entry.writes {
                continue;
            }
            let Some(slot) = self.slots.get(operand.value) else {
                continue;
            };
            self.lifetimes.touch(ir, op, operand, || {
                effect_of(ir, op, code, usize::from(operand.role))
            });
            let location = &mut self.locations[slot];
            location.is_written = true;
            if location.is_grouped {
                let engine = groups::engine_of(ir, op, code.def(), self.target);
                location.is_shared |= engine != Some(Engine::Pe);
                location.is_accumulated |=
                    uses.is_matmult && groups::accumulates(ir, op) != Accumulate::No;
            }
            if location.cover.is_none() {
                continue;
            }
            if entry.is_moved(ir, op) {
                location.cover = None;
                continue;
            }
            self.define(op, position, None);
            if self.locations[slot].cover.is_some() {
                self.remember(op, position, operand);
            }
        }
    }

    /// Whether a read of the location may be a finding.
    fn may_be_undefined(&self, slot: usize) -> bool {
        let location = &self.locations[slot];
        location.cover.is_some() && !location.is_reported
    }

    /// Lets the loops whose indices move a write repeat it when they end.
    fn remember(&mut self, op: Op, position: usize, operand: &OperandData) {
        let ir = self.ir;
        let Some(access) = resolve(ir, operand) else {
            return;
        };
        for term in &access.terms {
            let index = OpView::new(ir, op).indices().nth(usize::from(term.index));
            let Some(around) = index.and_then(|index| loop_of(ir, index)) else {
                continue;
            };
            let writes = self.pending.entry(around).or_default();
            if writes.last() != Some(&(op, position)) {
                writes.push((op, position));
            }
        }
    }

    /// Defines the bytes a write touches: over all iterations of loops that have ended, `ended` being
    /// the last of them, in the first iteration of loops that are open.
    fn define(&mut self, op: Op, position: usize, ended: Option<Op>) {
        let ir = self.ir;
        let Some(operand) = ir.operands(op).get(position) else {
            return;
        };
        let Some(slot) = self.slots.get(operand.value) else {
            return;
        };
        if self.locations[slot].cover.is_none() {
            return;
        }
        if operand.annot == Annot::UNIT {
            self.locations[slot].cover = None;
            return;
        }
        let rects = self.rects(op, operand, slot, ended.is_some());
        let location = &mut self.locations[slot];
        match (rects, &mut location.cover) {
            (Some(rects), Some(cover)) => {
                for rect in &rects {
                    cover.add(rect);
                }
                if cover.is_full() {
                    location.cover = None;
                }
            }
            _ => location.cover = None,
        }
    }

    /// The bytes of an access; `None` where they cannot be followed.
    fn rects(
        &self,
        op: Op,
        operand: &OperandData,
        slot: usize,
        over_ended: bool,
    ) -> Option<SmallVec<[Rect; 1]>> {
        let ir = self.ir;
        let mem = MemType::get(&ir.ctx, ir.value_type(operand.value))?;
        let access = Access::resolve(&ir.ctx, &mem, operand.annot);
        let size = i64::from(access.dtype.size_bytes());
        let mut start = access.offset.checked_mul(size)?;
        let mut row = access.window.map_or(0, |window| window.start);
        let mut dims: SmallVec<[(i64, u64); 8]> = SmallVec::new();
        let mut row_dims: Dims = SmallVec::new();
        for pair in &access.pairs {
            dims.push((pair.step.checked_mul(size)?, pair.count));
        }
        for term in &access.terms {
            let index = OpView::new(ir, op).indices().nth(usize::from(term.index))?;
            let around = loop_of(ir, index)?;
            let range = loop_range(ir, around)?;
            let first = i64::try_from(range.first).ok()?;
            let moved = term.coef.checked_mul(first)?;
            let stride = term.coef.checked_mul(i64::try_from(range.step).ok()?)?;
            let trips = match self.open.contains(&around) || !over_ended {
                true => 1,
                false => range.trips?,
            };
            match term.target {
                Target::Offset => {
                    start = start.checked_add(moved.checked_mul(size)?)?;
                    dims.push((stride.checked_mul(size)?, trips));
                }
                Target::Partition => {
                    row = row.checked_add(moved)?;
                    row_dims.push((stride, trips));
                }
            }
        }
        if let Some(window) = access.window {
            row_dims.push((1, window.count));
            let rect = Rect {
                rows: runs(row, 1, row_dims)?,
                cols: runs(start, size, dims)?,
            };
            return Some(SmallVec::from_iter([rect]));
        }
        dram_rects(start, size, &dims, self.locations[slot].width)
    }

    #[allow(clippy::too_many_arguments)]
    fn read(
        &mut self,
        op: Op,
        code: OpCode,
        entry: &Use,
        position: usize,
        operand: &OperandData,
        slot: usize,
    ) {
        let ir = self.ir;
        let location = &self.locations[slot];
        let Some(cover) = &location.cover else { return };
        let Some(role) = code.def().operands.get(usize::from(operand.role)) else {
            return;
        };
        let what = if !location.is_written {
            None
        } else if entry.is_picked(ir, op) {
            return;
        } else {
            let Some(rects) = self.rects(op, operand, slot, false) else {
                return;
            };
            let Some(gap) = rects.iter().find_map(|rect| cover.gap(rect)) else {
                return;
            };
            let whole = gap.cols == (0, location.width);
            Some(gap_text(ir, operand.value, &gap, whole))
        };
        self.report(op, code, role, position, slot, &what, "nothing has written");
    }

    /// One finding for a location: `what` of it is read.
    #[allow(clippy::too_many_arguments)]
    fn report(
        &mut self,
        op: Op,
        code: OpCode,
        entry: &OperandDef,
        position: usize,
        slot: usize,
        what: &Option<String>,
        why: &str,
    ) {
        let location = &self.locations[slot];
        let name = self
            .ir
            .operands(op)
            .get(position)
            .map_or_else(String::new, |operand| value_text(self.ir, operand.value));
        let what = match what {
            Some(what) => format!("{what} of {name}"),
            None => name.clone(),
        };
        let mnemonic = code.def().name;
        let accumulates = code.def().attr("accumulate").is_some() && entry.kind == Kind::Out;
        let (message, help) = if accumulates {
            (
                format!("`{mnemonic}` accumulates onto {what}, which nothing has overwritten"),
                Some(
                    "the first of a group has no `accumulate`; in a loop, `accumulate = unless_first(%k)`"
                        .to_owned(),
                ),
            )
        } else {
            (
                format!(
                    "operand `{}` of `{mnemonic}` reads {what}, which {why}",
                    entry.name
                ),
                None,
            )
        };
        let alloc = location.alloc;
        self.diags.push(
            Diagnostic::error(Place::Op(op, Part::Operand(position)), message)
                .related(
                    Place::Op(alloc, Part::Whole),
                    format!("{name} is declared here"),
                )
                .maybe_help(help),
        );
        self.locations[slot].is_reported = true;
    }

    fn output(&mut self, function: Op, slot: usize) {
        let ir = self.ir;
        let location = &self.locations[slot];
        let Some(cover) = location.cover.as_ref().filter(|_| location.is_output) else {
            return;
        };
        let name = value_text(ir, location.value);
        let whole = Rect {
            rows: Runs::from_slice(&[(0, location.rows)]),
            cols: Runs::from_slice(&[(0, location.width)]),
        };
        let message = if location.is_written {
            let Some(gap) = cover.gap(&whole) else { return };
            let full = gap.cols == (0, location.width);
            format!(
                "{} of output {name} of {} are never written",
                gap_text(ir, location.value, &gap, full),
                symbol_text(ir, function)
            )
        } else {
            format!(
                "output {name} of {} is never written",
                symbol_text(ir, function)
            )
        };
        self.diags.push(Diagnostic::error(
            Place::Op(location.alloc, Part::Whole),
            message,
        ));
    }
}

/// `(step, count)` in bytes.
type Dims = SmallVec<[(i64, u64); 4]>;

/// The rectangles of a walk through rows of `width` bytes.
fn dram_rects(
    start: i64,
    size: i64,
    dims: &[(i64, u64)],
    width: i64,
) -> Option<SmallVec<[Rect; 1]>> {
    // Steps by whole rows on one side, steps within a row on the other.
    let (row_dims, col_dims): (Dims, Dims) = dims
        .iter()
        .filter(|dim| dim.1 != 1)
        .copied()
        .partition(|dim| dim.0 % width == 0);
    let cols = runs(start.rem_euclid(width), size, col_dims)?;
    let fits = cols.iter().all(|run| run.0 >= 0 && run.1 <= width);
    if fits {
        let rows = runs(
            start.div_euclid(width),
            1,
            row_dims.iter().map(|dim| (dim.0 / width, dim.1)),
        )?;
        return Some(SmallVec::from_iter([Rect { rows, cols }]));
    }
    let mut rects = SmallVec::new();
    for (from, to) in runs(start, size, dims.iter().copied())? {
        let mut at = from;
        while at < to {
            let (row, col) = (at.div_euclid(width), at.rem_euclid(width));
            let full = if col == 0 { (to - at) / width } else { 0 };
            let (rows, end) = if full > 0 {
                ((row, row + full), width)
            } else {
                ((row, row + 1), width.min(col + (to - at)))
            };
            rects.push(Rect {
                rows: Runs::from_slice(&[rows]),
                cols: Runs::from_slice(&[(col, end)]),
            });
            at += (rows.1 - rows.0 - 1) * width + (end - col);
        }
    }
    Some(rects)
}

fn resolve(ir: &Ir, operand: &OperandData) -> Option<Access> {
    let mem = MemType::get(&ir.ctx, ir.value_type(operand.value))?;
    Some(Access::resolve(&ir.ctx, &mem, operand.annot))
}

/// "partitions 64 to 127", "elements 0 to 3 of partitions 64 to 127"
fn gap_text(ir: &Ir, value: Value, gap: &Gap, whole_rows: bool) -> String {
    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
        return "bytes".to_owned();
    };
    let size = i64::from(mem.dtype.size_bytes());
    let span = |noun: &str, (from, to): (i64, i64)| match to - from {
        1 => format!("{noun} {from}"),
        _ => format!("{noun}s {from} to {}", to - 1),
    };
    let rows = match mem.space {
        Space::Dram => span("row", gap.rows),
        _ => span("partition", gap.rows),
    };
    let is_flat = mem.space == Space::Dram && mem.dims.len() < 2;
    let cols = span(
        "element",
        (gap.cols.0 / size, (gap.cols.1 + size - 1) / size),
    );
    if is_flat {
        cols
    } else if whole_rows {
        rows
    } else {
        format!("{cols} of {rows}")
    }
}
