from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from shoal.kube.admission import Webhooks
from shoal.kube.certificates import KeyPair, make_authority, make_serving
from tests.cluster.apiserver.admission.webhook_serving import Serving

DAY = timedelta(days=1)


@pytest.fixture(scope="session")
def authority() -> KeyPair:
    return make_authority("test", now=datetime.now(UTC), lifetime=30 * DAY)


@pytest.fixture(scope="session")
def pair(authority: KeyPair) -> KeyPair:
    names = ["localhost", "127.0.0.1", "hooks.team.svc"]
    return make_serving(authority, names, now=datetime.now(UTC), lifetime=DAY)


@pytest.fixture
def webhooks() -> Webhooks:
    return Webhooks()


@pytest.fixture
async def serving(webhooks: Webhooks, authority: KeyPair, pair: KeyPair) -> AsyncIterator[Serving]:
    async with Serving(webhooks, authority, pair) as running:
        yield running
