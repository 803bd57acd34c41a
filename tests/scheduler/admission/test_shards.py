"""What is said of shards when they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.kai_scheduler import SchedulingShard
from shoal.scheduler.admission.shards import enabled_actions, shard_problems
from tests.support.schemas.corpus import needs_corpus, upstream_samples

ALL = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]


def a_shard(**spec: Any) -> SchedulingShard:
    return msgspec.convert({"metadata": {"name": "default"}, "spec": spec}, SchedulingShard)


def budgets(**said: Any) -> dict[str, Any]:
    return {"scenarioSearchBudgets": said}


def usage(**said: Any) -> dict[str, Any]:
    return {"usageDBConfig": {"clientType": "prometheus", "usageParams": said}}


SOUND: dict[str, dict[str, Any]] = {
    "nothing said": {},
    "flags and plugins that nobody knows": {"args": {"x": "y"}, "plugins": {"mine": {"priority": 5}}},
    "packed and spread": {"placementStrategy": {"gpu": "binpack", "cpu": "spread"}},
    "a depth of an action": {"queueDepthPerAction": {"reclaim": 10}},
    "a depth of an action of one's own": {"actions": {"mine": {"priority": 1}}, "queueDepthPerAction": {"mine": 10}},
    "runtimes": {"minRuntime": {"preemptMinRuntime": "1m", "reclaimMinRuntime": "0s"}},
    "budgets": budgets(
        maxActionSearchDuration={"default": "5m", "reclaim": "0s"},
        maxGeneratorSearchDuration={"default": "2m"},
        minJobSearchDuration="1s",
        maxJobSearchDuration="2s",
    ),
    "a minimum below the usual maximum": budgets(minJobSearchDuration="239s"),
    "a minimum below no maximum": budgets(minJobSearchDuration="1h", maxJobSearchDuration="0s"),
    "a window": usage(windowType="tumbling", windowSize="1w", halfLifePeriod="24h"),
    "a cron window": usage(windowType="cron", cronString="0 0 * * 1"),
}

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "another strategy": ({"placementStrategy": {"gpu": "pack"}}, ["spec.placementStrategy.gpu"]),
    "another strategy for CPU": ({"placementStrategy": {"cpu": "x"}}, ["spec.placementStrategy.cpu"]),
    "a depth of no action": ({"queueDepthPerAction": {"fly": 1}}, ["spec.queueDepthPerAction"]),
    "a depth of an action that is off": (
        {"queueDepthPerAction": {"preempt": 1}, "actions": {"preempt": {"enabled": False}}},
        ["spec.queueDepthPerAction"],
    ),
    "a depth of an action that spreading turns off": (
        {"queueDepthPerAction": {"consolidation": 1}, "placementStrategy": {"cpu": "spread"}},
        ["spec.queueDepthPerAction"],
    ),
    "a runtime that is none": (
        {"minRuntime": {"preemptMinRuntime": "long", "reclaimMinRuntime": "-1s"}},
        ["spec.minRuntime.preemptMinRuntime", "spec.minRuntime.reclaimMinRuntime"],
    ),
    "a budget that is none": (
        budgets(maxActionSearchDuration={"reclaim": "5"}, maxGeneratorSearchDuration={"default": "-2m"}),
        [
            "spec.scenarioSearchBudgets.maxActionSearchDuration[reclaim]",
            "spec.scenarioSearchBudgets.maxGeneratorSearchDuration[default]",
        ],
    ),
    "a minimum that is the maximum": (
        budgets(minJobSearchDuration="2s", maxJobSearchDuration="2s"),
        ["spec.scenarioSearchBudgets.minJobSearchDuration"],
    ),
    "a minimum beyond the usual maximum": (
        budgets(minJobSearchDuration="4m"),
        ["spec.scenarioSearchBudgets.minJobSearchDuration"],
    ),
    "another window": (usage(windowType="round"), ["spec.usageDBConfig.usageParams.windowType"]),
    "a cron window without times": (usage(windowType="cron"), ["spec.usageDBConfig.usageParams.cronString"]),
    "a half-life that is none": (usage(halfLifePeriod="1d"), ["spec.usageDBConfig.usageParams.halfLifePeriod"]),
}


@pytest.mark.parametrize("spec", SOUND.values(), ids=SOUND)
def test_a_sound_shard_passes(spec: dict[str, Any]) -> None:
    assert list(shard_problems(a_shard(**spec))) == []


@pytest.mark.parametrize(("spec", "fields"), REFUSED.values(), ids=REFUSED)
def test_what_no_scheduler_could_be_started_with_is_refused(spec: dict[str, Any], fields: list[str]) -> None:
    assert [problem.path for problem in shard_problems(a_shard(**spec))] == fields


@pytest.mark.parametrize(
    ("spec", "actions"),
    [
        pytest.param({}, ALL, id="all by default"),
        pytest.param(
            {"placementStrategy": {"gpu": "spread"}}, [each for each in ALL if each != "consolidation"], id="spread"
        ),
        pytest.param(
            {"placementStrategy": {"gpu": "spread"}, "actions": {"consolidation": {"enabled": True}}},
            ALL,
            id="spread, and asked for all the same",
        ),
        pytest.param({"actions": {"reclaim": {"priority": 9}}}, ALL, id="a priority turns nothing off"),
        pytest.param({"actions": {"mine": {}}}, [*ALL, "mine"], id="one's own is on"),
    ],
)
def test_actions_are_on_unless_they_are_turned_off(spec: dict[str, Any], actions: list[str]) -> None:
    assert enabled_actions(a_shard(**spec).spec) == actions


@needs_corpus
def test_the_shards_of_kais_examples_pass() -> None:
    samples = [sample for _, sample in upstream_samples("kai") if sample["kind"] == "SchedulingShard"]
    assert samples
    shards = [msgspec.convert(sample, SchedulingShard) for sample in samples]
    assert [str(problem) for shard in shards for problem in shard_problems(shard)] == []
