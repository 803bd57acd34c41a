import gc
from datetime import UTC, datetime

import msgspec
import pytest

from shoal.api.meta.objects import Document, Object, ObjectMeta, OwnerReference, PartialObject

WIRE = b"""{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {
    "name": "p", "namespace": "default", "uid": "u1", "resourceVersion": "7", "generation": 2,
    "creationTimestamp": "2026-01-31T09:30:00Z", "deletionTimestamp": null,
    "labels": {"app": "train"}, "finalizers": ["example.com/keep"],
    "ownerReferences": [
      {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u2"},
      {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u3",
       "controller": true, "blockOwnerDeletion": true}
    ],
    "managedFields": [{"manager": "kubectl"}]
  },
  "spec": {"containers": []}
}"""


def test_metadata_is_read_by_our_names_and_written_by_the_wires() -> None:
    pod = msgspec.json.decode(WIRE, type=Object)
    assert pod.api_version == "v1"
    assert pod.metadata.resource_version == "7"
    assert pod.metadata.creation_timestamp == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    assert pod.metadata.labels == {"app": "train"}

    written = msgspec.json.decode(msgspec.json.encode(pod))
    expected = msgspec.json.decode(WIRE)
    del expected["spec"], expected["metadata"]["managedFields"], expected["metadata"]["deletionTimestamp"]
    assert written == expected


def test_what_is_not_set_is_not_written() -> None:
    assert msgspec.json.encode(Object(metadata=ObjectMeta(name="p"))) == b'{"metadata":{"name":"p"}}'
    assert msgspec.json.encode(Object()) == b"{}"


def test_the_controller_is_the_owner_that_says_so() -> None:
    metadata = msgspec.json.decode(WIRE, type=Object).metadata
    assert metadata.controller == OwnerReference(
        api_version="batch/v1", kind="Job", name="j", uid="u3", controller=True, block_owner_deletion=True
    )
    assert ObjectMeta(owner_references=metadata.owner_references[:1]).controller is None


def test_an_object_is_deleting_once_someone_asked() -> None:
    assert not ObjectMeta().is_deleting
    assert ObjectMeta(deletion_timestamp=datetime(2026, 1, 31, tzinfo=UTC)).is_deleting


def test_an_object_that_many_share_cannot_be_changed() -> None:
    pod = msgspec.json.decode(WIRE, type=Object)
    with pytest.raises(AttributeError):
        pod.metadata.name = "q"  # type: ignore[misc]
    assert ObjectMeta().labels is not ObjectMeta().labels


def test_the_collector_does_not_track_objects() -> None:
    pod = msgspec.json.decode(WIRE, type=Object)
    assert not gc.is_tracked(pod)
    assert not gc.is_tracked(pod.metadata)


@pytest.mark.parametrize(
    ("data", "known"),
    [
        pytest.param(WIRE, ("p", "default", "u1", "7"), id="a whole object"),
        pytest.param(b'{"metadata": {"name": "p", "labels": 3}}', ("p", "", "", ""), id="a wrong field"),
        pytest.param(b'{"metadata": {"name": 5, "uid": "u1"}}', ("", "", "u1", ""), id="a wrong name"),
        pytest.param(b'{"metadata": null}', ("", "", "", ""), id="no metadata"),
        pytest.param(b'{"metadata": []}', ("", "", "", ""), id="metadata of another shape"),
        pytest.param(b"{}", ("", "", "", ""), id="an empty object"),
        pytest.param(b'["metadata"]', ("", "", "", ""), id="no object"),
        pytest.param(b'{"metadata": ', ("", "", "", ""), id="half a JSON"),
    ],
)
def test_of_a_broken_object_as_much_is_salvaged_as_can_be_read(data: bytes, known: tuple[str, str, str, str]) -> None:
    metadata = PartialObject.salvage(data).metadata
    assert (metadata.name, metadata.namespace, metadata.uid, metadata.resource_version) == known
    assert PartialObject.salvage(msgspec.Raw(data)).metadata == metadata


def test_a_document_has_typed_metadata_and_its_whole_content() -> None:
    content = msgspec.json.decode(WIRE)
    document = Document.of(content)
    assert document.metadata == msgspec.json.decode(WIRE, type=Object).metadata
    assert document.content is content


def test_a_document_needs_no_metadata_but_refuses_wrong_metadata() -> None:
    assert Document.of({"kind": "Status"}).metadata == ObjectMeta()
    with pytest.raises(msgspec.ValidationError):
        Document.of({"metadata": {"labels": "none"}})
