//! What one instruction writes and reads of the same bytes.
//!
//! An engine reads ahead of what it writes, by how much nobody says: an instruction that reads
//! bytes it also writes must read and write them as one access, element by element, and be of a kind
//! that writes each element after it was read ([`Trait::Elementwise`], [`Trait::InPlace`]). Two
//! results never share bytes. Scalars of one element per partition are read before the rows, and
//! reduced rows are written behind them.
//!
//! Bytes are the same by name, by `must_alias`, or by placement. Where the indices of loops move
//! the two sides differently, every iteration is looked at up to a limit; what a register moves is
//! left to the simulator.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::access::{Access, Target as TermTarget};
use super::super::attrs::Placement;
use super::super::loops::{Range, loop_of, loop_range};
use super::super::ops::{OpCode, OpDef, Trait};
use super::super::program::names;
use super::super::space::Space;
use super::super::types::MemType;
use super::super::view::OpView;
use super::driver::{NONE, Verifier};
use super::words::value_text;
use crate::analysis::access::{Footprint, StrideSet, footprint};
use crate::ir::{Annot, AttrView, Op, Str, Value};
use crate::text::diag::{Diagnostic, Part, Place};

/// Iterations over which two sides that move apart are compared.
const ITERATIONS: u64 = 1 << 12;
/// Iterations in all, over a file; then only the first of each loop is looked at.
const BUDGET: u64 = 1 << 22;
/// What a comparison byte by byte counts for.
const COMPARISON: u64 = 64;

/// Locations whose bytes may be those of others, in the function being walked.
#[derive(Default)]
pub(super) struct Homes {
    list: Vec<Home>,
    /// By name, and who is to alias a name that comes later.
    by_name: HashMap<Str, Value, foldhash::fast::FixedState>,
    waiting: HashMap<Str, SmallVec<[Value; 2]>, foldhash::fast::FixedState>,
    /// Iterations looked at so far.
    spent: u64,
}

/// Where the bytes of a location are.
#[derive(Clone, Copy)]
struct Home {
    /// Another home of the same bytes, or itself: locations that alias one another end at one.
    group: u32,
    /// Space, first partition and byte, ends of both, where placed.
    at: Option<(Space, [u64; 4])>,
}

impl Homes {
    /// The home at which all that share bytes with one end; the way there is shortened.
    fn group(&mut self, mut at: u32) -> u32 {
        while let Some(&Home { group, .. }) = self.list.get(at as usize)
            && group != at
        {
            let next = self
                .list
                .get(group as usize)
                .map_or(group, |home| home.group);
            if let Some(home) = self.list.get_mut(at as usize) {
                home.group = next;
            }
            at = next;
        }
        at
    }

    /// A new function.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.by_name.clear();
        self.waiting.clear();
    }
}

/// Bytes a side moves by, per value of a loop index: of partitions, and in each.
type Moves = SmallVec<[(Value, [i128; 2]); 4]>;

/// An access in the frame in which both sides are compared.
struct Side {
    partition: i64,
    byte: i64,
    /// Steps in bytes, neighbours that continue one another joined.
    dims: SmallVec<[(i64, u64); 5]>,
    size: u32,
    partitions: u64,
    print: Footprint,
    moves: Moves,
}

