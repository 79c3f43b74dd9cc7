//! The locations of a function whose memory is followed, and which of them share their bytes.

use hashbrown::HashMap;

use super::super::attrs::Placement;
use super::super::space::{Space, Target as GenTarget};
use super::super::types::MemType;
use super::super::view::OpView;
use super::cover::Cover;
use super::defined::Definedness;
use super::placement::placement_fault;
use super::words::{attr_text, value_text};
use crate::ir::{AttrView, Op, Str, Value};
use crate::text::diag::{Diagnostic, Part, Place};

type Fixed = foldhash::fast::FixedState;

/// What is known of a location.
pub(super) struct Location {
    pub(super) value: Value,
    pub(super) alloc: Op,
    pub(super) rows: i64,
    pub(super) width: i64,
    /// `None` where every byte is defined.
    pub(super) cover: Option<Cover>,
    pub(super) is_written: bool,
    pub(super) is_output: bool,
    pub(super) is_reported: bool,
    /// Whether who writes it matters: in PSUM, up to `trn2`.
    pub(super) is_grouped: bool,
    /// Whether a `matmult` accumulates onto it.
    pub(super) is_accumulated: bool,
    /// Whether another engine than the tensor engine writes it.
    pub(super) is_shared: bool,
}

/// The location a value is, by number; one table serves all functions of a file.
#[derive(Default)]
pub(super) struct Slots {
    of: Vec<u32>,
    used: Vec<Value>,
}

impl Slots {
    pub(super) fn get(&self, value: Value) -> Option<usize> {
        let slot = *self.of.get(value.index())?;
        (slot != u32::MAX).then_some(slot as usize)
    }

    pub(super) fn insert(&mut self, value: Value, slot: usize) {
        if self.of.len() <= value.index() {
            self.of.resize(value.index() + 1, u32::MAX);
        }
        if let Some(known) = self.of.get_mut(value.index()) {
            *known = slot as u32;
            self.used.push(value);
        }
    }

    pub(super) fn clear(&mut self) {
        for value in self.used.drain(..) {
            if let Some(known) = self.of.get_mut(value.index()) {
                *known = u32::MAX;
            }
        }
    }
}

