//! The memory index against brute force on random access sequences.

use bir_dialect::analysis::access::{
    Footprint, LoopRange, StrideSet, footprint, footprint_first, footprint_over,
};
use bir_dialect::analysis::index::{
    Arena, Effect, Event, Extent, Flow, Gap, Initial, LoopId, LoopKind, Reads, Storage, Writes,
};
use bir_dialect::bir::access::{Access, Pair, Target, Window};
use bir_dialect::bir::num::DType;

/// A small deterministic generator.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

fn fuzz(times: u64) -> u64 {
    let scale = std::env::var("BIR_FUZZ").ok().and_then(|s| s.parse().ok());
    times * scale.unwrap_or(1)
}

const PARTITIONS: i64 = 8;
const BYTES: i64 = 64;
const EFFECTS: &[Effect] = &[
    Effect::READ,
    Effect::READ,
    Effect::WRITE,
    Effect::WRITE,
    Effect::MAY_WRITE,
    Effect::READ_WRITE,
    Effect::UPDATE,
    Effect::ACCUMULATE,
];

/// An access within 8 partitions x 64 bytes, of any dtype: whole, windows, strides, rows, columns.
fn random_access(rng: &mut Rng) -> Access {
    let dtype = rng.of(&[DType::F32, DType::Bf16, DType::U8, DType::I32]);
    let units = BYTES / i64::from(dtype.size_bytes());
    let window = if rng.below(3) == 0 {
        (0, PARTITIONS as u64)
    } else {
        let start = rng.below(PARTITIONS as u64);
        (start as i64, 1 + rng.below(PARTITIONS as u64 - start))
    };
    let mut pairs = Vec::new();
    let mut offset = 0;
    match rng.below(6) {
        0 => pairs.push((1, units as u64)),
        1 => {
            offset = rng.below(units as u64) as i64;
            pairs.push((1, 1 + rng.below((units - offset) as u64)));
        }
        2 => {
            let step = 1 << rng.below(4);
            offset = rng.below(step as u64) as i64;
            pairs.push((step, (units / step) as u64));
        }
        3 => {
            offset = units - 1;
            pairs.push((-2, 1 + rng.below(units as u64 / 2)));
        }
        _ => {
            let mut left = units - 1;
            for _ in 0..1 + rng.below(3) {
                let step = rng.of(&[0, 1, 2, 3, 4, 8, 5, 16]);
                let most = if step == 0 { 3 } else { left / step };
                let count = 1 + rng.below(most.clamp(1, 8) as u64 + 1).min(most as u64);
                left -= step * (count as i64 - 1);
                pairs.push((step, count));
            }
            offset = rng.below(left as u64 + 1) as i64;
        }
    }
    Access {
        dtype,
        recast: false,
        window: Some(Window {
            start: window.0,
            count: window.1,
        }),
        offset,
        pairs: pairs
            .iter()
            .map(|&(step, count)| Pair { step, count })
            .collect(),
        terms: Default::default(),
    }
}

type Bits = [u64; 8];

/// A bit per byte: a word per partition.
fn bits_of(print: &Footprint) -> Bits {
    let list = |set: &StrideSet| set.run_list(1 << 16).unwrap();
    let mut row = 0u64;
    for (lo, hi) in list(&print.bytes) {
        (lo.max(0)..hi.min(BYTES)).for_each(|b| row |= 1 << b);
    }
    let mut bits = [0; 8];
    for (lo, hi) in list(&print.partitions) {
        (lo.max(0)..hi.min(PARTITIONS)).for_each(|p| bits[p as usize] = row);
    }
    bits
}

fn bits_of_gaps(gaps: &[Gap]) -> Bits {
    let mut bits = [0; 8];
    for gap in gaps {
        for p in gap.partitions.0..gap.partitions.1 {
            for b in gap.bytes.0..gap.bytes.1 {
                let word: &mut u64 = &mut bits[p as usize];
                assert_eq!(*word >> b & 1, 0, "a byte twice in {gaps:?}");
                *word |= 1 << b;
            }
        }
    }
    bits
}

fn members(bits: &Bits) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().flat_map(|(row, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(row * 64 + bit)
        })
    })
}

/// What reaches one byte: a bit per event.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Cell {
    events: u64,
    outside: bool,
    undefined: bool,
}

