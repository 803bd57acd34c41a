"""KAI's configuration file: which actions, which plugins in which order, how deep and how long they look.

What the file does not say is as KAI has it built in. An action that nobody knows is an error, since a cycle without it
is another cycle than was asked for; anything else that nobody knows is left out, and a remark says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from shoal.api.meta.duration import InvalidDuration, parse_duration
from shoal.scheduler.configuration.problems import ConfigurationError
from shoal.scheduler.session.settings import ACTIONS, PLUGINS, SearchBudgets

OPTIONAL_PLUGINS: Final = ("podaffinity", "gpuspread", "reflectjoborder", "numa")
"""Known, but not among those that take part where a file says nothing."""
_SECTIONS: Final = ("actions", "tiers", "queueDepthPerAction", "usageDBConfig", "scenarioSearchBudgets")
_BUDGETS: Final = (
    "maxActionSearchDuration",
    "maxJobSearchDuration",
    "minJobSearchDuration",
    "maxGeneratorSearchDuration",
)
_SWITCHES: Final = (
    "disableJobOrder",
    "disableTaskOrder",
    "disablePreemptable",
    "disableReclaimable",
    "disableQueueOrder",
    "disablePredicate",
    "disableNodeOrder",
)
"""Declared by KAI and read by none of its plugins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginChoice:
    """A plugin that takes part."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)


DEFAULT_PLUGINS: Final = tuple(
    PluginChoice(name=name, arguments={"cpu": "binpack", "gpu": "binpack"} if name == "nodeplacement" else {})
    for name in PLUGINS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The whole file."""

    source: str = "the built-in configuration"
    """Where it is written, for whoever has to put something right there."""
    actions: tuple[str, ...] = ACTIONS
    plugins: tuple[PluginChoice, ...] = DEFAULT_PLUGINS
    """In the order in which they are asked, all tiers together."""
    queue_depths: Mapping[str, int] = field(default_factory=dict)
    """How many jobs of a queue an action looks at, by action."""
    usage: Mapping[str, Any] | None = None
    """``usageDBConfig`` as it is written; see ``shares.usage``."""
    budgets: SearchBudgets = SearchBudgets()
    remarks: tuple[str, ...] = ()
    """What is left out or without effect: to be told once."""


def read_configuration(text: str | bytes, *, source: str, third_party: Collection[str] = ()) -> Configuration:
    """The configuration of a YAML or JSON text; raises ConfigurationError.

    ``source``: the name of the file. ``third_party``: plugins that are there beside those that come with Shoal.
    """
    try:
        document = msgspec.yaml.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise ConfigurationError(source, "", f"is no YAML: {problem}") from error
    if isinstance(document, Mapping) and document.get("kind") == "ConfigMap":
        inner = (document.get("data") or {}).get("config.yaml")
        if not isinstance(inner, str):
            raise ConfigurationError(source, "data", "has no config.yaml: save the ConfigMap of a scheduler here")
        return read_configuration(inner, source=f"{source} (data.config.yaml)", third_party=third_party)
    return configuration_of(document, source=source, third_party=third_party)


def configuration_of(document: object, *, source: str, third_party: Collection[str] = ()) -> Configuration:
    """The configuration that a document says; raises ConfigurationError."""
    return _Reading(source, {*PLUGINS, *OPTIONAL_PLUGINS, *third_party}).configuration(document)


