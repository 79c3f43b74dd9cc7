"""`nki.collectives`: exchanges between devices."""

from __future__ import annotations

import enum
from typing import Any

from . import tokens
from .errors import fail, unknown
from .record import recorder


class rg_partition_op(enum.Enum):
    """What puts ranks into one list of a group: the ranks for which it gives the same number."""

    bitwise_and = "bitwise_and"
    div = "div"
    mod = "mod"


class ReplicaGroup:
    """Disjoint lists of ranks."""

    def __init__(self, replica_groups: Any) -> None:
        self.groups = [[int(rank) for rank in group] for group in replica_groups]

    @staticmethod
    def from_partition_op(world_size: int, op: rg_partition_op, operand: int) -> ReplicaGroup:
        lists: dict[int, list[int]] = {}
        for rank in range(world_size):
            key = {rg_partition_op.bitwise_and: rank & operand, rg_partition_op.div: rank // max(1, operand), rg_partition_op.mod: rank % max(1, operand)}[op]
            lists.setdefault(key, []).append(rank)
        return ReplicaGroup(lists.values())

    def __repr__(self) -> str:
        return f"ReplicaGroup({self.groups})"


def _groups(value: Any) -> list[list[int]]:
    if value is None:
        raise fail("a collective needs a `replica_group`")
    return value.groups if isinstance(value, ReplicaGroup) else [[int(r) for r in group] for group in value]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _pairs(dsts: Any, srcs: Any) -> list[tuple[Any, Any]]:
    to, of = _listed(dsts), _listed(srcs)
    if len(to) != len(of):
        raise fail(f"a collective has as many destinations as sources, found {len(to)} and {len(of)}")
    return list(zip(to, of))


def _first(dim: Any, name: str) -> None:
    if dim:
        raise fail(f"`{name}` works along dimension 0, found {dim}")


def all_reduce(srcs: Any = None, dsts: Any = None, replica_group: Any = None, op: Any = None, priority: Any = None) -> None:
    recorder().emit("all_reduce", {"dsts": _listed(dsts), "srcs": _listed(srcs)}, {"op": tokens.alu(op), "groups": _groups(replica_group)})


def all_gather(srcs: Any = None, dsts: Any = None, replica_group: Any = None, collective_dim: int = 0, priority: Any = None) -> None:
    for dst, src in _pairs(dsts, srcs):
        recorder().emit("all_gather", {"dst": dst, "src": src}, {"groups": _groups(replica_group), "dim": int(collective_dim) or None})


def reduce_scatter(
    srcs: Any = None, dsts: Any = None, replica_group: Any = None, collective_dim: int = 0, op: Any = None, priority: Any = None
) -> None:  # fmt: skip
    _first(collective_dim, "reduce_scatter")
    for dst, src in _pairs(dsts, srcs):
        recorder().emit("reduce_scatter", {"dst": dst, "src": src}, {"op": tokens.alu(op), "groups": _groups(replica_group)})


def all_to_all(srcs: Any = None, dsts: Any = None, replica_group: Any = None, collective_dim: int = 0, priority: Any = None) -> None:
    _first(collective_dim, "all_to_all")
    for dst, src in _pairs(dsts, srcs):
        recorder().emit("all_to_all", {"dst": dst, "src": src}, {"groups": _groups(replica_group)})


def collective_permute(
    srcs: Any = None, dsts: Any = None, source_target_pairs: Any = None, priority: Any = None, *, src: Any = None, dst: Any = None
) -> None:  # fmt: skip
    for to, of in _pairs(dsts if dst is None else dst, srcs if src is None else src):
        recorder().emit("collective_permute", {"dst": to, "src": of}, {"pairs": [[int(a), int(b)] for a, b in source_target_pairs]})


def _channels(channels: Any) -> list[Any]:
    """The one tensor of each channel."""
    out = [_listed(channel) for channel in _listed(channels)]
    if any(len(channel) != 1 for channel in out):
        raise fail("a channel of a ring carries one tensor")
    return [channel[0] for channel in out]


def collective_permute_implicit(
    srcs_by_channel: Any = None, dsts_by_channel: Any = None, replica_group: Any = None, channel_ids: Any = (0,), priority: Any = None
) -> None:  # fmt: skip
    dsts, srcs = _channels(dsts_by_channel), _channels(srcs_by_channel)
    recorder().emit("collective_permute_implicit", {"dsts": dsts, "srcs": srcs}, {"groups": _groups(replica_group)})


def collective_permute_implicit_reduce(
    srcs0_by_channel: Any = None, srcs1_by_channel: Any = None, dsts_by_channel: Any = None, replica_group: Any = None, op: Any = None,
    channel_ids: Any = (0,), priority: Any = None,
) -> None:  # fmt: skip
    lhs, rhs = _channels(srcs0_by_channel), _channels(srcs1_by_channel)
    for (dst, left), right in zip(_pairs(_channels(dsts_by_channel), lhs), rhs, strict=True):
        values = {"dst": dst, "lhs": left, "rhs": right}
        recorder().emit("collective_permute_implicit_reduce", values, {"op": tokens.alu(op), "groups": _groups(replica_group)})


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: Any, replica_group: Any = None, channel_id: int = 0, num_channels: int = 1, name: Any = None
) -> Any:  # fmt: skip
    """A register: own rank in iteration 0, then the ranks before it in the ring."""
    r = recorder()
    name = name or r.assigned_name() or "from"
    return r.register("processing_rank_id", {"iter": iteration_id}, {"groups": _groups(replica_group)}, name=name)


def rank_id() -> Any:
    r = recorder()
    return r.register("rank_id", {}, name=r.assigned_name() or "rank")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise unknown("nki.collectives", name, [n for n in globals() if not n.startswith("_")])
