"""Cases of the other groups."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.builtin.kind_cases import GONE, LONG, Change, KindCases


def _of(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "case"}, **fields}


NEWER_EVENT = KindCases(
    "/apis/events.k8s.io/v1/namespaces/{namespace}/events",
    _of(
        "events.k8s.io/v1",
        "Event",
        regarding={"kind": "Pod", "name": "p", "namespace": "{namespace}"},
        eventTime="2026-01-02T03:04:05.123456Z",
        reportingController="a.b/c",
        reportingInstance="x",
        action="y",
        reason="z",
        type="Normal",
    ),
    (
        ("metadata.name", "A_"),
        ("type", "Odd"),
        ("type", GONE),
        ("eventTime", GONE),
        ("reportingController", GONE),
        ("reportingInstance", GONE),
        ("action", GONE),
        ("reason", GONE),
        ("note", "n" * 1025),
        ("series", {"count": 1, "lastObservedTime": "2026-01-02T03:04:05.123456Z"}),
        ("series", {"count": 2}),
        ("deprecatedCount", 2),
        ("deprecatedSource", {"component": "x"}),
        ("deprecatedFirstTimestamp", "2026-01-02T03:04:05Z"),
        ("regarding.namespace", GONE),
    ),
)

BUDGET = KindCases(
    "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    _of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
    (
        ("metadata.name", "A_"),
        ("spec.minAvailable", -1),
        ("spec.minAvailable", "50%"),
        ("spec.minAvailable", "101%"),
        ("spec.minAvailable", "half"),
        ("spec.maxUnavailable", 1),
        (("spec.minAvailable", GONE), ("spec.maxUnavailable", "-1%")),
        ("spec.selector", {"matchLabels": {"a": "b c"}}),
        ("spec.selector", GONE),
        ("spec.unhealthyPodEvictionPolicy", "AlwaysAllow"),
        ("spec.unhealthyPodEvictionPolicy", "Odd"),
    ),
)

_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
_PATH = "spec.metrics.0.resource.target"
AUTOSCALER = KindCases(
    "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers",
    _of("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": _TARGET, "maxReplicas": 5}),
    (
        ("spec.minReplicas", 0),
        ("spec.minReplicas", 6),
        ("spec.maxReplicas", 0),
        ("spec.maxReplicas", -1),
        ("spec.scaleTargetRef", {}),
        ("spec.scaleTargetRef.apiVersion", ""),
        ("spec.scaleTargetRef.apiVersion", "v1"),
        ("spec.scaleTargetRef.apiVersion", "a/b/c"),
        ("spec.scaleTargetRef.kind", "a/b"),
        ("spec.scaleTargetRef.name", ".."),
        ("spec.scaleTargetRef", {"kind": "ReplicationController", "name": "r", "apiVersion": "v1"}),
        ("spec.metrics", [_CPU]),
        ("spec.metrics", [{}]),
        ("spec.metrics", [{"type": "Odd"}]),
        ("spec.metrics", [{"type": "Pods"}]),
        ("spec.metrics", [{**_CPU, "type": "Pods"}]),
        ("spec.metrics", [{**_CPU, "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue"}}}]),
        (("spec.metrics", [_CPU]), (_PATH, {})),
        (("spec.metrics", [_CPU]), (_PATH, {"type": "Odd", "averageUtilization": 0})),
        (("spec.metrics", [_CPU]), (_PATH, {"type": "AverageValue", "averageValue": "0"})),
        (("spec.metrics", [_CPU]), (_PATH, {"type": "Utilization", "averageUtilization": 5, "averageValue": "1"})),
        (
            "spec.metrics",
            [{"type": "External", "external": {"metric": {"name": "a/b"}, "target": {"type": "Value"}}}],
        ),
        (
            "spec.metrics",
            [{"type": "External", "external": {"metric": {}, "target": {"type": "Value", "value": "1"}}}],
        ),
        ("spec.metrics", [{"type": "Object", "object": {"metric": {"name": "m"}, "target": {"type": "Value"}}}]),
        (
            "spec.metrics",
            [{"type": "ContainerResource", "containerResource": {"name": "odd", "target": {"type": "Value"}}}],
        ),
        ("spec.behavior", {}),
        ("spec.behavior", {"scaleUp": {"selectPolicy": "Odd"}}),
        ("spec.behavior", {"scaleDown": {"stabilizationWindowSeconds": 3601}}),
        ("spec.behavior", {"scaleDown": {"stabilizationWindowSeconds": -1}}),
        ("spec.behavior", {"scaleUp": {"policies": [{"type": "Odd", "value": 0, "periodSeconds": 1801}]}}),
        ("spec.behavior", {"scaleUp": {"tolerance": "-1"}}),
    ),
)

OLD_AUTOSCALER = KindCases(
    "/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers",
    _of("autoscaling/v1", "HorizontalPodAutoscaler", spec={"scaleTargetRef": _TARGET, "maxReplicas": 5}),
    (
        ("spec.targetCPUUtilizationPercentage", 70),
        ("spec.targetCPUUtilizationPercentage", 0),
        ("spec.maxReplicas", 0),
    ),
)

_RBAC = "rbac.authorization.k8s.io"
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE = KindCases(
    f"/apis/{_RBAC}/v1/namespaces/{{namespace}}/roles",
    _of(f"{_RBAC}/v1", "Role", rules=[_RULE]),
    (
        ("metadata.name", "Any:Name_"),
        ("metadata.name", "a%b"),
        ("metadata.name", ".."),
        ("rules", [{**_RULE, "verbs": []}]),
        ("rules", [{**_RULE, "apiGroups": []}]),
        ("rules", [{**_RULE, "resources": []}]),
        ("rules", [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        ("rules", [{**_RULE, "nonResourceURLs": ["/x"]}]),
        ("rules", GONE),
    ),
)
CLUSTER_ROLE = KindCases(
    f"/apis/{_RBAC}/v1/clusterroles",
    _of(f"{_RBAC}/v1", "ClusterRole", rules=[_RULE]),
    (
        ("rules", [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        ("rules", [{**_RULE, "nonResourceURLs": ["/x"]}]),
        ("aggregationRule", {}),
        ("aggregationRule", {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
    ),
    namespaced=False,
)
_ROLE = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "r"}
BINDING = KindCases(
    f"/apis/{_RBAC}/v1/namespaces/{{namespace}}/rolebindings",
    _of(f"{_RBAC}/v1", "RoleBinding", roleRef=_ROLE, subjects=[{"kind": "User", "name": "u"}]),
    (
        ("roleRef.apiGroup", GONE),
        ("roleRef.apiGroup", "x"),
        ("roleRef.kind", "Odd"),
        ("roleRef.name", ""),
        ("roleRef.name", "a/b"),
        ("subjects", [{"kind": "User", "name": ""}]),
        ("subjects", [{"kind": "Odd", "name": "x"}]),
        ("subjects", [{"kind": "Group", "name": "g", "apiGroup": "x"}]),
        ("subjects", [{"kind": "ServiceAccount", "name": "a_b"}]),
        ("subjects", [{"kind": "ServiceAccount", "name": "a", "apiGroup": "x"}]),
        ("subjects", [{"kind": "ServiceAccount", "name": "a"}]),
    ),
)
CLUSTER_BINDING = KindCases(
    f"/apis/{_RBAC}/v1/clusterrolebindings",
    _of(f"{_RBAC}/v1", "ClusterRoleBinding", roleRef=_ROLE, subjects=[{"kind": "Group", "name": "g"}]),
    (
        ("roleRef.kind", "Role"),
        ("subjects", [{"kind": "ServiceAccount", "name": "a"}]),
        ("subjects", GONE),
    ),
    namespaced=False,
)

LEASE = KindCases(
    "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
    _of("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "a", "leaseDurationSeconds": 15}),
    (
        ("spec", {}),
        ("spec.leaseDurationSeconds", 0),
        ("spec.leaseTransitions", -1),
        ("spec.renewTime", "2026-01-02T03:04:05.500000Z"),
        ("spec.strategy", "Odd"),
        ("spec.preferredHolder", "x"),
    ),
)

_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_INGRESS_RULE = {"host": "a.b", "http": {"paths": [{"path": "/x", "pathType": "Prefix", "backend": _BACKEND}]}}
_AT = "spec.rules.0.http.paths.0"
INGRESS = KindCases(
    "/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses",
    _of("networking.k8s.io/v1", "Ingress", spec={"rules": [_INGRESS_RULE]}),
    (
        ("spec", {}),
        ("spec", {"defaultBackend": _BACKEND}),
        ("spec", {"defaultBackend": {}}),
        ("spec.rules.0.host", "1.2.3.4"),
        ("spec.rules.0.host", "*.a.b"),
        ("spec.rules.0.host", "*"),
        ("spec.rules.0.host", "A_"),
        ("spec.rules.0.http.paths", []),
        (f"{_AT}.pathType", GONE),
        (f"{_AT}.pathType", "Odd"),
        (f"{_AT}.pathType", "Exact"),
        (f"{_AT}.path", "x"),
        (f"{_AT}.path", "/a//b"),
        (f"{_AT}.path", "/a/./b/../c%2f"),
        (f"{_AT}.path", "/a/.."),
        ((f"{_AT}.pathType", "ImplementationSpecific"), (f"{_AT}.path", "")),
        ((f"{_AT}.pathType", "ImplementationSpecific"), (f"{_AT}.path", "x")),
        (f"{_AT}.backend", {}),
        (f"{_AT}.backend", {**_BACKEND, "resource": {"kind": "K", "name": "n"}}),
        (f"{_AT}.backend", {"resource": {"kind": "", "name": "", "apiGroup": "a_b"}}),
        (f"{_AT}.backend.service.name", ""),
        (f"{_AT}.backend.service.name", "A"),
        (f"{_AT}.backend.service.port", {}),
        (f"{_AT}.backend.service.port", {"name": "http", "number": 80}),
        (f"{_AT}.backend.service.port", {"name": "-"}),
        (f"{_AT}.backend.service.port", {"number": 70000}),
        ("spec.tls", [{"hosts": ["a.b", "*.c", "A"], "secretName": "s"}]),
        ("spec.tls", [{"secretName": "a_b"}]),
        ("spec.ingressClassName", "a_b"),
        ("metadata.annotations", {"kubernetes.io/ingress.class": "x"}),
        (("metadata.annotations", {"kubernetes.io/ingress.class": "x"}), ("spec.ingressClassName", "y")),
    ),
)
INGRESS_CLASS = KindCases(
    "/apis/networking.k8s.io/v1/ingressclasses",
    _of("networking.k8s.io/v1", "IngressClass", spec={"controller": "a.b/c"}),
    (
        ("spec.controller", ""),
        ("spec.controller", "x"),
        ("spec.controller", "a_b/c"),
        ("spec.controller", "a.b/{x}"),
        ("spec.controller", "a.b/" + "x" * 250),
        ("spec.parameters", {"kind": "K", "name": "n"}),
        ("spec.parameters", {"kind": "", "name": ""}),
        ("spec.parameters", {"kind": "K", "name": "n", "scope": "Odd"}),
        ("spec.parameters", {"kind": "K", "name": "n", "scope": "Namespace"}),
        ("spec.parameters", {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "A"}),
        ("spec.parameters", {"kind": "K", "name": "n", "namespace": "a"}),
    ),
    namespaced=False,
)
_BLOCK = {"cidr": "10.0.0.0/8"}
NETWORK_POLICY = KindCases(
    "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies",
    _of(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}]},
    ),
    (
        ("spec.egress", [{"to": [{"ipBlock": _BLOCK}]}]),
        ("spec.podSelector", {"matchLabels": {"a": "b c"}}),
        ("spec.ingress.0.ports", [{"port": 0}]),
        ("spec.ingress.0.ports", [{"port": "http", "protocol": "UDP"}]),
        ("spec.ingress.0.ports", [{"port": "-"}]),
        ("spec.ingress.0.ports", [{"port": 80, "protocol": "ICMP"}]),
        ("spec.ingress.0.ports", [{"port": 80, "endPort": 79}]),
        ("spec.ingress.0.ports", [{"port": "http", "endPort": 79}]),
        ("spec.ingress.0.ports", [{"endPort": 79}]),
        ("spec.ingress.0.from", [{}]),
        ("spec.ingress.0.from", [{"podSelector": {}, "ipBlock": _BLOCK}]),
        ("spec.ingress.0.from", [{"ipBlock": {"cidr": ""}}]),
        ("spec.ingress.0.from", [{"ipBlock": {"cidr": "x"}}]),
        ("spec.ingress.0.from", [{"ipBlock": {"cidr": "10.0.0.1/8"}}]),
        ("spec.ingress.0.from", [{"ipBlock": {**_BLOCK, "except": ["10.1.0.0/16"]}}]),
        ("spec.ingress.0.from", [{"ipBlock": {**_BLOCK, "except": ["11.0.0.0/16", "x"]}}]),
        ("spec.ingress.0.from", [{"ipBlock": {**_BLOCK, "except": ["10.0.0.0/8"]}}]),
        ("spec.ingress.0.from", [{"namespaceSelector": {"matchLabels": {"a b": "c"}}}]),
        ("spec.policyTypes", ["Odd"]),
        ("spec.policyTypes", ["Ingress", "Egress", "Ingress"]),
    ),
)
SERVICE_CIDR = KindCases(
    "/apis/networking.k8s.io/v1/servicecidrs",
    _of("networking.k8s.io/v1", "ServiceCIDR", spec={"cidrs": ["10.200.0.0/16"]}),
    (
        ("spec.cidrs", []),
        ("spec.cidrs", ["10.0.0.1/8"]),
        ("spec.cidrs", ["x"]),
        ("spec.cidrs", ["FD00::/64"]),
        ("spec.cidrs", ["10.0.0.0/8", "11.0.0.0/8"]),
        ("spec.cidrs", ["10.0.0.0/8", "fd00::/64", "11.0.0.0/8"]),
    ),
    namespaced=False,
)
IP_ADDRESS = KindCases(
    "/apis/networking.k8s.io/v1/ipaddresses",
    {
        **_of("networking.k8s.io/v1", "IPAddress", spec={"parentRef": {"resource": "services", "name": "x"}}),
        "metadata": {"name": "10.200.0.9"},
    },
    (
        ("metadata.name", "x"),
        ("metadata.name", "10.200.000.9"),
        ("metadata.name", "FD00::1"),
        ("spec.parentRef", GONE),
        ("spec.parentRef", {"resource": "", "name": ""}),
        ("spec.parentRef", {"resource": "a/b", "name": "x", "group": "a_b", "namespace": ".."}),
    ),
    namespaced=False,
)

PRIORITY = KindCases(
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    _of("scheduling.k8s.io/v1", "PriorityClass", value=100),
    (
        ("value", 1000000001),
        ("value", -5),
        ("preemptionPolicy", "Never"),
        ("preemptionPolicy", "Odd"),
        ("metadata.name", "system-x"),
        ("metadata.name", "system-node-critical"),
        ("globalDefault", True),
    ),
    namespaced=False,
)

STORAGE_CLASS = KindCases(
    "/apis/storage.k8s.io/v1/storageclasses",
    _of("storage.k8s.io/v1", "StorageClass", provisioner="a.b/c"),
    (
        ("provisioner", ""),
        ("provisioner", "a b"),
        ("reclaimPolicy", "Odd"),
        ("reclaimPolicy", "Retain"),
        ("volumeBindingMode", "Odd"),
        ("parameters", {"a": "b"}),
        ("parameters", {"": "b"}),
        ("parameters", {str(n): "" for n in range(513)}),
        ("allowedTopologies", [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}]),
        ("allowedTopologies", [{"matchLabelExpressions": [{"key": "a b", "values": []}]}]),
        ("allowedTopologies", [{"matchLabelExpressions": [{"key": "a", "values": ["b", "b"]}]}]),
        (
            "allowedTopologies",
            [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}, {"key": "a", "values": ["c"]}]}],
        ),
        ("allowedTopologies", [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}] * 2),
        ("metadata.name", "A"),
    ),
    namespaced=False,
)
ATTRIBUTES_CLASS = KindCases(
    "/apis/storage.k8s.io/v1/volumeattributesclasses",
    _of("storage.k8s.io/v1", "VolumeAttributesClass", driverName="a.b", parameters={"a": "b"}),
    (("driverName", ""), ("parameters", GONE)),
    namespaced=False,
)
CSI_DRIVER = KindCases(
    "/apis/storage.k8s.io/v1/csidrivers",
    _of("storage.k8s.io/v1", "CSIDriver", spec={}),
    (
        ("spec.fsGroupPolicy", "Odd"),
        ("spec.volumeLifecycleModes", ["Odd"]),
        ("spec.volumeLifecycleModes", ["Ephemeral"]),
        ("spec.tokenRequests", [{"audience": "a"}, {"audience": "a"}]),
        ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 1}]),
        ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 2**32 + 1}]),
        ("spec.nodeAllocatableUpdatePeriodSeconds", 5),
        ("spec.serviceAccountTokenInSecrets", True),
        ("metadata.name", "A_"),
    ),
    namespaced=False,
)
CSI_NODE = KindCases(
    "/apis/storage.k8s.io/v1/csinodes",
    _of("storage.k8s.io/v1", "CSINode", spec={"drivers": [{"name": "a.b", "nodeID": "n"}]}),
    (
        ("spec.drivers", []),
        ("spec.drivers.0.name", ""),
        ("spec.drivers.0.nodeID", ""),
        ("spec.drivers.0.nodeID", "x" * 257),
        ("spec.drivers.0.topologyKeys", ["a", "a"]),
        ("spec.drivers.0.topologyKeys", ["a b"]),
        ("spec.drivers.0.allocatable", {"count": -1}),
        ("spec.drivers", [{"name": "a.b", "nodeID": "n"}] * 2),
    ),
    namespaced=False,
)
ATTACHMENT = KindCases(
    "/apis/storage.k8s.io/v1/volumeattachments",
    _of(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        spec={"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    ),
    (
        ("spec.attacher", ""),
        ("spec.attacher", "a_b"),
        ("spec.attacher", LONG),
        ("spec.nodeName", ""),
        ("spec.source", {}),
        ("spec.source.persistentVolumeName", ""),
        ("spec.source.persistentVolumeName", "A_"),
    ),
    namespaced=False,
)

RUNTIME_CLASS = KindCases(
    "/apis/node.k8s.io/v1/runtimeclasses",
    _of("node.k8s.io/v1", "RuntimeClass", handler="runc"),
    (
        ("handler", ""),
        ("handler", "A_"),
        ("handler", "a.b"),
        ("overhead", {"podFixed": {"cpu": "100m"}}),
        ("overhead", {"podFixed": {"odd": "1"}}),
        ("overhead", {"podFixed": {"cpu": "-1"}}),
        ("scheduling", {"nodeSelector": {"a": "b c"}}),
        ("scheduling", {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}),
        ("scheduling", {"tolerations": [{"operator": "Equal"}]}),
        ("scheduling", {"tolerations": [{"key": "a", "operator": "Odd"}]}),
        ("scheduling", {"tolerations": [{"key": "a", "effect": "Odd"}]}),
        ("scheduling", {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}),
        ("scheduling", {"tolerations": [{"key": "a"}, {"key": "a"}]}),
    ),
    namespaced=False,
)

_HOOK_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
_HOOK = {
    "name": "a.b.c",
    "clientConfig": {"service": {"name": "s", "namespace": "n"}},
    "rules": [_HOOK_RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
_HOOK_CHANGES: tuple[Change, ...] = (
    ("webhooks", []),
    ("webhooks", [_HOOK, _HOOK]),
    ("webhooks.0.name", ""),
    ("webhooks.0.name", "a.b"),
    ("webhooks.0.name", "a_.b.c"),
    ("webhooks.0.sideEffects", GONE),
    ("webhooks.0.sideEffects", "Some"),
    ("webhooks.0.failurePolicy", "Odd"),
    ("webhooks.0.matchPolicy", "Odd"),
    ("webhooks.0.timeoutSeconds", 31),
    ("webhooks.0.timeoutSeconds", 0),
    ("webhooks.0.admissionReviewVersions", []),
    ("webhooks.0.admissionReviewVersions", ["v2"]),
    ("webhooks.0.admissionReviewVersions", ["v1", "v1"]),
    ("webhooks.0.admissionReviewVersions", ["v1", "1"]),
    ("webhooks.0.namespaceSelector", {"matchLabels": {"a": "b c"}}),
    ("webhooks.0.objectSelector", {"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
    ("webhooks.0.clientConfig", {}),
    ("webhooks.0.clientConfig", {"url": "https://a.b/c"}),
    ("webhooks.0.clientConfig", {"url": "http://a.b/c?x=y#z"}),
    ("webhooks.0.clientConfig", {"url": "https:///c"}),
    ("webhooks.0.clientConfig", {"url": "https://u:p@a.b/c"}),
    ("webhooks.0.clientConfig.service", {"name": "", "namespace": "n"}),
    ("webhooks.0.clientConfig.service", {"name": "s", "namespace": "", "port": 0}),
    ("webhooks.0.clientConfig.service", {"name": "s", "namespace": "n", "port": 70000}),
    ("webhooks.0.clientConfig.service.path", "x"),
    ("webhooks.0.clientConfig.service.path", "/a//b/C_"),
    ("webhooks.0.clientConfig.service.path", "//"),
    ("webhooks.0.clientConfig.service.path", "/a/"),
    ("webhooks.0.rules.0.operations", []),
    ("webhooks.0.rules.0.operations", ["*", "CREATE"]),
    ("webhooks.0.rules.0.operations", ["Odd"]),
    ("webhooks.0.rules.0.apiGroups", []),
    ("webhooks.0.rules.0.apiGroups", ["*", "apps"]),
    ("webhooks.0.rules.0.apiVersions", ["", "*"]),
    ("webhooks.0.rules.0.resources", []),
    ("webhooks.0.rules.0.resources", [""]),
    ("webhooks.0.rules.0.resources", ["*/*", "pods"]),
    ("webhooks.0.rules.0.resources", ["*", "pods"]),
    ("webhooks.0.rules.0.resources", ["pods/*", "pods/status"]),
    ("webhooks.0.rules.0.resources", ["*/status", "pods/status"]),
    ("webhooks.0.rules.0.scope", "Odd"),
    ("webhooks.0.matchConditions", [{"name": "a", "expression": "true"}]),
    ("webhooks.0.matchConditions", [{"name": "", "expression": " "}]),
    ("webhooks.0.matchConditions", [{"name": "a b", "expression": "true"}]),
    ("webhooks.0.matchConditions", [{"name": "a", "expression": "true"}] * 2),
)
_ADMISSION = "admissionregistration.k8s.io"
VALIDATING = KindCases(
    f"/apis/{_ADMISSION}/v1/validatingwebhookconfigurations",
    _of(f"{_ADMISSION}/v1", "ValidatingWebhookConfiguration", webhooks=[_HOOK]),
    _HOOK_CHANGES,
    namespaced=False,
)
MUTATING = KindCases(
    f"/apis/{_ADMISSION}/v1/mutatingwebhookconfigurations",
    _of(f"{_ADMISSION}/v1", "MutatingWebhookConfiguration", webhooks=[_HOOK]),
    (("webhooks.0.reinvocationPolicy", "Odd"), ("webhooks.0.reinvocationPolicy", "IfNeeded")),
    namespaced=False,
)

_ENDPOINT = {"addresses": ["10.0.0.1"]}
SLICE = KindCases(
    "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
    _of("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[_ENDPOINT], ports=[{"port": 80}]),
    (
        ("addressType", GONE),
        ("addressType", "Odd"),
        ("addressType", "IPv6"),
        (("addressType", "IPv6"), ("endpoints", [{"addresses": ["FD00::1"]}])),
        (("addressType", "IPv6"), ("endpoints", [{"addresses": ["fd00::1"]}])),
        (("addressType", "FQDN"), ("endpoints", [{"addresses": ["a.b"]}])),
        (("addressType", "FQDN"), ("endpoints", [{"addresses": ["a"]}])),
        ("endpoints", []),
        ("endpoints", [{"addresses": []}]),
        ("endpoints", [{"addresses": ["10.0.0.1"] * 101}]),
        ("endpoints", [{"addresses": ["bad"]}]),
        ("endpoints", [{"addresses": ["127.0.0.1"]}]),
        ("endpoints", [{**_ENDPOINT, "nodeName": "A_"}]),
        ("endpoints", [{**_ENDPOINT, "hostname": "a.b"}]),
        ("endpoints", [{**_ENDPOINT, "deprecatedTopology": {"a": "b"}}]),
        ("endpoints", [{**_ENDPOINT, "hints": {"forZones": [{"name": "a"}, {"name": "a"}]}}]),
        ("endpoints", [{**_ENDPOINT, "hints": {"forZones": [{"name": "a"}] * 9}}]),
        ("ports", [{"name": "A"}]),
        ("ports", [{}, {}]),
        ("ports", [{"protocol": "X"}]),
        ("ports", [{"appProtocol": "a b"}]),
        ("ports", GONE),
    ),
)

_DRA = "resource.k8s.io"
_EXACT = {"deviceClassName": "c"}
_CONFIG = {"opaque": {"driver": "a.b", "parameters": {"x": 1}}}
DEVICE_CLAIM = KindCases(
    f"/apis/{_DRA}/v1/namespaces/{{namespace}}/resourceclaims",
    _of(f"{_DRA}/v1", "ResourceClaim", spec={"devices": {"requests": [{"name": "r", "exactly": _EXACT}]}}),
    (
        ("spec.devices", {}),
        ("spec.devices.requests.0.name", "A"),
        ("spec.devices.requests", [{"name": "r", "exactly": _EXACT}] * 2),
        ("spec.devices.requests", [{"name": "r"}]),
        ("spec.devices.requests.0.exactly.deviceClassName", ""),
        ("spec.devices.requests.0.exactly.deviceClassName", "A_"),
        ("spec.devices.requests.0.exactly.count", -1),
        ("spec.devices.requests.0.exactly.allocationMode", "All"),
        ("spec.devices.requests.0.exactly.allocationMode", "Odd"),
        (
            ("spec.devices.requests.0.exactly.allocationMode", "All"),
            ("spec.devices.requests.0.exactly.count", 2),
        ),
        ("spec.devices.requests.0.exactly.selectors", [{}]),
        ("spec.devices.requests.0.exactly.selectors", [{"cel": {"expression": "true"}}]),
        ("spec.devices.requests.0.exactly.selectors", [{"cel": {"expression": "true"}}] * 33),
        ("spec.devices.requests.0.exactly.tolerations", [{"key": "a", "operator": "Exists", "value": "x"}]),
        ("spec.devices.requests.0.exactly.tolerations", [{"operator": "Odd"}]),
        ("spec.devices.requests", [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]),
        ("spec.devices.requests", [{"name": "r", "firstAvailable": [{"name": "A", "deviceClassName": ""}]}]),
        ("spec.devices.constraints", [{"matchAttribute": "a.b/c"}]),
        ("spec.devices.constraints", [{"matchAttribute": "c", "requests": ["other"]}]),
        ("spec.devices.constraints", [{"matchAttribute": "a.b/c-d", "requests": ["r", "r"]}]),
        ("spec.devices.config", [_CONFIG]),
        ("spec.devices.config", [{}]),
        ("spec.devices.config", [{"opaque": {"driver": "", "parameters": {}}}]),
        ("spec.devices.config", [{"opaque": {"driver": "a.b", "parameters": 5}}]),
    ),
)
DEVICE_TEMPLATE = KindCases(
    f"/apis/{_DRA}/v1/namespaces/{{namespace}}/resourceclaimtemplates",
    _of(
        f"{_DRA}/v1",
        "ResourceClaimTemplate",
        spec={"spec": {"devices": {"requests": [{"name": "r", "exactly": _EXACT}]}}},
    ),
    (
        ("spec.metadata", {"labels": {"a": "b c"}}),
        ("spec.spec.devices.requests.0.name", "A"),
    ),
)
DEVICE_CLASS = KindCases(
    f"/apis/{_DRA}/v1/deviceclasses",
    _of(f"{_DRA}/v1", "DeviceClass", spec={}),
    (
        ("spec.selectors", [{"cel": {"expression": 'device.driver == "a.b"'}}]),
        ("spec.selectors", [{}]),
        ("spec.config", [_CONFIG]),
        ("spec.config", [{}]),
        ("spec.extendedResourceName", "a.b/c"),
        ("spec.extendedResourceName", "cpu"),
        ("metadata.name", "A_"),
    ),
    namespaced=False,
)
_DEVICE = {"name": "d", "attributes": {"model": {"string": "h100"}}, "capacity": {"memory": {"value": "80Gi"}}}
RESOURCE_SLICE = KindCases(
    f"/apis/{_DRA}/v1/resourceslices",
    _of(
        f"{_DRA}/v1",
        "ResourceSlice",
        spec={"driver": "a.b", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [_DEVICE]},
    ),
    (
        ("spec.driver", ""),
        ("spec.driver", "A.b"),
        ("spec.pool.name", ""),
        ("spec.pool.name", "a/B"),
        ("spec.pool.resourceSliceCount", 0),
        ("spec.pool.generation", -1),
        ("spec.nodeName", GONE),
        ("spec.nodeName", "A_"),
        ("spec.allNodes", True),
        (("spec.nodeName", GONE), ("spec.allNodes", True)),
        (("spec.nodeName", GONE), ("spec.allNodes", False)),
        (("spec.nodeName", GONE), ("spec.perDeviceNodeSelection", True)),
        ("spec.devices.0.name", "A"),
        ("spec.devices", [_DEVICE, _DEVICE]),
        ("spec.devices.0.attributes", {"a-b": {"string": "x"}}),
        ("spec.devices.0.attributes", {"a": {}}),
        ("spec.devices.0.attributes", {"a": {"string": "x" * 65}}),
        ("spec.devices.0.attributes", {"a": {"version": "1"}}),
        ("spec.devices.0.attributes", {"x.y/a": {"version": "1.2.3-rc.1"}}),
        ("spec.devices.0.taints", [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z"}]),
        ("spec.devices.0.taints", [{"key": "a b", "effect": "Odd", "timeAdded": "2026-01-02T03:04:05Z"}]),
        ("spec.devices.0.nodeName", "n"),
    ),
    namespaced=False,
)

_REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KeA=="
SIGNING = KindCases(
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    _of(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        spec={"request": "eA==", "signerName": "a.b/c", "usages": ["client auth"]},
    ),
    (
        ("spec.usages", []),
        ("spec.usages", ["Odd", "client auth", "client auth"]),
        ("spec.signerName", ""),
        ("spec.signerName", "x"),
        ("spec.signerName", "x/y"),
        ("spec.signerName", "kubernetes.io/legacy-unknown"),
        ("spec.expirationSeconds", 5),
    ),
    namespaced=False,
)

KINDS = (
    NEWER_EVENT,
    BUDGET,
    AUTOSCALER,
    OLD_AUTOSCALER,
    ROLE,
    CLUSTER_ROLE,
    BINDING,
    CLUSTER_BINDING,
    LEASE,
    INGRESS,
    INGRESS_CLASS,
    NETWORK_POLICY,
    SERVICE_CIDR,
    IP_ADDRESS,
    PRIORITY,
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    CSI_DRIVER,
    CSI_NODE,
    ATTACHMENT,
    RUNTIME_CLASS,
    VALIDATING,
    MUTATING,
    SLICE,
    DEVICE_CLAIM,
    DEVICE_TEMPLATE,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    SIGNING,
)