class _Reading:
    """One reading, and what there is to say about it."""

    def __init__(self, source: str, known: Collection[str]) -> None:
        self._source = source
        self._known = known
        self._remarks: list[str] = []

    def configuration(self, document: object) -> Configuration:
        found = self._mapping(document, "")
        for name in found.keys() - set(_SECTIONS):
            self._remark(f"{name} is not known and is left out: the sections are {', '.join(_SECTIONS)}")
        return Configuration(
            source=self._source,
            actions=self._actions(found.get("actions")),
            plugins=tuple(self._plugins(found["tiers"])) if found.get("tiers") else DEFAULT_PLUGINS,
            queue_depths=self._depths(found.get("queueDepthPerAction")),
            usage=self._mapping(found.get("usageDBConfig"), "usageDBConfig") or None,
            budgets=self._budgets(self._mapping(found.get("scenarioSearchBudgets"), "scenarioSearchBudgets")),
            remarks=tuple(sorted(self._remarks)),
        )

    def _actions(self, value: object) -> tuple[str, ...]:
        if value is None or value == "":
            return ACTIONS
        if not isinstance(value, str):
            raise self._wrong("actions", f'is {_shown(value)}: write names with commas, as in "{", ".join(ACTIONS)}"')
        actions = tuple(name.strip() for name in value.split(","))
        for name in actions:
            if name not in ACTIONS:
                raise self._wrong("actions", f'names "{name}", which is not known: use {", ".join(ACTIONS)}')
        return actions

    def _plugins(self, value: object) -> Iterator[PluginChoice]:
        seen: set[str] = set()
        for place, tier in enumerate(self._list(value, "tiers")):
            path = f"tiers[{place}].plugins"
            for index, plugin in enumerate(self._list(self._mapping(tier, f"tiers[{place}]").get("plugins"), path)):
                choice = self._plugin(plugin, f"{path}[{index}]")
                if choice.name in seen:
                    self._remark(f'{path}[{index}] names plugin "{choice.name}" again and is left out')
                elif choice.name in self._known:
                    yield choice
                else:
                    self._remark(
                        f'plugin "{choice.name}" is not known and is left out: '
                        "install the package that brings it, or remove it from the file"
                    )
                seen.add(choice.name)

    def _plugin(self, value: object, path: str) -> PluginChoice:
        plugin = self._mapping(value, path)
        name = plugin.get("name")
        if not isinstance(name, str) or not name:
            raise self._wrong(f"{path}.name", "is missing: write the name of a plugin, as in predicates")
        for switch in _SWITCHES:
            if plugin.get(switch):
                self._remark(f"{path}.{switch} has no effect, as in KAI: leave the plugin out instead")
        arguments = self._mapping(plugin.get("arguments"), f"{path}.arguments")
        return PluginChoice(
            name=name, arguments={key: self._text(said, f"{path}.arguments.{key}") for key, said in arguments.items()}
        )

    def _depths(self, value: object) -> dict[str, int]:
        depths = {}
        for action, depth in self._mapping(value, "queueDepthPerAction").items():
            path = f"queueDepthPerAction.{action}"
            if action not in ACTIONS:
                self._remark(f"{path} is left out: there is no such action; use {', '.join(ACTIONS)}")
            elif not isinstance(depth, int) or isinstance(depth, bool):
                raise self._wrong(path, f"is {_shown(depth)}: write a number of jobs, as in 10")
            elif depth >= 0:
                depths[action] = depth
        return depths

    def _budgets(self, found: Mapping[str, Any]) -> SearchBudgets:
        path = "scenarioSearchBudgets"
        for name in found.keys() - set(_BUDGETS):
            self._remark(f"{path}.{name} is not known and is left out: it may have {', '.join(_BUDGETS)}")
        usual = SearchBudgets()
        lengths = {
            name: self._seconds(found[name], f"{path}.{name}")
            for name in ("maxJobSearchDuration", "minJobSearchDuration")
            if found.get(name)
        }
        tables = {
            name: {
                key: self._seconds(length, f"{path}.{name}.{key}")
                for key, length in self._mapping(found.get(name), f"{path}.{name}").items()
            }
            for name in ("maxActionSearchDuration", "maxGeneratorSearchDuration")
        }
        budgets = SearchBudgets(
            actions={**usual.actions, **tables["maxActionSearchDuration"]},
            job=lengths.get("maxJobSearchDuration", usual.job),
            least_for_job=lengths.get("minJobSearchDuration", usual.least_for_job),
            generators={**usual.generators, **tables["maxGeneratorSearchDuration"]},
        )
        if 0 < budgets.job <= budgets.least_for_job:
            raise self._wrong(
                f"{path}.minJobSearchDuration",
                f"is {budgets.least_for_job:g}s: write less than maxJobSearchDuration ({budgets.job:g}s)",
            )
        return budgets

    def _seconds(self, value: object, path: str) -> float:
        try:
            length = parse_duration(str(value)).seconds
        except InvalidDuration:
            raise self._wrong(path, f"is {_shown(value)}: write a duration such as 30s or 1h30m") from None
        if length < 0:
            raise self._wrong(path, f"is {_shown(value)}: write 0 (as long as it takes) or more")
        return length

    def _text(self, value: object, path: str) -> str:
        """Arguments are texts; numbers and booleans that somebody forgot to put into quotes are taken as such."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return str(value)
        raise self._wrong(path, f"is {_shown(value)}: write a text")

    def _mapping(self, value: object, path: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self._wrong(path, f"is {_shown(value)}: write names and values, as in KAI's configuration file")
        return {str(name): said for name, said in value.items()}

    def _list(self, value: object, path: str) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(path, f"is {_shown(value)}: write a list")
        return value

    def _wrong(self, path: str, problem: str) -> ConfigurationError:
        return ConfigurationError(self._source, path, problem)

    def _remark(self, text: str) -> None:
        remark = f"{self._source}: {text}"
        if remark not in self._remarks:
            self._remarks.append(remark)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
