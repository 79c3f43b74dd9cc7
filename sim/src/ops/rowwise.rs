//! Steps on every element of a row, then the row reduced through an accumulator: `exponential`,
//! `activate2`, `tensor_scalar_reduce`; and `tensor_scalar_cumulative`, which keeps every step.

use crate::alu::{Alu, Arg, Binary, ReduceRows, quiet, reduce_rows};
use crate::fault::{Run, malformed};
use crate::func::{Apply, Func};
use crate::hidden::LANES;
use crate::lower::{Scalar, Site, Task};
use crate::machine::{Accumulator, Machine};
use crate::rows::{self, Rows};
use crate::simd::Lanes;
use crate::tile::Tile;

use super::accumulate::{Command, per_row, place, write_column};
use super::movement::volume;

/// What an accumulator starts from.
fn identity(op: Alu) -> f32 {
    match op {
        Alu::Multiply => 1.0,
        Alu::Max => f32::NEG_INFINITY,
        Alu::Min | Alu::AbsMin => f32::INFINITY,
        _ => 0.0,
    }
}

/// Refuses tiles that no engine has lanes for; the verifier knows more about them.
pub(super) fn in_lanes(tiles: &[&Tile]) -> Run<()> {
    match tiles.iter().find(|tile| tile.partitions > LANES) {
        Some(tile) => Err(malformed(format!(
            "a tile of {} partitions",
            tile.partitions
        ))),
        None => Ok(()),
    }
}

/// One step of arithmetic with a scalar.
struct Step {
    op: Alu,
    side: Scalar,
    reverse: bool,
}

/// Which engine's accumulator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Act,
    Dve,
}

impl Owner {
    fn of(self, m: &mut Machine) -> &mut Accumulator {
        match self {
            Owner::Act => &mut m.act,
            Owner::Dve => &mut m.dve,
        }
    }
}

/// The reduction of the rows.
struct Reduction {
    owner: Owner,
    op: Alu,
    command: Command,
    init: Option<Scalar>,
    result: Option<Tile>,
    negate: bool,
}

struct Rowwise {
    dst: Tile,
    src: Tile,
    steps: Vec<Step>,
    func: Option<(Func, f32)>,
    reduction: Reduction,
}

/// The values of scalars for all rows, read before anything is written.
fn read_scalar(m: &mut Machine, scalar: &Scalar, partitions: usize) -> Run<Vec<f32>> {
    let at = place(m, scalar, partitions)?;
    let mut values = Vec::new();
    per_row(m, scalar, at, (0, partitions), &mut values);
    Ok(values)
}

/// Steps with one scalar each on the elements of a row, from `x` to `out`.
fn stepwise(
    lanes: Lanes,
    steps: impl Iterator<Item = (Alu, f32, bool)>,
    x: &[f32],
    out: &mut [f32],
) {
    let mut own = Arg::Row(x);
    for (op, side, reverse) in steps {
        let side = Arg::Splat(side);
        let (a, b) = if reverse { (side, own) } else { (own, side) };
        let out = &mut *out;
        lanes.run(Binary { op, out, a, b });
        own = Arg::Own;
    }
    if matches!(own, Arg::Row(_)) {
        out.copy_from_slice(x);
    }
}

/// Each row of a source and of a destination of one shape, with its number.
fn pairs<'r>(
    first: usize,
    from: &'r [f32],
    to: &'r mut [f32],
    len: usize,
) -> impl Iterator<Item = (usize, &'r [f32], &'r mut [f32])> {
    let rows = from
        .chunks_exact(len.max(1))
        .zip(to.chunks_exact_mut(len.max(1)));
    (first..).zip(rows).map(|(p, (x, out))| (p, x, out))
}