impl Verifier<'_> {
    /// Notes what a location shares its bytes with.
    pub(super) fn settle(&mut self, alloc: Op, value: Value) {
        let ir = self.ir;
        let dict = ir.dict(alloc);
        let alias = ir.attr(alloc, "must_alias");
        let at = ir
            .ctx
            .dict_get(dict, names::AT)
            .and_then(|attr| Placement::get(&ir.ctx, attr))
            .and_then(|at| {
                let mem = MemType::get(&ir.ctx, ir.value_type(value))?;
                let (partition, byte) = (u64::from(at.partition()), at.byte());
                let ends = [
                    partition.checked_add(mem.partitions())?,
                    byte.checked_add(mem.free_bytes()?)?,
                ];
                Some((mem.space, [partition, byte, ends[0], ends[1]]))
            });
        let name = ir.value_name(value);
        let waiting = name.and_then(|name| self.homes.waiting.remove(&name));
        if let Some(name) = name {
            self.homes.by_name.insert(name, value);
        }
        if at.is_none() && alias.is_none() && waiting.is_none() {
            return;
        }
        self.move_in(value, at);
        let other = alias.and_then(|attr| match ir.ctx.attr(attr) {
            AttrView::Symbol(name) => Some(name),
            _ => None,
        });
        if let Some(other) = other {
            match self.homes.by_name.get(&other).copied() {
                Some(known) => self.join(known, value),
                None => self.homes.waiting.entry(other).or_default().push(value),
            }
        }
        for partner in waiting.unwrap_or_default() {
            self.join(value, partner);
        }
    }

    fn move_in(&mut self, value: Value, at: Option<(Space, [u64; 4])>) {
        let group = self.homes.list.len() as u32;
        self.values[value.index()].home = group;
        self.homes.list.push(Home { group, at });
    }

    fn join(&mut self, one: Value, other: Value) {
        for value in [one, other] {
            if self.values[value.index()].home == NONE {
                self.move_in(value, None);
            }
        }
        let kept = self.homes.group(self.values[one.index()].home);
        let gone = self.homes.group(self.values[other.index()].home);
        if let Some(home) = self.homes.list.get_mut(gone as usize) {
            home.group = kept;
        }
    }

    fn home(&mut self, value: Value) -> Option<Home> {
        let at = self.values[value.index()].home;
        let group = self.homes.group(at);
        let home = self.homes.list.get(at as usize).copied()?;
        Some(Home { group, ..home })
    }

    /// How far the bytes of `b` start behind those of `a` – partitions and bytes – if the locations
    /// share any.
    fn shift(&mut self, a: Value, b: Value) -> Option<(i64, i64)> {
        if a == b {
            return Some((0, 0));
        }
        let (a, b) = (self.home(a)?, self.home(b)?);
        if a.group == b.group {
            return Some((0, 0));
        }
        let ((space, a), (other, b)) = (a.at?, b.at?);
        let meets = space == other && a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
        let distance = |a: u64, b: u64| i64::try_from(i128::from(b) - i128::from(a)).ok();
        meets.then(|| Some((distance(a[0], b[0])?, distance(a[1], b[1])?)))?
    }

    /// Checks each operand written against every other one.
    #[inline]
    pub(super) fn check_overlaps(&mut self, op: Op, code: OpCode, def: &'static OpDef) {
        let operands = self.ir.operands(op);
        for (w, written) in operands.iter().enumerate() {
            let Some(entry) = def.operands.get(usize::from(written.role)) else {
                continue;
            };
            if !entry.writes() {
                continue;
            }
            for (r, other) in operands.iter().enumerate() {
                let Some(entry) = def.operands.get(usize::from(other.role)) else {
                    continue;
                };
                let both = written.value == other.value
                    || (self.values[written.value.index()].home != NONE
                        && self.values[other.value.index()].home != NONE);
                // A pair of two results is looked at once.
                if both && r != w && !(entry.writes() && r < w) {
                    self.check_pair(op, code, def, w, r);
                }
            }
        }
    }

    fn check_pair(&mut self, op: Op, code: OpCode, def: &'static OpDef, w: usize, r: usize) {
        let ir = self.ir;
        let operands = ir.operands(op);
        let (Some(written), Some(other)) = (operands.get(w), operands.get(r)) else {
            return;
        };
        let Some(shift) = self.shift(written.value, other.value) else {
            return;
        };
        let (Some(out), Some(entry)) = (
            def.operands.get(usize::from(written.role)),
            def.operands.get(usize::from(other.role)),
        ) else {
            return;
        };
        let twice = entry.writes();
        let in_place = !twice && (def.has(Trait::Elementwise) || def.has(Trait::InPlace));
        if in_place && written.value == other.value && written.annot == other.annot {
            return;
        }
        let is_scalar = !twice
            && [out.name, entry.name]
                .iter()
                .any(|name| def.per_partition.contains(name));
        let is_opaque = matches!(code, OpCode::CustomOp | OpCode::InlineAsm);
        let by_register = operands.iter().any(|operand| {
            def.operands
                .get(usize::from(operand.role))
                .is_some_and(|entry| {
                    let names_places = entry.reads() && entry.name.contains("index");
                    entry.is_register() || (def.has(Trait::Dynamic) && names_places)
                })
        });
        if is_scalar || is_opaque || by_register {
            return;
        }
        let (Some(a), Some(b)) = (
            self.side(op, written.value, written.annot, (0, 0)),
            self.side(op, other.value, other.annot, shift),
        ) else {
            return;
        };
        let Some((at, is_same)) = self.meeting(&a, &b, in_place) else {
            return;
        };
        let names = match written.value == other.value {
            true => format!("of {}", value_text(ir, written.value)),
            false => format!(
                "of {} and {}",
                value_text(ir, written.value),
                value_text(ir, other.value)
            ),
        };
        let (name, first, second) = (def.name, out.name, entry.name);
        let (message, help) = if twice {
            (
                format!(
                    "operands `{first}` and `{second}` of `{name}` write the same bytes {names}"
                ),
                "give each result bytes of its own",
            )
        } else if is_same {
            (
                format!(
                    "operand `{second}` of `{name}` reads the bytes {names} that `{first}` writes, which `{name}` does not do in place"
                ),
                "write to another location",
            )
        } else {
            (
                format!(
                    "operand `{second}` of `{name}` reads bytes {names} that `{first}` writes, by another access"
                ),
                "read and write the same access, or write to another location",
            )
        };
        let mut diagnostic = Diagnostic::error(Place::Op(op, Part::Operand(r)), message)
            .related(
                Place::Op(op, Part::Operand(w)),
                format!("`{first}` is written here"),
            )
            .help(help);
        if !at.is_empty() {
            let values: Vec<String> = at
                .iter()
                .map(|&(value, number)| format!("{} = {number}", value_text(ir, value)))
                .collect();
            diagnostic = diagnostic.note(format!("in the iteration with {}", values.join(", ")));
        }
        self.diags.push(diagnostic);
    }

    /// An access in bytes; `None` where it is too fine or too far to follow.
    fn side(&self, op: Op, value: Value, annot: Annot, shift: (i64, i64)) -> Option<Side> {
        let ir = self.ir;
        let mem = MemType::get(&ir.ctx, ir.value_type(value))?;
        let access = Access::resolve(&ir.ctx, &mem, annot);
        let size = access.dtype.size_bytes();
        let print = Footprint::placed(&footprint(&access)?, shift.0, shift.1);
        let mut dims: SmallVec<[(i64, u64); 5]> = SmallVec::new();
        for pair in access.pairs.iter().filter(|pair| pair.count != 1) {
            let step = pair.step.checked_mul(i64::from(size))?;
            match dims.last_mut() {
                Some(outer) if i128::from(outer.0) == i128::from(step) * i128::from(pair.count) => {
                    *outer = (step, outer.1.checked_mul(pair.count)?);
                }
                _ => dims.push((step, pair.count)),
            }
        }
        let mut moves = Moves::new();
        for term in &access.terms {
            let index = OpView::new(ir, op).indices().nth(usize::from(term.index))?;
            let (axis, coef) = match term.target {
                TermTarget::Partition => (0, i128::from(term.coef)),
                TermTarget::Offset => (1, i128::from(term.coef) * i128::from(size)),
            };
            match moves.iter_mut().find(|known| known.0 == index) {
                Some(known) => known.1[axis] += coef,
                None => {
                    let mut by = [0; 2];
                    by[axis] = coef;
                    moves.push((index, by));
                }
            }
        }
        let window = access
            .window
            .map_or((0, 1), |window| (window.start, window.count));
        Some(Side {
            partition: window.0.checked_add(shift.0)?,
            byte: access
                .offset
                .checked_mul(i64::from(size))?
                .checked_add(shift.1)?,
            dims,
            size,
            partitions: window.1,
            print: print.is_exact().then_some(print)?,
            moves,
        })
    }

    /// Index values in whose iteration two sides share bytes, and whether as one access then;
    /// with `in_place`, one access is no meeting.
    fn meeting(
        &mut self,
        a: &Side,
        b: &Side,
        in_place: bool,
    ) -> Option<(Vec<(Value, i128)>, bool)> {
        let mut apart: Moves = b.moves.clone();
        for &(value, by) in &a.moves {
            match apart.iter_mut().find(|known| known.0 == value) {
                Some(known) => {
                    known.1[0] -= by[0];
                    known.1[1] -= by[1];
                }
                None => apart.push((value, [-by[0], -by[1]])),
            }
        }
        apart.retain(|moved| moved.1 != [0, 0]);
        let mut ranges: SmallVec<[(Value, [i128; 2], Range); 4]> = SmallVec::new();
        for (value, by) in apart {
            let range = loop_of(self.ir, value).and_then(|around| loop_range(self.ir, around))?;
            if range.trips == Some(0) {
                return None;
            }
            ranges.push((value, by, range));
        }
        let total = ranges.iter().fold(1u64, |total, (.., range)| {
            total.saturating_mul(range.trips.unwrap_or(1))
        });
        let alike = a.dims == b.dims && a.size == b.size && a.partitions == b.partitions;
        let iterations = match self.homes.spent < BUDGET {
            true => total.min(ITERATIONS),
            false => 1,
        };
        for mut i in 0..iterations {
            self.homes.spent += 1;
            let mut by = [0i128; 2];
            let mut at = Vec::new();
            for (value, step, range) in &ranges {
                let trips = range.trips.unwrap_or(1);
                let index = range.first + range.step * i128::from(i % trips);
                i /= trips;
                by[0] += step[0] * index;
                by[1] += step[1] * index;
                at.push((*value, index));
            }
            let (Ok(partitions), Ok(bytes)) = (i64::try_from(by[0]), i64::try_from(by[1])) else {
                continue;
            };
            let is_same = alike
                && a.partition == b.partition.saturating_add(partitions)
                && a.byte == b.byte.saturating_add(bytes);
            if in_place && is_same {
                continue;
            }
            let apart = |a: &StrideSet, b: &StrideSet, by: i64| {
                let ends = |set: &StrideSet| set.start().zip(set.end());
                match (ends(a), ends(b)) {
                    (Some(a), Some(b)) => {
                        a.1 <= b.0.saturating_add(by) || b.1.saturating_add(by) <= a.0
                    }
                    _ => true,
                }
            };
            if apart(&a.print.partitions, &b.print.partitions, partitions)
                || apart(&a.print.bytes, &b.print.bytes, bytes)
            {
                continue;
            }
            self.homes.spent += COMPARISON;
            let moved = b.print.placed(partitions, bytes);
            if a.print.common(&moved).is_some_and(|shared| shared > 0) {
                return Some((at, is_same));
            }
        }
        None
    }
}
