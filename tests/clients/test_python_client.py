"""The official Python client works with the embedded server: typed, dynamic, watching, paging and applying."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

from tests.support.clusters.embedded import Embedded
from tests.support.waiting import wait_until

NAMESPACE = "python-client"
APPLY = "application/apply-patch+yaml"
GROUP = "python.example.com"


@pytest.fixture(scope="module")
def api(embedded: Embedded) -> Iterator[Any]:
    with config.new_client_from_config(str(embedded.kubeconfig)) as api:
        core = client.CoreV1Api(api)
        core.create_namespace({"metadata": {"name": NAMESPACE}})
        core.create_namespaced_service_account(NAMESPACE, {"metadata": {"name": "default"}})
        yield api
        core.delete_namespace(NAMESPACE)


@pytest.fixture(scope="module")
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


@pytest.fixture(scope="module")
def things(api: Any) -> Any:
    """A custom resource, defined with the client's own types and served."""
    definitions = client.ApiextensionsV1Api(api)
    schema = client.V1JSONSchemaProps(
        type="object",
        properties={
            "spec": client.V1JSONSchemaProps(
                type="object", properties={"size": client.V1JSONSchemaProps(type="integer", default=1, maximum=9)}
            ),
            "status": client.V1JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True),
        },
    )
    version = client.V1CustomResourceDefinitionVersion(
        name="v1",
        served=True,
        storage=True,
        schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
        subresources=client.V1CustomResourceSubresources(status={}),
    )
    names = client.V1CustomResourceDefinitionNames(plural="things", singular="thing", kind="Thing")
    spec = client.V1CustomResourceDefinitionSpec(group=GROUP, names=names, scope="Namespaced", versions=[version])
    name = f"things.{GROUP}"
    definitions.create_custom_resource_definition(
        client.V1CustomResourceDefinition(metadata=client.V1ObjectMeta(name=name), spec=spec)
    )

    def is_established() -> bool:
        conditions = definitions.read_custom_resource_definition(name).status.conditions or ()
        return any(one.type == "Established" and one.status == "True" for one in conditions)

    wait_until(is_established, "the definition")
    yield client.CustomObjectsApi(api)
    definitions.delete_custom_resource_definition(name)


def a_pod_model(name: str) -> Any:
    """A pod as the client's own types say it."""
    container = client.V1Container(
        name="main", image="nginx", resources=client.V1ResourceRequirements(requests={"cpu": "500m"})
    )
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=client.V1PodSpec(containers=[container]))


def test_the_client_makes_reads_replaces_and_deletes(core: Any) -> None:
    made = core.create_namespaced_config_map(
        NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="one"), data={"a": "b"})
    )
    assert (made.metadata.name, made.data) == ("one", {"a": "b"})
    made.data["c"] = "d"
    replaced = core.replace_namespaced_config_map("one", NAMESPACE, made)
    assert replaced.metadata.uid == made.metadata.uid
    assert core.read_namespaced_config_map("one", NAMESPACE).data == {"a": "b", "c": "d"}
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("one", NAMESPACE, made)
    assert (conflict.value.status, conflict.value.reason) == (409, "Conflict")
    assert core.delete_namespaced_config_map("one", NAMESPACE)["status"] == "Success"
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("one", NAMESPACE)
    assert missing.value.status == 404


def test_objects_come_back_as_typed_models_with_their_defaults(core: Any) -> None:
    core.create_namespaced_pod(NAMESPACE, a_pod_model("typed"))
    pod = core.read_namespaced_pod("typed", NAMESPACE)
    assert pod.spec.restart_policy == "Always"
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m"}
    assert pod.spec.tolerations[0].toleration_seconds == 300
    assert pod.status.phase == "Pending"
    assert pod.status.qos_class == "Burstable"
    assert pod.metadata.creation_timestamp.tzinfo is not None
    deleted = core.delete_namespaced_pod("typed", NAMESPACE, grace_period_seconds=0)
    assert deleted.metadata.name == "typed"


def test_a_refusal_says_what_is_wrong(core: Any) -> None:
    pod = a_pod_model("Wrong")
    pod.spec.containers[0].image = ""
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_pod(NAMESPACE, pod)
    assert refused.value.status == 422
    assert '"reason":"Invalid"' in refused.value.body
    assert "spec.containers[0].image" in refused.value.body


def test_lists_come_in_pages(core: Any) -> None:
    for number in range(7):
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": f"page-{number}", "labels": {"paged": "yes"}}})
    names, token, pages = [], None, 0
    while True:
        page = core.list_namespaced_secret(NAMESPACE, label_selector="paged=yes", limit=3, _continue=token)
        names += [secret.metadata.name for secret in page.items]
        pages += 1
        token = page.metadata._continue
        if not token:
            break
        core.delete_namespaced_secret(f"page-{6 - pages}", NAMESPACE)
    assert pages == 3
    assert names == [f"page-{number}" for number in range(7)]
    core.delete_collection_namespaced_secret(NAMESPACE, label_selector="paged=yes")
    assert core.list_namespaced_secret(NAMESPACE, label_selector="paged=yes").items == []


