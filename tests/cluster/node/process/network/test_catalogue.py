"""The catalogue after any number of changes is that of somebody who just arrived."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.node.process.network.balance import Balance, Front, wanted_fronts
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.messages import Type
from shoal.cluster.node.process.network.names import Names
from shoal.cluster.node.process.network.views import ServingSlice
from shoal.kube import Key
from tests.cluster.node.process.network.builders import (
    MACHINE,
    a_pod_at,
    a_service,
    a_slice,
    an_endpoint,
    put,
    remove,
)

SERVICES = ("a", "b")
ADDRESSES = ("10.88.0.2", "10.88.0.3", "10.88.0.4", "10.244.0.5")

OWN = {"a": ("None", "10.96.0.2", "10.96.0.4"), "b": ("None", "10.96.0.3")}
"""The API server gives no address twice."""

services = st.sampled_from(SERVICES).flatmap(
    lambda name: st.builds(a_service, st.just(name), st.sampled_from(OWN[name]), publishNotReadyAddresses=st.booleans())
)
endpoints = st.builds(
    an_endpoint, st.sampled_from(ADDRESSES), st.sampled_from((None, "zero", "one")), ready=st.booleans()
)
slices = st.builds(
    lambda service, name, found: a_slice(service, *found, name=name),
    st.sampled_from(SERVICES),
    st.sampled_from(("s1", "s2", "s3")),
    st.lists(endpoints, max_size=3),
)
pods = st.builds(a_pod_at, st.sampled_from(("a", "p")), st.sampled_from(("", "10.88.0.7", "10.88.0.8")))
changes = st.lists(st.tuples(st.one_of(services, slices, pods), st.booleans()), max_size=25)

QUESTIONS = [
    *[(f"{inner}{service}.default.svc.cluster.local", type_)
      for service in (*SERVICES, "p") for inner in ("", "zero.", "one.", "10-88-0-2.", "_http._tcp.")
      for type_ in (Type.A, Type.SRV)],
    *[(f"{n}.0.{m}.10.in-addr.arpa", Type.PTR) for n in (2, 3, 4) for m in (88, 96)],
    ("default.svc.cluster.local", Type.A),
]  # fmt: skip


def told(names: Names) -> list[Any]:
    return [(reply.code, sorted(map(str, reply.answers))) for reply in (names.reply(*one) for one in QUESTIONS)]


def fronts(catalogue: Catalogue) -> dict[Key, dict[Front, Balance]]:
    found = {key: catalogue.service(*key) for key in catalogue.service_keys()}
    return {key: wanted_fronts(*one, node="local", machine=MACHINE) for key, one in found.items() if one is not None}


@given(changes)
def test_what_many_changes_left_equals_a_fresh_look(happened: list[tuple[Any, bool]]) -> None:
    catalogue = Catalogue()
    names = Names(catalogue)
    present: dict[Any, Any] = {}
    for one, is_removed in happened:
        key = (type(one), one.metadata.name)
        if not is_removed:
            present[key] = one
            put(catalogue, one)
        elif key in present:
            remove(catalogue, one)  # a deletion may bring a state that nobody has seen before
            del present[key]
        told(names)  # what is remembered of earlier answers must not show later

    fresh = Catalogue()
    fresh_names = Names(fresh)
    for one in present.values():
        put(fresh, one)
    assert told(names) == told(fresh_names)
    assert fronts(catalogue) == fronts(fresh)


@given(st.lists(st.one_of(services, slices, pods), max_size=25))
def test_nothing_is_left_when_all_is_gone(seen: list[Any]) -> None:
    catalogue = Catalogue()
    for one in seen:
        put(catalogue, one)
    for one in seen:
        remove(catalogue, one)

    assert not catalogue.has_namespace("default")
    assert not any(vars(catalogue)[name] for name in vars(catalogue) if name != "_listeners")


def test_a_slice_that_goes_to_another_service_leaves_the_first() -> None:
    catalogue = Catalogue()
    for service in (a_service("a"), a_service("b")):
        put(catalogue, service)
    told_of: list[Key] = []
    catalogue.on_change(told_of.append)
    put(catalogue, a_slice("a", an_endpoint("10.88.0.2"), name="s"))
    put(catalogue, a_slice("b", an_endpoint("10.88.0.2"), name="s"))

    assert _slices(catalogue, "a") == []
    assert [one.metadata.name for one in _slices(catalogue, "b")] == ["s"]
    assert told_of == [Key("default", "a"), Key("default", "a"), Key("default", "b")]


def _slices(catalogue: Catalogue, name: str) -> list[ServingSlice]:
    found = catalogue.service("default", name)
    assert found is not None
    return found[1]
