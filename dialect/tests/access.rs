//! The access algebra against brute force on random accesses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use std::collections::{BTreeSet, HashMap};

use bir_dialect::analysis::access::{
    Footprint, LoopRange, StrideSet, Traversal, extremes, footprint, footprint_first,
    footprint_over, transfer_runs, window_fault,
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

    fn range(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

fn fuzz(times: u64) -> u64 {
    let scale = std::env::var("BIR_FUZZ").ok().and_then(|s| s.parse().ok());
    times * scale.unwrap_or(1)
}

/// Start, run length, and dimensions whose members fit a few hundred integers.
type Raw = (i64, i64, Vec<(i64, u64)>);

fn random_raw(rng: &mut Rng) -> Raw {
    const FRIENDLY: &[i64] = &[0, 1, 2, 4, 8, 16, 32, 64, -1, -4, -16, -64];
    let len = rng.of(&[1, 1, 2, 4, 4, 3]);
    let mut dims = Vec::new();
    let odd = rng.below(3) == 0;
    let mut left = 240i64;
    for _ in 0..rng.below(5) {
        let stride = if odd {
            rng.range(-40, 40)
        } else {
            rng.of(FRIENDLY)
        };
        let most = if stride == 0 { 4 } else { left / stride.abs() };
        let count = 1 + rng.below(most.clamp(1, 9) as u64);
        left -= stride.abs() * (count as i64 - 1);
        dims.push((stride, count));
    }
    (rng.range(-30, 120), len, dims)
}

const WORDS: usize = 14;
const ORIGIN: i64 = 320;

/// A bitmap of the members from -ORIGIN on.
fn brute((start, len, dims): &Raw) -> [u64; WORDS] {
    let mut starts = vec![*start];
    for &(stride, count) in dims {
        starts = starts
            .iter()
            .flat_map(|s| (0..count as i64).map(move |i| s + stride * i))
            .collect();
    }
    let mut bits = [0u64; WORDS];
    for s in starts {
        for x in s..s + len {
            let at = (x + ORIGIN) as usize;
            bits[at / 64] |= 1 << (at % 64);
        }
    }
    bits
}

fn members(set: &StrideSet) -> [u64; WORDS] {
    let mut bits = [0u64; WORDS];
    for piece in set.pieces() {
        for (s, len) in piece.each_run() {
            for x in s..s + len {
                let at = (x + ORIGIN) as usize;
                assert_eq!(bits[at / 64] >> (at % 64) & 1, 0, "twice {x} in {set:?}");
                bits[at / 64] |= 1 << (at % 64);
            }
        }
    }
    bits
}

fn zip(a: &[u64; WORDS], b: &[u64; WORDS], f: impl Fn(u64, u64) -> u64) -> i64 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| i64::from(f(a, b).count_ones()))
        .sum()
}

#[test]
fn sets_agree_with_brute_force_on_random_pairs() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let mut pool: Vec<(Raw, StrideSet, [u64; WORDS])> = Vec::new();
    for _ in 0..fuzz(3000) {
        let raw = random_raw(&mut rng);
        let set = StrideSet::strided(raw.0, raw.1, raw.2.iter().copied()).unwrap();
        let bits = brute(&raw);
        assert!(set.is_exact(), "{raw:?}");
        assert_eq!(members(&set), bits, "{raw:?} {set:?}");
        assert_eq!(set.size(), zip(&bits, &bits, |a, _| a));
        pool.push((raw, set, bits));
    }
    for round in 0..fuzz(1_000_000) {
        let (ra, a, ba) = &pool[rng.below(pool.len() as u64) as usize];
        let (rb, b, bb) = &pool[rng.below(pool.len() as u64) as usize];
        let common = zip(ba, bb, |a, b| a & b);
        let missed = zip(ba, bb, |a, b| b & !a);
        assert_eq!(a.overlaps(b), common > 0, "{ra:?} {rb:?}");
        assert_eq!(a.common(b), Some(common), "{ra:?} {rb:?}");
        assert_eq!(a.covers(b), missed == 0, "{ra:?} {rb:?}");
        assert_eq!(a.same_as(b), ba == bb, "{ra:?} {rb:?}");
        if round % 8 == 0 {
            let both = a.intersection(b);
            assert!(both.is_exact());
            let mut want = *ba;
            want.iter_mut().zip(bb).for_each(|(a, b)| *a &= b);
            assert_eq!(members(&both), want, "{ra:?} {rb:?} {both:?}");
        }
    }
}

