from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shoal.api.meta.objects import Wire
from shoal.kube.admission.jsonpatch import is_same
from shoal.kube.admission.overlay import AmbiguousChange, overlaid


class Port(Wire, frozen=True, kw_only=True):
    name: str = ""
    number: int | None = None


class Inner(Wire, frozen=True, kw_only=True):
    size: int | None = None
    kind: str = "small"


class Spec(Wire, frozen=True, kw_only=True):
    replicas: int | None = None
    weight: int = 1
    note: str | msgspec.UnsetType = msgspec.UNSET
    max_surge: int | None = None
    nested: Inner = Inner()
    labels: dict[str, str] = {}
    ports: list[Port] = []
    words: list[str] = []
    template: dict[str, Any] = {}
    by_name: dict[str, Inner] = {}
    fallback: Inner = Inner(kind="large")
    passed: msgspec.Raw = msgspec.Raw(b"null")


def read(raw: dict[str, Any]) -> Spec:
    return msgspec.json.decode(msgspec.json.encode(raw), type=Spec)


@pytest.mark.parametrize(
    ("raw", "change", "wanted"),
    [
        pytest.param({"x": 1}, {}, {"x": 1}, id="nothing changed"),
        pytest.param({"x": 1}, {"replicas": 2}, {"x": 1, "replicas": 2}, id="filled in"),
        pytest.param({"x": 1, "maxSurge": 1}, {"max_surge": 2}, {"x": 1, "maxSurge": 2}, id="by its name on the wire"),
        pytest.param({"replicas": None}, {"replicas": 2}, {"replicas": 2}, id="null is filled in too"),
        pytest.param({"replicas": 2, "x": 1}, {"replicas": None}, {"x": 1}, id="None removes"),
        pytest.param({"note": "a"}, {"note": msgspec.UNSET}, {}, id="unset removes"),
        pytest.param({}, {"note": "a"}, {"note": "a"}, id="set where it was unset"),
        pytest.param({"weight": 5}, {"weight": 1}, {"weight": 1}, id="set to its default, and said so"),
        pytest.param({"weight": 1}, {"weight": 1}, {"weight": 1}, id="an explicit default stays"),
        pytest.param({}, {"weight": 1}, {}, id="returning the default is no change"),
        pytest.param({"nested": {"y": 1}}, {"nested": Inner(size=3)}, {"nested": {"y": 1, "size": 3}}, id="nested"),
        pytest.param({}, {"nested": Inner(size=3)}, {"nested": {"size": 3}}, id="nested and left out"),
        pytest.param(
            {},
            {"fallback": Inner(kind="large", size=1)},
            {"fallback": {"kind": "large", "size": 1}},
            id="a default that is more than its type's is written whole",
        ),
        pytest.param(
            {"labels": {"a": "1"}}, {"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="key"
        ),
        pytest.param(
            {"labels": {"a": "1", "b": "2"}}, {"labels": {"b": "3"}}, {"labels": {"b": "3"}}, id="key removed"
        ),
        pytest.param(
            {"byName": {"a": {"y": 1}}},
            {"by_name": {"a": Inner(size=1), "b": Inner()}},
            {"byName": {"a": {"y": 1, "size": 1}, "b": {}}},
            id="structs by key",
        ),
        pytest.param(
            {"template": {"a": {"b": 1}}}, {"template": {"a": {"b": 2}}}, {"template": {"a": {"b": 2}}}, id="plain"
        ),
        pytest.param({"words": ["a"]}, {"words": ["b", "c"]}, {"words": ["b", "c"]}, id="words"),
        pytest.param({"passed": {"a": 1}}, {"replicas": 1}, {"passed": {"a": 1}, "replicas": 1}, id="raw passes"),
        pytest.param({}, {"ports": [Port(name="a")]}, {"ports": [{"name": "a"}]}, id="list left out"),
        pytest.param(
            {"ports": [{"name": "a", "p": 1}, {"name": "b", "p": 2}]},
            {"ports": [Port(name="b", number=2), Port(name="c"), Port(name="a")]},
            {"ports": [{"name": "b", "p": 2, "number": 2}, {"name": "c"}, {"name": "a", "p": 1}]},
            id="items are known by name",
        ),
        pytest.param(
            {"ports": [{"p": 1}, {"name": "b", "p": 2}]},
            {"ports": [Port(name="port0"), Port(name="b")]},
            {"ports": [{"p": 1, "name": "port0"}, {"name": "b", "p": 2}]},
            id="an item that gets its name is the same item",
        ),
        pytest.param(
            {"ports": [{"number": 1, "p": 1}, {"number": 2, "p": 2}]},
            {"ports": [Port(number=2), Port(number=1)]},
            {"ports": [{"number": 2, "p": 2}, {"number": 1, "p": 1}]},
            id="equal items are known wherever they went",
        ),
        pytest.param(
            {"ports": [{"number": 1, "p": 1}, {"number": 1, "p": 2}]},
            {"ports": [Port(number=7), Port(number=1)]},
            {"ports": [{"number": 7, "p": 1}, {"number": 1, "p": 2}]},
            id="of twins the one in its place stays",
        ),
        pytest.param(
            {"ports": [{"number": 1, "p": 1}]},
            {"ports": [Port(number=1), Port(number=1)]},
            {"ports": [{"number": 1, "p": 1}, {"number": 1}]},
            id="one more of the same is a new one",
        ),
        pytest.param(
            {"ports": [{"number": 1}, {"number": 2}, {"number": 3}]},
            {"ports": [Port(number=7)]},
            {"ports": [{"number": 7}]},
            id="items with nothing to lose are simply replaced",
        ),
        pytest.param(
            {"ports": [{"name": "a", "p": 1}]},
            {"ports": [Port(name="b")]},
            {"ports": [{"name": "b"}]},
            id="a renamed item is a new item",
        ),
    ],
)
def test_only_what_changed_in_the_view_changes_in_the_object(
    raw: dict[str, Any], change: dict[str, Any], wanted: dict[str, Any]
) -> None:
    before, kept = read(raw), copy.deepcopy(raw)
    result = overlaid(raw, before, replace(before, **change))
    assert is_same(result, wanted), result
    assert is_same(raw, kept)


@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(1, True, id="true is not one"), pytest.param([1], [1.0], id="nor is one with a fraction")],
)
def test_what_only_python_calls_equal_is_a_change(old: Any, new: Any) -> None:
    raw = {"template": {"a": old}}
    before = read(raw)
    assert is_same(overlaid(raw, before, replace(before, template={"a": new})), {"template": {"a": new}})


