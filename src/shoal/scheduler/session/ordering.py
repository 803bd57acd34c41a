"""Who comes first among the jobs of a queue, and among the tasks of a job: each plugin in turn, until one decides.

Only plugins that take part have a say, in the order in which they are configured; age decides what they leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.plugins.asking import NO_PLUGINS, Plugins
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.shares.job_order import elastic_state, job_rank

Rank = tuple[Any, ...]

_JOB_KEYS: Final[Mapping[str, Callable[[Job, int], float]]] = {
    "priority": lambda job, elastic: -job.priority,
    "elastic": lambda job, elastic: elastic,
}
_TASK_KEYS: Final[Mapping[str, Callable[[Task], float]]] = {
    "kubeflow": lambda task: task.rank[0],
    "ray": lambda task: task.rank[1],
    "taskorder": lambda task: task.rank[2],
}


class Ordering:
    """The order that settings and plugins make."""

    def __init__(self, settings: Settings, plugins: Plugins = NO_PLUGINS) -> None:
        own_jobs, own_tasks = plugins.job_keys(), plugins.task_keys()
        jobs = [name for name in settings.plugins if name in _JOB_KEYS or name in own_jobs]
        tasks = [name for name in settings.plugins if name in _TASK_KEYS or name in own_tasks]
        self._job_keys = [_JOB_KEYS.get(name) or _without_state(own_jobs[name]) for name in jobs]
        self._task_keys = [_TASK_KEYS.get(name) or own_tasks[name] for name in tasks]
        self.asks_for_jobs = bool(own_jobs)
        """Whether the order of jobs is a third party's, and may change though no job does."""
        self.job_rank: Callable[[Job], Rank] = job_rank if jobs == list(_JOB_KEYS) else self._job_rank
        """What jobs of a queue are sorted by."""
        self.task_rank: Callable[[Task], Rank] = attrgetter("order") if tasks == list(_TASK_KEYS) else self._task_rank
        """What tasks of a job are sorted by."""
        self.ranks_subgroups = settings.has("subgrouporder")
        """Whether subgroups come by what they lack, and not by name alone."""

    def job_rank_with(self, job: Job, elastic: int) -> Rank:
        """The same for a job whose elastic state is another than it seems, as some of its tasks are spoken for."""
        return (*(key(job, elastic) for key in self._job_keys), job.created, job.uid)

    def _job_rank(self, job: Job) -> Rank:
        return self.job_rank_with(job, elastic_state(job))

    def _task_rank(self, task: Task) -> Rank:
        return (*(key(task) for key in self._task_keys), task.created, task.uid)


def _without_state(key: Callable[[Job], float]) -> Callable[[Job, int], float]:
    return lambda job, elastic: key(job)
