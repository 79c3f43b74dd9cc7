//! Copies on the compute engines, and transposition.

use bir_dialect::bir::space::{Engine, Target};

use crate::alu::Arg;
use crate::fault::{Run, malformed};
use crate::lower::{Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;
use crate::walk::Walk;

/// Bytes of the elements of a tile.
pub(super) fn volume(tile: &Tile) -> u64 {
    (tile.partitions * tile.elements * tile.size) as u64
}

/// Copies a chunk.
pub(crate) fn assign(out: &mut [f32], from: Arg<'_>) {
    match from {
        Arg::Own => {}
        Arg::Row(from) => out.copy_from_slice(from),
        Arg::Splat(value) => out.fill(value),
    }
}

struct CopyBits(Walk<2>);

impl Task for CopyBits {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.0.copy_bits(m)
    }

    fn bytes(&self) -> u64 {
        self.0.tiles.iter().map(volume).sum()
    }
}

struct Convert(Walk<2>);

impl Task for Convert {
    fn run(&self, m: &mut Machine) -> Run<()> {
        self.0.map(m, |_, out, args| assign(out, args[0]))
    }

    fn bytes(&self) -> u64 {
        self.0.tiles.iter().map(volume).sum()
    }
}

/// A copy: bits where the dtypes are equal, by way of f32 elsewhere.
pub(super) fn transfer(dst: Tile, src: Tile) -> Run<Box<dyn Task>> {
    if dst.dtype == src.dtype {
        return Ok(Box::new(CopyBits(Walk::new([dst, src])?)));
    }
    if !(crate::lower::is_arithmetic(dst.dtype) && crate::lower::is_arithmetic(src.dtype)) {
        return Err(malformed(format!(
            "`{}` and `{}` are not converted",
            src.dtype, dst.dtype
        )));
    }
    Ok(Box::new(Convert(Walk::new([dst, src])?)))
}

pub(super) fn copy(site: &Site<'_>) -> Run<Box<dyn Task>> {
    transfer(site.tile("dst")?, site.tile("src")?)
}

struct Transpose {
    dst: Tile,
    src: Tile,
}

fn turn<const N: usize>(from: &[u8], to: &mut [u8], rows: usize, columns: usize) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    const BLOCK: usize = 16;
    for row in (0..rows).step_by(BLOCK) {
        for column in (0..columns).step_by(BLOCK) {
            for c in column..(column + BLOCK).min(columns) {
                for r in row..(row + BLOCK).min(rows) {
                    to[c * rows + r] = from[r * columns + c];
                }
            }
        }
    }
}

/// Transposes `rows` x `columns` elements of `size` bytes.
pub(crate) fn turn_bytes(size: usize, from: &[u8], to: &mut [u8], rows: usize, columns: usize) {
    match size {
        1 => turn::<1>(from, to, rows, columns),
        2 => turn::<2>(from, to, rows, columns),
        4 => turn::<4>(from, to, rows, columns),
        _ => turn::<8>(from, to, rows, columns),
    }
}

impl Task for Transpose {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let Transpose { dst, src } = self;
        let to = m.at(dst)?;
        let from = m.source(src)?;
        let Machine { mem, scratch, .. } = &mut *m;
        let [first, second, ..] = &mut scratch.copies;
        rows::pack(mem, src, from, (0, src.partitions), first);
        let len = src.partitions * src.elements * src.size;
        crate::runs::resize(second, len);
        turn_bytes(
            src.size,
            &first[..len],
            &mut second[..len],
            src.partitions,
            src.elements,
        );
        rows::unpack(mem, dst, to, (0, dst.partitions), &second[..len]);
        m.mark(dst, to);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        volume(&self.dst) + volume(&self.src)
    }
}

pub(super) fn transpose(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if dst.partitions != src.elements || dst.elements != src.partitions {
        return Err(malformed("`dst` is not of the transposed shape"));
    }
    if dst.size != src.size {
        return Err(malformed(
            "`dst` and `src` have elements of different sizes",
        ));
    }
    // The tensor engine of the first generation multiplies by an identity matrix.
    if site.engine() == Some(Engine::Pe) && site.target() == Target::Trn1 {
        return super::matrix::transpose_by_product(dst, src);
    }
    Ok(Box::new(Transpose { dst, src }))
}
