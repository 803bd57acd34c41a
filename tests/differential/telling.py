"""Tells many stories to one world at the same time, each in a namespace of its own."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.differential.mirror import Mirror
from tests.differential.normal import Telling, normalised
from tests.differential.story import Story, Teller
from tests.differential.worlds import World


def told(stories: Sequence[Story], world: World, *, at_once: int) -> dict[str, Telling | str]:
    """What each story came to, by name: its snapshots, or how it failed."""
    with Mirror(world.server) as mirror, ThreadPoolExecutor(at_once) as threads:
        results = threads.map(lambda story: _told(story, world, mirror), stories)
        return dict(zip([story.name for story in stories], results, strict=True))


def _told(story: Story, world: World, mirror: Mirror) -> Telling | str:
    try:
        teller = Teller(story.namespace, world, mirror)
        try:
            story.tell(teller)
        finally:
            teller.close()
        return normalised(teller.taken, mirror.ever(story.namespace), with_accounts=story.with_accounts)
    except Exception as error:
        return f"{error}\n{''.join(traceback.format_tb(error.__traceback__)[-2:])}"
