"""Admission that is built in: limits, quotas, priorities, accounts, tolerations, storage classes."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_bare_pod, a_config_map, a_container, a_service
from tests.conformance.story import CORE, Story, delete, get, patch, post, status_is

PODS = f"{CORE}/pods"
QUOTA = f"{CORE}/resourcequotas/q"
CLAIMS = f"{CORE}/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def limits(**limit: Any) -> dict[str, Any]:
    return {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}


def sized(name: str = "one", **resources: Any) -> dict[str, Any]:
    return a_bare_pod(name, containers=[a_container(resources=resources)])


def resources_of(body: Any) -> Any:
    return [container["resources"] for container in body["spec"]["containers"]]


STORIES = [
    Story(
        "limits of containers",
        [
            post(
                f"{CORE}/limitranges",
                limits(
                    type="Container",
                    default={"cpu": "500m"},
                    defaultRequest={"cpu": "250m", "memory": "64Mi"},
                    max={"cpu": "1", "memory": "1Gi"},
                    min={"cpu": "100m"},
                    maxLimitRequestRatio={"cpu": "4"},
                ),
            ),
            post(PODS, a_bare_pod(), until=lambda status, body: status == 403 or "LimitRanger" in str(body)),
            post(PODS, sized("two", limits={"cpu": "2", "memory": "128Mi"})),
            post(PODS, sized("three", requests={"cpu": "50m"}, limits={"cpu": "100m", "memory": "128Mi"})),
            post(PODS, sized("four", requests={"cpu": "100m"}, limits={"cpu": "1", "memory": "128Mi"})),
            post(PODS, sized("five", limits={"memory": "2Gi"})),
        ],
        account=True,
    ),
    Story(
        "limits of pods and claims",
        [
            post(
                f"{CORE}/limitranges",
                {
                    "metadata": {"name": "l"},
                    "spec": {
                        "limits": [
                            {"type": "Pod", "max": {"cpu": "1"}},
                            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
                        ]
                    },
                },
            ),
            post(PODS, sized(limits={"cpu": "2"}), until=status_is(403)),
            post(PODS, a_bare_pod("none")),
            post(
                CLAIMS,
                {
                    "metadata": {"name": "c"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}},
                },
            ),
            post(
                CLAIMS,
                {
                    "metadata": {"name": "c"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
                },
            ),
        ],
        account=True,
    ),
    Story(
        "quotas",
        [
            post(
                f"{CORE}/resourcequotas",
                {
                    "metadata": {"name": "q"},
                    "spec": {"hard": {"pods": "2", "requests.cpu": "1", "services": "1", "count/configmaps": "1"}},
                },
            ),
            patch(
                f"{QUOTA}/status",
                {
                    "status": {
                        "hard": {"pods": "2", "requests.cpu": "1", "services": "1", "count/configmaps": "1"},
                        "used": {"pods": "0", "requests.cpu": "0", "services": "0", "count/configmaps": "0"},
                    }
                },
            ),
            post(PODS, a_bare_pod("unsized"), until=status_is(403)),
            post(PODS, sized("a", requests={"cpu": "600m"}), until=status_is(201)),
            post(PODS, sized("b", requests={"cpu": "600m"})),
            post(PODS, sized("c", requests={"cpu": "100m"})),
            post(PODS, sized("d", requests={"cpu": "100m"})),
            get(QUOTA, shown=lambda body: body["status"]),
            post(f"{CORE}/services", a_service()),
            post(f"{CORE}/services", a_service("two")),
            post(f"{CORE}/configmaps", a_config_map("a")),
            post(f"{CORE}/configmaps", a_config_map("b")),
            post(f"{CORE}/configmaps", a_config_map("b"), query={"dryRun": "All"}),
        ],
        account=True,
    ),
    Story(
        "priorities of pods",
        [
            post(PRIORITIES, {"metadata": {"name": "conformance-mid"}, "value": 500, "preemptionPolicy": "Never"}),
            post(PODS, a_bare_pod(priorityClassName="conformance-mid"), until=status_is(201)),
            post(PODS, a_bare_pod("none", priorityClassName="no-such-class")),
            post(PODS, a_bare_pod("number", priority=7)),
            post(PODS, a_bare_pod("both", priority=7, priorityClassName="conformance-mid")),
            post(PODS, a_bare_pod("system", priorityClassName="system-node-critical")),
        ],
        account=True,
    ),
    Story(
        "pods and their accounts",
        [
            post(PODS, a_bare_pod("too-early")),
            post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]}),
            post(f"{CORE}/serviceaccounts", {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False}),
            post(PODS, a_bare_pod(), until=status_is(201)),
            post(PODS, a_bare_pod("quiet", serviceAccountName="quiet"), until=status_is(201)),
            post(PODS, a_bare_pod("no-mount", automountServiceAccountToken=False)),
            post(PODS, a_bare_pod("old-name", serviceAccount="quiet")),
            post(
                PODS,
                a_bare_pod(
                    "named",
                    {"annotations": {"kubernetes.io/config.mirror": "x"}},
                    serviceAccountName="quiet",
                    nodeName="n",
                ),
            ),
        ],
    ),
    Story(
        "tolerations of pods",
        [
            post(PODS, a_bare_pod()),
            post(
                PODS,
                a_bare_pod(
                    "own",
                    tolerations=[
                        {
                            "key": "node.kubernetes.io/not-ready",
                            "operator": "Exists",
                            "effect": "NoExecute",
                            "tolerationSeconds": 5,
                        }
                    ],
                ),
            ),
            post(PODS, a_bare_pod("all", tolerations=[{"operator": "Exists"}])),
        ],
        account=True,
    ),
    Story(
        "the default storage class",
        [
            post(
                CLASSES,
                {
                    "metadata": {
                        "name": "conformance-default",
                        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                    },
                    "provisioner": "example.com/disk",
                },
            ),
            post(
                CLAIMS,
                {
                    "metadata": {"name": "wait"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                },
                query={"dryRun": "All"},
                until=lambda _status, body: "conformance-default" in str(body),
            ),
            post(
                CLAIMS,
                {
                    "metadata": {"name": "one"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                },
            ),
            post(
                CLAIMS,
                {
                    "metadata": {"name": "none"},
                    "spec": {
                        "storageClassName": "",
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                },
            ),
            delete(f"{CLASSES}/conformance-default"),
        ],
    ),
    Story(
        "runtime classes",
        [
            post(
                "/apis/node.k8s.io/v1/runtimeclasses",
                {
                    "metadata": {"name": "conformance-over"},
                    "handler": "h",
                    "overhead": {"podFixed": {"cpu": "100m"}},
                    "scheduling": {"nodeSelector": {"a": "b"}},
                },
            ),
            post(PODS, a_bare_pod(runtimeClassName="conformance-over"), until=status_is(201)),
            post(PODS, a_bare_pod("none", runtimeClassName="no-such-class")),
            post(PODS, a_bare_pod("overhead", overhead={"cpu": "1"})),
        ],
        account=True,
    ),
    Story(
        "taints of new nodes",
        [
            post("/api/v1/nodes", {"metadata": {"name": "conformance-new"}}),
            get("/api/v1/nodes/conformance-new", shown=lambda body: body["spec"]),
            delete("/api/v1/nodes/conformance-new"),
        ],
    ),
]
