"""`nki.collectives`: exchanges between devices."""

from __future__ import annotations

from typing import Any

from . import tokens
from .errors import unknown
from .record import recorder


class ReplicaGroup:
    """Disjoint lists of ranks."""

    def __init__(self, replica_groups: Any) -> None:
        self.groups = [[int(rank) for rank in group] for group in replica_groups]


def _groups(value: Any) -> list[list[int]]:
    return value.groups if isinstance(value, ReplicaGroup) else [[int(r) for r in group] for group in value]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def all_reduce(dsts: Any = None, srcs: Any = None, op: Any = None, replica_group: Any = None, **_: Any) -> None:
    recorder().emit("all_reduce", {"dsts": _listed(dsts), "srcs": _listed(srcs)}, {"op": tokens.alu(op), "groups": _groups(replica_group)})


def all_gather(dsts: Any = None, srcs: Any = None, replica_group: Any = None, collective_dim: int = 0, **_: Any) -> None:
    for dst, src in zip(_listed(dsts), _listed(srcs)):
        recorder().emit("all_gather", {"dst": dst, "src": src}, {"groups": _groups(replica_group), "dim": int(collective_dim) or None})


def reduce_scatter(dsts: Any = None, srcs: Any = None, op: Any = None, replica_group: Any = None, **_: Any) -> None:
    for dst, src in zip(_listed(dsts), _listed(srcs)):
        recorder().emit("reduce_scatter", {"dst": dst, "src": src}, {"op": tokens.alu(op), "groups": _groups(replica_group)})


def all_to_all(dsts: Any = None, srcs: Any = None, replica_group: Any = None, **_: Any) -> None:
    for dst, src in zip(_listed(dsts), _listed(srcs)):
        recorder().emit("all_to_all", {"dst": dst, "src": src}, {"groups": _groups(replica_group)})


def collective_permute(dst: Any = None, src: Any = None, source_target_pairs: Any = None, **_: Any) -> None:
    recorder().emit("collective_permute", {"dst": dst, "src": src}, {"pairs": _groups(source_target_pairs)})


def rank_id() -> Any:
    r = recorder()
    return r.register("rank_id", {}, name=r.assigned_name() or "rank")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise unknown("nki.collectives", name, [n for n in globals() if not n.startswith("_")])