#[test]
fn covering_and_equal_pairs_are_seen_as_such() {
    let mut rng = Rng(77);
    for _ in 0..fuzz(100_000) {
        let (start, len, mut dims) = random_raw(&mut rng);
        let a = StrideSet::strided(start, len, dims.iter().copied()).unwrap();
        // The same set walked the other way round, in another order.
        let mut from = start;
        for dim in &mut dims {
            if rng.below(2) == 0 {
                from += dim.0 * (dim.1 as i64 - 1);
                dim.0 = -dim.0;
            }
        }
        if !dims.is_empty() {
            let at = rng.below(dims.len() as u64) as usize;
            dims.rotate_left(at);
        }
        let b = StrideSet::strided(from, len, dims.iter().copied()).unwrap();
        assert!(
            a.same_as(&b) && a.covers(&b) && a.overlaps(&b),
            "{a:?} {b:?}"
        );
        // And a part of it.
        let part: Vec<_> = dims.iter().map(|&(s, c)| (s, 1 + rng.below(c))).collect();
        let part = StrideSet::strided(from, len, part).unwrap();
        assert!(a.covers(&part), "{a:?} {part:?}");
        assert_eq!(part.covers(&a), part.size() == a.size());
    }
}

#[test]
fn large_counts_cost_nothing() {
    let giga = 1i64 << 30;
    let even = StrideSet::strided(0, 4, [(8, giga as u64)]).unwrap();
    let odd = StrideSet::strided(4, 4, [(8, giga as u64)]).unwrap();
    assert!(!even.overlaps(&odd));
    assert!(!even.covers(&odd));
    assert_eq!(even.common(&even.shifted(1)), Some(3 * giga));
    let columns = StrideSet::strided(64, 64, [(4096, 1 << 20), (128, 16)]).unwrap();
    let rows = StrideSet::strided(0, 1 << 20, [(1 << 21, 1 << 11)]).unwrap();
    assert_eq!(columns.common(&rows), Some(columns.size() / 2));
    // Strides without a common divisor.
    let a = StrideSet::strided(0, 4, [(1 << 20, 1 << 14), (68, 900)]).unwrap();
    let b = StrideSet::strided(7, 3, [(999_983, 1 << 14)]).unwrap();
    assert!(a.common(&b).is_some());
}

fn access(window: Option<(i64, u64)>, dtype: DType, offset: i64, pairs: &[(i64, u64)]) -> Access {
    Access {
        dtype,
        recast: false,
        window: window.map(|(start, count)| Window { start, count }),
        offset,
        pairs: pairs
            .iter()
            .map(|&(step, count)| Pair { step, count })
            .collect(),
        terms: Default::default(),
    }
}

fn random_access(rng: &mut Rng, partitioned: bool) -> Access {
    let dtype = rng.of(&[DType::F32, DType::Bf16, DType::U8, DType::I32]);
    let window = partitioned.then(|| {
        let start = rng.below(8);
        (start as i64, 1 + rng.below(8 - start))
    });
    let pairs: Vec<(i64, u64)> = (0..1 + rng.below(3))
        .map(|_| (rng.range(-8, 8), 1 + rng.below(4)))
        .collect();
    access(window, dtype, rng.range(0, 40), &pairs)
}

/// Partition and byte of every element, in order, with the indices at these values.
fn elements(access: &Access, indices: &[i64]) -> Vec<(i64, i64)> {
    let size = i64::from(access.dtype.size_bytes());
    let (mut shift_p, mut shift) = (0, 0);
    for term in &access.terms {
        let by = term.coef * indices[usize::from(term.index)];
        match term.target {
            Target::Partition => shift_p += by,
            Target::Offset => shift += by,
        }
    }
    let window = access.window.unwrap_or(Window { start: 0, count: 1 });
    let mut list: Vec<(i64, i64)> = (0..window.count as i64)
        .map(|p| (window.start + shift_p + p, (access.offset + shift) * size))
        .collect();
    for pair in &access.pairs {
        list = list
            .iter()
            .flat_map(|&(p, b)| (0..pair.count as i64).map(move |i| (p, b + pair.step * size * i)))
            .collect();
    }
    list
}

fn bytes(access: &Access, indices: &[i64]) -> BTreeSet<(i64, i64)> {
    let size = i64::from(access.dtype.size_bytes());
    let list = elements(access, indices);
    list.iter()
        .flat_map(|&(p, b)| (b..b + size).map(move |b| (p, b)))
        .collect()
}

fn members_of(print: &Footprint) -> BTreeSet<(i64, i64)> {
    let list = |set: &StrideSet| -> Vec<i64> {
        let runs = set.run_list(1 << 20).unwrap();
        runs.into_iter().flat_map(|(a, b)| a..b).collect()
    };
    let bytes = list(&print.bytes);
    list(&print.partitions)
        .into_iter()
        .flat_map(|p| bytes.iter().map(move |&b| (p, b)))
        .collect()
}

