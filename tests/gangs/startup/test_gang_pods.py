"""What servers do that has to be lived with, each done on purpose by a real one that speaks from a script."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from shoal.gangs.startup.gang_pods import GangPods
from shoal.gangs.startup.program import wait
from shoal.gangs.startup.surroundings import Surroundings
from tests.support.builders.pods import pod_manifest
from tests.support.network.http_servers import serving
from tests.support.network.tls import Authority


def a_parents_pod(name: str, *, is_ready: bool, version: int) -> dict[str, Any]:
    """A pod of the clique that is waited for."""
    return pod_manifest(
        name,
        labels={"grove.io/podclique": "db", "grove.io/podgang": "web-0"},
        metadata={"resourceVersion": str(version)},
        conditions={"Ready": str(is_ready)},
    )


def a_list(version: int, *pods: dict[str, Any], more: str = "") -> web.Response:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return web.json_response({"metadata": metadata, "items": list(pods)})


def a_watch(*events: tuple[str, dict[str, Any]]) -> web.Response:
    """A watch that ends after these events."""
    lines = [json.dumps({"type": kind, "object": found}) for kind, found in events]
    return web.Response(text="".join(f"{line}\n" for line in lines), content_type="application/json")


def a_failure(code: int, message: str = "no") -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


def closing(answer: web.Response) -> web.Response:
    """An answer after which the server closes the connection, and says so."""
    answer.force_close()
    return answer


GONE = {"kind": "Status", "code": 410, "message": "too old resource version"}
READY = a_parents_pod("a", is_ready=True, version=9)


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        pytest.param(
            [a_list(5), a_watch(("ERROR", GONE)), a_list(8, READY)],
            ["list", "watch 5", "list"],
            id="a version that is forgotten in the middle of a watch",
        ),
        pytest.param(
            [a_list(5), a_failure(410), a_list(8, READY)],
            ["list", "watch 5", "list"],
            id="a version that is forgotten before it",
        ),
        pytest.param(
            [
                a_list(5),
                a_watch(("BOOKMARK", {"metadata": {"resourceVersion": "7"}})),
                a_watch(("MODIFIED", READY)),
            ],
            ["list", "watch 5", "watch 7"],
            id="a watch that ends by design",
        ),
        pytest.param(
            [a_failure(500), a_failure(503), a_failure(429), a_list(5, READY)],
            ["list", "list", "list", "list"],
            id="a server that is starting or has too much to do",
        ),
        pytest.param(
            [a_list(5), web.Response(text="no JSON\n"), a_list(8, READY)],
            ["list", "watch 5", "list"],
            id="a frame that is not JSON",
        ),
        pytest.param(
            [closing(a_list(5)), closing(a_watch(("ADDED", READY)))],
            ["list", "watch 5"],
            id="a server that keeps no connection",
        ),
        pytest.param(
            [a_list(5, a_parents_pod("x", is_ready=False, version=1), more="next"), a_list(5, READY)],
            ["list", "list next"],
            id="a list in pages",
        ),
    ],
)
async def test_it_lives_with(tmp_path: Path, answers: list[web.Response], asked: list[str]) -> None:
    requests: list[str] = []
    script = iter(answers)

    async def answer(request: web.Request) -> web.StreamResponse:
        query = request.query
        assert request.path == "/api/v1/namespaces/team/pods"
        assert query["labelSelector"] == "grove.io/podgang=web-0,grove.io/podclique in (db)"
        assert request.headers["Authorization"] == "Bearer secret"
        said = f"watch {query['resourceVersion']}" if "watch" in query else f"list {query.get('continue', '')}"
        requests.append(said.rstrip())
        return next(script)

    authority = Authority()
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "token").write_text("secret\n")
    async with serving(answer, tls=authority.server_context(tmp_path, hosts=("127.0.0.1",))) as url:
        found = Surroundings(
            namespace="team", gang="web-0", host="127.0.0.1", port=int(url.rpartition(":")[2]), account=tmp_path
        )
        async with asyncio.timeout(20):
            await asyncio.to_thread(wait, {"db": 1}, GangPods(found, ["db"]))
    assert requests == asked
