"""KAI's configuration file: what it says, what it leaves to the defaults, and how a mistake in it is told."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.configuration import Configuration, ConfigurationError, configuration_of, read_configuration
from shoal.scheduler.session.settings import ACTIONS, PLUGINS, SearchBudgets


def a_file(**sections: Any) -> Configuration:
    return configuration_of(sections, source="conf.yaml", third_party=("mine",))


def plugins(*names: str) -> list[dict[str, Any]]:
    return [{"plugins": [{"name": name} for name in names]}]


@pytest.mark.parametrize("text", ["", "{}", "# nothing\n", "actions: ''\ntiers: []\n"])
def test_what_a_file_does_not_say_is_built_in(text: str) -> None:
    found = read_configuration(text, source="conf.yaml")
    assert found.actions == ACTIONS
    assert tuple(choice.name for choice in found.plugins) == PLUGINS
    assert found.plugins[14].arguments == {"cpu": "binpack", "gpu": "binpack"}
    assert (found.queue_depths, found.usage, found.budgets, found.remarks) == ({}, None, SearchBudgets(), ())


def test_a_file_says_what_takes_part_in_which_order() -> None:
    text = """
actions: "reclaim, allocate"
tiers:
- plugins:
  - name: elastic
  - name: proportion
    arguments: {kValue: 2.5, other: "x", flag: true}
- plugins:
  - name: mine
queueDepthPerAction: {allocate: 20, reclaim: 0, preempt: -1}
usageDBConfig: {clientType: prometheus, connectionString: "http://p:9090"}
"""
    found = read_configuration(text, source="conf.yaml", third_party=("mine",))
    assert found.actions == ("reclaim", "allocate")
    assert [choice.name for choice in found.plugins] == ["elastic", "proportion", "mine"]
    assert found.plugins[1].arguments == {"kValue": "2.5", "other": "x", "flag": "true"}
    assert found.queue_depths == {"allocate": 20, "reclaim": 0}
    assert found.usage == {"clientType": "prometheus", "connectionString": "http://p:9090"}


def test_an_action_that_nobody_knows_is_told_with_the_file_the_field_and_what_is_known() -> None:
    with pytest.raises(ConfigurationError) as told:
        a_file(actions="allocate, backfill")
    assert str(told.value) == (
        'conf.yaml: actions names "backfill", which is not known: '
        "use allocate, consolidation, reclaim, preempt, stalegangeviction"
    )


@pytest.mark.parametrize(
    ("sections", "field"),
    [
        pytest.param({"actions": ["allocate"]}, "actions", id="actions are a list"),
        pytest.param({"actions": "allocate,,reclaim"}, "actions", id="an action without a name"),
        pytest.param({"tiers": {"plugins": []}}, "tiers", id="tiers are no list"),
        pytest.param({"tiers": [{"plugins": ["predicates"]}]}, "tiers[0].plugins[0]", id="a plugin is a word"),
        pytest.param({"tiers": [{"plugins": [{}]}]}, "tiers[0].plugins[0].name", id="a plugin without a name"),
        pytest.param(
            {"tiers": [{"plugins": [{"name": "mine", "arguments": {"a": []}}]}]},
            "tiers[0].plugins[0].arguments.a",
            id="an argument is a list",
        ),
        pytest.param({"queueDepthPerAction": {"allocate": "ten"}}, "queueDepthPerAction.allocate", id="depth"),
        pytest.param({"queueDepthPerAction": {"allocate": True}}, "queueDepthPerAction.allocate", id="depth is yes"),
        pytest.param(
            {"scenarioSearchBudgets": {"maxJobSearchDuration": "4 minutes"}},
            "scenarioSearchBudgets.maxJobSearchDuration",
            id="a budget is no duration",
        ),
        pytest.param(
            {"scenarioSearchBudgets": {"maxActionSearchDuration": {"reclaim": "-1s"}}},
            "scenarioSearchBudgets.maxActionSearchDuration.reclaim",
            id="a budget is negative",
        ),
        pytest.param(
            {"scenarioSearchBudgets": {"minJobSearchDuration": "4m"}},
            "scenarioSearchBudgets.minJobSearchDuration",
            id="the least is not below the most",
        ),
    ],
)
def test_what_cannot_be_read_is_told_by_its_field(sections: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        a_file(**sections)
    assert told.value.field == field
    assert str(told.value).startswith(f"conf.yaml: {field} ")


@pytest.mark.parametrize("text", ["actions: [", "just words", "- a\n- b\n"])
def test_a_text_that_is_no_configuration_is_told_by_its_file(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^conf\.yaml"):
        read_configuration(text, source="conf.yaml")


def test_a_plugin_that_nobody_knows_is_left_out_and_told_once() -> None:
    found = a_file(tiers=plugins("predicates", "theirs", "theirs", "mine"))
    assert [choice.name for choice in found.plugins] == ["predicates", "mine"]
    assert [remark for remark in found.remarks if "not known" in remark] == [
        'conf.yaml: plugin "theirs" is not known and is left out: '
        "install the package that brings it, or remove it from the file"
    ]


def test_a_file_with_no_plugin_that_is_known_has_none() -> None:
    assert a_file(tiers=plugins("theirs")).plugins == ()


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        pytest.param({"tier": []}, "tier is not known", id="a section"),
        pytest.param({"tiers": plugins("ray", "ray")}, "again", id="a plugin twice"),
        pytest.param({"tiers": [{"plugins": [{"name": "ray", "disableTaskOrder": True}]}]}, "no effect", id="a switch"),
        pytest.param({"queueDepthPerAction": {"backfill": 3}}, "no such action", id="a depth of no action"),
        pytest.param({"scenarioSearchBudgets": {"maxSearch": "1s"}}, "not known", id="a budget"),
    ],
)
def test_what_is_odd_is_remarked_and_stops_nothing(sections: dict[str, Any], said: str) -> None:
    [remark] = a_file(**sections).remarks
    assert remark.startswith("conf.yaml: ")
    assert said in remark


def test_budgets_change_what_they_name_and_nothing_else() -> None:
    found = a_file(
        scenarioSearchBudgets={
            "maxActionSearchDuration": {"reclaim": "1m30s", "default": "0"},
            "maxJobSearchDuration": "10s",
            "minJobSearchDuration": "1s",
            "maxGeneratorSearchDuration": {"MultiNodeGang": "5s"},
        }
    ).budgets
    assert (found.of_action("reclaim"), found.of_action("preempt")) == (90.0, 0.0)
    assert (found.job, found.least_for_job) == (10.0, 1.0)
    assert found.generators == {"default": 120.0, "NodeLocalGreedy": 30.0, "MultiNodeGang": 5.0}


def test_a_whole_config_map_is_read_as_the_file_in_it() -> None:
    text = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n    actions: "allocate"\n'
    assert read_configuration(text, source="map.yaml").actions == ("allocate",)
    with pytest.raises(ConfigurationError, match=r"map\.yaml: data has no config\.yaml"):
        read_configuration("kind: ConfigMap\n", source="map.yaml")