fn cells(initial: Initial) -> Vec<Cell> {
    let cell = Cell {
        outside: initial == Initial::Outside,
        undefined: initial == Initial::Undefined,
        ..Cell::default()
    };
    vec![cell; 512]
}

fn apply(cells: &mut [Cell], bits: &Bits, event: u32, writes: Writes) {
    for byte in members(bits) {
        if writes == Writes::Must {
            cells[byte] = Cell::default();
        }
        cells[byte].events |= 1 << event;
    }
}

fn list(events: u64) -> Vec<u32> {
    (0..64).filter(|at| events >> at & 1 != 0).collect()
}

fn seen(cells: &[Cell], bits: &Bits) -> Cell {
    let mut all = Cell::default();
    for byte in members(bits) {
        all.events |= cells[byte].events;
        all.outside |= cells[byte].outside;
        all.undefined |= cells[byte].undefined;
    }
    all
}

/// Bytes only the initial state may define.
fn undefined(cells: &[Cell], bits: &Bits) -> Bits {
    let mut found = [0; 8];
    for byte in members(bits) {
        if cells[byte].undefined && cells[byte].events == 0 {
            found[byte / 64] |= 1 << (byte % 64);
        }
    }
    found
}

struct Case {
    storage: Storage,
    bits: Vec<Bits>,
}

fn random_case(rng: &mut Rng, events: u64) -> Case {
    let prints: Vec<Footprint> = (0..1 + rng.below(8))
        .map(|_| footprint(&random_access(rng)).unwrap())
        .collect();
    let count = prints.len() as u64;
    let events = (0..events)
        .map(|id| Event::plain(id as u32, rng.of(EFFECTS), rng.below(count) as u32))
        .collect();
    Case {
        bits: prints.iter().map(bits_of).collect(),
        storage: Storage {
            initial: rng.of(&[Initial::Undefined, Initial::Undefined, Initial::Outside]),
            to_end: true,
            ..Storage::fixed(Footprint::block(PARTITIONS, BYTES), prints, events)
        },
    }
}

#[test]
fn straight_lines_agree_with_brute_force() {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let flow = Flow::straight();
    for round in 0..fuzz(60_000) {
        let length = 1 + rng.below(12);
        let case = random_case(&mut rng, length);
        let mut state = cells(case.storage.initial);
        let events = case.storage.events.clone();
        let arena = Arena::build([case.storage], &flow);
        let index = arena.storage(0);
        assert_eq!(index.hull_count(), 0);
        let mut missing = index.uncovered().iter();
        let mut uses = vec![Vec::new(); events.len()];
        let mut changed: Vec<Bits> = Vec::new();
        for (at, event) in (0u32..).zip(&events) {
            let bits = &case.bits[event.extent as usize];
            if event.effect.reads != Reads::No {
                let want = seen(&state, bits);
                let got = index.reaching(at);
                let want_events = list(want.events);
                assert_eq!(got.events, want_events, "round {round}");
                assert_eq!(got.origin.outside, want.outside, "round {round}");
                assert_eq!(got.origin.undefined, want.undefined, "round {round}");
                if let Some(sole) = index.sole_definition(at) {
                    assert_eq!(want_events, [sole]);
                }
                want_events.iter().for_each(|&w| uses[w as usize].push(at));
                let gap = undefined(&state, bits);
                if event.effect.reads == Reads::Checked && gap != [0; 8] {
                    let found = missing.next().unwrap();
                    assert_eq!(found.event, at, "round {round}");
                    let (gaps, all) = index.uncovered_gaps(found, 1 << 12);
                    assert!(all);
                    assert_eq!(bits_of_gaps(&gaps), gap, "round {round} {gaps:?}");
                }
            }
            for from in 0..at {
                let hit = |other: &Bits| bits.iter().zip(other).any(|(a, b)| a & b != 0);
                let want = changed[from as usize + 1..].iter().any(hit);
                let got = index.clobbered_between(
                    from,
                    at,
                    index.extent(&index.events()[at as usize]).first,
                );
                assert_eq!(got, want, "round {round} {from} {at}");
            }
            let writes = event.effect.writes != Writes::No;
            changed.push(if writes { *bits } else { [0; 8] });
            if writes {
                apply(&mut state, bits, at, event.effect.writes);
            }
        }
        assert!(missing.next().is_none(), "round {round}");
        let all = [u64::MAX; 8];
        let (gaps, _) = index.unwritten_gaps(1 << 12);
        assert_eq!(
            bits_of_gaps(&gaps),
            undefined(&state, &all),
            "round {round}"
        );
        let back = index.uses();
        for (at, want) in (0u32..).zip(uses) {
            assert_eq!(back.of(at), want, "round {round}");
        }
    }
}

