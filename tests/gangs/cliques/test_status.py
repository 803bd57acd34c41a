"""What a clique tells of its pods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    MIN_AVAILABLE_BREACHED,
    PODS_GATED,
    LastError,
    PodClique,
    PodCliqueStatus,
    PodCliqueUpdate,
    names,
)
from shoal.api.meta import Condition, find_condition, format_time
from shoal.gangs.cliques.gates import GANG_INCOMPLETE, Gating
from shoal.gangs.cliques.status import Reached, has_lost_all, is_urgent, wanted_status
from tests.gangs.builders import START, a_clique, a_clique_pod

LATER = START + timedelta(minutes=1)
CRASHED = {"name": "main", "lastState": {"terminated": {"exitCode": 1}}}
ENDED_WELL = {"name": "main", "lastState": {"terminated": {"exitCode": 0}}}
STARTED = {"name": "main", "started": True, "ready": False}
SERVING = {"name": "main", "started": True, "ready": True}
OVER = {"name": "main", "started": False, "ready": False, "state": {"terminated": {"exitCode": 1}}}
PULLING = {"name": "main", "started": False, "state": {"waiting": {"reason": "ContainerCreating"}}}
AN_ERROR = LastError(code="ERR_CREATE_POD", description="no", observed_at=START)
MEMBER = {names.SCALING_GROUP_LABEL: "web-0-group", names.SCALING_GROUP_REPLICA_LABEL: "0"}


def an_update(*, ended: bool = True, generation: str = "g2", template: str = "new") -> PodCliqueUpdate:
    return PodCliqueUpdate(
        update_started_at=START,
        update_ended_at=START if ended else None,
        pod_clique_set_generation_hash=generation,
        pod_template_hash=template,
    )


def told(
    pods: list[Pod],
    clique: PodClique | None = None,
    *,
    update: PodCliqueUpdate | None = None,
    generation_hash: str = "g2",
    gating: Gating = Gating(),
    errors: list[LastError] | None = None,
) -> PodCliqueStatus:
    reached = Reached(update=update, generation_hash=generation_hash, gating=gating, errors=errors or [])
    return wanted_status(clique or a_clique(), pods, reached, LATER)


def answer(status: PodCliqueStatus, question: str) -> tuple[str, str]:
    condition = find_condition(status.conditions, question)
    assert condition is not None
    return condition.status, condition.reason


def running(name: str, **more: Any) -> Pod:
    return a_clique_pod(name, node="n", **more)


def test_pods_are_counted_by_what_they_are() -> None:
    status = told(
        [
            running("a", ready=True),
            running("b", hash="old"),
            a_clique_pod("c", gated=True),
            a_clique_pod("d"),
            running("e", ready=True, going=True),
        ]
    )
    assert status.replicas == 4
    assert status.ready_replicas == 2, "one that goes is still ready"
    assert status.scheduled_replicas == 3, "one that goes still has its node"
    assert status.schedule_gated_replicas == 1
    assert status.updated_replicas == 4
    assert status.observed_generation == 3


@pytest.mark.parametrize(
    ("update", "label", "current", "updated"),
    [
        pytest.param(an_update(template="old"), "new", "", 2, id="the update's target first"),
        pytest.param(None, "new", "old", 1, id="then the clique's own label"),
        pytest.param(None, "", "old", 2, id="then what all pods had"),
    ],
)
def test_updated_pods_have_the_target_template(
    update: PodCliqueUpdate | None, label: str, current: str, updated: int
) -> None:
    clique = a_clique(hash=label, status={"currentPodTemplateHash": current})
    pods = [a_clique_pod("a", hash="old"), a_clique_pod("b", hash="old"), a_clique_pod("c", hash="new")]
    assert told(pods, clique, update=update).updated_replicas == updated


@pytest.mark.parametrize(
    ("pods", "minimum", "scheduled", "breached"),
    [
        pytest.param(
            [running("a")],
            2,
            ("False", "InsufficientScheduledPods"),
            ("True", "ScheduledReplicasBelowMinAvailable"),
            id="too few on nodes",
        ),
        pytest.param(
            [running("a", ready=True), running("b", ready=True)],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="all ready",
        ),
        pytest.param(
            [running("a", ready=True), running("b", containers=[PULLING])],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="one that pulls its image is fine",
        ),
        pytest.param(
            [running("a", ready=True), running("b", containers=[CRASHED])],
            2,
            ("True", "SufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
            id="one has crashed",
        ),
        pytest.param(
            [running("a", ready=True), running("b", init_containers=[CRASHED])],
            2,
            ("True", "SufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
            id="an init container has crashed",
        ),
        pytest.param(
            [running("a", ready=True), running("b", containers=[SERVING])],
            2,
            ("True", "SufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
            id="one has a node that has fallen silent",
        ),
        pytest.param(
            [running("a", ready=True), running("b", containers=[SERVING], readiness_gates=["example.com/turned-on"])],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="one that waits for a gate of its own is fine",
        ),
        pytest.param(
            [running("a", ready=True), running("b", phase="Failed", containers=[OVER])],
            2,
            ("True", "SufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
            id="one has failed for good",
        ),
        pytest.param(
            [running("a", ready=True), running("b", containers=[ENDED_WELL])],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="one that ended well is fine",
        ),
        pytest.param(
            [running("a", ready=True), running("b", containers=[STARTED])],
            2,
            ("True", "SufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
            id="one runs and is not ready",
        ),
        pytest.param(
            [running("a", ready=True), running("b", init_containers=[STARTED])],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="one whose init container runs is fine",
        ),
        pytest.param(
            [running("a", ready=True), running("b", ready=True, containers=[CRASHED])],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="one that crashed and is ready again is fine",
        ),
        pytest.param(
            [running("a"), running("b"), running("c", containers=[CRASHED, STARTED])],
            2,
            ("True", "SufficientScheduledPods"),
            ("False", "SufficientReadyPods"),
            id="a pod is counted out once",
        ),
    ],
)
def test_a_breach_is_told_by_the_pods_that_are_well(
    pods: list[Pod], minimum: int, scheduled: tuple[str, str], breached: tuple[str, str]
) -> None:
    status = told(pods, a_clique(replicas=3, min_available=minimum))
    assert answer(status, CLIQUE_SCHEDULED) == scheduled
    assert answer(status, MIN_AVAILABLE_BREACHED) == breached


def test_during_an_update_nobody_knows_of_a_breach() -> None:
    status = told([], update=an_update(ended=False))
    assert answer(status, MIN_AVAILABLE_BREACHED) == ("Unknown", "UpdateInProgress")


def test_a_clique_that_never_was_scheduled_says_so_since_it_was_made() -> None:
    condition = find_condition(told([]).conditions, CLIQUE_SCHEDULED)
    assert condition is not None
    assert condition.last_transition_time == START

    before = {"conditions": [{"type": CLIQUE_SCHEDULED, "status": "True", "lastTransitionTime": format_time(START)}]}
    condition = find_condition(told([], a_clique(status=before)).conditions, CLIQUE_SCHEDULED)
    assert condition is not None
    assert condition.last_transition_time == LATER


def test_the_condition_says_why_pods_are_gated() -> None:
    held = told([], gating=Gating(reason=GANG_INCOMPLETE, message="waits"))
    assert answer(held, PODS_GATED) == ("True", GANG_INCOMPLETE)
    assert answer(told([]), PODS_GATED) == ("False", "NoPodsGated")


def test_conditions_of_others_stay() -> None:
    clique = a_clique(status={"conditions": [{"type": "Theirs", "status": "True"}]})
    assert answer(told([], clique), "Theirs") == ("True", "")


@pytest.mark.parametrize(
    ("pods", "update", "generation", "expected"),
    [
        pytest.param([a_clique_pod("a"), a_clique_pod("b")], None, "g2", ("new", "g2"), id="a member, all pods new"),
        pytest.param(
            [a_clique_pod("a"), a_clique_pod("b", hash="old")], None, "g2", ("was", "g1"), id="one pod is old"
        ),
        pytest.param([a_clique_pod("a")], None, "", ("was", "g1"), id="a member that waits to be recreated"),
        pytest.param([a_clique_pod("a")], an_update(), "g2", ("new", "g2"), id="after its update"),
        pytest.param([a_clique_pod("a")], an_update(ended=False), "g2", ("was", "g1"), id="during its update"),
        pytest.param(
            [a_clique_pod("a", hash="old")],
            an_update(template="old", generation="g1"),
            "g2",
            ("old", "g1"),
            id="before its turn",
        ),
    ],
)
def test_what_all_pods_have_moves_when_all_have_arrived(
    pods: list[Pod], update: PodCliqueUpdate | None, generation: str, expected: tuple[str, str]
) -> None:
    before = {"currentPodTemplateHash": "was", "currentPodCliqueSetGenerationHash": "g1"}
    status = told(pods, a_clique(status=before), update=update, generation_hash=generation)
    assert (status.current_pod_template_hash, status.current_pod_clique_set_generation_hash) == expected


def test_only_a_clique_in_no_scaling_group_can_be_scaled_by_its_pods() -> None:
    selector = "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=web,grove.io/podclique="
    assert told([]).hpa_pod_selector == f"{selector}web-0-workers"
    assert told([], a_clique(labels=MEMBER)).hpa_pod_selector == ""


def test_the_generation_is_claimed_only_when_all_went_well() -> None:
    assert told([], errors=[AN_ERROR]).observed_generation is None
    assert told([], errors=[AN_ERROR]).conditions == [], "conditions come with the first generation"
    known = a_clique(status={"observedGeneration": 2})
    status = told([], known, errors=[AN_ERROR])
    assert status.observed_generation == 2
    assert status.last_errors == [AN_ERROR]
    assert status.conditions


def test_the_loss_of_the_last_scheduled_pod_is_noticed() -> None:
    one, none = PodCliqueStatus(scheduled_replicas=1), PodCliqueStatus()
    assert has_lost_all(one, none)
    assert not has_lost_all(none, none)
    assert not has_lost_all(PodCliqueStatus(scheduled_replicas=2), one)


def changed(**fields: Any) -> PodCliqueStatus:
    return msgspec.structs.replace(PodCliqueStatus(observed_generation=1), **fields)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(changed(), changed(replicas=2, schedule_gated_replicas=2), False, id="pods were made"),
        pytest.param(changed(), changed(observed_generation=2), False, id="the generation alone"),
        pytest.param(changed(), changed(ready_replicas=1), False, id="a pod is ready"),
        pytest.param(changed(ready_replicas=1), changed(ready_replicas=2), True, id="enough pods are ready"),
        pytest.param(changed(ready_replicas=2), changed(ready_replicas=3), False, id="one more pod is ready"),
        pytest.param(changed(ready_replicas=2), changed(ready_replicas=1), True, id="too few pods are ready"),
        pytest.param(changed(), changed(scheduled_replicas=1), True, id="the first pod has a node"),
        pytest.param(changed(scheduled_replicas=1), changed(scheduled_replicas=2), True, id="enough pods have nodes"),
        pytest.param(changed(scheduled_replicas=2), changed(scheduled_replicas=3), False, id="one more has a node"),
        pytest.param(changed(scheduled_replicas=1), changed(scheduled_replicas=0), True, id="the last node is lost"),
        pytest.param(changed(), changed(last_errors=[AN_ERROR]), True, id="an error"),
        pytest.param(
            changed(last_errors=[AN_ERROR]), changed(last_errors=[AN_ERROR], replicas=1), True, id="while it goes wrong"
        ),
        pytest.param(changed(), changed(update_progress=an_update()), True, id="an update goes on"),
        pytest.param(changed(), changed(current_pod_template_hash="x"), True, id="all pods are new"),
        pytest.param(
            changed(), changed(conditions=[Condition(type=PODS_GATED, status="True")]), False, id="pods are gated"
        ),
        pytest.param(
            changed(),
            changed(conditions=[Condition(type=MIN_AVAILABLE_BREACHED, status="True")]),
            True,
            id="too few are well",
        ),
        pytest.param(PodCliqueStatus(), changed(update_progress=an_update()), False, id="the first report of a start"),
        pytest.param(PodCliqueStatus(), changed(scheduled_replicas=1), False, id="a first report with too few pods"),
        pytest.param(PodCliqueStatus(), changed(scheduled_replicas=2), True, id="a first report with enough pods"),
    ],
)
def test_what_others_wait_for_is_told_at_once(before: PodCliqueStatus, after: PodCliqueStatus, expected: bool) -> None:
    assert is_urgent(before, after, minimum=2, has_followers=True) is expected


def test_a_first_report_waits_for_ready_pods_where_nobody_waits_for_scheduled_ones() -> None:
    scheduled, ready = changed(scheduled_replicas=2), changed(scheduled_replicas=2, ready_replicas=2)
    assert not is_urgent(PodCliqueStatus(), scheduled, minimum=2, has_followers=False)
    assert is_urgent(PodCliqueStatus(), ready, minimum=2, has_followers=False)
    assert is_urgent(changed(), scheduled, minimum=2, has_followers=False)
