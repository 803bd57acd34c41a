"""What wakes a TrainJob besides itself."""

from __future__ import annotations

from typing import Any

from shoal.api.core import CONFIG_MAPS
from shoal.api.meta import Document
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.kube import Change, Manager
from shoal.training.children import has_changed
from shoal.training.controller import LIMIT_RANGES, RUNTIME_CLASSES
from tests.support.waiting.at_rest import at_rest
from tests.training.builders import a_trainer
from tests.training.controller.stage import SNAPSHOT, Stage


def reconciles(manager: Manager) -> float:
    """How often TrainJobs were looked at."""
    samples = [sample for family in manager.metrics.reconciles.collect() for sample in family.samples]
    return sum(
        one.value
        for one in samples
        if one.labels["controller"] == "trainjob_controller" and one.name.endswith("_total")
    )


async def test_limits_and_runtime_classes_wake_those_that_wait(stage: Stage) -> None:
    await stage.add_runtime(jobs=[a_trainer(pod={"runtimeClassName": "nvidia"})])
    await stage.submit(suspend=True)
    async with stage.running() as manager:
        await stage.until_condition("Suspended")
        await at_rest(manager)
        before = reconciles(manager)
        limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
        await stage.cluster.make(LIMIT_RANGES, {"metadata": {"name": "small"}, "spec": limits})
        await at_rest(manager)
        assert reconciles(manager) == before + 1
        await stage.cluster.make(RUNTIME_CLASSES, {"metadata": {"name": "other"}, "handler": "other"})
        await at_rest(manager)
        assert reconciles(manager) == before + 1
        await stage.cluster.make(RUNTIME_CLASSES, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
        await at_rest(manager)
        assert reconciles(manager) == before + 2


async def test_they_do_not_wake_those_that_run(stage: Stage) -> None:
    await stage.add_runtime(jobs=[a_trainer(pod={"runtimeClassName": "nvidia"})])
    await stage.submit()
    async with stage.running() as manager:
        await stage.until_job_set()
        await at_rest(manager)
        before = reconciles(manager)
        limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
        await stage.cluster.make(LIMIT_RANGES, {"metadata": {"name": "small"}, "spec": limits})
        await stage.cluster.make(RUNTIME_CLASSES, {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
        await at_rest(manager)
        assert reconciles(manager) == before


async def test_what_a_scheduler_says_of_a_gang_wakes_nobody(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit(labels={"kai.scheduler/queue": "q"})
    async with stage.running() as manager:
        await stage.until_job_set()
        await at_rest(manager)
        before = reconciles(manager)
        [group] = await stage.cluster.all(POD_GROUPS)
        await stage.cluster.set_status(POD_GROUPS, group["metadata"]["name"], {"phase": "Running"})
        await at_rest(manager)
        assert reconciles(manager) == before


async def test_objects_of_others_are_not_held(stage: Stage) -> None:
    await stage.add_runtime()
    await stage.submit()
    await stage.cluster.make(CONFIG_MAPS, {"metadata": {"name": "theirs"}, "data": {"a": "b"}})
    async with stage.running() as manager:
        await stage.until_job_set()
        await at_rest(manager)
        held = [
            one.metadata.name
            for informer in manager.cache.informers
            if informer.resource.plural == "configmaps"
            for one in informer.items()
        ]
    assert held == [SNAPSHOT]


def a_child(**content: Any) -> Document:
    return Document.of({"metadata": {"name": "a", "labels": content.pop("labels", {})}, **content})


def test_a_child_matters_where_something_of_our_making_changed() -> None:
    one = a_child(data={"a": "b"})
    assert has_changed(Change(None, one))
    assert has_changed(Change(one, None))
    assert has_changed(Change(one, a_child(data={"a": "c"})))
    assert has_changed(Change(one, a_child(data={"a": "b"}, labels={"x": "y"})))
    assert not has_changed(Change(one, a_child(data={"a": "b"}, status={"phase": "Running"})))