def test_a_watch_tells_every_change_in_order(core: Any) -> None:
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def change() -> None:
        core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "watched"}})
        core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"a": "b"}})
        core.delete_namespaced_config_map("watched", NAMESPACE)

    changing = threading.Timer(0.1, change)
    changing.start()
    events = []
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=start, timeout_seconds=10, label_selector=None
    ):
        events.append((event["type"], event["object"].metadata.name, event["object"].data))
        if event["type"] == "DELETED":
            stream.stop()
    changing.join()
    assert events == [
        ("ADDED", "watched", None),
        ("MODIFIED", "watched", {"a": "b"}),
        ("DELETED", "watched", {"a": "b"}),
    ]


def test_a_watch_ends_when_its_time_is_over(core: Any) -> None:
    assert list(watch.Watch().stream(core.list_namespaced_pod, NAMESPACE, timeout_seconds=1)) == []


def test_a_watch_from_a_forgotten_version_is_refused(core: Any) -> None:
    with pytest.raises(ApiException) as gone:
        list(watch.Watch().stream(core.list_namespace, resource_version="99999999999", timeout_seconds=2))
    assert gone.value.status in (410, 504)


@pytest.mark.parametrize(
    ("content_type", "patch", "expected"),
    [
        ("application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
        ("application/merge-patch+json", {"data": {"a": None, "b": "2"}}, {"b": "2"}),
        ("application/strategic-merge-patch+json", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    ],
    ids=["json", "merge", "strategic"],
)
def test_every_type_of_patch_does_its_work(content_type: str, patch: Any, expected: Any, api: Any, core: Any) -> None:
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "patched"}, "data": {"a": "1"}})
    try:
        core.patch_namespaced_config_map("patched", NAMESPACE, patch, _content_type=content_type)
        assert core.read_namespaced_config_map("patched", NAMESPACE).data == expected
    finally:
        core.delete_namespaced_config_map("patched", NAMESPACE)


def test_server_side_apply_keeps_to_its_own_fields(core: Any) -> None:
    def applied(manager: str, data: dict[str, str], *, force: bool = False) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}
        return core.patch_namespaced_config_map(
            "applied", NAMESPACE, body, field_manager=manager, force=force, _content_type=APPLY
        )

    applied("a", {"one": "1", "two": "2"})
    assert applied("b", {"three": "3"}).data == {"one": "1", "two": "2", "three": "3"}
    assert applied("a", {"one": "1"}).data == {"one": "1", "three": "3"}
    with pytest.raises(ApiException) as conflict:
        applied("b", {"one": "other"})
    assert conflict.value.status == 409
    assert 'conflict with \\"a\\": .data.one' in conflict.value.body
    result = applied("b", {"one": "other"}, force=True)
    assert result.data == {"one": "other"}
    assert [entry.manager for entry in result.metadata.managed_fields] == ["b"]


def test_workloads_are_scaled_and_their_status_written(api: Any) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "web"}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="nginx")]),
    )
    spec = client.V1DeploymentSpec(replicas=1, selector=client.V1LabelSelector(match_labels=labels), template=template)
    apps.create_namespaced_deployment(
        NAMESPACE, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    assert apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}}).spec.replicas == 3
    scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
    assert (scale.spec.replicas, scale.status.selector) == (3, "app=web")
    written = apps.patch_namespaced_deployment_status("web", NAMESPACE, {"status": {"replicas": 2}})
    assert (written.status.replicas, written.spec.replicas) == (2, 3)
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")


def test_pods_are_bound_and_evicted(core: Any) -> None:
    core.create_namespaced_pod(NAMESPACE, a_pod_model("bound"))
    target = client.V1ObjectReference(kind="Node", api_version="v1", name="somewhere")
    body = client.V1Binding(metadata=client.V1ObjectMeta(name="bound"), target=target)
    core.create_namespaced_pod_binding("bound", NAMESPACE, body, _preload_content=False)
    assert core.read_namespaced_pod("bound", NAMESPACE).spec.node_name == "somewhere"
    eviction = client.V1Eviction(
        metadata=client.V1ObjectMeta(name="bound"), delete_options=client.V1DeleteOptions(grace_period_seconds=0)
    )
    core.create_namespaced_pod_eviction("bound", NAMESPACE, eviction)
    assert core.list_namespaced_pod(NAMESPACE, field_selector="spec.nodeName=somewhere").items == []


