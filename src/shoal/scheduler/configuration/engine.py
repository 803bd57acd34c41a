"""File and flags together, as the engine is told them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from shoal.api.meta.duration import InvalidDuration, parse_duration
from shoal.scheduler.configuration.file import Configuration, PluginChoice
from shoal.scheduler.configuration.options import SchedulerOptions
from shoal.scheduler.numa import NumaSettings
from shoal.scheduler.session.filters import FilterSettings
from shoal.scheduler.session.settings import PLUGINS, Settings, Strategy

_MULTIPLIERS: Final = (
    "relcaimerSaturationMultiplier",
    "reclaimerSaturationMultiplier",
    "reclaimerUtilizationMultiplier",
)
"""As KAI reads it, as it is spelled, and as KAI's documents call it."""
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "proportion": (*_MULTIPLIERS, "kValue"),
    "minruntime": ("defaultPreemptMinRuntime", "defaultReclaimMinRuntime", "reclaimResolveMethod"),
    "nodeplacement": ("gpu", "cpu"),
    "dynamicresources": ("maxCelCacheEntries",),
    "numa": ("ignoreList", "reconstructAvailable"),
}
_YES: Final = ("1", "t", "T", "true", "True", "TRUE")
_NO: Final = ("0", "f", "F", "false", "False", "FALSE")
"""As Go reads booleans."""
_STRATEGIES: Final = {"binpack": Strategy.BINPACK, "spread": Strategy.SPREAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSetup:
    """What cycles are run with."""

    settings: Settings
    filters: FilterSettings
    actions: tuple[str, ...]
    plugins: tuple[PluginChoice, ...]
    """In order, with their arguments; those that do not come with Shoal are to be loaded."""
    remarks: tuple[str, ...]
    """What is left out, mended or without effect: to be told once."""


def engine_setup(configuration: Configuration, options: SchedulerOptions) -> EngineSetup:
    """The engine's settings. An argument of a plugin that cannot be read is mended as KAI does, and remarked upon."""
    reading = _Arguments(configuration)
    most = options.max_consolidation_preemptees
    settings = Settings(
        plugins=tuple(choice.name for choice in configuration.plugins),
        cpu_strategy=reading.strategy("cpu"),
        gpu_strategy=reading.strategy("gpu"),
        max_consolidation_victims=None if most < 0 else most,
        allows_consolidating_reclaim=options.allow_consolidating_reclaim,
        uses_signatures=options.use_scheduling_signatures,
        staleness_grace=options.default_staleness_grace_period,
        preempt_min_runtime=reading.min_runtime("defaultPreemptMinRuntime"),
        reclaim_min_runtime=reading.min_runtime("defaultReclaimMinRuntime"),
        reclaim_resolves_by_ancestor=reading.resolves_by_ancestor(),
        saturation_multiplier=reading.multiplier(),
        k_value=reading.number("proportion", "kValue", default=1.0, least=0.0, otherwise=0.0),
        queue_depths=configuration.queue_depths,
        budgets=configuration.budgets,
        full_hierarchy=options.full_hierarchy_fairness,
        reserves_for_large_gangs=options.reserve_for_large_gangs,
        numa=reading.numa(),
    )
    told = tuple(f"--{name} has no effect here" for name in options.ignored)
    return EngineSetup(
        settings=settings,
        filters=FilterSettings(
            restrict_node_scheduling=options.restrict_node_scheduling,
            cpu_worker_label=options.cpu_worker_label,
            gpu_worker_label=options.gpu_worker_label,
        ),
        actions=configuration.actions,
        plugins=configuration.plugins,
        remarks=(*configuration.remarks, *reading.remarks, *told),
    )


class _Arguments:
    """The arguments of the plugins that come with Shoal."""

    def __init__(self, configuration: Configuration) -> None:
        self._source = configuration.source
        self._arguments = {choice.name: choice.arguments for choice in configuration.plugins}
        self.remarks: list[str] = []
        for plugin in (*PLUGINS, "numa"):
            for name in self._arguments.get(plugin, {}):
                if name not in _ARGUMENTS.get(plugin, ()):
                    self._remark(plugin, name, "is not known and has no effect")

    def strategy(self, resource: str) -> Strategy:
        text = self._said("nodeplacement", resource) or "binpack"
        if text not in _STRATEGIES:
            self._remark("nodeplacement", resource, f'is "{text}", taken as binpack: write binpack or spread')
        return _STRATEGIES.get(text, Strategy.BINPACK)

    def multiplier(self) -> float:
        name = next((name for name in _MULTIPLIERS if self._said("proportion", name)), _MULTIPLIERS[0])
        return self.number("proportion", name, default=1.0, least=1.0, otherwise=1.0)

    def number(self, plugin: str, name: str, *, default: float, least: float, otherwise: float) -> float:
        """A number; ``otherwise`` where it is less than ``least``."""
        value = self._read(plugin, name, _finite, "a number such as 1.5", default)
        if value < least:
            self._remark(plugin, name, f"is {value:g}, taken as {otherwise:g}: write {least:g} or more")
            return otherwise
        return value

    def min_runtime(self, name: str) -> float:
        value = self._read("minruntime", name, _seconds, "a duration such as 10m", 0.0)
        if value < 0:
            self._remark("minruntime", name, "is negative, taken as 0s: write a duration such as 10m")
        return max(0.0, value)

    def resolves_by_ancestor(self) -> bool:
        method = self._said("minruntime", "reclaimResolveMethod") or "lca"
        if method not in ("lca", "queue"):
            self._remark("minruntime", "reclaimResolveMethod", f'is "{method}", taken as lca: write lca or queue')
        return method != "queue"

    def numa(self) -> NumaSettings | None:
        if "numa" not in self._arguments:
            return None
        said = self._said("numa", "reconstructAvailable") or "true"
        if said not in (*_YES, *_NO):
            self._remark("numa", "reconstructAvailable", f'is "{said}", taken as true: write true or false')
        ignored = self._said("numa", "ignoreList").split(",")
        return NumaSettings(
            ignored=frozenset(name for one in ignored if (name := one.strip())), reconstructs=said not in _NO
        )

    def _read(self, plugin: str, name: str, read: Callable[[str], float], wanted: str, default: float) -> float:
        text = self._said(plugin, name)
        if not text:
            return default
        try:
            return read(text)
        except (ValueError, InvalidDuration):
            self._remark(plugin, name, f'is "{text}", taken as {default:g}: write {wanted}')
            return default

    def _said(self, plugin: str, name: str) -> str:
        return self._arguments.get(plugin, {}).get(name, "").strip()

    def _remark(self, plugin: str, name: str, text: str) -> None:
        self.remarks.append(f'{self._source}: argument {name} of plugin "{plugin}" {text}')


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _seconds(text: str) -> float:
    return parse_duration(text).seconds
