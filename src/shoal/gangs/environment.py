"""Variables that the containers of gangs' pods have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Variables = Sequence[Mapping[str, Any]]


def with_environment(pod_spec: Mapping[str, Any], variables: Variables) -> dict[str, Any]:
    """A pod's spec in which all containers have these variables, those that run first as well."""
    changed = {
        field: [_with_variables(container, variables) for container in containers]
        for field in ("initContainers", "containers")
        if (containers := pod_spec.get(field))
    }
    return {**pod_spec, **changed}


def _with_variables(container: Mapping[str, Any], variables: Variables) -> dict[str, Any]:
    """A container with these variables first, so that its own may refer to them; they replace those of their names."""
    taken = {variable["name"] for variable in variables}
    own = [variable for variable in container.get("env") or () if variable.get("name") not in taken]
    return {**container, "env": [*variables, *own]}
