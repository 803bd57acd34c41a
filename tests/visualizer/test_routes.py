"""What each route answers over HTTP, and what is refused how."""

from __future__ import annotations

import pytest
from aiohttp import web

from shoal.api.visualizer import ClusterView, TaskStatus
from shoal.kube.probes import serving
from shoal.visualizer import PREFIX, catch_all
from tests.visualizer.builders import NOON, a_job_view, a_node_view, a_queue_view, a_task_view, a_view, alone
from tests.visualizer.conftest import Visualizer

ROUTES = ("summary", "queues", "jobs", "nodes")


async def test_an_empty_cluster_has_empty_lists_and_nothing_is_null(visualizer: Visualizer) -> None:
    visualizer.publish(a_view())
    for name in ("queues", "jobs", "nodes"):
        assert (await visualizer.get(name)).text == "[]"
    assert (await visualizer.json("summary"))["jobCounts"] == {}


async def test_everything_is_shown_from_the_view_that_was_published_last(visualizer: Visualizer) -> None:
    visualizer.publish(a_view(nodes=[a_node_view("old")]))
    visualizer.publish(
        a_view(
            2,
            nodes=[a_node_view("node-1", gpus=2, whole_gpus=(alone("p"),))],
            queues=[a_queue_view("root"), a_queue_view("research", "root")],
            jobs=[a_job_view("train", a_task_view("p", node="node-1"))],
        )
    )
    summary = await visualizer.json("summary")
    assert (summary["totalNodes"], summary["totalQueues"], summary["jobCounts"]) == (1, 2, {"Running": 1})
    (root,) = await visualizer.json("queues")
    assert [queue["metadataName"] for queue in root["children"]] == ["research"]
    (job,) = await visualizer.json("jobs")
    assert (job["name"], job["tasks"][0]["nodeName"]) == ("train", "node-1")
    (node,) = await visualizer.json("nodes")
    assert [slot["occupiedBy"] for slot in node["gpuSlots"]] == ["p", ""]


@pytest.mark.parametrize("name", ROUTES)
async def test_an_answer_is_json_that_pages_of_other_origins_may_read(visualizer: Visualizer, name: str) -> None:
    visualizer.publish(a_view(7))
    answer = await visualizer.get(name)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["X-Shoal-Cycle"] == "7"
    assert answer.headers["X-Shoal-Published"] == "2026-03-01T12:00:07.000Z"


async def test_lists_are_in_one_order_whatever_order_the_view_has(visualizer: Visualizer) -> None:
    jobs = [a_job_view("b", namespace="x"), a_job_view("a", namespace="y"), a_job_view("a", namespace="x", uid="2")]
    jobs.append(a_job_view("a", namespace="x", uid="1"))
    visualizer.publish(a_view(nodes=[a_node_view("n2"), a_node_view("n10"), a_node_view("n1")], jobs=jobs))
    assert [node["name"] for node in await visualizer.json("nodes")] == ["n1", "n10", "n2"]
    assert [(job["namespace"], job["name"], job["uid"]) for job in await visualizer.json("jobs")] == [
        ("x", "a", "1"),
        ("x", "a", "2"),
        ("x", "b", "uid-x-b"),
        ("y", "a", "uid-y-a"),
    ]


async def test_jobs_of_a_namespace_and_of_several(visualizer: Visualizer) -> None:
    visualizer.publish(a_view(jobs=[a_job_view("a", namespace=namespace) for namespace in ("x", "y", "z")]))

    async def namespaces(query: str) -> list[str]:
        return [job["namespace"] for job in await visualizer.json(f"jobs{query}")]

    assert await namespaces("?namespace=y") == ["y"]
    assert await namespaces("?namespace=z&namespace=x") == ["x", "z"]
    assert await namespaces("?namespace=nobody") == []
    assert await namespaces("?namespace=") == ["x", "y", "z"]
    assert await namespaces("") == ["x", "y", "z"]


