"""What normalisation hides, and what it keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.conformance.normal import normalised
from tests.conformance.player import Answer
from tests.conformance.story import Story, get, post


def an_answer(body: Any) -> Answer:
    return Answer("GET /x", 200, {}, body)


def an_object(name: str, version: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version, **more}}


def shown(*bodies: Any, story: Story | None = None) -> list[Any]:
    story = story or Story("a story", [get("/x")])
    return [answer["body"] for answer in normalised(story, [an_answer(body) for body in bodies])]


def test_resource_versions_keep_their_order_and_equality() -> None:
    found = shown(an_object("a", "120"), an_object("b", "90"), an_object("a", "120"))
    assert [body["metadata"]["resourceVersion"] for body in found] == ["<rv 2>", "<rv 1>", "<rv 2>"]


def test_a_list_is_placed_among_the_objects_of_the_story() -> None:
    found = shown(an_object("a", "90"), {"metadata": {"resourceVersion": "100"}}, an_object("a", "110"))
    assert found[1]["metadata"]["resourceVersion"] == "<rv ≥ 1>"


def test_one_uid_has_one_name_everywhere() -> None:
    uid = "0b1f5a5e-2c3d-4e5f-8a9b-0c1d2e3f4a5b"
    [found] = shown({"a": uid, "b": f"uid {uid} again"})
    assert found == {"a": "<uid 1>", "b": "uid <uid 1> again"}


def test_what_the_story_itself_says_is_kept() -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"at": now, "ip": "10.96.7.7", "port": {"nodePort": 30001}}
    story = Story("a story", [post("/x", body)])
    assert shown(body, story=story) == [body]
    assert shown(body) == [{"at": "<time>", "ip": "<cluster ip 1>", "port": {"nodePort": "<node port 1>"}}]


def test_generated_names_are_recognised_by_their_prefix() -> None:
    story = Story("a story", [post("/x", {"metadata": {"generateName": "web-"}})])
    found = shown({"name": "web-x7k2p"}, {"message": 'pods "web-x7k2p" exist, web-based too'}, story=story)
    assert found == [{"name": "web-<random 1>"}, {"message": 'pods "web-<random 1>" exist, web-based too'}]


def test_old_times_are_somebodys_choice_and_stay() -> None:
    assert shown({"at": "2001-01-01T00:00:00Z"}) == [{"at": "2001-01-01T00:00:00Z"}]