impl Definedness<'_> {
    pub(super) fn declare(&mut self, alloc: Op) {
        let ir = self.ir;
        let Some(value) = ir.result(alloc) else {
            return;
        };
        let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
            return;
        };
        let view = OpView::new(ir, alloc);
        let kind = view.word("kind").unwrap_or("internal");
        let is_shared = view.word("space") == Some("shared");
        let elsewhere = is_shared
            || ir.attr(alloc, "written_by_core").is_some()
            || ir.attr(alloc, "remote_target").is_some();
        let is_defined =
            elsewhere || view.flag("boundary") || matches!(kind, "input" | "inout" | "const");
        let (rows, width) = match mem.space {
            Space::Dram => {
                let last = mem.dims.last().copied().unwrap_or(1);
                let width = last.saturating_mul(u64::from(mem.dtype.size_bytes()));
                let bytes = mem.bytes().unwrap_or(0);
                (bytes.checked_div(width).unwrap_or(0), width)
            }
            _ => (mem.partitions(), mem.free_bytes().unwrap_or(0)),
        };
        let (rows, width) = (rows as i64, width as i64);
        self.slots.insert(value, self.locations.len());
        self.locations.push(Location {
            value,
            alloc,
            rows,
            width,
            cover: (!is_defined && rows > 0 && width > 0).then(|| Cover::new(rows, width)),
            is_written: false,
            is_output: kind == "output" && !elsewhere,
            is_reported: false,
            is_grouped: mem.space == Space::Psum && self.target < GenTarget::Trn3,
            is_accumulated: false,
            is_shared: false,
        });
        self.lifetimes.declare(ir, alloc, value, &mem);
    }

    /// Why one location cannot share the bytes of another, if it cannot.
    fn cannot_alias(&self, slot: usize, other: usize) -> Option<String> {
        let ir = self.ir;
        let (a, b) = (self.locations[slot].value, self.locations[other].value);
        let name = value_text(ir, a);
        if slot == other {
            return Some(format!("location {name} must alias itself"));
        }
        let space = |value| MemType::get(&ir.ctx, ir.value_type(value)).map(|mem| mem.space);
        let (here, there) = (space(a)?, space(b)?);
        (here != there).then(|| {
            let other = value_text(ir, b);
            format!("location {name} in `{here}` must alias {other} in `{there}`, where none of its bytes are")
        })
    }

    /// A location without a place of its own begins where its partner is placed.
    fn fits(&mut self, slot: usize, partner: usize) {
        let ir = self.ir;
        let place = |slot: usize| {
            let attr = ir.attr(self.locations[slot].alloc, "at")?;
            Placement::get(&ir.ctx, attr)
        };
        let Location { value, alloc, .. } = self.locations[slot];
        if let (None, Some(at), Some(mem)) = (
            place(slot),
            place(partner),
            MemType::get(&ir.ctx, ir.value_type(value)),
        ) && let Some(fault) = placement_fault(&mem, at, self.target)
        {
            let message = format!(
                "location {} begins where {} is placed, and {fault}",
                value_text(ir, value),
                value_text(ir, self.locations[partner].value)
            );
            self.diags
                .push(Diagnostic::error(Place::Op(alloc, Part::Whole), message));
        }
    }

    /// Locations that share their bytes are one.
    pub(super) fn alias(&mut self) {
        let ir = self.ir;
        let mut by_name: HashMap<Str, usize, Fixed> = HashMap::default();
        for (slot, location) in self.locations.iter().enumerate() {
            if let Some(name) = ir.value_name(location.value) {
                by_name.insert(name, slot);
            }
        }
        // Partners of partners share them, too: who is first among them, one step nearer each time.
        let mut first: Vec<usize> = Vec::new();
        let find = |first: &mut [usize], mut at: usize| {
            while first[at] != at {
                first[at] = first[first[at]];
                at = first[at];
            }
            at
        };
        for slot in 0..self.locations.len() {
            let alloc = self.locations[slot].alloc;
            let Some(attr) = ir.attr(alloc, "must_alias") else {
                continue;
            };
            let other = match ir.ctx.attr(attr) {
                AttrView::Symbol(name) => by_name.get(&name).copied(),
                _ => None,
            };
            let Some(other) = other else {
                let message = format!(
                    "location {} must alias {}, which its function does not have",
                    value_text(ir, self.locations[slot].value),
                    attr_text(&ir.ctx, attr)
                );
                self.diags
                    .push(Diagnostic::error(Place::Op(alloc, Part::Whole), message));
                continue;
            };
            if let Some(wrong) = self.cannot_alias(slot, other) {
                self.diags
                    .push(Diagnostic::error(Place::Op(alloc, Part::Whole), wrong));
                continue;
            }
            if first.is_empty() {
                first.extend(0..self.locations.len());
            }
            let (own, other) = (find(&mut first, slot), find(&mut first, other));
            if own == other {
                continue;
            }
            let (a, b) = (&self.locations[own], &self.locations[other]);
            let same = (a.rows, a.width) == (b.rows, b.width);
            let defined = !same || a.cover.is_none() || b.cover.is_none();
            if defined {
                self.locations[own].cover = None;
                self.locations[other].cover = None;
            }
            let is_output = self.locations[own].is_output;
            self.locations[other].is_output |= is_output;
            self.locations[own].is_output = false;
            first[own] = other;
        }
        for slot in 0..first.len() {
            let value = self.locations[slot].value;
            let shared = find(&mut first, slot);
            self.slots.insert(value, shared);
            if shared != slot {
                self.fits(slot, shared);
            }
        }
    }
}
