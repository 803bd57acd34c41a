"""Why a job waits, as far as it is known when it is tried: told in full only to those who ask."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.scheduler.model.tasks import Task
from shoal.scheduler.shares.capacity import Excess


@dataclass(frozen=True, slots=True)
class OverCapacity:
    """Its queue, or one above it, may not have so much."""

    excess: Excess


@dataclass(frozen=True, slots=True)
class NoRoom:
    """No node has room for a task, when so many others of the job had been placed."""

    task: Task
    placed: int
    kept_for: tuple[str, str] | None = None
    """The job for which nodes are kept that would have had room."""


@dataclass(frozen=True, slots=True)
class NotNear:
    """No domain of a topology has room for a subgroup."""

    message: str
    is_hopeless: bool
    """Whether no eviction can help."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a task refers to is not there."""

    task: Task
    message: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A plugin says that it must not start."""

    plugin: str
    message: str


Failure = OverCapacity | NoRoom | NotNear | Missing | Refused
