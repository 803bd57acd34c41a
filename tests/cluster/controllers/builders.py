"""Workloads for the controllers: kinds that make pods from a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def workload_manifest(
    name: str = "web",
    *,
    app: str = "web",
    replicas: int | None = None,
    image: str = "i",
    pod: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Deployment, or another kind with a selector and a template; ``pod`` are fields of the spec of its pods."""
    labels = {"app": app}
    containers = [{"name": "main", "image": image}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **(pod or {})}}
    size = {} if replicas is None else {"replicas": replicas}
    return {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {**size, "selector": {"matchLabels": labels}, "template": template, **spec},
    }
