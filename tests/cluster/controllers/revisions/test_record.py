"""What revisions say, and which of them are kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shoal.api.apps import ControllerRevision
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.revisions import (
    in_order,
    latest_number,
    revision_data,
    same_data,
    surplus,
    template_of,
)
from shoal.cluster.controllers.revisions.record import revision_name
from shoal.cluster.controllers.template_hash import _fnv32a, safe_letters, template_hash

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}


def a_revision(name: str, number: int, second: int = 0) -> ControllerRevision:
    created = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return ControllerRevision(metadata=ObjectMeta(name=name, creation_timestamp=created), revision=number)


def test_the_stored_form_brings_the_template_back() -> None:
    data = revision_data(TEMPLATE)
    assert data == {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}}
    assert template_of(ControllerRevision(data=data)) == TEMPLATE
    assert "$patch" not in TEMPLATE


def test_fields_that_are_null_make_no_difference() -> None:
    written = {**TEMPLATE, "metadata": {"labels": {"app": "web"}, "creationTimestamp": None}}
    assert same_data(revision_data(TEMPLATE), revision_data(written))
    assert not same_data(revision_data(TEMPLATE), revision_data({**TEMPLATE, "spec": {}}))


def test_the_newest_is_last_by_number_then_age_then_name() -> None:
    revisions = [a_revision("d", 2), a_revision("c", 1, 5), a_revision("b", 1, 3), a_revision("a", 1, 5)]
    assert [found.metadata.name for found in in_order(revisions)] == ["b", "a", "c", "d"]
    assert latest_number(revisions) == 2
    assert latest_number([]) == 0


@pytest.mark.parametrize(
    ("limit", "live", "live_count", "expected"),
    [
        pytest.param(2, "", False, ["a", "b"], id="the oldest go"),
        pytest.param(4, "", False, [], id="all fit"),
        pytest.param(0, "c", False, ["a", "b", "d"], id="one with pods stays"),
        pytest.param(2, "a", False, ["b"], id="those with pods do not count"),
        pytest.param(2, "a", True, ["b", "c"], id="those with pods count"),
        pytest.param(0, "abcd", True, [], id="all have pods"),
        pytest.param(-1, "", False, [], id="no limit"),
    ],
)
def test_old_revisions_are_let_go(limit: int, live: str, live_count: bool, expected: list[str]) -> None:
    history = [a_revision(name, number) for number, name in enumerate("abcd", start=1)]
    gone = surplus(history, limit=limit, is_live=lambda found: found.metadata.name in live, live_count=live_count)
    assert [found.metadata.name for found in gone] == expected


def test_a_long_name_leaves_room_for_the_hash() -> None:
    assert revision_name("web", "abc") == "web-abc"
    assert len(revision_name("x" * 300, "abc")) == 223 + 4


def test_a_hash_depends_on_nothing_but_the_value_and_its_collisions() -> None:
    reordered = {"spec": TEMPLATE["spec"], "metadata": TEMPLATE["metadata"]}
    assert template_hash(TEMPLATE, None) == template_hash(reordered, None) == "8498f8cc7"
    assert len({template_hash(TEMPLATE, count) for count in (None, 0, 1, 2)}) == 4
    assert template_hash(TEMPLATE, 0) != template_hash({}, 0)


def test_safe_letters_are_kubernetes_own() -> None:
    assert safe_letters("0123456789") == "456789bcdf"


def test_the_sum_is_fnv_1a() -> None:
    assert _fnv32a(b"") == 0x811C9DC5
    assert _fnv32a(b"foobar") == 0xBF9CF968
