"""Bodies of requests under way take no more memory than they may."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from shoal.cluster.apiserver.body_memory import MOST_BYTES, MOST_BYTES_OF_ONE, BodyMemory
from shoal.cluster.apiserver.refusals import Refused


def test_one_user_leaves_room_for_the_others() -> None:
    memory = BodyMemory()
    with memory.held("ann", MOST_BYTES_OF_ONE):
        with pytest.raises(Refused) as refused, memory.held("ann", 1):
            pass
        with memory.held("bob", MOST_BYTES_OF_ONE):
            pass
    assert refused.value.status.code == 429
    with memory.held("ann", MOST_BYTES_OF_ONE):
        pass


def test_all_together_have_a_limit() -> None:
    memory = BodyMemory()
    with ExitStack() as stack:
        for user in range(MOST_BYTES // MOST_BYTES_OF_ONE):
            stack.enter_context(memory.held(f"user-{user}", MOST_BYTES_OF_ONE))
        with pytest.raises(Refused), memory.held("one more", 1):
            pass
