"""A queue as it is shown, and the tree that queues are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from shoal.api.visualizer import QueueView
from shoal.visualizer.shapes.resources import (
    BoundedStats,
    ResourceStats,
    WeightStats,
    beyond,
    bounded_stats,
    missing,
    resource_stats,
    weight_stats,
)


class QueueResources(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What a queue is promised, what it has, and what it may not exceed."""

    guaranteed: BoundedStats
    allocated: ResourceStats
    max: BoundedStats


class Queue(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A queue without those below it."""

    name: str
    """The name that people see."""
    parent: str
    """The name of the parent's object, as in `metadata_name`."""
    weight: int
    """The queue's priority, by the name that the first version gave it."""
    resources: QueueResources
    metadata_name: str
    priority: int
    over_quota_weight: WeightStats
    fair_share: ResourceStats
    requested: ResourceStats
    allocated_non_preemptible: ResourceStats
    starved: ResourceStats
    """What it is entitled to by its fair share, asks for, and has not."""
    borrowing: ResourceStats
    """What it has beyond its quota; nothing where that is unlimited."""


def queue_shape(queue: QueueView) -> Queue:
    """A queue as it is shown."""
    starved = missing(queue.requested, and_no_more_than=queue.fair_share, had=queue.allocated)
    return Queue(
        name=queue.display_name or queue.name,
        parent=queue.parent,
        weight=queue.priority,
        resources=QueueResources(
            guaranteed=bounded_stats(queue.quota),
            allocated=resource_stats(queue.allocated),
            max=bounded_stats(queue.limit),
        ),
        metadata_name=queue.name,
        priority=queue.priority,
        over_quota_weight=weight_stats(queue.over_quota_weight),
        fair_share=resource_stats(queue.fair_share),
        requested=resource_stats(queue.requested),
        allocated_non_preemptible=resource_stats(queue.allocated_non_preemptible),
        starved=resource_stats(starved),
        borrowing=resource_stats(beyond(queue.quota, had=queue.allocated)),
    )


def encoded_tree(queues: Mapping[str, QueueView], encoded: Mapping[str, bytes]) -> bytes:
    """All queues, each with those below it in `children`; siblings by name.

    A queue whose parent is not there is a root, and so is the first by name of those that go round in a circle: nothing
    is left out. Goes down without recursion, for a tree may be as deep as somebody likes.
    """
    children = _children(queues)
    roots = children.pop("", [])
    written: set[str] = set()
    pieces: list[bytes] = [b"["]
    for root in [*roots, *sorted(queues)]:
        if root not in written:
            pieces += [b"," if written else b"", *_branch(root, children, encoded, written)]
    pieces.append(b"]")
    return b"".join(pieces)


def _branch(
    root: str, children: Mapping[str, list[str]], encoded: Mapping[str, bytes], written: set[str]
) -> Iterator[bytes]:
    """One root and everything below it, opened and closed as the walk comes by."""
    written.add(root)
    yield encoded[root][:-1] + b',"children":['
    open_ones = [iter(children.get(root, ()))]
    is_first = True
    while open_ones:
        name = next((child for child in open_ones[-1] if child not in written), None)
        if name is None:
            open_ones.pop()
            yield b"]}"
            is_first = False
            continue
        written.add(name)
        yield (b"" if is_first else b",") + encoded[name][:-1] + b',"children":['
        open_ones.append(iter(children.get(name, ())))
        is_first = True


def _children(queues: Mapping[str, QueueView]) -> dict[str, list[str]]:
    """The names of the queues below each, in order; those at the root under no name."""
    children: dict[str, list[str]] = {}
    for name in sorted(queues):
        parent = queues[name].parent
        children.setdefault(parent if parent in queues else "", []).append(name)
    return children
