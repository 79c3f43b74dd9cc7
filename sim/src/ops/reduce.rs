//! `tensor_reduce` and `tensor_tensor_scan`.

use crate::alu::{Alu, ReduceRows, quiet, reduce_rows};
use crate::fault::{Run, malformed};
use crate::lower::{Scalar, Site, Task};
use crate::machine::Machine;
use crate::recur::{self, SIDE};
use crate::rows::{self, Rows};
use crate::simd::Lanes;
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

fn along_rows(lanes: Lanes, scan: &Scan, rows: recur::Rows<'_>) {
    match (scan.op0, scan.op1, scan.reverse) {
        (Alu::Multiply, Alu::Add, _) => recur::recur(lanes, rows, |a, s, b| a * s + b),
        (op0, op1, [reverse0, reverse1]) => recur::recur(lanes, rows, move |a, s, b| {
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
        }),
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
        let initial_at = place(m, initial, dst.partitions)?;
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
            let states = states[first..first + count].chunks(SIDE);
            for (part, states) in states.enumerate() {
                let from = part * SIDE * len;
                let part = from..from + states.len() * len;
                let rows = recur::Rows {
                    lhs: &a[part.clone()],
                    rhs: &b[part.clone()],
                    out: &mut out[part],
                    len,
                    initial: states,
                };
                along_rows(lanes, self, rows);
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
