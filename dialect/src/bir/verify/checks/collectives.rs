//! Exchange between cores and devices, and their barriers.

use super::*;
use crate::ir::AttrView;

/// The lists of ranks of an attribute.
fn ranks(cx: &OpContext<'_>, attr: &str) -> Option<Vec<Vec<i64>>> {
    let ctx = &cx.ir.ctx;
    let AttrView::Array(groups) = ctx.attr(cx.ir.attr(cx.op, attr)?) else {
        return None;
    };
    groups
        .iter()
        .map(|group| match ctx.attr(group) {
            AttrView::Array(ranks) => ranks.iter().map(|rank| ctx.attr_int(rank)).collect(),
            _ => None,
        })
        .collect()
}

/// Groups are disjoint and of one size, which is returned.
fn groups(cx: &mut OpContext<'_>) -> Option<u64> {
    let groups = ranks(cx, "groups")?;
    let size = groups.first()?.len();
    let mut seen: Vec<i64> = groups.iter().flatten().copied().collect();
    seen.sort_unstable();
    if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
        let rank = pair[0];
        cx.attr_error(
            "groups",
            format!("must name each rank once, found rank {rank} twice"),
        );
        return None;
    }
    if groups.iter().any(|group| group.len() != size) {
        cx.attr_error("groups", "must be of one size");
        return None;
    }
    Some(size as u64)
}

pub(crate) fn collective(cx: &mut OpContext<'_>) {
    groups(cx);
}

/// Sources and destinations of a variadic collective match one by one.
fn pairwise(cx: &mut OpContext<'_>) {
    let (dsts, srcs) = (cx.shapes("dsts"), cx.shapes("srcs"));
    if dsts.len() != srcs.len() {
        cx.error(format!(
            "`{}` has {}, found {} written",
            cx.def.name,
            counted(srcs.len() as u64, "source"),
            dsts.len()
        ));
        return;
    }
    for (i, (dst, src)) in dsts.iter().zip(&srcs).enumerate() {
        if dst.total() != src.total() || dst.dtype != src.dtype {
            cx.operand_error(
                "dsts",
                format!(
                    "number {i} must have {} of `{}`, as its source, found {} of `{}`",
                    counted(src.total(), "element"),
                    src.dtype,
                    dst.total(),
                    dst.dtype
                ),
            );
        }
    }
}

pub(crate) fn all_reduce(cx: &mut OpContext<'_>) {
    groups(cx);
    pairwise(cx);
    let all: Vec<Shape> = cx
        .shapes("srcs")
        .into_iter()
        .chain(cx.shapes("dsts"))
        .collect();
    let on_chip = all
        .iter()
        .filter(|facts| facts.space == Space::Sbuf)
        .count();
    if on_chip > 0 && on_chip < all.len() {
        cx.error("`all_reduce` works all in `dram` or all in `sbuf`, found both");
    } else if on_chip > 2 {
        cx.error("`all_reduce` takes several tensors only in `dram`");
    }
}

use super::super::facts::Shape;

fn scaled(cx: &mut OpContext<'_>, small: &str, large: &str) {
    let Some(size) = groups(cx) else { return };
    let (Some(part), Some(whole)) = (cx.shape(small), cx.shape(large)) else {
        return;
    };
    let expected = part.total().saturating_mul(size);
    if whole.total() != expected {
        cx.operand_error(
            large,
            format!(
                "must have {}, {size} times `{small}`, found {}",
                counted(expected, "element"),
                whole.total()
            ),
        );
    }
}

pub(crate) fn all_gather(cx: &mut OpContext<'_>) {
    scaled(cx, "src", "dst");
    if cx.view().int("dim") == Some(1) && cx.shape("dst").is_some_and(|f| f.space == Space::Dram) {
        cx.attr_error("dim", "must be 0 in `dram`, found 1");
    }
}

pub(crate) fn reduce_scatter(cx: &mut OpContext<'_>) {
    scaled(cx, "dst", "src");
}

pub(crate) fn collective_permute(cx: &mut OpContext<'_>) {
    let Some(pairs) = ranks(cx, "pairs") else {
        return;
    };
    if pairs.iter().any(|pair| pair.len() != 2) {
        cx.attr_error("pairs", "must be lists of two ranks, `[source, target]`");
        return;
    }
    for (side, name) in [(0, "source"), (1, "target")] {
        let mut seen: Vec<i64> = pairs.iter().map(|pair| pair[side]).collect();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            let rank = twice[0];
            cx.attr_error(
                "pairs",
                format!("must name each {name} once, found rank {rank} twice"),
            );
        }
    }
}

/// Channels of a ring.
const MAX_CHANNELS: usize = 4;

pub(crate) fn collective_permute_implicit(cx: &mut OpContext<'_>) {
    groups(cx);
    pairwise(cx);
    let channels = cx.shapes("srcs").len();
    if channels > MAX_CHANNELS {
        cx.error(format!(
            "`{}` has at most {MAX_CHANNELS} channels, found {channels}",
            cx.def.name
        ));
    }
}

pub(crate) fn sendrecv(cx: &mut OpContext<'_>) {
    let (to, from) = (cx.view().int("send_to"), cx.view().int("recv_from"));
    if let (Some(to), Some(from)) = (to, from)
        && to != from
    {
        cx.attr_error(
            "recv_from",
            format!("must be the core sent to, {to}, found {from}"),
        );
    }
    if cx.engine == Some(Engine::Pool) {
        gpsimd_sb2sb(cx);
    }
}

pub(crate) fn semaphore_range_clear(cx: &mut OpContext<'_>) {
    let (first, count) = (cx.view().int("first"), cx.view().int("count"));
    if let (Some(first), Some(count)) = (first, count)
        && let last = i128::from(first) + i128::from(count) - 1
        && last > 255
    {
        cx.attr_error("count", format!("must end at semaphore 255, found {last}"));
    }
}

pub(crate) fn core_barrier(cx: &mut OpContext<'_>) {
    let Some(cores) = integers(cx, "cores") else {
        return;
    };
    let mut sorted = cores.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if cores.len() < 2 || sorted.len() != cores.len() {
        cx.attr_error(
            "cores",
            format!("must be two or more different cores, found {cores:?}"),
        );
    }
}
