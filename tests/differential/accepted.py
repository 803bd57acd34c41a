"""Where the embedded cluster ends up with other objects on purpose: each place, what it has instead, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.differential.normal import Telling


@dataclass(frozen=True)
class Accepted:
    """Places in one snapshot of one story; ``ours`` is by path (parts divided by " / "), None where nothing is."""

    story: str
    snapshot: int
    ours: Mapping[str, Any]
    why: str


_SILENT = (
    "a node that says of itself that it is unknown is told from one that fell silent only by who noticed it; here "
    "what is true of the node is made true of its pods, whoever said it, also after a restart"
)
_UNMEASURED = (
    "failed to get cpu utilization: "
    "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
)

ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "node unreachable",
        1,
        {
            "events": [
                "Pod long: Warning NodeNotReady: Node is not ready",
                "Pod short: Normal TaintManagerEviction: Marking for deletion Pod node-unreachable/short",
                "Pod short: Warning NodeNotReady: Node is not ready",
            ],
            "objects / Pod long / status / conditions / 2": "Ready False [lastTransitionTime]",
            "objects / Pod short / status / conditions / 3": "Ready False [lastTransitionTime]",
        },
        _SILENT,
    ),
    Accepted(
        "autoscaler without metrics",
        1,
        {
            "events / 1": "HorizontalPodAutoscaler web: Warning FailedComputeMetricsReplicas: invalid metrics "
            f"(1 invalid out of 1), first error is: failed to get cpu resource metric value: {_UNMEASURED}",
            "events / 2": f"HorizontalPodAutoscaler web: Warning FailedGetResourceMetric: {_UNMEASURED}",
            "objects / HorizontalPodAutoscaler web / status / conditions / 1": "ScalingActive False "
            "FailedGetResourceMetric: the HPA was unable to compute the replica count: "
            f"{_UNMEASURED} [lastTransitionTime]",
        },
        "metrics are served, only not of pods that no node runs",
    ),
    Accepted(
        "service mirrored endpoints",
        2,
        {"objects / EndpointSlice out-<endpointslice 1> / metadata / generateName": "out-"},
        "how a name came about stays true when the object changes",
    ),
    Accepted(
        "volume waits for its first consumer",
        2,
        {
            "objects / PersistentVolumeClaim data / metadata / annotations / "
            "volume.kubernetes.io/selected-node": "<node>",
        },
        "the volume is chosen by the controller on the node that the scheduler names, not by the scheduler",
    ),
)

ABSENT_ANNOTATIONS = {
    "node.alpha.kubernetes.io/ttl": "says how long kubelets may keep Secrets in memory; no agent of ours reads it",
}


def expected_of_embedded(story: str, recorded: Telling) -> Telling:
    """The recorded snapshots with the accepted differences put in; one that is none any more is an error."""
    expected: Telling = json.loads(json.dumps(recorded))
    for snapshot in expected.values():
        for content in snapshot["objects"].values():
            if isinstance(content, dict):
                _without_annotations(content.get("metadata", {}))
    for one in ACCEPTED:
        if one.story == story:
            snapshot = list(expected.values())[one.snapshot - 1]
            for path, value in one.ours.items():
                _put(snapshot, path, value)
    return expected


def _without_annotations(metadata: dict[str, Any]) -> None:
    annotations = metadata.get("annotations", {})
    for name in ABSENT_ANNOTATIONS:
        annotations.pop(name, None)
    if not annotations:
        metadata.pop("annotations", None)


def _put(content: Any, path: str, value: Any) -> None:
    parts: list[Any] = [int(part) if part.isdigit() else part for part in path.split(" / ")]
    *way, last = parts
    for part in way:
        content = content[part]
    known = content[last] if isinstance(content, list) else content.get(last)
    assert known != value, f"{path} is no difference any more: take it out of accepted.py"
    if value is None:
        del content[last]
    else:
        content[last] = value
