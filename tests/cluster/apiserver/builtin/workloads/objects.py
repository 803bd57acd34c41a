"""One good object of each kind, and how a case changes it."""

from __future__ import annotations

import copy
from typing import Any

Kind = tuple[str, str]

GONE = object()
"""The value of a field that a case takes away."""

POD: Kind = ("", "Pod")
POD_TEMPLATE: Kind = ("", "PodTemplate")
REPLICATION_CONTROLLER: Kind = ("", "ReplicationController")
DEPLOYMENT: Kind = ("apps", "Deployment")
REPLICA_SET: Kind = ("apps", "ReplicaSet")
STATEFUL_SET: Kind = ("apps", "StatefulSet")
DAEMON_SET: Kind = ("apps", "DaemonSet")
CONTROLLER_REVISION: Kind = ("apps", "ControllerRevision")
JOB: Kind = ("batch", "Job")
CRON_JOB: Kind = ("batch", "CronJob")

CONTAINER = {"name": "main", "image": "registry.example/app:1.2"}


def _template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{**CONTAINER}], **spec}}


SELECTOR = {"matchLabels": {"app": "x"}}
_BASES: dict[Kind, dict[str, Any]] = {
    POD: {
        "apiVersion": "v1",
        "spec": {
            "containers": [{**CONTAINER}],
            "automountServiceAccountToken": False,
            "serviceAccountName": "default",
        },
    },
    POD_TEMPLATE: {"apiVersion": "v1", "template": _template()},
    REPLICATION_CONTROLLER: {"apiVersion": "v1", "spec": {"template": _template()}},
    DEPLOYMENT: {"apiVersion": "apps/v1", "spec": {"selector": SELECTOR, "template": _template()}},
    REPLICA_SET: {"apiVersion": "apps/v1", "spec": {"selector": SELECTOR, "template": _template()}},
    STATEFUL_SET: {"apiVersion": "apps/v1", "spec": {"selector": SELECTOR, "template": _template()}},
    DAEMON_SET: {"apiVersion": "apps/v1", "spec": {"selector": SELECTOR, "template": _template()}},
    CONTROLLER_REVISION: {"apiVersion": "apps/v1", "revision": 1, "data": {"a": 1}},
    JOB: {"apiVersion": "batch/v1", "spec": {"template": _template(restartPolicy="Never")}},
    CRON_JOB: {
        "apiVersion": "batch/v1",
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": _template(restartPolicy="Never")}}},
    },
}


def base(kind: Kind) -> dict[str, Any]:
    """A good object of a kind."""
    made = copy.deepcopy(_BASES[kind])
    return {"kind": kind[1], "metadata": {"name": "it"}, **made}


def changed(kind: Kind, changes: dict[str, Any]) -> dict[str, Any]:
    """The good object with fields set."""
    return with_changes(base(kind), changes)


def with_changes(made: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """An object with fields set in place, by paths such as ``spec/containers/0/name``."""
    for path, value in changes.items():
        *way, last = path.split("/")
        at: Any = made
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        key: Any = int(last) if isinstance(at, list) else last
        if value is GONE:
            del at[key]
        elif isinstance(at, list) and key == len(at):
            at.append(copy.deepcopy(value))
        else:
            at[key] = copy.deepcopy(value)
    return made
