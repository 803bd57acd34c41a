"""What the server completes in objects of many kinds, and what it refuses of them."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_bare_node, a_bare_pod, a_container, a_deployment, a_template
from tests.conformance.story import APPS, BATCH, CORE, STRATEGIC_PATCH, Story, delete, get, patch, post

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NETWORKING = "/apis/networking.k8s.io/v1"
STORAGE = "/apis/storage.k8s.io/v1"
SELECTOR = {"matchLabels": {"app": "one"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def named(name: str, **content: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **content}


STORIES = [
    Story(
        "a pod is completed",
        [
            post(f"{CORE}/pods", a_bare_pod()),
            post(
                f"{CORE}/pods",
                a_bare_pod(
                    "full",
                    containers=[
                        a_container(
                            ports=[{"containerPort": 80}],
                            livenessProbe={"httpGet": {"path": "/", "port": 80}},
                            readinessProbe={"exec": {"command": ["true"]}},
                            resources={"limits": {"cpu": "1.50", "memory": "1024Mi"}},
                            env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                            volumeMounts=[{"name": "v", "mountPath": "/v"}],
                        ),
                        a_container("latest", image="example.com/app"),
                    ],
                    initContainers=[a_container("side", restartPolicy="Always")],
                    volumes=[
                        {"name": "v", "configMap": {"name": "c"}},
                        {"name": "e", "emptyDir": {}},
                        {"name": "s", "secret": {"secretName": "s"}},
                        {"name": "h", "hostPath": {"path": "/tmp"}},
                    ],
                    hostNetwork=True,
                    topologySpreadConstraints=[
                        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                    ],
                ),
            ),
        ],
        account=True,
    ),
    Story(
        "pods that are refused",
        [
            post(f"{CORE}/pods", body)
            for body in (
                a_bare_pod(containers=[]),
                a_bare_pod(containers=[{"name": "main"}]),
                a_bare_pod(containers=[a_container("Bad_Name")]),
                a_bare_pod(containers=[a_container(), a_container()]),
                a_bare_pod(restartPolicy="Sometimes"),
                a_bare_pod(containers=[a_container(imagePullPolicy="Maybe")]),
                a_bare_pod(containers=[a_container(ports=[{"containerPort": 0}, {"containerPort": 70000}])]),
                a_bare_pod(containers=[a_container(volumeMounts=[{"name": "none", "mountPath": "/x"}])]),
                a_bare_pod(containers=[a_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]),
                a_bare_pod(containers=[a_container(resources={"requests": {"cpu": "-1"}})]),
                a_bare_pod(containers=[a_container(resources={"requests": {"cpu": "lots"}})]),
                a_bare_pod(containers=[a_container(env=[{"name": "1=bad"}])]),
                a_bare_pod(dnsPolicy="Magic"),
                a_bare_pod(terminationGracePeriodSeconds=-1),
                a_bare_pod(activeDeadlineSeconds=0),
                a_bare_pod(volumes=[{"name": "v"}, {"name": "v", "emptyDir": {}}]),
                a_bare_pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
                a_bare_pod(nodeSelector={"bad key": "x"}),
                a_bare_pod(tolerations=[{"operator": "Exists", "value": "x"}]),
                a_bare_pod(hostname="Bad.Host"),
                a_bare_pod(serviceAccountName="not-there"),
                a_bare_pod(containers="none"),
            )
        ],
        account=True,
    ),
    Story(
        "what may change in a pod",
        [
            post(f"{CORE}/pods", a_bare_pod()),
            patch(f"{CORE}/pods/one", {"spec": {"nodeName": "n1"}}),
            patch(f"{CORE}/pods/one", {"spec": {"containers": [{"name": "main", "image": "i:2"}]}}, STRATEGIC_PATCH),
            patch(f"{CORE}/pods/one", {"spec": {"containers": [{"name": "main", "tty": True}]}}, STRATEGIC_PATCH),
            patch(f"{CORE}/pods/one", {"spec": {"containers": [a_container("another")]}}, STRATEGIC_PATCH),
            patch(f"{CORE}/pods/one", {"spec": {"tolerations": [{"operator": "Exists"}]}}, STRATEGIC_PATCH),
            patch(f"{CORE}/pods/one", {"spec": {"activeDeadlineSeconds": 60}}),
            patch(f"{CORE}/pods/one", {"spec": {"activeDeadlineSeconds": 90}}),
            patch(f"{CORE}/pods/one", {"spec": {"restartPolicy": "Never"}}),
            patch(f"{CORE}/pods/one", {"spec": {"priority": 5}}),
            patch(f"{CORE}/pods/one", {"spec": {"terminationGracePeriodSeconds": 5}}),
        ],
        account=True,
    ),
    Story(
        "gated pods",
        [
            post(f"{CORE}/pods", a_bare_pod(schedulingGates=[{"name": "example.com/wait"}])),
            patch(f"{CORE}/pods/one", {"spec": {"nodeSelector": {"a": "b"}}}),
            post(
                f"{CORE}/pods/one/binding",
                {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n1"}},
            ),
            patch(f"{CORE}/pods/one", {"spec": {"schedulingGates": [{"name": "example.com/other"}]}}),
            patch(f"{CORE}/pods/one", {"spec": {"schedulingGates": None}}),
            post(f"{CORE}/pods", a_bare_pod("two", schedulingGates=[{"name": "x"}], nodeName="n1")),
        ],
        account=True,
    ),
    Story(
        "deployments are completed or refused",
        [
            post(f"{APPS}/deployments", a_deployment()),
            post(f"{APPS}/deployments", {**a_deployment("two"), "spec": {}}),
            post(f"{APPS}/deployments", a_deployment("two", selector={"matchLabels": {"app": "other"}})),
            post(f"{APPS}/deployments", a_deployment("two", replicas=-1)),
            post(f"{APPS}/deployments", a_deployment("two", strategy={"type": "Bogus"})),
            post(
                f"{APPS}/deployments",
                a_deployment("two", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            ),
            post(f"{APPS}/deployments", a_deployment("two", template=a_template("two", restartPolicy="Never"))),
            patch(f"{APPS}/deployments/one", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
        ],
    ),
    Story(
        "stateful sets, daemon sets and replica sets are completed",
        [
            post(
                f"{APPS}/statefulsets",
                named(
                    "one",
                    spec={
                        "selector": SELECTOR,
                        "serviceName": "one",
                        "template": a_template("one"),
                        "volumeClaimTemplates": [named("data", spec=CLAIM)],
                    },
                ),
            ),
            patch(f"{APPS}/statefulsets/one", {"spec": {"serviceName": "two"}}),
            patch(f"{APPS}/statefulsets/one", {"spec": {"replicas": 3}}),
            post(f"{APPS}/daemonsets", named("one", spec={"selector": SELECTOR, "template": a_template("one")})),
            post(f"{APPS}/replicasets", named("one", spec={"selector": SELECTOR, "template": a_template("one")})),
            patch(f"{APPS}/replicasets/one", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
            post(f"{CORE}/replicationcontrollers", named("one", spec={"template": a_template("one")})),
            post(f"{APPS}/controllerrevisions", named("one", data={"any": {"thing": 1}}, revision=1)),
            patch(f"{APPS}/controllerrevisions/one", {"data": {"any": {"thing": 2}}}),
        ],
    ),
    Story(
        "jobs are completed and get a selector",
        [
            post(
                f"{BATCH}/jobs",
                named("one", spec={"template": a_template("one", restartPolicy="Never")}),
                called="made",
            ),
            get(f"{BATCH}/jobs/one"),
            patch(f"{BATCH}/jobs/one", {"spec": {"parallelism": 2}}),
            patch(f"{BATCH}/jobs/one", {"spec": {"completions": 2}}),
            patch(f"{BATCH}/jobs/one", {"spec": {"suspend": True}}),
            patch(f"{BATCH}/jobs/one", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
            patch(f"{BATCH}/jobs/one", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 3}}}}),
        ],
    ),
    Story(
        "jobs that are refused",
        [
            post(f"{BATCH}/jobs", named("one", spec=spec))
            for spec in (
                {"template": a_template("one")},
                {},
                {"template": a_template("one", restartPolicy="Never"), "parallelism": -1},
                {"template": a_template("one", restartPolicy="Never"), "completionMode": "Sorted"},
                {"template": a_template("one", restartPolicy="Never"), "completionMode": "Indexed"},
                {"template": a_template("one", restartPolicy="Never"), "manualSelector": True},
                {"template": a_template("one", restartPolicy="Never"), "selector": SELECTOR},
                {"template": a_template("one", restartPolicy="OnFailure"), "podFailurePolicy": {"rules": []}},
            )
        ],
    ),
    Story(
        "an indexed job and a manual selector",
        [
            post(
                f"{BATCH}/jobs",
                named(
                    "indexed",
                    spec={
                        "template": a_template("one", restartPolicy="Never"),
                        "completionMode": "Indexed",
                        "completions": 3,
                        "backoffLimitPerIndex": 1,
                    },
                ),
            ),
            post(
                f"{BATCH}/jobs",
                named(
                    "manual",
                    spec={
                        "template": a_template("one", restartPolicy="Never"),
                        "manualSelector": True,
                        "selector": SELECTOR,
                    },
                ),
            ),
        ],
    ),
    Story(
        "cron jobs",
        [
            post(
                f"{BATCH}/cronjobs",
                named(
                    "one",
                    spec={
                        "schedule": "*/5 * * * *",
                        "jobTemplate": {"spec": {"template": a_template("one", restartPolicy="Never")}},
                    },
                ),
            ),
            patch(f"{BATCH}/cronjobs/one", {"spec": {"schedule": "whenever"}}),
            patch(f"{BATCH}/cronjobs/one", {"spec": {"timeZone": "Nowhere/Land"}}),
            patch(f"{BATCH}/cronjobs/one", {"spec": {"concurrencyPolicy": "Perhaps"}}),
        ],
    ),
    Story(
        "config maps and secrets",
        [
            post(f"{CORE}/configmaps", named("a", data={"bad key!": "x"})),
            post(f"{CORE}/configmaps", named("a", data={"k": "x"}, binaryData={"k": "eA=="})),
            post(f"{CORE}/configmaps", named("a", data={"k": "x"}, immutable=True)),
            patch(f"{CORE}/configmaps/a", {"data": {"k": "y"}}),
            patch(f"{CORE}/configmaps/a", {"immutable": False}),
            patch(f"{CORE}/configmaps/a", {"metadata": {"labels": {"still": "mutable"}}}),
            post(f"{CORE}/secrets", named("s", stringData={"password": "hunter2"}, data={"user": "bWU="})),
            post(f"{CORE}/secrets", named("t", data={"user": "***"})),
            post(f"{CORE}/secrets", named("t", type="kubernetes.io/dockerconfigjson", data={})),
            post(f"{CORE}/secrets", named("t", type="kubernetes.io/tls", data={"tls.crt": "eA=="})),
            post(f"{CORE}/secrets", named("t", type="kubernetes.io/basic-auth")),
            patch(f"{CORE}/secrets/s", {"type": "other"}),
            patch(f"{CORE}/secrets/s", {"immutable": True}),
            patch(f"{CORE}/secrets/s", {"stringData": {"password": "x"}}),
        ],
    ),
    Story(
        "volumes and claims",
        [
            post(f"{CORE}/persistentvolumeclaims", named("one", spec=CLAIM)),
            post(f"{CORE}/persistentvolumeclaims", named("two", spec={})),
            post(f"{CORE}/persistentvolumeclaims", named("two", spec={**CLAIM, "accessModes": ["Sideways"]})),
            patch(f"{CORE}/persistentvolumeclaims/one", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
            patch(f"{CORE}/persistentvolumeclaims/one", {"spec": {"accessModes": ["ReadOnlyMany"]}}),
            delete(f"{CORE}/persistentvolumeclaims/one"),
            post(
                "/api/v1/persistentvolumes",
                named(
                    "conformance-pv",
                    spec={
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "hostPath": {"path": "/tmp"},
                    },
                ),
            ),
            post("/api/v1/persistentvolumes", named("conformance-pv2", spec={})),
        ],
    ),
    Story(
        "nodes",
        [
            post("/api/v1/nodes", a_bare_node("conformance-node", capacity={"cpu": "4", "memory": "8Gi"})),
            patch("/api/v1/nodes/conformance-node", {"spec": {"unschedulable": True}}),
            patch("/api/v1/nodes/conformance-node", {"spec": {"taints": [{"key": "k", "effect": "Never"}]}}),
            patch("/api/v1/nodes/conformance-node", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
            patch("/api/v1/nodes/conformance-node", {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}}),
            patch("/api/v1/nodes/conformance-node", {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}),
            patch("/api/v1/nodes/conformance-node", {"spec": {"providerID": "x"}}),
            patch(
                "/api/v1/nodes/conformance-node/status",
                {"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "3500m"}}},
            ),
            patch("/api/v1/nodes/conformance-node", {"status": {"allocatable": {"cpu": "1"}}}),
        ],
    ),
]
