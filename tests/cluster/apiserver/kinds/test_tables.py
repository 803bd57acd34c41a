"""What the tables say of the built-in kinds."""

from __future__ import annotations

import pytest

from shoal.cluster.apiserver.kinds.kind import Kind, Rules
from shoal.cluster.apiserver.kinds.tables import body_schema, builtin_kinds, type_schema
from shoal.cluster.apiserver.schema import ListType, Omit, Schema
from tests.support.kind_tables import generate

KINDS = {(kind.group, kind.version, kind.kind): kind for kind in builtin_kinds({})}
SERVED = {
    "v1": "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims "
    "persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services",
    "apps/v1": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "batch/v1": "cronjobs jobs",
    "policy/v1": "poddisruptionbudgets",
    "autoscaling/v1": "horizontalpodautoscalers",
    "autoscaling/v2": "horizontalpodautoscalers",
    "rbac.authorization.k8s.io/v1": "clusterrolebindings clusterroles rolebindings roles",
    "coordination.k8s.io/v1": "leases",
    "networking.k8s.io/v1": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    "scheduling.k8s.io/v1": "priorityclasses",
    "scheduling.k8s.io/v1alpha1": "workloads",
    "storage.k8s.io/v1": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments "
    "volumeattributesclasses",
    "node.k8s.io/v1": "runtimeclasses",
    "admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io/v1": "customresourcedefinitions",
    "authentication.k8s.io/v1": "selfsubjectreviews tokenreviews",
    "authorization.k8s.io/v1": "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews "
    "subjectaccessreviews",
    "discovery.k8s.io/v1": "endpointslices",
    "events.k8s.io/v1": "events",
    "resource.k8s.io/v1": "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    "certificates.k8s.io/v1": "certificatesigningrequests",
    "metrics.k8s.io/v1beta1": "nodes pods",
}


def kind(group: str, name: str, version: str = "v1") -> Kind:
    return KINDS[group, version, name]


def at(schema: Schema, *path: str) -> Schema:
    for step in path:
        schema = schema.items if step == "[]" and schema.items is not None else schema.properties[step]
    return schema


def test_every_stable_resource_is_served() -> None:
    served: dict[str, set[str]] = {}
    for each in KINDS.values():
        served.setdefault(each.api_version, set()).add(each.resource)
    assert served == {where: set(names.split()) for where, names in SERVED.items()}


def test_a_kind_has_all_its_names() -> None:
    found = kind("apps", "Deployment")
    assert (found.resource, found.singular, found.list_kind) == ("deployments", "deployment", "DeploymentList")
    assert (found.short_names, found.categories) == (("deploy",), ("all",))
    assert found.namespaced
    assert found.storage == "deployments.apps"
    assert set(found.verbs) == {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


def test_a_pod_has_all_its_subresources() -> None:
    parts = kind("", "Pod").subresources
    expected = "attach binding ephemeralcontainers eviction exec log portforward proxy resize status"
    assert set(parts) == set(expected.split())
    assert (parts["eviction"].group, parts["eviction"].kind) == ("policy", "Eviction")
    assert parts["eviction"].schema is type_schema("policy.v1.Eviction")
    assert parts["status"].schema is None
    assert parts["status"].verbs == ("get", "patch", "update")


@pytest.mark.parametrize(
    ("group", "name", "scalable"),
    [
        ("apps", "Deployment", True),
        ("apps", "ReplicaSet", True),
        ("apps", "StatefulSet", True),
        ("", "ReplicationController", True),
        ("apps", "DaemonSet", False),
        ("batch", "Job", False),
    ],
)
def test_what_has_replicas_can_be_scaled(group: str, name: str, scalable: bool) -> None:
    found = kind(group, name)
    assert (found.scale is not None) is scalable
    assert ("scale" in found.subresources) is scalable
    if found.scale is not None:
        assert at(found.schema, *found.scale.spec_replicas).go_type == "int32"


def test_rules_are_found_by_group_and_kind() -> None:
    own = Rules(has_generation=False)
    found = {each.storage: each.rules for each in builtin_kinds({("apps", "Deployment"): own})}
    assert found["deployments.apps"] is own
    assert found["pods"].has_generation


def test_versions_of_one_kind_share_their_storage() -> None:
    assert kind("autoscaling", "HorizontalPodAutoscaler").storage == "horizontalpodautoscalers.autoscaling"
    assert kind("autoscaling", "HorizontalPodAutoscaler", "v2").storage == "horizontalpodautoscalers.autoscaling"
    assert kind("events.k8s.io", "Event").storage == kind("", "Event").storage == "events"
    assert kind("metrics.k8s.io", "PodMetrics", "v1beta1").storage == "pods.metrics.k8s.io"


def test_a_place_knows_how_it_merges() -> None:
    ports = at(kind("", "Pod").schema, "spec", "containers", "[]", "ports")
    assert (ports.list_type, ports.list_keys) == (ListType.MAP, ("containerPort", "protocol"))
    assert (ports.merge_key, ports.merge_strategies) == ("containerPort", frozenset({"merge"}))
    volumes = at(kind("", "Pod").schema, "spec", "volumes")
    assert volumes.merge_strategies == frozenset({"merge", "retainKeys"})
    assert at(kind("", "Pod").schema, "metadata", "finalizers").list_type is ListType.SET
    assert at(kind("apps", "Deployment").schema, "spec", "selector").is_atomic
    assert at(ports, "[]", "protocol").default == "TCP"


def test_a_place_knows_how_go_writes_it() -> None:
    pod = kind("", "Pod").schema
    containers = at(pod, "spec", "containers")
    assert (containers.omit, containers.number, containers.go_type) == (Omit.NEVER, 2, "[]v1.Container")
    assert at(pod, "metadata", "creationTimestamp").omit is Omit.ZERO
    assert at(pod, "spec", "terminationGracePeriodSeconds").is_pointer
    assert at(containers, "[]", "imagePullPolicy").enum == ("Always", "IfNotPresent", "Never")
    assert at(pod, "spec").required == {"containers"}


def test_inlined_structs_are_properties_of_the_outer_one() -> None:
    volume = at(kind("", "Pod").schema, "spec", "volumes", "[]")
    assert {"name", "configMap", "emptyDir"} <= set(volume.properties)
    assert [(part.go_type, part.number) for part in volume.inlined] == [("v1.VolumeSource", 2)]


def test_a_type_may_hold_itself() -> None:
    schema = type_schema("apiextensions.v1.JSONSchemaProps")
    properties = schema.properties["properties"].additional
    assert properties is not None
    assert properties.properties is schema.properties


def test_bodies_are_found_by_what_they_say_of_themselves() -> None:
    assert body_schema("apps/v1", "Deployment") is kind("apps", "Deployment").schema
    assert body_schema("policy/v1", "Eviction") is type_schema("policy.v1.Eviction")
    assert body_schema("apps/v1", "DeleteOptions") is type_schema("meta.v1.DeleteOptions")
    assert body_schema("v1", "Nothing") is None
    with pytest.raises(KeyError):
        type_schema("core.v1.Nothing")


@pytest.mark.slow
@pytest.mark.kube
def test_what_is_generated_is_what_go_and_a_real_server_say() -> None:
    for path, text in generate.texts().items():
        assert path.read_text() == text, path.name
