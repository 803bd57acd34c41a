"""Cycles on nodes with zones: who is refused, who goes where, and what others still find."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api import kai_names as names
from shoal.api.scheduling_run_ai import NumaZoneAmount
from shoal.scheduler.explaining import explain, short
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.numa import NumaSettings
from shoal.scheduler.session.session import Bind, Eviction, Promise
from shoal.scheduler.session.statement import Reason
from shoal.scheduler.watching.carrying import bind_request
from tests.scheduler.numa.builders import GPU, Asked, Stage, places, zones_given
from tests.scheduler.session.model_state import state_of
from tests.scheduler.watching.worlds import a_request

HALF = {GPU: "4", "cpu": "16"}
NO_ROOM = "not enough room in NUMA zones"


def on_zone(zone: str, gpus: int) -> dict[str, str]:
    return {names.NUMA_OBSERVED: f'[{{"zone":"{zone}","amount":{{"{GPU}":"{gpus}"}}}}]'}


@pytest.mark.parametrize(
    ("policy", "asks", "quality", "expected"),
    [
        pytest.param("single-numa-node", {GPU: "6"}, "Guaranteed", {}, id="single: zones are too small each"),
        pytest.param("single-numa-node", {GPU: "6"}, "Burstable", {}, id="single: devices of any pod"),
        pytest.param("single-numa-node", {GPU: "4"}, "Guaranteed", {"p": "n0"}, id="single: one zone has it"),
        pytest.param("single-numa-node", {"cpu": "20"}, "Burstable", {"p": "n0"}, id="single: not guaranteed"),
        pytest.param("single-numa-node", {"cpu": "20"}, "Guaranteed", {}, id="single: processors of guaranteed ones"),
        pytest.param("restricted", {GPU: "6", "cpu": "10"}, "Guaranteed", {}, id="restricted: widths differ"),
        pytest.param("restricted", {GPU: "6", "cpu": "24"}, "Guaranteed", {"p": "n0"}, id="restricted: both on two"),
        pytest.param("best-effort", {GPU: "6", "cpu": "10"}, "Guaranteed", {"p": "n0"}, id="best effort takes all"),
        pytest.param("none", {GPU: "6", "cpu": "10"}, "Guaranteed", {"p": "n0"}, id="no policy takes all"),
    ],
)
def test_a_node_is_refused_as_its_kubelet_would(
    policy: str, asks: Asked, quality: str, expected: dict[str, str]
) -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF, policy=policy)
    stage.pod("p", asks, quality=quality)
    assert stage.cycle() == expected


def test_without_the_plugin_zones_are_nothing() -> None:
    stage = Stage(reads_zones=False)
    stage.node("n0", HALF, HALF)
    stage.pod("p", {GPU: "6"})
    session = stage.decide()
    assert (session.numa, places(session), zones_given(session)) == (None, {"p": "n0"}, {"p": []})


def test_a_pod_goes_to_a_node_that_can_align_it() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.node("n1", {GPU: "8", "cpu": "32"})
    stage.pod("p", {GPU: "6"})
    assert stage.cycle() == {"p": "n1"}


def test_of_nodes_that_refuse_nobody_the_one_with_fewer_zones_is_preferred() -> None:
    stage = Stage()
    stage.node("n0", *[{GPU: "2"}] * 4, policy="best-effort")
    stage.node("n1", {GPU: "4"}, {GPU: "4"}, policy="best-effort")
    stage.node("n2")
    stage.pod("p", {GPU: "4"})
    session = stage.decide()
    assert zones_given(session) == {"p": ["node-0"]}
    assert places(session) == {"p": "n1"}
    [task] = session.cluster.jobs["default", "pod/p"].tasks.values()
    field = session.field(task)
    assert field.zones is not None
    assert field.zones.points.tolist() == [50.0, 100.0, 25.0]


def test_what_a_cycle_gives_counts_for_the_rest_of_it_and_for_the_next() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    for name in "abc":
        stage.pod(name, {GPU: "3"}, annotations={}, started=None)
    session = stage.decide()
    given = zones_given(session)
    assert sorted(given.values()) == [["node-0"], ["node-1"]]
    session.close()
    assert len(stage.cycle()) == 2
    stage.pod("d", {GPU: "2"})
    assert stage.cycle() == {}
    stage.pod("e", {GPU: "1"})
    assert stage.cycle() == {"e": "n0"}


def test_a_gang_that_does_not_fit_leaves_the_zones_as_they_were() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF, gpus=12)
    stage.mirror.catch_up(stage.now)
    stage.gang("team", 3, {GPU: "3"})
    session = stage.decide()
    assert places(session) == {}
    before = state_of(session)
    [first, second, _] = session.cluster.jobs["default", "team"].tasks.values()
    statement = session.statement()
    statement.allocate(first, 0)
    statement.allocate(second, 0)
    assert not session.field(first).fits[0]
    statement.roll_back(1)
    assert session.field(first).is_free[0]
    statement.roll_back()
    assert state_of(session) == before
    session.close()
    stage.pod("p", {GPU: "4"})
    assert stage.cycle() == {"p": "n0"}


def test_a_node_is_never_filled_in_one_go_beyond_its_zones() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.node("n1", HALF, HALF)
    stage.gang("team", 4, {GPU: "3"})
    session = stage.decide()
    assert sorted(places(session).values()) == ["n0", "n0", "n1", "n1"]


@pytest.mark.parametrize(
    ("ignored", "expected"), [(frozenset[str](), {}), (frozenset({"cpu"}), {"p": "n0"})], ids=["none", "processors"]
)
def test_what_is_to_be_ignored_refuses_nobody(ignored: frozenset[str], expected: dict[str, str]) -> None:
    stage = Stage(numa=NumaSettings(ignored=ignored))
    stage.node("n0", HALF, HALF)
    stage.pod("p", {GPU: "1", "cpu": "20"})
    assert stage.cycle() == expected


@pytest.mark.parametrize(
    ("reconstructs", "records", "expected"),
    [
        pytest.param(True, True, {}, id="counted from the pods"),
        pytest.param(True, False, {"p": "n0"}, id="a pod that nobody knows the zone of counts for none"),
        pytest.param(False, True, {"p": "n0"}, id="by the node's word"),
    ],
)
def test_what_is_free_is_counted_or_taken_by_the_nodes_word(
    reconstructs: bool, records: bool, expected: dict[str, str]
) -> None:
    """The report is old: it does not know yet of the pods that run."""
    stage = Stage(numa=NumaSettings(reconstructs=reconstructs))
    stage.node("n0", HALF, HALF)
    for zone in (0, 1):
        annotations = on_zone(f"node-{zone}", 2) if records else {}
        stage.pod(f"old-{zone}", {GPU: "2"}, node="n0", phase="Running", annotations=annotations)
    stage.pod("p", {GPU: "3"})
    assert stage.cycle() == expected


def test_the_nodes_word_is_changed_by_what_the_cycle_itself_gives() -> None:
    stage = Stage(numa=NumaSettings(reconstructs=False))
    stage.node("n0", HALF, HALF, free=[{GPU: "1"}, {GPU: "3"}])
    for name in "ab":
        stage.pod(name, {GPU: "2"})
    assert list(zones_given(stage.decide()).values()) == [["node-1"]]


def test_a_record_of_zones_that_a_node_has_no_longer_counts_for_nothing() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("old", {GPU: "4"}, node="n0", phase="Running", annotations=on_zone("node-7", 4))
    stage.pod("p", {GPU: "4"})
    assert zones_given(stage.decide()) == {"p": ["node-0"]}


def test_a_zone_that_somebody_is_leaving_is_promised_and_not_given() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("stays", {GPU: "2"}, node="n0", phase="Running", annotations=on_zone("node-1", 2))
    stage.pod("goes", {GPU: "2"}, node="n0", phase="Running", annotations=on_zone("node-0", 2), deleted=0.0)
    stage.pod("p", {GPU: "4"})
    [decision] = stage.decide().decisions
    assert isinstance(decision, Promise)
    assert decision.node == "n0"


def test_a_node_that_is_free_at_once_goes_before_one_whose_zone_is_being_left() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.node("n1", HALF, HALF)
    for zone in (0, 1):
        on = on_zone(f"node-{zone}", 2)
        stage.pod(f"goes-{zone}", {GPU: "1"}, node="n0", phase="Running", annotations=on, deleted=0.0)
    stage.pod("p", {GPU: "3"})
    assert stage.cycle() == {"p": "n1"}


def test_a_victim_makes_room_in_its_own_zone_and_does_not_get_it_back() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    for zone in (0, 1):
        on = on_zone(f"node-{zone}", 2)
        stage.pod(f"low-{zone}", {GPU: "2"}, node="n0", phase="Running", annotations=on, priority=10)
    stage.pod("high", {GPU: "4"}, priority=60)
    session = stage.decide("allocate", "preempt")
    [victim] = [one.task for one in session.decisions if isinstance(one, Eviction)]
    promised = {one.task.name: one.task for one in session.decisions if isinstance(one, Promise)}
    own = {name: [zone for zone, _ in (task.hold and task.hold.zones) or ()] for name, task in promised.items()}
    freed = f"node-{victim.name[-1]}"
    assert own.pop("high") == [freed]
    assert own in ({}, {victim.name: ["node-1" if freed == "node-0" else "node-0"]})


@pytest.mark.parametrize("is_taken", [True, False], ids=["its zone is taken", "its zone is free"])
def test_a_pod_that_was_to_go_stays_where_it_was_unless_its_zone_is_taken(is_taken: bool) -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("old", {GPU: "3"}, node="n0", phase="Running", annotations=on_zone("node-1", 3))
    stage.pod("fill", {GPU: "1"}, node="n0", phase="Running", annotations=on_zone("node-0", 1))
    stage.pod("p", {GPU: "4"})
    session = stage.decide("stalegangeviction")
    old, new = (next(iter(session.cluster.jobs["default", f"pod/{name}"].tasks.values())) for name in ("old", "p"))
    before, statement = state_of(session), session.statement()
    statement.evict(old, Reason("preempt"))
    if is_taken:
        statement.pipeline(new, 0)
        assert new.hold is not None
        assert new.hold.zones is not None
        assert [zone for zone, _ in new.hold.zones] == ["node-1"]
    statement.pipeline(old, 0)
    assert old.status is (Status.PIPELINED if is_taken else Status.RUNNING)
    statement.roll_back()
    assert state_of(session) == before


def test_jobs_that_differ_in_their_containers_alone_are_not_taken_for_alike() -> None:
    """One that finds no victims must not keep another waiting that asks for the same in smaller parts."""
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("low", {GPU: "8"}, node="n0", phase="Running", priority=10, quality="Burstable")
    stage.pod("a-whole", {GPU: "6"}, priority=60)
    stage.pod("b-parts", {GPU: "3"}, {GPU: "3"}, priority=60)
    session = stage.decide("allocate", "preempt")
    assert [one.task.name for one in session.decisions if isinstance(one, Promise)] == ["b-parts"]


def test_whoever_asks_is_told_that_zones_are_in_the_way() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.node("n1", gpus=2)
    stage.pod("p", {GPU: "6"})
    session = stage.decide()
    job = session.cluster.jobs["default", "pod/p"]
    sentence = short(session, job)
    assert f"{NO_ROOM} as the node's topology policy wants it (1 node)" in sentence
    assert "not enough GPUs (1 node)" in sentence
    told = explain(session, job)
    assert "Zones" in [one.what for one in told.remedies]


def test_whoever_asks_for_a_gang_is_told_so_too() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF, gpus=12)
    stage.gang("team", 3, {GPU: "3"})
    session = stage.decide()
    sentence = short(session, session.cluster.jobs["default", "team"])
    assert "room was found for 2 pods while 3 are required" in sentence
    assert NO_ROOM in sentence


@pytest.mark.parametrize("is_ending", [True, False], ids=["somebody is still there", "it is free"])
def test_a_promise_becomes_a_place_only_if_nobody_is_left_in_its_zones(is_ending: bool) -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("stays", {GPU: "2"}, node="n0", phase="Running", annotations=on_zone("node-1", 2))
    if is_ending:
        stage.pod("goes", {GPU: "2"}, node="n0", phase="Running", annotations=on_zone("node-0", 2), deleted=0.0)
    stage.pod("p", {GPU: "4"})
    session = stage.decide("stalegangeviction")
    [task] = session.cluster.jobs["default", "pod/p"].tasks.values()
    statement = session.statement()
    statement.pipeline(task, 0)
    statement.give(task)
    assert task.hold is not None
    assert session.numa is not None
    assert session.numa.is_there(task.hold) is not is_ending


def test_the_order_for_the_binder_names_the_zones() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("p", {GPU: "4"})
    [bind] = stage.decide().decisions
    pod = stage.mirror.pod(("default", "p"))
    assert isinstance(bind, Bind)
    assert pod is not None
    zones = bind_request(bind, pod)["spec"]["predictedNUMAZones"]
    assert zones == [{"zone": "node-0", "amount": {GPU: "4"}}]


def test_an_order_that_is_under_way_counts_in_its_zones() -> None:
    stage = Stage()
    stage.node("n0", HALF, HALF)
    stage.pod("ordered", {GPU: "3"})
    stage.pod("p", {GPU: "4"})
    order = a_request("ordered", "n0", owner="uid-ordered")
    spec = msgspec.structs.replace(order.spec, predicted_numa_zones=[NumaZoneAmount(zone="node-0", amount={GPU: "3"})])
    stage.mirror.noted.requests["default", "ordered"] = msgspec.structs.replace(order, spec=spec)
    assert zones_given(stage.decide()) == {"p": ["node-1"]}
