//! Reductions, scans, statistics, the eight largest.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{INTS, OpCode};
use bir_dialect::bir::space::Space;

use super::super::Generator;
use super::super::draft::{Draft, Tile};
use super::ARITHMETIC;

pub(super) fn tensor_reduce(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorReduce);
    let (parts, elems) = g.shape();
    let is_bitwise = g.chance(6);
    let src = if is_bitwise {
        let size = g.pick(&[1, 2, 4]);
        let dtypes: Vec<DType> = INTS.iter().filter(|d| d.size_bytes() == size).collect();
        let want = g.want(&draft, "src", parts, elems).of(&dtypes);
        g.read_as(&mut draft, "src", want)
    } else {
        g.read(&mut draft, "src", parts, elems)
    };
    let word = if is_bitwise {
        g.pick(&["bitwise_and", "bitwise_or", "bitwise_xor"])
    } else {
        g.pick(&["add", "multiply", "max", "min", "subtract", "logical_or"])
    };
    g.word(&mut draft, "op", word);
    // Dimension 0 is the partition, the others are the pairs of the access.
    let pairs: Vec<u64> = src.access.pairs.iter().map(|pair| pair.count).collect();
    let first = g.between(1, pairs.len() as u64);
    let axes: Vec<i64> = (first as i64..=pairs.len() as i64).collect();
    g.ints(&mut draft, "axes", &axes);
    let left: u64 = pairs[..first as usize - 1].iter().product();
    if !is_bitwise && g.chance(4) {
        g.flag(&mut draft, "negate");
    }
    let mut want = g.want(&draft, "dst", parts, left);
    if is_bitwise {
        let size = src.dtype.size_bytes();
        let dtypes: Vec<DType> = INTS.iter().filter(|d| d.size_bytes() == size).collect();
        want = want.of(&dtypes);
    }
    g.write_as(&mut draft, "dst", want);
    g.emit(&mut draft);
}

pub(super) fn tensor_partition_reduce(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorPartitionReduce);
    let (parts, elems) = g.shape();
    if g.chance(3) {
        let dtype = g.pick(&[DType::I32, DType::U8, DType::I16]);
        let want = g.want(&draft, "src", parts, elems).of(&[dtype]);
        g.read_as(&mut draft, "src", want);
        let word = g.pick(&["bitwise_or", "bitwise_and"]);
        g.word(&mut draft, "op", word);
        let want = g.want(&draft, "dst", 1, elems).of(&[dtype]);
        g.write_as(&mut draft, "dst", want);
    } else {
        g.read(&mut draft, "src", parts, elems);
        let word = g.pick(&["add", "average", "max"]);
        g.word(&mut draft, "op", word);
        g.write(&mut draft, "dst", 1, elems);
    }
    g.emit(&mut draft);
}

/// The same tiles, which hold something now.
fn settled(tile: &Tile) -> Tile {
    Tile {
        defines: false,
        ..*tile
    }
}

pub(super) fn tensor_scalar_reduce(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorScalarReduce);
    let src = g.unary(&mut draft);
    let word = g.generation_word(ARITHMETIC);
    g.word(&mut draft, "op0", word);
    g.scalar(&mut draft, "operand0", src.parts);
    let how = g.pick(&["add", "multiply", "max", "min"]);
    g.word(&mut draft, "reduce", how);
    let dst = g.write_or_in_place(&mut draft, "dst", &src);
    let sums = g.write(&mut draft, "reduce_res", src.parts, 1);
    if g.chance(4) {
        g.flag(&mut draft, "negate");
    }
    if g.chance(3) {
        g.word(&mut draft, "reduce_cmd", "load");
        g.scalar(&mut draft, "init", src.parts);
    } else {
        g.word(&mut draft, "reduce_cmd", "reset");
    }
    g.emit(&mut draft);
    let (dst, sums) = (settled(&dst), settled(&sums));
    g.again_accumulating(
        |g, again| {
            again.tile("src", src);
            again.tile("dst", dst);
            again.tile("reduce_res", sums);
            g.word(again, "op0", "add");
            let bits = g.plain_number();
            g.literal(again, "operand0", DType::F32, bits);
            g.word(again, "reduce", how);
        },
        OpCode::TensorScalarReduce,
    );
}

pub(super) fn tensor_scalar_cumulative(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorScalarCumulative);
    let src = g.unary(&mut draft);
    let word = g.generation_word(ARITHMETIC);
    g.word(&mut draft, "op0", word);
    g.scalar(&mut draft, "operand0", src.parts);
    let how = g.pick(&["add", "subtract", "multiply", "max", "min"]);
    g.word(&mut draft, "op1", how);
    g.write(&mut draft, "dst", src.parts, src.elems);
    if g.chance(3) {
        g.word(&mut draft, "reduce_cmd", "load");
        g.scalar(&mut draft, "init", src.parts);
    }
    g.emit(&mut draft);
}

