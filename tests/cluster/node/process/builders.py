"""Pods of the node that runs them as processes of this machine."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.core.pod_details import PodDetails
from tests.support.builders.pods import pod_manifest


def a_local_pod(
    *containers: str | dict[str, Any],
    init: tuple[str | dict[str, Any], ...] = (),
    metadata: dict[str, Any] | None = None,
    **given: Any,
) -> PodDetails:
    """A pod of this machine; containers are names, or fields with a name. A name with a star is a sidecar's."""
    manifest = pod_manifest(
        namespace="team",
        uid="u-1",
        metadata={"generation": 1, **(metadata or {})},
        containers=[_container(one) for one in containers or ("main",)],
        init=[_container(one) for one in init],
        node="local",
        serviceAccountName="worker",
        **given,
    )
    return msgspec.convert(manifest, PodDetails)


def _container(given: str | dict[str, Any]) -> dict[str, Any]:
    if not isinstance(given, str):
        return given
    name = given.removesuffix("*")
    return {"name": name, "image": "busybox"} | ({"restartPolicy": "Always"} if name != given else {})