#[test]
fn footprints_are_the_bytes_touched() {
    let mut rng = Rng(5);
    for _ in 0..fuzz(20_000) {
        let on_chip = rng.below(3) != 0;
        let a = random_access(&mut rng, on_chip);
        let b = random_access(&mut rng, on_chip);
        let (fa, fb) = (footprint(&a).unwrap(), footprint(&b).unwrap());
        let (ba, bb) = (bytes(&a, &[]), bytes(&b, &[]));
        assert_eq!(members_of(&fa), ba, "{a:?}");
        assert_eq!(fa.size(), ba.len() as i64);
        assert_eq!(fa.overlaps(&fb), !ba.is_disjoint(&bb), "{a:?} {b:?}");
        assert_eq!(fa.covers(&fb), bb.is_subset(&ba), "{a:?} {b:?}");
        assert_eq!(fa.same_as(&fb), ba == bb, "{a:?} {b:?}");
        let both: BTreeSet<_> = ba.intersection(&bb).copied().collect();
        assert_eq!(members_of(&fa.intersection(&fb)), both, "{a:?} {b:?}");
    }
}

#[test]
fn loops_widen_footprints_and_move_extremes() {
    let mut rng = Rng(6);
    let mut exact = 0;
    for _ in 0..fuzz(20_000) {
        let on_chip = rng.below(2) == 0;
        let mut a = random_access(&mut rng, on_chip);
        let ranges: Vec<LoopRange> = (0..2)
            .map(|_| LoopRange {
                first: rng.range(-2, 2),
                step: rng.range(1, 3),
                trips: Some(1 + rng.below(4)),
            })
            .collect();
        for _ in 0..rng.below(3) {
            let target = match on_chip && rng.below(2) == 0 {
                true => Target::Partition,
                false => Target::Offset,
            };
            a.add_term(target, rng.below(2) as u8, rng.range(-5, 5));
        }
        let mut all = BTreeSet::new();
        let values = |r: &LoopRange| -> Vec<i64> {
            (0..r.trips.unwrap() as i64)
                .map(|t| r.first + t * r.step)
                .collect()
        };
        let (mut low, mut high) = (i128::MAX, i128::MIN);
        let size = i128::from(a.dtype.size_bytes());
        for x in values(&ranges[0]) {
            for y in values(&ranges[1]) {
                all.extend(bytes(&a, &[x, y]));
                for (_, b) in elements(&a, &[x, y]) {
                    low = low.min(i128::from(b) / size);
                    high = high.max(i128::from(b) / size);
                }
            }
        }
        let first = footprint_first(&a, &ranges).unwrap();
        let at_first = [ranges[0].first, ranges[1].first];
        assert_eq!(members_of(&first), bytes(&a, &at_first));
        let over = footprint_over(&a, &Footprint::block(8, 512), &ranges).unwrap();
        let got = members_of(&over);
        assert!(got.is_superset(&all), "{a:?} {ranges:?}");
        if over.is_exact() {
            exact += 1;
            assert_eq!(got, all, "{a:?} {ranges:?}");
        }
        let found = extremes(&a, &ranges).unwrap();
        assert_eq!(found.elements, (low, high), "{a:?} {ranges:?}");
        if let Some(partitions) = found.partitions {
            let p = all.iter().map(|x| i128::from(x.0));
            assert_eq!(partitions, (p.clone().min().unwrap(), p.max().unwrap()));
        }
    }
    assert!(exact > 10_000);
}

#[test]
fn equal_traversals_are_equal() {
    let mut rng = Rng(8);
    let pool: Vec<Access> = (0..400)
        .map(|_| {
            let pairs: Vec<(i64, u64)> = (0..1 + rng.below(3))
                .map(|_| (rng.of(&[0, 1, 2, 4, 6, -1]), 1 + rng.below(3)))
                .collect();
            let window = (0, 1 + rng.below(2));
            access(Some(window), DType::Bf16, rng.range(0, 3), &pairs)
        })
        .collect();
    for a in &pool {
        for b in &pool {
            let same = Traversal::of(a) == Traversal::of(b);
            assert_eq!(same, elements(a, &[]) == elements(b, &[]), "{a:?} {b:?}");
        }
    }
}

