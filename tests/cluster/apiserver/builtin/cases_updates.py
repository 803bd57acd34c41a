"""Changes of objects that are there: what may not change, and what must be right at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.cluster.apiserver.builtin import cases_core as core
from tests.cluster.apiserver.builtin import cases_others as others
from tests.cluster.apiserver.builtin.kind_cases import GONE, Change, KindCases, changed


@dataclass(frozen=True)
class Updates:
    """An object that is there, and changes of it, through a subresource or not."""

    kind: KindCases
    changes: tuple[Change, ...]
    subresource: str = ""
    before: tuple[tuple[str, Any], ...] = ()

    @property
    def object(self) -> dict[str, Any]:
        """The object as it is created."""
        return changed(self.kind.object, *self.before)


_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "other"}
_READY = {"type": "Ready", "status": "True", "reason": "Fine", "lastTransitionTime": "2026-01-02T03:04:05Z"}

UPDATES = (
    Updates(
        core.METADATA,
        (
            ("metadata.labels", {"a": "b c"}),
            ("metadata.annotations", {"a b": "c"}),
            ("metadata.finalizers", ["x"]),
            ("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"}]),
            ("metadata.generation", 5),
            ("data", {"x": "y"}),
        ),
    ),
    Updates(core.CONFIG_MAP, (("data", {}), ("immutable", GONE), ("binaryData", {})), before=(("immutable", True),)),
    Updates(core.SECRET, (("type", "other"), ("type", GONE), ("data", {"b": ""}))),
    Updates(core.SECRET, (("data", {}), ("immutable", False)), before=(("immutable", True),)),
    Updates(core.SERVICE_ACCOUNT, (("secrets", [{"name": "x", "namespace": "y"}]),)),
    Updates(core.NAMESPACE, (("spec.finalizers", []), ("metadata.labels", {}), ("status.phase", "Terminating"))),
    Updates(core.NAMESPACE, (("status.phase", "Terminating"),), subresource="status"),
    Updates(core.NAMESPACE, (("spec.finalizers", ["x"]), ("spec.finalizers", ["a/b"])), subresource="finalize"),
    Updates(
        core.NODE,
        (
            ("spec.podCIDRs", ["10.9.0.0/24"]),
            ("spec.providerID", "other"),
            ("spec.externalID", "x"),
            ("spec.taints", [{"key": "a b", "effect": "NoSchedule"}]),
            ("status.capacity", {"cpu": "100"}),
        ),
        before=(
            ("spec.podCIDR", "10.8.0.0/24"),
            ("spec.podCIDRs", ["10.8.0.0/24"]),
            ("spec.providerID", "p"),
        ),
    ),
    Updates(
        core.NODE,
        (
            ("status.capacity", {"cpu": "-1"}),
            ("status.addresses", [{"type": "InternalIP", "address": "1.2.3.4"}] * 2),
            ("spec.unschedulable", True),
        ),
        subresource="status",
    ),
    Updates(
        core.SERVICE,
        (
            ("spec.clusterIP", GONE),
            ("spec.clusterIP", "10.96.9.9"),
            ("spec.clusterIPs", ["10.96.9.9"]),
            (("spec.clusterIP", "None"), ("spec.clusterIPs", ["None"])),
            ("spec.ipFamilies", ["IPv6"]),
            ("spec.ipFamilyPolicy", "PreferDualStack"),
            ("spec.type", "NodePort"),
            ("spec.type", "LoadBalancer"),
            (("spec.type", "ExternalName"), ("spec.externalName", "a.b")),
            ("spec.ports", []),
            ("spec.externalIPs", ["1.2.3.4"]),
            ("spec.sessionAffinity", "ClientIP"),
        ),
    ),
    Updates(
        core.SERVICE,
        (("spec.type", "ClusterIP"), ("spec.type", "LoadBalancer"), ("spec.externalTrafficPolicy", "Local")),
        before=(("spec.type", "NodePort"),),
    ),
    Updates(
        core.SERVICE,
        (("spec.type", "ClusterIP"), ("spec.loadBalancerClass", "a.b/d"), ("spec.loadBalancerClass", GONE)),
        before=(("spec.type", "LoadBalancer"), ("spec.loadBalancerClass", "a.b/c")),
    ),
    Updates(
        core.SERVICE,
        (("spec.type", "ClusterIP"), ("spec.externalName", "b.c")),
        before=(("spec.type", "ExternalName"), ("spec.externalName", "a.b"), ("spec.ports", [{"port": 80}])),
    ),
    Updates(
        core.SERVICE,
        (
            ("status.loadBalancer", {"ingress": [{"ip": "1.2.3.4"}]}),
            ("status.loadBalancer", {"ingress": [{"ip": "bad", "hostname": "1.2.3.4"}]}),
            ("status.loadBalancer", {"ingress": [{"hostname": "a.b", "ipMode": "VIP"}]}),
        ),
        subresource="status",
        before=(("spec.type", "LoadBalancer"),),
    ),
    Updates(core.SERVICE, (("status.loadBalancer", {"ingress": [{"ip": "1.2.3.4"}]}),), subresource="status"),
    Updates(core.ENDPOINTS, (("subsets", [{"addresses": [{"ip": "bad"}]}]),)),
    Updates(core.EVENT, (("reason", "Other"), ("type", "Odd"), ("involvedObject.namespace", "x"))),
    Updates(
        core.CLAIM,
        (
            ("spec.accessModes", ["ReadWriteMany"]),
            ("spec.storageClassName", "other"),
            ("spec.volumeMode", "Block"),
            ("spec.resources.requests", {"storage": "2Gi"}),
            ("spec.volumeName", "v"),
        ),
    ),
    Updates(
        core.CLAIM,
        (
            ("status.capacity", {"storage": "-1"}),
            ("status.phase", "Bound"),
            ("status.allocatedResources", {"cpu": "1"}),
        ),
        subresource="status",
    ),
    Updates(
        core.VOLUME,
        (
            ("spec.hostPath.path", "/other"),
            ("spec.capacity", {"storage": "2Gi"}),
            ("spec.volumeMode", "Block"),
            ("spec.persistentVolumeReclaimPolicy", "Delete"),
            ("spec.nodeAffinity", {}),
        ),
    ),
    Updates(core.LIMIT_RANGE, (("spec.limits.0.type", "Odd"),)),
    Updates(core.QUOTA, (("spec.scopes", ["NotTerminating"]), ("spec.hard", {"odd": "1"}))),
    Updates(core.QUOTA, (("status.hard", {"odd": "1"}), ("status.used", {"pods": "-1"})), subresource="status"),
    Updates(
        others.NEWER_EVENT,
        (
            ("reason", "other"),
            ("note", "other"),
            ("type", "Warning"),
            ("action", "other"),
            ("reportingController", "x.y/z"),
            ("reportingInstance", "other"),
            ("eventTime", "2026-01-02T03:04:06.000000Z"),
            ("series", {"count": 1, "lastObservedTime": "2026-01-02T03:04:05.123456Z"}),
            ("series", {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.123456Z"}),
        ),
    ),
    Updates(others.BUDGET, (("spec.minAvailable", 2), ("spec.minAvailable", "x"))),
    Updates(
        others.BUDGET,
        (
            ("status.disruptionsAllowed", -1),
            ("status.conditions", [{**_READY, "message": ""}]),
            ("status.conditions", [{"type": "a b", "status": "x", "reason": "-", "message": ""}]),
            ("status.conditions", [{**_READY, "message": ""}] * 2),
        ),
        subresource="status",
    ),
    Updates(others.AUTOSCALER, (("spec.maxReplicas", 0), ("spec.scaleTargetRef.kind", "ReplicaSet"))),
    Updates(
        others.AUTOSCALER,
        (("status.currentReplicas", -1), ("status.desiredReplicas", -2)),
        subresource="status",
    ),
    Updates(others.ROLE, (("rules", [{"verbs": []}]),)),
    Updates(others.BINDING, (("roleRef", _ROLE), ("subjects", []))),
    Updates(others.CLUSTER_BINDING, (("roleRef", _ROLE),)),
    Updates(others.LEASE, (("spec.leaseDurationSeconds", 0), ("spec.leaseTransitions", 4))),
    Updates(others.INGRESS, (("spec", {}), ("spec.ingressClassName", "x"))),
    Updates(
        others.INGRESS,
        (
            ("status.loadBalancer", {"ingress": [{"ip": "bad"}]}),
            ("status.loadBalancer", {"ingress": [{"hostname": "1.2.3.4"}]}),
        ),
        subresource="status",
    ),
    Updates(others.INGRESS_CLASS, (("spec.controller", "a.b/d"), ("spec.controller", "x"))),
    Updates(others.NETWORK_POLICY, (("spec.policyTypes", ["Odd"]), ("spec.podSelector", {"matchLabels": {"a": "b"}}))),
    Updates(others.PRIORITY, (("value", 5), ("preemptionPolicy", "Never"), ("description", "d"))),
    Updates(
        others.STORAGE_CLASS,
        (
            ("provisioner", "x.y/z"),
            ("parameters", {"a": "b"}),
            ("reclaimPolicy", "Retain"),
            ("volumeBindingMode", "WaitForFirstConsumer"),
            ("allowVolumeExpansion", True),
        ),
    ),
    Updates(others.ATTRIBUTES_CLASS, (("driverName", "x.y"), ("parameters", {"c": "d"}))),
    Updates(
        others.CSI_DRIVER,
        (
            ("spec.attachRequired", False),
            ("spec.volumeLifecycleModes", ["Ephemeral"]),
            ("spec.podInfoOnMount", True),
        ),
    ),
    Updates(others.CSI_NODE, (("spec.drivers.0.nodeID", "m"), ("spec.drivers.0.allocatable", {"count": 5}))),
    Updates(others.ATTACHMENT, (("spec.nodeName", "m"),)),
    Updates(
        others.ATTACHMENT,
        (("status.attached", True), ("status.attachError", {"errorCode": -1})),
        subresource="status",
    ),
    Updates(others.RUNTIME_CLASS, (("handler", "other"),)),
    Updates(others.VALIDATING, (("webhooks.0.sideEffects", "Some"), ("webhooks.0.timeoutSeconds", 5))),
    Updates(others.SLICE, (("addressType", "IPv6"), ("endpoints", [{"addresses": ["bad"]}]), ("ports", []))),
    Updates(others.DEVICE_CLAIM, (("spec.devices.requests.0.name", "other"), ("metadata.labels", {"a": "b"}))),
    Updates(
        others.DEVICE_CLAIM,
        (
            ("status.reservedFor", [{"resource": "pods", "name": "p", "uid": "u"}]),
            ("status.allocation", {"devices": {"results": [{"request": "x", "driver": "", "pool": "", "device": ""}]}}),
        ),
        subresource="status",
    ),
    Updates(others.DEVICE_TEMPLATE, (("spec.spec.devices.requests.0.name", "other"),)),
    Updates(others.DEVICE_CLASS, (("spec.config", [{}]), ("spec.extendedResourceName", "a.b/c"))),
    Updates(others.RESOURCE_SLICE, (("spec.driver", "x.y"), ("spec.pool.name", "q"), ("spec.nodeName", "m"))),
)
