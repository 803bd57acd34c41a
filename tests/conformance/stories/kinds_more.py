"""More kinds: access, network, storage, scheduling, events and autoscalers."""

from __future__ import annotations

from tests.conformance.objects import a_deployment
from tests.conformance.stories.kinds import NETWORKING, RBAC, SELECTOR, STORAGE, named
from tests.conformance.story import APPS, CORE, Story, delete, get, patch, post, put

EVENTS = f"{CORE}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
SCALERS = "/apis/autoscaling/{version}/namespaces/{ns}/horizontalpodautoscalers"
V1, V2 = SCALERS.replace("{version}", "v1"), SCALERS.replace("{version}", "v2")
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
REGARDING = {"kind": "Pod", "namespace": "{ns}", "name": "one", "apiVersion": "v1"}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}

STORIES = [
    Story(
        "an event and its other view",
        [
            post(
                EVENTS,
                named(
                    "old",
                    involvedObject=REGARDING,
                    reason="Started",
                    message="it runs",
                    type="Normal",
                    count=2,
                    firstTimestamp="2024-01-01T00:00:00Z",
                    lastTimestamp="2024-01-02T00:00:00Z",
                    source={"component": "kubelet", "host": "n1"},
                ),
            ),
            get(f"{NEW_EVENTS}/old"),
            post(
                NEW_EVENTS,
                named(
                    "new",
                    regarding=REGARDING,
                    reason="Bound",
                    action="Binding",
                    note="it is bound",
                    type="Normal",
                    eventTime="2024-01-01T00:00:00.123456Z",
                    reportingController="example.com/binder",
                    reportingInstance="binder-1",
                    series={"count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z"},
                ),
            ),
            get(f"{EVENTS}/new"),
            patch(f"{NEW_EVENTS}/new", {"series": {"count": 3, "lastObservedTime": "2024-01-01T00:00:02.5Z"}}),
            get(EVENTS, query={"fieldSelector": "involvedObject.name=one,reason=Bound"}),
            get(NEW_EVENTS, query={"fieldSelector": "regarding.name=one,reason=Bound"}),
            get(EVENTS, query={"fieldSelector": "involvedObject.kind=Node"}),
        ],
    ),
    Story(
        "events that are refused",
        [
            post(EVENTS, named("a", involvedObject={**REGARDING, "namespace": "elsewhere"})),
            post(EVENTS, named("a")),
            post(NEW_EVENTS, named("a", regarding=REGARDING, reason="X", action="Y", note="n", type="Normal")),
            post(
                NEW_EVENTS,
                named(
                    "a",
                    regarding=REGARDING,
                    note="n" * 1025,
                    type="Odd",
                    eventTime="2024-01-01T00:00:00.123456Z",
                    reportingController="example.com/binder",
                ),
            ),
            post(NEW_EVENTS, named("b", eventTime="yesterday")),
        ],
    ),
    Story(
        "an autoscaler in both versions",
        [
            post(
                V1,
                named("old", spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70}),
            ),
            get(f"{V2}/old"),
            post(
                V2,
                named(
                    "new",
                    spec={
                        "scaleTargetRef": TARGET,
                        "maxReplicas": 5,
                        "metrics": [
                            {
                                "type": "Resource",
                                "resource": {
                                    "name": "memory",
                                    "target": {"type": "AverageValue", "averageValue": "1Gi"},
                                },
                            },
                            {
                                "type": "Resource",
                                "resource": {
                                    "name": "cpu",
                                    "target": {"type": "Utilization", "averageUtilization": 60},
                                },
                            },
                        ],
                        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
                    },
                ),
            ),
            get(f"{V1}/new"),
            patch(f"{V1}/new", {"spec": {"minReplicas": 2}}),
            get(f"{V2}/new"),
            post(V2, named("bad", spec={"scaleTargetRef": {"kind": "x"}, "minReplicas": 5, "maxReplicas": 3})),
            post(V2, named("bad", spec={"scaleTargetRef": TARGET, "maxReplicas": 0, "metrics": [{"type": "Odd"}]})),
            post(V2, named("plain", spec={"scaleTargetRef": TARGET, "maxReplicas": 2})),
        ],
    ),
    Story(
        "priority classes",
        [
            post(CLASSES, named("conformance-high", value=1000, description="high")),
            patch(f"{CLASSES}/conformance-high", {"value": 2000}),
            patch(f"{CLASSES}/conformance-high", {"preemptionPolicy": "Never"}),
            patch(f"{CLASSES}/conformance-high", {"description": "higher"}),
            post(CLASSES, named("conformance-top", value=1000000001)),
            post(CLASSES, named("system-mine", value=5)),
            post(CLASSES, named("conformance-odd", value=5, preemptionPolicy="Sometimes")),
            get(f"{CLASSES}/system-cluster-critical"),
            delete(f"{CLASSES}/system-cluster-critical"),
        ],
    ),
    Story(
        "roles and bindings",
        [
            post(
                f"{RBAC}/namespaces/{{ns}}/roles",
                named("r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            ),
            post(f"{RBAC}/namespaces/{{ns}}/roles", named("bad", rules=[{"resources": ["pods"], "verbs": []}])),
            post(
                f"{RBAC}/namespaces/{{ns}}/roles", named("bad", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])
            ),
            post(
                f"{RBAC}/namespaces/{{ns}}/rolebindings",
                named(
                    "b",
                    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                    subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
                ),
            ),
            post(
                f"{RBAC}/namespaces/{{ns}}/rolebindings",
                named(
                    "b",
                    roleRef={"kind": "Role", "name": "r"},
                    subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
                ),
            ),
            patch(f"{RBAC}/namespaces/{{ns}}/rolebindings/b", {"roleRef": {"name": "other"}}),
            post(f"{RBAC}/namespaces/{{ns}}/rolebindings", named("c", roleRef={"kind": "Unicorn", "name": "r"})),
            post(
                f"{RBAC}/namespaces/{{ns}}/rolebindings",
                named("d", subjects=[{"kind": "Robot", "name": "r"}], roleRef={"kind": "Role", "name": ""}),
            ),
        ],
    ),
    Story(
        "disruption budgets, leases, limits and quotas",
        [
            post(
                "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
                named("a", spec={"minAvailable": 1, "selector": SELECTOR}),
            ),
            post(
                "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
                named("b", spec={"minAvailable": 1, "maxUnavailable": "10%"}),
            ),
            post("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", named("b", spec={"maxUnavailable": "ten"})),
            post(
                "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                named(
                    "a",
                    spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2024-01-01T00:00:00.5Z"},
                ),
            ),
            post(
                "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                named("b", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
            ),
            put("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/b", named("b", spec={"holderIdentity": "you"})),
            post(
                f"{CORE}/limitranges",
                named("a", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "default": {"memory": "1Gi"}}]}),
            ),
            post(
                f"{CORE}/limitranges",
                named("b", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}),
            ),
            post(f"{CORE}/resourcequotas", named("a", spec={"hard": {"pods": "3", "requests.cpu": "4"}})),
            post(f"{CORE}/resourcequotas", named("b", spec={"hard": {"unicorns": "3"}, "scopes": ["Odd"]})),
        ],
    ),
    Story(
        "network kinds",
        [
            post(
                f"{NETWORKING}/namespaces/{{ns}}/ingresses",
                named(
                    "a",
                    spec={
                        "rules": [
                            {
                                "host": "a.example.com",
                                "http": {
                                    "paths": [
                                        {
                                            "path": "/",
                                            "pathType": "Prefix",
                                            "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                        }
                                    ]
                                },
                            }
                        ]
                    },
                ),
            ),
            post(
                f"{NETWORKING}/namespaces/{{ns}}/ingresses",
                named("b", spec={"rules": [{"host": "Bad Host", "http": {"paths": [{"path": "x", "backend": {}}]}}]}),
            ),
            post(f"{NETWORKING}/namespaces/{{ns}}/ingresses", named("b", spec={})),
            post(
                f"{NETWORKING}/namespaces/{{ns}}/networkpolicies",
                named("a", spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}),
            ),
            post(
                f"{NETWORKING}/namespaces/{{ns}}/networkpolicies",
                named("b", spec={"podSelector": {}, "policyTypes": ["Sideways"]}),
            ),
            post(f"{NETWORKING}/ingressclasses", named("conformance", spec={"controller": "example.com/c"})),
            post(
                f"{CORE}/endpoints", named("a", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}])
            ),
            post(f"{CORE}/endpoints", named("b", subsets=[{"addresses": [{"ip": "127.0.0.1"}, {"ip": "nonsense"}]}])),
            post(
                "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
                named("a", addressType="IPv4", endpoints=[{"addresses": ["10.1.1.1"]}], ports=[{"port": 80}]),
            ),
            post(
                "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices", named("b", addressType="IPv9", endpoints=[])
            ),
        ],
    ),
    Story(
        "storage, runtime and webhook kinds",
        [
            post(f"{STORAGE}/storageclasses", named("conformance-slow", provisioner="example.com/disk")),
            patch(f"{STORAGE}/storageclasses/conformance-slow", {"parameters": {"a": "b"}}),
            post(f"{STORAGE}/storageclasses", named("conformance-bad", provisioner="")),
            post("/apis/node.k8s.io/v1/runtimeclasses", named("conformance-gpu", handler="gpu")),
            patch("/apis/node.k8s.io/v1/runtimeclasses/conformance-gpu", {"handler": "other"}),
            post(f"{STORAGE}/csidrivers", named("conformance.example.com", spec={})),
            post(
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                named(
                    "conformance-hook",
                    webhooks=[
                        {
                            "name": "a.example.com",
                            "clientConfig": {"service": {"namespace": "x", "name": "y"}},
                            "rules": [
                                {
                                    "apiGroups": ["none.example.com"],
                                    "apiVersions": ["v1"],
                                    "operations": ["CREATE"],
                                    "resources": ["nothings"],
                                }
                            ],
                            "sideEffects": "None",
                            "admissionReviewVersions": ["v1"],
                        }
                    ],
                ),
            ),
            post(
                "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
                named(
                    "conformance-bad",
                    webhooks=[
                        {"name": "short", "clientConfig": {}, "sideEffects": "Some", "admissionReviewVersions": []}
                    ],
                ),
            ),
            post(f"{CORE}/podtemplates", named("a", template={"spec": {"containers": [{"name": "m", "image": "i"}]}})),
        ],
    ),
    Story(
        "service accounts and their tokens",
        [
            post(f"{CORE}/serviceaccounts", named("one"), called="account"),
            post(f"{CORE}/serviceaccounts/one/token", {"spec": {"audiences": ["a"], "expirationSeconds": 3600}}),
            post(f"{CORE}/serviceaccounts/one/token", {}),
            post(f"{CORE}/serviceaccounts/one/token", {"spec": {"expirationSeconds": 5}}),
            post(f"{CORE}/serviceaccounts/one/token", {"spec": {"expirationSeconds": 99999999999}}),
            post(
                f"{CORE}/serviceaccounts/one/token",
                {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}},
            ),
            post(f"{CORE}/serviceaccounts/absent/token", {"spec": {}}),
            get(f"{CORE}/serviceaccounts/one"),
        ],
    ),
    Story(
        "scale subresources",
        [
            post(f"{APPS}/deployments", a_deployment(replicas=2)),
            get(f"{APPS}/deployments/one/scale", called="scale"),
            put(
                f"{APPS}/deployments/one/scale",
                {"metadata": {"name": "one", "namespace": "{ns}"}, "spec": {"replicas": 4}},
            ),
            patch(f"{APPS}/deployments/one/scale", {"spec": {"replicas": 5}}),
            patch(f"{APPS}/deployments/one/scale", {"spec": {"replicas": -5}}),
            patch(f"{APPS}/deployments/one/scale", {"spec": {"replicas": "x"}}),
            patch(f"{APPS}/deployments/one/scale", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 6}}),
            put(f"{APPS}/deployments/one/scale", {"metadata": {"name": "two"}, "spec": {"replicas": 4}}),
            patch(f"{APPS}/deployments/one/scale", {"spec": {"replicas": 6}}, query={"dryRun": "All"}),
            get(
                f"{APPS}/deployments/one", shown=lambda body: [body["spec"]["replicas"], body["metadata"]["generation"]]
            ),
        ],
    ),
]
