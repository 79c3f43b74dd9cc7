//! When locations live, and which of those that share bytes live together.
//!
//! The verifier asks it of all placed locations, the exit from SSA of what one is to be split into:
//! what it makes is right by the rules it is judged by.
//!
//! Positions count what instructions read and what they write, in program order: an instruction reads
//! before it writes, so its result may stand where its source did. A location lives from its first to
//! its last access, with gaps where the whole of it is overwritten: nobody needs what was there since
//! it was accessed last. A loop that may run no iteration overwrites for certain only what is
//! overwritten again before it is read. What blocks that branch access, several of them, has no gaps.
//!
//! A loop carries a location, which then lives through all of it, where something in the body may
//! see bytes from before the loop or from the iteration before: all reads do but those of bytes that
//! the body has filled in the same iteration. What a loop fills in part and does not carry, it carries
//! all the same where something behind it may see bytes that not every iteration fills.

mod active;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;
use smallvec::SmallVec;

use self::active::Active;
use super::access::{Footprint, StrideSet, Wholes, footprint};
use super::index;
use crate::bir::access::Access;
use crate::bir::attrs::Accumulate;
use crate::bir::loops::loop_of;
use crate::bir::program::names;
use crate::bir::space::Space;
use crate::bir::types::MemType;
use crate::bir::verify::cover::{Cover, Rect, Runs};
use crate::bir::view::OpView;
use crate::ir::{Ir, Op, OperandData};

type Fixed = foldhash::fast::FixedState;

/// Where a location stands: `start..end` each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The space.
    pub space: Space,
    /// Its partitions; `0..1` in device memory.
    pub partitions: (u64, u64),
    /// Its bytes in each of them.
    pub bytes: (u64, u64),
}

/// What an instruction does to a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Reads some bytes, which are asked for.
    Read,
    /// Writes, and may use or keep what was there.
    Update,
    /// Writes some bytes, which are asked for, for certain.
    Fill,
    /// Writes all of it, for certain.
    Overwrite,
    /// Writes all of it, for certain; in all but the first iteration of a loop, which it is in, it adds
    /// to what is there.
    Accumulate(Op),
}

struct Placed {
    place: Place,
    /// Whether it shares its bytes with others on purpose.
    alias: bool,
    /// Whether blocks that branch access it: nobody knows which accesses come before which.
    scattered: bool,
    /// The last stretch in which it lives, and those before it, ascending.
    live: Option<(u32, u32)>,
    before: Vec<(u32, u32)>,
    /// What only loops that may run no iteration overwrote, inner ones last.
    doubts: Vec<Doubt>,
    /// The start of the first loop that has ended and filled some of it without carrying it.
    late: Option<u32>,
    /// How many loops around fill some of it, and carry it not yet.
    parts: u32,
}

/// A loop that may not run, and begins with overwriting a location.
#[derive(Clone, Copy)]
struct Doubt {
    /// The stretch it ended, as a number in [`Placed::before`].
    stretch: Option<usize>,
    /// How many loops are around it, and where it starts.
    depth: usize,
    start: u32,
    /// The outermost loop around it that accessed the location nowhere before, and where that starts.
    fresh: usize,
    from: u32,
}

/// What an iteration of a loop knows of a location it touches.
enum Known {
    /// All of it was overwritten first: nothing is carried.
    All,
    /// These bytes were filled before they were read, and others not read.
    Some(Box<Cover>),
    /// The loop carries it.
    Carried,
}

struct Frame {
    of: Op,
    start: u32,
    /// Whether the body runs for certain.
    certain: bool,
    /// Locations touched in the loop.
    touched: HashMap<usize, Known, Fixed>,
}

/// Live intervals of locations.
#[derive(Default)]
pub struct Lifetimes {
    placed: Vec<Placed>,
    frames: Vec<Frame>,
    now: u32,
}

impl Lifetimes {
    /// Of no location.
    pub fn new() -> Lifetimes {
        Lifetimes::default()
    }

    /// One more location; locations are counted from 0. `alias` says that it shares its bytes with
    /// others on purpose.
    pub fn declare(&mut self, place: Place, alias: bool) -> usize {
        self.placed.push(Placed {
            place,
            alias,
            scattered: false,
            live: None,
            before: Vec::new(),
            doubts: Vec::new(),
            late: None,
            parts: 0,
        });
        self.placed.len() - 1
    }

