//! Lifetimes against programs that run: no location's bytes are replaced while somebody still reads them.

use super::*;

/// Half of a location, or all of it: `start..end` of its two bytes.
type Half = (usize, usize);

/// A program over locations of two bytes in one slot.
#[derive(Debug)]
enum Item {
    Overwrite(usize),
    Fill(usize, Half),
    Read(usize, Half),
    /// Adds to the location, but in the first iteration of the loop so many levels up.
    Accumulate(usize, usize),
    Loop(bool, Vec<Item>),
}

fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |bound| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % bound
    }
}

fn random(next: &mut impl FnMut(u64) -> u64, depth: usize) -> Vec<Item> {
    (0..1 + next(5))
        .map(|_| {
            if depth < 3 && next(4) == 0 {
                return Item::Loop(next(2) == 0, random(next, depth + 1));
            }
            let slot = next(2) as usize;
            let half = [(0, 1), (1, 2), (0, 2)][next(3) as usize];
            match next(12) {
                0..3 => Item::Overwrite(slot),
                3..6 if half != (0, 2) => Item::Fill(slot, half),
                6 if depth > 0 => Item::Accumulate(slot, next(depth as u64) as usize),
                _ => Item::Read(slot, half),
            }
        })
        .collect()
}

fn live(items: &[Item], of: &mut Lifetimes, depth: usize) {
    for item in items {
        let (slot, effect, half) = match *item {
            Item::Overwrite(slot) => (slot, Effect::Overwrite, (0, 2)),
            Item::Fill(slot, half) => (slot, Effect::Fill, half),
            Item::Read(slot, half) => (slot, Effect::Read, half),
            Item::Accumulate(slot, up) => {
                let counted = Op((depth - 1 - up) as u32);
                (slot, Effect::Accumulate(counted), (0, 2))
            }
            Item::Loop(certain, ref body) => {
                of.enter(Op(depth as u32), certain);
                live(body, of, depth + 1);
                of.leave();
                continue;
            }
        };
        of.step();
        of.touch(slot, effect, || {
            let len = (half.1 - half.0) as i64;
            Some(Footprint::block(1, len).placed(0, half.0 as i64))
        });
    }
}

/// What is in the bytes of the slot: who wrote them last, and who has ever.
#[derive(Default)]
struct Bytes {
    last: [Option<usize>; 2],
    written: [[bool; 2]; 2],
}

impl Bytes {
    fn write(&mut self, slot: usize, (from, to): Half) {
        for byte in from..to {
            self.last[byte] = Some(slot);
            self.written[slot][byte] = true;
        }
    }

    /// Whether another location's bytes replaced what is read.
    fn is_replaced(&self, slot: usize, (from, to): Half) -> bool {
        (from..to).any(|byte| self.written[slot][byte] && self.last[byte] != Some(slot))
    }
}

/// Whether somebody reads what another location's bytes replaced.
fn run(
    items: &[Item],
    next: &mut impl FnMut(u64) -> u64,
    bytes: &mut Bytes,
    iterations: &mut Vec<u64>,
) -> bool {
    for item in items {
        match *item {
            Item::Overwrite(slot) => bytes.write(slot, (0, 2)),
            Item::Fill(slot, half) => bytes.write(slot, half),
            Item::Read(slot, half) => {
                if bytes.is_replaced(slot, half) {
                    return true;
                }
            }
            Item::Accumulate(slot, up) => {
                let is_first = iterations[iterations.len() - 1 - up] == 0;
                if !is_first && bytes.is_replaced(slot, (0, 2)) {
                    return true;
                }
                bytes.write(slot, (0, 2));
            }
            Item::Loop(certain, ref body) => {
                for iteration in 0..u64::from(certain) + next(3) {
                    iterations.push(iteration);
                    let replaced = run(body, next, bytes, iterations);
                    iterations.pop();
                    if replaced {
                        return true;
                    }
                }
            }
        }
    }
    false
}

fn lifetimes(items: &[Item]) -> Lifetimes {
    let mut lifetimes = Lifetimes::new();
    for _ in 0..2 {
        let place = Place {
            space: Space::Sbuf,
            partitions: (0, 1),
            bytes: (0, 2),
        };
        lifetimes.declare(place, false);
    }
    live(items, &mut lifetimes, 0);
    lifetimes
}

