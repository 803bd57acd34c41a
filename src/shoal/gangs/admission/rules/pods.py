"""What a clique may not say of its pods. The API server checks the rest when pods are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shoal.api.grove import PodCliqueSet
from shoal.gangs.admission.rules.places import clique_at, repeated
from shoal.kube.admission import FieldProblem, forbidden, invalid, required

_variable_name = re.compile(r"[ -<>-~]+").fullmatch


def environment_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """Every variable of a container has a name that it may have, and is there once."""
    for index, clique in enumerate(pcs.spec.template.cliques):
        for field in ("initContainers", "containers"):
            for position, container in enumerate(clique.spec.pod_spec.get(field) or ()):
                path = f"{clique_at(index)}.spec.podSpec.{field}[{position}].env"
                yield from _variable_problems(path, container.get("env") or ())


def placement_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """Where pods go is for the scheduler of the gang to say."""
    for index, clique in enumerate(pcs.spec.template.cliques):
        path = f"{clique_at(index)}.spec.podSpec"
        if clique.spec.pod_spec.get("topologySpreadConstraints"):
            words = "pods of a gang are placed together: use topologyConstraint, or leave this out"
            yield forbidden(f"{path}.topologySpreadConstraints", words)
        if clique.spec.pod_spec.get("nodeName"):
            words = "a scheduler places the pods: use nodeSelector or affinity, or leave this out"
            yield forbidden(f"{path}.nodeName", words)


def _variable_problems(path: str, variables: Any) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name = str(variable.get("name") or "")
        if not name:
            yield required(f"{path}[{index}].name", "name the variable")
        elif not _variable_name(name):
            yield invalid(f"{path}[{index}].name", name, "must consist of printable ASCII characters other than '='")
        elif name in seen:
            yield repeated(f"{path}[{index}].name", name, "set each variable once")
        seen.add(name)
