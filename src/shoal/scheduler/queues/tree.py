"""Which queues are above and below which. Parents are only names: they may be missing, or lead back in a circle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

ParentOf = Callable[[str], str | None]
"""The parent that a queue names, empty at a root; None where there is no such queue."""
ChildrenOf = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Orphaned:
    """Why a queue belongs to no tree."""

    reason: str
    message: str


def ancestors(name: str, parent_of: ParentOf) -> Iterator[str]:
    """The queues above a queue, nearest first; each once, and the queue itself not even in a circle."""
    seen = {name}
    current = parent_of(name)
    while current and current not in seen:
        yield current
        seen.add(current)
        current = parent_of(current)


def descendants(name: str, children_of: ChildrenOf) -> Iterator[str]:
    """The queues below a queue; each once, and the queue itself not even in a circle."""
    seen = {name}
    waiting = [name]
    while waiting:
        for child in children_of(waiting.pop()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def orphaned(name: str, parent_of: ParentOf) -> Orphaned | None:
    """Why the way up from a queue leads to no root, if it does not."""
    seen = {name}
    child, current = name, parent_of(name)
    while current:
        if current in seen:
            return Orphaned("ParentCycle", f"the way up leads back to queue {current!r}: make one of them a root")
        above = parent_of(current)
        if above is None:
            whose = "its parent" if child == name else f"the parent of {child!r}"
            return Orphaned("ParentNotFound", f"queue {current!r}, {whose}, does not exist: create it or name another")
        seen.add(current)
        child, current = current, above
    return None
