"""What tasks of one kind find on the nodes: how many nodes refuse them, and which resource is short on how many.

All of it is counted over arrays, once for all tasks that are alike. What is free counts together with what becomes
free, as for the scheduler itself. Where some of a gang's tasks had found room, what the others lack is what the nodes
would lack once they were full of such tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.explaining.words import ALIGNED_ROOM, GPU_MEMORY, in_people_s_units, resource_words
from shoal.scheduler.model.resources import GPU, PODS, Mask, widened
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.session.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Lack:
    """The node that lacks least of what a task needs."""

    node: str
    amounts: dict[str, float]
    """By resource, in the unit that people use."""


@dataclass(frozen=True, slots=True, eq=False)
class Shortage:
    """What all nodes are to tasks of one kind."""

    nodes: int
    refused: dict[str, int]
    """Nodes that are of the wrong kind, by the first reason of each."""
    short: dict[str, int]
    """Nodes without room for a single task, by resource; a node may be short of several."""
    short_when_full: dict[str, int]
    """Nodes by what they run out of first when they are filled with such tasks."""
    too_small: dict[str, float]
    """Resources of which no node that would do otherwise ever has enough: the most that one has."""
    room: int
    """How many tasks have room, all nodes together."""
    open_nodes: int
    """Nodes that have room for one."""
    nearest: Lack | None

    def reasons(self, *, others_placed: bool) -> dict[str, int]:
        """Nodes by reason, for a task that found none."""
        short = self.short_when_full if others_placed else self.short
        return {**self.refused, **{f"not enough {words}": count for words, count in short.items()}}


def shortage_of(session: Session, task: Task) -> Shortage:
    """What the nodes are to a task, and to all that are alike, as things stand."""
    nodes, request = session.nodes, task.request
    words = resource_words(nodes.resources)
    refused: dict[str, int] = {}
    if session.settings.has("predicates"):
        refused = session.filters.reasons(task.constraints, request)
    field = session.field(task)
    rows: Mask = field.static
    vector = widened(request.vector, nodes.idle.shape[1])
    asked = np.flatnonzero(vector > 0)
    later = (nodes.idle[:, asked] + nodes.releasing[:, asked])[rows]
    each = np.maximum(0, np.floor(later / vector[asked]))  # [rows, asked]
    rooms = np.maximum(0, field.rooms()[rows])
    is_impossible = _is_impossible(request, nodes.gpu_memory[rows])
    rooms[is_impossible] = 0
    by_zones = np.zeros(len(rooms), dtype=np.bool_)
    if field.zones is not None:
        aligned = field.zones.rooms(np.maximum(0, field.rooms()))[rows]
        by_zones = aligned < rooms
        rooms = np.minimum(rooms, aligned)
    is_full = rooms == 0
    short: dict[str, int] = {}
    short_when_full: dict[str, int] = {}
    for column, place in enumerate(asked.tolist()):
        _count(short, words[place], is_full & (each[:, column] == 0))
        _count(short_when_full, words[place], each[:, column] == rooms)
    _count(short, ALIGNED_ROOM, is_full & by_zones)
    _count(short_when_full, ALIGNED_ROOM, by_zones)
    if request.is_shared:
        by_devices = (rooms < each.min(axis=1, initial=np.inf)) & ~by_zones
        _count(short, words[GPU], is_full & by_devices & ~is_impossible)
        _count(short_when_full, words[GPU], by_devices & ~is_impossible)
        for counts in (short, short_when_full):
            _count(counts, GPU_MEMORY, is_impossible)
    largest = nodes.allocatable[rows].max(axis=0, initial=0.0)
    return Shortage(
        nodes=len(nodes),
        refused=refused,
        short=short,
        short_when_full=short_when_full,
        too_small={
            words[place]: in_people_s_units(place, float(largest[place]))
            for place in asked.tolist()
            if place != PODS and rows.any() and largest[place] < vector[place]
        },
        room=int(rooms.sum()),
        open_nodes=int(np.count_nonzero(rooms)),
        nearest=_nearest(session, np.flatnonzero(rows), asked, vector[asked], later, words),
    )


def _count(counts: dict[str, int], words: str, nodes: Mask) -> None:
    if count := int(np.count_nonzero(nodes)):
        counts[words] = counts.get(words, 0) + count


def _is_impossible(request: Request, sizes: NDArray[np.int64]) -> Mask:
    """[rows] whether one of the node's devices is too small for what is asked of each."""
    if not request.is_shared:
        return np.zeros(len(sizes), dtype=np.bool_)
    known = {int(size): request.memory_on(int(size)) > size for size in np.unique(sizes)}
    return np.array([known[int(size)] for size in sizes], dtype=np.bool_)


def _nearest(
    session: Session,
    rows: NDArray[np.intp],
    asked: NDArray[np.intp],
    vector: NDArray[np.float64],
    later: NDArray[np.float64],
    words: dict[int, str],
) -> Lack | None:
    """Of the nodes that are large enough, the one that lacks least: of GPUs first, then of all by part of the need."""
    enough = (session.nodes.allocatable[np.ix_(rows, asked)] >= vector).all(axis=1)
    if not enough.any():
        return None
    lacking = np.maximum(0.0, vector - later)[enough]
    relative = lacking / vector
    gpus = relative[:, asked == GPU].sum(axis=1)
    place = int(np.lexsort((relative.sum(axis=1), gpus))[0])
    amounts = {
        words[resource]: in_people_s_units(resource, float(lacking[place, column]))
        for column, resource in enumerate(asked.tolist())
        if lacking[place, column] > 0
    }
    return Lack(session.nodes.nodes[int(rows[enough][place])].name, amounts)