REFUSED = {
    "a parameter that no route has": ("summary?verbose=1", ["verbose", "takes none"]),
    "a parameter that another route has": ("nodes?namespace=a", ["namespace", "takes none"]),
    "a misspelt one": ("jobs?namespaces=a", ["namespaces", "it takes namespace"]),
    "a namespace that is no name": ("jobs?namespace=Team_A", ["namespace", "Team_A"]),
    "a namespace that is too long": ("jobs?namespace=" + "a" * 64, ["namespace", "63 at most"]),
    "one good and one bad": ("jobs?namespace=a&namespace=-a", ["namespace", "-a"]),
    "one with a line break": ("jobs?namespace=a%0Ab", ["namespace", "a?b"]),
    "a kind that there is not": ("events?kind=pods", ["kind", "summary, queues, jobs, nodes"]),
}


@pytest.mark.parametrize(("path", "said"), REFUSED.values(), ids=REFUSED)
async def test_a_query_that_makes_no_sense_is_refused_in_a_sentence_that_names_it(
    visualizer: Visualizer, path: str, said: list[str]
) -> None:
    visualizer.publish(a_view())
    answer = await visualizer.get(path)
    assert answer.status == 400
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.text.count("\n") == 1
    assert all(word in answer.text for word in said), answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("name", [*ROUTES, "events"])
async def test_views_are_not_written(visualizer: Visualizer, name: str, method: str) -> None:
    visualizer.publish(a_view())
    answer = await visualizer.ask(f"{PREFIX}/{name}", method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("name", [*ROUTES, "events"])
async def test_a_page_of_another_origin_may_ask_what_it_may_do(visualizer: Visualizer, name: str) -> None:
    answer = await visualizer.ask(f"{PREFIX}/{name}", "OPTIONS", Origin="http://elsewhere")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    assert "If-None-Match" in answer.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize("name", ROUTES)
async def test_before_the_first_cycle_has_ended_whoever_asks_is_told_to_ask_again(
    visualizer: Visualizer, name: str
) -> None:
    answer = await visualizer.get(name)
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "first cycle" in answer.text
    visualizer.publish(a_view())
    assert (await visualizer.get(name)).status == 200


async def test_a_view_that_cannot_be_read_is_a_500_in_words(visualizer: Visualizer) -> None:
    broken: ClusterView = ClusterView(cycle=1, at=NOON, nodes=7, queues=7, jobs=7)  # type: ignore[arg-type]
    visualizer.publish(broken)
    for name in ROUTES:
        answer = await visualizer.get(name)
        assert answer.status == 500
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.text.count("\n") == 1


async def test_one_broken_object_does_not_hide_the_others(visualizer: Visualizer) -> None:
    broken = a_job_view("broken", a_task_view("p", "no status"), namespace="x")  # type: ignore[arg-type]
    first = a_view(jobs=[broken, a_job_view("good", namespace="x")])
    visualizer.publish(first)
    assert [job["name"] for job in await visualizer.json("jobs")] == ["good"]
    mended = a_job_view("broken", a_task_view("p", TaskStatus.RUNNING), namespace="x")
    visualizer.publish(first.followed_by(cycle=2, at=NOON, jobs=[mended]))
    assert [job["name"] for job in await visualizer.json("jobs")] == ["broken", "good"]


@pytest.mark.parametrize("path", [PREFIX, f"{PREFIX}/", f"{PREFIX}/pods", f"{PREFIX}/jobs/", "/", "/elsewhere"])
async def test_other_paths_are_not_there_and_the_answer_says_what_is(visualizer: Visualizer, path: str) -> None:
    answer = await visualizer.ask(path)
    assert answer.status == 404
    assert f"{PREFIX}/jobs" in answer.text
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert (await visualizer.ask(path, "OPTIONS")).status == 204


async def test_beside_other_routes_of_a_server_each_is_told_what_it_takes(visualizer: Visualizer) -> None:
    async def snapshot(_request: web.Request) -> web.Response:
        return web.Response(text="a snapshot")

    async with serving([web.get("/get-snapshot", snapshot), *visualizer.routes, catch_all()], "127.0.0.1:0") as port:
        visualizer.base = f"http://127.0.0.1:{port}"
        assert (await visualizer.ask("/get-snapshot")).text == "a snapshot"
        refused = await visualizer.ask("/get-snapshot", "POST")
        assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")
        assert (await visualizer.ask("/get-nothing")).status == 404
        assert (await visualizer.get("summary")).status == 503
