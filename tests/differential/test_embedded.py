"""The embedded cluster makes of every story what the real one did, but for the differences that are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.accepted import ACCEPTED, expected_of_embedded
from tests.differential.normal import Telling
from tests.differential.recording import all_stories, difference, read
from tests.differential.story import Story
from tests.differential.telling import told
from tests.differential.worlds import embedded_world

pytestmark = pytest.mark.timeout(300)

STORIES = all_stories()
CASES = [
    pytest.param(theme, story, id=f"{theme}: {story.name}", marks=[pytest.mark.slow] if story.slow else [])
    for theme, story in STORIES
]
AT_ONCE = 24

Results = dict[str, Telling | str]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What became of all stories that were asked for: they are told together, since most of the time they wait."""
    chosen = {item.callspec.params["story"].name for item in request.session.items if _is_of_here(item)}  # type: ignore[attr-defined]
    stories = [story for _, story in STORIES if story.name in chosen]
    with embedded_world(tmp_path_factory.mktemp("differential") / "data") as world:
        return told(stories, world, at_once=AT_ONCE)


@pytest.mark.parametrize(("theme", "story"), CASES)
def test_it_ends_up_like_the_real_cluster(theme: str, story: Story, results: Results) -> None:
    recorded, result = read(theme).get(story.name), results[story.name]
    assert recorded is not None, f"{story.name} is not recorded: run make record-differential"
    assert not isinstance(result, str), f"\n{story.name}\n{result}"
    found = difference(expected_of_embedded(story.name, recorded), result, left="real cluster", right="embedded")
    assert not found, f"\n{story.name}\n{found}"


def test_story_names_and_their_namespaces_are_unique() -> None:
    names = [story.namespace for _, story in STORIES]
    assert sorted(names) == sorted(set(names))


def test_accepted_differences_are_of_stories_that_exist() -> None:
    assert {one.story for one in ACCEPTED} <= {story.name for _, story in STORIES}


def _is_of_here(item: pytest.Item) -> bool:
    return item.path == Path(__file__) and hasattr(item, "callspec")
