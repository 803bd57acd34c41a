"""What need not be sent again, what is sent smaller, and what is kept for that."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import msgspec
import pytest

from shoal.api.visualizer import ClusterView, TaskStatus
from shoal.visualizer import PREFIX
from shoal.visualizer.answers import accepts_gzip, is_known
from shoal.visualizer.library import Library
from shoal.visualizer.shapes.jobs import TaskEncoder
from tests.support.waiting import eventually
from tests.visualizer.builders import NOON, a_job_view, a_node_view, a_queue_view, a_task_view, a_view
from tests.visualizer.conftest import Visualizer

ROUTES = ("summary", "queues", "jobs", "nodes")


def a_large_view(jobs: int = 200) -> ClusterView:
    return a_view(
        nodes=[a_node_view(f"node-{i:03}", gpus=8) for i in range(50)],
        queues=[a_queue_view(f"queue-{i:02}") for i in range(10)],
        jobs=[a_job_view(f"job-{i:04}", a_task_view(f"pod-{i}"), namespace=f"team-{i % 3}") for i in range(jobs)],
    )


@pytest.mark.parametrize("name", [*ROUTES, "jobs?namespace=team-1"])
async def test_whoever_has_it_already_is_told_so(visualizer: Visualizer, name: str) -> None:
    visualizer.publish(a_large_view())
    first = await visualizer.get(name)
    assert first.headers["ETag"].startswith('W/"')
    again = await visualizer.get(name, If_None_Match=first.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Access-Control-Allow-Origin"] == "*"
    assert (await visualizer.get(name, If_None_Match='W/"other"')).status == 200


async def test_a_tag_changes_with_what_its_route_says_and_with_nothing_else(visualizer: Visualizer) -> None:
    async def tags() -> dict[str, str]:
        names = (*ROUTES, "jobs?namespace=team-0", "jobs?namespace=team-1")
        return {name: (await visualizer.get(name)).headers["ETag"] for name in names}

    async def changed(view: ClusterView) -> set[str]:
        before = await tags()
        visualizer.publish(view)
        after = await tags()
        return {name for name in after if after[name] != before[name]}

    view = a_large_view()
    visualizer.publish(view)
    assert await changed(view.followed_by(cycle=2, at=NOON)) == set()
    assert await changed(a_large_view()) == set(), "equal, though every object is another one"
    moved = a_job_view("job-0001", a_task_view("pod-1"), namespace="team-1", position=4)
    assert await changed(view.followed_by(cycle=3, at=NOON, jobs=[moved])) == {"jobs", "jobs?namespace=team-1"}
    assert await changed(view) == {"jobs", "jobs?namespace=team-1"}
    ended = a_job_view("job-0000", a_task_view("pod-0", TaskStatus.SUCCEEDED), namespace="team-0")
    assert await changed(view.followed_by(cycle=4, at=NOON, jobs=[ended])) == {
        "summary",
        "jobs",
        "jobs?namespace=team-0",
    }
    assert await changed(view.followed_by(cycle=5, at=NOON, gone_nodes=["node-007"])) >= {"summary", "nodes"}


async def test_two_servers_of_one_view_have_the_same_tags(visualizer: Visualizer) -> None:
    view = a_large_view()
    one, another = Library(), Library()
    for library in (one, another):
        await library.jobs(a_large_view(7))  # a past of its own
    assert (await one.jobs(view)).etag == (await another.jobs(view)).etag


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_a_head_is_the_answer_without_its_body(visualizer: Visualizer, name: str, encoding: str) -> None:
    visualizer.publish(a_large_view())
    whole = await visualizer.get(name, Accept_Encoding=encoding)
    head = await visualizer.ask(f"{PREFIX}/{name}", "HEAD", Accept_Encoding=encoding)
    assert (head.status, head.body) == (200, b"")
    for header in ("Content-Type", "Content-Length", "ETag", "X-Shoal-Cycle", "Vary"):
        assert head.headers[header] == whole.headers[header]
    assert head.headers.get("Content-Encoding") == whole.headers.get("Content-Encoding")


async def test_a_large_answer_comes_compressed_to_those_who_take_it(visualizer: Visualizer) -> None:
    view = a_large_view()
    visualizer.publish(view)
    plain = await visualizer.get("jobs")
    small = await visualizer.get("jobs", Accept_Encoding="br, gzip")
    assert "Content-Encoding" not in plain.headers
    assert small.headers["Content-Encoding"] == "gzip"
    assert small.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert len(small.body) < len(plain.body) / 4
    assert gzip.decompress(small.body) == plain.body
    assert small.headers["ETag"] == plain.headers["ETag"], "one thing said in two ways"
    # With one job changed, all other pages are taken as they were compressed.
    visualizer.publish(
        view.followed_by(cycle=2, at=NOON, jobs=[a_job_view("job-0007", namespace="team-1", position=1)])
    )
    changed = await visualizer.get("jobs", Accept_Encoding="gzip")
    assert gzip.decompress(changed.body) == (await visualizer.get("jobs")).body != plain.body


async def test_a_small_answer_is_sent_as_it_is(visualizer: Visualizer) -> None:
    visualizer.publish(a_view())
    assert "Content-Encoding" not in (await visualizer.get("summary", Accept_Encoding="gzip")).headers


async def test_an_answer_of_megabytes_arrives_whole(visualizer: Visualizer) -> None:
    tasks = tuple(a_task_view(f"pod-{i}") for i in range(50))
    visualizer.publish(a_view(jobs=[a_job_view(f"job-{i:04}", *tasks) for i in range(400)]))
    plain = await visualizer.get("jobs")
    assert int(plain.headers["Content-Length"]) == len(plain.body) > 2_000_000
    assert len(plain.json) == 400
    head = await visualizer.ask(f"{PREFIX}/jobs", "HEAD")
    assert (head.body, head.headers["Content-Length"]) == (b"", plain.headers["Content-Length"])
    small = await visualizer.get("jobs", Accept_Encoding="gzip")
    assert gzip.decompress(small.body) == plain.body


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5, br", True),
        ("gzip;q=0", False),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("gzip; q=nonsense", False),
    ],
)
def test_who_takes_gzip(header: str, expected: bool) -> None:
    assert accepts_gzip(header) is expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("*", True),
        ('W/"a"', True),
        ('"a"', True),
        ('"b", W/"a"', True),
        ('"b", "c"', False),
        ("a", False),
    ],
)
def test_who_has_it_already(header: str, expected: bool) -> None:
    assert is_known(header, 'W/"a"') is expected


async def test_only_what_has_changed_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    really = TaskEncoder.encoded

    def counting(self: TaskEncoder, tasks: Any) -> bytes:
        encoded.extend(task.name for task in tasks)
        return really(self, tasks)

    monkeypatch.setattr(TaskEncoder, "encoded", counting)
    library = Library()
    view = a_large_view(100)
    await library.jobs(view)
    assert len(encoded) == 100
    encoded.clear()
    await library.jobs(view)
    await library.jobs(view, {"team-1"})
    assert encoded == []
    view = view.followed_by(cycle=2, at=NOON, jobs=[a_job_view("job-0003", a_task_view("pod-new"), namespace="team-0")])
    await library.jobs(view)
    assert encoded == ["pod-new"]
    encoded.clear()
    job = view.jobs["team-0"]["uid-team-0-job-0003"]
    moved = msgspec.structs.replace(job, position=1)
    shown = await library.jobs(view.followed_by(cycle=3, at=NOON, jobs=[moved]))
    assert encoded == [], "its pods are the same ones"
    assert b'"queuePosition":1' in shown.whole


async def test_nothing_is_encoded_and_nothing_kept_when_nobody_asks() -> None:
    library = Library(kept_for=0.05)
    assert library.is_empty
    await library.jobs(a_large_view(10))
    await library.summary(a_large_view(10))
    assert not library.is_empty
    await eventually(lambda: library.is_empty)


async def test_nothing_is_kept_of_namespaces_and_jobs_that_are_gone() -> None:
    library = Library()
    view = a_large_view(100)
    await library.jobs(view)
    left = view.followed_by(cycle=2, at=NOON, gone_jobs=[("team-0", uid) for uid in view.jobs["team-0"]])
    assert "team-0" not in left.jobs
    await library.jobs(left, {"team-1"})
    assert set(library._jobs) == {"team-1", "team-2"}
    few = left.followed_by(cycle=3, at=NOON, gone_jobs=[("team-1", uid) for uid in list(left.jobs["team-1"])[1:]])
    await library.jobs(few)
    assert len(library._jobs["team-1"]._entries) == 1


async def test_a_long_answer_in_the_making_lets_short_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.visualizer.slices.TURN", 0)  # whatever this machine takes for a turn
    library = Library()
    view = a_view(jobs=[a_job_view(f"job-{i:05}", uid=str(i)) for i in range(300)])
    long = asyncio.create_task(library.jobs(view))
    passed = 0
    while not long.done():
        await library.nodes(view)
        passed += 1
        await asyncio.sleep(0)
    assert passed >= 100
    assert (await long).etag == (await Library().jobs(view)).etag


async def test_answers_for_two_views_at_once_are_each_of_one_view() -> None:
    library = Library()
    first = a_large_view(600)
    second = first.followed_by(
        cycle=2, at=NOON, jobs=[a_job_view(f"job-{i:04}", namespace=f"team-{i % 3}", position=9) for i in range(600)]
    )
    alone = [(await Library().jobs(view)).etag for view in (first, second)]
    together = await asyncio.gather(*(library.jobs(view) for view in (first, second, first, second)))
    assert [body.etag for body in together] == alone * 2
