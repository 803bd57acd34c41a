"""One client never stalls the others: while a heavy request is carried out, small ones of others are answered."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from bench.stalling.attacks import Attack, attacks
from bench.stalling.waits import connected
from tests.support.clusters.embedded import Embedded, running_embedded

NOISE = 1.0
"""Seconds that a busy machine alone may keep a small request waiting."""
SHARE = 1 / 3
"""Of a long request's time; a server that does one thing at a time makes everybody wait for all of it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with running_embedded(tmp_path_factory.mktemp("heavy") / "data") as running:
        yield running


@pytest.mark.timeout(300)
@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name.replace(" ", "-"))
async def test_one_client_never_stalls_the_others(server: Embedded, attack: Attack) -> None:
    tls = ssl.create_default_context(cafile=str(server.ca_file))
    async with connected(server.server, server.admin_token, tls) as clients:
        suffered = await clients.suffer(attack)
    assert suffered.worst < max(NOISE, SHARE * suffered.took), suffered.waits