fn are_apart(items: &[Item]) -> bool {
    lifetimes(items).overlaps().is_empty()
}

#[test]
fn locations_that_do_not_overlap_never_replace_each_other() {
    let mut next = numbers(5);
    let (mut apart, mut with_gaps, mut looped) = (0, 0, 0);
    for _ in 0..60_000 {
        let items = random(&mut next, 0);
        let lifetimes = lifetimes(&items);
        if !lifetimes.overlaps().is_empty() {
            continue;
        }
        let placed = &lifetimes.placed;
        if placed.iter().all(|placed| placed.live.is_some()) {
            apart += 1;
            with_gaps += usize::from(placed.iter().any(|placed| !placed.before.is_empty()));
            looped += usize::from(items.iter().any(|item| matches!(item, Item::Loop(..))));
        }
        for _ in 0..8 {
            let replaced = run(&items, &mut next, &mut Bytes::default(), &mut Vec::new());
            let lives: Vec<_> = placed.iter().map(|one| (&one.before, one.live)).collect();
            assert!(!replaced, "{items:?} {lives:?}");
        }
    }
    assert!(
        apart > 3000 && with_gaps > 300 && looped > 1000,
        "{apart} {with_gaps} {looped}"
    );
}

use Item::{Accumulate, Fill, Loop, Overwrite, Read};

const LOW: Half = (0, 1);
const HIGH: Half = (1, 2);
const ALL: Half = (0, 2);

#[test]
fn a_loop_carries_no_bytes_it_fills_before_it_reads_them() {
    let in_loop = |body| [Loop(true, body)];
    let other = || [Overwrite(1), Read(1, ALL)];
    let with = |mut body: Vec<Item>| {
        body.extend(other());
        in_loop(body)
    };
    assert!(are_apart(&with(vec![Fill(0, LOW), Read(0, LOW)])));
    assert!(are_apart(&with(vec![
        Fill(0, LOW),
        Fill(0, HIGH),
        Read(0, ALL)
    ])));
    assert!(!are_apart(&with(vec![Fill(0, LOW), Read(0, ALL)])));
    assert!(!are_apart(&with(vec![Read(0, LOW), Fill(0, LOW)])));
    // Filled for certain by a loop inside, or not.
    let inner = |certain| vec![Loop(certain, vec![Fill(0, LOW)]), Read(0, LOW)];
    assert!(are_apart(&with(inner(true))));
    assert!(!are_apart(&with(inner(false))));
}

#[test]
fn what_a_loop_does_not_fill_is_carried_where_it_is_read_behind() {
    let body = || vec![Overwrite(1), Read(1, ALL), Fill(0, LOW)];
    assert!(are_apart(&[Loop(true, body())]));
    assert!(are_apart(&[Loop(true, body()), Overwrite(0), Read(0, ALL)]));
    assert!(!are_apart(&[Loop(true, body()), Read(0, ALL)]));
}

#[test]
fn a_loop_that_has_ended_carried_what_an_inner_one_may_not_have_overwritten() {
    let body = |certain| {
        let inner = Loop(certain, vec![Overwrite(0)]);
        [
            Loop(true, vec![Overwrite(1), Read(1, ALL), inner]),
            Read(0, HIGH),
        ]
    };
    assert!(are_apart(&body(true)));
    assert!(!are_apart(&body(false)));
}

#[test]
fn sums_are_carried_by_the_loop_they_count_and_no_other() {
    let sum = |up| vec![Accumulate(0, up), Read(0, ALL)];
    let other = || vec![Overwrite(1), Read(1, ALL)];
    let chain = |mut a: Vec<Item>, b: Vec<Item>| {
        a.extend(b);
        a
    };
    // In the loop it counts, and around it.
    assert!(!are_apart(&[Loop(true, chain(sum(0), other()))]));
    assert!(are_apart(&[Loop(
        true,
        chain(vec![Loop(true, sum(0))], other())
    )]));
    // It counts the outer one.
    assert!(!are_apart(&[Loop(
        true,
        chain(vec![Loop(true, sum(1))], other())
    )]));
    // What the first iteration adds to, others add to as well.
    let body = vec![
        Overwrite(0),
        Read(0, ALL),
        Overwrite(1),
        Read(1, ALL),
        Accumulate(0, 0),
    ];
    assert!(!are_apart(&[Loop(true, body)]));
}
