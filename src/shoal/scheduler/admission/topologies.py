"""The rules for topologies that their definition cannot state: a level is found by its label or its alias, by one only.

That labels are unique, stay as they are and have the host last is the definition's own business.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.kai_scheduler import Topology
from shoal.kube.admission import FieldProblem, invalid
from shoal.kube.admission.fields import Reason


def topology_problems(topology: Topology) -> Iterator[FieldProblem]:
    """Every alias is one level's alone, and no level's label."""
    labels = {level.node_label for level in topology.spec.levels}
    aliases: set[str] = set()
    for index, level in enumerate(topology.spec.levels):
        path = f"spec.levels[{index}].alias"
        if not level.alias:
            continue
        if level.alias in aliases:
            yield FieldProblem(path, "two levels cannot go by the same name", Reason.DUPLICATE, level.alias)
        elif level.alias in labels:
            yield invalid(path, level.alias, "is a level's node label: choose a name that is none")
        aliases.add(level.alias)