/// Blocks with forward branches only, and with branches back.
#[test]
fn blocks_agree_with_a_fixed_point_over_bytes() {
    let mut rng = Rng(0xfeed);
    for round in 0..fuzz(25_000) {
        let blocks = 2 + rng.below(5) as u32;
        let looped = rng.below(2) == 0;
        let mut flow = Flow::default();
        // One span at most: a branch from its last block to its first, entered there only.
        let header = 1 + rng.below(u64::from(blocks) - 1) as u32;
        let latch = header + rng.below(u64::from(blocks - header)) as u32;
        let mut span: Option<LoopId> = None;
        let mut preds: Vec<Vec<u32>> = Vec::new();
        for block in 0..blocks {
            if looped && block == header {
                span = Some(flow.open(None, LoopKind::Cycle));
            }
            let inside = |b: u32| looped && (header..=latch).contains(&b);
            let mut list: Vec<u32> = (0..block)
                .filter(|&b| !inside(block) || block == header || inside(b))
                .filter(|_| rng.below(2) == 0)
                .collect();
            let nearest = block.saturating_sub(1);
            if list.is_empty() && block > 0 {
                list.push(if inside(block) && block != header {
                    nearest.max(header)
                } else {
                    nearest
                });
            }
            let within = inside(block).then_some(span).flatten();
            flow.segment(&list, within, block == 0, false);
            preds.push(list);
            if looped && block == latch {
                flow.close(span.unwrap());
            }
        }
        flow.exit(blocks - 1);
        let length = 1 + rng.below(10);
        let mut case = random_case(&mut rng, length);
        let mut segments: Vec<u32> = (0..length)
            .map(|_| rng.below(u64::from(blocks)) as u32)
            .collect();
        segments.sort_unstable();
        for (event, segment) in case.storage.events.iter_mut().zip(segments) {
            event.segment = segment;
        }
        let events = case.storage.events.clone();
        let initial = cells(case.storage.initial);
        let arena = Arena::build([case.storage], &flow);
        let index = arena.storage(0);
        // May-reach and must-define, iterated until nothing changes.
        let nothing = vec![Cell::default(); 512];
        let mut out: Vec<Vec<Cell>> = vec![nothing.clone(); blocks as usize];
        let mut defined_out: Vec<Bits> = vec![[u64::MAX; 8]; blocks as usize];
        let mut into = out.clone();
        let mut defined_in = defined_out.clone();
        loop {
            let mut changed = false;
            for block in 0..blocks as usize {
                let mut all = preds[block].clone();
                if looped && block as u32 == header {
                    all.push(latch);
                }
                let (mut state, mut defined) = if block == 0 {
                    let none = if initial[0].outside { u64::MAX } else { 0 };
                    (initial.clone(), [none; 8])
                } else {
                    (nothing.clone(), [u64::MAX; 8])
                };
                for &pred in &all {
                    for (cell, other) in state.iter_mut().zip(&out[pred as usize]) {
                        cell.events |= other.events;
                        cell.outside |= other.outside;
                        cell.undefined |= other.undefined;
                    }
                    let other = defined_out[pred as usize];
                    defined.iter_mut().zip(other).for_each(|(a, b)| *a &= b);
                }
                (into[block], defined_in[block]) = (state.clone(), defined);
                for (at, event) in (0u32..).zip(&events) {
                    if event.segment as usize == block && event.effect.writes != Writes::No {
                        let bits = &case.bits[event.extent as usize];
                        apply(&mut state, bits, at, event.effect.writes);
                        defined.iter_mut().zip(bits).for_each(|(a, b)| *a |= b);
                    }
                }
                changed |= out[block] != state || defined_out[block] != defined;
                (out[block], defined_out[block]) = (state, defined);
            }
            if !changed {
                break;
            }
        }
        let mut missing = index.uncovered().iter();
        for block in 0..blocks as usize {
            let (mut state, mut defined) = (into[block].clone(), defined_in[block]);
            for (at, event) in (0u32..).zip(&events) {
                if event.segment as usize != block {
                    continue;
                }
                let bits = &case.bits[event.extent as usize];
                if event.effect.reads != Reads::No {
                    let want = list(seen(&state, bits).events);
                    let got = index.reaching(at);
                    if looped {
                        assert!(want.iter().all(|w| got.events.contains(w)), "round {round}");
                    } else {
                        assert_eq!(got.events, want, "round {round}");
                    }
                    let mut gap = *bits;
                    gap.iter_mut().zip(defined).for_each(|(a, b)| *a &= !b);
                    if event.effect.reads == Reads::Checked && gap != [0; 8] {
                        let found = missing.next().unwrap();
                        assert_eq!(found.event, at, "round {round}");
                        let (gaps, _) = index.uncovered_gaps(found, 1 << 12);
                        assert_eq!(bits_of_gaps(&gaps), gap, "round {round}");
                    }
                }
                if event.effect.writes != Writes::No {
                    apply(&mut state, bits, at, event.effect.writes);
                    defined.iter_mut().zip(bits).for_each(|(a, b)| *a |= b);
                }
            }
        }
        assert!(missing.next().is_none(), "round {round}");
        let (gaps, _) = index.unwritten_gaps(1 << 12);
        let end = defined_out[blocks as usize - 1].map(|word| !word);
        assert_eq!(bits_of_gaps(&gaps), end, "round {round}");
    }
}

