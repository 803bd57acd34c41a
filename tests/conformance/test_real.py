"""What is recorded is what a real kube-apiserver says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.cluster.kubernetes import Binaries, RealKubernetes
from tests.conformance.normal import normalised
from tests.conformance.player import play
from tests.conformance.real import real_server
from tests.conformance.recording import all_stories, difference, read
from tests.conformance.story import Story
from tests.support.suites.recordings import unless_confirmed

pytestmark = [pytest.mark.slow, unless_confirmed("tests/conformance")]

STORIES = all_stories()


@pytest.fixture(scope="module")
def real(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKubernetes]:
    with real_server(binaries, tmp_path_factory.mktemp("conformance")) as server:
        yield server


@pytest.mark.parametrize(("theme", "story"), STORIES, ids=[f"{theme}: {story.name}" for theme, story in STORIES])
def test_the_recording_is_true(theme: str, story: Story, real: RealKubernetes) -> None:
    recorded = read(theme).get(story.name)
    assert recorded is not None, "this story is not recorded: run make record-conformance"
    found = difference(recorded, normalised(story, play(story, real)), left="recorded", right="real server")
    assert not found, f"\n{story.name}\n{found}"
