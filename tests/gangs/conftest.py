"""Real controllers of gangs on a real (embedded) API server that knows Grove's kinds, in the test's own process."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shoal.api import grove, kai_scheduler, scheduler_grove_io, scheduling_run_ai
from shoal.api.crd import CustomResource

OURS = (
    *grove.DEFINITIONS,
    *scheduler_grove_io.DEFINITIONS,
    *kai_scheduler.DEFINITIONS,
    *scheduling_run_ai.DEFINITIONS,
)


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """Grove's kinds and KAI's."""
    return OURS
