"""What differs between an outcome and what was expected, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from shoal.scheduler.scenarios.cases import ExpectedTask, JobCase, MaxCalls, Scenario
from shoal.scheduler.scenarios.engine import Calls, Outcome, TaskOutcome

_CLOSE: Final = 1e-6
_HOLDS_NOTHING: Final = frozenset({"Pending", "Gated", "Succeeded", "Failed", "Unknown"})
_MAKES_ROOM: Final = _HOLDS_NOTHING | {"Releasing"}


def differences(scenario: Scenario, outcome: Outcome) -> list[str]:
    """Every difference in states, places, devices and nodes, in the order of the expectations."""
    found: list[str] = []
    shared: list[_OnDevices] = []
    for job, names, expected in _expectations(scenario):
        for name in names:
            task = outcome.tasks.get(name)
            if task is None:
                found.append(f"{name} is missing in the outcome")
                continue
            found += _in_place(name, task, expected)
            if expected.gpu_groups and _is_on_devices(job, name, task):
                shared.append(_OnDevices(name, task.node, expected.gpu_groups, task.gpu_groups))
        found += _in_gpus([outcome.tasks[name] for name in names if name in outcome.tasks], names, expected)
    return [*found, *_in_devices(scenario, shared), *_in_nodes(scenario, outcome)]


def too_many_calls(allowed: MaxCalls, calls: Calls) -> list[str]:
    """Which calls there were more of than one session may make."""
    bounds = (
        ("binds", allowed.binds, calls.binds),
        ("evictions", allowed.evictions, calls.evictions),
        ("pipelines", allowed.pipelines, calls.pipelines),
    )
    return [f"{made} {what}, at most {most} allowed" for what, most, made in bounds if most is not None and made > most]


def unmatched_expectations(scenario: Scenario) -> list[str]:
    """Names under ``expect.tasks`` that are no task: nothing can be compared there."""
    known = {name for job in scenario.jobs for name, _ in job.named_tasks()}
    return [name for name in scenario.expect.tasks if name not in known]


def overloaded_devices(scenario: Scenario, node: str) -> list[str]:
    """Devices of a node on which more is expected than they hold: no engine can be held to that.

    What ends there does not count: it makes room for what is promised.
    """
    size = scenario.nodes[node].gpu_memory
    taken: dict[str, float] = {}
    for job, names, expected in _expectations(scenario):
        tasks = dict(job.named_tasks())
        for name in names:
            if expected.node == node and job.shares_gpu(tasks[name]) and expected.state not in _MAKES_ROOM:
                for group in expected.gpu_groups or ():
                    taken[group] = taken.get(group, 0) + (job.gpu_memory or job.gpu_of(tasks[name]) * size)
    return [group for group, memory in taken.items() if memory > size + _CLOSE]


def _expectations(scenario: Scenario) -> Iterator[tuple[JobCase, list[str], ExpectedTask]]:
    jobs = {job.name: job for job in scenario.jobs}
    for name, expected in scenario.expect.jobs.items():
        yield jobs[name], [task for task, _ in jobs[name].named_tasks()], expected
    owners = {task: job for job in scenario.jobs for task, _ in job.named_tasks()}
    for name, expected in scenario.expect.tasks.items():
        if name in owners:
            yield owners[name], [name], expected


def _in_place(name: str, task: TaskOutcome, expected: ExpectedTask) -> Iterator[str]:
    if task.state != expected.state:
        where = f" on {task.node}" if task.node else ""
        yield f"{name} is {task.state}{where}, expected {expected.state}"
    if expected.node and task.node != expected.node:
        yield f"{name} is on {task.node or 'no node'}, expected {expected.node}"


def _in_gpus(tasks: Sequence[TaskOutcome], names: Sequence[str], expected: ExpectedTask) -> Iterator[str]:
    """GPUs received: of each task, or of all tasks of a job together. A task that waits has received none."""
    wanted = expected.gpus_accepted
    holding = [task for task in tasks if task.state not in _HOLDS_NOTHING]
    if wanted is None or not holding:
        return
    if all(_is_close(task.gpus, wanted) for task in holding) or _is_close(sum(task.gpus for task in holding), wanted):
        return
    yield f"{', '.join(names)} received {', '.join(f'{task.gpus:g}' for task in holding)} GPUs, expected {wanted:g}"


@dataclass(frozen=True, slots=True)
class _OnDevices:
    """A task with parts of GPUs: on which devices it is, by the expectation's names and by the engine's."""

    task: str
    node: str
    expected: tuple[str, ...]
    actual: tuple[str, ...]


def _is_on_devices(job: JobCase, name: str, task: TaskOutcome) -> bool:
    written = dict(job.named_tasks())[name]
    return job.shares_gpu(written) and bool(task.node) and task.state not in _HOLDS_NOTHING


def _in_devices(scenario: Scenario, tasks: Sequence[_OnDevices]) -> Iterator[str]:
    """Devices have no names of their own: those of a node match if some renaming, one to one, makes them equal."""
    by_node: dict[str, list[_OnDevices]] = {}
    for task in tasks:
        if len(set(task.actual)) != len(set(task.expected)):
            yield f"{task.task} is on {len(set(task.actual))} GPUs, expected {len(set(task.expected))}"
        else:
            by_node.setdefault(task.node, []).append(task)
    for node, sharing in sorted(by_node.items()):
        if not overloaded_devices(scenario, node) and not _can_rename(sharing, {}):
            told = "; ".join(f"{t.task} on {','.join(t.actual)}, expected {','.join(t.expected)}" for t in sharing)
            yield f"the GPUs of {node} are shared otherwise: {told}"


def _can_rename(tasks: Sequence[_OnDevices], names: Mapping[str, str]) -> bool:
    if not tasks:
        return True
    first, *others = tasks
    expected = sorted(set(first.expected))
    for actual in permutations(sorted(set(first.actual))):
        extended = {**names, **dict(zip(expected, actual, strict=True))}
        is_kept = all(extended[name] == names[name] for name in expected if name in names)
        if is_kept and len(set(extended.values())) == len(extended) and _can_rename(others, extended):
            return True
    return False


def _in_nodes(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    for name, expected in scenario.expect.nodes.items():
        node = outcome.nodes.get(name)
        if node is None:
            yield f"node {name} is missing in the outcome"
            continue
        if expected.idle_gpus is not None and not _is_close(node.idle_gpus, expected.idle_gpus):
            yield f"{name} has {node.idle_gpus:g} idle GPUs, expected {expected.idle_gpus:g}"
        if expected.releasing_gpus is not None and not _is_close(node.releasing_gpus, expected.releasing_gpus):
            yield f"{name} has {node.releasing_gpus:g} releasing GPUs, expected {expected.releasing_gpus:g}"


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, abs_tol=_CLOSE)
