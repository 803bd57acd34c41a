"""Who is tried next."""

from __future__ import annotations

from shoal.cluster.controllers.binding.demand import Shapes
from shoal.cluster.controllers.binding.waiting import Waiting
from tests.cluster.controllers.binding.builders import a_pending_pod, away_from, near_to, on_nodes


class Lines:
    def __init__(self) -> None:
        self.waiting = Waiting()
        self.shapes = Shapes()

    def put(self, name: str, *, claims: tuple[str, ...] = (), **chosen: object) -> None:
        pod = a_pending_pod(name, **chosen)
        self.waiting.put(pod, self.shapes.load_of(pod), claims, told="")

    def taken(self) -> list[str]:
        """The names in the order in which all would be placed."""
        names = []
        while (entry := self.waiting.first()) is not None:
            names.append(entry.pod.metadata.name)
            self.waiting.remove(entry.pod.metadata.uid)
        return names

    def tried(self) -> list[str]:
        """The names that are tried where nobody fits."""
        names = []
        while (entry := self.waiting.first()) is not None:
            names.append(entry.pod.metadata.name)
            self.waiting.sleep(entry.line)
        return names


def test_the_most_important_comes_first_whatever_its_shape() -> None:
    lines = Lines()
    lines.put("low-a", priority=1)
    lines.put("low-b", priority=1, requests={"cpu": "2"})
    lines.put("high", priority=9, requests={"cpu": "2"})
    lines.put("middle", priority=5)
    assert lines.taken() == ["high", "middle", "low-a", "low-b"]


def test_one_of_many_equal_pods_is_tried() -> None:
    lines = Lines()
    for number in range(100):
        lines.put(f"p{number:03}", labels={"index": str(number)})
    lines.put("other", requests={"cpu": "1"})
    assert sorted(lines.tried()) == ["other", "p000"]
    assert lines.tried() == []


def test_sleepers_wake_when_a_node_has_room() -> None:
    lines = Lines()
    lines.put("one")
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    lines.put("pinned", affinity=on_nodes(fields=[field]))
    assert sorted(lines.tried()) == ["one", "pinned"]
    lines.waiting.wake_for_node("a")
    assert lines.tried() == ["one"]
    lines.waiting.wake_for_node("b")
    assert sorted(lines.tried()) == ["one", "pinned"]


def test_sleepers_wake_for_their_claim_and_their_company() -> None:
    lines = Lines()
    lines.put("one", claims=("data",))
    lines.put("two", claims=("other",))
    lines.put("three", affinity=near_to(app="x"))
    assert sorted(lines.tried()) == ["one", "three", "two"]
    lines.waiting.wake_for_claim("default", "data")
    assert lines.tried() == ["one"]
    load = lines.shapes.load_of(a_pending_pod("company", labels={"app": "x"}))
    lines.waiting.wake_for_company(load, lambda namespace: {})
    assert lines.tried() == ["three"]


def test_news_of_a_pod_that_changes_nothing_wakes_nobody() -> None:
    lines = Lines()
    lines.put("one")
    assert lines.tried() == ["one"]
    lines.put("one")
    assert lines.tried() == []
    lines.put("one", tolerations=[{"operator": "Exists"}])
    assert lines.tried() == ["one"]


def test_a_pod_that_is_set_apart_does_not_hold_up_its_line() -> None:
    lines = Lines()
    lines.put("a")
    lines.put("b")
    first = lines.waiting.first()
    assert first is not None
    lines.waiting.set_apart(first)
    assert lines.tried() == ["b"]
    lines.waiting.wake_for_node("n")
    assert sorted(lines.tried()) == ["a", "b"]


def test_a_pinned_pod_that_minds_its_neighbours_wakes_for_who_leaves_another_node() -> None:
    lines = Lines()
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    lines.put("pinned", affinity=on_nodes(fields=[field]) | away_from("zone", app="x"))
    assert lines.tried() == ["pinned"]
    lines.waiting.wake_for_node("a")
    assert lines.tried() == ["pinned"]