def test_access_is_asked_and_answered(api: Any) -> None:
    attributes = client.V1ResourceAttributes(verb="get", resource="pods", namespace=NAMESPACE)
    review = client.V1SubjectAccessReview(
        spec=client.V1SubjectAccessReviewSpec(user="jane", resource_attributes=attributes)
    )
    authorization = client.AuthorizationV1Api(api)
    assert authorization.create_subject_access_review(review).status.allowed is False
    rbac = client.RbacAuthorizationV1Api(api)
    rule = client.V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])
    rbac.create_namespaced_role(
        NAMESPACE, {"metadata": {"name": "reader"}, "rules": [api.sanitize_for_serialization(rule)]}
    )
    rbac.create_namespaced_role_binding(
        NAMESPACE,
        {
            "metadata": {"name": "readers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    wait_until(lambda: authorization.create_subject_access_review(review).status.allowed, "jane to be allowed")


def test_a_requested_token_signs_its_account_in(embedded: Embedded, core: Any) -> None:
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = core.create_namespaced_service_account_token("default", NAMESPACE, request).status.token
    settings = client.Configuration()
    settings.host, settings.ssl_ca_cert = embedded.server, str(embedded.ca_file)
    settings.api_key = {"authorization": f"Bearer {token}"}
    with client.ApiClient(settings) as theirs:
        review = client.AuthenticationV1Api(theirs).create_self_subject_review({})
        assert review.status.user_info.username == f"system:serviceaccount:{NAMESPACE}:default"
        with pytest.raises(ApiException) as refused:
            client.CoreV1Api(theirs).list_namespaced_secret(NAMESPACE)
        assert refused.value.status == 403


def test_custom_objects_are_objects(things: Any) -> None:
    place = (GROUP, "v1", NAMESPACE, "things")
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Thing"}
    made = things.create_namespaced_custom_object(*place, {**head, "metadata": {"name": "one"}, "spec": {}})
    assert made["spec"] == {"size": 1}
    things.patch_namespaced_custom_object(*place, "one", {"spec": {"size": 2}})
    things.patch_namespaced_custom_object_status(*place, "one", {"status": {"phase": "Ready"}, "spec": {"size": 7}})
    seen = things.get_namespaced_custom_object(*place, "one")
    assert (seen["spec"], seen["status"], seen["metadata"]["generation"]) == ({"size": 2}, {"phase": "Ready"}, 2)
    with pytest.raises(ApiException) as refused:
        things.patch_namespaced_custom_object(*place, "one", {"spec": {"size": 10}})
    assert "should be less than or equal to 9" in refused.value.body
    assert len(things.list_namespaced_custom_object(*place)["items"]) == 1
    things.delete_namespaced_custom_object(*place, "one")


def test_the_dynamic_client_finds_and_uses_every_kind(api: Any, things: Any) -> None:
    anything = dynamic.DynamicClient(api)
    resource = anything.resources.get(api_version=f"{GROUP}/v1", kind="Thing")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "dynamic"}, "spec": {"size": 4}}
    made = resource.create(body=body, namespace=NAMESPACE)
    assert made.spec.size == 4
    applied = resource.server_side_apply(
        body={**body, "spec": {"size": 5}},
        name="dynamic",
        namespace=NAMESPACE,
        field_manager="me",
        force_conflicts=True,
    )
    assert applied.spec.size == 5
    assert [item.metadata.name for item in resource.get(namespace=NAMESPACE).items] == ["dynamic"]
    events = [event["type"] for event in resource.watch(namespace=NAMESPACE, timeout=1, resource_version=0)]
    assert events == ["ADDED"]
    resource.delete(name="dynamic", namespace=NAMESPACE)
    pods = anything.resources.get(api_version="v1", kind="Pod")
    assert pods.subresources["eviction"].kind == "Eviction"
    deployments = anything.resources.get(api_version="apps/v1", kind="Deployment")
    assert deployments.get(namespace=NAMESPACE).items == []


def test_manifests_are_made_from_their_text(api: Any, core: Any) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"utils-{number}"}} for number in range(2)
        ],
    }
    utils.create_from_dict(api, manifest, namespace=NAMESPACE)
    names = [one.metadata.name for one in core.list_namespaced_config_map(NAMESPACE).items]
    assert {"utils-0", "utils-1"} <= set(names)


def test_what_the_server_says_of_itself_is_understood(api: Any) -> None:
    assert client.VersionApi(api).get_code().major == "1"
    groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
    assert {"apps", "batch", "rbac.authorization.k8s.io"} <= groups
    resources = client.AppsV1Api(api).get_api_resources().resources
    assert "deployments/scale" in {resource.name for resource in resources}
