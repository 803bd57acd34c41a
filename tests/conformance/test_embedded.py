"""The embedded server answers every story as the real one did, but for the differences that are accepted."""

from __future__ import annotations

import pytest

from tests.conformance.accepted import ACCEPTED, expected_of_embedded
from tests.conformance.normal import normalised
from tests.conformance.player import play
from tests.conformance.recording import all_stories, difference, read
from tests.conformance.story import Story
from tests.support.clusters.embedded import Embedded

STORIES = all_stories()


@pytest.mark.parametrize(("theme", "story"), STORIES, ids=[f"{theme}: {story.name}" for theme, story in STORIES])
def test_it_answers_like_the_real_server(theme: str, story: Story, embedded: Embedded) -> None:
    recorded = read(theme).get(story.name)
    assert recorded is not None, "this story is not recorded: run make record-conformance"
    expected = expected_of_embedded(story.name, recorded)
    found = difference(expected, normalised(story, play(story, embedded)), left="real server", right="embedded")
    assert not found, f"\n{story.name}\n{found}"


def test_story_names_and_their_namespaces_are_unique() -> None:
    names = [story.namespace for _, story in STORIES]
    assert sorted(names) == sorted(set(names))


def test_accepted_differences_are_of_stories_that_exist() -> None:
    assert {one.story for one in ACCEPTED} <= {story.name for _, story in STORIES}
