"""All cases: each says how the good object of a kind is changed before it is sent to two servers."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.builtin.workloads.container_cases import CONTAINERS_AND_VOLUMES
from tests.cluster.apiserver.builtin.workloads.objects import (
    CONTROLLER_REVISION,
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
from tests.cluster.apiserver.builtin.workloads.pod_cases import RESOURCES_AND_SCHEDULING

Case = tuple[str, Kind, dict[str, Any]]

T = "spec/template/spec/containers/0/"
_RUNNING: dict[str, dict[str, Any]] = {
    "plain": {},
    "replicas below zero": {"spec/replicas": -1},
    "not ready below zero": {"spec/minReadySeconds": -1},
    "no template": {"spec/template": GONE},
    "template with a bad container": {T + "name": "X", T + "image": GONE},
    "template with bad labels": {"spec/template/metadata": {"labels": {"app": "x", "a!": "b!"}}},
    "template with bad annotations": {"spec/template/metadata/annotations": {"a/b/c": ""}},
    "template that ends": {"spec/template/spec/restartPolicy": "Never"},
    "template with a deadline": {"spec/template/spec/activeDeadlineSeconds": 3},
    "template with limits": {T + "resources": {"limits": {"cpu": "1"}}},
    "template with an image with a blank": {T + "image": " app"},
    "template with ephemeral containers": {"spec/template/spec/ephemeralContainers": [{"name": "e", "image": "x"}]},
    "template with a variable twice": {T + "env": [{"name": "A"}, {"name": "A"}]},
    "template on the host network": {
        "spec/template/spec/hostNetwork": True,
        T + "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}],
    },
    "dotted name": {"metadata/name": "a.b"},
    "long name": {"metadata/name": "a" * 64},
    "status is dropped": {"status": {"replicas": 3, "observedGeneration": 3}},
}
_SELECTING: dict[str, dict[str, Any]] = {
    "no selector": {"spec/selector": GONE},
    "empty selector": {"spec/selector": {}},
    "selector of others": {"spec/selector": {"matchLabels": {"app": "y"}}},
    "bad selector": {"spec/selector": {"matchLabels": {"app": "y!"}}},
    "selector of no sense": {"spec/selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
    "selector without values": {"spec/selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
    "selector by expression": {
        "spec/selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}
    },
    "template without labels": {"spec/template/metadata": {}},
}
_ROLLING = "spec/strategy/rollingUpdate"
_DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "recreate": {"spec/strategy": {"type": "Recreate"}},
    "recreate and roll": {"spec/strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
    "unknown strategy": {"spec/strategy": {"type": "Slow"}},
    "no surge and none away": {_ROLLING: {"maxSurge": 0, "maxUnavailable": "0%"}},
    "more than all": {_ROLLING: {"maxUnavailable": "101%", "maxSurge": "200%"}},
    "below zero": {_ROLLING: {"maxUnavailable": -1, "maxSurge": "-1%"}},
    "no percentage": {_ROLLING: {"maxUnavailable": "5", "maxSurge": "x"}},
    "short deadline": {"spec/progressDeadlineSeconds": 5, "spec/minReadySeconds": 5},
    "history below zero": {"spec/revisionHistoryLimit": -1},
    "deadline below zero": {"spec/progressDeadlineSeconds": -1},
}
_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_STATEFUL: dict[str, dict[str, Any]] = {
    "claims": {
        "spec/volumeClaimTemplates": [_CLAIM],
        T + "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "spec/serviceName": "svc",
    },
    "bad claims": {"spec/volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]},
    "bad service": {"spec/serviceName": "S"},
    "unknown management": {"spec/podManagementPolicy": "X"},
    "on delete": {"spec/updateStrategy": {"type": "OnDelete"}},
    "on delete and roll": {"spec/updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
    "unknown strategy": {"spec/updateStrategy": {"type": "X"}},
    "partition below zero": {"spec/updateStrategy": {"rollingUpdate": {"partition": -1, "maxUnavailable": 0}}},
    "roll without details": {"spec/updateStrategy": {"type": "RollingUpdate"}},
    "unknown retention": {"spec/persistentVolumeClaimRetentionPolicy": {"whenDeleted": "X", "whenScaled": "Y"}},
    "ordinals below zero": {"spec/ordinals": {"start": -1}},
    "host name is the set's": {"spec/template/spec/hostname": "H!", "spec/template/spec/subdomain": "S!"},
    "history below zero": {"spec/revisionHistoryLimit": -1},
}
_DAEMON: dict[str, dict[str, Any]] = {
    "on delete": {"spec/updateStrategy": {"type": "OnDelete"}},
    "unknown strategy": {"spec/updateStrategy": {"type": "X"}},
    "surge and away": {"spec/updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}},
    "neither": {"spec/updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
    "more than all": {"spec/updateStrategy": {"rollingUpdate": {"maxSurge": "101%", "maxUnavailable": "101%"}}},
    "history below zero": {"spec/revisionHistoryLimit": -1},
    "generation of its own": {"metadata/annotations": {"deprecated.daemonset.template.generation": "5"}},
}
_POLICY = "spec/podFailurePolicy"
_INDEXED = {"spec/completionMode": "Indexed", "spec/completions": 3}
_JOBS: dict[str, dict[str, Any]] = {
    "plain": {},
    "own labels": {"metadata/labels": {"a": "b"}},
    "template without labels": {"spec/template/metadata": GONE},
    "completions alone": {"spec/completions": 3},
    "parallelism alone": {"spec/parallelism": 3},
    "counts below zero": {
        "spec/completions": -1,
        "spec/parallelism": -1,
        "spec/backoffLimit": -1,
        "spec/activeDeadlineSeconds": -1,
        "spec/ttlSecondsAfterFinished": -1,
    },
    "restarts always": {"spec/template/spec/restartPolicy": "Always"},
    "restarts by default": {"spec/template/spec/restartPolicy": GONE},
    "restarts oddly": {"spec/template/spec/restartPolicy": "Odd"},
    "restarts on failure": {"spec/template/spec/restartPolicy": "OnFailure"},
    "selector of its own": {"spec/selector": {"matchLabels": {"app": "x"}}},
    "manual selector": {"spec/manualSelector": True, "spec/selector": {"matchLabels": {"app": "x"}}},
    "manual selector that is missing": {"spec/manualSelector": True},
    "manual selector of others": {"spec/manualSelector": True, "spec/selector": {"matchLabels": {"app": "y"}}},
    "label of the server": {"spec/template/metadata/labels": {"app": "x", "job-name": "other"}},
    "indexed": _INDEXED,
    "indexed without completions": {"spec/completionMode": "Indexed", "spec/parallelism": 2},
    "indexed with a long name": {**_INDEXED, "metadata/name": "a" * 62},
    "indexed with a dotted name": {**_INDEXED, "metadata/name": "a.b"},
    "unknown mode": {"spec/completionMode": "X"},
    "huge": {"spec/completionMode": "Indexed", "spec/completions": 100001, "spec/parallelism": 100001},
    "huge with limits": {
        "spec/completionMode": "Indexed",
        "spec/completions": 100001,
        "spec/parallelism": 10001,
        "spec/backoffLimitPerIndex": 1,
    },
    "huge with failures": {
        "spec/completionMode": "Indexed",
        "spec/completions": 200000,
        "spec/parallelism": 1,
        "spec/backoffLimitPerIndex": 1,
        "spec/maxFailedIndexes": 150000,
    },
    "per index": {**_INDEXED, "spec/backoffLimitPerIndex": 1, "spec/maxFailedIndexes": 2},
    "per index without indexes": {"spec/backoffLimitPerIndex": 1, "spec/maxFailedIndexes": 2},
    "failures without limit": {**_INDEXED, "spec/maxFailedIndexes": 9},
    "managed": {"spec/managedBy": "example.com/x"},
    "managed badly": {"spec/managedBy": "x"},
    "managed oddly": {"spec/managedBy": f"A/{'b' * 70} "},
    "managed by nobody": {"spec/managedBy": ""},
    "suspended": {"spec/suspend": True},
    "failure policy": {
        _POLICY: {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}]},
    },
    "failure policy by condition": {
        _POLICY: {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
    },
    "bad failure policy": {
        _POLICY: {
            "rules": [
                {},
                {"action": "X", "onExitCodes": {"operator": "Is"}},
                {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3, 0, 3], "containerName": "no"}},
                {
                    "action": "Count",
                    "onExitCodes": {"operator": "", "values": [1]},
                    "onPodConditions": [{"type": "a!", "status": "Maybe"}],
                },
            ]
        },
        "spec/template/spec/restartPolicy": "OnFailure",
        "spec/podReplacementPolicy": "TerminatingOrFailed",
    },
    "many failure rules": {
        _POLICY: {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}] * 21},
    },
    "unknown replacement": {"spec/podReplacementPolicy": "X"},
    "success policy": {**_INDEXED, "spec/successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]}},
    "success policy without indexes": {"spec/successPolicy": {"rules": [{"succeededCount": 1}]}},
    "success policy of nothing": {**_INDEXED, "spec/successPolicy": {"rules": []}},
    "bad success policy": {
        **_INDEXED,
        "spec/successPolicy": {
            "rules": [
                {},
                {"succeededCount": 4},
                {"succeededCount": -1},
                {"succeededIndexes": "0,1", "succeededCount": 3},
                {"succeededIndexes": "1-0"},
                {"succeededIndexes": "5"},
                {"succeededIndexes": "a"},
                {"succeededIndexes": "0-1-2"},
                {"succeededIndexes": "1,0"},
            ]
        },
    },
    "dotted name": {"metadata/name": "a.b"},
    "bad container": {T + "name": "X"},
    "status is dropped": {"status": {"active": 3}},
}
_CRON: dict[str, dict[str, Any]] = {
    "plain": {},
    "no schedule": {"spec/schedule": ""},
    **{
        f"schedule {schedule}": {"spec/schedule": schedule}
        for schedule in (
            "@hourly",
            "@every 5m",
            "@every x",
            "@never",
            "* * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * JAN-mar SUN,tue",
            "* * * * 7",
            "5-1 * * * *",
            "*/0 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "x * * * *",
            "-1 * * * *",
            "1, * * * *",
            "TZ=UTC * * * * *",
            "TZ=Nowhere/Town * * * * *",
            "TZ=0",
            "99999999999999999999 * * * *",
        )
    },
    "zone": {"spec/timeZone": "Europe/Berlin"},
    "unknown zone": {"spec/timeZone": "Europe/Atlantis"},
    "empty zone": {"spec/timeZone": ""},
    "local zone": {"spec/timeZone": "Local"},
    "zone that goes up": {"spec/timeZone": "../Berlin"},
    "unknown concurrency": {"spec/concurrencyPolicy": "X"},
    "counts below zero": {
        "spec/startingDeadlineSeconds": -1,
        "spec/successfulJobsHistoryLimit": -1,
        "spec/failedJobsHistoryLimit": -1,
    },
    "long name": {"metadata/name": "a" * 53},
    "dotted name": {"metadata/name": "a.b"},
    "selector": {
        "spec/jobTemplate/spec/selector": {"matchLabels": {"a": "b"}},
        "spec/jobTemplate/spec/manualSelector": True,
    },
    "bad job": {"spec/jobTemplate/spec/completions": -1, "spec/jobTemplate/spec/template/spec/restartPolicy": "Always"},
    "no job": {"spec/jobTemplate": GONE},
}
_REVISIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "below zero": {"revision": -1},
    "no data": {"data": GONE},
}
_TEMPLATES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bad": {"template/spec/containers/0/name": "", "template/metadata/labels": {"a!": "b"}},
    "ends": {"template/spec/restartPolicy": "Never"},
    "no template": {"template": GONE},
}
_CONTROLLERS: dict[str, dict[str, Any]] = {
    "own labels": {"metadata/labels": {"c": "d"}},
    "selector of others": {"spec/selector": {"app": "y"}},
    "template without labels": {"spec/template/metadata": {}},
}


_UNCOUNTED = {key: value for key, value in _RUNNING.items() if key not in ("replicas below zero", "status is dropped")}


def _listed(kind: Kind, *tables: dict[str, dict[str, Any]]) -> list[Case]:
    return [(f"{kind[1]}: {name}", kind, changes) for table in tables for name, changes in table.items()]


CASES: list[Case] = [
    *_listed(POD, CONTAINERS_AND_VOLUMES, RESOURCES_AND_SCHEDULING),
    *_listed(POD_TEMPLATE, _TEMPLATES),
    *_listed(REPLICATION_CONTROLLER, _RUNNING, _CONTROLLERS),
    *_listed(DEPLOYMENT, _RUNNING, _SELECTING, _DEPLOYMENTS),
    *_listed(REPLICA_SET, _RUNNING, _SELECTING),
    *_listed(STATEFUL_SET, _RUNNING, _SELECTING, _STATEFUL),
    *_listed(
        DAEMON_SET,
        {key: value for key, value in _RUNNING.items() if key not in ("replicas below zero", "status is dropped")},
        _SELECTING,
        _DAEMON,
    ),
    *_listed(CONTROLLER_REVISION, _REVISIONS),
    *_listed(JOB, _JOBS),
    *_listed(CRON_JOB, _CRON),
]