/// A structured program: events and loops, for the concrete run.
enum Item {
    Event(u32),
    Loop(usize, Vec<Item>),
}

struct Looped {
    flow: Flow,
    storage: Storage,
    accesses: Vec<Access>,
    ranges: Vec<LoopRange>,
    items: Vec<Item>,
}

fn random_loops(rng: &mut Rng) -> Looped {
    let whole = Footprint::block(PARTITIONS, BYTES);
    let mut made = Looped {
        flow: Flow::default(),
        storage: Storage {
            to_end: true,
            ..Storage::fixed(whole, Vec::new(), Vec::new())
        },
        accesses: Vec::new(),
        ranges: Vec::new(),
        items: Vec::new(),
    };
    let mut segment = made.flow.segment(&[], None, true, false);
    let mut open: Vec<(LoopId, usize, Vec<Item>)> = Vec::new();
    let mut list: Vec<Item> = Vec::new();
    for _ in 0..3 + rng.below(12) {
        match rng.below(5) {
            0 if open.len() < 3 => {
                let parent = open.last().map(|o| o.0);
                let id = made.flow.open(parent, LoopKind::Counted { certain: true });
                segment = made.flow.segment(&[segment], Some(id), true, true);
                made.ranges.push(LoopRange {
                    first: rng.below(2) as i64,
                    step: 1 + rng.below(2) as i64,
                    trips: Some(1 + rng.below(3)),
                });
                open.push((id, made.ranges.len() - 1, std::mem::take(&mut list)));
            }
            1 if !open.is_empty() => close(&mut made, &mut open, &mut list, &mut segment),
            _ => {
                let mut access = random_access(rng);
                let mut varies = None;
                for (k, o) in open.iter().enumerate() {
                    if rng.below(3) == 0 {
                        let partition = rng.below(4) == 0;
                        let target = if partition {
                            Target::Partition
                        } else {
                            Target::Offset
                        };
                        access.add_term(target, k as u8, rng.of(&[1, 2, 4, -1]));
                        varies = varies.or(Some(o.0));
                    }
                }
                let ranges: Vec<LoopRange> = open.iter().map(|o| made.ranges[o.1]).collect();
                let first = footprint_first(&access, &ranges).unwrap();
                let all = footprint_over(&access, &made.storage.whole, &ranges).unwrap();
                let at = made.storage.footprints.len() as u32;
                made.storage.footprints.extend([first, all]);
                let from = made.storage.partial.len() as u32;
                for (k, o) in open.iter().enumerate() {
                    let moved = access.terms.iter().any(|t| usize::from(t.index) == k);
                    if moved && varies != Some(o.0) {
                        let mut some = ranges.clone();
                        some[..k].iter_mut().for_each(|r| r.trips = Some(1));
                        let print = footprint_over(&access, &made.storage.whole, &some).unwrap();
                        let number = made.storage.footprints.len() as u32;
                        made.storage.partial.push((o.0, number));
                        made.storage.footprints.push(print);
                    }
                }
                let partial = (from, made.storage.partial.len() as u32);
                let id = made.storage.events.len() as u32;
                made.storage
                    .extents
                    .push(Extent::moving(at, at + 1, varies, partial));
                made.storage.events.push(Event {
                    id,
                    segment,
                    extent: id,
                    effect: rng.of(EFFECTS),
                });
                made.accesses.push(access);
                list.push(Item::Event(id));
            }
        }
    }
    while !open.is_empty() {
        close(&mut made, &mut open, &mut list, &mut segment);
    }
    made.flow.exit(segment);
    made.items = list;
    made
}

