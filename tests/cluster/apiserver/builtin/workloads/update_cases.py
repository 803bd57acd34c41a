"""Changes of objects that exist: first how the good object is changed before it is made, then what is changed of it."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.builtin.workloads.objects import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    GONE,
    JOB,
    POD,
    POD_TEMPLATE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)

Changes = dict[str, Any]
UpdateCase = tuple[str, Kind, Changes, str, Changes]

_GATED: Changes = {
    "spec/schedulingGates": [{"name": "a"}, {"name": "b"}],
    "spec/nodeSelector": {"a": "b"},
    "spec/affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            }
        }
    },
}
_TOLERANT: Changes = {"spec/tolerations": [{"key": "own", "operator": "Exists"}]}
_TERMS = "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
_IDLE: Changes = {"spec/replicas": 0}
_SUSPENDED: Changes = {"spec/suspend": True}
_T = "spec/template/spec/"
_ENDED = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}


def _state(**state: Any) -> list[dict[str, Any]]:
    return [{**_ENDED, "state": state}]


_PODS: list[tuple[str, Changes, str, Changes]] = [
    ("image", {}, "", {"spec/containers/0/image": "other"}),
    ("no image", {}, "", {"spec/containers/0/image": ""}),
    ("image with a blank", {}, "", {"spec/containers/0/image": "other "}),
    ("one more container", {}, "", {"spec/containers/1": {"name": "more", "image": "x"}}),
    ("command", {}, "", {"spec/containers/0/command": ["x"]}),
    ("labels", {}, "", {"metadata/labels": {"a": "b"}}),
    ("deadline", {}, "", {"spec/activeDeadlineSeconds": 100}),
    ("deadline of none", {}, "", {"spec/activeDeadlineSeconds": 0}),
    ("earlier deadline", {"spec/activeDeadlineSeconds": 100}, "", {"spec/activeDeadlineSeconds": 10}),
    ("later deadline", {"spec/activeDeadlineSeconds": 100}, "", {"spec/activeDeadlineSeconds": 1000}),
    ("deadline gone", {"spec/activeDeadlineSeconds": 100}, "", {"spec/activeDeadlineSeconds": GONE}),
    ("deadline below zero", {"spec/activeDeadlineSeconds": 100}, "", {"spec/activeDeadlineSeconds": -1}),
    ("toleration more", {}, "", {"spec/tolerations/2": {"key": "k", "operator": "Exists"}}),
    ("toleration for longer", {}, "", {"spec/tolerations/0/tolerationSeconds": 9}),
    ("toleration changed", _TOLERANT, "", {"spec/tolerations/0/key": "other"}),
    ("tolerations gone", _TOLERANT, "", {"spec/tolerations": GONE}),
    ("grace period", {}, "", {"spec/terminationGracePeriodSeconds": 5}),
    ("gate taken away", _GATED, "", {"spec/schedulingGates": [{"name": "b"}]}),
    ("all gates taken away", _GATED, "", {"spec/schedulingGates": GONE}),
    ("gate added", {}, "", {"spec/schedulingGates": [{"name": "c"}]}),
    ("gate replaced", _GATED, "", {"spec/schedulingGates": [{"name": "a"}, {"name": "c"}]}),
    ("node selector", {}, "", {"spec/nodeSelector": {"a": "b"}}),
    ("node selector behind a gate", _GATED, "", {"spec/nodeSelector": {"a": "b", "c": "d"}}),
    ("node selector changed behind a gate", _GATED, "", {"spec/nodeSelector": {"a": "c"}}),
    (
        "node affinity narrowed behind a gate",
        _GATED,
        "",
        {f"{_TERMS}/0/matchExpressions/1": {"key": "c", "operator": "Exists"}},
    ),
    ("node affinity changed behind a gate", _GATED, "", {f"{_TERMS}/0/matchExpressions/0/key": "z"}),
    ("node affinity widened behind a gate", _GATED, "", {f"{_TERMS}/1": {}}),
    ("affinity gone behind a gate", _GATED, "", {"spec/affinity": GONE}),
    ("affinity to pods behind a gate", _GATED, "", {"spec/affinity/podAffinity": {}}),
    ("affinity behind a gate", {"spec/schedulingGates": [{"name": "a"}]}, "", {"spec/affinity": {"nodeAffinity": {}}}),
    ("node name", {}, "", {"spec/nodeName": "n"}),
    ("ephemeral container", {}, "", {"spec/ephemeralContainers": [{"name": "e", "image": "x"}]}),
    ("mirror", {}, "", {"metadata/annotations": {"kubernetes.io/config.mirror": "x"}}),
    (
        "apparmor",
        {},
        "",
        {"metadata/annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}},
    ),
    ("status", {}, "status", {"status/phase": "Running", "status/podIP": "1.2.3.4"}),
    ("class in status", {}, "status", {"status/qosClass": "Guaranteed"}),
    ("no class in status", {}, "status", {"status/qosClass": GONE}),
    ("addresses", {}, "status", {"status/podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}, {"ip": "::1"}]}),
    ("bad address", {}, "status", {"status/podIPs": [{"ip": "x"}]}),
    ("host addresses", {}, "status", {"status/hostIPs": [{"ip": "1.2.3.4"}]}),
    ("conditions", {}, "status", {"status/conditions": [{"type": "Ready", "status": "True"}]}),
    (
        "bad conditions",
        {},
        "status",
        {"status/conditions": [{"type": "a!", "status": "True", "observedGeneration": -1}]},
    ),
    ("nomination", {}, "status", {"status/nominatedNodeName": "n"}),
    ("bad nomination", {}, "status", {"status/nominatedNodeName": "N!"}),
    ("nomination of a bound pod", {"spec/nodeName": "n"}, "status", {"status/nominatedNodeName": "m"}),
    ("generation below zero", {}, "status", {"status/observedGeneration": -1}),
    ("claims", {}, "status", {"status/resourceClaimStatuses": [{"name": "a"}, {"name": "a"}]}),
    ("ended", {}, "status", {"status/containerStatuses": _state(terminated={"exitCode": 0})}),
]
_CPU = "spec/containers/0/resources/requests/cpu"
_SIZED: Changes = {"spec/containers/0/resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
_BESIDE: Changes = {
    **_SIZED,
    "spec/initContainers": [
        {"name": "side", "image": "x", "restartPolicy": "Always"},
        {"name": "first", "image": "x", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
    ],
}
_WHOLE: Changes = {**_SIZED, "spec/resources": {"limits": {"cpu": "3"}}}
_LOOK = {"name": "look", "image": "x"}
_SUBRESOURCES: list[tuple[str, Changes, str, Changes]] = [
    ("less CPU", _SIZED, "resize", {_CPU: "500m"}),
    ("more CPU than the limit", _SIZED, "resize", {_CPU: "5"}),
    ("no CPU", _SIZED, "resize", {"spec/containers/0/resources": {}}),
    ("memory", _SIZED, "resize", {"spec/containers/0/resources/requests/memory": "1Gi"}),
    ("storage", _SIZED, "resize", {"spec/containers/0/resources/requests/ephemeral-storage": "1Gi"}),
    ("image by a resize", _SIZED, "resize", {"spec/containers/0/image": "other", "metadata/labels": {"a": "b"}}),
    ("name by a resize", _SIZED, "resize", {"spec/containers/0/name": "other"}),
    ("container by a resize", _SIZED, "resize", {"spec/containers/1": _LOOK}),
    ("another class", {}, "resize", {"spec/containers/0/resources": {"requests": {"cpu": "1"}}}),
    ("sidecar", _BESIDE, "resize", {"spec/initContainers/0/resources": {"requests": {"cpu": "1"}}}),
    ("init container", _BESIDE, "resize", {"spec/initContainers/1/resources": {"requests": {"cpu": "1"}}}),
    ("storage of a sidecar", _BESIDE, "resize", {"spec/initContainers/0/resources/requests/ephemeral-storage": "1"}),
    ("whole pod", _WHOLE, "resize", {"spec/resources/limits/cpu": "4"}),
    ("whole pod no more", _WHOLE, "resize", {"spec/resources": GONE}),
    ("whole pod from now on", _SIZED, "resize", {"spec/resources": {"limits": {"cpu": "4"}}}),
    ("look", {}, "ephemeralcontainers", {"spec/ephemeralContainers": [_LOOK]}),
    ("look twice", {}, "ephemeralcontainers", {"spec/ephemeralContainers": [_LOOK, _LOOK]}),
    (
        "look too much",
        {},
        "ephemeralcontainers",
        {
            "spec/ephemeralContainers": [
                {
                    "name": "main",
                    "image": "x ",
                    "targetContainerName": "no",
                    "ports": [{"containerPort": 1}],
                    "resources": {"limits": {"cpu": "1"}},
                    "livenessProbe": {"exec": {"command": ["x"]}},
                    "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "a"}],
                }
            ],
            "spec/hostNetwork": True,
        },
    ),
]
_REPLICATED: list[tuple[str, Changes, str, Changes]] = [
    ("template", _IDLE, "", {_T + "containers/0/image": "other"}),
    ("bad template", _IDLE, "", {_T + "containers/0/name": "X"}),
    ("annotations", _IDLE, "", {"metadata/annotations": {"a": "b"}}),
    # Controllers begin to count collisions at any moment, and that count never goes back.
    (
        "counts below zero",
        _IDLE,
        "status",
        {"status/replicas": -1, "status/readyReplicas": 3, "status/collisionCount": 0},
    ),
]
_SELECTED: list[tuple[str, Changes, str, Changes]] = [
    ("selector", _IDLE, "", {"spec/selector": {"matchLabels": {"app": "y"}}}),
    (
        "selector and template",
        _IDLE,
        "",
        {"spec/selector": {"matchLabels": {"app": "y"}}, "spec/template/metadata/labels": {"app": "y"}},
    ),
]
_SETS: list[tuple[str, Changes, str, Changes]] = [
    ("service", {**_IDLE, "spec/serviceName": "a"}, "", {"spec/serviceName": "b"}),
    ("management", _IDLE, "", {"spec/podManagementPolicy": "Parallel"}),
    ("strategy", _IDLE, "", {"spec/updateStrategy": {"type": "OnDelete"}, "spec/minReadySeconds": 3}),
    ("retention", _IDLE, "", {"spec/persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}),
    ("ordinals", _IDLE, "", {"spec/ordinals": {"start": 3}}),
    (
        "status of unready",
        _IDLE,
        "status",
        {"status/replicas": 2, "status/availableReplicas": 2, "status/collisionCount": 0},
    ),
]
_DAEMONS: list[tuple[str, Changes, str, Changes]] = [
    ("selector", {}, "", {"spec/selector": {"matchLabels": {"app": "y"}}}),
    ("template", {}, "", {_T + "containers/0/image": "other"}),
    ("strategy", {}, "", {"spec/updateStrategy": {"type": "OnDelete"}}),
    ("generation", {}, "", {"metadata/annotations": {"deprecated.daemonset.template.generation": "7"}}),
    ("counts below zero", {}, "status", {"status/numberReady": -1, "status/collisionCount": -1}),
]
_NODE_AFFINITY: Changes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
_JOBS: list[tuple[str, Changes, str, Changes]] = [
    ("parallelism", _SUSPENDED, "", {"spec/parallelism": 3}),
    ("completions", _SUSPENDED, "", {"spec/completions": 3}),
    (
        "completions in tandem",
        {**_SUSPENDED, "spec/completionMode": "Indexed", "spec/completions": 2, "spec/parallelism": 2},
        "",
        {"spec/completions": 3, "spec/parallelism": 3},
    ),
    (
        "completions alone",
        {**_SUSPENDED, "spec/completionMode": "Indexed", "spec/completions": 2, "spec/parallelism": 2},
        "",
        {"spec/completions": 3},
    ),
    ("mode", _SUSPENDED, "", {"spec/completionMode": "Indexed"}),
    ("manager", _SUSPENDED, "", {"spec/managedBy": "a.b/c"}),
    ("manager gone", {**_SUSPENDED, "spec/managedBy": "a.b/c"}, "", {"spec/managedBy": GONE}),
    ("selector", _SUSPENDED, "", {"spec/selector/matchLabels": {"app": "x"}}),
    ("back-off", _SUSPENDED, "", {"spec/backoffLimit": 3}),
    ("image", _SUSPENDED, "", {_T + "containers/0/image": "other"}),
    ("node selector", _SUSPENDED, "", {_T + "nodeSelector": {"a": "b"}}),
    ("tolerations", _SUSPENDED, "", {_T + "tolerations": [{"operator": "Exists"}]}),
    ("gates", _SUSPENDED, "", {_T + "schedulingGates": [{"name": "a"}]}),
    ("node affinity", _SUSPENDED, "", {_T + "affinity": {"nodeAffinity": _NODE_AFFINITY}}),
    ("pod affinity", _SUSPENDED, "", {_T + "affinity": {"podAffinity": {}}}),
    ("empty affinity", _SUSPENDED, "", {_T + "affinity": {}}),
    ("resources", _SUSPENDED, "", {_T + "containers/0/resources": {"limits": {"cpu": "1"}}}),
    ("labels of pods", _SUSPENDED, "", {"spec/template/metadata/labels/new": "label"}),
    ("resumed", _SUSPENDED, "", {"spec/suspend": False, _T + "nodeSelector": {"a": "b"}}),
    ("node selector while it runs", {"spec/parallelism": 0}, "", {_T + "nodeSelector": {"a": "b"}}),
    ("success policy", _SUSPENDED, "", {"spec/successPolicy": {"rules": [{"succeededCount": 1}]}}),
    ("complete without more", _SUSPENDED, "status", {"status/conditions": [{"type": "Complete", "status": "True"}]}),
    (
        "complete and failed",
        _SUSPENDED,
        "status",
        {
            "status/conditions": [
                {"type": each, "status": "True"} for each in ("Complete", "Failed", "SuccessCriteriaMet")
            ],
            "status/active": 1,
            "status/ready": 2,
        },
    ),
    (
        "complete",
        _SUSPENDED,
        "status",
        {
            "status/conditions": [{"type": each, "status": "True"} for each in ("Complete", "SuccessCriteriaMet")],
            "status/startTime": "2026-01-01T00:00:00Z",
            "status/completionTime": "2025-01-01T00:00:00Z",
        },
    ),
    ("indexes", _SUSPENDED, "status", {"status/completedIndexes": "0", "status/failedIndexes": "0"}),
    (
        "overlapping indexes",
        {**_SUSPENDED, "spec/completionMode": "Indexed", "spec/completions": 9, "spec/backoffLimitPerIndex": 1},
        "status",
        {"status/completedIndexes": "0,2-4", "status/failedIndexes": "1,3,20"},
    ),
    (
        "uncounted twice",
        _SUSPENDED,
        "status",
        {"status/uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}, "status/failed": -1},
    ),
]
_CRONS: list[tuple[str, Changes, str, Changes]] = [
    ("schedule", _SUSPENDED, "", {"spec/schedule": "x"}),
    ("zone in the schedule", _SUSPENDED, "", {"spec/schedule": "TZ=UTC * * * * *"}),
    ("zone", _SUSPENDED, "", {"spec/timeZone": "Nowhere"}),
    ("job", _SUSPENDED, "", {"spec/jobTemplate/spec/backoffLimit": 2}),
]


def _listed(kind: Kind, *tables: list[tuple[str, Changes, str, Changes]]) -> list[UpdateCase]:
    return [
        (f"{kind[1]}: {name}", kind, made, part, changes) for table in tables for name, made, part, changes in table
    ]


UPDATES: list[UpdateCase] = [
    *_listed(POD, _PODS, _SUBRESOURCES),
    *_listed(POD_TEMPLATE, [("image", {}, "", {"template/spec/containers/0/image": "other"})]),
    *_listed(REPLICATION_CONTROLLER, _REPLICATED),
    *_listed(REPLICA_SET, _REPLICATED, _SELECTED),
    *_listed(DEPLOYMENT, _REPLICATED, _SELECTED),
    *_listed(STATEFUL_SET, _REPLICATED, _SELECTED, _SETS),
    *_listed(DAEMON_SET, _DAEMONS),
    *_listed(JOB, _JOBS),
    *_listed(CRON_JOB, _CRONS),
]
