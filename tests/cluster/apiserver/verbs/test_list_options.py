from __future__ import annotations

import pytest

from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.verbs.list_options import Position, continue_token, list_options, read_token


def options(**query: str) -> Call:
    return Call(method="GET", path="", query={name: [value] for name, value in query.items()})


def test_a_continue_token_holds_its_position() -> None:
    position = Position(17, ("team", "a-pod"))
    assert read_token(continue_token(position)) == position


@pytest.mark.parametrize("token", ["abc", "", "e30", "eyJ2IjoieCJ9", "%%%", "\u2028"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(Refused) as refused:
        read_token(token)
    assert refused.value.status.code == 400


REFUSALS = {
    "match without a version": {"resourceVersionMatch": "Exact"},
    "unknown match": {"resourceVersion": "1", "resourceVersionMatch": "Sometimes"},
    "exactly any": {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
    "match and continue": {"resourceVersion": "1", "resourceVersionMatch": "Exact", "continue": "x"},
    "initial events of a list": {"sendInitialEvents": "true"},
    "initial events without a match": {"watch": "true", "sendInitialEvents": "true"},
    "match of a watch": {"watch": "true", "resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"},
    "a watch that continues": {"watch": "true", "continue": "x"},
}


@pytest.mark.parametrize("query", REFUSALS.values(), ids=REFUSALS)
def test_options_that_contradict_each_other_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        list_options(options(**query))
    assert refused.value.status.code == 422
    assert refused.value.status.message.startswith('ListOptions.meta.k8s.io "" is invalid: ')


def test_a_version_must_be_a_number() -> None:
    with pytest.raises(Refused) as refused:
        _ = list_options(options(resourceVersion="abc")).revision
    expected = 'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": '
    assert refused.value.status.message == expected + "invalid syntax"
