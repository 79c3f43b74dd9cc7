//! Random numbers: `rng`, `rand2`, `dropout`, and the state behind them.
//!
//! Every lane of an engine draws from a generator of its own, in the order of the access, so that
//! what a lane gets does not depend on how many others there are.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::space::Engine;

use crate::alu::quiet;
use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::hidden::{WORDS, Xorwow, unit};
use crate::lower::{Scalar, Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

use super::accumulate::{per_row, place};
use super::movement::volume;
use super::rowwise::in_lanes;
use super::select::one_element;

fn engine(site: &Site<'_>) -> Engine {
    site.engine().unwrap_or(Engine::Dve)
}

struct Rng {
    dst: Tile,
    engine: Engine,
    /// The bits that are kept; what stands above the dtype's width is cut off anyway.
    mask: u32,
}

impl Task for Rng {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let to = m.at(&self.dst)?;
        let dst = &self.dst;
        let mut row = Vec::with_capacity(dst.elements);
        for p in 0..dst.partitions {
            let random = m.hidden.random(self.engine, m.target);
            row.clear();
            row.extend((0..dst.elements).map(|i| i64::from(random.draw(p, i) & self.mask)));
            rows::store_ints(&mut m.mem, dst, to, (p, 1), &row);
        }
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst)
    }
}

pub(super) fn rng(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let dst = site.tile("dst")?;
    in_lanes(&[&dst])?;
    if !dst.dtype.is_integer() {
        return Err(malformed("random bits are integers"));
    }
    Ok(Box::new(Rng {
        engine: engine(site),
        mask: if dst.dtype == DType::Bool {
            1
        } else {
            u32::MAX
        },
        dst,
    }))
}

struct Rand2 {
    dst: Tile,
    range: [Scalar; 2],
    engine: Engine,
}

impl Task for Rand2 {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let dst = &self.dst;
        let to = m.at(dst)?;
        let all = (0, dst.partitions);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (bound, values) in self.range.iter().zip([&mut low, &mut high]) {
            let at = place(m, bound, dst.partitions)?;
            per_row(m, bound, at, all, values);
        }
        for (partition, (&low, &high)) in low.iter().zip(&high).enumerate() {
            // Also where one of them is NaN.
            if low < high {
                continue;
            }
            return Err(Fault::new(FaultKind::EmptyRange {
                partition,
                low: low.to_string(),
                high: high.to_string(),
            }));
        }
        for p in 0..dst.partitions {
            let Machine {
                mem,
                scratch,
                lanes,
                hidden,
                target,
                ..
            } = &mut *m;
            let random = hidden.random(self.engine, *target);
            let out = &mut scratch.out;
            crate::runs::resize(out, dst.elements);
            for (i, value) in out[..dst.elements].iter_mut().enumerate() {
                let u = unit(random.draw(p, i));
                *value = quiet(low[p] + u * (high[p] - low[p]));
            }
            rows::store(*lanes, mem, dst, to, (p, 1), out, &mut scratch.spare);
        }
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst)
    }
}

fn needed(site: &Site<'_>, role: &str) -> Run<Scalar> {
    site.scalar(role)?
        .ok_or_else(|| malformed(format!("operand `{role}` is missing")))
}

/// A scalar for each partition of a tile.
fn one_per_partition(scalar: &Scalar, tile: &Tile) -> Run<()> {
    match scalar {
        Scalar::Tile(other) if other.partitions != tile.partitions || other.elements != 1 => {
            Err(malformed("a scalar is not one element per partition"))
        }
        _ => Ok(()),
    }
}

pub(super) fn rand2(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let dst = site.tile("dst")?;
    in_lanes(&[&dst])?;
    let range = [needed(site, "low")?, needed(site, "high")?];
    for bound in &range {
        one_per_partition(bound, &dst)?;
    }
    let engine = engine(site);
    Ok(Box::new(Rand2 { dst, range, engine }))
}

struct Dropout {
    dst: Tile,
    src: Tile,
    prob: Scalar,
    engine: Engine,
}

impl Task for Dropout {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Dropout {
            dst,
            src,
            prob,
            engine,
        } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let all = (0, src.partitions);
        let at = place(m, prob, src.partitions)?;
        let mut probs = Vec::new();
        per_row(m, prob, at, all, &mut probs);
        let Machine {
            mem,
            scratch,
            hidden,
            target,
            ..
        } = &mut *m;
        let random = hidden.random(*engine, *target);
        let [bytes, ..] = &mut scratch.copies;
        // What is kept is kept bit by bit.
        rows::pack(mem, src, from, all, bytes);
        let len = src.partitions * src.elements * src.size;
        for (at, element) in bytes[..len].chunks_exact_mut(src.size).enumerate() {
            let (p, i) = (at / src.elements, at % src.elements);
            if unit(random.draw(p, i)) < probs[p] {
                element.fill(0);
            }
        }
        rows::unpack(mem, dst, to, all, bytes);
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn dropout(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    in_lanes(&[&dst, &src])?;
    let same =
        dst.dtype == src.dtype && (dst.partitions, dst.elements) == (src.partitions, src.elements);
    if !same {
        return Err(malformed("`dst` and `src` differ in shape or dtype"));
    }
    let prob = needed(site, "prob")?;
    one_per_partition(&prob, &src)?;
    let engine = engine(site);
    Ok(Box::new(Dropout {
        dst,
        src,
        prob,
        engine,
    }))
}

struct Seed(Tile);

impl Task for Seed {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let at = m.source(&self.0)?;
        let seed = one_element(m, &self.0, at) as u32;
        m.hidden.random(Engine::Dve, m.target).seed(seed);
        Ok(())
    }
}

pub(super) fn set_rng_seed(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let src = site.tile("src")?;
    if src.partitions * src.elements != 1 {
        return Err(malformed("the seed is not one element"));
    }
    Ok(Box::new(Seed(src)))
}

struct State {
    tile: Tile,
    engine: Engine,
    set: bool,
}

impl Task for State {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let State { tile, engine, set } = self;
        let at = if *set { m.source(tile)? } else { m.at(tile)? };
        let mut row = Vec::new();
        for p in 0..tile.partitions {
            if *set {
                rows::load_ints(&m.mem, tile, at, (p, 1), &mut row);
            }
            let generators = m.hidden.random(*engine, m.target).lane(p);
            if *set {
                for (generator, words) in generators.iter_mut().zip(row.chunks_exact(WORDS)) {
                    let words: [u32; WORDS] = std::array::from_fn(|i| words[i] as u32);
                    *generator = Xorwow { words };
                }
            } else {
                row.clear();
                row.extend(generators.iter().flat_map(|g| g.words).map(i64::from));
                rows::store_ints(&mut m.mem, tile, at, (p, 1), &row);
            }
        }
        if !*set {
            m.mark(tile, at);
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.tile)
    }
}

fn state(site: &Site<'_>, role: &str, set: bool) -> Run<Box<dyn Task>> {
    let tile = site.tile(role)?;
    in_lanes(&[&tile])?;
    let engine = engine(site);
    let words = crate::hidden::state_words(engine, site.target());
    if tile.elements != words || tile.size != 4 {
        return Err(malformed(format!(
            "the state of a lane of `{engine}` is {words} words"
        )));
    }
    Ok(Box::new(State { tile, engine, set }))
}

pub(super) fn rand_set_state(site: &Site<'_>) -> Run<Box<dyn Task>> {
    state(site, "src", true)
}

pub(super) fn rand_get_state(site: &Site<'_>) -> Run<Box<dyn Task>> {
    state(site, "dst", false)
}