fn close(
    made: &mut Looped,
    open: &mut Vec<(LoopId, usize, Vec<Item>)>,
    list: &mut Vec<Item>,
    segment: &mut u32,
) {
    let (id, range, outer) = open.pop().unwrap();
    made.flow.close(id);
    let body = std::mem::replace(list, outer);
    list.push(Item::Loop(range, body));
    let around = open.last().map(|o| o.0);
    *segment = made.flow.segment(&[*segment], around, true, true);
}

struct Run {
    state: Vec<Cell>,
    /// Per event, what all its executions saw, and the undefined bytes of the first.
    seen: Vec<Cell>,
    gaps: Vec<Option<Bits>>,
}

fn run(made: &Looped, items: &[Item], values: &mut Vec<i64>, result: &mut Run) {
    for item in items {
        match item {
            Item::Loop(range, body) => {
                let range = made.ranges[*range];
                for trip in 0..range.trips.unwrap() as i64 {
                    values.push(range.first + trip * range.step);
                    run(made, body, values, result);
                    values.pop();
                }
            }
            Item::Event(id) => {
                let event = made.storage.events[*id as usize];
                let here: Vec<LoopRange> = values
                    .iter()
                    .map(|&first| LoopRange {
                        first,
                        step: 1,
                        trips: Some(1),
                    })
                    .collect();
                let print = footprint_first(&made.accesses[*id as usize], &here).unwrap();
                let bits = bits_of(&print);
                let cell = seen(&result.state, &bits);
                let all = &mut result.seen[*id as usize];
                all.events |= cell.events;
                let gap = undefined(&result.state, &bits);
                result.gaps[*id as usize].get_or_insert(gap);
                if event.effect.writes != Writes::No {
                    apply(&mut result.state, &bits, *id, event.effect.writes);
                }
            }
        }
    }
}

#[test]
fn loops_contain_what_a_concrete_run_sees() {
    let mut rng = Rng(0xabcd);
    let (mut found, mut wanted) = (0, 0);
    for round in 0..fuzz(25_000) {
        let made = random_loops(&mut rng);
        let arena = Arena::build([made.storage.clone()], &made.flow);
        let index = arena.storage(0);
        let events = &made.storage.events;
        let mut result = Run {
            state: cells(Initial::Undefined),
            seen: vec![Cell::default(); events.len()],
            gaps: vec![None; events.len()],
        };
        run(&made, &made.items, &mut Vec::new(), &mut result);
        // An index that moves window and offset together leaves a superset of the bytes.
        let exact = made.storage.footprints.iter().all(Footprint::is_exact);
        let mut missing = index.uncovered().iter().peekable();
        for (at, event) in (0u32..).zip(events) {
            if event.effect.reads == Reads::No {
                continue;
            }
            let got = index.reaching(at);
            let want = list(result.seen[at as usize].events);
            for w in &want {
                assert!(got.events.contains(w), "round {round}: {w} at {at}");
            }
            found += got.events.len();
            wanted += want.len();
            if event.effect.reads != Reads::Checked {
                continue;
            }
            let gap = result.gaps[at as usize].unwrap();
            let reported = match missing.next_if(|m| m.event == at) {
                Some(m) => bits_of_gaps(&index.uncovered_gaps(m, 1 << 12).0),
                None => [0; 8],
            };
            if exact {
                assert_eq!(reported, gap, "round {round} at {at}");
            } else {
                assert!(reported.iter().zip(gap).all(|(a, b)| a & !b == 0));
            }
        }
        let (gaps, _) = index.unwritten_gaps(1 << 12);
        let end = undefined(&result.state, &[u64::MAX; 8]);
        if exact {
            assert_eq!(bits_of_gaps(&gaps), end, "round {round}");
        }
    }
    // How much of what is answered is real: a change that loses precision shows.
    assert!(found * 10 < wanted * 14, "{found} {wanted}");
}

