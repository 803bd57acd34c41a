"""What a plugin may offer, and what it sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Task

Arguments = Mapping[str, str]
"""What the configuration file says under the plugin's ``arguments``."""
Column = NDArray[np.float64]
"""[nodes]"""


class NodeTable:
    """All nodes, column by column, in the order of their names. Columns say how it is now, and cannot be written to."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._labels: dict[str, NDArray[np.str_]] = {}
        self.names: NDArray[np.str_] = np.array([node.name for node in nodes.nodes], dtype=np.str_)
        """[nodes]"""

    def __len__(self) -> int:
        return len(self._nodes)

    def allocatable(self, resource: str) -> Column:
        """[nodes] what there is in all: ``cpu`` in thousandths, ``memory`` in bytes, ``gpu``, ``pods`` or others."""
        return self._column(self._nodes.allocatable, resource)

    def idle(self, resource: str) -> Column:
        """[nodes] what is free now."""
        return self._column(self._nodes.idle, resource)

    def releasing(self, resource: str) -> Column:
        """[nodes] what becomes free when pods that are ending are gone, less what was promised of it."""
        return self._column(self._nodes.releasing, resource)

    def label(self, name: str) -> NDArray[np.str_]:
        """[nodes] the value of a label; "" where a node has none."""
        found = self._labels.get(name)
        if found is None:
            values = [node.labels.get(name, "") for node in self._nodes.nodes]
            found = self._labels[name] = np.array(values, dtype=np.str_)
            found.flags.writeable = False
        return found

    @property
    def is_ready(self) -> Mask:
        """[nodes] whether each is at work."""
        return self._nodes.is_ready

    def _column(self, amounts: NDArray[np.float64], resource: str) -> Column:
        place = self._nodes.resources.known().get(resource)
        if place is None or place >= amounts.shape[1]:
            return np.zeros(len(self._nodes))
        column = amounts[:, place]
        column.flags.writeable = False
        return column


Filter = Callable[[NodeTable, Task, Arguments], Mask]
"""[nodes] where a task may go, among all; a plugin's no is final."""
Score = Callable[[NodeTable, Task, Arguments], Column]
"""[nodes] points, added to those of others: more is better."""
JobOrder = Callable[[Job, Arguments], float]
"""A number by which the jobs of one queue are sorted: less comes first."""
TaskOrder = Callable[[Task, Arguments], float]
"""A number by which the tasks of one job are sorted: less is placed first, and evicted last."""
Validate = Callable[[Job, Arguments], str | None]
"""Why a job must get nothing for now, for people to read; None where it may."""

FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "filter": ("nodes", "task", "arguments"),
    "score": ("nodes", "task", "arguments"),
    "job_order": ("job", "arguments"),
    "task_order": ("task", "arguments"),
    "validate": ("job", "arguments"),
}
"""What a plugin may offer, and what each is called with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin that takes part, with what it offers."""

    name: str
    arguments: Arguments = field(default_factory=dict)
    filter: Filter | None = None
    score: Score | None = None
    job_order: JobOrder | None = None
    task_order: TaskOrder | None = None
    validate: Validate | None = None
