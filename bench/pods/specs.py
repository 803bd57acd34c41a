"""The pods that are measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("programs")
_FOLDER = "/programs"
PORT, DATAGRAMS = 8080, 8053
"""Where the pod that serves does so."""


def sleeping(*, readiness: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A pod that does nothing, and ends when it is told to."""
    container: dict[str, Any] = {"name": "main", "image": "busybox", "command": ["sleep", "infinity"]}
    return {"containers": [container | ({"readinessProbe": readiness} if readiness else {})]}


def programs() -> dict[str, Any]:
    """The ConfigMap that holds the programs of the other pods."""
    files = {file.name: file.read_text() for file in PROGRAMS.glob("*.py")}
    return {"metadata": {"name": "programs"}, "data": files}


def program(name: str, plan: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A pod that runs one of them to its end, with a plan; it has a folder ``/scratch``."""
    command = ["python", f"{_FOLDER}/{name}.py", *([json.dumps(plan)] if plan is not None else [])]
    mounts = [{"name": "programs", "mountPath": _FOLDER}, {"name": "scratch", "mountPath": "/scratch"}]
    container = {"name": "main", "image": "python", "command": command, "volumeMounts": mounts}
    volumes = [{"name": "programs", "configMap": {"name": "programs"}}, {"name": "scratch", "emptyDir": {}}]
    return {"containers": [container], "volumes": volumes, "restartPolicy": "Never"}


def service(name: str, *, app: str) -> dict[str, Any]:
    """A Service in front of a pod that serves."""
    ports = [{"name": "web", "port": 80, "targetPort": PORT}]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": app}, "ports": ports}}
