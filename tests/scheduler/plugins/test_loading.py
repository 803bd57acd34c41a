"""Plugins by their entry points: modules, objects and classes; and those that are left out, each with its reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal.scheduler.configuration import PluginChoice
from shoal.scheduler.plugins import Plugins, installed_names, load_plugins
from tests.scheduler.session.worlds import World

SOURCE = """
def score(nodes, task, arguments):
    return nodes.idle("gpu")

class Policy:
    def job_order(self, job, arguments):
        return float(arguments["key"])

policy = Policy()

class Broken:
    def __init__(self):
        raise RuntimeError("no")

class Nothing:
    pass

class Strange:
    def filter(self, task):
        return None
"""

Install = Callable[[dict[str, str]], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with these entry points."""

    def installed(entries: dict[str, str]) -> None:
        (tmp_path / "policies_for_tests.py").write_text(SOURCE)
        facts = tmp_path / "policies-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: policies\nVersion: 1.0\n")
        lines = [f"{name} = policies_for_tests{value}" for name, value in entries.items()]
        (facts / "entry_points.txt").write_text("\n".join(["[shoal.scheduler.plugins]", *lines, ""]))
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "policies_for_tests", raising=False)

    return installed


def load(*names: str) -> Plugins:
    return load_plugins([PluginChoice(name=name, arguments={"key": "7"}) for name in names])


@pytest.mark.parametrize(
    ("value", "looks_at_nodes"), [("", True), (":policy", False), (":Policy", False)], ids=["module", "object", "class"]
)
def test_a_module_an_object_or_a_class_is_a_plugin(install: Install, value: str, *, looks_at_nodes: bool) -> None:
    install({"mine": value})
    assert set(installed_names()) == {"mine"}
    found = load("predicates", "mine", "priority")
    assert found.names == ("mine",)
    assert found.look_at_nodes is looks_at_nodes


def test_a_plugin_has_the_arguments_of_the_configuration(install: Install) -> None:
    install({"mine": ":Policy"})
    assert load("mine").job_keys()["mine"](World({}).job("job")) == 7.0


def test_plugins_come_in_the_order_of_the_configuration_and_only_those_that_it_names(install: Install) -> None:
    install({"a": "", "b": "", "c": ""})
    assert load("c", "predicates", "a").names == ("c", "a")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(":Broken", {"error": "RuntimeError('no')"}, id="it fails"),
        pytest.param(":missing", {"event": "plugin left out: it does not load"}, id="it is not there"),
        pytest.param(
            ":Nothing",
            {"problem": "it offers none of filter, score, job_order, task_order, validate"},
            id="it offers nothing",
        ),
        pytest.param(":Strange", {"problem": "its filter must take (nodes, task, arguments)"}, id="it takes another"),
    ],
)
def test_one_that_is_no_use_is_told_and_stops_nobody_else(install: Install, value: str, told: dict[str, Any]) -> None:
    install({"bad": value, "good": ""})
    with capture_logs() as logs:
        assert load("bad", "good").names == ("good",)
    [line] = logs
    assert line.items() >= {"plugin": "bad", **told}.items()


def test_a_name_that_comes_with_shoal_is_taken(install: Install) -> None:
    install({"priority": "", "mine": ""})
    with capture_logs() as logs:
        assert set(installed_names()) == {"mine"}
    assert [line["plugin"] for line in logs] == ["priority"]