/// Nested strides with gaps, in any order.
fn nested_steps(rng: &mut Rng, counts: &[u64]) -> Vec<(i64, u64)> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    if rng.below(3) == 0 {
        order.reverse();
    }
    let mut reach = 1i64;
    let mut strides = vec![0; counts.len()];
    for &at in order.iter().rev() {
        let gap = if rng.below(3) == 0 {
            rng.range(1, 3)
        } else {
            0
        };
        strides[at] = reach + gap;
        reach = strides[at] * counts[at] as i64;
    }
    strides.into_iter().zip(counts.iter().copied()).collect()
}

/// One side of a copy of `partitions` x `counts` elements, some dimensions backwards.
fn copy_side(rng: &mut Rng, dtype: DType, partitions: u64, counts: &[u64], chip: bool) -> Access {
    let mut list = counts.to_vec();
    if !chip {
        list.insert(0, partitions);
    }
    let mut pairs = nested_steps(rng, &list);
    let mut offset = rng.range(0, 5);
    for pair in &mut pairs {
        if rng.below(6) == 0 {
            offset += pair.0 * (pair.1 as i64 - 1);
            pair.0 = -pair.0;
        }
    }
    let window = chip.then(|| (rng.range(0, 4), partitions));
    access(window, dtype, offset, &pairs)
}

#[test]
fn translation_reads_the_same_bytes_of_the_copy_source() {
    let mut rng = Rng(11);
    let mut hits = 0;
    for _ in 0..fuzz(400_000) {
        let dtype = rng.of(&[DType::F32, DType::Bf16]);
        let counts: Vec<u64> = (0..1 + rng.below(3)).map(|_| 1 + rng.below(4)).collect();
        let partitions = 1 + rng.below(3);
        let (dst_chip, src_chip) = (rng.below(4) != 0, rng.below(2) == 0);
        let dst = copy_side(&mut rng, dtype, partitions, &counts, dst_chip);
        let src = copy_side(&mut rng, dtype, partitions, &counts, src_chip);
        // A read of the destination: often a part of its own traversal.
        let mut read = dst.clone();
        if rng.below(4) == 0 {
            read.dtype = rng.of(&[DType::F32, DType::Bf16, DType::U8]);
        }
        let recast = read.dtype != dtype;
        let scale = f64::from(dtype.size_bytes()) / f64::from(read.dtype.size_bytes());
        if let Some(window) = &mut read.window {
            window.start += rng.below(window.count) as i64;
            window.count = 1 + rng.below(2);
        }
        let moved = if rng.below(2) == 0 {
            0
        } else {
            rng.range(-3, 3)
        };
        read.offset = (read.offset as f64 * scale) as i64 + moved;
        for pair in &mut read.pairs {
            if recast {
                pair.step = (pair.step as f64 * scale) as i64;
            }
            pair.count = 1 + rng.below(pair.count);
            if rng.below(5) == 0 {
                pair.step = rng.of(&[1, 2, 0, -1]);
            }
        }
        if scale > 1.0 {
            let count = scale as u64;
            read.pairs.push(Pair { step: 1, count });
        }
        if rng.below(6) == 0 {
            let count = 1 + rng.below(counts.iter().product::<u64>());
            read.pairs = [Pair { step: 1, count }].into_iter().collect();
        }
        let of = |a: &Access| Traversal::of(a).unwrap();
        let Some(found) = of(&read).translate(&of(&dst), &of(&src), &[]) else {
            continue;
        };
        // The copy, byte by byte.
        let size = i64::from(dtype.size_bytes());
        let map: HashMap<(i64, i64), (i64, i64)> = elements(&dst, &[])
            .into_iter()
            .zip(elements(&src, &[]))
            .flat_map(|(d, s)| (0..size).map(move |i| ((d.0, d.1 + i), (s.0, s.1 + i))))
            .collect();
        let read_size = i64::from(read.dtype.size_bytes());
        let want: Vec<_> = elements(&read, &[])
            .into_iter()
            .flat_map(|(p, b)| (0..read_size).map(move |i| (p, b + i)))
            .map(|at| map.get(&at).copied())
            .collect();
        let mut got = vec![(found.partition, found.byte)];
        for s in &found.steps {
            let ahead = |i: i64, p: i64, b: i64| (p + i * s.partitions, b + i * s.bytes);
            got = got
                .iter()
                .flat_map(|&(p, b)| (0..s.count).map(move |i| ahead(i, p, b)))
                .collect();
        }
        let got: Vec<_> = got
            .into_iter()
            .flat_map(|(p, b)| (0..read_size).map(move |i| Some((p, b + i))))
            .collect();
        assert_eq!(got, want, "{read:?} {dst:?} {src:?} {found:?}");
        hits += 1;
        if let Some(back) = found.to_access(read.dtype, dtype) {
            assert_eq!(of(&back), found);
        }
    }
    assert!(hits > 40_000, "{hits}");
}

