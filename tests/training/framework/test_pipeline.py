"""Plugins in their order, and those of third parties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from shoal.api.core import CONFIG_MAPS
from shoal.api.trainer import TrainJob, names
from shoal.kube.admission import FieldProblem, forbidden
from shoal.training.framework import Framework, Info, Plugin, Wanted, registry, wanted
from shoal.training.plugins import built_in, load_framework
from shoal.training.plugins.jobset import JobSets
from tests.training.builders import a_runtime, a_train_job

ORDER = ["PlainML", "Torch", "MPI", "JAX", "XGBoost", "Flux", "CoScheduling", "Volcano", "KAI", "PodGang", "JobSet"]


class Greeting(Plugin):
    """A plugin as its author writes it."""

    name = "Greeting"
    kinds = (CONFIG_MAPS.documents(),)

    def enforce_ml_policy(self, info: Info, train_job: TrainJob) -> Info:
        hello = {"name": "HELLO", "value": train_job.metadata.name}
        return info.with_trainer_set(lambda pods: pods.with_container(names.NODE, lambda node: node.with_env([hello])))

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        yield wanted(CONFIG_MAPS, f"{train_job.metadata.name}-greeting", {"data": {"hello": "world"}})

    def problems(self, info: Info, old: TrainJob | None, new: TrainJob) -> Iterable[FieldProblem]:
        if new.metadata.name == "rude":
            yield forbidden("metadata.name", "be polite")


class Second(JobSets):
    name = "Second"


class Broken(Plugin):
    name = "Broken"

    def __init__(self) -> None:
        raise RuntimeError("no")


def entry(name: str, attribute: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{attribute}", group=registry.ENTRY_POINTS)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs plugins of third parties for a test."""
    known = {"Greeting": Greeting, "Second": Second, "Broken": Broken, "Torch": type("T", (Plugin,), {"name": "Torch"})}

    def install(*plugins: str) -> None:
        found = [entry(name.lower(), name) for name in plugins]
        monkeypatch.setattr(registry, "entry_points", lambda group: found if group == registry.ENTRY_POINTS else [])
        monkeypatch.setattr(EntryPoint, "load", lambda self: known[self.value.partition(":")[2]])

    return install


def test_plugins_have_a_fixed_order_and_job_sets_are_last() -> None:
    assert [plugin.name for plugin in load_framework().plugins] == ORDER


def test_what_runs_pods_is_applied_last_wherever_it_was_given() -> None:
    framework = Framework([JobSets(), Greeting()])
    wanted_kinds = [one.resource.kind for one in framework.objects(a_train_job(), a_runtime())]
    assert wanted_kinds == ["ConfigMap", "JobSet"]


@pytest.mark.parametrize("plugins", [[], [Greeting()], [JobSets(), Second()]], ids=["none", "no runner", "two runners"])
def test_exactly_one_plugin_runs_pods(plugins: list[Plugin]) -> None:
    with pytest.raises(ValueError, match="exactly one plugin runs"):
        Framework(plugins)


def test_two_plugins_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two plugins are named 'Greeting'"):
        Framework([Greeting(), Greeting(), JobSets()])


def test_a_plugin_of_a_third_party_is_found_and_takes_part(installed: Any) -> None:
    installed("Greeting")
    framework = load_framework()
    assert [plugin.name for plugin in framework.plugins] == [*ORDER[:-1], "Greeting", "JobSet"]
    node = framework.info(a_train_job(), a_runtime()).pod_sets[0].containers[0]
    assert node.env == ({"name": "HELLO", "value": "demo"},)
    assert CONFIG_MAPS.documents() in framework.kinds


def test_a_plugin_may_refuse_a_train_job(installed: Any) -> None:
    installed("Greeting")
    framework = load_framework()
    assert not framework.problems(None, a_train_job(), a_runtime())
    [problem] = framework.problems(None, a_train_job("rude"), a_runtime())
    assert problem.path == "metadata.name"


@pytest.mark.parametrize("plugin", ["Broken", "Second", "Torch"], ids=["fails to load", "runs pods", "name is taken"])
def test_a_plugin_that_is_no_use_is_left_out_and_stops_nobody(installed: Any, plugin: str) -> None:
    installed("Greeting", plugin)
    assert [one.name for one in load_framework().plugins] == [*ORDER[:-1], "Greeting", "JobSet"]


def test_each_kind_is_named_once() -> None:
    kinds = [kind.plural for kind in Framework(built_in()).kinds]
    assert kinds == ["secrets", "configmaps", "podgroups", "podgroups", "podgroups", "podgangs"]


def test_an_info_is_a_value() -> None:
    info = Info(runtime="x")
    assert replace(info, labels={"a": "b"}) != info
    assert Info(runtime="x") == info
