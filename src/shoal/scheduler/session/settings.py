"""What a scheduler is told to do, as far as its decisions go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from shoal.scheduler.numa.settings import NumaSettings


class Strategy(Enum):
    """How tasks are spread over nodes, or parts over GPUs."""

    BINPACK = "binpack"
    SPREAD = "spread"
    NONE = ""


ACTIONS: Final = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
PLUGINS: Final = (
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "nodeplacement",
    "minruntime",
    "topology",
    "snapshot",
    "sg-nodelocalgreedy",
    "sg-multinodegang",
)
"""In the order in which they are asked."""
SEARCHES: Final = ("sg-nodelocalgreedy", "sg-multinodegang")
"""The ways of searching for victims: near each other, then anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudgets:
    """How long a search for victims may take, in seconds; 0: as long as it needs."""

    actions: Mapping[str, float] = field(default_factory=lambda: {"default": 300.0})
    job: float = 240.0
    least_for_job: float = 0.0
    generators: Mapping[str, float] = field(
        default_factory=lambda: {"default": 120.0, "NodeLocalGreedy": 30.0, "MultiNodeGang": 120.0}
    )

    def of_action(self, name: str) -> float:
        """The seconds of one action."""
        return self.actions.get(name, self.actions.get("default", 0.0))

    def of_generator(self, name: str) -> float:
        """The seconds of one way of searching, for one job."""
        return self.generators.get(name, self.generators.get("default", 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of it; the defaults are KAI's."""

    plugins: tuple[str, ...] = PLUGINS
    cpu_strategy: Strategy = Strategy.BINPACK
    gpu_strategy: Strategy = Strategy.BINPACK
    max_consolidation_victims: int | None = 16
    """Jobs that one consolidation may move; None: any number."""
    allows_consolidating_reclaim: bool = True
    """Whether a victim that finds another place at once does not count as one."""
    uses_signatures: bool = True
    """Whether a job is skipped when one just like it, and no harder, found no victims in the same action."""
    staleness_grace: float = 60.0
    preempt_min_runtime: float = 0.0
    reclaim_min_runtime: float = 0.0
    reclaim_resolves_by_ancestor: bool = True
    """Whose minimum run time protects from reclaim: that below the common ancestor, or the victim's own queue's."""
    saturation_multiplier: float = 1.0
    k_value: float = 1.0
    queue_depths: Mapping[str, int] = field(default_factory=dict)
    budgets: SearchBudgets = SearchBudgets()
    full_hierarchy: bool = True
    reserves_for_large_gangs: bool = False
    """Whether nodes are kept for the first gang that finds no room, and only what ends in time runs there meanwhile."""
    numa: NumaSettings | None = None
    """How NUMA zones are looked at; None: not at all."""

    def has(self, plugin: str) -> bool:
        """Whether a plugin takes part."""
        return plugin in self.plugins

    def searches(self, way: str) -> bool:
        """Whether victims are sought in this way. Configurations older than the ways name none, and have all."""
        return way in self.plugins or not any(name in self.plugins for name in SEARCHES)
