"""Who may use an agent's port, over real TLS."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shoal.cluster.keyring import Keyring
from shoal.cluster.node.kubelet import Refused, secure, serving
from shoal.kube.certificates import KeyPair, load_into, make_authority, make_client
from tests.support.network.sessions import https_session

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
API_SERVER = "kube-apiserver-kubelet-client"


class Agent:
    """Has one pod, and refuses all else."""

    def pods(self, _: str) -> list[dict[str, Any]]:
        return [{"metadata": {"name": "web"}}]

    def usage(self, _: str) -> None:
        raise Refused(404, "it uses nothing")


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "pki", now=NOW)


@pytest.fixture
async def agent(tmp_path: Path, keyring: Keyring) -> AsyncIterator[str]:
    """The URL of an agent on a port."""
    kubelet: Any = Agent()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with serving(kubelet, tmp_path / "agent.sock", secure(listener, keyring, now=NOW)):
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"


async def asked(url: str, keyring: Keyring, shown: KeyPair | None) -> tuple[int, str]:
    """How the agent answers whoever shows a certificate, or none."""
    trusting = ssl.create_default_context(cadata=keyring.authority.decode())
    if shown is not None:
        load_into(trusting, shown)
    async with https_session(trusting) as session, session.get(url) as answer:
        return answer.status, await answer.text()


ALLOWED: dict[str, Callable[[Keyring], KeyPair]] = {
    "the API server": lambda keyring: keyring.client(API_SERVER, now=NOW),
    "an administrator": lambda keyring: keyring.client("root", ["people", "system:masters"], now=NOW),
}
REFUSED: dict[str, tuple[Callable[[Keyring], KeyPair | None], int]] = {
    "nobody": (lambda _: None, 401),
    "a user": (lambda keyring: keyring.client("alice", ["people"], now=NOW), 403),
    "a node": (lambda keyring: keyring.client("system:node:local", ["system:nodes"], now=NOW), 403),
    "a user in a group of that name": (lambda keyring: keyring.client("alice", [API_SERVER], now=NOW), 403),
}
CUT_OFF: dict[str, Callable[[Keyring], KeyPair]] = {
    "whom another authority calls the API server": lambda _: make_client(
        make_authority("elsewhere", now=NOW, lifetime=DAY), API_SERVER, now=NOW, lifetime=DAY
    ),
    "who has a server's certificate": lambda keyring: keyring.new_serving([API_SERVER], now=NOW),
    "whose certificate is over": lambda keyring: keyring.client(API_SERVER, now=NOW - timedelta(days=2000)),
}


@pytest.mark.parametrize("shown", ALLOWED.values(), ids=ALLOWED.keys())
async def test_it_answers(agent: str, keyring: Keyring, shown: Callable[[Keyring], KeyPair]) -> None:
    status, text = await asked(f"{agent}/pods", keyring, shown(keyring))
    assert (status, "web" in text) == (200, True)


@pytest.mark.parametrize(("shown", "expected"), REFUSED.values(), ids=REFUSED.keys())
async def test_it_refuses(
    agent: str, keyring: Keyring, shown: Callable[[Keyring], KeyPair | None], expected: int
) -> None:
    for path in ("pods", "containerLogs/default/web/main", "exec/default/web/main", "nonsense"):
        status, text = await asked(f"{agent}/{path}", keyring, shown(keyring))
        assert (status, "web" in text) == (expected, False)


@pytest.mark.parametrize("shown", CUT_OFF.values(), ids=CUT_OFF.keys())
async def test_it_does_not_even_talk_to_one(agent: str, keyring: Keyring, shown: Callable[[Keyring], KeyPair]) -> None:
    with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
        await asked(f"{agent}/pods", keyring, shown(keyring))


async def test_what_it_refuses_it_refuses_in_words_as_kubelets_do(agent: str, keyring: Keyring) -> None:
    shown = keyring.client(API_SERVER, now=NOW)
    assert await asked(f"{agent}/metrics/resource", keyring, shown) == (404, "it uses nothing")


async def test_on_its_socket_it_asks_nobody_who_they_are(agent: str, tmp_path: Path) -> None:
    connector = aiohttp.UnixConnector(str(tmp_path / "agent.sock"))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://agent/pods") as answer:
        assert answer.status == 200
