//! The webs of locations that conflict.

use bir_dialect::analysis::index::{Frames, FunctionIndex, Touches, Web};
use bir_dialect::ir::{Ir, Op, Operand, Value};

use super::conflicts::{Wholes, conflicts};
use crate::outside::Outside;

/// A location that becomes several.
pub(super) struct Split {
    pub(super) alloc: Op,
    pub(super) value: Value,
    /// Its number in the walk.
    pub(super) location: u32,
    /// Clones to make.
    pub(super) clones: u32,
    /// Operands to move, and to which clone.
    pub(super) moved: Vec<(Operand, u32)>,
}

/// The locations of a function to be split, in order.
pub(super) fn splits(ir: &Ir, touches: &Touches, outside: &Outside) -> Vec<Split> {
    let Some(conflicts) = conflicts(ir, touches, outside) else {
        return Vec::new();
    };
    let in_loops = loops(touches);
    let index = touches.index(ir, Frames::Locations, |location| {
        conflicts[location as usize]
    });
    let mut splits = Vec::new();
    for (at, location) in (0u32..).zip(index.locations()) {
        if !conflicts[at as usize] {
            continue;
        }
        let mut webs = index.webs(at);
        if location.place.is_some() {
            join_living(ir, &index, &mut webs, in_loops[at as usize]);
        }
        let moved: Vec<(Operand, u32)> = webs
            .iter()
            .filter(|web| web.web > 0)
            .map(|web| (index.touches()[web.touch as usize].operand, web.web - 1))
            .collect();
        if let Some(last) = moved.iter().map(|moved| moved.1).max() {
            splits.push(Split {
                alloc: location.op,
                value: location.value,
                location: at,
                clones: last + 1,
                moved,
            });
        }
    }
    splits
}

/// Per location, whether it is accessed in a loop.
fn loops(touches: &Touches) -> Vec<bool> {
    let mut found = vec![false; touches.locations().len()];
    for touch in touches.all() {
        found[touch.location as usize] |= touches.is_in_loop(touch);
    }
    found
}

/// Joins webs of one slot that live at the same time: each lives from its first access to its last,
/// and in a loop throughout unless every iteration begins with overwriting all of it.
fn join_living(ir: &Ir, index: &FunctionIndex, webs: &mut [Web], in_loop: bool) {
    let touch = |web: &Web| &index.touches()[web.touch as usize];
    let count = webs.iter().map(|web| web.web as usize + 1).max();
    let mut spans = vec![(u32::MAX, 0); count.unwrap_or(0)];
    let mut wholes = Wholes::default();
    for web in webs.iter() {
        let touch = touch(web);
        let span = &mut spans[web.web as usize];
        let is_first = span.0 == u32::MAX;
        if is_first && in_loop && !(touch.defines() && wholes.is_whole(ir, touch.operand)) {
            *span = (0, u32::MAX);
        } else if is_first {
            *span = (touch.order, touch.order);
        } else {
            span.1 = span.1.max(touch.order);
        }
    }
    // In the order in which they begin; what lives through a loop begins with it.
    let mut by_start: Vec<usize> = (0..spans.len()).collect();
    by_start.sort_by_key(|&web| spans[web].0);
    let mut group_of = vec![0u32; spans.len()];
    let mut open: Option<(u32, u32)> = None;
    for web in by_start {
        let (first, last) = spans[web];
        let (group, end) = match open {
            Some((group, end)) if first <= end => (group, end.max(last)),
            Some((group, _)) => (group + 1, last),
            None => (0, last),
        };
        group_of[web] = group;
        open = Some((group, end));
    }
    for web in webs {
        web.web = group_of[web.web as usize];
    }
}
