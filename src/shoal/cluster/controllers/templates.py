"""A pod from the template of the workload that owns it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

LONGEST_PREFIX = 253


def pod_from_template(
    template: Mapping[str, Any], *, namespace: str, name: str = "", generate_name: str = ""
) -> dict[str, Any]:
    """The body of a pod: the template's labels, annotations, finalizers and spec, under a name or a prefix.

    The result shares nothing with the template: whoever gets it may change it.
    """
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {"namespace": namespace}
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = generate_name[:LONGEST_PREFIX]
    for field in ("labels", "annotations", "finalizers"):
        if given.get(field):
            metadata[field] = copy.deepcopy(given[field])
    return {"metadata": metadata, "spec": copy.deepcopy(template.get("spec") or {})}
