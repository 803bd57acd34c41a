"""What becomes of a cycle's decisions before the next: pods that were bound run, those that were evicted are new."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from shoal.scheduler.scenarios.cases import JobCase, Scenario, TaskCase
from shoal.scheduler.scenarios.engine import Outcome, TaskOutcome


def settled(scenario: Scenario, outcome: Outcome) -> Outcome:
    """The same outcome once everything that was decided has happened."""
    tasks = {
        name: _settled(outcome.tasks[name], is_deleted=job.deleted)
        for job in scenario.jobs
        for name, _ in job.named_tasks()
    }
    return Outcome(tasks, outcome.nodes, outcome.calls)


def next_scenario(scenario: Scenario, after: Outcome) -> Scenario:
    """The scenario with its tasks as a settled outcome left them."""
    return replace(scenario, jobs=tuple(_next_job(job, after.tasks) for job in scenario.jobs))


def _settled(task: TaskOutcome, *, is_deleted: bool) -> TaskOutcome:
    if task.state == "Binding":
        return TaskOutcome("Running", task.node, task.gpu_groups, task.gpus)
    if task.state == "Pipelined" or (task.state == "Releasing" and not is_deleted):
        return TaskOutcome("Pending")
    return task


def _next_job(job: JobCase, outcomes: Mapping[str, TaskOutcome]) -> JobCase:
    tasks = tuple(_next_task(task, outcomes[name]) for name, task in job.named_tasks())
    return replace(job, tasks=tasks)


def _next_task(task: TaskCase, outcome: TaskOutcome) -> TaskCase:
    return replace(task, state=outcome.state, node=outcome.node, gpu_groups=outcome.gpu_groups)