    /// Accesses of a location are in several blocks that branch: it lives without gaps.
    pub fn scatter(&mut self, slot: usize) {
        self.placed[slot].scattered = true;
    }

    /// Its bytes are there when the function begins.
    pub fn given(&mut self, slot: usize) {
        self.extend(slot, 0);
    }

    /// Here somebody outside may look at what is there, if anything is.
    pub fn shown(&mut self, slot: usize) {
        if self.placed[slot].live.is_some() {
            self.touch(slot, Effect::Read, || None);
        }
    }

    /// Where a location stands.
    pub fn place(&self, slot: usize) -> &Place {
        &self.placed[slot].place
    }

    /// On to the next instruction.
    pub fn step(&mut self) {
        self.now = (self.now | 1) + 1;
    }

    /// Into a loop, whose body runs for certain or not. Loops that begin one in the other begin at
    /// positions of their own: where they begin tells them apart.
    pub fn enter(&mut self, of: Op, certain: bool) {
        self.step();
        self.frames.push(Frame {
            of,
            start: self.now,
            certain,
            touched: HashMap::default(),
        });
    }

    /// Out of the loop entered last.
    pub fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        for (slot, known) in frame.touched {
            match known {
                Known::All => {}
                Known::Some(cover) => {
                    let placed = &mut self.placed[slot];
                    placed.parts -= 1;
                    let late = &mut placed.late;
                    *late = Some(late.map_or(frame.start, |start| start.min(frame.start)));
                    // What every iteration fills, a loop that runs has filled.
                    if frame.certain
                        && let Some(around) = self.frames.last_mut()
                        && let Some(Known::Some(filled)) = around.touched.get_mut(&slot)
                    {
                        filled.add_all(&cover);
                    }
                }
                Known::Carried => self.carry(slot, frame.start, self.now | 1),
            }
        }
    }

    /// Lets a location live through a loop.
    fn carry(&mut self, slot: usize, start: u32, end: u32) {
        let placed = &mut self.placed[slot];
        while placed.before.pop_if(|stretch| stretch.0 >= start).is_some() {}
        let left = placed.before.len();
        let is_in =
            |doubt: &mut Doubt| doubt.start >= start || doubt.stretch.is_some_and(|at| at >= left);
        while placed.doubts.pop_if(is_in).is_some() {}
        self.extend(slot, start);
        self.extend(slot, end);
    }

    fn extend(&mut self, slot: usize, at: u32) {
        let live = &mut self.placed[slot].live;
        *live = Some(live.map_or((at, at), |(from, to)| (from.min(at), to.max(at))));
    }

    /// An access by the instruction; `bytes` are those of the location it touches, where known: at
    /// most those it fills, at least those it reads. They are asked for in few cases only.
    pub fn touch(&mut self, slot: usize, effect: Effect, bytes: impl Fn() -> Option<Footprint>) {
        let effect = match effect {
            Effect::Accumulate(of) => {
                let at = self.frames.iter().position(|frame| frame.of == of);
                let is_first = |around: &[Frame]| {
                    !around[0].touched.contains_key(&slot)
                        && around.iter().all(|frame| frame.certain)
                };
                match at.is_some_and(|at| is_first(&self.frames[at..])) {
                    true => effect,
                    // What the first iteration replaces came from this one, or may never be replaced.
                    false => Effect::Update,
                }
            }
            effect => effect,
        };
        match effect {
            Effect::Overwrite | Effect::Accumulate(_) => self.overwrite(slot),
            Effect::Read | Effect::Update | Effect::Fill => self.settle(slot, true),
        }
        self.extend(slot, self.now | u32::from(effect != Effect::Read));
        let is_needed = self.note(slot, effect, &bytes);
        if is_needed && let Some(start) = self.placed[slot].late.take() {
            self.carry(slot, start, self.now);
        }
    }

    /// Tells the loops around of an access; whether it needs bytes that none of them has filled.
    fn note(
        &mut self,
        slot: usize,
        effect: Effect,
        bytes: &impl Fn() -> Option<Footprint>,
    ) -> bool {
        let placed = &mut self.placed[slot];
        let is_needed = matches!(effect, Effect::Read | Effect::Update);
        // Loops inside the one an accumulation counts, and that one, see what it adds to.
        let mut adds = matches!(effect, Effect::Accumulate(_));
        let mut asked = None;
        let mut is_innermost = true;
        for frame in self.frames.iter_mut().rev() {
            let is_fresh = !frame.touched.contains_key(&slot);
            let known = frame.touched.entry(slot).or_insert_with(|| match effect {
                Effect::Fill => {
                    placed.parts += 1;
                    Known::Some(Box::new(placed.cover()))
                }
                Effect::Overwrite | Effect::Accumulate(_) if !adds => Known::All,
                _ => Known::Carried,
            });
            adds &= effect != Effect::Accumulate(frame.of);
            match known {
                Known::All if !is_fresh => return false,
                Known::Some(cover) => {
                    let rect = asked.get_or_insert_with(|| bytes().as_ref().and_then(rect));
                    match effect {
                        Effect::Fill if is_innermost => {
                            rect.iter().for_each(|rect| cover.add(rect))
                        }
                        Effect::Overwrite if is_innermost => {
                            placed.parts -= 1;
                            *known = Known::All;
                        }
                        Effect::Read
                            if rect.as_ref().is_some_and(|rect| cover.gap(rect).is_none()) =>
                        {
                            return false;
                        }
                        Effect::Read | Effect::Update => {
                            placed.parts -= 1;
                            *known = Known::Carried;
                        }
                        Effect::Fill | Effect::Overwrite | Effect::Accumulate(_) => {}
                    }
                }
                Known::All | Known::Carried => {}
            }
            // All loops around know the location too.
            if !is_fresh && (placed.parts == 0 || !is_needed) {
                break;
            }
            is_innermost = false;
        }
        is_needed
    }

    /// Ends the stretch of a location that is overwritten, unless a loop since it came to life
    /// accessed it before: then the loop carries it.
    fn overwrite(&mut self, slot: usize) {
        let placed = &self.placed[slot];
        if placed.scattered {
            return;
        }
        let untouched = |frame: &&Frame| !frame.touched.contains_key(&slot);
        let fresh = self.frames.len() - self.frames.iter().rev().take_while(untouched).count();
        let came = placed.live.map_or(0, |(from, _)| from);
        let since = self.frames.partition_point(|frame| frame.start <= came);
        let ends = placed.live.is_some() && fresh <= since;
        let uncertain = (fresh..self.frames.len()).filter(|&at| !self.frames[at].certain);
        let doubts: SmallVec<[Doubt; 2]> = uncertain
            .map(|depth| Doubt {
                stretch: ends.then_some(placed.before.len()),
                depth,
                start: self.frames[depth].start,
                fresh,
                from: self.frames[fresh].start,
            })
            .collect();
        let is_certain = doubts.is_empty();
        if is_certain {
            self.settle(slot, false);
        }
        let placed = &mut self.placed[slot];
        placed.doubts.extend(doubts);
        if is_certain {
            placed.late = None;
        }
        if ends {
            placed.before.extend(placed.live.take());
        }
    }

    /// Settles the doubts of a location about loops that have ended: what was there before them is
    /// still needed, or is not.
    fn settle(&mut self, slot: usize, needed: bool) {
        let placed = &mut self.placed[slot];
        let frames = &self.frames;
        let ended = |doubt: &mut Doubt| {
            let frame = frames.get(doubt.depth);
            frame.is_none_or(|frame| frame.start != doubt.start)
        };
        let mut carry = usize::MAX;
        let mut before = u32::MAX;
        let mut carried = u32::MAX;
        while let Some(doubt) = placed.doubts.pop_if(ended) {
            if !needed {
                continue;
            }
            if let Some(at) = doubt.stretch
                && let Some(&(from, _)) = placed.before.get(at)
            {
                placed.before.truncate(at);
                placed.live = placed.live.map(|(_, to)| (from, to));
            }
            (carry, before) = (carry.min(doubt.fresh), before.min(doubt.start));
            let is_open = |frame: &Frame| frame.start == doubt.from;
            if !frames.get(doubt.fresh).is_some_and(is_open) {
                carried = carried.min(doubt.from);
            }
        }
        // What is needed may come from the iteration before.
        for frame in self.frames.iter_mut().skip(carry) {
            if frame.start <= before
                && let Some(Known::Some(_)) = frame.touched.insert(slot, Known::Carried)
            {
                placed.parts -= 1;
            }
        }
        // Loops that have ended carried it from where they start.
        if carried != u32::MAX {
            while placed
                .before
                .pop_if(|stretch| stretch.0 >= carried)
                .is_some()
            {}
            self.extend(slot, carried);
        }
    }

    /// Locations with one each that they meet, in the order in which the later one comes to life: a
    /// slot of thousands would have millions of pairs.
    pub fn overlaps(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut order: Vec<(u32, u32, usize)> = self
            .placed
            .iter()
            .enumerate()
            .filter(|(_, placed)| !placed.alias)
            .flat_map(|(slot, placed)| {
                let stretches = placed.before.iter().chain(&placed.live);
                stretches.map(move |&(from, to)| (from, to, slot))
            })
            .collect();
        let mut reported = vec![false; self.placed.len()];
        order.sort_unstable();
        let mut active = Active::default();
        let mut ends: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for (from, to, slot) in order {
            while let Some(&Reverse((end, other))) = ends.peek()
                && end < from
            {
                ends.pop();
                active.remove(self.place(other), other);
            }
            let here = self.place(slot);
            if !reported[slot]
                && let Some(other) = active.meeting(here, |slot| self.place(slot))
            {
                reported[slot] = true;
                found.push((slot, other));
            }
            active.insert(here, slot);
            ends.push(Reverse((to, slot)));
        }
        found
    }
}

