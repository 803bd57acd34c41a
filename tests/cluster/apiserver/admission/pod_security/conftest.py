from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.programs import pod_security_fixtures
from tests.support.programs.pod_security_fixtures import NOT_FETCHED


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Kubernetes' own pods: ``<level>/v1.<minor>/{pass,fail}/<check><number>.yaml``."""
    path = pod_security_fixtures.fixtures()
    if path is None and os.environ.get("SHOAL_REQUIRE_KUBE", "") in ("", "0"):
        pytest.skip(NOT_FETCHED)
    assert path is not None, NOT_FETCHED
    return path