pub(super) fn tensor_tensor_scan(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::TensorTensorScan);
    let (parts, elems) = g.shape();
    let lhs = g.read(&mut draft, "lhs", parts, elems);
    g.read(&mut draft, "rhs", parts, elems);
    if g.chance(2) {
        let bits = g.number(DType::F32);
        g.literal(&mut draft, "initial", DType::F32, bits);
    } else {
        g.read(&mut draft, "initial", parts, 1);
    }
    for attr in ["op0", "op1"] {
        let word = g.generation_word(ARITHMETIC);
        g.word(&mut draft, attr, word);
    }
    if g.chance(4) {
        let which = g.pick(&["reverse0", "reverse1"]);
        g.flag(&mut draft, which);
    }
    g.write(&mut draft, "dst", lhs.parts, lhs.elems);
    g.emit(&mut draft);
}

/// A source of `bn_stats`, which takes at most 512 elements at once.
fn sample(g: &mut Generator<'_>, draft: &mut Draft) -> Tile {
    let (parts, elems) = g.shape();
    g.read(draft, "src", parts, elems.min(512))
}

pub(super) fn bn_stats(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::BnStats);
    let src = sample(g, &mut draft);
    g.write(&mut draft, "dst", src.parts, 6);
    g.emit(&mut draft);
}

/// Statistics, and their aggregation.
pub(super) fn bn_aggr(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::BnStats);
    let src = sample(g, &mut draft);
    let stats = g.allocate(Space::Sbuf, DType::F32, src.parts, 6, &[]);
    draft.tile("dst", g.whole(stats));
    g.emit(&mut draft);
    let mut draft = Draft::new(OpCode::BnAggr);
    draft.tile("src", g.whole(stats));
    g.write(&mut draft, "dst", src.parts, 2);
    g.emit(&mut draft);
}

/// A shape with at least eight columns.
fn wide_shape(g: &mut Generator<'_>) -> (u64, u64) {
    let (parts, elems) = g.shape();
    (parts, elems.max(8))
}

/// A row of ordinary numbers: there is no order among NaN.
fn ordered_source(g: &mut Generator<'_>, draft: &mut Draft, parts: u64, elems: u64) -> Tile {
    let dtype = g.pick(&[DType::I32, DType::I16, DType::U8]);
    let want = g.want(draft, "src", parts, elems).of(&[dtype]);
    g.read_as(draft, "src", want)
}

pub(super) fn max8(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Max8);
    let (parts, elems) = wide_shape(g);
    ordered_source(g, &mut draft, parts, elems);
    g.write(&mut draft, "dst", parts, 8);
    g.emit(&mut draft);
}

pub(super) fn find_index8(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::FindIndex8);
    let (parts, elems) = wide_shape(g);
    ordered_source(g, &mut draft, parts, elems);
    g.read(&mut draft, "values", parts, 8);
    g.write(&mut draft, "dst", parts, 8);
    g.emit(&mut draft);
}

pub(super) fn match_replace8(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::MatchReplace8);
    let (parts, elems) = wide_shape(g);
    let src = ordered_source(g, &mut draft, parts, elems);
    g.read(&mut draft, "values", parts, 8);
    let bits = g.plain_number();
    g.literal(&mut draft, "replacement", DType::F32, bits);
    g.write_or_in_place(&mut draft, "dst", &src);
    if g.chance(2) {
        g.write(&mut draft, "dst_index", parts, 8);
    }
    g.emit(&mut draft);
}

pub(super) fn topk(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::Topk);
    let parts = g.pick(&[16, 32, 64, 128]);
    // So many in 16 partitions can be numbered.
    let elems = g.width(1).min(u64::from(u16::MAX) / 16);
    // Numbers made here: a tile from elsewhere may hold NaN.
    let source = g.allocate(Space::Sbuf, DType::Bf16, parts, elems, &[]);
    g.ramp(g.whole(source));
    draft.tile("src", g.whole(source));
    let k = g.between(1, (elems * 16).min(64));
    g.int(&mut draft, "k", k as i64);
    let want = g.want(&draft, "dst", parts, k.div_ceil(16));
    g.write_as(&mut draft, "dst", want);
    let want = g.want(&draft, "dst_index", parts, k.div_ceil(16));
    g.write_as(&mut draft, "dst_index", want);
    g.emit(&mut draft);
}
