"""``shoal crds``: what it prints, and what it says to a name it does not know."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from shoal.api.definitions import ALL, DIALECTS
from tests.support.programs.command import environment, shoal

GROUPS = sorted({definition.group for definition in (*ALL, *DIALECTS)})


def printed(*arguments: str) -> list[dict[str, Any]]:
    done = shoal("crds", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.load_all(done.stdout, Loader=yaml.CSafeLoader))


def test_yaml_holds_every_definition_as_it_was_generated() -> None:
    assert printed() == [definition.manifest() for definition in ALL]


def test_json_is_one_list_that_kubectl_takes() -> None:
    done = shoal("crds", "-o", "json")
    assert json.loads(done.stdout) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": [definition.manifest() for definition in ALL],
    }


def test_definitions_come_in_the_order_of_their_names() -> None:
    for definitions in (ALL, DIALECTS):
        names = [(definition.group, definition.resource.plural) for definition in definitions]
        assert names == sorted(set(names))


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_same_bytes_each_time(output: str) -> None:
    runs = {
        shoal("crds", "-o", output, env=environment(PYTHONHASHSEED=seed)).stdout.encode() for seed in ("0", "1", "2")
    }
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(
            ["--group", "kai.scheduler"],
            {f"{plural}.kai.scheduler" for plural in ("configs", "schedulingshards", "topologies")},
            id="one group",
        ),
        pytest.param(
            ["-g", "kai.scheduler", "-g", "scheduling.run.ai"],
            {definition.name for definition in ALL if definition.group in ("kai.scheduler", "scheduling.run.ai")},
            id="two groups",
        ),
        pytest.param(["--kind", "Queue"], {"queues.scheduling.run.ai"}, id="one kind, of our own"),
        pytest.param(
            ["--group", "scheduling.volcano.sh"],
            {"podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"},
            id="a group of somebody else",
        ),
        pytest.param(["--kind", "ComputeDomain"], {"computedomains.resource.nvidia.com"}, id="a kind of somebody else"),
        pytest.param(
            ["-g", "grove.io", "-g", "scheduling.sigs.k8s.io", "-k", "PodClique", "-k", "PodGroup"],
            {"podcliques.grove.io", "podgroups.scheduling.sigs.k8s.io"},
            id="kinds of groups of both",
        ),
        pytest.param(
            ["-k", "queue", "-k", "TOPOLOGY"], {"queues.scheduling.run.ai", "topologies.kai.scheduler"}, id="any case"
        ),
        pytest.param(
            ["-g", "scheduling.run.ai", "-k", "PodGroup"], {"podgroups.scheduling.run.ai"}, id="a kind of a group"
        ),
    ],
)
def test_groups_and_kinds_can_be_chosen(arguments: list[str], names: set[str]) -> None:
    assert {manifest["metadata"]["name"] for manifest in printed(*arguments)} == names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--group", "nobody.example"], ["--group", "nobody.example", *GROUPS], id="group"),
        pytest.param(["--kind", "Nobody"], ["--kind", "Nobody", "Queue", "Topology"], id="kind"),
        pytest.param(
            ["--group", "kai.scheduler", "--kind", "Queue"], ["--kind", "Queue", "Topology"], id="kind of another group"
        ),
        pytest.param(["-o", "xml"], ["--output", "xml", "yaml", "json"], id="output"),
    ],
)
def test_an_unknown_name_is_refused_in_one_line_that_names_the_known_ones(
    arguments: list[str], said: list[str]
) -> None:
    done = shoal("crds", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    for word in said:
        assert word in done.stderr
