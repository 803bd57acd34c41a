"""Real controllers of the scheduler on an embedded API server that knows KAI's kinds, in the test's own process."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shoal.api import kai_scheduler, scheduling_run_ai
from shoal.api.crd import CustomResource

KINDS = (*kai_scheduler.DEFINITIONS, *scheduling_run_ai.DEFINITIONS)


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """KAI's kinds."""
    return KINDS
