"""What ``kubectl get`` shows: answers as tables."""

from __future__ import annotations

from tests.conformance.objects import (
    a_bare_node,
    a_bare_pod,
    a_config_map,
    a_container,
    a_custom,
    a_definition,
    a_deployment,
    a_job,
    a_service,
    a_template,
    a_version,
    customs,
    defined,
)
from tests.conformance.story import APPS, BATCH, CORE, TABLE, Request, Story, get, patch, post, status_is

COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big it is"},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
    {"name": "Missing", "type": "string", "jsonPath": ".spec.none"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Labels", "type": "string", "jsonPath": ".metadata.labels"},
]


def table(path: str, **query: str) -> Request:
    return get(path, accept=TABLE, query=query)


STORIES = [
    Story(
        "tables of pods",
        [
            post(f"{CORE}/pods", a_bare_pod("pending")),
            post(f"{CORE}/pods", a_bare_pod("running", nodeName="n1", containers=[a_container(), a_container("b")])),
            patch(
                f"{CORE}/pods/running/status",
                {
                    "status": {
                        "phase": "Running",
                        "podIP": "10.1.1.1",
                        "podIPs": [{"ip": "10.1.1.1"}],
                        "containerStatuses": [
                            {
                                "name": "main",
                                "ready": True,
                                "restartCount": 2,
                                "image": "i",
                                "imageID": "",
                                "state": {"running": {}},
                            },
                            {
                                "name": "b",
                                "ready": False,
                                "restartCount": 0,
                                "image": "i",
                                "imageID": "",
                                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                            },
                        ],
                    }
                },
            ),
            post(f"{CORE}/pods", a_bare_pod("done", restartPolicy="Never")),
            patch(f"{CORE}/pods/done/status", {"status": {"phase": "Succeeded", "reason": "Evicted"}}),
            post(f"{CORE}/pods", a_bare_pod("gated", schedulingGates=[{"name": "example.com/x"}])),
            table(f"{CORE}/pods"),
            table(f"{CORE}/pods/running", includeObject="None"),
            table(f"{CORE}/pods/running", includeObject="Object"),
            table(f"{CORE}/pods", includeObject="Odd"),
            table(f"{CORE}/pods", limit="1"),
            table(f"{CORE}/pods/absent"),
        ],
        account=True,
    ),
    Story(
        "tables of workloads",
        [
            post(f"{APPS}/deployments", a_deployment()),
            table(f"{APPS}/deployments"),
            post(
                f"{APPS}/replicasets",
                {
                    "metadata": {"name": "one"},
                    "spec": {"selector": {"matchLabels": {"app": "one"}}, "template": a_template("one")},
                },
            ),
            table(f"{APPS}/replicasets"),
            post(
                f"{APPS}/statefulsets",
                {
                    "metadata": {"name": "one"},
                    "spec": {"selector": {"matchLabels": {"app": "one"}}, "template": a_template("one")},
                },
            ),
            table(f"{APPS}/statefulsets"),
            post(
                f"{APPS}/daemonsets",
                {
                    "metadata": {"name": "one"},
                    "spec": {"selector": {"matchLabels": {"app": "one"}}, "template": a_template("one")},
                },
            ),
            table(f"{APPS}/daemonsets"),
            post(f"{BATCH}/jobs", a_job()),
            table(f"{BATCH}/jobs"),
            post(
                f"{BATCH}/cronjobs",
                {
                    "metadata": {"name": "one"},
                    "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": a_job()["spec"]}},
                },
            ),
            table(f"{BATCH}/cronjobs"),
        ],
    ),
    Story(
        "tables of nodes and namespaces",
        [
            post(
                "/api/v1/nodes",
                {
                    **a_bare_node("table-node"),
                    "metadata": {
                        "name": "table-node",
                        "labels": {"node-role.kubernetes.io/worker": "", "conformance": "table"},
                    },
                },
            ),
            patch(
                "/api/v1/nodes/table-node/status",
                {
                    "status": {
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "addresses": [{"type": "InternalIP", "address": "192.168.1.1"}],
                        "nodeInfo": {
                            "kubeletVersion": "v9.9.9",
                            "osImage": "Linux",
                            "kernelVersion": "6",
                            "containerRuntimeVersion": "c://1",
                        },
                    }
                },
            ),
            table("/api/v1/nodes", labelSelector="conformance=table"),
            table("/api/v1/namespaces/{ns}"),
        ],
    ),
    Story(
        "tables of small kinds",
        [
            post(f"{CORE}/configmaps", a_config_map(data={"a": "1", "b": "2"})),
            table(f"{CORE}/configmaps"),
            post(f"{CORE}/secrets", {"metadata": {"name": "s"}, "data": {"a": "eA=="}}),
            table(f"{CORE}/secrets"),
            post(f"{CORE}/services", a_service(clusterIP="None")),
            table(f"{CORE}/services"),
            post(f"{CORE}/serviceaccounts", {"metadata": {"name": "a"}}),
            table(f"{CORE}/serviceaccounts"),
            post(
                f"{CORE}/persistentvolumeclaims",
                {
                    "metadata": {"name": "c"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                },
            ),
            table(f"{CORE}/persistentvolumeclaims"),
            post(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}}),
            table(f"{CORE}/resourcequotas"),
            post(f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": []}}),
            table(f"{CORE}/limitranges"),
            table(f"{CORE}/endpoints"),
        ],
    ),
    Story(
        "tables of other groups",
        [
            post("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {"metadata": {"name": "r"}, "rules": []}),
            table("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"),
            post(
                "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
                {
                    "metadata": {"name": "b"},
                    "roleRef": {"kind": "Role", "name": "r"},
                    "subjects": [{"kind": "User", "name": "u"}],
                },
            ),
            table("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings"),
            post(
                "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
                {"metadata": {"name": "p"}, "spec": {"minAvailable": "50%"}},
            ),
            table("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"),
            post(
                "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}},
            ),
            table("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"),
            post(
                "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
                {
                    "metadata": {"name": "h"},
                    "spec": {
                        "maxReplicas": 3,
                        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                    },
                },
            ),
            table("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"),
            post(
                "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
                {"metadata": {"name": "n"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
            ),
            table("/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies"),
            table("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"),
            table("/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"),
            table(f"{CORE}/events"),
        ],
    ),
    Story(
        "tables of custom objects",
        [
            *defined(a_definition("tablings", a_version(additionalPrinterColumns=COLUMNS))),
            post(
                customs("tablings"),
                a_custom(
                    "tablings",
                    spec={"size": 3, "colour": "red"},
                    status={"conditions": [{"type": "Ready", "status": "False"}]},
                ),
                until=status_is(201),
            ),
            post(customs("tablings"), a_custom("tablings", "bare")),
            table(customs("tablings")),
            table(f"{customs('tablings')}/one", includeObject="Object"),
            *defined(a_definition("barelings")),
            post(customs("barelings"), a_custom("barelings"), until=status_is(201)),
            table(customs("barelings")),
            table("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/barelings.example.com"),
        ],
    ),
    Story(
        "answers to writes as tables",
        [
            post(f"{CORE}/configmaps", a_config_map(), accept=TABLE),
            patch(f"{CORE}/configmaps/one", {"data": {"a": "1"}}, accept=TABLE),
            post(f"{CORE}/configmaps", a_config_map(), accept=TABLE),
        ],
    ),
]
