"""Two tellings of one story compare equal however names, times and places came out, and differ where they should."""

from __future__ import annotations

from typing import Any

from tests.differential.normal import AS_BEFORE, normalised
from tests.differential.story import Snapshot


def a_listed_pod(name: str, uid: str, prefix: str = "web-", **status: Any) -> tuple[str, dict[str, Any]]:
    metadata = {"name": name, "uid": _uid(uid), "generateName": prefix, "resourceVersion": uid}
    return "Pod", {"metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Pending", **status}}


def an_event(about: str, message: str) -> tuple[str, dict[str, Any]]:
    involved = {"kind": "ReplicaSet", "name": about}
    content = {"metadata": {"name": f"{about}.1", "uid": _uid("e")}, "involvedObject": involved, "type": "Normal"}
    return "Event", {**content, "reason": "SuccessfulCreate", "message": message}


def test_generated_names_are_numbered_whatever_they_are() -> None:
    one = normalised(
        [Snapshot("two", [a_listed_pod("web-bbbbb", "1"), a_listed_pod("web-zzzzz", "2", phase="Running")], [])]
    )
    other = normalised(
        [Snapshot("two", [a_listed_pod("web-zzzzz", "3"), a_listed_pod("web-bbbbb", "4", phase="Running")], [])]
    )
    assert one == other
    assert list(one["1. two"]["objects"]) == ["Pod web-<pod 1>", "Pod web-<pod 2>"]


def test_which_of_two_equals_was_deleted_makes_no_difference() -> None:
    both = [a_listed_pod("web-bbbbb", "1"), a_listed_pod("web-ccccc", "2")]
    tellings = [
        normalised([Snapshot("two", both, []), Snapshot("one", [left], [])])
        for left in (a_listed_pod("web-bbbbb", "1"), a_listed_pod("web-ccccc", "2"))
    ]
    assert tellings[0] == tellings[1]


def test_one_that_survives_has_the_same_symbol_before_and_after() -> None:
    taken = [
        Snapshot("before", [a_listed_pod("web-bbbbb", "1"), a_listed_pod("web-ccccc", "2", phase="Running")], []),
        Snapshot("after", [a_listed_pod("web-ccccc", "2", phase="Running")], []),
    ]
    assert set(normalised(taken)["2. after"]["objects"].values()) == {AS_BEFORE}


def test_a_pod_that_was_made_anew_is_not_the_one_before() -> None:
    def taken(uid: str) -> list[Snapshot]:
        slice_ = ("EndpointSlice", {"metadata": {"name": "s", "uid": _uid("5")}, "targetRef": {"uid": _uid(uid)}})
        first = ("EndpointSlice", {"metadata": {"name": "s", "uid": _uid("5")}, "targetRef": {"uid": _uid("1")}})
        return [
            Snapshot("before", [a_listed_pod("db-0", "1"), first], []),
            Snapshot("after", [a_listed_pod("db-0", uid), slice_], []),
        ]

    assert normalised(taken("1")) != normalised(taken("2"))


def test_pods_in_events_have_their_symbols_and_unseen_ones_look_alike() -> None:
    told = an_event("web", "Created pod: web-bbbbb"), an_event("web", "Created pod: web-ddddd")
    passer = a_listed_pod("web-ddddd", "9")[1]
    found = normalised([Snapshot("one", [a_listed_pod("web-bbbbb", "1"), *told], [])], [passer])
    assert found["1. one"]["events"] == [
        "ReplicaSet web: Normal SuccessfulCreate: Created pod: web-<gone>",
        "ReplicaSet web: Normal SuccessfulCreate: Created pod: web-<pod 1>",
    ]


def test_another_phase_is_a_difference() -> None:
    pending, running = (
        normalised([Snapshot("one", [a_listed_pod("web-bbbbb", "1", phase=phase)], [])])
        for phase in ("Pending", "Running")
    )
    assert pending != running


def _uid(number: str) -> str:
    return f"1{number:0>7}-0000-0000-0000-000000000000" if number.isdigit() else "1aaaaaaa-0000-0000-0000-000000000000"
