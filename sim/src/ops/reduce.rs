//! `tensor_reduce` and `tensor_tensor_scan`.

use crate::alu::{Alu, Quieten, ReduceRows, quiet, reduce_rows};
use crate::fault::{Run, malformed};
use crate::lower::{Scalar, Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::simd::{Kernel, Lanes};
use crate::tile::Tile;

use super::accumulate::{per_row, place};
use super::movement::volume;

struct Reduce {
    op: Alu,
    dst: Tile,
    src: Tile,
    /// Elements combined into one.
    len: usize,
    negate: bool,
}

impl Task for Reduce {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Reduce {
            op,
            dst,
            src,
            len,
            negate,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        if op.is_bitvec() {
            return self.run_bits(m, to, from);
        }
        let lanes = m.lanes;
        let group = m.group((dst, to), &[(src, from)]);
        for (first, count) in rows::groups(src.partitions, group) {
            let Machine { mem, scratch, .. } = &mut *m;
            let [values, ..] = &mut scratch.rows;
            rows::load(
                lanes,
                mem,
                src,
                from,
                (first, count),
                values,
                &mut scratch.spare,
            );
            let results = count * dst.elements;
            crate::runs::resize(&mut scratch.out, results);
            let out = &mut scratch.out[..results];
            reduce_rows(
                lanes,
                ReduceRows {
                    op: *op,
                    rows: values,
                    len: *len,
                    stride: *len,
                    out,
                },
            );
            for value in out.iter_mut() {
                if *op == Alu::Average {
                    *value /= *len as f32;
                }
                if *negate {
                    *value = quiet(*value * -1.0);
                }
            }
            rows::store(
                lanes,
                mem,
                dst,
                to,
                (first, count),
                &scratch.out,
                &mut scratch.spare,
            );
        }
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

impl Reduce {
    fn run_bits(&self, m: &mut Machine, to: usize, from: usize) -> Run<()> {
        let Reduce {
            op, dst, src, len, ..
        } = self;
        let bits = src.dtype.bits();
        let signed = src.dtype.integer_range().is_some_and(|(low, _)| low < 0);
        let Machine { mem, scratch, .. } = &mut *m;
        let [values, results, _] = &mut scratch.ints;
        rows::load_ints(mem, src, from, (0, src.partitions), values);
        results.clear();
        for segment in values[..src.partitions * src.elements].chunks_exact(*len) {
            let combined = segment[1..]
                .iter()
                .fold(segment[0], |acc, &x| op.apply_int(acc, x, bits, signed));
            results.push(combined);
        }
        rows::store_ints(mem, dst, to, (0, dst.partitions), results);
        m.mark(dst, to);
        Ok(())
    }
}

pub(super) fn tensor_reduce(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    let op = site.alu("op")?;
    let axes = site.ints("axes");
    // Axes count the access's dimensions behind the partition from 1, and end at the last.
    let len = axes
        .iter()
        .filter_map(|&axis| src.spelt.get(usize::try_from(axis).ok()?.checked_sub(1)?))
        .map(|step| step.count)
        .product::<usize>();
    if len == 0
        || !src.elements.is_multiple_of(len)
        || dst.elements != src.elements / len
        || dst.partitions != src.partitions
    {
        return Err(malformed("`axes` and the shapes of the operands disagree"));
    }
    Ok(Box::new(Reduce {
        op,
        dst,
        src,
        len,
        negate: site.flag("negate"),
    }))
}

struct Scan {
    dst: Tile,
    lhs: Tile,
    rhs: Tile,
    initial: Scalar,
    op0: Alu,
    op1: Alu,
    reverse: [bool; 2],
}

/// Rows whose recurrences run side by side.
const SIDE_BY_SIDE: usize = 8;

/// `state = f(lhs, state, rhs)` along rows that lie one behind another; results over `lhs`.
struct Recur<'a, F> {
    lhs: &'a mut [f32],
    rhs: &'a [f32],
    len: usize,
    initial: &'a [f32],
    step: F,
}

impl<F: Fn(f32, f32, f32) -> f32> Kernel for Recur<'_, F> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Recur {
            lhs,
            rhs,
            len,
            initial,
            step,
        } = self;
        if initial.len() == SIDE_BY_SIDE {
            let mut state: [f32; SIDE_BY_SIDE] = std::array::from_fn(|row| initial[row]);
            let mut left = lhs.chunks_exact_mut(len);
            let left: [&mut [f32]; SIDE_BY_SIDE] =
                std::array::from_fn(|_| left.next().unwrap_or_default());
            let right: [&[f32]; SIDE_BY_SIDE] = std::array::from_fn(|row| &rhs[row * len..][..len]);
            for i in 0..len {
                for row in 0..SIDE_BY_SIDE {
                    state[row] = step(left[row][i], state[row], right[row][i]);
                    left[row][i] = state[row];
                }
            }
            return;
        }
        for (row, &first) in initial.iter().enumerate() {
            let mut state = first;
            for i in row * len..(row + 1) * len {
                state = step(lhs[i], state, rhs[i]);
                lhs[i] = state;
            }
        }
    }
}

