"""Pods of gangs in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.api.core import Pod
from shoal.api.grove import names
from tests.support.builders.pods import a_pod


def a_gang_pod(
    name: str, *, gang: str, clique: str, gated: bool = False, labels: Mapping[str, str] | None = None, **given: Any
) -> Pod:
    """A pod of a clique in a gang, held back by its gate or let go."""
    marks = {names.GANG_LABEL: gang, names.CLIQUE_LABEL: clique, **(labels or {})}
    return a_pod(name, labels=marks, schedulingGates=[{"name": names.GATE}] if gated else [], **given)
