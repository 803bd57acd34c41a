from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.cluster.apiserver.storage import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "store", synchronous="OFF")
    yield store
    await store.close()