impl Task for Rowwise {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Rowwise {
            dst,
            src,
            steps,
            func,
            reduction,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let mut sides = Vec::with_capacity(steps.len());
        for step in steps {
            sides.push(read_scalar(m, &step.side, src.partitions)?);
        }
        let init = match &reduction.init {
            Some(scalar) => Some(read_scalar(m, scalar, src.partitions)?),
            None => None,
        };
        let reduces = reduction.command != Command::Idle;
        let mut reduced = [0.0f32; LANES];
        let len = src.elements;
        rows::map(m, (dst, to), [(src, from)], |rows| {
            let Rows {
                lanes,
                first,
                sources: [values],
                out,
            } = rows;
            for (p, x, out) in pairs(first, values, out, len) {
                let steps = steps.iter().zip(&sides);
                let steps = steps.map(|(step, side)| (step.op, side[p], step.reverse));
                stepwise(lanes, steps, x, out);
                if let Some((func, alpha)) = *func {
                    lanes.run(Apply {
                        func,
                        alpha,
                        out,
                        x: Arg::Own,
                        scale: 1.0,
                        // Adding -0 changes no value, not even 0.
                        bias: -0.0,
                    });
                }
            }
            if reduces {
                let count = out.len() / len.max(1);
                let job = ReduceRows {
                    op: reduction.op,
                    rows: out,
                    len,
                    stride: len,
                    out: &mut reduced[first..first + count],
                };
                reduce_rows(lanes, job);
            }
        })?;
        reduction.keep(m, &mut reduced, src.partitions, init.as_deref())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

impl Reduction {
    /// Runs the reduced rows through the accumulator and writes it.
    fn keep(
        &self,
        m: &mut Machine,
        reduced: &mut [f32; LANES],
        partitions: usize,
        init: Option<&[f32]>,
    ) -> Run<()> {
        let accumulator = self.owner.of(m);
        if self.command == Command::Idle && self.owner == Owner::Dve {
            // Idle users of the vector engine's accumulator leave anything in it.
            accumulator.poison();
        }
        for (p, value) in reduced[..partitions].iter_mut().enumerate() {
            *value = match self.command {
                Command::Idle if self.result.is_none() => continue,
                Command::Idle => accumulator.get(p)?,
                Command::Reset => *value,
                Command::Accumulate => self.op.apply(accumulator.get(p)?, *value),
                Command::Load => {
                    let init = init.map_or(identity(self.op), |init| init[p]);
                    self.op.apply(init, *value)
                }
                Command::Clear => identity(self.op),
            };
            accumulator.set(p, *value);
        }
        let Some(result) = &self.result else {
            return Ok(());
        };
        if self.negate {
            for value in &mut reduced[..partitions] {
                *value = quiet(-*value);
            }
        }
        write_column(m, result, reduced)
    }
}

fn rowwise(
    site: &Site<'_>,
    steps: Vec<Step>,
    func: Option<(Func, f32)>,
    reduction: Reduction,
) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    in_lanes(&[&dst, &src])?;
    if dst.partitions != src.partitions || dst.elements != src.elements {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    let scalars = steps
        .iter()
        .map(|step| &step.side)
        .chain(&reduction.init)
        .filter_map(|scalar| match scalar {
            Scalar::Tile(tile) => Some(tile),
            Scalar::Number(_) => None,
        });
    for tile in scalars.chain(&reduction.result) {
        if tile.partitions != src.partitions || tile.elements != 1 {
            return Err(malformed("a scalar is not one element per partition"));
        }
    }
    Ok(Box::new(Rowwise {
        dst,
        src,
        steps,
        func,
        reduction,
    }))
}

pub(super) fn exponential(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let steps = match site.scalar("max")? {
        Some(side) => vec![Step {
            op: Alu::Subtract,
            side,
            reverse: false,
        }],
        None => Vec::new(),
    };
    let reduction = Reduction {
        owner: Owner::Dve,
        op: Alu::Add,
        command: Command::of(site, Command::Idle),
        init: site.scalar("init")?,
        result: site.maybe_tile("reduce_res")?,
        negate: false,
    };
    rowwise(site, steps, Some((Func::Exp, 0.0)), reduction)
}

pub(super) fn activate2(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let mut steps = Vec::new();
    for (op, role, reverse) in [
        ("op0", "operand0", "reverse0"),
        ("op1", "operand1", "reverse1"),
    ] {
        let op = site.alu(op)?;
        if op == Alu::Bypass {
            continue;
        }
        let side = site
            .scalar(role)?
            .ok_or_else(|| malformed(format!("operand `{role}` is missing")))?;
        let reverse = site.flag(reverse);
        steps.push(Step { op, side, reverse });
    }
    let result = site.maybe_tile("reduce_res")?;
    let missing = if result.is_some() {
        Command::Reset
    } else {
        Command::Idle
    };
    let reduction = Reduction {
        owner: Owner::Act,
        op: site.maybe_alu("reduce")?.unwrap_or(Alu::Add),
        command: Command::of(site, missing),
        init: None,
        result,
        negate: false,
    };
    let alpha = site.number("alpha", 0.01);
    rowwise(site, steps, Some((site.func()?, alpha)), reduction)
}

/// The operation of a step, which is no operation on bits.
fn arithmetic(site: &Site<'_>, attr: &str) -> Run<Alu> {
    let op = site.alu(attr)?;
    if op.is_bitvec() {
        return Err(malformed("bit operations and arithmetic do not mix"));
    }
    Ok(op)
}

fn first_step(site: &Site<'_>) -> Run<Step> {
    Ok(Step {
        op: arithmetic(site, "op0")?,
        side: site
            .scalar("operand0")?
            .ok_or_else(|| malformed("operand `operand0` is missing"))?,
        reverse: false,
    })
}

pub(super) fn tensor_scalar_reduce(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let reduction = Reduction {
        owner: Owner::Dve,
        op: site.maybe_alu("reduce")?.unwrap_or(Alu::Add),
        command: Command::of(site, Command::Reset),
        init: site.scalar("init")?,
        result: site.maybe_tile("reduce_res")?,
        negate: site.flag("negate"),
    };
    rowwise(site, vec![first_step(site)?], None, reduction)
}

struct Cumulative {
    dst: Tile,
    src: Tile,
    step: Step,
    op: Alu,
    command: Command,
    init: Option<Scalar>,
}

/// `state = op(x, state)` along a row; every state over its `x`.
fn run_along(op: Alu, row: &mut [f32], state: f32) -> f32 {
    fn each(row: &mut [f32], mut state: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
        for x in row {
            state = quiet(f(*x, state));
            *x = state;
        }
        state
    }
    match op {
        Alu::Add => each(row, state, |x, state| x + state),
        Alu::Subtract => each(row, state, |x, state| x - state),
        Alu::Multiply => each(row, state, |x, state| x * state),
        Alu::Max => each(row, state, crate::alu::max),
        Alu::Min => each(row, state, crate::alu::min),
        op => each(row, state, |x, state| op.apply(x, state)),
    }
}

impl Task for Cumulative {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Cumulative {
            dst,
            src,
            step,
            op,
            command,
            init,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let sides = read_scalar(m, &step.side, src.partitions)?;
        let mut states = match (command, init) {
            (Command::Load, Some(init)) => read_scalar(m, init, src.partitions)?,
            (Command::Accumulate, _) => (0..src.partitions)
                .map(|p| m.dve.get(p))
                .collect::<Run<Vec<f32>>>()?,
            _ => vec![identity(*op); src.partitions],
        };
        let len = src.elements;
        rows::map(m, (dst, to), [(src, from)], |rows| {
            for (p, x, out) in pairs(rows.first, rows.sources[0], rows.out, len) {
                let first = std::iter::once((step.op, sides[p], false));
                stepwise(rows.lanes, first, x, out);
                states[p] = run_along(*op, out, states[p]);
            }
        })?;
        for (p, &state) in states.iter().enumerate() {
            m.dve.set(p, state);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn tensor_scalar_cumulative(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    in_lanes(&[&dst, &src])?;
    if dst.partitions != src.partitions || dst.elements != src.elements {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    Ok(Box::new(Cumulative {
        dst,
        src,
        step: first_step(site)?,
        op: arithmetic(site, "op1")?,
        command: Command::of(site, Command::Reset),
        init: site.scalar("init")?,
    }))
}

struct Cached {
    dst: Tile,
    src: Tile,
    /// Operation, scalar if one is given, whether the sides are swapped.
    steps: [Option<(Alu, Option<Scalar>, bool)>; 2],
    read: bool,
    write: bool,
}

impl Task for Cached {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Cached { dst, src, .. } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let mut sides = [Vec::new(), Vec::new()];
        for (slot, (step, values)) in self.steps.iter().zip(&mut sides).enumerate() {
            match step {
                Some((_, Some(scalar), _)) => {
                    *values = read_scalar(m, scalar, src.partitions)?;
                    if self.write {
                        for (p, &value) in values.iter().enumerate() {
                            m.hidden.cache().set(slot, p, value);
                        }
                    }
                }
                Some((op, None, _)) if self.read && !op.is_unary() => {
                    for p in 0..src.partitions {
                        values.push(m.hidden.cache().get(slot, p)?);
                    }
                }
                _ => values.resize(src.partitions, 0.0),
            }
        }
        let steps = || {
            { self.steps.iter().zip(&sides) }.filter_map(|(step, side)| {
                let (op, _, reverse) = step.as_ref()?;
                Some((*op, side, *reverse && !op.is_unary()))
            })
        };
        rows::map(m, (dst, to), [(src, from)], |rows| {
            for (p, x, out) in pairs(rows.first, rows.sources[0], rows.out, src.elements) {
                let steps = steps().map(|(op, side, reverse)| (op, side[p], reverse));
                stepwise(rows.lanes, steps, x, out);
            }
        })
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn tensor_scalar_cache(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    in_lanes(&[&dst, &src])?;
    if dst.partitions != src.partitions || dst.elements != src.elements {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    let read = site.flag("cache_read");
    let mut steps = [None, None];
    let names = [
        ("op0", "operand0", "reverse0"),
        ("op1", "operand1", "reverse1"),
    ];
    for (step, (op, role, reverse)) in steps.iter_mut().zip(names) {
        if site.maybe_alu(op)?.is_none() {
            continue;
        }
        let op = arithmetic(site, op)?;
        let scalar = site.scalar(role)?;
        if scalar.is_none() && !read && !op.is_unary() {
            return Err(malformed(format!("operand `{role}` is missing")));
        }
        *step = Some((op, scalar, site.flag(reverse)));
    }
    Ok(Box::new(Cached {
        dst,
        src,
        steps,
        read,
        write: site.flag("cache_write"),
    }))
}
