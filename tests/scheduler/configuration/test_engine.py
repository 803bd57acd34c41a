"""File and flags as the engine's settings: every argument of a plugin, every flag that decides something."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shoal.scheduler.configuration import EngineSetup, configuration_of, engine_setup, parse_arguments
from shoal.scheduler.session.filters import FilterSettings
from shoal.scheduler.session.settings import ACTIONS, Settings, Strategy


def a_setup(*flags: str, **arguments: dict[str, Any]) -> EngineSetup:
    """Flags, and plugins with their arguments."""
    document: dict[str, Any] = {}
    if arguments:
        document["tiers"] = [{"plugins": [{"name": name, "arguments": said} for name, said in arguments.items()]}]
    return engine_setup(configuration_of(document, source="conf.yaml", third_party=("mine",)), parse_arguments(flags))


def test_no_file_and_no_flags_are_the_engines_own_defaults() -> None:
    found = a_setup()
    assert (found.settings, found.filters) == (Settings(), FilterSettings())
    assert (found.actions, found.remarks) == (ACTIONS, ())


@pytest.mark.parametrize(
    ("flag", "changes"),
    [
        ("--max-consolidation-preemptees=-1", {"max_consolidation_victims": None}),
        ("--max-consolidation-preemptees=0", {"max_consolidation_victims": 0}),
        ("--allow-consolidating-reclaim=false", {"allows_consolidating_reclaim": False}),
        ("--use-scheduling-signatures=false", {"uses_signatures": False}),
        ("--default-staleness-grace-period=-1s", {"staleness_grace": -1.0}),
        ("--full-hierarchy-fairness=false", {"full_hierarchy": False}),
        ("--reserve-for-large-gangs", {"reserves_for_large_gangs": True}),
    ],
)
def test_a_flag_decides_what_it_is_for_and_nothing_else(flag: str, changes: dict[str, Any]) -> None:
    assert a_setup(flag).settings == replace(Settings(), **changes)


@pytest.mark.parametrize(
    ("plugin", "arguments", "changes"),
    [
        ("proportion", {"kValue": "0.5"}, {"k_value": 0.5}),
        ("proportion", {"relcaimerSaturationMultiplier": "1.5"}, {"saturation_multiplier": 1.5}),
        ("proportion", {"reclaimerSaturationMultiplier": "1.5"}, {"saturation_multiplier": 1.5}),
        ("proportion", {"reclaimerUtilizationMultiplier": "1.5"}, {"saturation_multiplier": 1.5}),
        ("minruntime", {"defaultPreemptMinRuntime": "10m"}, {"preempt_min_runtime": 600.0}),
        ("minruntime", {"defaultReclaimMinRuntime": "1h"}, {"reclaim_min_runtime": 3600.0}),
        ("minruntime", {"reclaimResolveMethod": "queue"}, {"reclaim_resolves_by_ancestor": False}),
        ("minruntime", {"reclaimResolveMethod": "lca"}, {}),
        ("nodeplacement", {"gpu": "spread"}, {"gpu_strategy": Strategy.SPREAD}),
        ("nodeplacement", {"cpu": "spread", "gpu": "binpack"}, {"cpu_strategy": Strategy.SPREAD}),
    ],
)
def test_an_argument_decides_what_it_is_for_and_nothing_else(
    plugin: str, arguments: dict[str, str], changes: dict[str, Any]
) -> None:
    found = a_setup(**{plugin: arguments})
    assert found.settings == replace(Settings(plugins=(plugin,)), **changes)
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("plugin", "arguments", "changes"),
    [
        ("proportion", {"kValue": "-1"}, {"k_value": 0.0}),
        ("proportion", {"kValue": "much"}, {}),
        ("proportion", {"kValue": "nan"}, {}),
        ("proportion", {"relcaimerSaturationMultiplier": "0.5"}, {}),
        ("minruntime", {"defaultPreemptMinRuntime": "-10m"}, {}),
        ("minruntime", {"defaultReclaimMinRuntime": "ten"}, {}),
        ("minruntime", {"reclaimResolveMethod": "nearest"}, {}),
        ("nodeplacement", {"gpu": "scatter"}, {}),
        ("nodeplacement", {"tpu": "spread"}, {}),
        ("ray", {"head": "first"}, {}),
    ],
)
def test_an_argument_that_cannot_be_followed_is_mended_as_kai_does_and_told(
    plugin: str, arguments: dict[str, str], changes: dict[str, Any]
) -> None:
    found = a_setup(**{plugin: arguments})
    assert found.settings == replace(Settings(plugins=(plugin,)), **changes)
    [remark] = found.remarks
    assert remark.startswith(f'conf.yaml: argument {next(iter(arguments))} of plugin "{plugin}" ')


def test_arguments_of_others_are_theirs() -> None:
    found = a_setup(mine={"anything": "at all"})
    assert found.remarks == ()
    assert found.plugins[0].arguments == {"anything": "at all"}


def test_worker_labels_and_whether_they_restrict_go_to_the_filters() -> None:
    found = a_setup("--restrict-node-scheduling", "--gpu-worker-node-label-key=g", "--cpu-worker-node-label-key=c")
    assert found.filters == FilterSettings(restrict_node_scheduling=True, gpu_worker_label="g", cpu_worker_label="c")


def test_flags_without_effect_are_remarked() -> None:
    assert a_setup("--enable-profiler").remarks == ("--enable-profiler has no effect here",)