def test_what_did_not_change_stays_the_very_same() -> None:
    raw: dict[str, Any] = {
        "template": {"a": {"b": 1}},
        "byName": {"x": {"y": 1}},
        "ports": [{"name": "a", "p": 1}, {"name": "b"}],
    }
    before = read(raw)
    ports = [before.ports[0], Port(name="b", number=1)]
    result = overlaid(raw, before, replace(before, ports=ports, by_name={**before.by_name, "z": Inner()}))
    assert result["template"] is raw["template"]
    assert result["byName"]["x"] is raw["byName"]["x"]
    assert result["ports"][0] is raw["ports"][0]


@pytest.mark.parametrize(
    ("ports", "changed"),
    [
        pytest.param([{"number": 1, "p": 1}, {"number": 2, "p": 2}], [Port(number=7)], id="which became the other?"),
        pytest.param([{"number": 1, "p": 1}, {"number": 1, "p": 2}], [Port(number=1)], id="which of two twins stayed?"),
    ],
)
def test_a_doubt_that_could_lose_something_is_refused(ports: list[dict[str, Any]], changed: list[Port]) -> None:
    raw = {"ports": ports}
    before = read(raw)
    with pytest.raises(AmbiguousChange, match="which items of ports"):
        overlaid(raw, before, replace(before, ports=changed))


names = st.sampled_from(["", "a", "b", "c"])
numbers = st.none() | st.integers(0, 2)
unknown = st.dictionaries(st.sampled_from(["u", "v"]), st.integers(), max_size=2)
raw_ports = st.lists(
    st.builds(lambda name, number, more: {"name": name, "number": number} | more, names, numbers, unknown), max_size=4
)
raw_specs = st.builds(
    lambda replicas, weight, size, labels, ports, words, more: (
        {"replicas": replicas, "weight": weight, "nested": {"size": size} | more, "labels": labels, "ports": ports}
        | {"words": words}
        | more
    ),
    numbers, st.integers(0, 3), numbers, st.dictionaries(names, names), raw_ports, st.lists(names, max_size=3), unknown,
)  # fmt: skip
pruned = st.builds(
    lambda raw, kept: {key: value for key, value in raw.items() if key in kept},
    raw_specs,
    st.sets(st.sampled_from(["replicas", "weight", "nested", "labels", "ports", "words", "u", "v"])),
)


@given(pruned, raw_specs)
def test_reading_the_result_gives_what_was_wanted_and_keeps_what_was_unknown(
    raw: dict[str, Any], other: dict[str, Any]
) -> None:
    before, after = read(raw), read(other)
    try:
        result = overlaid(raw, before, after)
    except AmbiguousChange:
        return
    assert read(result) == after
    for name in ("u", "v"):
        assert result.get(name) == raw.get(name)
        assert result.get("nested", {}).get(name) == raw.get("nested", {}).get(name)
    carried = [{key: value for key, value in port.items() if key in ("u", "v")} for port in raw.get("ports", [])]
    for port in result.get("ports", []):
        extra = {key: value for key, value in port.items() if key in ("u", "v")}
        assert not extra or extra in carried


@given(pruned)
def test_an_unchanged_view_leaves_the_object_as_it_was(raw: dict[str, Any]) -> None:
    assert is_same(overlaid(raw, read(raw), read(raw)), raw)
