//! An independent judge of an SSA exit.
//!
//! Given a file before and after, the exit is right if
//!
//! 1. instructions are the same, in the same order, with the same accesses; only loads are gone, and
//!    what they waited for and signalled may be others' business now, or an `event_semaphore`'s;
//! 2. an operand names the location it did, or a *clone* of it: a new location of equal type and
//!    attributes – placement and `user_allocated` included – named `<location>_SsaClone<N>`, which
//!    stands for that location; or it reads another location of equal type, or a clone of it, where
//!    loads are gone;
//! 3. every read sees the same definitions: the operands that may have written one of its bytes
//!    last, and whether bytes come from outside or are undefined. A load that is gone is represented
//!    by another of the same access of the same tensor, which no write to the bytes read separates
//!    from it;
//! 4. a location that was split, and each clone of it, holds one web, so that none is redefined
//!    across a live read within it. Placed locations may hold several: webs of one slot that live
//!    together stay together.
//!
//! It asks [`FunctionIndex`] for definitions, of both files anew, and knows nothing of how the pass
//! decides. Handles tell which instruction is which, so `after` must have become of `before` by
//! changing it.

use std::collections::{BTreeSet, HashMap, HashSet};

use bir_dialect::analysis::index::{Frames, FunctionIndex, Touches};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::names;
use bir_dialect::bir::verify::value_text;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Attr, Ir, Op, Operand, Str, Value};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use crate::pass::Anchor;

/// What is wrong with an SSA exit that made `after` of `before`; empty where nothing is.
pub fn check(before: &Ir, after: &Ir) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for func in Anchor::Func.ops(before) {
        Judge {
            before,
            after,
            func,
            clone_of: HashMap::new(),
            involved: HashSet::new(),
            found: &mut found,
        }
        .run();
    }
    found
}

struct Judge<'a> {
    before: &'a Ir,
    after: &'a Ir,
    func: Op,
    /// Which location of the file before a clone stands for.
    clone_of: HashMap<Value, Value>,
    /// Locations some access of which changed, of both files.
    involved: HashSet<Value>,
    found: &'a mut Vec<Diagnostic>,
}