fn recur(lanes: Lanes, scan: &Scan, lhs: &mut [f32], rhs: &[f32], len: usize, initial: &[f32]) {
    match (scan.op0, scan.op1, scan.reverse) {
        (Alu::Multiply, Alu::Add, _) => {
            lanes.run(Recur {
                lhs,
                rhs,
                len,
                initial,
                step: |a: f32, s: f32, b: f32| a * s + b,
            });
        }
        (op0, op1, [reverse0, reverse1]) => {
            let step = move |a: f32, s: f32, b: f32| {
                let first = if reverse0 {
                    op0.apply(s, a)
                } else {
                    op0.apply(a, s)
                };
                if reverse1 {
                    op1.apply(b, first)
                } else {
                    op1.apply(first, b)
                }
            };
            lanes.run(Recur {
                lhs,
                rhs,
                len,
                initial,
                step,
            });
        }
    }
}

impl Task for Scan {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Scan {
            dst,
            lhs,
            rhs,
            initial,
            ..
        } = self;
        let to = m.at(dst)?;
        let (left, right) = (m.source(lhs)?, m.source(rhs)?);
        let initial_at = place(m, initial)?;
        let lanes = m.lanes;
        let len = dst.elements;
        let mut states = Vec::new();
        per_row(m, initial, initial_at, (0, dst.partitions), &mut states);
        let group = m.group((dst, to), &[(lhs, left), (rhs, right)]);
        for (first, count) in rows::groups(dst.partitions, group) {
            let Machine { mem, scratch, .. } = &mut *m;
            let [a, b, ..] = &mut scratch.rows;
            rows::load(lanes, mem, lhs, left, (first, count), a, &mut scratch.spare);
            rows::load(
                lanes,
                mem,
                rhs,
                right,
                (first, count),
                b,
                &mut scratch.spare,
            );
            for (part, states) in states[first..first + count]
                .chunks(SIDE_BY_SIDE)
                .enumerate()
            {
                let from = part * SIDE_BY_SIDE * len;
                let end = from + states.len() * len;
                recur(lanes, self, &mut a[from..end], &b[from..end], len, states);
                lanes.run(Quieten(&mut a[from..end]));
            }
            rows::store(lanes, mem, dst, to, (first, count), a, &mut scratch.spare);
        }
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.lhs) + volume(&self.rhs)
    }
}

pub(super) fn scan(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, lhs, rhs) = (site.tile("dst")?, site.tile("lhs")?, site.tile("rhs")?);
    if dst.elements != lhs.elements || dst.elements != rhs.elements {
        return Err(malformed("operands of different lengths"));
    }
    let (op0, op1) = (site.alu("op0")?, site.alu("op1")?);
    if op0.is_bitvec() || op1.is_bitvec() {
        return Err(malformed("a scan is arithmetic"));
    }
    Ok(Box::new(Scan {
        dst,
        lhs,
        rhs,
        initial: site
            .scalar("initial")?
            .ok_or_else(|| malformed("operand `initial` is missing"))?,
        op0,
        op1,
        reverse: [site.flag("reverse0"), site.flag("reverse1")],
    }))
}
