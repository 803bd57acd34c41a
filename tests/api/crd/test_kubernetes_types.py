"""Types of Kubernetes' own inside ours."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from shoal.api.crd import KubernetesType, SchemaError, field_schema, schema_of
from shoal.api.meta import Wire
from tests.support.schemas.corpus import needs_corpus, upstream_definition
from tests.support.schemas.crd_diff import Intended, differences, unexplained
from tests.support.schemas.structural import structural_problems

POD_SPEC = KubernetesType("core.v1.PodSpec")
Pod = Annotated[dict[str, Any], field_schema(shape=POD_SPEC)]


class Crew(Wire, frozen=True, kw_only=True):
    """Pods in several places."""

    first: Annotated[Pod, field_schema("The first.")] = {}
    others: Annotated[list[Pod], field_schema("The others.")] = []
    by_name: Annotated[dict[str, Pod], field_schema("Even more.")] = {}


def test_a_field_has_the_schema_of_the_type_and_words_of_its_own() -> None:
    schema = schema_of(Crew)
    first = schema["properties"]["first"]
    assert first["description"] == "The first."
    assert first["required"] == ["containers"]
    ports = first["properties"]["containers"]["items"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"] == {"type": "string", "default": "TCP"}
    assert list(structural_problems(schema)) == []


def test_it_is_decoded_as_plain_values() -> None:
    crew = msgspec.json.decode(b'{"first": {"containers": [{"name": "a"}]}}', type=Crew)
    assert crew.first == {"containers": [{"name": "a"}]}


def test_all_places_share_one_schema() -> None:
    fields = schema_of(Crew)["properties"]
    others = fields["others"]["items"], fields["byName"]["additionalProperties"]
    assert all(place["properties"] is fields["first"]["properties"] for place in others)
    pod = fields["first"]["properties"]
    assert pod["containers"]["items"] is pod["initContainers"]["items"]


def test_a_type_that_nobody_asked_for_is_refused_with_its_name() -> None:
    class Lost(Wire, frozen=True, kw_only=True):
        """Has no schema."""

        part: Annotated[dict[str, Any], field_schema("A part.", shape=KubernetesType("core.v1.Nothing"))] = {}

    with pytest.raises(SchemaError, match=r"Lost\.part has the shape core\.v1\.Nothing, whose schema was not made"):
        schema_of(Lost)


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        pytest.param("api.resource.Quantity", {"x-kubernetes-int-or-string": True}, id="a quantity"),
        pytest.param("util.intstr.IntOrString", {"x-kubernetes-int-or-string": True}, id="a number or a text"),
        pytest.param("meta.v1.Time", {"type": "string", "format": "date-time"}, id="a time"),
        pytest.param("pkg.runtime.RawExtension", {"x-kubernetes-preserve-unknown-fields": True}, id="anything"),
    ],
)
def test_types_with_words_of_their_own_are_known(name: str, schema: dict[str, Any]) -> None:
    assert schema.items() <= KubernetesType(name).schema().items()


def test_metadata_inside_are_kept_where_that_is_asked_for() -> None:
    without, with_ = (KubernetesType("core.v1.PodTemplateSpec", has_metadata=each).schema() for each in (False, True))
    assert without["properties"]["metadata"] == {"type": "object"}
    assert with_["properties"]["metadata"]["properties"].keys() >= {"labels", "annotations"}
    assert without["properties"]["spec"]["required"] == with_["properties"]["spec"]["required"]


@needs_corpus
def test_a_pod_template_is_what_generators_of_crds_make_of_it() -> None:
    schema = upstream_definition("jobset", "jobsets.jobset.x-k8s.io")["spec"]["versions"][0]["schema"]
    jobs = schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicatedJobs"]["items"]
    theirs = jobs["properties"]["template"]["properties"]["spec"]["properties"]["template"]
    found = differences(
        definition(KubernetesType("core.v1.PodTemplateSpec", has_metadata=True).schema()), definition(theirs)
    )
    older = "pods of Kubernetes 1.35 have it, those of 1.36 do not"
    assert unexplained(found, [Intended("v1.spec.workloadRef", "field", older)]) == []


def definition(schema: dict[str, Any]) -> dict[str, Any]:
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"names": {}, "versions": [version]}}
