from typing import Any

import msgspec
import pytest

from shoal.api.meta.objects import Document, Object, PartialObject, Wire
from shoal.api.meta.resource import DecodeError, Resource


class QueueSpec(Wire, frozen=True, kw_only=True):
    weight: int = 1
    parent: str = ""


class Queue(Object, frozen=True, kw_only=True):
    spec: QueueSpec = QueueSpec()


class QueueNameMeta(Wire, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class QueueName(Wire, frozen=True, kw_only=True):
    metadata: QueueNameMeta


QUEUES = Resource(type=Queue, group="scheduling.run.ai", version="v2", kind="Queue", plural="queues", namespaced=False)
PODS = Resource(type=Object, group="", version="v1", kind="Pod", plural="pods")

DATA = b"""{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue",
  "metadata": {"name": "team-a", "uid": "u1", "resourceVersion": "7"}, "spec": {"weight": 3, "unknown": {}}}"""


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        pytest.param(PODS, {}, "/api/v1/pods", id="all namespaces"),
        pytest.param(PODS, {"namespace": "a"}, "/api/v1/namespaces/a/pods", id="one namespace"),
        pytest.param(PODS, {"namespace": "a", "name": "p"}, "/api/v1/namespaces/a/pods/p", id="one object"),
        pytest.param(
            PODS,
            {"namespace": "a", "name": "p", "subresource": "status"},
            "/api/v1/namespaces/a/pods/p/status",
            id="a subresource",
        ),
        pytest.param(QUEUES, {}, "/apis/scheduling.run.ai/v2/queues", id="a group"),
        pytest.param(QUEUES, {"name": "q"}, "/apis/scheduling.run.ai/v2/queues/q", id="an object of the cluster"),
        pytest.param(
            QUEUES,
            {"namespace": "ignored", "name": "q"},
            "/apis/scheduling.run.ai/v2/queues/q",
            id="the cluster has no namespaces",
        ),
    ],
)
def test_a_path_leads_to_the_collection_the_object_or_its_subresource(
    resource: Resource[Any], arguments: dict[str, str], path: str
) -> None:
    assert resource.path(**arguments) == path


@pytest.mark.parametrize(
    ("resource", "api_version", "full_name", "text"),
    [
        (PODS, "v1", "pods", "pods.v1"),
        (QUEUES, "scheduling.run.ai/v2", "queues.scheduling.run.ai", "queues.v2.scheduling.run.ai"),
    ],
    ids=["the core group", "another group"],
)
def test_a_resource_is_named_as_objects_rules_and_messages_name_it(
    resource: Resource[Any], api_version: str, full_name: str, text: str
) -> None:
    assert resource.api_version == api_version
    assert resource.full_name == full_name
    assert str(resource) == text


def test_an_object_decodes_into_the_type_of_its_resource() -> None:
    queue = QUEUES.decode(DATA)
    assert isinstance(queue, Queue)
    assert queue.metadata.name == "team-a"
    assert queue.spec == QueueSpec(weight=3)
    assert QUEUES.decode(msgspec.Raw(DATA)) == queue


def test_a_view_reads_the_same_place_into_another_type() -> None:
    names = QUEUES.view(QueueName)
    assert names.decode(DATA) == QueueName(metadata=QueueNameMeta(name="team-a", uid="u1", resource_version="7"))
    assert names.path(name="q") == QUEUES.path(name="q")
    assert names.kind == "Queue"
    assert not names.namespaced
    assert QUEUES.view(PartialObject).decode(DATA).metadata.uid == "u1"


def test_documents_keep_every_field() -> None:
    document = QUEUES.documents().decode(DATA)
    assert isinstance(document, Document)
    assert document.content == msgspec.json.decode(DATA)
    assert document.metadata.name == "team-a"


def test_resources_are_values() -> None:
    assert QUEUES.view(QueueName) == QUEUES.view(QueueName)
    assert hash(QUEUES.view(QueueName)) == hash(QUEUES.view(QueueName))
    views: set[Resource[Any]] = {QUEUES, QUEUES.view(QueueName), QUEUES.view(QueueName)}
    assert len(views) == 2
    assert "decoder" not in repr(QUEUES)


def test_an_object_that_does_not_fit_is_named_with_the_field_that_is_wrong() -> None:
    pods = PODS.view(Queue)
    data = (
        b'{"metadata": {"name": "p", "namespace": "a", "uid": "u1", "resourceVersion": "9"}, "spec": {"weight": "x"}}'
    )
    with pytest.raises(DecodeError) as refusal:
        pods.decode(data)
    error = refusal.value
    assert str(error) == "Pod a/p does not decode: Expected `int`, got `str` - at `$.spec.weight`"
    assert (error.namespace, error.name, error.uid, error.resource_version) == ("a", "p", "u1", "9")
    assert error.resource is pods
    assert error.problem.endswith("at `$.spec.weight`")


def test_an_object_of_the_cluster_is_named_without_a_namespace() -> None:
    with pytest.raises(DecodeError, match=r"^Queue team-a does not decode: .*weight"):
        QUEUES.decode(b'{"metadata": {"name": "team-a"}, "spec": {"weight": null}}')


def test_an_object_whose_metadata_is_wrong_is_named_as_far_as_it_can_be() -> None:
    with pytest.raises(DecodeError, match=r"^Queue team-a does not decode: .*`\$\.metadata\.labels`"):
        QUEUES.decode(b'{"metadata": {"name": "team-a", "labels": 3}}')


@pytest.mark.parametrize(
    "data", [b'{"metadata": {"name": "team-a", "labels": 3}}', b'["team-a"]'], ids=["metadata", "a list"]
)
def test_a_document_that_does_not_fit_is_a_decode_error_too(data: bytes) -> None:
    with pytest.raises(DecodeError, match="does not decode"):
        QUEUES.documents().decode(data)
