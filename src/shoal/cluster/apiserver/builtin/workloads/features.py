"""Fields that Kubernetes knows and, in its default configuration, does not take: it drops them without a word."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.workloads.windows import all_containers

_PROJECTIONS = ("clusterTrustBundle", "podCertificate")


def drop_disabled(spec: dict[str, Any], old: dict[str, Any] | None = None) -> None:
    """Takes away fields of features that are off, unless the old pod or template uses them already."""
    if "schedulingGroup" in spec and not (old and "schedulingGroup" in old):
        del spec["schedulingGroup"]
    _drop_projections(spec, old)
    _drop_stop_signals(spec, old)


def _drop_projections(spec: dict[str, Any], old: dict[str, Any] | None) -> None:
    for kind in _PROJECTIONS:
        used = [source for source in _projected(spec) if kind in source]
        if used and not any(kind in source for source in _projected(old or {})):
            for source in used:
                del source[kind]


def _drop_stop_signals(spec: dict[str, Any], old: dict[str, Any] | None) -> None:
    used = [
        container for container, _ in all_containers(spec, "") if "stopSignal" in (container.get("lifecycle") or ())
    ]
    if not used or any("stopSignal" in (each.get("lifecycle") or ()) for each, _ in all_containers(old or {}, "")):
        return
    for container in used:
        del container["lifecycle"]["stopSignal"]
        if not container["lifecycle"]:
            del container["lifecycle"]


def _projected(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        source
        for volume in spec.get("volumes") or ()
        if "projected" in volume
        for source in volume["projected"].get("sources") or ()
    ]
