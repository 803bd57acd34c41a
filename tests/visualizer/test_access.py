"""Who may look where a token is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.visualizer import PREFIX, bearer_tokens
from tests.visualizer.builders import a_view
from tests.visualizer.conftest import Visualizer, running

ROUTES = ("summary", "queues", "jobs", "nodes", "events")


@pytest.fixture
async def guarded() -> AsyncIterator[Visualizer]:
    async with running(Visualizer(auth=bearer_tokens(["first", "second-ü", ""]))) as visualizer:
        visualizer.publish(a_view())
        yield visualizer


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_without_a_token_nothing_is_told(guarded: Visualizer, name: str, method: str) -> None:
    answer = await guarded.ask(f"{PREFIX}/{name}", method)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="visualizer"'
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("authorization", ["Bearer third", "Bearer firs", "Bearer first2", "bearer FIRST"])
async def test_a_wrong_token_is_called_wrong(guarded: Visualizer, authorization: str) -> None:
    answer = await guarded.get("summary", Authorization=authorization)
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert "first" not in answer.text


@pytest.mark.parametrize("authorization", ["Basic first", "Bearer", "Bearer ", "first"])
async def test_what_is_no_bearer_token_is_none(guarded: Visualizer, authorization: str) -> None:
    answer = await guarded.get("summary", Authorization=authorization)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="visualizer"')


@pytest.mark.parametrize("authorization", ["Bearer first", "bearer  first", "Bearer second-ü"])
async def test_a_good_token_opens_every_route(guarded: Visualizer, authorization: str) -> None:
    for name in ("summary", "queues", "jobs", "nodes"):
        assert (await guarded.get(name, Authorization=authorization)).status == 200
    async with guarded.listening(Authorization=authorization) as listener:
        await listener.cycle()
        assert listener.summary["totalNodes"] == 0


async def test_a_browser_may_ask_without_a_token_whether_it_may_send_one(guarded: Visualizer) -> None:
    assert (await guarded.ask(f"{PREFIX}/jobs", "OPTIONS")).status == 204


async def test_a_bad_query_is_not_discussed_with_strangers(guarded: Visualizer) -> None:
    assert (await guarded.get("jobs?namespaces=a")).status == 401


def test_what_is_no_text_at_all_is_no_good_token() -> None:
    assert not bearer_tokens(["first"])("\udcff")
    assert not bearer_tokens([])("first")
