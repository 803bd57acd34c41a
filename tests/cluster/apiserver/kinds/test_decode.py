"""Objects in normal form: what Go writes of what it has read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.tables import body_schema, type_schema
from shoal.cluster.apiserver.schema import Schema
from tests.cluster.apiserver.kinds.recorded import Example, example, examples
from tests.support.kind_tables import go_types

POD = type_schema("core.v1.Pod")


def decoded(schema: Schema, value: Any) -> Any:
    unknown: list[str] = []
    result = decode(schema, value, unknown)
    assert unknown == []
    return result


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a"}], **spec}}


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a", **fields}]}}


@pytest.mark.parametrize("each", examples(), ids=str)
def test_a_recorded_object_is_written_as_go_writes_it(each: Example) -> None:
    schema = body_schema(each.api_version, each.kind)
    assert schema is not None
    assert decoded(schema, each.given) == each.written
    assert decoded(schema, each.written) == each.written


@pytest.mark.slow
@pytest.mark.kube
def test_random_objects_of_all_kinds_are_written_as_go_writes_them() -> None:
    for row in go_types.examples(seed=2, count=900):
        each = example(row)
        schema = body_schema(each.api_version, each.kind)
        if schema is not None:
            assert decoded(schema, each.given) == each.written, each


def test_what_was_never_set_is_written_where_go_writes_it() -> None:
    assert decoded(POD, {}) == {"metadata": {}, "spec": {"containers": None}, "status": {}}
    deployment = decoded(type_schema("apps.v1.Deployment"), None)
    template = {"metadata": {}, "spec": {"containers": None}}
    assert deployment["spec"] == {"selector": None, "template": template, "strategy": {}}
    event = decoded(type_schema("core.v1.Event"), {})
    assert (event["eventTime"], event["reportingComponent"], event["source"]) == (None, "", {})


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        ({"image": ""}, {}),
        ({"image": None}, {}),
        ({"args": []}, {}),
        ({"args": [None, "x"]}, {"args": ["", "x"]}),
        ({"stdin": False}, {}),
        ({"livenessProbe": {}}, {"livenessProbe": {}}),
        ({"securityContext": {"privileged": False}}, {"securityContext": {"privileged": False}}),
        ({"resources": {"limits": {"cpu": "1000m", "memory": 1073741824}}}, None),
        ({"ports": [None]}, {"ports": [{"containerPort": 0}]}),
        ({"livenessProbe": {"httpGet": {"port": "http"}}}, None),
        ({"livenessProbe": {"httpGet": {}}}, {"livenessProbe": {"httpGet": {"port": 0}}}),
    ],
    ids=repr,
)
def test_empty_values_are_left_out_and_pointers_kept(given_value: Any, expected: Any) -> None:
    expected = given_value if expected is None else expected
    if "resources" in expected:
        expected = {"resources": {"limits": {"cpu": "1", "memory": "1073741824"}}}
    found = decoded(POD, container(**given_value))["spec"]["containers"][0]
    assert found == {"name": "a", "resources": {}} | expected


@pytest.mark.parametrize(
    ("kind", "given_value", "expected"),
    [
        ("core.v1.ConfigMap", {"data": {"a": None}}, {"data": {"a": ""}}),
        ("core.v1.Secret", {"data": {"a": "YQ==\n"}}, {"data": {"a": "YQ=="}}),
        ("core.v1.Secret", {"data": {"a": [1, 2]}}, {"data": {"a": "AQI="}}),
        ("core.v1.Secret", {"data": {"a": None}}, {"data": {"a": ""}}),
        ("rbac.v1.Role", {"rules": []}, {"rules": None}),
        (
            "core.v1.Pod",
            {"metadata": {"creationTimestamp": "2026-01-01T01:00:00.5+01:00"}},
            {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
        ),
        ("core.v1.Pod", {"metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"}}, {"metadata": {}}),
        (
            "coordination.v1.Lease",
            {"spec": {"renewTime": "2026-01-01T01:00:00.000001+01:00"}},
            {"spec": {"renewTime": "2026-01-01T00:00:00.000001Z"}},
        ),
        ("apps.v1.ControllerRevision", {"data": {"a": [1, None]}}, {"data": {"a": [1, None]}}),
        ("apps.v1.ControllerRevision", {}, {"data": None, "revision": 0}),
        (
            "apiextensions.v1.CustomResourceDefinition",
            {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"maximum": 5.0, "additionalProperties": True}}}]}},
            None,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_values_get_their_canonical_form(kind: str, given_value: Any, expected: Any) -> None:
    found = decoded(type_schema(kind), given_value)
    if expected is None:
        written = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert written == {"maximum": 5, "additionalProperties": True}
        assert isinstance(written["maximum"], int)
    else:
        assert {key: found[key] for key in expected} == expected


# Every message was seen on a real server.
REFUSED = [
    (pod(containers="x"), "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
     "[]v1.Container"),
    (pod(containers=["x"]), "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
     "v1.Container"),
    (container(name=3), "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type "
     "string"),
    (pod(volumes=[{"hostPath": 3}]), "json: cannot unmarshal number into Go struct field "
     "Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource"),
    (pod(terminationGracePeriodSeconds=1.5), "json: cannot unmarshal number 1.5 into Go struct field "
     "PodSpec.spec.terminationGracePeriodSeconds of type int64"),
    (container(ports=[{"containerPort": 3000000000}]), "json: cannot unmarshal number 3000000000 into Go struct field "
     "ContainerPort.spec.containers.ports.containerPort of type int32"),
    (pod(hostNetwork="x"), "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"),
    (pod(nodeSelector={"a": 3}), "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type "
     "string"),
    (container(resources={"limits": {"cpu": "x"}}), "quantities must match the regular expression "
     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    (container(resources={"limits": {"cpu": {}}}), "quantities must match the regular expression "
     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    ({"metadata": {"creationTimestamp": "x"}}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as '
     '"2006"'),
    ({"metadata": {"creationTimestamp": "2020-12-01"}}, 'parsing time "2020-12-01" as "2006-01-02T15:04:05Z07:00": '
     'cannot parse "" as "T"'),
    ({"metadata": {"creationTimestamp": "2020-13-01T00:00:00Z"}}, 'parsing time "2020-13-01T00:00:00Z": month out of '
     "range"),
    ({"metadata": {"creationTimestamp": 3}}, "json: cannot unmarshal number into Go struct field "
     "ObjectMeta.metadata.creationTimestamp of type string"),
    (container(livenessProbe={"httpGet": {"port": True}}), "json: cannot unmarshal bool into Go struct field "
     "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32"),
    (container(livenessProbe={"httpGet": {"port": 1.5}}), "json: cannot unmarshal number 1.5 into Go struct field "
     "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32"),
]  # fmt: skip


@pytest.mark.parametrize(("given_value", "message"), REFUSED, ids=[message[-60:] for _, message in REFUSED])
def test_a_wrong_type_is_refused_in_gos_words(given_value: Any, message: str) -> None:
    with pytest.raises(WrongType) as refused:
        decode(POD, given_value, [])
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "byte"), [("x!", 1), ("YQ", 0), ("YQ=", 3), ("YQ==YQ==", 4), ("=", 0), ("Y\nQ", 1), ("YQ=a", 2)]
)
def test_bytes_that_are_no_base64_are_refused_in_gos_words(text: str, byte: int) -> None:
    with pytest.raises(WrongType, match=f"illegal base64 data at input byte {byte}"):
        decode(type_schema("core.v1.Secret"), {"data": {"a": text}}, [])


def test_a_micro_time_needs_its_six_decimals() -> None:
    with pytest.raises(WrongType, match=r'cannot parse "Z" as "\.000000"'):
        decode(type_schema("coordination.v1.Lease"), {"spec": {"renewTime": "2026-01-01T00:00:00Z"}}, [])


def test_unknown_fields_are_dropped_and_told() -> None:
    given_value = {
        "Metadata": {},
        "metadata": {"name": "a"},
        "spec": {"foo": {"a": 1}, "containers": [{"name": "a", "x": 1}, {'y"z': None}, None]},
    }
    unknown: list[str] = []
    found = decode(POD, given_value, unknown)
    assert unknown == [
        'unknown field "Metadata"',
        'unknown field "spec.foo"',
        'unknown field "spec.containers[0].x"',
        r'unknown field "spec.containers[1].y\"z"',
    ]
    containers = [{"name": "a", "resources": {}}, {"name": "", "resources": {}}, {"name": "", "resources": {}}]
    assert found["spec"] == {"containers": containers}


def test_no_more_than_a_hundred_unknown_fields_are_told() -> None:
    unknown: list[str] = []
    decode(POD, {f"field{number}": 1 for number in range(200)}, unknown)
    assert len(unknown) == 100


def test_the_given_object_is_not_touched() -> None:
    given_value = container(resources={"limits": {"cpu": "1000m"}}, args=["x"], foo=1)
    decode(POD, given_value, [])["spec"]["containers"][0]["args"].append("y")
    assert given_value == container(resources={"limits": {"cpu": "1000m"}}, args=["x"], foo=1)


def test_nesting_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(900):
        schema = {"properties": {"a": schema}}
    definition = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    with pytest.raises(WrongType, match="exceeded max depth"):
        decode(type_schema("apiextensions.v1.CustomResourceDefinition"), definition, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


SCALARS = ["", "a", "1", "100m", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z", "YQ==", 0, 1, True, False, 2.5]


@st.composite
def values_of(draw: st.DrawFn, schema: Schema) -> Any:
    """A value that mostly fits a place, and sometimes does not: few fields of each struct, few items of each list."""
    if draw(st.integers(0, 9)) == 0:
        return None
    if schema.type == "array" and schema.items is not None:
        return [draw(values_of(schema.items)) for _ in range(draw(st.integers(0, 2)))]
    if schema.additional is not None:
        return {key: draw(values_of(schema.additional)) for key in draw(st.sets(st.sampled_from("abc"), max_size=2))}
    if schema.properties:
        names = draw(st.sets(st.sampled_from(sorted(schema.properties)), max_size=3))
        return {name: draw(values_of(schema.properties[name])) for name in sorted(names)}
    fitting = {"integer": 3, "boolean": False, "quantity": "1500m", "byte": "YQ", "date-time": SCALARS[4]}
    return draw(st.sampled_from([fitting.get(schema.format or schema.type, fitting.get(schema.type, "x")), *SCALARS]))


@pytest.mark.parametrize("name", ["core.v1.Pod", "apps.v1.Deployment", "autoscaling.v2.HorizontalPodAutoscaler"])
@given(data=st.data())
def test_normal_form_stays_as_it_is(name: str, data: st.DataObject) -> None:
    schema = type_schema(name)
    once = None
    with suppress(WrongType):
        once = decode(schema, data.draw(values_of(schema)), [])
    assert once is None or decoded(schema, once) == once


@given(value=JSON)
def test_any_json_is_decoded_or_refused(value: Any) -> None:
    with suppress(WrongType):
        decode(POD, {"metadata": value, "spec": {"containers": [value], "volumes": value}, "status": value}, [])
