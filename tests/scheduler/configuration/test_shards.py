"""A shard as KAI's operator renders it, and as a scheduler reads what was rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from shoal.api.kai_scheduler import SchedulingShard
from shoal.scheduler.configuration import (
    ConfigurationError,
    configuration_of,
    configuration_text,
    engine_setup,
    read_configuration,
    shard_configuration,
    shard_options,
)
from shoal.scheduler.session.settings import Strategy

SAMPLES = Path(__file__).parents[4] / "shared" / "corpus" / "kai" / "samples"

PACKED = [
    "predicates",
    "proportion",
    "priority",
    "nodeavailability",
    "resourcetype",
    "podaffinity",
    "elastic",
    "kubeflow",
    "ray",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "minruntime",
    "topology",
    "snapshot",
    "sg-nodelocalgreedy",
    "sg-multinodegang",
    "gpupack",
    "nodeplacement",
    "gpusharingorder",
]
SPREAD = ["gpuspread" if name == "gpupack" else name for name in PACKED if name != "gpusharingorder"]
ALL_ACTIONS = "allocate, consolidation, reclaim, preempt, stalegangeviction"
MOVING_NOTHING = "allocate, reclaim, preempt, stalegangeviction"


def a_shard(**spec: Any) -> SchedulingShard:
    return msgspec.convert({"metadata": {"name": "default"}, "spec": spec}, SchedulingShard)


def a_sample(name: str) -> SchedulingShard:
    path = SAMPLES / name
    if not path.is_file():
        pytest.skip(f"the corpus is not here: {name}")
    return msgspec.convert(yaml.safe_load(path.read_text()), SchedulingShard, strict=False)


def plugins_of(shard: SchedulingShard) -> dict[str, dict[str, str]]:
    """The arguments of the plugins, in order."""
    [tier] = shard_configuration(shard)["tiers"]
    return {plugin["name"]: plugin.get("arguments", {}) for plugin in tier["plugins"]}


def test_the_default_shard_is_rendered_as_kais_operator_does() -> None:
    shard = a_sample("rendered__default-shard.yaml")
    assert shard_configuration(shard) == {
        "actions": ALL_ACTIONS,
        "tiers": [
            {
                "plugins": [
                    {"name": name, "arguments": {"cpu": "binpack", "gpu": "binpack"}}
                    if name == "nodeplacement"
                    else {"name": name}
                    for name in PACKED
                ]
            }
        ],
    }


@pytest.mark.parametrize(
    ("strategy", "plugins", "actions"),
    [
        pytest.param({}, PACKED, ALL_ACTIONS, id="nothing is said"),
        pytest.param({"gpu": "binpack", "cpu": "binpack"}, PACKED, ALL_ACTIONS, id="all is packed"),
        pytest.param({"gpu": "spread"}, SPREAD, MOVING_NOTHING, id="GPU pods are spread"),
        pytest.param({"cpu": "spread"}, PACKED, MOVING_NOTHING, id="CPU pods are spread"),
        pytest.param({"gpu": "spread", "cpu": "spread"}, SPREAD, MOVING_NOTHING, id="all is spread"),
    ],
)
def test_the_placement_strategy_chooses_plugins_and_actions(
    strategy: dict[str, str], plugins: list[str], actions: str
) -> None:
    shard = a_shard(placementStrategy=strategy)
    assert list(plugins_of(shard)) == plugins
    assert plugins_of(shard)["nodeplacement"] == {"cpu": "binpack", "gpu": "binpack", **strategy}
    assert shard_configuration(shard)["actions"] == actions


@pytest.mark.parametrize(
    ("spec", "plugin", "arguments"),
    [
        ({"kValue": 1.5}, "proportion", {"kValue": "1.5"}),
        ({"kValue": 2.0}, "proportion", {"kValue": "2"}),
        ({"minRuntime": {"preemptMinRuntime": "5m"}}, "minruntime", {"defaultPreemptMinRuntime": "5m"}),
        (
            {"minRuntime": {"preemptMinRuntime": "5m", "reclaimMinRuntime": "1h"}},
            "minruntime",
            {"defaultPreemptMinRuntime": "5m", "defaultReclaimMinRuntime": "1h"},
        ),
        (
            {"kValue": 1.5, "plugins": {"proportion": {"arguments": {"kValue": "3.0"}}}},
            "proportion",
            {"kValue": "3.0"},
        ),
        ({"plugins": {"nodeplacement": {"arguments": {"gpu": "spread"}}}}, "nodeplacement", {"gpu": "spread"}),
    ],
)
def test_what_a_shard_says_becomes_an_argument_and_arguments_replace_all_others(
    spec: dict[str, Any], plugin: str, arguments: dict[str, str]
) -> None:
    assert plugins_of(a_shard(**spec))[plugin] == arguments


def test_plugins_are_switched_moved_and_added() -> None:
    found = plugins_of(
        a_shard(
            plugins={
                "elastic": {"enabled": False},
                "predicates": {"priority": 50},
                "mine": {"priority": 1050, "arguments": {"key": "value"}},
                "last": {},
                "gpuspread": {"enabled": True},
            }
        )
    )
    names = list(found)
    assert "elastic" not in names
    assert names[-2:] == ["predicates", "last"]
    assert names[names.index("mine") - 1 : names.index("mine") + 2] == ["ray", "mine", "subgrouporder"]
    assert found["mine"] == {"key": "value"}
    assert names[names.index("gpupack") + 1] == "gpuspread"


def test_actions_are_switched_moved_and_added() -> None:
    actions = {"preempt": {"enabled": False}, "reclaim": {"priority": 450}, "theirs": {"priority": 150}}
    assert shard_configuration(a_shard(actions=actions))["actions"] == (
        "allocate, reclaim, consolidation, theirs, stalegangeviction"
    )
    spread = {"placementStrategy": {"gpu": "spread"}, "actions": {"consolidation": {"enabled": True}}}
    assert shard_configuration(a_shard(**spread))["actions"] == ALL_ACTIONS


def test_depths_budgets_and_the_usage_store_are_carried_over() -> None:
    budgets = {"maxActionSearchDuration": {"reclaim": "1m"}, "maxJobSearchDuration": "30s"}
    found = shard_configuration(
        a_shard(
            queueDepthPerAction={"allocate": 20},
            scenarioSearchBudgets=budgets,
            usageDBConfig={"clientType": "prometheus"},
        ),
        prometheus="http://usage:9090",
    )
    assert found["queueDepthPerAction"] == {"allocate": 20}
    assert found["scenarioSearchBudgets"] == budgets
    assert found["usageDBConfig"] == {"clientType": "prometheus", "connectionString": "http://usage:9090"}


def test_a_usage_store_with_an_address_of_its_own_keeps_it() -> None:
    shard = a_sample("examples__time-based-fairshare__scheduling-shard-managed-prometheus.yaml")
    found = shard_configuration(shard, prometheus="http://another:9090")["usageDBConfig"]
    assert found["connectionString"] == "http://prometheus-operated.kai-scheduler.svc.cluster.local:9090"
    assert found["usageParams"]["halfLifePeriod"] == "1h"


def test_the_text_of_the_config_map_is_read_as_what_the_shard_says() -> None:
    """The requirement's way: the ConfigMap's config.yaml is saved to a file, and the file given to a scheduler."""
    shard = a_shard(placementStrategy={"gpu": "spread"}, kValue=0.5, queueDepthPerAction={"reclaim": 3})
    read = read_configuration(configuration_text(shard), source="/tmp/kai-scheduler-config.yaml")
    assert read.remarks == ()
    assert read == configuration_of(shard_configuration(shard), source=read.source)
    found = engine_setup(read, shard_options(shard))
    assert found.actions == ("allocate", "reclaim", "preempt", "stalegangeviction")
    assert (found.settings.gpu_strategy, found.settings.cpu_strategy) == (Strategy.SPREAD, Strategy.BINPACK)
    assert (found.settings.k_value, found.settings.queue_depths) == (0.5, {"reclaim": 3})
    assert found.settings.has("gpuspread")
    assert not found.settings.has("gpupack")


def test_a_shards_flags_are_its_part_of_the_cluster_and_its_arguments() -> None:
    shard = a_shard(partitionLabelValue="a100", args={"qps": "100", "no-such-flag": "x", "leader-elect": "true"})
    found = shard_options(shard)
    assert (found.partition_label_value, found.qps, found.leader_elect) == ("a100", 100, True)
    assert shard_options(a_shard(args={"reserve-for-large-gangs": "true"})).reserve_for_large_gangs
    with pytest.raises(ConfigurationError, match=r"SchedulingShard default, spec\.args: --qps"):
        shard_options(a_shard(args={"qps": "lots"}))