#[test]
fn usual_copies_translate() {
    let of = |a: &Access| Traversal::of(a).unwrap();
    let chip = |p: (i64, u64), off, pairs: &[(i64, u64)]| access(Some(p), DType::F32, off, pairs);
    // Rows 128.. of a [512, 512] tensor loaded into a tile; a sub-block of the tile.
    let dst = chip((0, 128), 0, &[(1, 512)]);
    let src = access(None, DType::F32, 128 * 512, &[(512, 128), (1, 512)]);
    let read = chip((32, 32), 16, &[(1, 64)]);
    let found = of(&read).translate(&of(&dst), &of(&src), &[]).unwrap();
    let back = found.to_access(DType::F32, DType::F32).unwrap();
    let want = access(None, DType::F32, 160 * 512 + 16, &[(512, 32), (1, 64)]);
    assert_eq!(back, want);
    // A contiguous read through a copy whose source is in four pieces.
    let src = chip((0, 128), 0, &[(1024, 4), (1, 128)]);
    let found = of(&dst).translate(&of(&dst), &of(&src), &[]).unwrap();
    assert_eq!(found, of(&src));
    // The same index moves the read and the result.
    let src = chip((0, 128), 512, &[(1, 512)]);
    let mut read = chip((0, 128), 0, &[(1, 64)]);
    read.add_term(Target::Offset, 0, 64);
    let eight = LoopRange {
        first: 0,
        step: 1,
        trips: Some(8),
    };
    let found = of(&read).translate(&of(&dst), &of(&src), &[eight]).unwrap();
    let back = found.to_access(DType::F32, DType::F32).unwrap();
    let mut want = chip((0, 128), 512, &[(1, 64)]);
    want.add_term(Target::Offset, 0, 64);
    assert_eq!(back, want);
    // Its ninth trip leaves the copy.
    let nine = LoopRange {
        trips: Some(9),
        ..eight
    };
    assert_eq!(of(&read).translate(&of(&dst), &of(&src), &[nine]), None);
}

#[test]
fn descriptor_runs_count_contiguous_pieces() {
    let of = |a: &Access| Traversal::of(a).unwrap();
    let tile = access(Some((0, 128)), DType::F32, 0, &[(1, 512)]);
    let dram = access(None, DType::F32, 0, &[(512, 128), (1, 512)]);
    assert_eq!(of(&tile).runs(), (128, 2048));
    assert_eq!(of(&dram).runs(), (1, 128 * 2048));
    assert_eq!(transfer_runs(&of(&tile), &of(&dram)), Some(128));
    let wide = access(None, DType::F32, 0, &[(1024, 128), (512, 2), (1, 256)]);
    assert_eq!(of(&wide).runs(), (256, 1024));
    assert_eq!(transfer_runs(&of(&tile), &of(&wide)), Some(256));
    let strided = access(None, DType::Bf16, 0, &[(2, 128 * 512)]);
    assert_eq!(transfer_runs(&of(&tile), &of(&strided)), Some(128 * 512));
}

#[test]
fn partition_windows_of_compute_operands() {
    for start in 0..128i64 {
        for count in 1..=128u64 {
            let aligned = match count {
                1..=32 => start % 32 == 0,
                33..=64 => start % 64 == 0,
                _ => start == 0,
            };
            let legal = aligned && start + count as i64 <= 128;
            assert_eq!(
                window_fault(start, count).is_none(),
                legal,
                "{start}:{count}"
            );
        }
    }
    let cases = [
        (48, 8, false),
        (32, 32, true),
        (32, 48, false),
        (64, 64, true),
        (96, 32, true),
        (98, 2, false),
    ];
    for (start, count, legal) in cases {
        assert_eq!(window_fault(start, count).is_none(), legal);
    }
    assert_eq!(
        window_fault(32, 48).unwrap().to_string(),
        "48 partitions start at 0, 64, found 32"
    );
}

#[test]
fn magnitudes_past_the_limit_are_refused_not_wrapped() {
    let huge = access(None, DType::F32, i64::MAX, &[(1, 1)]);
    assert_eq!(footprint(&huge), None);
    assert_eq!(Traversal::of(&huge), None);
    let huge = access(None, DType::F32, 0, &[(i64::MAX, u64::MAX)]);
    assert_eq!(footprint(&huge), None);
    let nothing = access(None, DType::F32, 0, &[(1, 0)]);
    assert!(extremes(&nothing, &[]).is_none());
    assert!(footprint(&nothing).unwrap().is_empty());
}
