from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.clusters.engines import Engine
from tests.support.clusters.real import namespace_for


@pytest.fixture
def namespace(engine: Engine, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, in each of the clusters."""
    with namespace_for(request.node.name, engine.admin) as name:
        yield name
