"""What queues used, as a Prometheus server remembers it: a real server of HTTP that answers as Prometheus does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.shares.usage.prometheus import PrometheusUsage, UsageUnavailable
from shoal.scheduler.shares.usage.settings import UsageSettings
from shoal.scheduler.shares.usage.windows import Sliding, Tumbling, Window

NOW = 1_700_000_000.0
Answer = Callable[[str], Awaitable[web.Response]]


@asynccontextmanager
async def a_server(answer: Answer) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """A server that notes what it is asked."""
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        asked.append(form)
        return await answer(form["query"])

    app = web.Application()
    app.router.add_post("/prefix/api/v1/query", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/prefix", asked
    finally:
        await runner.cleanup()


def vector(*series: tuple[dict[str, str], float]) -> web.Response:
    result = [{"metric": labels, "value": [NOW, str(value)]} for labels, value in series]
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})


async def figures(query: str) -> web.Response:
    """A cluster of 10 GPUs and 100 cores, of whose memory nobody says anything."""
    if "kube_node_status_capacity" in query:
        return vector(({}, 10 if "gpu" in query else 100)) if "memory" not in query else vector()
    if "gpus" in query:
        return vector(({"queue_name": "a"}, 4), ({"queue_name": "b", "queue_metadata_name": "team-b"}, 1))
    if "cpu" in query:
        return vector(({"queue_name": "a", "pod": "1"}, 20), ({"queue_name": "a", "pod": "2"}, 5))
    return vector(({"queue_name": "a"}, 10**9))


async def fetched(answer: Answer, *, window: Window = Sliding(3600), **more: Any) -> tuple[Any, list[dict[str, str]]]:
    async with a_server(answer) as (address, asked), aiohttp.ClientSession() as session:
        usage = PrometheusUsage(UsageSettings(address=address, window=window, **more), session)
        return await usage.fetch(NOW), asked


async def test_use_is_the_part_of_what_there_was() -> None:
    usage, _ = await fetched(figures)

    assert usage == {"a": Amounts(0.25, 0.0, 0.4), "team-b": Amounts(0.0, 0.0, 0.1)}


async def test_a_sliding_window_is_one_instant_query_for_each_figure() -> None:
    _, asked = await fetched(figures)

    assert sorted(form["query"] for form in asked) == [
        "sum_over_time((kai_queue_allocated_cpu_cores)[3600s:60s])",
        "sum_over_time((kai_queue_allocated_gpus)[3600s:60s])",
        "sum_over_time((kai_queue_allocated_memory_bytes)[3600s:60s])",
        'sum_over_time((sum(kube_node_status_capacity{resource="cpu"}))[3600s:60s])',
        'sum_over_time((sum(kube_node_status_capacity{resource="memory"}))[3600s:60s])',
        'sum_over_time((sum(kube_node_status_capacity{resource="nvidia_com_gpu"}))[3600s:60s])',
    ]
    assert {form["time"] for form in asked} == {"1700000000.000"}


async def test_a_tumbling_window_is_as_long_as_its_start_is_ago() -> None:
    _, asked = await fetched(figures, window=Tumbling(size=1000, first=NOW - 1250.5))

    assert all(form["query"].endswith("[250s500ms:60s])") for form in asked)


async def test_a_window_that_has_not_begun_is_not_asked_for() -> None:
    usage, asked = await fetched(figures, window=Tumbling(size=1000, first=NOW + 5))

    assert usage == {}
    assert asked == []


async def test_older_use_is_asked_for_with_its_decay() -> None:
    _, asked = await fetched(figures, half_life=600.0, resolution=90.0)

    assert {
        "sum_over_time((((kai_queue_allocated_gpus) * (0.5^((1700000000 - time()) / 600.000000))))[3600s:90s])"
    } <= {form["query"] for form in asked}


async def refuses(_: str) -> web.Response:
    return web.json_response({"status": "error", "errorType": "bad_data", "error": "parse error"}, status=400)


async def gives_a_matrix(_: str) -> web.Response:
    return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": []}})


async def is_a_page(_: str) -> web.Response:
    return web.Response(text="<html>", status=502)


async def lacks_values(_: str) -> web.Response:
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}})


async def speaks_in_lists(_: str) -> web.Response:
    return web.json_response([1, 2])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (refuses, "parse error"),
        (gives_a_matrix, "with a matrix, not a vector"),
        (is_a_page, "answered 502 with something else"),
        (lacks_values, "is no Prometheus server"),
        (speaks_in_lists, "is no Prometheus server"),
    ],
)
async def test_an_answer_that_is_none_is_said_in_a_sentence(answer: Answer, problem: str) -> None:
    with pytest.raises(UsageUnavailable, match=problem):
        await fetched(answer)


async def test_a_server_that_is_not_there_is_said_in_a_sentence() -> None:
    async with a_server(figures) as (address, _):
        pass
    async with aiohttp.ClientSession() as session:
        with pytest.raises(UsageUnavailable, match="cannot be reached"):
            await PrometheusUsage(UsageSettings(address=address), session).fetch(NOW)


async def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side has had enough
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, aiohttp.ClientSession() as session:
        usage = PrometheusUsage(UsageSettings(address=address, query_timeout=0.05), session)
        with pytest.raises(UsageUnavailable, match=r"did not answer within 0\.05 s"):
            await usage.fetch(NOW)
