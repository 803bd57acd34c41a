"""The ConfigMap of default priorities."""

from __future__ import annotations

import pytest

from shoal.scheduler.grouper.defaults import InvalidDefaults, defaults_of, parse_defaults

TYPES = """[
  {"typeName": "Deployment", "group": "apps", "priorityName": "a", "preemptibility": "preemptible"},
  {"typeName": "Deployment", "priorityName": "b"}
]"""


@pytest.mark.parametrize(("group", "expected"), [("apps", "a"), ("example.com", "b"), ("", "b")])
def test_an_entry_that_names_the_group_goes_before_one_that_does_not(group: str, expected: str) -> None:
    found = defaults_of(parse_defaults({"types": TYPES}), group, "Deployment")
    assert found is not None
    assert found.priority_name == expected


def test_a_kind_that_is_not_listed_has_no_defaults() -> None:
    assert defaults_of(parse_defaults({"types": TYPES}), "apps", "StatefulSet") is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param({}, "has no key 'types'", id="no key"),
        pytest.param({"types": "- typeName: A"}, "is no JSON list", id="YAML"),
        pytest.param({"types": '[{"priorityName": "a"}]'}, "typeName", id="no kind"),
    ],
)
def test_what_cannot_be_read_says_why(data: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidDefaults, match=problem):
        parse_defaults(data)
