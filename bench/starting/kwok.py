"""How kwok is told to play nodes and pods: ready, running and gone at once, with as little to do as possible."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

_VERSION = "kwok.x-k8s.io/v1alpha1"
_PARALLEL = 64

_NODE_STATUS = """
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
"""

_POD_STATUS = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ index (NodeIPsWith .spec.nodeName) 0 | Quote }}
{{ with PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs:
- ip: {{ index . 0 | Quote }}
{{ end }}
conditions:
{{ range $type := (list "Initialized" "Ready" "ContainersReady") }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
"""


def binary() -> Path | None:
    """kwok in PATH, or in the cache that ``make kube-binaries`` fills."""
    cache = Path(os.environ.get("SHOAL_CACHE") or Path.home() / ".cache" / "shoal")
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *sorted((cache / "kube").glob("kwok-*"))]
    return next((path for folder in folders if os.access(path := folder / "kwok", os.X_OK)), None)


def configuration() -> str:
    """Options and stages as YAML documents. Without leases kwok watches nodes and pods, and that is all."""
    options = {
        "podPlayStageParallelism": _PARALLEL,
        "nodePlayStageParallelism": _PARALLEL,
        "nodeLeaseDurationSeconds": 0,
    }
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    documents = [
        {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options},
        _stage("node", "Node", [_is_not_ready()], {"statusTemplate": _NODE_STATUS}),
        _stage(
            "pod",
            "Pod",
            [alive, {"key": ".status.phase", "operator": "In", "values": ["Pending"]}],
            {"statusTemplate": _POD_STATUS},
        ),
        _stage("pod-gone", "Pod", [{**alive, "operator": "Exists"}], {"delete": True}),
    ]
    return yaml.safe_dump_all(documents)


def _is_not_ready() -> dict[str, Any]:
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    return {"key": ready, "operator": "NotIn", "values": ["True"]}


def _stage(name: str, kind: str, conditions: list[dict[str, Any]], then: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": conditions},
            "next": then,
        },
    }
