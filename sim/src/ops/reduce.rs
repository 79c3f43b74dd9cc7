//! `tensor_reduce` and `tensor_tensor_scan`.

use crate::alu::{Alu, ReduceRows, quiet, reduce_rows};
use crate::fault::{Run, malformed};
use crate::lower::{Scalar, Site, Task};
use crate::machine::Machine;
use crate::rows::{self, Rows};
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
        rows::map(m, (dst, to), [(src, from)], |rows| {
            let Rows {
                lanes,
                sources: [values],
                out,
                ..
            } = rows;
            let job = ReduceRows {
                op: *op,
                rows: values,
                len: *len,
                stride: *len,
                out: &mut *out,
            };
            reduce_rows(lanes, job);
            for value in out {
                if *op == Alu::Average {
                    *value /= *len as f32;
                }
                if *negate {
                    *value = quiet(*value * -1.0);
                }
            }
        })
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

/// Steps of them at a time, in arrays of fixed size: a step waits for the one before it, so nothing
/// else may stand in the way.
const STEPS: usize = 16;

/// `state = f(lhs, state, rhs)` along rows that lie one behind another.
struct Recur<'a, F> {
    lhs: &'a [f32],
    rhs: &'a [f32],
    out: &'a mut [f32],
    len: usize,
    initial: &'a [f32],
    step: F,
}

impl<F: Fn(f32, f32, f32) -> f32> Kernel for Recur<'_, F> {
    type Out = ();

    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "arrays of one fixed size: indices are constants once the loops are unrolled"
    )]
    fn run<const FMA: bool>(self) {
        let Recur {
            lhs,
            rhs,
            out,
            len,
            initial,
            step,
        } = self;
        let mut state = [0.0; SIDE_BY_SIDE];
        state[..initial.len()].copy_from_slice(initial);
        let mut done = 0;
        if initial.len() == SIDE_BY_SIDE {
            let (mut a, mut b) = ([[0.0; STEPS]; SIDE_BY_SIDE], [[0.0; STEPS]; SIDE_BY_SIDE]);
            while done + STEPS <= len {
                for row in 0..SIDE_BY_SIDE {
                    let at = row * len + done;
                    a[row].copy_from_slice(&lhs[at..at + STEPS]);
                    b[row].copy_from_slice(&rhs[at..at + STEPS]);
                }
                for i in 0..STEPS {
                    for row in 0..SIDE_BY_SIDE {
                        state[row] = step(a[row][i], state[row], b[row][i]);
                        a[row][i] = state[row];
                    }
                }
                for row in 0..SIDE_BY_SIDE {
                    let at = row * len + done;
                    for i in 0..STEPS {
                        a[row][i] = quiet(a[row][i]);
                    }
                    out[at..at + STEPS].copy_from_slice(&a[row]);
                }
                done += STEPS;
            }
        }
        for (row, state) in state[..initial.len()].iter_mut().enumerate() {
            for i in row * len + done..(row + 1) * len {
                *state = step(lhs[i], *state, rhs[i]);
                out[i] = quiet(*state);
            }
        }
    }
}

fn recur(
    lanes: Lanes,
    scan: &Scan,
    (lhs, rhs): (&[f32], &[f32]),
    out: &mut [f32],
    len: usize,
    initial: &[f32],
) {
    match (scan.op0, scan.op1, scan.reverse) {
        (Alu::Multiply, Alu::Add, _) => {
            lanes.run(Recur {
                lhs,
                rhs,
                out,
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
                out,
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
        let len = dst.elements;
        let mut states = Vec::new();
        per_row(m, initial, initial_at, (0, dst.partitions), &mut states);
        rows::map(m, (dst, to), [(lhs, left), (rhs, right)], |rows| {
            let Rows {
                lanes,
                first,
                sources: [a, b],
                out,
            } = rows;
            let count = out.len() / len.max(1);
            let states = states[first..first + count].chunks(SIDE_BY_SIDE);
            for (part, states) in states.enumerate() {
                let from = part * SIDE_BY_SIDE * len;
                let part = from..from + states.len() * len;
                let (a, b) = (&a[part.clone()], &b[part.clone()]);
                recur(lanes, self, (a, b), &mut out[part], len, states);
            }
        })
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
