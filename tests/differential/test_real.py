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
from tests.support.programs import kube_binaries
from tests.support.suites.recordings import unless_confirmed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), unless_confirmed("tests/differential")]

STORIES = all_stories()

Results = dict[str, Telling | str]


@pytest.fixture(scope="module")
def results(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Results:
    kwok = kube_binaries.binary("kwok")
    assert kwok is not None, "kwok is not built: run make kube-binaries"
    with real_world(binaries, kwok, tmp_path_factory.mktemp("differential")) as world:
        return told([story for _, story in STORIES], world, at_once=AT_ONCE)


@pytest.mark.parametrize(("theme", "story"), STORIES, ids=[f"{theme}: {story.name}" for theme, story in STORIES])
def test_the_recording_is_true(theme: str, story: Story, results: Results) -> None:
    recorded, result = read(theme).get(story.name), results[story.name]
    assert recorded is not None, f"{story.name} is not recorded: run make record-differential"
    assert not isinstance(result, str), f"\n{story.name}\n{result}"
    found = difference(recorded, result, left="recorded", right="real cluster")
    assert not found, f"\n{story.name}\n{found}"