impl Judge<'_> {
    fn fault(&mut self, op: Op, message: impl Into<String>) {
        let place = Place::Op(op, Part::Whole);
        self.found.push(Diagnostic::error(place, message));
    }

    fn run(mut self) {
        if !self.same_instructions() {
            return;
        }
        let was = Touches::new(self.before, self.func);
        let operands: Vec<(Op, Operand)> = was.all().iter().map(|t| (t.op, t.operand)).collect();
        for &(op, operand) in &operands {
            self.operand(op, operand);
        }
        if self.involved.is_empty() {
            return;
        }
        let was = self.index(self.before, was);
        let now = self.index(self.after, Touches::new(self.after, self.func));
        self.definitions(&was, &now);
        self.webs(&now);
    }

    /// The index of what changed, and of what may share bytes with it.
    fn index(&self, ir: &Ir, touches: Touches) -> FunctionIndex {
        let keep: Vec<bool> = touches
            .locations()
            .iter()
            .map(|&(alloc, value)| {
                self.involved.contains(&value) || ir.attr(alloc, "must_alias").is_some()
            })
            .collect();
        touches
            .index(ir, Frames::Locations, |at| keep[at as usize])
            .0
    }

    /// Rule 1, operands aside.
    fn same_instructions(&mut self) -> bool {
        let (before, after) = (self.before, self.after);
        let is_alloc =
            |ir: &Ir, op: Op| matches!(OpCode::of(ir, op), Some(OpCode::Alloc | OpCode::Depset));
        let faults = self.found.len();
        let mut left = Vec::new();
        for op in before
            .walk_op(self.func)
            .filter(|&op| !is_alloc(before, op))
        {
            if !after.is_erased(op) {
                left.push(op);
            } else if OpCode::of(before, op) != Some(OpCode::Load) {
                self.fault(op, "was removed, and is no load");
            }
        }
        let handed_over = |op: Op| {
            op.index() >= before.op_rows() && OpCode::of(after, op) == Some(OpCode::EventSemaphore)
        };
        let now = after.walk_op(self.func);
        let now = now.filter(|&op| !is_alloc(after, op) && !handed_over(op));
        if !now.eq(left.iter().copied()) {
            self.fault(self.func, "has its instructions in another order");
        }
        for op in left {
            let same =
                before.dict(op) == after.dict(op) || own_attrs(before, op).eq(own_attrs(after, op));
            if !same || before.name(op) != after.name(op) {
                self.fault(op, "has other attributes");
            }
            if before.operand_ids(op).len() != after.operand_ids(op).len() {
                self.fault(op, "has another number of operands");
            }
        }
        self.found.len() == faults
    }

    /// Rules 1 and 2 of an operand that touches memory.
    fn operand(&mut self, op: Op, operand: Operand) {
        let (before, after) = (self.before, self.after);
        let was = before.operand(operand);
        if after.is_erased(op) {
            self.involved.insert(was.value);
            return;
        }
        let now = after.operand(operand);
        if (was.annot, was.role) != (now.annot, now.role) {
            self.fault(op, "has another access");
        }
        if was.value == now.value {
            return;
        }
        self.involved.extend([was.value, now.value]);
        if before.value_type(was.value) != after.value_type(now.value) {
            self.fault(op, "names a location of another type");
        }
        let original = match now.value.index() < before.value_rows() {
            true => now.value,
            false => match self.original(now.value) {
                Some(original) => {
                    self.clone(op, original, now.value);
                    original
                }
                None => {
                    self.fault(op, "names a clone that is not named for its location");
                    return;
                }
            },
        };
        self.involved.insert(original);
        let reads = OpView::new(before, op).def().is_some_and(|def| {
            def.operands
                .get(usize::from(was.role))
                .is_some_and(|role| role.reads() && !role.writes())
        });
        if original != was.value && !reads {
            self.fault(op, "writes another location");
        }
    }

    /// The location a clone is named for.
    fn original(&self, clone: Value) -> Option<Value> {
        let name = self.after.ctx.text(self.after.value_name(clone)?);
        let (stem, serial) = name.rsplit_once("_SsaClone")?;
        serial.parse::<u32>().ok()?;
        let stem = self.before.ctx.find_str(stem)?;
        bir_dialect::analysis::outside::function_allocs(self.before, self.func)
            .filter_map(|alloc| self.before.result(alloc))
            .find(|&value| self.before.value_name(value) == Some(stem))
    }

    /// Rule 2 of a clone.
    fn clone(&mut self, op: Op, original: Value, clone: Value) {
        if self.clone_of.insert(clone, original).is_some() {
            return;
        }
        let (before, after) = (self.before, self.after);
        let dicts = before.def_op(original).zip(after.def_op(clone));
        if dicts.is_none_or(|(old, new)| before.dict(old) != after.dict(new)) {
            self.fault(op, "names a clone with other attributes than its location");
        }
    }

    /// Rule 3.
    fn definitions(&mut self, was: &FunctionIndex, now: &FunctionIndex) {
        let number_in = |index: &FunctionIndex| -> HashMap<Operand, u32> {
            let touches = (0u32..).zip(index.touches());
            touches.map(|(at, touch)| (touch.operand, at)).collect()
        };
        let (old_number, new_number) = (number_in(was), number_in(now));
        for (at, touch) in (0u32..).zip(was.touches()) {
            if !touch.effect.is_read() || self.after.is_erased(touch.op) {
                continue;
            }
            let Some(&new) = new_number.get(&touch.operand) else {
                self.fault(touch.op, "has an operand that touches no memory now");
                continue;
            };
            let operand_of = |index: &FunctionIndex, at: u32| {
                let touch = &index.touches()[at as usize];
                (touch.operand, touch.op)
            };
            let (old_defs, old_origin) = was.reaching(at);
            let (new_defs, new_origin) = now.reaching(new);
            let new_defs: BTreeSet<(Operand, Op)> =
                new_defs.into_iter().map(|at| operand_of(now, at)).collect();
            let mut expected: BTreeSet<(Operand, Op)> = BTreeSet::new();
            let mut is_right = old_origin == new_origin;
            for definition in old_defs {
                let (operand, op) = operand_of(was, definition);
                if !self.after.is_erased(op) {
                    expected.insert((operand, op));
                    continue;
                }
                let stand_in = new_defs
                    .iter()
                    .find(|(_, other)| self.stands_for(*other, op, was, &old_number));
                match stand_in {
                    Some(&other) => {
                        expected.insert(other);
                    }
                    None => is_right = false,
                }
            }
            if !is_right || expected != new_defs {
                let name = value_text(self.before, self.before.operand(touch.operand).value);
                self.fault(touch.op, format!("reads other definitions of {name}"));
            }
        }
    }

    /// Whether a load reads what a load that is gone would have read.
    fn stands_for(
        &self,
        load: Op,
        gone: Op,
        was: &FunctionIndex,
        number: &HashMap<Operand, u32>,
    ) -> bool {
        let (before, here, there) = (
            self.before,
            OpView::new(self.before, load),
            OpView::new(self.before, gone),
        );
        let sources = here.role("src").operand().zip(there.role("src").operand());
        let targets = here.role("dst").operand().zip(there.role("dst").operand());
        let (Some((src, gone_src)), Some((dst, gone_dst))) = (sources, targets) else {
            return false;
        };
        let read = |operand| {
            let data = before.operand(operand);
            (data.value, data.annot)
        };
        let written = |operand| {
            let data = before.operand(operand);
            (before.value_type(data.value), data.annot)
        };
        let numbers = number.get(&src).zip(number.get(&gone_src));
        here.code() == Some(OpCode::Load)
            && read(src) == read(gone_src)
            && written(dst) == written(gone_dst)
            && here.indices().eq(there.indices())
            && before.block(load) == before.block(gone)
            && before.comes_before(load, gone)
            && numbers.is_some_and(|(&from, &to)| !was.clobbered_between(from, to, to))
    }

    /// Rule 4.
    fn webs(&mut self, now: &FunctionIndex) {
        let mut settled: HashSet<Value> = self.clone_of.values().copied().collect();
        settled.extend(self.clone_of.keys());
        for (at, location) in (0u32..).zip(now.locations()) {
            if !settled.contains(&location.value) || location.place.is_some() {
                continue;
            }
            if now.webs(at).iter().any(|web| web.web > 0) {
                let name = value_text(self.after, location.value);
                self.fault(location.op, format!("{name} still holds several values"));
            }
        }
    }
}

/// The attributes of an instruction, what it waits for and signals aside.
fn own_attrs(ir: &Ir, op: Op) -> impl Iterator<Item = (Str, Attr)> + '_ {
    let entries = ir.ctx.dict_entries(ir.dict(op));
    entries.filter(|&(name, _)| name != names::WAIT && name != names::SIGNAL)
}
