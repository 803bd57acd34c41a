"""What is recorded is what a real cluster makes of the stories."""

from __future__ import annotations

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.differential.normal import Telling
from tests.differential.record import AT_ONCE
from tests.differential.recording import all_stories, difference, read
from tests.differential.story import Story
from tests.differential.telling import told
from tests.differential.worlds import real_world
from tests.support import kube_binaries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STORIES = all_stories()

Results = dict[str, Telling | str]
_TIMES = 3


@pytest.fixture(scope="module")
def results(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Results:
    kwok = kube_binaries.binary("kwok")
    assert kwok is not None, "kwok is not built: run make kube-binaries"
    results: Results = {}
    # A busy machine may show objects before their events are written: such a story is told again, in a cluster anew.
    for _ in range(_TIMES):
        doubtful = [story for theme, story in STORIES if _doubts(theme, story, results)]
        if doubtful:
            with real_world(binaries, kwok, tmp_path_factory.mktemp("differential")) as world:
                results |= told(doubtful, world, at_once=AT_ONCE)
    return results


def _doubts(theme: str, story: Story, results: Results) -> str:
    """What a real cluster made of a story that is not recorded so."""
    recorded, result = read(theme).get(story.name), results.get(story.name, "not told yet")
    assert recorded is not None, f"{story.name} is not recorded: run make record-differential"
    if isinstance(result, str):
        return result
    return difference(recorded, result, left="recorded", right="real cluster")


@pytest.mark.parametrize(("theme", "story"), STORIES, ids=[f"{theme}: {story.name}" for theme, story in STORIES])
def test_the_recording_is_true(theme: str, story: Story, results: Results) -> None:
    found = _doubts(theme, story, results)
    assert not found, f"\n{story.name}\n{found}"
