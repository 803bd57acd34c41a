"""How the controllers of gangs run; every field has the value that suits a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal import __version__


@dataclass(frozen=True, kw_only=True)
class Authorizing:
    """Whether what is made for a set is protected from others, and who is let through all the same."""

    is_enabled: bool = False
    exempt_users: frozenset[str] = frozenset()
    operator_user: str = ""
    """The operator's own user name, as in ``system:serviceaccount:grove-system:grove-operator``."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """How many objects of each kind are worked on at once."""

    sets: int = 10
    cliques: int = 10
    groups: int = 5
    gangs: int = 5


@dataclass(frozen=True, kw_only=True)
class GangSettings:
    """What the operator's configuration decides for the controllers and for admission."""

    default_scheduler: str = "default-scheduler"
    has_topologies: bool = False
    """Whether sets may ask for topologies."""
    has_mnnvl: bool = False
    """Whether ComputeDomains are made for sets that ask for GPUs."""
    start_image: str = f"grove-initc:v{__version__}"
    """The image of the init container that keeps pods waiting for those that start first, with its tag."""
    workers: Workers = field(default_factory=Workers)
    authorizing: Authorizing = field(default_factory=Authorizing)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is configured for schedulers, by their names."""
    pod_selector: str = ""
    """Restricts the pods that are watched; a process that keeps all pods anyway leaves it empty."""
