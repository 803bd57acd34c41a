"""Which nodes a DaemonSet is for, and which pods it makes and deletes: rules without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.apps import DaemonSet, DaemonSetSpec
from shoal.api.apps.daemon_sets import DaemonSetRollingUpdate, DaemonSetUpdateStrategy
from shoal.api.core import Node, NodeSpec, Pod, PodSpec, Taint
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.daemon_sets.eligibility import Eligibility, Verdict, daemon_tolerations
from shoal.cluster.controllers.daemon_sets.failures import FailedPods
from shoal.cluster.controllers.daemon_sets.objects import by_node, target_node, wanted_pod
from shoal.cluster.controllers.daemon_sets.plan import Observed, Work, wanted_work
from shoal.cluster.controllers.daemon_sets.rollout import next_replacements
from shoal.cluster.controllers.daemon_sets.status import status_of
from tests.support.builders.pods import a_condition, a_pod

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def a_daemon_set(
    *, unavailable: int | str = 1, surge: int | str = 0, pod: dict[str, Any] | None = None, **spec: Any
) -> DaemonSet:
    rolling = DaemonSetRollingUpdate(max_unavailable=unavailable, max_surge=surge)
    return DaemonSet(
        metadata=ObjectMeta(name="agent", namespace="default", uid="set", generation=1),
        spec=DaemonSetSpec(
            template={"metadata": {"labels": {"app": "agent"}}, "spec": pod or {}},
            update_strategy=DaemonSetUpdateStrategy(rolling_update=rolling),
            **spec,
        ),
    )


def a_daemon_pod(name: str, *, state: str = "ready", new: bool = True, going: bool = False, age: int = 0) -> Pod:
    """A pod of node ``n`` is called ``n`` and whatever tells it from others: ``a``, ``a2``."""
    return a_pod(
        name,
        namespace="default",
        uid=name,
        labels={"controller-revision-hash": "new" if new else "old"},
        created=NOW - timedelta(seconds=age),
        deleted=NOW if going else None,
        node=name[0],
        phase={"failed": "Failed", "done": "Succeeded"}.get(state, "Running"),
        conditions=[a_condition("Ready", since=NOW - timedelta(hours=1))] if state == "ready" else None,
    )


def seen(daemon_set: DaemonSet, pods: list[Pod], **nodes: Verdict) -> Observed:
    return Observed(daemon_set=daemon_set, verdicts=nodes, pods=by_node(pods), hash="new", generation=None, now=NOW)


def told(work: Work) -> str:
    words = [f"create {node}" for node in work.create_on] + [f"delete {pod.metadata.name}" for pod in work.delete]
    return ", ".join(words)


RUN, STAY, LEAVE = Verdict.RUN, Verdict.STAY, Verdict.LEAVE


@pytest.mark.parametrize(
    ("verdict", "pods", "expected"),
    [
        pytest.param(RUN, [], "create a", id="a node without one"),
        pytest.param(RUN, [a_daemon_pod("a")], "", id="a node with one"),
        pytest.param(STAY, [], "", id="none where it may only stay"),
        pytest.param(STAY, [a_daemon_pod("a")], "", id="one may stay"),
        pytest.param(LEAVE, [a_daemon_pod("a")], "delete a", id="one must go"),
        pytest.param(LEAVE, [a_daemon_pod("a", going=True)], "", id="one is going"),
        pytest.param(RUN, [a_daemon_pod("a", going=True)], "", id="waits until the old one is gone"),
        pytest.param(RUN, [a_daemon_pod("a", state="failed")], "delete a", id="a failed one"),
        pytest.param(RUN, [a_daemon_pod("a", state="done")], "delete a", id="one that has ended"),
        pytest.param(
            RUN, [a_daemon_pod("a", state="failed", going=True)], "create a", id="one that failed and goes is no more"
        ),
        pytest.param(
            RUN,
            [a_daemon_pod("a", age=1), a_daemon_pod("a2", age=9), a_daemon_pod("a3")],
            "delete a, delete a3",
            id="the oldest stays",
        ),
    ],
)
def test_a_node_has_one_pod(verdict: Verdict, pods: list[Pod], expected: str) -> None:
    assert told(wanted_work(seen(a_daemon_set(), pods, a=verdict), lambda node: 0.0)) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([a_daemon_pod("a", going=True)], "create a", id="need not wait for the old one"),
        pytest.param(
            [a_daemon_pod("a", new=False), a_daemon_pod("a2", state="starting")], "", id="two while the new one starts"
        ),
        pytest.param(
            [a_daemon_pod("a", new=False), a_daemon_pod("a2")],
            "delete a",
            id="the old one goes when the new one serves",
        ),
        pytest.param(
            [a_daemon_pod("a", new=False, state="starting"), a_daemon_pod("a2", state="starting")],
            "delete a",
            id="an old one that does not serve goes at once",
        ),
        pytest.param(
            [a_daemon_pod("a", new=False, age=3), a_daemon_pod("a2", new=False), a_daemon_pod("a3", state="starting")],
            "delete a2",
            id="one of each at most",
        ),
    ],
)
def test_a_node_may_have_two_pods_while_surging(pods: list[Pod], expected: str) -> None:
    surging = a_daemon_set(surge=1, unavailable=0)
    assert told(wanted_work(seen(surging, pods, a=RUN), lambda node: 0.0)) == expected


def test_a_failed_pod_is_left_alone_for_a_while() -> None:
    observed = seen(
        a_daemon_set(), [a_daemon_pod("a", state="failed"), a_daemon_pod("b", state="failed")], a=RUN, b=RUN
    )
    work = wanted_work(observed, lambda node: {"a": 4.0, "b": 2.5}[node])
    assert told(work) == ""
    assert work.look_again_after == 2.5


def test_pods_for_a_node_that_is_gone_go_only_if_they_never_got_there() -> None:
    wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["z"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}}
    pending = Pod(metadata=ObjectMeta(name="late"), spec=PodSpec(affinity={"nodeAffinity": required}))
    assert target_node(pending) == "z"
    assert told(wanted_work(seen(a_daemon_set(), [pending, a_daemon_pod("z")]), lambda node: 0.0)) == "delete late"


def old(name: str, **more: Any) -> Pod:
    return a_daemon_pod(name, new=False, **more)


@pytest.mark.parametrize(
    ("daemon_set", "pods", "expected"),
    [
        pytest.param(a_daemon_set(), [old("a"), old("b"), old("c")], "delete a", id="one at a time"),
        pytest.param(
            a_daemon_set(unavailable=2), [old("a"), old("b"), old("c")], "delete a, delete b", id="two at a time"
        ),
        pytest.param(
            a_daemon_set(unavailable="50%"), [old("a"), old("b"), old("c")], "delete a, delete b", id="half, rounded up"
        ),
        pytest.param(
            a_daemon_set(unavailable=0), [old("a"), old("b"), old("c")], "delete a", id="none at all means one"
        ),
        pytest.param(
            a_daemon_set(), [a_daemon_pod("a", state="starting"), old("b"), old("c")], "", id="waits for the new one"
        ),
        pytest.param(a_daemon_set(), [old("a"), old("b")], "", id="a node without any counts"),
        pytest.param(
            a_daemon_set(),
            [a_daemon_pod("a", state="starting"), old("b", state="starting"), old("c")],
            "delete b",
            id="one that does not serve goes anyway",
        ),
        pytest.param(a_daemon_set(), [a_daemon_pod("a"), a_daemon_pod("b"), a_daemon_pod("c")], "", id="all are new"),
        pytest.param(
            a_daemon_set(surge=1, unavailable=0), [old("a"), old("b"), old("c")], "create a", id="surge: one beside"
        ),
        pytest.param(
            a_daemon_set(surge="50%", unavailable=0),
            [old("a"), a_daemon_pod("a2", state="starting"), old("b"), old("c")],
            "create b",
            id="surge: one is under way",
        ),
        pytest.param(
            a_daemon_set(surge=1, unavailable=0),
            [old("a"), a_daemon_pod("a2"), old("b"), old("c")],
            "create b, delete a",
            id="surge: the old one goes and the next begins",
        ),
        pytest.param(
            a_daemon_set(surge=1, unavailable=0),
            [old("a"), a_daemon_pod("a2", state="starting"), old("b", state="starting"), old("c")],
            "create b",
            id="surge: one that does not serve is no loss",
        ),
    ],
)
def test_old_pods_are_replaced(daemon_set: DaemonSet, pods: list[Pod], expected: str) -> None:
    assert told(next_replacements(seen(daemon_set, pods, a=RUN, b=RUN, c=RUN))) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([old("a"), a_daemon_pod("b", state="starting")], "", id="stays while the others do not serve"),
        pytest.param([old("a"), a_daemon_pod("b")], "delete a", id="goes when enough serve"),
        pytest.param(
            [old("a", state="starting"), a_daemon_pod("b")], "delete a", id="goes at once where it does not serve"
        ),
    ],
)
def test_a_surging_set_keeps_a_misplaced_pod_until_enough_others_serve(pods: list[Pod], expected: str) -> None:
    surging = a_daemon_set(surge=1, unavailable=0)
    assert told(next_replacements(seen(surging, pods, a=STAY, b=RUN))) == expected


def a_taint(effect: str, key: str = "dedicated") -> Taint:
    return Taint(key=key, effect=effect)


@pytest.mark.parametrize(
    ("pod", "taints", "expected"),
    [
        pytest.param({}, [], RUN, id="any node"),
        pytest.param({"nodeName": "other"}, [], LEAVE, id="another node by name"),
        pytest.param({"nodeSelector": {"gpu": "no"}}, [], LEAVE, id="another label"),
        pytest.param({"nodeSelector": {"gpu": "yes"}}, [], RUN, id="its label"),
        pytest.param({}, [a_taint("PreferNoSchedule")], RUN, id="a taint that only discourages"),
        pytest.param({}, [a_taint("NoSchedule")], STAY, id="kept away, not driven away"),
        pytest.param({}, [a_taint("NoExecute")], LEAVE, id="driven away"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, [a_taint("NoExecute")], RUN, id="tolerated"),
        pytest.param({}, [a_taint("NoSchedule", "node.kubernetes.io/unschedulable")], RUN, id="cordoned"),
        pytest.param({}, [a_taint("NoExecute", "node.kubernetes.io/not-ready")], RUN, id="not ready"),
        pytest.param({}, [a_taint("NoSchedule", "node.kubernetes.io/network-unavailable")], STAY, id="without network"),
        pytest.param(
            {"hostNetwork": True},
            [a_taint("NoSchedule", "node.kubernetes.io/network-unavailable")],
            RUN,
            id="without network, for one that needs none",
        ),
    ],
)
def test_a_node_is_for_a_daemon_set(pod: dict[str, Any], taints: list[Taint], expected: Verdict) -> None:
    node = Node(metadata=ObjectMeta(name="a", labels={"gpu": "yes"}), spec=NodeSpec(taints=taints))
    assert Eligibility(a_daemon_set(pod=pod)).verdict(node) is expected


def test_a_toleration_for_some_seconds_becomes_one_for_ever() -> None:
    brief = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    first = daemon_tolerations({"tolerations": [brief]})[0]
    assert first == {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert len(daemon_tolerations({"tolerations": [brief]})) == 6


def test_a_pod_keeps_its_other_affinities_and_the_template_is_untouched() -> None:
    affinity = {"podAffinity": {"x": 1}, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    daemon_set = a_daemon_set(pod={"affinity": affinity})
    spec = wanted_pod(daemon_set, "a", "new")["spec"]
    assert spec["affinity"]["podAffinity"] == {"x": 1}
    assert "preferredDuringSchedulingIgnoredDuringExecution" in spec["affinity"]["nodeAffinity"]
    assert daemon_set.spec.template["spec"] == {"affinity": affinity}


def test_the_status_counts_nodes_and_their_oldest_pods() -> None:
    pods = [
        a_daemon_pod("a", new=False, age=9),
        a_daemon_pod("a2", state="starting"),
        a_daemon_pod("b", state="starting"),
        a_daemon_pod("d"),
    ]
    status = status_of(seen(a_daemon_set(), pods, a=RUN, b=RUN, c=RUN, d=STAY, e=LEAVE), collisions=None)
    assert (status.desired_number_scheduled, status.current_number_scheduled) == (3, 2)
    assert (status.number_misscheduled, status.number_ready, status.number_available) == (1, 1, 1)
    assert (status.updated_number_scheduled, status.number_unavailable) == (1, 2)


def test_patience_doubles_and_is_forgotten_after_long_peace() -> None:
    clock = [0.0]
    failures = FailedPods(clock=lambda: clock[0])
    assert failures.delay("a") == 0
    failures.deleted("a")
    assert failures.delay("a") == 1
    clock[0] = 1.5
    assert failures.delay("a") == 0
    failures.deleted("a")
    assert failures.delay("a") == 2
    assert failures.delay("b") == 0
    for _ in range(20):
        failures.deleted("a")
    assert failures.delay("a") == 900
    clock[0] += 1801
    assert failures.delay("a") == 0
    failures.deleted("a")
    assert failures.delay("a") == 1
