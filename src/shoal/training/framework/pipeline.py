"""The way from a TrainJob to its objects, through all plugins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.api.meta import Document, Resource
from shoal.api.trainer import TrainingRuntimeSpec, TrainJob
from shoal.kube.admission import FieldProblem
from shoal.training.framework.info import Info, Seen, nothing_seen
from shoal.training.framework.making import make_info
from shoal.training.framework.plugin import Outcome, Plugin, Wanted


class Framework:
    """Plugins in a fixed order: as they are given, but what runs the pods comes last and so is applied last."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        given = list(plugins)
        runners = [plugin for plugin in given if plugin.runs is not None]
        if len(runners) != 1:
            named = ", ".join(plugin.name for plugin in runners) or "none"
            raise ValueError(f"exactly one plugin runs a TrainJob's pods, not {named}: give the JobSet plugin alone")
        names = [plugin.name for plugin in given]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f"two plugins are named {twice!r}: rename one")
        self._runner = runners[0]
        self.plugins: tuple[Plugin, ...] = (*(one for one in given if one is not self._runner), self._runner)

    @property
    def runs(self) -> Resource[Document]:
        """The kind of the objects that run pods; such an object has its TrainJob's name."""
        assert self._runner.runs is not None
        return self._runner.runs

    @property
    def kinds(self) -> Sequence[Resource[Document]]:
        """All kinds that plugins build, besides that which runs pods."""
        found = dict.fromkeys(kind for plugin in self.plugins for kind in plugin.kinds)
        return [kind for kind in found if kind != self.runs]

    def info(self, train_job: TrainJob, runtime: TrainingRuntimeSpec, seen: Seen = nothing_seen) -> Info:
        """The runtime as it applies to a TrainJob, with all that plugins say of it. Raises Unbuildable."""
        info = make_info(train_job, runtime, seen)
        for plugin in self.plugins:
            info = plugin.enforce_ml_policy(info, train_job)
        for plugin in self.plugins:
            info = plugin.enforce_pod_group_policy(info, train_job)
        for plugin in self.plugins:
            info = plugin.enforce_pod_spec(info, train_job)
        for plugin in self.plugins:
            info = plugin.pre_build_sync(info, train_job)
        return info

    def objects(self, train_job: TrainJob, runtime: TrainingRuntimeSpec, seen: Seen = nothing_seen) -> list[Wanted]:
        """What should be there for a TrainJob, in the order in which it is made. Raises Unbuildable."""
        info = self.info(train_job, runtime, seen)
        return [each for plugin in self.plugins for each in plugin.build(info, train_job)]

    def problems(self, old: TrainJob | None, new: TrainJob, runtime: TrainingRuntimeSpec) -> list[FieldProblem]:
        """Why plugins would not have a TrainJob, or its change, with this runtime."""
        asked = [plugin for plugin in self.plugins if type(plugin).problems is not Plugin.problems]
        if not asked:
            return []  # our own rules are admission's
        info = make_info(new, runtime)
        return [problem for plugin in asked for problem in plugin.problems(info, old, new)]

    def outcome(self, seen: Document) -> Outcome:
        """What has come of a TrainJob, by the object that runs its pods."""
        return self._runner.outcome(seen)
