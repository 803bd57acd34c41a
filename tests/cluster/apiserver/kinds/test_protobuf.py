"""Protobuf as Go's clients write it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.kinds.bodies import BadBody
from shoal.cluster.apiserver.kinds.protobuf import PREFIX, read_protobuf
from shoal.cluster.apiserver.kinds.tables import body_schema
from tests.cluster.apiserver.kinds.recorded import Example, example, examples
from tests.support.kind_tables import go_types

RECORDED = examples()
POD = next(each for each in RECORDED if each.kind == "Pod")


@pytest.mark.parametrize("each", RECORDED, ids=str)
def test_a_recorded_object_is_read_as_go_reads_it(each: Example) -> None:
    assert read_protobuf(each.protobuf, body_schema) == each.written


@pytest.mark.slow
@pytest.mark.kube
def test_random_objects_of_all_kinds_are_read_as_go_reads_them() -> None:
    read = 0
    for row in go_types.examples(seed=3, count=900):
        each = example(row)
        if body_schema(each.api_version, each.kind) is not None:
            assert read_protobuf(each.protobuf, body_schema) == each.written, each
            read += 1
    assert read > 500


def test_an_envelope_that_names_nothing_is_read_as_what_is_asked_for() -> None:
    schema = body_schema("v1", "ConfigMap")
    body = bytes([10, 0, 18, 8, 10, 6, 10, 4]) + b"name"
    assert read_protobuf(PREFIX + body, lambda _version, _kind: schema) == {"metadata": {"name": "name"}}


def test_fields_that_are_not_known_are_passed_over() -> None:
    schema = body_schema("v1", "ConfigMap")
    others = bytes([0xF8, 7, 1, 0xFA, 7, 1, 0, 0xF9, 7, *range(8), 0xFD, 7, *range(4)])
    body = bytes([18, len(others)]) + others
    assert read_protobuf(PREFIX + body, lambda _version, _kind: schema) == {"metadata": {}}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (PREFIX + b"\x0a\x05ab", "unexpected EOF"),
        (PREFIX + b"\x0a", "unexpected EOF"),
        (PREFIX + b"\x0b", "proto: illegal wireType 3"),
        (PREFIX + b"\x08\x01", "proto: wrong wireType = 0 for field 1"),
        (PREFIX + b"\xff" * 12, "proto: integer overflow"),
        (PREFIX + b"\x0a\x09\x0a\x02v1\x12\x03Foo", 'no kind "Foo" is registered for version "v1"'),
    ],
    ids=["nothing", "JSON", "cut off", "no length", "group", "wrong wire type", "endless number", "unknown kind"],
)
def test_what_is_no_object_is_refused(raw: bytes, problem: str) -> None:
    with pytest.raises(BadBody) as refused:
        read_protobuf(raw, body_schema)
    assert refused.value.problem.startswith(problem)


@given(position=st.integers(0, len(POD.protobuf) - 1), byte=st.integers(0, 255))
def test_a_broken_object_is_read_or_refused(position: int, byte: int) -> None:
    raw = bytearray(POD.protobuf)
    raw[position] = byte
    with suppress(BadBody):
        read_protobuf(bytes(raw), body_schema)


# Between the names in the envelope, and the two empty fields at its end.
@given(end=st.integers(len(PREFIX) + 12, len(POD.protobuf) - 5))
def test_a_cut_off_object_is_refused(end: int) -> None:
    with pytest.raises(BadBody):
        read_protobuf(POD.protobuf[:end], body_schema)
