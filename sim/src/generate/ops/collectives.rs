//! Collectives in groups of one rank; `cores.rs` has those of several.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::space::Space;

use super::super::Generator;
use super::super::draft::Draft;
use super::super::part::Pairs;

fn one_to_one(g: &mut Generator<'_>, code: OpCode, word: bool, dst: &str, srcs: &[&str]) {
    let mut draft = Draft::new(code);
    let (parts, elems) = g.shape();
    let mut dtype: Option<DType> = None;
    for role in srcs {
        let mut want = g.want(&draft, role, parts, elems).within(&[Space::Dram]);
        if let Some(dtype) = dtype {
            want = want.of(&[dtype]);
        }
        dtype = Some(g.read_as(&mut draft, role, want).dtype);
    }
    if word {
        let word = g.pick(&["add", "min", "max"]);
        g.word(&mut draft, "op", word);
    }
    let mut want = g.want(&draft, dst, parts, elems).within(&[Space::Dram]);
    if let Some(dtype) = dtype {
        want = want.of(&[dtype]);
    }
    g.write_as(&mut draft, dst, want);
    g.alone(&mut draft);
    g.emit(&mut draft);
}

pub(super) fn all_reduce(g: &mut Generator<'_>) {
    one_to_one(g, OpCode::AllReduce, true, "dsts", &["srcs"]);
}

pub(super) fn all_gather(g: &mut Generator<'_>) {
    one_to_one(g, OpCode::AllGather, false, "dst", &["src"]);
}

pub(super) fn reduce_scatter(g: &mut Generator<'_>) {
    one_to_one(g, OpCode::ReduceScatter, true, "dst", &["src"]);
}

pub(super) fn all_to_all(g: &mut Generator<'_>) {
    one_to_one(g, OpCode::AllToAll, false, "dst", &["src"]);
}

pub(super) fn collective_permute_implicit(g: &mut Generator<'_>) {
    one_to_one(
        g,
        OpCode::CollectivePermuteImplicit,
        false,
        "dsts",
        &["srcs"],
    );
}

pub(super) fn collective_permute_implicit_reduce(g: &mut Generator<'_>) {
    one_to_one(
        g,
        OpCode::CollectivePermuteImplicitReduce,
        true,
        "dst",
        &["lhs", "rhs"],
    );
}

pub(super) fn collective_permute(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::CollectivePermute);
    let (parts, elems) = g.shape();
    let src = g.read(&mut draft, "src", parts, elems);
    let want = g.want(&draft, "dst", parts, elems).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    let rank = g.rank();
    g.lists(&mut draft, "pairs", &[&[rank, rank]]);
    g.emit(&mut draft);
}

/// Rows of counts and displacements for one rank: all of `src`, at its place.
fn with_metadata(g: &mut Generator<'_>, code: OpCode) {
    let mut draft = Draft::new(code);
    let elems = g.width(1);
    let src = g.read(&mut draft, "src", 1, elems);
    let counts = g.metadata(elems);
    draft.tile("metadata", counts);
    let want = g.want(&draft, "dst", 1, elems).of(&[src.dtype]);
    g.write_as(&mut draft, "dst", want);
    g.alone(&mut draft);
    g.emit(&mut draft);
}

pub(super) fn all_gather_v(g: &mut Generator<'_>) {
    with_metadata(g, OpCode::AllGatherV);
}

pub(super) fn all_to_all_v(g: &mut Generator<'_>) {
    with_metadata(g, OpCode::AllToAllV);
}

pub(super) fn rank_id(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::RankId);
    g.define_register(&mut draft, DType::I32, None);
}

pub(super) fn core_id(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::CoreId);
    g.define_register(&mut draft, DType::I32, None);
}

pub(super) fn processing_rank_id(g: &mut Generator<'_>) {
    let mut draft = Draft::new(OpCode::ProcessingRankId);
    let iter = g.random.below(4) as i64;
    g.int(&mut draft, "iter", iter);
    g.alone(&mut draft);
    g.define_register(&mut draft, DType::I32, None);
}

impl Generator<'_> {
    /// A group of the own rank.
    fn alone(&mut self, draft: &mut Draft) {
        let rank = self.rank();
        self.lists(draft, "groups", &[&[rank]]);
    }

    /// `[send counts, send displacements, receive counts]` of one rank, in DRAM.
    fn metadata(&mut self, elems: u64) -> super::super::draft::Tile {
        let at = self.allocate(Space::Dram, DType::U32, 3, 1, &[]);
        let rows = self.allocate(Space::Sbuf, DType::U32, 1, 3, &[]);
        for (column, value) in [elems, 0, elems].into_iter().enumerate() {
            let mut part = self.whole(rows);
            part.whole = false;
            part.defines = false;
            part.access.offset = column as i64;
            part.access.pairs = Pairs::run(1);
            part.elems = 1;
            self.fill_with(part, value);
        }
        let mut draft = Draft::new(OpCode::Save);
        let src = self.whole(rows);
        draft.tile(
            "src",
            super::super::draft::Tile {
                defines: false,
                ..src
            },
        );
        draft.tile("dst", self.whole(at));
        self.emit(&mut draft);
        self.whole(at)
    }
}
