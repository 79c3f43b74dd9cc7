//! Elementwise arithmetic: one or two ALU steps over a tile.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::space::Engine;

use crate::alu::{Alu, Arg, Binary, BinaryHalves, Half};
use crate::fault::{Run, malformed};
use crate::lower::{Bound, Scalar, Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::{Term, Tile};
use crate::walk::{AnyWalk, Walk};

use super::movement::{assign, volume};

/// The right side of a step.
#[derive(Clone, Copy)]
enum Side {
    Number(f32),
    /// Position among the sources of the walk.
    Source(usize),
}

#[derive(Clone, Copy)]
struct Stage {
    op: Alu,
    side: Side,
    reverse: bool,
}

/// `op1(op0(src, a), b)`
struct Chain {
    walk: AnyWalk,
    stages: [Option<Stage>; 2],
    bytes: u64,
}

impl Task for Chain {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let [first, second] = &self.stages;
        if let (Some(stage), None) = (first, second)
            && BinaryHalves::has(stage.op)
            && self.walk.map_halves(m, |lanes, out, args| {
                let side = match stage.side {
                    Side::Number(number) => Half::Splat(number),
                    Side::Source(at) => args[at],
                };
                let (op, mut a, mut b) = (stage.op, args[0], side);
                if stage.reverse {
                    (a, b) = (b, a);
                }
                lanes.run(BinaryHalves { op, out, a, b });
            })?
        {
            return Ok(());
        }
        self.walk.map(m, |lanes, out, args| {
            let mut value = args[0];
            for stage in [first, second].into_iter().flatten() {
                let side = match stage.side {
                    Side::Number(number) => Arg::Splat(number),
                    Side::Source(at) => args[at],
                };
                let (a, b) = if stage.reverse {
                    (side, value)
                } else {
                    (value, side)
                };
                lanes.run(Binary {
                    op: stage.op,
                    out: &mut *out,
                    a,
                    b,
                });
                value = Arg::Own;
            }
            if first.is_none() && second.is_none() {
                assign(out, value);
            }
        })
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Builds a chain; sides that are tiles become sources behind `src`.
fn chain(
    dst: Tile,
    src: Tile,
    steps: [Option<(Alu, Option<Scalar>, bool)>; 2],
) -> Run<Box<dyn Task>> {
    let mut tiles = vec![dst, src];
    let mut stages = [None, None];
    for (stage, step) in stages.iter_mut().zip(steps) {
        let Some((op, side, reverse)) = step else {
            continue;
        };
        if op == Alu::Bypass {
            continue;
        }
        let side = match side {
            None if op.is_unary() => Side::Number(0.0),
            None => return Err(malformed("an operand of two-sided arithmetic is missing")),
            Some(Scalar::Number(number)) => Side::Number(number),
            Some(Scalar::Tile(tile)) => {
                tiles.push(tile);
                Side::Source(tiles.len() - 2)
            }
        };
        *stage = Some(Stage {
            op,
            side,
            reverse: reverse && !op.is_unary(),
        });
    }
    let bytes = tiles.iter().map(volume).sum();
    Ok(Box::new(Chain {
        walk: AnyWalk::new(tiles)?,
        stages,
        bytes,
    }))
}

/// The same on integers: exact and wrapping, or on bits.
struct Ints<const K: usize> {
    walk: Walk<K>,
    stages: [Option<IntStage>; 2],
}

#[derive(Clone, Copy)]
struct IntStage {
    op: Alu,
    side: IntSide,
    reverse: bool,
}

#[derive(Clone, Copy)]
enum IntSide {
    Number(i64),
    /// One of the sources behind the first.
    Source(usize),
}

impl<const K: usize> Task for Ints<K> {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let dtype = self.walk.tiles[1].dtype;
        let signed = dtype.integer_range().is_some_and(|(low, _)| low < 0);
        let bits = dtype.bits();
        self.walk.map_ints(m, |values, others| {
            for stage in self.stages.iter().flatten() {
                for (at, value) in values.iter_mut().enumerate() {
                    let side = match stage.side {
                        IntSide::Number(number) => number,
                        IntSide::Source(source) => others[source][at],
                    };
                    let (a, b) = if stage.reverse {
                        (side, *value)
                    } else {
                        (*value, side)
                    };
                    *value = stage.op.apply_int(a, b, bits, signed);
                }
            }
        })
    }

    fn bytes(&self) -> u64 {
        self.walk.tiles.iter().map(volume).sum()
    }
}

/// Adds the rows of a tile to the vector engine's accumulator, once it is written.
struct AndSum {
    task: Box<dyn Task>,
    dst: Tile,
}

impl Task for AndSum {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.task.run(m)?;
        let at = m.at(&self.dst)?;
        let mut sums = [0.0; 128];
        rows::reduce(m, Alu::Add, &self.dst, at, &mut sums);
        for (p, &sum) in sums[..self.dst.partitions.min(128)].iter().enumerate() {
            let sum = m.dve.get(p).map_or(sum, |before| before + sum);
            m.dve.set(p, crate::alu::quiet(sum));
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.task.bytes()
    }
}

fn is_word(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32)
}

