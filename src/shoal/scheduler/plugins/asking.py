"""Asking plugins. What one answers is checked before it counts; what fails is told once, and counts for nothing.

So the worst that a plugin can do to a cycle is to be of no use to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import structlog

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.plugins.surface import Arguments, Column, NodeTable, Plugin

log = structlog.get_logger("shoal.scheduler.plugins")

Answer = TypeVar("Answer")


class _WrongAnswerError(Exception):
    """An answer that cannot be used."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plugin's word that a job must get nothing for now."""

    plugin: str
    message: str


class Plugins:
    """The plugins of third parties that take part, in order."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.names = tuple(plugin.name for plugin in plugins)
        self._plugins = tuple(plugins)
        self._told: set[tuple[str, str]] = set()
        self.look_at_nodes = any(plugin.filter or plugin.score for plugin in plugins)
        """Whether any has something to say about where tasks go."""
        self.validate_jobs = any(plugin.validate for plugin in plugins)
        """Whether any has something to say about which jobs may start."""

    def mask(self, nodes: NodeTable, task: Task) -> Mask | None:
        """[nodes] where all of them let a task go; None: everywhere."""
        mask: Mask | None = None
        for _, answer in self.filters(nodes, task):
            mask = answer if mask is None else mask & answer
        return mask

    def filters(self, nodes: NodeTable, task: Task) -> Iterator[tuple[str, Mask]]:
        """[nodes] where each lets a task go, by its name."""
        for plugin in self._plugins:
            if plugin.filter is not None:
                answer = self._ask(plugin, "filter", plugin.filter, nodes, task, check=_mask(len(nodes)))
                if answer is not None:
                    yield plugin.name, answer

    def points(self, nodes: NodeTable, task: Task) -> Column | None:
        """[nodes] the points of all of them together; None: none."""
        points: Column | None = None
        for plugin in self._plugins:
            if plugin.score is not None:
                answer = self._ask(plugin, "score", plugin.score, nodes, task, check=_column(len(nodes)))
                if answer is not None:
                    points = answer if points is None else points + answer
        return points

    def job_keys(self) -> Mapping[str, Callable[[Job], float]]:
        """By plugin, what jobs of a queue are sorted by."""
        return {one.name: self._key(one, "job_order", one.job_order) for one in self._plugins if one.job_order}

    def task_keys(self) -> Mapping[str, Callable[[Task], float]]:
        """By plugin, what tasks of a job are sorted by."""
        return {one.name: self._key(one, "task_order", one.task_order) for one in self._plugins if one.task_order}

    def refusal(self, job: Job) -> Refusal | None:
        """The first no to a job, if there is any."""
        for plugin in self._plugins:
            if plugin.validate is not None:
                message = self._ask(plugin, "validate", plugin.validate, job, check=_message)
                if message:
                    return Refusal(plugin.name, message)
        return None

    def _key(
        self, plugin: Plugin, function: str, key: Callable[[Answer, Arguments], float]
    ) -> Callable[[Answer], float]:
        def asked(one: Answer) -> float:
            answer = self._ask(plugin, function, key, one, check=_number)
            return 0.0 if answer is None else answer

        return asked

    def _ask(
        self,
        plugin: Plugin,
        function: str,
        ask: Callable[..., object],
        *about: object,
        check: Callable[[object], Answer],
    ) -> Answer | None:
        try:
            return check(ask(*about, plugin.arguments))
        except Exception as error:
            # Somebody else's code, which may fail in any way.
            if (plugin.name, function) not in self._told:
                self._told.add((plugin.name, function))
                problem = str(error) if isinstance(error, _WrongAnswerError) else repr(error)
                log.error(
                    "plugin failed, and is left out wherever it does",
                    plugin=plugin.name,
                    function=function,
                    error=problem,
                )
            return None


NO_PLUGINS: Final = Plugins()


def _mask(count: int) -> Callable[[object], Mask]:
    def check(answer: object) -> Mask:
        if not isinstance(answer, np.ndarray) or answer.dtype != np.bool_ or answer.shape != (count,):
            raise _WrongAnswerError(f"it answered {_shown(answer)}: an array of {count} booleans is wanted")
        return answer

    return check


def _column(count: int) -> Callable[[object], Column]:
    def check(answer: object) -> Column:
        is_column = isinstance(answer, np.ndarray) and answer.shape == (count,) and answer.dtype.kind in "fiub"
        column = np.asarray(answer if is_column else np.nan, dtype=np.float64)
        if not np.isfinite(column).all():
            raise _WrongAnswerError(f"it answered {_shown(answer)}: an array of {count} finite numbers is wanted")
        return column

    return check


def _number(answer: object) -> float:
    if not isinstance(answer, int | float | np.number) or not np.isfinite(answer):
        raise _WrongAnswerError(f"it answered {_shown(answer)}: a finite number is wanted")
    return float(answer)


def _message(answer: object) -> str:
    if answer is None:
        return ""
    if not isinstance(answer, str):
        raise _WrongAnswerError(f"it answered {_shown(answer)}: a sentence or None is wanted")
    return answer


def _shown(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array of shape {answer.shape} and type {answer.dtype}"
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."