/// What an access is to the life of its location; `kind` and `dynamic` say it of its bytes, as
/// [`Touch`](index::Touch) does.
pub fn effect(
    ir: &Ir,
    op: Op,
    operand: &OperandData,
    kind: index::Effect,
    dynamic: bool,
    wholes: &mut Wholes,
) -> Effect {
    let mut is_whole = || !dynamic && wholes.is_whole(ir, operand);
    match kind {
        index::Effect::WRITE if is_whole() => Effect::Overwrite,
        index::Effect::WRITE if !dynamic => Effect::Fill,
        index::Effect::ACCUMULATE if is_whole() => {
            let attr = ir.ctx.dict_get(ir.dict(op), names::ACCUMULATE);
            let Some(Accumulate::UnlessFirst(index)) = Accumulate::get(&ir.ctx, attr) else {
                return Effect::Update;
            };
            let index = OpView::new(ir, op).indices().nth(usize::from(index));
            let counted = index.and_then(|index| loop_of(ir, index));
            counted.map_or(Effect::Update, Effect::Accumulate)
        }
        kind if kind.is_write() => Effect::Update,
        _ => Effect::Read,
    }
}

/// The bytes of an access, for [`Lifetimes::touch`]: where neither data nor a loop moves it.
pub fn bytes(ir: &Ir, operand: &OperandData, dynamic: bool) -> Option<Footprint> {
    let mem = MemType::get(&ir.ctx, ir.value_type(operand.value))?;
    let access = Access::resolve(&ir.ctx, &mem, operand.annot);
    match access.terms.is_empty() && !dynamic {
        true => footprint(&access).filter(Footprint::is_exact),
        false => None,
    }
}

impl Placed {
    /// None of its bytes.
    fn cover(&self) -> Cover {
        let len = |(from, to): (u64, u64)| i64::try_from(to - from).unwrap_or(i64::MAX);
        Cover::new(len(self.place.partitions), len(self.place.bytes))
    }
}

/// Runs of bytes up to which what is filled is followed.
const RUNS: usize = 64;

fn rect(bytes: &Footprint) -> Option<Rect> {
    let runs = |set: &StrideSet| set.run_list(RUNS).map(Runs::from_vec);
    Some(Rect {
        rows: runs(&bytes.partitions)?,
        cols: runs(&bytes.bytes)?,
    })
}

#[cfg(test)]
mod tests;