fn no_bits(op: Alu) -> Run<Alu> {
    if op.is_bitvec() {
        return Err(malformed("bit operations and arithmetic do not mix"));
    }
    Ok(op)
}

pub(super) fn tensor_tensor(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, lhs, rhs) = (site.tile("dst")?, site.tile("lhs")?, site.tile("rhs")?);
    let op = site.alu("op")?;
    let words = [&dst, &lhs, &rhs].iter().all(|tile| is_word(tile.dtype));
    let exact = words && site.engine() == Some(Engine::Pool);
    let result = dst.clone();
    let task: Box<dyn Task> = if exact || op.is_bitvec() {
        let walk = Walk::new([dst, lhs, rhs])?;
        let stage = IntStage {
            op,
            side: IntSide::Source(0),
            reverse: false,
        };
        Box::new(Ints {
            walk,
            stages: [Some(stage), None],
        })
    } else {
        chain(dst, lhs, [Some((op, Some(Scalar::Tile(rhs)), false)), None])?
    };
    Ok(if site.flag("accumulate") {
        Box::new(AndSum { task, dst: result })
    } else {
        task
    })
}

pub(super) fn tensor_scalar(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    let (op0, op1) = (site.alu("op0")?, site.maybe_alu("op1")?);
    let bitwise = op0.is_bitvec() || op1.is_some_and(Alu::is_bitvec);
    if bitwise {
        return scalar_ints(site, dst, src, op0, op1);
    }
    // The scalars of `tensor_scalar_ptr` may lie some elements further on.
    let offset = site.bound("offset")?;
    let scalar = |role: &str| -> Run<Option<Scalar>> {
        let mut scalar = site.scalar(role)?;
        if let (Some(Scalar::Tile(tile)), Bound::Register(slot)) = (&mut scalar, offset) {
            let factor = tile.size as i64;
            tile.terms.push(Term {
                slot,
                partitions: false,
                factor,
            });
        }
        Ok(scalar)
    };
    let second = match op1 {
        Some(op) => Some((op, scalar("operand1")?, site.flag("reverse1"))),
        None => None,
    };
    let first = Some((op0, scalar("operand0")?, site.flag("reverse0")));
    chain(dst, src, [first, second])
}

fn scalar_ints(
    site: &Site<'_>,
    dst: Tile,
    src: Tile,
    op0: Alu,
    op1: Option<Alu>,
) -> Run<Box<dyn Task>> {
    let mut tiles = Vec::new();
    let mut stages = [None, None];
    let roles = [
        ("operand0", "reverse0", Some(op0)),
        ("operand1", "reverse1", op1),
    ];
    for (stage, (role, reverse, op)) in stages.iter_mut().zip(roles) {
        let Some(op) = op else { continue };
        let side = match (site.maybe_tile(role)?, site.literal_int(role)) {
            (Some(tile), _) => {
                tiles.push(tile);
                IntSide::Source(tiles.len() - 1)
            }
            (None, Some(number)) => IntSide::Number(number),
            (None, None) if op.is_unary() => IntSide::Number(0),
            (None, None) => return Err(malformed(format!("`{role}` is no integer"))),
        };
        *stage = Some(IntStage {
            op,
            side,
            reverse: site.flag(reverse) && !op.is_unary(),
        });
    }
    let mut tiles = tiles.into_iter();
    Ok(match (tiles.next(), tiles.next()) {
        (Some(one), Some(two)) => Box::new(Ints {
            walk: Walk::new([dst, src, one, two])?,
            stages,
        }),
        (Some(one), None) => Box::new(Ints {
            walk: Walk::new([dst, src, one])?,
            stages,
        }),
        _ => Box::new(Ints {
            walk: Walk::new([dst, src])?,
            stages,
        }),
    })
}

pub(super) fn tensor_scalar_addr(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    scalar_ints(site, dst, src, site.alu("op0")?, site.maybe_alu("op1")?)
}

pub(super) fn scalar_tensor_tensor(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (op0, op1) = (no_bits(site.alu("op0")?)?, no_bits(site.alu("op1")?)?);
    chain(
        site.tile("dst")?,
        site.tile("src")?,
        [
            Some((op0, site.scalar("scalar")?, site.flag("reverse0"))),
            Some((
                op1,
                Some(Scalar::Tile(site.tile("other")?)),
                site.flag("reverse1"),
            )),
        ],
    )
}

pub(super) fn reciprocal(site: &Site<'_>) -> Run<Box<dyn Task>> {
    chain(
        site.tile("dst")?,
        site.tile("src")?,
        [Some((Alu::Reciprocal, None, false)), None],
    )
}
