"""A server without sockets, for tests of what it does by itself and of those who use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.calls import Answer, Call
from shoal.cluster.apiserver.core import Core, running
from shoal.cluster.apiserver.storage import Store

Ask = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    store = await Store.open(tmp_path / "store", synchronous="OFF")
    try:
        credentials = Credentials.at(tmp_path / "pki", names=["localhost"], now=datetime.now(UTC))
        async with running(store, credentials) as server:
            yield server
    finally:
        await store.close()


@pytest.fixture
def ask(core: Core) -> Ask:
    """``await ask("POST", "/api/v1/namespaces", {…})`` gives the status and the decoded body."""

    async def asked(method: str, path: str, body: Any = None, *, kind: str = "application/json") -> tuple[int, Any]:
        path, _, text = path.partition("?")
        query = {name: [value] for name, _, value in (pair.partition("=") for pair in text.split("&") if pair)}
        call = Call(
            method=method,
            path=path,
            query=query,
            headers={"content-type": kind, "user-agent": "test"},
            body=b"" if body is None else msgspec.json.encode(body),
            is_trusted=True,
        )
        answer = await core.service.answer(call)
        assert isinstance(answer, Answer)
        content = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return answer.status, msgspec.json.decode(content) if answer.content_type == "application/json" else content

    return asked
