"""Reading case files: units and defaults, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.scheduler.scenarios import DivisionCase, Scenario, UnreadableFileError, read
from shoal.scheduler.scenarios.cases import mig_resource
from tests.scheduler.scenarios.builders import a_scenario, refusal


def test_what_is_not_written_takes_its_default() -> None:
    scenario = a_scenario(nodes={"n0": {}}, queues=[{"name": "a"}], jobs=[], expect={})

    node, queue = scenario.nodes["n0"], scenario.queues[0]

    assert (node.gpus, node.gpu_memory, node.cpu, node.memory, node.max_pods) == (0, 100, 20_000, 20e9, 110)
    assert (queue.gpu_quota, queue.weight, queue.gpu_limit, queue.priority) == (0, 0, -1, 100)
    assert (queue.cpu_quota_milli, queue.memory_quota_mb, queue.reclaim_min_runtime_s) == (-1, -1, None)
    assert (scenario.rounds, scenario.stable_rounds, scenario.config) == (1, 0, None)


def test_a_job_takes_its_defaults() -> None:
    job = a_scenario().jobs[1]

    assert (job.priority, job.cpu, job.memory, job.gpu_fraction_devices) == (50, 1, 1e9, 1)
    assert [leaf.name for leaf in job.tree().leaves()] == ["default"]
    assert [leaf.min_member for leaf in job.tree().leaves()] == [1]


def test_a_weight_of_minus_one_is_one() -> None:
    assert a_scenario(queues=[{"name": "a", "gpu_weight": -1}]).queues[0].weight == 1


@pytest.mark.parametrize(
    ("written", "is_preemptible"),
    [
        ({"priority": 99}, True),
        ({"priority": 100}, False),
        ({"priority": 50, "preemptibility": "non-preemptible"}, False),
        ({"priority": 125, "preemptibility": "preemptible"}, True),
    ],
)
def test_preemptibility_is_said_or_follows_from_the_priority(written: dict[str, Any], is_preemptible: bool) -> None:
    job = {"name": "j", "queue": "a", "tasks": [{"state": "Pending"}], **written}

    assert a_scenario(jobs=[job], expect={}).jobs[0].is_preemptible is is_preemptible


def test_every_node_has_its_labels() -> None:
    node = a_scenario(nodes={"n0": {"gpus": 2, "labels": {"rack": "r1"}}}).nodes["n0"]

    assert node.all_labels("n0") == {"kai.scheduler/type": "n0", "nvidia.com/gpu.count": "2", "rack": "r1"}


def test_a_node_with_mixed_instances_has_no_whole_gpus() -> None:
    node = a_scenario(nodes={"n0": {"gpus": 2, "mig_strategy": "mixed"}}).nodes["n0"]

    assert node.whole_gpus == 0


@pytest.mark.parametrize("written", ["1g.10gb", "mig-1g.10gb", "nvidia.com/mig-1g.10gb"])
def test_a_profile_has_one_name(written: str) -> None:
    assert mig_resource(written) == "nvidia.com/mig-1g.10gb"


def test_pods_that_name_no_group_have_one_of_their_own() -> None:
    job = {
        "name": "j",
        "queue": "a",
        "sub_groups": {"groups": [{"name": "lead", "min_member": 1}]},
        "tasks": [{"state": "Pending", "sub_group": "lead"}, {"state": "Pending"}],
    }

    tree = a_scenario(jobs=[job], expect={}).jobs[0].tree()

    assert [(leaf.name, leaf.min_member) for leaf in tree.leaves()] == [("lead", 1), ("default", 2)]


def test_numbers_may_stand_for_names_of_devices() -> None:
    task = {"state": "Running", "node": "n0", "gpu_groups": [0, "1"]}
    job = {"name": "j", "queue": "a", "gpu": 0.5, "tasks": [task]}

    assert a_scenario(jobs=[job], expect={}).jobs[0].tasks[0].gpu_groups == ("0", "1")


@pytest.mark.parametrize(
    ("changes", "field", "why"),
    [
        ({"nodes": {"n0": {"gpus": "many"}}}, "nodes[...].gpus", "int"),
        ({"queues": [{"name": "a", "gpu_qouta": 2}]}, "queues[0]", "gpu_qouta"),
        ({"actions": "allot"}, "actions", "allot"),
        ({"queues": [{"name": "a", "parent": "org"}]}, "queues[0].parent", "no queue 'org'"),
        ({"expect": {"jobs": {"who": {"state": "Running"}}}}, "expect.jobs.who", "no such job"),
        ({"expect": {"nodes": {"n9": {"idle_gpus": 1}}}}, "expect.nodes.n9", "no such node"),
        ({"jobs": [{"name": "j", "queue": "a", "tasks": [{"state": "Rnning"}]}]}, "jobs[0].tasks[0].state", "Rnning"),
        (
            {"jobs": [{"name": "j", "queue": "a", "tasks": [{"state": "Running", "node": "n7"}]}]},
            "jobs[0].tasks[0].node",
            "no node 'n7'",
        ),
        (
            {"jobs": [{"name": "j", "queue": "a", "tasks": [{"state": "Pending", "sub_group": "g"}]}]},
            "jobs[0].tasks[0].sub_group",
            "'g'",
        ),
        ({"jobs": [{"name": "j", "queue": "a", "tasks": []}] * 2, "expect": {}}, "jobs", "same name"),
    ],
)
def test_a_case_that_cannot_be_read_says_where_and_why(changes: dict[str, Any], field: str, why: str) -> None:
    error = refusal(**changes)

    assert (error.path, error.case, error.field) == ("cases.yaml", "case", field)
    assert why in error.why
    assert str(error).startswith("cases.yaml: case case: ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("just words", "neither a list `scenarios` nor a list `cases`"),
        ("scenarios: 3", "neither a list `scenarios` nor a list `cases`"),
        ("scenarios: [", "no YAML"),
    ],
)
def test_a_file_without_cases_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(text)

    with pytest.raises(UnreadableFileError, match=why):
        read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="No such file"):
        read(tmp_path / "none.yaml")


def test_a_case_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(
        "cases:\n- {id: bad, total: much, queues: [], expect: {}}\n- {id: good, total: 1e3, queues: [], expect: {}}\n"
    )

    bad, good = read(path).cases

    assert "total" in str(bad)
    assert isinstance(good, DivisionCase)
    assert good.total == 1000


def test_the_kind_of_a_file_is_told_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text("scenarios:\n- {id: s, actions: all, nodes: {}, queues: [], jobs: [], expect: {}}\n")

    (case,) = read(path).cases

    assert isinstance(case, Scenario)