fn slices(writers: u32, readers: u32, wide: bool) -> Storage {
    let mut footprints: Vec<Footprint> = (0..i64::from(writers))
        .map(|i| Footprint {
            partitions: StrideSet::run(0, 128),
            bytes: StrideSet::run(i * 8, 8),
        })
        .collect();
    let whole = Footprint::block(128, i64::from(writers) * 8);
    footprints.push(whole.clone());
    let mut events: Vec<Event> = (0..writers)
        .map(|i| Event::plain(i, Effect::WRITE, i))
        .collect();
    events.extend((0..readers).map(|i| {
        let print = if wide { writers } else { i % writers };
        Event::plain(writers + i, Effect::READ, print)
    }));
    Storage::fixed(whole, footprints, events)
}

#[test]
fn thousands_of_writers_and_readers_of_one_location() {
    let flow = Flow::straight();
    for wide in [false, true] {
        let start = std::time::Instant::now();
        let arena = Arena::build([slices(21_504, 72_074, wide)], &flow);
        let index = arena.storage(0);
        let (took, bytes) = (start.elapsed(), arena.heap_bytes());
        println!("wide {wide}: {took:?}, {bytes} bytes");
        assert!(bytes < 30 << 20, "{bytes}");
        assert!(index.uncovered().is_empty());
        let some = index.reaching(21_504 + 5);
        if wide {
            assert_eq!(some.events.len(), 21_504);
        } else {
            assert_eq!(index.sole_definition(21_504 + 5), Some(5));
        }
        let uses = index.uses();
        assert_eq!(uses.of(7).len(), if wide { 72_074 } else { 4 });
    }
}

#[test]
fn deep_loops_and_long_chains_need_no_recursion() {
    // 10,000 nested loops, one write and one read in each.
    let mut flow = Flow::default();
    let mut segment = flow.segment(&[], None, true, false);
    let mut storage = slices(4, 0, false);
    storage.events.clear();
    let mut parents = Vec::new();
    for depth in 0..10_000u32 {
        let id = flow.open(parents.last().copied(), LoopKind::Counted { certain: true });
        parents.push(id);
        segment = flow.segment(&[segment], Some(id), true, true);
        for effect in [Effect::WRITE, Effect::READ] {
            let id = storage.events.len() as u32;
            let event = Event::plain(id, effect, depth % 4);
            storage.events.push(Event { segment, ..event });
        }
    }
    while let Some(id) = parents.pop() {
        flow.close(id);
        segment = flow.segment(&[segment], parents.last().copied(), true, true);
    }
    flow.exit(segment);
    let arena = Arena::build([storage], &flow);
    let index = arena.storage(0);
    assert!(index.uncovered().is_empty());
    assert!(index.reaching(19_999).events.contains(&19_998));
    // 100,000 blocks, each behind a branch.
    let mut flow = Flow::default();
    let mut storage = slices(4, 0, false);
    storage.events.clear();
    for block in 0..100_000u32 {
        let preds: Vec<u32> = (block.saturating_sub(2)..block).collect();
        let segment = flow.segment(&preds, None, block == 0, false);
        let effect = if block % 2 == 0 {
            Effect::WRITE
        } else {
            Effect::READ
        };
        let event = Event::plain(block, effect, 4);
        storage.events.push(Event { segment, ..event });
    }
    flow.exit(99_999);
    let arena = Arena::build([storage], &flow);
    let index = arena.storage(0);
    assert!(index.uncovered().is_empty());
    assert!(index.reaching(99_999).events.contains(&99_998));
}
