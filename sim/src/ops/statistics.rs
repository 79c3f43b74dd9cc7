//! `bn_stats`, `bn_aggr` and `max8`.

use crate::alu::quiet;
use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

use super::movement::volume;

/// A function of a whole row.
struct PerRow {
    dst: Tile,
    src: Tile,
    f: fn(&[f32], &mut [f32]),
}

impl Task for PerRow {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let PerRow { dst, src, f } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        rows::map(m, (dst, to), [(src, from)], |rows| {
            let [values] = rows.sources;
            let results = rows.out.chunks_exact_mut(dst.elements.max(1));
            for (row, out) in values.chunks_exact(src.elements.max(1)).zip(results) {
                f(row, out);
            }
        })
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

fn per_row(site: &Site<'_>, f: fn(&[f32], &mut [f32])) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if dst.partitions != src.partitions {
        return Err(malformed("operands of different partitions"));
    }
    Ok(Box::new(PerRow { dst, src, f }))
}

/// Count, mean and sum of squared deviations of every second element from `start`; zeros for none.
fn half(row: &[f32], start: usize) -> [f32; 3] {
    let values = || row.iter().skip(start).step_by(2);
    let count = values().count();
    if count == 0 {
        return [0.0; 3];
    }
    // In f64: the sums of up to 512 numbers do not lose what the variance is made of.
    let mean = values().map(|&x| f64::from(x)).sum::<f64>() / count as f64;
    let squares = values()
        .map(|&x| (f64::from(x) - mean) * (f64::from(x) - mean))
        .sum::<f64>();
    [count as f32, quiet(mean as f32), quiet(squares as f32)]
}

pub(super) fn bn_stats(site: &Site<'_>) -> Run<Box<dyn Task>> {
    if site.tile("dst")?.elements != 6 {
        return Err(malformed("`dst` takes six elements per partition"));
    }
    per_row(site, |row, out| {
        out[..3].copy_from_slice(&half(row, 0));
        out[3..].copy_from_slice(&half(row, 1));
    })
}

pub(super) fn bn_aggr(site: &Site<'_>) -> Run<Box<dyn Task>> {
    if site.tile("dst")?.elements != 2 || !site.tile("src")?.elements.is_multiple_of(3) {
        return Err(malformed(
            "`src` is triples and `dst` takes two elements per partition",
        ));
    }
    per_row(site, |row, out| {
        let triples = || {
            row.chunks_exact(3)
                .map(|t| [f64::from(t[0]), f64::from(t[1]), f64::from(t[2])])
        };
        let n: f64 = triples().map(|[n, ..]| n).sum();
        let mean = triples().map(|[n, mean, _]| n * mean).sum::<f64>() / n;
        let squares: f64 = triples()
            .map(|[n, own, squares]| squares + n * (own - mean) * (own - mean))
            .sum();
        out[0] = quiet(mean as f32);
        out[1] = quiet((squares / n) as f32);
    })
}

pub(super) fn max8(site: &Site<'_>) -> Run<Box<dyn Task>> {
    if site.tile("dst")?.elements != 8 {
        return Err(malformed("`dst` takes eight elements per partition"));
    }
    per_row(site, |row, out| {
        // NaN ranks as -inf; of equal values the first comes first, which no bit tells apart but
        // the sign of zero.
        out.fill(f32::NEG_INFINITY);
        for &x in row {
            let x = if x.is_nan() { f32::NEG_INFINITY } else { x };
            if x > out[7] {
                let at = out.iter().position(|&kept| x > kept).unwrap_or(7);
                out[at..].rotate_right(1);
                out[at] = x;
            }
        }
    })
}
